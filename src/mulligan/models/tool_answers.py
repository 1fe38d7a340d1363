"""Tool calls for models without them: the tools are described in words, and the model answers with a call as JSON.

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
# The minimum for an answer: models that no schema constrains may leave out or rename the rest.

_HOW = """\
You work by calling tools, one in each answer. These are all that there are:

{tools}

Answer with one JSON object and nothing else, such as
{example}
The next message then says what came of it."""

_KEYWORDS = ("type", "enum", "const", "required", "additionalProperties")  # of a schema that `_form` keeps
_ANYTHING: Json = {"type": ["string", "number", "boolean", "null", "array", "object"]}


def in_json(question: Question) -> Question:
    """Returns the question for a model without tool calls: the text describes the tools, and the schema allows only a
    call.

    Earlier calls become the corresponding JSON, and their results become user messages. A question without tools and
    calls is returned unchanged.
    """
    if not question.tools and not any(m.role == "tool" or m.calls for m in question.messages):
        return question
    messages = _without_calls(question.messages)
    if not question.tools:
        return replace(question, messages=tuple(messages))
    how = _HOW.format(tools="\n".join(map(tool_text, question.tools)), example=_example(question.tools[0]))
    if messages and messages[0].role == "system":
        messages[0] = replace(messages[0], text=f"{messages[0].text.rstrip()}\n\n{how}")
    else:
        messages.insert(0, Message("system", how))
    return Question(tuple(messages), schema_of(question.tools))


def call_of(text: str, *, cut: bool = False) -> ToolCall:
    """Returns the call in an answer: see `read_call`."""
    return read_call(text, cut=cut)[0]


def read_call(text: str, *, cut: bool = False) -> tuple[ToolCall, Reading]:
    """The call in an answer, and how it was read. Raises `ValueError` with the reason.

    cut: the answer was cut off, so that a `finish` may have to be completed.
    """
    if cut and (finish := completed_finish(text)):
        return finish, Reading(None)
    # A whole value inside a text that was cut off is a part of the call, never the call itself.
    reading = Reading(json_answers.whole(text)) if cut else json_answers.read(text, CALL)
    match reading.value:
        case {"tool": str(name), "arguments": value} | {"name": str(name), "arguments": value}:
            arguments = arguments_of(value)
            return ToolCall(name, arguments.value), reading._replace(repairs=(*reading.repairs, *arguments.repairs))
        case {"tool": str(name)} as value:
            return ToolCall(name, {key: argument for key, argument in value.items() if key != "tool"}), reading
        case _:
            raise ValueError('the answer names no tool: it must be {"tool": NAME, "arguments": {...}}')


def arguments_of(arguments: Json) -> Reading:
    """The arguments as an object, also from a text that is JSON or nearly JSON; anything else as a text."""
    if arguments is None or arguments == "":
        return Reading({})
    try:
        reading = (
            json_answers.read_object(arguments)
            if isinstance(arguments, str)
            else Reading(json_answers.recordable(arguments))
        )
    except ValueError:
        reading = Reading(None)
    return reading if isinstance(reading.value, dict) else Reading(_text_of(arguments))


def _text_of(given: Json) -> Json:
    try:
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    except RecursionError:
        text = "(nested too deeply)"
    return json_answers.recordable(text)


def completed_finish(text: str) -> ToolCall | None:
    """The call of `finish` in JSON that was cut off inside its last string, which is used like any text that was cut.

    None for every other call: half a file or half a command must not be taken for the whole.
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
    """The schema of an object that names one of the tools and gives its arguments.

    It is small, so that llama.cpp can make a grammar of it and OpenAI-compatible servers accept it. Constraints that
    only narrow a value are left out (the tool checks them), and definitions are moved to the top, under new names.
    """
    shared: dict[str, Json] = {}
    kinds: list[Json] = []
    for number, tool in enumerate(tools):
        parameters = cast(dict[str, Json], tool.parameters)
        definitions = _definitions(parameters)
        names = {reference: f"t{number}_{count}" for count, reference in enumerate(definitions)}
        shared |= {names[reference]: _form(schema, names) for reference, schema in definitions.items()}
        form = {**_form(parameters, names), "type": "object"}
        kinds.append(object_schema(tool={"type": "string", "const": tool.name}, arguments=form))
    whole: dict[str, Json] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return {**whole, "$defs": shared} if shared else whole


