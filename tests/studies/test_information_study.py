"""The study's runner: killed at any call it goes on and asks nothing twice; the report counts what it should."""

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mulligan.core.records import Usage

FOLDER = Path(__file__).parents[2] / "studies" / "information"
ITEMS = """
from sets import Item

ITEMS = [
    Item("toy", "a/double", "a", "Write double(x).", "assert double(2) == 4", "assert double(3) == 6", 50),
    Item("toy", "b/same", "b", "Write same(x).", "assert same(2) == 2", "assert same(3) == 3", 50),
]
"""
STUDY = (
    """
import asyncio, json, os, signal, sys
from pathlib import Path
"""
    + f"sys.path.insert(0, {str(FOLDER)!r})\n"
    + ITEMS
    + """
from run import Asked, Study
from mulligan.core.codec import to_json
from mulligan.core.codec import digest
from mulligan.models.scripted import ScriptedModel
from mulligan.store.sqlite import SqliteStore

folder, killed_at = Path(sys.argv[1]), int(sys.argv[2])
asked = 0


def answer(question, sampling):
    global asked
    asked += 1
    if asked == killed_at:
        os.kill(os.getpid(), signal.SIGKILL)
    text = "\\n".join(message.text for message in question.messages)
    last = question.messages[-1].text
    if question.messages[0].text.startswith("You review"):
        said = "It returns x itself; multiply it by two."
    elif "Write same" in last:
        said = "def same(x):\\n    return x"
    elif "Your previous attempt" in last:
        said = "def double(x):\\n    return {2: 4}.get(x)"  # writes the value down
    elif "failed these checks" in last:
        said = "def double(x):\\n    return 2 * x"
    else:
        said = f"def double(x):\\n    return x  # {sampling.seed}"
    with (folder / "asked").open("a") as out:
        out.write(json.dumps([digest([to_json(question), to_json(sampling)]), sampling.max_tokens]) + "\\n")
    return said


async def main():
    store = SqliteStore(folder / "study.db")
    model = Asked(ScriptedModel(answer, "toy"), store)
    study = Study(store, folder / "study.db", model, ITEMS)
    await study.run()
    (folder / "report.md").write_text(await study.report())
    await store.close()


asyncio.run(main())
"""
)


STREAM = (
    f"import sys\nsys.path.insert(0, {str(FOLDER)!r})\n"
    + """
import asyncio, json, os, signal
from pathlib import Path

import stream
from sets import Item
from mulligan.models.scripted import ScriptedModel
from mulligan.store.sqlite import SqliteStore

stream.FIRSTS = 1
ITEMS = [
    Item("toy", f"a/{name}", "a", f"Write {name}(word), the {name} text of a word, as this project writes words.",
         f"assert {name}('a') == 'a!'", f"assert {name}('b') == 'b!'", 50)
    for name in ("plain", "loud", "long")
]
folder, memory, killed_at = Path(sys.argv[1]), sys.argv[2] == "with", int(sys.argv[3])
os.environ["MULLIGAN_HOME"] = str(folder)
asked = 0


def answer(question, sampling):
    global asked
    asked += 1
    if asked == killed_at:
        os.kill(os.getpid(), signal.SIGKILL)
    with (folder / "asked").open("a") as out:
        out.write("x")
    name = question.messages[-1].text.rpartition("(word)")[0].rpartition(" ")[2]
    mark = " + '!'" if "'a!'" in question.messages[-1].text else ""  # a fact by rules
    return f"def {name}(word):\\n    return word{mark}"


async def main():
    store = SqliteStore(folder / "mulligan.db")
    made = stream.Stream(folder, store, stream.Asked(ScriptedModel(answer, "toy"), store), ITEMS)
    await made.run(1, memory)
    (folder / "report.md").write_text(await made.report())
    await store.close()


asyncio.run(main())
"""
)


def module(name: str) -> Any:
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


def run(folder: Path, killed_at: int, script: str = STUDY, *given: str) -> int:
    """The exit status of the study, which is killed as it asks for the answer number `killed_at`; 0: never."""
    (folder / "study.py").write_text(script)
    (folder / "mulligan.toml").write_text('[memory]\nembedder = "none"\nthreshold = 0.0\n')
    env = {**os.environ, "MULLIGAN_HOME": str(folder / "home")}
    command = [sys.executable, "study.py", str(folder), *given, str(killed_at)]
    return subprocess.run(command, cwd=folder, env=env, timeout=120).returncode


def asked(folder: Path) -> list[tuple[str, int]]:
    rows: list[list[Any]] = [json.loads(line) for line in (folder / "asked").read_text().splitlines()]
    return [(key, limit) for key, limit in rows]


def rows(report: str, of: str) -> dict[str, list[str]]:
    """The cells of the first table whose head begins so, by their first."""
    lines = report.split(f"| {of} |", 1)[1].splitlines()[2:]
    table = [line.strip("| ").split(" | ") for line in lines[: lines.index("")]]
    return {cells[0].strip("`*"): [cell.strip("*` ") for cell in cells[1:]] for cells in table}


