"""The public modules: what they offer is listed, sorted, there, and documented, and a type checker sees the same."""

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

import mulligan
from mulligan import pages, plugins, running, serving, terminal

MODULES: list[ModuleType] = [mulligan, pages, plugins, running, serving, terminal]


def of_modules(test: object) -> object:
    return pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)(test)  # pyright: ignore


@cache
def homes(module: ModuleType) -> Mapping[str, str]:
    """The module that each name is imported from, as a type checker reads it."""
    tree = ast.parse(inspect.getsource(module))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in froms if node.module and node.module.startswith("mulligan.") and node.module != LAZY]
    return {alias.asname or alias.name: f"{node.module}:{alias.name}" for node in ours for alias in node.names}


LAZY = "mulligan.core.lazy"


@of_modules
def test_all_is_sorted_and_a_type_checker_sees_the_same_names(module: ModuleType) -> None:
    """The imports for type checkers, the homes and `__all__` are three lists of the same names."""
    assert module.__all__ == sorted(module.__all__, key=lambda name: (not name.isupper(), name))
    assert set(homes(module)) == set(module.__all__)


def test_the_face_lists_what_is_public() -> None:
    assert dir(mulligan) == mulligan.__all__


@of_modules
def test_every_name_resolves_to_something_documented(module: ModuleType) -> None:
    bare = [name for name in module.__all__ if not documented(module, name)]
    assert bare == []


def documented(module: ModuleType, name: str) -> bool:
    """Whether a class or function says in its docstring, or another thing in the text behind it, what it is for."""
    thing, (home, _, own) = getattr(module, name), homes(module)[name].partition(":")
    if inspect.isclass(thing) or inspect.isroutine(thing):
        text = inspect.getdoc(thing) or ""
        return len(text) > 20 and not text.startswith(f"{own}(")  # what a dataclass makes for itself says nothing
    body = ast.parse(Path(str(import_module(home).__file__)).read_text(encoding="utf-8")).body
    return any(
        isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        for node, after in pairwise(body)
        if isinstance(node, ast.AnnAssign | ast.Assign) and own in ast.unparse(node).split("=")[0]
    )


@pytest.mark.parametrize("module", [mulligan, running], ids=lambda module: module.__name__)
def test_a_name_that_is_not_there_is_an_attribute_error(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"'{module.__name__}' has no attribute 'solv'"):
        _ = module.solv
