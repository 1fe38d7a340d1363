"""Quotas: counted over servers and restarts, refused with the time at which they are free again."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from each_row import each_row
from mcp import Client
from serving import over, served

from mulligan.app.config import load
from mulligan.app.memory import Bank
from mulligan.app.quotas import Quota, QuotaExceeded, Quotas, Used
from mulligan.core.errors import InvalidInput
from mulligan.core.operations import asked, operation, watched_by
from mulligan.core.protocols import Store
from mulligan.core.questions import Answer, Message, Question, Sampling
from mulligan.core.records import Usage
from mulligan.core.work_queue import QUOTA
from mulligan.store import open_store

QUESTION = Question((Message("user", "?"),))


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory:") as opened:
        yield opened


class Priced:
    """A model whose answers take 15 tokens and cost this; None: nobody knows."""

    name = id = "a model"

    def __init__(self, cost: float | None) -> None:
        self._cost = cost

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        return Answer("yes", self.id, Usage(10, 5, 1, self._cost))


def quotas(store: Store, *texts: str, seconds: float = 0.0) -> Quotas:
    return Quotas(Quota.parse(texts), store.memory.queue, seconds=seconds)


async def used(store: Store, agent: str) -> Used:
    (work,) = await store.memory.queue.pending(agent, kind=QUOTA)
    return Used(**{name: work.payload[name] for name in Used.__dataclass_fields__})


async def test_calls_beyond_the_quota_are_refused_for_that_agent_alone(store: Store) -> None:
    limited = quotas(store, "calls=2")
    for _ in range(2):
        async with limited.call("anna"):
            pass
    with pytest.raises(QuotaExceeded, match=r"'anna' .* 2 of 2 calls\. It resets at 00:00 UTC, in \d+ h \d+ min"):
        async with limited.call("anna"):
            pass
    async with limited.call("ben"):
        pass
    assert await used(store, "anna") == Used(calls=2)


async def test_servers_on_one_store_share_it_and_a_restart_forgets_nothing(store: Store) -> None:
    one, other = quotas(store, "calls=3"), quotas(store, "calls=3")
    for server in (one, other, one):
        async with server.call("anna"):
            pass
    for server in (one, other, quotas(store, "calls=3")):
        with pytest.raises(QuotaExceeded):
            async with server.call("anna"):
                pass
    assert await used(store, "anna") == Used(calls=3)


async def test_calls_at_once_are_all_counted(store: Store) -> None:
    limited = quotas(store, "calls=100")

    async def one(n: int) -> None:
        async with limited.call("anna"):
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        for n in range(30):
            tasks.create_task(one(n))
    await limited.save()
    assert await used(store, "anna") == Used(calls=30)


async def test_what_is_not_saved_yet_is_saved_in_the_end(store: Store) -> None:
    limited = quotas(store, "calls=9", seconds=1000)
    for _ in range(3):
        async with limited.call("anna"):
            pass
    await limited.save()
    await limited.save()
    assert await used(store, "anna") == Used(calls=3)


@pytest.mark.parametrize(
    ("quota", "cost", "why"),
    [
        ("tokens=20", 0.5, r"30 of 20 tokens"),
        ("cost=0.75", 0.5, r"\$1\.00 of \$0\.75"),
        ("cost=0.75", None, r"price is unknown, so the limit of \$0\.75 cannot be enforced"),
    ],
)
async def test_what_models_take_counts_for_the_agent_that_is_served(
    store: Store, quota: str, cost: float | None, why: str
) -> None:
    limited = quotas(store, quota)
    with watched_by(limited.watch):
        async with limited.call("anna"):  # a call that has begun is finished
            for _ in range(2):
                await asked(Priced(cost), QUESTION, Sampling(), "actor")
        await asked(Priced(cost), QUESTION, Sampling(), "actor")  # for nobody
        with pytest.raises(QuotaExceeded, match=why):
            async with limited.call("anna"):
                pass
    assert (await used(store, "anna")).tokens == 30


async def test_work_in_the_background_is_paid_for_by_whose_work_it_is(store: Store) -> None:
    limited = quotas(store, "tokens=1000")
    with watched_by(limited.watch):
        async with limited.call("anna"):
            with operation("upkeep", "extract", {"agent": "ben"}):
                await asked(Priced(0.1), QUESTION, Sampling(), "extractor")
        await limited.save()
    assert (await used(store, "anna")).tokens == 0
    assert (await used(store, "ben")).tokens == 15


async def test_another_day_begins_at_nothing_and_the_old_one_is_put_away(store: Store) -> None:
    queue = store.memory.queue
    await queue.enqueue(QUOTA, "anna", {"day": "2020-01-01", "calls": 9, "tokens": 0, "cost": 0.0, "unpriced": 0},
                        key="2020-01-01", waiting=True)  # fmt: skip
    async with quotas(store, "calls=2").call("anna"):
        pass
    assert await used(store, "anna") == Used(calls=1)


async def test_it_is_no_work_that_a_bank_shows() -> None:
    async with Bank.open("anna") as bank:
        async with open_store(load().store) as store, quotas(store, "calls=2").call("anna"):
            pass
        assert await bank.pending() == ()
        assert await bank.work() == 0


@each_row("text", ["calls", "calls=", "calls=many", "calls=0", "calls=-1", "cost=inf", "cost=nan", "days=3"])
def test_a_quota_that_cannot_be(text: str) -> None:
    with pytest.raises(InvalidInput):
        Quota.parse([text])


@pytest.mark.slow
async def test_a_server_refuses_and_remembers_after_a_restart() -> None:
    env = {"MULLIGAN_TOKEN": "anna:token-of-anna-16-chars ben:token-of-ben-16-characters"}
    with served("--quota", "calls=2", "--metrics", env=env) as server:
        async with Client(over(server.url, "token-of-anna-16-chars"), mode="legacy") as client:
            for _ in range(2):
                assert not (await client.call_tool("retrieve_memory", {"query": "x"})).is_error
            refused = await client.call_tool("retrieve_memory", {"query": "x"})
            assert refused.is_error
            assert "2 of 2 calls" in json.dumps(refused.model_dump(mode="json"))
    with served("--quota", "calls=2", env=env) as server:
        async with Client(over(server.url, "token-of-anna-16-chars"), mode="legacy") as client:
            assert (await client.call_tool("retrieve_memory", {"query": "x"})).is_error
        async with Client(over(server.url, "token-of-ben-16-characters"), mode="legacy") as client:
            assert not (await client.call_tool("retrieve_memory", {"query": "x"})).is_error
