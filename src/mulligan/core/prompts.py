"""Prompt files: Markdown with a line `[[system]]`, `[[user]]` or `[[assistant]]` before each message.

`{{name}}` is replaced by a value that the plug-in hands in, never parsed again, so text from a model stays data.
A paragraph whose placeholders are all empty is left out. `app.prompts` finds the files.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from itertools import takewhile

from mulligan.core.errors import InvalidInput
from mulligan.core.questions import Message

_HEAD = re.compile(r"^\[\[(\w+)\]\][ \t]*$", re.MULTILINE)
_SLOT = re.compile(r"\{\{(\w+)\}\}")
_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class Prompt:
    """A prompt: its messages as pairs of role and text. `sha256` is the file's hash; `slots` are the placeholders."""

    name: str
    parts: tuple[tuple[str, str], ...]
    sha256: str
    examples: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, name: str, text: str) -> Prompt:
        """Parses a file.

        Raises:
            InvalidInput: the file has no messages, an unknown role, or text before the first message.
        """
        text = text.replace("\r\n", "\n")
        pieces = _HEAD.split(text)
        if pieces[0].strip():
            line = text[: len(pieces[0])].lstrip("\n").split("\n")[0]
            raise InvalidInput(f"Prompt {name}: a line [[system]] or [[user]] must come before {line[:40]!r}.")
        parts = tuple(zip(pieces[1::2], (p.strip("\n") for p in pieces[2::2]), strict=True))
        if not parts:
            raise InvalidInput(f"Prompt {name} contains no message: begin one with a line [[user]].")
        for role, _ in parts:
            if role not in _ROLES:
                raise InvalidInput(f"Prompt {name}: [[{role}]] is not one of {', '.join(_ROLES)}.")
        return cls(name, parts, hashlib.sha256(text.encode()).hexdigest())

    @property
    def slots(self) -> frozenset[str]:
        """The names of the placeholders."""
        return frozenset(slot for _, text in self.parts for slot in _SLOT.findall(text))

    def check(self, *allowed: str) -> Prompt:
        """Returns the prompt.

        Raises:
            InvalidInput: the prompt contains a placeholder that is not in `allowed`.
        """
        for slot in sorted(self.slots - set(allowed)):
            raise InvalidInput(
                f"Prompt {self.name}: {{{{{slot}}}}} is not available here; use {', '.join(sorted(allowed))}."
            )
        return self

    def with_examples(self, examples: Prompt | None) -> Prompt:
        """Returns the prompt with worked examples after the system message, as separate turns and word for word.

        This way, a small model does not mistake an example for the current task.
        """
        return self if examples is None else replace(self, examples=examples.parts)

    def render(self, **values: str) -> tuple[Message, ...]:
        """Returns the messages with these values, without empty messages."""
        leading = sum(1 for _ in takewhile(lambda part: part[0] == "system", self.parts))
        filled = [(role, _fill(text, values)) for role, text in self.parts]
        messages = (*filled[:leading], *self.examples, *filled[leading:])
        return tuple(Message(role, text) for role, text in messages if text)  # pyright: ignore[reportArgumentType]

    def text(self, **values: str) -> str:
        """Returns the messages as one text, for a program that reads its prompt from a file, without NUL characters and
        with a final newline.
        """
        return "\n\n".join(message.text for message in self.render(**values)).replace("\0", "") + "\n"


def _fill(text: str, values: dict[str, str]) -> str:
    paragraphs: list[str] = []
    for paragraph in re.split(r"\n{2,}", text):
        slots = _SLOT.findall(paragraph)
        if slots and not any(values.get(slot) for slot in slots):
            continue
        paragraphs.append(_SLOT.sub(lambda slot: values.get(slot[1], ""), paragraph))
    return "\n\n".join(paragraphs).strip("\n")
