"""A shop: its products and goals, what a purchase is worth, the files that it is read from, and its search.

Shops are read from the files of WebShop, and from a form of our own that is easier to write. WebShop's are a list of
products (`items_shuffle*.json`), their attributes (`items_ins*.json`) and what people asked for
(`items_human_ins*.json`). Ours is one object with "products" and "goals". Keys that are missing are taken as empty,
where the shop makes sense without them.

The search is BM25 as Lucene has it, by `bm25s`. WebShop itself searches by Pyserini, which needs Java; k1 and b are
Pyserini's.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from pathlib import Path, PurePath
from typing import Any, cast

from mulligan.core.errors import InvalidInput

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


_AMOUNT = re.compile(r"\d[\d,]*(?:\.\d+)?")
_UNKNOWN_PRICE = 100.0
"""What a product without a price costs, as in WebShop's own code."""


def read_shop(files: Mapping[str, str]) -> Shop:
    """files: texts by path. Raises `InvalidInput` that names the file, and the place in it by index and key."""
    lists, people, ours = list[tuple[str, Any]](), dict[str, Any](), list[tuple[str, Any]]()
    attributes = dict[str, Any]()
    for name, text in files.items():
        value = _json(name, text)
        if isinstance(value, list):
            lists.append((name, cast(list[Any], value)))
        elif isinstance(value, dict) and "products" in value:
            ours.append((name, cast(Any, value)))
        elif isinstance(value, dict):
            (people if "human" in PurePath(name).name else attributes).update(cast(dict[str, Any], value))
        else:
            raise InvalidInput(f"{name}: a list of products is wanted, or an object, not {type(value).__name__}.")
    if len(lists) + len(ours) != 1:
        found = ", ".join(name for name, _ in (*lists, *ours)) or "none"
        raise InvalidInput(
            f"A shop has one file of products, and there are {len(lists) + len(ours)} in what was given ({found}): "
            "name a folder with items_shuffle_1000.json, items_ins_v2_1000.json and items_human_ins.json, for example."
        )
    shop = _own(*ours[0]) if ours else _webshop(*lists[0], attributes, people)
    (name, _), *_ = (*lists, *ours)
    if (id := twice(goal.id for goal in shop.goals)) is not None:
        raise InvalidInput(f"{name}: the goal {id!r} is there twice.")
    if not shop.goals:
        raise InvalidInput(
            f"{name} holds no goal: beside WebShop's products has to stand items_human_ins.json, in the same folder, "
            "and --data then names the folder."
        )
    return shop


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{name} is no JSON: {error}.") from error


