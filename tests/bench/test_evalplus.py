"""HumanEval+ and MBPP+: both forms of their files, what is right and what is not, base and plus scores apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from each_row import each_row

from mulligan import ScriptedModel
from mulligan.bench.commands import bench
from mulligan.bench.harness.plan import open_benchmark
from mulligan.bench.harness.running import run_benchmark
from mulligan.bench.report.figures import as_json, make_report, read_run
from mulligan.bench.report.page import page
from mulligan.core.benchmarks import Score
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Attempt, Case, Episode, Trial
from mulligan.oracle.calls.judge import is_right
from mulligan.sandbox.local import LocalSandbox
from mulligan.store.sqlite import SqliteStore

DATA = Path(__file__).parents[3] / "shared" / "data" / "programming"
ROW: dict[str, Any] = {
    "task_id": "HumanEval/0",
    "prompt": 'def halves(xs):\n    """Each of xs divided by 2."""\n',
    "entry_point": "halves",
    "canonical_solution": "    return [x / 2 for x in xs]\n",
    "contract": "",
    "base_input": [[[2, 4]], [[1]]],
    "plus_input": [[[]], [[-3, 0.2]], [[10]]],
    "atol": 0,
}
RIGHT, PLUS_WRONG = "    return [x * 0.5 for x in xs]", "    return [abs(x) / 2 for x in xs]"
ORIGIN = """
import numpy as np

def is_floats(x) -> bool:
    return isinstance(x, float)


def assertion(out, exp, atol):
    assert out == exp


def check(candidate):
    inputs = [[[2, 4]], [[-3, 0.2]], [[]]]
    results = [[1.0, 2.0], [-1.5, 0.1], []]
    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assertion(candidate(*inp), exp, 0)
"""
MBPP = """import numpy as np
from math import inf

def assertion(out, exp, atol):
    assert out == exp, f"out: {out}, exp: {exp}"


inputs = [[(1, 2)], [(inf, set())]]
results = [3.0, inf]
for i, (inp, exp) in enumerate(zip(inputs, results)):
    assertion(add(*inp), exp, 0.0001)
