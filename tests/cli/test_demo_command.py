"""`mulligan demo`: the example that ships, and the ways on where no model runs in this process."""

import json
import stat
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from mulligan.cli.demo import EXAMPLE, next_steps, ollama_model
from mulligan.core.extras import install_command

WRONG = "def factorial(n):\n    return n * factorial(n - 1)"
RIGHT = "def factorial(n):\n    return n * factorial(n - 1) if n else 1"
AGENT = f"""#!/bin/sh
if [ -s factorial.py ]; then echo '{RIGHT}' > factorial.py; else echo '{WRONG}' > factorial.py; fi
"""


Run = Callable[..., Any]


@pytest.fixture
def answering() -> Iterator[Callable[[object], str]]:
    """Starts a server that gives this JSON to each request; returns its address."""
    servers: list[ThreadingHTTPServer] = []

    def start(answer: object) -> str:
        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        servers.append(server)
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/v1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def nothing(name: str) -> None:
    """What `find_spec` says of a package that is not installed."""


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_model_tries_the_example_away_from_a_checkout(mulligan: Run, here: Path) -> None:
    (here / "said.txt").write_text(f"{WRONG}\n---\nfactorial never ends.\n---\n{RIGHT}")
    ended = mulligan("demo", "--model", "scripted:said.txt")
    assert (ended.status, ended.out) == (0, RIGHT + "\n")
    assert "solved on try 2 of 4" in ended.err
    assert not (here / "examples").exists()


@pytest.mark.slow
def test_a_coding_agent_tries_the_example_and_needs_no_model(
    mulligan: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mulligan.core.extras.find_spec", nothing)
    agent = program(here / "agent.sh", AGENT)
    for ended in (mulligan("demo", "--actor", f"command:{agent}") for _ in range(2)):  # the second begins anew
        assert ended.status == 0
        assert "solved on try 2 of 4" in ended.err
        assert "+    return n * factorial(n - 1) if n else 1\n" in ended.out
        (folder,) = (line for line in ended.err.splitlines() if "now contain the result of try 2" in line)
        assert (Path(folder.split()[3]) / "factorial.py").read_text() == RIGHT + "\n"


@pytest.mark.parametrize(
    "command", [("demo",), ("solve", "x", "--evaluator", "exact_match:x"), ("run", "answerer", "x")]
)
def test_without_the_extra_every_way_on_is_named(
    mulligan: Run, here: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr("mulligan.core.extras.find_spec", nothing)
    monkeypatch.setenv("PATH", str(here))
    ended = mulligan(*command)
    assert ended.status == 2
    assert ended.err == (
        f"Error: Models that run inside Mulligan need an extra: {install_command('local')}. Or use a provider's "
        f"model, after {install_command('models')}: --model PROVIDER:NAME, with its key (see `mulligan models "
        "list`).\n"
    )
    monkeypatch.setenv("DASHSCOPE_API_KEY", "sk-none-at-all")
    for name in ("claude", "opencode"):
        program(here / name, "#!/bin/sh")
    assert mulligan(*command).err.endswith(
        '[models]": --model alibaba:qwen-plus (DASHSCOPE_API_KEY is set). Or let a coding agent try: '
        '--actor "command:claude -p --permission-mode acceptEdits", '
        '--actor "command:opencode run {prompt}".\n'
    )


def test_the_example_is_in_the_package_and_nowhere_else() -> None:
    assert {file.name for file in EXAMPLE.iterdir() if file.is_file()} == {"task.md", "tests.py"}
    assert not (Path(__file__).parents[2] / "examples" / "factorial").exists()


@pytest.mark.slow
def test_it_says_what_happens_and_what_to_try_next(mulligan: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "said.txt").write_text(f"{WRONG}\n---\nfactorial never ends.\n---\n{RIGHT}")
    monkeypatch.setenv("PATH", str(here))
    monkeypatch.setenv("DASHSCOPE_API_KEY", "sk-none-at-all")
    program(here / "claude", "#!/bin/sh")
    ended = mulligan("demo", "--model", "scripted:said.txt")
    assert ended.err.startswith("The task: ")
    _, _, after = ended.err.partition("\nWhat to try next:\n")
    assert "DASHSCOPE_API_KEY is set" in after
    assert "mulligan demo --model alibaba:qwen-plus\n" in after
    assert "sk-none" not in ended.err
    assert (
        'Claude Code is installed:\n    mulligan demo --actor "command:claude -p --permission-mode acceptEdits"\n'
        in after
    )
    assert "Codex" not in after
    run = ended.err.partition("run ")[2].partition(":")[0]
    assert f"mulligan runs show {run} --full\n" in after
    assert mulligan("runs", "show", run, "--full").status == 0
    assert "echo 'assert add(1, 2) == 3' > tests.py && mulligan solve" in after
    (here / "said.txt").write_text(RIGHT)
    assert "try next" not in mulligan("demo", "--model", "scripted:said.txt", "--quiet").err


def test_an_ollama_is_found_running_installed_or_not_at_all(
    here: Path, monkeypatch: pytest.MonkeyPatch, answering: Callable[[object], str]
) -> None:
    monkeypatch.setenv("PATH", str(here))
    assert ollama_model(answering({"models": [{"name": "qwen3:8b"}]})) == "qwen3:8b"
    assert ollama_model(answering({"models": [{"name": "x; rm -rf ~"}]})) == ""
    assert ollama_model(answering({"models": []})) == ""
    assert ollama_model(answering(["what else"])) is None
    program(here / "ollama", "#!/bin/sh")
    assert ollama_model(answering(["what else"])) == ""
    found = dict(next_steps("qwen3:8b", "r1"))
    assert found["Ollama has the model qwen3:8b"].endswith("mulligan demo --model ollama:qwen3:8b")
    assert next_steps("", "r1")[-3][1].startswith("ollama pull qwen3 && ")
    assert not any("llama" in what for what, _ in next_steps(None, "r1"))
