"""A page with a form in a real browser, as an environment: headless Chromium, driven by Playwright."""

from __future__ import annotations

import re
import shutil
from importlib import import_module
from typing import Any

from mulligan.plugins import Image, InvalidInput, Outcome, Step, TaskFeedback

_ACTION = re.compile(r"(open|read|done|click|type)(?:\[(.*)\])?")
ACTIONS = "open, read, click[button], type[field|text], done"


class Form:
    """Opens the page of an order at `url`. The task is done when the page says that the order was sent."""

    def __init__(self, *, url: str) -> None:
        if not url.startswith("http://127.0.0.1:"):
            raise InvalidInput(f"form: the page must be served on loopback, not {url}.")
        self._url = url
        self._playwright: Any = None
        self._page: Any = None
        self._screens: list[Image] = []

    async def reset(self) -> str:
        await self.close()
        self._playwright = await import_module("playwright.async_api").async_playwright().start()
        options = {"executable_path": shutil.which("chromium"), "args": ["--no-sandbox", "--disable-gpu"]}
        browser = await self._playwright.chromium.launch(**options)
        self._page = await browser.new_page(viewport={"width": 320, "height": 240})
        self._screens = [await self._screen()]
        return f"A browser with an empty page. Actions: {ACTIONS}."

    def shown(self) -> tuple[Image, ...]:
        return tuple(self._screens[:1])

    async def step(self, action: str) -> Step:
        found = _ACTION.fullmatch(action.strip())
        if found is None:
            return Step(
                action=action, observation=f"That is no action. Actions: {ACTIONS}.", images=(self._screens[-1],)
            )
        said, error = await self._do(found[1], found[2] or "")
        text = await self._text()
        screen = await self._screen()
        self._screens.append(screen)
        sent, ended = "was sent" in text, found[1] == "done" or error is not None
        feedback = TaskFeedback(
            sent,
            error or (None if sent else "wrong_element" if "saved" in text else "wrong_state"),
            expected_state="the page says that the order was sent",
            actual_state=text,
            before=self._screens[-3] if found[1] == "done" else self._screens[-2],
            after=screen,
        )
        outcome = Outcome(float(sent), done=ended, feedback=feedback.to_feedback("form"))
        return Step(action=action, observation=said or text, outcome=outcome, images=(screen,))

    async def close(self) -> None:
        if self._playwright is not None:
            playwright, self._playwright = self._playwright, None
            await self._page.context.browser.close()
            await playwright.stop()

    async def _do(self, verb: str, what: str) -> tuple[str, str | None]:
        """What is to be said, and the kind of error that ends the trial."""
        if verb == "open":
            await self._page.goto(self._url)
        elif verb == "click":
            button = self._page.get_by_role("button", name=what, exact=True)
            if not await button.count():
                return f"There is no button {what!r}.", "not_found"
            await button.click()
        elif verb == "type":
            field, _, text = what.partition("|")
            box = self._page.get_by_label(field, exact=True)
            if not await box.count():
                return f"There is no field {field!r}.", "not_found"
            await box.fill(text)
            return f"{field}: {text}", None
        return "", None

    async def _text(self) -> str:
        return " ".join((await self._page.inner_text("body")).split())

    async def _screen(self) -> Image:
        return Image("image/png", await self._page.screenshot())
