"""The environment of WebShop, as text: search, look, choose options, buy. The reward comes with the purchase.

The actions are those of WebShop's text mode (Yao et al. 2022), and `think[…]` from ReAct. docs/benchmark-webshop.md
lists what differs from WebShop's own code.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from mulligan.bench.webshop import _pages as pages
from mulligan.bench.webshop._shop import Goal, OpenShop, Product, open_shop, reward
from mulligan.plugins import InvalidInput, Outcome, Step

CATALOGUE = Path(__file__).parents[1] / "catalogue.json"
"""A small shop of invented products, for examples and tests."""

_ACTION = re.compile(r"(?:action\s*:)?\s*(search|click|think)\s*\[(.*)\]", re.IGNORECASE | re.DOTALL)


def read_action(text: str) -> tuple[str, str] | None:
    """The kind of action ("search", "click" or "think") and its argument; None for a text that is not an action."""
    match = _ACTION.fullmatch(text.strip())
    return (match[1].lower(), " ".join(match[2].split())) if match else None


class WebShop:
    """The environment. As in WebShop, only the first page has a search. Clicks ignore case.

    Args:
        goal: the id of the goal.
        files: the files of the shop. Empty: the catalogue of this package.
        results: the maximum number of results of a search.
        page: the number of results on a page.
    """

    replayable = True

    def __init__(self, *, goal: str, files: Sequence[str] = (), results: int = 50, page: int = 10) -> None:
        if results < 1 or page < 1:
            raise InvalidInput(f"results and page must be at least 1, not {results} and {page}.")
        self._id, self._files = goal, [Path(file) for file in files] or [CATALOGUE]
        self._max_results, self._page_size = results, page
        self._open_shop: OpenShop | None = None
        self._reward: float | None = None
        self._to_front()

    async def reset(self) -> str:
        """Open the shop. Raises `InvalidInput` for an unknown goal or files that cannot be used."""
        self._open_shop = await asyncio.to_thread(open_shop, self._files)
        if self._id not in self._open_shop.goals:
            raise InvalidInput(f"The shop has no goal {self._id!r}.")
        self._reward = None
        self._to_front()
        return pages.front(self._goal.instruction)

    async def step(self, action: str) -> Step:
        observation = self._answer(read_action(action))
        return Step(action=action, observation=observation, outcome=Outcome(self._reward or 0.0, self._over))

    def critical(self, action: str) -> bool:
        """Whether the action buys something, which ends the trial."""
        kind, what = read_action(action) or ("", "")
        return kind == "click" and what.lower() == pages.BUY.lower() and pages.BUY in self._here()[1]

    async def close(self) -> None:
        self._open_shop = None

    @property
    def _over(self) -> bool:
        """Whether something was bought, which ends the trial."""
        return self._reward is not None

    @property
    def _shop(self) -> OpenShop:
        if self._open_shop is None:
            raise RuntimeError("call reset before the first step")
        return self._open_shop

    @property
    def _goal(self) -> Goal:
        return self._shop.goals[self._id]

    def _to_front(self) -> None:
        self._results: list[Product] | None = None
        self._page = 1
        self._item: Product | None = None
        self._detail = ""
        self._choices: dict[str, str] = {}

    def _answer(self, action: tuple[str, str] | None) -> str:
        """The observation after an action."""
        kind, what = action or ("", "")
        if self._over:
            return "The shopping is over: something was bought."
        if kind == "think":
            return "OK."
        if kind == "search" and self._results is None and what:
            self._results = self._shop.find(what, self._max_results)
            return self._here()[0]
        clickable = self._here()[1]
        name = {name.lower(): name for name in reversed(clickable)}.get(what.lower())
        if kind != "click" or name is None:
            return pages.invalid(clickable, searching=self._results is None)
        return self._click(name)

    def _here(self) -> tuple[str, tuple[str, ...]]:
        """The text of the open page, and what can be clicked on it."""
        if self._results is None:
            return pages.front(self._goal.instruction), ()
        if self._item is None:
            return pages.results(self._results, self._page, self._page_size)
        if self._detail:
            return pages.detail(self._item, self._detail)
        return pages.item(self._item, self._choices)

    def _click(self, name: str) -> str:
        """The observation after a click on something on the open page."""
        if name == pages.BUY:
            return self._buy()
        if name == pages.BACK:
            self._to_front()
        elif self._item is None:
            self._open(name)
        elif self._detail:
            self._detail = ""
        elif name == pages.PREVIOUS:
            self._item, self._choices = None, {}
        elif name in pages.DETAILS:
            self._detail = name
        else:
            option = next(option for option, values in self._item.options.items() if name in values)
            self._choices[option] = name
            return f"{option}: {name} is chosen."
        return self._here()[0]

    def _open(self, name: str) -> None:
        """Go to another page of the results, or to one of their products."""
        if name in (pages.NEXT, pages.PREVIOUS):
            self._page += 1 if name == pages.NEXT else -1
        else:
            self._item = self._shop.shop.by_id[name]

    def _buy(self) -> str:
        assert self._item is not None
        wanted = self._shop.shop.by_id[self._goal.product]
        self._reward = reward(self._goal, wanted, self._item, self._choices).value
        return f"You have bought it. Your score (0.0 to 1.0): {self._reward:.2f}"
