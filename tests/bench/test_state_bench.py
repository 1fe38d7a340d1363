"""STATE-Bench on a checkout of our own in the form of theirs: who is asked what, known scores, and a resume."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from each_row import each_row
from state_bench_checkout import write_checkout

from mulligan import Bank, learn
from mulligan.bench.harness.running import resume_benchmark, run_benchmark
from mulligan.bench.state_bench._checkout import calls_of
from mulligan.core.errors import InvalidInput, JournalDiverged
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Json
from mulligan.models.scripted import ScriptedModel
from mulligan.store.sqlite import SqliteStore

ASK = 'cancel_booking(booking_id="B1")'
PAY = 'cancel_booking(booking_id="B1", fee_accepted=true)'
GOLD = {
    "1-free": [ASK, "It is cancelled."],
    "2-fixed": [ASK, "There is a fee of $20.", PAY, "It is cancelled."],
    "3-keep": [ASK, "Its fare is fixed, so I did not cancel it."],
}
WRONG = {**GOLD, "1-free": ['get_booking(booking_id="B1")', "It is cancelled."], "3-keep": [PAY, "It is cancelled."]}
DONE = "Thank you. [TASK_DONE]"
FEE = "Then cancel it."


class Cast(ScriptedModel):
    """An agent that has these lines for each task; the customer, who accepts a fee and is then content; and a judge, who
    passes what was said."""

    def __init__(self, lines: Mapping[str, Sequence[str]], reply: str = DONE) -> None:
        super().__init__(self._answer)
        self._lines, self._reply = lines, reply

    def _answer(self, question: Question, _: Sampling) -> Any:
        text = question.messages[-1].text
        if is_agents(question):
            id = next(id for id in self._lines if f"({id})" in text)
            return self._lines[id][text.count("\n> ")]
        if question.schema is not None:
            return {"details": [{"id": "r1", "passed": True, "reasoning": "It names $20."}]}
        return FEE if text.rstrip().endswith("a fee of $20.") else self._reply


def is_agents(question: Question) -> bool:
    return question.messages[0].text.startswith("You serve a customer")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteStore:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    monkeypatch.delenv("MULLIGAN_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return SqliteStore(tmp_path / "mulligan.db")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "scores"),
    [
        (GOLD, [1.0, 1.0, 1.0]),
        (WRONG, [0.0, 1.0, 0.0]),
        ({id: ["I cannot do that."] for id in GOLD}, [0.0, 0.0, 1.0]),
    ],
)
async def test_gold_empty_and_wrong_runs_have_their_known_scores(
    store: SqliteStore, tmp_path: Path, lines: Mapping[str, Sequence[str]], scores: list[float]
) -> None:
    checkout = write_checkout(tmp_path / "checkout")
    finished = await run_benchmark(
        "state-bench",
        model=Cast(lines),
        store=store,
        data=str(checkout),
    )
    assert [result.episodes[0].score for result in finished.results] == scores
    assert [result.episodes[0].parts for result in finished.results] == [{"final state": (each,)} for each in scores]
    await store.close()


@pytest.mark.slow
async def test_the_agent_has_as_many_turns_as_in_their_harness(store: SqliteStore, tmp_path: Path) -> None:
    checkout = write_checkout(tmp_path / "checkout")
    model = Cast({"1-free": ["Sure?"] * 9}, "No, cancel it.")
    finished = await run_benchmark(
        "state-bench",
        model=model,
        store=store,
        data=str(checkout),
        cases=["1-free"],
    )
    (result,) = finished.results
    assert (result.status, len(model.questions)) == ("failed", 3 + 2)
    episode = await store.load(result.episodes[0].episode)
    assert [step.observation for step in episode.trials[0].attempt.steps[1:]] == [
        *["Customer: No, cancel it."] * 2,
        "The customer is gone.",
    ]
    await store.close()


@pytest.mark.slow
async def test_with_a_bank_the_agent_can_ask_what_earlier_trajectories_taught(
    store: SqliteStore, tmp_path: Path
) -> None:
    checkout = write_checkout(tmp_path / "checkout")
    refusal = {"error": "Booking B9 has a fixed fare: fee_accepted is needed."}
    calls = [
        {"name": "cancel_booking", "arguments": {"booking_id": "B9"}, "result": refusal},
        {"name": "cancel_booking", "arguments": {"booking_id": "B9", "fee_accepted": True}, "result": {}},
    ]
    said = {"role": "assistant", "content": "It is cancelled.", "tool_calls": calls}
    learned = [{"role": "user", "content": "Cancel B9."}, said]
    async with Bank.open("travel", model="none", embedder="none") as bank:
        await learn([*learned], bank=bank)
    ask = 'retrieve_learnings(query="Booking B1 has a fixed fare: fee_accepted is needed.")'
    model = Cast({"2-fixed": [f"{ASK}, {ask}", PAY, "It is cancelled."]})
    choice: dict[str, Any] = {"data": str(checkout), "cases": ["2-fixed"]}
    finished = await run_benchmark(
        "state-bench", model=model, store=store, memory="frozen", agent_id="travel", **choice
    )
    (result,) = finished.results
    assert result.status == "solved"
    episode = await store.load(result.episodes[0].episode)
    first = episode.trials[0].attempt.steps[1]
    assert "- retrieve_learnings(query): What was learned" in model.questions[0].messages[0].text
    error, learnings = first.observation.splitlines()
    assert "fee_accepted is needed" in error
    assert "works: cancel_booking with fee_accepted=true" in json.loads(learnings)["learnings"][0]
    await store.close()


@pytest.mark.slow
async def test_a_changed_checkout_is_refused_on_a_resume_and_a_wrong_folder_at_once(
    store: SqliteStore, tmp_path: Path
) -> None:
    checkout = write_checkout(tmp_path / "checkout")
    model = Cast(GOLD)
    finished = await run_benchmark("state-bench", model=model, store=store, data=str(checkout), cases=["1-free"])
    tool = checkout / "state_bench" / "domains" / "travel" / "config.py"
    tool.write_text(tool.read_text().replace("fixed fare", "closed fare"))
    with pytest.raises(JournalDiverged, match=r"config\.py"):
        await resume_benchmark(finished.run.id, model=model, store=store)
    with pytest.raises(InvalidInput, match="microsoft/STATE-Bench"):
        await run_benchmark(
            "state-bench", model=model, store=store, data=str(checkout / "state_bench" / "domains" / "travel" / "tasks")
        )
    await store.close()


KILLED = """
import asyncio, os, signal, sys
from test_state_bench import GOLD, Cast
from mulligan import Bank, learn
from mulligan.bench.harness.running import run_benchmark


