"""Passes an attempt that contains certain texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode, Feedback
from mulligan.text.thoughts import output_of


class Contains:
    """Passes an output that contains certain texts.

    The score is the share of the texts that were found, 0 to 1. The feedback names the missing ones, so use this for
    requirements that the agent may know, and exact_match for a hidden answer.

    Args:
        text: a text, or a list of texts.
        match: whether the output must contain all of them, or any.

    Raises:
        InvalidInput: there is no text, or an empty one.
    """

    expects: Literal["text", "code", "workspace"] = "text"
    replayable = True

    def __init__(
        self, *, text: str | Sequence[str], match: Literal["all", "any"] = "all", ignore_case: bool = False
    ) -> None:
        texts = (text,) if isinstance(text, str) else tuple(text)
        if not texts or not all(isinstance(part, str) and part for part in texts):
            raise InvalidInput(
                f"'contains' needs a non-empty string to look for, or a list of such strings, not {text!r}."
            )
        if match not in ("all", "any"):
            raise InvalidInput(f"contains: 'match' must be all or any, not {match!r}.")
        self._texts = texts
        self._any = match == "any"
        self._ignore_case = ignore_case

    async def evaluate(self, episode: Episode) -> Feedback:
        output = self._folded(output_of(episode.trials[-1].attempt))
        missing = [text for text in self._texts if self._folded(text) not in output]
        count = len(self._texts) - len(missing)
        passed = count > 0 if self._any else not missing
        problem = "None of these is in the output" if self._any else "Missing from the output"
        message = "Found in the output." if passed else f"{problem}: {', '.join(repr(text) for text in missing)}."
        return Feedback(passed, message, score=count / len(self._texts), source="contains")

    def _folded(self, text: str) -> str:
        return text.casefold() if self._ignore_case else text
