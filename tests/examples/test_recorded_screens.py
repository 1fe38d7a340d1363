"""The example of an agent on recorded screens, with a scripted model."""

import asyncio
from pathlib import Path

import mulligan
from mulligan.models.scripted import ScriptedModel
from mulligan.store import open_store
from mulligan.text.evidence import TaskFeedback

PHONE = Path(__file__).parents[2] / "examples" / "screens" / "phone.py"
FIRST = ["tap[Shop]", "tap[Mute offers]", "done"]
LESSON = "I muted offers in Shop, and orders still notify; next time I go to Settings, Apps, and switch Shop off there."
SECOND = ["tap[Settings]", "tap[Apps]", "switch[Shop]", "done"]


def test_the_second_trial_finds_the_right_switch() -> None:
    model = ScriptedModel([*FIRST, LESSON, *SECOND])

    async def solved() -> mulligan.Episode:
        async with open_store("memory:") as store:
            return await mulligan.solve(
                "Turn off all notifications of the shop.", environment=str(PHONE), model=model, store=store, trials=2
            )

    episode = asyncio.run(solved())
    assert episode.solved
    assert [len(trial.attempt.steps) for trial in episode.trials] == [4, 5]
    said = TaskFeedback.from_feedback(episode.trials[0].feedback)
    assert said is not None
    assert (said.error_type, said.actual_state) == ("wrong_state", "Shop: offers are muted, orders still notify")
    assert said.after == episode.trials[0].attempt.steps[-1].images[0]
    assert len(model.questions[len(FIRST)].messages[-1].images) == 2
