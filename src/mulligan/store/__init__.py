"""Stores of episodes, lessons, queued work and benchmark runs. `open_store` opens a store by its address.

Each folder in this package is a kind of store. Its name is the scheme of addresses, and `open_address` in its
`__init__.py` opens a store.
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
    """Returns the store at an address. No file is read or created until the store is used. Close it after use.

    Args:
        address: `sqlite:///mine.db` (`sqlite:////tmp/mine.db` is an absolute path), the path of an SQLite file,
            `postgresql://role@host/name` (docs/stores.md), `memory:` for a new store that is lost when it is closed, or
            `memory:NAME` for a store that all code in this process that opens this name shares, until the last user
            closes it.

    Raises:
        InvalidInput: The kind of store is unknown, or the address does not have the format of that kind.
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
    """An address without its password, for messages."""
    return re.sub(r"(?<=://)([^/:@]*):[^/]*(?=@)|(password=)[^&]*", r"\1\2", address)


def parse_address(address: str | Path) -> tuple[str, str]:
    """The kind of store and what comes after the colon, such as `("sqlite", "///mine.db")`. Raises `InvalidInput`."""
    parts = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", address, re.DOTALL) if isinstance(address, str) else None
    if parts is None:
        if not str(address).strip():
            raise InvalidInput("The store address is empty: specify a file, such as sqlite:///mulligan.db")
        return "sqlite", f"///{address}"
    scheme, rest = parts[1].lower(), parts[2]
    known = sorted(folder.parent.name for folder in _HERE.glob("*/__init__.py"))
    if scheme not in known:
        raise InvalidInput(
            f"{address!r} is not a store address: {scheme!r} is not a kind of store. Available: {', '.join(known)}. "
            f"For a file with a colon in its name, use ./{address}"
        )
    return scheme, rest
