"""Where queries were repaired until design/158. Each name says what to use instead."""

from __future__ import annotations


def __getattr__(name: str) -> object:
    raise ImportError(
        f"mulligan.graphs.repair.{name} was removed: queries are now compared with the schema instead of being "
        "repaired. Use mulligan.graphs.schema_check.check_query."
    )
