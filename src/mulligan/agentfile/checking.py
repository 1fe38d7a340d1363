"""Validates a document against its model and words each problem, with its line."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from mulligan.agentfile.formats import Schema, forms, kind, properties, resolved, schema_of, yaml_value
from mulligan.agentfile.frontmatter import Document
from mulligan.agentfile.problems import Problem
from mulligan.agentfile.schema import KEBAB
from mulligan.core.records import Json

M = TypeVar("M", bound=BaseModel)


def checked(document: Document, model: type[M], *, strict: bool) -> tuple[M | None, list[Problem]]:
    """The front matter as a model, and its problems. The model is None if a value is wrong.

    An unknown key is left out. It is an error if `strict`, else a warning.
    """
    root = schema_of(model)
    values: dict[str, Json] = deepcopy(dict(document.values))
    conflicts = _conflicts(document, properties(root, root))
    problems = _ignored_keys(document, root) + conflicts
    usable = not document.refused and not conflicts
    try:
        valid = model.model_validate(values)
        return (valid if usable else None), problems
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            path, schema = _locate(fault["loc"], root)
            key = ".".join(map(str, path))
            if fault["type"] == "extra_forbidden":
                message = _unknown_key(str(path[-1]), schema, root)
                problems.append(document.source.problem(key, message, "error" if strict else "warning"))
                _remove(values, path)
                continue
            usable = False
            if key not in document.refused:
                message = _message(fault["type"], path, fault["input"], schema, root)
                problems.append(document.source.problem(key, message))
    return (model.model_validate(values) if usable else None), problems


def meant(name: str, known: Sequence[str]) -> str:
    """ " Did you mean …?" with the nearest known name; "" if none is near."""
    nearest = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {nearest[0]!r}?" if nearest else ""


def _locate(loc: Sequence[int | str], root: Schema) -> tuple[list[int | str], Schema]:
    """The path of a value in its file, and its schema; for an unknown key, that of the table around it.

    Unlike pydantic's `loc`, the path does not contain the tags of unions.
    """
    path: list[int | str] = []
    schema, in_union = root, False
    for part in loc:
        members = forms(schema, root)
        if len(members) > 1 and not in_union:
            schema, in_union = _form(part, members), True
            continue
        path.append(part)
        in_union = False
        inner = resolved(schema, root).get("items", {}) if isinstance(part, int) else properties(schema, root).get(part)
        schema = schema if inner is None else inner
    return path, schema


def _form(tag: int | str, members: Sequence[Schema]) -> Schema:
    return next((form for form in members if ("properties" in form) == (tag == "table")), members[0])


def _message(fault: str, path: Sequence[int | str], value: Json, schema: Schema, root: Schema) -> str:
    """The message for one mistake: the key, what it must be, what it is, and the likeliest fix."""
    is_item = isinstance(path[-1], int)
    name = ".".join(map(str, path[:-1] if is_item else path))
    if fault == "missing":
        example = next(iter(schema.get("examples", ["..."])))
        return f"{name} is missing. Add a line such as `{name}: {yaml_value(example)}`."
    subject, expected = f"each of {name}" if is_item else name, kind(schema, root)
    if value is None:
        return f"{subject} has no value. It must be {expected}; otherwise remove the key."
    if isinstance(value, str) and not value.strip():
        return f"{subject} is empty. It must be {expected}."
    return f"{subject} must be {expected}, not {_quoted(value)}.{_hint(value, resolved(schema, root), root)}"


def _hint(value: Json, schema: Schema, root: Schema) -> str:
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


def _quoted(value: Json) -> str:
    if isinstance(value, Mapping | list):
        return "a table" if isinstance(value, Mapping) else "a list"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:59]}…")
    return json.dumps(value)


def _unknown_key(key: str, schema: Schema, root: Schema) -> str:
    keys = properties(schema, root)
    hint = meant(key, list(keys))
    tables = [name for name, inner in keys.items() if key in properties(inner, root)]
    if not hint and tables:
        hint = f" It belongs under {' or '.join(tables)}."
    available = f" Available: {', '.join(keys)}."
    return f"unknown key {key!r}.{hint or available}"


def _ignored_keys(document: Document, root: Schema) -> list[Problem]:
    """Warnings about keys of other programs."""
    problems: list[Problem] = []
    for name, schema in properties(root, root).items():
        if schema.get("deprecated") and name in document.values:
            why = str(schema["description"]).partition(". ")[2]
            problems.append(document.source.problem(name, f"the key {name!r} is ignored. {why}", "warning"))
    return problems


def _conflicts(document: Document, keys: Mapping[str, Schema]) -> list[Problem]:
    """Problems with keys that mean the same, and with keys that exclude each other."""
    values = {key: value for key, value in document.values.items() if key in keys}
    source = document.source
    call, evaluate = _table(values, "call"), values.get("evaluate")
    problems: list[Problem] = []
    for key in ("model", "uses", "max_iter"):
        counts_cycles = key == "max_iter" and values.get("pattern") == "reflexion"  # and in `call`, model calls
        if key in values and key in call and not counts_cycles:
            where = source.lines.get(f"call.{key}")
            why = f"{key} appears twice: here and as call.{key} on line {where}. Keep one."
            problems.append(source.problem(key, why))
    for above, table in (("model", _table(values, "model")), ("call.model", _table(call, "model"))):
        if "role" in table and "name" in table:
            why = f"{above} must be a role or a name, not both. Keep one."
            problems.append(source.problem(f"{above}.name", why))
    if isinstance(evaluate, Mapping):
        judges = ("tests", "check", "judge", "evaluator")
        given = [key for key in judges if key in evaluate]
        if len(given) > 1:
            why = f"evaluate must have one of tests, check and judge, not {' and '.join(given)}. Keep one."
            problems.append(source.problem(f"evaluate.{given[1]}", why))
        elif not given:
            near = next((said for key in cast(Mapping[str, Json], evaluate) if (said := meant(key, judges))), "")
            problems.append(source.problem("evaluate", f"evaluate needs one of tests, check and judge.{near}"))
    if "reflect" in values and values.get("pattern") == "reflexion":
        problems.append(source.problem("reflect", "reflect.md reflects in a reflexion agent. Remove this key."))
    elif "reflect" in values and evaluate is None:
        why = "reflect needs evaluate: without a judge, there is nothing to reflect on."
        problems.append(source.problem("reflect", why))
    limits = [key for key in ("tries", "trials") if key in _table(values, "limits")]
    if len(limits) > 1:
        problems.append(source.problem("limits.trials", "limits.tries and limits.trials mean the same. Keep tries."))
    if values.get("pattern") == "reflexion" and "max_iter" in values and limits:
        why = f"limits.{limits[0]} and max_iter mean the same for a reflexion agent. Keep max_iter."
        problems.append(source.problem(f"limits.{limits[0]}", why))
    return problems


def _table(values: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    inner = values.get(key)
    return cast(Mapping[str, Json], inner) if isinstance(inner, Mapping) else {}


def _remove(values: Any, where: Sequence[int | str]) -> None:
    for part in where[:-1]:
        values = values[part]
    del values[where[-1]]
