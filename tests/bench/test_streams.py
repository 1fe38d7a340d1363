"""The families of streams, played by the scripted reader: what is known earns all points, what is not costs some."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean

import pytest

from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.plan import open_benchmark
from mulligan.bench.harness.running import Finished, run_benchmark
from mulligan.bench.streams import _tarnwood
from mulligan.bench.streams.environments.database import Database, inquiry, schema
from mulligan.bench.streams.environments.game import Game, openings
from mulligan.bench.streams.environments.service import Service, quirks
from mulligan.bench.streams.reader import Reader, service
from mulligan.bench.streams.reader.code import conventions
from mulligan.bench.streams.reader.game import OPEN
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Learned
from mulligan.core.questions import Message, Question
from mulligan.core.records import Case, Episode, Json, Recall, Task
from mulligan.models.catalog import open_model
from mulligan.sandbox.local import LocalSandbox

FAMILIES = ("database", "game", "code", "service")
QUICK = ("database", "game", "service", pytest.param("code", marks=pytest.mark.slow))
"""Each score of a task of code takes a process in the sandbox."""
SEED = 3


def stated(family: str, changed: bool) -> Sequence[str]:
    """Every fact of the world, a sentence each."""
    if family == "database":
        return [note for *_, note in schema(SEED, changed).notes()]
    if family == "game":
        return [OPEN.state(stance=stance, side=side) for stance, side in openings(SEED, changed).items()]
    if family == "code":  # shown by functions that no task of the stream asks for
        tasks = (_tarnwood.task(SEED, number, changed) for number in range(960, 960 + _tarnwood.KINDS))
        return [test for task in tasks for test in task.visible.splitlines()]
    return list(_of_service(changed))


def _of_service(changed: bool) -> Iterator[str]:
    for one in service.OPERATIONS:
        found = quirks(SEED, changed)[one.name]
        third = one.more or one.id
        yield service.HEADER.state(operation=one.name, header=found.header)
        yield service.PREFIX.state(operation=one.name, field=one.id, prefix=found.prefix)
        yield {
            "page": service.PAGE.state(operation=one.name, page=found.third),
            "twice": service.TWICE.state(operation=one.name, field=third, again=found.third),
            "unit": service.UNIT.state(operation=one.name, field=third, unit=found.third),
        }[one.quirk]


def entries(facts: Sequence[str], mark: str = "") -> str:
    return "\n\n".join(f"A fact of this project{mark}:\n```\n{fact}\n```" for fact in facts)


class Page:
    """A bank that shows the same text to every task."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        return Recall("r", formatted_prompt=self._text)

    async def learn(self, episodes: Sequence[Episode]) -> Learned:
        return Learned(nothing_because="it learns nothing")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))


async def ran(
    family: str, page: str = "", *, tasks: int = 8, drift: int | str = "none", model: Reader | None = None
) -> Finished:
    return await run_benchmark(
        f"stream:{family}",
        model=model or f"reader:{family}",
        bank=Page(page) if page else None,
        memory="frozen" if page else None,
        settings={"benchmark": {"tasks": tasks, "seed": SEED, "drift": drift}},
    )


def values(finished: Finished) -> list[float]:
    found = [result.episodes[0].score for result in finished.results]
    return [value for value in found if value is not None]


def part(finished: Finished, name: str) -> list[float | None]:
    return [result.episodes[0].parts[name][-1] for result in finished.results]


def loaded(family: str, **settings: Json) -> Sequence[Case]:
    _, made, _ = open_benchmark(f"stream:{family}", {"seed": SEED, **settings}, LocalSandbox())
    return made.load([])


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("family", QUICK)
async def test_without_memory_a_task_is_solvable_for_fewer_points(family: str) -> None:
    finished = await ran(family)
    assert [result.status for result in finished.results] == ["failed"] * 8  # none has all points
    assert 0.1 <= mean(values(finished)) <= 0.5
    if family != "game":
        assert part(finished, "right") == [1.0] * 8


