"""The files of an agent as a JSON Schema for editors and as a page for people, both made from the pydantic models.

Any other pydantic model can have its page by the same function. It knows nothing of what is in a user's files.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, cast

import yaml
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from mulligan.agentfile.schema import KEBAB, AgentFile, SkillFile, StepKeys

Format: TypeAlias = Literal["agent", "step", "skill"]
Schema: TypeAlias = Mapping[str, Any]

MODELS: Mapping[Format, type[BaseModel]] = {"agent": AgentFile, "step": StepKeys, "skill": SkillFile}


class _Generator(GenerateJsonSchema):
    """A key that may be left out may not be null, and a default of None is no default."""

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        if "default" in schema and schema["default"] is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def sort(self, value: Any, parent_key: str | None = None) -> Any:
        """Examples keep the order that they were written in."""
        return value

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def schema_of(model: type[BaseModel]) -> Schema:
    """The model's JSON Schema, with `x-default` where the default is said in words."""
    return model.model_json_schema(schema_generator=_Generator)


def json_schema(format: Format) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the front matter of one format."""
    plain: dict[str, Any] = without_notes(schema_of(MODELS[format]))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **plain}


def without_notes(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: without_notes(inner) for key, inner in value.items() if key != "x-default"}  # pyright: ignore[reportUnknownVariableType]
    return [without_notes(inner) for inner in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


# --- a schema in words ------------------------------------------------------------------------------------------


def resolved(schema: Schema, root: Schema) -> Schema:
    """The schema itself, where it is only a reference to it; its own words (description, examples) kept."""
    while "$ref" in schema:
        target = root["$defs"][schema["$ref"].rpartition("/")[2]]
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def forms(schema: Schema, root: Schema) -> list[Schema]:
    """The forms of a union; the schema alone where there is but one."""
    schema = resolved(schema, root)
    choices = None if "properties" in schema else schema.get("oneOf", schema.get("anyOf"))
    return [resolved(form, root) for form in choices] if choices else [schema]


def properties(schema: Schema, root: Schema) -> Mapping[str, Schema]:
    """The keys of the form that is a table; none where no form is."""
    none: Mapping[str, Schema] = {}
    return next((form["properties"] for form in forms(schema, root) if "properties" in form), none)


def kind(schema: Schema, root: Schema, *, many: bool = False, page: bool = False) -> str:
    """What a value must be, in words: "a whole number of at least 1". On a page a table's keys stand elsewhere, and
    words to be typed are marked."""
    several = forms(schema, root)
    if len(several) > 1:
        return ", or ".join(kind(form, root, many=many, page=page) for form in several)
    (schema,) = several
    if "enum" in schema or "const" in schema:
        *first, last = [f"`{value}`" if page else str(value) for value in schema.get("enum", [schema.get("const")])]
        return f"{', '.join(first)} or {last}" if first else last
    match schema.get("type"):
        case "string" if schema.get("pattern") == KEBAB:
            if many:
                return "names (small letters, digits and hyphens)"
            return f"small letters, digits and hyphens, at most {schema['maxLength']} of them"
        case "string":
            return "texts" if many else "text"
        case "integer" | "number" as number:
            noun = "whole number" if number == "integer" else "number"
            return f"{f'{noun}s' if many else f'a {noun}'}{_bounds(schema)}"
        case "boolean":
            return "`true` or `false`" if page else "true or false"
        case "array":
            return f"a list of {kind(schema.get('items', {}), root, many=True, page=page)}"
        case "object":
            known = "" if page else ", ".join(schema.get("properties", ()))
            return f"{'tables' if many else 'a table'}{f' ({known})' if known else ''}"
        case _:
            return "anything"


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" from {_number(low)} to {_number(high)}"
    if "exclusiveMinimum" in schema:
        return f" above {_number(schema['exclusiveMinimum'])}"
    return f" of at least {_number(low)}" if low is not None else ""


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- a page -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Key:
    """One key of a file: `path` is dotted, `NAME` stands for a name of the user's."""

    path: str
    schema: Schema
    required: bool
    kind: str
    like: str = ""
    """The key whose table is the same, and described there."""


