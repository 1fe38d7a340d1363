"""What `compare.py` measures: each row prints figures, one a line, as `name value`. It uses only what both trees have.

python perf/rows.py [ROW ...]
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

TASK = "Write a function that returns the sum of two numbers. " * 60
CODE = "def add(a, b):\n    return a - b\n" * 10
ERROR = "Traceback (most recent call last):\n  File \"/a/b.py\", line 3\nModuleNotFoundError: No module named 'yaml'"
CALL = {"tool_name": "Bash", "tool_input": {"command": "python app.py"}}
EVENTS: dict[str, dict[str, Any]] = {
    "failure": {"hook_event_name": "PostToolUseFailure", **CALL, "error": ERROR},
    "stop": {"hook_event_name": "Stop"},
}


def show(name: str, values: Sequence[float]) -> None:
    print(name.replace(" ", "_"), f"{statistics.median(values):.4f}")


def in_turn(work: Callable[[int], object], times: int, rounds: int = 7) -> list[float]:
    """CPU milliseconds of one call in each round, after one call that is not counted."""
    work(-1)
    spent: list[float] = []
    for turn in range(rounds):
        before = time.process_time()
        for number in range(times):
            work(turn * times + number)
        spent.append((time.process_time() - before) / times * 1000)
    return spent


def of_process(command: Sequence[str], feed: str = "", **env: str) -> float:
    """CPU milliseconds of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=feed, text=True, stdout=subprocess.DEVNULL, env={**os.environ, **env}, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def used(process: int) -> float:
    """CPU milliseconds of a process that lives."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1000


def start(home: str) -> None:
    """The import and the help."""
    commands = {"import": ["-c", "import mulligan"], "help": ["-m", "mulligan", "--help"]}
    for name, words in commands.items():
        show(name, [of_process([sys.executable, *words]) for _ in range(5)])


def first_request(home: str) -> None:
    """`mulligan solve` until its request reaches a provider."""
    from provider_server import ProviderServer

    options = ("--evaluator", "contains:x", "--trials", "1", "--quiet", "--model", "openai:gpt-4o")
    solve = ("-m", "mulligan", "solve", "f", *options)

    async def once() -> float:
        async with ProviderServer([{"hang": True}]) as server:
            env = {**os.environ, "OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1", "OPENAI_API_KEY": "none"}
            process = await asyncio.create_subprocess_exec(sys.executable, *solve, env=env)
            async with asyncio.timeout(120):
                while not server.script.received:
                    assert process.returncode is None, "it ended without a request"
                    await asyncio.sleep(0.005)
            spent = used(process.pid)
            process.kill()
            await process.wait()
            return spent

    show("solve to its first request", [asyncio.run(once()) for _ in range(3)])


def loop(home: str) -> None:
    """A try with journal and store at the beginning and the end of an episode of 1,000 whose reflections differ."""
    from mulligan.core.limits import Limits
    from mulligan.core.loop import Meter, Roles, drive
    from mulligan.core.records import Attempt, Episode, Feedback, Reflection, Step, Task, Usage
    from mulligan.recording.journal import StoredJournal
    from mulligan.recording.ledger import Ledger
    from mulligan.store.sqlite import SqliteStore
    from mulligan.strategies.reflexion import Reflexion

    ends: dict[int, float] = {}

    async def episode(tries: int) -> None:
        store = SqliteStore(Path(home) / f"{tries}.db")
        ledger = Ledger(store)
        begun = Episode("one", Task(TASK), run="perf")
        await ledger.begin(begun, {"tests.py": "assert add(1, 2) == 3"})

        class Scripted:
            expects = "code"

            async def act(self, episode: Episode, past: Any) -> Attempt:
                lessons = [reflection.text for reflection in past.reflections]
                asked = {"messages": [{"role": "user", "text": TASK}, *lessons]}
                output = await journal.step("model", asked, said(CODE))
                steps = (Step("I add them up", "write", "done"),)
                return Attempt(f"{output}# {len(episode.trials)}", steps, usage=Usage(900, 100, 1, 0.001))

            async def evaluate(self, episode: Episode) -> Feedback:
                ends[episode.trials[-1].number] = time.process_time()
                code = {"code": episode.trials[-1].attempt.output}
                text = await journal.step("check", code, said("add(1, 2) gave -1, not 3"))
                return Feedback(False, text, score=0.5, source="scripted")

            async def reflect(self, episode: Episode) -> Reflection:
                number = episode.trials[-1].number
                asked = {"messages": [{"role": "user", "text": f"{TASK}{episode.trials[-1].attempt.output}"}]}
                text = f"In try {number} I subtracted item{number} from value{number * 7}; next time add them."
                return Reflection(await journal.step("model", asked, said(text)), Usage(900, 30, 1, 0.001))

        def said(answer: str) -> Callable[[], Awaitable[Any]]:
            async def do() -> Any:
                return answer

            return do

        role: Any = Scripted()
        async with ledger.hold("one") as entry:
            journal = StoredJournal(entry)
            roles = Roles(actor=role, evaluator=role, reflector=role, strategy=Reflexion())
            await drive(begun, roles, Limits(trials=tries), entry.append, Meter())
        await store.close()

    asyncio.run(episode(1000))
    for name, first, last in (("try 10", 10, 30), ("try 1000", 980, 1000)):
        show(f"loop {name}", [(ends[last] - ends[first]) / (last - first) * 1000])


def retry(home: str) -> None:
    """A call that is right at the second try."""
    import mulligan

    def decorated(asynchronous: bool, **options: Any) -> Any:
        @mulligan.retry(judge=lambda answer: (answer == 2, "not 2"), **options)
        def act(task: str, notes: mulligan.Notes) -> int:
            return notes.trial

        @mulligan.retry(judge=lambda answer: (answer == 2, "not 2"), **options)
        async def aact(task: str, notes: mulligan.Notes) -> int:
            return notes.trial

        return aact if asynchronous else act

    for name, record in (("off", False), ("recorded", True)):
        act = decorated(False, record=record)
        show(f"retry {name}", in_turn(lambda number, act=act: act(f"task {number}"), 40))
    act = decorated(True)
    spent: list[float] = []

    async def several() -> None:
        await act("first")
        for turn in range(7):
            before = time.process_time()
            for number in range(40):
                await act(f"task {turn} {number}")
            spent.append((time.process_time() - before) / 40 * 1000)

    asyncio.run(several())
    show("retry recorded async", spent)


def retry_with_bank(home: str) -> None:
    """Calls with a bank: CPU of the process, and what the caller waits."""
    import mulligan

    @mulligan.retry(judge=lambda answer: (answer == 2, "not 2"), bank="perf")
    async def act(task: str, notes: mulligan.Notes) -> int:
        return notes.trial

    cpu, wall, together = list[float](), list[float](), list[float]()

    async def several() -> None:
        for number in range(4):
            await act(f"Extract the invoice number of letter {number}")
        for number in range(20):
            before, clock = time.process_time(), time.perf_counter()
            await act(f"Extract the total of invoice {number}")
            wall.append((time.perf_counter() - clock) * 1000)
            cpu.append((time.process_time() - before) * 1000)
        for turn in range(4):
            clock = time.perf_counter()
            await asyncio.gather(*(act(f"Extract the date {turn} of letter {number}") for number in range(20)))
            together.append((time.perf_counter() - clock) * 1000)

    asyncio.run(several())
    show("retry with bank cpu", cpu)
    show("retry with bank wall", wall)
    show("retry with bank 20 at once wall", together)
    from mulligan.functions.shared import close_shared

    close_shared()


def langgraph(home: str) -> None:
    """A run of the reflexion graph beside a bare one of the same shape: CPU of a node."""
    import reflexion_graph as graphs

    from mulligan.store.sqlite import SqliteStore

    store = SqliteStore(Path(home) / "graph.db")
    kinds = {"bare": graphs.bare(3, False), "off": graphs.ours(3, False, False), "on": graphs.ours(3, False, store)}
    for name, graph in kinds.items():
        spent = in_turn(lambda _, graph=graph: graph.invoke(graphs.QUESTION), 10)
        show(f"langgraph node {name}", [one / 7 for one in spent])


def hook(home: str) -> None:
    """The hook's program at a failure, without and with a lesson to show, and at the end of a turn."""

    def measure(name: str, event: dict[str, Any]) -> None:
        words = [sys.executable, "-c", "from mulligan.hooks.entry import main; main()", "claude"]  # as its program
        spent = list[float]()
        for number in range(5):
            ids = {"session_id": f"{name} {number}", "tool_use_id": "t"}
            feed = json.dumps({"cwd": home, "transcript_path": "", **ids, **event})
            spent.append(of_process(words, feed, MULLIGAN_HOME=home))
        show(f"hook {name}", spent)

    async def add_lesson() -> None:
        from mulligan.app.memory import open_bank
        from mulligan.hooks.project import project_id
        from mulligan.sessions.signature import digest, signature

        error, remedy = digest(signature(ERROR)), "rm -rf build && pip install pyyaml"
        context: Any = {"errors": [error], "mends": {error: remedy}}
        async with open_bank(project_id(home)) as bank:
            await bank.add("python: no module yaml", f"worked: {remedy}", context=context, nature="fact", tags=["hook"])

    for name, event in EVENTS.items():
        measure(name, event)
    asyncio.run(add_lesson())
    measure("failure with a remedy", EVENTS["failure"])


def mcp(home: str) -> None:
    """`mulligan serve` from its start to the answer of tools/list, and the characters of that answer."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "perf", "version": "1"}}
    sent = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    spent, size = list[float](), 0
    for _ in range(3):
        words = [sys.executable, "-m", "mulligan", "serve"]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write("".join(json.dumps(one) + "\n" for one in sent))
            server.stdin.flush()
            while (answer := json.loads(server.stdout.readline())).get("id") != 2:
                pass
            size = len(json.dumps(answer["result"]["tools"], separators=(",", ":")))
            spent.append(used(server.pid))
            server.stdin.close()
            server.terminate()
    show("mcp to tools/list", spent)
    show("mcp characters of tools/list", [size])


ROWS = {each.__name__: each for each in (start, first_request, loop, retry, retry_with_bank, langgraph, hook, mcp)}

if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles the source again
    with tempfile.TemporaryDirectory() as home:
        os.environ["MULLIGAN_HOME"] = home
        os.environ["HOME"] = home
        os.chdir(home)
        for row in sys.argv[1:] or ROWS:
            ROWS[row](home)
        os.chdir("/")