@pytest.mark.light_cases(2)
@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
async def test_whoever_is_shown_all_facts_gets_all_points(family: str, changed: bool) -> None:
    finished = await ran(family, entries(stated(family, changed)), drift=1 if changed else "none")
    assert values(finished) == [1.0] * 8
    assert part(finished, "reward") == [6.0 if family == "game" else 10.0] * 8


@pytest.mark.slow
@pytest.mark.parametrize("family", QUICK)
async def test_stale_facts_cost_and_the_newer_ones_above_them_count(family: str) -> None:
    old, new = entries(stated(family, False)), entries(stated(family, True))
    tasks = 12 if family == "code" else 8
    stale = values(await ran(family, old, drift=1, tasks=tasks))
    none = values(await ran(family, drift=1, tasks=tasks))
    if family in ("database", "game"):  # where all facts change, belief in old ones is worse than none
        assert mean(stale) < mean(none)
    else:
        assert mean(none) < mean(stale) < 1
    assert values(await ran(family, f"{new}\n{old}", drift=1, tasks=tasks)) == [1.0] * tasks
    assert mean(values(await ran(family, f"{old}\n{new}", drift=1, tasks=tasks))) < 1


@pytest.mark.slow
async def test_marked_facts_are_not_believed_where_asking_shows_them() -> None:
    marked = entries(stated("database", False), ", to be checked before it is used: the database was migrated")
    assert values(await ran("database", marked, drift=1)) == values(await ran("database", drift=1))


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("family", ["game", "service", QUICK[-1]])
async def test_marked_facts_are_tried_where_a_guess_costs_no_less(family: str) -> None:
    marked = entries(stated(family, False), ", to be checked before it is used: a change")
    assert values(await ran(family, marked)) == [1.0] * 8
    both = f"{marked}\n{entries(stated(family, True))}"
    assert values(await ran(family, both, drift=1)) == [1.0] * 8


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("family", QUICK)
@pytest.mark.parametrize("form", ["notebook", pytest.param("history", marks=pytest.mark.slow)])
async def test_a_bank_that_the_reader_teaches_brings_the_facts_to_later_prompts(family: str, form: str) -> None:
    finished = await run_benchmark(
        f"stream:{family}",
        model=f"reader:{family}",
        memory="online",
        agent_id=form,
        settings={
            "benchmark": {"tasks": 9, "kinds": 3, "drift": "none", "seed": SEED},
            "memory": {"forms": [form], "model": f"reader:{family}", "embedder": "none"},
        },
    )
    found = values(finished)
    assert found[0] < 0.7
    assert mean(found[6:]) >= 0.9


NOTEBOOK = """The notebook as it is:
```
aaaaaaa1 - Tables of the database
  > table 'old_1' holds the 'orders'
  > table 'old_2' holds the 'visits'
aaaaaaa2 - Columns of 'new_1' (to be checked before it is used: a change)
  > column 'c1' of 'new_1' is the 'region'
aaaaaaa3 - Codes in 'new_1.c1'
  > code 'X1' in 'new_1.c1' means 'north'
```

The record, in steps that are numbered s1, s2 and so on:
s1 observation: The database is open.
s2 observation:
  note
  table 'new_1' holds the 'orders'
s3 observation:
  column 'c1' of 'new_1' is the 'region'
s4 observation:
  code 'X1' in 'new_1.c1' means 'north'
s5 observation:
  code 'Y1' in 'new_1.c2' means 'open'
"""


