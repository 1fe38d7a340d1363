"""Whole runs through the library, on a real store: solved, restarted, out of budget, changed between two tries."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

import mulligan
from mulligan.core.episode import Acted, Evaluated, Reflected, Stopped
from mulligan.core.errors import InvalidInput, JournalDiverged, ModelError, OverBudget, UnknownName
from mulligan.core.records import Episode, Feedback
from mulligan.store.sqlite import SqliteStore

WRONG, RIGHT = "def double(x):\n    return x", "def double(x):\n    return 2 * x"
LESSON = "It returned x itself. Multiply by two."
OTHER = "Two times x is wanted."


class Doubles:
    """Passes code that doubles, without running it."""

    expects: Literal["code"] = "code"

    async def evaluate(self, episode: Episode) -> Feedback:
        right = "2 * x" in episode.trials[-1].attempt.output
        return Feedback(right, "" if right else "double(2) returned 2", score=float(right), source="doubles")


@pytest.fixture
def store(tmp_path: Path) -> Generator[SqliteStore]:
    made = SqliteStore(tmp_path / "runs.db")
    yield made
    asyncio.run(made.close())


async def test_a_second_try_that_learned_from_the_first(store: SqliteStore) -> None:
    model = mulligan.ScriptedModel([WRONG, LESSON, RIGHT])
    seen: list[str] = []
    episode = await mulligan.solve(
        "Write double(x).",
        model=model,
        strategy="reflexion",
        evaluator=Doubles(),
        store=store,
        observers=[lambda _, event: seen.append(type(event).__name__)],
    )
    assert episode.solved
    assert [t.feedback and t.feedback.passed for t in episode.trials] == [False, True]
    assert episode.best is not None
    assert episode.best.attempt.output == RIGHT
    assert LESSON in model.questions[2].messages[-1].text
    assert WRONG not in model.questions[2].messages[-1].text, "lessons only: the failed attempt is left out"
    assert await store.load(episode.id) == episode
    assert [type(event) for event in await store.events(episode.id)] == [
        Acted,
        Evaluated,
        Reflected,
        Acted,
        Evaluated,
        Stopped,
    ]
    assert seen == ["Acted", "Evaluated", "Reflected", "Acted", "Evaluated", "Stopped"]
    assert set(episode.head.prompts) >= {"complete.code", "verbal.code"}
    assert episode.head.models == {"actor": "scripted", "reflector": "scripted"}


async def test_by_default_the_second_try_is_shown_what_the_judge_said_and_the_lesson(store: SqliteStore) -> None:
    model = mulligan.ScriptedModel([WRONG, LESSON, WRONG + " * 1", OTHER, RIGHT])
    episode = await mulligan.solve("Write double(x).", model=model, evaluator=Doubles(), store=store)
    assert episode.solved
    second, third = (model.questions[at].messages[-1].text for at in (2, 4))
    assert "double(2) returned 2" in second
    assert LESSON in second
    assert WRONG not in second
    assert (LESSON in third, OTHER in third) == (False, True), "the newest lesson alone"
    assert episode.head.models == {"actor": "scripted", "reflector": "scripted"}


async def test_evidence_alone_asks_nobody_for_a_lesson(store: SqliteStore) -> None:
    model = mulligan.ScriptedModel([WRONG, RIGHT])
    episode = await mulligan.solve(
        "Write double(x).", model=model, strategy="evidence", evaluator=Doubles(), store=store
    )
    assert episode.solved
    assert "double(2) returned 2" in model.questions[1].messages[-1].text
    assert episode.head.models == {"actor": "scripted"}, "nobody reflects"


VAGUE = "Handle all edge cases."


async def test_a_lesson_that_twice_earns_no_place_is_recorded_and_not_shown(store: SqliteStore) -> None:
    model = mulligan.ScriptedModel([WRONG, VAGUE, VAGUE, RIGHT])
    episode = await mulligan.solve(
        "Write double(x).", model=model, strategy="reflexion", evaluator=Doubles(), store=store
    )
    assert episode.solved
    assert "cannot be used: It is too general" in model.questions[2].messages[-1].text
    assert VAGUE not in "".join(message.text for message in model.questions[3].messages)
    kept = (await store.load(episode.id)).trials[0].reflection
    assert kept is not None
    assert (kept.text, kept.withheld[:9]) == (VAGUE, "It is too")


async def test_the_check_can_be_turned_off(store: SqliteStore) -> None:
    model = mulligan.ScriptedModel([WRONG, VAGUE, RIGHT])
    episode = await mulligan.solve(
        "Write double(x).",
        model=model,
        strategy="reflexion",
        evaluator=Doubles(),
        store=store,
        settings={"reflector": {"check": False}},
    )
    assert episode.solved
    assert VAGUE in model.questions[2].messages[-1].text


@pytest.mark.parametrize("fork", [False, True])
async def test_a_run_from_before_the_check_goes_on_without_it_and_its_fork_with_it(
    tmp_path: Path, store: SqliteStore, fork: bool
) -> None:
    task, script = "Write double(x).", [WRONG, ModelError("down"), VAGUE, RIGHT]
    model = mulligan.ScriptedModel(script)
    episode = await mulligan.solve(task, model=model, strategy="reflexion", evaluator="contains:2 * x", store=store)
    with closing(sqlite3.connect(tmp_path / "runs.db")) as db, db:
        db.execute("UPDATE episodes SET record = replace(record, '\"checks\":true,', '')")
    assert "checks" not in (await store.load(episode.id)).head.settings
    model = mulligan.ScriptedModel([VAGUE, VAGUE, RIGHT] if fork else [VAGUE, RIGHT])
    resumed = await mulligan.resume(episode.run, model=model, store=store, fork=fork)
    assert resumed.solved
    assert (VAGUE in model.questions[-1].messages[-1].text) != fork


async def test_the_last_trial_is_judged_and_not_reflected_on(store: SqliteStore) -> None:
    model = mulligan.ScriptedModel([WRONG, LESSON, WRONG + " * 1"])
    episode = await mulligan.solve(
        "Write double(x).", model=model, strategy="reflexion", evaluator=Doubles, trials=2, store=store
    )
    assert (episode.stop and episode.stop.reason, len(model.questions)) == ("exhausted", 3)
    assert episode.trials[-1].feedback
    assert episode.trials[-1].reflection is None


@pytest.mark.parametrize("strategy", ["none", "last_attempt"])
async def test_without_reflections_no_model_is_called_for_one(store: SqliteStore, strategy: str) -> None:
    model = mulligan.ScriptedModel([WRONG, RIGHT])
    episode = await mulligan.solve("Write double(x).", model=model, strategy=strategy, evaluator=Doubles(), store=store)
    assert episode.solved
    assert ("Your previous attempt" in model.questions[1].messages[-1].text) == (strategy == "last_attempt")


async def test_restarts_are_independent_and_stop_at_the_first_solved(store: SqliteStore) -> None:
    model = mulligan.ScriptedModel([WRONG, RIGHT, RIGHT])
    episode = await mulligan.solve(
        "Write double(x).", model=model, evaluator=Doubles(), trials=1, restarts=3, store=store
    )
    assert episode.id.endswith(".2")
    assert LESSON not in model.questions[1].messages[-1].text
    assert len(await store.list(run=episode.run)) == 2
    seeds = [s.seed for s in model.samplings]
    assert len(set(seeds)) == 2


async def test_a_budget_keeps_the_attempt_that_it_stopped_behind(store: SqliteStore) -> None:
    model = mulligan.ScriptedModel([WRONG, LESSON, RIGHT])
    episode = await mulligan.solve(
        "Write double(x).", model=model, evaluator=Doubles(), limits={"tokens": 90}, store=store
    )
    assert episode.stop
    assert episode.stop.reason == "over_budget"
    assert episode.best
    assert episode.best.attempt.output == WRONG
    more = await mulligan.resume(episode.run, limits={"tokens": 100_000}, evaluator=Doubles(), model=model, store=store)
    assert more.solved
    assert more.usage.calls == 3


def broken_after(*answers: str) -> mulligan.ScriptedModel:
    return mulligan.ScriptedModel([*answers, ModelError("the provider is down")])


async def begun(tmp_path: Path, store: SqliteStore) -> tuple[Episode, Path, Path]:
    """An episode that stopped by an error behind its first trial, with its test file and its prompts folder."""
    tests, prompts = tmp_path / "tests.py", tmp_path / "prompts"
    tests.write_text("assert double(2) == 4\n")
    prompts.mkdir()
    (prompts / "verbal.code.md").write_text("[[user]]\nWhy?\n\n{{feedback}}")
    episode = await mulligan.solve(
        "Write double(x).",
        tests=tests,
        strategy="reflexion",
        prompts=prompts,
        model=broken_after(WRONG),
        store=store,
    )
    assert episode.stop
    assert (episode.stop.reason, len(episode.trials)) == ("error", 1)
    return episode, tests, prompts


@pytest.mark.slow
async def test_an_error_is_resumed_where_it_stopped(tmp_path: Path, store: SqliteStore) -> None:
    episode, _, _ = await begun(tmp_path, store)
    model = mulligan.ScriptedModel([LESSON, RIGHT])
    after = await mulligan.resume(episode.id[:4], model=model, store=store)
    assert after.solved
    assert after.id == episode.id
    assert after.trials[0].attempt == episode.trials[0].attempt
    with pytest.raises(InvalidInput, match="nothing to resume"):
        await mulligan.resume(episode.run, model=model, store=store)


async def test_a_changed_tests_file_is_named(tmp_path: Path, store: SqliteStore) -> None:
    episode, tests, _ = await begun(tmp_path, store)
    tests.write_text("assert double(3) == 6\n")
    with pytest.raises(JournalDiverged, match=r"file .*tests\.py.*fork=True"):
        await mulligan.resume(episode.run, model=mulligan.ScriptedModel([]), store=store)


async def test_a_changed_prompt_is_named(tmp_path: Path, store: SqliteStore) -> None:
    episode, _, prompts = await begun(tmp_path, store)
    (prompts / "verbal.code.md").write_text("[[user]]\nWhy, really?\n\n{{feedback}}")
    with pytest.raises(JournalDiverged, match=r"prompt verbal\.code"):
        await mulligan.resume(episode.run, model=mulligan.ScriptedModel([]), store=store)


async def test_a_changed_model_is_named_and_a_fork_goes_on(tmp_path: Path, store: SqliteStore) -> None:
    episode, _, _ = await begun(tmp_path, store)
    other = mulligan.ScriptedModel([LESSON, RIGHT], name="other")
    with pytest.raises(JournalDiverged, match="model actor"):
        await mulligan.resume(episode.run, model=other, store=store)
    forked = await mulligan.resume(episode.run, model=other, fork=True, store=store)
    assert forked.solved
    assert (forked.forked_from, forked.head.models["actor"]) == (episode.id, "other")
    assert forked.trials[0].attempt == episode.trials[0].attempt
    assert (await store.load(episode.id)).stop == episode.stop, "what was forked stays as it was"


async def failed_once(store: SqliteStore, strategy: str = "none") -> Episode:
    model = mulligan.ScriptedModel([WRONG])
    return await mulligan.solve(
        "Write double(x).", model=model, strategy=strategy, trials=1, evaluator=Doubles, store=store
    )


async def test_a_fork_of_an_episode_that_is_over_goes_on_with_another_strategy(store: SqliteStore) -> None:
    first = await failed_once(store)
    model = mulligan.ScriptedModel([LESSON, WRONG + " * 1", OTHER, RIGHT])
    forked = await mulligan.resume(
        first.run, fork=True, strategy="reflexion", limits={"trials": 3}, evaluator=Doubles, model=model, store=store
    )
    assert forked.solved
    assert (forked.forked_from, forked.plan.reflects, len(forked.trials)) == (first.id, True, 3)
    assert forked.trials[0].attempt == first.trials[0].attempt
    assert [t.reflection and t.reflection.text for t in forked.trials] == [LESSON, OTHER, None]
    assert WRONG in model.questions[0].messages[-1].text, "the first question is what to learn from the recorded trial"
    assert await store.load(first.id) == first, "what was forked stays as it was"
    assert await store.load(forked.id) == forked


@pytest.mark.parametrize("strategy", ["none", "last_attempt"])
async def test_a_fork_to_a_strategy_that_does_not_reflect_keeps_the_lessons_and_draws_none(
    store: SqliteStore, strategy: str
) -> None:
    begun_with = mulligan.ScriptedModel([WRONG, LESSON, WRONG + " * 1"])
    first = await mulligan.solve(
        "Write double(x).", model=begun_with, strategy="reflexion", trials=2, evaluator=Doubles, store=store
    )
    model = mulligan.ScriptedModel([WRONG + " * 2", RIGHT])
    forked = await mulligan.resume(
        first.run, fork=True, strategy=strategy, limits={"trials": 4}, evaluator=Doubles, model=model, store=store
    )
    assert forked.solved
    assert [bool(t.reflection) for t in forked.trials] == [True, False, False, False]
    assert all(LESSON not in question.messages[-1].text for question in model.questions)


async def test_a_fork_takes_settings_and_prompts_too(tmp_path: Path, store: SqliteStore) -> None:
    first = await failed_once(store)
    (tmp_path / "verbal.code.md").write_text("[[user]]\nWhy, really?\n\n{{feedback}}")
    model = mulligan.ScriptedModel([LESSON, RIGHT])
    forked = await mulligan.resume(
        first.run,
        fork=True,
        strategy="reflexion",
        settings={"actor": {"temperatures": [0.0, 1.5]}, "strategy": {"window": 1}},
        prompts=tmp_path,
        limits={"trials": 2},
        evaluator=Doubles,
        model=model,
        store=store,
    )
    assert forked.solved
    assert "Why, really?" in model.questions[0].messages[-1].text
    assert model.samplings[1].temperature == 1.5


async def test_a_fork_that_was_cut_off_is_resumed_as_any_run(store: SqliteStore) -> None:
    first = await failed_once(store)
    model = broken_after(LESSON)
    cut = await mulligan.resume(
        first.run, fork=True, strategy="reflexion", limits={"trials": 2}, evaluator=Doubles, model=model, store=store
    )
    assert (cut.stop and cut.stop.reason, cut.trials[0].reflection) == ("error", cut.reflections[0])
    model = mulligan.ScriptedModel([RIGHT])
    after = await mulligan.resume(cut.run, evaluator=Doubles, model=model, store=store)
    assert (after.id, after.solved, len(model.questions)) == (cut.id, True, 1)


async def test_a_fork_with_nothing_to_do_is_refused_and_leaves_nothing(store: SqliteStore) -> None:
    first = await failed_once(store)
    model = mulligan.ScriptedModel([RIGHT])
    with pytest.raises(InvalidInput, match=r"1 of 1 try used.*tries=N"):
        await mulligan.resume(first.run, fork=True, strategy="none", evaluator=Doubles, model=model, store=store)
    with pytest.raises(InvalidInput, match=r"nothing to resume.*fork=True"):
        await mulligan.resume(first.run, limits={"trials": 3}, evaluator=Doubles, model=model, store=store)
    solved = await mulligan.solve("Write double(x).", model=model, evaluator=Doubles, store=store)
    with pytest.raises(InvalidInput, match=r"solved: trial 1 passed"):
        await mulligan.resume(solved.run, fork=True, limits={"trials": 9}, evaluator=Doubles, model=model, store=store)
    assert {episode.id for episode in await store.list()} == {first.id, solved.id}


async def test_another_strategy_without_a_fork_is_named(store: SqliteStore) -> None:
    cut = await mulligan.solve("Write double(x).", model=broken_after(WRONG), evaluator=Doubles, store=store)
    with pytest.raises(JournalDiverged, match=r"setting strategy.*fork=True"):
        await mulligan.resume(cut.run, strategy="none", evaluator=Doubles, model=broken_after(), store=store)
    with pytest.raises(UnknownName, match="reflexio"):
        await mulligan.resume(cut.run, fork=True, strategy="reflexio", evaluator=Doubles, store=store)


async def test_bad_input_is_refused_before_any_model_is_asked(tmp_path: Path, store: SqliteStore) -> None:
    model = mulligan.ScriptedModel([RIGHT])
    broken = tmp_path / "tests.py"
    broken.write_text("assert double(2 == 4\n")
    for options in (
        {"tests": "nowhere.py"},
        {"tests": broken},
        {"evaluator": "exact_mtch:4"},
        {"strategy": "reflexio"},
        {"tests": broken, "check": "true"},
        {"settings": {"strategy": {"windw": 2}}},
        {"settings": {"workspace": {"mode": "copy"}}},
        {"limits": {"tirals": 3}},
        {"trials": 0},
        {"restarts": 0},
        {"check": "pytest -q"},
        {"actor": "command:claude -p", "check": "pytest -q"},
    ):
        with pytest.raises((InvalidInput, UnknownName)):
            await mulligan.solve("Write double(x).", model=model, store=store, **options)  # pyright: ignore[reportArgumentType]
    assert model.questions == []
    assert not await store.list()


async def test_roles_of_the_user_must_be_given_again(store: SqliteStore) -> None:
    model = broken_after(WRONG)
    episode = await mulligan.solve("Write double(x).", model=model, evaluator=Doubles(), store=store)
    with pytest.raises(InvalidInput, match=r"its own evaluator.*mulligan\.resume\(id, evaluator="):
        await mulligan.resume(episode.run, model=model, store=store)


async def test_an_observer_that_breaks_stops_nothing(store: SqliteStore) -> None:
    def broken(episode: Episode, event: object) -> None:
        raise OverBudget("not your business")

    episode = await mulligan.solve(
        "Write double(x).", model=mulligan.ScriptedModel([RIGHT]), evaluator=Doubles(), observers=[broken], store=store
    )
    assert episode.solved


async def test_all_restarts_that_a_budget_stopped_are_resumed(store: SqliteStore) -> None:
    model = mulligan.ScriptedModel([RIGHT])
    judge = Doubles()
    paused = await mulligan.solve(
        "Write double(x).", model=model, evaluator=judge, restarts=2, limits={"tokens": 1}, store=store
    )
    assert [e.stop and e.stop.reason for e in await store.list(run=paused.run)] == ["over_budget"] * 2
    model = mulligan.ScriptedModel([WRONG, RIGHT])
    more = {"tokens": None, "trials": 1}
    after = await mulligan.resume(paused.run, model=model, evaluator=judge, limits=more, store=store)
    assert after.id == f"{paused.run}.2"
    assert after.solved
    assert len(await store.list(run=paused.run)) == 2


async def test_a_model_file_is_found_again_from_another_folder(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "answers.txt").write_text(RIGHT)
    monkeypatch.chdir(tmp_path)
    episode = await mulligan.solve(
        "Write double(x).", model="scripted:answers.txt", evaluator=Doubles(), limits={"tokens": 1}, store=store
    )
    assert episode.stop
    assert episode.stop.reason == "over_budget"
    assert episode.head.models["actor"].startswith("scripted:answers.txt@")
    monkeypatch.chdir(tmp_path / "elsewhere")
    after = await mulligan.resume(episode.run, evaluator=Doubles(), limits={"tokens": None}, store=store)
    assert after.solved


def test_the_store_lies_beside_mulligan_toml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mulligan.app.config import load

    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "mulligan.toml").write_text('model = "scripted:a.txt"\n[limits]\ntrials = 2\n')
    monkeypatch.chdir(tmp_path / "deep" / "er")
    assert load().root == tmp_path
    assert load().database == Path(os.environ["MULLIGAN_HOME"]) / "mulligan.db"
    monkeypatch.delenv("MULLIGAN_HOME")
    assert load().database == tmp_path / ".mulligan" / "mulligan.db"
    (tmp_path / "mulligan.toml").write_text("modle = 1\n")
    with pytest.raises(UnknownName, match="Did you mean 'model'"):
        load()


def test_solve_sync_for_code_without_a_loop(store: SqliteStore) -> None:
    episode = mulligan.solve_sync(
        "Write double(x).", model=mulligan.ScriptedModel([RIGHT]), evaluator=Doubles(), store=store
    )
    assert episode.solved


async def test_solve_sync_says_so_inside_a_running_loop() -> None:
    with pytest.raises(InvalidInput, match="use `await"):
        mulligan.solve_sync("Write double(x).")
