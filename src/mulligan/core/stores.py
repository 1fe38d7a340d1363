"""The ports to a store of episodes, cut along their users, and the records that pass through them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from mulligan.core.arms import ArmRow
from mulligan.core.episode import Event
from mulligan.core.records import Episode, Head, Json, StopReason

if TYPE_CHECKING:
    from mulligan.core.benchmarks import BenchStore
    from mulligan.core.lesson_store import Memory


@dataclass(frozen=True)
class Lease:
    """The right to drive an episode. `fence` rises with each holder; a write with an older one is refused."""

    episode: str
    owner: str
    fence: int


@dataclass(frozen=True)
class StepRow:
    """A journal step as stored. `result` counts only when `done`."""

    key: str
    request_hash: str
    done: bool
    request: Json = None
    result: Json = None


@dataclass(frozen=True)
class Brief:
    """An episode, as a row of a list.

    Attributes:
        prompt: the beginning of the task.
        stop: why it ended. None: it has not ended.
        judged: whether a trial has a verdict.
        head: its models and settings.
    """

    id: str
    run: str
    agent: str
    started: float
    prompt: str
    trials: int
    stop: StopReason | None = None
    judged: bool = False
    head: Head = field(default_factory=Head, compare=False)


class EpisodeReader(Protocol):
    """Reads episodes with their events and journal steps. Raises `NotFound`."""

    async def load(self, episode: str, *, agent: str | None = None) -> Episode:
        """The episode. Raises `NotFound`, also for one of another agent, where `agent` names one."""
        ...

    async def list(
        self, *, run: str | None = None, agent: str | None = None, limit: int = 50, benches: bool = True
    ) -> Sequence[Episode]:
        """The episodes, newest first.

        Args:
            benches: include those of benchmark runs.
        """
        ...

    async def briefs(
        self,
        *,
        agent: str | None = None,
        before: str | None = None,
        limit: int = 50,
        text: str = "",
        stops: Collection[str] = (),
        benches: bool = True,
    ) -> Sequence[Brief]:
        """Newest first. A record that cannot be read is left out.

        Args:
            agent: Only episodes of this agent.
            before: Only episodes older than this one. Raises `NotFound` without it.
            text: Only episodes whose id or task contains this; the case of Latin letters does not count.
            stops: Only episodes that ended for one of these reasons; "": those that have not ended.
            benches: Include episodes of benchmark runs.
        """
        ...

    async def resolve(self, prefix: str) -> Sequence[str]:
        """The ids of episodes whose id or run has this prefix, in order. Raises `NotFound` for none or several runs."""
        ...

    async def events(self, episode: str) -> Sequence[Event]: ...

    async def files(self, episode: str) -> Mapping[str, str]: ...

    async def steps(self, episode: str) -> Sequence[StepRow]:
        """The steps in the order in which they were begun."""
        ...


class EpisodeIndex(Protocol):
    """What there is of episodes, and whether one is driven now."""

    async def ids(self, prefix: str, *, agent: str | None = None, limit: int = 50) -> Sequence[str]:
        """The ids with this prefix, newest first."""
        ...

    async def agents(self, prefix: str = "", *, limit: int = 50) -> Sequence[str]:
        """The agents of episodes whose name has this prefix, in order, without the unnamed agent."""
        ...

    async def workspaces(self) -> Sequence[Mapping[str, Json]]:
        """The different settings of the workspaces that episodes worked in."""
        ...

    async def revision(self, episode: str | None = None) -> str:
        """A text that differs from an earlier one if anything was recorded meanwhile, by any process.

        Args:
            episode: only what was recorded of this one, and whether it is driven.

        Raises:
            NotFound
        """
        ...

    async def holder(self, episode: str) -> str | None:
        """The owner of the lease, if the episode is driven now."""
        ...


class EpisodeWriter(Protocol):
    """Writes episodes. A write with a lease that was lost raises `LeaseLost` and changes nothing."""

    async def create(self, episode: Episode, files: Mapping[str, str] = ...) -> None:
        """A new episode, without trials. `files` are the texts it rests on (tests, prompts), for the export."""
        ...

    async def copy(
        self, episode: str, id: str, run: str, head: Head, files: Mapping[str, str], event: Event
    ) -> Episode:
        """Forks an episode: copies its events and steps to a new id and run with its own head and files, and appends
        `event`. All or nothing; the old episode does not change. Raises `StoreError` when the id is taken.
        """
        ...

    async def append(self, lease: Lease, seq: int, event: Event) -> None:
        """The event number `seq` (from 0) of the episode.

        Raises:
            StoreError: that number is taken.
        """
        ...

    async def begin_step(self, lease: Lease, key: str, request: Json, request_hash: str) -> None:
        """Stores a started step.

        A stored one with the same hash is replaced; with another hash (a fork), it is removed with all steps begun
        after it, as their results depend on it.
        """
        ...

    async def finish_step(self, lease: Lease, key: str, result: Json) -> None: ...

    async def remove(self, lease: Lease) -> None:
        """Removes the leased episode with its events, steps, files and lease.

        Lessons learned from it stay, and are marked.
        """
        ...


@runtime_checkable
class AppendsSeveral(Protocol):
    """What a store may have besides `Store`. One that lacks it is asked for each write on its own."""

    async def append_all(self, lease: Lease, seq: int, events: Sequence[Event], *, release: bool = False) -> None:
        """The events from number `seq` on, all or none of them. release: the lease ends with them."""
        ...


class EpisodeLeases(Protocol):
    """Gives the right to drive an episode."""

    async def acquire(self, episode: str, owner: str, seconds: float, *, removing: bool = False) -> Lease:
        """Raises `LeaseLost` while another's lease is fresh, saying who.

        Args:
            removing: to remove it, on a full disk too.
        """
        ...

    async def renew(self, lease: Lease, seconds: float) -> None: ...

    async def release(self, lease: Lease) -> None: ...


class ArmCounts(Protocol):
    """What is counted of the arms of strategies that learn."""

    async def arms(self, model: str | None = None, kind: str | None = None) -> Sequence[ArmRow]:
        """What is counted of the arms of strategies that learn: those of this model; of this kind, and over all kinds.

        None: of all. An episode is counted in the write of the event that ends it for good.
        """
        ...

    async def forget_arms(self, model: str | None = None, kind: str | None = None) -> int:
        """Removes what `arms` gives for this model and, of its kinds, for this one alone; how many rows."""
        ...


@runtime_checkable
class Store(EpisodeReader, EpisodeIndex, EpisodeWriter, EpisodeLeases, ArmCounts, Protocol):
    """All operations of a store.

    Code that needs fewer uses one of the protocols above.

    Attributes:
        memory: the lessons and the queued work.
        benches: the benchmark runs. Both are closed with the store. Data is safe from a crash of the process once a
            call returns; each store documents what is safe from a crash of the machine.

    Raises:
        StoreError
    """

    @property
    def memory(self) -> Memory:
        """The lessons and the queued work."""
        ...

    @property
    def benches(self) -> BenchStore:
        """The runs of benchmarks."""
        ...

    async def __aenter__(self) -> Self:
        """Closes the store at the end of the block."""
        ...

    async def __aexit__(self, *error: object) -> None: ...

    async def close(self) -> None:
        """Closes the store."""
        ...