async def test_the_reader_keeps_a_notebook_up_to_date_with_what_the_steps_show() -> None:
    schema: Json = {"properties": {"why": {}, "operations": {"maxItems": 5}}}
    answer = await Reader("database").ask(Question((Message("user", NOTEBOOK),), schema))
    made = [(one["operation"], one["entry"], one["steps"], one["content"]) for one in answer.content["operations"]]
    assert made == [  # what an unmarked entry says already is no operation; of two values the newer one stays
        ("add", "", [5], "code 'Y1' in 'new_1.c2' means 'open'"),
        ("change", "aaaaaaa2", [3], "column 'c1' of 'new_1' is the 'region'"),
        ("change", "aaaaaaa1", [2], "table 'old_2' holds the 'visits'\ntable 'new_1' holds the 'orders'"),
    ]


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("family", FAMILIES)
async def test_no_prompt_shows_what_nothing_observed(family: str) -> None:
    reader = Reader(family)
    await ran(family, drift=5, model=reader)
    facts = [fact for changed in (False, True) for fact in stated(family, changed)]
    firsts = ["\n".join(m.text for m in q.messages) for q in reader.questions]
    firsts = [text for text in firsts if "\n> " not in text and "failed these checks" not in text]
    assert len(firsts) == 8
    assert not [fact for fact in facts for text in firsts if fact in text]
    assert sum("from this task on" in text for text in firsts) == 1


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    "family", ["game", "service", *(pytest.param(f, marks=pytest.mark.slow) for f in ("database", "code"))]
)
def test_a_stream_is_the_same_for_a_seed_and_as_long_as_one_likes(family: str) -> None:
    cases = loaded(family, tasks=500, drift="none")
    assert len({case.id for case in cases}) == 500
    assert len({case.task.prompt for case in cases}) > 20
    assert cases[:36] == loaded(family, tasks=36, drift="none")
    assert cases[:18] == loaded(family)[:18]
    assert cases[18:36] != loaded(family)[18:]
    assert [c.target for c in cases] != [c.target for c in loaded(family, tasks=500, drift="none", seed=SEED + 1)]


async def test_the_only_method_is_not_compared_with_others() -> None:
    said = list[str]()
    await run_benchmark("stream:game", model="reader:game", limit=1, hooks=Hooks(notice=said.append))
    assert said == ["Method simple: one attempt of each case (one attempt)."]


def test_a_case_names_its_kind_and_its_side_of_the_drift() -> None:
    cases = loaded("service", tasks=12, drift=5)
    assert [bool(case.task.inputs) for case in cases] == [n == 4 for n in range(12)]
    assert [case.phase for case in cases] == [1] * 4 + [2] * 8
    assert len({case.family for case in cases}) == 8
    assert not [case for case in loaded("service", announce=False) if case.task.inputs]


@pytest.mark.parametrize("drift", [0, 37, "soon", "-1"])
def test_a_drift_outside_of_the_stream_is_refused(drift: int | str) -> None:
    with pytest.raises(InvalidInput, match="drift must be a task number from 1 to 36"):
        loaded("game", drift=drift)


def test_fewer_kinds_of_tasks_come_back_sooner() -> None:
    kinds = [case.task.prompt.rpartition("_")[2].partition("(")[0] for case in loaded("code", kinds=3, tasks=9)]
    assert kinds == kinds[:3] * 3
    assert len(set(kinds)) == 3
    with pytest.raises(InvalidInput, match="For service, kinds must be from 1 to 8, not 9"):
        loaded("service", kinds=9)


def test_a_file_is_refused_and_so_is_a_family_that_there_is_not(tmp_path: Path) -> None:
    _, made, _ = open_benchmark("stream:game", {}, LocalSandbox())
    with pytest.raises(InvalidInput, match=r"omit x\.json"):
        made.load([tmp_path / "x.json"])
    with pytest.raises(InvalidInput, match="family"):
        open_benchmark("stream:chess", {}, LocalSandbox())
    with pytest.raises(InvalidInput, match="Available: code, database, game, service"):
        open_model("reader:chess")


def test_the_visible_tests_of_a_coding_task_tell_its_form_from_all_others() -> None:
    for number in range(60):
        task = _tarnwood.task(number % 5, number, number % 2 == 1)
        suffix = task.name.rpartition("_")[2]
        (convention,) = [one for one in conventions() if one.suffix == suffix]
        for other in (*convention.values, convention.plain):
            space: dict[str, object] = {}
            exec(convention.code(task.name, other), space)
            passed = [_passes(f"{task.visible}\n", space), _passes(f"{task.hidden}\n", space)]
            assert passed == ([True, True] if other == task.value else [False, passed[1]])


def _passes(tests: str, space: dict[str, object]) -> bool:
    try:
        exec(tests, dict(space))
    except AssertionError:
        return False
    return True


