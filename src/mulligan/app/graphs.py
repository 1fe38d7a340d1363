"""Where graph databases were opened until they got a house of their own. Each name says where it is now."""

from __future__ import annotations


def __getattr__(name: str) -> object:
    raise ImportError(f"mulligan.app.graphs.{name} has moved: from mulligan.graphs import {name}")
