"""Lessons by layer: what extraction takes over from reflections, and what a recall gives for which task."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from banks import a_bank
from inline_snapshot import snapshot

from mulligan.app.prompts import FilePrompts
from mulligan.bank.bank import Bank
from mulligan.bank.learn.extraction import Extractor
from mulligan.bank.recall.index import Indexes
from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.lessons import Selection
from mulligan.core.records import Attempt, Episode, Feedback, Lesson, Recall, Reflection, Stop, Task, Trial
from mulligan.store import open_store

LAYERED = Reflection.of_layers(
    {
        "tactical": "Year 2023 was taken.",
        "strategic": "Sort the orders first.",
        "metacognitive": "You take what is near.",
    }
)
FAILED = Trial(1, Attempt("2023"), Feedback(False, "Too late."), LAYERED)
EPISODE = Episode(
    "e.1",
    Task("Find the first order."),
    trials=(FAILED, Trial(2, Attempt("2020"), Feedback(True))),
    stop=Stop("solved"),
)
PLAIN = replace(EPISODE, trials=(replace(FAILED, reflection=Reflection("Sort them.")), EPISODE.trials[1]))
PROMPTS = FilePrompts()


def lesson(**changed: Any) -> dict[str, Any]:
    texts = {"title": "Look further", "description": "Always.", "content": "See all before you choose."}
    return {"steps": [1], **texts, "tags": [], "kind": "", **changed}


def answer(*lessons: Any) -> dict[str, Any]:
    return {"why": "It sorted.", "lessons": list(lessons), "nothing_because": ""}


def test_the_model_sees_the_layers_and_names_that_of_each_lesson() -> None:
    question = Extractor(PROMPTS, success=True).ask([EPISODE])
    asked = question.messages[-1].text
    shown = asked[asked.index("What the agent wrote") : asked.index("Answer with")]
    assert shown == snapshot("""\
What the agent wrote of it itself, by layer. Give each lesson its "layer", too: "tactical" for one about
a single action, which holds in tasks of this kind; "strategic" for one about the plan of such a task; "metacognitive"
for one about a habit of the agent, worded so that it can be followed in a task of any kind:
```
On single actions:
- Year 2023 was taken.
On the plan:
- Sort the orders first.
On habits:
- You take what is near.
```

""")
    assert "layer" in question.schema["properties"]["lessons"]["items"]["required"]


@pytest.mark.parametrize(
    "episode", [PLAIN, replace(EPISODE, trials=(replace(FAILED, reflection=replace(LAYERED, withheld="no")),))]
)
def test_without_layers_nobody_asks_for_them(episode: Episode) -> None:
    question = Extractor(PROMPTS, success=True).ask([episode])
    assert "layer" not in question.messages[-1].text
    assert "layer" not in question.schema["properties"]["lessons"]["items"]["required"]


def test_a_lesson_keeps_its_layer_and_a_fact_has_none() -> None:
    fact = lesson(title="`orders` is sorted", content="`orders` is sorted by year.", nature="fact", layer="tactical")
    extractor = Extractor(PROMPTS, success=True)
    taken = extractor.take([EPISODE], answer(lesson(layer="metacognitive"), fact, lesson(content="Other.")))
    assert [(one.nature, one.layer) for one in taken.lessons] == [
        ("strategy", "metacognitive"),
        ("fact", ""),
        ("strategy", ""),
    ]
    with pytest.raises(BadAnswer, match="tactical, strategic or metacognitive, not 'habit'"):
        extractor.take([EPISODE], answer(lesson(layer="habit")))


TASK = "Parse the date with a calendar, then compare."
ABOUT = "Parse the date with the {} calendar, then compare."


async def titles(bank: Bank, task: Task | str, **asked: Any) -> list[str]:
    return [one.title for one in (await bank.recall(task, **asked)).lessons]


async def test_a_habit_is_recalled_for_any_task_within_the_bound(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        for habit in ("hasty", "vague", "proud"):
            await bank.add(habit, f"You are {habit}.", layer="metacognitive")
        assert await titles(bank, "Bake bread.") == ["proud", "vague"]  # the newest
        assert (await titles(bank, "Do not be hasty."))[0] == "hasty"
        for name in ("julian", "lunar", "solar"):
            await bank.add(name, ABOUT.format(name))
        assert await titles(bank, TASK, top_k=3) == ["julian", "lunar", "proud"]  # the last place of several
        assert await titles(bank, TASK, top_k=1) == ["julian"]
        assert len(await titles(bank, TASK, top_k=5)) == 5
        recall = await bank.recall("Bake bread.")
        assert "Lesson 1 (from a success; on a habit):" in recall.formatted_prompt
        assert recall.filtered == 3  # habits are not among those held back


async def test_a_tactical_lesson_needs_words_or_a_kind_that_fit(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", embedder="hash") as bank:
        await bank.add("greet", "Hail neighbours.", layer="tactical", kind="Billing")
        await bank.add("dates", ABOUT.format("julian"), layer="tactical", kind="reports")
        everything = titles_of(await bank.recall(TASK, threshold=0.0, top_k=9))
        assert everything == {"greet", "dates"}
        assert titles_of(await bank.recall(TASK, threshold=0.5, top_k=9)) == {"dates"}


def titles_of(recall: Recall) -> set[str]:
    return {one.title for one in recall.lessons}


def test_what_is_tactical_stays_where_the_kind_or_the_words_fit() -> None:
    lessons = [
        Lesson("a", "dates", ABOUT.format("julian"), "success", layer="tactical"),
        Lesson("b", "greet", "Hail neighbours.", "success", layer="tactical", kind="Billing"),
        Lesson("c", "plan", "Hail neighbours.", "success", layer="strategic"),
    ]
    _, others, habits = Indexes(open_store("memory:").memory.lessons).once(lessons).by_nature(TASK, None, 0.0, "")
    assert list(habits.ids) == []
    assert list(others.fitting(0.5, "").ids) == ["a", "c"]
    assert list(others.fitting(0.5, "billing").ids) == ["a", "b", "c"]


async def test_lessons_are_listed_by_layer(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        await bank.add("habit", "You hurry.", layer="metacognitive")
        await bank.add("plain", "Parse first.")
        assert [one.title for one in await bank.list(Selection(layer="metacognitive"))] == ["habit"]
        with pytest.raises(InvalidInput, match="layer must be tactical"):
            await bank.edit((await bank.list())[0].id, layer="deep")


async def test_a_merged_lesson_has_the_layer_that_all_had(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        ids = [(await bank.add(f"t{n}", f"You hurry {n}.", layer="metacognitive")).id for n in (1, 2, 3)]
        ids.append((await bank.add("t4", "You hurry 4.", layer="strategic")).id)
        rule = {**lesson(title="Slow down"), "query": "Any task.", "abstraction_level": 1}
        (same,) = (await bank.merge(ids[:2], answer=rule)).lessons
        (mixed,) = (await bank.merge(ids[2:], answer={**rule, "content": "Slow down a little."})).lessons
        assert [(await bank.get(id)).layer for id in (same, mixed)] == ["metacognitive", ""]
