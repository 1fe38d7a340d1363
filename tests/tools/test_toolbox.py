"""The box that a move's tools come from: real tools, a real git workspace, and moves that are gone on with."""

import asyncio
import os
import socket
import subprocess
import sys
import warnings
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from each_row import each_row

from mulligan.app.toolbox import MAX_ANSWER, ConfiguredTools, check_tools, misfit, needs_workspace
from mulligan.core.errors import InvalidInput, ToolError, UnknownName
from mulligan.core.protocols import Toolbox, ToolResult, Tools
from mulligan.core.records import Artifact, Attempt, Episode, Json, Task, Trial
from mulligan.sandbox.local import LocalSandbox
from mulligan.workspace.git_workspace import GitWorkspace

SERVER = str(Path(__file__).parent.parent / "support" / "mcp_plain_server.py")
EXAMPLE: dict[str, Any] = {"ex": {"command": [sys.executable, SERVER]}}
EPISODE = Episode("e1.1", Task("Mend it."))
MINE = '''"""A tool of the user's that does wrong in every way."""
from pathlib import Path

from mulligan.core.errors import StoreError
from mulligan.core.questions import Tool

class Mine:
    async def offer(self):
        schema = {"type": "object", "properties": {"do": {"enum": ["raise", "long", "half", "store", "hang"]}}}
        return [Tool("mine", "Does wrong.", schema)]

    async def call(self, tool, arguments):
        match arguments["do"]:
            case "raise":
                raise KeyError("lost")
            case "long":
                return "x" * 1_000_000
            case "half":
                return "a\\ud800b"
            case "store":
                raise StoreError("the disk is full")

    async def close(self):
        raise OSError("cannot close")
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of the user's with one file."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "a.txt").write_text("start\n")
    who = ("-c", "user.name=U", "-c", "user.email=u@example.org")
    for command in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "one")):
        git(folder, *command)
    return folder


def git(folder: Path, *command: str) -> str:
    return subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True, text=True).stdout


def read(folder: str, name: str) -> str:
    return Path(folder, name).read_text()


@asynccontextmanager
async def working(tree: Path, episode: Episode = EPISODE) -> AsyncGenerator[ConfiguredTools]:
    workspace = GitWorkspace(folder=str(tree))
    try:
        yield ConfiguredTools(LocalSandbox(), workspace)
    finally:
        await workspace.close(episode)


async def call(box: Toolbox, tool: str, source: str = "", /, **arguments: Json) -> ToolResult:
    """As a step calls a tool."""
    result = await box.call(source or tool, tool, arguments)
    box.saw(result)
    return result


def after(episode: Episode, artifacts: tuple[Artifact, ...]) -> Episode:
    trial = Trial(len(episode.trials) + 1, Attempt("", artifacts=artifacts))
    return replace(episode, trials=(*episode.trials, trial))


async def test_calls_change_the_workspace_and_leave_states(tree: Path) -> None:
    async with working(tree) as tools, tools.open(EPISODE) as box:
        assert isinstance(tools, Tools)
        assert isinstance(box, Toolbox)
        assert [tool.name for tool in await box.offer("write_file")] == ["write_file"]
        looked = await call(box, "read_file", path="a.txt")
        assert looked == ToolResult("start\n")
        first = await call(box, "write_file", path="a.txt", content="one\n")
        second = await call(box, "run_command", command="echo two >> a.txt; cat a.txt")
        assert second.text == "exit status 0\none\ntwo"
        assert first.state != second.state
        (artifact,) = await box.artifacts(1)
        assert (artifact.kind, artifact.ref) == ("git", second.state)
        assert read(artifact.location, "a.txt") == "one\ntwo\n"
        assert git(tree, "show", f"{first.state}:a.txt") == "one\n"
    assert (tree / "a.txt").read_text() == "start\n"


async def test_a_resumed_move_goes_on_from_the_state_that_is_recorded(tree: Path) -> None:
    async with working(tree) as tools:
        async with tools.open(EPISODE) as box:
            wrote = await call(box, "write_file", path="b.txt", content="kept")
            await call(box, "write_file", path="c.txt", content="was never recorded")
        async with tools.open(EPISODE) as again:
            again.saw(wrote)
            assert (await call(again, "list_files")).text == "a.txt\nb.txt"
            (artifact,) = await again.artifacts(1)
            assert artifact.ref == wrote.state


async def test_artifacts_bring_the_folder_to_its_state_where_all_was_recorded(tree: Path) -> None:
    async with working(tree) as tools:
        async with tools.open(EPISODE) as box:
            wrote = await call(box, "write_file", path="b.txt", content="kept")
        async with tools.open(EPISODE) as other:  # nothing was done here: the tree as it was
            (start,) = await other.artifacts(1)
            assert sorted(os.listdir(start.location)) == [".git", "a.txt"]
        async with tools.open(EPISODE) as again:
            again.saw(wrote)
            (artifact,) = await again.artifacts(1)
            assert sorted(os.listdir(artifact.location)) == [".git", "a.txt", "b.txt"]


async def test_the_next_trial_begins_with_what_the_last_one_left(tree: Path) -> None:
    async with working(tree) as tools:
        async with tools.open(EPISODE) as box:
            await call(box, "write_file", path="a.txt", content="of trial 1")
            episode = after(EPISODE, await box.artifacts(1))
        async with tools.open(episode) as judge:  # what a judge writes is gone when the next trial looks
            await call(judge, "write_file", path="a.txt", content="of the judge")
        async with tools.open(episode) as box:
            assert (await call(box, "read_file", path="a.txt")).text == "of trial 1"
            (artifact,) = await box.artifacts(2)
            assert artifact.ref == episode.trials[0].attempt.artifacts[0].ref


async def test_a_call_that_failed_may_have_changed_files(tree: Path) -> None:
    async with working(tree) as tools, tools.open(EPISODE) as box:
        halted = ConfiguredTools(LocalSandbox(), tools.workspace, {"run_command": {"seconds": 0.5}})
        async with halted.open(EPISODE) as box:
            said = await call(box, "run_command", command="echo x > new.txt; sleep 60")
            assert said.text.startswith("stopped after 0.5 seconds")
            assert said.state
            failed = await call(box, "write_file", path="../x", content="")
            assert failed.failed
            assert failed.state
            assert (await call(box, "list_files")).text == "a.txt\nnew.txt"


async def test_what_cannot_be_kept_is_reported(tree: Path) -> None:
    workspace = GitWorkspace(folder=str(tree), max_file=1)
    async with ConfiguredTools(LocalSandbox(), workspace).open(EPISODE) as box:
        said = await call(box, "run_command", command="head -c 3000000 /dev/zero > big; echo x > small")
        assert "[note: big was not kept: it has 3 MB, more than 1]" in said.text
        (artifact,) = await box.artifacts(1)
        assert sorted(os.listdir(artifact.location)) == [".git", "a.txt", "small"]
    await workspace.close(EPISODE)


async def test_what_cannot_be_kept_is_reported_behind_a_long_answer(tree: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        MINE.replace(
            "    async def offer",
            "    def __init__(self, *, folder):\n        self.folder = folder\n\n    async def offer",
        )
        .replace('return "x" *', '(Path(self.folder) / "big").write_bytes(bytes(3_000_000)); return "x" *')
        .replace('"Does wrong.", schema', '"Does wrong.", schema, changes=True')
    )
    workspace = GitWorkspace(folder=str(tree), max_file=1)
    async with ConfiguredTools(LocalSandbox(), workspace).open(EPISODE) as box:
        said = await call(box, "mine", str(mine), do="long")
        cut = f"{'x' * MAX_ANSWER}\n[cut: {1_000_000 - MAX_ANSWER:,} more characters]"
        assert said.text == f"{cut}\n[note: big was not kept: it has 3 MB, more than 1]"
    await workspace.close(EPISODE)


async def test_arguments_are_checked_before_anything_is_done(tree: Path) -> None:
    async with working(tree) as tools, tools.open(EPISODE) as box:
        wrong: list[tuple[dict[str, Any], str]] = [
            ({}, "'path' is a required property"),
            ({"path": 3}, "path: 3 is not of type 'string'"),
            ({"path": "a.txt", "lines": 3}, "Additional properties are not allowed ('lines' was unexpected)"),
            ({"path": "a.txt", "line": 0}, "line: 0 is less than the minimum of 1"),
        ]
        for arguments, why in wrong:
            said = await box.call("read_file", "read_file", arguments)
            assert said == ToolResult(f"the arguments of read_file do not match its schema: {why}", failed=True)


def test_a_misfit_is_short_and_a_broken_schema_is_the_tools_business() -> None:
    assert len(misfit({"a": "x" * 10_000}, {"properties": {"a": {"type": "integer"}}})) <= 300
    assert misfit(
        {"a": {"b": [1, "x"]}}, {"properties": {"a": {"properties": {"b": {"items": {"type": "number"}}}}}}
    ) == ("a: b: 1: 'x' is not of type 'number'")
    for schema in ({"$ref": "http://127.0.0.1:9/x.json"}, {"type": "nonsense"}, {"pattern": 3}, True):
        assert misfit({"a": 1}, schema) == ""


def test_a_schema_that_refers_to_the_web_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urllib.request.urlopen", partial(urlopen, timeout=0.5))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        port = listening.getsockname()[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the validator's own way out is deprecated, and there all the same
            assert misfit({}, {"$ref": f"http://127.0.0.1:{port}/x.json"}) == ""
        with pytest.raises(BlockingIOError):
            listening.accept()


async def test_without_a_workspace() -> None:
    async with ConfiguredTools(LocalSandbox()).open(EPISODE) as box:
        for source in ("read_file", "write_file", "list_files", "run_command"):
            assert needs_workspace(source)
            with pytest.raises(
                ToolError,
                match=rf"^{source} works on a workspace's files.* specify a folder \(workspace=\)$",
            ):
                await box.offer(source)
            assert (await box.call(source, source, {})).failed
        assert await box.artifacts(1) == ()
    assert not needs_workspace("http_get")
    assert not needs_workspace("mcp:anything")


async def test_servers_run_beside_the_configuration_and_end_with_the_move(tmp_path: Path) -> None:
    server = {"ex": {**EXAMPLE["ex"], "seconds": 30}}
    async with ConfiguredTools(LocalSandbox(), servers=server, root=str(tmp_path)).open(EPISODE) as box:
        assert (await call(box, "ex_add", "mcp:ex", a=1, b=2)) == ToolResult("3")
        assert (await call(box, "ex_where", "mcp:ex")).text == str(tmp_path)
        wrong = await call(box, "ex_add", "mcp:ex", a=1, b="two")
        assert wrong.failed
        assert "b: 'two' is not of type 'integer'" in wrong.text
        assert "the moon is too far away" in (failed := await call(box, "ex_fail", "mcp:ex")).text
        assert failed.failed
        assert (await call(box, "ex_gone", "mcp:ex")) == ToolResult(
            "mcp:ex no longer offers a tool 'ex_gone'", failed=True
        )
        pid = int((await call(box, "ex_process", "mcp:ex")).text)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_cancelled_move_leaves_no_server_behind() -> None:
    pids: list[int] = []

    async def move() -> None:
        async with ConfiguredTools(LocalSandbox(), servers=EXAMPLE).open(EPISODE) as box:
            pids.append(int((await call(box, "ex_process", "mcp:ex")).text))
            await call(box, "ex_hang", "mcp:ex")

    moving = asyncio.create_task(move())
    for _ in range(100):
        await asyncio.wait({moving}, timeout=0.1)
        if pids:
            break
    moving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await moving
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


async def test_a_tool_of_the_users_that_does_wrong(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(MINE)
    async with ConfiguredTools(LocalSandbox()).open(EPISODE) as box:
        assert not needs_workspace(str(mine))
        assert (await call(box, "mine", str(mine), do="raise")) == ToolResult(
            f"{mine} failed: KeyError: 'lost'", failed=True
        )
        long = (await call(box, "mine", str(mine), do="long")).text
        assert long == f"{'x' * MAX_ANSWER}\n[cut: {1_000_000 - MAX_ANSWER:,} more characters]"
        assert (await call(box, "mine", str(mine), do="half")).text == "a?b"
        with pytest.raises(Exception, match="the disk is full"):
            await call(box, "mine", str(mine), do="store")
    assert "could not be closed" in caplog.text


@each_row(
    ("source", "tools", "servers", "why"),
    [
        ("raed_file", {}, {}, "No tool is called 'raed_file'. Did you mean 'read_file'"),
        ("http_get", {}, {}, "list them under [tools] http_hosts"),
        ("http_get", {"http_hosts": ["http://x"]}, {}, "not 'http://x'"),
        ("http_get", {"http_hosts": "x"}, {}, "must be a list of strings"),
        ("read_file", {"http_host": []}, {}, "Did you mean 'http_hosts'"),
        ("read_file", {"read_file": 3}, {}, "[tools.read_file] in mulligan.toml must be a table"),
        ("read_file", {"read_file": {"sice": 3}}, {}, "Did you mean 'size'"),
        ("run_command", {"run_command": {"seconds": "long"}}, {}, "must be a number"),
        ("mcp", {}, EXAMPLE, "write mcp:SERVER; available: ex."),
        ("mcp:exe", {}, EXAMPLE, "No MCP server is called 'exe'. Did you mean 'ex'? Available: ex."),
        ("mcp:ex", {}, {"ex": 3}, "[mcp.ex] in mulligan.toml must be a table"),
        ("mcp:ex", {}, {"ex": {}}, "needs either a command"),
        ("mcp:ex", {}, {"ex": {"command": ["x"], "seconds": "3"}}, "must be a number"),
        ("./no_such.py", {}, {}, "no_such.py does not exist"),
    ],
)
def test_what_cannot_be_had_is_reported_before_anything_is_started(
    source: str, tools: Mapping[str, Json], servers: Mapping[str, Json], why: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        check_tools([source], tools, servers)
    assert why in str(error.value)


def test_what_can_be_had() -> None:
    tools = {
        "http_hosts": ["example.org"],
        "run_command": {"seconds": 5, "readable": ["/opt"]},
        "http_get": {"size": 9},
    }
    check_tools(["read_file", "write_file", "list_files", "run_command", "http_get", "mcp:ex"], tools, EXAMPLE)
    with pytest.raises(UnknownName):
        needs_workspace("nothing")
