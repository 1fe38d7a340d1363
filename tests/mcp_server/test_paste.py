"""`mulligan serve --print-config` and `--print-prompt`: what they print works when it is pasted."""

import asyncio
import json
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row
from forked import run_forked
from mcp import Client, StdioServerParameters
from serving import MULLIGAN, over, served

from mulligan.app.config import load
from mulligan.app.prompts import FilePrompts
from mulligan.cli.main import main
from mulligan.cli.serve import CLIENTS as OFFERED
from mulligan.mcp_server.client_config import CLIENTS, ServerCommand, client_config, program, registry_entry
from mulligan.mcp_server.prompt_texts import memory_rules

TOKEN = "0123456789abcdef0123"
SCRIPTS = str(Path(sys.executable).parent)


def printed(*arguments: str, cwd: Path | None = None, **env: str) -> tuple[str, str]:
    """What is written to stdout and to stderr."""
    command, where = [*MULLIGAN, *arguments], {**os.environ, **env}
    ran = run_forked(command, env=where, cwd=cwd)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr


def config(client: str, *arguments: str, cwd: Path | None = None, **env: str) -> Any:
    return json.loads(printed("--print-config", client, *arguments, cwd=cwd, **env)[0])


def entry(said: Any) -> dict[str, Any]:
    (table,) = [value for key, value in said.items() if key != "inputs"]
    (name,) = table
    assert name == "mulligan"
    return table[name]


async def told_by(entry: dict[str, Any], cwd: Path) -> str | None:
    """What the server says of itself that the entry starts, in an environment as small as clients hand on, without a
    PATH that could find anything.
    """
    env = {"PATH": "", "HOME": str(cwd), **entry.get("env", {})}
    started = StdioServerParameters(command=entry["command"], args=entry["args"], env=env, cwd=cwd)
    async with Client(started) as client:
        assert (await client.list_tools()).tools
        return client.instructions


def test_every_client_is_offered() -> None:
    assert OFFERED == CLIENTS


@pytest.mark.slow
@pytest.mark.parametrize(
    "client", [pytest.param(name, marks=[] if name == "vscode" else pytest.mark.slow) for name in CLIENTS]
)
async def test_what_is_printed_starts_a_server(client: str, tmp_path: Path) -> None:
    said = await told_by(entry(config(client, "--agent-id", "my agent", "--tools", "memory")), tmp_path) or ""
    assert "Your `agent_id` is `my agent`." in said
    assert "reflexion-thinking" not in said


def test_each_client_s_own_words() -> None:
    here = ServerCommand(options=("--tools", "memory"))
    line = {"command": "mulligan", "args": ["serve", "--tools", "memory"]}
    assert client_config("json", here).config == {"mcpServers": {"mulligan": line}}
    for client in ("claude", "cursor", "qoder"):
        assert client_config(client, here).config == client_config("json", here).config
    assert client_config("vscode", here).config == {"servers": {"mulligan": {"type": "stdio", **line}}}
    assert entry(client_config("cherry-studio", here).config) == {"type": "stdio", "isActive": True, **line}


def test_what_the_registry_is_told() -> None:
    served = ServerCommand("http", options=("--tools", "memory"), token=True, keys=("OPENAI_API_KEY",))
    said: Any = registry_entry(served).config
    (package,) = said["packages"]
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", said["name"])
    assert 0 < len(said["description"]) <= 100
    assert said["version"] == package["version"] == version("mulligan")
    words = [one["value"] for one in package["packageArguments"]]
    assert words == ["serve", "--transport", "http", "--host", "127.0.0.1", "--port", "8000", "--tools", "memory"]
    assert package["transport"]["url"] == "http://127.0.0.1:8000/mcp"
    assert {one["name"] for one in package["environmentVariables"]} == {"MULLIGAN_TOKEN", "OPENAI_API_KEY"}
    stdio: Any = registry_entry(ServerCommand()).config
    assert stdio["packages"][0]["transport"] == {"type": "stdio"}
    assert "environmentVariables" not in stdio["packages"][0]


BEARERS = {
    "claude": "Bearer ${MULLIGAN_TOKEN}",
    "cursor": "Bearer ${env:MULLIGAN_TOKEN}",
    "vscode": "Bearer ${input:mulligan-token}",
    "qoder": "Bearer MULLIGAN_TOKEN_GOES_HERE",
    "cherry-studio": "Bearer MULLIGAN_TOKEN_GOES_HERE",
    "json": "Bearer MULLIGAN_TOKEN_GOES_HERE",
}
TYPES = {
    "claude": ("sse", "http"),
    "cursor": (None, None),
    "vscode": ("sse", "http"),
    "qoder": ("sse", None),
    "cherry-studio": ("sse", "streamableHttp"),
    "json": ("sse", "http"),
}


