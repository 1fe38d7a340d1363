"""Passes an attempt that equals the answer, apart from case, punctuation, articles and white space."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Literal

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode, Feedback, Finding
from mulligan.text.evidence import evidence_of
from mulligan.text.thoughts import output_of

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SENTENCE = 8
"""An output with so many words looks like more than an answer."""


def normalise(text: str) -> str:
    """Lower case, no ASCII punctuation, no articles, single spaces, in this order: the rule of HotPotQA and SQuAD."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", bare).split())


class ExactMatch:
    """Passes if the whole output equals an answer after `normalise`. The feedback never names the answer.

    Args:
        answer: the one right answer.
        answers: several right answers.
        oracle: whether the answer is knowledge that the agent should not have. The verdict's source is then "oracle".

    Raises:
        InvalidInput: there is no answer, or one of which `normalise` leaves nothing, such as "The".
    """

    expects: Literal["text", "code", "workspace"] = "text"
    replayable = True

    def __init__(
        self, *, answer: str | None = None, answers: str | Sequence[str] | None = None, oracle: bool = False
    ) -> None:
        several = [answers] if isinstance(answers, str) else list(answers or ())
        accepted = [answer] if answers is None else several
        if (answer is not None and answers is not None) or accepted in ([None], []):
            raise InvalidInput("exact_match needs an answer (exact_match:ANSWER), or a list of acceptable answers.")
        for text in accepted:
            if not isinstance(text, str) or not normalise(text):
                raise InvalidInput(
                    f"exact_match cannot compare {text!r}: it ignores punctuation and articles, and the answer "
                    "contains nothing else. Use the evaluator regex, which compares every character."
                )
        self._answers = frozenset(normalise(str(text)) for text in accepted)
        self._source = "oracle" if oracle else "exact_match"

    async def evaluate(self, episode: Episode) -> Feedback:
        attempt = episode.trials[-1].attempt
        output = output_of(attempt)
        normalised = normalise(output)
        if normalised in self._answers:
            return Feedback(True, "The answer is right.", source=self._source)
        halted = attempt.outcome.halted if attempt.outcome else None
        text = "The answer is wrong." if normalised else f"There is no answer{f': {halted}' if halted else ''}."
        if len(normalised.split()) >= _SENTENCE:
            text += " The whole output counts as the answer, so it should contain nothing else."
            tried = text
        else:
            tried = f"The answer {output.strip()!r} is wrong." if normalised else text
        return Feedback(False, text, source=self._source, evidence=evidence_of([Finding(got=tried)]))
