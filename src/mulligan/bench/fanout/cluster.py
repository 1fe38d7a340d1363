"""Distributes the cases of a run to workers of Ray, and collects their results."""

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
from mulligan.text.plain import count

HERE = "ray"
"""The place of a Ray on this machine, started for the run."""
MAX_CRASHES = 16
"""If more workers than this die with a case, it counts as an error."""
CASES_PER_CPU = 8
"""At most this many cases share a CPU. A worker is a process of about 170 MB, and mostly waits for models."""
INTERRUPT_SECONDS = 10.0
"""How long interrupted cases may take to record their state."""
CONNECTION_TRIES = 3
CONNECTION_SECONDS = 10.0
_OBJECT_STORE_BYTES = 80 * 2**20
"""Shared memory of a Ray that we start. Results are small."""
_FOLDER_PREFIX = "mulligan-ray-"
"""The prefix of the folders of Rays that we start, before the process id."""
_PER_MACHINE = ("MULLIGAN_HOME", "MULLIGAN_TRUST_HOME", "MULLIGAN_MODELS", "MULLIGAN_DATA", "MULLIGAN_STORE")
_SECRET_ENDINGS = ("TOKEN", "PASSWORD")


@asynccontextmanager
async def on_ray(on: str, opener: Opener, cases: Cases) -> AsyncGenerator[Workers]:
    """The workers of a Ray. At the end it is disconnected, and stopped if we started it.

    Args:
        on: `ray`, `ray:ADDRESS` or `ray://HOST:PORT`: see `run_benchmark`.
        opener: what opens the run in this process.
        cases: the cases of the run.

    Raises:
        InvalidInput: the place is not valid, or the store or a role cannot be used there.
        ClusterError: Ray could not be started or reached.
    """
    address, job = _address(on), Job(_store_of(opener), "", opener.config, os.getcwd())
    require("Work on Ray needs its package", "ray", "ray")
    ray: Any = import_module("ray")
    async with _connected(ray, address):
        place = _place_of(ray, on, cases)
        if place.elsewhere and parse_address(job.store)[0] == "sqlite":
            raise InvalidInput(
                f"{on} includes other machines ({', '.join(place.elsewhere)}), which cannot reach the store "
                f"{job.store}. Set MULLIGAN_STORE to a PostgreSQL store. See: mulligan docs stores"
            )
        job = replace(job, variables=variables_for(os.environ, elsewhere=bool(place.elsewhere)))
        (opener.hooks.notice or log.info)(place.summary(cases.plan.choice.parallel))
        workers = _RayWorkers(ray, place, job, cases)
        try:
            yield workers
        finally:
            await workers.close()


def variables_for(environment: Mapping[str, str], *, elsewhere: bool) -> dict[str, str]:
    """The environment variables for workers: settings of Mulligan without secrets, and without paths if other machines
    take part.

    A worker finds the keys of providers in the environment of its machine's Ray.
    """
    excluded = _PER_MACHINE if elsewhere else ("MULLIGAN_STORE",)
    return {
        name: value
        for name, value in environment.items()
        if name.startswith("MULLIGAN_") and name not in excluded and not name.endswith(_SECRET_ENDINGS)
    }


@dataclass(frozen=True)
class _Place:
    """A cluster.

    Attributes:
        cpus: the CPUs that cases can use.
        machines: the names of all machines.
        elsewhere: the names of the other machines.
        node: the id of the machine that cases have to stay on. None: any.
    """

    on: str
    cpus: float
    machines: tuple[str, ...]
    elsewhere: tuple[str, ...]
    node: str | None

    def share(self, parallel: int) -> float:
        """The share of a CPU that each case reserves, so that `parallel` cases can run at once if possible."""
        return 1.0 if parallel <= self.cpus else max(int(10_000 * self.cpus / parallel) / 10_000, 1 / CASES_PER_CPU)

    def summary(self, parallel: int) -> str:
        """A sentence that says where the cases run."""
        at_once = min(parallel, int(self.cpus / self.share(parallel) + 1e-6))
        where = "this machine" if not self.elsewhere else count(len(self.machines), "machine")
        less = f" (not {parallel}: {CASES_PER_CPU} share a CPU at most)" if at_once < parallel else ""
        stays = f" They work in folders of {socket.gethostname()}, and stay there." if self.node is not None else ""
        return f"On {self.on}: {where}, {count(self.cpus, 'CPU')}, {count(at_once, 'case')} at once{less}.{stays}"


