"""A foresight before the actions of whole episodes: in an environment, and before calls of tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import shelf_world
from hypothesis import given
from hypothesis import strategies as st

from mulligan import Limits, ScriptedModel
from mulligan.app.config import Config
from mulligan.app.foresight import Person
from mulligan.app.model_roles import Models
from mulligan.app.recipe import Recipe
from mulligan.app.session import Session
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Episode, Json, Lesson, Recall, Spec, Task, Usage
from mulligan.store import open_store

SHELF = Spec(str(Path(shelf_world.__file__)))
PROMPT = "[[user]]\n{{task}}\n\n{{recall}}\n\n{{past}}\n\n{{trajectory}}"
DELETE = "Delete the folder that nobody needs."
LESSON = Lesson("les1", "Look before deleting", "The ledger is needed: never delete it.", "failure")


def answer(decision: str = "go_on", **parts: Json) -> dict[str, Json]:
    return {
        "risk": "What is needed is lost.",
        "critical": True,
        "reason": "The lesson says so.",
        "decision": decision,
        "action": "",
        "question": "",
        **parts,
    }


class OneLesson:
    """A bank that gives one lesson for whatever mentions deleting."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        self.asked.append(task.prompt)
        return Recall("r", (LESSON,) if "delete" in task.prompt else ())

    async def learn(self, episodes: Sequence[Episode]) -> Any:
        raise AssertionError


async def played(
    model: ScriptedModel,
    folder: Path,
    foresight: Spec | None,
    *,
    actor: Spec = Spec("interact", {"steps": 6}),
    trials: int = 1,
    bank: Any = None,
    environment: Spec = SHELF,
    person: Person | None = None,
    **more: Any,
) -> Episode:
    """The episode, as it was recorded."""
    (folder / "interact.shelf_world.md").write_text(PROMPT)
    models = Models(Config())
    limits = Limits(trials=trials, identical=None, **more)
    recipe = Recipe(
        actor,
        Spec("outcome"),
        Spec("feedback"),
        Spec("reflexion"),
        limits,
        models.name(model),
        prompts=str(folder),
        recalls=bank is not None,
        environment=environment,
        foresight=foresight,
    )
    async with open_store("memory:") as store:
        session = Session(Config(), models, {}, bank, person=person)
        async with session.runner(store, recipe) as runner:
            episode = await runner.run(Task(DELETE))
        assert await store.load(episode.id) == episode
    return episode


PREMORTEM = Spec("premortem")


async def test_the_check_with_the_lesson_prevents_the_mistake(tmp_path: Path) -> None:
    """Without it, the first task fails by deleting the wrong thing; the second one begins with the lesson."""
    failed = await played(ScriptedModel(["delete ledger"]), tmp_path, None)
    assert not failed.solved
    changed = answer("change", action="delete drafts", reason="The lesson says that the ledger is needed.")
    bank = OneLesson()
    model = ScriptedModel(["delete ledger", changed])
    episode = await played(model, tmp_path, PREMORTEM, bank=bank)
    assert episode.solved
    step = episode.trials[0].attempt.steps[-1]
    assert step.action == "delete drafts"
    assert step.check is not None
    assert step.check.lessons == ("les1",)
    assert (step.check.action, step.check.change, step.check.because) == ("delete ledger", "delete drafts", "declared")
    assert bank.asked == [DELETE, "delete ledger"]
    assert LESSON.content in model.questions[1].messages[-1].text


async def test_an_episode_without_one_is_as_before(tmp_path: Path) -> None:
    model = ScriptedModel(["look", "delete drafts"])
    episode = await played(model, tmp_path, None)
    assert episode.solved
    assert all(step.check is None for step in episode.trials[0].attempt.steps)
    assert set(episode.head.models) == {"actor"}


async def test_what_nobody_can_allow_is_not_performed_and_stays_so(tmp_path: Path) -> None:
    asks = answer("ask", question="Is the ledger needed?")
    model = ScriptedModel(["delete ledger", asks, "delete ledger", "delete drafts", answer()])
    episode = await played(model, tmp_path, Spec("premortem", {"checks": 2}))
    assert episode.solved
    _, first, again, last = episode.trials[0].attempt.steps
    assert first.observation.startswith("Not performed: it needs a person's permission")
    assert first.check is not None
    assert first.check.question == "Is the ledger needed?"
    assert (first.check.performed, first.check.asked, first.check.usage.calls) == (False, True, 1)
    assert again.check is not None
    assert (again.check.performed, again.check.asked, again.check.usage) == (False, False, Usage())
    assert last.check is not None
    assert last.check.performed
    assert "> delete ledger\nNot performed" in model.questions[2].messages[-1].text
    assert episode.trials[0].attempt.usage.calls == 5


@pytest.mark.parametrize(("said", "solved"), [("yes", True), ("go on.", True), ("no", False), ("rather look", False)])
async def test_a_person_decides(said: str, solved: bool, tmp_path: Path) -> None:
    shown: list[str] = []

    async def person(text: str) -> str:
        shown.append(text)
        return said

    model = ScriptedModel(["delete drafts", answer("ask", question="Are\x1b[2J the drafts done?")])
    episode = await played(model, tmp_path, PREMORTEM, actor=Spec("interact", {"steps": 1}), person=person)
    assert episode.solved == solved
    step = episode.trials[0].attempt.steps[-1]
    assert step.check is not None
    assert (step.check.answer, step.check.performed) == (said, solved)
    assert solved or said in step.observation
    assert "    delete drafts\n" in shown[0]
    assert "\x1b" not in shown[0]


