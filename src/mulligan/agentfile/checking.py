"""Validates a document against its model and words each problem, with its line."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from mulligan.agentfile.formats import Schema, forms, kind, properties, resolved, schema_of, yaml_value
from mulligan.agentfile.frontmatter import Document
from mulligan.agentfile.problems import Problem
from mulligan.agentfile.schema import KEBAB
from mulligan.core.records import Json

M = TypeVar("M", bound=BaseModel)


def checked(document: Document, model: type[M], *, strict: bool) -> tuple[M | None, list[Problem]]:
    """The front matter as a model, and its problems; None instead of the model when a value is wrong.

    An unknown key is left out. It is an error where `strict`, else a warning.
    """
    root = schema_of(model)
    values = cast(dict[str, Json], _copied(document.values))
    conflicts = _conflicts(document, properties(root, root))
    problems = _ignored(document, root) + conflicts
    usable = not document.refused and not conflicts
    try:
        made = model.model_validate(values)
        return (made if usable else None), problems
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            where, schema = _place(fault["loc"], root)
            key = ".".join(map(str, where))
            if fault["type"] == "extra_forbidden":
                said = _unknown(str(where[-1]), schema, root)
                problems.append(document.source.problem(key, said, "error" if strict else "warning"))
                _remove(values, where)
                continue
            usable = False
            if key not in document.refused:
                said = _worded(fault["type"], where, fault["input"], schema, root)
                problems.append(document.source.problem(key, said))
    return (model.model_validate(values) if usable else None), problems


def meant(given: str, known: Sequence[str]) -> str:
    """ " Did you mean …?" with the nearest known name; "" where nothing is near."""
    near = difflib.get_close_matches(given, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _place(loc: Sequence[int | str], root: Schema) -> tuple[list[int | str], Schema]:
    """The path of a value in its file, and its schema (for an unknown key, that of the table that it is in).

    pydantic's path also names the chosen form of a union, after the key.
    """
    where: list[int | str] = []
    schema, formed = root, False
    for part in loc:
        several = forms(schema, root)
        if len(several) > 1 and not formed:
            schema, formed = _form(part, several), True
            continue
        where.append(part)
        formed = False
        inner = resolved(schema, root).get("items", {}) if isinstance(part, int) else properties(schema, root).get(part)
        schema = schema if inner is None else inner
    return where, schema


def _form(tag: int | str, several: Sequence[Schema]) -> Schema:
    return next((form for form in several if ("properties" in form) == (tag == "table")), several[0])


def _worded(fault: str, where: Sequence[int | str], value: Json, schema: Schema, root: Schema) -> str:
    """The message for one mistake: the key, what it must be, what it is, and the likeliest fix."""
    each = isinstance(where[-1], int)
    name = ".".join(map(str, where[:-1] if each else where))
    if fault == "missing":
        example = next(iter(schema.get("examples", ["..."])))
        return f"{name} is missing. Add a line such as `{name}: {yaml_value(example)}`."
    subject, what = f"each of {name}" if each else name, kind(schema, root)
    if value is None:
        return f"{subject} has no value. It must be {what}; otherwise remove the key."
    if isinstance(value, str) and not value.strip():
        return f"{subject} is empty. It must be {what}."
    return f"{subject} must be {what}, not {_shown(value)}.{_way_out(value, resolved(schema, root), root)}"


def _way_out(value: Json, schema: Schema, root: Schema) -> str:
    if "enum" in schema:
        return meant(value, schema["enum"]) if isinstance(value, str) else ""
    if schema.get("pattern") == KEBAB and isinstance(value, str):
        near = re.sub("[^a-z0-9]+", "-", value.lower()).strip("-")[: schema["maxLength"]]
        return f" Such as {near!r}." if near else ""
    types = {form.get("type") for form in forms(schema, root)}
    if "string" in types and isinstance(value, int | float):
        return " Write it in quotes."
    if types == {"array"} and isinstance(value, str):
        parts = re.split(r"[,\s]+", value.strip())
        return f" Write it as {json.dumps(parts)}." if re.fullmatch(r"[\w:.,/@* -]+", value) else ""
    if types <= {"integer", "number"} and isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?", value):
        return " Remove the quotes."
    return ""


def _shown(value: Json) -> str:
    if isinstance(value, Mapping | list):
        return "a table" if isinstance(value, Mapping) else "a list"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:59]}…")
    return json.dumps(value)


def _unknown(key: str, schema: Schema, root: Schema) -> str:
    known = properties(schema, root)
    near = meant(key, list(known))
    above = [name for name, inner in known.items() if key in properties(inner, root)]
    if not near and above:
        near = f" It belongs under {' or '.join(above)}."
    listed = f" Available: {', '.join(known)}."
    return f"unknown key {key!r}.{near or listed}"


def _ignored(document: Document, root: Schema) -> list[Problem]:
    """Keys of other programs."""
    found: list[Problem] = []
    for name, schema in properties(root, root).items():
        if schema.get("deprecated") and name in document.values:
            why = str(schema["description"]).partition(". ")[2]
            found.append(document.source.problem(name, f"the key {name!r} is ignored. {why}", "warning"))
    return found


def _conflicts(document: Document, known: Mapping[str, Schema]) -> list[Problem]:
    """Reports keys that mean the same, and keys that exclude each other."""
    values = {key: value for key, value in document.values.items() if key in known}
    source = document.source
    call, evaluate = _table(values, "call"), values.get("evaluate")
    found: list[Problem] = []
    for key in ("model", "uses", "max_iter"):
        cycles = key == "max_iter" and values.get("pattern") == "reflexion"  # another number than that of the steps
        if key in values and key in call and not cycles:
            where = source.lines.get(f"call.{key}")
            why = f"{key} appears twice: here and as call.{key} on line {where}. Keep one."
            found.append(source.problem(key, why))
    for above, table in (("model", _table(values, "model")), ("call.model", _table(call, "model"))):
        if "role" in table and "name" in table:
            why = f"{above} takes a role or a name, not both. Keep one."
            found.append(source.problem(f"{above}.name", why))
    if isinstance(evaluate, Mapping):
        judges = ("tests", "check", "judge", "evaluator")
        given = [key for key in judges if key in evaluate]
        if len(given) > 1:
            why = f"evaluate takes one of tests, check and judge, not {' and '.join(given)}. Keep one."
            found.append(source.problem(f"evaluate.{given[1]}", why))
        elif not given:
            near = next((said for key in cast(Mapping[str, Json], evaluate) if (said := meant(key, judges))), "")
            found.append(source.problem("evaluate", f"evaluate needs one of tests, check and judge.{near}"))
    if "reflect" in values and values.get("pattern") == "reflexion":
        found.append(source.problem("reflect", "reflect.md reflects in a reflexion agent. Remove this key."))
    elif "reflect" in values and evaluate is None:
        why = "reflect needs evaluate: without a judge, there is nothing to reflect on."
        found.append(source.problem("reflect", why))
    limits = [key for key in ("tries", "trials") if key in _table(values, "limits")]
    if len(limits) > 1:
        found.append(source.problem("limits.trials", "limits.tries and limits.trials mean the same. Keep tries."))
    if values.get("pattern") == "reflexion" and "max_iter" in values and limits:
        why = f"limits.{limits[0]} and max_iter mean the same for a reflexion agent. Keep max_iter."
        found.append(source.problem(f"limits.{limits[0]}", why))
    return found


def _table(values: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    inner = values.get(key)
    return cast(Mapping[str, Json], inner) if isinstance(inner, Mapping) else {}


def _copied(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in cast(Mapping[str, Json], value).items()}
    return [_copied(inner) for inner in cast(list[Json], value)] if isinstance(value, list) else value


def _remove(values: Any, where: Sequence[int | str]) -> None:
    for part in where[:-1]:
        values = values[part]
    del values[where[-1]]
