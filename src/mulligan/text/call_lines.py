"""Reads calls such as `lend(title="Heat", days=7)` from a line of text, without evaluating them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

from mulligan.text.python_code import parsed

T = TypeVar("T")

MAX_CHARACTERS = 20_000
_CONSTANTS = {"true": True, "false": False, "null": None}
"""Names of JSON that models write as arguments. Any other name is read as text."""


def calls_in(line: str, read: Callable[[ast.expr], T]) -> tuple[T, ...] | None:
    """Returns the calls in a line such as `a(x=1)`, `a(x=1), b()` or `[a(x=1)]`, or None for any other text.

    Args:
        read: a function that parses one call, and raises `ValueError` for any other expression.
    """
    tree = parsed(line.strip(" \t`")) if len(line) <= MAX_CHARACTERS else None
    if tree is None or len(tree.body) != 1 or not isinstance(statement := tree.body[0], ast.Expr):
        return None
    value = statement.value
    nodes = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    try:
        return tuple(map(read, nodes)) or None
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def call_parts(node: ast.expr) -> tuple[str, dict[str, Any]]:
    """Returns the name of the called function and the arguments. A positional argument is named by its number.

    Raises `ValueError` for anything but a call with literals.
    """
    if not isinstance(node, ast.Call) or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError
    named = [(keyword.arg or "", keyword.value) for keyword in node.keywords]
    arguments = [*((f"argument {number}", value) for number, value in enumerate(node.args, 1)), *named]
    return ast.unparse(node.func), {name: ast.literal_eval(literal(value)) for name, value in arguments}


def literal(node: ast.expr) -> ast.expr:
    """Returns the expression, with names replaced by constants or strings.

    Raises:
        ValueError: it is not a literal.
    """
    node = _NameReplacer().visit(node)
    ast.literal_eval(node)
    return node


class _NameReplacer(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_CONSTANTS.get(node.id, node.id))
