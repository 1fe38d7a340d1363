"""Reads shops: the files of WebShop, and a form of our own that is easier to write. It takes texts, by file.

WebShop's are a list of products (`items_shuffle*.json`), their attributes (`items_ins*.json`) and what people asked
for (`items_human_ins*.json`). Ours is one object with "products" and "goals". Keys that are missing are taken as
empty, where the shop makes sense without them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, cast

from mulligan.bench.webshop._shops import Goal, Product, Shop, twice, upper_price
from mulligan.core.errors import InvalidInput

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
