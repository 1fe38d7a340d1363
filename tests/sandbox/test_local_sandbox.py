"""What running, talking, limiting and cleaning up look like from outside."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mulligan.core.errors import InvalidInput, SandboxError, UnknownName
from mulligan.core.protocols import Channel, Job, Ran, Sandbox
from mulligan.sandbox import kernel, policy
from mulligan.sandbox.local import LocalSandbox

ECHO = "import sys\nfor line in sys.stdin: print(line.strip() * 2, flush=True)"
HOW: list[dict[str, Any]] = [{}, {"confined": False}, {"confined": False, "writable": ("/var/tmp",)}]


def python(code: str, *args: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code, *args)


@pytest.fixture
def scratches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where scratch folders are made during a test."""
    tmp_path.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def children() -> set[int]:
    """Processes whose parent is this one, zombies included."""
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(") ")[2].split()[1]) == os.getpid():
                found.add(int(path.parent.name))
    return found


def alive(marker: str) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if marker.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
    return found


async def until_gone(marker: str, folder: Path) -> None:
    async with asyncio.timeout(10):
        while alive(marker) or os.listdir(folder):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("confined", [True, False])
async def test_output_exit_code_and_files(confined: bool, scratches: Path) -> None:
    box = LocalSandbox()
    code = "import sys; print(open('a/b.txt').read(), sys.stdin.read()); print('e', file=sys.stderr); sys.exit(7)"
    ran = await box.run(Job(python(code), files={"a/b.txt": "naïve"}, stdin="in", confined=confined))
    assert ran == Ran(7, "naïve in\n", "e\n", seconds=ran.seconds, level=box.level if confined else "none")
    assert os.listdir(scratches) == []
    assert isinstance(box, Sandbox)


async def test_a_conversation_line_by_line() -> None:
    async with LocalSandbox().open(Job(python(ECHO))) as channel:
        assert isinstance(channel, Channel)
        for word in ("ab", "ü", ""):
            await channel.send(word)
            assert await channel.receive() == word * 2


async def test_a_conversation_ends_with_the_job() -> None:
    async with LocalSandbox().open(Job(python("print('x', end='')"))) as channel:
        assert await channel.receive() == "x"
        assert await channel.receive() is None
        await channel.send("too late")
        assert await channel.receive() is None


async def test_a_conversation_ends_in_time() -> None:
    async with LocalSandbox().open(Job(python("import time; time.sleep(60)"), seconds=0.3)) as channel:
        await channel.send("x" * 1_000_000)
        assert await channel.receive() is None


async def test_long_lines_are_cut_and_many_lines_wait() -> None:
    code = "print('x' * 5_000_000)\nfor n in range(100_000): print(n)"
    async with LocalSandbox().open(Job(python(code), output=1000)) as channel:
        assert await channel.receive() == "x" * 1000
        for number in range(100_000):
            assert await channel.receive() == str(number)
        assert await channel.receive() is None


@pytest.mark.parametrize("turns", range(4))
async def test_a_job_that_dies_while_the_block_ends(turns: int, scratches: Path) -> None:
    """After so many turns of the loop asyncio has seen, or not yet seen, or only half dealt with the closed pipe."""
    said: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    code = "import os\nprint('up', flush=True)\nos.kill(os.getpid(), int(input()))"
    async with LocalSandbox().open(Job(python(code))) as channel:
        assert await channel.receive() == "up"
        await channel.send("9")
        until = time.monotonic() + 10
        while os.listdir(scratches) and time.monotonic() < until:
            time.sleep(0.01)  # noqa: ASYNC251  the loop is not to see it yet
        for _ in range(turns):
            await asyncio.sleep(0)
    for _ in range(3):
        await asyncio.sleep(0)
    assert said == []


@pytest.mark.parametrize("how", HOW)
async def test_time_ends_the_whole_family(how: dict[str, Any], scratches: Path) -> None:
    code = "import os, time\nif os.fork() == 0: os.setsid()\nprint('here', flush=True); time.sleep(60)"
    ran = await LocalSandbox().run(Job(python(code, "marker-of-time"), seconds=0.5, **how))
    assert (ran.exit_code, ran.timed_out) == (None, True)
    assert "killed after 0.5 seconds" in ran.stderr
    assert alive("marker-of-time") == []
    assert os.listdir(scratches) == []


