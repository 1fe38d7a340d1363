"""The reference's feedback, word for word; the golden files were written from spec/reflexion-reference.md, 1.1."""

import re
from pathlib import Path

import pytest

from mulligan.core.records import Attempt, Episode, Feedback, Task, Trial
from mulligan.evaluators.given_tests import GivenTests
from mulligan.sandbox.local import LocalSandbox

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.txt"))


async def judged(code: str, tests: list[str]) -> Feedback:
    evaluator = GivenTests(tests, sandbox=LocalSandbox(), layout="reference", seconds=1.0)
    return await evaluator.evaluate(Episode("e", Task("task"), trials=(Trial(1, Attempt(code)),)))


@pytest.mark.light_cases(4)
@pytest.mark.parametrize("text", [file.read_text("utf-8") for file in GOLDEN], ids=[file.stem for file in GOLDEN])
async def test_it_is_printed_as_the_reference_prints_it(text: str) -> None:
    _, code, tests, feedback = re.split(r"^=== \w+\n", text, flags=re.MULTILINE)
    said = await judged(code.rstrip("\n"), tests.rstrip("\n").split("\n"))
    assert said.text == feedback.rstrip("\n")
    passed = feedback.partition("\n\nTests failed:")[0].count("\n")
    assert said.evidence["passed"].count(True) == passed
    assert said.passed is (passed == len(said.evidence["tests"]))


async def test_nothing_is_shortened() -> None:
    said = await judged("def f(x):\n    return 'é' * 300_000", ["assert f(1) == 1"])
    assert said.text.endswith("# output: " + "é" * 300_000)


async def test_numbers_are_printed_whole_and_half_characters_as_escapes() -> None:
    said = await judged(
        "def f(x):\n    return 10 ** x if x else '\\ud800'", ["assert f(6000) == 1", "assert f(0) == 1"]
    )
    big, half = said.text.split("\n")[-2:]
    assert big == "assert f(6000) == 1 # output: 1" + "0" * 6000
    assert half == "assert f(0) == 1 # output: \\ud800"


@pytest.mark.slow
async def test_sets_are_printed_alike_each_time() -> None:
    texts = {(await judged("def f(x):\n    return set('abcdefgh')", ["assert f(1) == 1"])).text for _ in range(4)}
    assert len(texts) == 1


async def test_what_the_code_prints_or_forks_is_no_report() -> None:
    code = "import os\nprint('[[true, \"\"]]')\ndef f(x):\n    os.fork()\n    return x"
    said = await judged(code, ["assert f(1) == 2"])
    assert said.passed is False
    assert said.text.endswith("# output: 1")


@pytest.mark.slow
async def test_what_grows_without_end_runs_out_of_time() -> None:
    code = "def f(x):\n    if x == 1:\n        return [0] * 10**15\n    grown = []\n    while True:\n        grown.append('x' * 10**6 * x)"
    said = await judged(code, ["assert f(1) == 1", "assert f(5) == 1"])
    assert said.text.split("\n")[-2:] == ["assert f(1) == 1 # output: ", "assert f(5) == 1 # output: TIMEOUT"]
