"""A person takes, edits, writes or vetoes the lessons of an episode, over real pseudo-terminals."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from terminals import seen, terminal

import mulligan
from mulligan import ScriptedModel
from mulligan.app.editing import AtTerminal
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.records import Attempt, Episode, Feedback, Reflection, Task, Trial
from mulligan.evaluators.human import Terminal
from mulligan.plugins import Choice
from mulligan.store import open_store

EPISODE = Episode("e.1", Task("t"), trials=(Trial(1, Attempt("tea"), Feedback(False, "It is not water.")),))
LESSON = Reflection("Say water.")


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """(the person's end, the program's end) of a pseudo-terminal."""
    with terminal() as both:
        yield both


async def decided(ends: tuple[int, int], *lines: str, lesson: Reflection = LESSON) -> tuple[Choice, str]:
    """The choice after these lines were typed, and the first question."""
    person, program = ends
    asking = asyncio.ensure_future(AtTerminal(Terminal(program, program))(EPISODE, lesson))
    shown = ""
    for line in lines:
        question = await seen(person, "lesson: ")
        shown = shown or question
        os.write(person, line.encode())
    return replace(await asyncio.wait_for(asking, 10), by=""), shown


async def test_the_person_is_shown_the_verdict_and_the_lesson(ends: tuple[int, int]) -> None:
    choice, shown = await decided(ends, "\n", lesson=Reflection("Say water.\x1b[2J"))
    assert choice == Choice("taken")
    assert shown.replace("\r\n", "\n") == snapshot("""\

Try 1 failed: It is not water.
Lesson:

