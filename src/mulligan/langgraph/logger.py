"""What an agent did, line by line, for a person: `agent.get_logs()`."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

log = logging.getLogger("mulligan.langgraph")


class ReflexionAgentLogger:
    """One for each agent; `logs` is all that was logged so far, a line an entry."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def log_step_message(self, step: int, node_name: str, output: BaseMessage) -> None:
        """What a node gave: the arguments of its tool calls, or its text."""
        calls = output.tool_calls if isinstance(output, AIMessage) else []
        said = "; ".join(f"{call['name']}({_shown(call['args'])})" for call in calls) or output.text
        self._log(f"step {step}, {node_name}: {said}")

    def log_final_result(self, final_result: Any) -> None:
        self._log(f"result: {final_result}")

    @property
    def logs(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)

    def _log(self, message: str, level: int = logging.INFO) -> None:
        log.log(level, "%s", message)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._lines.append(f"[{logging.getLevelName(level).lower()}]{now} - {message}")


def _shown(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
