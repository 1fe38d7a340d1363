"""Trajectories of SWE-agent (`.traj`): an object whose `trajectory` has a step for each action.

SWE-agent does not note exit codes, so the verdicts of its commands are unknown. mini-SWE-agent's are read as the chat
messages that they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from mulligan.core.turns import Turn
from mulligan.sessions.records import Record, arguments, inner_list, record_in, text_at, texts


class SweAgent:
    def recognises(self, text: str) -> bool:
        steps = inner_list(record_in(text), "trajectory")
        return bool(steps) and all("action" in one and "observation" in one for one in steps)

    def read(self, text: str, name: str) -> list[Turn]:
        whole = record_in(text)
        asked = [one for one in inner_list(whole, "history") if one.get("role") == "user" and not one.get("is_demo")]
        task = [Turn("user", texts(one.get("content"))) for one in asked[:1]]
        steps = enumerate(inner_list(whole, "trajectory"), 1)
        return [*task, *(turn for number, one in steps for turn in _turns(one, f"step{number}"))]


def _turns(step: Record, id: str) -> Iterator[Turn]:
    if thought := text_at(step, "thought").strip():
        yield Turn("assistant", thought)
    if action := text_at(step, "action").strip():
        yield Turn("assistant", arguments({"command": action}), "bash", id)
        yield Turn("tool", text_at(step, "observation"), "bash", id)
