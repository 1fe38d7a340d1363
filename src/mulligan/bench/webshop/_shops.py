"""A shop as WebShop has it (Yao et al. 2022): products, goals, and what a purchase is worth. Values and rules only.

It stands in core because the benchmark reads the goals and the environment the products, from the same files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property

_WORD = re.compile(r"[a-z0-9]+(?:[.'][a-z0-9]+)*")
_ALIKE = 0.85
_SMALL = frozenset(
    _WORD.findall("a an and are as at by for from in inch inches is it its of on or our pack set the to up with x")
)
"""Words of a name that say nothing of what a thing is."""

NEEDS = 'The search of WebShop needs an extra: pip install "mulligan[webshop]".'


@dataclass(frozen=True)
class Product:
    """price: what has to be paid at most, in dollars; price_text: as the shop shows it. category: from wide to narrow.

    query: the search that the product belongs to. attributes: hidden knowledge about it, shown on no page.
    options: the values that can be chosen, by name.
    """

    id: str
    name: str
    price: float
    price_text: str = ""
    query: str = ""
    category: tuple[str, ...] = ()
    description: str = ""
    features: tuple[str, ...] = ()
    reviews: tuple[str, ...] = ()
    rating: str = "N.A."
    attributes: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def shown_price(self) -> str:
        return self.price_text or f"${self.price:.2f}"


@dataclass(frozen=True)
class Goal:
    """What a customer wants: `instruction` is told to the agent, the rest is hidden.

    product: the one that was in mind. price: at most this much, in dollars; None: any.
    """

    id: str
    instruction: str
    product: str
    attributes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    price: float | None = None


@dataclass(frozen=True)
class Shop:
    """`products` in the order of their file, which settles ties of a search."""

    products: tuple[Product, ...]
    goals: tuple[Goal, ...]

    @cached_property
    def by_id(self) -> Mapping[str, Product]:
        return {product.id: product for product in self.products}


@dataclass(frozen=True)
class Worth:
    """What a purchase is worth: `value` from 0 to 1, and what it is made of. kind: how well the type of thing fits."""

    value: float
    kind: float
    attributes: int
    options: int
    price: bool


def words(text: str) -> list[str]:
    """Lower case, in order; what a search and the comparisons below go by."""
    return _WORD.findall(text.lower())


def alike(one: str, other: str) -> bool:
    """Whether two short texts mean the same: the words of one stand in the other, or they differ by a few letters."""
    here, there = set(words(one)), set(words(other))
    common = sorted(here & there)
    forms = [" ".join(part) for part in (common, [*common, *sorted(here - there)], [*common, *sorted(there - here)])]
    pairs = [(forms[0], forms[1]), (forms[0], forms[2]), (forms[1], forms[2])]
    return max(_ratio(a, b) for a, b in pairs if a and b) > _ALIKE if here and there else False


def worth(goal: Goal, wanted: Product, bought: Product, chosen: Mapping[str, str]) -> Worth:
    """WebShop's rule: type times (attributes + options + price that fit) / (attributes + options that are wanted + 1).

    wanted: the product that the goal had in mind. chosen: the options of the purchase, by name.
    Source: Yao et al. 2022, section 3, with the thresholds of its code. Words of a name stand in for its parsed nouns,
    and colours are compared as they are called.
    """
    text = " ".join([bought.name, *bought.features, bought.description]).lower()
    attributes = sum(
        any(alike(has, want) for has in bought.attributes) or want.lower() in text for want in goal.attributes
    )
    options = sum(any(alike(value, want) for value in chosen.values()) for want in goal.options)
    price = goal.price is None or bought.price <= goal.price
    kind = _kind(wanted, bought)
    share = (attributes + options + price) / (len(goal.attributes) + len(goal.options) + 1)
    return Worth(kind * share, kind, attributes, options, price)


def _kind(wanted: Product, bought: Product) -> float:
    """1 for the same type of thing, less for another, 0 where the names have no word in common."""
    names = _telling(wanted.name)
    common = len(names & _telling(bought.name)) / len(names) if names else 0.2
    if common == 0:
        return 0.0
    if common < 0.1:
        return 0.1
    same = wanted.query == bought.query or len({*wanted.category} & {*bought.category}) >= 2 or common > 0.2
    return 1.0 if same else 0.5


def _telling(name: str) -> set[str]:
    return {word for word in words(name) if word not in _SMALL and not word[0].isdigit()}


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def upper_price(price: float, draw: Sequence[int]) -> float | None:
    """A limit that a goal sets above this price, in tens of dollars below 1000; None above.

    draw: bytes that choose among the second to the fourth ten above it, so that the same goal has the same limit.
    """
    above = [float(ten) for ten in range(10, 1000, 10) if ten > price][:4]
    return above[1 + draw[0] % (len(above) - 1)] if len(above) >= 2 else None


def twice(ids: Iterable[str]) -> str | None:
    """The first id that is there before."""
    seen = set[str]()
    for id in ids:
        if id in seen:
            return id
        seen.add(id)
    return None
