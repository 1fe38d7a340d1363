"""A shop: reads its products and goals from files, searches it, and computes the reward of a purchase.

A shop comes from WebShop's files, or from one file in our own format, which is easier to write. WebShop's are a list of
products (`items_shuffle*.json`), their attributes (`items_ins*.json`) and people's instructions
(`items_human_ins*.json`). Ours is an object with "products" and "goals". Optional keys may be left out.

The search is Lucene's BM25, by `bm25s`. WebShop itself uses Pyserini, which needs Java; k1 and b are Pyserini's.
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
from itertools import combinations
from pathlib import Path, PurePath
from typing import Any, cast

from mulligan.plugins import InvalidInput, require

_WORD = re.compile(r"[a-z0-9]+(?:[.'][a-z0-9]+)*")
_ALIKE = 0.85
_STOP_WORDS = frozenset(
    _WORD.findall("a an and are as at by for from in inch inches is it its of on or our pack set the to up with x")
)
"""Words of a product's name that do not describe it."""


def check_installed() -> None:
    """Raises `MissingExtra` if the search engine is not installed."""
    require("The search of WebShop needs an extra", "bm25s", "webshop")


@dataclass(frozen=True)
class Product:
    """A product of the shop.

    Attributes:
        price: the highest of its prices, in dollars.
        price_text: the price as the shop shows it.
        query: the search that the product belongs to.
        category: from wide to narrow.
        attributes: hidden; no page shows them.
        options: the values that can be chosen, by the option's name.
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
    """What a customer wants. Only `instruction` is shown to the agent.

    Attributes:
        product: the id of the product that the customer has in mind.
        attributes, options: what the bought product should have.
        price: the most that it may cost, in dollars; None: any price.
    """

    id: str
    instruction: str
    product: str
    attributes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    price: float | None = None


@dataclass(frozen=True)
class Shop:
    """The products in the order of their file, which breaks ties in a search, and the goals."""

    products: tuple[Product, ...]
    goals: tuple[Goal, ...]

    @cached_property
    def by_id(self) -> Mapping[str, Product]:
        return {product.id: product for product in self.products}


@dataclass(frozen=True)
class Reward:
    """The reward of a purchase, from 0 to 1 (best), and its parts.

    Attributes:
        kind: how well the type of the product fits, from 0 to 1.
        attributes, options: how many of the wanted ones the purchase has.
        price: whether the price is low enough.
    """

    value: float
    kind: float
    attributes: int
    options: int
    price: bool


def words(text: str) -> list[str]:
    """The words of the text in lower case, as the search and the comparisons below use them."""
    return _WORD.findall(text.lower())


def alike(one: str, other: str) -> bool:
    """Whether two short texts mean the same: one has all words of the other, or they differ by a few letters."""
    first, second = set(words(one)), set(words(other))
    if not first or not second:
        return False
    common = sorted(first & second)
    forms = [" ".join([*common, *sorted(extra)]) for extra in (set[str](), first - second, second - first)]
    return max(_ratio(a, b) for a, b in combinations(forms, 2) if a and b) > _ALIKE


def reward(goal: Goal, wanted: Product, bought: Product, choices: Mapping[str, str]) -> Reward:
    """The reward of a purchase by WebShop's rule (Yao et al. 2022, section 3, with the thresholds of its code).

    It is the fit of the type, times (attributes + options + price that fit) / (attributes + options of the goal + 1).
    WebShop compares only the nouns of names, and normalises colours. This compares all words, and colours as named.

    Args:
        wanted: the product that the customer has in mind.
        choices: the options of the purchase, by name.
    """
    text = " ".join([bought.name, *bought.features, bought.description]).lower()
    attributes = sum(
        any(alike(has, want) for has in bought.attributes) or want.lower() in text for want in goal.attributes
    )
    options = sum(any(alike(value, want) for value in choices.values()) for want in goal.options)
    price = goal.price is None or bought.price <= goal.price
    kind = _kind(wanted, bought)
    share = (attributes + options + price) / (len(goal.attributes) + len(goal.options) + 1)
    return Reward(kind * share, kind, attributes, options, price)


def _kind(wanted: Product, bought: Product) -> float:
    """How well the types of two products fit: 1 for the same type, 0 if their names share no word."""
    names = _content_words(wanted.name)
    common = len(names & _content_words(bought.name)) / len(names) if names else 0.2
    if common == 0:
        return 0.0
    if common < 0.1:
        return 0.1
    same = wanted.query == bought.query or len({*wanted.category} & {*bought.category}) >= 2 or common > 0.2
    return 1.0 if same else 0.5


def _content_words(name: str) -> set[str]:
    return {word for word in words(name) if word not in _STOP_WORDS and not word[0].isdigit()}


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def upper_price(price: float, draw: Sequence[int]) -> float | None:
    """A goal's limit on the price: the second, third or fourth multiple of ten above `price`, below 1000 dollars.

    None if there are too few. draw: bytes of which the first one chooses, so that a goal always has the same limit.
    """
    above = [float(ten) for ten in range(10, 1000, 10) if ten > price][:4]
    return above[1 + draw[0] % (len(above) - 1)] if len(above) >= 2 else None


def duplicate(ids: Iterable[str]) -> str | None:
    """The first id that occurs twice, or None."""
    seen = set[str]()
    for id in ids:
        if id in seen:
            return id
        seen.add(id)
    return None


_AMOUNT = re.compile(r"\d[\d,]*(?:\.\d+)?")
_UNKNOWN_PRICE = 100.0
"""The price of a product that has none, as in WebShop's own code."""


