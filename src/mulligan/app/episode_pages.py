"""The pages about one episode: its story, the steps of its journal, its images, and its task for a file of tasks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mulligan.app.compose import OBJECT
from mulligan.app.run_context import Call, calls_of, messages_of, run_context, table_of
from mulligan.app.story import body, doing, formatted, formatted_text, header, images_of
from mulligan.core.errors import NotFound
from mulligan.core.protocols import StepRow, Store
from mulligan.core.records import Episode
from mulligan.text.images import format_of
from mulligan.text.pages import Block
from mulligan.text.plain import count
from mulligan.text.secrets import mask_json


@dataclass(frozen=True)
class StoryPage:
    """The story in two parts, and between them what is being done now; "" if the episode is not running."""

    header: Sequence[Block]
    doing: str
    body: Sequence[Block]


@dataclass(frozen=True)
class StepPage:
    """A step of the journal.

    Attributes:
        last: the number of the last step.
        messages: the roles and texts of the messages to a model.
        request: the rest of the request.
        response: empty until the step is done.
        raw: the request and the response as JSON.
    """

    call: Call
    key: str
    last: int
    messages: Sequence[tuple[str, str]]
    request: Sequence[Block]
    response: Sequence[Block]
    raw: tuple[str, str]


@dataclass(frozen=True)
class EpisodePages:
    """The pages about an episode.

    Attributes:
        only: the only bank that can be read. None: any bank.
    """

    store: Store
    episode: Episode
    only: str | None = None

    async def story(self) -> StoryPage:
        """Returns the page that describes what happened in the episode."""
        context = await run_context(self.store, self.episode, only=self.only)
        return StoryPage(
            list(header(self.episode, context)), doing(self.episode, context), list(body(self.episode, context))
        )

    async def step(self, number: int) -> StepPage:
        """Returns the step with this number, from 1.

        Raises:
            NotFound
        """
        rows = await self.store.steps(self.episode.id)
        if not 1 <= number <= len(rows):
            raise NotFound(f"Episode {self.episode.id} has no step {number}; it has {count(len(rows), 'step')}.")
        row = rows[number - 1]
        messages = messages_of(row.request)
        settings = {name: part for name, part in table_of(row.request).items() if name != "messages"}
        return StepPage(
            calls_of(rows)[number - 1],
            row.key,
            len(rows),
            messages,
            list(formatted(settings if messages else row.request)),
            list(_response(row)) if row.done else [],
            (_indented(row.request), _indented(row.result)),
        )

    def image(self, number: int) -> tuple[bytes, str]:
        """Returns the image with this number, from 1, and its media type.

        Raises:
            NotFound
        """
        images = images_of(self.episode)
        if not 1 <= number <= len(images):
            raise NotFound(
                f"Episode {self.episode.id} has no image {number}: its images are numbered from 1 to {len(images)}."
            )
        data = images[number - 1].data
        return data, format_of(data).media_type

    @property
    def task(self) -> str:
        """Returns the task as a table for `mulligan bench run`, with its judge if a file can specify it."""
        table = {"id": self.episode.id, "prompt": self.episode.task.prompt, **self._judge}
        masked = cast(dict[str, Any], mask_json(table))
        return "\n".join(["[[task]]", *(f"{name} = {_toml(value)}" for name, value in masked.items()), ""])

    @property
    def has_judge(self) -> bool:
        """Whether a task file can specify the judge."""
        return bool(self._judge)

    @property
    def _judge(self) -> dict[str, Any]:
        """The keys of a task file that name the judge. Empty: a file cannot name it."""
        judge = table_of(self.episode.head.settings.get("evaluator"))
        name, settings = str(judge.get("name", "")), table_of(judge.get("settings"))
        if not name or name.startswith(OBJECT) or name == "model_judge":
            return {}
        return {"evaluator": name, "settings": settings} if settings else {"evaluator": name}


def _response(row: StepRow) -> Iterator[Block]:
    """The response of a step; of a model's answer the text first, then the other fields."""
    table = table_of(row.result)
    content = table.get("content")
    if isinstance(content, str) and content:
        yield from formatted_text(content)
        yield from formatted({name: part for name, part in table.items() if name not in ("content", "usage")})
    else:
        yield from formatted(row.result)


def _indented(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _toml(value: Any) -> str:
    """A value of JSON as TOML, which has no null: what is null is left out."""
    if isinstance(value, dict):
        pairs = (f"{_toml(key)} = {_toml(part)}" for key, part in table_of(value).items() if part is not None)
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(part) for part in cast(list[Any], value) if part is not None)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML wants DEL escaped