async def test_what_a_pattern_or_the_model_finds_critical_is_checked(tmp_path: Path) -> None:
    model = ScriptedModel(["look", answer(), "delete drafts", answer()])
    episode = await played(model, tmp_path, Spec("premortem", {"before": ["L.+K"]}))
    checks = [step.check for step in episode.trials[0].attempt.steps if step.check]
    assert [check.because for check in checks] == ["pattern L.+K", "declared"]
    harmless = answer(critical=False, decision="ask")
    model = ScriptedModel(["look", harmless, "look", "look around", harmless, "delete drafts", "delete drafts"])
    episode = await played(model, tmp_path, Spec("premortem", {"before": "model", "checks": 2}))
    first, again, around, last = episode.trials[0].attempt.steps[1:]
    assert first.check is not None
    assert (first.check.because, first.check.critical, first.check.decision) == ("model", False, "go_on")
    assert again.check is None  # it was found harmless before
    assert around.check is not None
    assert last.check is not None
    assert (last.check.asked, last.check.notes) == (False, ("The episode's limit of 2 checks is reached.",))


@pytest.mark.parametrize(("unclear", "solved"), [("go_on", True), ("refuse", False)])
async def test_an_answer_that_cannot_be_used_is_asked_for_once_more(unclear: str, solved: bool, tmp_path: Path) -> None:
    model = ScriptedModel(["delete drafts", answer("perhaps"), answer("change")])
    foresight = Spec("premortem", {"unclear": unclear})
    episode = await played(model, tmp_path, foresight, actor=Spec("interact", {"steps": 1}))
    assert episode.solved == solved
    assert "'perhaps'" in model.questions[2].messages[-1].text
    check = episode.trials[0].attempt.steps[-1].check
    assert check is not None
    assert check.performed == solved
    assert "No answer could be used" in check.notes[0]


async def test_limits_hold_for_checks_too(tmp_path: Path) -> None:
    model = ScriptedModel(["delete drafts", answer()])
    episode = await played(model, tmp_path, PREMORTEM, tokens=60)
    assert episode.stop is not None
    assert episode.stop.reason == "over_budget"


async def test_a_check_is_kept_even_if_the_actor_loses_it(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from mulligan.plugins import Attempt, Step\n"
        "class Own:\n"
        "    def __init__(self, *, environment):\n"
        "        self._world = environment\n"
        "    async def act(self, episode, past):\n"
        "        async with self._world.open() as world:\n"
        "            await world.reset()\n"
        "            step = await world.step('delete ledger')\n"
        "        return Attempt('done', (Step(action='mine'),), step.outcome)\n"
    )
    model = ScriptedModel([answer("change", action="delete drafts")])
    episode = await played(model, tmp_path, PREMORTEM, actor=Spec(str(tmp_path / "own.py")))
    assert episode.solved
    mine, kept = episode.trials[0].attempt.steps
    assert (mine.action, kept.action) == ("mine", "delete drafts")
    assert kept.check is not None


ACTIONS = st.sampled_from(["look", "delete ledger", "delete drafts", "dance"])
DECISIONS = st.sampled_from(["go_on", "change", "ask", "nonsense"])


@pytest.mark.slow
@given(
    actions=st.lists(ACTIONS, min_size=12, max_size=12),
    decisions=st.lists(st.tuples(DECISIONS, ACTIONS), min_size=24, max_size=24),
    checks=st.integers(1, 4),
    before=st.sampled_from(["declared", "model", "dance"]),
)
async def test_never_more_checks_than_allowed_and_what_is_recorded_was_done(
    tmp_path_factory: pytest.TempPathFactory, actions: list[str], decisions: list[Any], checks: int, before: str
) -> None:
    folder = tmp_path_factory.mktemp("world")
    acting, judging = iter(actions), iter(decisions)

    def say(question: Question, sampling: Sampling) -> Any:
        if question.schema is None:
            return next(acting, "look")
        decision, action = next(judging, ("go_on", ""))
        return answer(decision, action=action)

    log = folder / "log"
    foresight = Spec("premortem", {"checks": checks, "before": before})
    actor = Spec("interact", {"steps": 4})
    world = SHELF.with_settings(log=str(log))
    episode = await played(ScriptedModel(say), folder, foresight, actor=actor, trials=3, environment=world)
    steps = [step for trial in episode.trials for step in trial.attempt.steps if step.action]
    made = [step.check for step in steps if step.check and step.check.asked]
    assert len(made) <= checks
    assert all(1 <= check.usage.calls <= 2 for check in made)
    assert all(not step.check.usage.calls for step in steps if step.check and not step.check.asked)
    done = [step.action for step in steps if not step.check or step.check.performed]
    assert log.read_text().split("\n")[:-1] == done if log.exists() else not done
    assert all(step.check is None or step.action == (step.check.change or step.check.action) for step in steps)