def read_shop(files: Mapping[str, str]) -> Shop:
    """Read a shop. files: texts by path. Raises `InvalidInput`, which names the file, the index and the key."""
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
            raise InvalidInput(f"{name} must be a list of products or an object, not {type(value).__name__}.")
    if len(lists) + len(ours) != 1:
        names = ", ".join(name for name, _ in (*lists, *ours)) or "none"
        raise InvalidInput(
            f"A shop needs exactly one product file, but {len(lists) + len(ours)} were given ({names}). Specify, "
            "for example, a folder with items_shuffle_1000.json, items_ins_v2_1000.json and items_human_ins.json."
        )
    shop = _own_shop(*ours[0]) if ours else _webshop(*lists[0], attributes, people)
    (name, _), *_ = (*lists, *ours)
    if (id := duplicate(goal.id for goal in shop.goals)) is not None:
        raise InvalidInput(f"{name}: the goal {id!r} appears twice.")
    if not shop.goals:
        raise InvalidInput(
            f"{name} has no goals: put WebShop's items_human_ins.json into the folder with its products, and pass "
            "that folder with --data."
        )
    return shop


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} is not valid JSON: {error}.") from error


class _Row:
    """An object in a file. where: the file and the position, for errors."""

    def __init__(self, where: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise InvalidInput(f"{where}: this must be an object, not {type(value).__name__}.")
        self.where, self.value = where, cast(dict[str, Any], value)

    def text(self, *keys: str, default: str | None = None) -> str:
        """The text of the first of these keys that has one."""
        for key in keys:
            value = self.value.get(key)
            if isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value).strip():
                return str(value).strip()
            if value not in (None, "") and not isinstance(value, str):
                raise InvalidInput(f"{self.where}, {key!r} must be a string, not {type(value).__name__}.")
        if default is None:
            raise InvalidInput(f"{self.where}: {keys[0]!r} is missing.")
        return default

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts under this key, which may be a list or a single text."""
        value = self.value.get(key)
        texts = cast(list[Any], [] if value is None else value if isinstance(value, list) else [value])
        if not all(isinstance(text, str) for text in texts):
            raise InvalidInput(f"{self.where}, {key!r} must be a list of strings, not {value!r}.")
        return tuple(text.strip() for text in texts if text.strip())

    def rows(self, key: str) -> Iterator[_Row]:
        value: object = self.value.get(key) or []
        if not isinstance(value, list):
            raise InvalidInput(f"{self.where}, {key!r} must be a list, not {type(value).__name__}.")
        for number, one in enumerate(cast(list[Any], value)):
            yield _Row(f"{self.where}, {key}[{number}]", one)


# --- our own format -----------------------------------------------------------------------------------------------


def _own_shop(name: str, value: Any) -> Shop:
    top = _Row(name, value)
    products = tuple(_own_product(row) for row in top.rows("products"))
    if (id := duplicate(product.id for product in products)) is not None:
        raise InvalidInput(f"{name}: the product {id!r} appears twice.")
    by_id = {product.id: product for product in products}
    return Shop(products, tuple(_own_goal(row, by_id) for row in top.rows("goals")))


def _own_product(row: _Row) -> Product:
    price = row.value.get("price")
    if not isinstance(price, (int, float)) or isinstance(price, bool) or not 0 <= price < 1e9:
        raise InvalidInput(f"{row.where}, 'price' must be a number, in dollars, not {price!r}.")
    options = _Row(f"{row.where}, options", cast(Any, row.value.get("options") or {}))
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
        options={name: tuple(value.lower() for value in options.texts(name)) for name in options.value},
    )


def _own_goal(row: _Row, products: Mapping[str, Product]) -> Goal:
    """Read a goal. Raises `InvalidInput` if its product is unknown, costs too much or lacks a wanted option."""
    product = products.get(id := row.text("product"))
    if product is None:
        raise InvalidInput(f"{row.where}, 'product': there is no product {id!r}.")
    price = row.value.get("price")
    if price is not None and not (isinstance(price, (int, float)) and price >= product.price):
        raise InvalidInput(
            f"{row.where}, 'price' must be at least the price of {id} ({product.shown_price}), not {price!r}."
        )
    valid = {value for values in product.options.values() for value in values}
    options = tuple(option.lower() for option in row.texts("options"))
    for option in options:
        if option not in valid:
            raise InvalidInput(f"{row.where}, 'options': {id} has no {option!r}; it has {', '.join(sorted(valid))}.")
    return Goal(
        row.text("id"),
        row.text("instruction"),
        id,
        row.texts("attributes"),
        options,
        None if price is None else float(price),
    )


# --- WebShop's format ---------------------------------------------------------------------------------------------


def _webshop(name: str, value: list[Any], attributes: Mapping[str, Any], people: Mapping[str, Any]) -> Shop:
    products, goals, seen = list[Product](), list[Goal](), set[str]()
    for number, one in enumerate(value):
        row = _Row(f"{name}[{number}]", one)
        id = row.text("asin")
        if id in seen or id == "nan" or len(id) > 10:  # as WebShop's own code leaves them out
            continue
        seen.add(id)
        details = _Row(f"items_ins, {id!r}", attributes.get(id, {}))
        products.append(_product(row, details.texts("attributes")))
        written = {"instructions": people.get(id, row.value.get("instructions"))}
        instructions = list(_Row(f"items_human_ins, {id!r}", written).rows("instructions"))
        if not people and not instructions and details.value.get("instruction"):
            instructions = [details]
        goals += [goal for n, one in enumerate(instructions, 1) if (goal := _goal(one, products[-1], n))]
    return Shop(tuple(products), tuple(goals))


def _product(row: _Row, attributes: tuple[str, ...]) -> Product:
    pricing = row.text("pricing", "Price", default="")
    amounts = [float(amount.replace(",", "")) for amount in _AMOUNT.findall(pricing)][:2] or [_UNKNOWN_PRICE]
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
    """The options under `customization_options`; a slash in a value becomes ` | `."""
    options = _Row(f"{row.where}, customization_options", row.value.get("customization_options") or {})
    return {
        name.lower(): tuple(one.text("value").replace("/", " | ").lower() for one in options.rows(name))
        for name, values in options.value.items()
        if values
    }


def _goal(row: _Row, product: Product, number: int) -> Goal | None:
    """The goal of an instruction, as WebShop makes it. None if it has no attributes: WebShop leaves it out."""
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
    """A shop with its search index. goals: by id."""

    shop: Shop
    goals: dict[str, Goal]
    index: Any

    def find(self, query: str, limit: int) -> list[Product]:
        """The best products that share a word with the query, at most `limit`. Ties are in the order of the file."""
        terms = [word for word in words(query) if word in self.index.vocab_dict]
        if not terms:
            return []
        scores = self.index.get_scores(terms).tolist()
        ranked = sorted((number for number, score in enumerate(scores) if score > 0), key=lambda n: (-scores[n], n))
        return [self.shop.products[number] for number in ranked[:limit]]


def open_shop(files: Sequence[Path]) -> OpenShop:
    """Read a shop and index it. Raises `InvalidInput` if a file cannot be used or `bm25s` is not installed."""
    with _lock:  # two episodes that begin together read the files once
        try:
            return _open(tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in files))
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"The shop cannot be read: {error}.") from error


@lru_cache(maxsize=2)
def _open(files: tuple[tuple[Path, int, int], ...]) -> OpenShop:
    check_installed()
    import bm25s  # pyright: ignore[reportMissingTypeStubs]

    shop = read_shop({str(path): path.read_text(encoding="utf-8-sig") for path, _, _ in files})
    index: Any = bm25s.BM25(method="lucene", k1=K1, b=B)
    index.index([words(_text(product)) or ["nothing"] for product in shop.products], show_progress=False)
    return OpenShop(shop, {goal.id: goal for goal in shop.goals}, index)


def _text(product: Product) -> str:
    """The text in which a search looks: the name, categories, description, features and options of a product."""
    options = (f"{name} {' '.join(values)}" for name, values in product.options.items())
    return " ".join([product.name, *product.category, product.description, *product.features, *options])
