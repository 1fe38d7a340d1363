"""One test for a table of rows, where a test for each row would cost more than what it does."""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def each_row(
    names: str | Sequence[str], rows: Iterable[Any], ids: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Call a test that takes no fixtures with each row, and then fail with the rows that failed.

    Takes what `pytest.mark.parametrize` takes.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_values(row, len(names)) for row in rows]

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        @functools.wraps(test)
        def every() -> None:
            assert table, "the table has no rows"
            errors: list[Exception] = []
            for n, row in enumerate(table):
                try:
                    test(**dict(zip(names, row, strict=True)))
                except Exception as error:
                    error.add_note(f"row: {ids[n] if ids else reprlib.repr(row)}")
                    errors.append(error)
            if len(errors) == 1:
                raise errors[0]
            if errors:
                raise ExceptionGroup(f"{len(errors)} of {len(table)} rows", errors)

        every.__dict__["__signature__"] = inspect.Signature()  # no fixtures
        return every

    return decorate


def _values(row: Any, count: int) -> tuple[Any, ...]:
    """The values of a row: a `pytest.param`, a sequence of them, or the only one."""
    if type(row).__name__ == "ParameterSet":
        return tuple(row.values)
    return (row,) if count == 1 else tuple(row)
