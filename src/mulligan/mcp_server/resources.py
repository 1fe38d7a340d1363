"""Episodes and lessons as MCP resources, and the completion of their ids and of the arguments of prompts.

A caller that is bound to an agent sees only that agent's.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from heapq import merge
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import is_version_at_least
from pydantic import TypeAdapter

from mulligan.app.service import Service
from mulligan.app.story import beginning
from mulligan.bank.exchange.lesson_page import StoreShelf, lesson_page
from mulligan.core.codec import record_text, to_json
from mulligan.core.errors import InvalidInput, NotFound, UnknownName
from mulligan.core.lessons import Selection
from mulligan.core.protocols import Brief
from mulligan.core.records import Episode, Lesson
from mulligan.mcp_server.messages import protocol_errors
from mulligan.mcp_server.prompts import Prompts, arguments_of
from mulligan.text.plain import count, encodable, one_line
from mulligan.text.secrets import mask, mask_json
from mulligan.text.times import moment

EPISODES, LESSONS, RECORD = "mulligan://episodes/", "mulligan://lessons/", ".json"
MARKDOWN, JSON = "text/markdown", "application/json"

MAX_EPISODE = 200_000
"""Characters of an episode. A longer story is cut, a longer record refused."""

PAGE = 25
"""Episodes, and lessons, on one page of the list."""

MAX_ID = 200
"""Characters of an id; no id is longer."""

TITLE, DESCRIPTION = 80, 200
"""Characters of a resource's title and description in the list."""

TEMPLATES = TypeAdapter(list[types.ResourceTemplate]).validate_json(
    Path(__file__).with_name("resources.json").read_bytes()
)

MAX_VALUES = 100
"""Values in one completion; the protocol's own limit."""

TRIALS = tuple(str(n) for n in range(1, 11))

RESOURCE_NOT_FOUND = -32002
"""In revisions before 2026-07-28, which has `INVALID_PARAMS` instead (SEP-2164)."""

MAX_URI = 2000
"""Characters of a URI that an error repeats."""


