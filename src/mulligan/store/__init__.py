"""Stores keep episodes, lessons, queued work and benchmark runs. `open_store` opens one by its address.

A folder here is a kind of store: its name is the scheme of its addresses, and `open_address` in its `__init__.py`
opens one.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Store

_HERE = Path(__file__).parent

__all__ = ["open_store"]


def open_store(address: str | Path) -> Store:
    """A store by its address. No file is read or made until it is used; close it in the end.

    Args:
        address: `sqlite:///mine.db` (`sqlite:////tmp/mine.db` is an absolute path), the plain path of a SQLite file,
            `postgresql://role@host/name` (docs/stores.md), `memory:` for a store of its own that is gone once it is
            closed, or `memory:NAME` for one that everybody in this process shares who opens that name, until the last
            of them closes it.

    Raises:
        InvalidInput: The address names no kind of store, or not the way that this kind is named.
    """
    scheme, rest = parse_address(address)
    return import_module(f"mulligan.store.{scheme}").open_address(rest)


def file_of(address: str | Path) -> Path | None:
    """The file of a SQLite store; None for other kinds. Raises `InvalidInput` as `open_store` does."""
    scheme, rest = parse_address(address)
    return Path(rest.removeprefix("///")) if scheme == "sqlite" else None


def is_local(address: str | Path) -> bool:
    """Whether only this machine can use the store. Raises `InvalidInput` as `open_store` does."""
    return parse_address(address)[0] in ("sqlite", "memory")


def shown_address(address: str) -> str:
    """An address as it may be shown: without a password."""
    return re.sub(r"(?<=://)([^/:@]*):[^/]*(?=@)|(password=)[^&]*", r"\1\2", address)


def parse_address(address: str | Path) -> tuple[str, str]:
    """The kind of store and what comes after the colon, such as `("sqlite", "///mine.db")`. Raises `InvalidInput`."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", address, re.DOTALL) if isinstance(address, str) else None
    if found is None:
        if not str(address).strip():
            raise InvalidInput("The address of the store is empty: name a file, such as sqlite:///mulligan.db")
        return "sqlite", f"///{address}"
    scheme, rest = found[1].lower(), found[2]
    known = sorted(folder.parent.name for folder in _HERE.glob("*/__init__.py"))
    if scheme not in known:
        raise InvalidInput(
            f"{address!r} is not the address of a store: there is no kind {scheme!r}. "
            f"Available: {', '.join(known)}. A file with a colon in its name: ./{address}"
        )
    return scheme, rest
