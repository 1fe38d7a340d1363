"""What every queue keeps to, through the protocol alone."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from lesson_kit import KINDS, STORES

from mulligan.core.errors import LeaseLost, NotFound, StoreError
from mulligan.core.lesson_store import Memory
from mulligan.core.work_queue import Claim, Queue, Queued


@pytest.fixture(params=KINDS)
async def two(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Memory, Memory]]:
    """One store, opened twice."""
    opened = STORES[request.param](tmp_path), STORES[request.param](tmp_path)
    yield opened
    for memory in opened:
        await memory.close()


@pytest.fixture
def queue(two: tuple[Memory, Memory]) -> Queue:
    assert isinstance(two[0].queue, Queue)
    return two[0].queue


async def got(queue: Queue, *kinds: str, owner: str = "me", seconds: float = 60) -> tuple[Queued, Claim]:
    claimed = await queue.claim(owner, seconds, kinds or ("k",))
    assert claimed is not None
    return claimed


async def test_work_from_beginning_to_end(queue: Queue) -> None:
    id = await queue.enqueue("k", "a", {"text": "lone \ud83d", "list": [1, None]})
    queued = await queue.look("a", id)
    assert (queued.status, queued.payload, queued.attempts) == ("queued", {"text": "lone \ud83d", "list": [1, None]}, 0)
    assert await queue.claim("me", 60, ["other"]) is None
    assert await queue.claim("me", 60, []) is None
    work, claim = await got(queue, "other", "k")
    assert (work.id, work.kind, work.agent_id, work.status, work.attempts) == (id, "k", "a", "running", 1)
    assert work.payload == queued.payload
    assert await queue.claim("other", 60, ["k"]) is None
    await queue.renew(claim, 60)
    await queue.finish(claim, {"made": 3})
    done = await queue.look(None, id)
    assert (done.status, done.result, done.payload, done.error) == ("done", {"made": 3}, None, "")
    assert done.finished is not None
    assert done.finished >= done.created
    assert await queue.pending() == ()


async def test_the_oldest_first_over_all_kinds_and_agents(queue: Queue) -> None:
    ids = [await queue.enqueue(kind, agent, {}) for kind, agent in (("x", "a"), ("y", "b"), ("x", "b"))]
    assert [(await got(queue, "y", "x"))[0].id for _ in ids] == ids


async def test_the_depth_counts_what_is_not_done_by_kind_and_status(queue: Queue) -> None:
    assert await queue.depth() == {}
    done = await queue.enqueue("k", "a", 1)
    await queue.enqueue("k", "a", 2)
    await queue.enqueue("k", "b", 3)
    await queue.enqueue("merge", "a", 4, waiting=True)
    work, claim = await got(queue)
    assert work.id == done
    assert await queue.depth() == {"k": {"running": 1, "queued": 2}, "merge": {"waiting": 1}}
    await queue.finish(claim, None)
    assert await queue.depth() == {"k": {"queued": 2}, "merge": {"waiting": 1}}


async def test_the_same_key_is_queued_once_until_it_fails(queue: Queue) -> None:
    id = await queue.enqueue("k", "a", {"n": 1}, key="same")
    assert await queue.enqueue("k", "a", {"n": 2}, key="same") == id
    others = {await queue.enqueue("k", "b", {}, key="same"), await queue.enqueue("j", "a", {}, key="same")}
    assert id not in others
    assert (await queue.look("a", id)).payload == {"n": 1}
    _, claim = await got(queue)
    await queue.finish(claim, None)
    assert await queue.enqueue("k", "a", {}, key="same") == id
    work, claim = await got(queue)
    assert work.agent_id == "b"
    await queue.fail(claim, "no", retry_in=None)
    assert await queue.enqueue("k", "b", {}, key="same") not in {*others, id}


async def test_questions_that_nobody_answers_fill_no_queue(queue: Queue) -> None:
    for _ in range(25):
        await queue.enqueue("k", "a", {}, waiting=True)
    await queue.enqueue("k", "a", {})
    assert len(await queue.pending("a", limit=100)) == 26


async def test_a_full_queue_says_so_and_only_to_its_agent(queue: Queue) -> None:
    for _ in range(20):
        await queue.enqueue("k", "a", {})
    with pytest.raises(StoreError, match="queue of agent 'a' is full: 20 jobs are pending"):
        await queue.enqueue("k", "a", {})
    await queue.enqueue("k", "b", {})
    _, claim = await got(queue)
    await queue.finish(claim, None)
    await queue.enqueue("k", "a", {})
    assert len(await queue.pending("a", limit=100)) == 20
    assert len(await queue.pending(limit=5)) == 5


async def test_a_lease_that_ran_out_is_taken_over_and_the_late_one_is_refused(two: tuple[Memory, Memory]) -> None:
    here, there = two[0].queue, two[1].queue
    id = await here.enqueue("k", "a", {})
    _, late = await got(here, seconds=-1)
    assert (await there.look("a", id)).status == "queued"
    work, claim = await got(there, owner="another", seconds=0)
    assert (work.id, work.attempts, claim.fence) == (id, 2, late.fence + 1)
    for write in (
        here.finish(late, {}),
        here.renew(late, 60),
        here.fail(late, "late", retry_in=None),
        here.waits(late),
    ):
        with pytest.raises(LeaseLost, match="being run by another"):
            await write
    await there.finish(claim, {"by": "another"})
    assert (await here.look("a", id)).result == {"by": "another"}


async def test_a_claim_that_ran_out_and_that_nobody_took_is_still_good(queue: Queue) -> None:
    await queue.enqueue("k", "a", {})
    _, claim = await got(queue, seconds=-1)
    await queue.finish(claim, {})


async def test_the_same_owner_does_not_settle_an_older_claim(queue: Queue) -> None:
    await queue.enqueue("k", "a", {})
    _, first = await got(queue, seconds=-1)
    _, second = await got(queue, seconds=0)
    with pytest.raises(LeaseLost):
        await queue.finish(first, {})
    await queue.finish(second, {})


async def test_failed_work_is_tried_again_when_it_is_due(queue: Queue) -> None:
    id = await queue.enqueue("k", "a", {"n": 1})
    _, claim = await got(queue)
    await queue.fail(claim, "the provider is down", retry_in=3600)
    waiting = await queue.look("a", id)
    assert (waiting.status, waiting.error, waiting.finished) == ("queued", "the provider is down", None)
    assert await queue.claim("me", 60, ["k"]) is None
    younger = await queue.enqueue("k", "a", {})
    assert (await got(queue))[0].id == younger


async def test_work_that_failed_for_good_says_why(queue: Queue) -> None:
    id = await queue.enqueue("k", "a", {"n": 1})
    _, claim = await got(queue)
    await queue.fail(claim, "at once", retry_in=0)
    _, claim = await got(queue)
    await queue.fail(claim, "lone \ud83d", retry_in=None)
    failed = await queue.look("a", id)
    assert (failed.status, failed.error, failed.attempts, failed.payload) == ("failed", "lone \ud83d", 2, {"n": 1})
    assert await queue.claim("me", 60, ["k"]) is None
    assert [work.id for work in await queue.pending("a")] == [id]


async def test_what_waits_is_only_taken(queue: Queue) -> None:
    id = await queue.enqueue("k", "a", {"q": 1}, waiting=True)
    assert (await queue.look("a", id)).status == "waiting"
    assert await queue.claim("me", 60, ["k"]) is None
    work, claim = await queue.take("a", id, "me", 60)
    assert (work.id, work.status, work.payload) == (id, "running", {"q": 1})
    with pytest.raises(LeaseLost, match="is being run by me"):
        await queue.take("a", id, "other", 60)
    await queue.waits(claim, "the answer did not fit")
    waiting = await queue.look("a", id)
    assert (waiting.status, waiting.error) == ("waiting", "the answer did not fit")
    _, claim = await queue.take("a", id, "me", 60)
    await queue.finish(claim, {})
    with pytest.raises(StoreError, match="is not waiting for an answer: it is done"):
        await queue.take("a", id, "me", 60)


async def test_taken_work_waits_again_when_its_taker_is_gone(queue: Queue) -> None:
    id = await queue.enqueue("k", "a", {}, waiting=True)
    await queue.take("a", id, "me", -1)
    assert (await queue.look("a", id)).status == "waiting"
    assert await queue.claim("me", 60, ["k"]) is None
    _, claim = await queue.take("a", id, "other", 0)
    await queue.fail(claim, "later", retry_in=3600)
    assert (await queue.look("a", id)).status == "waiting"


async def test_claimed_work_can_be_left_to_somebody_who_thinks(queue: Queue) -> None:
    id = await queue.enqueue("k", "a", {})
    with pytest.raises(StoreError, match="not waiting for an answer: it is queued"):
        await queue.take("a", id, "me", 60)
    _, claim = await got(queue)
    await queue.waits(claim)
    assert await queue.claim("me", 60, ["k"]) is None
    await queue.take("a", id, "me", 60)


async def test_work_is_behind_the_wall(queue: Queue) -> None:
    id = await queue.enqueue("k", "a", {}, waiting=True)
    for ask in (queue.look("b", id), queue.take("b", id, "me", 60), queue.look("", id), queue.look(None, "none")):
        with pytest.raises(NotFound, match="no pending job"):
            await ask
    assert await queue.pending("b") == ()
    assert [work.id for work in await queue.pending(None)] == [id]


async def test_what_is_not_json_is_refused(queue: Queue) -> None:
    with pytest.raises(StoreError, match="Work of kind k cannot be stored"):
        await queue.enqueue("k", "a", {"x": float("nan")})
    await queue.enqueue("k", "a", {})
    _, claim = await got(queue)
    with pytest.raises(StoreError, match=r"The result of work .* cannot be stored"):
        await queue.finish(claim, {1: 2})


async def test_work_that_is_begun_is_claimed_as_it_is_accepted(two: tuple[Memory, Memory]) -> None:
    mine, other = (memory.queue for memory in two)
    work, claim = await mine.begin("k", "a", {"n": 1}, key="x", owner="me", seconds=60)
    assert claim is not None
    assert (work.status, work.attempts, work.payload) == ("running", 1, {"n": 1})
    again, none = await other.begin("k", "a", {"n": 2}, key="x", owner="other", seconds=60)
    assert (again.id, again.status, none) == (work.id, "running", None)
    assert await other.claim("other", 60, ["k"]) is None
    await mine.fail(claim, "down", retry_in=60.0)
    again, claim = await other.begin("k", "a", {"n": 2}, key="x", owner="other", seconds=60)
    assert claim is not None
    assert (again.id, again.payload) == (work.id, {"n": 1})
    await other.finish(claim, "r")
    done, none = await mine.begin("k", "a", {"n": 3}, key="x", owner="me", seconds=60)
    assert (done.id, done.status, done.result, none) == (work.id, "done", "r", None)


async def test_work_that_is_begun_to_wait_waits_when_it_is_given_back(queue: Queue) -> None:
    work, claim = await queue.begin("k", "a", {}, key="x", owner="me", seconds=60, waiting=True)
    assert claim is not None
    await queue.waits(claim, "stopped")
    assert (await queue.look("a", work.id)).status == "waiting"
    accepted, none = await queue.begin("k", "a", {}, key="y", owner=None, seconds=60)
    assert (accepted.status, none) == ("queued", None)