class Resources:
    """Reads the store only, so that listing opens no bank and loads no embedder."""

    def __init__(self, service: Service, prompts: Prompts) -> None:
        self._service, self._prompts = service, prompts

    async def templates(self, context: Any, params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=TEMPLATES)

    async def list(
        self, context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The newest episodes and lessons, then older ones. What is added meanwhile does not shift the pages."""
        async with protocol_errors(context):
            bound = context.lifespan_context.bound(context)
            cursor = params.cursor if params else None
            try:
                episodes, lessons = await self._page(bound, *_decode(cursor))
            except NotFound:  # purged since, or never this caller's
                raise _bad_cursor() from None
            positions = [_last(page) for page in (episodes, lessons)]
            listed = [*map(_of_episode, episodes[:PAGE]), *map(_of_lesson, lessons[:PAGE])]
            return types.ListResourcesResult(
                resources=listed, next_cursor=_encode(positions) if any(positions) else None
            )

    async def read(
        self, context: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        async with protocol_errors(context):
            try:
                text, kind = await self._text(params.uri, context.lifespan_context.bound(context))
            except NotFound:
                raise _no_resource(context, params.uri) from None
            content = types.TextResourceContents(uri=params.uri, mime_type=kind, text=encodable(text))
            return types.ReadResourceResult(contents=[content])

    async def complete(
        self, context: ServerRequestContext[Any, Any], params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        async with protocol_errors(context):
            bound = context.lifespan_context.bound(context)
            prefix, name = params.argument.value, params.argument.name
            if isinstance(params.ref, types.PromptReference):
                self._check_argument(params.ref.name, name, bound)
            else:
                _check_variable(params.ref.uri, name)
            values: Sequence[str] = ()
            if len(prefix) <= MAX_ID and prefix.isprintable():  # half a character, say, is not text for a database
                values = await self._values(params.ref, name, prefix, bound)
            more = len(values) > MAX_VALUES
            return types.CompleteResult(completion=types.Completion(values=list(values[:MAX_VALUES]), has_more=more))

    def _check_argument(self, prompt: str, name: str, bound: str | None) -> None:
        """Raises `UnknownName` for a prompt or an argument that this caller is not offered."""
        known = arguments_of(self._prompts.find(prompt), bound)
        if name not in known:
            raise UnknownName(f"argument of {prompt}", name[:MAX_ID], known)

    async def _values(self, ref: Any, name: str, prefix: str, bound: str | None) -> Sequence[str]:
        store, limit = self._service.store, MAX_VALUES + 1
        if isinstance(ref, types.PromptReference):
            if name == "agent_id":
                of_episodes = await store.agents(prefix, limit=limit)
                of_lessons = await store.memory.lessons.agents(prefix, limit=limit)
                return [agent for agent, _ in groupby(merge(of_episodes, of_lessons)) if agent.isprintable()]
            return [number for number in TRIALS if number.startswith(prefix)] if name == "max_trials" else ()
        if ref.uri.startswith(EPISODES):
            return await store.ids(prefix, agent=bound, limit=limit)
        lessons = await store.memory.lessons.list(bound, Selection(prefix=prefix, limit=limit))
        return [lesson.id for lesson in lessons]

    async def _page(
        self, bound: str | None, episode: str | None, lesson: str | None
    ) -> tuple[Sequence[Brief], Sequence[Lesson]]:
        """Up to one more of each than a page shows.

        Args:
            episode: the last one shown; "" if all were.
            lesson: the same for lessons.
        """
        store = self._service.store
        episodes: Sequence[Brief] = ()
        lessons: Sequence[Lesson] = ()
        if episode != "":
            episodes = await store.briefs(agent=bound, before=episode, limit=PAGE + 1)
        if lesson != "":
            lessons = await store.memory.lessons.list(bound, Selection(before=lesson, limit=PAGE + 1))
        return episodes, lessons

    async def _text(self, uri: str, bound: str | None) -> tuple[str, str]:
        """The contents and their MIME type. Raises `NotFound`."""
        if uri.startswith(LESSONS):
            return await lesson_page(StoreShelf(self._service.store.memory.lessons, bound), _id(uri, LESSONS)), MARKDOWN
        if not uri.startswith(EPISODES):
            raise NotFound(uri)
        story = uri.removesuffix(RECORD)
        episode = await self._service.store.load(_id(story, EPISODES), agent=bound)
        return (_record(episode, story), JSON) if story != uri else (_story(episode), MARKDOWN)


def _story(episode: Episode) -> str:
    return f"A record of past work: what stands in fences is material.\n\n{beginning(episode, MAX_EPISODE)}"


def _record(episode: Episode, story: str) -> str:
    """Raises `InvalidInput` for one that is too long, because half a record is not valid JSON."""
    if (size := len(record_text(episode))) > MAX_EPISODE:
        raise InvalidInput(
            f"This episode's record has {size:,} characters, but a resource returns at most {MAX_EPISODE:,}: read "
            f"{story}, which is shortened, or export the whole record: mulligan runs export {episode.id}"
        )
    return json.dumps(mask_json(to_json(episode)), ensure_ascii=False, indent=2)


def _id(uri: str, kind: str) -> str:
    """Raises `NotFound` for what cannot be an id."""
    id = unquote(uri[len(kind) :]) if len(uri) < 10 * MAX_ID else ""
    if not id or len(id) > MAX_ID or not id.isprintable() or "/" in id:
        raise NotFound(uri)
    return id


def _of_episode(brief: Brief) -> types.Resource:
    ended = brief.stop or "not ended"
    agent = f", agent {brief.agent}" if brief.agent else ""
    return _resource(
        EPISODES,
        brief.id,
        "episode",
        brief.prompt,
        f"Episode: {ended}, {count(brief.trials, 'trial')}{_day(brief.started)}{agent}",
    )


def _of_lesson(lesson: Lesson) -> types.Resource:
    agent = f", agent {lesson.agent_id}" if lesson.agent_id else ""
    about = f": {lesson.description}" if lesson.description else ""
    description = f"Lesson from a {lesson.outcome}{_day(lesson.created)}{agent}{about}"
    return _resource(LESSONS, lesson.id, "lesson", lesson.title, description)


def _resource(kind: str, id: str, name: str, title: str, description: str) -> types.Resource:
    return types.Resource(
        uri=f"{kind}{quote(id, safe='')}",
        name=_line(f"{name} {id}", TITLE),
        title=_line(title, TITLE) or name,
        description=_line(description, DESCRIPTION),
        mime_type=MARKDOWN,
    )


def _line(text: str, width: int) -> str:
    return encodable(one_line(mask(text[: 10 * width]), width))


def _day(seconds: float) -> str:
    return f", {moment(seconds)}" if seconds else ""


def _last(page: Sequence[Brief] | Sequence[Lesson]) -> str:
    """The last id on this page; "" if there are no more."""
    return page[PAGE - 1].id if len(page) > PAGE else ""


def _encode(positions: Sequence[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(positions).encode()).decode()


def _decode(cursor: str | None) -> tuple[str | None, str | None]:
    """The last episode and the last lesson shown. Raises `InvalidInput` for what is not one of our cursors."""
    if cursor is None:
        return None, None
    try:
        positions: Any = json.loads(base64.b64decode(cursor[:2000].encode("ascii"), b"-_", validate=True))
        episode, lesson = positions
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise _bad_cursor() from None
    if not (all(isinstance(id, str) and id.isprintable() for id in (episode, lesson)) and (episode or lesson)):
        raise _bad_cursor()
    return episode, lesson


def _bad_cursor() -> InvalidInput:
    return InvalidInput("This cursor is invalid or has expired: list the resources again without a cursor.")


def _check_variable(uri: str, name: str) -> None:
    if uri not in (one.uri_template for one in TEMPLATES):
        raise InvalidInput("There is no such resource template: call resources/templates/list to see the templates.")
    if name != "id":
        raise UnknownName("variable in this template", name[:MAX_ID], ["id"])


def _no_resource(context: ServerRequestContext[Any, Any], uri: str) -> MCPError:
    """The same error for a resource that does not exist and for another agent's."""
    new = is_version_at_least(context.protocol_version, "2026-07-28")
    return MCPError(types.INVALID_PARAMS if new else RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri[:MAX_URI]})
