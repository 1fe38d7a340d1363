"""The rows of a query's answer as a tool message: cut to what a model is shown, and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import ToolMessage

from mulligan.core.records import Json
from mulligan.text.truncate import estimate

SHOWN = 4000
"""The approximate tokens of a result that a model is shown."""
TEXT, ITEMS = 400, 20
"""The characters of a string, and the items of a list or an object, that are shown of a row that is too large."""


def has_values(rows: Any) -> bool:
    """Return whether any row holds a value. 0 is one; null, the strings "None" and "null", and empty lists and objects
    are not."""
    listed = cast(list[Any], rows) if isinstance(rows, list) else [rows]
    values = [v for row in listed for v in (cast(dict[str, Any], row).values() if isinstance(row, dict) else [row])]
    return any(_is_value(value) for value in values)


def _is_value(value: Any) -> bool:
    if isinstance(value, list | dict):
        parts = cast(Any, value.values() if isinstance(value, dict) else value)
        return any(_is_value(part) for part in parts)
    return value not in (None, "None", "null")


def tool_message(found: Mapping[str, Json], call: Mapping[str, Any]) -> ToolMessage:
    """Return what came of a query, {"query", "result", …}, as the answer to a tool call. `artifact` holds all of it,
    the text as much as the model is shown."""
    return ToolMessage(
        content=shown(found),
        artifact=dict(found),
        tool_call_id=call.get("id") or "",
        name=call.get("name"),
        status="error" if "error" in found else "success",
    )


def shown(found: Mapping[str, Json], tokens: int = SHOWN) -> str:
    """Return it as JSON with the first rows that fit into the tokens, and a note if there are more."""
    rows: list[Json] = found["result"]
    whole = _json(found)
    if len(whole) <= tokens or estimate(whole) <= tokens:
        return whole
    rest = {name: value for name, value in found.items() if name != "result"}
    left = tokens - estimate(_json(rest)) - 60
    kept: list[Json] = []
    for row in rows:
        left -= estimate(_json(row)) + 1
        if left < 0:
            break
        kept.append(row)
    if not kept and rows:
        kept = [_clipped(rows[0])]
        note = f"the first of {len(rows)} rows, itself cut short: return less of it"
        if estimate(_json(kept)) > tokens:
            kept, note = [], f"no row is shown: each of the {len(rows)} is too large. Return single properties"
    else:
        note = f"the first {len(kept)} of {len(rows)} rows: return fewer or shorter values to see more"
    return _json({**rest, "result": kept, "shown": note})


def result_in(message: ToolMessage) -> Any:
    """Return the "result" of a tool message, or its whole text if it is not such JSON."""
    return record_in(message).get("result")


def record_in(message: ToolMessage) -> dict[str, Any]:
    """Return {"query", "result", …} of a tool message; {"result": its text} if it is something else."""
    whole: Any = message.artifact
    if isinstance(whole, dict) and "result" in whole:
        return cast(dict[str, Any], whole)
    try:
        read = json.loads(message.text)
    except ValueError:
        read = None
    return cast(dict[str, Any], read) if isinstance(read, dict) and "result" in read else {"result": message.text}


def _clipped(value: Json) -> Json:
    """Return the value with long strings, lists and objects cut short, and a note of how much was cut."""
    if isinstance(value, str):
        return value if len(value) <= TEXT else f"{value[:TEXT]}… ({len(value) - TEXT:,} characters more)"
    if isinstance(value, list):
        items = cast(list[Json], value)
        more = [f"… ({len(items) - ITEMS:,} more)"] if len(items) > ITEMS else []
        return [*(_clipped(item) for item in items[:ITEMS]), *more]
    if isinstance(value, dict):
        pairs = list(cast(dict[str, Json], value).items())
        more = {"…": f"{len(pairs) - ITEMS:,} more"} if len(pairs) > ITEMS else {}
        return {**{name[:TEXT]: _clipped(item) for name, item in pairs[:ITEMS]}, **more}
    return value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
