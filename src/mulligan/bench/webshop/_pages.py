"""Writes the pages of the shop as text.

What can be clicked is in square brackets; no page reveals anything of a goal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mulligan.bench.webshop._shop import Product

BACK, NEXT, PREVIOUS, BUY = "Back to Search", "Next >", "< Prev", "Buy Now"
ABOUT = ("Description", "Features", "Reviews")
_LISTED = 40
"""The most clickable things that the answer to an invalid action lists."""


def front(instruction: str) -> str:
    return f"WebShop\nInstruction: {instruction}\n[Search]"


def results(found: Sequence[Product], page: int, size: int) -> tuple[str, tuple[str, ...]]:
    """A page (from 1) of the results of a search, and what can be clicked on it."""
    pages = max(1, -(-len(found) // size))
    here = found[(page - 1) * size : page * size]
    turns = [*([PREVIOUS] if page > 1 else []), *([NEXT] if page < pages else [])]
    head = f"Page {page} of {pages} (total results: {len(found)})" if found else "No product was found for this search."
    rows = [f"[{product.id}]\n{product.name}\n{product.shown_price}" for product in here]
    text = "\n".join([f"[{BACK}]", head, *(f"[{turn}]" for turn in turns), *rows])
    return text, (BACK, *turns, *(product.id for product in here))


def item(product: Product, chosen: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The page of a product with the options chosen so far, and what can be clicked on it."""
    options = [
        f"{name}: {' '.join(f'[{value}]' for value in values)}{f' (chosen: {chosen[name]})' if name in chosen else ''}"
        for name, values in product.options.items()
    ]
    about = [name for name in ABOUT if name != "Reviews" or product.reviews]
    buttons = " ".join(f"[{name}]" for name in (*about, BUY))
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
    return text, (BACK, PREVIOUS, *about, BUY, *values)


def about(product: Product, what: str) -> tuple[str, tuple[str, ...]]:
    """A product's description, features or reviews, and what can be clicked on that page."""
    shown = {
        "Description": product.description,
        "Features": "\n".join(f"- {feature}" for feature in product.features),
        "Reviews": "\n".join(f"- {review}" for review in product.reviews),
    }[what]
    return f"[{BACK}] [{PREVIOUS}]\n{shown or f'{what}: there is nothing here.'}", (BACK, PREVIOUS)


def invalid(clickable: Sequence[str], *, searching: bool) -> str:
    """The answer to an action that is not possible on the open page. searching: that page is the first one."""
    if searching:
        return "Invalid action! Here you can search for something: search[words]. Nothing can be clicked."
    more = f" and {len(clickable) - _LISTED} more" if len(clickable) > _LISTED else ""
    return f"Invalid action! Here you can click: {' '.join(f'[{name}]' for name in clickable[:_LISTED])}{more}."
