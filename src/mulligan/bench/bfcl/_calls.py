"""Reads the calls in an action. Arguments must be literals or calls, so that nothing else of an action is evaluated."""

from __future__ import annotations

import ast
from collections.abc import Collection

from mulligan.plugins import calls_in, literal


def calls_of(action: str, functions: Collection[str]) -> tuple[str, ...] | None:
    """The calls in an action, as Python. None for any other text.

    A call of a function that is not in `functions` becomes its name alone, which fails when it is evaluated.
    """
    return calls_in(action, lambda node: ast.unparse(_checked(node, functions)))


def _checked(node: ast.expr, functions: Collection[str]) -> ast.expr:
    """The call. Raises `ValueError` if it is not the call of a name with literals or other such calls."""
    if not isinstance(node, ast.Call) or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError
    name = node.func
    while isinstance(name, ast.Attribute):
        name = name.value
    if not isinstance(name, ast.Name):
        raise ValueError
    arguments = [_argument(each, functions) for each in node.args]
    named = [ast.keyword(each.arg, _argument(each.value, functions)) for each in node.keywords]
    known = isinstance(node.func, ast.Name) and name.id in functions
    return ast.Call(node.func, arguments, named) if known else node.func


def _argument(node: ast.expr, functions: Collection[str]) -> ast.expr:
    return _checked(node, functions) if isinstance(node, ast.Call) else literal(node)
