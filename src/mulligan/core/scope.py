"""The current position in an episode: the path that journal keys begin with, such as `trial.2/act`.

Parallel branches each open a scope of their own name, so that a key never depends on who came first.
"""

from __future__ import annotations

from contextvars import ContextVar

_path: ContextVar[tuple[str, ...]] = ContextVar("mulligan_path", default=())


class scope:
    """A context manager: everything recorded inside is keyed below these names."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __enter__(self) -> None:
        self._token = _path.set((*_path.get(), *self._names))

    def __exit__(self, *error: object) -> None:
        _path.reset(self._token)


def path(*names: str) -> str:
    """The current path, with `names` below it."""
    return "/".join((*_path.get(), *names))
