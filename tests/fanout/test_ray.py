"""Runs on a real Ray on this machine: the same rows as in process, whatever dies on the way, and nothing paid twice."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import postgres_server
import pytest
import ray_here
from banks import lessons_of
from provider_server import ProviderServer
from toy_bench import HERE, cases

from mulligan.app.trusting import trust
from mulligan.bench.fanout import cluster
from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.running import Finished, resume_benchmark, run_benchmark
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.errors import InvalidInput
from mulligan.models import weights
from mulligan.recording.holders import birth
from mulligan.store import open_store

pytestmark = pytest.mark.slow

LONG = 120.0
"""Seconds that a run may take where many processes start on few cores."""
WISHES = ["easy", "hard", "easy", "hard", "hard", "easy"]
CALLS = ["easy 1", "hard 1", "hard 2"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ray_here.ray()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULLIGAN_STORE", str(tmp_path / "m.db"))
    return tmp_path


async def ran(data: Path, benchmark: str = HERE, **options: Any) -> Finished:
    options.setdefault("method", "paid")
    async with asyncio.timeout(LONG):
        return await run_benchmark(benchmark, data=str(data), **options)


def rows(finished: Finished) -> list[CaseResult]:
    """The results without the id of the run and without times."""
    return [
        replace(
            result,
            seconds=0.0,
            episodes=tuple(replace(one, episode=one.episode.partition(".")[2]) for one in result.episodes),
        )
        for result in finished.results
    ]


def statuses(finished: Finished) -> list[str]:
    return [result.status for result in finished.results]


def paid(folder: Path) -> Counter[str]:
    """How often each call was made: prompt and trial."""
    return Counter((folder / "paid").read_text().splitlines())


async def stuck(fifo: Path) -> int:
    """The process that gets stuck, as soon as there is one. Removes the FIFO: no other process gets stuck after it."""
    end, ready = os.open(fifo, os.O_RDWR | os.O_NONBLOCK), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(end, ready.set)
    try:
        async with asyncio.timeout(LONG):
            await ready.wait()
        await asyncio.to_thread(fifo.unlink)
        return int(os.read(end, 20))
    finally:
        loop.remove_reader(end)
        os.close(end)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_the_rows_are_those_of_a_run_in_process(here: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    if kind == "postgresql":
        monkeypatch.setenv("MULLIGAN_STORE", postgres_server.address(here))
    data, told = cases(here, *WISHES), list[str]()
    home = await ran(data, parallel=2)
    calls = paid(here)
    assert calls.total() == 9
    seen: list[CaseResult | None] = []
    hooks = Hooks(on_case=lambda run, result: seen.append(result), notice=told.append)
    there = await ran(data, parallel=4, on="ray", hooks=hooks)
    assert rows(there) == rows(home)
    assert paid(here) == calls + calls
    assert seen[0] is None
    assert {result.position: result for result in seen[1:] if result} == dict(enumerate(there.results, 1))
    assert "On ray: this machine, 2 CPUs, 4 cases at once." in told
    async with open_store(os.environ["MULLIGAN_STORE"]) as store:
        assert tuple(await store.benches.results(there.run.id)) == tuple(there.results)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_worker_is_killed_and_its_case_goes_on_in_another(
    here: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "postgresql":
        monkeypatch.setenv("MULLIGAN_STORE", postgres_server.address(here))
    os.mkfifo(here / "stuck")
    run = asyncio.create_task(ran(cases(here, "easy", "stuck", "easy", "hard"), parallel=2, on="ray"))
    os.kill(await stuck(here / "stuck"), signal.SIGKILL)
    finished = await run
    assert statuses(finished) == ["solved"] * 4
    assert len(finished.results[1].episodes[0].scores) == 2
    calls = ["c1: easy, 1", "c2: stuck, 1", "c2: stuck, 2", "c2: stuck, 2", "c3: easy, 1", "c4: hard, 1", "c4: hard, 2"]
    assert paid(here) == Counter(calls), "only the call that was cut off is made again"


async def test_a_driver_is_killed_and_the_next_one_resumes(here: Path) -> None:
    """Its Ray, which it started itself, ends with it."""
    os.mkfifo(here / "stuck")
    data = str(cases(here, "easy", "stuck", "easy"))
    command = [sys.executable, "-m", "mulligan", "bench", "run", HERE, "--data", data, "--method", "paid"]
    options = ["--on", "ray", "--parallel", "1", "-q"]
    driver = await asyncio.create_subprocess_exec(*command, *options, env={**os.environ, **ray_here.ENVIRONMENT})
    try:
        worker = await stuck(here / "stuck")
    finally:
        driver.kill()
        await driver.wait()
    async with open_store(os.environ["MULLIGAN_STORE"]) as store:
        (run,) = await store.benches.runs()
        assert [result.case for result in await store.benches.results(run.id)] == ["c1"]
    told: list[str] = []

    def report(run: BenchRun, result: CaseResult | None) -> None:
        told.append(result.case if result else "begins")

    async with asyncio.timeout(LONG):
        finished = await resume_benchmark(run.id, on="ray", hooks=Hooks(on_case=report))
    assert statuses(finished) == ["solved"] * 3
    assert told == ["c1", "begins", "c2", "c3"]
    calls = ["c1: easy, 1", "c2: stuck, 1", "c2: stuck, 2", "c2: stuck, 2", "c3: easy, 1"]
    assert paid(here) == Counter(calls), "only the call that was cut off is made again"
    assert not birth(worker), "the worker outlived its driver"


async def test_an_interrupted_run_is_recorded_as_such_and_resumes(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "INTERRUPT_SECONDS", LONG)
    os.mkfifo(here / "stuck")
    run = asyncio.create_task(ran(cases(here, "easy", "stuck"), on="ray"))
    await stuck(here / "stuck")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    async with open_store(os.environ["MULLIGAN_STORE"]) as store:
        (begun,) = await store.benches.runs()
        left = await store.load(f"{begun.id}.2.1")
        assert left.stop is not None
        assert left.stop.reason == "interrupted"
    async with asyncio.timeout(LONG):
        finished = await resume_benchmark(begun.id, on="ray")
    assert statuses(finished) == ["solved"] * 2


async def test_a_machine_is_lost_and_its_case_goes_on_on_another(here: Path) -> None:
    """Two Rays on this machine; the one with the case that is stuck is killed with all its processes."""
    os.mkfifo(here / "stuck")
    data = str(cases(here, "easy", "stuck", "easy", "hard"))
    command = [sys.executable, "-m", "mulligan", "bench", "run", HERE, "--data", data, "--method", "paid"]
    with ray_here.cluster(here, machines=2) as ray:
        options = ["--on", ray.address, "--parallel", "2", "-q"]
        driver = await asyncio.create_subprocess_exec(*command, *options, env=ray.environment)
        try:
            os.kill(parent_of(await stuck(here / "stuck")), signal.SIGKILL)
            async with asyncio.timeout(LONG):
                assert await driver.wait() == 0
        finally:
            with suppress(ProcessLookupError):
                driver.kill()
            await driver.wait()
    calls = ["c1: easy, 1", "c2: stuck, 1", "c2: stuck, 2", "c2: stuck, 2", "c3: easy, 1", "c4: hard, 1", "c4: hard, 2"]
    assert set(calls) == set(paid(here))
    twice = {call for call, n in paid(here).items() if n > 1}
    assert "c2: stuck, 2" in twice
    assert len(twice) <= 2, "at most the two calls that were in flight are made again"


def test_a_list_of_tasks_through_rays_client(here: Path) -> None:
    """Standard output has the results alone, whatever Ray says."""
    lines = [{"id": str(n), "prompt": f"The capital of Australia? {n}", "contains": "Canberra"} for n in range(6)]
    (here / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (here / "said.json").write_text(json.dumps(["Canberra"] * 6))
    command = [
        sys.executable,
        "-m",
        "mulligan",
        "fan-out",
        "tasks.jsonl",
        "-m",
        "scripted:said.json",
        "--parallel",
        "2",
    ]
    with ray_here.cluster(here) as ray:
        ran = subprocess.run(
            [*command, "--on", ray.client],
            env=ray.environment,
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    results = [json.loads(line) for line in ran.stdout.splitlines()]
    assert sorted(result["id"] for result in results) == [str(n) for n in range(6)]
    assert {(result["status"], result["output"]) for result in results} == {("solved", "Canberra")}
    assert f"On {ray.client}: this machine, 2 CPUs, 2 cases at once." in ran.stderr


async def test_the_limit_of_a_provider_holds_over_all_workers(
    here: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key comes from the environment of Ray, the address of the server from the project."""
    calls = f'[calls]\nbase_url = "http://127.0.0.1:{provider.port}/v1"\nparallel = 2\n'
    (here / "mulligan.toml").write_text(calls)
    trust(here)
    monkeypatch.setenv("OPENAI_API_KEY", "of the process that hands out")
    provider.script.load([{"when": "easy", "answer": "right", "delay": 0.5}])
    options: dict[str, Any] = {"method": "simple", "model": "openai:gpt-test"}
    finished = await ran(cases(here, *["easy"] * 12), parallel=4, on="ray", **options)
    assert statuses(finished) == ["solved"] * 12
    assert provider.script.most == 2
    keys = {request.headers["authorization"] for request in provider.script.received}
    assert keys == {f"Bearer {ray_here.ENVIRONMENT['OPENAI_API_KEY']}"}


