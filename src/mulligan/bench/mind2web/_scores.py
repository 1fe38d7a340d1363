"""Reads Mind2Web's candidate scores, a pickle, without running anything that the file names.

A pickle can call any function. This reader knows the few names that plain data and NumPy's numbers need, replaces each
by a function of its own, and refuses every other name before it is called.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from mulligan.plugins import InvalidInput

_NAMES = ("f2", "f4", "f8", "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
_NUMBERS: Mapping[str, str] = dict(zip(_NAMES, "efd?bhiqBHIQ", strict=True))
"""The format characters of `struct`, by NumPy's names of number types."""


class _NumberType:
    """Replaces `numpy.dtype`: the type of a number, and its byte order."""

    def __init__(self, name: str, *_: object) -> None:
        self._letter, self._order = _NUMBERS[name.lstrip("<>=|")], "<"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._order = ">" if state[1] == ">" else "<"

    def read(self, data: bytes) -> float:
        return struct.unpack(self._order + self._letter, data)[0]


def _number(kind: _NumberType, data: bytes | str) -> float:
    """Replaces NumPy's function that makes a number. Protocols below 3 give its bytes as text."""
    return kind.read(data.encode("latin-1") if isinstance(data, str) else data)


def _table(*arguments: Any) -> dict[Any, Any]:
    """Replaces the kinds of dict. The arguments are the initial items, or the factory of missing values."""
    return dict(*(argument for argument in arguments if not callable(argument)))


def _bytes(text: str, encoding: str) -> bytes:
    """Replaces `codecs.encode`, with which protocols below 3 write bytes."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"the encoding {encoding!r}")
    return text.encode("latin-1")


_ALLOWED: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("builtins", "dict"): _table,
    ("builtins", "list"): list,
    ("builtins", "int"): int,
    ("builtins", "float"): float,
    ("collections", "OrderedDict"): _table,
    ("collections", "defaultdict"): _table,
    ("_codecs", "encode"): _bytes,
    ("numpy", "dtype"): _NumberType,
    ("numpy.core.multiarray", "scalar"): _number,
    ("numpy._core.multiarray", "scalar"): _number,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        module = "builtins" if module_name == "__builtin__" else module_name
        if (module, global_name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it refers to {module_name}.{global_name}, which scores do not need")
        return _ALLOWED[module, global_name]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to an object outside the file")


def read_ranks(file: Path) -> Mapping[str, Mapping[str, int]]:
    """The rank of each candidate (0 is the best) by its id, for each step `TASK_STEP`.

    Raises `InvalidInput` for a file that cannot be read, or that contains anything but tables and numbers.
    """
    try:
        return _read(file, file.stat().st_mtime_ns)
    except OSError as error:
        raise InvalidInput(f"The candidate score file {file} cannot be read: {error.strerror or error}.") from error


@lru_cache(maxsize=1)
def _read(file: Path, changed: int) -> Mapping[str, Mapping[str, int]]:
    """changed: when the file was last changed, so that another version is read again."""
    try:
        with file.open("rb") as opened:
            data: Any = _Reader(opened).load()
        ranks = cast(dict[str, dict[str, Any]], data["ranks"])
        return {step: {str(id): int(rank) for id, rank in candidates.items()} for step, candidates in ranks.items()}
    except OSError:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        raise InvalidInput(
            f"The candidate score file {file} cannot be used: {type(error).__name__}: {error}. Mind2Web's "
            "scores_all_data.pkl is a table whose 'ranks' rank each candidate of each step."
        ) from error
