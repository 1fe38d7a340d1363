"""The user's own tasks: a file with prompts and their judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import cast

from mulligan.bench.own_tasks._task_file import Entry, files_of, read_tasks, read_text
from mulligan.core.benchmarks import Judges, Method, Score, Source
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.records import Case, Episode, Json, Spec, Task

WITHOUT_MODEL = ("unit_tests", "command", "contains", "regex", "exact_match")
"""Evaluators that need no model, so they can be checked before the run."""


class Tasks:
    """A benchmark whose cases are the `[[task]]` tables, or lines, of a file (format: `_task_file`).

    Args:
        judge: the keys of the table [judge], if the file has no such table.
    """

    title = "Your own tasks: mulligan bench run mine.toml"
    data = "tasks.toml"
    endings: Sequence[str] = (".toml",)
    sources: Sequence[Source] = ()
    where = "To write one: mulligan docs benchmark-own-tasks"
    former: Mapping[str, str] = MappingProxyType({"none": "resample"})

    def __init__(self, *, judges: Judges, judge: Mapping[str, Json] | None = None) -> None:
        self._judges, self._judge = judges, judge
        self._entries: dict[str, Entry] = {}

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        (file,) = files
        entries = read_tasks(file, self._judge)
        for entry in entries:
            self._check_judges(entry)
        self._entries = {entry.id: entry for entry in entries}
        return [_case(entry) for entry in entries]

    def beside(self) -> Sequence[Path]:
        return files_of(list(self._entries.values()))

    def methods(self) -> Mapping[str, Method]:
        def method(strategy: str, summary: str) -> Method:
            return Method(Spec("complete"), Spec("model_judge"), strategy=Spec(strategy), summary=summary)

        once = "one attempt, which only the hidden judge sees"
        return {
            "evidence_and_reflexion": method(
                "evidence_and_reflexion", "the checks that failed and the newest lesson are shown to the next attempt"
            ),
            "evidence": method("evidence", "the checks that failed are shown, in their own words"),
            "reflexion": method("reflexion", "the lessons of failed attempts are shown to the next"),
            "resample": method("none", "one attempt after another; nothing from the past is shown"),
            "last_attempt": method("last_attempt", "the last attempt and its feedback are shown"),
            "last_attempt_and_reflexion": method(
                "last_attempt_and_reflexion", "the last attempt, its feedback and the lessons are shown"
            ),
            "simple": Method(Spec("complete"), Spec("unjudged"), summary=once, trials=1),
        }

    def play(self, case: Case, method: Method) -> Method:
        """The method with the judge of the task. With a hidden judge, the method `simple` needs no other."""
        entry = self._entries[case.id]
        output = {} if entry.output is None else {"output": entry.output}
        only_hidden = method.evaluator.name == "unjudged" and entry.hidden is not None
        return replace(
            method,
            actor=method.actor.with_settings(**output),
            reflector=method.reflector.with_settings(**output),
            evaluator=method.evaluator if only_hidden else entry.loop,
            oracle=entry.oracle and not only_hidden,
        )

    async def score(self, case: Case, episode: Episode) -> Score:
        """The verdict of the hidden judge if there is one, else that of the judge in the loop."""
        verdict = episode.trials[-1].feedback
        if case.target is not None:
            verdict = await self._judges(_hidden(case.target)).evaluate(episode)
        return Score.of(verdict) if verdict else Score(None, "The attempt was not judged.")

    def _check_judges(self, entry: Entry) -> None:
        """Build the judges of a task once, to report mistakes before a model is called.

        A judge in the loop that needs a model cannot be built yet, so only its name is checked.

        Raises:
            InvalidInput: a judge cannot work; the message names file, line and task.
        """
        loop = Spec(entry.loop.name, {name: _text(value) for name, value in entry.loop.settings.items()})
        hidden = None if entry.hidden is None else _hidden(entry.hidden)
        for spec in (loop, hidden):
            try:
                if spec is not None:
                    self._judges(spec)
            except InvalidInput as error:
                if spec is loop and loop.name not in WITHOUT_MODEL and not isinstance(error, UnknownName):
                    continue
                needs_model = spec is hidden and spec is not None and spec.name not in WITHOUT_MODEL
                hint = " (A hidden judge must work without a model.)" if needs_model else ""
                raise InvalidInput(f"{entry.where}: the task {entry.id!r}: {error}{hint}") from error


def _case(entry: Entry) -> Case:
    inputs = {"change": entry.change} if entry.change else {}
    return Case(entry.id, Task(entry.prompt, inputs), entry.hidden, entry.family)


def _hidden(target: Json) -> Spec:
    return Spec(target["evaluator"], target["settings"])


def _text(value: Json) -> Json:
    """The value of a setting, or if it is {"file": PATH}, the text of that file."""
    table = cast(dict[str, Json], value if isinstance(value, dict) else {})
    return read_text(Path(str(table["file"])), "file") if set(table) == {"file"} else cast(Json, value)
