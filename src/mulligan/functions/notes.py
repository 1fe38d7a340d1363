"""The notes that a function gets for its next try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mulligan.core.records import Episode, Finding, Lesson, Past, Recall
from mulligan.text.formatting import past_text

if TYPE_CHECKING:
    # Type checkers see a separate type, so that they can tell the parameter for the notes from a parameter for text.
    class _Text:
        def __add__(self, other: str, /) -> str: ...
        def __radd__(self, other: str, /) -> str: ...
        def __contains__(self, part: str, /) -> bool: ...
        def __len__(self) -> int: ...
else:
    _Text = str


class Notes(_Text):
    """The failures so far and the bank's lessons, as text for a prompt; empty if there are none.

    At run time, it is a `str`. For type checkers, it is a separate type: where a `str` is needed, write f"{notes}" or
    str(notes).

    Attributes:
        trial: the number of the try that receives the notes, from 1.
        evidence: the checks that have failed so far, those of the newest try first.
        lessons: the lessons from the bank.
        receipt: the id of the recall; "" if nothing was recalled.
    """

    trial: int
    evidence: tuple[Finding, ...]
    lessons: tuple[Lesson, ...]
    receipt: str

    def __new__(
        cls, text: str = "", trial: int = 1, evidence: tuple[Finding, ...] = (), recall: Recall | None = None
    ) -> Notes:
        notes: Notes = cast(Any, super()).__new__(cls, text)
        notes.trial, notes.evidence = trial, evidence
        notes.lessons, notes.receipt = (recall.lessons, recall.id) if recall else ((), "")
        return notes


def notes_of(episode: Episode, past: Past) -> Notes:
    """The notes for the next try of the episode, from the part of the past that its strategy shows."""
    recalled = past.recall.formatted_prompt if past.recall else ""
    text = "\n\n".join(part for part in (recalled.strip(), past_text(past)) if part)
    return Notes(text, len(episode.trials) + 1, past.evidence, past.recall)
