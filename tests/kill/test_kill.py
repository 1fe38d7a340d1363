"""kill -9 at uniformly random moments: nothing finished is done again, nothing is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from forking import Forking, killed_after
from repetition import repeats

import mulligan
from mulligan.core.codec import to_json
from mulligan.core.episode import due
from mulligan.core.errors import LeaseLost
from mulligan.core.limits import Limits
from mulligan.core.records import Episode, Feedback, Stop
from mulligan.store.sqlite import SqliteStore

SUPPORT = Path(__file__).parent.parent / "support"
KILLS = repeats(25)
SAID = {
    f"trial {n}: {ask}": f"{said} {n}" for n in (1, 2, 3) for ask, said in (("search", "query"), ("answer", "answer"))
}
LESSONS = {f"answer {n} is wrong": f"lesson {n}" for n in (1, 2)}
ANSWERS = [{"when": when, "answer": said, "delay": 0.02} for when, said in (SAID | LESSONS).items()]
CALLS = 3 * 2 + 2


def begin(zygote: Forking, store: Path, resume: str | None = None, *, freeze: bool = False) -> int:
    log = str(store.with_suffix(".log"))
    return zygote.start(store=str(store), log=log, resume=resume, freeze=freeze)


def look(store: Path) -> tuple[Episode, list[tuple[str, bool]]]:
    """The only episode of a store as it is on disk, and its journal steps with whether they are done."""

    async def read() -> tuple[Episode, list[tuple[str, bool]]]:
        at = SqliteStore(store)
        (episode,) = await at.list()
        steps = [(row.key, row.done) for row in await at.steps(episode.id)]
        await at.close()
        return episode, steps

    return asyncio.run(read())


def timeless(episode: Episode) -> list[str]:
    """The record without ids and times, line by line."""
    record = to_json(episode)
    for volatile in ("id", "run", "started", "seconds"):
        record.pop(volatile)
    return json.dumps(record, indent=1).splitlines()


def effects(store: Path) -> Counter[str]:
    log = store.with_suffix(".log")
    return Counter(log.read_text().splitlines() if log.exists() else [])


def effect_of(key: str) -> str | None:
    """The line that the effect of a journal step leaves, as `trial.2/act/tool.search#1` leaves `tool 2`."""
    where, _, _ = key.rpartition("#")
    names = {"tool.search": "tool", "command": "command", "verdict": "verdict"}
    first, last = where.split("/")[0], where.split("/")[-1]
    if first == "recall":
        return "recall"
    return f"{names[last]} {first.removeprefix('trial.')}" if last in names else None


def phase(episode: Episode, steps: list[tuple[str, bool]]) -> str:
    flying = [key.split("/", 1)[-1].partition("#")[0] for key, done in steps if not done]
    move = due(episode, Limits())
    return f"in {flying[-1]}" if flying else f"between steps of {move.kind}" if not isinstance(move, Stop) else "after"


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Generator[Forking]:
    made = Forking(SUPPORT / "kill_zygote.py", tmp_path_factory.mktemp("zygote"), ANSWERS)
    yield made
    made.close()


@pytest.mark.slow
def test_kills_at_any_moment(zygote: Forking, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(20261121)
    lasts = min(_uninterrupted(zygote, tmp_path / f"warm{n}.db") for n in range(3))
    calls = len(zygote.asked())
    whole = tmp_path / "whole.db"
    _uninterrupted(zygote, whole)
    expected = look(whole)[0]
    assert [t.attempt.output for t in expected.trials] == ["answer 1", "answer 2", "answer 3"]
    assert len(zygote.asked()) - calls == CALLS
    once = effects(whole)
    assert set(once.values()) == {1}
    hit: Counter[str] = Counter()
    for number in range(KILLS):
        store = tmp_path / f"{number}.db"
        before = len(zygote.asked())
        with killed_after(begin(zygote, store), chance.uniform(0, lasts)):
            ended = zygote.end()
        hit["finished before the kill" if ended["exit"] == 0 else _killed_and_resumed(zygote, store)] += 1
        if store.exists() and (found := look_if_begun(store)):
            assert timeless(found) == timeless(expected)
            assert len(zygote.asked()) - before <= CALLS + 1
    with capsys.disabled():
        print(f"\n{KILLS} kills over {lasts:.2f} s each: " + ", ".join(f"{n} {p}" for p, n in hit.most_common()))
    assert sum(hit.values()) == KILLS


def _uninterrupted(zygote: Forking, store: Path) -> float:
    """Runs the episode to its end; seconds from its lease to the end of its process."""
    begin(zygote, store)
    began = time.monotonic()
    assert zygote.end() == {"exit": 0, "said": "solved"}
    return time.monotonic() - began


def look_if_begun(store: Path) -> Episode | None:
    try:
        return look(store)[0]
    except ValueError:  # killed before there was an episode
        return None


def _killed_and_resumed(zygote: Forking, store: Path) -> str:
    """Resumes what was killed; says in which phase the kill hit."""
    if not store.exists() or not look_if_begun(store):
        return "before the episode"
    episode, steps = look(store)
    at_kill = effects(store)
    begin(zygote, store, resume=episode.run)
    ended = zygote.end()
    over = ended["said"].startswith("InvalidInput") and "nothing to resume" in ended["said"]
    assert over == (episode.stop is not None)
    assert over or ended == {"exit": 0, "said": "solved"}
    after = effects(store)
    for key, done in steps:
        effect = effect_of(key)
        if effect and done:
            assert after[effect] == at_kill[effect] == 1, f"{key} was done and ran again"
    assert all(count <= 2 for count in after.values())
    assert sum(after.values()) <= len(after) + 1, "more than the one step in flight ran twice"
    return phase(episode, steps)


@pytest.mark.slow
async def test_two_resumes_at_once(zygote: Forking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one process drives an episode another refuses, and says who drives it."""
    store = tmp_path / "held.db"
    pid = begin(zygote, store, freeze=True)
    at = SqliteStore(store)
    (episode,) = await at.list()
    assert f":{pid}:" in str(await at.holder(episode.id))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("KILL_LOG", str(store.with_suffix(".log")))
    third: Any = NeverAsked()
    with pytest.raises(LeaseLost, match=rf"in use by .*:{pid}\."):
        await mulligan.resume(episode.run, store=at, evaluator=third, bank=third)
    os.kill(pid, signal.SIGCONT)
    assert zygote.end() == {"exit": 0, "said": "solved"}
    assert await at.holder(episode.id) is None
    await at.close()
    assert set(effects(store).values()) == {1}


class NeverAsked:
    """Evaluator and bank of a resume that must not begin."""

    expects = "text"

    async def evaluate(self, episode: Episode) -> Feedback:
        raise AssertionError("the resume has begun")
