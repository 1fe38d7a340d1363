"""What a new user of the bank ran into: failures of models, answers asked for twice, and values of the wrong kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from banks import a_bank, an_episode, lessons_of

import mulligan
from mulligan import ScriptedModel
from mulligan.core.errors import BadAnswer, InvalidInput, ModelError, NotFound

LEARNED = lessons_of(("Whole history", "Open the full history."))


async def test_an_episode_is_learned_from_after_its_model_was_down(tmp_path: Path) -> None:
    episode = an_episode("e1", "Find it", "done")
    async with a_bank(tmp_path / "m.db", model=ScriptedModel([ModelError("down"), LEARNED])) as bank:
        with pytest.raises(ModelError, match="down"):
            await bank.learn(episode)
        (left,) = await bank.pending()
        assert (left.status, left.error) == ("waiting", "down")
        assert len((await bank.learn(episode)).lessons) == 1
        assert not [one for one in await bank.pending() if one.kind == "extract"]


async def test_an_empty_id_is_not_the_beginning_of_the_only_lesson(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        await bank.add("A", "One thing.")
        for change in (bank.get(""), bank.retire(""), bank.history(""), bank.purge([""])):
            with pytest.raises(NotFound):
                await change
        assert [lesson.state for lesson in await bank.list()] == ["active"]


async def test_the_sign_for_all_banks_is_no_name_of_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="agent_id must be the name of one agent"):
        a_bank(tmp_path / "m.db", "*")
    with pytest.raises(InvalidInput, match="bank must be the name of one agent"):
        await mulligan.solve("Say a.", model=ScriptedModel([]), judge=bool, bank="*")
    with pytest.raises(InvalidInput, match="bank must be the name of one agent"):
        mulligan.retry(bank="*")(str.upper)


@pytest.mark.parametrize("answers", [[{"x": 1}, {"x": 2}], [ModelError("down")]])
async def test_a_merge_that_its_model_cannot_make_has_failed(tmp_path: Path, answers: list[Any]) -> None:
    async with a_bank(tmp_path / "m.db", embedder="none", model=ScriptedModel(answers)) as bank:
        first, second = await bank.add("A", "One thing."), await bank.add("B", "Another thing.")
        with pytest.raises((BadAnswer, ModelError)) as raised:
            await bank.merge([first.id, second.id])
        (left,) = await bank.pending()
        assert (left.kind, left.status, left.error) == ("merge", "failed", str(raised.value))
        assert len(await bank.list()) == 2


async def test_a_merge_that_is_asked_for_again_is_the_same_work(tmp_path: Path) -> None:
    answer = {"title": "AB", "description": "When.", "content": "Both.", "reasoning": "", "abstraction_level": 1}
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        ids = [(await bank.add("A", "One thing.")).id, (await bank.add("B", "Another thing.")).id]
        asked = await bank.merge(ids)
        assert (await bank.merge(ids)).work == asked.work
        with pytest.raises(BadAnswer):
            await bank.merge(ids, answer={"x": 1})
        merged = await bank.merge(ids, answer=answer | {"query": "Do both", "tags": [], "kind": ""})
        assert merged.work == asked.work
        assert await bank.pending() == ()
        await bank.unmerge(merged.lessons[0])
        assert (await bank.merge(ids)).work != asked.work


async def test_a_merged_lesson_is_found_by_the_tasks_of_all_its_lessons(tmp_path: Path) -> None:
    answer = {"title": "AB", "description": "When.", "content": "Both.", "reasoning": "", "abstraction_level": 1}
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        first = await bank.add("A", "One thing.", query="Sum the invoices")
        assert (await bank.add("A", "One thing.", query="Convert the currencies")).id == first.id
        second = await bank.add("B", "Another thing.", query="Round the prices")
        merged = await bank.merge([first.id, second.id], answer=answer | {"query": "Round the prices", "kind": ""})
        assert (await bank.get(merged.lessons[0])).other_queries == ("Sum the invoices", "Convert the currencies")
        recalled = await bank.recall("Convert the currencies")
        assert [one.id for one in recalled.lessons] == list(merged.lessons)


async def test_skip_still_counts_what_is_equal(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", settings={"near_duplicates": "skip"}) as bank:
        first = await bank.add("Whole history", "Open the full history.")
        again = await bank.add("whole history", "Open  the full history.")
        assert (again.id, again.support) == (first.id, 2)


WRONG: list[dict[str, Any]] = [
    *({"title": 5}, {"title": None}, {"confidence": "high"}, {"confidence": True}, {"tags": "abc"}, {"tags": [1]}),
    *({"context": 5}, {"context": [1]}, {"query": None}, {"kind": 1}, {"content": " "}, {"outcome": "good"}),
]


@pytest.mark.parametrize("change", WRONG)
async def test_a_field_of_the_wrong_kind_is_reported(tmp_path: Path, change: dict[str, Any]) -> None:
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        lesson = await bank.add("A", "One thing.", tags=["x"])
        with pytest.raises(InvalidInput, match=next(iter(change))):
            await bank.edit(lesson.id, **change)
        draft: dict[str, Any] = {"title": "B", "content": "Another thing.", **change}
        with pytest.raises(InvalidInput):
            await bank.add(**draft)
        assert await bank.list() == (await bank.get(lesson.id),)
        assert (await bank.edit(lesson.id, title=" B ", tags=["y"])).title == "B"


@pytest.mark.parametrize("at", ["2026-01-31", float("nan"), float("inf"), True])
async def test_a_time_that_is_none_is_reported(tmp_path: Path, at: Any) -> None:
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        await bank.add("A", "One thing.")
        for call in (lambda: bank.recall("a thing", as_of=at), lambda: bank.as_of(at)):
            with pytest.raises(InvalidInput, match="seconds since the epoch"):
                await call()


async def test_what_was_known_then_is_given_as_it_was_said_then(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        lesson = await bank.add("Whole history", "Open the full history.")
        then = (await bank.history(lesson.id))[0].at
        await bank.edit(lesson.id, title="Zebras", content="Look for stripes.")
        await bank.retire(lesson.id)
        recall = await bank.recall("the full history", threshold=0, as_of=then)
        assert [one.content for one in recall.lessons] == ["Open the full history."]
        assert "> Open the full history." in recall.formatted_prompt
        assert (await bank.recall("the full history", threshold=0)).lessons == ()


async def test_a_success_that_is_not_an_answer_is_reported(tmp_path: Path) -> None:
    said: Any = "no"
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        with pytest.raises(InvalidInput, match="success must be True, False or None"):
            await bank.learn(an_episode("e1", "Find it", "done"), success=said)
        assert await bank.pending() == ()
