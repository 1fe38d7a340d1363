"""Programming benchmarks from end to end, scripted, fail, reflect, solve: every strategy but the search."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rust_compiler import rustc_runs

from mulligan import ScriptedModel
from mulligan.bench.harness.running import Finished, run_benchmark
from mulligan.bench.programming.leetcode import Leetcode
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Episode
from mulligan.store.sqlite import SqliteStore

PROMPT = 'def twice(n: int) -> int:\n    """\n\tWrite a function that doubles a number.\n\t"""\n'
HIDDEN = "def check(candidate):\n    assert candidate(21) == 42\n    assert candidate(-3) == -6\n"
MULTIPLE = f"{HIDDEN}\ndef test_check():\n    check(twice)\n\ntest_check()\n"
TESTS = "assert twice(2) == 4\nassert twice(5) == 10"
WRONG, RIGHT = "    return n ** 2", "```python\ndef twice(n: int) -> int:\n    return 2 * n\n```"


class Coder(ScriptedModel):
    """Says these solutions in turn; tests and lessons when it is asked for them. `asked`: how often for what."""

    def __init__(self, *solutions: str, tests: Sequence[str] = (TESTS,)) -> None:
        super().__init__(self._answer, "coder")
        self._solutions, self._tests = list(solutions), list(tests)
        self.asked: Counter[str] = Counter()
        self.acts = list[str]()

    def _answer(self, question: Question, sampling: Sampling) -> str:
        assert "21" not in str(question), "the hidden tests are never shown"
        system = question.messages[0].text
        if "unit tests" in system:
            self.asked["tests"] += 1
            return self._tests.pop(0)
        if "review" in system:
            self.asked["reflect"] += 1
            return f"Lesson {self.asked['reflect']}: squaring is not doubling."
        self.asked["act"] += 1
        self.acts.append(question.messages[-1].text)
        return self._solutions.pop(0)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    made = SqliteStore(tmp_path / "m.db")
    yield made
    await made.close()


def mbpp(folder: Path, **others: Any) -> str:
    return _written(folder / "mbpp-py.jsonl", {"name": "mbpp_1_twice", "language": "py", "test": MULTIPLE, **others})


def _written(file: Path, row: dict[str, Any]) -> str:
    file.write_text(json.dumps({"prompt": PROMPT, "entry_point": "twice", **row}) + "\n")
    return str(file)


async def ran(store: SqliteStore, model: ScriptedModel, data: str, name: str = "mbpp", **options: Any) -> Finished:
    return await run_benchmark(name, model=model, store=store, data=data, **options)


async def episode(store: SqliteStore, finished: Finished, number: int = -1) -> Episode:
    return await store.load(finished.results[0].episodes[number].episode)


@pytest.mark.slow
async def test_mbpp_reflexion_fails_reflects_and_solves(store: SqliteStore, tmp_path: Path) -> None:
    model = Coder(WRONG, RIGHT)
    finished = await ran(store, model, mbpp(tmp_path), method="reflexion")
    (result,) = finished.results
    assert (result.status, result.episodes[0].scores) == ("solved", (0.0, 1.0))
    assert model.asked == {"tests": 1, "act": 2, "reflect": 1}
    first, second = (await episode(store, finished)).trials
    assert first.attempt.output == f"{PROMPT.rstrip()}\n{WRONG}", "a body is made whole"
    assert first.feedback is not None
    assert "assert twice(5) == 10" in first.feedback.text
    assert second.attempt.output == "def twice(n: int) -> int:\n    return 2 * n"
    assert "return n ** 2" in model.acts[1]
    assert "returned 25" in model.acts[1]
    assert "Lesson 1: squaring" in model.acts[1]


@pytest.mark.slow
async def test_the_window_is_one_lesson_unless_more_are_asked_for(store: SqliteStore, tmp_path: Path) -> None:
    for window, shown in ((1, [2]), (3, [1, 2])):
        model, settings = Coder(WRONG, "    return n * n", RIGHT), {"strategy": {"window": window}}
        finished = await ran(store, model, mbpp(tmp_path), method="reflexion", settings=settings)
        assert finished.results[0].solved
        assert [n for n in (1, 2) if f"Lesson {n}:" in model.acts[2]] == shown


async def test_what_passes_its_own_tests_and_fails_the_hidden_ones_has_failed(
    store: SqliteStore, tmp_path: Path
) -> None:
    model = Coder(WRONG, tests=["assert twice(2) == 4"])
    finished = await ran(store, model, mbpp(tmp_path), method="reflexion")
    assert (finished.results[0].status, finished.results[0].episodes[0].scores) == ("failed", (0.0,))
    assert (await episode(store, finished)).solved, "by its own tests"


@pytest.mark.slow
async def test_immediate_reflexion_reflects_without_running_anything(store: SqliteStore, tmp_path: Path) -> None:
    model = Coder(WRONG, *[f"    return n + n + {n} - {n}" for n in range(4)])
    finished = await ran(store, model, mbpp(tmp_path), method="immediate-reflexion")
    assert model.asked == {"act": 5, "reflect": 4}
    assert finished.results[0].episodes[0].scores == (0.0, 1.0, 1.0, 1.0, 1.0)
    assert finished.results[0].solved
    assert {trial.feedback.source for trial in (await episode(store, finished)).trials if trial.feedback} == {
        "untested"
    }
    assert all("No tests were run" in shown and "Lesson" in shown for shown in model.acts[1:])


@pytest.mark.slow
async def test_immediate_refinement_shows_the_attempt_and_reflects_on_nothing(
    store: SqliteStore, tmp_path: Path
) -> None:
    model = Coder(WRONG, RIGHT)
    finished = await ran(store, model, mbpp(tmp_path), method="immediate-refinement")
    assert finished.results[0].solved
    assert model.asked == {"tests": 1, "act": 2}
    assert "return n ** 2" in model.acts[1]
    assert "returned 25" in model.acts[1]


@pytest.mark.slow
async def test_resampling_is_shown_nothing_and_has_as_many_tries(store: SqliteStore, tmp_path: Path) -> None:
    model = Coder(*[f"    return n ** 2 + {n} - {n}" for n in range(4)], RIGHT)
    finished = await ran(store, model, mbpp(tmp_path), method="resample")
    assert finished.results[0].episodes[0].scores == (0.0, 0.0, 0.0, 0.0, 1.0)
    assert model.asked == {"tests": 1, "act": 5}
    assert set(model.acts) == {PROMPT.strip()}


@pytest.mark.slow
async def test_simple_restarts_until_the_target_says_solved(store: SqliteStore, tmp_path: Path) -> None:
    model = Coder(WRONG, WRONG, RIGHT)
    finished = await ran(store, model, mbpp(tmp_path), method="simple", restarts=5)
    assert [one.scores for one in finished.results[0].episodes] == [(0.0,), (0.0,), (1.0,)]
    assert model.asked == {"act": 3}
    drawn = await ran(store, Coder(RIGHT, WRONG, WRONG, WRONG), mbpp(tmp_path), method="simple", samples=4)
    assert [one.score for one in drawn.results[0].episodes] == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("written", "status"),
    [
        (["assert twice(2) == 4\nassert twice(0) == 0"], "solved"),
        (["assert twice(2) == 4\nassert twice(3) == 9"], "failed"),
        (["# assert twice(2) == 4", 'x = "assert"'], "failed"),
    ],
)
async def test_test_acc_runs_the_canonical_solution_against_the_tests_that_were_written(
    store: SqliteStore, tmp_path: Path, written: list[str], status: str
) -> None:
    row = {"task_id": "t/1", "test": HIDDEN, "canonical_solution": "    return n + n\n"}
    data = _written(tmp_path / "HumanEval.jsonl", row)
    model = Coder(tests=written)
    finished = await ran(store, model, data, "humaneval", method="test-acc")
    assert finished.results[0].status == status
    assert model.asked == {"tests": len(written)}


async def test_test_acc_without_a_canonical_solution_is_unjudged(store: SqliteStore, tmp_path: Path) -> None:
    finished = await ran(store, Coder(), mbpp(tmp_path), method="test-acc")
    assert finished.results[0].status == "unjudged"
    assert "no canonical solution" in finished.results[0].text


@pytest.mark.slow
async def test_a_file_of_the_users_own_is_a_benchmark(store: SqliteStore, tmp_path: Path) -> None:
    mine = _written(tmp_path / "mine.jsonl", {"task_id": "a", "test": "assert twice(21) == 42"})
    finished = await run_benchmark(mine, model=Coder(WRONG, RIGHT), store=store, method="reflexion")
    assert (finished.results[0].case, finished.results[0].status) == ("a", "solved")


async def test_visible_tests_drive_leetcode_and_nobody_judges_it(store: SqliteStore, tmp_path: Path) -> None:
    tests = ["    assert twice(2) == 4", "    assert twice(3) == 6"]
    row = {"task_id": "two-sum", "entry_point": "two-sum", "visible_tests": tests, "test": ""}
    data = _written(tmp_path / "leetcode-hard-py-40.jsonl", row)
    model = Coder(WRONG, RIGHT)
    finished = await ran(store, model, data, "leetcode", method="reflexion")
    assert model.asked == {"act": 2, "reflect": 1}
    assert (await episode(store, finished)).solved
    assert (finished.results[0].status, finished.results[0].episodes[0].scores) == ("unjudged", (None, None))
    assert "leetcode.com" in finished.results[0].text


LEETCODE = """# Given `nums`, return their sum, doubled `times` times.
#
#
# Example 1:
# Input: nums = [1,3], times = 1
# Output: 8
# Explanation: (1 + 3) doubled is 8.
#
#
# Example 2:
# Input:
# nums = [],
# times = 3
# Output: 0
#
# Constraints:
# `0 <= nums.length <= 100`
def doubledSum(self, nums: List[int], times: int) -> int:
"""


async def test_examples_of_a_leetcode_prompt_drive_the_loop(store: SqliteStore, tmp_path: Path) -> None:
    """The reference's own file: the question's name is the entry point, and no column holds tests."""
    row = {"task_id": "doubledSum", "entry_point": "doubled-sum", "cannonical_solution": "", "test": ""}
    data = tmp_path / "leetcode-hard-py.jsonl"
    data.write_text(
        json.dumps({**row, "prompt": LEETCODE}) + "\n" + json.dumps({**row, "entry_point": "b", "prompt": LEETCODE})
    )
    right = "def doubledSum(self, nums: List[int], times: int) -> int:\n    return sum(nums) * 2 ** times"
    model = Coder(right.replace("2 **", "3 **"), right)
    finished = await ran(store, model, str(data), "leetcode", method="reflexion", limit=1)
    assert (finished.run.cases, model.asked) == (("doubled-sum",), {"act": 2, "reflect": 1})
    first, second = (await episode(store, finished)).trials
    assert first.feedback is not None
    assert second.feedback is not None
    assert "assert doubledSum(None, [1, 3], 1) == 8" in first.feedback.text
    assert (first.feedback.passed, first.feedback.score, second.feedback.passed) == (False, 0.5, True)


@pytest.mark.parametrize(
    ("prompt", "tests"),
    [
        ("# A.\n# Input: x = true, s = \"a = 1, b\"\n# Output: null\ndef f(self, x: bool, s: str) -> Optional[int]:\n",
         ["assert f(None, True, 'a = 1, b') == None"]),
        ("# A.\n# Input: \"{a,b}\"\n# Output:\n# [\n#    \"a    b\",\n#    \"c\"\n# ]\ndef f(self, s: str) -> List[str]:\n",
         ["assert f(None, '{a,b}') == ['a    b', 'c']"]),
        ("# A.\n# Input: nums = [-1]\n# Output: 2.00000\ndef f(nums: List[int]) -> float:\n",
         ["assert abs(f([-1]) - 2.0) <= 1e-05"]),
        ("# In any order.\n# Input: n = 1\n# Output: 2\ndef f(self, n: int) -> int:\n", []),
        ("# A.\n# Input: root = [1,null]\n# Output: 2\ndef f(self, root: Optional[TreeNode]) -> int:\n", []),
        ("# A.\n# Input: root = [1,null]\n# Output: 2\ndef f(self, root: 'Node') -> int:\n", []),
        ("# A.\n# Input: b = [1]\n# Output: [2]\ndef f(self, b: List[int]) -> None:\n", []),
        ("# A.\n# Input: m = 1\n# Output: 2\ndef f(self, n: int) -> int:\n", []),
        ("# A.\n# Input: n = __import__('os')\n# Output: 2\ndef f(self, n: int) -> int:\n", []),
        ("class Stack:\n\n    def __init__(self):\n        \n\n    def pop(self) -> int:\n        \n\n\n# param_1 = obj.pop()\n", []),
    ],
)  # fmt: skip
def test_which_examples_of_a_leetcode_prompt_are_tests(tmp_path: Path, prompt: str, tests: list[str]) -> None:
    data = tmp_path / "leetcode-hard-py.jsonl"
    data.write_text(json.dumps({"task_id": "__init__", "prompt": prompt, "entry_point": "a-question", "test": ""}))
    benchmark = Leetcode()
    [case] = benchmark.load([data])
    played = benchmark.play(case, benchmark.methods()["reflexion"]).evaluator
    assert case.id == "a-question"
    assert (played.name, played.settings.get("tests", [])) == ("given_tests" if tests else "internal_tests", tests)


RUST = "/// Doubles a number.\nfn twice(n: isize) -> isize {\n"
RUST_HIDDEN = "}\n\nfn main() {\n    let candidate = twice;\n    assert_eq!(candidate(21), 42);\n}\n"


@pytest.mark.slow
@pytest.mark.skipif(not rustc_runs(), reason="needs rustc")
async def test_rust_is_refused_by_its_compiler_then_fails_a_test_and_is_solved(
    store: SqliteStore, tmp_path: Path
) -> None:
    row = {"name": "mbpp_1_twice", "language": "rs", "prompt": RUST, "test": RUST_HIDDEN}
    data = _written(tmp_path / "mbpp-rs.jsonl", row)
    model = Coder(
        "```rust\nfn twice(n: isize) -> isize {\n    n * n as i8\n}\n```",
        f"```rust\n{RUST}    n * n\n}}\n```",
        "    2 * n\n",
        tests=["```rust\nassert_eq!(twice(2), 4);\nassert_eq!(twice(5), 10);\n```"],
    )
    finished = await ran(store, model, data, "mbpp:rs", method="reflexion")
    assert finished.results[0].episodes[0].scores == (0.0, 0.0, 1.0)
    assert model.asked == {"tests": 1, "act": 3, "reflect": 2}
    assert "mismatched types" in model.acts[1]
    assert "assert_eq!(twice(5), 10)" in model.acts[2]
    assert (await episode(store, finished)).trials[2].attempt.output == f"{RUST}    2 * n\n}}"
