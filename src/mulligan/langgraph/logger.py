"""What an agent did, line by line, for a person: `agent.get_logs()`."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import BaseMessage

from mulligan.text.plain import one_line

log = logging.getLogger("mulligan.langgraph")

WIDTH = 2000
"""Characters of one entry."""
KEPT = 10_000
"""Entries that are kept, the newest."""
_LEVELS = {"info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


class ReflexionAgentLogger:
    """One for each agent; `logs` is all that was logged so far, a line an entry."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT)

    def log_step_message(self, step: int, node_name: str, output: BaseMessage) -> None:
        """What a node gave: the arguments of its tool calls, or its text."""
        calls = getattr(output, "tool_calls", ())
        said = "; ".join(f"{call['name']}({_shown(call['args'])})" for call in calls) or output.text
        self._log_message(f"step {step}, {node_name}: {said}")

    def log_final_result(self, final_result: Any) -> None:
        self._log_message(f"result: {final_result}")

    @property
    def logs(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)

    def _log_message(self, msg: str, level: str = "info") -> None:
        """level: "info", "warn" or "error"."""
        line = one_line(msg, WIDTH)
        log.log(_LEVELS.get(level, logging.INFO), "%s", line)
        self._lines.append(f"[{level}]{datetime.now(UTC).isoformat(timespec='seconds')} - {line}")


def _shown(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