@each_row("client", CLIENTS)
def test_a_server_elsewhere_is_named_by_its_address(client: str) -> None:
    address = "baseUrl" if client == "cherry-studio" else "url"
    for transport, path, kind in zip(("sse", "http"), ("/sse", "/mcp"), TYPES[client], strict=True):
        pasted = client_config(client, ServerCommand(transport, port=8123, token=True))
        one = entry(pasted.config)
        assert one[address] == f"http://127.0.0.1:8123{path}"
        assert one.get("type") == kind
        assert one["headers"] == {"Authorization": BEARERS[client]}
        assert ("inputs" in pasted.config) == (client == "vscode")
        assert "command" not in one
        assert f"mulligan serve --transport {transport} --host 127.0.0.1 --port 8123" in "\n".join(pasted.notes)
        assert "headers" not in entry(client_config(client, ServerCommand(transport)).config)
    assert "inputs" not in client_config("vscode", ServerCommand(token=True)).config


@pytest.mark.parametrize("transport", ["sse", "http"])
@pytest.mark.parametrize("client", ["claude", "cherry-studio"])
async def test_the_address_and_the_header_let_a_client_in(client: str, transport: str) -> None:
    with served(transport=transport, env={"MULLIGAN_TOKEN": f"a:{TOKEN}"}) as server:
        port = server.url.split(":")[2].split("/")[0]
        one = entry(config(client, "--transport", transport, "--port", port, MULLIGAN_TOKEN=f"a:{TOKEN}"))
        url = one.get("url") or one["baseUrl"]
        assert url == server.url
        header = one["headers"]["Authorization"].replace("${MULLIGAN_TOKEN}", TOKEN)
        header = header.replace("MULLIGAN_TOKEN_GOES_HERE", TOKEN)
        async with Client(over(url, header.removeprefix("Bearer "))) as connected:
            assert (await connected.list_tools()).tools


def test_the_token_itself_is_printed_nowhere() -> None:
    for client in CLIENTS:
        said = printed("--print-config", client, "--transport", "http", MULLIGAN_TOKEN=f"a:{TOKEN}")
        assert TOKEN not in "".join(said)
        assert "Bearer" in said[0]


def test_a_token_is_asked_for_where_other_machines_may_call() -> None:
    said, notes = printed("--print-config", "json", "--transport", "http", "--host", "0.0.0.0", "--port", "9000")
    one = entry(json.loads(said))
    assert one["url"] == "http://127.0.0.1:9000/mcp"
    assert "headers" in one
    assert "with MULLIGAN_TOKEN set: " in notes
    assert "use the machine's name instead of 127.0.0.1" in notes
    assert entry(config("json", "--transport", "http", "--host", "::1"))["url"] == "http://[::1]:8000/mcp"
    assert "headers" not in entry(config("json", "--transport", "http", "--host", "localhost"))


def test_the_folder_and_the_model_are_found_from_anywhere(tmp_path: Path) -> None:
    one = entry(config("json", "--model", "scripted:answers.txt", cwd=tmp_path, MULLIGAN_HOME="kept"))
    assert one["env"] == {"MULLIGAN_HOME": str(tmp_path / "kept")}
    assert one["args"] == ["serve", "--model", f"scripted:{tmp_path / 'answers.txt'}"]


def test_what_was_typed_is_handed_on_and_nothing_else() -> None:
    typed = ("--agent-id", '名 "x"', "--preset", "paper", "--memory-depth", "5", "--embedder", "none")
    more = ("--log-json", "--allow-origin", "http://a", "--allow-origin", "http://b")
    said = entry(config("json", *typed, *more))["args"]
    assert sorted(said) == sorted(["serve", *typed, *more])
    assert said[said.index("--agent-id") + 1] == '名 "x"'
    said, notes = printed("--print-config", "json", "--transport", "http", *typed)
    assert entry(json.loads(said)) == {"type": "http", "url": "http://127.0.0.1:8000/mcp"}
    assert "--memory-depth 5" in notes


def test_the_program_is_named_by_its_whole_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for path in (SCRIPTS, str(tmp_path)):
        monkeypatch.setenv("PATH", path)
        assert program() == (str(Path(SCRIPTS) / "mulligan"),)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    assert program() == (str(tmp_path / "bin" / "python"), "-m", "mulligan")


def test_an_environment_for_a_while_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("uvx", "pipx"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr(sys, "prefix", "/home/a/.cache/uv/archive-v0/_wKkia")
    *uvx, spec, again, dash, name = program()
    python = str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")
    assert uvx == [str(tmp_path / "uvx"), "--python", python, "--from"]
    assert (again, dash, name) == ("python", "-m", "mulligan")
    assert re.match(r"mulligan\[[\w,-]*serve[\w,-]*\]( @ |==)", spec)
    monkeypatch.setenv("UV", "/opt/uv")
    assert program()[:3] == ("/opt/uv", "tool", "run")
    for prefix in ("/home/a/.cache/pipx/81500bf", "/home/a/.local/pipx/.cache/81500bf"):
        monkeypatch.setattr(sys, "prefix", prefix)
        assert program() == (str(tmp_path / "pipx"), "run", "--spec", spec, "mulligan")
    for prefix in ("/home/a/.local/share/uv/tools/mulligan", "/home/a/.local/share/pipx/venvs/mulligan"):
        monkeypatch.setattr(sys, "prefix", prefix)
        assert program() == (str(Path(SCRIPTS) / "mulligan"),)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("uvx"), reason="needs uvx")
