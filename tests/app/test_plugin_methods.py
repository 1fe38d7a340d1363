"""Plug-ins whose methods are plain functions, and where an error of one is said to be."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row

import mulligan
from mulligan.app.plugins import ROLES, build, find, fitted
from mulligan.core.errors import InvalidInput
from mulligan.core.limits import Limits
from mulligan.core.records import Attempt, Feedback, Past, Reflection, Spec
from mulligan.models.scripted import ScriptedModel
from mulligan.store.sqlite import SqliteStore

PLAIN = """
from mulligan.core.records import Attempt, Feedback, Reflection

class Act:
    def act(self, episode, past):
        return Attempt("right" if episode.trials else "wrong")

class Judge:
    expects = "text"

    def evaluate(self, episode):
        said = episode.trials[-1].attempt.output
        return Feedback("right" in said, f"it says {said}")

class Reflect:
    def reflect(self, episode):
        return Reflection("Say right.")

class Broken:
    expects = "text"

    async def evaluate(self, episode):
        return self.looked_up()

    def looked_up(self):
        return {}["nothing"]
"""


class Act:
    def act(self, episode: Any, past: Past) -> Attempt:
        return Attempt("right" if episode.trials else "wrong")


class Judge:
    expects = "text"

    def evaluate(self, episode: Any) -> Feedback:
        return Feedback("right" in episode.trials[-1].attempt.output, "no")


class Reflect:
    def reflect(self, episode: Any) -> Reflection:
        return Reflection("Say right.")


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(PLAIN)
    return str(tmp_path / "mine.py")


async def played(tmp_path: Path, **roles: Any) -> mulligan.Episode:
    store = SqliteStore(tmp_path / "runs.db")
    episode = await mulligan.solve("say it", model=ScriptedModel([]), store=store, **roles)
    await store.close()
    return episode


async def test_plain_methods_of_a_file_play_all_roles(file: str, tmp_path: Path) -> None:
    episode = await played(tmp_path, actor=f"{file}:Act", evaluator=f"{file}:Judge", reflector=f"{file}:Reflect")
    assert episode.stop is not None
    assert (episode.stop.reason, len(episode.trials)) == ("solved", 2)


@pytest.mark.parametrize("built", [True, False])
async def test_so_do_classes_and_objects_that_are_handed_over(tmp_path: Path, built: bool) -> None:
    made: dict[str, Any] = {"actor": Act, "evaluator": Judge, "reflector": Reflect}
    roles = {role: cls() if built else cls for role, cls in made.items()}
    episode = await played(tmp_path, **roles)
    assert episode.solved
    if built:  # what was handed over is as it was
        assert isinstance(roles["evaluator"].evaluate(episode), Feedback)


@pytest.mark.parametrize("role", [role for role in ROLES if ROLES[role].awaited])
async def test_every_kind_that_is_awaited_takes_plain_methods(role: str) -> None:
    class Plain:
        name = "plain"

        def given(self, *arguments: int) -> tuple[int, ...]:
            return arguments

    for method in ROLES[role].awaited:
        setattr(Plain, method, Plain.given)
    plugin = fitted(role, Plain())
    for method in ROLES[role].awaited:
        assert await getattr(plugin, method)(1) == (1,)
    assert (plugin.name, type(plugin).__name__) == ("plain", "Plain")


@pytest.mark.parametrize("role", [role for role in ROLES if not ROLES[role].awaited])
def test_an_async_method_where_a_plain_one_is_called_is_refused_at_load(role: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"class Mine:\n    async def {ROLES[role].method}(self, *given):\n        return None\n")
    with pytest.raises(InvalidInput, match=rf"^Mine\.{ROLES[role].method} is not awaited: define it with def"):
        build(role, Spec(str(file)), {})


@each_row("role", ROLES)
def test_what_ships_is_taken_as_it_is(role: str) -> None:
    for name in ("unit_tests", "complete", "verbal", "reflexion", "read_file", "cosine", "none", "wiki", "humaneval"):
        try:
            cls = find(role, name)
        except InvalidInput:
            continue
        plugin = object.__new__(cls)
        assert fitted(role, plugin) is plugin


def test_no_equal_attempts_can_be_asked_for_by_0_as_by_none() -> None:
    assert Limits(identical=0) == Limits(identical=None)
    with pytest.raises(InvalidInput, match="identical"):
        Limits(identical=False)


async def test_an_error_of_a_role_is_reported_with_the_line_of_the_users_file(file: str, tmp_path: Path) -> None:
    episode = await played(tmp_path, actor=Act, evaluator=f"{file}:Broken", reflector=Reflect)
    assert episode.stop is not None
    line = PLAIN.splitlines().index('        return {}["nothing"]') + 1
    assert episode.stop.detail == f"evaluate of trial 1: KeyError: 'nothing' ({file}, line {line})"


def test_an_error_while_a_file_is_loaded_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n\ny = z\n")
    with pytest.raises(InvalidInput, match=re.escape(f"({tmp_path}/mine.py, line 3).")):
        find("evaluators", str(tmp_path / "mine.py"))


async def test_a_plain_method_that_is_optional_is_seen_and_awaited() -> None:
    class Shelf:
        def step(self, action: str) -> None: ...
        def offer(self, actions: Any) -> Any:
            return actions

    shelf = fitted("environments", Shelf())
    assert inspect.getattr_static(shelf, "offer"), "what `isinstance` of a protocol looks at from Python 3.12 on"
    assert await shelf.offer(("a",)) == ("a",)
