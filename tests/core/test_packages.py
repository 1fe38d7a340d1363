"""A package whose `__init__` waits looks to its users as if it had been imported."""

import importlib
import inspect
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from mulligan.core.packages import import_parts


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package `late_shop.wares`, which imports its module `tea`."""
    folder = tmp_path / "late_shop"
    (folder / "wares").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "wares" / "__init__.py").write_text("from .tea import Tea as Tea\n")
    (folder / "wares" / "tea.py").write_text("class Tea: ...\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in ("late_shop", "late_shop.wares", "late_shop.wares.tea"):
        monkeypatch.setitem(sys.modules, name, None)  # so that it is restored
        monkeypatch.delitem(sys.modules, name)
    importlib.invalidate_caches()
    return folder


def test_a_program_notices_nothing_of_a_package_that_waits(shop: Path) -> None:
    import_parts(["late_shop"], ["late_shop.wares"])
    assert "late_shop.wares.tea" not in sys.modules
    late: Any = importlib.import_module("late_shop")
    assert ("Tea" in dir(late.wares), "Tea" in dict(inspect.getmembers(late.wares))) == (True, True)
    tea: Any = importlib.import_module("late_shop.wares.tea")
    assert late.wares.Tea is pickle.loads(pickle.dumps(tea.Tea))
    with pytest.raises(AttributeError, match="no attribute 'coffee'"):
        late.wares.coffee  # noqa: B018


def test_what_fails_in_a_package_that_waits_is_raised_each_time(shop: Path) -> None:
    (shop / "wares" / "__init__.py").write_text("raise ValueError('sold out')\n")
    import_parts(["late_shop"], ["late_shop.wares"])
    late: Any = importlib.import_module("late_shop")
    for _ in range(2):
        with pytest.raises(ValueError, match="sold out"):
            late.wares.Tea  # noqa: B018
