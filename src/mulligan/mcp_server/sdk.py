"""Imports the part of the MCP SDK that a server needs, and leaves the rest until it is asked for.

design/012-server-start.md says what that saves, and why it is safe.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from threading import get_ident
from typing import Any

PACKAGES = ("mcp", "mcp.server")
"""Their `__init__` imports the clients and a second framework for servers."""

PARTS = ("mcp.server.lowlevel", "mcp.shared.message")


def import_server() -> None:
    """Does nothing where the SDK is imported already, and undoes what it did where the SDK is not as it was.

    For a process that does nothing but serve: what is imported is taken from the garbage collector for good.
    """
    if "mcp" in sys.modules:
        return
    from pydantic import BaseModel

    collects = gc.isenabled()
    gc.disable()
    BaseModel.model_config["defer_build"] = True  # each of 500 models is built when it is first used
    try:
        for package in PACKAGES:
            _postpone(package)
        for part in PARTS:
            import_module(part)
    except Exception:
        for name in [name for name in sys.modules if name.split(".")[0] == "mcp"]:
            del sys.modules[name]
    finally:
        BaseModel.model_config.pop("defer_build", None)
        gc.freeze()
        if collects:
            gc.enable()


def _postpone(name: str) -> None:
    """The package as a module whose `__init__` runs when something that it has not yet is first asked of it."""
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module, loader, running = module_from_spec(spec), spec.loader, set[int]()

    def missing(attribute: str) -> Any:
        if get_ident() in running:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        running.add(get_ident())
        try:
            loader.exec_module(module)
        finally:
            running.discard(get_ident())
        if vars(module).get("__getattr__") is missing:
            del module.__getattr__
        return getattr(module, attribute)

    vars(module)["__getattr__"] = missing
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
