"""Replays a published log through the loop, with the log as the model, and lists the differences.

A log is a JSON list of objects with the keys of `Published`. Each episode becomes a case of an ordinary benchmark run.
Settings make the loop do what the reference did: how it reads answers and words feedback, a window of one, five
attempts.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from mulligan.app.config import load
from mulligan.app.model_roles import Models
from mulligan.app.plugins import build
from mulligan.app.recipe import Recipe
from mulligan.app.session import Session, opened_store
from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.plan import LOG, BenchOptions, BenchPlan
from mulligan.bench.harness.running import Finished, run_plan
from mulligan.core.benchmarks import CaseResult, Judges, Method, Score, Source
from mulligan.core.errors import InvalidInput, ModelError, NotFound
from mulligan.core.loop import path
from mulligan.core.protocols import Evaluator, Store
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import Case, Episode, Json, Spec, Task, Usage
from mulligan.evaluators.internal_tests import made
from mulligan.text.plain import count, escaped
from mulligan.text.programs import program, runs_by_itself, typed
from mulligan.text.python_code import parsed, with_others

_TEXT_KEYS = ("name", "prompt", "entry_point", "hidden_test")
_LIST_KEYS = ("internal_tests", "implementations", "feedback", "reflections")
_MOVE = re.compile(r"trial\.(\d+)/(act|evaluate|reflect)\b")
_FENCE = "```"
_INDENTED = "unexpected indent"
"""The reference's feedback on an indented body, which it ran without the prompt."""


@dataclass(frozen=True)
class Published:
    """An episode as it was published.

    Attributes:
        id: the name, with a number if several episodes have that name.
        implementations: the function of each trial, even if an old log has only its body.
        feedback: one for each trial that failed its internal tests. The reference omits that of the last trial.
        reflections: as many as `feedback`, or fewer.
        solved: the verdict of the hidden tests.
    """

    id: str
    name: str
    prompt: str
    entry_point: str
    internal_tests: tuple[str, ...]
    implementations: tuple[str, ...]
    feedback: tuple[str, ...]
    reflections: tuple[str, ...]
    hidden_test: str
    solved: bool


def read_log(file: str | os.PathLike[str]) -> tuple[Sequence[Published], str]:
    """The episodes of a log, and the sha256 of the file. Raises `InvalidInput` that names the entry and the key."""
    log = Path(file).expanduser()
    try:
        raw = log.read_bytes()
        entries: Json = json.loads(raw.decode("utf-8-sig"))
    except OSError as error:
        raise InvalidInput(f"The log {log} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The log {log} must be a JSON list of episodes, but it is not JSON: {error}.") from error
    if not isinstance(entries, list) or not entries:
        raise InvalidInput(f"The log {log} must be a JSON list of at least one episode.")
    ids = set[str]()
    episodes = list[Published]()
    for number, entry in enumerate(cast(list[Any], entries), 1):
        where = f"{log}, entry {number}"
        if not isinstance(entry, dict):
            raise InvalidInput(f"{where}: this must be an object, not {type(entry).__name__}.")
        episodes.append(_episode(where, cast(dict[str, Any], entry), ids))
    return episodes, hashlib.sha256(raw).hexdigest()


def _episode(where: str, entry: dict[str, Any], ids: set[str]) -> Published:
    """The episode of an entry. ids: those of the earlier entries, to which its id is added."""
    if isinstance(name := entry.get("name"), str):
        where = f"{where} ({name[:60]})"
    for key in (*_TEXT_KEYS, *_LIST_KEYS, "solved"):
        if key not in entry:
            raise InvalidInput(f"{where}: the key {key!r} is missing.")
    texts, lists = dict[str, str](), dict[str, tuple[str, ...]]()
    for key in _TEXT_KEYS:
        if not isinstance(entry[key], str):
            raise InvalidInput(f"{where}: {key!r} must be a string, not {type(entry[key]).__name__}.")
        texts[key] = escaped(entry[key])
    for key in _LIST_KEYS:
        lists[key] = _texts(where, key, entry[key])
    if not isinstance(entry["solved"], bool):
        raise InvalidInput(f"{where}: 'solved' must be true or false, not {entry['solved']!r}.")
    trials = len(lists["implementations"])
    if not trials:
        raise InvalidInput(f"{where}: 'implementations' is empty: it must have one string per trial.")
    for key in ("feedback", "reflections"):
        if len(lists[key]) > trials:
            raise InvalidInput(
                f"{where}: {key!r} has {count(len(lists[key]), 'string')} for {count(trials, 'implementation')}."
            )
    if len(lists["feedback"]) < trials - 1:
        raise InvalidInput(
            f"{where}: 'feedback' must have {count(trials - 1, 'string')}, one per failure, not "
            f"{len(lists['feedback'])}."
        )
    names = (texts["name"] + (f"#{number}" if number > 1 else "") for number in itertools.count(1))
    id = next(name for name in names if name not in ids)
    ids.add(id)
    feedback_or_none = (*lists["feedback"], *[""] * trials)
    lists["implementations"] = tuple(
        code
        if _INDENTED in feedback or not code[:1].isspace() or parsed(code)
        else program(code, texts["prompt"], is_code=True)
        for code, feedback in zip(lists["implementations"], feedback_or_none, strict=False)
    )
    fields: dict[str, Any] = {**texts, **lists}
    return Published(id=id, **fields, solved=entry["solved"])


