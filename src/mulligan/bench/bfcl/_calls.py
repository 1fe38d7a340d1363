"""Reads the calls in an action. Only literal arguments pass, so that nothing else of an action is ever evaluated."""

from __future__ import annotations

import ast
from collections.abc import Collection

MAX_CHARACTERS = 20_000
_CONSTANTS = {"true": True, "false": False, "null": None}
"""Names of JSON, for a model that writes its arguments in that form. Any other name is a text, as for BFCL."""


def calls_of(action: str, functions: Collection[str]) -> tuple[str, ...] | None:
    """The calls in an action such as `a(x=1)`, `a(x=1), b()` or `[a(x=1)]`, as Python; None for any other text.

    A call of a function that is not in `functions` is reduced to its name, which fails when it is evaluated.
    """
    if len(action) > MAX_CHARACTERS:
        return None
    try:
        tree = ast.parse(action.strip(" \t`"), mode="eval").body
        nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
        return tuple(ast.unparse(_checked(node, functions)) for node in nodes) or None
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _checked(node: ast.expr, functions: Collection[str]) -> ast.expr:
    """The call. Raises `ValueError` for what is no call of a name with literals or further such calls."""
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
    if isinstance(node, ast.Call):
        return _checked(node, functions)
    node = _Texts().visit(node)
    ast.literal_eval(node)
    return node


class _Texts(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_CONSTANTS.get(node.id, node.id))