def _definitions(schema: dict[str, Json]) -> dict[str, Json]:
    """The definitions in a schema, by reference."""
    return {
        f"#/{place}/{name}": inner
        for place in ("$defs", "definitions")
        for name, inner in cast(dict[str, Json], schema.get(place) or {}).items()
    }


def _form(schema: Json, names: Mapping[str, str]) -> dict[str, Json]:
    """The schema without parts that only narrow or explain. names: the new names of definitions, by reference."""
    if not isinstance(schema, dict):
        return dict(_ANYTHING)
    rule = cast(dict[str, Json], schema)
    if "$ref" in rule:
        name = names.get(str(rule["$ref"]))
        return {"$ref": f"#/$defs/{name}"} if name else dict(_ANYTHING)
    form: dict[str, Json] = {}
    for key in ("anyOf", "oneOf", "allOf"):
        if key in rule:
            options = [_form(option, names) for option in cast(list[Json], rule[key])]
            form["allOf" if key == "allOf" else "anyOf"] = options
    if isinstance(rule.get("properties"), Mapping):
        properties = cast(dict[str, Json], rule["properties"])
        form["properties"] = {name: _form(inner, names) for name, inner in properties.items()}
    if "items" in rule:
        form["items"] = _form(rule["items"], names)
    for key in _KEYWORDS:
        if key in rule:
            form[key] = rule[key]
    if isinstance(form.get("additionalProperties"), dict):
        form["additionalProperties"] = _form(form["additionalProperties"], names)
    return form or dict(_ANYTHING)


def _example(tool: Tool) -> str:
    """A call of this tool, because small models do better with one than with a description of the form.

    It avoids words that would influence a reflector, such as the key "done".
    """
    parameters = cast(dict[str, Any], tool.parameters)
    kinds = cast(dict[str, Json], parameters.get("properties") or {})
    names = cast(Sequence[str], parameters.get("required") or ())
    arguments = {name: ["..."] if _kind(kinds.get(name)) == "array" else "..." for name in names}
    return json.dumps({"tool": tool.name, "arguments": arguments})


def _kind(schema: Json) -> Json:
    return cast(dict[str, Json], schema).get("type") if isinstance(schema, dict) else None


def tool_text(tool: Tool) -> str:
    """The tool in words: its name, its arguments (`?`: optional) and their descriptions."""
    parameters = cast(dict[str, Any], tool.parameters)
    properties = cast(dict[str, Any], parameters.get("properties") or {})
    required = cast(Sequence[str], parameters.get("required") or ())
    names = ", ".join(name if name in required else f"{name}?" for name in properties)
    lines = [f"- {tool.name}({names}): {' '.join(tool.description.split())}"]
    for name, schema in properties.items():
        about = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
        description = " ".join(str(about.get("description") or "").split())
        rest = {key: value for key, value in about.items() if key not in ("description", "title", "type")}
        shape = json.dumps(rest, ensure_ascii=False) if rest else ""
        kind = about.get("type")
        form = " ".join(part for part in (kind if isinstance(kind, str) and kind != "string" else "", shape) if part)
        if form or description:
            lines.append(f"  - {name}{f' ({form})' if form else ''}{f': {description}' if description else ''}")
    lines += [
        f"  - {where}: {json.dumps(inner, ensure_ascii=False)}" for where, inner in _definitions(parameters).items()
    ]
    return "\n".join(lines)


def _without_calls(messages: Iterable[Message]) -> list[Message]:
    """The messages with calls and results as text. Consecutive user messages are joined, as some templates require."""
    texts: list[Message] = []
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
            tool = f" of {open_calls.pop(0).name}" if open_calls else ""
            message = Message("user", f"Result{tool}:\n{message.text or '(nothing)'}")
        if message.role == "user" and texts and texts[-1].role == "user":
            last = texts.pop()
            message = Message("user", f"{last.text}\n\n{message.text}", (*last.images, *message.images))
        texts.append(message)
    return texts
