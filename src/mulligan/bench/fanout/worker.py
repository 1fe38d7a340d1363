"""Works on cases in a process of Ray. It opens the run for the first case, and keeps it open for the next ones."""

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

WAKE_SECONDS = 0.5
"""How often an idle worker checks whether Ray interrupts it."""
WAIT_SECONDS = 2 * LEASE_SECONDS
"""How long a case waits for an earlier worker that still runs it, until Ray ends that worker."""


@dataclass(frozen=True)
class Job:
    """What a worker needs to know about a run. It reads everything else from the store, as `--resume` does.

    Attributes:
        store: the address of the store.
        run: the id of the run.
        config: the configuration of the process that distributes the cases. It contains no keys, only the names of
            variables with keys.
        folder: the working folder of that process. A worker uses it, too, if its machine has this folder.
        variables: the environment variables of that process: see `variables_for` in bench.fanout.cluster.
        version: the version of Mulligan in that process.
    """

    store: str
    run: str
    config: Config
    folder: str
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    version: str = field(default_factory=lambda: version("mulligan"))


@dataclass(frozen=True)
class Reply:
    """The result of a case. failed: why the run cannot continue. lost: whether the store is the reason."""

    result: CaseResult | None = None
    notices: tuple[str, ...] = ()
    failed: str = ""
    lost: bool = False


class _Opened:
    """The run that this process works on, and its event loop."""

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
        notices = tuple(self._notices)
        self._notices.clear()
        return Reply(result, notices)

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    def _stay_awake(self) -> None:
        """Wakes the event loop again and again, because Ray interrupts a process without sending a signal."""
        self._runner.get_loop().call_later(WAKE_SECONDS, self._stay_awake)

    async def _open(self) -> tuple[BenchRun, Cases]:
        job, hooks = self.job, Hooks(notice=self._notices.append)
        async with AsyncExitStack() as stack:
            stack.enter_context(slots_from(ClusterSlots().slot))
            store = await stack.enter_async_context(open_store(job.store))
            opener = Opener(
                job.config, Models(job.config, SharedModels(job.variables)), store, hooks=hooks, wait=WAIT_SECONDS
            )
            opened = await stack.enter_async_context(opener.resumed(job.run))
            self._stack = stack.pop_all()
        return opened


_opened: list[_Opened] = []


def work_on(job: Job, position: int) -> Reply:
    """Finish the case at this position. Ray runs this function in a worker."""
    host, own_version = socket.gethostname(), version("mulligan")
    if job.version != own_version:
        return Reply(
            failed=f"{host} has Mulligan {own_version}, but version {job.version} distributes the cases: install "
            "the same version."
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
            failed=f"On {host}, the inputs of run {job.run} differ: {what}. Each machine needs the same files at the "
            "same paths, and the same models."
        )
    except StoreError as error:
        return Reply(failed=f"On {host}: {error}", lost=True)
    except MulliganError as error:  # the machine may lack a file, a package or a key
        return Reply(failed=f"On {host}: {error}")
