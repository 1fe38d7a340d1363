"""The wheel, as the usual tools install it: each runs the example in an empty folder."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from bare_environment import PROJECT
from wire_client import KEY, running

ROOT = Path(__file__).parent.parent
SCRIPT = (
    "def factorial(n): return n\n---\nfactorial(5) is 120, not n.\n---\n"
    "def factorial(n): return n * factorial(n - 1) if n else 1"
)
OTHERS = (
    "claude-agent-sdk", "crewai", "dspy", "fastmcp", "google-adk", "langchain-mcp-adapters", "llama-index-core",
    "openai-agents", "smolagents", "strands-agents",
)  # fmt: skip
PINS = str(ROOT / "constraints.txt")


def ran(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs uv, uvx and pipx."""
    folder = tmp_path_factory.mktemp("tools")
    ran(sys.executable, "-m", "venv", folder, cwd=folder)
    ran(folder / "bin" / "pip", "install", "-q", "-c", PINS, "uv", "pipx", cwd=folder)
    return folder / "bin"


@pytest.fixture(scope="module")
def wheel(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    ran(tools / "uv", "build", "--wheel", "-o", folder, ROOT, cwd=folder)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def oldest(tools: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, with the oldest pydantic-ai that `models` takes and the SDKs of its time."""
    folder = tmp_path_factory.mktemp("oldest")
    (line,) = (line for line in PROJECT["optional-dependencies"]["models"] if "pydantic-ai-slim" in line)
    least = line.partition(">=")[2].partition(",")[0]
    wanted = (f"mulligan[models] @ {wheel.as_uri()}", f"pydantic-ai-slim=={least}", "openai<3", "anthropic<1")
    ran(tools / "uv", "venv", "-q", "--python", sys.executable, folder, cwd=folder)
    ran(tools / "uv", "pip", "install", "-q", "--python", folder / "bin" / "python", *wanted, cwd=folder)
    return folder / "bin" / "mulligan"


@pytest.mark.slow
@pytest.mark.parametrize("other", OTHERS)
def test_it_goes_into_the_environment_of_others(other: str, tools: Path, wheel: Path, tmp_path: Path) -> None:
    """With the newest release of each: uv names the versions that fit, or fails."""

    def resolved(*wanted: str) -> dict[str, str]:
        (tmp_path / "wanted.txt").write_text("\n".join(wanted))
        said = ran(tools / "uv", "pip", "compile", "-q", "--no-header", "--no-annotate", "wanted.txt", cwd=tmp_path)
        return dict(line.split("==") for line in said.splitlines() if "==" in line)

    newest = f"{other}=={resolved(other)[other]}"
    assert "pydantic-ai-slim" not in resolved(newest, f"mulligan @ {wheel.as_uri()}")
    models = resolved(newest, f"mulligan[models] @ {wheel.as_uri()}")
    assert {"openai", "anthropic", "pydantic-ai-slim"} < models.keys()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["openai:gpt-4o", "openai-responses:gpt-4o", "anthropic:claude-haiku-4-5"])
def test_the_oldest_pydantic_ai_that_is_taken_calls_models(model: str, oldest: Path, tmp_path: Path) -> None:
    with running("--port", "0") as wire:
        wire.plays({"status": 429}, "wrong", "right")
        places = {"OPENAI_BASE_URL": wire.url, "ANTHROPIC_BASE_URL": wire.url.removesuffix("/v1")}
        keys = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "MULLIGAN_HOME": str(tmp_path)}
        options = ("--evaluator", "contains:right", "--strategy", "none", "--trials", "2", "--model", model)
        said = ran(oldest, "solve", "Say right.", *options, cwd=tmp_path, env={**os.environ, **places, **keys})
    assert "solved on try 2 of 2" in said


@pytest.mark.slow
def test_the_documentation_is_in_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """Every page, as it is in the repository; `mulligan docs` shows it where there is no repository."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)
    for page in (ROOT / "docs").rglob("*.md"):
        assert (tmp_path / "mulligan" / page.relative_to(ROOT)).read_bytes() == page.read_bytes()
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    shown = ran(sys.executable, "-m", "mulligan", "docs", "glossary", cwd=tmp_path, env=env)
    assert shown == (ROOT / "docs" / "glossary.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["uv tool install", "uvx --from", "pipx run"])
def test_the_example_runs_from_the_wheel(way: str, tools: Path, wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text(SCRIPT)
    places = {
        name: str(tmp_path / name)
        for name in ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "PIPX_HOME", "PIPX_BIN_DIR", "MULLIGAN_HOME")
    }
    env = {**os.environ, **places, "UV_PYTHON": sys.executable, "PIPX_DEFAULT_PYTHON": sys.executable}
    demo = ("demo", "--model", "scripted:said.txt")
    if way == "uv tool install":
        ran(tools / "uv", "tool", "install", "-c", PINS, wheel, cwd=tmp_path, env=env)
        command = (tmp_path / "UV_TOOL_BIN_DIR" / "mulligan",)
        extra = f'uv tool install "mulligan[local] @ {wheel.as_uri()}"'
    elif way == "uvx --from":
        command = (tools / "uvx", "-c", PINS, "--from", wheel, "mulligan")
        extra = f'uvx --from "mulligan[local] @ {wheel.as_uri()}" mulligan'
    else:
        command = (tools / "pipx", "run", "--pip-args", f"-c {PINS}", "--spec", wheel, "mulligan")
        extra = f'pipx install --force "mulligan[local] @ {wheel.as_uri()}"'
    assert "solved on try 2 of 4" in ran(*command, *demo, cwd=tmp_path, env=env)
    refused = subprocess.run(
        [str(part) for part in (*command, "demo")], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
    )
    assert refused.returncode == 2
    assert f"need an extra: {extra}." in refused.stderr
