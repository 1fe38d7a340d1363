"""Shows the form of a query for what a question's words ask for: what is not there, a comparison, a number of others.

The forms are made by rule from the schema and the words of the question, so a model finds no names in them that its
graph lacks. A question that asks for nothing of this kind gets none: design/101.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mulligan.graphs.protocol import EdgeKind, is_number, spelled
from mulligan.graphs.question_checks import Asked, literal, parts_of, shown_property
from mulligan.graphs.values import Link

_SIGNS = (
    (re.compile(r"\bbetween\b", re.I), ""),
    (re.compile(r"\bat least\b|\bor (more|longer|larger|higher|later)\b|\bsince\b|\bfrom\b", re.I), ">="),
    (re.compile(r"\bat most\b|\bor (less|fewer|shorter|smaller|lower|earlier)\b|\buntil\b|\bup to\b", re.I), "<="),
    (re.compile(r"\b(more|longer|larger|greater|higher|bigger|older|later|after|over|above|exceed\w*)\b", re.I), ">"),
    (re.compile(r"\b(less|fewer|shorter|smaller|lower|younger|earlier|before|under|below)\b", re.I), "<"),
)
"""The sign that a question's words say, the first that they do; "" for two signs."""
_UP = re.compile(r"\b(shortest|smallest|lowest|lightest|earliest|weakest|fewest|least|first|minimum)\b", re.I)
"""Words for the first of an order that goes up."""
_OLD = re.compile(r"\b(oldest|youngest|newest)\b", re.I)
"""Words for the first of an order that goes up or down by what the property is: an age, or a year."""


def forms_of(about: Asked) -> list[str]:
    """Return the forms that the question asks for, a sentence each; [] where it names no kind, or asks for none."""
    return list(_Forms(about).made()) if about.kind else []


class _Forms:
    def __init__(self, about: Asked) -> None:
        self._about = about
        self._kind = next(node for node in about.schema.nodes if node.label == about.kind)
        self._shows = "x" if not self._kind.properties else f"x.{spelled(shown_property(self._kind.properties))}"
        self._node = f"(x:{spelled(about.kind)})"
        self._edge = self._edge_of()

    def made(self) -> Iterator[str]:
        about, node = self._about, self._node
        own = self._own_value()
        if about.negates and own and not about.relations:
            differs = f"x.{spelled(own.property)} <> {literal(own.value)}"
            yield f"What is otherwise: MATCH {node} WHERE {differs} {self._returns}"
        elif about.negates and self._edge:
            lacks = f"NOT EXISTS {{ MATCH {self._path('x', '')} }}"
            yield f"What lacks it: MATCH {node} WHERE {lacks} {self._returns}"
        if compared := self._compared():
            yield f"A comparison: {compared} {self._returns}"
        elif about.numbers and self._edge and not about.superlative:
            counted = f"{self._match('y')} WITH x, count(DISTINCT y) AS n WHERE {self._test('n')}"
            yield f"A number of others: {counted} RETURN {self._shows}"
        if about.superlative:
            if number := self._number(self._kind.properties):
                by = f"RETURN {self._shows} ORDER BY x.{spelled(number)}{self._down(number)} LIMIT 1"
                yield f"The first of an order: MATCH {node} {by}"
            elif self._edge:
                down = self._down("")
                by = f"RETURN {self._shows}, count(DISTINCT y) AS n ORDER BY n{down} LIMIT 1"
                yield f"The first by a number of others: {self._match('y')} {by}"

    def _down(self, number: str) -> str:
        """The direction of the order by this property; "" of a number of nodes."""
        old = _OLD.search(self._about.question)
        if old and number:
            return " DESC" if (old[0].lower() == "oldest") == ("age" in parts_of(number)) else ""
        return "" if _UP.search(self._about.question) else " DESC"

    @property
    def _returns(self) -> str:
        return "RETURN count(DISTINCT x)" if self._about.counts else f"RETURN DISTINCT {self._shows}"

    def _edge_of(self) -> EdgeKind | None:
        """The one relationship of the kind that the question speaks of; if it speaks of none, the only one there is."""
        own = [edge for edge in self._about.schema.edges if any(self._kind.label in pair for pair in edge.ends)]
        said = [edge for edge in own if edge.label in self._about.relations]
        found = said or ([] if self._about.relations or self._about.properties_said else own)
        return found[0] if len(found) == 1 else None

    def _path(self, start: str, other: str, edge_variable: str = "") -> str:
        """The pattern from a node over the relationship to what the question names at its other end."""
        edge = self._edge
        assert edge is not None, "there is a form for a relationship only where there is one"
        source, target = next(pair for pair in edge.ends if self._kind.label in pair)
        way = self._about.direction
        is_source = source == self._kind.label
        if source == target and way is not None:
            is_source = way.role == "target"
        elif source == target and (nobody := self._about.nobody):
            is_source = nobody[1] == "target"
        label = target if is_source else source
        value = next((link for link in self._about.links.found if link.label == label), None)
        kept = f" {{{spelled(value.property)}: {literal(value.value)}}}" if value else ""
        left, right = ("-", "->") if is_source else ("<-", "-")
        return f"({start}){left}[{edge_variable}:{spelled(edge.label)}]{right}({other}:{spelled(label)}{kept})"

    def _match(self, other: str) -> str:
        return f"MATCH {self._path(f'x:{spelled(self._kind.label)}', other)}"

    def _compared(self) -> str:
        """MATCH and WHERE that compare a property with a number of the question; "" for none."""
        if not self._about.numbers:
            return ""
        if number := self._number(self._kind.properties):
            return f"MATCH {self._node} WHERE {self._test(f'x.{spelled(number)}')}"
        if self._edge and (number := self._number(self._edge.properties)):
            path = self._path(f"x:{spelled(self._kind.label)}", "", "r")
            return f"MATCH {path} WHERE {self._test(f'r.{spelled(number)}')}"
        return ""

    def _number(self, properties: Mapping[str, str]) -> str:
        """The property that is a number: the one that the question speaks of; else the only one, unless it counts."""
        numbers = [name for name, kind in properties.items() if is_number(kind)]
        said = [name for name in numbers if name in self._about.properties_said or name == self._about.property]
        if said or self._about.relations:
            return said[0] if len(said) == 1 else ""
        return numbers[0] if len(numbers) == 1 else ""

    def _test(self, value: str) -> str:
        numbers = self._about.numbers
        sign = next((sign for words, sign in _SIGNS if words.search(self._about.question)), "=")
        if not sign and len(numbers) == 2:
            return f"{value} >= {numbers[0]} AND {value} <= {numbers[1]}"
        return f"{value} {sign or '='} {numbers[0]}"

    def _own_value(self) -> Link | None:
        """The one value of the kind itself that the question names."""
        found = [link for link in self._about.links.found if link.label == self._kind.label]
        return found[0] if len(found) == 1 else None
