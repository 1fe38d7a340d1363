"""Must show: the studio in headless Chromium: a run watched live, by keyboard alone, harmless whatever is recorded, and
without violations of axe-core in light and dark. Screenshots at three widths go to `MULLIGAN_TEST_SCREENS`, if set.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pytest
from bench_reports import case, recorded
from live_story import TASK
from node_clients import shared_package
from studio_kit import HOSTILE, keep, solved

from mulligan.app.config import load
from mulligan.app.memory import open_bank
from mulligan.app.service import Service
from mulligan.hooks.journal import Journal
from mulligan.hooks.project import project_id
from mulligan.sessions.events import Notice
from mulligan.sessions.pairs import TAG
from mulligan.store import open_store
from mulligan.studio.serving import serve_studio

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium"),
    pytest.mark.skipif(find_spec("playwright") is None, reason="needs playwright: pip install playwright"),
]

AXE = "4.14.1"
WIDTHS = (390, 800, 1280, 1920)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
MOST_PAGES = 60
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@asynccontextmanager
async def served(*, write: bool = False) -> AsyncGenerator[str]:
    """The address of a studio over the store of this test's home."""
    stop, url = asyncio.Event(), asyncio.Queue[str]()
    serving = asyncio.create_task(serve_studio(Service(), url.put_nowait, write=write, stop=stop))
    try:
        yield await asyncio.wait_for(url.get(), 30)
    finally:
        stop.set()
        await asyncio.wait_for(serving, 30)


def api() -> Any:
    """Playwright, which has no place in the extras: without it these tests are skipped."""
    return import_module("playwright.async_api")


@asynccontextmanager
async def browser() -> AsyncGenerator[Any]:
    async with api().async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        try:
            yield chromium
        finally:
            await chromium.close()


async def test_a_run_is_watched_live_from_start_to_end() -> None:
    expect = api().expect
    expect.set_options(timeout=30_000)
    async with served() as url, browser() as chromium:
        page = await chromium.new_page()
        await page.goto(f"{url}/runs")
        await expect(page.get_by_text("No runs have been recorded here yet.")).to_be_visible()
        await expect(page.locator(".live")).to_be_visible()
        await page.evaluate("window.stays = true")
        running = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("live_story.py")),
            str(load().store),
            stdin=asyncio.subprocess.PIPE,
        )
        assert running.stdin is not None
        try:
            await expect(page.locator(".badge.going", has_text="running")).to_be_visible()
            assert await page.evaluate("window.stays")  # the page was not loaded again
            await page.get_by_role("link", name=TASK).click()
            await page.evaluate("window.stays = true")
            doing = page.get_by_role("status")
            await expect(doing).to_contain_text("try 1 of 3: trying (model.actor)")
            running.stdin.write(b"red\n")
            await expect(page.locator("#trial-1 > h2 .badge.bad")).to_be_visible()
            await expect(doing).to_contain_text("try 1 of 3: reflecting")
            await page.locator("#trial-1 summary", has_text="What the model was shown").click()
            running.stdin.write(b"I said red; I must say green, the word that the check asks for.\n")
            await expect(page.locator("#trial-1 .lesson")).to_contain_text("I must say green")
            await expect(doing).to_contain_text("try 2 of 3: trying")
            running.stdin.write(b"green\n")
            await expect(page.locator("#trial-2 > h2 .badge.ok")).to_be_visible()
            await expect(page.locator(".bar")).to_contain_text("solved")
            await expect(page.locator("#trial-2 ins")).to_contain_text("green")
            # what was folded out stays so, and nothing listens any more
            await expect(page.locator("#trial-1 details[open]")).to_have_count(1)
            assert await page.evaluate("window.stays")
            await expect(page.locator("html[data-following]")).to_have_count(0)
        finally:
            running.stdin.close()
            assert await asyncio.wait_for(running.wait(), 30) == 0


async def filled() -> str:
    """A store and a bank with a bit of everything, some of it hostile; the id of an episode."""
    async with open_bank("") as bank:
        await bank.add("Pay at once", "Pay the order before it is sent.")
        held = await bank.add("Pay late", "Pay the order after a month.")
        await bank.retire(held.id, HOSTILE)
        await bank.add(
            f"Water {HOSTILE}", f"Water plants {HOSTILE}", description=f"When {HOSTILE}", tags=(HOSTILE[:60],)
        )
    async with open_store(load().store) as store:
        await solved(store)
        episode = await solved(store, f"Say green {HOSTILE}")
        await keep(store, recorded(case(0, 1), case(0, 0), case(1), id="a1"), recorded(case(0, 1), case(1), id="b2"))
    return episode.id


