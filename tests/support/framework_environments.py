"""Environments of Python in which a framework of agents is installed beside Mulligan's base, at an exact version.

They take up to 850 MB each, in a folder that the tests share, `MULLIGAN_TEST_FRAMEWORKS`, else in one that goes with the
run. The pins are not in constraints.txt, as these versions do not all go together.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINS: Mapping[str, tuple[str, ...]] = {
    "crewai": ("crewai==1.15.30",),
    "dspy": ("dspy==3.4.1",),
    "langchain": ("langchain==1.4.7", "langgraph==1.2.22"),
    "openai_agents": ("openai-agents==0.24.0",),
    "pydantic_ai": ("pydantic-ai-slim==2.68.0",),
    "smolagents": ("smolagents==1.26.0",),
}
OFF = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
}
"""What frameworks tell or ask others, if they are not told not to."""
INSTALLING = 300.0
LIVING = 180.0
"""Seconds within which an agent has lived through its story on a busy machine."""


def environment(framework: str, folder: Path) -> Path:
    """The Python of the framework's environment, which is made below the shared folder, else below this one."""
    base = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    wanted = (*PINS[framework], *base, sys.version)
    key = sha256("\n".join(wanted).encode()).hexdigest()[:12]
    target = Path(os.environ.get("MULLIGAN_TEST_FRAMEWORKS") or folder) / f"{framework}-{key}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=target.parent))
        _ran(sys.executable, "-m", "venv", "--without-pip", str(made))
        uv = _uv(folder)
        _ran(uv, "pip", "install", "-q", "--python", str(made / "bin" / "python"), str(ROOT), *PINS[framework])
        try:
            made.rename(target)
        except OSError:  # another process of the tests was first
            if not target.exists():
                raise
            shutil.rmtree(made)
    return target / "bin" / "python"


def live(framework: str, when: str, python: Path, home: Path) -> str:
    """The file that the framework's script writes: see framework_story.py."""
    script = ROOT / "tests" / "functions" / "frameworks" / f"with_{framework}.py"
    file = home / f"{when}.json"
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR", "PYTHONPYCACHEPREFIX") if name in os.environ}
    paths = os.pathsep.join(str(one) for one in (ROOT / "src", ROOT / "tests" / "support"))
    env = {**kept, **OFF, "HOME": str(home), "MULLIGAN_HOME": str(home / "mulligan"), "PYTHONPATH": paths}
    _ran(str(python), str(script), when, str(file), cwd=home, env=env, seconds=LIVING)
    return file.read_text("utf-8")


def _uv(folder: Path) -> str:
    """It installs in a tenth of the time that pip takes."""
    tools = folder / "tools"
    if not tools.exists():
        _ran(sys.executable, "-m", "venv", str(tools))
        _ran(str(tools / "bin" / "pip"), "install", "-q", "-c", str(ROOT / "constraints.txt"), "uv")
    return str(tools / "bin" / "uv")


def _ran(
    *command: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, seconds: float = INSTALLING
) -> None:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, f"{command[:4]}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
