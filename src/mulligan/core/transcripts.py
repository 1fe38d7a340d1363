"""The protocol of transcript formats: a plug-in reads the text of a conversation as turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

Role: TypeAlias = Literal["user", "assistant", "tool", "system"]


@dataclass(frozen=True)
class Turn:
    """One thing that was said or done.

    user: what a person said. assistant: what the agent said; with `tool`, the arguments that it called this tool with.
    tool: what a tool gave back. system: what stood above the conversation; nothing is learned from it.
    """

    role: Role
    text: str
    tool: str = ""


@runtime_checkable
class TranscriptFormat(Protocol):
    def recognises(self, text: str) -> bool:
        """Whether the text is in this format and in no other that ships. Never raises."""
        ...

    def read(self, text: str, name: str) -> Sequence[Turn]:
        """All turns in order. `name` is what errors call the text. Raises `InvalidInput` that says where."""
        ...
