"""Solves the example that ships: with a model as text, with a coding agent as a folder of files."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from mulligan.app.config import load
from mulligan.app.solve import solve
from mulligan.core.records import Episode

EXAMPLE = Path(__file__).parent.parent / "examples" / "factorial"


async def demo(*, model: str | None = None, actor: str | None = None, **hooks: Any) -> Episode:
    """Solves the example. `hooks`: what else `solve` takes, such as observers.

    actor: a coding agent, "command:…". It works on a copy of the folder `demo` beside the store, and is shown the
    check's output; no model is needed. Raises what `solve` raises.
    """
    if actor is None:
        return await solve(EXAMPLE, model=model, **hooks)
    folder = load().database.parent / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "factorial.py").write_text("", encoding="utf-8")
    tests = (EXAMPLE / "tests.py").read_text(encoding="utf-8")
    (folder / "test_factorial.py").write_text(f"from factorial import factorial\n\n{tests}", encoding="utf-8")
    task = (EXAMPLE / "task.md").read_text(encoding="utf-8").strip()
    return await solve(
        f"{task} Write it into the file factorial.py.",
        actor=actor,
        check=f"{shlex.quote(sys.executable)} test_factorial.py",
        workspace=folder,
        settings={"workspace": {"mode": "copy", "deliver": "in_place"}},
        model=model,
        **hooks,
    )