def page(
    title: str, intro: str, model: type[BaseModel], example: str, language: Literal["yaml", "toml"] = "yaml"
) -> str:
    """Markdown: what the file is, a whole example, all keys at a glance, then each with its meaning and an example.

    `example` is a whole file as it stands on disk. `language` is that of the keys.
    """
    root = schema_of(model)
    keys = list(_keys(root, root, {}))
    fence = "~~~~" if "```" in example else "```"
    parts = [f"# {title}", intro.strip(), "## Example"]
    parts.append(f"{fence}{'markdown' if language == 'yaml' else language}\n{example.strip()}\n{fence}")
    rows = (f"| [`{key.path}`](#{_anchor(key.path)}) | {key.kind} | {_default(key, language)} |" for key in keys)
    parts += ["## All keys", "\n".join(("| key | value | default |", "|---|---|---|", *rows)), "## What each means"]
    parts += (_entry(key, language) for key in keys)
    return "\n\n".join(parts) + "\n"


def _keys(schema: Schema, root: Schema, seen: dict[int, str], above: str = "") -> Iterator[_Key]:
    """Each key before those below it. `seen`: where each table was described, by the identity of its keys."""
    for name, inner in properties(schema, root).items():
        path = f"{above}.{name}" if above else name
        found = next((form["properties"] for form in forms(inner, root) if "properties" in form), None)
        said = (resolved(inner, root), name in schema.get("required", ()), kind(inner, root, page=True))
        yield _Key(path, *said, seen.get(id(found), ""))
        each: Any = resolved(inner, root).get("additionalProperties")
        if isinstance(each, dict):  # a table whose keys are the user's own
            inner, path = cast(Schema, each), f"{path}.NAME"
        for form in forms(inner, root):
            if "properties" in form and id(form["properties"]) not in seen:
                seen[id(form["properties"])] = path
                yield from _keys(form, root, seen, path)


def _default(key: _Key, language: Literal["yaml", "toml"]) -> str:
    if key.required:
        return "required"
    said = key.schema.get("x-default")
    if said is not None:
        return str(said)
    if "default" not in key.schema:
        return "–"
    write = yaml_value if language == "yaml" else _toml_value
    return f"`{write(key.schema['default'])}`"


def _anchor(path: str) -> str:
    """As GitHub makes it of a heading."""
    return "".join(c for c in path.lower() if c.isalnum() or c in "-_")


def _entry(key: _Key, language: Literal["yaml", "toml"]) -> str:
    default = _default(key, language)
    state = {"required": "Required.", "–": ""}.get(default, f"Default: {default}.")
    first = f"*{key.kind[0].upper()}{key.kind[1:]}.* {state}".strip()
    like = f"Its keys are those of [`{key.like}`](#{_anchor(key.like)})." if key.like else ""
    text = f"{str(key.schema.get('description', '')).strip()} {like}".strip()
    parts = [f"### `{key.path}`", _wrapped(first), _wrapped(text)]
    for example in key.schema.get("examples", ())[:1]:
        write = _yaml if language == "yaml" else _toml
        parts.append(f"```{language}\n{write(key.path.split('.'), example)}\n```")
    return "\n\n".join(part for part in parts if part)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _yaml(path: list[str], value: Any) -> str:
    for name in reversed(path):
        value = {name: value}
    return "\n".join(_yaml_lines(value))


def _yaml_lines(table: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _yaml_lines(cast(dict[str, Any], value), f"{indent}  ")
        else:
            yield f"{indent}{name}: {yaml_value(value)}"


def yaml_value(value: Any) -> str:
    """A text, number, list or such on one line; a text in quotes where YAML or a reader could take it for a number."""
    if isinstance(value, str) and value[:1].isdigit():
        return json.dumps(value)
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000).strip()
    return text.removesuffix("...").strip()


def _toml(path: list[str], value: Any) -> str:
    *tables, name = path
    line = f"{name} = {_toml_value(value)}"
    return f"[{'.'.join(tables)}]\n{line}" if tables else line


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{key} = {_toml_value(inner)}" for key, inner in value.items())  # pyright: ignore[reportUnknownVariableType]
        return f"{{ {inside} }}"
    if isinstance(value, list):
        return f"[{', '.join(_toml_value(inner) for inner in value)}]"  # pyright: ignore[reportUnknownVariableType]
    return json.dumps(value, ensure_ascii=False)