def _texts(where: str, key: str, value: object) -> tuple[str, ...]:
    """The strings in the list under a key. Raises `InvalidInput`."""
    if not isinstance(value, list):
        raise InvalidInput(f"{where}: {key!r} must be a list of strings, not {type(value).__name__}.")
    for number, text in enumerate(cast(list[Any], value), 1):
        if not isinstance(text, str):
            raise InvalidInput(f"{where}: item {number} of {key!r} must be a string, not {type(text).__name__}.")
    return tuple(escaped(text) for text in cast(list[str], value))


class LogModel:
    """A model that answers with the tests, implementations and reflections of a log."""

    def __init__(self, name: str, log: Published, sha256: str) -> None:
        self.name, self.id = name, f"{name}@{sha256[:12]}"
        self._log = log

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        """Raises `ModelError` if the log has no answer."""
        move = _MOVE.search(path())
        if move is None:
            raise ModelError(f"{self.name}: the log answers only within a trial, but was asked in {path()!r}.")
        return Answer(self._answer(int(move[1]), move[2]), self.id, Usage(calls=1))

    def _answer(self, trial: int, kind: str) -> str:
        if kind == "evaluate":
            return _fenced("\n".join(self._log.internal_tests))
        if kind == "act":
            return _fenced(self._at(self._log.implementations, trial, "implementations"))
        text = self._at(self._log.reflections, trial, "reflections")
        return text.partition(_FENCE)[0].strip() or "(The log has no words of a reflection here.)"

    def _at(self, texts: Sequence[str], trial: int, what: str) -> str:
        if trial > len(texts):
            raise ModelError(f"the log of {self._log.id} has {len(texts)} {what}, but trial {trial} needs one more")
        return texts[trial - 1]


def _fenced(code: str) -> str:
    return f"{_FENCE}python\n{code}\n{_FENCE}"


TRIALS = 5
"""The reference's max_iters in its published runs."""
HIDDEN_SECONDS = 10.0
_UNDEFINED = re.compile(r"name '\w+' is not defined")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")
_PYTHON_MESSAGES = [
    re.compile(pattern)
    for pattern in (
        r"local variable '\w+' referenced before assignment|cannot access local variable '\w+' where .*",
        r"free variable '\w+' referenced before assignment .*|cannot access free variable '\w+' where .*",
        r"maximum recursion depth exceeded.*",
        r"integer (?:division or )?modulo by zero",
        r"(?:[\w.]+\.)?(?:<locals>\.)?[\w<>]+\(\) (?:missing|takes|got) .*",
        r".*\(<string>, line \d+\)",
    )
]
"""Messages of exceptions that differ between versions of Python."""

METHOD = Method(
    Spec("complete", {"output": "code", "reading": "reference", "temperatures": [0.0]}),
    Spec("internal_tests", {"layout": "reference", "reading": "reference"}),
    reflector=Spec("verbal", {"check": False}),
    strategy=Spec("last_attempt_and_reflexion", {"window": 1}),
    summary="the programming loop of Reflexion's code",
    trials=TRIALS,
)


@dataclass(frozen=True)
class Parting:
    """One difference between log and replay.

    Attributes:
        where: such as "tests", "trials", "verdict" or "feedback of trial 2".
        expected, got: the text in the log and in the replay.
        hint: the likely cause. Empty: unknown.
    """

    where: str
    expected: str
    got: str
    hint: str = ""


