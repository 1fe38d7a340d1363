"""The figures of the source: lines of code by room, small files, imports inside functions, circles of modules.

    python tools/measures.py [FOLDER]      # FOLDER: the package, src/mulligan unless another is named

A line of code is one that is not blank, a comment or part of a docstring. An import inside a function counts for
circles, one for the type checker alone does not.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from rooms import SRC, parsed, statements

_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_SMALL = 40
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text: str) -> int:
    """How many lines of a file are code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return sum(1 for number, line in enumerate(text.split("\n"), 1) if number in lines and line.strip())


def sources(package: Path) -> Mapping[str, Path]:
    """The files of a package by the dotted names of their modules."""
    return {
        ".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): file
        for file in sorted(package.rglob("*.py"))
    }


def inner_imports(package: Path) -> Mapping[str, int]:
    """How many imports stand inside functions: of the package's own modules, and of others."""
    found = Counter({"own": 0, "other": 0})
    for file in sources(package).values():
        tree = parsed(file)
        functions = [node for node in statements(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        inside = {id(node): node for function in functions for node in statements(function)}
        for node in inside.values():
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
                found["own" if module.split(".")[0] == package.name else "other"] += 1
    return found


def in_circles(package: Path) -> list[str]:
    """The modules that import each other in a circle, or stand on a way between two circles."""
    modules = sources(package)
    uses: dict[str, set[str]] = {}
    for name, file in modules.items():
        tree = parsed(file)
        blocks = [
            node for node in statements(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ]
        typing_only = {id(node) for block in blocks for node in statements(block)}
        uses[name] = set()
        for node in statements(tree):
            if isinstance(node, ast.ImportFrom) and id(node) not in typing_only and node.module:
                targets = [f"{node.module}.{alias.name}" for alias in node.names]
                uses[name] |= {target if target in modules else node.module for target in targets} - {name}
    left = set(modules)
    while ends := {name for name in left if not uses[name] & left or not any(name in uses[other] for other in left)}:
        left -= ends
    return sorted(left)


def main(package: Path) -> None:
    texts = {file: file.read_text(encoding="utf-8") for file in sources(package).values()}
    rooms: Counter[str] = Counter()
    for file, text in texts.items():
        inside = file.relative_to(package).parts
        rooms[inside[0] if len(inside) > 1 else "."] += code_lines(text)
    small = [file for file, text in texts.items() if text.count("\n") < _SMALL and file.name != "__init__.py"]
    inner, circles = inner_imports(package), in_circles(package)
    print(f"{sum(rooms.values())} lines of code in {len(texts)} files, {len(small)} of them under {_SMALL} lines")
    print(f"imports inside functions: {inner['own']} of our own modules, {inner['other']} of others")
    print(f"modules in circles: {', '.join(circles) or 'none'}")
    for room, lines in rooms.most_common():
        print(f"  {room:16} {lines:6}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SRC)
