"""Our benchmarks as tasks of Inspect and the loop as its solver, with Inspect's own mock model, offline.

Inspect runs in the Python that MULLIGAN_INSPECT_PYTHON names, or in this one where it is installed here.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from mulligan import ScriptedModel, inspect_tasks
from mulligan.bench.harness.single import Bench
from mulligan.core.episode import Event
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode, Json
from mulligan.inspect_tasks.model import part

PYTHON = os.environ.get("MULLIGAN_INSPECT_PYTHON") or (sys.executable if find_spec("inspect_ai") else "")
WHY = 'needs inspect-ai: pip install -c constraints.txt -e ".[inspect]"'
inspect = pytest.mark.skipif(not PYTHON, reason=WHY)

ROWS = [
    {
        "task_id": f"own/{name}",
        "prompt": f'def {name}(x: int) -> int:\n    """Twice x."""\n',
        "entry_point": name,
        "test": f"def check(candidate):\n    assert candidate(21) == 42\n    assert candidate(0) == 0\n\ncheck({name})\n",
    }
    for name in ("double", "twice")
]
SCRIPT = """
import json, re, sys
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver import generate
from mulligan.inspect_tasks import benchmark, reflexion

LINES = {"asked": 0}


def says(messages, tools, tool_choice, config):
    text = "\\n".join(message.text for message in messages)
    name = re.findall(r"def (double|twice)", text)[-1]
    LINES["asked"] += 1
    if "LESSON" in text and "unit test" not in messages[0].text.lower():
        said = f"```python\\ndef {name}(x):\\n    return 2 * x\\n```"
    elif LINES["asked"] % 4 == 2:
        said = f"assert {name}(3) == 6\\nassert {name}(1) == 2"
    elif LINES["asked"] % 4 == 3:
        said = "LESSON: multiply x by two."
    else:
        said = f"```python\\ndef {name}(x):\\n    return x\\n```"
    output = ModelOutput.from_content("mockllm/model", said)
    output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    return output


model = get_model("mockllm/model", custom_outputs=says)
how = json.loads(sys.argv[2])
task = benchmark(sys.argv[1], **how.get("task", {}))
solver = generate() if how.get("plain") else reflexion(**how.get("solver", {}))
second = get_model("mockllm/second", custom_outputs=says)
roles = {"second": second}
[log] = eval(task, model=model, model_roles=roles, solver=solver, display="none", max_samples=how.get("max_samples", 1))
print(json.dumps({
    "status": log.status,
    "error": log.error and log.error.message,
    "reflected": sum(e.event == "model" and e.model == "mockllm/second" for s in log.samples or [] for e in s.events),
    "accuracy": log.results and log.results.scores[0].metrics["accuracy"].value,
    "samples": [
        {
            "id": s.id, "target": s.target, "metadata": s.metadata, "error": s.error and s.error.message,
            "score": s.scores and s.scores["hidden"].value, "said": s.output.completion,
            "tokens": sum(u.total_tokens for u in s.model_usage.values()), "calls": sum(e.event == "model" for e in s.events),
            "told": [e.data for e in s.events if e.event == "info" and e.source == "mulligan"],
        }
        for s in log.samples or []
    ],
}))
"""


def evaluated(folder: Path, **how: Json) -> dict[str, Any]:
    (folder / "mine.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    env = {**os.environ, "MULLIGAN_HOME": str(folder / "home"), "INSPECT_LOG_DIR": str(folder / "logs")}
    command = [PYTHON, "-c", SCRIPT, str(folder / "mine.jsonl"), json.dumps(how)]
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@inspect
@pytest.mark.slow
def test_fail_reflect_solve(tmp_path: Path) -> None:
    log = evaluated(tmp_path, solver={"method": "reflexion", "trials": 3, "reflect_role": "second"}, task={"limit": 1})
    assert (log["status"], log["accuracy"], log["reflected"]) == ("success", 1.0, 1)
    [sample] = log["samples"]
    about = sample["metadata"]["mulligan"]
    assert [(trial["passed"], trial["reflection"]) for trial in about["trials"]] == [
        (False, "LESSON: multiply x by two."),
        (True, None),
    ]
    assert (sample["id"], sample["score"], about["stop"]) == ("own/double", 1.0, "solved")
    assert (sample["calls"], sample["tokens"]) == (4, 60)
    assert [set(told) - {"trial"} for told in sample["told"]] == [
        {"attempt", "steps"}, {"passed", "score", "feedback"}, {"reflection"},
        {"attempt", "steps"}, {"passed", "score", "feedback"}, {"stopped", "detail"},
    ]  # fmt: skip
    assert "candidate(21)" not in json.dumps([sample["metadata"], sample["target"], sample["told"]])
    shown = subprocess.run(
        [sys.executable, "-m", "mulligan", "runs", "show", about["episode"]],
        env={**os.environ, "MULLIGAN_HOME": str(tmp_path / "home")}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "LESSON: multiply x by two." in shown.stdout, shown.stderr


@inspect
@pytest.mark.slow
def test_a_solver_of_inspects_own_is_judged_too(tmp_path: Path) -> None:
    log = evaluated(tmp_path, plain=True)
    assert (log["status"], log["accuracy"], [s["score"] for s in log["samples"]]) == ("success", 0.0, [0.0, 0.0])


@inspect
@pytest.mark.slow
def test_an_online_bank_wants_one_sample_at_a_time(tmp_path: Path) -> None:
    log = evaluated(tmp_path, task={"memory": "online"}, max_samples=2)
    assert log["status"] == "error"
    assert "--max-samples 1" in log["error"]


def ignore(episode: Episode, event: Event) -> None:
    """An observer that is not interested."""


async def test_a_method_of_one_attempt_is_not_given_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    data, model = tmp_path / "mine.jsonl", ScriptedModel(["    return x"] * 9)
    data.write_text("\n".join(map(json.dumps, ROWS)))
    for given in ({"method": "simple", "trials": 5}, {"trials": 5}):
        with pytest.raises(InvalidInput, match="one attempt, not 5"):
            Bench.open(Bench.options(str(data), given))
    bench = Bench.open(Bench.options(str(data), {}))
    with pytest.raises(InvalidInput, match="one attempt, not 5"):
        await bench.play("own/double", {"method": "simple", "trials": 5}, model, None, ignore, 1)
    assert model.questions == []
    episode = await bench.play("own/double", {}, model, None, ignore, 1)
    assert len(episode.trials) == 1


def test_without_inspect_it_is_reported_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(InvalidInput, match="inspect-ai"):
        part()
    assert set(inspect_tasks.__all__) == {"benchmark", "hidden", "reflexion"}
