"""Mind2Web (Deng et al. 2023): choose the element and the operation of each step of a task, on recorded web pages.

Each step shows the page as a person left it, whatever the agent chose before. The score of a task is 1 if all its steps
are right. Its parts are Mind2Web's metrics over its steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal, cast

from mulligan.bench.mind2web._choosing import StepScore, rates, step_scores, totals
from mulligan.bench.mind2web._tasks import WebTask, tasks_of
from mulligan.pages import count
from mulligan.plugins import Case, Episode, InvalidInput, Json, Method, Score, Source, Spec, Task

STEPS = 1000
"""The maximum number of answers in a task. No task needs so many, because each answer leaves fewer candidates."""


class Mind2Web:
    """The benchmark Mind2Web. A case is a task.

    Args:
        split: the part of the test data: "test_task" (new tasks), "test_website" (new sites), "test_domain" (new
            domains).
        scores_pickle: Mind2Web's file of candidate scores. None: the data has a `rank` for each candidate.
        top_k: the number of best-ranked candidates of a step to keep.
        prompt_template: a file with the messages to show before each question, in place of our three examples.
    """

    title = "Mind2Web: the next step on recorded web pages (splits test_task, test_website, test_domain)"
    sources: Sequence[Source] = ()
    where = (
        "Mind2Web's test.zip (https://huggingface.co/datasets/osunlp/Mind2Web), whose licence asks not to "
        "redistribute it: unzip it and name its folder with --data-root, and its scores_all_data.pkl with "
        "--scores-pickle"
    )

    def __init__(
        self,
        *,
        split: Literal["test_task", "test_website", "test_domain"] = "test_task",
        scores_pickle: str | None = None,
        top_k: int = 50,
        prompt_template: str | None = None,
    ) -> None:
        if top_k < 1:
            raise InvalidInput(f"top_k must be at least 1, not {top_k}.")
        self.data = f"{split}_[0-9]*.json"
        self._top_k, self._template = top_k, _absolute(prompt_template)
        self._scores = _absolute(scores_pickle)
        self._tasks: Mapping[str, tuple[Path, WebTask]] = {}

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        self._tasks = tasks_of(files, None if self._scores is None else Path(self._scores))
        for _, task in self._tasks.values():
            for step in task.steps:
                step.best(self._top_k)
        return [self._case(task) for _, task in self._tasks.values()]

    def beside(self) -> Sequence[Path]:
        return [] if self._scores is None else [Path(self._scores)]

    def methods(self) -> Mapping[str, Method]:
        settings: dict[str, Json] = {"steps": STEPS}
        if self._template is not None:
            settings["template"] = self._template
        actor, world = Spec("respond", settings), Spec("mind2web")
        summary = "one way through each task"
        return {"simple": Method(actor, Spec("unjudged"), summary=summary, trials=1, environment=world)}

    def play(self, case: Case, method: Method) -> Method:
        """The method with the pages of this case."""
        file, _ = self._tasks[case.id]
        settings: dict[str, Json] = {"file": str(file), "task": case.id, "top_k": self._top_k}
        if self._scores is not None:
            settings["scores"] = self._scores
        return replace(method, environment=Spec("mind2web", settings))

    async def score(self, case: Case, episode: Episode) -> Score:
        """1 if all steps are right. Each part is the mean of a metric over the steps of the task."""
        steps = self._step_scores(case.id, episode)
        right = sum(int(step.success) for step in steps)
        return Score(float(right == len(steps)), f"right: {right} of {count(len(steps), 'step')}.", rates(steps))

    def summary(self, episodes: Mapping[str, Episode]) -> Mapping[str, Json]:
        """Mind2Web's metrics over these tasks, and the choice at each step, by the names of the files for them."""
        tasks = [self._step_scores(case, episode) for case, episode in episodes.items()]
        choices: list[Json] = [[step.step, step.choice.element, step.choice.action] for task in tasks for step in task]
        return {"results": cast(Json, asdict(totals(tasks))), "predictions": choices}

    def _step_scores(self, case: str, episode: Episode) -> Sequence[StepScore]:
        answers = [step.action for step in episode.trials[-1].attempt.steps if step.action]
        return step_scores(self._tasks[case][1], self._top_k, answers)

    def _case(self, task: WebTask) -> Case:
        target = [{"operation": step.action, "elements": sorted(step.right)} for step in task.steps]
        return Case(task.id, Task(task.prompt), cast(Json, target), family=task.website)


def _absolute(file: str | None) -> str | None:
    return None if file is None else str(Path(file).expanduser().resolve())
