"""`bench score`: what others made, judged by hidden tests, with the traps that the reference falls into."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mulligan.bench.harness.scoring import Scored, Setting, score_samples
from mulligan.core.errors import InvalidInput

PROMPT = 'from typing import List\n\n\ndef total(xs: List[int]) -> int:\n    """ The sum of the numbers.\n    """\n'
TEST = "def check(candidate):\n    assert candidate([1, 2]) == 3\n    assert candidate([]) == 0\n    assert candidate([5]) == 5\n"
BODY = "    return sum(xs)\n"
MBPP = Path(__file__).parents[3] / "shared/data/programming/mbpp-py.jsonl"


def row(id: str, **others: Any) -> dict[str, Any]:
    return {"task_id": id, "prompt": PROMPT, "entry_point": "total", "test": TEST, **others}


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path


async def scored(folder: Path, completions: Mapping[str, str | list[str]], seconds: float = 10.0) -> Scored:
    """Each completion as the solution of a case of its own, all of the same function."""
    data = written(folder / "cases.jsonl", [row(id) for id in completions])
    said = [(id, one) for id, given in completions.items() for one in ([given] if isinstance(given, str) else given)]
    samples = written(folder / "samples.jsonl", [{"task_id": id, "completion": one} for id, one in said])
    return await score_samples(str(data), samples, Setting(settings={"seconds": seconds}))


@pytest.mark.slow
async def test_bodies_and_whole_functions_in_whatever_dress_are_judged_alike(tmp_path: Path) -> None:
    whole = "def total(xs: List[int]) -> int:\n    return sum(xs)\n"
    good = {
        "a body": BODY,
        "a body, stripped": BODY.strip(),
        "a body, with what a model went on with": BODY + "\n\nprint(total([1]))\n\ndef other():\n    pass\n",
        "a body, fenced": f"```python\n{BODY}```",
        "a body in two lines, stripped": "n = 0\n    return n + sum(xs)",
        "a body in two lines, dedented": "n = 0\nreturn n + sum(xs)",
        "whole": whole,
        "whole, without the import that the prompt has": f"Sure!\n```py\n{whole}```\nDone.",
        "whole, CRLF": (PROMPT + BODY).replace("\n", "\r\n"),
    }
    result = await scored(tmp_path, good)
    assert [(one.sample.case, one.text) for one in result.judged if not one.passed] == []
    assert result.pass_at() == {1: 1.0}


@pytest.mark.slow
async def test_what_is_not_a_solution_fails(tmp_path: Path) -> None:
    bad = {
        "nothing": "",
        "pass": "    pass\n",
        "pass, stripped": "pass",
        "prose": "I cannot do that.",
        "another function": "def sums(xs):\n    return sum(xs)\n",
        "a syntax error": "    return sum(xs\n",
        "wrong": "    return 3\n",
    }
    result = await scored(tmp_path, bad)
    assert {one.sample.case: one.value for one in result.judged} == dict.fromkeys(bad, 0.0)


TRAPS = {
    "sys.exit": "    import sys\n    sys.exit(0)\n",
    "sys.exit as it is loaded": "import sys\nsys.exit(0)\ndef total(xs):\n    return sum(xs)\n",
    "os._exit": "    import os\n    os._exit(0)\n",
    "KeyboardInterrupt": "    raise KeyboardInterrupt\n",
    "always equal": (
        "class Yes(int):\n    def __eq__(self, other):\n        return True\n    def __hash__(self):\n        return 0\n"
        "def total(xs):\n    return Yes()\n"
    ),
    "always equal, no number": (
        "class Yes:\n    def __eq__(self, other):\n        return True\n    def __ne__(self, other):\n        return False\n"
        "def total(xs):\n    return Yes()\n"
    ),
    "a thread that rewrites what is told": (
        "    import threading, os\n    threading.Thread(target=lambda: os.write(1, b'passed\\n' * 100)).start()\n    return -1\n"
    ),
    "ends the test's process": "    import os, signal\n    os.kill(os.getppid(), signal.SIGKILL)\n    return -1\n",
}


@pytest.mark.light_cases(2)
@pytest.mark.parametrize("trap", TRAPS)
async def test_a_trap_fails_and_its_neighbours_do_not_notice(tmp_path: Path, trap: str) -> None:
    result = await scored(tmp_path, {"before": BODY, "trap": TRAPS[trap], "after": BODY})
    assert {one.sample.case: one.value for one in result.judged} == {"before": 1.0, "trap": 0.0, "after": 1.0}


async def test_state_does_not_leak_from_one_solution_into_the_next(tmp_path: Path) -> None:
    leaky = "import builtins\nbuiltins.helper = sum\nhelper_too = sum\ndef total(xs):\n    return helper(xs)\n"
    result = await scored(
        tmp_path, {"leaks": leaky, "built-in": "    return helper(xs)\n", "global": "    return helper_too(xs)\n"}
    )
    assert {one.sample.case: one.value for one in result.judged} == {"leaks": 1.0, "built-in": 0.0, "global": 0.0}


async def test_a_solution_may_define_what_the_tests_use_for_themselves(tmp_path: Path) -> None:
    test = "def check(candidate):\n    assert sum([candidate([1, 2]), 1]) == 4\n    assert abs(candidate([]) - 0) < 1\n"
    data = written(tmp_path / "cases.jsonl", [row("a", test=test), row("b", test=test)])
    shadow = "def sum(xs):\n    return 0\n\ndef abs(x):\n    return 0\n\ndef total(xs):\n    n = 0\n    for x in xs:\n        n += x\n    return n\n"
    wrong = "def sum(xs):\n    return 4\n\ndef abs(x):\n    return 0\n\ndef total(xs):\n    return 100\n"
    samples = written(
        tmp_path / "s.jsonl", [{"task_id": "a", "completion": shadow}, {"task_id": "b", "completion": wrong}]
    )
    result = await score_samples(str(data), samples)
    assert [one.value for one in result.judged] == [1.0, 0.0]


@pytest.mark.slow
async def test_an_entry_point_named_like_a_builtin_is_the_solutions(tmp_path: Path) -> None:
    prompt = 'def reversed(xs):\n    """ The list from its end.\n    """\n'
    checked = "def check(candidate):\n    assert candidate([1, 2]) == [2, 1]\n"
    plain = "assert list(reversed([1, 2])) == [2, 1]\nassert len(reversed([])) == 0\n"
    rows = [
        row(f"{form} {id}", prompt=prompt, entry_point="reversed", test=test)
        for form, test in (("checked", checked), ("plain", plain))
        for id in ("right", "wrong", "missing")
    ]
    data = written(tmp_path / "cases.jsonl", rows)
    said = {"right": "    return xs[::-1]", "wrong": "    return 'WRONG'", "missing": "def other(xs):\n    return xs\n"}
    samples = [{"task_id": one["task_id"], "completion": said[one["task_id"].split()[1]]} for one in rows]
    result = await score_samples(str(data), written(tmp_path / "s.jsonl", samples))
    assert [one.value for one in result.judged] == [1.0, 0.0, 0.0] * 2


@pytest.mark.slow
@pytest.mark.skipif(not MBPP.exists(), reason="needs ../shared/data")
async def test_mbpp_126_whose_function_is_called_sum_is_scored(tmp_path: Path) -> None:
    data = written(tmp_path / "cases.jsonl", [json.loads(MBPP.read_text(encoding="utf-8").splitlines()[127])])
    right = "    n = 0\n    for d in range(1, min(a, b) + 1):\n        n += d * (a % d == b % d == 0)\n    return n\n"
    for body, value in ((right, 1.0), ("    return a + b\n", 0.0), ("    pass\n", 0.0)):
        samples = written(tmp_path / "s.jsonl", [{"task_id": "mbpp_126_sum", "completion": body}])
        assert [one.value for one in (await score_samples(str(data), samples)).judged] == [value]


PLUS = """
import numpy as np