async def test_an_online_bank_learns_from_one_case_before_the_next(here: Path, provider: ProviderServer) -> None:
    (here / "mulligan.toml").write_text(f'[calls]\nbase_url = "http://127.0.0.1:{provider.port}/v1"\n')
    trust(here)
    lesson = lessons_of(("How to say it in {case}", "Say the right thing, as {case} taught."))
    learns = {"when": "You read the record of a task", "fill": {"case": r"(c\d): right thing"}, "answer": lesson}
    provider.script.load([learns, {"when": "right thing", "answer": "right"}])
    data, told = cases(here, *["right thing to say"] * 3), list[str]()
    options: dict[str, Any] = {
        "model": "openai:gpt-test",
        "settings": {"memory": {"threshold": 0, "forms": ["lessons"], "learn_share": 1, "reader": ""}},
    }
    finished = await ran(
        data, method="reflexion", on="ray", memory="online", hooks=Hooks(notice=told.append), **options
    )
    assert statuses(finished) == ["solved"] * 3
    async with open_store(os.environ["MULLIGAN_STORE"]) as store:
        episodes = [await store.load(result.episodes[0].episode) for result in finished.results]
    shown = [{lesson.title for lesson in episode.recall.lessons} for episode in episodes if episode.recall]
    assert shown == [set[str](), {"How to say it in c1"}, {"How to say it in c1", "How to say it in c2"}]
    assert sum("1 lesson learned" in line for line in told) == 3, "what workers have to say is shown here"


