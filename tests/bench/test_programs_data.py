"""Rows of programs: what is read, what is refused with its line, and that tests run once."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from mulligan.bench.harness.data import find_data
from mulligan.bench.harness.plan import open_benchmark
from mulligan.bench.programming.humaneval import HumanEval
from mulligan.bench.programming.programs import Programs
from mulligan.core.benchmarks import Benchmark
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Evaluator
from mulligan.core.records import Attempt, Episode, Feedback, Head, Spec, Task, Trial
from mulligan.sandbox.local import LocalSandbox

DATA = Path(__file__).parents[3] / "shared/data/programming"
CHECK = "def check(candidate):\n    assert candidate(1) == 2\n"
GOOD = {"task_id": "a", "prompt": "def f(x):\n", "entry_point": "f", "test": CHECK}


class Judge:
    """Keeps what it was made of and what it was shown."""

    expects = "code"

    def __init__(self) -> None:
        self.specs = list[Spec]()
        self.seen = list[str]()

    def __call__(self, spec: Spec) -> Evaluator:
        self.specs.append(spec)
        return self  # pyright: ignore[reportReturnType]

    async def evaluate(self, episode: Episode) -> Feedback:
        self.seen.append(episode.trials[-1].attempt.output)
        return Feedback(True, "ok")


def written(folder: Path, *rows: Mapping[str, Any] | str) -> Path:
    file = folder / "rows.jsonl"
    file.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return file


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"prompt": None}, "no text under 'prompt'"),
        ({"prompt": "  "}, "'prompt' is empty"),
        ({"entry_point": "f("}, "the name of a function"),
        ({"entry_point": "class"}, "the name of a function"),
        ({"task_id": 3}, "no text under 'task_id' or 'name'"),
        ({"test": "assert f(1 == 2"}, "'test' is not valid Python"),
        ({"test": "f(1)"}, "'test' asserts nothing"),
        ({"language": "rs"}, "the language is 'rs'"),
        ({"canonical_solution": 5}, "no text under 'canonical_solution'"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_with_file_and_line(
    tmp_path: Path, wrong: dict[str, Any], said: str
) -> None:
    file = written(tmp_path, GOOD, "", {**GOOD, "task_id": "b", **wrong})
    with pytest.raises(InvalidInput, match=r"rows\.jsonl, line 3: ") as raised:
        Programs(judges=Judge()).load([file])
    assert said in str(raised.value)


def test_a_canonical_solution_that_is_null_is_none(tmp_path: Path) -> None:
    file = written(tmp_path, {**GOOD, "canonical_solution": None})
    (case,) = Programs(judges=Judge()).load([file])
    assert cast(dict[str, Any], case.target)["solution"] is None


def test_an_id_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="'a' appears twice; ids must be unique"):
        Programs(judges=Judge()).load([written(tmp_path, GOOD, GOOD)])


@pytest.mark.parametrize(
    ("test", "runs"),
    [
        (CHECK, f"{CHECK}\n\ncheck(f)\n"),
        (f"METADATA = {{}}\n\n{CHECK}", f"METADATA = {{}}\n\n{CHECK}\n\ncheck(f)\n"),
        (f"{CHECK}\ncheck(f)\n", f"{CHECK}\ncheck(f)\n"),
        (f"{CHECK}\ndef test_check():\n    check(f)\n\ntest_check()\n",) * 2,
        (f"{CHECK}\nif True:\n    check(f)\n",) * 2,
        ("assert f(1) == 2",) * 2,
    ],
)
def test_the_tests_are_run_once_whoever_calls_them(tmp_path: Path, test: str, runs: str) -> None:
    (case,) = Programs(judges=Judge()).load([written(tmp_path, {**GOOD, "test": test})])
    assert case.target["tests"] == runs


async def test_rust_goes_to_its_own_judge_without_the_brace_that_closes_the_prompt(tmp_path: Path) -> None:
    main = "fn main() {\n    let candidate = f;\n    assert_eq!(candidate(1), 2);\n}\n"
    prompt = "/// Adds one.\nfn f(x: isize) -> isize {\n"
    rows = [
        {**GOOD, "task_id": id, "prompt": prompt, "test": test} for id, test in (("a", main), ("b", "}\n\n" + main))
    ]
    judge = Judge()
    benchmark = Programs("rs", judges=judge)
    for case in benchmark.load([written(tmp_path, *rows)]):
        for said in ("    x + 1\n}", "    x + 1\n", f"```rust\n{prompt}    x + 1\n}}\n```"):
            episode = Episode("e", case.task, trials=(Trial(1, Attempt(said)),))
            assert (await benchmark.score(case, episode)).value == 1
    assert {(spec.name, spec.settings["tests"]) for spec in judge.specs} == {("rust_tests", main)}
    assert set(judge.seen) == {f"{prompt}    x + 1\n}}"}


@pytest.mark.parametrize(("cut", "lenient"), [("openai", False), ("reflexion", True)])
async def test_names_of_typing_are_given_only_where_the_reference_gives_them(
    tmp_path: Path, cut: Any, lenient: bool
) -> None:
    judge = Judge()
    benchmark = HumanEval(cut, judges=judge)
    (case,) = benchmark.load([written(tmp_path, GOOD)])
    code = "def f(x: Optional[int]) -> int:\n    return 2"
    await benchmark.score(case, Episode("e", case.task, trials=(Trial(1, Attempt(code)),)))
    assert judge.seen == [f"from typing import Optional\n\n\n{code}" if lenient else code]


async def test_what_the_loop_has_judged_is_judged_and_not_what_could_be_made_of_it(tmp_path: Path) -> None:
    judge = Judge()
    benchmark = Programs(judges=judge)
    (case,) = benchmark.load([written(tmp_path, GOOD)])
    said = "def f(x):\n    return 2\n\nprint(f(1)"
    played = Head(settings={"actor": {"name": "complete", "settings": {}}})
    for head in (played, Head()):
        await benchmark.score(case, Episode("e", Task(""), head=head, trials=(Trial(1, Attempt(said)),)))
    assert judge.seen == [said, "def f(x):\n    return 2"]


@pytest.mark.light_cases(3)
@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize(
    ("text", "cases", "solutions"),
    [
        ("humaneval", 164, 164),
        ("humaneval:reflexion", 161, 0),
        ("humaneval:hardest50", 50, 50),
        ("humaneval:rs", 156, 0),
        ("humaneval:rs-hardest50", 50, 0),
        ("mbpp", 397, 0),
        ("mbpp:rs", 354, 0),
    ],
)
def test_each_cut_is_read_whole(text: str, cases: int, solutions: int) -> None:
    benchmark: Benchmark = open_benchmark(text, {}, LocalSandbox())[1]
    found = benchmark.load(find_data(benchmark, DATA))
    assert len(found) == cases
    assert sum(case.target["solution"] is not None for case in found) == solutions
    for case in found:
        tests = case.target["tests"]
        assert tests.count("\ncheck(") <= 1
        assert not tests.startswith("}")
