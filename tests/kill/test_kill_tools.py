"""kill -9 at random moments of an agent with tools in a git worktree, again and again until it comes to its end.

What was finished is not done again, what was in flight is reported unless repeating it does no harm, and the files and
the record are those of a run that nobody killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from forking import Forking, killed_after
from repetition import repeats
from seed_agents import lay

from mulligan.core.codec import to_json
from mulligan.core.records import Episode
from mulligan.store.sqlite import SqliteStore

SUPPORT = Path(__file__).parent.parent / "support"
KILLS = repeats(18)
FILES = {
    "agents/digger/AGENT.md": "---\nname: digger\ndescription: Digs.\nversion: '1.0.0'\npattern: reflexion\n---\n",
    "agents/digger/act.md": "---\npattern: react\nuses: [digging]\n---\nDig.\n",
    "agents/digger/reflect.md": "---\npattern: react\nuses: [checking]\n---\nCheck it.\n",
    "skills/digging/SKILL.md": "---\nname: digging\ndescription: How to dig.\n"
    'tools: [write_file, read_file, list_files, run_command, "mcp:effects"]\n---\nDig.\n',
    "skills/checking/SKILL.md": "---\nname: checking\ndescription: How to check.\n"
    'tools: [write_file, read_file, run_command, "mcp:effects"]\n---\nCheck.\n',
    "repo/start.txt": "here it starts\n",
}


def drive(zygote: Forking, folder: Path, *, kill_after: float | None, resume: str | None, fork: bool) -> dict[str, Any]:
    """How a child ended that was killed so many seconds after it had its lease, or left alone."""
    pid = zygote.start(folder=str(folder), resume=resume, fork=fork)
    if kill_after is None or zygote.ended:
        return zygote.end()
    with killed_after(pid, kill_after):
        return zygote.end()


@pytest.fixture(scope="module")
def zygote() -> Generator[Forking]:
    made = Forking(SUPPORT / "kill_tools_zygote.py")
    yield made
    made.close()


@dataclass
class Hunt:
    """One run that is killed until it comes to its end. hits: what each kill hit, by the step's name.

    settled: how often the effect of each finished step had happened when it was first seen to be finished.
    flights: how often a kill hit each effect in flight.
    """

    folder: Path
    kills: int = 0
    forks: int = 0
    hits: Counter[str] = field(default_factory=Counter[str])
    settled: dict[str, int] = field(default_factory=dict[str, int])
    flights: Counter[str] = field(default_factory=Counter[str])

    def saw(self, steps: list[tuple[str, bool]]) -> None:
        """After each kill: what was finished before has not happened again."""
        now = effects(self.folder)
        for key, done in steps:
            if name := effect_of(key):
                if done:
                    assert now[name] == self.settled.setdefault(name, now[name]), f"{key} was done and ran again"
                else:
                    self.flights[name] += 1
        flying = [key for key, done in steps if not done]
        self.hits[flying[-1].rpartition("/")[2].partition("#")[0] if flying else "between steps"] += 1

    def ended(self, once: Counter[str]) -> None:
        """At the end: nothing was left out, and nothing but what was in flight happened more than once."""
        now = effects(self.folder)
        assert set(now) == set(once)
        for name, times in now.items():
            assert times == self.settled.get(name, times)
            assert times <= 1 + self.flights[name], f"{name} happened {times} times"


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60).stdout


def project(folder: Path) -> Path:
    command = json.dumps([sys.executable, str(SUPPORT / "mcp_plain_server.py"), str(folder / "effects.log")])
    lay(folder, {**FILES, "mulligan.toml": f"[mcp.effects]\ncommand = {command}\n"})
    git(folder / "repo", "init", "-q")
    git(folder / "repo", "add", ".")
    git(folder / "repo", "commit", "-qm", "start")
    return folder


def newest(folder: Path) -> tuple[Episode, list[tuple[str, bool]]] | None:
    """The newest episode of the project's store, and its steps with whether they are done."""

    async def read() -> tuple[Episode, list[tuple[str, bool]]] | None:
        at = SqliteStore(folder / "store.db")
        episodes = sorted(await at.list(), key=lambda episode: (episode.forked_from is not None, episode.started))
        last = next((e for e in episodes if not any(o.forked_from == e.id for o in episodes)), None)
        steps = [(row.key, row.done) for row in await at.steps(last.id)] if last else []
        await at.close()
        return (last, steps) if last else None

    return asyncio.run(read())


