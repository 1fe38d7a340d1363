"""Kinds of tasks: given or by rules, carried by lessons, raised a little in recall, and a filter of searches."""

import sqlite3
from pathlib import Path

import pytest
from banks import a_bank
from each_row import each_row
from hypothesis import example, given
from hypothesis import strategies as st

from mulligan import ScriptedModel
from mulligan.app.config import Config
from mulligan.app.kinds import with_kind
from mulligan.app.run import run
from mulligan.app.solve import solve
from mulligan.bank.bank import Bank
from mulligan.bench.harness.plan import task_of
from mulligan.core.codec import from_json, to_json
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import Selection
from mulligan.core.records import Attempt, Case, Episode, Feedback, Finding, Stop, Task, Trial, same_kind
from mulligan.recording.journal import JournaledBank, NoJournal
from mulligan.store.sqlite.schema import MIGRATIONS
from mulligan.text.evidence import evidence_of

RULES = Config(values={"kinds": {"invoice|billing": "billing", r"\bsort": "sorting", "round": "rounding"}})


@each_row(
    ("task", "given_kind", "kind"),
    [
        (Task("Sort and round these."), None, "sorting"),  # the first rule that fits
        (Task("ROUND it up."), None, "rounding"),
        (Task("Resort to it."), None, ""),
        (Task("Sort these.", kind="own"), None, "own"),
        (Task("Sort these.", kind="own"), " by  hand ", "by hand"),
        (Task("Sort these."), "", ""),
    ],
)
def test_a_given_kind_comes_before_that_of_the_task_and_rules_come_last(
    task: Task, given_kind: str | None, kind: str
) -> None:
    assert with_kind(task, given_kind, RULES).kind == kind