class _RayWorkers:
    """The workers of a cluster: processes that Ray starts, and restarts if they die."""

    def __init__(self, ray: Any, place: _Place, job: Job, cases: Cases) -> None:
        self._ray, self._place, self._job, self._cases = ray, place, job, cases
        self._flying: set[Any] = set()
        self._task = ray.remote(work_on)
        self._options = {"num_cpus": place.share(cases.plan.choice.parallel), "max_retries": MAX_CRASHES}
        if place.node is not None:
            self._options["scheduling_strategy"] = on_node(place.node)

    async def work_on(self, run: BenchRun, position: int) -> CaseResult:
        """See `Workers`. If a worker dies, another one resumes the case; paid answers are kept."""
        errors = self._ray.exceptions
        died = (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError)
        called = self._task.options(name=f"mulligan {run.id}.{position}", **self._options)
        try:
            flying = called.remote(replace(self._job, run=run.id), position)
            self._flying.add(flying)
            reply: Reply = await flying
        except died as error:
            case = self._cases.plan.cases[position - 1]
            why = f"each of {MAX_CRASHES + 1} workers died with it; the last: {_brief(error)}"
            return CaseResult(position, case.id, "error", text=why, family=family_of(case), phase=case.phase)
        except (errors.RayError, ConnectionError) as error:
            self._flying.clear()  # they can no longer be interrupted
            raise ClusterError(
                f"Ray at {self._place.on} failed: {_brief(error)}. Finished cases are kept: resume run {run.id}."
            ) from error
        self._flying.discard(flying)
        for notice in reply.notices:
            (self._cases.hooks.notice or log.info)(notice)
        if reply.result is None:
            raise (StoreError if reply.lost else InvalidInput)(reply.failed)
        return reply.result

    async def close(self) -> None:
        """Interrupt the running cases, and give them time to record their state."""
        if self._flying and self._ray.is_initialized():  # if it has stopped, a call would start a new Ray
            await asyncio.to_thread(self._interrupt)

    def _interrupt(self) -> None:
        flying = list(self._flying)
        try:
            for ref in flying:
                self._ray.cancel(ref)
            self._ray.wait(flying, num_returns=len(flying), timeout=INTERRUPT_SECONDS, fetch_local=False)
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            log.debug("cases could not be interrupted: %s", error)


def _address(on: str) -> str:
    """The address for `ray.init`. Raises `InvalidInput` if `on` is not a place."""
    if on == HERE:
        return "local"
    kind, _, rest = on.partition(":")
    if kind != HERE or not rest.strip("/"):
        raise InvalidInput(
            f"{on!r} is not a place to run cases. Use ray (starts Ray on this machine for the run), "
            "ray://HOST:10001 (a cluster, through Ray's client), or ray:HOST:6379 on a cluster machine."
        )
    return on if rest.startswith("//") else rest


def _store_of(opener: Opener) -> str:
    """The address of the store for other processes. Raises `InvalidInput` for what they cannot reach."""
    local = [
        *(["the store"] if opener.store is not None else []),
        *(["the bank"] if opener.bank is not None else []),
        *(f"the {kind}" for kind in opener.objects),
        *(f"the model {name}" for name in opener.models.given),
    ]
    if local:
        raise InvalidInput(
            f"{', '.join(local)} cannot be an object, because objects stay in this process. Ray workers need a name or "
            "an address: model='PROVIDER:NAME', a strategy in a file, MULLIGAN_STORE."
        )
    address = opener.config.store
    kind, _ = parse_address(address)
    if kind == "memory":
        raise InvalidInput(
            f"The store {address} is in this process's memory, which Ray workers cannot reach: set MULLIGAN_STORE "
            "to a file or a database."
        )
    file = file_of(address)
    return str(address) if file is None else f"sqlite:///{file.expanduser().resolve()}"


