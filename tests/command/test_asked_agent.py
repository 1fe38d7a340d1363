"""The reflector `self`: the agent is asked in a throw-away copy of its folder, and nothing of that is left."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from command_project import MENDS_ONE, Bench, files, git, image, project, running, stopped

from mulligan.app.prompts import FilePrompts
from mulligan.core.episode import Event, advance
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter, Roles, drive
from mulligan.core.records import Episode, Reflection
from mulligan.recording.journal import StoredJournal
from mulligan.recording.ledger import Entry
from mulligan.reflectors.self import Self
from mulligan.store.sqlite import SqliteStore
from mulligan.strategies.evidence_and_reflexion import EvidenceAndReflexion
from mulligan.workspace.git_workspace import Mode

ASKED = "An attempt of yours at this task failed"
ANSWERS = (
    "import os, sys\n"
    "prompt = sys.stdin.read()\n"
    f"if {ASKED!r} in prompt:\n"
    "    text = open('calc.py').read()\n"
    "    open('calc.py', 'w').write('spoilt')\n"
    "    open('notes.txt', 'w').write('mine')\n"
    "    open('cache.ignored', 'w').write('mine')\n"
    "    mended = 'return a + b' in text\n"
    "    seen = [word for word in ('FAILED test_sub', '+    return a + b') if word in prompt]\n"
    "    print('Add is mended:', mended, '; I saw', seen, '; leave what works.')\n"
    "    sys.exit()\n"
) + MENDS_ONE.replace("prompt = sys.stdin.read()", "")


def asking(bench: Bench, **settings: Any) -> Self:
    return Self(agent=bench.actor(), prompts=FilePrompts(), **settings)


async def solved(bench: Bench, reflector: Self | None = None, trials: int = 4) -> Episode:
    episode = bench.episode()

    async def record(event: Event) -> Episode:
        nonlocal episode
        episode = advance(episode, event)
        return episode

    roles = Roles(bench.actor(), bench.judge, reflector or asking(bench), EvidenceAndReflexion())
    return await drive(episode, roles, Limits(trials=trials, identical=None), record, Meter())


def reflections(episode: Episode) -> list[Reflection]:
    return [trial.reflection for trial in episode.trials if trial.reflection]


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("mode", ["worktree", "copy", "in_place"])
async def test_it_is_asked_where_its_attempt_stands_and_what_it_changes_is_discarded_and_named(
    tmp_path: Path, mode: Mode
) -> None:
    folder = project(tmp_path / "user")
    before = image(folder)
    bench = Bench(tmp_path, folder, agent=ANSWERS, mode=mode)
    episode = await solved(bench)
    assert stopped(episode) == "solved: trial 3 passed"
    lesson, *_ = reflections(episode)
    assert lesson.text == "Add is mended: True ; I saw ['FAILED test_sub', '+    return a + b'] ; leave what works."
    assert lesson.notes == ("changes that the agent made while it was asked were discarded: calc.py, notes.txt",)
    place = await bench.workspace.open(episode)
    assert not {"notes.txt", "cache.ignored"} & set(files(place.folder))
    assert b"spoilt" not in files(place.folder)["calc.py"]
    own = tmp_path / "data" / "e1"
    assert not [path.name for path in own.iterdir() if "aside" in path.name]
    assert git(folder, "worktree", "list").count("\n") == (2 if mode == "worktree" else 1)
    await bench.workspace.close(episode)
    assert git(folder, "for-each-ref", "--format=%(refname)", "refs/mulligan").count("trial") == (mode != "copy") * 3
    if mode != "in_place":
        assert image(folder) == before


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    ("does", "seconds", "said"),
    [
        ("print('out of credit'); sys.exit(3)", 60, "no lesson, as the agent ended with status 3: out of credit"),
        ("import time; time.sleep(600)", 2, "no lesson, as the agent was stopped after 2 seconds"),
        ("sys.exit()", 60, "no lesson, as the agent printed nothing"),
    ],
    ids=["fails", "hangs", "silent"],
)
async def test_without_an_answer_there_is_no_lesson_and_a_note_says_why(
    tmp_path: Path, does: str, seconds: float, said: str
) -> None:
    agent = f"import sys\nif {ASKED!r} in sys.stdin.read():\n    {does}\n"
    bench = Bench(tmp_path, project(tmp_path / "user"), agent=agent, settings={"seconds": seconds})
    episode = await solved(bench, trials=2)
    (reflection,) = reflections(episode)
    assert reflection.text == ""
    assert reflection.notes[0].startswith(said)
    assert running(tmp_path) == []


@pytest.mark.slow
async def test_its_answer_is_bounded_and_keeps_its_end(tmp_path: Path) -> None:
    agent = f"import sys\nif {ASKED!r} in sys.stdin.read():\n    print('word ' * 90_000, 'the end')\n"
    bench = Bench(tmp_path, project(tmp_path / "user"), agent=agent)
    episode = await solved(bench, asking(bench, length=100), trials=2)
    (lesson,) = reflections(episode)
    assert lesson.text.startswith("word")
    assert lesson.text.endswith("the end")
    assert len(lesson.text) < 1_000
    with pytest.raises(InvalidInput, match="at least 1 token, not 0"):
        asking(bench, length=0)


async def test_writing_into_the_users_tree_while_it_is_asked_stops_the_episode(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    agent = f"import sys\nif {ASKED!r} in sys.stdin.read():\n    open({str(folder / 'calc.py')!r}, 'a').write('#')\n"
    episode = await solved(Bench(tmp_path, folder, agent=agent))
    assert stopped(episode).startswith("error: reflect of trial 1: Files in your own tree changed during the question")
    assert "calc.py" in stopped(episode)


async def test_without_an_attempt_there_is_nothing_to_ask_about(tmp_path: Path) -> None:
    bench = Bench(tmp_path, project(tmp_path / "user"))
    with pytest.raises(MulliganError, match="has not made an attempt yet"):
        await bench.actor().ask(bench.episode(), "Why?")


WAITS = """import os, sys
prompt = sys.stdin.read()
open({tmp!r} + "/log", "a").write("asked " if {asked!r} in prompt else "tried ")
if {asked!r} in prompt:
    if open({tmp!r} + "/log").read().count("asked") == 1:
        open("half.txt", "w").write("half done")
        open({tmp!r} + "/pipe", "w").write("here")
        import time
        time.sleep(600)
    print("Add first.")
