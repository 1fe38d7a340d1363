"""Runs and episodes as pages: what they show, how they are found, and that they follow what is recorded."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx2
from studio_kit import solved, studio_client

from mulligan.app.config import load
from mulligan.app.service import Service
from mulligan.core.episode import Acted, Evaluated, Event, Rated, Recalled, Reflected, Stopped
from mulligan.core.protocols import Store
from mulligan.core.records import (
    Artifact,
    Attempt,
    Check,
    Choice,
    Condensed,
    Edit,
    Episode,
    Feedback,
    Head,
    Image,
    Json,
    Lesson,
    Plan,
    Quality,
    Rating,
    Recall,
    Reflection,
    Step,
    Stop,
    Task,
    Usage,
)
from mulligan.recording.drivers import ASKED, SENTENCE
from mulligan.store import open_store
from mulligan.studio.rendering import PAGE_ROWS
from mulligan.studio.serving import serve_studio


async def many(store: Store, number: int) -> None:
    for n in range(number):
        await store.create(Episode(f"e{n}", Task(f"task {n}"), run=f"r{n}", started=float(n)))


async def test_an_episode_is_told_trial_by_trial() -> None:
    async with open_store(load().store) as store:
        episode = await solved(store)
    async with studio_client() as client:
        page = (await client.get(f"/runs/{episode.id}")).text
        by_run = (await client.get(f"/runs/{episode.run}")).text
    for text in (
        "failed",
        "passed",
        "What it was shown (2 messages)",
        "I must say green, the word that the check asks for.",
        "Changed since trial 1",
        "<del>",
        "<ins>",
        "trial 2 passed",
        "quality",
        "tokens",
    ):
        assert text in page, text
    assert page.count("<ins>") == 1
    assert by_run == page
    assert "data-live" not in page


async def test_a_question_to_a_graph_has_its_answer_in_a_sentence() -> None:
    sentence = "EOMES regulates <b>VHL</b>."
    kinds: tuple[dict[str, Json], ...] = ({"led_by": "langgraph", ASKED: {}}, {})
    async with open_store(load().store) as store:
        for n, settings in enumerate(kinds):
            await store.create(Episode(f"e{n}", Task("Which genes?"), run=f"r{n}", head=Head(settings=settings)))
            lease = await store.acquire(f"e{n}", "test", 60)
            await store.begin_step(lease, f"trial.1/evaluate/{SENTENCE}#1", {}, "hash")
            await store.finish_step(lease, f"trial.1/evaluate/{SENTENCE}#1", sentence)
            await store.release(lease)
    async with studio_client() as client:
        asked, other = [(await client.get(f"/runs/e{n}")).text for n in range(2)]
    assert '<h2 id="h-answer">Answer</h2>\n<pre>EOMES regulates &lt;b&gt;VHL&lt;/b&gt;.</pre>' in asked
    assert "h-answer" not in other, "a step of this name of another kind of run is no answer"


async def test_the_journal_of_an_episode_has_a_page_for_each_step() -> None:
    async with open_store(load().store) as store:
        episode = await solved(store)
        rows = await store.steps(episode.id)
    async with studio_client() as client:
        pages = [(await client.get(f"/runs/{episode.id}/steps/{n + 1}")).text for n in range(len(rows))]
        assert [row.key in page for row, page in zip(rows, pages, strict=True)] == [True] * len(rows)
        assert "Say green" in pages[0]
        assert (await client.get(f"/runs/{episode.id}/steps/{len(rows) + 1}")).status_code == 404


async def test_runs_are_searched_filtered_and_paged_by_the_store() -> None:
    async with open_store(load().store) as store:
        await many(store, PAGE_ROWS + 5)
        lease = await store.acquire("e7", "me", 60)
        await store.append(lease, 0, Acted(1, Attempt("x")))
        await store.append(lease, 1, Stopped(Stop("error", "broken")))
    async with studio_client() as client:
        first = (await client.get("/runs")).text
        assert first.count('<li id="run-') == PAGE_ROWS
        assert "/runs?after=e5" in first
        assert 'data-live="/runs/live"' in first
        second = (await client.get("/runs?after=e5")).text
        assert (second.count('<li id="run-'), "data-live" in second) == (5, False)
        failed = (await client.get("/runs?state=paused")).text
        assert (failed.count('<li id="run-'), "/runs/e7" in failed, "paused: error" in failed) == (1, True, True)
        assert (await client.get("/runs?q=TASK+54")).text.count('<li id="run-') == 1
        assert "No run is like that" in (await client.get("/runs?q=nothing&state=solved")).text
        assert (await client.get("/runs?after=none")).status_code == 404


async def test_a_long_text_is_cut_and_there_in_full_where_asked_for() -> None:
    async with open_store(load().store) as store:
        await store.create(Episode("long", Task("x" * 50_000 + " the end"), run="r"))
    async with studio_client() as client:
        page = (await client.get("/runs/long")).text
        assert len(page) < 15_000
        assert "44,008 more characters" in page
        assert "x the end" in (await client.get("/runs/long?full=1")).text


async def test_a_page_hears_of_what_another_process_records() -> None:
    stop, url = asyncio.Event(), asyncio.Queue[str]()
    serving = asyncio.create_task(serve_studio(Service(), url.put_nowait, stop=stop))
    try:
        at = await asyncio.wait_for(url.get(), 20)
        async with (
            open_store(load().store) as store,
            httpx2.AsyncClient(timeout=20, trust_env=False) as client,
        ):
            await store.create(Episode("e", Task("t"), run="r"))
            for path in ("/runs/live", "/runs/e/live"):
                async with client.stream("GET", f"{at}{path}") as events:
                    assert events.headers["content-type"].startswith("text/event-stream")
                    lines = events.aiter_lines()
                    assert (await anext(lines)).startswith("retry:")
                    lease = await store.acquire("e", "me", 60)
                    async for line in lines:
                        if line == "event: change":
                            break
                    await store.release(lease)
    finally:
        stop.set()
        await asyncio.wait_for(serving, 20)


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
)


async def everything(store: Store) -> str:
    """An episode in which all happened that can happen, though not in one run; its id."""
    image = Image("image/png", PNG)
    await store.create(Episode("all", Task("t", {"file": "a"}, (image,), "sums"), "r", "books", Plan(recalls=True)))
    lease = await store.acquire("all", "me", 60)
    check = Check("rm x", risk="x is gone", decision="change", reason="keep it", change="ls")
    steps = (Step("I look", "ls", "x", check=check, images=(image,)), Step(action="cat x"))
    choice = Choice("evidence", {"evidence": 0.75, "resample": 0.25}, "checks")
    attempt = Attempt("one", steps, artifacts=(Artifact("git", "abc"),), choice=choice, usage=Usage(3, 4, 1, None))
    layers = {"tactical": "Look first.", "strategic": "Plan."}
    condensed = Condensed("All in one.", (0, 1), "m")
    lesson = replace(Reflection.of_layers(layers, notes=("short",)), withheld="It repeats.", condensed=condensed)
    lesson = replace(
        lesson, edits=(Edit("taken", "ada", 1.0, "before it"),), quality=Quality(0.5, {"new": 0.5}, ("Weak.",))
    )
    known = Lesson("l1", "Look", "Look before you leap.", "failure", score=0.8)
    events: list[Event] = [
        Recalled(Recall("receipt1", (known,), 2, threshold=0.5)),
        Acted(1, attempt),
        Evaluated(1, Feedback(False, "no", 0.25, "tests", ("in process",), images=(image,))),
        Reflected(1, lesson),
        Acted(2, Attempt("one")),
        Evaluated(2, Feedback(None, "nobody knows")),
        Stopped(Stop("error", "broken")),
        Rated(Rating(0.5, "ada", 1.0, "so so")),
    ]
    for number, event in enumerate(events):
        await store.append(lease, number, event)
    return "all"


async def test_all_that_a_record_can_hold_is_shown() -> None:
    async with open_store(load().store) as store:
        id = await everything(store)
    async with studio_client() as client:
        page = (await client.get(f"/runs/{id}")).text
        picture = await client.get(f"/runs/{id}/images/3")
        assert (await client.get(f"/runs/{id}/images/4")).status_code == 404
    for text in (
        *(
            'href="/bank/lessons/l1"',
            "relevance 0.80",
            'href="/bank/recalls/receipt1"',
            "<dd>books</dd>",
            "<dd>sums</dd>",
        ),
        *("I look", "x is gone", "change", "evidence 75 %, resample 25 %", "git", "cost unknown"),
        *("Look first.", "It repeats.", "All in one.", "taken by ada; before: before it", "quality 0.50", "Weak."),
        *("failed, score 0.25", "by tests", "Note: in process", "Nothing: the attempt is the same.", "no verdict"),
        *("paused: error", "mulligan runs resume r", "The result was rated 0.5 by ada: so so", "&#34;file&#34;"),
    ):
        assert text in page, text
    assert page.count("<img src=") == 3
    assert (picture.headers["content-type"], picture.content) == ("image/png", PNG)
