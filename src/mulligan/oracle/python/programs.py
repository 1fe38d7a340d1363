"""The programs that run in the sandbox, put together from files of this folder."""

from __future__ import annotations

import ast
import marshal
from functools import cache
from pathlib import Path
from typing import Any

START = "import marshal\nfor code in marshal.loads(bytes.fromhex(open('program').read())): exec(code)"
"""Runs the file `program` that holds one."""
PROGRAMS = {
    "candidate": (("wire", "solution", "server"), "serve()"),
    "examiner": (("wire", "solution", "objects", "remote", "shim", "fixtures", "runner", "examiner"), "examine()"),
    "caller": (("wire", "solution", "caller"), "answer_calls()"),
}


@cache
def program(name: str) -> str:
    """The files of a program, compiled once here, so that no process spends its time on that: hex."""
    parts, start = PROGRAMS[name]
    codes = [_compiled(Path(__file__).parent / f"{part}.py") for part in parts]
    return marshal.dumps([*codes, compile(start, "<start>", "exec")]).hex()


def _compiled(path: Path) -> Any:
    """A file without its imports from this package: in the sandbox all parts share one namespace."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [
        n for n in tree.body if not (isinstance(n, ast.ImportFrom) and (n.module or "").startswith("mulligan"))
    ]
    return compile(tree, f"<{path.stem}>", "exec", dont_inherit=True, optimize=2)