@pytest.mark.parametrize("how", HOW)
async def test_stragglers_end_with_the_job(how: dict[str, Any]) -> None:
    code = "import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(60)"
    ran = await LocalSandbox().run(Job(python(code, "marker-of-stragglers"), **how))
    assert ran.exit_code == 0
    assert alive("marker-of-stragglers") == []


@pytest.mark.parametrize("how", HOW[::2])
async def test_cancelling_leaves_nothing(how: dict[str, Any], scratches: Path) -> None:
    box = LocalSandbox(parallel=4)
    await box.run(Job(python("")))
    before = children()
    job = Job(python("import time; time.sleep(60)", "marker-of-cancel"), stdin="x" * 1_000_000, seconds=60, **how)
    tasks = [asyncio.create_task(box.run(job)) for _ in range(8)]
    async with asyncio.timeout(20):
        while len(alive("marker-of-cancel")) < 4:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    assert all(isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*tasks, return_exceptions=True))
    await until_gone("marker-of-cancel", scratches)
    assert children() == before


@pytest.mark.slow
async def test_a_killed_mulligan_leaves_nothing(scratches: Path) -> None:
    code = f"""
import asyncio, os, sys, tempfile
from mulligan.core.protocols import Job
from mulligan.sandbox import kernel, policy
from mulligan.sandbox.local import LocalSandbox
tempfile.tempdir = {str(scratches)!r}
argv = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)", os.environ["MARKER"])
asyncio.run(LocalSandbox().run(Job(argv, seconds=60)))
"""
    mulligan = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", code], env={**os.environ, "MARKER": "marker-of-kill"}
    )
    async with asyncio.timeout(20):
        while not alive("marker-of-kill"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    mulligan.send_signal(signal.SIGKILL)
    mulligan.wait()
    await until_gone("marker-of-kill", scratches)


@pytest.mark.parametrize("jobs", [20, pytest.param(200, marks=pytest.mark.slow)])
async def test_many_jobs_at_once(scratches: Path, jobs: int) -> None:
    box = LocalSandbox(parallel=8)
    before = len(os.listdir("/proc/self/fd"))
    ran = await asyncio.gather(*(box.run(Job(python(f"print({n})"), seconds=60)) for n in range(jobs)))
    assert [one.stdout for one in ran] == [f"{n}\n" for n in range(jobs)]
    assert os.listdir(scratches) == []
    assert len(os.listdir("/proc/self/fd")) < before + 20


async def test_a_job_inside_an_open_one_needs_no_place() -> None:
    box = LocalSandbox(parallel=1)
    async with asyncio.timeout(10), box.open(Job(python(ECHO))) as outer, box.open(Job(python(ECHO))) as inner:
        await outer.send("a")
        await inner.send("b")
        assert (await outer.receive(), await inner.receive()) == ("aa", "bb")
        assert (await box.run(Job(python("")))).exit_code == 0


async def test_given_folders(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o700)
    for name in ("work", "look"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "old").write_text(name)
    code = """
import os, sys
print(os.getcwd(), open("old").read(), open(sys.argv[1] + "/old").read())
open("new", "w").close()
try: open(sys.argv[1] + "/new", "w")
except OSError: print("refused")
"""
    work, look = str(tmp_path / "work"), str(tmp_path / "look")
    ran = await LocalSandbox().run(Job(python(code, look), cwd=work, writable=(work,), readable=(look,)))
    assert ran.stdout == f"{work} work look\nrefused\n", ran.stderr
    assert (tmp_path / "work" / "new").stat().st_uid == os.geteuid()
    assert not (tmp_path / "look" / "new").exists()


async def test_network_only_where_asked_for() -> None:
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5); print('there')"
    box = LocalSandbox()
    async with server:
        assert (await box.run(Job(python(code)))).exit_code == 1
        assert (await box.run(Job(python(code), network=True))).stdout == "there\n"


async def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "s")
    box = LocalSandbox()
    code = "import os; print(os.environ.get('MY_SECRET'), os.environ['MINE'], os.environ['HOME'] == os.getcwd())"
    ran = await box.run(Job(python(code), env={"MINE": "{scratch}"}))
    assert ran.stdout.startswith("None /")
    assert ran.stdout.endswith("True\n")
    assert (await box.run(Job(python(code), env={"MINE": "1"}, confined=False))).stdout == "s 1 False\n"


