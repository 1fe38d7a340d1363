"""Small records about tasks, lessons and results: where a kind comes from, condensed lessons, people's decisions and
ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mulligan.core.errors import InvalidInput


@dataclass(frozen=True)
class Edit:
    """A person's decision about a reflection, and the reflection before it.

    Attributes:
        decision: "taken": it is shown unchanged, even if it had been withheld. "edited": its text was changed.
            "written": the person wrote another one. "vetoed": later trials do not see it.
        by: who decided.
        at: when, in seconds since the epoch.
        before: the earlier text.
        withheld: why it had been withheld.
    """

    decision: Literal["taken", "edited", "written", "vetoed"]
    by: str = ""
    at: float = 0.0
    before: str = ""
    withheld: str = ""


@dataclass(frozen=True)
class Rating:
    """A person's score, from 0 to 1; higher is better.

    Attributes:
        by: who gave it.
        at: when, in seconds since the epoch.
        trial: the try whose lesson is rated. None: the result of the episode, or a lesson of a bank.
    """

    score: float
    by: str = ""
    at: float = 0.0
    comment: str = ""
    trial: int | None = None

    @classmethod
    def given(cls, score: float, by: str, at: float, comment: str = "", trial: int | None = None) -> Rating:
        """The rating. Raises `InvalidInput` for a score that is not from 0 to 1."""
        if not 0 <= score <= 1:
            raise InvalidInput(f"A person's score must be from 0 to 1 (higher is better), not {score:g}.")
        return cls(float(score), by, at, comment, trial)


@dataclass(frozen=True)
class Condensed:
    """A lesson that a model wrote to replace several of an episode's reflections.

    Attributes:
        trials: the numbers of the trials whose lessons it replaces; 0 stands for lessons from before the episode.
        by: the id of the model.
    """

    text: str
    trials: tuple[int, ...] = ()
    by: str = ""


@dataclass(frozen=True)
class KindOrigin:
    """Where the kind of a task comes from, or why it has none.

    Attributes:
        by: "given": with the task, by its author. "rule": by a rule of mulligan.toml. "cluster": by the nearest
            cluster of tasks, in records of versions that had kinds by clusters (design/135).
        rule: the regular expression.
        nearest: the kind of the nearest cluster.
        similarity: the mean cosine between the task and the tasks of that cluster.
        least: the minimum similarity at which a cluster gives its kind.
    """

    by: Literal["given", "rule", "cluster"]
    rule: str = ""
    nearest: str = ""
    similarity: float | None = None
    least: float | None = None