@pytest.mark.slow
@pytest.mark.parametrize("killed_at", [1, 2, 4, 6, 8])
def test_it_goes_on_where_it_was_killed_and_asks_nothing_twice(tmp_path: Path, killed_at: int) -> None:
    assert run(tmp_path, killed_at) == -signal.SIGKILL
    assert len(asked(tmp_path) if killed_at > 1 else []) == killed_at - 1
    assert run(tmp_path, 0) == 0
    questions = asked(tmp_path)
    assert len(set(questions)) == len(questions)
    report = (tmp_path / "report.md").read_text()
    arms = rows(report, "arm")
    # tasks, solved, visible only, by trial 1 to 3
    assert {arm: cells[:6] for arm, cells in arms.items()} == {
        "none": ["2", "1", "0", "1", "1", "1"],
        "last_attempt": ["2", "1", "1", "1", "1", "1"],
        "reflexion": ["2", "1", "0", "1", "1", "1"],
        "evidence": ["2", "2", "0", "1", "2", "2"],
        "evidence_and_reflexion": ["2", "2", "0", "1", "2", "2"],
    }
    by_task = rows(report, "task")
    assert by_task["a/double"] == ["–", "v", "–", "2", "2"]
    assert by_task["b/same"] == ["1"] * 5
    limits = [limit for _, limit in questions]
    assert set(limits) == {50, 200}, "an attempt has the task's limit, a reflection its own"
    firsts = [limit for limit in limits if limit == 50]
    assert len(firsts) == 2 + 2 + 1 + 2 + 1 + 1, "one first trial of each task, then each arm's own later trials"
    before = len(questions)
    assert run(tmp_path, 0) == 0
    assert len(asked(tmp_path)) == before, "what is over is not run again"


@pytest.mark.slow
def test_the_stream_learns_and_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    assert run(tmp_path, 0, STREAM, "without") == 0
    assert len((tmp_path / "asked").read_text()) == 3
    for killed_at in (1, 2):  # at the second task and at the third; the first attempt is that of the run before
        assert run(tmp_path, killed_at, STREAM, "with") == -signal.SIGKILL
    assert run(tmp_path, 0, STREAM, "with") == 0
    report = (tmp_path / "report.md").read_text()
    table = [line.strip("| ").split(" | ") for line in report.splitlines() if line.startswith("| 1 |")]
    # trials, memory, tasks, first of a family, second and third, in the end, visible only, with lessons
    assert [cells[:8] for cells in table] == [
        ["1", "without", "3", "0 of 1", "**0** of 2", "0", "0", "0"],
        ["1", "with", "3", "0 of 1", "**2** of 2", "2", "0", "2"],
    ]
    assert "| `with` | `without` | 2 | 0 | 2 | 0 | +100.0 |" in report
    assert "plain gives the form a!" in report
    before = (tmp_path / "asked").read_text()
    assert run(tmp_path, 0, STREAM, "with") == 0
    assert (tmp_path / "asked").read_text() == before


def test_differences_are_paired_and_draw_whole_groups() -> None:
    figures, item = module("figures"), module("sets").Item

    def made(solved: str) -> dict[str, Any]:
        """Six tasks in two groups: `1` where it is solved."""
        return {
            f"t{n}": figures.Outcome(
                item("s", f"t{n}", f"g{n // 3}", "", "", ""), [won == "1"], [True], Usage(), 1, 0, (), 0.0, False
            )
            for n, won in enumerate(solved)
        }

    told = figures.differences({"none": made("000000"), "new": made("111000")}, ["none"])
    n, both, mine, other, points, interval, p = told.splitlines()[-1].strip("| ").split(" | ")[2:]
    assert (n, both, mine, other, points, p) == ("6", "0", "3", "0", "+50.0", "0.2500")
    assert interval == "+0.0 … +100.0", "both groups, or one of them twice"


def test_lines_outlive_a_kill_in_the_middle_of_one(tmp_path: Path) -> None:
    figures = module("figures")
    file = tmp_path / "x.jsonl"
    figures.add_line(file, {"a": 1})
    with file.open("a") as out:
        out.write('{"a": ')
    assert figures.lines(file) == [{"a": 1}]
    figures.add_line(file, {"a": 2})
    assert figures.lines(file) == [{"a": 1}, {"a": 2}]


def test_halves_of_humaneval() -> None:
    sets = module("sets")
    test = (
        "METADATA = {}\n\ndef check(candidate):\n    import math\n    assert True, 'warm up'\n"
        + "".join(f"    assert candidate({n}) == {n}, 'wrong'\n" for n in range(1, 4))
        + "    for n in range(9):\n        assert candidate(n) == math.floor(n)\n"
    )
    visible, hidden = sets.split(test, "same")
    loop = "for n in range(9):\n    assert same(n) == math.floor(n)\n"
    assert visible == f"import math\nassert same(2) == 2\n{loop}"
    assert hidden == "import math\nassert same(1) == 1\nassert same(3) == 3\n"
