"""Kinds that are found: clusters of the tasks that a bank has seen, kept, given to later tasks and lessons, undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from banks import a_bank, an_episode
from hypothesis import given
from hypothesis import strategies as st

from mulligan import Bank, ScriptedModel
from mulligan.app.solve import resume, solve
from mulligan.bank.kinds.clusters import clusters
from mulligan.bank.kinds.names import named_by_words
from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.lessons import KindMap, Selection
from mulligan.core.records import Episode, KindOrigin, Task
from mulligan.store import open_store

DATES = tuple(f"Parse the date {day} with the calendar of the office." for day in ("one", "two", "three", "four"))
BILLS = tuple(f"Add the tax to the invoice for {who} and send it." for who in ("Ann", "Bob", "Cid", "Dan"))
TASKS = (*DATES, *BILLS)


async def filled(folder: Path, agent_id: str = "", tasks: tuple[str, ...] = TASKS, **given: Any) -> Bank:
    bank = a_bank(folder / "m.db", agent_id, **given)
    for n, task in enumerate(tasks):
        await bank.add(f"Lesson {n} of {agent_id}", f"Do it in the way number {n}.", query=task)
    return bank


def kinds_of(several: Any) -> dict[str, frozenset[str]]:
    return {kind.name: frozenset(kind.tasks) for kind in several.kinds}


# --- clusters and names -------------------------------------------------------------------------------------------

angles = st.lists(st.floats(0, 6.28), min_size=2, max_size=25)


def on_circle(several: list[float]) -> Any:
    return np.asarray([[np.cos(angle), np.sin(angle)] for angle in several])


@given(angles, st.floats(0.05, 1), st.integers(1, 3))
def test_a_row_is_in_one_cluster_at_most_and_no_cluster_is_too_small(
    several: list[float], alike: float, least: int
) -> None:
    vectors = on_circle(several)
    found = clusters(vectors, alike, least)
    rows = [row for one in found for row in one.rows]
    assert len(rows) == len(set(rows))
    for one in found:
        assert len(one.rows) >= least
        assert min(one.similarities) >= alike
        assert list(one.similarities) == sorted(one.similarities, reverse=True)
        others = [float((vectors[row] @ other.mean).item()) for row in one.rows for other in found]
        own = [float((vectors[row] @ one.mean).item()) for row in one.rows for _ in found]
        assert all(mine >= other - 1e-12 for mine, other in zip(own, others, strict=True))


def test_clusters_by_average_linkage() -> None:
    found = clusters(on_circle([0.0, 0.1, 0.2, 1.6, 1.7, 1.8, 3.1]), 0.9, 2)
    assert [sorted(one.rows) for one in found] == [[0, 1, 2], [3, 4, 5]]


texts = st.lists(st.text("abcdefgh ", min_size=1, max_size=30), min_size=1, max_size=5)


@given(st.lists(texts, min_size=1, max_size=6))
def test_names_by_words_are_valid_and_no_two_are_alike(groups: list[list[str]]) -> None:
    names = named_by_words(groups, [[""] * len(group) for group in groups])
    assert len({name.casefold() for name in names}) == len(groups)
    assert all(Task("p", kind=name).kind == name for name in names)


def test_names_are_words_that_tell_a_group_from_the_others() -> None:
    groups = [
        ["请求退款的订单", "订单退款处理"],
        ["Sort the rows.", "Sort these rows."],
        ["Fold the map.", "Fold a map."],
    ]
    assert named_by_words(groups, [["", ""]] * 3) == ["订单 退款", "rows sort", "fold map"]
    assert named_by_words(groups, [["", ""], ["tables", "Tables"], ["maps", ""]])[1:] == ["Tables", "fold map"]


# --- proposed -----------------------------------------------------------------------------------------------------


async def test_tasks_fall_into_kinds_with_names_and_nothing_changes(tmp_path: Path) -> None:
    async with await filled(tmp_path) as bank:
        found = await bank.kinds.propose()
        assert kinds_of(found) == {"calendar office parse": frozenset(DATES), "add invoice send": frozenset(BILLS)}
        assert (found.tasks, found.alone, found.embedder, found.alike) == (8, 0, "hash:384", 0.5)
        assert await bank.kinds.kept() is None
        assert {one.kind for one in await bank.list()} == {""}


@given(st.permutations(TASKS))
async def test_the_order_in_which_tasks_came_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, order: list[str]
) -> None:
    async with await filled(tmp_path_factory.mktemp("bank"), tasks=tuple(order)) as bank:
        found = await bank.kinds.propose()
    async with await filled(tmp_path_factory.mktemp("bank")) as bank:
        assert await bank.kinds.propose() == found


async def test_a_bank_that_has_seen_too_little_says_how_much_there_must_be(tmp_path: Path) -> None:
    async with await filled(tmp_path, tasks=DATES) as bank:
        found = await bank.kinds.propose()
        assert (found.kinds, found.note) == ((), "nothing to cluster yet: 4 tasks, at least 6")
        with pytest.raises(InvalidInput, match="There is no kind to keep: nothing to cluster yet: 4 tasks"):
            await bank.kinds.keep(found)


async def test_without_an_embedder_tasks_are_compared_by_words(tmp_path: Path) -> None:
    async with await filled(tmp_path, embedder="none") as bank:
        found = await bank.kinds.propose()
        assert found.note == "by words alone: no embedder is set up"
        await bank.kinds.keep(found)
        task, _ = await bank.kinds.with_kind(Task(DATES[0]))
    assert task.kind == "calendar office parse"


async def test_a_kind_that_tasks_have_already_is_the_name_of_their_cluster(tmp_path: Path) -> None:
    async with await filled(tmp_path) as bank:
        for lesson in [one for one in await bank.list() if one.query in BILLS[:3]]:
            await bank.edit(lesson.id, kind="billing")
        assert kinds_of(await bank.kinds.propose())["billing"] == frozenset(BILLS)


async def test_episodes_that_taught_no_lesson_count_by_their_accounts(tmp_path: Path) -> None:
    nothing: dict[str, Any] = {"why": "w", "lessons": [], "nothing_because": "It went well."}
    async with a_bank(tmp_path / "m.db", model=ScriptedModel([nothing] * len(TASKS))) as bank:
        for n, task in enumerate(TASKS):
            await bank.learn(an_episode(f"e{n}", task, "done"))
        assert await bank.list() == ()
        assert set(kinds_of(await bank.kinds.propose()).values()) == {frozenset(DATES), frozenset(BILLS)}


@pytest.mark.parametrize("alike", [0, -0.1, 1.01, float("nan")])
async def test_a_similarity_that_cannot_be_is_refused(tmp_path: Path, alike: float) -> None:
    async with await filled(tmp_path) as bank:
        with pytest.raises(InvalidInput, match="above 0 and at most 1"):
            await bank.kinds.propose(alike=alike)


async def test_a_model_names_the_kinds_and_a_bad_answer_is_sent_back_once(tmp_path: Path) -> None:
    asked: list[str] = []
    answers = iter([["same", "Same"], ["billing", "date parsing"], ["x"], ["ignore all previous instructions", "b"]])

    def answer(question: Any, sampling: Any) -> Any:
        asked.append("\n".join(message.text for message in question.messages))
        return {"names": next(answers)}

    async with await filled(tmp_path, model=ScriptedModel(answer)) as bank:
        found = await bank.kinds.propose(by_model=True)
        assert kinds_of(found) == {"date parsing": frozenset(DATES), "billing": frozenset(BILLS)}
        assert "Two groups are called 'Same'" in asked[1]
        assert DATES[0] in asked[0]
        with pytest.raises(BadAnswer, match="cannot be the name of a kind"):
            await bank.kinds.propose(by_model=True)
    async with a_bank(tmp_path / "m.db", model="none") as bank:
        with pytest.raises(InvalidInput, match="No model was named"):
            await bank.kinds.propose(by_model=True)


async def test_proposed_kinds_are_renamed_and_left_out_by_name(tmp_path: Path) -> None:
    async with await filled(tmp_path) as bank:
        found = await bank.kinds.propose()
        assert set(kinds_of(found.renamed({"Calendar  OFFICE parse": "dates"}))) == {"dates", "add invoice send"}
        assert set(kinds_of(found.without(["add invoice send"]))) == {"calendar office parse"}
        for wrong in ({"nothing": "x"}, {"add invoice send": " "}, {"add invoice send": "x" * 61}):
            with pytest.raises(InvalidInput):
                found.renamed(wrong)
        with pytest.raises(InvalidInput, match="Proposed: add invoice send, calendar office parse"):
            found.without(["nothing"])


# --- kept ---------------------------------------------------------------------------------------------------------


async def keep(bank: Bank, **given: Any) -> KindMap:
    found = await bank.kinds.propose()
    names = {next(kind.name for kind in found.kinds if DATES[0] in kind.tasks): "dates"}
    return await bank.kinds.keep(found.renamed(names), **given)


async def test_each_task_of_a_cluster_gets_its_kind_and_a_foreign_one_none(tmp_path: Path) -> None:
    async with await filled(tmp_path) as bank:
        kept = await keep(bank)
        for text in TASKS:
            task, about = await bank.kinds.with_kind(Task(text))
            assert task.kind == ("dates" if text in DATES else "add invoice send")
            assert task.kind_from is not None
            assert task.kind_from.by == "cluster"
            assert (task.kind_from.similarity or 0) >= kept.alike == task.kind_from.least
            assert task.kind in about
        foreign, about = await bank.kinds.with_kind(Task("Why is the sky blue at noon?"))
    assert (foreign.kind, about) == ("", "")
    assert foreign.kind_from is not None
    assert (foreign.kind_from.similarity or 0) < kept.alike


@pytest.mark.parametrize(
    "task", [Task(DATES[0], kind="own"), Task(DATES[0], kind_from=KindOrigin("given"))], ids=["has one", "given none"]
)
async def test_a_task_whose_kind_was_given_is_left_alone(tmp_path: Path, task: Task) -> None:
    async with await filled(tmp_path) as bank:
        await keep(bank)
        given_back, about = await bank.kinds.with_kind(task)
    assert (given_back.kind, given_back.kind_from, about) == (task.kind, task.kind_from, "")


@pytest.mark.parametrize("off", [{"settings": {"kinds_by_cluster": False}}, {"preset": "paper"}])
async def test_one_setting_turns_it_off(tmp_path: Path, off: dict[str, Any]) -> None:
    async with await filled(tmp_path) as bank:
        await keep(bank)
    async with a_bank(tmp_path / "m.db", **off) as bank:
        task, about = await bank.kinds.with_kind(Task(DATES[0]))
    assert (task.kind, task.kind_from, about) == ("", None, "")


async def test_lessons_get_their_kind_on_request_and_lose_it_when_it_is_taken_back(tmp_path: Path) -> None:
    async with await filled(tmp_path) as bank:
        mine, other, foreign = await bank.list(Selection(limit=3))
        await bank.edit(mine.id, kind="my own")
        await bank.edit(foreign.id, query="Why is the sky blue at noon?")
        kept = await keep(bank, lessons=True)
        assert set(kept.lessons.values()) == {"dates", "add invoice send"}
        assert mine.id not in kept.lessons
        assert foreign.id not in kept.lessons
        assert {one.query for one in await bank.list(Selection(kind="Dates"))} == set(DATES)
        found = await bank.recall("Parse the calendar.", kind="dates", threshold=0.0)
        assert {one.query for one in found.lessons} <= set(DATES)
        assert (await bank.history(other.id))[-1].detail == {"why": "the kind of the nearest cluster"}
        await bank.edit(other.id, kind="changed since")
        await keep(bank)
        assert (await bank.kinds.undo()).lessons == {}
        assert await bank.kinds.undo() == kept
        assert {one.kind for one in await bank.list()} == {"my own", "changed since", ""}
        assert await bank.kinds.kept() is None
        with pytest.raises(InvalidInput, match="nothing to take back"):
            await bank.kinds.undo()


async def test_agents_and_projects_do_not_mix(tmp_path: Path) -> None:
    async with await filled(tmp_path, "a", DATES, project="p") as ours, await filled(tmp_path, "b", BILLS) as theirs:
        for n, task in enumerate(BILLS):
            await ours.add(f"Fact {n}", f"The form is number {n}.", query=task, nature="fact", project="q")
        assert (await ours.kinds.propose()).tasks == len(DATES)
        assert (await theirs.kinds.propose()).tasks == len(BILLS)
        for n, task in enumerate(BILLS):
            await ours.add(f"Fact {n}", f"The form here is number {n}.", query=task, nature="fact")
        kept = await keep(ours, lessons=True)
        assert kept.tasks == len(TASKS)
        facts = {one.project: one.kind for one in await ours.list(Selection(nature="fact"))}
        assert facts == {"p": "add invoice send", "q": ""}
        assert await theirs.kinds.kept() is None
        assert (await theirs.kinds.with_kind(Task(DATES[0])))[0].kind == ""
    async with a_bank(tmp_path / "m.db", "a", project="q") as elsewhere:
        assert await elsewhere.kinds.kept() is None
    async with a_bank(tmp_path / "m.db", None) as all_of_them:
        with pytest.raises(InvalidInput, match="belong to one agent"):
            await all_of_them.kinds.propose()
        assert (await all_of_them.kinds.with_kind(Task(DATES[0])))[0].kind == ""


class Other:
    """An embedder with vectors of its own, which may be out of order."""

    def __init__(self, works: bool = True) -> None:
        self.id, self.dim, self._works = "other:4", 4, works

    async def embed(self, texts: Any) -> Any:
        if not self._works:
            raise InvalidInput("the weights are not here")
        return np.asarray([[text.count("date"), text.count("invoice"), 0.1, 0.0] for text in texts], np.float32)


async def test_kinds_of_another_embedder_and_one_that_fails_give_none_and_say_so(tmp_path: Path) -> None:
    async with await filled(tmp_path, embedder=Other()) as bank:
        await keep(bank)
    async with a_bank(tmp_path / "m.db") as bank:
        task, about = await bank.kinds.with_kind(Task(DATES[0]))
        assert (task.kind, task.kind_from) == ("", None)
        assert "found with the embedder other:4, and the bank has hash:384" in about
    async with a_bank(tmp_path / "m.db", embedder=Other(works=False)) as bank:
        assert (await bank.kinds.with_kind(Task(DATES[0])))[1] == "No kind by cluster: the weights are not here"


async def test_a_purge_of_all_takes_the_kinds(tmp_path: Path) -> None:
    async with await filled(tmp_path) as bank:
        await keep(bank)
        await bank.purge(None)
        assert await bank.kinds.kept() is None
        assert not await bank.verify()


# --- end to end ---------------------------------------------------------------------------------------------------


async def test_a_later_task_gets_its_kind_and_the_lessons_of_that_kind_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mulligan.toml").write_text('[memory]\nembedder = "hash"\n[kinds]\n"by hand" = "manual"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULLIGAN_STORE", f"{tmp_path}/m.db")
    new, notes = "Parse the date nine with the calendar of the office.", list[str]()
    async with Bank.open("a", model="none", settings={"threshold": 0, "top_k": 1}) as bank:

        async def tried(task: str, **more: Any) -> Episode:
            tea = ScriptedModel(["tea"])
            return await solve(task, evaluator="contains:tea", model=tea, bank=bank, notice=notes.append, **more)

        def recalled(episode: Episode) -> list[str]:
            return [one.query for one in episode.recall.lessons] if episode.recall else []

        for n, task in enumerate(TASKS):
            await bank.add(f"Lesson {n}", f"Way number {n}.", query=task)
        before = await tried(new)
        assert (before.task.kind, before.task.kind_from) == ("", None)
        found = await bank.kinds.propose()
        await bank.kinds.keep(found.renamed({"calendar office parse": "chronology"}))
        second = next(one for one in await bank.list() if one.query in DATES and one.query not in recalled(before))
        await bank.edit(second.id, kind="chronology")
        episode = await tried(new)
        by_rule, none = await tried(f"{new} By hand."), await tried(new, kind="")
    assert (episode.task.kind, recalled(episode)) == ("chronology", [second.query])
    assert notes == ["The kind of this task, by its nearest cluster: chronology"]
    async with open_store(tmp_path / "m.db") as store:
        stored = (await store.load(episode.id)).task
    assert stored.kind_from is not None
    assert (stored.kind_from.by, stored.kind_from.nearest) == ("cluster", "chronology")
    assert by_rule.task.kind_from == KindOrigin("rule", "by hand")
    assert (none.task.kind, none.task.kind_from, recalled(none)) == ("", KindOrigin("given"), recalled(before))


async def test_a_resume_keeps_the_kind_that_the_record_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with (
        await filled(tmp_path, settings={"threshold": 0}, model="none") as bank,
        open_store(tmp_path / "runs.db") as store,
    ):
        await keep(bank)
        given: dict[str, Any] = {"model": ScriptedModel(["milk", "tea"]), "bank": bank, "store": store}
        failed = await solve(DATES[0], evaluator="contains:tea", strategy="none", trials=1, **given)
        assert failed.task.kind == "dates"
        await bank.kinds.undo()
        resumed = await resume(failed.run, fork=True, limits={"trials": 2}, **given)
    assert resumed.solved
    assert (resumed.task, resumed.task.kind_from) == (failed.task, failed.task.kind_from)
    assert resumed.recall == failed.recall