Say water.\\x1b[2J

Enter accepts it, e edits it, v vetoes it, or write another lesson: \
""")


@pytest.mark.parametrize(
    ("lines", "choice"),
    [
        (("take\n",), Choice("taken")),
        (("v\n",), Choice("vetoed")),
        (("Name a drink without taste.\n",), Choice("written", "Name a drink without taste.")),
        (("y\n", "veto\n"), Choice("vetoed")),
        (("yes\n", "No!\n", "ok.\n", "veto\n"), Choice("vetoed")),
        (("只喝水。\n",), Choice("written", "只喝水。")),
    ],
)
async def test_what_was_typed_decides(ends: tuple[int, int], lines: tuple[str, ...], choice: Choice) -> None:
    assert (await decided(ends, *lines))[0] == choice


@pytest.mark.parametrize(("lines", "choice"), [(("\n",), Choice("vetoed")), (("t\n",), Choice("taken"))])
async def test_a_withheld_lesson_is_left_out_unless_it_is_taken(
    ends: tuple[int, int], lines: tuple[str, ...], choice: Choice
) -> None:
    got, shown = await decided(ends, *lines, lesson=Reflection("Try harder.", withheld="It names nothing."))
    assert got == choice
    assert "withheld (It names nothing.)" in shown


async def test_without_a_lesson_one_can_be_written(ends: tuple[int, int]) -> None:
    got, _ = await decided(ends, "t\n", "Say water.\n", lesson=Reflection("", withheld="There is none."))
    assert got == Choice("written", "Say water.")


@pytest.mark.parametrize(
    ("program", "choice"),
    [
        ("open(f, 'a').write('Not tea.')", Choice("edited", "Say water.\nNot tea.")),
        ("pass", Choice("taken", "Say water.")),
    ],
)
async def test_the_editor_of_the_user_is_started(
    ends: tuple[int, int], program: str, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", f'{sys.executable} -c "import sys; f = sys.argv[1]; {program}"')
    assert (await decided(ends, "e\n"))[0] == choice


@pytest.mark.parametrize("editor", ["false", "/no/such/editor", "", "vi 'open"])
async def test_where_the_editor_fails_the_question_is_put_again(
    ends: tuple[int, int], editor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.setenv("VISUAL", editor)
    assert (await decided(ends, "e\n", "v\n"))[0] == Choice("vetoed")


async def test_where_nobody_answers_the_episode_pauses(ends: tuple[int, int]) -> None:
    with pytest.raises(MulliganError, match="no decision"):
        await decided(ends, "\x04")


def script() -> ScriptedModel:
    return ScriptedModel(["tea", "Say 'tea' no more: say water.", "coffee", "Say 'coffee' no more.", "water"])


async def test_the_record_says_who_made_what_of_a_lesson() -> None:
    shown: list[str] = []

    async def decide(episode: Episode, reflection: Reflection) -> Choice:
        shown.append(reflection.text)
        first = len(episode.trials) == 1
        return Choice("written", "Say water.", "Ann") if first else Choice("vetoed", by="Ann")

    model = script()
    episode = await mulligan.solve(
        "Name a drink.", evaluator="contains:water", model=model, edit_reflections=decide, strategy="reflexion"
    )
    assert shown == ["Say 'tea' no more: say water.", "Say 'coffee' no more."]
    first, second = episode.reflections
    (written,), (vetoed,) = first.edits, second.edits
    assert (first.text, written.decision, written.by, written.before) == ("Say water.", "written", "Ann", shown[0])
    assert (second.text, second.withheld, vetoed.decision) == (shown[1], "A person vetoed it.", "vetoed")
    assert written.at > 1e9
    last = model.questions[4].messages[-1].text
    assert "- Say water." in last
    assert "no more" not in last


async def test_a_resumed_episode_asks_only_for_what_was_not_answered() -> None:
    asked: list[int] = []

    async def decide(episode: Episode, reflection: Reflection) -> Choice:
        asked.append(len(episode.trials))
        if asked == [1, 2]:
            raise MulliganError("no decision was made about the lesson")
        return Choice("taken", by="Ann")

    model = script()
    async with open_store("memory:") as store:
        given: Any = {"store": store, "edit_reflections": decide}
        paused = await mulligan.solve(
            "Name a drink.", evaluator="contains:water", model=model, strategy="reflexion", **given
        )
        assert paused.stop
        assert paused.stop.reason == "error"
        resumed = await mulligan.resume(paused.run, model=model, **given)
        keys = [row.key for row in await store.steps(resumed.id)]
    assert resumed.solved
    assert asked == [1, 2, 2]
    assert len(model.questions) == 5
    assert keys.count("trial.2/reflect/person#1") == 1


async def test_a_strategy_without_lessons_is_refused_before_anything_is_called() -> None:
    async def decide(episode: Episode, reflection: Reflection) -> Choice:
        return Choice("taken")

    model = script()
    with pytest.raises(InvalidInput, match="writes no lessons"):
        await mulligan.solve("x", evaluator="contains:y", model=model, edit_reflections=decide, strategy="evidence")
    assert model.questions == []


@pytest.mark.slow
def test_without_a_terminal_it_is_refused_before_anything_is_called(tmp_path: Path) -> None:
    (tmp_path / "script.txt").write_text("tea")
    command = ("solve", "x", "--evaluator", "contains:y", "--model", "scripted:script.txt", "--edit-reflections")
    env = {**os.environ, "MULLIGAN_HOME": str(tmp_path), "MULLIGAN_STORE": ""}
    ran = subprocess.run(
        [sys.executable, "-m", "mulligan", *command],
        env=env,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=60,
    )
    assert ran.returncode == 2
    assert "asks a person at a terminal, but there is no terminal here" in ran.stderr
    assert "trial 1" not in ran.stderr


PLAYED = """
import asyncio, json, os, sys
import mulligan
from mulligan import ScriptedModel

def answer(question, sampling):
    text = question.messages[-1].text
    lesson = text.endswith("Lesson:")
    with open(sys.argv[1], "a") as log:
        log.write("lesson\\n" if lesson else "attempt\\n")
    if lesson:
        return "Say 'coffee' no more." if "coffee" in text else "Say 'tea' no more."
    return "water" if "I said so" in text else "coffee" if "no more" in text else "tea"

model = ScriptedModel(answer)
if len(sys.argv) > 2:
    episode = asyncio.run(mulligan.resume(sys.argv[2], model=model))
else:
    episode = mulligan.solve_sync(
        "Name a drink.", evaluator="contains:water", model=model, strategy="reflexion", edit_reflections=True
    )
print(json.dumps([episode.stop.reason, [[e.decision for e in r.edits] for r in episode.reflections]]))
"""


@pytest.mark.slow
def test_killed_while_it_asks_it_does_not_ask_again_for_what_was_answered(tmp_path: Path) -> None:
    """Two real processes on a pseudo-terminal; the first is killed while the second question stands."""
    log = tmp_path / "log"

    def started(*arguments: str) -> tuple[int, int]:
        pid, person = pty.fork()
        if pid == 0:
            os.chdir(tmp_path)
            env = {**os.environ, "MULLIGAN_HOME": str(tmp_path), "MULLIGAN_STORE": ""}
            os.execve(sys.executable, [sys.executable, "-c", PLAYED, str(log), *arguments], env)
        return pid, person

    def until(person: int, text: str) -> str:
        said = ""
        while text not in said:
            ready, _, _ = select.select([person], [], [], 15)
            assert ready, said
            said += os.read(person, 4096).decode()
        return said

    pid, person = started()
    until(person, "lesson: ")
    os.write(person, b"\n")
    assert "Try 2 failed" in until(person, "lesson: ")
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    os.close(person)
    assert log.read_text().split() == ["attempt", "lesson"] * 2

    store = open_store(f"sqlite:///{tmp_path}/mulligan.db")

    async def run() -> str:
        async with store:
            (episode,) = await store.list()
            assert [trial.lesson for trial in episode.trials] == ["Say 'tea' no more.", ""]
            return episode.run

    pid, person = started(asyncio.run(run()))
    shown = until(person, "lesson: ")
    assert "Try 2 failed" in shown
    assert "Try 1 failed" not in shown
    os.write(person, b"water, I said so\n")
    assert '["solved", [["taken"], ["written"]]]' in until(person, "]]]")
    os.waitpid(pid, 0)
    os.close(person)
    assert log.read_text().split() == [*["attempt", "lesson"] * 2, "attempt"], "no call is made twice"
