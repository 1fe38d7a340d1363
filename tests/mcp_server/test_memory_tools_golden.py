"""The golden files of the memory tools: what the seed's server answers, and what ours adds to it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client
from memory_clients import MODEL, QUERY, SETTINGS, TRAJECTORY, a_client, a_service, data_of, good, hosted, settled
from wire_client import KEY, Wire, running

from mulligan.app.service import Service

GOLDEN = Path(__file__).parent / "golden" / "memory"
APART = ("deviations", "parameters")
CASES = sorted(file.stem for file in GOLDEN.glob("*.json") if file.stem not in APART)
Setup = Callable[[Service, Client, Wire], Awaitable[str]]


def read(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def provider() -> Generator[Wire]:
    with running("--port", "0") as wire:
        yield wire


@pytest.fixture
def wire(provider: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wire:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    (tmp_path / "mulligan.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    hosted(provider)
    return provider


# --- setups: what the bank and the model are like; the id of the task, where there is one -----------------------------

LESSONS = {
    "claude-code": [
        ("Complete Historical Query Strategy", "Don't just check recent orders: find the earliest order date of the user."),
        ("Optimize Python code", "Measure before you optimize Python code for performance."),
    ],
    "code-reviewer": [("Code security", "Check the code for security issues such as unchecked input.")],
    "java-developer": [("Spring Boot", "Implement a Spring Boot API from its contract.")],
}  # fmt: skip


async def nothing(service: Service, client: Client, wire: Wire) -> str:
    return ""


async def lessons(service: Service, client: Client, wire: Wire) -> str:
    for agent, several in LESSONS.items():
        for title, content in several:
            await service.bank(agent).add(title, content, description="When it comes up.", tags=["a"])
        for n in range(20):
            await service.bank(agent).add(
                f"Filler {n}", f"General best practices of programming, {n}.", description="Ever."
            )
    return ""


async def no_lessons(service: Service, client: Client, wire: Wire) -> str:
    hosted(wire, {"why": "w", "lessons": [], "nothing_because": "It was routine."})
    return ""


async def nonsense(service: Service, client: Client, wire: Wire) -> str:
    hosted(wire, "I would rather not.")
    return ""


async def down(service: Service, client: Client, wire: Wire) -> str:
    wire.plays({"when": "a", "status": 503})
    return ""


async def question(service: Service, client: Client, wire: Wire) -> str:
    return await _task(client, success_signal=True)


async def verdict(service: Service, client: Client, wire: Wire) -> str:
    return await _task(client)


async def done(service: Service, client: Client, wire: Wire) -> str:
    task = await _task(client)
    assert (await settled(client, task))["status"] == "success"
    return task


async def failed(service: Service, client: Client, wire: Wire) -> str:
    hosted(wire, "I would rather not.")
    task = await _task(client)
    assert (await settled(client, task))["status"] == "error"
    return task


async def _task(client: Client, **more: Any) -> str:
    answer = await good(client, "extract_memory", trajectory=TRAJECTORY, query=QUERY, agent_id="claude-code", **more)
    return answer["task_id"]


SETUPS: dict[str, tuple[Setup, str | None]] = {
    "nothing": (nothing, None),
    "lessons": (lessons, None),
    "model": (nothing, MODEL),
    "model without lessons": (no_lessons, MODEL),
    "model that talks nonsense": (nonsense, MODEL),
    "model that is down": (down, MODEL),
    "no model": (nothing, None),
    "a question waits": (question, None),
    "a verdict waits": (verdict, None),
    "a task is done": (done, MODEL),
    "a task has failed": (failed, MODEL),
}


# --- what stands for what ---------------------------------------------------------------------------------------------

KINDS: dict[str, Callable[[Any], bool]] = {
    "<text>": lambda value: isinstance(value, str) and bool(value),
    "<text or null>": lambda value: value is None or isinstance(value, str),
    "<whole>": lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0,
    "<whole above 0>": lambda value: isinstance(value, int) and not isinstance(value, bool) and value > 0,
    "<number>": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "<true or false>": lambda value: isinstance(value, bool),
    "<true, false or null>": lambda value: value is None or isinstance(value, bool),
    "<object>": lambda value: isinstance(value, dict) and value != {},
}


def differs(wanted: Any, got: Any, at: str = "", also: dict[str, Any] | None = None) -> list[str]:
    """Where the two differ, in words."""
    if isinstance(wanted, dict):
        return _of_objects(cast(dict[str, Any], wanted), got, at, also or {})
    if isinstance(wanted, list):
        each, several = cast(list[Any], wanted), cast(list[Any], got)
        if not isinstance(got, list) or (not each and several) or (each and not several and at != ".memories.tags"):
            return [f"{at}: {got!r} for {wanted!r}"]
        return [one for value in several for one in differs(each[0], value, at)]
    if isinstance(wanted, str) and wanted in KINDS:
        return [] if KINDS[wanted](got) else [f"{at}: {got!r} is no {wanted}"]
    if isinstance(wanted, str) and wanted.endswith("<text>"):
        begins = wanted.removesuffix("<text>")
        return [] if isinstance(got, str) and got.startswith(begins) and got != begins else [f"{at}: {got!r}"]
    return [] if (wanted, type(wanted)) == (got, type(got)) else [f"{at}: {got!r} for {wanted!r}"]


def _of_objects(wanted: dict[str, Any], got: Any, at: str, also: dict[str, Any]) -> list[str]:
    if not isinstance(got, dict):
        return [f"{at}: {got!r} is no object"]
    there = cast(dict[str, Any], got)
    said = {**wanted, **{key: value for key, value in also.items() if key in there}}
    missing = [f"{at}.{key} is missing" for key in said if key not in there]
    added = [f"{at}.{key} is not in the golden file" for key in there if key not in said]
    return (
        missing + added + [one for key in said if key in there for one in differs(said[key], there[key], f"{at}.{key}")]
    )


def test_the_comparison_can_fail() -> None:
    golden = read("extract_sync")["response"]
    for key in golden:
        assert differs(golden, {k: v for k, v in golden.items() if k != key})
    assert differs({"a": "x<text>"}, {"a": "y"})
    assert differs({"a": 1}, {"a": True})
    assert differs({"a": []}, {"a": [1]})
    assert differs({"a": 1}, {"a": 1, "b": 2})


@pytest.mark.light_cases(8)
@pytest.mark.parametrize("name", CASES)
async def test_golden(name: str, wire: Wire) -> None:
    golden = read(name)
    setup, model = SETUPS[golden["setup"]]
    async with a_service(model=model) as service, a_client(service) as client:
        task = await setup(service, client, wire)
        request = json.loads(json.dumps(golden["request"]).replace("{task}", task))
        result = await client.call_tool(golden["tool"], request)
    assert bool(result.is_error) == golden["isError"]
    assert differs(golden["response"], data_of(result), also=golden["also"]) == []


def test_deviations_are_listed() -> None:
    known = {one["name"] for one in read("deviations")}
    assert all(set(one) == {"name", "seed", "ours", "why"} for one in read("deviations"))
    assert {name for case in CASES for name in read(case)["deviates"]} <= known


async def test_parameters_are_the_seeds_and_those_that_are_listed(wire: Wire) -> None:
    async with a_service() as service, a_client(service) as client:
        schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
    golden = read("parameters")
    for tool in ("retrieve_memory", "extract_memory"):
        wanted, schema = golden[tool], schemas[tool]
        assert set(schema["properties"]) == {*wanted, *golden["ours"].get(tool, ())}
        needed = {name for name, one in wanted.items() if one["required"]}
        assert set(schema.get("required", ())) == needed - set(golden["ours"]["not_required"].get(tool, ()))
        for name, one in wanted.items():
            assert schema["properties"][name]["type"] == one["type"]
            assert schema["properties"][name].get("default") == one.get("default")
    step = schemas["extract_memory"]["properties"]["trajectory"]["items"]
    for name, one in golden["extract_memory"]["trajectory"]["items"].items():
        assert step["properties"][name]["type"] == one["type"]
        assert step["properties"][name].get("enum") == one.get("enum")
        assert (name in step["required"]) == one["required"]