class _Row:
    """An object of a file with the place that errors name."""

    def __init__(self, where: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise InvalidInput(f"{where}: an object is wanted, not {type(value).__name__}.")
        self.where, self.value = where, cast(dict[str, Any], value)

    def text(self, *keys: str, default: str | None = None) -> str:
        """The first of these keys that holds something."""
        for key in keys:
            value = self.value.get(key)
            if isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value).strip():
                return str(value).strip()
            if value not in (None, "") and not isinstance(value, str):
                raise InvalidInput(f"{self.where}, {keys[0]!r}: text is wanted, not {type(value).__name__}.")
        if default is None:
            raise InvalidInput(f"{self.where}: {keys[0]!r} is missing.")
        return default

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, or a single one."""
        value = self.value.get(key)
        given = cast(list[Any], [] if value in (None, "") else value if isinstance(value, list) else [value])
        if not all(isinstance(one, str) for one in given):
            raise InvalidInput(f"{self.where}, {key!r}: a list of texts is wanted, not {value!r}.")
        return tuple(one.strip() for one in given if one.strip())

    def rows(self, key: str) -> Iterator[_Row]:
        value: object = self.value.get(key) or []
        if not isinstance(value, list):
            raise InvalidInput(f"{self.where}, {key!r}: a list is wanted, not {type(value).__name__}.")
        for number, one in enumerate(cast(list[Any], value)):
            yield _Row(f"{self.where}, {key}[{number}]", one)


# --- our own form -------------------------------------------------------------------------------------------------


def _own(name: str, value: Any) -> Shop:
    top = _Row(name, value)
    products = tuple(_own_product(row) for row in top.rows("products"))
    if (id := twice(product.id for product in products)) is not None:
        raise InvalidInput(f"{name}: the product {id!r} is there twice.")
    by_id = {product.id: product for product in products}
    return Shop(products, tuple(_own_goal(row, by_id) for row in top.rows("goals")))


def _own_product(row: _Row) -> Product:
    price = row.value.get("price")
    if not isinstance(price, (int, float)) or isinstance(price, bool) or not 0 <= price < 1e9:
        raise InvalidInput(f"{row.where}, 'price': a number of dollars is wanted, not {price!r}.")
    given = _Row(f"{row.where}, options", cast(Any, row.value.get("options") or {}))
    return Product(
        row.text("id"),
        row.text("name"),
        float(price),
        query=row.text("query", default="").lower(),
        category=row.texts("category"),
        description=row.text("description", default=""),
        features=row.texts("features"),
        reviews=row.texts("reviews"),
        rating=row.text("rating", default="N.A."),
        attributes=row.texts("attributes"),
        options={name: tuple(one.lower() for one in given.texts(name)) for name in given.value},
    )


def _own_goal(row: _Row, products: Mapping[str, Product]) -> Goal:
    """One that its own product does not fulfil is refused: it could never be solved."""
    product = products.get(id := row.text("product"))
    if product is None:
        raise InvalidInput(f"{row.where}, 'product': there is no product {id!r}.")
    price = row.value.get("price")
    if price is not None and (not isinstance(price, (int, float)) or price < product.price):
        raise InvalidInput(f"{row.where}, 'price': {price!r} is no limit that {id} ({product.shown_price}) keeps.")
    there = {value for values in product.options.values() for value in values}
    options = tuple(one.lower() for one in row.texts("options"))
    for option in options:
        if option not in there:
            raise InvalidInput(f"{row.where}, 'options': {id} has no {option!r}; it has {', '.join(sorted(there))}.")
    return Goal(
        row.text("id"),
        row.text("instruction"),
        id,
        row.texts("attributes"),
        options,
        None if price is None else float(price),
    )


# --- WebShop's form -----------------------------------------------------------------------------------------------


def _webshop(name: str, value: list[Any], attributes: Mapping[str, Any], people: Mapping[str, Any]) -> Shop:
    products, goals, seen = list[Product](), list[Goal](), set[str]()
    for number, one in enumerate(value):
        row = _Row(f"{name}[{number}]", one)
        id = row.text("asin")
        if id in seen or id == "nan" or len(id) > 10:  # as WebShop's own code leaves them out
            continue
        seen.add(id)
        known = _Row(f"items_ins, {id!r}", attributes.get(id, {}))
        products.append(_product(row, known.texts("attributes")))
        asked = {"instructions": people.get(id, row.value.get("instructions"))}
        wishes = list(_Row(f"items_human_ins, {id!r}", asked).rows("instructions"))
        if not people and not wishes and known.value.get("instruction"):
            wishes = [known]
        goals += [goal for n, wish in enumerate(wishes, 1) if (goal := _wish(wish, products[-1], n))]
    return Shop(tuple(products), tuple(goals))


def _product(row: _Row, attributes: tuple[str, ...]) -> Product:
    shown = row.text("pricing", "Price", default="")
    amounts = [float(amount.replace(",", "")) for amount in _AMOUNT.findall(shown)][:2] or [_UNKNOWN_PRICE]
    return Product(
        row.text("asin"),
        row.text("name", "Title"),
        max(amounts),
        " to ".join(f"${amount:.2f}" for amount in amounts),
        row.text("query", default="").lower(),
        tuple(part.strip() for part in row.text("product_category", default="").split("›") if part.strip()),
        row.text("full_description", "Description", default=""),
        row.texts("small_description"),
        rating=row.text("average_rating", "Rating", default="N.A."),
        attributes=attributes,
        options=_options(row),
    )


def _options(row: _Row) -> dict[str, tuple[str, ...]]:
    """`customization_options`: by name a list of objects with a "value"; a slash in one is spelt ` | `."""
    given = _Row(f"{row.where}, customization_options", row.value.get("customization_options") or {})
    found = dict[str, tuple[str, ...]]()
    for name, values in given.value.items():
        if values:
            found[name.lower()] = tuple(one.text("value").replace("/", " | ").lower() for one in given.rows(name))
    return found


def _wish(row: _Row, product: Product, number: int) -> Goal | None:
    """A goal as WebShop makes it; None for one without attributes, which it leaves out, too."""
    attributes = row.texts("instruction_attributes")
    if not attributes:
        return None
    options: Any = row.value.get("instruction_options") or None
    if isinstance(options, dict):
        options = list(cast(dict[str, Any], options).values())
    instruction = row.text("instruction").strip(".")
    price = upper_price(product.price, hashlib.sha256(f"{product.id} {instruction}".encode()).digest())
    return Goal(
        f"{product.id}.{number}",
        instruction if price is None else f"{instruction}, and price lower than {price:.2f} dollars",
        product.id,
        attributes,
        _Row(row.where, {"instruction_options": options}).texts("instruction_options"),
        price,
    )


K1, B = 0.9, 0.4
_lock = threading.Lock()


@dataclass(frozen=True)
class OpenShop:
    shop: Shop
    goals: dict[str, Goal]
    index: Any

    def find(self, query: str, most: int) -> list[Product]:
        """The best `most` products that share a word with the query; equal ones in the order of the file."""
        asked = [word for word in words(query) if word in self.index.vocab_dict]
        if not asked:
            return []
        scores = self.index.get_scores(asked).tolist()
        ranked = sorted((number for number, score in enumerate(scores) if score > 0), key=lambda n: (-scores[n], n))
        return [self.shop.products[number] for number in ranked[:most]]


def open_shop(files: Sequence[Path]) -> OpenShop:
    """Raises `InvalidInput` where a file cannot be used, or the library for the search is not there."""
    with _lock:  # two episodes that begin together read the files once
        try:
            return _opened(tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in files))
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"The shop cannot be read: {error}.") from error


@lru_cache(maxsize=2)
def _opened(files: tuple[tuple[Path, int, int], ...]) -> OpenShop:
    try:
        import bm25s  # pyright: ignore[reportMissingTypeStubs]
    except ModuleNotFoundError:
        raise InvalidInput(NEEDS) from None
    shop = read_shop({str(path): path.read_text(encoding="utf-8-sig") for path, _, _ in files})
    index: Any = bm25s.BM25(method="lucene", k1=K1, b=B)
    index.index([words(_text(product)) or ["nothing"] for product in shop.products], show_progress=False)
    return OpenShop(shop, {goal.id: goal for goal in shop.goals}, index)


def _text(product: Product) -> str:
    """What a search looks into: what the pages show."""
    options = (f"{name} {' '.join(values)}" for name, values in product.options.items())
    return " ".join([product.name, *product.category, product.description, *product.features, *options])