def test_at_the_change_every_name_of_the_database_is_another_and_some_conventions_are() -> None:
    schemas = [schema(SEED, changed) for changed in (False, True)]
    names = [set(s.tables.values()) | set(s.columns.values()) | set(s.codes.values()) for s in schemas]
    assert not names[0] & names[1]
    assert all(openings(SEED, False)[stance] != side for stance, side in openings(SEED, True).items())
    before, after = _tarnwood.values(SEED, False), _tarnwood.values(SEED, True)
    assert sum(one != other for one, other in zip(before, after, strict=True)) == _tarnwood.KINDS // 3
    old, new = quirks(SEED, False), quirks(SEED, True)
    rows = [(getattr(old[o], f), getattr(new[o], f)) for o in old for f in ("header", "prefix", "third")]
    assert sum(one != other for one, other in rows) == len(rows) // 2
    every, all_new = _tarnwood.values(SEED, True, all_change=True), quirks(SEED, True, all_change=True)
    assert all(one != other for one, other in zip(before, every, strict=True))
    assert all(getattr(old[o], f) != getattr(all_new[o], f) for o in old for f in ("header", "prefix", "third"))


HOSTILE = [
    "DROP TABLE dictionary",
    "UPDATE dictionary SET note = ''",
    "ATTACH '/tmp/x.db' AS other",
    "PRAGMA table_list",
    "SELECT sql FROM sqlite_master",
    "SELECT load_extension('x')",
    "SELECT randomblob(8)",
    "SELECT 1; DROP TABLE dictionary",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n",
    "SELECT COUNT(*) FROM dictionary a, dictionary b, dictionary c, dictionary d, dictionary e",
    "SELECT printf('%.*c', 2000000000, 'x')",
    "no sql at all \x00",
    "SELECT '\ud800'",
]


@pytest.mark.parametrize("sql", HOSTILE)
async def test_the_database_is_read_only_and_bounded(sql: str) -> None:
    world = Database(seed=SEED, number=0)
    await world.reset()
    before = await world.step("query[SELECT COUNT(*) FROM dictionary]")
    assert (await world.step(f"query[{sql}]")).observation.startswith("Error")
    assert await world.step("query[SELECT COUNT(*) FROM dictionary]") == before
    everything = await world.step("query[SELECT group_concat(note) FROM dictionary]")
    assert len(everything.observation) < 200
    await world.close()


async def test_a_wrong_answer_gets_nothing_and_is_told_the_right_one() -> None:
    world = Database(seed=SEED, number=0)
    await world.reset()
    step = await world.step("answer[-5]")
    assert step.outcome is not None
    assert (step.outcome.done, step.outcome.reward) == (True, 0.0)
    assert f"expected {world.answer():g}, got -5" in step.observation
    await world.close()


MAKERS: Mapping[str, Callable[[], Database | Game | Service]] = {
    "database": lambda: Database(seed=SEED, number=2),
    "game": lambda: Game(seed=SEED, number=2),
    "service": lambda: Service(seed=SEED, number=2),
}


@pytest.mark.parametrize("family", MAKERS)
async def test_what_means_nothing_is_answered_and_costs_no_points(family: str) -> None:
    world = MAKERS[family]()
    await world.reset()
    for action in ("", "hello", "look[around]", "strike[]", "call[]", "query[", "\x00"):
        step = await world.step(action)
        assert step.observation.startswith("Invalid action. Write ")
        assert step.outcome is not None
        assert not step.outcome.done
    await world.close()


@pytest.mark.parametrize("family", MAKERS)
async def test_a_world_answers_the_same_again(family: str) -> None:
    actions = ["query[SELECT note FROM dictionary]", "strike[low]", "call[order article=1]", "call[x y]", "answer[1]"]
    seen = list[list[str]]()
    for _ in range(2):
        world = MAKERS[family]()
        seen.append([await world.reset(), *[(await world.step(action)).observation for action in actions]])
        await world.close()
    assert seen[0] == seen[1]


def test_a_question_is_read_as_it_was_written() -> None:
    for number in range(40):
        asked = inquiry(SEED, number, 4)
        assert type(asked).read(asked.text()) == asked
