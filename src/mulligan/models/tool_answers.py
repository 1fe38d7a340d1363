"""Tool calls for models that cannot make any: the tools are described in words, and a call is answered as JSON.

`in_json` turns a question with tools into one with a schema, and `call_of` turns its answer into a call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from mulligan.core.questions import Message, Question, Tool, ToolCall, object_schema
from mulligan.core.records import Json
from mulligan.models import json_answers
from mulligan.models.json_answers import Reading
from mulligan.models.steps import FINISH

CALL: Json = {"type": "object"}
# The least that an answer must be: models that no schema constrains may leave out or rename the rest.

_HOW = """\
You work by calling tools, one in each answer. These are all that there are:

{tools}

Answer with one JSON object and nothing else, such as
{example}
The next message then says what came of it."""

_KEPT = ("type", "enum", "const", "required", "additionalProperties")
_ANYTHING: Json = {"type": ["string", "number", "boolean", "null", "array", "object"]}


def in_json(question: Question) -> Question:
    """The question for a model without tools: they are described, and the schema allows only a call.

    Earlier calls are worded as the JSON that would have made them, results as the user's messages. A question
    without tools and calls is returned unchanged.
    """
    if not question.tools and not any(m.role == "tool" or m.calls for m in question.messages):
        return question
    said = _worded(question.messages)
    if not question.tools:
        return replace(question, messages=tuple(said))
    how = _HOW.format(tools="\n".join(map(tool_text, question.tools)), example=_example(question.tools[0]))
    if said and said[0].role == "system":
        said[0] = replace(said[0], text=f"{said[0].text.rstrip()}\n\n{how}")
    else:
        said.insert(0, Message("system", how))
    return Question(tuple(said), schema_of(question.tools))


def call_of(text: str, *, cut: bool = False) -> ToolCall:
    """The call in an answer: see `read_call`."""
    return read_call(text, cut=cut)[0]


def read_call(text: str, *, cut: bool = False) -> tuple[ToolCall, Reading]:
    """The call in an answer, and how it was read. `cut`: the answer was cut off, so that a `finish` may be mended.

    Raises `ValueError` with the reason.
    """
    if cut and (made := mended(text)):
        return made, Reading(None)
    # What is whole inside a text that was cut is a part of the call and never the call itself.
    reading = Reading(json_answers.whole(text)) if cut else json_answers.read(text, CALL)
    match reading.value:
        case {"tool": str(name), "arguments": given} | {"name": str(name), "arguments": given}:
            arguments = arguments_of(given)
            return ToolCall(name, arguments.value), reading._replace(repairs=(*reading.repairs, *arguments.repairs))
        case {"tool": str(name)} as value:
            return ToolCall(name, {key: inner for key, inner in value.items() if key != "tool"}), reading
        case _:
            raise ValueError('the answer names no tool: it must be {"tool": NAME, "arguments": {...}}')


def arguments_of(given: Json) -> Reading:
    """The arguments as an object, also from text that is JSON or nearly JSON; anything else as text that can be
    recorded."""
    if given is None or given == "":
        return Reading({})
    try:
        found = json_answers.read_object(given) if isinstance(given, str) else Reading(json_answers.recordable(given))
    except ValueError:
        found = Reading(None)
    return found if isinstance(found.value, dict) else Reading(_text_of(given))


def _text_of(given: Json) -> Json:
    try:
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    except RecursionError:
        text = "(nested too deeply)"
    return json_answers.recordable(text)


def mended(text: str) -> ToolCall | None:
    """The `finish` in JSON that was cut off inside its last text: as good as a text that was cut.

    None for every other call: half a file or half a command would be taken for the whole.
    """
    from pydantic_core import from_json

    try:
        value: object = from_json(text[max(text.find("{"), 0) :], allow_partial="trailing-strings", allow_inf_nan=False)
    except ValueError:
        return None
    match value:
        case {"tool": FINISH.name, "arguments": {"key": str(key), "value": str(result)}} if result.strip():
            return ToolCall(FINISH.name, {"key": key, "value": result})
        case _:
            return None


def schema_of(tools: Sequence[Tool]) -> Json:
    """An object that names one of the tools and gives its arguments.

    Small, so that llama.cpp makes a grammar of it and OpenAI-compatible servers take it: what only narrows a value is
    left out (whoever runs the tool checks that), and definitions stand outermost, under names of their own.
    """
    shared: dict[str, Json] = {}
    kinds: list[Json] = []
    for number, tool in enumerate(tools):
        given = cast(dict[str, Json], tool.parameters)
        inner = _definitions(given)
        names = {where: f"t{number}_{count}" for count, where in enumerate(inner)}
        shared |= {names[where]: _form(schema, names) for where, schema in inner.items()}
        form = {**_form(given, names), "type": "object"}
        kinds.append(object_schema(tool={"type": "string", "const": tool.name}, arguments=form))
    whole: dict[str, Json] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return {**whole, "$defs": shared} if shared else whole


def _definitions(schema: dict[str, Json]) -> dict[str, Json]:
    """What the schema defines for itself, by reference."""
    return {
        f"#/{place}/{name}": inner
        for place in ("$defs", "definitions")
        for name, inner in cast(dict[str, Json], schema.get(place) or {}).items()
    }


def _form(schema: Json, names: Mapping[str, str]) -> dict[str, Json]:
    """The schema without what only narrows or explains. names: of the outermost definitions, by reference."""
    if not isinstance(schema, dict):
        return dict(_ANYTHING)
    given = cast(dict[str, Json], schema)
    if "$ref" in given:
        name = names.get(str(given["$ref"]))
        return {"$ref": f"#/$defs/{name}"} if name else dict(_ANYTHING)
    form: dict[str, Json] = {}
    for key in ("anyOf", "oneOf", "allOf"):
        if key in given:
            inner = [_form(each, names) for each in cast(list[Json], given[key])]
            form["allOf" if key == "allOf" else "anyOf"] = inner
    if isinstance(given.get("properties"), Mapping):
        properties = cast(dict[str, Json], given["properties"])
        form["properties"] = {name: _form(each, names) for name, each in properties.items()}
    if "items" in given:
        form["items"] = _form(given["items"], names)
    for key in _KEPT:
        if key in given:
            form[key] = given[key]
    if isinstance(form.get("additionalProperties"), dict):
        form["additionalProperties"] = _form(form["additionalProperties"], names)
    return form or dict(_ANYTHING)


def _example(tool: Tool) -> str:
    """A call of this tool: small models do better with one than with a description of the form. It says nothing that
    would sway a reflector, such as the key "done"."""
    given = cast(dict[str, Any], tool.parameters)
    kinds = cast(dict[str, Json], given.get("properties") or {})
    names = cast(Sequence[str], given.get("required") or ())
    arguments = {name: ["..."] if _kind(kinds.get(name)) == "array" else "..." for name in names}
    return json.dumps({"tool": tool.name, "arguments": arguments})


def _kind(schema: Json) -> Json:
    return cast(dict[str, Json], schema).get("type") if isinstance(schema, dict) else None


def tool_text(tool: Tool) -> str:
    """The tool in words: its name, its arguments (`?`: optional) and what each is."""
    given = cast(dict[str, Any], tool.parameters)
    properties = cast(dict[str, Any], given.get("properties") or {})
    needed = cast(Sequence[str], given.get("required") or ())
    names = ", ".join(name if name in needed else f"{name}?" for name in properties)
    lines = [f"- {tool.name}({names}): {' '.join(tool.description.split())}"]
    for name, schema in properties.items():
        about = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
        description = " ".join(str(about.get("description") or "").split())
        rest = {key: value for key, value in about.items() if key not in ("description", "title", "type")}
        shape = json.dumps(rest, ensure_ascii=False) if rest else ""
        kind = about.get("type")
        said = " ".join(part for part in (kind if isinstance(kind, str) and kind != "string" else "", shape) if part)
        if said or description:
            lines.append(f"  - {name}{f' ({said})' if said else ''}{f': {description}' if description else ''}")
    lines += [f"  - {where}: {json.dumps(inner, ensure_ascii=False)}" for where, inner in _definitions(given).items()]
    return "\n".join(lines)


def _worded(messages: Iterable[Message]) -> list[Message]:
    """Without calls and tool results; user messages that follow one another are one, as some templates want it."""
    said: list[Message] = []
    open_calls: list[ToolCall] = []
    for message in messages:
        if message.calls:
            open_calls += message.calls
            calls = [
                json.dumps({"tool": call.name, "arguments": call.arguments}, ensure_ascii=False)
                for call in message.calls
            ]
            message = replace(message, text="\n".join([message.text, *calls] if message.text else calls), calls=())
        elif message.role == "tool":
            whose = f" of {open_calls.pop(0).name}" if open_calls else ""
            message = Message("user", f"Result{whose}:\n{message.text or '(nothing)'}")
        if message.role == "user" and said and said[-1].role == "user":
            last = said.pop()
            message = Message("user", f"{last.text}\n\n{message.text}", (*last.images, *message.images))
        said.append(message)
    return said
