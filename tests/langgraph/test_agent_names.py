"""`mulligan.langgraph` as it is imported: names that resolve, a type checker that sees them, and nothing heavy at once."""

import inspect
import re
import subprocess
import sys

import pytest
from each_row import each_row

import mulligan.langgraph as face
from mulligan.core.errors import InvalidInput
from mulligan.core.extras import install_command


@each_row("name", face.__all__)
def test_every_name_resolves_to_something_documented(name: str) -> None:
    thing = getattr(face, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        assert thing.__name__ == name
        assert len(inspect.getdoc(thing) or "") > 20
    else:
        assert isinstance(thing, str)


def test_the_lists_of_names_are_one() -> None:
    assert dir(face) == sorted(face.__all__)
    source = inspect.getsource(face)
    checked = source.partition("if TYPE_CHECKING:\n")[2].partition("\n\n")[0]
    checked = checked.replace("(", "").replace(")", "")
    names = {name.strip() for part in checked.split("from ") for name in part.partition(" import ")[2].split(",")}
    assert names - {""} == set(face.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'ReflexionAgnt'"):
        _ = face.ReflexionAgnt  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]


def test_without_langgraph_a_name_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph", None)
    with pytest.raises(InvalidInput, match=re.escape(install_command("langgraph"))):
        _ = face.ReflexionAgent


def test_importing_it_imports_nothing_heavy() -> None:
    code = (
        "import sys, mulligan.langgraph; print({'langgraph', 'langchain_core', 'ladybug', 'neo4j'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "set()\n"
