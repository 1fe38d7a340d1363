"""How the prompt is worded and handed over, and what a kill in the middle of a trial leaves behind."""

import asyncio
import os
import shutil
import sys
from pathlib import Path
from shlex import quote

import pytest
from command_project import MENDS_ONE, Bench, git, image, observed, project, scores, stopped
from inline_snapshot import snapshot

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode, Past, Recall, Reflection
from mulligan.recording.journal import StoredJournal
from mulligan.recording.ledger import Entry
from mulligan.store.sqlite import SqliteStore
from mulligan.strategies.last_attempt_and_reflexion import LastAttemptAndReflexion

PYTHON = quote(sys.executable)
ECHO = "import sys\nprint(sys.stdin.read() + '|'.join(sys.argv[1:]), end='')\n"


async def said(bench: Bench, past: Past = Past()) -> str:
    attempt = await bench.actor().act(bench.episode(), past)
    await bench.workspace.close(bench.episode())
    return attempt.steps[0].observation


async def test_the_first_prompt_is_the_task(tmp_path: Path) -> None:
    assert await said(Bench(tmp_path, project(tmp_path / "user"), agent=ECHO)) == snapshot("""\
Make the failing tests pass.

Change the files in the current folder so that the task is done.
Nobody can answer questions: decide for yourself, and end when you are done.\
""")


async def test_later_prompts_carry_what_the_strategy_shows(tmp_path: Path) -> None:
    bench = Bench(tmp_path, project(tmp_path / "user"), agent=ECHO, strategy=LastAttemptAndReflexion())
    bench.check = "sh -c 'echo 1 failed, 2 passed in 0.1s; exit 1'"
    bench.__post_init__()
    episode = await bench.solve(trials=2)
    await bench.workspace.close(episode)
    assert observed(episode)[1].replace(bench.command, "AGENT") == snapshot("""\
Make the failing tests pass.

Your previous attempt at this task failed.

What was done:
```
Action 1: AGENT
Observation 1: Make the failing tests pass.

Change the files in the current folder so that the task is done.
Nobody can answer questions: decide for yourself, and end when you are done.
```

Attempt:
```
(empty)
```

Feedback:
```
The check ended with status 1.
1 failed, 2 passed in 0.1s
```

Lessons from your earlier attempts at this task, oldest first:
- Mend the next function.

The files are as your previous attempt left them.

Change the files in the current folder so that the task is done.
Nobody can answer questions: decide for yourself, and end when you are done.\
""")


@pytest.mark.slow
async def test_lessons_of_the_bank_and_reflections_come_in_order(tmp_path: Path) -> None:
    past = Past(reflections=(Reflection("old"), Reflection("new")), recall=Recall("r", formatted_prompt="LESSONS"))
    text = await said(Bench(tmp_path, project(tmp_path / "user"), agent=ECHO), past)
    assert text.index("LESSONS") < text.index("- old") < text.index("- new")


@pytest.mark.slow
async def test_the_prompt_goes_where_the_placeholder_stands(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    show = quote("import sys; print(sys.argv[1], end=''); print('stdin', len(sys.stdin.read()))")
    by_argument = await said(Bench(tmp_path, folder, settings={"command": f"{PYTHON} -c {show} 'Do: {{prompt}}'"}))
    assert by_argument.startswith("Do: Make the failing tests pass.")
    assert by_argument.endswith("stdin 0")
    by_file = await said(Bench(tmp_path, folder, settings={"command": "cat {prompt_file}"}))
    assert by_file.startswith("Make the failing tests pass.")


async def test_commands_that_cannot_work_are_refused(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    for command, says in (
        ("", "is empty"),
        ("echo 'open", "cannot be parsed"),
        ("no-such-agent -p", "'no-such-agent' was not found"),
        ("/no/such/agent", "was not found"),
    ):
        with pytest.raises(InvalidInput, match=says):
            Bench(tmp_path, folder, settings={"command": command or " "}).actor()
    long = Past(reflections=(Reflection("x" * 130_000),))
    bench = Bench(tmp_path, folder, settings={"command": "echo {prompt}"})
    with pytest.raises(InvalidInput, match="prompt_file"):
        await bench.actor().act(bench.episode(), long)
    await bench.workspace.close(bench.episode())


HANGS = """import os
count = {tmp!r} + "/count"
open(count, "a").write("x")
if os.path.getsize(count) == 2:
    open("calc.py", "w").write("half done")
    open({tmp!r} + "/pipe", "w").write("here")
    import time
    time.sleep(600)
"""
DRIVES = """import asyncio, sys
from pathlib import Path
sys.path.insert(0, {here!r})
import test_agent_prompts as t
asyncio.run(t.stored(Path({tmp!r})))
"""


async def stored(tmp: Path) -> Episode:
    """One drive of the episode in `tmp`, recorded in its store; begun where there is none yet."""
    store = SqliteStore(tmp / "db.sqlite")
    bench = Bench(tmp, tmp / "user", agent=HANGS.format(tmp=str(tmp)) + MENDS_ONE)
    if not await store.list():
        await store.create(bench.episode())
    lease = await store.acquire("e1", "tester", 60)
    bench.journal = StoredJournal(await Entry.read(store, lease))
    seq = len(await store.events("e1"))

    episode = await bench.solve(await store.load("e1"), keep=lambda n, event: store.append(lease, seq + n, event))
    await bench.workspace.close(episode)
    await store.close()
    return episode


@pytest.mark.slow
async def test_after_a_kill_half_a_trial_does_not_count_and_a_lost_worktree_is_made_again(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    before = image(folder)
    os.mkfifo(tmp_path / "pipe")
    code = DRIVES.format(here=str(Path(__file__).parent), tmp=str(tmp_path))
    driver = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    try:
        await asyncio.wait_for(asyncio.to_thread((tmp_path / "pipe").read_text), 60)
    finally:
        driver.kill()
        await driver.wait()
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "pipe").unlink()
    (tmp_path / "pipe").write_text("")
    episode = await asyncio.wait_for(stored(tmp_path), 60)
    assert stopped(episode) == "solved: trial 4 passed"
    assert scores(episode) == [1 / 3, 1 / 3, 2 / 3, 1.0]
    assert observed(episode) == ["mended add", "mended sub", "mended add", "mended mul"]
    assert (tmp_path / "count").read_text() == "xxxxx"
    assert image(folder) == before
    assert git(folder, "worktree", "list").count("\n") == 1
