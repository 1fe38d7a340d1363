"""Facts as sentences: the worlds of the streams state them, and the scripted reader finds them in a prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

_MARKED = re.compile(r"to be checked|superseded", re.IGNORECASE)
_BLOCK = re.compile(r"^(?=A fact\b|Facts\b|Lesson \d|A task that )", re.MULTILINE)
"""Where an entry of a notebook, a lesson or an account of an earlier task begins in what was recalled."""
_QUOTE = "'"
_QUOTED, _WORD = r"[^'\n]{1,60}", r"\b\w+"
_STEP = re.compile(r"^> (.+)$", re.MULTILINE)


def is_marked(line: str) -> bool:
    """Whether this first line of an entry says that it may not hold any more."""
    return bool(_MARKED.search(line))


@dataclass(frozen=True)
class Fact:
    """One fact in a text. title: what a lesson about it is called; facts with the same title belong together."""

    form: Form
    key: tuple[str, ...]
    value: str
    sentence: str
    title: str


@dataclass(frozen=True)
class Form:
    """The sentence in which facts of one kind are stated.

    Attributes:
        template: the sentence with slots `{name}`; one without quotes takes a word.
        key: the slots that say what the fact is about; the one other slot is its value.
        title: see `Fact`.
    """

    template: str
    key: tuple[str, ...]
    title: str

    def state(self, **slots: str) -> str:
        return self.template.format(**slots)

    def facts(self, text: str) -> Iterator[Fact]:
        """The facts of this form in the text, in its order."""
        for found in self._pattern.finditer(text):
            slots = found.groupdict()
            key = tuple(slots[name] for name in self.key)
            (value,) = (slots[name] for name in slots if name not in self.key)
            yield Fact(self, key, value, found[0], self.title.format(**slots))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = re.split(r"\{(\w+)\}", self.template)
        for n in range(1, len(pieces), 2):
            pieces[n] = f"(?P<{pieces[n]}>{_QUOTED if pieces[n - 1].endswith(_QUOTE) else _WORD})"
        pieces[::2] = map(re.escape, pieces[::2])
        return re.compile("".join(pieces))


@dataclass(frozen=True)
class Notes:
    """The text of a question about a task, in its parts.

    Attributes:
        own: the task, and what this trial or earlier ones of the same task observed.
        recalled: what stands before the task and counts.
        marked: what stands there and is marked as to be checked or superseded.
    """

    own: str
    recalled: str
    marked: str

    @classmethod
    def read(cls, text: str, opening: str, shown: Callable[[str], Iterable[str]]) -> Notes:
        """opening: how the tasks of the family begin. The last one in the text is the task at hand.

        shown: the facts, as sentences, that an account shows by what worked without stating them.
        """
        at = max(text.rfind(opening), 0)
        blocks = ["\n".join((block, *shown(block))) for block in _BLOCK.split(text[:at])]
        marked = [is_marked(block.partition("\n")[0]) for block in blocks]
        parts = ["".join(b for b, m in zip(blocks, marked, strict=True) if m is which) for which in (False, True)]
        return cls(text[at:], *parts)

    @property
    def task(self) -> str:
        """The first line of the task."""
        return self.own.partition("\n")[0]

    @cached_property
    def steps(self) -> Sequence[tuple[str, str]]:
        """The actions of this trial with what each of them observed."""
        pieces = _STEP.split(self.own)
        return [
            (action, seen.removesuffix(">").strip()) for action, seen in zip(pieces[1::2], pieces[2::2], strict=True)
        ]

    def values(self, form: Form, *key: str, marked: bool = False) -> Sequence[str]:
        """What the text says of this, each value once, in the order in which they count.

        What this task showed counts first, the newest observation before older ones; then what was recalled, from its
        top (accounts of earlier tasks stand newest first); last, where `marked` says so, what is to be checked.
        """
        facts = [*reversed(list(form.facts(self.own))), *form.facts(self.recalled)]
        facts += form.facts(self.marked) if marked else ()
        return list(dict.fromkeys(fact.value for fact in facts if fact.key == key))
