"""The three selections of the prompt engine: which entities, relationships and properties a question is about.

For each step there is what the model may choose from, the JSON schema of its answer, and how the answer is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from mulligan.core.errors import BadAnswer
from mulligan.core.records import Json
from mulligan.langgraph.schema_forms import Known, Relationship

Offered: TypeAlias = "Mapping[str, Mapping[str, str]]"
"""Properties (name to type) by the name of the entity or relationship that has them."""


class NothingSelected(BadAnswer, ValueError):
    """A selection without a result. The message says which one, and what was available."""


@dataclass(frozen=True)
class Selection:
    """The part of a graph that a question is about, with the types of properties and the names of relationships."""

    entities: Mapping[str, Mapping[str, str]]
    relationships: Mapping[str, Relationship]

    @property
    def combinations(self) -> list[tuple[str, str, str]]:
        """The distinct (source, label, target)."""
        found = [(s, each.label, t) for each in self.relationships.values() for s, t in each.ends]
        return list(dict.fromkeys(found))

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        """The properties of the relationships by label."""
        found: dict[str, dict[str, str]] = {}
        for each in self.relationships.values():
            found.setdefault(each.label, {}).update(each.properties)
        return found


# --- what is available ----------------------------------------------------------------------------------------------


def relationships_for(entities: Iterable[str], known: Known) -> dict[str, Relationship]:
    """Return the relationships with both ends selected; if there are none, with one end; if there are none, all.

    Relationships with unknown ends are always included. Each keeps the pairs of ends that match.
    """
    chosen = set(entities)
    for needed in (2, 1, 0):
        found: dict[str, Relationship] = {}
        for name, each in known.relationships.items():
            ends = tuple(pair for pair in each.ends if sum(end in chosen for end in pair) >= needed)
            if ends or not each.ends:
                found[name] = replace(each, ends=ends)
        if any(each.ends for each in found.values()):
            return found
    return dict(known.relationships)


def properties_of(entities: Sequence[str], relationships: Mapping[str, Relationship], known: Known) -> Offered:
    """Return the properties of the selected entities and relationships that have any."""
    found = {name: known.entities.get(name, {}) for name in entities}
    found |= {name: each.properties for name, each in relationships.items()}
    return {name: properties for name, properties in found.items() if properties}


def schema_of_names(title: str, key: str, names: Sequence[str]) -> dict[str, Json]:
    """Return the schema of an object with a list of some of these names."""
    return _object(title, f"The {key} that the question is about.", {key: _some_of(names)})


def schema_of_properties(title: str, offered: Offered) -> dict[str, Json]:
    """Return the schema of an object with a list of properties for each kind."""
    lists = {name: _some_of(list(properties)) for name, properties in offered.items()}
    return _object(title, "Of each kind, the properties that the query needs.", lists)


def schema_of_query(title: str, language: str) -> dict[str, Json]:
    return _object(title, f"A {language} query that answers the question.", {"query": {"type": "string"}})


def _some_of(names: Sequence[str]) -> Json:
    return {"type": "array", "items": {"type": "string", "enum": list(names)}}


def _object(title: str, description: str, properties: dict[str, Json]) -> dict[str, Json]:
    return {
        "title": title,
        "description": description,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


# --- how an answer is read --------------------------------------------------------------------------------------


def take_entities(answer: Json, known: Known) -> list[str]:
    """Return the selected entities. Raises `NothingSelected` if there are none."""
    chosen = _taken("Entity", "entities", answer, _own(known.entities))
    if not chosen:
        raise NothingSelected(f"Entity selection failed: the model chose none of {', '.join(known.entities)}.")
    return chosen


def take_relationships(
    answer: Json, entities: Sequence[str], offered: Mapping[str, Relationship]
) -> tuple[list[str], dict[str, Relationship]]:
    """Return the entities, with those that the relationships also need, and the relationships.

    If the model chose none, these are the relationships between the entities. Raises `NothingSelected` for an answer
    with unknown names only.
    """
    spellings = {name: [name, each.label] for name, each in offered.items()}
    names = _taken("Relationship", "relationships", answer, spellings)
    if not names:
        return list(entities), joined(entities, offered)
    chosen = {name: each for name, each in offered.items() if name in names}
    ends = [end for each in chosen.values() for pair in each.ends for end in pair]
    return list(dict.fromkeys([*entities, *ends])), chosen


def joined(entities: Iterable[str], offered: Mapping[str, Relationship]) -> dict[str, Relationship]:
    """Return the relationships whose ends are both selected."""
    chosen = set(entities)
    return {name: each for name, each in offered.items() if each.ends and all(chosen.issuperset(p) for p in each.ends)}


def take_properties(answer: Json, offered: Offered) -> dict[str, dict[str, str]]:
    """Return the selected properties by the name of what has them; all if the model chose none.

    Raises `NothingSelected` for an answer with unknown names only.
    """
    given = _table("Property", answer, f"lists of properties for {', '.join(offered)}")
    found: dict[str, set[str]] = {}
    unknown: list[str] = []
    for kind, names in given.items():
        for wanted in _texts(names):
            kinds = _found(kind, _own(offered))
            places = [(name, match) for name in kinds for match in _found(wanted, _own(offered[name]))]
            for name, match in places:
                found.setdefault(name, set()).add(match)
            if not places:
                unknown.append(f"{kind}.{wanted}")
    if unknown and not found:
        there = "; ".join(f"{name}: {', '.join(properties)}" for name, properties in offered.items())
        raise NothingSelected(f"Property selection failed: there is no {', '.join(unknown[:5])}. Available: {there}.")
    if not found:
        return {name: dict(properties) for name, properties in offered.items()}
    return {
        name: {each: kind for each, kind in properties.items() if each in found.get(name, ())}
        for name, properties in offered.items()
    }


def selection(entities: Sequence[str], relationships: Mapping[str, Relationship], properties: Offered) -> Selection:
    return Selection(
        {name: properties.get(name, {}) for name in entities},
        {name: replace(each, properties=properties.get(name, {})) for name, each in relationships.items()},
    )


def _own(names: Iterable[str]) -> dict[str, list[str]]:
    return {name: [name] for name in names}


def _taken(step: str, key: str, answer: Json, spellings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the distinct known names that the answer lists. Raises `NothingSelected` for unknown names only."""
    given = _table(step, answer, f"a list {key!r}")
    if not isinstance(given.get(key), list):
        raise NothingSelected(f"{step} selection failed: the answer must hold a list {key!r}.")
    wanted = _texts(given[key])
    found = list(dict.fromkeys(name for one in wanted for name in _found(one, spellings)))
    if wanted and not found:
        known = ", ".join(spellings)
        raise NothingSelected(f"{step} selection failed: there is no {', '.join(wanted[:5])}. Available: {known}.")
    return found


def _found(given: str, spellings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names that match: exactly, or else regardless of case, spaces and underscores."""
    exact = [name for name, known in spellings.items() if given in known]
    return exact or [name for name, known in spellings.items() if _bare(given) in map(_bare, known)]


def _bare(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())


def _table(step: str, answer: Json, wanted: str) -> dict[str, Json]:
    if not isinstance(answer, dict):
        raise NothingSelected(f"{step} selection failed: the answer must be an object with {wanted}.")
    return cast(dict[str, Json], answer)


def _texts(names: Json) -> list[str]:
    listed = cast(list[Json], names) if isinstance(names, list) else []
    return [name for name in listed if isinstance(name, str)]
