"""A process of Ray that works on cases: opens the run for the first one, and keeps it open for the next."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib.metadata import version

from mulligan.app.config import Config
from mulligan.app.model_roles import Models
from mulligan.bench.fanout.shared import ClusterSlots, SharedModels
from mulligan.bench.harness.cases import Cases, Hooks, Opener
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.errors import JournalDiverged, MulliganError, StoreError
from mulligan.models.provider_client import slots_from
from mulligan.recording.leases import LEASE_SECONDS
from mulligan.store import open_store

AWAKE = 0.5
"""Seconds between two moments at which an idle worker notices that Ray interrupts it."""
WAIT = 2 * LEASE_SECONDS
"""Seconds that a case waits for a worker that still drives it: one of an earlier process, which Ray is about to end."""


@dataclass(frozen=True)
class Job:
    """What a worker needs to know about a run. It reads everything else from the store, as `--resume` does.

    Attributes:
        store: the address of the store.
        run: the id of the run.
        config: that of the process that hands out the cases. It holds names of variables with keys, and no key.
        folder: where that process works. A worker works there, too, if its machine has this folder.
        variables: that process's settings in the environment: see `cluster.variables_for`.
        version: of Mulligan over there.
    """

    store: str
    run: str
    config: Config
    folder: str
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    version: str = field(default_factory=lambda: version("mulligan"))


@dataclass(frozen=True)
class Reply:
    """What became of a case. failed: why the run cannot go on; lost: because of the store."""

    result: CaseResult | None = None
    notices: tuple[str, ...] = ()
    failed: str = ""
    lost: bool = False


class _Opened:
    """The run that this process works on, in an event loop that is there as long."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._notices: list[str] = []
        try:
            self._run, self._cases = self._runner.run(self._open())
        except BaseException:
            self._runner.close()
            raise
        self._stay_awake()

    def work_on(self, position: int) -> Reply:
        result = self._runner.run(self._cases.work_on(self._run, position))
        said = tuple(self._notices)
        self._notices.clear()
        return Reply(result, said)

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    def _stay_awake(self) -> None:
        """Ray interrupts by Python's flag for SIGINT, without a signal that would wake the event loop."""
        self._runner.get_loop().call_later(AWAKE, self._stay_awake)

    async def _open(self) -> tuple[BenchRun, Cases]:
        job, hooks = self.job, Hooks(notice=self._notices.append)
        async with AsyncExitStack() as stack:
            stack.enter_context(slots_from(ClusterSlots().slot))
            store = await stack.enter_async_context(open_store(job.store))
            opener = Opener(job.config, Models(job.config, SharedModels(job.variables)), store, hooks=hooks, wait=WAIT)
            opened = await stack.enter_async_context(opener.resumed(job.run))
            self._stack = stack.pop_all()
        return opened


_opened: list[_Opened] = []


def work_on(job: Job, position: int) -> Reply:
    """Take the case at this position to its end. The task of Ray: what is here runs in a worker."""
    here, own = socket.gethostname(), version("mulligan")
    if job.version != own:
        return Reply(
            failed=(
                f"{here} has Mulligan {own}, but version {job.version} distributes the cases: install the same version."
            )
        )
    try:
        if not _opened or _opened[0].job != job:
            while _opened:
                _opened.pop().close()
            os.environ.update(job.variables)
            if os.path.isdir(job.folder):
                os.chdir(job.folder)
            _opened.append(_Opened(job))
        return _opened[0].work_on(position)
    except JournalDiverged as error:
        what = "; ".join(error.changed)
        return Reply(
            failed=f"On {here}, the inputs of run {job.run} differ: {what}. Each machine needs the same files at the "
            "same paths, and the same models."
        )
    except StoreError as error:
        return Reply(failed=f"On {here}: {error}", lost=True)
    except MulliganError as error:  # what a machine lacks: a file, a package, a key
        return Reply(failed=f"On {here}: {error}")
