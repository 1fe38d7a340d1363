"""The Tasks extension: a client that declares it gets a task in place of the answer, and asks for the answer."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, NotificationBinding, ResultClaim
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from posting import Poster, modern
from pydantic import ConfigDict
from pydantic.alias_generators import to_camel
from serving import served

from mulligan.app.service import ServerOptions, Service
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.mcp_server.messages import LISTEN
from mulligan.mcp_server.server import make_server, one_connection
from mulligan.mcp_server.tasks import EXTENSION

PATIENCE = 60.0
SOLVED = {"task": "What is six times seven?", "expected": "42", "agentId": "a"}
LEARNED = {
    "trajectory": [{"role": "tool", "content": "ok"}],
    "query": "Add VAT.",
    "success_signal": True,
    "async_mode": True,
    "agent_id": "a",
}
LESSONS = {"lessons": [{"title": "Round", "description": "d", "content": "Round at the end.", "steps": [1]}]}


class Created(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    poll_interval_ms: int


class Detailed(Created):
    result_type: Literal["complete"] = "complete"  # pyright: ignore[reportIncompatibleVariableOverride]
    result: dict[str, Any] | None = None


class Heard(types.NotificationParams):
    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

    task_id: str
    status: str
    ttl_ms: int | None


class TaskParams(types.RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


class TaskRequest(types.Request[TaskParams, str]):
    name_param = "taskId"


class TasksOfClient(ClientExtension):
    """Waits for each task's answer, as a client's program does; `created` are the tasks."""

    identifier = EXTENSION

    def __init__(self) -> None:
        self.created: list[Created] = []
        self.heard: list[Any] = []

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        return [NotificationBinding(method="notifications/tasks", params_type=Heard, handler=self._listened)]

    async def _listened(self, task: Heard) -> None:
        self.heard.append(task)

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Created, resolve=self.resolve)]

    async def resolve(self, created: Created, context: ClaimContext) -> types.CallToolResult:
        self.created.append(created)
        task = await ended(context.session, created.task_id)
        assert task.status == "completed", task
        return types.CallToolResult.model_validate(task.result, by_name=False)


async def listened(session: Any, *ids: Any, **others: bool) -> types.SubscriptionsListenResult:
    """What ends a stream of notifications about these tasks."""
    wanted = types.SubscriptionFilter.model_validate({"taskIds": list(ids), **others})
    params = types.SubscriptionsListenRequestParams(notifications=wanted)
    async with asyncio.timeout(PATIENCE):
        return await session.send_request(
            types.SubscriptionsListenRequest(params=params), types.SubscriptionsListenResult
        )


async def sent(session: Any, method: str, id: str) -> Any:
    params = TaskParams(task_id=id, input_responses={"unknown": {"action": "cancel"}} if method == "update" else None)
    kind = Detailed if method == "get" else types.EmptyResult
    return await session.send_request(TaskRequest(method=f"tasks/{method}", params=params), kind)


async def ended(session: Any, id: str) -> Any:
    async with asyncio.timeout(PATIENCE):
        while (task := await sent(session, "get", id)).status == "working":  # noqa: ASYNC110  # the protocol polls
            await asyncio.sleep(0.02)
    return task


@asynccontextmanager
async def connected(
    service: Service, tasks: TasksOfClient | None = None, bound: str | None = None
) -> AsyncGenerator[Client]:
    server = make_server(service, "all", lambda _: one_connection(bound))
    async with Client(server, mode="auto", extensions=[tasks] if tasks else []) as client:
        yield client


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Service]:
    """A server's service whose model first solves, then learns."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mulligan.toml").write_text("[memory]\nembedder = 'none'\n")
    (tmp_path / "script.json").write_text(json.dumps(["42", LESSONS]))
    one = Service(ServerOptions(model="scripted:script.json"))
    yield one
    await one.close()


async def test_solving_and_learning_are_tasks_for_a_client_that_declares_them(service: Service) -> None:
    tasks = TasksOfClient()
    async with connected(service, tasks) as client:
        told = await client.session.discover()
        assert EXTENSION in (told.capabilities.extensions or {})
        solved = await client.call_tool("solve", SOLVED)
        kept = await client.call_tool("extract_memory", LEARNED)
        found = await client.call_tool("retrieve_memory", {"query": "VAT", "agent_id": "a"})
    assert (solved.structured_content or {})["solved"]
    assert (kept.structured_content or {})["status"] == "success"
    assert "Round" in str(found.structured_content)
    assert [one.task_id.partition("_")[0] for one in tasks.created] == ["solve", "extract"]
    assert all(one.ttl_ms is None and one.created_at.endswith("Z") for one in tasks.created)
    solved_id = tasks.created[0].task_id
    async with connected(service, TasksOfClient()) as another:  # a server that did not create it
        task = await sent(another.session, "get", solved_id)
        assert task.status == "completed"
        assert (task.result or {})["structuredContent"]["output"] == "42"
        await sent(another.session, "update", solved_id)
    async with connected(service, TasksOfClient(), bound="b") as stranger:
        for method in ("get", "update", "cancel"):
            for id in (solved_id, tasks.created[1].task_id, "solve_", "x" * 300):
                with pytest.raises(MCPError) as error:
                    await sent(stranger.session, method, id)
                assert error.value.code == types.INVALID_PARAMS


