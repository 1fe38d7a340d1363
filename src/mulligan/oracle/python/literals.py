"""Large literals of a tests file, put aside while it is read: they hold no name and no call, and are most of its tree.

The rows of HumanEval+ hold up to 800 kB of values, through which each look at the tree would go.
"""

from __future__ import annotations

import ast

SMALLEST = 100
"""Nodes of a literal that is put aside."""
_KEPT = "oracle_literal"
_LOAD = ast.Load()


def folded(tree: ast.Module) -> ast.Module:
    """The tree with a stand-in for each large literal, which `unfolded` takes out again."""
    _fold(tree)
    return tree


def unfolded(tree: ast.Module) -> ast.Module:
    return _Unfolding().visit(tree)


def _fold(node: ast.AST) -> int:
    """The size of a literal, in nodes; 0 for anything else, in which the large literals are replaced."""
    if isinstance(node, ast.Constant):
        return 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return 2
    sizes = [(part, _fold(part)) for part in ast.iter_child_nodes(node) if not isinstance(part, ast.expr_context)]
    if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict) and all(size for _, size in sizes):
        return 1 + sum(size for _, size in sizes) if isinstance(getattr(node, "ctx", _LOAD), ast.Load) else 0
    large = {id(part): _stand_in(part) for part, size in sizes if size >= SMALLEST and isinstance(part, ast.expr)}
    if large:
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, name, [large.get(id(part), part) for part in value])  # pyright: ignore
            elif id(value) in large:
                setattr(node, name, large[id(value)])
    return 0


def _stand_in(literal: ast.expr) -> ast.Constant:
    """`...`, which keeps the literal."""
    made = ast.copy_location(ast.Constant(...), literal)
    setattr(made, _KEPT, literal)
    return made


class _Unfolding(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return getattr(node, _KEPT, node)
