"""BFCL's multi-turn part: on a wheel of our own in its form, and on the real one where it is."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bfcl_wheel import FUNCTIONS, NAME, QUESTIONS, READERS, TRUTH, answer, write_wheel
from each_row import each_row

from mulligan.bench.bfcl._calls import calls_of
from mulligan.bench.bfcl._wheel import dialogues, run_services
from mulligan.bench.bfcl.bfcl import Bfcl
from mulligan.bench.bfcl.environments.bfcl import BfclWorld
from mulligan.bench.harness.fetching import fetch
from mulligan.bench.harness.running import Finished, resume_benchmark, run_benchmark
from mulligan.core.benchmarks import Source
from mulligan.core.errors import FetchError
from mulligan.core.records import Case, Json
from mulligan.models.scripted import ScriptedModel
from mulligan.sandbox.local import LocalSandbox
from mulligan.store.sqlite import SqliteStore

SUPPORT = Path(__file__).parents[1] / "support"
REAL = Path(os.environ.get("MULLIGAN_DATA") or Path(__file__).parents[3] / "shared/data")


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    monkeypatch.delenv("MULLIGAN_DATA", raising=False)
    return write_wheel(tmp_path)


async def ran(wheel: Path, model: ScriptedModel, benchmark: str = "bfcl", **options: Any) -> Finished:
    store = SqliteStore(wheel.parent / "mulligan.db")
    try:
        return await run_benchmark(benchmark, model=model, store=store, data=str(wheel), **options)
    finally:
        await store.close()


def killed(database: Path, wheel: Path) -> None:
    """Kill a run when it asks its model for the seventh answer, in the second task."""
    program = f"import asyncio, bfcl_wheel; asyncio.run(bfcl_wheel.run_until(7, {str(database)!r}, {str(wheel)!r}))"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.kill()


@pytest.mark.slow
async def test_a_dialogue_is_acted_in_turns_and_judged_by_its_checker(wheel: Path) -> None:
    model = ScriptedModel(answer)
    finished = await ran(wheel, model, cases=["multi_turn_base_0", "multi_turn_base_1"])
    right, wrong = finished.results
    assert (right.status, right.text, right.episodes[0].parts) == ("solved", "", {"first turn": (1.0,)})
    assert (wrong.status, wrong.text, wrong.episodes[0].parts) == ("failed", "turn 1 is wrong", {"first turn": (1.0,)})
    prompts = ["\n".join(message.text for message in question.messages) for question in model.questions[:4]]
    assert all("- lend(title, reader, days?): Lend a book." in prompt for prompt in prompts)
    assert "About the desk" not in prompts[0]
    assert QUESTIONS[1].format("Ines") not in prompts[1], "a later turn is not known before"
    assert prompts[3].endswith(
        'User: Where is Heat?\n> find(title=\'Heat\')\n{"place": "shelf 4"}\n> Done.\n'
        'User: Lend it to Ines for a week.\n> [lend(title="Heat", reader="Ines", days=7)]\n{"lent": "Heat"}\n>'
    )


@pytest.mark.slow
async def test_functions_are_tools_of_the_provider_and_some_come_later(wheel: Path) -> None:
    calls: list[Json] = [
        {"tool": "find", "arguments": {"title": "Heat"}},
        "I cannot lend it.",
        {"calls": [{"tool": "lend", "arguments": {"title": "Heat", "reader": "Ines", "days": 7}}]},
        "Done.",
    ]
    model = ScriptedModel(calls)  # pyright: ignore[reportArgumentType]
    finished = await ran(wheel, model, "bfcl:miss_func", settings={"actor": {"calls": True}})
    assert finished.results[0].status == "solved", finished.results[0].text
    tools = [[tool.name for tool in question.tools] for question in model.questions]
    assert tools == [["find"], ["find"], ["find", "lend"], ["find", "lend"]]
    assert model.questions[2].tools[1].parameters == {**FUNCTIONS[1]["parameters"], "type": "object"}
    assert "Lend a book." not in "\n".join(message.text for message in model.questions[2].messages)


async def test_words_that_a_foresight_refuses_end_no_turn(wheel: Path) -> None:
    refusal = {"risk": "It ends the turn.", "decision": "ask", "question": "Stop?", "reason": "", "action": ""}
    lend = "lend(title='Heat', reader='Ines', days=7)"
    model = ScriptedModel(["Stop.", refusal, "find(title='Heat')", "Done.", lend, "Done."])
    finished = await ran(wheel, model, limit=1, foresight={}, check_before="Stop")
    assert finished.results[0].status == "solved", finished.results[0].text
    assert "- find(title): Say where a book is." in model.questions[0].messages[0].text


async def test_a_dialogue_that_is_over_stays_over(wheel: Path) -> None:
    world = BfclWorld(files=[str(wheel)], task="multi_turn_base_0", sandbox=LocalSandbox())
    await world.reset()
    steps = [await world.step(action) for action in ("One.", "Two.", "Three.", "find(title='Heat')")]
    assert [step.outcome is not None and step.outcome.done for step in steps] == [False, True, True, True]


async def test_services_that_cannot_run_are_an_error_and_not_a_failure(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        files = {name: packed.read(name) for name in packed.namelist() if not name.endswith("multi_turn_checker.py")}
    with zipfile.ZipFile(wheel, "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    finished = await ran(wheel, ScriptedModel(["No.", "No."]), limit=1)
    assert finished.results[0].status == "error"
    assert "No module named" in finished.results[0].text
    assert "mulligan bench fetch bfcl" in finished.results[0].text


@each_row(
    ("action", "calls"),
    [
        ("f(x='a', y=[1, -2.5, {'b': None}])", ("f(x='a', y=[1, -2.5, {'b': None}])",)),
        ('[f(x="a"), f()]', ("f(x='a')", "f()")),
        ("`f(true, null), f(x=f(1))`", ("f(True, None)", "f(x=f(1))")),
        ("f(x=Paris)", ("f(x='Paris')",)),
        (r'f(x="a\d")', (r"f(x='a\\d')",)),
        ("open('/etc/passwd'), json.loads('1')", ("open", "json.loads")),
        *((text, None) for text in ("", "Done.", "f", "f(x=1", "f(**{})", "f(*[])", "f(x=lambda: 1)", "(1).f()")),
        ("(" * 5000 + "f()", None),
    ],
)
def test_only_calls_with_literals_are_calls(action: str, calls: tuple[str, ...] | None) -> None:
    assert calls_of(action, {"f"}) == calls


@pytest.mark.slow
async def test_a_turn_that_does_not_end_is_halted_after_twenty_steps(wheel: Path) -> None:
    finished = await ran(wheel, ScriptedModel(["find(title='Heat')"] * 21), limit=1)
    assert finished.results[0].status == "failed"
    assert finished.results[0].text == "0 of 2 turns were completed"


@pytest.mark.slow
async def test_a_run_that_is_killed_ends_with_the_same_results(wheel: Path) -> None:
    whole = [replace(one, episodes=(), seconds=0) for one in (await ran(wheel, ScriptedModel(answer))).results]
    killed(database := wheel.parent / "killed.db", wheel)
    store, model = SqliteStore(database), ScriptedModel(answer)
    (run,) = await store.benches.runs()
    assert len(await store.benches.results(run.id)) == 1
    resumed = await resume_benchmark(run.id, model=model, store=store)
    await store.close()
    assert [replace(one, episodes=(), seconds=0) for one in resumed.results] == whole
    assert [one.status for one in whole] == ["solved", "failed", "solved", "solved"]
    assert len(model.questions) == 4 * len(READERS) - 6, "no answer that was recorded is asked for again"


@pytest.mark.slow
def test_pip_downloads_a_wheel_and_another_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shelf := tmp_path / "shelf").mkdir()
    with zipfile.ZipFile(shelf / "lent_books-1.0-py3-none-any.whl", "w") as packed:
        packed.writestr("lent_books-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: lent-books\nVersion: 1.0\n")
        packed.writestr("lent_books-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        packed.writestr("lent_books-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    (file,) = shelf.iterdir()
    body = file.read_bytes()
    source = Source(file.name, "pip:lent-books==1.0", hashlib.sha256(body).hexdigest(), len(body), "CC0")
    assert fetch(source, tmp_path / "data").read_bytes() == body
    with pytest.raises(FetchError, match="has the wrong checksum and was removed"):
        fetch(replace(source, sha256="0" * 64), tmp_path / "other")
    with pytest.raises(FetchError, match=r"could not fetch lent-books==2\.0"):
        fetch(replace(source, url="pip:lent-books==2.0"), tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir() if path.suffix != ".lock"] == []


@pytest.mark.slow
@pytest.mark.skipif(not list(REAL.rglob("bfcl_eval-*.whl")), reason="needs the wheels of bfcl-eval and mpmath")
def test_right_empty_and_wrong_answers_to_the_real_tasks_have_their_known_scores() -> None:
    sandbox, wheels = LocalSandbox(), sorted(REAL.rglob("*.whl"))
    benchmark = Bfcl(sandbox=sandbox)
    cases = benchmark.load(wheels)
    tasks = dialogues(next(wheel for wheel in wheels if wheel.name.startswith("bfcl_eval-")), "base")

    def solved(turns: dict[str, list[list[list[str]]]]) -> int:
        items: list[Json] = [
            {"entry": dict(tasks[case.id].entry), "turns": turns[case.id], "truth": case.target}  # pyright: ignore[reportAssignmentType]
            for case in cases
        ]
        return sum(verdict["valid"] for verdict in asyncio.run(run_services(sandbox, wheels, items)))

    truths: dict[str, list[list[str]]] = {case.id: case.target for case in cases}  # pyright: ignore[reportAssignmentType]
    steps = {id: [[[call] for call in turn] for turn in truth] for id, truth in truths.items()}
    other = {case.id: _fitted(steps[_like(case, cases).id], len(truths[case.id])) for case in cases}
    assert solved(steps) == len(cases) == 200
    assert solved({id: [[] for _ in truth] for id, truth in truths.items()}) == 0
    assert solved(other) == 0
    assert solved({id: turns[:-1] for id, turns in steps.items()}) == 0


def _like(case: Case, cases: Any) -> Case:
    """The next task with the same services."""
    at = cases.index(case)
    return next(other for other in (*cases[at + 1 :], *cases[:at]) if other.family == case.family)


def _fitted(turns: list[list[list[str]]], length: int) -> list[list[list[str]]]:
    return (turns + [[]] * length)[:length]


def test_the_wheel_of_these_tests_has_the_form_of_the_real_one(wheel: Path) -> None:
    assert wheel.name == NAME
    (first, *_) = dialogues(wheel, "base").values()
    assert first.turns == tuple(text.format("Ines") for text in QUESTIONS)
    assert first.in_turns([TRUTH[0][0], "Done."]) == [[(TRUTH[0][0],)], []]
    assert json.loads(json.dumps(dict(first.entry))) == first.entry
