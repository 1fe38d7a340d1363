"""Asks a model how a failed trial differs from a successful one, of the same task or of the most similar solved one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.protocols import Model, Prompts, SolvedEpisodes
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Attempt, Episode, Json, Reflection, Step, Task, Trial
from mulligan.reflectors._check import LEAST, better_of_two, checked
from mulligan.reflectors.verbal import EMPTY, FENCE, SLOTS, Verbal, seen
from mulligan.text.formatting import TOKENS, fenced, labelled, task_text, trajectory_text
from mulligan.text.thoughts import output_of
from mulligan.text.truncate import truncate, truncate_text

PLAIN = "plain reflection: no solved trial of this task or of a like one is known"
"""The note of a reflection for which there was nothing to compare with."""
LEAST_TOKENS = 100


@dataclass(frozen=True)
class Partner:
    """A trial that passed, of the episode with this id. task: its task, if it is not that of the failed trial."""

    episode: str
    trial: Trial
    task: Task | None = None


class Contrastive:
    """Compares the newest trial with one that passed.

    That is a trial of this episode (in another branch), or of the solved episode whose task is most similar, by the
    accounts of the bank. A note names it. If there is none, the reflector works like `verbal`, and a note says so.

    Args:
        output: what the attempts are: "text", "code", or actions in an "environment". Each has worked examples of its
            own.
        examples: a file of worked examples to show instead of the ones that ship; "" shows none.
        window: how many earlier reflections the model is shown. None shows all.
        temperature: of the sampling.
        max_tokens: of the reflection.
        tokens: what both attempts together may take of the prompt.
        earlier: reflections on trials of the task before this episode, oldest first.
        quality: the score, 0 to 1, below which the reflection is asked for once more, with what is missing.
    """

    def __init__(
        self,
        *,
        model: Model,
        prompts: Prompts,
        solved: SolvedEpisodes,
        output: Literal["text", "code", "environment"] = "text",
        examples: str | None = None,
        window: int | None = 3,
        temperature: float | None = 0.2,
        max_tokens: int = 200,
        tokens: int = 2 * TOKENS,
        earlier: Sequence[str] = (),
        quality: float = LEAST,
    ) -> None:
        if tokens < LEAST_TOKENS:
            raise InvalidInput(f"contrastive: tokens must be at least {LEAST_TOKENS} for two attempts, not {tokens}.")
        self._plain = Verbal(  # refuses settings that cannot work
            model=model,
            prompts=prompts,
            output=output,
            window=window,
            temperature=temperature,
            max_tokens=max_tokens,
            tokens=tokens // 2,
            earlier=earlier,
            quality=quality,
        )
        self._model, self._solved, self._least = model, solved, quality
        shown = f"contrastive.{output}.examples" if examples is None else examples
        prompt = prompts.get("contrastive.pair").check(*SLOTS, "shared", "success", "other")
        self._prompt = prompt.with_examples(prompts.get(shown) if shown else None)
        self._examples = tuple(text for _, text in self._prompt.examples)
        self._earlier, self._window, self._tokens = tuple(map(Reflection, earlier)), window, tokens
        self._sampling = Sampling(temperature, max_tokens, stop=(FENCE,))

    async def reflect(self, episode: Episode) -> Reflection | None:
        partner = await self.partner(episode)
        if partner is None:
            reflection = await self._plain.reflect(episode)
            return reflection and replace(reflection, notes=(PLAIN, *reflection.notes))
        sampling = replace(self._sampling, seed=episode.head.seed + len(episode.trials))

        def read(answer: Json, reason: str) -> Reflection:
            return self.take(episode, partner, answer, reason)

        return await better_of_two(self._model, self.ask(episode, partner), sampling, read, self._least)

    async def partner(self, episode: Episode) -> Partner | None:
        """The trial to compare the newest one with; None if there is none."""
        if episode.passed:
            return Partner(episode.id, episode.passed)
        solved = await self._solved.nearest(episode)
        if solved is None or solved.passed is None:
            return None
        has_other_task = task_text(solved.task) != task_text(episode.task)
        return Partner(solved.id, solved.passed, solved.task if has_other_task else None)

    def ask(self, episode: Episode, partner: Partner) -> Question:
        slots = seen(episode, self._earlier, self._window, self._tokens)
        shared, failed, passed = contrast_texts(episode.trials[-1].attempt, partner.trial.attempt, self._tokens)
        other = fenced(truncate_text(task_text(partner.task), self._tokens // 4)) if partner.task else ""
        return Question(self._prompt.render(**{**slots, "attempt": failed}, shared=shared, success=passed, other=other))

    def take(self, episode: Episode, partner: Partner, answer: Json, reason: str = "") -> Reflection:
        """The reflection in an answer, with a note that names its partner. A faulty one is marked as withheld.

        reason: why a second reflection was asked for, which it may not copy. Raises `BadAnswer` if the answer is not
        text.
        """
        if not isinstance(answer, str):
            raise BadAnswer(EMPTY)
        text = answer.partition(FENCE)[0].strip()
        another = ", a similar task" if partner.task else ""
        note = f"contrasted with trial {partner.trial.number} of episode {partner.episode}{another}"
        if not text:
            return Reflection("", withheld=EMPTY, notes=(note,))
        # Copying the attempt at another task is no better than copying a worked example.
        attempt = partner.trial.attempt
        foreign = (trajectory_text(attempt.steps), output_of(attempt)) if partner.task else ()
        examples, earlier = (*self._examples, *foreign, reason), [each.text for each in self._earlier]
        return checked(Reflection(text, notes=(note,)), episode, examples=examples, earlier=earlier)


def contrast_texts(failed: Attempt, passed: Attempt, tokens: int) -> tuple[str, str, str]:
    """Two attempts for a prompt, within this many tokens: the steps that both begin with, and the rest of each."""
    pairs = zip(failed.steps, passed.steps, strict=False)
    same = len(list(takewhile(lambda pair: _same(*pair), pairs)))
    head = _bounded(failed.steps[:same], 1, tokens // 4)
    count = "The first step was" if same == 1 else f"The first {same} steps were"
    rest = (tokens - tokens // 4 if same else tokens) // 2
    each = (_attempt_text(attempt, same, rest) for attempt in (failed, passed))
    return (labelled(f"{count} the same in both", head), *each)  # pyright: ignore[reportReturnType]


def _same(one: Step, other: Step) -> bool:
    return (one.action, one.observation) == (other.action, other.observation)


def _attempt_text(attempt: Attempt, start: int, tokens: int) -> str:
    """The attempt from this step on: its steps, and its output unless that is the last action."""
    output = output_of(attempt)
    has_output = not attempt.steps or output != attempt.steps[-1].action
    steps = attempt.steps[start:]
    room = tokens // 2 if has_output and steps else tokens
    step_part = labelled("What was done", _bounded(steps, start + 1, room))
    output_part = labelled("Attempt", truncate_text(output, room) or "(empty)") if has_output else ""
    return "\n\n".join(filter(None, (step_part, output_part)))


def _bounded(steps: Sequence[Step], first: int, tokens: int) -> str:
    return truncate_text(trajectory_text(truncate(steps, tokens), first), tokens)
