"""Trajectories of OpenHands: events with an `action` or an `observation`, as a list, under `history`, or in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from mulligan.core.turns import Turn
from mulligan.sessions.records import (
    Record,
    arguments,
    as_record,
    inner,
    inner_list,
    number_at,
    own,
    records,
    seconds,
    text_at,
    whole,
)

_TOOLS = {"run": "bash", "run_ipython": "ipython"}
_SAID = ("message", "think", "finish")


class OpenHands:
    def recognises(self, text: str) -> bool:
        return any("source" in one and ("action" in one or "observation" in one) for one in _events(text)[:20])

    def read(self, text: str, name: str) -> list[Turn]:
        called: dict[str, str] = {}
        return [turn for one in _events(text) for turn in _turns(one, called)]


def _events(text: str) -> Sequence[Record]:
    value = whole(text) if text.lstrip()[:1] in ("{", "[") else None
    if isinstance(value, list):
        return [as_record(one) for one in cast("list[Any]", value)]
    return inner_list(as_record(value), "history") or list(records(text))


def _turns(event: Record, called: dict[str, str]) -> Iterator[Turn]:
    """called: the names of the tools by the ids of their calls."""
    id, at = str(event.get("id", "")), seconds(event.get("timestamp"))
    action, observation, given = text_at(event, "action"), text_at(event, "observation"), inner(event, "args")
    if observation:
        call = str(event.get("cause", ""))
        code = number_at(event, "extras", "metadata", "exit_code")
        code = number_at(event, "extras", "exit_code") if code is None else code
        if observation == "error":
            failed: bool | None = True
        else:
            failed = code != 0 if code is not None and code >= 0 else None if observation == "run" else False
        if call in called:  # -1 stands for a command that still runs
            yield Turn("tool", own(text_at(event, "content")), called[call], call, failed, at)
    elif action in _SAID:
        said = own(text_at(given, "content") or text_at(given, "thought") or text_at(event, "message"))
        if said:
            yield Turn("user" if event.get("source") == "user" else "assistant", said, "", id, None, at)
    elif action and event.get("source") == "agent":
        if thought := own(text_at(given, "thought")):
            yield Turn("assistant", thought, "", f"{id}:thought", None, at)
        called[id] = _TOOLS.get(action, action)
        yield Turn("assistant", arguments(given), called[id], id, None, at)
