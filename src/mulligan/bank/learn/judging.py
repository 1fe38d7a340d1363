"""Judge from its trajectory whether a task was done, if no evaluator gave a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mulligan.bank.learn.trajectory import TOKENS, render
from mulligan.bank.learn.validation import CONTENT, object_of, text_of
from mulligan.core.errors import BadAnswer
from mulligan.core.protocols import Prompts
from mulligan.core.questions import Question
from mulligan.core.records import Episode, Json

VERDICTS = ("success", "failure", "uncertain")
SCHEMA: Json = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "verdict": {"type": "string", "enum": list(VERDICTS)}},
    "required": ["reasoning", "verdict"],
    "additionalProperties": False,
}
"""The reasoning comes first, so that the verdict follows from it."""


@dataclass(frozen=True)
class Verdict:
    """`reason` is the judge's, and says so when an uncertain case was taken as a failure."""

    success: bool
    reason: str


class Judge:
    """tokens: what task and trajectory may take of the prompt. paper: the prompt has the paper's structure.

    Of several trajectories of one task, one that succeeded is enough. Ask it at temperature 0.
    """

    def __init__(self, prompts: Prompts, *, tokens: int = TOKENS, paper: bool = False) -> None:
        self._prompt = prompts.get("judging.paper" if paper else "judging.judge").check("task", "trajectory")
        self._tokens = tokens

    def ask(self, episodes: Sequence[Episode]) -> Question:
        task, trajectory = render(episodes, self._tokens)
        *before, last = self._prompt.render(task=task, trajectory=trajectory)
        return Question((*before, replace(last, images=episodes[0].task.images)), SCHEMA)

    def take(self, episodes: Sequence[Episode], answer: Json) -> Verdict:
        table = object_of(answer, "The verdict")
        reason = text_of(table, "reasoning", 50 * CONTENT, "The verdict")[:CONTENT]
        verdict = table.get("verdict")
        if not isinstance(verdict, str) or verdict not in VERDICTS:
            raise BadAnswer(f'"verdict" must be {", ".join(VERDICTS[:2])} or {VERDICTS[2]}, not {verdict!r:.80}.')
        if verdict == "uncertain":
            return Verdict(False, f"Uncertain, and so taken as a failure: {reason}")
        return Verdict(verdict == "success", reason)
