"""Writes the pages of the shop as text.

What can be clicked is in square brackets. Of a goal, the pages show only the instruction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mulligan.bench.webshop._shop import Product

BACK, NEXT, PREVIOUS, BUY = "Back to Search", "Next >", "< Prev", "Buy Now"
DETAILS = ("Description", "Features", "Reviews")
_MAX_LISTED = 40
"""The maximum number of clickable things in the answer to an invalid action."""


def front(instruction: str) -> str:
    return f"WebShop\nInstruction: {instruction}\n[Search]"


def results(products: Sequence[Product], page: int, size: int) -> tuple[str, tuple[str, ...]]:
    """A page (from 1) of the results of a search, and what can be clicked on it."""
    pages = max(1, -(-len(products) // size))
    turns = [*([PREVIOUS] if page > 1 else []), *([NEXT] if page < pages else [])]
    total = f"Page {page} of {pages} (total results: {len(products)})"
    head = total if products else "No product was found for this search."
    products = products[(page - 1) * size : page * size]
    rows = [f"[{product.id}]\n{product.name}\n{product.shown_price}" for product in products]
    text = "\n".join([f"[{BACK}]", head, *(f"[{turn}]" for turn in turns), *rows])
    return text, (BACK, *turns, *(product.id for product in products))


def item(product: Product, choices: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The page of a product with the options chosen so far, and what can be clicked on it."""
    options = [
        f"{name}: {' '.join(f'[{v}]' for v in values)}{f' (chosen: {choices[name]})' if name in choices else ''}"
        for name, values in product.options.items()
    ]
    details = [name for name in DETAILS if name != "Reviews" or product.reviews]
    buttons = " ".join(f"[{name}]" for name in (*details, BUY))
    text = "\n".join(
        [
            f"[{BACK}] [{PREVIOUS}]",
            product.name,
            f"Price: {product.shown_price}",
            f"Rating: {product.rating}",
            *options,
            buttons,
        ]
    )
    values = [value for values in product.options.values() for value in values]
    return text, (BACK, PREVIOUS, *details, BUY, *values)


def detail(product: Product, name: str) -> tuple[str, tuple[str, ...]]:
    """A product's description, features or reviews, and what can be clicked on that page."""
    text = {
        "Description": product.description,
        "Features": "\n".join(f"- {feature}" for feature in product.features),
        "Reviews": "\n".join(f"- {review}" for review in product.reviews),
    }[name]
    return f"[{BACK}] [{PREVIOUS}]\n{text or f'{name}: there is nothing here.'}", (BACK, PREVIOUS)


def invalid(clickable: Sequence[str], *, searching: bool) -> str:
    """The answer to an action that is not possible on the open page. searching: whether that is the first page."""
    if searching:
        return "Invalid action! Here you can search for something: search[words]. Nothing can be clicked."
    more = f" and {len(clickable) - _MAX_LISTED} more" if len(clickable) > _MAX_LISTED else ""
    return f"Invalid action! Here you can click: {' '.join(f'[{name}]' for name in clickable[:_MAX_LISTED])}{more}."
