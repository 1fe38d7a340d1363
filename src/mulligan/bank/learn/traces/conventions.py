"""Read spans by their conventions: those of OpenTelemetry for generative AI, of any age, and those of OpenInference.

The newer attributes hold whole lists of messages (`gen_ai.input.messages`); older spans have an event for each message
(`gen_ai.user.message`, `gen_ai.choice`), or attributes with numbers in their names (`gen_ai.prompt.0.role`,
`llm.input_messages.0.message.role`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from mulligan.bank.learn.traces.otlp import Span, SpanEvent
from mulligan.bank.learn.transcripts import genai, openai
from mulligan.bank.learn.transcripts._messages import JsonEntry
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.core.turns import Turn
from mulligan.sessions.records import arguments, as_record
from mulligan.text.json_lines import parsed
from mulligan.text.plain import encodable

Kind: TypeAlias = Literal["", "agent", "part", "llm", "tool", "evaluator", "other"]
"""What a span is. "": it does not belong to agents. "part": an agent without a name, such as a step of a graph.
"other": a step without messages, such as a retrieval."""

_OPERATIONS: Mapping[str, Kind] = {
    "invoke_agent": "agent",
    "chat": "llm",
    "text_completion": "llm",
    "generate_content": "llm",
    "execute_tool": "tool",
}
_OPENINFERENCE: Mapping[str, Kind] = {"AGENT": "agent", "LLM": "llm", "TOOL": "tool", "EVALUATOR": "evaluator"}
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_SYSTEM = "gen_ai.system_instructions"
_DETAILS = "gen_ai.client.inference.operation.details"
"""The event that holds the messages if the span does not."""
_MESSAGE_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
}
_CHOICE = "gen_ai.choice"
_PROMPT = ("gen_ai.content.prompt", "gen_ai.prompt")
_COMPLETION = ("gen_ai.content.completion", "gen_ai.completion")
"""The oldest form: the name of an event, and its attribute that holds the messages."""
EVALUATION = "gen_ai.evaluation.result"
TRIAL = "mulligan.trial"
"""The attribute of Mulligan's own spans with the number of a try. The verdict of a run is that of its last try."""
_ANNOTATION = re.compile(
    r"(?:trace\.|session\.)?(annotation|evaluation)s\.(\d+)\.\1\.(name|score|label|explanation)|"
    r"()eval\.(.+)\.(score|label|explanation)"
)
_NUMBER = re.compile(r"\d{1,9}")


def kind_of(span: Span) -> Kind:
    """What a span is."""
    attributes = span.attributes
    if kind := _OPENINFERENCE.get(span.text("openinference.span.kind").upper()):
        return "part" if kind == "agent" and not agent_of(span) else kind
    operation = span.text("gen_ai.operation.name")
    if operation in _OPERATIONS:
        return _OPERATIONS[operation]
    if any(event.name != EVALUATION and is_message(event) for event in span.events):
        return "llm"
    model_attributes = ("gen_ai.request.model", _OUTPUT, "gen_ai.completion.0.content")
    if not operation and any(key in attributes for key in model_attributes):
        return "llm"
    known = operation or "openinference.span.kind" in attributes or any(map(_ANNOTATION.fullmatch, attributes))
    return "other" if known or any(event.name == EVALUATION for event in span.events) else ""


def is_message(event: SpanEvent) -> bool:
    """Whether an event holds messages of agents, or an evaluation."""
    return event.name in (*_MESSAGE_ROLES, _DETAILS, EVALUATION, _PROMPT[0], _COMPLETION[0])


def agent_of(span: Span) -> str:
    return encodable(span.text("gen_ai.agent.name", "agent.name", "gen_ai.agent.id", "agent_name"))


def conversation_of(span: Span) -> str:
    return encodable(span.text("gen_ai.conversation.id", "session.id"))


def response_of(span: Span) -> str:
    return encodable(span.text("gen_ai.response.id"))


# --- messages --------------------------------------------------------------------------------------------------------


