"""examples/swe_bench: an agent's patch to each instance, once, as a prediction that applies to the base commit."""

from __future__ import annotations

import json
import runpy
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

EXAMPLE: Any = SimpleNamespace(
    **runpy.run_path(str(Path(__file__).parents[2] / "examples" / "swe_bench" / "predict.py"))
)
AGENT = """
import pathlib, sys
prompt = sys.stdin.read()
if "off by one" in prompt:
    pathlib.Path("count.py").write_text("def count(x):\\n    return len(x)\\n")
    pathlib.Path("new.txt").write_text("new\\n")
"""


def repository(folder: Path) -> str:
    folder.mkdir(parents=True)
    EXAMPLE.git(folder, "init", "--quiet")
    EXAMPLE.git(folder, "config", "user.name", "A")
    EXAMPLE.git(folder, "config", "user.email", "a@example.com")
    for text in ("return len(x) - 1", "return 0"):
        (folder / "count.py").write_text(f"def count(x):\n    {text}\n")
        EXAMPLE.git(folder, "add", ".")
        EXAMPLE.git(folder, "commit", "--quiet", "-m", text)
    return EXAMPLE.git(folder, "rev-parse", "HEAD~1").strip()


async def test_each_instance_is_predicted_once_and_its_patch_applies(tmp_path: Path) -> None:
    base = repository(tmp_path / "repos" / "acme__count")
    (tmp_path / "agent.py").write_text(AGENT)
    problems = {"acme__count-1": "count is off by one.", "acme__count-2": "Nothing is wrong."}
    rows = [
        {"instance_id": id, "repo": "acme/count", "base_commit": base, "problem_statement": problem}
        for id, problem in problems.items()
    ]
    (tmp_path / "instances.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    output, actor = tmp_path / "out.jsonl", f"command:{shlex.join([sys.executable, str(tmp_path / 'agent.py')])}"
    words = [str(tmp_path / "instances.jsonl"), "--repos", str(tmp_path / "repos"), "--actor", actor]
    words += ["--work", str(tmp_path / "work"), "--output", str(output), "--name", "mine"]
    for _ in range(2):
        await EXAMPLE.main(words)
    fixed, unchanged = map(json.loads, output.read_text().splitlines())
    assert (fixed["instance_id"], fixed["model_name_or_path"]) == ("acme__count-1", "mine")
    assert unchanged == {"instance_id": "acme__count-2", "model_name_or_path": "mine", "model_patch": ""}
    clean = EXAMPLE.checked_out(rows[0] | {"instance_id": "clean"}, tmp_path / "repos", tmp_path / "work")
    (tmp_path / "fix.patch").write_text(fixed["model_patch"])
    EXAMPLE.git(clean, "apply", str(tmp_path / "fix.patch"))
    assert (clean / "count.py").read_text() == "def count(x):\n    return len(x)\n"
    assert (clean / "new.txt").read_text() == "new\n"
