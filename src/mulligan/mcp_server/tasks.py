"""Calls that go on after they were answered: MCP's extension `io.modelcontextprotocol/tasks`, of 2026-07-28.

A client that declares the extension gets a task in place of the answer of `solve`, and of `extract_memory` where a
model of the server learns in the background; it asks for the answer by the task's id, or listens until the task has
ended. The state of a task is that of its episode, or of its work in the queue, so another server of the same store can
tell it as well.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mulligan.app.service import Service
from mulligan.core.errors import NotFound
from mulligan.core.records import Json
from mulligan.mcp_server.messages import protocol_errors
from mulligan.mcp_server.tool import MAX_NAME, SOLVE, Call, Reply, no_progress
from mulligan.mcp_server.tools import memory_task

EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MS = 2000
MAX_RUNNING = 64
"""Tasks of this process that may be worked on at once."""
MAX_IDS = 64
"""Tasks that one request may listen to."""
MAX_ANSWERS = 256
"""Tasks of this process whose answers are kept as they were."""


class TaskParams(types.RequestParams):
    """What all methods of the extension take; `tasks/update` brings input that no task of ours asks for."""

    task_id: str


class TaskNotification(types.Notification[dict[str, Any], Literal["notifications/tasks"]]):
    """A task as `tasks/get` would give it, in the stream of a client that listens to it."""

    method: Literal["notifications/tasks"] = "notifications/tasks"
    params: dict[str, Any]


def declares_tasks(context: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client can be given a task for this request."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    return context.session.check_client_capability(types.ClientCapabilities(extensions={EXTENSION: {}}))


class BackgroundTasks:
    """The tasks of a server. to_result: makes a tool's answer a result of the protocol."""

    def __init__(self, service: Service, to_result: Callable[[Reply], types.CallToolResult]) -> None:
        self._service, self._to_result = service, to_result
        self._work: OrderedDict[str, asyncio.Task[Reply]] = OrderedDict()

    async def call(self, call: Call, run: Callable[[Call], Coroutine[Any, Any, Reply]]) -> Reply | dict[str, Json]:
        """The answer of a tool, or a task if the tool continues in the background.

        While `MAX_RUNNING` tasks are running, the caller waits for the answer.
        """
        if sum(not work.done() for work in self._work.values()) >= MAX_RUNNING:
            return await run(call)
        id: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        work = asyncio.create_task(run(replace(call, on_task=id.set_result, progress=no_progress)))
        self._service.work.add(work)
        work.add_done_callback(self._service.work.discard)
        try:
            await asyncio.wait({work, id}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not id.done():  # the answer is here, or the request was cancelled
                id.cancel()
                work.cancel()
        if id.cancelled():
            return await work
        self._work[id.result()] = work
        for old in [one for one, work in self._work.items() if work.done()][: max(0, len(self._work) - MAX_ANSWERS)]:
            del self._work[old]
        return {"resultType": "task", **await self._state(id.result(), call.bound)}

    async def get(self, context: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Json]:
        return await self._known(context, params)

    async def update(self, context: ServerRequestContext[Any, Any], params: TaskParams) -> types.EmptyResult:
        await self._known(context, params)
        return types.EmptyResult()

    async def cancel(self, context: ServerRequestContext[Any, Any], params: TaskParams) -> types.EmptyResult:
        """Stops an episode that this process drives. It is recorded, and can be resumed."""
        await self._known(context, params)
        if params.task_id.startswith(SOLVE) and params.task_id in self._work:
            self._work[params.task_id].cancel()
        return types.EmptyResult()

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Sends the tasks that the client names, as they are now and whenever they change, until all have ended.

        Tasks that do not exist, or are another agent's, are left out of the acknowledgement. Nothing but tasks can be
        listened to.
        """
        ids = _task_ids(params.notifications)
        if not ids:
            raise MCPError(types.METHOD_NOT_FOUND, "You can subscribe only to tasks: list them in taskIds.")
        _needs_extension(context)
        bound, meta = context.lifespan_context.bound(context), {SUBSCRIPTION_ID_META_KEY: context.request_id}

        async def send(notification: Any) -> None:
            await context.session.send_notification(notification, related_request_id=context.request_id)

        async with protocol_errors(context):
            tasks = await self._states(ids, bound)
            agreed = types.SubscriptionFilter.model_validate({"taskIds": list(tasks)} if tasks else {})
            acknowledged = types.SubscriptionsAcknowledgedNotificationParams(notifications=agreed, _meta=meta)
            await send(types.SubscriptionsAcknowledgedNotification(params=acknowledged))
            sent: dict[str, dict[str, Json]] = {}
            while tasks:
                for id, task in tasks.items():
                    if task != sent.get(id):
                        await send(TaskNotification(params={**task, "_meta": meta}))
                sent |= tasks
                working = [id for id, task in tasks.items() if task["status"] == "working"]
                if not working:
                    break
                here = [work for id in working if (work := self._work.get(id)) and not work.done()]
                if here:
                    await asyncio.wait(here, timeout=POLL_MS / 1000, return_when=asyncio.FIRST_COMPLETED)
                else:
                    await asyncio.sleep(POLL_MS / 1000)  # at another server
                tasks = await self._states(working, bound)
        return types.SubscriptionsListenResult(_meta=meta)

    async def _states(self, ids: Sequence[str], bound: str | None) -> dict[str, dict[str, Json]]:
        """The tasks by id, without those that the caller may not see."""
        tasks: dict[str, dict[str, Json]] = {}
        for id in ids:
            with suppress(NotFound):
                tasks[id] = await self._state(id, bound)
        return tasks

    async def _known(self, context: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Json]:
        """The task. Raises `MCPError` for one that does not exist or is another agent's, without the extension, and
        where the header by which a proxy routes the request names another task."""
        _needs_extension(context)
        if context.request and decode_header_value(context.request.headers.get(MCP_NAME_HEADER)) != params.task_id:
            raise MCPError(types.HEADER_MISMATCH, "The header Mcp-Name must be the taskId of the request.")
        async with protocol_errors(context):
            try:
                return await self._state(params.task_id, context.lifespan_context.bound(context))
            except NotFound:
                raise MCPError(types.INVALID_PARAMS, "There is no such task.") from None

    async def _state(self, id: str, bound: str | None) -> dict[str, Json]:
        """Raises `NotFound`."""
        if len(id) > MAX_NAME or not id.isprintable():
            raise NotFound(id[:MAX_NAME])
        if not id.startswith(SOLVE):
            reply = await memory_task.call({"task_id": id}, Call(self._service, bound))
            queued = await self._service.store.memory.queue.look(bound, id.removeprefix(memory_task.PREFIX))
            return self._task(
                id, queued.created, queued.created, None if reply.data.get("status") == "processing" else reply
            )
        from mulligan.mcp_server.tools.solving import reply_of

        goes_on = await self._service.store.holder(id.removeprefix(SOLVE))  # at another server
        episode = await self._service.store.load(id.removeprefix(SOLVE), agent=bound)
        began, last = episode.started, episode.started + episode.seconds
        if (work := self._work.get(id)) and not work.cancelled():
            return self._task(id, began, last, work.result() if work.done() else None)
        if episode.stop is not None and episode.stop.reason != "interrupted":
            return self._task(id, began, last, reply_of(episode, []))
        return {**self._task(id, began, last, None), **({} if goes_on else {"status": "cancelled"})}

    def _task(self, id: str, began: float, last: float, reply: Reply | None) -> dict[str, Json]:
        """The task in the words of the extension; without a reply it goes on. What is recorded is never discarded."""
        task: dict[str, Json] = {"taskId": id, "status": "working", "ttlMs": None, "pollIntervalMs": POLL_MS}
        task |= {"createdAt": _moment(began), "lastUpdatedAt": _moment(last)}
        if reply is None:
            return task
        result = self._to_result(reply).model_dump(by_alias=True, mode="json", exclude_none=True)
        return {**task, "status": "completed", "result": result}


def _needs_extension(context: ServerRequestContext[Any, Any]) -> None:
    """Raises `MCPError` if the client has not declared the extension for this request."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
    if not declares_tasks(context):
        needed = types.ClientCapabilities(extensions={EXTENSION: {}})
        data = types.MissingRequiredClientCapabilityErrorData(required_capabilities=needed)
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"A client must declare the extension {EXTENSION} to use this.",
            data.model_dump(by_alias=True, mode="json", exclude_none=True),
        )


def _task_ids(wanted: types.SubscriptionFilter) -> Sequence[str]:
    """The tasks that a client wants to listen to. Raises `MCPError` for a list that is none, or too long."""
    ids: Json = (wanted.model_extra or {}).get("taskIds")
    if ids is None:
        return ()
    listed = [one for one in cast("list[Any]", ids) if isinstance(one, str)] if isinstance(ids, list) else []
    if listed != ids or len(listed) > MAX_IDS:
        raise MCPError(types.INVALID_PARAMS, f"taskIds must be a list of at most {MAX_IDS} ids.")
    return list(dict.fromkeys(listed))


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
