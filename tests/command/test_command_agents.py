"""Episodes of a command-line agent on a real repository (issue 2, must-show 5)."""

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from command_project import (
    CHECK,
    MENDS_ONE,
    PYTEST,
    Bench,
    files,
    git,
    halted,
    image,
    judgement,
    observed,
    project,
    running,
    scores,
    stopped,
)

import mulligan
from mulligan.core.records import Json, Past
from mulligan.store.sqlite import SqliteStore
from mulligan.strategies.none import Resampling
from mulligan.workspace.deliver import deliver
from mulligan.workspace.preflight import preflight


@pytest.mark.slow
async def test_it_learns_from_the_reflection_and_the_result_is_a_branch(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    before = image(folder)
    bench = Bench(tmp_path, folder, check=PYTEST)
    feedback = await preflight(bench.workspace, bench.episode(), bench.judge)
    assert feedback.passed is False
    assert feedback.score == 0
    episode = await bench.solve()
    said = await deliver(bench.workspace, episode)
    await bench.workspace.close(episode)
    assert stopped(episode) == "solved: trial 4 passed"
    assert scores(episode) == [1 / 3, 1 / 3, 2 / 3, 1.0]
    assert observed(episode) == ["mended add", "mended sub", "mended add", "mended mul"]
    assert image(folder) == before
    assert "mulligan/r1" in said
    assert git(folder, "show", "mulligan/r1:calc.py").count("return a") == 3
    assert git(folder, "rev-list", "--count", "main..mulligan/r1").strip() == "1"
    trials = git(folder, "for-each-ref", "--format=%(refname)", "refs/mulligan").split()
    assert trials == ["refs/mulligan/e1/start", *(f"refs/mulligan/e1/trial-{n}" for n in (1, 2, 3, 4))]
    assert git(folder, "worktree", "list").count("\n") == 1
    assert "-    return 0" in episode.trials[-1].attempt.output


@pytest.mark.slow
async def test_without_lessons_it_goes_round_in_circles(tmp_path: Path) -> None:
    bench = Bench(tmp_path, project(tmp_path / "user"), strategy=Resampling())
    episode = await bench.solve(trials=5)
    assert stopped(episode).startswith("exhausted")
    assert episode.reflections == ()


@pytest.mark.slow
async def test_a_fork_goes_on_from_the_files_of_the_recorded_trial(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    (tmp_path / "agent.py").write_text(MENDS_ONE)
    store = SqliteStore(tmp_path / "m.db")
    actor, check = f"command:{quote(sys.executable)} {quote(str(tmp_path / 'agent.py'))}", CHECK
    given: dict[str, Any] = {"actor": actor, "check": check, "workspace": folder, "store": store}
    first = await mulligan.solve("Mend calc.py.", strategy="none", trials=1, **given)
    forked = await mulligan.resume(first.run, fork=True, strategy="last_attempt", limits={"trials": 2}, store=store)
    await store.close()
    assert (stopped(first), stopped(forked)) == ("exhausted: 1 of 1 try used", "exhausted: 2 of 2 tries used")
    assert observed(forked) == ["mended add", "mended sub"], "the first trial's change is there, and not made again"
    assert forked.trials[0] == first.trials[0]


@pytest.mark.slow
async def test_fresh_starts_each_trial_from_the_users_tree(tmp_path: Path) -> None:
    bench = Bench(tmp_path, project(tmp_path / "user"), settings={"fresh": True})
    episode = await bench.solve(trials=3)
    assert observed(episode) == ["mended add"] * 3


async def test_a_status_other_than_0_is_noted_and_not_an_error(tmp_path: Path) -> None:
    bench = Bench(tmp_path, project(tmp_path / "user"), agent=MENDS_ONE + "sys.exit(3)")
    episode = await bench.solve(trials=1)
    assert halted(episode) == ["the agent ended with status 3"]
    assert "the agent ended with status 3" in judgement(episode).text
    assert scores(episode) == [1 / 3]


@pytest.mark.slow
async def test_an_agent_that_hangs_is_killed_with_its_children_and_judged(tmp_path: Path) -> None:
    agent = (
        "import subprocess, sys, time\n"
        "open('calc.py', 'a').write('# seen\\n')\n"
        f"subprocess.Popen(['sleep', '600'], cwd={str(tmp_path)!r}, start_new_session=True)\n"
        "time.sleep(600)\n"
    )
    bench = Bench(tmp_path, project(tmp_path / "user"), agent=agent, settings={"seconds": 2})
    episode = await bench.solve(trials=1)
    assert halted(episode) == ["the agent was stopped after 2 seconds"]
    assert "+# seen" in episode.trials[0].attempt.output
    assert judgement(episode).passed is False
    assert running(bench.tmp) == []


@pytest.mark.slow
async def test_what_it_prints_is_capped(tmp_path: Path) -> None:
    agent = (
        "import sys\nfor _ in range(200): sys.stdout.write('x' * 1_000_000)\nsys.stderr.write('the end')\n" + MENDS_ONE
    )
    bench = Bench(tmp_path, project(tmp_path / "user"), agent=agent)
    episode = await bench.solve(trials=1)
    (text,) = observed(episode)
    assert len(text) < 30_000
    assert "the end" in text
    assert "mended add" in text
    assert "cut" in text
    assert scores(episode) == [1 / 3]


@pytest.mark.slow
async def test_a_gigabyte_of_output_is_capped(tmp_path: Path) -> None:
    agent = "import sys\nfor _ in range(1000): sys.stdout.write('x' * 1_000_000)\n" + MENDS_ONE
    bench = Bench(tmp_path, project(tmp_path / "user"), agent=agent)
    episode = await bench.solve(trials=1)
    assert len(observed(episode)[0]) < 30_000


async def test_writing_into_the_users_tree_stops_the_episode_and_names_the_files(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    agent = f"open({str(folder / 'calc.py')!r}, 'a').write('# stray\\n'); open({str(folder / 'new.txt')!r}, 'w')\n"
    episode = await Bench(tmp_path, folder, agent=agent).solve()
    assert stopped(episode).startswith("error")
    assert "calc.py, new.txt" in stopped(episode)
    assert episode.trials == ()


async def test_moving_the_users_branch_stops_the_episode_and_says_where_it_was(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    was = git(folder, "rev-parse", "main")[:12]
    agent = "import os\nos.system('git commit -q --allow-empty -m x; git update-ref refs/heads/main HEAD')\n"
    episode = await Bench(tmp_path, folder, agent=agent).solve()
    assert f"refs/heads/main (was {was})" in stopped(episode)


OTHER = {".git/refs/heads/other", ".git/refs/heads", ".git/logs/refs/heads/other", ".git/logs/refs/heads"}
SPOILS = {
    "deletes .git": "import os\nos.unlink('.git')\n",
    "makes a repository of its own": "import os\nos.unlink('.git'); os.system('git init -q . && git add -A')\n",
    "commits by itself": "import os\nos.system('git add -A && git commit -q --allow-empty -m mine')\n",
    "checks out another branch": "import os\nos.system('git checkout -q -b other')\n",
    "hides files from git": "import os\nos.system('git update-index --assume-unchanged calc.py')\n",
    "links out of the tree": "import os\nos.symlink('/etc', 'etc')\n",
    "clones a repository inside": "import os\nos.system('git init -q inner && touch inner/x')\n",
    "leaves an unwritable folder": "import os\nos.mkdir('shut'); open('shut/x', 'w'); os.chmod('shut', 0o500)\n",
    "names a file in bytes": "open(b'caf\\xe9', 'w').write('x')\n",
    "leaves a pipe": "import os\nos.mkfifo('pipe')\n",
}


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("spoils", SPOILS.values(), ids=SPOILS.keys())
async def test_what_it_does_to_its_repository_does_no_harm(tmp_path: Path, spoils: str) -> None:
    folder = project(tmp_path / "user")
    before = image(folder)
    names = [f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]
    env = f"import os\nos.environ.update(dict.fromkeys({names}, 'a'))\n"
    bench = Bench(tmp_path, folder, agent=f"{MENDS_ONE}{env}{spoils}")
    episode = await bench.solve(trials=2)
    assert stopped(episode).startswith("exhausted")
    assert scores(episode) == [1 / 3, 1 / 3]
    place = await bench.workspace.open(episode)
    assert git(Path(place.root), "status", "--porcelain") == ""
    os.unlink(os.path.join(place.root, ".git"))
    await bench.workspace.close(episode)
    assert git(folder, "worktree", "list").count("\n") == 1
    after = image(folder)
    assert {name for name in after if after[name] != before.get(name)} <= OTHER


async def test_a_huge_file_is_not_kept_and_the_record_says_so(tmp_path: Path) -> None:
    agent = MENDS_ONE + "open('huge.bin', 'wb').truncate(30_000_000)\n"
    bench = Bench(tmp_path, project(tmp_path / "user"), agent=agent)
    episode = await bench.solve(trials=1)
    assert "huge.bin was not kept: it has 30 MB, more than 20" in observed(episode)[0]
    assert "huge.bin" not in episode.trials[0].attempt.output
    assert "huge.bin" not in files(episode.trials[0].attempt.artifacts[0].location)


@pytest.mark.slow
async def test_it_may_delete_its_folder_or_put_a_link_in_its_place(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    before = image(folder)
    agent = f"import os, shutil\nhere = os.getcwd()\nshutil.rmtree(here)\nos.symlink({str(folder)!r}, here)\n"
    bench = Bench(tmp_path, folder, agent=agent)
    episode = await bench.solve(trials=2)
    assert stopped(episode).startswith("exhausted")
    assert image(folder) == before
    assert "deleted file mode" in episode.trials[0].attempt.output


class Remembers:
    """A journal that has every step once: what it has done it does not do again."""

    def __init__(self) -> None:
        self.done: dict[str, Json] = {}

    async def step(
        self, name: str, request: Json, do: Callable[[], Awaitable[Json]], *, repeatable: bool = True
    ) -> Json:
        if name not in self.done:
            self.done[name] = await do()
        return self.done[name]


async def test_a_recorded_trial_leaves_the_folder_as_it_was_behind_it(tmp_path: Path) -> None:
    """Killed between the command's step and the record of the attempt: the resume replays the step, then judges."""
    bench = Bench(tmp_path, project(tmp_path / "user"), journal=Remembers())
    episode = bench.episode()
    first = await bench.actor().act(episode, Past())
    await bench.workspace.close(episode)
    again = await bench.actor().act(episode, Past())
    assert again == first
    assert b"return a" in files(again.artifacts[0].location)["calc.py"]
    await bench.workspace.close(episode)
