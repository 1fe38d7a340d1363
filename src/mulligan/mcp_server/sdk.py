"""Imports the part of the MCP SDK that a server needs, and the rest when it is first used: a quicker start.

design/012 has the figures, and why this is safe.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from threading import RLock
from typing import Any

PACKAGES = ("mcp", "mcp.server")
"""Their `__init__` imports clients and a second server framework."""

PARTS = ("mcp.server.lowlevel", "mcp.shared.message")


def import_server() -> None:
    """Imports `PARTS` without running the `__init__` of `PACKAGES`. Does nothing if the SDK is imported already.

    If the SDK has changed so that this fails, nothing of it stays imported, and the next import is an ordinary one.
    """
    if "mcp" in sys.modules:
        return
    from pydantic import BaseModel

    gc.disable()
    BaseModel.model_config["defer_build"] = True  # builds each of 500 models when it is first used
    try:
        for package in PACKAGES:
            _import_lazily(package)
        for part in PARTS:
            import_module(part)
    except Exception:
        for name in [name for name in sys.modules if name.split(".")[0] == "mcp"]:
            del sys.modules[name]
    finally:
        BaseModel.model_config.pop("defer_build", None)
        gc.freeze()  # what was imported lives as long as the process: never examine it again
        gc.enable()


def _import_lazily(name: str) -> None:
    """Puts a package into `sys.modules` whose `__init__` runs when an attribute that it lacks is first asked for."""
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module, loader = module_from_spec(spec), spec.loader
    lock, loaded = RLock(), False

    def load(attribute: str) -> Any:
        nonlocal loaded
        with lock:
            if not loaded:
                loaded = True
                loader.exec_module(module)
        if attribute in vars(module):
            return vars(module)[attribute]
        raise AttributeError(f"module {name!r} has no attribute {attribute!r}")

    vars(module)["__getattr__"] = load
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
