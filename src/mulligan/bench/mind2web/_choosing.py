"""Mind2Web's questions about the next element, with a few candidates each, and its metrics.

A question has five candidates of a step. The chosen one is put behind the others, until one is left (Deng et al. 2023).
Whatever is chosen, the next step shows the page as a person left it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from mulligan.bench.mind2web._pages import excerpt, ids_of, read_page
from mulligan.bench.mind2web._tasks import WebStep, WebTask
from mulligan.plugins import InvalidInput

AT_ONCE = 5
"""The number of candidates in a question."""
BEFORE = 5
"""The number of earlier actions that a question shows."""
_LETTERS = "ABCDEF"
_ANSWER = re.compile(r"Answer:\s*\(?([A-F])\b")
_ACTION = re.compile(r"Action:\s*(CLICK|SELECT|TYPE)\b")
_VALUE = re.compile(r"^[ \t]*Value:[ \t]*(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Choice:
    """The choice at a step. element: "" for none. action: the operation with its value."""

    element: str = ""
    action: str = ""


@dataclass(frozen=True)
class StepScore:
    """The score of a step by Mind2Web's metrics, each from 0 to 1 (best)."""

    step: str
    choice: Choice
    element: float = 0.0
    action_f1: float = 0.0

    @property
    def success(self) -> float:
        return float(self.element == 1 and self.action_f1 == 1)


def read_answer(text: str) -> tuple[int | None, str]:
    """The place of the chosen candidate (from 0; None for none of them), and the operation with its value."""
    letter, action, value = _ANSWER.search(text), _ACTION.search(text), _VALUE.search(text)
    place = _LETTERS.index(letter[1]) - 1 if letter else -1
    parts = (action[1] if action else "", value[1].strip() if value else "")
    return (place if place >= 0 else None), " ".join(part for part in parts if part)


def token_f1(action: str, target: str) -> float:
    """F1 over the sets of words, as Mind2Web computes it. 1 for two empty texts."""
    one, other = set(action.split()), set(target.split())
    if not one or not other:
        return float(one == other)
    both = len(one & other)
    return 2 * both / (len(one) + len(other))


class Walk:
    """Goes through a task, question by question.

    A step whose right elements are not among its first `top_k` candidates cannot succeed. It counts as wrong, and no
    question is asked.

    Attributes:
        question: the current question; "" when the task is over.
        choices: the choices at the finished steps, in order.
    """

    def __init__(self, task: WebTask, top_k: int) -> None:
        self._task, self._top_k = task, top_k
        self.choices: list[Choice] = []
        self.question = ""
        self._left: list[str] = []
        self._shown: list[str] = []
        self._chosen: Choice | None = None
        self._begin()

    def answer(self, text: str) -> None:
        """Take an answer to the question. Raises `InvalidInput` if the task is over."""
        if not self.question:
            raise InvalidInput(f"The task {self._task.id} has ended, so there is no question to answer.")
        place, action = read_answer(text)
        if place is not None:
            if place < len(self._shown):
                self._left.append(self._shown[place])
                self._chosen = Choice(self._shown[place], action)
            else:  # a letter that was not offered, as in the reference
                self._chosen = None
        self._ask()

    def _begin(self) -> None:
        """Begin the next step that can succeed."""
        while len(self.choices) < len(self._task.steps):
            step = self._task.steps[len(self.choices)]
            self._left = step.best(self._top_k)
            if not step.right.isdisjoint(self._left):
                random.Random(step.id).shuffle(self._left)
                self._chosen = None
                self._page = read_page(step.page)
                self._on_page = ids_of(self._page)
                self._ask()
                return
            self.choices.append(Choice())
        self.question = ""

    def _ask(self) -> None:
        """Ask about the next candidates. If only one is left, it is the choice, and the step ends."""
        while len(self._left) > 1:
            group, self._left = self._left[:AT_ONCE], self._left[AT_ONCE:]
            part = excerpt(self._page, self._on_page.intersection(group))
            self._shown = [id for id, _ in part.choices]
            if self._shown:
                descriptions = [description for _, description in part.choices]
                self.question = _question(self._task, len(self.choices), part.text, descriptions)
                return
        self.choices.append(self._chosen if self._left and self._chosen else Choice())
        self._begin()


def _question(task: WebTask, step: int, page: str, choices: Sequence[str]) -> str:
    before = task.done[max(0, step - BEFORE) : step] or ("None",)
    options = ["None of the above", *choices]
    return "\n".join(
        [
            f"'''\n{page}\n'''\n",
            "Based on the HTML page above, do the next step of this task:",
            f"Task: {task.prompt}",
            "Previous actions:",
            *before,
            "What should be the next action? Choose one of these (A if the right element is not among them):\n",
            *(f"{letter}. {option}" for letter, option in zip(_LETTERS, options, strict=False)),
        ]
    )


def step_scores(task: WebTask, top_k: int, answers: Iterable[str]) -> list[StepScore]:
    """The score of each step. Steps that the answers do not reach count as wrong."""
    walk = Walk(task, top_k)
    for answer in answers:
        if walk.question:
            walk.answer(answer)
    choices = [*walk.choices, *(Choice() for _ in task.steps[len(walk.choices) :])]
    return [_score(step, choice) for step, choice in zip(task.steps, choices, strict=True)]


def _score(step: WebStep, choice: Choice) -> StepScore:
    if not choice.element:
        return StepScore(step.id, choice)
    return StepScore(step.id, choice, float(choice.element in step.right), token_f1(choice.action, step.action))


METRICS = ("element_accuracy", "action_f1", "step_success")


def rates(steps: Sequence[StepScore]) -> Mapping[str, float]:
    """The means over these steps, of which there is at least one."""
    values = ([step.element, step.action_f1, step.success] for step in steps)
    return dict(zip(METRICS, map(fmean, zip(*values, strict=True)), strict=True))


@dataclass(frozen=True)
class Totals:
    """The metrics over tasks.

    Attributes:
        micro: means over all steps.
        macro: means over tasks of their means over steps.
        success: the share of the tasks in which all steps succeeded.
        errors: the share of the tasks by their number of wrong steps: "0" to "3", and ">3".
    """

    tasks: int
    steps: int
    micro: Mapping[str, float]
    macro: Mapping[str, float]
    success: float
    errors: Mapping[str, float]


def totals(tasks: Sequence[Sequence[StepScore]]) -> Totals:
    """The metrics over these tasks, of which there is at least one."""
    every = [step for steps in tasks for step in steps]
    means = [rates(steps) for steps in tasks]
    macro = {name: fmean(mean[name] for mean in means) for name in METRICS}
    wrong = [sum(1 for step in steps if not step.success) for steps in tasks]
    counts = Counter("0123"[count] if count <= 3 else ">3" for count in wrong)
    errors = {name: counts[name] / len(tasks) for name in (*"0123", ">3")}
    return Totals(len(tasks), len(every), rates(every), macro, errors["0"], errors)
