"""What a benchmark is, and what a run of one leaves behind. It knows no file format, no model and no store.

A benchmark gives cases (task and hidden target), says who plays under which strategy, and judges afterwards. The loop
never sees a target: `score` runs when the episode is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from mulligan.core.protocols import Evaluator
from mulligan.core.records import Case, Episode, Json, Usage
from mulligan.core.specs import Spec

Status: TypeAlias = Literal["solved", "failed", "unjudged", "error"]
"""How a case ended. `unjudged`: nobody could tell; `error`: it could not be run to its end. Neither is a failure."""


@dataclass(frozen=True)
class Source:
    """A file of a benchmark's data, pinned: `fetch` takes it only with this size and sha256 (lower-case hex).

    file: the name it is kept under. url: where it is, at a fixed commit. licence: as its owner says it.
    """

    file: str
    url: str
    sha256: str
    size: int
    licence: str


@dataclass(frozen=True)
class Method:
    """Who plays in the episodes of a run: a bundle of roles that a benchmark offers. `summary` says it in a line.

    trials: attempts at most, unless the user says otherwise; of a method with 1, more are refused. hand_in: which
    attempt is scored, the last one (as the reference does) or the best by the loop's own feedback. oracle: the
    evaluator knows the target, so that what it solves is reported apart. expansion: how many children a search gives
    each candidate; None: one line of trials. environment: the world that the actor acts in. strategy: what the next
    trial is shown, unless the user names another.
    """

    actor: Spec
    evaluator: Spec
    reflector: Spec = Spec("verbal")
    strategy: Spec = Spec("none")
    summary: str = ""
    trials: int = 5
    hand_in: Literal["last", "best"] = "last"
    oracle: bool = False
    expansion: int | None = None
    environment: Spec | None = None


@dataclass(frozen=True)
class Score:
    """What a benchmark says of a finished episode: 1 is solved, 0 is not. `value` None: unscored, and then left out of
    every mean. parts: scores that are reported beside it by their names, such as those of the easier half of its tests.
    """

    value: float | None
    text: str = ""
    parts: Mapping[str, float] = field(default_factory=dict[str, float])


class Judges(Protocol):
    """Makes an evaluator of this spec, with the sandbox of the run: how a benchmark judges without importing one."""

    def __call__(self, spec: Spec) -> Evaluator: ...


@runtime_checkable
class Benchmark(Protocol):
    """One file of `benchmarks/`. Its settings are keyword parameters of its constructor; `judges` and `sandbox` are
    ports.

    title: one line. data: the file's name, or a pattern such as "*.tw-pddl", that is looked for in --data,
    MULLIGAN_DATA and the cache. sources: what `fetch` gets; empty where nothing can be pinned, and `where` then says in
    a sentence how a user comes by the data.
    """

    title: str
    data: str
    sources: Sequence[Source]
    where: str

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        """The cases of these files, in their order, ids unique. Raises `InvalidInput` that names file and line."""
        ...

    def methods(self) -> Mapping[str, Method]:
        """By the name that --method takes; the first is the default."""
        ...

    def play(self, case: Case, method: Method) -> Method:
        """The method with what this case alone needs, such as the game of its environment. It puts nothing of the
        target there, but for a declared oracle's evaluator."""
        ...

    async def score(self, case: Case, episode: Episode) -> Score:
        """Judges the newest attempt. Called after the episode, for each of its trials, once each."""
        ...


@runtime_checkable
class Ships(Protocol):
    """A benchmark that comes with data: `own` are the files that it reads where there are no others."""

    own: Sequence[Path]


@runtime_checkable
class Renames(Protocol):
    """A benchmark some of whose methods had other names before 0.2: `former` has today's name by the older one."""

    former: Mapping[str, str]


@runtime_checkable
class Rests(Protocol):
    """A benchmark whose data names further files."""

    def beside(self) -> Sequence[Path]:
        """Those that the cases rest on, once they are loaded: a resume is refused when one has changed."""
        ...


@dataclass(frozen=True)
class BenchRun:
    """A run as it was started: enough to go on with it. `options`: what the user chose, by name.

    cases: ids in the order in which they are begun. rests_on: what must not change on a resume, by name (data files,
    prompts, models, settings), with a hash or the value itself.
    """

    id: str
    benchmark: str
    created: float
    options: Mapping[str, Json]
    cases: tuple[str, ...]
    rests_on: Mapping[str, Json]


@dataclass(frozen=True)
class Marked:
    """One episode of a case. `scores`: what the benchmark says of the attempt that would be handed in after trial 1, 2,
    …; the last one counts. None where it could not be scored. parts: the same of each part, by name: see `Score`."""

    episode: str
    scores: tuple[float | None, ...] = ()
    parts: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict[str, tuple[float | None, ...]])

    @property
    def score(self) -> float | None:
        return self.scores[-1] if self.scores else None


@dataclass(frozen=True)
class CaseResult:
    """What became of a case. position: from 1, in the order of the run. `episodes`: one for each restart or sample.

    text: of an error, or what the benchmark said. seconds: spent working. usage: of all its episodes.
    """

    position: int
    case: str
    status: Status
    episodes: tuple[Marked, ...] = ()
    text: str = ""
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)

    @property
    def solved(self) -> bool:
        return self.status == "solved"
