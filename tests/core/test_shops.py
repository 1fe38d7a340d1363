"""The reward of a purchase, and how shops are read."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan.bench.webshop._shop import Goal, Product, alike, read_shop, reward
from mulligan.bench.webshop.environments.webshop import CATALOGUE
from mulligan.core.errors import InvalidInput

SHOP = read_shop({"shop.json": CATALOGUE.read_text(encoding="utf-8")})
GOALS = st.sampled_from(SHOP.goals)
PRODUCTS = st.sampled_from(SHOP.products)


def chosen(goal: Goal) -> dict[str, str]:
    """The options of the product in mind that the goal asks for."""
    options = SHOP.by_id[goal.product].options
    return {name: value for name, values in options.items() for value in values if value in goal.options}


def test_our_shop_has_what_the_docs_say() -> None:
    assert (len(SHOP.products), len(SHOP.goals)) == (60, 12)
    assert len({product.query for product in SHOP.products}) == 12


@given(GOALS)
def test_the_product_in_mind_with_its_options_is_worth_all(goal: Goal) -> None:
    wanted = SHOP.by_id[goal.product]
    assert reward(goal, wanted, wanted, chosen(goal)).value == 1.0


@given(GOALS, PRODUCTS)
def test_any_purchase_is_worth_from_0_to_1(goal: Goal, product: Product) -> None:
    options = {name: values[0] for name, values in product.options.items()}
    got = reward(goal, SHOP.by_id[goal.product], product, options)
    assert 0 <= got.value <= 1
    assert got.value == pytest.approx(
        got.kind * (got.attributes + got.options + got.price) / (len(goal.attributes) + len(goal.options) + 1)
    )


@given(GOALS, PRODUCTS, st.data())
def test_what_fits_better_is_never_worth_less(goal: Goal, product: Product, data: st.DataObject) -> None:
    wanted = SHOP.by_id[goal.product]
    some = {k: v for k, v in chosen(goal).items() if data.draw(st.booleans(), label=k)}
    base = reward(goal, wanted, product, some).value
    cheaper = replace(product, price=data.draw(st.floats(0, product.price)))
    fitting = replace(product, attributes=(*product.attributes, *goal.attributes[:1]))
    assert reward(goal, wanted, product, chosen(goal)).value >= base
    assert reward(goal, wanted, cheaper, some).value >= base
    assert reward(goal, wanted, fitting, some).value >= base


def test_another_kind_of_thing_is_worth_nothing() -> None:
    goal = next(goal for goal in SHOP.goals if goal.id == "mug")
    assert reward(goal, SHOP.by_id["MUG01"], SHOP.by_id["HDP05"], {}).value == 0.0


def test_the_formula_by_hand() -> None:
    """Two of two attributes, none of two options, and the price: 3 of 5."""
    goal = next(goal for goal in SHOP.goals if goal.id == "mug")
    got = reward(goal, SHOP.by_id["MUG01"], SHOP.by_id["MUG01"], {"color": "oat"})
    assert (got.value, got.kind, got.attributes, got.options, got.price) == (0.6, 1.0, 2, 0, True)
    dear = replace(SHOP.by_id["MUG01"], price=20.01)
    assert reward(goal, SHOP.by_id["MUG01"], dear, {"color": "oat"}).value == 0.4


@each_row(
    ("one", "other", "same"),
    [
        ("slate blue", "blue slate", True),
        ("size: 3 ounce", "3 Ounce", True),
        ("machine washable", "machine washible", True),
        ("black", "white", False),
        ("", "white", False),
        ("eu", "us", False),
    ],
)
def test_texts_that_mean_the_same(one: str, other: str, same: bool) -> None:
    assert alike(one, other) is alike(other, one) is same


# --- WebShop's own files --------------------------------------------------------------------------------------------

ITEMS: list[dict[str, Any]] = [
    {
        "asin": "B000000001",
        "name": "Small Green Tent",
        "query": "Tents ",
        "product_category": "Outdoor › Camping › Tents",
        "pricing": "$59.99$79.00",
        "full_description": "A tent for two.",
        "small_description": ["Waterproof floor"],
        "customization_options": {"Color": [{"value": "Green/Grey", "image": None}], "Size": None},
    },
    {"asin": "B000000002", "name": "Tent Pegs"},
    {"asin": "B000000002", "name": "the same again"},
]
PEOPLE: dict[str, list[dict[str, Any]]] = {
    "B000000001": [
        {"instruction": "i want a tent.", "instruction_attributes": ["waterproof"], "instruction_options": ["green"]},
        {"instruction": "left out: it names no attribute", "instruction_attributes": []},
    ]
}
FILES = {
    "items_shuffle_1000.json": json.dumps(ITEMS),
    "items_ins_v2_1000.json": json.dumps({"B000000001": {"attributes": ["water proof", "light"]}}),
    "items_human_ins.json": json.dumps(PEOPLE),
}


def test_webshops_own_files_are_read() -> None:
    shop = read_shop(FILES)
    tent, pegs = shop.products
    assert (tent.price, tent.shown_price, tent.query) == (79.0, "$59.99 to $79.00", "tents")
    assert tent.category == ("Outdoor", "Camping", "Tents")
    assert tent.options == {"color": ("green | grey",)}
    assert tent.attributes == ("water proof", "light")
    assert (pegs.price, pegs.options) == (100.0, {})
    (goal,) = shop.goals
    assert goal.id == "B000000001.1"
    assert goal.price in (90.0, 100.0, 110.0)
    assert goal.instruction == f"i want a tent, and price lower than {goal.price:.2f} dollars"
    assert reward(goal, tent, tent, {"color": "green | grey"}).value == 1.0
    assert read_shop(FILES) == shop


def own(**changes: Any) -> str:
    goal = {"id": "g", "instruction": "a cup", "product": "C1", "attributes": ["red"], "options": ["l"], "price": 5}
    product = {"id": "C1", "name": "Cup", "price": 4, "options": {"size": ["S", "L"]}}
    return json.dumps({"products": [product | changes.get("product", {})], "goals": [goal | changes.get("goal", {})]})


def test_a_shop_of_the_user_needs_little() -> None:
    shop = read_shop({"own.json": own()})
    assert shop.products[0].options == {"size": ("s", "l")}
    assert shop.goals[0].price == 5.0


@each_row(
    ("files", "says"),
    [
        ({"own.json": own(product={"price": "4"})}, r"own.json, products\[0\], 'price' must be a number"),
        ({"own.json": own(product={"name": None})}, r"own.json, products\[0\]: 'name' is missing"),
        (
            {"own.json": own(product={"options": {"size": 3}})},
            r"products\[0\], options, 'size' must be a list of strings",
        ),
        ({"own.json": own(goal={"product": "C2"})}, r"goals\[0\], 'product': there is no product 'C2'"),
        ({"own.json": own(goal={"options": ["xl"]})}, r"C1 has no 'xl'; it has l, s"),
        (
            {"own.json": own(goal={"price": 3})},
            r"goals\[0\], 'price' must be at least the price of C1 \(\$4.00\), not 3",
        ),
        (
            {"own.json": own(goal={"price": float("nan")})},
            r"goals\[0\], 'price' must be at least the price of C1 \(\$4.00\), not nan",
        ),
        ({"own.json": "[" * 100_000}, "own.json is not valid JSON"),
        (
            {"items.json": json.dumps([ITEMS[0] | {"pricing": None, "Price": [5]}])},
            r"items.json\[0\], 'Price' must be a",
        ),
        ({"own.json": json.dumps({"products": []})}, "own.json has no goal"),
        ({"own.json": "3"}, "must be a list of products"),
        ({"own.json": "[3]"}, r"own.json\[0\]: this must be an object, not int"),
        ({"items.json": json.dumps([{"name": "x"}])}, r"items.json\[0\]: 'asin' is missing"),
        ({"items.json": json.dumps(ITEMS)}, "items_human_ins.json"),
        ({**FILES, "items_shuffle.json": json.dumps(ITEMS)}, "exactly one product file, but 2"),
        ({"items_human_ins.json": json.dumps(PEOPLE)}, "exactly one product file, but 0"),
    ],
)
def test_what_is_not_a_shop_is_refused_with_the_place(files: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_shop(files)


def test_the_catalogue_lies_in_the_package() -> None:
    assert CATALOGUE.is_file()
    assert CATALOGUE.parent == Path(mulligan.__file__).parent / "bench" / "webshop"  # also where that is installed