async def test_a_client_that_declares_nothing_waits_for_the_answer(service: Service) -> None:
    async with connected(service) as client:
        assert ((await client.call_tool("solve", SOLVED)).structured_content or {})["solved"]
        with pytest.raises(MCPError) as error:
            await sent(client.session, "get", "solve_1")
    assert error.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
    assert EXTENSION in error.value.data["requiredCapabilities"]["extensions"]


class Stuck:
    """A model that never answers."""

    name = id = "stuck"

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_cancelled_task_is_recorded_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    service, model, tasks = Service(ServerOptions(model="stuck")), Stuck(), TasksOfClient()
    service.models.name(model)
    try:
        async with connected(service, tasks) as client, asyncio.timeout(PATIENCE):
            created: Any = await client.session.call_tool("solve", SOLVED, allow_claimed=True)
            await model.asked.wait()
            assert (await sent(client.session, "get", created.task_id)).status == "working"
            listening = asyncio.create_task(listened(client.session, created.task_id))
            while not tasks.heard:  # noqa: ASYNC110  # a client has no event for it
                await asyncio.sleep(0.01)
            await sent(client.session, "cancel", created.task_id)
            task = await ended(client.session, created.task_id)
            assert task.status == "cancelled", task.result
            await listening
        assert [one.status for one in tasks.heard] == ["working", "cancelled"]
        assert await service.store.load(created.task_id.removeprefix("solve_"), agent="a")
    finally:
        await service.close()


async def test_a_task_is_listened_to_until_it_has_ended_by_its_own_agent(service: Service) -> None:
    tasks = TasksOfClient()
    async with connected(service, tasks) as client:
        await client.call_tool("solve", SOLVED)
        id = tasks.created[0].task_id
        ended_by = await listened(client.session, id, "solve_unknown", id, toolsListChanged=True)
        assert SUBSCRIPTION_ID_META_KEY in (ended_by.meta or {})
        capabilities = (await client.session.discover()).capabilities
        assert not (capabilities.tools and capabilities.tools.list_changed), "only tasks can be listened to"
        for wanted, code in (
            ((), types.METHOD_NOT_FOUND),
            ((7,), types.INVALID_PARAMS),
            (("x",) * 65, types.INVALID_PARAMS),
        ):
            with pytest.raises(MCPError) as error:
                await listened(client.session, *wanted)
            assert error.value.code == code
        polled = await sent(client.session, "get", id)
    (heard,) = tasks.heard
    assert (heard.task_id, heard.status, heard.ttl_ms) == (id, "completed", None)
    assert (heard.model_extra or {})["result"] == polled.result
    async with connected(service, other := TasksOfClient(), bound="b") as stranger:
        await listened(stranger.session, id)
    assert other.heard == []
    async with connected(service) as client:
        with pytest.raises(MCPError) as error:
            await listened(client.session, id)
    assert error.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY


def test_a_stream_of_a_task_begins_with_its_acknowledgement_and_ends_with_its_result(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('["42"]')
    capability: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}}}
    with served("--model", f"scripted:{tmp_path / 'script.json'}", "--concurrency", "1", transport="http") as server:
        poster = Poster(server.url)

        def asked(method: str, params: dict[str, Any], **headers: str) -> tuple[int, list[Any]]:
            body, usual = modern(method, params, id="7")
            body["params"]["_meta"] |= capability
            status, told, answer = poster.post(body, {**usual, **headers})
            if not told["content-type"].startswith("text/event-stream"):
                return status, [json.loads(answer)]
            return status, [json.loads(line[6:]) for line in answer.decode().splitlines() if line[:6] == "data: "]

        _, (created,) = asked("tools/call", {"name": "solve", "arguments": SOLVED})
        id = created["result"]["taskId"]
        status, (first, *tasks, last) = asked(LISTEN, {"notifications": {"taskIds": [id, "solve_unknown"]}})
        assert status == 200
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {"taskIds": [id]}
        assert {one["method"] for one in tasks} == {"notifications/tasks"}
        assert tasks[-1]["params"]["status"] == "completed"
        assert tasks[-1]["params"]["result"]["structuredContent"]["output"] == "42"
        assert {one["params"]["_meta"][SUBSCRIPTION_ID_META_KEY] for one in (first, *tasks)} == {"7"}
        assert (last["id"], last["result"]["resultType"]) == ("7", "complete")
        for name in ({}, {"Mcp-Name": "solve_another"}):
            status, (refused,) = asked("tasks/get", {"taskId": id}, **name)
            assert (status, refused["error"]["code"]) == (400, types.HEADER_MISMATCH), "a proxy routes by it"
        assert asked("tasks/get", {"taskId": id}, **{"Mcp-Name": id})[1][0]["result"]["status"] == "completed"
        status, _ = asked("tools/list", {}, **{"Mcp-Method": LISTEN})
        assert status == 400, "a call is no stream, whatever its header says"
