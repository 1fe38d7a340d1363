"""`retrieve_memory`: recalls lessons that help with a task, in the format of the ReasoningBank server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import annotations_of, fields_with
from mulligan.core.records import Json, Lesson, Recall, checked_kind
from mulligan.mcp_server.tool import Call, Reply, Tool, definition

MAX_LESSONS = 100
"""Lessons in one answer; the schema of `top_k` names the same number."""

MAX_QUERY = 100_000
"""Characters of a query."""


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    query, top_k = query_of(arguments.get("query")), _top_k(arguments.get("top_k"))
    bank = call.service.bank(call.agent(arguments.get("agent_id")))
    kind = kind_of(arguments.get("kind"))
    recall = await bank.recall(query, top_k=top_k, forms=cast(Any, arguments.get("forms")), kind=kind)
    about: dict[str, Json] = {
        "min_score_threshold": recall.threshold or 0.0,
        "filtered_count": recall.filtered,
        "memories": [memory_json(lesson) for lesson in recall.lessons],
        "formatted_prompt": recall.formatted_prompt,
        "retrieval_id": recall.id,
        **({"note": note} if (note := _note(recall)) else {}),
    }
    if not recall.lessons and not recall.episodes:
        return Reply({"status": "no_memories", "message": _why_none(recall), "query": query, **about})
    how: dict[str, Json] = {"query": query, "retrieval_strategy": bank.strategy, "top_k": top_k}
    data: dict[str, Json] = {"status": "success", **how, **about}
    return Reply(data, shown={**data, "memories": [_shown(one, recall.formatted_prompt) for one in data["memories"]]})


def failed(message: str, arguments: Mapping[str, Json]) -> Reply:
    query = arguments.get("query")
    shown = query if isinstance(query, str) and len(query) <= MAX_QUERY else None
    about: dict[str, Json] = {"query": shown, "memories": [], "formatted_prompt": ""}
    return Reply({"status": "error", "message": f"Retrieval failed: {message}", **about}, error=True)


def query_of(given: Json) -> str:
    """The text of a task. Raises `InvalidInput`."""
    if not isinstance(given, str) or not given.strip():
        raise InvalidInput("'query' must be a string that describes the task.")
    if len(given) > MAX_QUERY:
        raise InvalidInput(f"query has {len(given):,} characters; at most {MAX_QUERY:,} are accepted. Shorten it.")
    return given


def kind_of(given: Json) -> str | None:
    """The name of a kind of task. Raises `InvalidInput`."""
    if given is not None and not isinstance(given, str):
        raise InvalidInput(f"'kind' must be a string, not {given!r:.80}.")
    return checked_kind(given) or None if given is not None else None


def _top_k(given: Json) -> int:
    """1 if left out; 2.0 counts as 2."""
    value = 1 if given is None else int(given) if isinstance(given, float) and given.is_integer() else given
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_LESSONS:
        raise InvalidInput(f"top_k must be an integer from 1 to {MAX_LESSONS}, not {given!r:.80}.")
    return value


def memory_json(lesson: Lesson) -> dict[str, Json]:
    return {
        "memory_id": lesson.id,
        "score": lesson.score,
        "title": lesson.title,
        "content": lesson.content,
        "success": lesson.outcome == "success",
        "tags": list(lesson.tags),
        "description": lesson.description,
        "agent_id": lesson.agent_id or None,
        **_fact(lesson),
        **{name: value for name in fields_with("brief") if (value := getattr(lesson, name))},
    }


def _fact(lesson: Lesson) -> dict[str, Json]:
    """Further fields of a fact; the original format knows strategies only."""
    if lesson.nature == "strategy":
        return {}
    return {"nature": lesson.nature, "project": lesson.project or None, "confirmed": lesson.confirmed}


def _shown(memory: Mapping[str, Json], prompt: str) -> dict[str, Json]:
    """The lesson without what `prompt` says of it, so that a model reads each lesson once."""
    lines = {line.removeprefix("> ") for line in prompt.splitlines()}
    repeated = [name for name in ("content", "description") if lines.issuperset(_lines(memory[name]))]
    return {name: value for name, value in memory.items() if name not in repeated}


def _lines(text: str) -> list[str]:
    """The lines as `formatted_prompt` quotes them."""
    return [line.rstrip() for line in text.strip().splitlines()]


def _why_none(recall: Recall) -> str:
    if "withheld" in recall.note:
        return f"Nothing is shown: found {recall.note}."
    if not recall.filtered:
        return "No lesson was found: nothing like this has been learned yet."
    return f"No lesson is relevant enough: {_held_back(recall)}"


def _note(recall: Recall) -> str:
    found = f"Found {recall.note}." if recall.note else ""
    return " ".join(part for part in (found, _held_back(recall) if recall.lessons and recall.filtered else "") if part)


def _held_back(recall: Recall) -> str:
    from mulligan.bank.recall.prompt_text import held_back

    return f"{held_back(recall)}. At a terminal, mulligan memory search QUERY --threshold 0 shows all."


def _definition() -> Mapping[str, Json]:
    """The definition, with the fields of a lesson that are shown in brief."""
    tool, types = definition("retrieve_memory"), {bool: "boolean", int: "integer", float: "number"}
    shown = {name: {"type": types.get(annotations_of(Lesson)[name][0], "string")} for name in fields_with("brief")}
    tool["outputSchema"]["properties"]["memories"]["items"]["properties"] |= shown
    return tool


# read-only, because it changes no lesson; it does record the query and the answer
TOOL = Tool(_definition(), call, failed)
