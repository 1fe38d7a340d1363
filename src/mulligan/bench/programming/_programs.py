"""Programming benchmarks in the shape of HumanEval's JSONL: one object a line, read, played and judged."""

from __future__ import annotations

import ast
import keyword
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from mulligan.app.plugins import attribute_of
from mulligan.core.benchmarks import Judges, Method, Score, Source
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Evaluator
from mulligan.core.records import Attempt, Case, Episode, Json, Spec, Task, Trial
from mulligan.text.json_lines import objects, text_in
from mulligan.text.programs import Language, program, runs_by_itself, typed, whole
from mulligan.text.python_code import parsed


@dataclass(frozen=True)
class Cut:
    """A file of programs. source: None for a file of the user's. typed: solutions may use names of `typing` unimported,
    as where the reference runs them."""

    title: str
    source: Source | None
    language: Language = "py"
    typed: bool = True


def cuts(benchmark: str) -> Mapping[str, Cut]:
    """The files of this benchmark, by the name of the cut."""
    rows = tomllib.loads(Path(__file__).with_name("files.toml").read_text(encoding="utf-8"))[benchmark]
    return {name: _cut(**row) for name, row in rows.items()}


def _cut(title: str, url: str, sha256: str, size: int, licence: str, **more: Any) -> Cut:
    return Cut(title, Source(url.rpartition("/")[2], url, sha256, size, licence), **more)


def cases(files: Sequence[Path], language: Language) -> list[Case]:
    """Of rows with `prompt`, `entry_point`, `test` and `task_id` or `name`, perhaps `canonical_solution`.

    A target holds `tests` (the text of the hidden tests, which run by themselves), and `solution`, the canonical
    program, or None.
    """
    found = list[Case]()
    for file, line, row in located(files):
        prompt, entry, id = shown(file, line, row, language)
        test = text_in(str(file), line, row, "test")
        tests = _python_tests(file, line, test, entry) if language == "py" else _rust_tests(file, line, test)
        body = text_in(str(file), line, row, "canonical_solution") if "canonical_solution" in row else None
        solution = None if body is None else program(body, prompt, language)
        found.append(Case(id, Task(prompt), {"tests": tests, "solution": solution}))
    unique(files, [case.id for case in found])
    return found


def located(files: Sequence[Path]) -> Iterator[tuple[Path, int, Mapping[str, Any]]]:
    """The rows of all files. Raises `InvalidInput`, also where there is none at all."""
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
        raise InvalidInput(f"{' and '.join(map(str, files))}: there is no row.")


def shown(file: Path, line: int, row: Mapping[str, Any], language: Language) -> tuple[str, str, str]:
    """Prompt, function and id of a row. Raises `InvalidInput`."""
    prompt, entry = text_in(str(file), line, row, "prompt"), text_in(str(file), line, row, "entry_point")
    if not prompt.strip():
        raise InvalidInput(f"{file}, line {line}: 'prompt' is empty.")
    if not entry.isidentifier() or (keyword.iskeyword(entry) and language == "py"):
        raise InvalidInput(f"{file}, line {line}: 'entry_point' should be the name of a function, not {entry!r}.")
    if isinstance(given := row.get("language"), str) and given not in (
        language,
        {"py": "python", "rs": "rust"}[language],
    ):
        raise InvalidInput(f"{file}, line {line}: its language is {given!r}, and {language!r} is read here.")
    return prompt, entry, text_in(str(file), line, row, "task_id", "name")


def unique(files: Sequence[Path], ids: Sequence[str]) -> None:
    seen = set[str]()
    for id in ids:
        if id in seen:
            raise InvalidInput(f"{' and '.join(map(str, files))}: the case {id!r} is there twice.")
        seen.add(id)


