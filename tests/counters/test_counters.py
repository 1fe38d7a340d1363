"""How much work things do, counted: modules imported, transactions and statements of the store, runs of the embedder.

The numbers stand in counts.toml. A change that adds work changes one there, in the open; one that saves work, too.
"""

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import mulligan
from mulligan.bank.recall.embedding import Vectors
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter, Roles, drive
from mulligan.core.records import Attempt, Episode, Feedback, Past, Reflection, Step, Task, Usage
from mulligan.recording.journal import StoredJournal
from mulligan.recording.ledger import Ledger
from mulligan.store.sqlite import SqliteStore, lanes
from mulligan.strategies.evidence_and_reflexion import EvidenceAndReflexion

COUNTS = tomllib.loads(Path(__file__).with_name("counts.toml").read_text())
HEAVY = {
    *("asyncio", "numpy", "pydantic", "pydantic_ai", "openai", "openai.types.batch", "rich", "sqlite3", "starlette"),
    "subprocess",
}
AT_END = """\
import atexit, sys
atexit.register(lambda: print('\\nMODULES', *sys.modules, file=sys.stderr))
"""
FAILED = "Traceback (most recent call last):\n  File \"/a.py\", line 3\nModuleNotFoundError: No module named 'yaml'"
CALL: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "python app.py"}}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What is asked of SQLite: transactions, those of them in another thread than the caller's, and statements."""
    counted, connect = Counter[str](), sqlite3.connect

    def note(statement: str) -> None:
        counted["statements"] += not statement.startswith("--")  # one that a trigger runs
        if statement.startswith("BEGIN"):
            counted["transactions"] += 1
            counted["hops"] += threading.current_thread().name == "mulligan-store"

    def counting(*args: Any, **named: Any) -> sqlite3.Connection:
        db = connect(*args, **named)
        db.set_trace_callback(note)
        return db

    monkeypatch.setattr(sqlite3, "connect", counting)
    monkeypatch.setattr(lanes, "IDLE_SECONDS", 60.0)  # else a slow machine syncs in between, and the next write hops
    return counted


def counts_of(store: Counter[str], before: Counter[str], times: int = 1) -> dict[str, float]:
    return {name: round((store[name] - before[name]) / times, 2) for name in ("transactions", "hops", "statements")}


def within(found: dict[str, float], most: dict[str, float]) -> None:
    """Where other work goes on beside it, such as looking for queued work, a count may be lower."""
    assert found.keys() == most.keys()
    assert not {name: value for name, value in found.items() if value > most[name]}, found