def _place_of(ray: Any, on: str, cases: Cases) -> _Place:
    """The cluster. Raises `InvalidInput` if cases have to stay on this machine, and it is not part of the cluster."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    machines = tuple(str(node["NodeManagerHostname"]) for node in nodes)
    elsewhere = tuple(sorted({name for name in machines if name != socket.gethostname()}))
    node_id = None
    if _use_local_folders(cases):
        here = [node for node in nodes if node["NodeManagerHostname"] == socket.gethostname()]
        if not here:
            raise InvalidInput(
                f"These cases work in folders on this machine, which is not part of {on}. Run the command on a "
                "cluster machine that has the folders, or omit --on."
            )
        nodes, node_id = here[:1], str(here[0]["NodeID"])
    cpus = sum(float(node["Resources"].get("CPU", 0)) for node in nodes)
    if not cpus:
        raise ClusterError(f"{on} has no CPU for a case.")
    return _Place(on, cpus, machines, elsewhere, node_id)


def _use_local_folders(cases: Cases) -> bool:
    """Whether a case works in folders of this machine, as a coding agent does."""
    recipes = [cases.plan.recipe(case, "") for case in cases.plan.cases]
    actors = {recipe.actor.name for recipe in recipes}
    makes = [getattr(find("actors", name), "makes", "") for name in actors]
    return "workspace" in makes or any(recipe.workspace is not None for recipe in recipes)


@asynccontextmanager
async def _connected(ray: Any, address: str) -> AsyncGenerator[None]:
    """Connects to the cluster, or starts one here. A Ray that this process is already connected to is used and kept.

    Raises `InvalidInput` if that is another cluster, `ClusterError` if the cluster cannot be started or reached.
    """
    if ray.is_initialized():
        if address != "local":
            raise InvalidInput(
                f"This process is already connected to another Ray cluster, not to {address}: use that cluster with "
                "on='ray', or call ray.shutdown() first."
            )
        yield
        return
    options: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": logging.ERROR}
    with ExitStack() as stack:
        more = stack.enter_context(_local_ray()) if address == "local" else dict[str, Any]()
        try:
            await asyncio.to_thread(_reach, address)
            with _keep_signals():
                await asyncio.to_thread(_join, ray, address, {**options, **more})
            stack.enter_context(_keep_stdout())
        except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, OSError) as error:
            await asyncio.to_thread(ray.shutdown)
            what = "could not be started here" if more else f"could not be reached at {address}"
            raise ClusterError(f"Ray {what}: {_brief(error)}") from error
        try:
            yield
        finally:
            await asyncio.to_thread(ray.shutdown)


def _reach(address: str) -> None:
    """Raises `OSError` if nothing listens at the address. Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdigit():
        socket.create_connection((host, int(port)), timeout=CONNECTION_SECONDS).close()


def _join(ray: Any, address: str, options: dict[str, Any]) -> None:
    """Calls `ray.init`. Tries again if the server for clients did not start within 30 s, as sometimes happens."""
    for left in reversed(range(CONNECTION_TRIES)):
        try:
            ray.init(address, **options)
            return
        except ConnectionAbortedError:
            ray.shutdown()
            if not left:
                raise


@contextmanager
def _local_ray() -> Generator[dict[str, Any]]:
    """Prepares a Ray on this machine, and yields the options to start it.

    It gets a folder for its logs and sockets, no usage statistics, a token that is not in the user's home, and workers
    with the priority of this process.
    """
    variables = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": _token(), "RAY_worker_niceness": "0"}
    variables = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(variables)
    top = "/tmp" if os.name == "posix" else tempfile.gettempdir()  # the path of a socket must be short
    for left in Path(top).glob(f"{_FOLDER_PREFIX}[0-9]*-*"):  # a killed process may have left it
        if not birth(int(left.name.split("-")[2])):
            shutil.rmtree(left, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-", dir=top)
    try:
        yield {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES, "_temp_dir": folder}
    finally:
        for name in variables:
            del os.environ[name]
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _token() -> str:
    """The token of Rays that we start. Ray remembers the first token of a process."""
    return secrets.token_hex(32)


@contextmanager
def _keep_signals() -> Generator[None]:
    """Restores the handler of SIGTERM, which Ray replaces when it starts."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is not before:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _keep_stdout() -> Generator[None]:
    """Logs what Ray would print to stdout, among our results, when a worker dies."""
    worker: Any = import_module("ray._private.worker")
    before = worker.print_to_stdstream

    def log_lines(data: Mapping[str, Any], ignore_prefix: bool) -> None:
        log.debug("Ray: %s", "\n".join(data["lines"]))

    worker.print_to_stdstream = log_lines
    try:
        yield
    finally:
        worker.print_to_stdstream = before


def _brief(error: BaseException) -> str:
    """The first line of the message, and the last one if the first ends with a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
