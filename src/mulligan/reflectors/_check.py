"""For reflectors that ask a model: checks what it wrote, and asks once more for a reflection that is faulty or low.

    answer → `checked(…)` → withheld, with a fault; or with its quality
    `better_of_two(…)` asks, reads, and asks once more where there is something to say against the first one

The rules are those of `text.reflections`. Recording rates a reflection that comes without a score: `recording.ledger`.
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
"""The score below which a reflection is asked for once more: design/074."""

OPINION: Json = object_schema(score={"type": "integer", "minimum": 0, "maximum": 10}, missing={"type": "string"})


def least_quality(given: float) -> float:
    """The threshold as it was given. Raises `InvalidInput` for one that no score can be compared with."""
    if not 0 <= given <= 1:
        raise InvalidInput(f"The minimum quality of a reflection must be from 0 (none required) to 1, not {given!r}.")
    return given


def checked(
    reflection: Reflection, episode: Episode, *, examples: Sequence[str] = (), earlier: Sequence[str] = ()
) -> Reflection:
    """The reflection on the newest trial with its quality, and withheld if it has a fault.

    Args:
        examples: worked examples that the model was shown.
        earlier: reflections from before this episode.
    """
    texts, before = (
        trial_texts(episode),
        (*earlier, *(each.text for each in episode.newest_reflections(MAX_EARLIER))),
    )
    said = {"trial": texts, "earlier": [text for text in before if text], "examples": examples}
    return replace(reflection, withheld=fault(reflection.text, **said), quality=quality_of(reflection.text, **said))


async def better_of_two(
    model: Model,
    question: Question,
    sampling: Sampling,
    read: Callable[[Json, str], Reflection],
    least: float = LEAST,
    judge: Callable[[Reflection], Awaitable[Reflection]] | None = None,
) -> Reflection:
    """Asks for a reflection, and once more if it is withheld or of low quality. One that stays low is marked.

    Args:
        read: makes the checked reflection of an answer; its second argument is why it was asked for once more, which is
            no lesson ("" the first time).
        least: the quality below which it is asked for once more.
        judge: adds the opinion of a model to the quality of a reflection that is not withheld: see `judged`.
    """

    async def drawn(question: Question, why: str) -> tuple[Json, Reflection]:
        answer = (await model.ask(question, sampling)).content
        reflection = read(answer, why)
        return answer, reflection if judge is None or reflection.withheld else await judge(reflection)

    answer, first = await drawn(question, "")
    why = _against(first, least)
    if not why:
        return first
    _, second = await drawn(asked_again(question, answer, why), why)
    return _marked(max(second, first, key=_worth), least)


async def judged(reflection: Reflection, model: Model, question: Question, seed: int) -> Reflection:
    """The reflection with a model's opinion as a part of its quality; unchanged, with a note, if there is none.

    Args:
        question: what `verbal.judge.md` asks.
    """
    answer: Any = (await model.ask(replace(question, schema=OPINION), Sampling(0.0, 150, seed))).content
    score: Any = cast(dict[str, Any], answer).get("score") if isinstance(answer, dict) else None
    if isinstance(score, bool) or not isinstance(score, int) or not 0 <= score <= 10:
        return replace(reflection, notes=(*reflection.notes, "the model that was to rate it gave no score"))
    parts: Mapping[str, float] = reflection.quality.parts if reflection.quality else {}
    quality = scored({**parts, "judged": score / 10})
    lacks = one_line(str(cast(dict[str, Any], answer).get("missing", "")), 200)
    return replace(reflection, quality=replace(quality, missing=(*quality.missing, *([lacks] if lacks else []))))


def _against(reflection: Reflection, least: float) -> str:
    """What speaks against the reflection, in sentences."""
    quality = reflection.quality
    if reflection.withheld or quality is None or quality.score >= least:
        return reflection.withheld
    return " ".join(quality.missing)


def _worth(reflection: Reflection) -> tuple[bool, bool, float]:
    score = reflection.quality.score if reflection.quality else 0.0
    return bool(reflection.text), not reflection.withheld, score


def _marked(reflection: Reflection, least: float) -> Reflection:
    quality = reflection.quality
    if reflection.withheld or quality is None or quality.score >= least:
        return reflection
    note = f"quality {quality.score:.2f}, below {least:g}, asked for twice: {' '.join(quality.missing)}"
    return replace(reflection, notes=(*reflection.notes, note))
