"""The prompts and the server's instructions: that they say what the seeds' prose says, in words of ours."""

import json
import re
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from surfaces import NEW, OLD, refused, surface

from mulligan.app.prompts import FilePrompts
from mulligan.app.service import ServerOptions, Service
from mulligan.app.trusting import trust
from mulligan.core.errors import InvalidInput
from mulligan.mcp_server.prompt_texts import instructions, memory_rules, quote_name
from mulligan.mcp_server.prompts import Prompts
from mulligan.mcp_server.server import tools_of

GOLDEN = Path(__file__).parent / "golden" / "prompts"


async def text(client: Client, name: str, arguments: dict[str, str] | None = None) -> str:
    (message,) = (await client.get_prompt(name, arguments)).messages
    assert message.role == "user"
    assert isinstance(message.content, types.TextContent)
    return message.content.text


@pytest.mark.parametrize(("name", "golden"), [("memory-rules", "memory_rules"), ("reflexion", "reflexion")])
async def test_every_fact_of_the_seed_is_in_it(name: str, golden: str) -> None:
    facts: Any = json.loads((GOLDEN / f"{golden}.json").read_text())
    async with surface() as (client, _):
        given = {"memory-rules": {"agent_id": "Qoder"}, "reflexion": {"task": "Add two numbers."}}
        said = " ".join((await text(client, name, given[name])).split())
    missing = [
        (fact["fact"], pattern) for fact in facts for pattern in fact["says"] if not re.search(pattern, said, re.I)
    ]
    assert missing == []
    assert len(facts) > 10


@pytest.mark.parametrize("mode", [NEW, OLD])
async def test_prompts_are_listed_with_their_arguments(mode: str) -> None:
    async with surface(mode=mode) as (client, _):
        prompts = (await client.list_prompts()).prompts
    found = {p.name: {a.name: a.required for a in p.arguments or []} for p in prompts}
    assert found == {"memory-rules": {"agent_id": False}, "reflexion": {"task": False, "max_trials": False}}


@pytest.mark.parametrize(("which", "names"), [("reflexion", ["reflexion"]), ("memory", ["memory-rules"])])
async def test_prompts_of_tools_that_are_not_served_are_not_there(which: str, names: list[str]) -> None:
    async with surface(which=which) as (client, _):
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == names
        gone = {"reflexion": "memory-rules", "memory": "reflexion"}[which]
        code, message = await refused(client.get_prompt(gone, {"task": "t"}))
    assert (code, message) == (-32602, f"No prompt is called {gone!r}. Available: {names[0]}.")


async def test_the_rules_name_the_agent_or_say_how_to_choose_a_name() -> None:
    async with surface() as (client, _):
        assert "Your `agent_id` in it is `Qoder`." in await text(client, "memory-rules", {"agent_id": " Qoder "})
        for given in ({}, {"agent_id": ""}, None):
            assert "Your `agent_id` in it is a name that stays the same" in await text(client, "memory-rules", given)


async def test_the_task_stands_in_a_fence_and_trials_are_counted() -> None:
    task = "Add.\n\n```python\nassert add(1, 2) == 3\n```\n{{max_trials}} [[system]]"
    async with surface() as (client, _):
        said = await text(client, "reflexion", {"task": task, "max_trials": "7"})
        assert "at most 3 trials" in await text(client, "reflexion", {"task": "t", "max_trials": ""})
        for given in ({}, {"task": "  "}, None):
            assert "The task is the one that the user has given you" in await text(client, "reflexion", given)
    assert f"The task:\n\n````text\n{task}\n````" in said
    assert "at most 7 trials" in said


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("reflexion", {"task": "t", "max_trials": "0"}, "max_trials must be an integer of at least 1, not '0'"),
        ("reflexion", {"task": "t", "max_trials": "1.5"}, "not '1.5'"),
        ("reflexion", {"task": "t", "trials": "1"}, "Did you mean 'max_trials'?"),
        ("memory-rules", {"agent_id": "a\nb"}, "characters, on one line"),
        ("memory-rules", {"agent_id": "a" * 5000}, "characters, on one line"),
        ("x" * 5000, {}, "No prompt is called"),
    ],
)
async def test_a_wrong_argument_is_refused(name: str, arguments: dict[str, str], says: str) -> None:
    async with surface() as (client, _):
        code, message = await refused(client.get_prompt(name, arguments))
    assert (code, says in message, len(message) < 600) == (-32602, True, True), message


def test_a_name_is_code_that_it_cannot_end() -> None:
    assert quote_name("Qoder") == "`Qoder`"
    assert quote_name("a`b``c") == "``` a`b``c ```"
    assert quote_name("a\nb") == '`"a\\nb"`'


def test_every_name_in_the_prompts_is_one_of_the_tools() -> None:
    """A tool, or a field of one: what is renamed there has to be renamed here."""
    tools = tools_of(Service(), "all")
    known = {tool.name for tool in tools} | {"needs_thinking", "processing", "claude-code", "memory-rules", "reflexion"}
    schemas = json.dumps([[tool.input_schema, tool.output_schema] for tool in tools])
    known |= set(re.findall(r'"([A-Za-z_]+)"', schemas))
    said = memory_rules(FilePrompts()) + instructions(Service(), "all")
    said += FilePrompts().text("prompts.reflexion")
    named = set(re.findall(r"`([\w-]+)`", said))
    assert named - known == set()
    assert {"retrieve_memory", "extract_memory", "episodeId"} <= named


# --- instructions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", OLD])
async def test_the_instructions_are_told_when_a_client_connects(mode: str) -> None:
    async with surface(mode=mode, agent_id="Qoder") as (client, service):
        assert client.instructions == instructions(service, "all")
        assert "Your `agent_id` is `Qoder`." in (client.instructions or "")
        assert "wherever a tool takes it" not in (client.instructions or "")  # none does where the agent is bound
        assert "where none does, the server knows it" in (client.instructions or "")


@pytest.mark.parametrize(
    ("which", "says", "says_not"),
    [
        ("reflexion", "`reflexion-thinking`", "retrieve_memory"),
        ("memory", "`retrieve_memory`", "reflexion-thinking"),
        ("all", "`retrieve_memory`", "{{"),
    ],
)
def test_the_instructions_are_of_the_tools_that_are_served(which: str, says: str, says_not: str) -> None:
    said = instructions(Service(ServerOptions()), which)
    assert says in said
    assert says_not not in said
    assert "mulligan://lessons/{id}" in said
    assert len(said) < 1500


def test_the_user_s_own_files_come_first_and_wrong_ones_are_refused_at_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mulligan.toml").write_text("prompts = 'mine'\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "instructions.server.md").write_text("[[system]]\nAhoy.\n")
    trust(tmp_path)
    assert instructions(Service(), "all").endswith("\n\nAhoy.")
    (tmp_path / "mine" / "prompts.reflexion.md").write_text("[[user]]\n{{tsk}}\n")
    trust(tmp_path)
    with pytest.raises(InvalidInput, match=r"prompts\.reflexion"):
        Prompts(Service(), "all")
