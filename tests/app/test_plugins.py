"""Contract tests over every plug-in that ships, and how a user's own are found."""

import inspect
from pathlib import Path

import pytest

from mulligan.app.plugins import ROLES, Spec, build, find, names, settings_of
from mulligan.core.errors import InvalidInput, UnknownName

SHIPPED = [(role, name) for role in ROLES for name in names(role)]


def test_the_plugins_of_the_design_are_there() -> None:
    assert set(names("strategies")) >= {"none", "last_attempt", "reflexion", "last_attempt_and_reflexion"}
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


@pytest.mark.parametrize(("role", "name"), SHIPPED)
def test_every_plugin_is_one_documented_class_of_its_file(role: str, name: str) -> None:
    cls = find(role, name)
    module = inspect.getmodule(cls)
    assert module is not None
    assert module.__name__ == f"mulligan.{role}.{name}"
    assert module.__doc__, "the file says what it does"
    method = getattr(cls, ROLES[role])
    assert inspect.iscoroutinefunction(method) == (role != "strategies")
    if role == "evaluators":
        assert "expects" in vars(cls) or "expects" in inspect.getsource(cls)


@pytest.mark.parametrize(("role", "name"), SHIPPED)
def test_every_setting_can_come_from_a_file_or_the_command_line(role: str, name: str) -> None:
    for parameter in settings_of(find(role, name)).values():
        assert parameter.annotation is not parameter.empty, f"{name}: {parameter.name} has no type"


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
    assert Spec.parse("evaluators", "exact_match:42") == Spec("exact_match", {"answer": "42"})
    assert Spec.parse("actors", "command:claude -p") == Spec("command", {"command": "claude -p"})
    assert Spec.parse("strategies", "reflexion") == Spec("reflexion")
    with pytest.raises(InvalidInput, match="takes no argument"):
        Spec.parse("strategies", "none:3")


def test_settings_are_checked_before_anything_runs() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'window'"):
        build("strategies", Spec("reflexion", {"windw": 3}), {})
    with pytest.raises(InvalidInput, match="needs the setting 'command'"):
        build("actors", Spec("command"), {})
    with pytest.raises(InvalidInput, match=r"needs a model.*--model"):
        build("reflectors", Spec("verbal"), {})
