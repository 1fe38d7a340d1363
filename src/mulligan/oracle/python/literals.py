"""Puts large literals of a tree aside while it is read and changed.

They have no names and no calls, and are most of the tree: a row of HumanEval+ has up to 800 kB of values.
"""

from __future__ import annotations

import ast

MIN_NODES = 100
"""Nodes that a literal has at least to be put aside."""
_KEPT = "oracle_literal"
_LOAD = ast.Load()


def folded(tree: ast.Module) -> ast.Module:
    """Replace each large literal of a tree by a stand-in. Returns the tree."""
    _fold(tree)
    return tree


def unfolded(tree: ast.Module) -> ast.Module:
    """Put the literals back that `folded` has replaced."""
    return _Unfolding().visit(tree)


def _fold(node: ast.AST) -> int:
    """The nodes of a literal; 0 for anything else, in which large literals are replaced."""
    if isinstance(node, ast.Constant):
        return 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return 2
    sizes = [(part, _fold(part)) for part in ast.iter_child_nodes(node) if not isinstance(part, ast.expr_context)]
    if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict) and all(size for _, size in sizes):
        return 1 + sum(size for _, size in sizes) if isinstance(getattr(node, "ctx", _LOAD), ast.Load) else 0
    large = {id(part): _stand_in(part) for part, size in sizes if size >= MIN_NODES and isinstance(part, ast.expr)}
    if large:
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, name, [large.get(id(part), part) for part in value])  # pyright: ignore
            elif id(value) in large:
                setattr(node, name, large[id(value)])
    return 0


def _stand_in(literal: ast.expr) -> ast.Constant:
    """The constant `...`, with the literal as an attribute."""
    constant = ast.copy_location(ast.Constant(...), literal)
    setattr(constant, _KEPT, literal)
    return constant


class _Unfolding(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return getattr(node, _KEPT, node)