@dataclass(frozen=True)
class Compared:
    """An episode of the log, compared with its replay. trials: the number of trials in the replay."""

    case: str
    episode: str
    trials: int
    partings: tuple[Parting, ...]

    @property
    def agrees(self) -> bool:
        return not self.partings


@dataclass(frozen=True)
class Replayed:
    """A log, compared with its replay. run: the id of the benchmark run that records the replay."""

    run: str
    compared: Sequence[Compared]

    @property
    def agreeing(self) -> int:
        return sum(episode.agrees for episode in self.compared)

    def to_json(self) -> Json:
        rows = [asdict(episode) for episode in self.compared]
        parted = [row for row in rows if row["partings"]]
        return {"run": self.run, "episodes": len(rows), "agree": self.agreeing, "parted": parted}


async def replay_log(
    file: str | os.PathLike[str],
    *,
    trials: int | None = None,
    parallel: int = 1,
    sandbox: str = "auto",
    store: Store | None = None,
    hooks: Hooks = Hooks(),
) -> Replayed:
    """Replay each episode of a log, and compare tests, attempts, feedback of failed trials, and verdicts.

    Args:
        trials: the max_iters of the log. None: 5, or for longer episodes the length of the longest.
        store: used instead of the configured one.

    Raises:
        InvalidInput: the file is not a log; nothing was run.
    """
    logs, sha256 = read_log(file)
    if trials is not None and trials < 1:
        raise InvalidInput(f"trials must be at least 1, not {trials}.")
    config = load()
    models = Models(config)
    by_case = {log.id: LogModel(f"log:{log.id}", log, sha256) for log in logs}
    for model in by_case.values():
        models.name(model)
    sandboxed = Session(config, models).sandbox(sandbox)

    def judges(spec: Spec) -> Evaluator:
        return build("evaluators", spec, {"sandbox": sandboxed})

    choice = BenchOptions(_benchmark_name(file), tries=trials, parallel=parallel, sandbox=sandbox)
    benchmark = _Log(judges, {log.id: log for log in logs})
    cases = benchmark.load(())
    files = {Path(file).name: sha256}
    plan = _Plan(choice, choice.benchmark, benchmark, METHOD, cases, files, config)
    async with opened_store(store, config) as shared_store:
        finished = await run_plan(plan, models, shared_store, hooks)
        return Replayed(finished.run.id, await _compare(finished, logs, shared_store))


def _benchmark_name(file: str | os.PathLike[str]) -> str:
    return f"{LOG}{Path(file).expanduser().resolve()}"


async def _compare(finished: Finished, logs: Sequence[Published], store: Store) -> Sequence[Compared]:
    compared = list[Compared]()
    for log, result in zip(logs, finished.results, strict=True):
        id = f"{finished.run.id}.{result.position}.1"
        try:
            episode = await store.load(id)
        except NotFound:  # the episode could not start, and the result says why
            episode = Episode(id, Task(log.prompt))
        compared.append(Compared(log.id, id, len(episode.trials), tuple(partings(log, episode, result))))
    return compared


class _Plan(BenchPlan):
    """A plan in which the episode of the log is the model of all roles of its case."""

    def recipe(self, case: Case, run: str) -> Recipe:
        name = f"log:{case.id}"
        return replace(super().recipe(case, run), model=name, reflect_model=name, judge_model=name, prompts=None)


@dataclass
class _Log:
    """A log as a benchmark: its episodes are the cases, and their hidden tests the targets."""

    judges: Judges
    logs: Mapping[str, Published]
    title: str = "a published log"
    data: str = ""
    sources: Sequence[Source] = ()
    where: str = ""

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        return [
            Case(log.id, Task(log.prompt), runs_by_itself(log.hidden_test, log.entry_point))
            for log in self.logs.values()
        ]

    def methods(self) -> Mapping[str, Method]:
        return {"reflexion": METHOD}

    def play(self, case: Case, method: Method) -> Method:
        """The method with as many tests as the episode has, and as many trials as it could have had."""
        log = self.logs[case.id]
        longest = max(len(episode.implementations) for episode in self.logs.values())
        return replace(
            method,
            evaluator=method.evaluator.with_settings(tests=max(len(log.internal_tests), 1)),
            trials=TRIALS if len(log.implementations) <= TRIALS else longest,
        )

    async def score(self, case: Case, episode: Episode) -> Score:
        """Run the hidden test on the last attempt, as the reference does.

        The attempt may use the names of `typing` and names that earlier attempts defined, and a single call may take
        all the time.
        """
        *earlier, last = episode.trials
        code = with_others(last.attempt.output, [trial.attempt.output for trial in earlier])
        attempt = replace(last.attempt, output=typed(code))
        settings = {"tests": case.target, "seconds": HIDDEN_SECONDS, "longest": HIDDEN_SECONDS}
        try:
            judge = self.judges(Spec("unit_tests", settings))
        except InvalidInput as error:
            return Score(None, str(error))
        verdict = await judge.evaluate(replace(episode, trials=(*earlier, replace(last, attempt=attempt))))
        return Score.of(verdict)


