"""The study of HumanEval with a small model: its items, and that it goes on where it was cut off."""

import asyncio
import gzip
import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mulligan.core.questions import Question, Sampling
from mulligan.models.scripted import ScriptedModel

FOLDER = Path(__file__).parents[2] / "studies" / "humaneval"


@pytest.fixture(scope="module")
def study() -> Any:
    sys.path.insert(0, str(FOLDER))
    try:
        return runpy.run_path(str(FOLDER / "run.py"))
    finally:
        sys.path.remove(str(FOLDER))


def items(folder: Path) -> Path:
    """The study's first two items, in a file of our own: the first is hard and the second easy."""
    file = folder / "HumanEval.jsonl.gz"
    rows = [
        {
            "task_id": f"HumanEval/{number}",
            "prompt": f'def {name}(a: int) -> int:\n    """Return {what}."""\n',
            "entry_point": name,
            "test": f"def check(candidate):\n    assert candidate(3) == {value}\n",
            "canonical_solution": f"    return {body}\n",
        }
        for number, name, what, value, body in ((0, "more", "a + 1", 4, "a + 1"), (4, "same", "a", 3, "a"))
    ]
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    return file


class Novice(ScriptedModel):
    """Writes `more` rightly only once it is shown a reflection. `cut` is called as its fifth question comes."""

    def __init__(self, cut: Callable[[], object] = lambda: None) -> None:
        super().__init__(self._say, "scripted")
        self._cut = cut

    def _say(self, question: Question, sampling: Sampling) -> str:
        if len(self.questions) == 5:
            self._cut()
        text, last = "\n".join(m.text for m in question.messages), question.messages[-1].text
        name, right = ("more", "a + 1") if "def more" in last else ("same", "a")
        role = question.messages[0].text
        if role.startswith("You review"):
            return "BECAUSE: `a - 1` is too small."
        if role.startswith("You write unit tests"):
            return f"assert {name}(3) == {4 if name == 'more' else 3}"
        body = right if name == "same" or "BECAUSE" in text else "a - 1"
        return f"```python\ndef {name}(a: int) -> int:\n    return {body}\n```"


def test_the_items_are_those_of_the_rule(study: Any) -> None:
    assert study["CASES"] == [f"HumanEval/{4 * n}" for n in range(41)]
    assert study["STRATEGIES"][0] == "simple"


@pytest.mark.slow
async def test_it_goes_on_where_it_was_cut_off(study: Any, tmp_path: Path) -> None:
    made, data = study["Study"], str(items(tmp_path))
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    model = Novice()
    await made(whole, model, data, 2).run()
    told = json.loads((whole / "report.json").read_text())
    solved = {run["method"]: [at["solved"]["count"] for at in run["trials"]] for run in told["runs"]}
    assert solved["simple"] == [1]
    trials = study["TRIALS"]
    assert solved["resample"] == [1] * trials
    assert solved["reflexion"] == [1, *[2] * (trials - 1)]
    assert len(told["comparisons"]) == 6
    for file in ("report.md", "curve.svg", "gallery/index.md"):
        assert (whole / file).is_file()
    begun = Novice(lambda: running.cancel())
    running = asyncio.create_task(made(cut, begun, data, 2).run())
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(begun.questions) < len(model.questions)
    again = Novice()
    await made(cut, again, data, 2).run()
    resumed = json.loads((cut / "report.json").read_text())
    assert [run["trials"] for run in resumed["runs"]] == [run["trials"] for run in told["runs"]]
    assert len(begun.questions) + len(again.questions) == len(model.questions)
    state = json.loads((cut / "state.json").read_text())
    assert list(state) == list(study["STRATEGIES"])
    counted = sum(one["calls"] for one in state.values())
    assert counted in (len(model.questions), len(model.questions) - 1)  # of the call that was cut off nobody was told


@pytest.mark.slow
async def test_another_choice_of_items_needs_another_folder(study: Any, tmp_path: Path) -> None:
    data = str(items(tmp_path))
    await study["Study"](tmp_path / "s", Novice(), data, 1, ["simple"]).run()
    with pytest.raises(SystemExit, match="other items"):
        await study["Study"](tmp_path / "s", Novice(), data, 2, ["simple"]).run()
