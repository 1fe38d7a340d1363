"""`solve` through a real client and a real store, with scripted models and a provider on loopback."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent
from wire_client import KEY, Wire, running

from mulligan.app.service import ServerOptions, Service
from mulligan.app.solve import resume
from mulligan.app.trusting import trust
from mulligan.core.records import Episode
from mulligan.mcp_server.server import make_server, one_connection, tools_of

TASK = "What is six times seven? Answer with the number alone."
LESSON = "Six times seven is not forty-one: count again."
EXTRACTED = {
    "why": "w",
    "lessons": [{"title": "Count", "description": "When multiplying.", "content": "Count twice.", "steps": [1]}],
    "nothing_because": "",
}
TESTS = "assert add(2, 3) == 5\nassert add(-1, 1) == 0\n"
SETTINGS = "[calls]\nattempts = 1\n[memory]\nembedder = 'none'\n"


@pytest.fixture(scope="module")
def provider() -> Generator[Wire]:
    with running("--port", "0") as wire:
        yield wire


@pytest.fixture
def wire(provider: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wire:
    """The provider with nothing to say yet, and a project that calls it once for each question."""
    provider.plays()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    (tmp_path / "mulligan.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    return provider


@asynccontextmanager
async def served(
    model: str = "openai:gpt-4o", bound: str | None = None, mode: str = "legacy"
) -> AsyncGenerator[tuple[Client, Service]]:
    service = Service(ServerOptions(agent_id=bound, model=model))
    try:
        async with Client(make_server(service, "all", lambda _: one_connection(bound)), mode=mode) as client:
            yield client, service
    finally:
        await service.close()


def scripted(folder: Path, *answers: Any) -> str:
    """Answers for each question in turn, whoever asks."""
    file = folder / "script.json"
    file.write_text(json.dumps(list(answers)))
    return f"scripted:{file}"


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def error_of(result: CallToolResult) -> dict[str, Any]:
    assert result.is_error
    assert result.structured_content is None
    return json.loads(text_of(result))


def data_of(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text_of(result)
    assert result.structured_content == json.loads(text_of(result))
    return result.structured_content or {}


class Told:
    """Notifications of progress, as they came in; `reflected` once the first trial is reflected on."""

    def __init__(self) -> None:
        self.done: list[float] = []
        self.totals: list[float | None] = []
        self.words: list[str] = []
        self.reflected = asyncio.Event()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.done.append(progress)
        self.totals.append(total)
        self.words.append(message or "")
        if progress >= 1:
            self.reflected.set()


async def only(service: Service) -> Episode:
    (episode,) = await service.store.list()
    return episode


def test_it_is_offered_only_where_a_model_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "solve" not in [tool.name for tool in tools_of(Service(), "all")]
    assert "solve" not in [tool.name for tool in tools_of(Service(ServerOptions(model="local")), "memory")]
    assert "solve" in [tool.name for tool in tools_of(Service(ServerOptions(model="local")), "reflexion")]
    monkeypatch.setenv("MULLIGAN_MODEL", "local")
    assert "solve" in [tool.name for tool in tools_of(Service(), "all")]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_episode_with_a_second_try(wire: Wire, mode: str) -> None:
    wire.plays("41", LESSON, "42")
    told = Told()
    async with served(mode=mode) as (client, service):
        result = await client.call_tool(
            "solve", {"task": TASK, "expected": "42", "agentId": "me"}, progress_callback=told
        )
        data, episode = data_of(result), await only(service)
    assert (data["status"], data["solved"], data["output"]) == ("solved", True, "42")
    assert data["trials"] == [
        {"number": 1, "passed": False, "score": None, "feedback": "The answer is wrong.", "reflection": LESSON},
        {"number": 2, "passed": True, "score": None, "feedback": "The answer is right.", "reflection": None},
    ]
    assert (data["judgedBy"], data["notes"]) == ("exact_match", [])
    assert (data["episodeId"], episode.agent, episode.task.prompt) == (episode.id, "me", TASK)
    assert data["usage"] == {"tokens": episode.usage.tokens, "calls": 3, "cost": episode.usage.cost}
    assert told.done == sorted(set(told.done)), "progress has to rise each time"
    assert (told.done[0], told.done[-1], set(told.totals)) == (0, 4, {4})
    assert episode.id in told.words[0]
    assert told.words[2:4] == ["trial 1 of 4: failed: The answer is wrong.", f"trial 1 of 4: reflected: {LESSON}"]
    shown = json.dumps(wire.bodies[2])
    assert LESSON in shown
    assert "is wrong" in shown


async def test_a_model_that_reflects_is_named_in_the_project_file(wire: Wire, tmp_path: Path) -> None:
    (tmp_path / "mulligan.toml").write_text("reflect_model = 'openai:gpt-4o-mini'\n" + SETTINGS)
    trust(tmp_path)
    wire.plays("41", LESSON, "42")
    async with served() as (client, _):
        data = data_of(await client.call_tool("solve", {"task": TASK, "expected": "42"}))
    assert [trial["reflection"] for trial in data["trials"]] == [LESSON, None]
    assert [body["model"] for body in wire.bodies] == ["gpt-4o", "gpt-4o-mini", "gpt-4o"]


async def test_tests_judge_in_the_strict_sandbox(wire: Wire) -> None:
    wire.plays("def add(a, b): return a - b", "Use plus: a + b.", "def add(a, b): return a + b")
    async with served() as (client, service):
        data = data_of(await client.call_tool("solve", {"task": "Write add(a, b).", "tests": TESTS}))
        episode = await only(service)
    assert (data["solved"], data["judgedBy"]) == (True, "unit_tests")
    assert [trial["score"] for trial in data["trials"]] == [0, 1]
    assert "add(2, 3) == 5" in data["trials"][0]["feedback"]
    assert episode.head.settings["sandbox"] == "strict"


async def test_without_a_judge_the_model_judges_itself_and_says_so(tmp_path: Path) -> None:
    verdict = {"reasoning": "It is so.", "passed": True, "score": 9, "wrong": ""}
    async with served(scripted(tmp_path, "42", verdict)) as (client, _):
        data = data_of(await client.call_tool("solve", {"task": TASK}))
    assert (data["solved"], data["judgedBy"]) == (True, "model_judge")
    assert any("Judged by the model that tried" in note for note in data["notes"])


async def test_trials_bound_the_tries_and_the_best_comes_back(wire: Wire) -> None:
    wire.plays("def add(a, b): return 0", "Think of a and b.", "def add(a, b): return None")
    async with served() as (client, _):
        data = data_of(await client.call_tool("solve", {"task": "Write add(a, b).", "tests": TESTS, "trials": 2}))
    assert (data["status"], data["solved"]) == ("exhausted", False)
    assert data["output"] == "def add(a, b): return 0", "it passed one of two tests"
    assert [trial["passed"] for trial in data["trials"]] == [False, False]
    assert data["trials"][1]["reflection"] is None


async def test_a_limit_of_the_server_ends_it_with_what_there_is(wire: Wire, tmp_path: Path) -> None:
    (tmp_path / "mulligan.toml").write_text(SETTINGS + "[limits]\ntokens = 200\n")
    wire.plays({"answer": "41", "usage": [150, 60]}, LESSON, "42")
    async with served() as (client, service):
        data = data_of(await client.call_tool("solve", {"task": TASK, "expected": "42"}))
        episode = await only(service)
    assert (data["status"], data["output"]) == ("over_budget", "41")
    assert f"mulligan runs resume {episode.run}" in data["notes"][-1]


async def test_a_long_reflection_is_shortened_and_the_output_is_not(wire: Wire) -> None:
    long = "word " * 5000
    wire.plays(long, LESSON * 200, long)
    async with served() as (client, _):
        data = data_of(await client.call_tool("solve", {"task": TASK, "expected": "42", "trials": 2}))
    assert data["output"] == long.strip()
    assert "tokens cut" in data["trials"][0]["reflection"]
    assert len(data["trials"][0]["reflection"]) < 4000


async def test_half_a_character_of_the_models_spoils_no_answer(tmp_path: Path) -> None:
    told = Told()
    async with served(scripted(tmp_path, "41 \ud800", "Count seven \udfff again.", "42")) as (client, _):
        asked = client.call_tool("solve", {"task": TASK, "expected": "42"}, progress_callback=told)
        data = data_of(await asyncio.wait_for(asked, 20))
    assert data["trials"][0]["reflection"] == "Count seven ? again."
    assert "trial 1 of 4: reflected: Count seven ? again." in told.words


async def test_an_error_of_the_model_names_the_episode_that_goes_on_later(wire: Wire) -> None:
    wire.plays("41", {"status": 500})
    async with served() as (client, service):
        error = error_of(await client.call_tool("solve", {"task": TASK, "expected": "42"}))
        stopped = await only(service)
        wire.plays(LESSON, "42")
        episode = await resume(stopped.run, store=service.store)
    assert (error["status"], error["episodeId"], error["output"]) == ("error", stopped.id, "41")
    assert "reflect of trial 1: openai:gpt-4o" in error["error"]
    assert f"mulligan runs resume {stopped.run}" in error["error"]
    assert KEY not in json.dumps(error)
    assert episode.solved
    assert len(wire.requests) == 2, "the first trial was not asked for again"


async def test_a_model_that_cannot_be_is_reported_before_anything_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with served("openai:gpt-4o") as (client, service):
        error = error_of(await client.call_tool("solve", {"task": TASK}))
        assert not await service.store.list()
    assert "OPENAI_API_KEY" in error["error"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "'task' is missing"),
    ({"task": ""}, "'task' must be a non-empty string"),
    ({"task": 7}, "'task' must be a non-empty string"),
    ({"task": TASK, "tests": TESTS, "expected": "42"}, "tests and expected cannot both judge"),
    ({"task": TASK, "tests": "tests.py"}, "needs the text of a test file"),
    ({"task": TASK, "tests": "assert add(1"}, "line 1"),
    ({"task": TASK, "tests": {"file": "/etc/passwd"}}, "'tests' must be a non-empty string"),
    ({"task": TASK, "expected": "The"}, "cannot compare 'The'"),
    ({"task": TASK, "trials": 0}, "from 1 to 20"),
    ({"task": TASK, "trials": 21}, "from 1 to 20"),
    ({"task": TASK, "trials": True}, "'trials' must be an integer"),
    ({"task": TASK, "trials": "three"}, "'trials' must be an integer"),
    ({"task": TASK, "remember": "yes"}, "'remember' must be true or false"),
    ({"task": TASK, "agentId": 7}, "agent id must be a string"),
    ({"task": TASK, "check": "touch /tmp/x"}, "No argument of solve is called 'check'"),
    ({"task": TASK, "actor": "command:sh"}, "No argument of solve is called 'actor'"),
]


async def test_what_cannot_work_is_refused_before_the_model_is_asked(wire: Wire) -> None:
    async with served() as (client, service):
        for arguments, said in WRONG:
            assert said in error_of(await client.call_tool("solve", arguments))["error"], arguments
        assert not await service.store.list()
    assert wire.requests == []


async def test_null_stands_for_an_argument_that_is_left_out(wire: Wire) -> None:
    wire.plays("42")
    nulls = dict.fromkeys(["tests", "trials", "agentId", "remember"])
    async with served() as (client, _):
        assert data_of(await client.call_tool("solve", {"task": TASK, "expected": "42", **nulls}))["solved"]


async def test_a_task_that_is_a_folder_here_is_a_sentence_all_the_same(wire: Wire, tmp_path: Path) -> None:
    (tmp_path / "task.md").write_text("a secret of this machine")
    wire.plays("42")
    async with served() as (client, service):
        data_of(await client.call_tool("solve", {"task": str(tmp_path), "expected": "42"}))
        assert (await only(service)).task.prompt == str(tmp_path)
    assert "a secret" not in json.dumps(wire.bodies)


async def test_tests_reach_neither_files_nor_programs_of_the_host(wire: Wire, tmp_path: Path) -> None:
    secret, made = tmp_path / "secret.txt", tmp_path / "made.txt"
    secret.write_text("a secret of this machine")
    tests = f"import os\ndef test_host():\n    add(1, 2)\n    os.system('touch {made}')\n    print(open({str(secret)!r}).read())\n"
    wire.plays("def add(a, b): return a + b")
    async with served() as (client, _):
        data = data_of(await client.call_tool("solve", {"task": "Write add.", "tests": tests, "trials": 1}))
    assert not data["solved"]
    assert "a secret" not in json.dumps(data)
    assert not made.exists()


async def test_a_bound_caller_is_that_agent_and_can_name_no_other(wire: Wire) -> None:
    wire.plays("42")
    async with served(bound="a") as (client, service):
        error = error_of(await client.call_tool("solve", {"task": TASK, "expected": "42", "agentId": "b"}))
        assert "'a'" in error["error"]
        data_of(await client.call_tool("solve", {"task": TASK, "expected": "42"}))
        assert (await only(service)).agent == "a"


async def test_remembering_recalls_from_and_teaches_the_bank_of_the_agent(wire: Wire) -> None:
    wire.plays("42", json.dumps(EXTRACTED), "42", json.dumps(EXTRACTED), "42", json.dumps(EXTRACTED), "42")
    ask = {"task": TASK, "expected": "42", "remember": True}
    async with served() as (client, service):
        first = data_of(await client.call_tool("solve", {**ask, "agentId": "a"}))
        assert any("1 lesson learned" in note for note in first["notes"])
        before = len(wire.bodies)
        data_of(await client.call_tool("solve", {**ask, "agentId": "a"}))
        assert "Count twice." in json.dumps(wire.bodies[before])
        before = len(wire.bodies)
        data_of(await client.call_tool("solve", {**ask, "agentId": "b"}))
        assert "Count twice." not in json.dumps(wire.bodies[before])
        before = len(wire.bodies)
        data_of(await client.call_tool("solve", {"task": TASK, "expected": "42", "agentId": "a"}))
        assert len(wire.bodies) == before + 1, "without remember the bank is left alone"
        assert [lesson.agent_id for lesson in (await service.bank("b").recall(TASK)).lessons] == ["b"]


async def test_two_at_once_do_not_disturb_each_other(wire: Wire) -> None:
    wire.plays(
        *({"when": f"say {word}", "answer": word, "delay": 0.2} for word in ("alpha", "beta")),
    )
    told = {"alpha": Told(), "beta": Told()}

    async def ask(client: Client, word: str) -> dict[str, Any]:
        arguments = {"task": f"say {word}", "expected": word, "agentId": word}
        return data_of(await client.call_tool("solve", arguments, progress_callback=told[word]))

    async with served() as (client, service):
        answers = await asyncio.gather(*(ask(client, word) for word in told))
        kept = {episode.id: episode.agent for episode in await service.store.list()}
    assert [answer["output"] for answer in answers] == ["alpha", "beta"]
    assert [kept[answer["episodeId"]] for answer in answers] == ["alpha", "beta"]
    assert wire.log["most"] == 2
    for answer, word in zip(answers, told, strict=True):
        assert answer["episodeId"] in told[word].words[0]
        assert len(told[word].words) == 4


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_cancelled_call_is_kept_and_goes_on_later(wire: Wire, mode: str) -> None:
    wire.plays("41", LESSON, {"hang": True})
    told = Told()
    async with served(mode=mode) as (client, service):
        asked = client.call_tool("solve", {"task": TASK, "expected": "42", "agentId": "me"}, progress_callback=told)
        calling = asyncio.create_task(asked)
        async with asyncio.timeout(20):
            await told.reflected.wait()
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            while (stopped := await only(service)).stop is None:
                await asyncio.to_thread(time.sleep, 0.01)
            while await service.store.holder(stopped.id) is not None:  # let go of a moment after the stop is recorded
                await asyncio.to_thread(time.sleep, 0.01)
        assert stopped.stop.reason == "interrupted"
        wire.plays("42")
        episode = await resume(stopped.id, store=service.store)
    assert (episode.solved, episode.agent) == (True, "me")
    assert len(wire.requests) == 1, "the first trial was not asked for again"
