"""The current position in an episode: the path that journal keys begin with, such as `trial.2/act`.

Parallel branches each open a scope of their own name, so that a key never depends on who came first.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_path: ContextVar[tuple[str, ...]] = ContextVar("mulligan_path", default=())


@contextmanager
def scope(*names: str) -> Generator[None]:
    """Everything recorded inside is keyed below these names."""
    token = _path.set((*_path.get(), *names))
    try:
        yield
    finally:
        _path.reset(token)


def path(*names: str) -> str:
    """The current path, with `names` below it."""
    return "/".join((*_path.get(), *names))
