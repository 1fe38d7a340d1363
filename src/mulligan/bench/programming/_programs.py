"""The base of the programming benchmarks: reads HumanEval's JSONL format, has the methods, runs the hidden tests."""

from __future__ import annotations

import ast
import keyword
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from mulligan.plugins import (
    Attempt,
    Case,
    Episode,
    Evaluator,
    InvalidInput,
    Json,
    Judges,
    Language,
    Method,
    Score,
    Source,
    Spec,
    Task,
    Trial,
    objects,
    parsed,
    program,
    runs_by_itself,
    text_in,
    typed,
)
from mulligan.running import attribute_of


@dataclass(frozen=True)
class Cut:
    """One file of a programming benchmark.

    Attributes:
        source: the download. None: it is the user's file.
        typed: whether solutions can use names of `typing` without an import, as in the reference.
    """

    title: str
    source: Source | None
    language: Language = "py"
    typed: bool = True


def cuts(benchmark: str) -> Mapping[str, Cut]:
    """The files of this benchmark, by the name of the cut ("openai", "hardest50", …)."""
    rows = tomllib.loads(Path(__file__).with_name("files.toml").read_text(encoding="utf-8"))[benchmark]
    return {name: _cut(**row) for name, row in rows.items()}


def _cut(title: str, url: str, sha256: str, size: int, licence: str, **more: Any) -> Cut:
    return Cut(title, Source(url.rpartition("/")[2], url, sha256, size, licence), **more)


def cases(files: Sequence[Path], language: Language) -> list[Case]:
    """The cases of these files.

    A row has `prompt`, `entry_point`, `test`, `task_id` or `name`, and optionally `canonical_solution`. The target of a
    case has "tests" (a program that runs the hidden tests) and "solution" (the canonical program, or None).
    """
    found = list[Case]()
    for file, line, row in read_rows(files):
        prompt, entry, id = head_of(file, line, row, language)
        test = text_in(str(file), line, row, "test")
        tests = _python_tests(file, line, test, entry) if language == "py" else _rust_tests(file, line, test)
        has_solution = row.get("canonical_solution") is not None
        body = text_in(str(file), line, row, "canonical_solution") if has_solution else ""
        solution = program(body, prompt, language) if has_solution else None
        found.append(Case(id, Task(prompt), {"tests": tests, "solution": solution}))
    check_unique(files, [case.id for case in found])
    return found


def read_rows(files: Sequence[Path]) -> Iterator[tuple[Path, int, Mapping[str, Any]]]:
    """The rows of all files, each with its file and line. Raises `InvalidInput`, also if there are no rows."""
    empty = True
    for file in files:
        try:
            raw = file.read_bytes()
        except OSError as error:
            raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from error
        for line, row in objects(raw, str(file)):
            empty = False
            yield file, line, row
    if empty:
        raise InvalidInput(f"{' and '.join(map(str, files))} has no rows, so there is nothing to run.")


def head_of(file: Path, line: int, row: Mapping[str, Any], language: Language) -> tuple[str, str, str]:
    """The prompt, the function's name and the id of a row. Raises `InvalidInput`."""
    prompt, entry = text_in(str(file), line, row, "prompt"), text_in(str(file), line, row, "entry_point")
    if not prompt.strip():
        raise InvalidInput(f"{file}, line {line}: 'prompt' is empty.")
    if not entry.isidentifier() or (keyword.iskeyword(entry) and language == "py"):
        raise InvalidInput(f"{file}, line {line}: 'entry_point' should be the name of a function, not {entry!r}.")
    names = (language, {"py": "python", "rs": "rust"}[language])
    if isinstance(named := row.get("language"), str) and named not in names:
        raise InvalidInput(f"{file}, line {line}: the language is {named!r}, but this benchmark is for {language!r}.")
    return prompt, entry, text_in(str(file), line, row, "task_id", "name")


def check_unique(files: Sequence[Path], ids: Sequence[str]) -> None:
    """Raises `InvalidInput` if two cases have the same id."""
    seen = set[str]()
    for id in ids:
        if id in seen:
            raise InvalidInput(f"{' and '.join(map(str, files))}: the id {id!r} appears twice; ids must be unique.")
        seen.add(id)