async def test_the_level_says_whether_an_unconfined_job_is_held(tmp_path: Path) -> None:
    box = LocalSandbox()
    ran = await box.run(Job(python("print(open('/etc/passwd').readable())"), confined=False, writable=(str(tmp_path),)))
    assert (ran.stdout, ran.level) == ("True\n", "unconfined+landlock-writes" if kernel.landlock_abi() > 1 else "none")
    job = Job(python(""), confined=False, writable=(str(tmp_path), "/"))
    assert (await box.run(job)).level == "none"
    assert (await LocalSandbox(level="none").run(replace(job, writable=(str(tmp_path),)))).level == "none"
    assert [policy.unconfined(replace(job, writable=("/usr",)), abi).name for abi in (0, 1, 2)] == [
        *("none", "none"),
        "unconfined+landlock-writes",
    ]


async def test_what_cannot_run_is_reported() -> None:
    box = LocalSandbox()
    with pytest.raises(SandboxError, match="no-such-program"):
        await box.run(Job(("no-such-program",), confined=False))
    with pytest.raises(InvalidInput, match="is outside it"):
        await box.run(Job(python(""), files={"../x": ""}))
    with pytest.raises(InvalidInput, match="does not exist"):
        await box.run(Job(python(""), readable=("/no/such/folder",)))
    with pytest.raises(UnknownName, match="landlock"):
        LocalSandbox(level="landlok")


async def test_a_crash_is_distinguished_from_an_exit() -> None:
    ran = await LocalSandbox().run(Job(python("import os; os.abort()")))
    assert ran.exit_code is None
    assert not ran.timed_out
    assert "SIGABRT" in ran.stderr


@pytest.mark.slow
async def test_reading_a_gigabyte_takes_little_memory() -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    ran = await LocalSandbox().run(
        Job(python("import os\nfor _ in range(1000): os.write(1, bytes(1 << 20))"), seconds=30)
    )
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert ran.truncated
    assert len(ran.stdout) < 64_100
    assert grown < 20_000, f"{grown} kB in {time.monotonic() - started:.1f} s"


async def test_output_keeps_its_head_and_its_tail() -> None:
    code = """
import os, sys
print("first"); print("\u00e4" * int(sys.argv[1])); print("last", flush=True)
for n in range(100): os.write(2, b"%02d\\n" % n)
"""
    box = LocalSandbox()
    for size, cut in ((3992, 0), (3993, 1), (3994, 3), (1_000_000, 1_992_015)):
        ran = await box.run(Job(python(code, str(size)), output=7997))
        assert ran.truncated == bool(cut)
        assert (f"[sandbox] {cut} bytes left out" in ran.stdout) == bool(cut), ran.stdout[3900:4100]
        assert ran.stdout.startswith("first\nää")
        assert ran.stdout.endswith("ää\nlast\n")
        assert "\ufffd" not in ran.stdout
        assert ran.stderr == "".join(f"{n:02}\n" for n in range(100))
    ran = await box.run(Job(python(code, "1"), output=20))
    assert ran.stderr == "00\n01\n02\n0\n[sandbox] 280 bytes left out\n\n97\n98\n99\n"


def test_one_sandbox_over_several_event_loops() -> None:
    box = LocalSandbox(parallel=1)

    async def three() -> list[int | None]:
        return [ran.exit_code for ran in await asyncio.gather(*(box.run(Job(python(""))) for _ in range(3)))]

    assert asyncio.run(three()) == asyncio.run(three()) == [0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("confined", [True, False])
def test_the_time_that_jobs_take_counts_as_that_of_children(confined: bool) -> None:
    """As `time` and getrusage show it: that of the job, and of a process that it started and waited for."""
    burn = "import time\nwhile time.process_time() < 0.4: pass"
    code = f"import subprocess, sys; exec({burn!r}); subprocess.run([sys.executable, '-ISc', {burn!r}])"
    program = f"""
import asyncio, atexit, resource
atexit.register(lambda: print(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])))
from mulligan.core.protocols import Job
from mulligan.sandbox.local import LocalSandbox
ran = asyncio.run(LocalSandbox().run(Job({python(code)!r}, confined={confined})))
assert ran.exit_code == 0, ran
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert float(said.stdout) > 0.7