async def test_hostile_text_does_nothing_in_a_browser() -> None:
    id = await filled()
    async with served() as url, browser() as chromium:
        page = await chromium.new_page()
        happened: list[str] = []
        listen: Any = page.on
        listen("dialog", lambda dialog: happened.append(dialog.message))  # pyright: ignore
        listen("request", lambda request: request.url.startswith(url) or happened.append(request.url))  # pyright: ignore
        listen("console", lambda message: happened.append(message.text))  # pyright: ignore
        await page.goto(f"{url}/bank?state=all")
        lesson = await page.get_by_role("link", name="Water <script>").get_attribute("href")
        for path in ("/runs", f"/runs/{id}", f"/runs/{id}/steps/1", "/bank?state=all", lesson):
            await page.goto(f"{url}{path}")
            assert await page.get_by_text("<script>alert(1)</script>").count() > 0
            assert await page.locator("main img").count() == 0
        assert happened == []


async def test_lessons_are_merged_and_unmerged() -> None:
    async with open_bank("") as bank:
        for n in (1, 2):
            await bank.add(f"Pay {n}", f"Pay the order {n} times.")
    async with served(write=True) as url, browser() as chromium:
        page = await chromium.new_page()
        await page.goto(f"{url}/bank")
        for n in (1, 2):
            await page.get_by_label(f"Select Pay {n}").check()
        await page.get_by_role("button", name="Compare or merge selected").click()
        await page.get_by_label("Title").fill("Pay once")
        await page.get_by_label("What to do").fill("Pay each order once.")
        await page.get_by_role("button", name="Merge", exact=True).click()
        await page.get_by_role("heading", name="Pay once", level=1).wait_for()
        assert await active() == ["Pay once"]
        await page.get_by_role("button", name="Unmerge").click()
        await page.get_by_role("heading", name=re.compile("Pay [12]"), level=1).wait_for()
        assert await active() == ["Pay 1", "Pay 2"]


async def active() -> list[str]:
    """The titles of the lessons that agents may be shown."""
    async with open_bank("") as bank:
        return sorted(lesson.title for lesson in await bank.list())


async def test_a_selection_is_kept_and_keys_search_sort_and_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_bank("") as bank:
        for n in range(60):
            await bank.add(f"Pay {n}", f"Pay the order {n} times.")
    async with open_bank(project_id(str(tmp_path)), project="") as bank:
        for n in range(3):
            await bank.add(f"Candidate {n}", f"works: make {n}", nature="fact", confirmed=False, tags=(TAG,))
    with Journal() as journal:
        journal.seen(Notice("claude", "start", "s1", str(tmp_path)), project_id(str(tmp_path)))
    async with open_store(load().store) as store:
        for task in ("Say green b", "Say green a"):
            await solved(store, task)
    async with served(write=True) as url, browser() as chromium:
        page = await chromium.new_page()
        await page.goto(f"{url}/bank?bank=")
        await page.get_by_label("Select Pay 59").check()
        await page.get_by_role("link", name="Older", exact=True).click()
        await page.get_by_text("1 selected, 1 not on this page").wait_for()
        await page.get_by_label("Select Pay 3", exact=True).check()
        await page.get_by_label("Sort by").select_option("uses")  # a filter applies at once
        await page.wait_for_url("**sort=uses**")
        await page.get_by_text("2 selected").wait_for()
        await page.get_by_role("button", name="Compare or merge selected").click()
        await page.get_by_role("heading", name="Compare 2 lessons").wait_for()

        await page.goto(f"{url}/runs")
        await page.keyboard.press("/")
        assert await page.evaluate("document.activeElement.name") == "q"
        await page.get_by_role("button", name="Task").click()
        assert await page.locator("tbody a").all_text_contents() == ["Say green a", "Say green b"]
        await page.get_by_role("button", name="Task").click()
        assert await page.locator("tbody a").all_text_contents() == ["Say green b", "Say green a"]
        for name in "ab":
            await page.get_by_label(f"Select Say green {name}").check()
        await page.get_by_role("button", name="Rate selected").click()
        await page.get_by_text("1 more run to rate").wait_for()
        await page.get_by_role("button", name="Rate", exact=True).click()
        await page.get_by_text("the last of the selected runs").wait_for()

        await page.goto(f"{url}/hooks")
        first = await page.locator("[data-review] a").first.text_content()
        await page.keyboard.press("s")  # leaves the first
        await page.keyboard.press("d")
        await page.get_by_role("heading", name="Candidates to review (2)").wait_for()
        await page.wait_for_load_state()  # the heading is there before the page hears keys
        await page.keyboard.press("k")
        await page.get_by_role("heading", name="Candidates to review (1)").wait_for()
        await page.get_by_role("heading", name="Lessons kept (1)").wait_for()
        assert first is not None


