"""A client's step as it comes in one call, and the result once the step is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode, Feedback
from mulligan.text.thoughts import answer_of

MOST_TRIALS = 1000
"""The most trials of one episode."""

STEP_NAMES = {"act": "actor", "evaluate": "evaluator", "reflect": "self-reflection"}
"""The names of the steps in messages to a client."""

Part: TypeAlias = Literal["act", "evaluate", "reflect"]


@dataclass(frozen=True)
class ClientStep:
    """A client's step in one call. Raises `InvalidInput` for values that can never be valid.

    Attributes:
        kind: "act" asks for the prompt of a trial; "evaluate" brings its output and asks for a verdict; "reflect"
            brings the score, and either asks for a reflection or brings it.
        trial: from 1 to `trials`.
        trials: the planned number.
        prompt: the task, for "act".
        output: for "evaluate" and "reflect".
        score: words, or a number (higher is better).
        passed: True ends the episode as solved. A trial that was reflected on without it has failed.
        memory: reflections, newest first, that replace the remembered ones. None keeps those.
    """

    kind: Part
    trial: int
    trials: int
    prompt: str = ""
    output: str = ""
    score: str | float | None = None
    reflection: str | None = None
    passed: bool | None = None
    memory: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.kind not in STEP_NAMES:
            raise InvalidInput(f"A step must be one of {', '.join(STEP_NAMES)}, not {self.kind!r}.")
        if not 1 <= self.trial <= self.trials <= MOST_TRIALS:
            raise InvalidInput(
                f"Trial {self.trial} of {self.trials} is out of range: trials are numbered from 1 to at most "
                f"{MOST_TRIALS}."
            )
        if self.reflection is not None:
            object.__setattr__(self, "reflection", answer_of(self.reflection))
        if isinstance(self.score, str):
            object.__setattr__(self, "score", answer_of(self.score))
        if self.memory is not None:
            object.__setattr__(self, "memory", tuple(map(answer_of, self.memory)))

    def __str__(self) -> str:
        return f"the {STEP_NAMES[self.kind]} step of trial {self.trial}"

    @property
    def feedback(self) -> Feedback:
        """The verdict. An attempt that did not pass has failed."""
        number = None if self.score is None or isinstance(self.score, str) else float(self.score)
        text = "" if self.score is None else str(self.score)
        return Feedback(bool(self.passed), text, number, "client")


@dataclass(frozen=True)
class StepResult:
    """A step that is recorded.

    Attributes:
        memory: reflections to be shown, newest first; for a repeated step, those of the first time.
        remembered: the reflections that the episode remembers now.
        completed: trials up to this one that were reflected on or passed.
        over: whether the episode ended with this trial.
    """

    episode: Episode
    trial: int
    memory: tuple[str, ...]
    remembered: tuple[str, ...]
    completed: int
    over: bool

    @property
    def solved(self) -> bool:
        return self.over and self.episode.solved
