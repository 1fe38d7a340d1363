"""Imports modules without the `__init__` of their packages, if that imports much that is not needed: design/012."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from threading import RLock
from typing import Any


def import_parts(parts: Sequence[str], packages: Sequence[str]) -> None:
    """Imports modules of one distribution. The `__init__` of a package in `packages` runs only once an attribute is
    asked for that the package lacks. Does nothing if the outermost package is imported already.

    If this fails, because the distribution has changed, nothing of it stays imported, and the next import is ordinary.
    """
    top = packages[0].partition(".")[0]
    if top in sys.modules:
        return
    try:
        for package in packages:
            _postpone(package)
        for part in parts:
            import_module(part)
        for package in packages:
            _bind(package)
    except Exception:
        for name in [name for name in sys.modules if name.partition(".")[0] == top]:
            del sys.modules[name]


def _postpone(name: str) -> None:
    parent = name.rpartition(".")[0]
    outer = find_spec(parent) if parent else None
    spec = PathFinder.find_spec(name, outer and outer.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module, loader = module_from_spec(spec), spec.loader
    lock, loaded = RLock(), False

    def load() -> None:
        nonlocal loaded
        with lock:
            if not loaded:
                loaded = True  # before it runs, because it may ask for itself
                try:
                    loader.exec_module(module)
                except BaseException:
                    loaded = False
                    raise

    def attribute_of(attribute: str) -> Any:
        load()
        if attribute in vars(module):
            return vars(module)[attribute]
        raise AttributeError(f"module {name!r} has no attribute {attribute!r}")

    def names() -> list[str]:
        load()
        return list(vars(module))

    vars(module).update(__getattr__=attribute_of, __dir__=names)
    sys.modules[name] = module
    _bind(name)


def _bind(name: str) -> None:
    """Makes a package an attribute of its parent, as an ordinary import does, if the parent is imported."""
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        vars(sys.modules[parent]).setdefault(child, sys.modules[name])