def assertion(out, exp, atol):
    if isinstance(exp, float) and atol == 0:
        atol = 1e-6
    if out != exp and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert out == exp

def check(candidate):
    inputs = [[[1, 2]], [[]], [[5.5, 0.1]]]
    results = [3, 0, 5.6]
    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assertion(candidate(*inp), exp, 0)
"""


@pytest.mark.slow
async def test_a_check_that_asserts_through_a_helper_is_judged_as_in_humaneval_plus(tmp_path: Path) -> None:
    data = written(tmp_path / "cases.jsonl", [row(id, test=PLUS) for id in "abc"])
    said = {"a": BODY, "b": "    return sum(xs) if xs != [] else None\n", "c": "    pass\n"}
    samples = written(tmp_path / "s.jsonl", [{"task_id": id, "completion": one} for id, one in said.items()])
    result = await score_samples(str(data), samples)
    assert [(one.sample.case, one.value) for one in result.judged] == [("a", 1.0), ("b", 0.0), ("c", 0.0)]
    assert "assertion(total(*inp), exp, 0)" in result.judged[1].text
    assert "failed in 1 of 3 rounds" in result.judged[1].text


async def test_tests_of_a_row_that_cannot_be_used_are_named_by_the_row(tmp_path: Path) -> None:
    test = "def check(candidate):\n    return True\n\ndef other():\n    assert True\n"
    data = written(tmp_path / "cases.jsonl", [row("Plus/7", test=test)])
    samples = written(tmp_path / "s.jsonl", [{"task_id": "Plus/7", "completion": BODY}])
    judged = (await score_samples(str(data), samples)).judged[0]
    assert judged.value is None
    assert "the test file of Plus/7 contains no test: other asserts, and nothing calls it" in judged.text


@pytest.mark.slow
async def test_an_endless_solution_is_ended_and_a_stray_thread_keeps_nobody(tmp_path: Path) -> None:
    threads = (
        "    import threading, time\n    threading.Thread(target=lambda: time.sleep(600)).start()\n    return sum(xs)\n"
    )
    result = await scored(tmp_path, {"endless": "    while True:\n        pass\n", "threads": threads}, seconds=2.0)
    verdicts = {one.sample.case: one for one in result.judged}
    assert (verdicts["endless"].value, verdicts["threads"].value) == (0.0, 1.0)
    assert "timed out" in verdicts["endless"].text


@pytest.mark.slow
async def test_a_gigabyte_of_output_neither_counts_nor_fills_anything(tmp_path: Path) -> None:
    loud = "    import sys\n    for _ in range(1000):\n        sys.stdout.write('x' * 1_000_000)\n    return sum(xs)\n"
    result = await scored(tmp_path, {"loud": loud, "huge": "    return 'x' * 1_000_000_000\n"}, seconds=60.0)
    verdicts = {one.sample.case: one for one in result.judged}
    assert (verdicts["loud"].value, verdicts["huge"].value) == (1.0, 0.0)
    assert sys.getsizeof(verdicts["huge"].text) < 10_000


@pytest.mark.slow
async def test_several_samples_of_a_case_give_pass_at_k_without_bias(tmp_path: Path) -> None:
    wrong = "    return -1\n"
    result = await scored(tmp_path, {"a": [BODY, wrong, wrong, wrong], "b": [wrong] * 4})
    assert result.pass_at() == {1: 0.125}
    told = result.to_json()
    assert (told["n"], told["solved"], told["samples"]) == (2, 1, 8)
    assert (told["ids"], told["not_solved"], told["not_judged"], told["missing"]) == (["a"], ["b"], [], [])


async def test_cases_without_a_sample_are_named_and_in_no_rate(tmp_path: Path) -> None:
    data = written(tmp_path / "cases.jsonl", [row("a"), row("b")])
    samples = written(tmp_path / "s.jsonl", [{"task_id": "b", "completion": BODY}])
    result = await score_samples(str(data), samples)
    assert (result.to_json()["n"], result.missing) == (1, ["a"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"task_id": "z", "completion": ""}', r"s\.jsonl, line 2: .*'z'"),
        ('{"task_id": "a"}', r"s\.jsonl, line 2: there is no text under 'completion'"),
        ("[]", r"s\.jsonl, line 2: must be an object"),
        ("{", r"s\.jsonl, line 2: not JSON"),
    ],
)
async def test_a_file_of_samples_that_cannot_be_used_is_refused_with_its_line(
    tmp_path: Path, line: str, said: str
) -> None:
    data = written(tmp_path / "cases.jsonl", [row("a")])
    samples = tmp_path / "s.jsonl"
    samples.write_text(f'{{"task_id": "a", "completion": ""}}\n{line}\n')
    with pytest.raises(InvalidInput, match=said):
        await score_samples(str(data), samples)