class Killing(Cast):
    async def ask(self, question, *rest):
        if len(self.questions) == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().ask(question, *rest)


asyncio.run(run_benchmark("state-bench", model=Killing(GOLD), data=sys.argv[1], cases=["2-fixed"], method="judged"))
"""


@pytest.mark.slow
async def test_a_run_that_was_killed_ends_as_if_nothing_had_been_and_each_is_asked_in_the_benchmarks_own_words(
    store: SqliteStore, tmp_path: Path
) -> None:
    checkout = write_checkout(tmp_path / "checkout")
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent / "support")])
    command = [sys.executable, "-c", KILLED, str(checkout), "5"]
    env = {**os.environ, "PYTHONPATH": path}
    killed = await anyio.run_process(command, env=env, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    (run,) = await store.benches.runs()
    rest, whole = Cast(GOLD), Cast(GOLD)
    resumed = await resume_benchmark(run.id, model=rest, store=store)
    choice: dict[str, Any] = {"data": str(checkout), "cases": ["2-fixed"], "method": "judged"}
    expected = await run_benchmark("state-bench", model=whole, store=store, **choice)
    (ours,), (theirs,) = resumed.results, expected.results
    assert replace(ours, seconds=0, episodes=()) == replace(theirs, seconds=0, episodes=())
    assert (ours.episodes[0].scores, ours.episodes[0].parts) == ((1.0,), {"final state": (1.0,)})
    assert len(rest.questions) == len(whole.questions) - 5

    customer, again, judge = (question for question in whole.questions if not is_agents(question))
    assert [one.text for one in customer.messages] == [
        "You play user_1. You want B1 cancelled (2-fixed).",
        "user: Cancel B1, please (2-fixed).\nassistant: There is a fee of $20.",
    ]
    assert again.messages[-1].text.endswith(f"user: {FEE}\nassistant: It is cancelled.")
    assert judge.messages[-1].text.startswith("Was this said?")
    seen = "\n".join(one.text for question in whole.questions if is_agents(question) for one in question.messages)
    assert "You serve user_1. It is 2026-06-15T10:00:00." in seen
    assert "fee_accepted is needed" in seen
    assert not any(hidden in seen for hidden in ("names the fee", "You want B1 cancelled", "expected_value"))
    await store.close()


ACTIONS: dict[str, Json] = {
    'a(x=1, y=["b", true, null])': [["a", {"x": 1, "y": ["b", True, None]}]],
    "a(), b(x='1')": [["a", {}], ["b", {"x": "1"}]],
    "Shall I cancel it (for $20)?": None,
    "`a(x=Bern)`": [["a", {"x": "Bern"}]],
    **{f"a({not_plain})": [["a", None]] for not_plain in ("1", "x=open('f')", "x={1}", "x=b'1'", "**x")},
    "Done.": None,
}


@each_row("action", ACTIONS)
def test_an_action_is_calls_or_words(action: str) -> None:
    calls = calls_of(action)
    assert ACTIONS[action] == (None if calls is None else [*calls])
