"""The Python of a page of docs/. As a program, it runs the blocks of a page one after the other: `doc_pages.py PAGE`."""

import ast
import asyncio
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_OTHERS = re.compile(r"^(?:import|from) (?!mulligan|asyncio|billing)", re.MULTILINE)
DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def file_name(block: str) -> str | None:
    found = re.match(r"# (\w+\.py)\n", block)
    return found[1] if found else None


def compiled(block: str) -> Any:
    return compile(block, "<docs>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def expected(block: str) -> list[str]:
    """What a block prints, by the comments beside its prints."""
    return re.findall(r"^ *print\(.*\)  # (.*)$", block, re.MULTILINE)


def lines_in_order(wanted: list[str], lines: Iterator[str]) -> list[str]:
    """Those of the wanted lines that do not come, in their order."""
    return [line for line in wanted if line not in lines]


def ours(page: str) -> list[str]:
    """The blocks that import nothing of somebody else."""
    return [block for block in blocks(page) if not _OTHERS.search(block)]


def run(page: str) -> None:
    """Runs the blocks of `ours` in the working folder."""
    sys.path.insert(0, "")
    space: dict[str, Any] = {"__name__": "docs"}
    for block in ours(page):
        if name := file_name(block):
            Path(name).write_text(block, encoding="utf-8")
        else:
            code = compiled(block)
            if code.co_flags & inspect.CO_COROUTINE:
                asyncio.run(eval(code, space))
            else:
                exec(code, space)


if __name__ == "__main__":
    run(sys.argv[1])
