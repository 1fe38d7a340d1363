"""Asks a model for a lesson in three layers: on an action (tactical), a plan (strategic) and a habit (metacognitive).

The layers differ in scope: the bank recalls a tactical lesson for tasks of its kind, and a metacognitive one for all
tasks of the agent (design/077).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast

from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.prompts import Prompt
from mulligan.core.protocols import Model, Prompts
from mulligan.core.questions import Answer, Question, Sampling, object_schema
from mulligan.core.records import LAYERS, Episode, Json, Layer, Reflection
from mulligan.models.failures import Unreadable
from mulligan.reflectors._check import LEAST, better_of_two, checked, least_quality
from mulligan.reflectors.verbal import EMPTY, FENCE, SLOTS, seen
from mulligan.text.formatting import TOKENS, newest, reflections_text
from mulligan.text.reflections import COPIED, copied_share, trial_texts
from mulligan.text.thoughts import answer_of

SCHEMA: Json = object_schema(**{layer: {"type": "string"} for layer in LAYERS})
BROKEN = "the model's answer was not the JSON that was asked for; what could be read of it was taken"
PLAIN = "the model gave no JSON; its text was taken as the lesson on this action"
ASKED = "What to write about"
"""The label in the prompt `layered.each` of the layer that is asked for."""

_PARTS = re.compile(rf'"({"|".join(LAYERS)})"\s*:\s*"((?:[^"\\]|\\.)*)')


class Layered:
    """Asks for all layers in one call, as JSON, or for each layer in a call of its own, as plain text.

    The lesson is checked as a whole, and asked for once more if it is faulty, like that of `verbal`. A layer that
    copies a worked example is left out if another one does not. With three calls only the tactical layer is asked for
    again.

    If an answer is not JSON, the gate asks once more. The layers that can be read in the second answer are taken, or
    all of it as the tactical layer, and a note says so.

    Args:
        output: what the attempts are: "text", "code", or actions in an "environment". Each has worked examples of its
            own.
        calls: 1 or 3.
        examples: a file of worked examples to show instead of the ones that ship; "" shows none. Its answers are JSON.
        window: how many earlier reflections the model is shown. None shows all.
        temperature: of the sampling.
        max_tokens: of one answer.
        tokens: what the attempt may take of the prompt.
        earlier: reflections on trials of the task before this episode, oldest first.
        quality: the score, 0 to 1, below which the lesson is asked for once more, with what is missing.
    """

    def __init__(
        self,
        *,
        model: Model,
        prompts: Prompts,
        output: Literal["text", "code", "environment"] = "text",
        calls: int = 1,
        examples: str | None = None,
        window: int | None = 3,
        temperature: float | None = 0.2,
        max_tokens: int = 400,
        tokens: int = TOKENS,
        earlier: Sequence[str] = (),
        quality: float = LEAST,
    ) -> None:
        if calls not in (1, len(LAYERS)):
            raise InvalidInput(f"layered: calls must be 1 (all layers at once) or {len(LAYERS)}, not {calls}.")
        newest((), window)  # refuses a window below 1 before anything is tried
        self._model, self._calls, self._least = _Readable(model), calls, least_quality(quality)
        self._earlier, self._window, self._tokens = tuple(map(Reflection, earlier)), window, tokens
        shown = f"layered.{output}.examples" if examples is None else examples
        worked = prompts.get(shown) if shown else None
        if calls == 1:
            self._prompt = prompts.get("layered.one").check(*SLOTS).with_examples(worked)
        else:
            self._prompt = prompts.get("layered.each").check(*SLOTS, *LAYERS, "lessons")
        self._examples = tuple(text for _, text in worked.parts) if worked else ()
        self._by_layer = {layer: _examples_of(worked, layer) for layer in LAYERS} if worked and calls > 1 else {}
        # With a schema there is no stop sequence, because a model may put its JSON into a fence.
        self._sampling = Sampling(temperature, max_tokens, stop=(FENCE,) if calls > 1 else ())

    async def reflect(self, episode: Episode) -> Reflection | None:
        sampling = replace(self._sampling, seed=episode.head.seed + len(episode.trials))
        if self._calls > 1:
            return await self._each(episode, sampling)

        def read(answer: Json, reason: str) -> Reflection:
            return self._drawn(episode, answer, reason)

        return await better_of_two(self._model, self.ask([episode]), sampling, read, self._least)

    async def _each(self, episode: Episode, sampling: Sampling) -> Reflection:
        def read(answer: Json, reason: str) -> Reflection:
            return self._checked(episode, {"tactical": _plain(answer)}, reason=reason)

        first = await better_of_two(self._model, self.ask([episode], "tactical"), sampling, read, self._least)
        layers = dict(first.layers)
        for layer in LAYERS[1:]:
            question = self.ask([episode], layer, layers)
            layers[layer] = _plain((await self._model.ask(question, sampling)).content)
        return self._checked(episode, layers)

    def ask(
        self, episodes: Sequence[Episode], layer: Layer | None = None, layers: Mapping[str, str] | None = None
    ) -> Question:
        """The question for all layers; or, with `calls = 3`, for one layer, given those that are already written."""
        (episode,) = episodes
        slots = seen(episode, self._earlier, self._window, self._tokens)
        if layer is None:
            return Question(self._prompt.render(**slots), SCHEMA)
        prompt = replace(self._prompt, examples=self._by_layer.get(layer, ()))
        written = reflections_text((layers or {}).values())
        return Question(prompt.render(**slots, lessons=written, **{layer: ASKED}))

    def take(self, episodes: Sequence[Episode], answer: Json) -> Reflection:
        """The lesson in an answer with all layers. A faulty one is marked as withheld."""
        (episode,) = episodes
        lesson = self._drawn(episode, answer)
        if not lesson.text:
            raise BadAnswer(EMPTY)
        return lesson

    def _drawn(self, episode: Episode, answer: Json, reason: str = "") -> Reflection:
        layers, note = _layers_in(answer)
        return self._checked(episode, layers, notes=(note,) if note else (), reason=reason)

    def _checked(
        self, episode: Episode, layers: Mapping[str, str], *, notes: tuple[str, ...] = (), reason: str = ""
    ) -> Reflection:
        """The lesson in these layers; empty and withheld if they are empty.

        reason: why a second lesson was asked for, which it may not copy.
        """
        about = "\n".join(trial_texts(episode))
        copies = [layer for layer, text in layers.items() if copied_share(text, self._examples, about) >= COPIED]
        if copies and len(copies) < len([text for text in layers.values() if text]):
            layers = {layer: text for layer, text in layers.items() if layer not in copies}
            notes = (*notes, f"left out, as it copies a worked example: the {' and the '.join(copies)} layer")
        lesson = Reflection.of_layers(layers, notes=notes)
        if not lesson.text:
            return Reflection("", withheld=EMPTY)
        earlier = [each.text for each in self._earlier]
        return checked(lesson, episode, examples=(*self._examples, reason), earlier=earlier)


class _Readable:
    """A model that returns an answer as text if it does not fit the schema of the question."""

    def __init__(self, model: Model) -> None:
        self._model, self.name, self.id = model, getattr(model, "name", ""), getattr(model, "id", "")

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        try:
            return await self._model.ask(question, sampling)
        except Unreadable as bad:
            return Answer(answer_of(bad.text), bad.model, bad.usage)


def _layers_in(answer: Json) -> tuple[dict[str, str], str]:
    """The layers in an answer, and a note if it was not the JSON that was asked for."""
    if isinstance(answer, dict):
        table = cast(dict[str, Json], answer)
        return {layer: _plain(table.get(layer)) for layer in LAYERS}, ""
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    if layers := {layer: _plain(_unquoted(quoted)) for layer, quoted in _PARTS.findall(text)}:
        return layers, BROKEN
    return {"tactical": _plain(text)}, PLAIN


def _unquoted(text: str) -> str:
    """The value of the inside of a JSON string, which may be incomplete."""
    try:
        return json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text


def _plain(value: Json) -> str:
    """A text up to its first code block; "" if the value is not text."""
    return value.partition(FENCE)[0].strip() if isinstance(value, str) else ""


def _examples_of(worked: Prompt, layer: Layer) -> tuple[tuple[str, str], ...]:
    """The worked examples with answers on this layer alone. Raises `InvalidInput` for an answer that is not JSON."""
    parts: list[tuple[str, str]] = []
    for role, text in worked.parts:
        try:
            parts.append((role, json.loads(text)[layer] if role == "assistant" else text))
        except (ValueError, KeyError, TypeError):
            raise InvalidInput(
                f"Prompt {worked.name}: each [[assistant]] must contain a JSON object with {', '.join(LAYERS)}."
            ) from None
    return tuple(parts)
