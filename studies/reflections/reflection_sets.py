"""The reflections of the study: published ones, our own, and planted bad ones. README.md says what was fixed when.

Everything here was committed before the score was written. Published texts are read from ../shared/data/replay (or the
folder that MULLIGAN_TEST_DATA names) and are never kept here: labels.json refers to them by sha256.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = Path(os.environ.get("MULLIGAN_TEST_DATA") or HERE.parents[2] / "shared/data")
PUBLISHED = DATA / "replay/mbpp-gpt4-20-episodes.json"
PLANTED = tomllib.loads((HERE / "planted.toml").read_text(encoding="utf-8"))
CODE_EXAMPLE = """
paint_cans(15) returned 2 where 3 was expected: the division drops the last square metre, although no part of a can is
sold. The next attempt must add one can whenever some of the area is still unpainted after the full cans.""".replace(
    "\n", " "
).strip()

PARTS = {
    "develop": ("reasoning", "database"),
    "check": ("web", "published 1"),
    "last": ("shell", "household", "numbers", "published 2"),
}


@dataclass(frozen=True)
class Item:
    """One reflection to be scored, with what a scorer may know of its trial.

    Attributes:
        kind: "good", "repeats" or "generic" by label; of planted ones "planted generic", "planted other", and so on.
        trial: task, attempt and feedback.
        answers: what an oracle expects, which the reflection must not give away.
        mistaken: a good one whose diagnosis is wrong, as far as a reader can tell.
    """

    domain: str
    episode: str
    number: int
    kind: str
    text: str
    trial: tuple[str, ...]
    earlier: tuple[str, ...]
    examples: tuple[str, ...]
    answers: tuple[str, ...]
    mistaken: bool = False


def items(part: str = "") -> list[Item]:
    """All items, or those of one part; without the published ones where they are absent."""
    real = [*own(), *(published() if PUBLISHED.exists() else [])]
    every = [*real, *planted(real)]
    return [item for item in every if not part or item.domain in PARTS[part]]


def own() -> list[Item]:
    found: list[Item] = []
    for path in sorted((HERE / "own").glob("*.toml")):
        domain = tomllib.loads(path.read_text(encoding="utf-8"))
        for episode in domain["episodes"]:
            earlier: list[str] = []
            for number, trial in enumerate(episode["trials"], 1):
                texts = (episode["task"], "\n".join(trial["steps"]), trial["feedback"])
                shown = (domain["example"].replace("\n", " ").strip(),)
                lesson, answers = trial["reflection"], (episode["answer"],)
                name = episode["name"]
                found.append(Item(path.stem, name, number, "good", lesson, texts, tuple(earlier), shown, answers))
                earlier.append(lesson)
    return found


def published() -> list[Item]:
    labels: dict[str, Any] = json.loads((HERE / "labels.json").read_text(encoding="utf-8"))
    found: list[Item] = []
    episodes = [e for e in json.loads(PUBLISHED.read_text(encoding="utf-8")) if e["reflections"]]
    for place, episode in enumerate(episodes):
        hidden = re.findall(r"== (.+)", episode["hidden_test"])
        for at, text in enumerate(episode["reflections"]):
            label = labels[episode["name"]][str(at + 1)]
            if hashlib.sha256(text.encode()).hexdigest()[:16] != label["sha256"]:
                raise SystemExit(f"{episode['name']}, trial {at + 1}: not the reflection that was labelled.")
            found.append(
                Item(
                    f"published {place % 2 + 1}",
                    episode["name"],
                    at + 1,
                    label["label"],
                    text,
                    (episode["prompt"], episode["implementations"][at], episode["feedback"][at]),
                    tuple(episode["reflections"][:at]),
                    (CODE_EXAMPLE,),
                    tuple(hidden),
                    label.get("mistaken", False),
                )
            )
    return found


# --- planted ------------------------------------------------------------------------------------------------------


def planted(real: Sequence[Item]) -> list[Item]:
    """For each good reflection a bad one of each kind, of about its length."""
    good = [item for item in real if item.kind == "good"]
    found: list[Item] = []
    for place, item in enumerate(good):
        size = len(item.text.split())
        empty = _phrases(item, place)
        found += [
            replace(item, kind="planted generic", text=_filled("", empty, size), mistaken=False),
            replace(item, kind="planted other", text=_of_another(item, good), mistaken=False),
            _repeating(item, real),
            replace(item, kind="planted leak", text=_filled(_leak(item, place), empty, size), mistaken=False),
            replace(item, kind="planted copy", text=_copy(item, empty, size), mistaken=False),
        ]
    return found


def _phrases(item: Item, place: int) -> list[str]:
    """Sentences that fit any trial of the domain, from another beginning for each item."""
    phrases = [*PLANTED["generic"][item.domain.split()[0]], *PLANTED["generic"]["any"]]
    start = place * 3 % len(phrases)
    return phrases[start:] + phrases[:start]


def _filled(text: str, phrases: Sequence[str], size: int) -> str:
    """The text with as many phrases behind it as bring it nearest to this many words."""
    for phrase in phrases:
        longer = f"{text} {phrase}".strip()
        if text and abs(len(text.split()) - size) <= abs(len(longer.split()) - size):
            break
        text = longer
    return text


def _of_another(item: Item, good: Sequence[Item]) -> str:
    """The good reflection of another episode of the domain that is nearest in length."""
    size = len(item.text.split())
    family = item.domain.split()[0]
    others = [other for other in good if other.domain.split()[0] == family and other.episode != item.episode]
    return min(others, key=lambda other: (abs(len(other.text.split()) - size), other.episode, other.number)).text


def _repeating(item: Item, real: Sequence[Item]) -> Item:
    """The same lesson in slightly other words, at the next trial (at this one, where it was the last)."""
    text = item.text
    for old, new in PLANTED["rewrite"]:
        text = re.sub(rf"\b{re.escape(old)}\b", new, text)
    sentences = re.split(r"(?<=[.!?]) (?=[A-Z'$\d])", text)
    text = " ".join([sentences[-1], *sentences[:-1]])
    later = [o for o in real if (o.domain, o.episode, o.number) == (item.domain, item.episode, item.number + 1)]
    context = later[0] if later else replace(item, earlier=(*item.earlier, item.text))
    return replace(context, kind="planted repeat", text=text, mistaken=False)


def _leak(item: Item, place: int) -> str:
    answer = max(item.answers, key=len)
    return PLANTED["leak"][place % len(PLANTED["leak"])].format(answer=answer)


def _copy(item: Item, phrases: Sequence[str], size: int) -> str:
    """The worked example, each ninth word replaced by one of the task, cut to this many words or filled up."""
    words = item.examples[0].split()
    task = [word for word in re.findall(r"\w{4,}", item.trial[0]) if not word.isdigit()]
    for turn, at in enumerate(range(8, len(words), 9)):
        words[at] = task[turn % len(task)]
    return _filled(" ".join(words[:size]), phrases, size)