"""
DRIVES = """import asyncio, sys
from pathlib import Path
sys.path.insert(0, {here!r})
import test_asked_agent as t
asyncio.run(t.stored(Path({tmp!r}), {mode!r}))
"""


async def stored(tmp: Path, mode: Mode = "worktree") -> Episode:
    """One drive of the episode in `tmp`, recorded in its store; begun where there is none yet."""
    store = SqliteStore(tmp / "db.sqlite")
    bench = Bench(tmp, tmp / "user", agent=WAITS.format(tmp=str(tmp), asked=ASKED), mode=mode)
    if not await store.list():
        await store.create(bench.episode())
    lease = await store.acquire("e1", "tester", 60)
    entry = await Entry.read(store, lease)
    bench.journal = StoredJournal(entry)
    roles = Roles(bench.actor(), bench.judge, asking(bench), EvidenceAndReflexion())
    try:
        return await drive(entry.episode, roles, Limits(trials=2, identical=None), entry.append, Meter())
    finally:
        await bench.workspace.close(bench.episode())
        await store.close()


async def killed(tmp: Path, mode: Mode = "worktree") -> None:
    """Another process drives the episode until its agent is asked, and is killed then."""
    os.mkfifo(tmp / "pipe")
    code = DRIVES.format(here=str(Path(__file__).parent), tmp=str(tmp), mode=mode)
    driver = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    try:
        await asyncio.wait_for(asyncio.to_thread((tmp / "pipe").read_text), 60)
    finally:
        driver.kill()
        await driver.wait()
    assert [path for path in (tmp / "data" / "e1").iterdir() if "aside" in path.name]


@pytest.mark.slow
async def test_after_a_kill_it_is_asked_again_and_its_attempt_is_not_made_again(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    before = image(folder)
    await killed(tmp_path)
    episode = await asyncio.wait_for(stored(tmp_path), 60)
    assert stopped(episode).startswith("exhausted")
    assert [(one.text, one.notes) for one in reflections(episode)] == [("Add first.", ())]
    assert (tmp_path / "log").read_text().split() == ["tried", "asked", "asked", "tried"]
    assert not (tmp_path / "data" / "e1").exists()
    assert image(folder) == before
    assert git(folder, "worktree", "list").count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode", ["copy", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("worktree", "in_place"))]
)
async def test_what_a_kill_left_of_the_copy_goes_with_the_run(tmp_path: Path, mode: Mode) -> None:
    folder = project(tmp_path / "user")
    await killed(tmp_path, mode)
    await Bench(tmp_path, folder, mode=mode).workspace.discard("e1")
    assert not (tmp_path / "data" / "e1").exists()
    assert git(folder, "worktree", "list").count("\n") == 1


@pytest.mark.slow
async def test_a_cancelled_question_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    os.mkfifo(tmp_path / "pipe")
    driving = asyncio.create_task(stored(tmp_path))
    await asyncio.wait_for(asyncio.to_thread((tmp_path / "pipe").read_text), 60)
    driving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(driving, 60)
    assert running(tmp_path) == []
    assert not (tmp_path / "data" / "e1").exists()
    assert git(folder, "worktree", "list").count("\n") == 1