@pytest.mark.parametrize("rules", [{"(": "a"}, {"a": 3}, {"a": " "}, {"a": "x" * 61}])
def test_a_rule_that_cannot_be_used_is_refused(rules: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        with_kind(Task("a"), None, Config(values={"kinds": rules}))


def test_a_bench_case_has_the_kind_of_its_family_unless_it_is_alone() -> None:
    assert task_of(Case("a/1", Task("p"), 0)).kind == "a"
    assert task_of(Case("1", Task("p"), 0, family="tables")).kind == "tables"
    assert task_of(Case("1", Task("p", kind="own"), 0, family="tables")).kind == "own"
    assert task_of(Case("1", Task("p"), 0)).kind == ""


@example(one="", other="\r")
@given(st.text(max_size=60), st.text(max_size=60))
def test_kinds_are_alike_both_ways_and_come_back(one: str, other: str) -> None:
    assert same_kind(one, other) == same_kind(other, one)
    task = Task("p", kind=one)
    assert from_json(Task, to_json(task)) == task


def test_an_old_task_has_no_kind_and_its_recall_asks_what_it_asked() -> None:
    assert from_json(Task, {"prompt": "p", "inputs": {}, "images": []}) == Task("p")


async def test_a_recall_without_a_kind_is_the_step_that_older_records_hold(tmp_path: Path) -> None:
    asked: list[object] = []

    class Asked(NoJournal):
        async def step(self, name, request, do, *, repeatable=True):  # pyright: ignore
            asked.append(request)
            return await super().step(name, request, do, repeatable=repeatable)

    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        for task in (Task("p"), Task("p", kind="k")):
            await JournaledBank(bank, Asked()).recall(task)
    plain: dict[str, object] = {"prompt": "p", "inputs": {}, "images": []}
    assert asked == [{"task": plain, "top_k": None}, {"task": {**plain, "kind": "k"}, "top_k": None}]


async def some(bank: Bank, **kinds: str) -> None:
    for title, kind in kinds.items():
        await bank.add(title, f"Parse the date with the {title} calendar before you compare.", kind=kind)


async def test_lessons_of_the_kind_come_first_among_those_that_are_about_as_relevant(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        await some(bank, julian="reports", lunar="Billing", solar="reports")
        task = "Parse the date with a calendar before you compare."
        plain = await bank.recall(task, top_k=2)
        raised = await bank.recall(Task(task, kind="billing"), top_k=2)
        unknown = await bank.recall(Task(task, kind="never seen"), top_k=2)
    assert [one.title for one in plain.lessons] == ["julian", "lunar"]
    assert [one.title for one in raised.lessons] == ["lunar", "julian"]
    assert [one.id for one in unknown.lessons] == [one.id for one in plain.lessons]


async def test_the_raise_lets_nothing_in_that_the_threshold_holds_back(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        await some(bank, julian="reports")
        await bank.add("greeting", "Say hello to the neighbour.", kind="billing")
        task = "Parse the date with the julian calendar before you compare."
        found = await bank.recall(Task(task, kind="billing"), top_k=3)
    assert [one.title for one in found.lessons] == ["julian"]


@pytest.mark.slow
@given(kinds=st.lists(st.sampled_from(["", "a", "b"]), min_size=1, max_size=6), top_k=st.integers(1, 4))
async def test_a_kind_never_changes_how_many_lessons_are_recalled(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], top_k: int
) -> None:
    async with a_bank(tmp_path_factory.mktemp("bank") / "m.db", embedder="none") as bank:
        await some(bank, **{f"calendar{n}": kind for n, kind in enumerate(kinds)})
        plain = await bank.recall("Parse the date, then compare.", top_k=top_k, threshold=0.0, counted=False)
        raised = await bank.recall(
            Task("Parse the date, then compare.", kind="a"), top_k=top_k, threshold=0.0, counted=False
        )
    assert (len(raised.lessons), raised.filtered) == (len(plain.lessons), plain.filtered)
    if "a" not in kinds:
        assert raised.lessons == plain.lessons


async def test_a_search_by_kind_finds_lessons_of_it_alone(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        await some(bank, julian="reports", lunar="Billing  Run", solar="")
        found = await bank.recall("Parse the date, compare calendars.", kind="billing run", top_k=3, threshold=0.0)
        assert [one.title for one in found.lessons] == ["lunar"]
        assert [one.title for one in await bank.list(Selection(kind="BILLING run"))] == ["lunar"]
        (lunar,) = found.lessons
        await bank.edit(lunar.id, kind="reports")
        again = await bank.recall("Parse the date, compare calendars.", kind="reports", top_k=3, threshold=0.0)
        assert {one.title for one in again.lessons} == {"julian", "lunar"}


async def test_what_an_episode_teaches_carries_the_kind_of_its_task(tmp_path: Path) -> None:
    lesson = {"title": "T", "description": "D", "steps": [1], "tags": [], "kind": "its own"}
    drawn = [
        {"why": "w", "lessons": [{**lesson, "content": f"Do {it}."}], "nothing_because": ""} for it in ("this", "that")
    ]
    failed = evidence_of([Finding('assert size(12) == "[12k]"', expected='"[12k]"', got="'12'")])
    trial = Trial(1, Attempt("def size(n): ..."), Feedback(False, "no", source="unit_tests", evidence=failed))
    async with a_bank(tmp_path / "m.db", embedder="none", model=ScriptedModel(drawn)) as bank:
        for id, kind in (("e1", "sizes"), ("e2", "")):
            await bank.learn(Episode(id, Task(f"Write size {id}.", kind=kind), trials=(trial,), stop=Stop("exhausted")))
        kinds = {(one.nature, one.query, one.kind) for one in await bank.list()}
    assert kinds == {
        ("fact", "Write size e1.", "sizes"),
        ("fact", "Write size e2.", ""),
        ("strategy", "Write size e1.", "sizes"),
        ("strategy", "Write size e2.", "its own"),
    }


async def test_solve_records_the_kind_by_rule_or_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mulligan.toml").write_text('[kinds]\n"drink" = "drinks"\n')
    monkeypatch.chdir(tmp_path)
    by_rule = await solve("Name a drink.", evaluator="contains:tea", model=ScriptedModel(["tea"]))
    given_one = await solve("Name a drink.", kind="names", evaluator="contains:tea", model=ScriptedModel(["tea"]))
    assert (by_rule.task.kind, given_one.task.kind) == ("drinks", "names")


async def test_an_agents_kind_is_that_of_its_tasks(tmp_path: Path) -> None:
    folder = tmp_path / "namer"
    folder.mkdir()
    front = 'name: namer\ndescription: Names.\nversion: "1"\npattern: oneshot\nkind: naming'
    (folder / "AGENT.md").write_text(f"---\n{front}\n---\nName it.\n")
    episode = await run(folder, "A drink.", model=ScriptedModel(["tea"]))
    assert episode.task.kind == "naming"
    assert (await run(folder, Task("A drink.", kind="own"), model=ScriptedModel(["tea"]))).task.kind == "own"


async def test_a_store_from_before_kinds_is_filtered_by_them(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        await some(bank, julian="reports", lunar="billing")
    with sqlite3.connect(tmp_path / "m.db") as db:
        db.execute("ALTER TABLE lessons DROP COLUMN kind")  # as it was before
        for statement in MIGRATIONS[10]:
            db.execute(statement)
    async with a_bank(tmp_path / "m.db", embedder="none") as bank:
        assert [one.title for one in await bank.list(Selection(kind="billing"))] == ["lunar"]
        assert not await bank.verify()
