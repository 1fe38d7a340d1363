"""Reads calls such as `lend(title="Heat", days=7)` in a line of text. Nothing of the line is evaluated."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

MAX_CHARACTERS = 20_000
_CONSTANTS = {"true": True, "false": False, "null": None}
"""Names of JSON, for a model that writes its arguments in that form. Any other name is a text."""


def calls_in(line: str, read: Callable[[ast.expr], T]) -> tuple[T, ...] | None:
    """The calls in a line such as `a(x=1)`, `a(x=1), b()` or `[a(x=1)]`, in Python's syntax; None for any other text.

    Args:
        read: Reads one of them. Raises `ValueError` for anything but a call.
    """
    if len(line) > MAX_CHARACTERS:
        return None
    try:
        tree = ast.parse(line.strip(" \t`"), mode="eval").body
        nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
        return tuple(map(read, nodes)) or None
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def call_parts(node: ast.expr) -> tuple[str, dict[str, Any]]:
    """The name that is called, and its arguments; those without a name are called by their number. Raises
    `ValueError` for anything but a call with literals."""
    if not isinstance(node, ast.Call) or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError
    named = [(keyword.arg or "", keyword.value) for keyword in node.keywords]
    given = [*((f"argument {number}", value) for number, value in enumerate(node.args, 1)), *named]
    return ast.unparse(node.func), {name: ast.literal_eval(literal(value)) for name, value in given}


def literal(node: ast.expr) -> ast.expr:
    """The expression with each name as a constant or a text. Raises `ValueError` for what is then no literal."""
    node = _Texts().visit(node)
    ast.literal_eval(node)
    return node


class _Texts(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_CONSTANTS.get(node.id, node.id))