def effects(folder: Path) -> Counter[str]:
    log = folder / "effects.log"
    return Counter(log.read_text().splitlines() if log.exists() else [])


def effect_of(key: str) -> str | None:
    """The line that a step's effect leaves, as `trial.2/act/tool.effects_note#1` leaves `note 2`."""
    where, _, number = key.rpartition("#")
    trial, name = where.split("/")[0].removeprefix("trial."), where.split("/")[-1]
    judging = "/evaluate/" in key
    match (name, number, judging):
        case ("tool.run_command", "1", _):
            return f"{'check' if judging else 'command'} {trial}"
        case ("tool.effects_note", _, True):
            return f"checked {trial}"
        case ("tool.effects_note", _, False):
            return f"{'note' if number == '1' else 'again'} {trial}"
        case ("model.actor", _, _):
            return f"asked actor {trial} {int(number) - 1}"
        case ("model.evaluator", _, _):
            return f"asked reviewer {trial} {int(number) - 1}"
        case _:
            return None


def told(episode: Episode, folder: Path) -> list[str]:
    """What the run came to: trials, verdicts and trajectories, without ids, times, commits and where it was."""
    record: Any = to_json(episode)
    for trial in record["trials"]:
        for artifact in trial["attempt"]["artifacts"]:
            artifact["ref"] = artifact["location"] = ""
        trial["attempt"]["usage"]["seconds"] = trial["seconds"] = 0
    return json.dumps([record["trials"], record["stop"]], indent=1).replace(str(folder), "").splitlines()


def delivered(folder: Path, run: str) -> dict[str, str]:
    """The files of the branch, with their modes."""
    lines = git(folder / "repo", "ls-tree", "-r", f"mulligan/{run}").splitlines()
    return {line.partition("\t")[2]: line.partition("\t")[0] for line in lines}


def hunted(zygote: Forking, hunt: Hunt, chance: random.Random, lasts: float, most: int) -> Episode:
    """Kills it at random moments, `most` times at most; its episode at the end."""
    resume, fork = None, False
    while True:
        after = chance.uniform(0, lasts / (2 if resume else 1)) if hunt.kills < most else None
        ended = drive(zygote, hunt.folder, kill_after=after, resume=resume, fork=fork)
        found = newest(hunt.folder)
        if ended["exit"] == 0 and ended["said"].startswith("StepInFlight"):
            fork = True
            hunt.forks += 1
        elif ended["exit"] == 0:
            assert ended["said"].startswith("solved") or "nothing to resume" in ended["said"], ended
            assert found
            return found[0]
        else:
            assert ended["exit"] == -9, ended
            hunt.kills += 1
            fork = False
            if found is None:
                hunt.hits["before the episode"] += 1
            else:
                resume = found[0].run
                hunt.saw(found[1])


@pytest.mark.slow
def test_kills_among_tools(zygote: Forking, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(int(os.environ.get("MULLIGAN_SEED", "20261121")))
    whole, lasts = project(tmp_path / "whole"), 60.0
    for folder in (project(tmp_path / "warm"), whole):
        began = time.monotonic()
        ended = drive(zygote, folder, kill_after=None, resume=None, fork=False)
        lasts = min(lasts, time.monotonic() - began)
        assert (ended["exit"], ended["said"]) == (0, "solved: trial 2 passed"), ended
    found = newest(whole)
    assert found
    expected, once = found[0], effects(whole)
    assert set(once.values()) == {1}
    assert all(done for _, done in found[1])
    files = delivered(whole, expected.run)
    hits: Counter[str] = Counter()
    kills = forks = number = 0
    while kills < KILLS:
        number += 1
        hunt = Hunt(project(tmp_path / str(number)))
        episode = hunted(zygote, hunt, chance, lasts * 0.6, min(6, KILLS - kills))
        assert told(episode, hunt.folder) == told(expected, whole)
        assert delivered(hunt.folder, episode.run) == files
        hunt.ended(once)
        assert git(hunt.folder / "repo", "status", "--porcelain") == ""
        hits += hunt.hits
        kills, forks = kills + hunt.kills, forks + hunt.forks
    with capsys.disabled():
        print(f"\n{kills} kills in {number} runs of {lasts:.1f} s, {forks} forks: {hits.most_common()}")
