"""ALFWorld's engine, made faster: the same words, and no way out of the game. On games of our own and, if here, the twelve."""

from __future__ import annotations

import importlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from households import HOUSES, House, needs_alfworld

from mulligan.bench.alfworld._engine import engine
from mulligan.bench.alfworld._engine.workers import Worker, Workers
from mulligan.core.errors import InvalidInput, WorldError

DATA = Path(__file__).parents[3] / "shared/data/alfworld"
SECONDS = 120.0
pytestmark = [pytest.mark.slow, needs_alfworld]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Worker, Worker]]:
    both = Worker(folder=tmp_path / "cache"), Worker("plain", folder=tmp_path / "cache")
    yield both
    for worker in both:
        worker.kill()


def told(worker: Worker, game: Path) -> list[dict[str, Any]]:
    """All that the engine says through the stored walkthrough and some commands that lead nowhere."""
    worker.open(str(game), SECONDS)
    said = [worker.ask({"do": "reset"}, SECONDS)]
    for command in ["inventory", "help", *json.loads(game.read_text())["walkthrough"], "look", "fly", ""]:
        said.append(worker.ask({"do": "step", "command": command}, SECONDS))
    for each in said:
        del each["cpu"]
    return said


def test_the_text_is_the_same_with_and_without(tmp_path: Path, pair: tuple[Worker, Worker]) -> None:
    for number, house in enumerate(HOUSES):
        game = house.write(tmp_path / str(number))
        cold, plain = (told(worker, game) for worker in pair)
        assert cold == plain
        assert any(each["won"] for each in plain)
        assert all(each["commands"] for each in plain)


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
def test_the_text_of_the_twelve_games_is_the_same(tmp_path: Path, pair: tuple[Worker, Worker]) -> None:
    games = sorted(DATA.rglob("*.tw-pddl"))
    assert len(games) == 12
    for game in games:
        first, plain = (told(worker, game) for worker in pair)
        assert first == plain, game
        assert any(each["won"] for each in plain), game
    other = Worker(folder=tmp_path / "cache")  # which reads the translations that the first one left
    try:
        assert told(other, games[0]) == told(pair[0], games[0])
    finally:
        other.kill()


def test_a_translation_is_kept_and_one_that_is_damaged_is_made_anew(tmp_path: Path) -> None:
    game, cache = HOUSES[0].write(tmp_path), tmp_path / "cache"

    def once() -> list[dict[str, Any]]:
        worker = Worker(folder=cache)
        try:
            return told(worker, game)
        finally:
            worker.kill()

    first = once()
    (kept,) = cache.glob("*.json.z")
    whole, made = kept.read_bytes(), kept.stat().st_mtime_ns
    assert once() == first
    assert kept.stat().st_mtime_ns == made
    kept.write_bytes(whole[: len(whole) // 2])
    assert once() == first
    assert kept.stat().st_size > len(whole) // 2


def test_where_no_translation_can_be_kept_the_game_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nothing = SimpleNamespace(actions=[], types=[], objects=[], init=[])
    translations = engine.Translations(lambda *_: (nothing, "sas"), "1", tmp_path / "file" / "cache")
    assert translations("domain", "problem")[1] == "sas"


def test_what_is_no_request_is_an_error(pair: tuple[Worker, Worker]) -> None:
    with pytest.raises(WorldError, match="unknown request: 'jump'"):
        pair[0].ask({"do": "jump", "command": "look"}, SECONDS)


def test_with_other_versions_nothing_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine.unknown_versions() == []
    monkeypatch.setattr(engine, "KNOWN", {**engine.KNOWN, "textworld": "9.9"})
    (unknown,) = engine.unknown_versions()
    assert unknown == "textworld 1.7.0 and not 9.9"


def test_what_is_replaced_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    textgen, downward = importlib.import_module("textworld.envs.pddl.textgen"), importlib.import_module("fast_downward")
    before = textgen._parse_and_convert, textgen.EvalSymbol.derive, downward.pddl2sas
    with engine.faster(print):
        assert downward.pddl2sas is print
        assert textgen._parse_and_convert is not before[0]
    assert (textgen._parse_and_convert, textgen.EvalSymbol.derive, downward.pddl2sas) == before


def _with(house: House, root: Path, **changed: str) -> str:
    game = house.write(root)
    game.write_text(json.dumps({**house.data(), **changed}))
    return str(game)


def test_a_grammar_that_is_a_program_is_refused(tmp_path: Path, pair: tuple[Worker, Worker]) -> None:
    house, mark = HOUSES[0], tmp_path / "mark"
    attack = f"{{__import__('pathlib').Path('{mark}').touch()}}"
    grammar = house.data()["grammar"].replace("-= Welcome", attack + " -= Welcome")
    game = _with(house, tmp_path / "game", grammar=grammar)
    with pytest.raises(InvalidInput, match="not just an object's name"):
        pair[0].open(game, SECONDS)
    assert not mark.exists()


@pytest.mark.parametrize("text", ["{}", "no json", '{"pddl_domain": "(", "grammar": "", "pddl_problem": "("}', "[1]"])
def test_what_is_not_a_game_is_reported(text: str, tmp_path: Path, pair: tuple[Worker, Worker]) -> None:
    file = tmp_path / "game.tw-pddl"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=r"game\.tw-pddl"):
        pair[0].open(str(file), SECONDS)


def test_an_engine_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    worker = Worker(folder=tmp_path / "cache")
    with pytest.raises(WorldError, match=r"within 0\.001 s"):
        worker.open(str(HOUSES[0].write(tmp_path)), 0.001)
    assert not worker.alive


def test_a_worker_is_used_again_and_a_dead_one_is_not(tmp_path: Path) -> None:
    game, pool = str(HOUSES[0].write(tmp_path)), Workers()
    first = pool.take(game)
    first.open(game, SECONDS)
    pool.give(first)
    again = pool.take(game)
    assert again is first
    pool.give(again)
    first.kill()
    other = pool.take(game)
    assert other.pid != first.pid
    pool.give(other)
    pool.close()
    assert not other.alive


def test_a_worker_ends_with_whoever_started_it() -> None:
    """With `kill -9`, too, and no matter that nobody is left to end it."""
    code = (
        "import sys\nfrom mulligan.bench.alfworld._engine.workers import Worker\n"
        "print(Worker().pid, flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        handle = os.pidfd_open(int(starter.stdout.readline()))
        try:
            starter.kill()
            gone, _, _ = select.select([handle], [], [], SECONDS)
            assert gone
        finally:
            os.close(handle)
