"""Episodes that a client drives: their order, their memory, their record, and who may go on with them."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan.app.client_led import ClientLed, ClientStep, StepResult
from mulligan.core.codec import to_json
from mulligan.core.errors import InvalidInput, LeaseLost, NotFound, OutOfOrder
from mulligan.core.records import Episode, Task
from mulligan.recording.holders import owner
from mulligan.store.sqlite import SqliteStore

TASK = "Name a prime above 8."


def act(trial: int, trials: int = 3, **more: Any) -> ClientStep:
    return ClientStep("act", trial, trials, prompt=more.pop("prompt", TASK), **more)


def evaluate(trial: int, output: str, trials: int = 3, **more: Any) -> ClientStep:
    return ClientStep("evaluate", trial, trials, output=output, **more)


def reflect(trial: int, output: str, score: str | float = "no", trials: int = 3, **more: Any) -> ClientStep:
    return ClientStep("reflect", trial, trials, output=output, score=score, **more)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    opened = SqliteStore(tmp_path / "mulligan.db")
    yield opened
    await opened.close()


class Client:
    """Leads one episode; `look` is all of it that is kept."""

    def __init__(self, led: ClientLed, store: SqliteStore, id: str) -> None:
        self.led, self.store, self.id = led, store, id

    @classmethod
    async def begun(cls, store: SqliteStore, depth: int = 3, **more: Any) -> "Client":
        led = ClientLed(store, depth)
        return cls(led, store, (await led.begin(act(1, **more))).episode.id)

    async def take(self, *steps: ClientStep) -> StepResult:
        return [await self.led.take(self.id, step) for step in steps][-1]

    async def look(self) -> Any:
        steps = [(row.key, row.request, row.result, row.done) for row in await self.store.steps(self.id)]
        return to_json(await self.store.load(self.id)), steps

    async def refuses(self, step: ClientStep, error: type[Exception] = OutOfOrder) -> str:
        before = await self.look()
        with pytest.raises(error) as caught:
            await self.led.take(self.id, step)
        assert await self.look() == before, "what is refused changes nothing"
        return str(caught.value)


async def test_three_trials_are_recorded_as_the_state_machine_has_them(store: SqliteStore) -> None:
    client = await Client.begun(store)
    await client.take(evaluate(1, "9"), reflect(1, "9", "3 divides it."))
    taken = await client.take(reflect(1, "9", "3 divides it.", reflection="Divide first."))
    assert (taken.memory, taken.completed, taken.over) == (("Divide first.",), 1, False)
    assert (await client.take(act(2))).memory == ("Divide first.",)
    await client.take(evaluate(2, "10"), reflect(2, "10", 0.5, reflection="Not even ones."), act(3))
    taken = await client.take(evaluate(3, "11", passed=True))
    assert (taken.solved, taken.completed, taken.memory) == (True, 3, ("Not even ones.", "Divide first."))
    episode = await store.load(client.id)
    told = [(t.attempt.output, t.feedback, t.reflection and t.reflection.text) for t in episode.trials]
    assert [(o, f and (f.passed, f.text, f.score, f.source), r) for o, f, r in told] == [
        ("9", (False, "3 divides it.", None, "client"), "Divide first."),
        ("10", (False, "0.5", 0.5, "client"), "Not even ones."),
        ("11", (True, "", None, "client"), None),
    ]
    assert episode.stop
    assert (episode.stop.reason, episode.stop.detail) == ("solved", "trial 3 passed")
    assert episode.usage.cost is None, "what the client's thinking cost is not known"
    keys = [row.key for row in await store.steps(client.id)]
    assert keys[:4] == [
        "trial.1/act/client#1",
        "trial.1/evaluate/client#1",
        "trial.1/reflect/client#1",
        "trial.2/act/client#1",
    ]
    assert all(row.done for row in await store.steps(client.id))
    assert await store.holder(client.id) is None


async def test_the_last_reflection_exhausts_it(store: SqliteStore) -> None:
    client = await Client.begun(store)
    await client.take(evaluate(1, "9"))
    taken = await client.take(reflect(1, "9", trials=1, reflection="r"))
    assert taken.over
    assert not taken.solved
    assert taken.episode.stop
    assert (taken.episode.stop.reason, taken.episode.stop.detail) == ("exhausted", "1 of 1 try used")
    assert "this episode is over: exhausted" in await client.refuses(act(2, 5))


ORDERS: dict[str, tuple[list[ClientStep], ClientStep, str]] = {
    "an evaluator before the actor": ([], evaluate(2, "9"), "expected the evaluator step of trial 1"),
    "another trial": ([], act(2), "expected the evaluator step of trial 1, got the actor step of trial 2"),
    "no evaluator": ([], reflect(1, "9"), "got the self-reflection step of trial 1"),
    "no reflection": ([evaluate(1, "9")], act(2), "expected the self-reflection step of trial 1"),
    "an unfinished one": ([evaluate(1, "9"), reflect(1, "9")], act(2), "of trial 1 with its reflection"),
    "no actor": ([evaluate(1, "9"), reflect(1, "9", reflection="r")], evaluate(2, "8"), "the actor step of trial 2"),
}
DIFFER: dict[str, tuple[list[ClientStep], ClientStep, str]] = {
    "task": ([], act(1, prompt="Another."), "a different task: 'Name a prime above 8.'"),
    "memory": ([], act(1, memory=("m",)), "a different memory"),
    "output": ([evaluate(1, "9")], evaluate(1, "7"), "a different output: '9'"),
    "output reflected on": ([evaluate(1, "9")], reflect(1, "7"), "a different output: '9'"),
    "score": ([evaluate(1, "9"), reflect(1, "9", "no")], reflect(1, "9", "yes"), "a different verdict: 'failed, no'"),
    "verdict": (
        [evaluate(1, "9"), reflect(1, "9")],
        evaluate(1, "9", passed=True),
        "a different verdict: 'failed, no'",
    ),
    "passed": ([evaluate(1, "9", passed=True)], reflect(1, "9", reflection="r"), "a different verdict: 'passed'"),
    "reflection": (
        [evaluate(1, "9"), reflect(1, "9", reflection="r")],
        reflect(1, "9", reflection="q"),
        "a different reflection: 'r'",
    ),
    "a reflection of what passed": (
        [evaluate(1, "9"), reflect(1, "9", passed=True, reflection="r")],
        reflect(1, "9", passed=True),
        "a different reflection: 'r'",
    ),
}


@pytest.mark.parametrize("case", ORDERS)
async def test_a_step_out_of_order_is_refused_and_says_what_was_expected(store: SqliteStore, case: str) -> None:
    taken, wrong, said = ORDERS[case]
    client = await Client.begun(store)
    if taken:
        await client.take(*taken)
    assert said in await client.refuses(wrong)


@pytest.mark.parametrize("case", DIFFER)
async def test_a_step_that_was_taken_in_other_words_is_refused(store: SqliteStore, case: str) -> None:
    taken, wrong, said = DIFFER[case]
    client = await Client.begun(store)
    if taken:
        await client.take(*taken)
    error = await client.refuses(wrong, InvalidInput)
    assert said in error
    assert "the expected step is " in error


async def test_a_repeated_step_is_answered_as_it_was_and_recorded_once(store: SqliteStore) -> None:
    client = await Client.begun(store, memory=("before",))
    steps = [
        act(1),
        evaluate(1, "9"),
        reflect(1, "9"),
        reflect(1, "9", reflection="r"),
        act(2),
        evaluate(2, "10"),
        reflect(2, "10", reflection="q"),
        act(3),
        evaluate(3, "11"),
        reflect(3, "11", passed=True),
    ]
    first = [await client.take(step) for step in steps]
    assert [taken.memory for taken in first[-3:]] == [("q", "r", "before")] * 3
    whole = await client.look()
    for led in (client.led, ClientLed(store)):
        again = Client(led, store, client.id)
        for step, was in zip(steps, first, strict=True):
            now = await again.take(step)
            assert now.memory == was.memory, str(step)
            if step.reflection or step.passed:
                assert (now.completed, now.over) == (was.completed, was.over), str(step)
    assert await client.look() == whole


async def test_how_many_trials_are_planned_counts_when_the_reflection_comes_first(store: SqliteStore) -> None:
    client = await Client.begun(store)
    await client.take(evaluate(1, "9"), reflect(1, "9", reflection="r"))
    before = await client.look()
    assert not (await client.take(reflect(1, "9", reflection="r", trials=1))).over
    assert await client.look() == before
    await client.take(act(2, 2), evaluate(2, "10", 5))
    assert (await client.take(reflect(2, "10", reflection="q", trials=2))).over
    assert (await client.take(reflect(2, "10", reflection="q", trials=9))).over


async def test_a_result_that_was_cut_off_from_its_event_binds_nobody(store: SqliteStore) -> None:
    client = await Client.begun(store)
    lease = await store.acquire(client.id, "dead", 30)
    await store.finish_step(lease, "trial.1/act/client#1", {"output": "lost"})
    await store.release(lease)
    await client.take(evaluate(1, "9"))
    (row, _) = await store.steps(client.id)
    assert row.result == {"output": "9"}
    assert (await store.load(client.id)).trials[0].attempt.output == "9"


async def test_a_verdict_can_follow_an_evaluator_step_without_one(store: SqliteStore) -> None:
    client = await Client.begun(store)
    assert not (await client.take(evaluate(1, "11", passed=False))).over
    assert (await client.take(evaluate(1, "11", passed=True, score=1))).solved
    episode = await store.load(client.id)
    assert episode.best
    assert episode.best.feedback
    assert (episode.best.feedback.score, episode.best.feedback.text) == (1.0, "1")


async def test_the_memory_is_a_window_and_an_override_takes_its_place(store: SqliteStore) -> None:
    client = await Client.begun(store, depth=2, memory=("c", "b", "a"))
    assert (await client.take(act(1))).memory == ("c", "b")
    await client.take(evaluate(1, "x"))
    assert (await client.take(reflect(1, "x", reflection="d"))).memory == ("d", "c")
    assert (await client.take(act(2))).memory == ("d", "c")
    await client.take(evaluate(2, "y", memory=()))
    assert (await client.take(reflect(2, "y"))).memory == ()
    assert (await client.take(reflect(2, "y", memory=("m",), reflection="e"))).memory == ("e", "m")
    assert (await client.take(act(3))).memory == ("e", "m")


async def test_it_goes_on_after_the_process(store: SqliteStore) -> None:
    client = await Client.begun(store)
    for step in (evaluate(1, "9"), reflect(1, "9"), reflect(1, "9", reflection="r"), act(2)):
        taken = await ClientLed(store).take(client.id, step)
    assert taken.memory == ("r",)


async def test_two_processes_take_turns(store: SqliteStore) -> None:
    """Each has read it before the other wrote: what was read counts no longer."""
    first = await Client.begun(store)
    second = Client(ClientLed(store), store, first.id)
    await second.take(act(1))
    await first.take(evaluate(1, "9"))
    await second.take(reflect(1, "9"))
    await first.take(reflect(1, "9", reflection="r"))
    assert (await second.take(act(2))).memory == ("r",)


async def test_one_waits_for_the_other_and_not_for_ever(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await Client.begun(store)
    lease = await store.acquire(client.id, "elsewhere:1:x", 30)
    waiting = asyncio.create_task(client.take(evaluate(1, "9")))
    done, _ = await asyncio.wait({waiting}, timeout=0.1)
    assert not done
    await store.release(lease)
    await asyncio.wait_for(waiting, 10)
    await store.acquire(client.id, owner(), 30)
    monkeypatch.setattr("mulligan.app.client_led.WAIT", 0.1)
    assert "is in use by" in await client.refuses(reflect(1, "9"), LeaseLost)


async def test_the_same_step_many_times_at_once_is_recorded_once(store: SqliteStore) -> None:
    client = await Client.begun(store)
    other = Client(ClientLed(store), store, client.id)
    await asyncio.gather(*(one.take(evaluate(1, "9")) for one in (client, other) * 10))
    await asyncio.gather(*(one.take(reflect(1, "9", reflection="r")) for one in (client, other) * 10))
    assert len(await store.events(client.id)) == 3


async def test_whose_it_is_counts(store: SqliteStore) -> None:
    led = ClientLed(store)
    mine = (await led.begin(act(1), "mine")).episode
    assert mine.agent == "mine"
    await led.take(mine.id, act(1), "mine")
    await led.take(mine.id, act(1))
    unknown = await missing(led, "0" * 12 + ".1", "other")
    assert await missing(led, mine.id, "other") == unknown.replace("0" * 12 + ".1", mine.id)
    await led.take(mine.id, act(1), "mine")
    assert await missing(ClientLed(store), mine.id, "") == unknown.replace("0" * 12 + ".1", mine.id)


async def missing(led: ClientLed, id: str, agent: str) -> str:
    with pytest.raises(NotFound) as caught:
        await led.take(id, act(1), agent)
    return str(caught.value)


async def test_an_episode_that_no_client_leads_is_none_here(store: SqliteStore) -> None:
    await store.create(Episode("solved.1", Task(TASK), "solved"))
    assert await missing(ClientLed(store), "solved.1", "") == "There is no episode 'solved.1' in this store."


async def test_resuming_says_who_can_go_on(store: SqliteStore) -> None:
    client = await Client.begun(store)
    with pytest.raises(InvalidInput, match=r"controlled by an MCP client.*episodeId.*mulligan runs show"):
        await mulligan.resume(client.id, store=store)


@pytest.mark.parametrize(("trial", "trials"), [(0, 1), (2, 1), (1, 1001), (-1, -1)])
def test_trials_that_cannot_be_are_refused(trial: int, trials: int) -> None:
    with pytest.raises(InvalidInput, match="out of range"):
        act(trial, trials)


async def test_it_begins_with_the_first_actor_step(store: SqliteStore) -> None:
    for step in (act(2), evaluate(1, "9")):
        with pytest.raises(OutOfOrder, match="expected the actor step of trial 1"):
            await ClientLed(store).begin(step)
    assert await store.list() == ()


@pytest.mark.parametrize("turns", range(0, 40, 3))
async def test_a_step_that_is_cancelled_can_be_taken_again(store: SqliteStore, turns: int) -> None:
    """Wherever it was: what it had written stays, and is not written twice."""
    client = await Client.begun(store)
    for step in (evaluate(1, "9"), reflect(1, "9", reflection="r"), act(2), evaluate(2, "11", passed=True)):
        cancelled = asyncio.create_task(client.take(step))
        for _ in range(turns):
            await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait({cancelled}, timeout=10)
        await client.take(step)
    assert await store.holder(client.id) is None
    episode = await store.load(client.id)
    assert episode.solved
    assert [(t.attempt.output, t.reflection and t.reflection.text) for t in episode.trials] == [
        ("9", "r"),
        ("11", None),
    ]
    assert len(await store.events(client.id)) == 6
    assert [row.key for row in await store.steps(client.id) if not row.done] == []
