"""Published episodes of programming runs: read from a file, and one of them as the model of its own replay.

The format is a JSON list of objects with the keys of `Published`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, cast

from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import Json, Usage
from mulligan.core.scope import path
from mulligan.text.plain import escaped
from mulligan.text.programs import whole
from mulligan.text.python_code import parsed

_TEXTS = ("name", "prompt", "entry_point", "hidden_test")
_LISTS = ("internal_tests", "implementations", "feedback", "reflections")
_MOVE = re.compile(r"trial\.(\d+)/(act|evaluate|reflect)\b")
_FENCE = "```"
_INDENTED = "unexpected indent"
"""What the reference says of an indented body that it ran without its prompt."""


@dataclass(frozen=True)
class Published:
    """One episode as it was published. `id`: its name, with a number behind it where several have that name.

    implementations: one for each trial; of a body alone, as old logs have them, the function that the prompt begins.
    feedback: of those that failed their internal tests; that of the last is not
    in the reference's logs. reflections: as many, or fewer. solved: by the hidden tests.
    """

    id: str
    name: str
    prompt: str
    entry_point: str
    internal_tests: tuple[str, ...]
    implementations: tuple[str, ...]
    feedback: tuple[str, ...]
    reflections: tuple[str, ...]
    hidden_test: str
    solved: bool


def read_log(file: str | os.PathLike[str]) -> tuple[Sequence[Published], str]:
    """The episodes and the sha256 of the file. Raises `InvalidInput` that names entry and key."""
    place = Path(file).expanduser()
    try:
        raw = place.read_bytes()
        entries: Json = json.loads(raw.decode("utf-8-sig"))
    except OSError as error:
        raise InvalidInput(f"The log {place} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The log {place} is no JSON, and a list of episodes is wanted: {error}.") from error
    if not isinstance(entries, list) or not entries:
        raise InvalidInput(f"The log {place} should be a JSON list of episodes, with at least one.")
    seen = set[str]()
    found = list[Published]()
    for number, entry in enumerate(cast(list[Any], entries), 1):
        where = f"{place}, entry {number}"
        if not isinstance(entry, dict):
            raise InvalidInput(f"{where}: an object is wanted, not {type(entry).__name__}.")
        found.append(_episode(where, cast(dict[str, Any], entry), seen))
    return found, hashlib.sha256(raw).hexdigest()


def _episode(where: str, entry: dict[str, Any], seen: set[str]) -> Published:
    if isinstance(name := entry.get("name"), str):
        where = f"{where} ({name[:60]})"
    for key in (*_TEXTS, *_LISTS, "solved"):
        if key not in entry:
            raise InvalidInput(f"{where}: the key {key!r} is missing.")
    texts, lists = dict[str, str](), dict[str, tuple[str, ...]]()
    for key in _TEXTS:
        if not isinstance(entry[key], str):
            raise InvalidInput(f"{where}: {key!r} should be a text, not {type(entry[key]).__name__}.")
        texts[key] = escaped(entry[key])
    for key in _LISTS:
        lists[key] = _texts(where, key, entry[key])
    if not isinstance(entry["solved"], bool):
        raise InvalidInput(f"{where}: 'solved' should be true or false, not {entry['solved']!r}.")
    made = len(lists["implementations"])
    if not made:
        raise InvalidInput(f"{where}: 'implementations' is empty, and a trial has one.")
    for key in ("feedback", "reflections"):
        if len(lists[key]) > made:
            raise InvalidInput(f"{where}: {key!r} has {len(lists[key])} texts for {made} implementations.")
    if len(lists["feedback"]) < made - 1:
        raise InvalidInput(f"{where}: 'feedback' has {len(lists['feedback'])} texts, and {made - 1} trials failed.")
    names = (texts["name"] + (f"#{several}" if several > 1 else "") for several in count(1))
    id = next(name for name in names if name not in seen)
    seen.add(id)
    words = (*lists["feedback"], *[""] * made)
    lists["implementations"] = tuple(
        code if _INDENTED in feedback or not code[:1].isspace() or parsed(code) else whole(code, texts["prompt"])
        for code, feedback in zip(lists["implementations"], words, strict=False)
    )
    fields: dict[str, Any] = {**texts, **lists}
    return Published(id=id, **fields, solved=entry["solved"])


def _texts(where: str, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidInput(f"{where}: {key!r} should be a list of texts, not {type(value).__name__}.")
    for number, text in enumerate(cast(list[Any], value), 1):
        if not isinstance(text, str):
            raise InvalidInput(f"{where}: {key!r}, number {number}, should be a text, not {type(text).__name__}.")
    return tuple(escaped(text) for text in cast(list[str], value))


class LogModel:
    """Answers with what the log has for where the episode is: its tests, implementation n, reflection n."""

    def __init__(self, name: str, log: Published, sha256: str) -> None:
        self.name, self.id = name, f"{name}@{sha256[:12]}"
        self._log = log

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        """Raises `ModelError` for what the log does not have."""
        move = _MOVE.search(path())
        if move is None:
            raise ModelError(f"{self.name}: the log answers within a trial only, and was asked in {path()!r}.")
        return Answer(self._answer(int(move[1]), move[2]), self.id, Usage(calls=1))

    def _answer(self, trial: int, kind: str) -> str:
        if kind == "evaluate":
            return _fenced("\n".join(self._log.internal_tests))
        if kind == "act":
            return _fenced(self._at(self._log.implementations, trial, "implementations"))
        text = self._at(self._log.reflections, trial, "reflections")
        return text.partition(_FENCE)[0].strip() or "(The log has no words of a reflection here.)"

    def _at(self, texts: Sequence[str], trial: int, what: str) -> str:
        if trial > len(texts):
            raise ModelError(f"the log of {self._log.id} has {len(texts)} {what}, and trial {trial} asks for one more")
        return texts[trial - 1]


def _fenced(code: str) -> str:
    return f"{_FENCE}python\n{code}\n{_FENCE}"
