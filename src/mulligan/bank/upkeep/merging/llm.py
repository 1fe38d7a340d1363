"""A model generalises similar lessons into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mulligan.bank.learn.extraction import DESCRIPTION, TEXTS, lesson_from, object_of, text_of
from mulligan.bank.upkeep.merging._groups import checked, group, one_lesson, origin_of, tags_of
from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.protocols import Prompts
from mulligan.core.questions import Question, Sampling, object_schema
from mulligan.core.records import Json, Lesson
from mulligan.text.formatting import labelled
from mulligan.text.truncate import truncate_text

LEVELS = (0, 1, 2)
SCHEMA: Json = object_schema(
    reasoning={"type": "string"},
    **TEXTS,
    query={"type": "string"},
    abstraction_level={"type": "integer", "enum": list(LEVELS)},
)


class Llm:
    """A model writes one lesson in place of several similar ones. `sampling` is how to ask it.

    The merged lesson has the support of all of them; `context` holds its abstraction_level: 0 (the same advice), 1 (a
    rule for this kind of task) or 2 (a principle beyond it). Raises `InvalidInput` for settings that cannot work and
    lessons that may not be merged.

    Args:
        min_similar_count: how many must be alike, the new one included, before they are merged automatically.
        similarity_threshold: cosine from which they count as alike.
        mixed: whether successes and failures may become one lesson, which then has the tag "mixed" and is one of
            success.
        min_success_share: the share of successes that a mixed group needs.
        temperature: of the model's answer, 0 to 2.
    """

    def __init__(
        self,
        *,
        prompts: Prompts,
        min_similar_count: int = 3,
        similarity_threshold: float = 0.85,
        mixed: bool = False,
        min_success_share: float = 0.6,
        tokens: int = 6000,
        temperature: float = 0.7,
    ) -> None:
        checked("llm", min_similar_count, similarity_threshold)
        if not 0 <= min_success_share <= 1:
            raise InvalidInput(f"llm: min_success_share must be from 0 to 1, not {min_success_share}.")
        if not 0 <= temperature <= 2:
            raise InvalidInput(f"llm: temperature must be from 0 to 2, not {temperature}.")
        self.sampling = Sampling(temperature)
        self._prompt = prompts.get("llm.merge").check("lessons", "mixed")
        self._least, self._threshold = min_similar_count, similarity_threshold
        self._mixed, self._share, self._tokens = mixed, min_success_share, tokens

    def group(self, lesson: Lesson, alike: Sequence[tuple[Lesson, float]]) -> Sequence[Lesson]:
        return group(lesson, alike, least=self._least, threshold=self._threshold, mixed=self._mixed, share=self._share)

    def ask(self, lessons: Sequence[Lesson]) -> Question | None:
        both = one_lesson(lessons, least=2, mixed=self._mixed, name="llm")
        each = self._tokens // len(lessons)
        shown = [
            labelled(f"Lesson {number}, of {lesson.outcome}", truncate_text(_text(lesson), each))
            for number, lesson in enumerate(lessons, 1)
        ]
        mixed = "Some of these are lessons of success and some of failure: the rule says both sides." if both else ""
        return Question(self._prompt.render(lessons="\n\n".join(shown), mixed=mixed), SCHEMA)

    def take(self, lessons: Sequence[Lesson], answer: Json) -> Lesson:
        both = one_lesson(lessons, least=2, mixed=self._mixed, name="llm")
        table = object_of(answer, "The merged lesson")
        if len(missing := [name for name in (*TEXTS, "query", "abstraction_level") if name not in table]) > 1:
            raise BadAnswer(f"The merged lesson has no {', '.join(missing[:-1])} and {missing[-1]}.")
        draft = lesson_from(answer, "The merged lesson")
        level = table.get("abstraction_level")
        if isinstance(level, bool) or level not in LEVELS:
            raise BadAnswer(f'"abstraction_level" must be 0, 1 or 2, not {level!r:.40}.')
        kinds = {lesson.kind for lesson in lessons}
        return replace(
            draft,
            outcome="success" if both else lessons[0].outcome,
            query=text_of(table, "query", DESCRIPTION, "The merged lesson"),
            origin=origin_of(lessons),
            confidence=sum(lesson.confidence for lesson in lessons) / len(lessons),
            support=sum(lesson.support for lesson in lessons),
            tags=tags_of(lessons, both),
            kind=kinds.pop() if len(kinds) == 1 else "",
            nature="strategy",
            context={"abstraction_level": int(level)},
        )


def _text(lesson: Lesson) -> str:
    return "\n".join(part for part in (lesson.title, lesson.description, lesson.content) if part.strip())
