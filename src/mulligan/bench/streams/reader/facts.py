"""Facts as sentences, which the worlds of the streams state and the scripted reader finds in a prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

_MARKED = re.compile(r"to be checked|superseded", re.IGNORECASE)
_BLOCK = re.compile(r"^(?=A fact\b|Facts\b|Lesson \d|A task that )", re.MULTILINE)
"""Where an entry of a notebook, a lesson or an account of an earlier task begins in the recalled text."""
_QUOTE = "'"
_QUOTED, _WORD = r"[^'\n]{1,60}", r"\b\w+"
_STEP = re.compile(r"^> (.+)$", re.MULTILINE)


def is_marked(line: str) -> bool:
    """Whether this first line of an entry says that the entry may be out of date."""
    return bool(_MARKED.search(line))


@dataclass(frozen=True)
class Fact:
    """One fact in a text. title: of a lesson about it; facts with the same title belong together."""

    form: Form
    key: tuple[str, ...]
    value: str
    sentence: str
    title: str


@dataclass(frozen=True)
class Form:
    """The sentence in which facts of one kind are stated.

    Attributes:
        template: the sentence with slots `{name}`. A slot without quotes takes one word.
        key: the slots that say what the fact is about. The other slot is its value.
        title: see `Fact`.
    """

    template: str
    key: tuple[str, ...]
    title: str

    def state(self, **slots: str) -> str:
        return self.template.format(**slots)

    def facts(self, text: str) -> Iterator[Fact]:
        """The facts of this form in the text, in order."""
        for match in self._pattern.finditer(text):
            slots = match.groupdict()
            key = tuple(slots[name] for name in self.key)
            (value,) = (slots[name] for name in slots if name not in self.key)
            yield Fact(self, key, value, match[0], self.title.format(**slots))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = re.split(r"\{(\w+)\}", self.template)
        for n in range(1, len(pieces), 2):
            pieces[n] = f"(?P<{pieces[n]}>{_QUOTED if pieces[n - 1].endswith(_QUOTE) else _WORD})"
        pieces[::2] = map(re.escape, pieces[::2])
        return re.compile("".join(pieces))


@dataclass(frozen=True)
class Notes:
    """The parts of a question about a task.

    Attributes:
        own: the task, and what this trial or earlier ones of the same task observed.
        recalled: the text before the task, without `marked`.
        marked: the entries before the task that are marked as superseded or to be checked.
    """

    own: str
    recalled: str
    marked: str

    @classmethod
    def read(cls, text: str, opening: str, implied_facts: Callable[[str], Iterable[str]]) -> Notes:
        """Read a question. The last task in it is the current one.

        Args:
            opening: how the tasks of the family begin.
            implied_facts: gives the facts, as sentences, that an account implies by what worked.
        """
        at = max(text.rfind(opening), 0)
        blocks = ["\n".join((block, *implied_facts(block))) for block in _BLOCK.split(text[:at])]
        marked = [block for block in blocks if is_marked(block.partition("\n")[0])]
        return cls(text[at:], "".join(block for block in blocks if block not in marked), "".join(marked))

    @property
    def task(self) -> str:
        """The first line of the task."""
        return self.own.partition("\n")[0]

    @cached_property
    def steps(self) -> Sequence[tuple[str, str]]:
        """The actions of this trial, each with its observation."""
        pieces = _STEP.split(self.own)
        observations = [piece.removesuffix(">").strip() for piece in pieces[2::2]]
        return list(zip(pieces[1::2], observations, strict=True))

    def values(self, form: Form, *key: str, marked: bool = False) -> Sequence[str]:
        """The values of a fact in the text, each once, in the order in which they count.

        The observations of this task are first, from the newest to the oldest. Then comes the recalled text, from its
        top (accounts of earlier tasks begin with the newest), and with `marked`, last, the marked entries.
        """
        facts = [*reversed(list(form.facts(self.own))), *form.facts(self.recalled)]
        facts += form.facts(self.marked) if marked else ()
        return list(dict.fromkeys(fact.value for fact in facts if fact.key == key))
