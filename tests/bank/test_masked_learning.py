"""Secrets are masked before a trajectory is judged, extracted from, queued or stored; the judge sees the task whole."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from banks import a_bank, an_episode, lessons_of
from secret_kinds import BY_LOOK, BY_WORDS, shows

from mulligan import Attempt, Bank, Episode, Feedback, ScriptedModel, Task, Trial
from mulligan.app.prompts import FilePrompts
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Reflection, Step
from mulligan.evaluators.model_judge import ModelJudge
from mulligan.text.secrets import MASK

DRAWN = [
    *((kind, secret := make(Random(7)), f"got {secret}, then") for kind, make in BY_LOOK.items()),
    *((kind, *make(Random(7))) for kind, make in BY_WORDS.items()),
]
SECRETS = [secret for _, secret, _ in DRAWN if secret != "swordfish"]  # a word is one only beside those that say so
TEXTS = [text for _, _, text in DRAWN]


def full_of_secrets(passed: bool | None = False) -> Episode:
    """Every kind of secret in every place of a trajectory that can hold text."""
    steps = tuple(Step(f"I think {text}", text, f"seen:\n{text}") for text in TEXTS)
    trial = Trial(1, Attempt("\n".join(TEXTS), steps), Feedback(passed, "\n".join(TEXTS)), Reflection("\n".join(TEXTS)))
    return Episode("e1", Task("Deploy it."), run="e1", trials=(trial,))


def copying(question: Question, sampling: Sampling) -> Any:
    """Copies all that it was shown into its answer."""
    shown = "\n".join(message.text for message in question.messages)
    if "verdict" in question.schema["properties"]:
        return {"reasoning": shown, "verdict": "failure"}
    return lessons_of(("Copied", shown[:1900]))


def asked_text(questions: Sequence[Question]) -> str:
    return "\n".join(message.text for question in questions for message in question.messages)


def leaked(text: str) -> list[str]:
    return [secret for secret in SECRETS if shows(secret, text)]


async def kept_by(bank: Bank) -> str:
    """All that the bank holds and gives out."""
    lessons = [await bank.list(), [await bank.history(lesson.id) for lesson in await bank.list()]]
    return json.dumps([repr(lessons), repr(await bank.pending())], ensure_ascii=False)


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("passed", [False, None])
async def test_a_model_is_asked_and_keeps_without_secrets(tmp_path: Path, passed: bool | None) -> None:
    model = ScriptedModel(copying)
    async with a_bank(tmp_path / "m.db", model=model, settings={"trajectory_tokens": 100_000}) as bank:
        learned = await bank.learn(full_of_secrets(passed))
        assert learned.lessons
        await bank.recall("password=abc123def of which task?")
        assert leaked(asked_text(model.questions)) == []
        assert asked_text(model.questions).count("[secret masked") > len(SECRETS)
        assert leaked(await kept_by(bank)) == []
    assert leaked(bytes_of(tmp_path)) == []
    assert "abc123def" not in bytes_of(tmp_path)


def bytes_of(folder: Path) -> str:
    """The files of the database, as they are on disk."""
    return "".join(path.read_bytes().decode("utf-8", "replace") for path in folder.iterdir())


@pytest.mark.slow
async def test_what_waits_for_an_answer_holds_no_secret(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", settings={"trajectory_tokens": 100_000}) as bank:
        asked = await bank.learn(full_of_secrets(None))
        assert asked.question
        assert leaked(asked_text([asked.question])) == []
        judged = await bank.commit(str(asked.work), {"reasoning": "\n".join(TEXTS)[:1500], "verdict": "failure"})
        assert judged.question
        assert leaked(asked_text([judged.question]) + judged.reason + repr(await bank.pending())) == []
        assert leaked(bytes_of(tmp_path)) == []


CARD = "4111" + "1111" * 3
TASK = Task(f"Is {CARD} a valid card number? And which file has the password abc123def?")


def checked() -> Episode:
    steps = (Step("", f"check {CARD}", "password=abc123def"), Step("", "ls", "password=other456x"))
    return Episode("e2", TASK, run="e2", trials=(Trial(1, Attempt(f"{CARD} is valid", steps)),))


async def test_the_judge_of_a_task_sees_what_stands_in_it_and_nothing_else_does(tmp_path: Path) -> None:
    model = ScriptedModel(copying)
    async with a_bank(tmp_path / "m.db", model=model) as bank:
        learned = await bank.learn(checked())
        judge, extractor = (asked_text([question]) for question in model.questions)
        assert f"Is {CARD} a valid" in judge
        assert f"check {CARD}" in judge
        assert "password=abc123def" in judge
        assert "other456x" not in judge
        assert f"Is {MASK} a valid" in extractor
        assert f"check {MASK}" in extractor
        assert CARD not in extractor + learned.reason + await kept_by(bank) + bytes_of(tmp_path)
        assert "abc123def" not in extractor + learned.reason + await kept_by(bank) + bytes_of(tmp_path)


async def test_a_judge_in_a_later_process_sees_masks_that_keep_what_is_equal(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db") as bank:
        asked = await bank.learn(checked())
        assert f"check {CARD}" in asked_text([await bank.question(str(asked.work))])
    async with a_bank(tmp_path / "m.db") as bank:
        later = asked_text([await bank.question(str(asked.work))])
        assert f"Is {MASK} a valid" in later
        assert f"check {MASK}" in later
        assert CARD not in later


async def test_a_receipt_holds_no_secret(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db") as bank:
        await bank.add("Keep keys", "In a vault.")
        recall = await bank.recall("Use the key for password=abc123def")
        assert (await bank.receipt(recall.id)).query == f"Use the key for password={MASK}"


async def test_work_that_fails_does_not_say_a_secret(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db") as bank:
        work = str((await bank.learn(an_episode("e1", "Find it", "done"))).work)
        with pytest.raises(Exception, match="cites"):
            await bank.commit(
                work, {"lessons": [{"title": "t", "description": "d", "content": "c", "steps": ["token=abc123def4"]}]}
            )
        assert "abc123def4" not in str((await bank.outcome(work)).failed) + bytes_of(tmp_path)


async def test_an_evaluator_that_asks_a_model_masks_the_attempt_but_for_the_task() -> None:
    judge = ModelJudge(model=ScriptedModel([]), prompts=FilePrompts(), tokens=100_000)
    assert leaked(asked_text([judge.ask([full_of_secrets()])])) == []
    asked = asked_text([judge.ask([checked()])])
    assert "password=abc123def" in asked
    assert "other456x" not in asked
    assert "(Secrets are shown as" in asked
