"""The shop as an environment: pages, clicks, and what is no action."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.bench.webshop.environments.webshop import CATALOGUE, WebShop, read_action
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Environment
from mulligan.core.records import Outcome

MUG = ("search[hand glazed coffee mug]", "click[MUG01]", "click[slate blue]", "click[450 ml]")


async def observed(shop: WebShop, actions: Sequence[str]) -> list[str]:
    await shop.reset()
    return [(await shop.step(action)).observation for action in actions]


async def test_the_way_to_a_purchase() -> None:
    shop = WebShop(goal="mug")
    assert isinstance(shop, Environment)
    first = await shop.reset()
    assert first.startswith("WebShop\nInstruction: I would like a dishwasher safe coffee mug")
    results, item, color, size = [(await shop.step(action)).observation for action in MUG]
    assert results.splitlines()[:5] == [
        "[Back to Search]",
        "Page 1 of 1 (total results: 4)",
        "[MUG01]",
        "Talbrook Stoneware Coffee Mug",
        "$14.50",
    ]
    assert "color: [moss green] [oat] [slate blue]" in item
    assert (color, size) == ("color: slate blue is chosen.", "size: 450 ml is chosen.")
    bought = await shop.step("click[Buy Now]")
    assert bought.outcome == Outcome(1.0, done=True)
    after = await shop.step("click[Buy Now]")
    assert after.outcome == Outcome(1.0, done=True)
    assert after.observation == "The shopping is over: something was bought."
    assert await shop.reset() == first


async def test_what_was_chosen_is_shown_on_the_page_and_forgotten_with_it() -> None:
    _, _, _, about, item, _, again = await observed(
        WebShop(goal="mug"),
        [*MUG[:3], "click[Features]", "click[< Prev]", "click[< Prev]", "click[mug01]"],
    )
    assert about == "[Back to Search] [< Prev]\n- Dishwasher safe\n- Hand glazed, so no two are alike"
    assert "[slate blue] (chosen: slate blue)" in item
    assert "chosen" not in again


async def test_results_come_in_pages_that_can_be_turned() -> None:
    shop = WebShop(goal="mug", results=25)
    pages = await observed(shop, ["search[color black]", *["click[Next >]"] * 3, *["click[< Prev]"] * 3])
    assert [page.split("\n")[1] for page in pages[:3]] == [f"Page {n} of 3 (total results: 25)" for n in (1, 2, 3)]
    ids = [line for page in pages[:3] for line in page.splitlines() if line[:1] == "[" and line[4:6].isdigit()]
    assert len(ids) == len(set(ids)) == 25
    assert pages[3].startswith("Invalid action! Here you can click: [Back to Search] [< Prev] [")
    assert pages[4:6] == [pages[1], pages[0]]
    assert pages[6].startswith("Invalid action! Here you can click: [Back to Search] [Next >] [")


async def test_the_same_search_gives_the_same_results() -> None:
    actions = ["search[dimmable lamp with eu plug]"]
    assert await observed(WebShop(goal="mug"), actions) == await observed(WebShop(goal="lamp"), actions)


@pytest.mark.parametrize(
    ("actions", "says"),
    [
        (["buy it"], "search[words]"),
        (["click[MUG01]"], "Nothing can be clicked"),
        (["search[]"], "search[words]"),
        (["search[mug]", "search[lamp]"], "[Back to Search]"),
        (["search[mug]", "click[LMP01]"], "[MUG04]"),
        (["search[mug]", "click[MUG01]", "click[pink]"], "[moss green] [oat] [slate blue]"),
        (["search[mug]", "click[MUG01]", "click[Description]", "click[Buy Now]"], "[Back to Search] [< Prev]."),
        (["search[mug]", "click[MUG04]", "click[Reviews]"], "[Description] [Features] [Buy Now]"),
    ],
)
async def test_what_means_nothing_is_answered_with_what_can_be_done(actions: list[str], says: str) -> None:
    answer = (await observed(WebShop(goal="mug"), actions))[-1]
    assert answer.startswith("Invalid action! ")
    assert says in answer


async def test_a_search_that_finds_nothing_leads_back() -> None:
    nothing, front, found = await observed(
        WebShop(goal="mug"), ["search[zzz qqq]", "click[back to search]", "Action: Search[ coffee   mug ]"]
    )
    assert nothing == "[Back to Search]\nNo product was found for this search."
    assert front.endswith("[Search]")
    assert "[MUG01]" in found


async def test_a_thought_changes_nothing() -> None:
    shop = WebShop(goal="mug")
    await shop.reset()
    step = await shop.step("think[Which one is hand glazed?]")
    assert (step.observation, step.outcome) == ("OK.", Outcome(0.0))


async def test_no_page_tells_what_is_hidden() -> None:
    """The goal's product is shown like any other, and its attributes nowhere but where the shop says them."""
    goals = json.loads(CATALOGUE.read_text())["goals"]
    for goal in goals:
        shop = WebShop(goal=goal["id"])
        front = await shop.reset()
        assert goal["product"] not in front
        seen = [(await shop.step(f"search[{goal['product']}]")).observation]
        seen.append((await shop.step("nonsense")).observation)
        assert goal["product"] not in "".join(seen)  # an id is no word of a page: it finds nothing


@given(st.lists(st.text(max_size=40) | st.sampled_from([*MUG, "click[Buy Now]", "click[Back to Search]"]), max_size=8))
async def test_no_action_ever_raises(actions: list[str]) -> None:
    shop = WebShop(goal="mug")
    await shop.reset()
    for action in actions:
        step = await shop.step(action)
        assert step.action == action
        assert step.observation
        assert step.outcome is not None
        assert 0 <= (step.outcome.reward or 0) <= 1


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1).filter(str.strip)


@given(st.sampled_from(["search", "click", "think"]), st.lists(WORDS, min_size=1), st.booleans(), st.text(" \t\n"))
def test_an_action_is_read_however_it_is_spaced(kind: str, words: list[str], prefix: bool, space: str) -> None:
    written = f"{space}{'Action: ' if prefix else ''}{kind.upper()}{space}[{space}{'  '.join(words)}{space}]{space}"
    assert read_action(written) == (kind, " ".join(" ".join(words).split()))


@given(st.text())
def test_text_without_brackets_is_no_action(text: str) -> None:
    assert read_action(text.replace("[", "(")) is None


async def test_what_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no goal 'mugs'"):
        await WebShop(goal="mugs").reset()
    with pytest.raises(InvalidInput, match="at least 1"):
        WebShop(goal="mug", page=0)
    file = tmp_path / "shop.json"
    file.write_text("{", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"shop\.json is not valid JSON"):
        await WebShop(goal="mug", files=[str(file)]).reset()
    with pytest.raises(InvalidInput, match=r"The shop cannot be read: .*gone\.json"):
        await WebShop(goal="mug", files=[str(tmp_path / "gone.json")]).reset()