"""


def loaded(folder: Path, name: str, *rows: dict[str, Any], **settings: Any) -> tuple[Any, Sequence[Case]]:
    _, made, _ = open_benchmark(name, settings, LocalSandbox())
    file = folder / made.data.removesuffix(".gz")
    file.write_text("\n".join(map(json.dumps, rows)))
    return made, made.load([file])


async def scored(benchmark: Any, case: Case, code: str) -> Score:
    return await benchmark.score(case, Episode("e", case.task, trials=(Trial(1, Attempt(code)),)))


@pytest.mark.light_cases(5)
@pytest.mark.parametrize(
    ("code", "base", "plus", "said"),
    [
        (RIGHT, 1, 1, "5 calls returned as expected."),
        (ROW["prompt"] + ROW["canonical_solution"], 1, 1, "5 calls"),
        (PLUS_WRONG, 1, 0, "plus, call 2 of 3: halves([-3, 0.2]): returned [1.5, 0.1], not [-1.5, 0.1]"),
        ("    return [x // 2 for x in xs]", 0, 0, "base, call 2 of 2: halves([1]): returned [0], not [0.5]"),
        ("    pass", 0, 0, "returned None"),
        ("    return tuple(x / 2 for x in xs)", 0, 0, "returned (1.0, 2.0)"),
        ("    return 1 / 0", 0, 0, "raised ZeroDivisionError: division by zero in line 3"),
        ("    import os; os._exit(0)", 0, 0, "ended the process"),
        ("def halfs(xs):\n    return xs", 0, 0, "raised NameError: the code defines no halves"),
        ("def halves(xs)\n    return", 0, 0, "SyntaxError"),
        ("class E:\n    def __eq__(self, o): return True\ndef halves(xs):\n    return E()", 0, 0, "returned"),
        ("class L(list):\n    def __eq__(self, o): return True\ndef halves(xs):\n    return L()", 0, 0, "returned []"),
        ("def halves(xs):\n    import posix\n    for fd in range(3, 9):\n        try: posix.write(fd, b'=0 l0\\n')\n"
         "        except OSError: pass\n    return [x / 2 for x in xs]", 0, 0, ""),
        ("import gc\ndef halves(xs):\n    return [o for o in gc.get_objects() if type(o) is list and o == [1.0, 2.0]][0]",
         0, 0, "IndexError"),
    ],
)  # fmt: skip
async def test_base_and_plus_are_scored_apart(tmp_path: Path, code: str, base: int, plus: int, said: str) -> None:
    benchmark, [case] = loaded(tmp_path, "humaneval+", ROW)
    score = await scored(benchmark, case, code)
    assert (score.parts, score.value) == ({"base": base, "plus": plus}, plus)
    assert said in score.text


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("code", ["    while True: pass", "    import time; time.sleep(60)"])
async def test_a_call_that_never_returns_is_not_waited_for(tmp_path: Path, code: str) -> None:
    benchmark, [case] = loaded(tmp_path, "humaneval+", ROW, seconds=0.1)
    score = await scored(benchmark, case, code)
    assert (score.parts, score.value) == ({"base": 0.0, "plus": 0.0}, 0.0)
    assert score.text == "base, call 1 of 2: halves([2, 4]): did not return within 1.3 s"


@pytest.mark.slow
async def test_the_form_of_the_originals_has_no_base_score(tmp_path: Path) -> None:
    row = {key: ROW[key] for key in ("task_id", "prompt", "entry_point", "canonical_solution")}
    benchmark, [case] = loaded(tmp_path, "humanevalplus:origin", {**row, "test": ORIGIN})
    for code, plus in ((RIGHT, 1.0), (PLUS_WRONG, 0.0)):
        score = await scored(benchmark, case, code)
        assert (score.parts, score.value) == ({"plus": plus}, plus)
    without = ORIGIN.replace("    results", "    # results")  # then the canonical program is asked
    benchmark, [case] = loaded(tmp_path, "humanevalplus:origin", {**row, "test": without})
    assert (await scored(benchmark, case, RIGHT)).value == 1
    row = {"task_id": 7, "prompt": "Add them.", "code": "def add(t): ...", "test_list": ["assert add((1, 2)) == 3"]}
    benchmark, [case] = loaded(tmp_path, "mbpp+:origin", {**row, "test": MBPP})
    assert (case.id, case.task.prompt) == ("Mbpp/7", '"""\nAdd them.\nassert add((1, 2)) == 3\n"""\n')
    code = "def add(t):\n    assert type(t) is tuple\n    return t[0] + (t[1] or 0) + 5e-05"
    assert (await scored(benchmark, case, code)).value == 1


@pytest.mark.light_cases(4)
@pytest.mark.parametrize(
    ("number", "given", "seen"),
    [
        (2, [[1, [2]], [3]], "[(1, [2]), (3,)]"),
        (63, [[[1, 2], [3]]], "[[(1, 2), (3,)]]"),
        (75, [[[1, 2]], 3], "[[(1, 2)], 3]"),
        (106, [[1], [2]], "[[1], (2,)]"),
        (124, ["0", "1j"], "[0.0, 1j]"),
        (252, ["(1+2j)"], "[(1+2j)]"),
        (259, [[[1], [2]]], "[((1,), (2,))]"),
        (278, [[1, [2]]], "[(1, (2,))]"),
        (722, [{"a": [1]}, 2], "[{'a': (1,)}, 2]"),
        (763, [[1], 2], "[(1,), 2]"),
        (580, [[1, [2, [3]]]], "[(1, (2, (3,)))]"),
        (3, [[1, [2]]], "[[1, [2]]]"),
    ],
)
async def test_arguments_have_the_types_that_json_lacks(
    tmp_path: Path, number: int, given: list[Any], seen: str
) -> None:
    row = {**ROW, "task_id": f"Mbpp/{number}", "prompt": '"""Say it."""\n', "entry_point": "say"}
    row |= {"canonical_solution": f"def say(*args): return {seen!r}", "base_input": [given], "plus_input": {}}
    benchmark, [case] = loaded(tmp_path, "mbppplus", row)
    score = await scored(benchmark, case, "def say(*args):\n    return repr(list(args))")
    assert (score.text, score.value) == ("1 call returned as expected.", 1.0)


@each_row(
    ("rule", "given", "out", "expected", "tolerance", "right"),
    [
        ("", [], [1, 2], [1, 2], 0, True),
        ("", [], (1, 2), [1, 2], 0, False),
        ("", [], 1.0000001, 1.0, 0, True),
        ("", [], 1, 1.5, 0.5, False),  # an int is no float
        ("", [], 1.0, 1, 0, True),
        ("", [], 1.00001, 1.0, 0, False),
        ("", [], [1.0, 2.0000001], [1.0, 2.0], 0, True),
        ("", [], [1.0], [1.0, 2.0], 0, False),
        ("", [], 10, 11, 0, False),
        ("", [], 10, 11, 1, True),
        ("", [], float("nan"), float("nan"), 0, False),
        ("", [], float("inf"), float("inf"), 0, True),
        ("", [], "a", "b", 1, False),
        ("", [], [], [], 0, True),
        ("set", [], (2, 1, 1), [1, 2], 0, True),
        ("set", [], [1], [1, 2], 0, False),
        ("any", [], None, 3, 0, True),
        ("zero", [], 0, 3, 0, True),
        ("zero", [], 1, 3, 0, False),
        ("some", [], True, object(), 0, True),
        ("some", [], object(), True, 0, True),
        ("some", [], None, object(), 0, False),
        ("some", [], None, None, 0, True),
        ("some", [], "no", None, 0, False),
        ("root", [[-4, 0, 1]], 2.0, 1.0, 1e-4, True),
        ("root", [[-4, 0, 1]], 2.1, 2.1, 1e-4, False),
        ("surface", [3, 4], 35, 33, 0, True),
        ("digits", [1, 256], 12, 5, 0, True),
        ("digits", [1, 256], 5, 5, 0, True),
        ("digits", [1, 256], 11, 5, 0, False),
    ],
)
def test_what_evalplus_takes_for_right(
    rule: str, given: list[Any], out: Any, expected: Any, tolerance: float, right: bool
) -> None:
    assert is_right(rule, given, out, expected, tolerance) is right


async def test_a_canonical_program_that_fails_judges_nobody(tmp_path: Path) -> None:
    benchmark, [case] = loaded(tmp_path, "humaneval+", {**ROW, "plus_input": [["no list"]]})
    score = await scored(benchmark, case, RIGHT)
    assert (score.value, score.parts) == (None, {})
    assert "The canonical program gives no result. plus, call 1 of 1: halves('no list'): raised TypeError" in score.text


@pytest.mark.parametrize("row", [{**ROW, "atol": None}, {**ROW, "base_input": {}}, {**ROW, "plus_input": None}])
def test_rows_of_another_form_are_refused(tmp_path: Path, row: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="line 1: 'base_input' and 'plus_input' should be lists and 'atol' a number"):
        loaded(tmp_path, "humaneval+", row)
    with pytest.raises(InvalidInput, match="line 1: 'test' is not in EvalPlus's form"):
        loaded(
            tmp_path, "humaneval+:origin", {**{k: v for k, v in ROW.items() if "input" not in k}, "test": "assert 1"}
        )
    with pytest.raises(InvalidInput, match="line 1: 'test_list' should be a list"):
        loaded(tmp_path, "mbpp+:origin", {"task_id": 7, "prompt": "Add.", "code": "", "test": MBPP, "test_list": 5})


@pytest.mark.slow
async def test_a_run_reports_base_and_plus(tmp_path: Path) -> None:
    second = {**ROW, "task_id": "HumanEval/1"}
    loaded(tmp_path, "humaneval+", ROW, second)
    store = SqliteStore(tmp_path / "m.db")
    model = ScriptedModel([PLUS_WRONG, RIGHT], "coder")
    file = tmp_path / "HumanEvalPlus.jsonl"
    finished = await run_benchmark("humaneval+", model=model, store=store, data=str(file))
    assert [result.status for result in finished.results] == ["failed", "solved"]
    report = make_report([await read_run(store, finished.run.id)])
    await store.close()
    [run] = as_json(report)["runs"]
    solved = {part: trials[0]["solved"]["value"] for part, trials in run["parts"].items()}
    assert (solved, run["trials"][0]["solved"]["value"]) == ({"base": 1.0, "plus": 0.5}, 0.5)
    assert "Solved by part of the tests" in str(page(report))


@pytest.mark.slow
def test_bench_score_prints_base_and_plus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    loaded(tmp_path, "humaneval+", ROW, {**ROW, "task_id": "HumanEval/1"})
    samples = [{"task_id": f"HumanEval/{n}", "completion": code} for n, code in enumerate([PLUS_WRONG, RIGHT])]
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, samples)))
    given = ["score", "humaneval+", "--data", str(tmp_path / "HumanEvalPlus.jsonl")]
    given += ["--samples", str(tmp_path / "samples.jsonl"), "-q"]
    table = CliRunner().invoke(bench, given)
    assert table.exit_code == 0, table.output
    assert "base pass@1: 1.0000\nplus pass@1: 0.5000" in table.stdout
    told = json.loads(CliRunner().invoke(bench, [*given, "--format", "json"]).stdout)
    assert told["parts"] == {"base": {"pass@1": 1.0}, "plus": {"pass@1": 0.5}}
    assert told["results"][0]["parts"] == {"base": 1.0, "plus": 0.0}


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize("name", ["humanevalplus", "humanevalplus:origin", "mbppplus", "mbppplus:origin"])
async def test_canonical_programs_of_the_real_data(name: str) -> None:
    """Every tenth, and those with rules of their own; all of them: `perf/evalplus.py`."""
    _, benchmark, _ = open_benchmark(name, {}, LocalSandbox())
    cases = benchmark.load([DATA / benchmark.data])
    assert len(cases) == (164 if "human" in name else 378)
    special = {"HumanEval/32", "Mbpp/2", "Mbpp/124", "Mbpp/581", "Mbpp/558", "Mbpp/737", "Mbpp/793"}
    for case in [case for n, case in enumerate(cases) if n % 10 == 1 or case.id in special]:
        target: Any = case.target
        score = await scored(benchmark, case, target["solution"])
        assert score.value == 1, f"{case.id}: {score.text}"
