"""Takes the evaluator's feedback as the lesson, word for word. No model is asked."""

from __future__ import annotations

from mulligan.core.records import Episode, Reflection


class FeedbackAsLesson:
    """Serves evaluators that say what to improve, with strategies that show lessons but no attempts."""

    async def reflect(self, episode: Episode) -> Reflection | None:
        said = episode.trials[-1].feedback
        return Reflection(said.text.strip() if said else "")
