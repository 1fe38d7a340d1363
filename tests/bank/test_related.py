"""Related strategies are found as groups, become one rule with lineage, and come back."""

from pathlib import Path
from typing import Any

import pytest
from banks import a_bank

from mulligan import ScriptedModel
from mulligan.core.errors import InvalidInput
from mulligan.core.questions import Question, Sampling

RELATED = [
    ("Count pages", "Go through all the pages of the list before you count its entries."),
    ("Sum pages", "Go through all the pages of the list before you sum its entries."),
    ("Sort pages", "Go through all the pages of the list before you sort its entries."),
]
OTHER = ("Another matter", "Nothing that has to do with it.")
RULE = {
    "reasoning": "All read every page first.",
    "title": "Read all pages first",
    "description": "Whenever a list has several pages.",
    "content": "Go through every page of a list before you do anything with its entries.",
    "query": "Work with the entries of a list.",
    "abstraction_level": 1,
}


async def test_a_group_becomes_a_rule_and_comes_back(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", settings={"auto_merge": False}) as bank:
        ids = [(await bank.add(*lesson)).id for lesson in RELATED]
        await bank.add(*OTHER)
        await bank.add(
            RELATED[0][0], "Go through all the pages of the list before you drop its entries.", outcome="failure"
        )
        await bank.add("Pages", "Go through all the pages of the list before you print its entries.", kind="printing")
        await bank.work()
        (group,) = await bank.related()
        assert sorted(one.id for one in group) == sorted(ids)
        assert len(await bank.list()) == 6, "nothing has changed"
        learned = await bank.merge([one.id for one in group], answer=RULE)
        rule = await bank.get(learned.lessons[0])
        assert (rule.title, sorted(rule.origin.parents)) == ("Read all pages first", sorted(ids))
        assert rule.context["abstraction_level"] == 1
        assert list(await bank.related()) == []
        assert sorted(await bank.unmerge(rule.id)) == sorted(ids)
        await bank.work()
        assert len(await bank.related()) == 1


@pytest.mark.parametrize(("given", "warmth"), [({}, 0.7), ({"temperature": 0.2}, 0.2)])
async def test_the_merge_is_as_warm_as_its_setting_says(tmp_path: Path, given: dict[str, Any], warmth: float) -> None:
    asked = list[float | None]()

    def answer(question: Question, sampling: Sampling) -> Any:
        asked.append(sampling.temperature)
        return RULE if len(asked) > 1 else {}

    settings = {"auto_merge": False, "merging": {"name": "llm", **given}}
    async with a_bank(tmp_path / "m.db", model=ScriptedModel(answer), embedder="none", settings=settings) as bank:
        ids = [(await bank.add(*lesson)).id for lesson in RELATED]
        assert (await bank.merge(ids)).lessons
    assert asked == [warmth, warmth], "the answer that could not be used is asked for again"


async def test_a_merge_of_no_temperature_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="temperature must be from 0 to 2"):
        async with a_bank(tmp_path / "m.db", settings={"merging": {"name": "llm", "temperature": 2.5}}):
            pass


@pytest.mark.parametrize("given", [{"similarity": 0.0}, {"similarity": 1.5}, {"least": 1}])
async def test_settings_that_cannot_work_are_refused(tmp_path: Path, given: dict[str, float]) -> None:
    async with a_bank(tmp_path / "m.db") as bank:
        with pytest.raises(InvalidInput, match="For related lessons"):
            await bank.related(**given)  # pyright: ignore[reportArgumentType]