def partings(log: Published, episode: Episode, result: CaseResult) -> list[Parting]:
    """The differences between an episode of the log and its replay."""
    differences = list[Parting]()
    tests = made(episode) if episode.trials else None
    if tests is not None and log.internal_tests != tests:
        differences.append(Parting("tests", "\n".join(log.internal_tests), "\n".join(tests)))
    for number, (code, trial) in enumerate(zip(log.implementations, episode.trials, strict=False), 1):
        if code != trial.attempt.output:
            differences.append(Parting(f"attempt of trial {number}", code, trial.attempt.output))
    for number, (logged, trial) in enumerate(zip(log.feedback, episode.trials, strict=False), 1):
        got = trial.feedback.text if trial.feedback else ""
        if logged.rstrip() != got.rstrip():  # an exception without a message ends on a space, which logs may lose
            differences.append(Parting(f"feedback of trial {number}", logged, got, hint_of(logged, got)))
    if result.status == "error":
        differences.append(
            Parting("course", count(len(log.implementations), "trial"), result.text, _hint_of_end(log, episode))
        )
    elif len(log.implementations) != len(episode.trials):
        differences.append(Parting("trials", str(len(log.implementations)), str(len(episode.trials))))
    expected, got = "solved" if log.solved else "failed", result.status
    if result.status != "error" and expected != got:
        differences.append(Parting("verdict", expected, got, escaped(result.text) if got != "solved" else ""))
    return differences


def _hint_of_end(log: Published, episode: Episode) -> str:
    """The likely reason why the replay asks for more trials than the log has; "" if it does not."""
    trials = len(log.implementations)
    if len(episode.trials) < trials:
        return ""
    logged = episode.trials[-1].feedback
    failed = logged.text.partition("Tests failed:")[2].strip().partition("\n")[0] if logged else ""
    return (
        f"the log ends here: its last attempt had passed its tests, or its max_iters was {trials} (--trials {trials}); "
        f"of the tests that fail here the first is: {failed[:300] or 'none'}"
    )


def first_difference(expected: str, got: str, room: int = 500) -> tuple[str, str]:
    """The first line in which both texts differ, shortened to `room` characters around the difference."""
    lines = itertools.zip_longest(expected.split("\n"), got.split("\n"), fillvalue="(nothing)")
    logged, replayed = next(((a, b) for a, b in lines if a != b), ("", ""))
    same = next((n for n, (a, b) in enumerate(zip(logged, replayed, strict=False)) if a != b), 0)
    begin = 0 if max(len(logged), len(replayed)) <= room else max(same - room // 4, 0)
    logged, replayed = (f"{'…' if begin else ''}{line[begin : begin + room]}" for line in (logged, replayed))
    return logged, replayed


def hint_of(expected: str, got: str) -> str:
    """The likely reason why the feedback of log and replay differs, from the first line that does; "" if unknown."""
    lines = first_difference(expected, got, max(len(expected), len(got)))
    logged, replayed = (line.partition(" # output: ")[2] for line in lines)
    if _UNDEFINED.fullmatch(replayed):
        return "in the reference all episodes share one namespace, where an earlier one had defined the name"
    if "PropagatingThread" in logged:
        return "the reference's time-out, whose message is an accident of its threads"
    if not replayed or not logged:
        return ""
    if _ADDRESS.sub("", replayed) == _ADDRESS.sub("", logged):
        return "an address in memory is printed, which differs from run to run"
    if any(pattern.fullmatch(replayed) and pattern.fullmatch(logged) for pattern in _PYTHON_MESSAGES):
        return "an exception whose message differs between versions of Python"
    with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        if ast.literal_eval(replayed) == ast.literal_eval(logged):
            return "the same value in another order, as sets have none"
    if "TIMEOUT" in (replayed, logged):
        return "a time-out, which depends on the speed of the machine"
    return ""
