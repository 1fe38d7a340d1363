"""JSON Schemas of an agent's files, made from their pydantic models, and descriptions of their values in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

import yaml
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from mulligan.agentfile.schema import FOLDER, KEBAB

Schema: TypeAlias = Mapping[str, Any]


class _Generator(GenerateJsonSchema):
    """Generates schemas in which an optional key may not be null, and a default of None is left out."""

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        if "default" in schema and schema["default"] is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def sort(self, value: Any, parent_key: str | None = None) -> Any:
        """Keeps the order in which examples are written."""
        return value

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def schema_of(model: type[BaseModel]) -> Schema:
    """The model's JSON Schema; `x-default` is a default in words."""
    return model.model_json_schema(schema_generator=_Generator)


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a format, for editors."""
    plain: dict[str, Any] = without_notes(schema_of(model))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **plain}


def without_notes(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: without_notes(inner) for key, inner in value.items() if key != "x-default"}  # pyright: ignore[reportUnknownVariableType]
    return [without_notes(inner) for inner in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


# --- a schema in words ------------------------------------------------------------------------------------------


def resolved(schema: Schema, root: Schema) -> Schema:
    """The schema that a reference refers to, with the description and examples of the reference itself."""
    while "$ref" in schema:
        target = root["$defs"][schema["$ref"].rpartition("/")[2]]
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def forms(schema: Schema, root: Schema) -> list[Schema]:
    """The members of a union; for any other schema, only itself."""
    schema = resolved(schema, root)
    choices = None if "properties" in schema else schema.get("oneOf", schema.get("anyOf"))
    return [resolved(form, root) for form in choices] if choices else [schema]


def properties(schema: Schema, root: Schema) -> Mapping[str, Schema]:
    """The keys of the union's member that is a table; empty if there is none."""
    none: Mapping[str, Schema] = {}
    return next((form["properties"] for form in forms(schema, root) if "properties" in form), none)


def kind(schema: Schema, root: Schema, *, many: bool = False, page: bool = False) -> str:
    """What a value must be, in words: "an integer of at least 1".

    many: in the plural. page: for the docs, which list a table's keys elsewhere and format literal words as code.
    """
    members = forms(schema, root)
    if len(members) > 1:
        return _either([word for form in members for word in _words(form, root, many=many, page=page)])
    (schema,) = members
    if "enum" in schema or "const" in schema:
        return _either(_words(schema, root, many=many, page=page))
    match schema.get("type"):
        case "string" if schema.get("pattern") == KEBAB:
            if many:
                return "names (lowercase letters, digits and hyphens)"
            return f"at most {schema['maxLength']} lowercase letters, digits and hyphens"
        case "string" if schema.get("pattern") == FOLDER:
            return "folder names" if many else "a folder name"
        case "string":
            return "strings" if many else "a string"
        case "integer" | "number" as number:
            one = "an integer" if number == "integer" else "a number"
            return f"{f'{number}s' if many else one}{_bounds(schema)}"
        case "boolean":
            return _either(_words(schema, root, many=many, page=page))
        case "array":
            return f"a list of {kind(schema.get('items', {}), root, many=True, page=page)}"
        case "object":
            keys = "" if page else ", ".join(schema.get("properties", ()))
            return f"{'tables' if many else 'a table'}{f' ({keys})' if keys else ''}"
        case _:
            return "anything"


def _words(form: Schema, root: Schema, *, many: bool, page: bool) -> list[str]:
    """The alternatives of one member of a union: its literal words, or its kind."""
    if "enum" in form or "const" in form:
        return [_literal(value, page=page) for value in form.get("enum", [form.get("const")])]
    if form.get("type") == "boolean":
        return [_literal(word, page=page) for word in ("true", "false")]
    return [kind(form, root, many=many, page=page)]


def _literal(value: Any, *, page: bool) -> str:
    word = str(value) or '""'
    return f"`{word}`" if page else word


def _either(words: list[str]) -> str:
    *first, last = words
    comma = "," if any(" of at least " in word for word in first) else ""
    return f"{', '.join(first)}{comma} or {last}" if first else last


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" from {_number(low)} to {_number(high)}"
    if "exclusiveMinimum" in schema:
        return f" above {_number(schema['exclusiveMinimum'])}"
    return f" of at least {_number(low)}" if low is not None else ""


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def yaml_value(value: Any) -> str:
    """A value as YAML on one line. A text that could be taken for a number is put in quotes."""
    if isinstance(value, str) and value[:1].isdigit():
        return json.dumps(value)
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000).strip()
    return text.removesuffix("...").strip()