def test_what_is_printed_under_uvx_starts_without_a_path(tmp_path: Path) -> None:
    here = str(Path(__file__).parents[2])
    command = [
        "uvx",
        "--isolated",
        "--reinstall-package",
        "mulligan",
        "--from",
        here,
        "mulligan",
        "serve",
        "--print-config",
        "json",
    ]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    one = entry(json.loads(ran.stdout))
    asked = subprocess.run(["uv", "cache", "dir"], capture_output=True, text=True, timeout=60, check=True)
    settings = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "SSL_"))}
    one["env"] = {**one.get("env", {}), **settings, "UV_CACHE_DIR": asked.stdout.strip()}
    assert asyncio.run(told_by(one, tmp_path))


def test_the_model_s_key_is_named_and_not_printed() -> None:
    said = printed("--print-config", "claude", "--model", "openai:gpt-4o", OPENAI_API_KEY="a-key-of-mine")
    assert "The client must pass OPENAI_API_KEY to the server, for the model" in said[1]
    assert "a-key-of-mine" not in "".join(said)
    assert "API_KEY" not in "".join(printed("--print-config", "claude", "--model", "ollama:qwen3"))


def test_claude_is_told_the_command_too() -> None:
    _, notes = printed("--print-config", "claude", "--agent-id", "it's me", MULLIGAN_HOME="/a b", PATH=SCRIPTS)
    assert (
        f"claude mcp add mulligan --env 'MULLIGAN_HOME=/a b' -- {shlex.join(program())} serve --agent-id 'it'\"'\"'s me'"
        in notes
    )
    _, notes = printed("--print-config", "claude", "--transport", "sse", MULLIGAN_TOKEN=TOKEN)
    line = 'claude mcp add --transport sse mulligan http://127.0.0.1:8000/sse --header "Authorization: Bearer $MULLIGAN_TOKEN"'
    assert line in notes


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--print-config", "emacs"), "'emacs' is not one of 'claude'"),
        (("--print-config", "json", "--memory-depth", "0"), "depth must be at least 1"),
        (("--print-config", "json", "--agent-id", " "), "agent_id is empty"),
        (("--print-config", "json", "--transport", "http", "--port", "0"), "needs to know the port"),
        (("--print-config", "json", "--print-prompt"), "not both"),
        (("--print-prompt", "--tools", "reflexion"), "omit --tools reflexion"),
        (("--model", "nonsense"), "No model is called 'nonsense'"),
        (("--model", "opnai:gpt-6-luna"), "No model provider is called 'opnai'. Did you mean 'openai'?"),
    ],
)
def test_what_cannot_be_pasted_or_served_is_refused(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers = list(logging.root.handlers)
    with pytest.raises(SystemExit) as ended:
        main(["serve", *arguments])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert says in said.err
    assert logging.root.handlers == handlers, "this process logs as before"


def test_the_rules_are_printed_for_an_agent() -> None:
    out, notes = printed("--print-prompt", "--agent-id", "Qoder")
    assert out == memory_rules(FilePrompts.of(load()), "Qoder") + "\n"
    assert "Your `agent_id` in it is `Qoder`." in out
    assert notes == ""
    assert "a name that stays the same" in printed("--print-prompt")[0]


PAGE = Path(__file__).parents[2] / "docs" / "mcp-clients.md"
SHOWN = re.findall(
    r"```\n((?:MULLIGAN_TOKEN=… )?)mulligan serve (--print-config [^|\n]*)\n```\n+```json\n(.*?)```",
    PAGE.read_text("utf-8"),
    re.S,
)


@pytest.mark.parametrize(("token", "arguments", "shown"), SHOWN, ids=[arguments for _, arguments, _ in SHOWN])
def test_the_page_shows_what_is_printed(
    token: str, arguments: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MULLIGAN_HOME")
    monkeypatch.setenv("PATH", f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}")
    if token:
        monkeypatch.setenv("MULLIGAN_TOKEN", TOKEN)
    (here,) = program()
    assert config(*arguments.split()[1:]) == json.loads(shown.replace("/home/me/.local/bin/mulligan", here))


def test_the_page_shows_every_client() -> None:
    assert {arguments.split()[1] for _, arguments, _ in SHOWN} == set(CLIENTS)


@pytest.mark.slow
def test_printing_starts_nothing() -> None:
    """Neither the SDK nor a store: it is quick, and works where nothing can be served."""
    assert shutil.which("mulligan", path=SCRIPTS)
    program = (
        "import sys\nfrom mulligan.cli.main import main\n"
        "try: main(['serve', '--print-config', 'json'])\nexcept SystemExit: pass\n"
        "print(sorted({'mcp', 'pydantic', 'sqlite3', 'starlette'} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stderr.splitlines()[-1] == "[]"