async def test_the_keyboard_alone_is_enough() -> None:
    await filled()
    async with served() as url, browser() as chromium:
        page = await chromium.new_page()
        await page.goto(f"{url}/benchmarks")

        async def focused() -> str:
            return await page.evaluate("document.activeElement.textContent.trim() || document.activeElement.name")

        async def tab_to(text: str) -> None:
            for _ in range(40):
                await page.keyboard.press("Tab")
                if (await focused()).startswith(text):
                    return
            pytest.fail(f"No Tab leads to {text!r}.")

        await tab_to("Skip to content")
        await page.keyboard.press("Enter")
        assert await page.evaluate("document.activeElement.id") == "main"
        await page.goto(f"{url}/runs")
        await tab_to("q")
        await page.keyboard.type("say GREEN")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/runs?q=say+GREEN*")
        await tab_to("Say green")
        await page.keyboard.press("Enter")
        await page.wait_for_url(re.compile(r"/runs/[^?]+$"))
        await tab_to("What the model was shown")
        await page.keyboard.press("Enter")
        assert await page.locator("#trial-1 details[open]").count() == 1


async def addresses(page: Any, url: str) -> list[str]:
    """Every page that links lead to, one for each kind of address; pictures as files are no pages."""
    found, seen = ["/", "/runs", "/nothing"], set[str]()
    for path in found:
        await page.goto(f"{url}{path}")
        links = await page.eval_on_selector_all("a[href^='/']", "all => all.map(one => one.getAttribute('href'))")
        for link in links:
            address = link.partition("#")[0]
            kind = re.sub(r"=[^&]+", "=", re.sub(r"[0-9a-f]{6,}[.\w]*|\d+", "ID", address))
            if "format=svg" in address or address.endswith(".svg"):
                continue
            if kind not in seen and address not in found and len(found) < MOST_PAGES:
                seen.add(kind)
                found.append(address)
    return found


async def test_axe_finds_nothing_on_any_page_and_each_is_drawn_at_three_widths(tmp_path: Path) -> None:
    await filled()
    axe = shared_package("axe-core", "axe-core", AXE, tmp_path) / "node_modules" / "axe-core" / "axe.min.js"
    screens = Path(os.environ.get("MULLIGAN_TEST_SCREENS") or tmp_path / "screens")
    found = dict[str, list[str]]()
    async with served(write=True) as url, browser() as chromium:
        page = await chromium.new_page()
        paths = await addresses(page, url)
        for scheme in SCHEMES:
            # axe is a script of the test, which the pages' policy would refuse
            context = await chromium.new_context(color_scheme=scheme, bypass_csp=True)
            page = await context.new_page()
            for path in paths:
                await page.goto(f"{url}{path}")
                await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
                for width in WIDTHS:
                    await page.set_viewport_size({"width": width, "height": 900})
                    overflow = await page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
                    assert not overflow, f"{path} is wider than {width} pixels"
                    name = re.sub(r"\W+", "-", path).strip("-")[:60]
                    await page.screenshot(path=screens / f"{name}-{width}-{scheme}.png", full_page=True)
                await page.evaluate(axe.read_text(encoding="utf-8"))
                tags = {"runOnly": {"type": "tag", "values": TAGS}}
                result = await page.evaluate("tags => axe.run(document, tags)", tags)
                if violations := result["violations"]:
                    said = [f"{one['id']}: {[node['html'][:200] for node in one['nodes']][:3]}" for one in violations]
                    found[f"{path} ({scheme})"] = said
    assert len(paths) >= 15
    assert found == {}
