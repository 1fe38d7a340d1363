"""Shows the part of a recorded page around a few candidates, as compact HTML.

Mind2Web's cleaned HTML is XML whose elements have a `backend_node_id`. Its words are in elements named `text`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

ID = "backend_node_id"
UP, DOWN, CHILDREN, SIBLINGS, BESIDE = 5, 5, 50, 3, 2
"""How much of the page around a candidate is shown: ancestors, levels below it, children of an element, neighbours on
each side, and levels below a neighbour."""
WORDS, CHOICE_WORDS = 20, 10
"""The maximum number of words of a text or an attribute on the page, and of the description of a choice."""
_ATTRIBUTES = (
    *("role", "aria_role", "type", "alt", "aria_description", "aria_label", "label", "title", "name", "text_value"),
    *("value", "placeholder", "input_checked", "input_value", "option_selected", "class"),
)
"""The attributes that say what an element is for, in the order in which they are shown."""


@dataclass(frozen=True)
class Excerpt:
    """Part of a page. choices: the id and the description of each candidate on it, in the order of the page."""

    text: str
    choices: tuple[tuple[str, str], ...]


def read_page(html: str) -> Element:
    """The tree of a page. Raises `ValueError` for text that is not XML.

    Prefixes such as `xlink:` need not be declared, because Mind2Web's pages do not declare theirs.
    """
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(html, True)
    except expat.ExpatError as error:
        raise ValueError(str(error)) from error
    return builder.close()


def ids_of(page: Element) -> frozenset[str]:
    """The ids of all elements."""
    return frozenset(id for element in page.iter() if (id := element.get(ID)))


def excerpt(page: Element, candidates: Collection[str]) -> Excerpt:
    """The page around these candidates. A candidate that is not on the page is left out."""
    elements = [element for element in page.iter() if element.get(ID) in candidates]
    visible = _around(page, elements)
    numbers = {element.get(ID, ""): number for number, element in enumerate(elements)}
    text = " ".join(_html(page, visible, numbers))
    choices = [
        (element.get(ID, ""), _shortened(" ".join(_html(element, visible, numbers)), CHOICE_WORDS))
        for element in elements
    ]
    return Excerpt(text, tuple(choices))


def _around(page: Element, elements: Iterable[Element]) -> set[Element]:
    """The elements, and those above, below and beside them."""
    parents = {child: parent for parent in page.iter() for child in parent}
    visible = {page}
    for element in elements:
        visible.update(_below(element, DOWN))
        above: Any = element
        for _ in range(UP):
            if (above := parents.get(above)) is None:
                break
            visible.add(above)
        if element in parents:
            siblings = list(parents[element])
            at = siblings.index(element)
            for sibling in siblings[max(0, at - SIBLINGS) : at + SIBLINGS + 1]:
                visible.update(_below(sibling, BESIDE))
    return visible


def _below(element: Element, levels: int) -> Iterator[Element]:
    yield element
    if levels > 0:
        for child in list(element)[:CHILDREN]:
            yield from _below(child, levels - 1)


def _html(element: Element, visible: Collection[Element], numbers: dict[str, int]) -> Iterator[str]:
    """The pieces of the element's HTML. Of an element without attributes to show, only its contents are yielded."""
    if element not in visible:
        for child in element:
            yield from _html(child, visible, numbers)
        return
    words = _shortened(element.text or "")
    if element.tag == "text" and element.get(ID) not in numbers:
        yield from [words] if words else []
        return
    attributes = [f"{name}={_shortened(value)}" for name in _ATTRIBUTES if (value := element.get(name, "").strip())]
    inside = [*([words] if words else []), *(piece for child in element for piece in _html(child, visible, numbers))]
    number = numbers.get(element.get(ID, ""))
    if number is not None:
        attributes.insert(0, f"id={number}")
    if not attributes:
        yield from inside
        return
    yield f"<{' '.join([str(element.tag), *attributes])}>"
    yield from inside
    yield f"</{element.tag}>"


def _shortened(text: str, words: int = WORDS) -> str:
    return " ".join(text.split()[:words])
