"""Hands out the cases of a run to the workers of Ray, and gets their results."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shutil
import signal
import socket
import tempfile
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from mulligan.app.plugins import find
from mulligan.app.runner import log
from mulligan.bench.fanout.shared import NAMESPACE, on_node
from mulligan.bench.fanout.worker import Job, Reply, work_on
from mulligan.bench.harness.cases import Cases, Opener, Workers
from mulligan.bench.harness.plan import family_of
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.errors import ClusterError, InvalidInput, StoreError
from mulligan.core.extras import require
from mulligan.recording.holders import birth
from mulligan.store import file_of, parse_address

HERE = "ray"
"""The place that is a Ray on this machine, started for the run."""
CRASHES = 16
"""How many workers may die with one case before it counts as an error."""
SHARES = 8
"""The most cases that share a CPU. A worker is a process of about 170 MB, and mostly waits for models."""
ENDING = 10.0
"""Seconds in which cases that are interrupted may record how far they came."""
JOINS = 3
"""How often a connection to a cluster is tried."""
REACHED = 10.0
"""Seconds within which a cluster has to take a connection."""
_OBJECTS = 80 * 2**20
"""Bytes of shared memory of a Ray that we start: results are small."""
_FOLDERS = "mulligan-ray-"
"""How the folders of Rays that we start are called; the number of the process follows."""
_OF_A_MACHINE = ("MULLIGAN_HOME", "MULLIGAN_TRUST_HOME", "MULLIGAN_MODELS", "MULLIGAN_DATA", "MULLIGAN_STORE")
_SECRET = ("TOKEN", "PASSWORD")


@asynccontextmanager
async def on_ray(on: str, opener: Opener, cases: Cases) -> AsyncGenerator[Workers]:
    """The workers of Ray at this place, which is left, and stopped if we started it, in the end.

    Args:
        on: `ray`, `ray:ADDRESS` or `ray://HOST:PORT`: see `run_benchmark`.
        opener: what opens the run here.
        cases: those of the run.

    Raises:
        InvalidInput: the place, the store or a role cannot be used there.
        ClusterError: Ray could not be started, or reached.
    """
    address, job = _address(on), Job(_store_of(opener), "", opener.config, os.getcwd())
    require("Work on Ray needs its package", "ray", "ray")
    ray: Any = import_module("ray")
    async with _connected(ray, address):
        place = _place_of(ray, on, cases)
        if place.elsewhere and parse_address(job.store)[0] == "sqlite":
            raise InvalidInput(
                f"{on} includes other machines ({', '.join(place.elsewhere)}), which cannot reach the store "
                f"{job.store}. Name one in PostgreSQL in MULLIGAN_STORE. See: mulligan docs stores"
            )
        job = replace(job, variables=variables_for(os.environ, elsewhere=bool(place.elsewhere)))
        (opener.hooks.notice or log.info)(place.summary(cases.plan.choice.parallel))
        workers = _RayWorkers(ray, place, job, cases)
        try:
            yield workers
        finally:
            await workers.close()


def variables_for(environment: Mapping[str, str], *, elsewhere: bool) -> dict[str, str]:
    """The variables that workers get: settings of Mulligan, without secrets and, for other machines, without paths.

    Keys of providers are not among them: a worker finds them in the environment in which its machine's Ray was started.
    """
    left = _OF_A_MACHINE if elsewhere else ("MULLIGAN_STORE",)
    return {
        name: value
        for name, value in environment.items()
        if name.startswith("MULLIGAN_") and name not in left and not name.endswith(_SECRET)
    }


@dataclass(frozen=True)
class _Place:
    """A cluster, as far as it matters for handing out.

    Attributes:
        cpus: of all machines, or of the one that cases have to stay on.
        machines: the names of all.
        elsewhere: the names of those that are not this one.
        node: the id of the machine that cases have to stay on. None: any.
    """

    on: str
    cpus: float
    machines: tuple[str, ...]
    elsewhere: tuple[str, ...]
    node: str | None

    def share(self, parallel: int) -> float:
        """The part of a CPU that a case takes, so that as many run at once as the user wants, as far as they can."""
        return 1.0 if parallel <= self.cpus else max(int(10_000 * self.cpus / parallel) / 10_000, 1 / SHARES)

    def summary(self, parallel: int) -> str:
        """One sentence that says where the cases run."""
        at_once = min(parallel, int(self.cpus / self.share(parallel) + 1e-6))
        where = "this machine" if not self.elsewhere else f"{len(self.machines)} machines"
        less = f" (not {parallel}: {SHARES} share a CPU at most)" if at_once < parallel else ""
        stays = f" They work in folders of {socket.gethostname()}, and stay there." if self.node is not None else ""
        return f"On {self.on}: {where}, {self.cpus:g} CPUs, {at_once} cases at once{less}.{stays}"


class _RayWorkers:
    """The workers of a cluster, each a process that Ray starts, and starts again."""

    def __init__(self, ray: Any, place: _Place, job: Job, cases: Cases) -> None:
        self._ray, self._place, self._job, self._cases = ray, place, job, cases
        self._flying: set[Any] = set()
        self._task = ray.remote(work_on)
        self._options = {"num_cpus": place.share(cases.plan.choice.parallel), "max_retries": CRASHES}
        if place.node is not None:
            self._options["scheduling_strategy"] = on_node(place.node)

    async def work_on(self, run: BenchRun, position: int) -> CaseResult:
        """See `Workers`. A worker that dies is replaced, and the case resumes; what it has paid for is in the store."""
        errors = self._ray.exceptions
        died = (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError)
        called = self._task.options(name=f"mulligan {run.id}.{position}", **self._options)
        try:
            flying = called.remote(replace(self._job, run=run.id), position)
            self._flying.add(flying)
            reply: Reply = await flying
        except died as error:
            why = f"each of {CRASHES + 1} workers died with it; the last: {_in_short(error)}"
            return self._broken(position, why)
        except (errors.RayError, ConnectionError) as error:
            self._flying.clear()  # there may be nobody left to interrupt
            raise ClusterError(
                f"Ray at {self._place.on} failed: {_in_short(error)}. Finished cases are kept: resume run {run.id}."
            ) from error
        self._flying.discard(flying)
        for notice in reply.notices:
            (self._cases.hooks.notice or log.info)(notice)
        if reply.result is None:
            raise (StoreError if reply.lost else InvalidInput)(reply.failed)
        return reply.result

    def _broken(self, position: int, why: str) -> CaseResult:
        case = self._cases.plan.cases[position - 1]
        return CaseResult(position, case.id, "error", text=why, family=family_of(case), phase=case.phase)

    async def close(self) -> None:
        """Interrupt the cases that are not over, and give them a moment to record it."""
        if self._flying and self._ray.is_initialized():  # Ray would start anew for the question
            await asyncio.to_thread(self._interrupt)

    def _interrupt(self) -> None:
        flying = list(self._flying)
        try:
            for ref in flying:
                self._ray.cancel(ref)
            self._ray.wait(flying, num_returns=len(flying), timeout=ENDING, fetch_local=False)
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            log.debug("cases could not be interrupted: %s", error)


def _address(on: str) -> str:
    """What `ray.init` takes for this place. Raises `InvalidInput`."""
    if on == HERE:
        return "local"
    kind, _, rest = on.partition(":")
    if kind != HERE or not rest.strip("/"):
        raise InvalidInput(
            f"{on!r} is not a place to run cases. Write ray (starts Ray on this machine for the run), "
            "ray://HOST:10001 (a cluster, through Ray's client), or ray:HOST:6379 on a machine of the cluster."
        )
    return on if rest.startswith("//") else rest


def _store_of(opener: Opener) -> str:
    """The address of the store, for other processes. Raises `InvalidInput` for what they cannot reach."""
    given = [
        *(["the store"] if opener.store is not None else []),
        *(["the bank"] if opener.bank is not None else []),
        *(f"the {kind}" for kind in opener.objects),
        *(f"the model {name}" for name in opener.models.given),
    ]
    if given:
        raise InvalidInput(
            f"{', '.join(given)} cannot be an object, because objects stay in this process. Ray workers need a name or "
            "an address: model='PROVIDER:NAME', a strategy in a file, MULLIGAN_STORE."
        )
    address = opener.config.store
    kind, _ = parse_address(address)
    if kind == "memory":
        raise InvalidInput(
            f"The store {address} is in the memory of this process, which Ray workers cannot reach: name a file or a "
            "database in MULLIGAN_STORE."
        )
    file = file_of(address)
    return str(address) if file is None else f"sqlite:///{file.expanduser().resolve()}"


def _place_of(ray: Any, on: str, cases: Cases) -> _Place:
    """Raises `InvalidInput` where cases have to stay on this machine, and it is none of the cluster."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    machines = tuple(str(node["NodeManagerHostname"]) for node in nodes)
    elsewhere = tuple(sorted({name for name in machines if name != socket.gethostname()}))
    stay = None
    if _stays(cases):
        here = [node for node in nodes if node["NodeManagerHostname"] == socket.gethostname()]
        if not here:
            raise InvalidInput(
                f"These cases work in folders of this machine, which is not part of {on}. Run the command on a "
                f"machine of "
                "the cluster that has the folders, or leave --on out."
            )
        nodes, stay = here[:1], str(here[0]["NodeID"])
    cpus = sum(float(node["Resources"].get("CPU", 0)) for node in nodes)
    if not cpus:
        raise ClusterError(f"{on} has no CPU for a case.")
    return _Place(on, cpus, machines, elsewhere, stay)