class Judged:
    """What all benchmarks of this shape do alike; each says where its data is.

    seconds: for the hidden tests of an attempt.
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
        """Raises `SandboxError`, before a model is asked, where this machine cannot judge Rust."""
        if self._language == "rs":
            self._judge(cast(Mapping[str, Any], case.target)["tests"], case.id)
        return method

    async def score(self, case: Case, episode: Episode) -> Score:
        """The newest attempt by the hidden tests; where the attempt is tests, these by the canonical solution."""
        target = cast(Mapping[str, Any], case.target)
        output = episode.trials[-1].attempt.output
        if writes_tests(episode):
            return await self._tests_right(case.id, target["solution"], output)
        made_here = "actor" in episode.head.settings  # then the loop has judged the very same code
        code = (whole if made_here else program)(output, case.task.prompt, self._language)
        code = typed(code) if self._typed and self._language == "py" else code
        return Score.of(await self._judge(target["tests"], case.id).evaluate(with_code(episode, code)))

    async def _tests_right(self, id: str, solution: str | None, tests: str) -> Score:
        """1 where the canonical solution passes all tests that were written. The reference counts no test as right;
        here it is a failure."""
        if solution is None:
            return Score(None, "This data has no canonical solution, so nobody can say whether the tests are right.")
        if not tests.strip():
            return Score(0.0, "No valid test was written.")
        canonical = Episode("canonical", Task(""), trials=(Trial(1, Attempt(typed(solution))),))
        return Score.of(await self._judge(tests, id).evaluate(canonical))

    def _judge(self, tests: str, id: str) -> Evaluator:
        """id: of the case, by which a message names its tests."""
        if self._language == "rs":
            return self._judges(Spec("rust_tests", {"tests": tests, "seconds": self._seconds}))
        settings = {"tests": tests, "seconds": self._seconds, "name": f"the tests file of {id}"}
        return self._judges(Spec("unit_tests", settings))


def writes_tests(episode: Episode) -> bool:
    """Whether the attempts of this episode are tests, as in the method test-acc."""
    actor: Any = episode.head.settings.get("actor") or {}
    return attribute_of("actors", str(actor.get("name", "")), "makes", "") == "tests"


def with_code(episode: Episode, code: str) -> Episode:
    """The episode with this code as what its newest trial made."""
    newest = episode.trials[-1]
    return replace(episode, trials=(*episode.trials[:-1], replace(newest, attempt=Attempt(code))))


def _python_tests(file: Path, line: int, test: str, entry: str) -> str:
    """The text of the tests. Raises `InvalidInput` for what is no Python, or asserts nothing."""
    tree = parsed(test)
    if tree is None:
        raise InvalidInput(f"{file}, line {line}: 'test' is no Python.")
    if not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        raise InvalidInput(f"{file}, line {line}: 'test' asserts nothing.")
    return runs_by_itself(test, entry)


def _rust_tests(file: Path, line: int, test: str) -> str:
    """The program of tests; the brace that closes the prompt's function, with which some begin, is left out."""
    if "assert" not in test:
        raise InvalidInput(f"{file}, line {line}: 'test' asserts nothing.")
    return test.lstrip().removeprefix("}").lstrip("\n")


TRIALS = 5
"""Attempts at most, as in the reference's published runs."""
SEARCH_TEMPERATURE = 0.75


def methods(language: Language, tests: Spec | None = None) -> Mapping[str, Method]:
    """By name. tests: the evaluator that drives the loop, where it is not the model's own tests."""
    settings: dict[str, Json] = {} if language == "py" else {"language": language}
    writes = Spec("complete", {"output": "code", **settings})
    internal, whose = tests or Spec("internal_tests", settings), "visible" if tests else "own"
    lesson = Spec("verbal", {"output": "code"})
    window = Spec("last_attempt_and_reflexion", {"window": 1})

    def tried(strategy: Spec, summary: str) -> Method:
        return Method(writes, internal, lesson, strategy, summary, TRIALS)

    untested = "no tests: a reflection after each attempt, all trials"
    search = tried(window, "a search over attempts: the one that fails the fewest tests is grown from")
    found = {
        "simple": Method(writes, Spec("unjudged"), summary="one attempt, nothing of the past", trials=1),
        "reflexion": tried(window, f"{whose} tests drive; the attempt, their results and a reflection shown"),
        "immediate-reflexion": replace(tried(window, untested), evaluator=Spec("untested")),
        "immediate-refinement": tried(
            Spec("last_attempt"), f"{whose} tests drive; the attempt and their results shown, no reflection"
        ),
        "resample": tried(Spec("none"), f"{whose} tests drive, nothing of the past shown: the control"),
        "reflexion-ucs": replace(
            search,
            actor=writes.with_settings(temperatures=[0.0, SEARCH_TEMPERATURE]),
            hand_in="best",
            expansion=3,
        ),
    }
    if language == "py" and tests is None:
        found["test-acc"] = Method(
            Spec("write_tests"), Spec("unjudged"), summary="are the tests that the model writes right?", trials=1
        )
    return found