# --- modules --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code", "event"),
    [
        ("import", "import mulligan", None),
        ("help", "from mulligan.cli.main import main; sys.argv = ['mulligan', '--help']; main()", None),
        ("hook_failure", "", {"hook_event_name": "PostToolUseFailure", **CALL, "error": FAILED}),
        ("hook_stop", "", {"hook_event_name": "Stop"}),
        ("goal_worker", "import mulligan.goals.worker", None),
        pytest.param(
            "provider",
            "from mulligan.models.catalog import open_model; open_model('openai:gpt-4o').load()",
            None,
            marks=pytest.mark.slow,
        ),
        (
            "solve",
            "from mulligan.cli.main import main\n"
            "sys.argv = ['mulligan', 'solve', 'f', '--evaluator', 'contains:x', '--quiet', '--model', 'scripted:said']\n"
            "main()",
            None,
        ),
    ],
)
def test_no_more_is_imported(name: str, code: str, event: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "said").write_text("x")
    feed: dict[str, Any] = {
        "cwd": str(tmp_path),
        "transcript_path": "",
        "session_id": "s",
        "tool_use_id": "t",
        **(event or {}),
    }
    code = code or "from mulligan.hooks.entry import main; sys.argv = ['mulligan-hook', 'claude']; main()"
    # Hooks end without atexit, so that the list is printed by what they call last.
    ends = "import os; end = os._exit; os._exit = lambda code: (atexit._run_exitfuncs(), end(code))\n"
    words = [sys.executable, "-c", f"{AT_END}{ends}{code}"]
    ran = subprocess.run(words, input=json.dumps(feed), cwd=tmp_path, capture_output=True, text=True, timeout=60)
    (line,) = (line for line in ran.stderr.splitlines() if line.startswith("MODULES"))
    modules = line.split()[1:]
    ours = [module for module in modules if module.partition(".")[0] == "mulligan"]
    assert {"ours": len(ours), "heavy": sorted(HEAVY.intersection(modules))} == COUNTS["modules"][name], sorted(ours)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("failure", f"from mulligan.sessions.signature import keys; keys({FAILED!r})"),
        ("remedy", "from mulligan.sessions.effects import going_around; going_around('rm -rf build && npm ci')"),
    ],
)
def test_no_more_patterns_are_compiled(name: str, code: str) -> None:
    count = (
        "import re._compiler as r, sys, traceback\nmade = r.compile\n"
        "def compile(*given):\n"
        "    ours.append(any('mulligan' in frame.filename for frame in traceback.extract_stack(limit=5)))\n"
        "    return made(*given)\n"
        "ours, r.compile = [], compile\n"
    )
    words = [sys.executable, "-c", f"{count}{code}\nprint(sum(ours), *{{'tomllib', 'typing'}} & {{*sys.modules}})"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    patterns, *slow = ran.stdout.split()
    assert (int(patterns) <= COUNTS["patterns"][name], slow) == (True, []), ran.stdout


# --- the loop -------------------------------------------------------------------------------------------------------


class Acting:
    """All roles of an episode that fails, each time in another way; `at` is called as each try begins."""

    expects = "code"

    def __init__(self, at: Callable[[int], None]) -> None:
        self._at = at

    async def act(self, episode: Episode, past: Past) -> Attempt:
        number = len(episode.trials) + 1
        self._at(number)
        output = await self.journal.step("model", {"try": number}, self._said(f"return {number}"))
        return Attempt(output, (Step("add", "write", "done"),), usage=Usage(9, 1, 1, 0.001))

    async def evaluate(self, episode: Episode) -> Feedback:
        return Feedback(False, f"add(1, 2) gave {len(episode.trials)}", score=0.5, source="scripted")

    async def reflect(self, episode: Episode) -> Reflection:
        number = len(episode.trials)
        return Reflection(
            f"In try {number} I took item{number} for value{7 * number}: next time add them as n{number}."
        )

    def _said(self, text: str) -> Any:
        async def do() -> str:
            return text

        return do

    journal: StoredJournal


async def an_episode(file: Path, tries: int, at: Callable[[int], None], limits: Limits) -> None:
    async with SqliteStore(file) as kept:
        ledger, begun = Ledger(kept), Episode("one", Task("Add two numbers."), run="r")
        await ledger.begin(begun)
        role: Any = Acting(at)
        async with ledger.hold("one") as entry:
            role.journal = StoredJournal(entry)
            roles = Roles(actor=role, evaluator=role, reflector=role, strategy=EvidenceAndReflexion())
            await drive(begun, roles, limits, entry.append, Meter())


@pytest.mark.parametrize("tries", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_try_does_the_same_work_however_many_there_were(tries: int, store: Counter[str], tmp_path: Path) -> None:
    seen: dict[int, tuple[int, dict[str, float]]] = {}
    calls, before, begun = 0, Counter[str](), 0

    def count(_frame: object, event: str, _of: object) -> None:
        nonlocal calls
        calls += event == "call"

    def at(number: int) -> None:
        nonlocal before, begun
        if number in (10, tries):
            before, begun = store.copy(), calls
            sys.setprofile(count)
        elif number - 1 in (10, tries):
            sys.setprofile(None)
            seen[number - 1] = calls - begun, counts_of(store, before)

    limits = Limits(trials=tries + 1, tokens=10**9, cost=1e6)
    asyncio.run(an_episode(tmp_path / "m.db", tries + 1, at, limits))
    assert seen[10][1] == seen[tries][1] == COUNTS["try"]
    assert seen[tries][0] < 2 * seen[10][0], "calls of functions in a try"


# --- functions ------------------------------------------------------------------------------------------------------


class Counted:
    """An embedder: what it was asked for."""

    id, dim = "counted", 4

    def __init__(self) -> None:
        self.runs = self.texts = 0

    async def embed(self, texts: Sequence[str]) -> Any:
        self.runs, self.texts = self.runs + 1, self.texts + len(texts)
        vectors = np.array([[1.0, len(text), text.count("e"), text.count("t")] for text in texts], np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def right_at_once_more(answer: int) -> tuple[bool, str]:
    return answer == 2, "not 2"


def test_a_call_that_is_recorded(store: Counter[str], tmp_path: Path) -> None:
    async def closed() -> None:
        await kept.close()

    kept = SqliteStore(tmp_path / "m.db")

    @mulligan.retry(judge=right_at_once_more, store=kept)
    def act(task: str, notes: mulligan.Notes) -> int:
        return notes.trial

    @mulligan.retry(judge=right_at_once_more, store=kept)
    async def aact(task: str, notes: mulligan.Notes) -> int:
        return notes.trial

    for number in range(10):
        act(f"task {number}")
    before = store.copy()
    act("another")
    assert counts_of(store, before) == COUNTS["retry"]["sync"]
    before = store.copy()
    asyncio.run(aact("one more"))
    assert counts_of(store, before) == COUNTS["retry"]["async"]
    asyncio.run(closed())


@pytest.mark.parametrize("calls", [10, pytest.param(200, marks=pytest.mark.slow)])
async def test_a_call_with_a_bank(calls: int, store: Counter[str], tmp_path: Path) -> None:
    embedder = Counted()
    kept = SqliteStore(tmp_path / "m.db")
    async with mulligan.Bank.open("a", store=kept.memory, embedder=embedder) as bank:

        @mulligan.retry(judge=right_at_once_more, bank=bank, record=False)
        async def act(task: str, notes: mulligan.Notes) -> int:
            return notes.trial

        async def learning(task: str) -> None:
            result = await act.run(task)
            await bank.learn(result.episode)

        for number in range(calls):
            await learning(f"Find the total of invoice {number}.")
        await bank.work()
        before, runs, texts = store.copy(), embedder.runs, embedder.texts
        await learning("Find the total of the newest invoice.")
        found = {**counts_of(store, before), "runs": embedder.runs - runs, "texts": embedder.texts - texts}
        within(found, COUNTS["retry_with_bank"])
        assert len(await bank.list()) == 1, "each call teaches the same fact"


async def test_texts_that_are_asked_for_together_are_embedded_together() -> None:
    embedder = Counted()
    vectors = Vectors(embedder)
    await asyncio.gather(*(vectors.of([f"Find the date of letter {number}."]) for number in range(20)))
    await vectors.of(["Find the date of letter 7."])
    assert {"runs": embedder.runs, "texts": embedder.texts} == COUNTS["twenty_texts"]


@pytest.mark.parametrize("lessons", [10, *(pytest.param(n, marks=pytest.mark.slow) for n in (100, 1000))])
async def test_a_recall(lessons: int, store: Counter[str], tmp_path: Path) -> None:
    embedder = Counted()
    kept = SqliteStore(tmp_path / "m.db")
    async with mulligan.Bank.open("a", store=kept.memory, embedder=embedder) as bank:
        for number in range(lessons):
            await bank.add(f"Pages {number}", f"Read page{number} before you drop its entries.")
        await bank.work()
        await bank.recall("Read a page.")
        await bank.work()  # what that recall has begun beside it is none of the next one's
        before, runs, called = store.copy(), embedder.runs, Counter[str]()

        def count(frame: FrameType, event: str, _of: object) -> None:
            if event == "call" and frame.f_code.co_filename.endswith("candidates.py"):
                called[frame.f_code.co_name] += 1

        sys.setprofile(count)
        await bank.recall("Read another page.")
        sys.setprofile(None)
        scored = {"word_scores": called["scores"], "cosines": called["cosines_of"]}
        within({**counts_of(store, before), "runs": embedder.runs - runs, **scored}, COUNTS["recall"])


# --- graphs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revisions", [2, 10, pytest.param(100, marks=pytest.mark.slow)])
def test_a_node_of_a_graph(revisions: int, store: Counter[str], tmp_path: Path) -> None:
    from mulligan.langgraph.reflexion_graph import create_reflexion_graph
    from mulligan.langgraph.scripted import ScriptedChat

    def answer(messages: Sequence[Any]) -> Any:
        tried = sum(message.type == "tool" for message in messages)
        if not tried:
            return {"answer": "first", "reflection": "may be wrong"}
        score = 9 if tried == revisions else 3
        return {"reflection": "not all", "score": score, "revised_answer": f"answer {tried}"}

    async def closed() -> None:
        await kept.close()

    kept = SqliteStore(tmp_path / "m.db")

    def tool(answer: str) -> str:
        return f"of {answer}"

    graph: Any = create_reflexion_graph(ScriptedChat(answer), tool, max_steps=300, store=kept)
    asked = {"messages": [("user", "Which genes?")]}
    graph.invoke(asked, {"recursion_limit": 500})
    before = store.copy()
    graph.invoke(asked, {"recursion_limit": 500})
    within(counts_of(store, before, 2 * revisions + 1), COUNTS["node"])
    asyncio.run(closed())