def _stays(cases: Cases) -> bool:
    """Whether a case works in folders of this machine: a coding agent does."""
    recipes = [cases.plan.recipe(case, "") for case in cases.plan.cases]
    actors = {recipe.actor.name for recipe in recipes}
    makes = [getattr(find("actors", name), "makes", "") for name in actors]
    return "workspace" in makes or any(recipe.workspace is not None for recipe in recipes)


@asynccontextmanager
async def _connected(ray: Any, address: str) -> AsyncGenerator[None]:
    """Connected to the cluster, or to one that is started here; one that this process was connected to stays.

    Raises `InvalidInput` for another cluster than that, `ClusterError` for one that cannot be started or reached.
    """
    if ray.is_initialized():
        if address != "local":
            raise InvalidInput(
                f"This process is already connected to another Ray, not to {address}: name that Ray by "
                f"on='ray', or call "
                "ray.shutdown() first."
            )
        yield
        return
    options: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": logging.ERROR}
    with ExitStack() as stack:
        more = stack.enter_context(_room()) if address == "local" else dict[str, Any]()
        try:
            await asyncio.to_thread(_reach, address)
            with _own_signals():
                await asyncio.to_thread(_join, ray, address, {**options, **more})
            stack.enter_context(_own_stdout())
        except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, OSError) as error:
            await asyncio.to_thread(ray.shutdown)
            what = "could not be started here" if more else f"could not be reached at {address}"
            raise ClusterError(f"Ray {what}: {_in_short(error)}") from error
        try:
            yield
        finally:
            await asyncio.to_thread(ray.shutdown)


