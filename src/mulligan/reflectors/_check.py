"""Shared by reflectors that ask a model: check a reflection, and ask once more if it is faulty or of low quality.

`checked` withholds a reflection with a fault, and rates it. `better_of_two` asks for a reflection, and once more if
there is something to object to the first one. The rules are in `text.reflections`; `recording.ledger` rates all others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Model
from mulligan.core.questions import Question, Sampling, asked_again, object_schema
from mulligan.core.records import Episode, Json, Reflection
from mulligan.text.plain import one_line
from mulligan.text.reflections import MAX_EARLIER, fault, quality_of, scored, trial_texts

LEAST = 0.25
"""The default score below which a second reflection is asked for: design/074."""

OPINION: Json = object_schema(score={"type": "integer", "minimum": 0, "maximum": 10}, missing={"type": "string"})


def least_quality(given: float) -> float:
    """Returns the threshold. Raises `InvalidInput` unless it is from 0 to 1."""
    if not 0 <= given <= 1:
        raise InvalidInput(f"The minimum quality of a reflection must be from 0 (none required) to 1, not {given!r}.")
    return given


def checked(
    reflection: Reflection, episode: Episode, *, examples: Sequence[str] = (), earlier: Sequence[str] = ()
) -> Reflection:
    """The reflection on the newest trial with its quality, and withheld if it has a fault.

    Args:
        examples: Worked examples that the model was shown.
        earlier: Reflections from before this episode.
    """
    before = (*earlier, *(each.text for each in episode.newest_reflections(MAX_EARLIER)))
    texts = {"trial": trial_texts(episode), "earlier": list(filter(None, before)), "examples": examples}
    return replace(reflection, withheld=fault(reflection.text, **texts), quality=quality_of(reflection.text, **texts))


async def better_of_two(
    model: Model,
    question: Question,
    sampling: Sampling,
    read: Callable[[Json, str], Reflection],
    least: float = LEAST,
    judge: Callable[[Reflection], Awaitable[Reflection]] | None = None,
) -> Reflection:
    """Asks for a reflection, and once more if it is withheld or of low quality. Returns the better one.

    If that is still of low quality, a note says so.

    Args:
        read: Returns the checked reflection in an answer. Its second argument is the objection to the first reflection,
            which the second one may not repeat; "" the first time.
        least: The quality below which a second reflection is asked for.
        judge: Adds the opinion of a model to the quality of a reflection that is not withheld: see `judged`.
    """

    async def ask(question: Question, objection: str) -> tuple[Json, Reflection]:
        answer = (await model.ask(question, sampling)).content
        reflection = read(answer, objection)
        return answer, reflection if judge is None or reflection.withheld else await judge(reflection)

    answer, first = await ask(question, "")
    objection = _objection(first, least)
    if not objection:
        return first
    _, second = await ask(asked_again(question, answer, objection), objection)
    return _with_low_quality_note(max(second, first, key=_rank), least)


async def judged(reflection: Reflection, model: Model, question: Question, seed: int) -> Reflection:
    """The reflection with a model's score as a part of its quality. Without a score, a note says so.

    question: The prompt `verbal.judge.md`.
    """
    answer: Any = (await model.ask(replace(question, schema=OPINION), Sampling(0.0, 150, seed))).content
    score: Any = cast(dict[str, Any], answer).get("score") if isinstance(answer, dict) else None
    if isinstance(score, bool) or not isinstance(score, int) or not 0 <= score <= 10:
        return replace(reflection, notes=(*reflection.notes, "the model that was to rate it gave no score"))
    parts: Mapping[str, float] = reflection.quality.parts if reflection.quality else {}
    quality = scored({**parts, "judged": score / 10})
    lacks = one_line(str(cast(dict[str, Any], answer).get("missing", "")), 200)
    return replace(reflection, quality=replace(quality, missing=(*quality.missing, *([lacks] if lacks else []))))


def _objection(reflection: Reflection, least: float) -> str:
    """Why the reflection is withheld, or what it lacks; "" if it is good enough."""
    quality = reflection.quality
    if reflection.withheld or quality is None or quality.score >= least:
        return reflection.withheld
    return " ".join(quality.missing)


def _rank(reflection: Reflection) -> tuple[bool, bool, float]:
    score = reflection.quality.score if reflection.quality else 0.0
    return bool(reflection.text), not reflection.withheld, score


def _with_low_quality_note(reflection: Reflection, least: float) -> Reflection:
    quality = reflection.quality
    if reflection.withheld or quality is None or quality.score >= least:
        return reflection
    note = f"quality {quality.score:.2f}, below {least:g}, asked for twice: {' '.join(quality.missing)}"
    return replace(reflection, notes=(*reflection.notes, note))