class ProgramBenchmark:
    """The base class of the programming benchmarks.

    Args:
        cut: the file to read.
        judges: builds evaluators.
        seconds: time limit for the hidden tests of an attempt.
    """

    data = ""
    where = ""

    def __init__(self, cut: Cut, judges: Judges, seconds: float) -> None:
        self.title, self._typed = cut.title, cut.typed
        self._language: Language = cut.language
        self.sources: Sequence[Source] = () if cut.source is None else (cut.source,)
        self.data = self.data if cut.source is None else cut.source.file
        self._judges, self._seconds = judges, seconds

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        return cases(files, self._language)

    def methods(self) -> Mapping[str, Method]:
        return methods(self._language)

    def play(self, case: Case, method: Method) -> Method:
        """The method itself. Raises `SandboxError`, before a model is called, if this machine cannot judge Rust."""
        if self._language == "rs":
            self._judge(cast(Mapping[str, Any], case.target)["tests"], case.id)
        return method

    async def score(self, case: Case, episode: Episode) -> Score:
        """Run the hidden tests on the newest attempt. If the attempt is tests, run them on the canonical solution."""
        target = cast(Mapping[str, Any], case.target)
        output = episode.trials[-1].attempt.output
        if writes_tests(episode):
            return await self._score_tests(case.id, target["solution"], output)
        is_own = "actor" in episode.head.settings  # then the loop has judged exactly this code
        code = program(output, case.task.prompt, self._language, is_code=is_own)
        code = typed(code) if self._typed and self._language == "py" else code
        return Score.of(await self._judge(target["tests"], case.id).evaluate(with_code(episode, code)))

    async def _score_tests(self, id: str, solution: str | None, tests: str) -> Score:
        """1 if the canonical solution passes all tests that the model wrote.

        If it wrote none, the score is 0; the reference counts that as right.
        """
        if solution is None:
            return Score(None, "This data has no canonical solution, so the tests cannot be checked.")
        if not tests.strip():
            return Score(0.0, "No valid test was written.")
        canonical = Episode("canonical", Task(""), trials=(Trial(1, Attempt(typed(solution))),))
        return Score.of(await self._judge(tests, id).evaluate(canonical))

    def _judge(self, tests: str, id: str) -> Evaluator:
        """The evaluator with these tests. id: the id of the case, for errors."""
        if self._language == "rs":
            return self._judges(Spec("rust_tests", {"tests": tests, "seconds": self._seconds}))
        settings = {"tests": tests, "seconds": self._seconds, "name": f"the test file of {id}"}
        return self._judges(Spec("unit_tests", settings))


def writes_tests(episode: Episode) -> bool:
    """Whether the attempts of this episode are tests, as in the method `test-acc`."""
    actor: Any = episode.head.settings.get("actor") or {}
    return attribute_of("actors", str(actor.get("name", "")), "makes", "") == "tests"


def with_code(episode: Episode, code: str) -> Episode:
    """The episode with this code as the attempt of its newest trial."""
    newest = episode.trials[-1]
    return replace(episode, trials=(*episode.trials[:-1], replace(newest, attempt=Attempt(code))))


def _python_tests(file: Path, line: int, test: str, entry: str) -> str:
    """The program that runs these tests. Raises `InvalidInput` for tests that do not parse or have no assert."""
    tree = parsed(test)
    if tree is None:
        raise InvalidInput(f"{file}, line {line}: 'test' is not valid Python.")
    if not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        raise InvalidInput(f"{file}, line {line}: 'test' asserts nothing.")
    return runs_by_itself(test, entry)


def _rust_tests(file: Path, line: int, test: str) -> str:
    """The program of the tests, without the leading brace with which some close the function of the prompt."""
    if "assert" not in test:
        raise InvalidInput(f"{file}, line {line}: 'test' asserts nothing.")
    return test.lstrip().removeprefix("}").lstrip("\n")


TRIALS = 5
"""The maximum number of attempts, as in the reference's published runs."""
SEARCH_TEMPERATURE = 0.75


def methods(language: Language, tests: Spec | None = None) -> Mapping[str, Method]:
    """The methods of the programming benchmarks, by name.

    tests: the evaluator in the loop. None: tests that the model writes.
    """
    settings: dict[str, Json] = {} if language == "py" else {"language": language}
    writes = Spec("complete", {"output": "code", **settings})
    judge, whose = tests or Spec("internal_tests", settings), "visible" if tests else "own"
    reflector = Spec("verbal", {"output": "code"})
    window = Spec("last_attempt_and_reflexion", {"window": 1})

    def method(strategy: Spec, summary: str) -> Method:
        return Method(writes, judge, reflector, strategy, summary, TRIALS)

    untested = "no tests: a reflection after each attempt; all tries are made"
    search = method(window, "a search over attempts, which continues from the one that fails the fewest tests")
    by_name = {
        "simple": Method(writes, Spec("unjudged"), summary="one attempt; nothing from the past is shown", trials=1),
        "reflexion": method(window, f"{whose} tests judge; the attempt, their results and a reflection are shown"),
        "immediate-reflexion": replace(method(window, untested), evaluator=Spec("untested")),
        "immediate-refinement": method(
            Spec("last_attempt"), f"{whose} tests judge; the attempt and their results are shown, without a reflection"
        ),
        "resample": method(Spec("none"), f"{whose} tests judge; nothing from the past is shown: the control"),
        "reflexion-ucs": replace(
            search,
            actor=writes.with_settings(temperatures=[0.0, SEARCH_TEMPERATURE]),
            hand_in="best",
            expansion=3,
        ),
    }
    if language == "py" and tests is None:
        by_name["test-acc"] = Method(
            Spec("write_tests"), Spec("unjudged"), summary="are the tests that the model writes right?", trials=1
        )
    return by_name