def loaders() -> list[int]:
    """The processes of our Ray that have llama.cpp in them."""
    found: list[int] = []
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            found += [int(maps.parent.name)] if "xllamacpp" in maps.read_text() and is_ours(maps.parent) else []
    return found


def is_ours(process: Path) -> bool:
    """Whether it was started by this process, or by one that was."""
    parent = parent_of(int(process.name))
    return parent == os.getpid() or (parent > 1 and is_ours(process.parent / str(parent)))


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.skipif(sys.platform != "linux" or not find_spec("xllamacpp"), reason="needs Linux, and the extra local")
async def test_weights_are_loaded_once_for_all_workers(
    here: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = os.environ.get("MULLIGAN_TEST_MODELS") or str(tmp_path_factory.mktemp("models"))
    monkeypatch.setenv("MULLIGAN_MODELS", folder)
    options: dict[str, Any] = {"method": "simple", "model": "local:smollm2-135m"}
    finished = await ran(cases(here, "one word.", "a word.", "few words."), parallel=3, on="ray", **options)
    assert "error" not in statuses(finished)
    assert "smollm2-135m" in weights.installed()
    assert len(loaders()) == 1


async def test_a_process_that_is_connected_goes_to_no_other_cluster(here: Path) -> None:
    with pytest.raises(InvalidInput, match=r"already connected to another Ray cluster, not to 127\.0\.0\.1:1: use"):
        await ran(cases(here, "easy"), on="ray:127.0.0.1:1")


async def test_cases_that_work_in_folders_stay_on_this_machine(here: Path) -> None:
    (here / "waits.py").write_text(
        "from mulligan.core.records import Attempt\n\n"
        "class Agent:\n"
        "    '''Writes into its folder.'''\n\n"
        "    makes = 'workspace'\n\n"
        "    async def act(self, episode, past):\n"
        "        return Attempt('right')\n"
    )
    told: list[str] = []
    finished = await ran(cases(here, "easy"), on="ray", method="waits", hooks=Hooks(notice=told.append))
    assert statuses(finished) == ["solved"]
    assert re.search(r"They work in folders of \S+, and stay there\.", told[-1])


@pytest.fixture
def different(here: Path) -> Path:
    """A benchmark whose cases have other targets in each process."""
    text, found = Path(HERE).read_text(), 'row.get("target", "right")'
    assert found in text
    (here / "mine.py").write_text(text.replace(found, "str(os.getpid())"))
    return here / "mine.py"


async def test_what_is_not_the_same_where_the_workers_are_is_named(here: Path, different: Path) -> None:
    with pytest.raises(InvalidInput, match=r"On \S+, the inputs of run b\w+ differ: the cases\. Each machine"):
        await ran(cases(here, "easy"), str(different), on="ray")
