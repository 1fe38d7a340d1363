"""What the evaluator said is the lesson, word for word: no model is asked."""

from __future__ import annotations

from mulligan.core.records import Episode, Reflection


class FeedbackAsLesson:
    """For an evaluator that says what to improve, where a strategy shows lessons and not attempts."""

    async def reflect(self, episode: Episode) -> Reflection | None:
        said = episode.trials[-1].feedback
        return Reflection(said.text.strip() if said else "")