def _reach(address: str) -> None:
    """Raises `OSError` where nobody listens at the address; Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdigit():
        socket.create_connection((host, int(port)), timeout=REACHED).close()


def _join(ray: Any, address: str, options: dict[str, Any]) -> None:
    """`ray.init`, again where the client's server on the other side did not start: it does not always, within 30 s."""
    for left in reversed(range(JOINS)):
        try:
            ray.init(address, **options)
            return
        except ConnectionAbortedError:
            ray.shutdown()
            if not left:
                raise


@contextmanager
def _room() -> Generator[dict[str, Any]]:
    """For a Ray that is started here: a folder for its logs and sockets, no reports to its makers, a token of its own
    instead of one in the user's home, and workers as urgent as this process. Gives the options for starting it.
    """
    own = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": _token(), "RAY_worker_niceness": "0"}
    own = {name: value for name, value in own.items() if name not in os.environ}
    os.environ.update(own)
    top = "/tmp" if os.name == "posix" else tempfile.gettempdir()  # the path of a socket must be short
    for left in Path(top).glob(f"{_FOLDERS}[0-9]*-*"):  # by a process that was killed
        if not birth(int(left.name.split("-")[2])):
            shutil.rmtree(left, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=f"{_FOLDERS}{os.getpid()}-", dir=top)
    try:
        yield {"include_dashboard": False, "object_store_memory": _OBJECTS, "_temp_dir": folder}
    finally:
        for name in own:
            del os.environ[name]
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _token() -> str:
    """What processes of a Ray that we start show each other. Ray remembers the first one of a process."""
    return secrets.token_hex(32)


@contextmanager
def _own_signals() -> Generator[None]:
    """Ray takes SIGTERM for itself as it starts; what happens at a signal stays what it was."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is not before:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _own_stdout() -> Generator[None]:
    """Ray prints on standard output when a worker dies, in the middle of our results. It is logged here."""
    worker: Any = import_module("ray._private.worker")
    before = worker.print_to_stdstream

    def logged(data: Mapping[str, Any], ignore_prefix: bool) -> None:
        log.debug("Ray: %s", "\n".join(data["lines"]))

    worker.print_to_stdstream = logged
    try:
        yield
    finally:
        worker.print_to_stdstream = before


def _in_short(error: BaseException) -> str:
    """The first line of the message, and the last one where the first only announces it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