def messages_of(span: Span, events: Sequence[SpanEvent] = ()) -> tuple[list[Turn], list[Turn]]:
    """The messages that a model or an agent was given, and those that it said.

    events: the events of the span that are in logs. Raises `InvalidInput`, which names the span and the message.
    """
    details = [event for event in (*span.events, *events) if event.name == _DETAILS]
    tables = [(span.attributes, span.at), *((event.attributes, event.at) for event in details)]
    system = _first_messages(tables, _SYSTEM)
    given = _first_messages(tables, _INPUT)
    said = _first_messages(tables, _OUTPUT)
    if not given and not said:
        given = _flat(span, "llm.input_messages") or _flat(span, "gen_ai.prompt")
        said = _flat(span, "llm.output_messages") or _flat(span, "gen_ai.completion")
    if not given and not said:
        given, said = _event_messages(sorted((*span.events, *events), key=lambda event: event.time))
    called: dict[str, str] = {}
    parts = [entry for entry in system if "parts" not in entry.value]  # parts that belong to no message
    first = [Turn("system", "\n\n".join(filter(None, map(genai.part_text, parts))))] if parts else []
    first += [turn for entry in system if "parts" in entry.value for turn in genai.turns_of(entry, called)]
    return [*first, *_turns(given, called)], _turns(said, called)


def input_and_output(span: Span) -> tuple[list[Turn], list[Turn]]:
    """The input and the output of a span as turns, for a span that holds no single messages."""
    if messages := _messages(span.attributes, "pydantic_ai.all_messages", span.at):
        return _turns(messages, {}), [Turn("assistant", final)] if (final := span.text("final_result")) else []
    given, said = span.text("input.value"), span.text("output.value")
    return [Turn("user", given)] if given else [], [Turn("assistant", said)] if said else []


def call_of(span: Span) -> tuple[Turn, Turn | None]:
    """The call of a tool, and its result; None if the span does not hold the result."""
    name = span.text("gen_ai.tool.name", "tool.name") or span.name
    id = span.text("gen_ai.tool.call.id", "tool_call.id", "tool.id")
    given = _first(span, "gen_ai.tool.call.arguments", "tool_arguments", "input.value", "tool.parameters")
    result = _first(span, "gen_ai.tool.call.result", "tool_response", "output.value")
    failed = span.status == "error"
    if result is None and failed:
        result = error_of(span)
    call = Turn("assistant", arguments("" if given is None else given), name, id)
    return call, None if result is None else Turn("tool", arguments(result), name, id, failed or None)


def error_of(span: Span) -> str:
    """The error message of a span that failed."""
    for event in reversed(span.events):
        if event.name == "exception":
            kind, said = event.attributes.get("exception.type"), event.attributes.get("exception.message")
            return ": ".join(part for part in (kind, said) if isinstance(part, str) and part)
    return span.said or span.text("error.type")


def _first(span: Span, *keys: str) -> Json:
    return next((span.attributes[key] for key in keys if span.attributes.get(key) is not None), None)


def _turns(entries: Iterable[JsonEntry], called: dict[str, str]) -> list[Turn]:
    turns: list[Turn] = []
    for entry in entries:
        reader = genai.turns_of if "parts" in entry.value else openai.turns_of
        turns += [turn for turn in reader(entry, called) if turn.text.strip() or turn.tool]
    return turns


def _messages(table: Mapping[str, Json], key: str, at: str) -> list[JsonEntry]:
    """The messages under a key: a list, or its JSON text. Any other text is one message."""
    value: Any = table.get(key)
    if value is None or value == "":
        return []
    role = "assistant" if key == _OUTPUT else "user"
    if isinstance(value, str):
        value = _json(value, f"{at}: {key}")
    if isinstance(value, str):
        value = [{"role": role, "content": value}]
    messages = cast("list[Any]", value) if isinstance(value, list) else [value]
    entries: list[JsonEntry] = []
    for n, message in enumerate(messages, 1):
        where = f"{at}: {key}, message {n}"
        if isinstance(message, str):
            message = {"type": "text", "content": message} if key == _SYSTEM else {"role": role, "content": message}
        if not isinstance(message, dict):
            raise InvalidInput(f"{where} must be an object, not {type(message).__name__}.")
        entries.append(JsonEntry(where, _openai(cast("dict[str, Json]", message))))
    return entries


def _first_messages(tables: Iterable[tuple[Mapping[str, Json], str]], key: str) -> list[JsonEntry]:
    return next((found for table, at in tables if (found := _messages(table, key, at))), list[JsonEntry]())


def _json(text: str, at: str) -> Json:
    """The value of a text that begins like a JSON object or list; else the text itself."""
    return parsed(at, text) if text.lstrip()[:1] in ("{", "[") else text


