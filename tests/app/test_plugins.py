"""Contract tests over every plug-in that ships, and how a user's own are found."""

import inspect
import re
from pathlib import Path

import pytest
from each_row import each_row

from mulligan.app.plugins import ROLES, build, find, names, parse_spec, settings_of
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.records import Json, Spec

PURE = {"strategies", "retrieval", "deduplication", "merging", "transcripts"}
"""Roles whose method is no coroutine."""

SHIPPED = [(role, name) for role in ROLES for name in names(role)]


def test_the_plugins_of_the_design_are_there() -> None:
    four = {"none", "last_attempt", "reflexion", "last_attempt_and_reflexion"}
    assert set(names("strategies")) >= {*four, "evidence", "evidence_and_reflexion"}
    assert set(names("actors")) >= {"complete", "command"}
    assert set(names("evaluators")) >= {
        "unit_tests",
        "command",
        "exact_match",
        "contains",
        "regex",
        "model_judge",
        "human",
    }


@each_row(("role", "name"), SHIPPED)
def test_every_plugin_is_one_documented_class_of_its_file(role: str, name: str) -> None:
    cls = find(role, name)
    module = inspect.getmodule(cls)
    assert module is not None
    assert Path(str(module.__file__)).name == f"{name}.py"
    assert module.__doc__, "the file says what it does"
    method = getattr(cls, ROLES[role].method)
    assert inspect.iscoroutinefunction(method) == (role not in PURE)
    if role == "evaluators":
        assert "expects" in vars(cls) or "expects" in inspect.getsource(cls)


def test_every_setting_can_come_from_a_file_or_the_command_line() -> None:
    settings = [(role, name, setting) for role, name in SHIPPED for setting in settings_of(find(role, name)).values()]
    assert [f"{role} {name}: {one.name}" for role, name, one in settings if one.annotation is one.empty] == []
    assert len(settings) > 50


def test_a_file_of_the_users_is_found(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("class Mine:\n    reflects = False\n    def past(self, episode):\n        return None\n")
    assert find("strategies", str(mine)).__name__ == "Mine"
    assert find("strategies", f"{mine}:Mine").__name__ == "Mine"
    with pytest.raises(InvalidInput, match="no class 'Other' with a method 'past'"):
        find("strategies", f"{mine}:Other")
    with pytest.raises(InvalidInput, match="it has none"):
        find("actors", str(mine))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_this_name\n", "cannot be loaded: ModuleNotFoundError"),
        ("class A(:\n", "cannot be loaded: SyntaxError"),
        ("raise SystemError('no')\n", "cannot be loaded: SystemError: no"),
    ],
)
def test_a_broken_file_says_why(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(InvalidInput, match=said):
        find("actors", str(tmp_path / "broken.py"))


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'reflexion'"):
        find("strategies", "reflexions")


def test_a_dotted_path_is_imported() -> None:
    assert find("strategies", "mulligan.strategies.reflexion:Reflexion").__name__ == "Reflexion"
    with pytest.raises(InvalidInput, match="cannot be imported"):
        find("strategies", "no.such.module:Thing")


def test_an_argument_goes_to_the_first_setting() -> None:
    assert parse_spec("evaluators", "exact_match:42") == Spec("exact_match", {"answer": "42"})
    assert parse_spec("actors", "command:claude -p") == Spec("command", {"command": "claude -p"})
    assert parse_spec("strategies", "reflexion") == Spec("reflexion")
    with pytest.raises(InvalidInput, match="takes no argument"):
        parse_spec("strategies", "none:3")


def test_settings_are_checked_before_anything_runs() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'window'"):
        build("strategies", Spec("reflexion", {"windw": 3}), {})
    with pytest.raises(InvalidInput, match="needs the setting 'command'"):
        build("actors", Spec("command"), {})
    with pytest.raises(InvalidInput, match=r"needs a model.*model="):
        build("reflectors", Spec("verbal"), {})


@each_row(
    ("role", "name", "settings", "said"),
    [
        (
            "strategies",
            "reflexion",
            {"window": "no"},
            "'window' of 'reflexion' must be an integer or null, not 'no'",
        ),
        ("strategies", "reflexion", {"window": True}, "must be an integer or null, not True"),
        ("strategies", "reflexion", {"window": 0}, "at least 1, not 0"),
        ("strategies", "last_attempt_and_reflexion", {"window": -1}, "at least 1, not -1"),
        ("actors", "complete", {"temperatures": "hi"}, "must be a list of numbers, not 'hi'"),
        ("actors", "complete", {"output": "verse"}, "must be 'text' or 'code', not 'verse'"),
        ("evaluators", "exact_match", {"answers": 1}, "must be a string or a list of strings or null, not 1"),
        ("evaluators", "exact_match", {"answer": "x", "oracle": 7}, "must be true or false, not 7"),
    ],
)
def test_a_setting_of_another_kind_is_refused(role: str, name: str, settings: dict[str, Json], said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)):
        build(role, Spec(name, settings), {})


def test_a_users_file_that_fails_is_told_by_its_path(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("class Mine:\n    def __init__(self): 1 / 0\n    def past(self, episode): ...\n")
    with pytest.raises(InvalidInput, match=r"strategy '.*mine\.py' could not be created: ZeroDivisionError"):
        build("strategies", Spec(str(mine)), {})
    leaves = tmp_path / "leaves.py"
    leaves.write_text("raise SystemExit(0)\n")
    with pytest.raises(InvalidInput, match=r"leaves\.py cannot be loaded: SystemExit"):
        find("strategies", str(leaves))
    with pytest.raises(InvalidInput, match="does not exist"):
        find("strategies", ".")
