"""The Python of a page of docs/. As a program, it runs the blocks of a page one after the other: `doc_pages.py PAGE`."""

import ast
import asyncio
import inspect
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def file_name(block: str) -> str | None:
    found = re.match(r"# (\w+\.py)\n", block)
    return found[1] if found else None


def compiled(block: str) -> Any:
    return compile(block, "<docs>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def run(page: str) -> None:
    """Runs the blocks in the working folder, but those that import a package of somebody else."""
    sys.path.insert(0, "")
    space: dict[str, Any] = {"__name__": "docs"}
    for block in blocks(page):
        if name := file_name(block):
            Path(name).write_text(block, encoding="utf-8")
        elif not re.search(r"^(?:import|from) (?!mulligan|asyncio|billing)", block, re.MULTILINE):
            code = compiled(block)
            if code.co_flags & inspect.CO_COROUTINE:
                asyncio.run(eval(code, space))
            else:
                exec(code, space)


if __name__ == "__main__":
    run(sys.argv[1])