def _openai(message: Mapping[str, Json]) -> Mapping[str, Json]:
    """A message in OpenAI's form: the name and arguments of each tool call are moved into `function`."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    moved: list[Json] = []
    for call in cast("list[Json]", calls):
        table = as_record(call)
        outside = table and "function" not in table and "custom" not in table
        about = {"function": {key: table.get(key) for key in ("name", "arguments")}}
        moved.append({**table, **about} if outside else call)
    return {**message, "tool_calls": moved}


def _flat(span: Span, prefix: str) -> list[JsonEntry]:
    """The messages in attributes with numbers in their names, such as `gen_ai.prompt.0.role`."""
    entries: list[JsonEntry] = []
    for n, one in _nested(span.attributes, prefix):
        if not isinstance(one, dict):
            raise InvalidInput(f"{span.at}: {prefix}.{n} must be a message with fields, such as {prefix}.{n}.role.")
        table = cast("dict[str, Any]", one)
        value = dict(cast("dict[str, Json]", table.get("message", table)))
        if "contents" in value:
            contents = _listed(value.pop("contents"))
            value["content"] = [as_record(part).get("message_content", part) for part in contents]
        if "tool_calls" in value:
            value["tool_calls"] = [as_record(call).get("tool_call", call) for call in _listed(value["tool_calls"])]
        if value.get("role") is None:
            value["role"] = "assistant" if prefix.startswith(("llm.output", "gen_ai.completion")) else "user"
        if value.get("role") in ("model", "ai", "human"):
            value["role"] = "user" if value["role"] == "human" else "assistant"
        entries.append(JsonEntry(f"{span.at}: {prefix}.{n}", _openai(value)))
    return entries


def _nested(attributes: Mapping[str, Json], prefix: str) -> list[tuple[int, Json]]:
    """The values under `prefix.0.a.b`, `prefix.1…` as nested tables, in the order of the numbers."""
    top: dict[str, Any] = {}
    for key, value in attributes.items():
        if key.startswith(f"{prefix}."):
            table = top
            *path, last = key[len(prefix) + 1 :].split(".")
            for name in path[:20]:
                if not isinstance(table.get(name), dict):
                    table[name] = {}
                table = table[name]
            if not isinstance(table.get(last), dict):
                table[last] = value
    return sorted((int(key), value) for key, value in top.items() if _NUMBER.fullmatch(key))


def _listed(value: Json) -> list[Json]:
    """The values of a list, or of a table whose keys are numbers, in order."""
    if isinstance(value, list):
        return cast("list[Json]", value)
    if not isinstance(value, dict):
        return [value]
    table = cast("dict[str, Json]", value)
    return [table[key] for key in sorted(table, key=lambda key: int(key) if _NUMBER.fullmatch(key) else -1)]


def _event_messages(events: Iterable[SpanEvent]) -> tuple[list[JsonEntry], list[JsonEntry]]:
    """The messages in events, in the form of OpenAI's API: those that were given, and those that were said."""
    given: list[JsonEntry] = []
    said: list[JsonEntry] = []
    for event in events:
        messages = said if event.name in (_CHOICE, _COMPLETION[0]) else given
        for name, key in (_PROMPT, _COMPLETION):
            if event.name == name:
                messages += _messages(event.attributes, key, event.at)
        if event.name in _MESSAGE_ROLES:
            messages.append(JsonEntry(event.at, _message(event)))
    return given, said


def _message(event: SpanEvent) -> Mapping[str, Json]:
    """The message in the body of an event, or in its attributes."""
    attributes: dict[str, Any] = {}
    for key, value in event.attributes.items():
        attributes[key] = _json(value, f"{event.at}: {key}") if isinstance(value, str) else value
    body: Any = event.body if event.body is not None else attributes.get("gen_ai.event.content", attributes)
    if isinstance(body, str):
        body = _json(body, event.at)
    if not isinstance(body, dict):
        body = {"content": body}
    table = cast("dict[str, Json]", body)
    inner: Any = table.get("message", table)
    if isinstance(inner, (list, str)):
        inner = {"content": cast(Json, inner)}
    if not isinstance(inner, dict):
        raise InvalidInput(f"{event.at}: message must be an object, not {type(inner).__name__}.")
    known = ("content", "tool_calls", "id", "name", "role", "refusal", "parts")
    message = {key: value for key, value in cast("dict[str, Any]", inner).items() if key in known}
    if isinstance(message.get("content"), dict):
        message["content"] = json.dumps(message["content"], ensure_ascii=False)
    if isinstance(message.get("content"), list):
        message["content"] = [_text_block(one) for one in message["content"]]
    if event.name == "gen_ai.tool.message" and "parts" not in message:
        message["tool_call_id"] = message.pop("id", None)
    return _openai({**message, "role": message.get("role") or _MESSAGE_ROLES[event.name]})


def _text_block(block: Any) -> Any:
    """A block of a message. Some programs write its text without a type, or under `content`."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    table = as_record(block)
    if "type" not in table and len(table) == 1 and "text" not in table:
        return {"type": next(iter(table))}
    return {**table, "text": table["content"]} if "content" in table and "text" not in table else block


# --- how it was judged -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluation:
    """How a span was judged. score: None if it has none."""

    name: str
    score: float | None = None
    label: str = ""
    why: str = ""


def evaluations_in(span: Span, events: Iterable[SpanEvent] = ()) -> Iterator[Evaluation]:
    """The evaluations in the attributes and the events of a span."""
    rows: dict[tuple[str, str], dict[str, Json]] = {}
    for key, value in span.attributes.items():
        if parts := _ANNOTATION.fullmatch(key):
            if parts[1]:
                rows.setdefault((key[: parts.start(2)], parts[2]), {})[parts[3]] = value
            else:
                rows.setdefault(("eval", parts[5]), {"name": parts[5]})[parts[6]] = value
    keys = ("name", "score", "label", "explanation")
    evaluations = (_evaluation(*(row.get(key) for key in keys)) for row in rows.values())
    yield from dict.fromkeys(evaluations)  # the same result may be written in both forms
    for event in (*span.events, *events):
        yield from evaluations_of(event)


def evaluations_of(event: SpanEvent) -> Iterator[Evaluation]:
    """The evaluation that an event holds, if it is one."""
    if event.name == EVALUATION:
        fields = {**as_record(event.body), **event.attributes}
        prefix = "gen_ai.evaluation."
        keys = (f"{prefix}name", f"{prefix}score.value", f"{prefix}score.label", f"{prefix}explanation")
        yield _evaluation(*(fields.get(key) for key in keys))


def _evaluation(name: Json, score: Json, label: Json, why: Json) -> Evaluation:
    try:
        number = float(score) if isinstance(score, (int, float, str)) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if isinstance(score, bool) and not label:
        label = "pass" if score else "fail"
    texts = [one if isinstance(one, str) else "" for one in (name, label, why)]
    return Evaluation(texts[0], number if math.isfinite(number) else None, texts[1], texts[2])


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PASSED = _words(
    "pass passed passing correct success successful succeeded true yes ok good accept accepted acceptable "
    "resolved solved complete completed positive thumbs_up"
)
FAILED = _words(
    "fail failed failing incorrect failure unsuccessful false no bad wrong error reject rejected unacceptable "
    "unresolved unsolved incomplete negative thumbs_down"
)
"""Labels of evaluations, in lower case with underscores."""
_RULE = re.compile(r"\s*(?P<name>[^<>=]+?)\s*(?:(?P<sign><=|>=)\s*(?P<limit>[-+.\deE]+))?\s*")


@dataclass(frozen=True)
class Rule:
    """Which evaluation decides whether a task was done, and how: `correctness`, `correctness>=0.8`, `toxicity<=0.1`."""

    name: str
    sign: str = ""
    limit: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Rule:
        """The rule in a text. Raises `InvalidInput`."""
        match = _RULE.fullmatch(text)
        try:
            limit = float(match["limit"] or 1.0) if match else math.nan
        except ValueError:
            limit = math.nan
        if not match or not math.isfinite(limit):
            raise InvalidInput(f"{text!r} is not an evaluation. Use, for example, correctness or correctness>=0.8.")
        return cls(match["name"], match["sign"] or "", limit)

    def passes(self, evaluation: Evaluation) -> bool | None:
        """Whether the task passes by this evaluation, whose name is that of the rule; None if it does not say."""
        if not self.sign and (passed := passes_by_label(evaluation)) is not None:
            return passed
        if evaluation.score is None:
            return None
        return evaluation.score <= self.limit if self.sign == "<=" else evaluation.score >= self.limit


def passes_by_label(evaluation: Evaluation) -> bool | None:
    """Whether the task passes by the label of an evaluation; None if the word is not known.

    A score alone does not tell: only its judge knows what it measures, and whether more is better.
    """
    word = evaluation.label.strip().lower().replace(" ", "_").replace("-", "_")
    return True if word in PASSED else False if word in FAILED else None
