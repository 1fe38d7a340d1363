"""The examples in docs/, taken from the pages and run, so that no page shows what does not work.

A ```python block whose first line is `# name.py` is a file for the blocks after it; the others run in order, page by
page, and print what the comments beside their prints say.
"""

import asyncio
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest
from doc_pages import DOCS, blocks, compiled, expected, file_name, lines_in_order
from each_row import each_row

from mulligan.app.plugins import build
from mulligan.core.protocols import Evaluator
from mulligan.core.records import Attempt, Episode, Feedback, Spec, Task, Trial

RUN = (
    "guides/functions.md",
    "functions.md",
    "images.md",
    "traces.md",
    "exam.md",
    "graphs.md",
    "python.md",
    "plugins.md",
    "strategies.md",
    "models.md",
    "operations.md",
    "serve.md",
    "studio.md",
    "reflexion-thinking.md",
    "langgraph-chat.md",
    "langgraph.md",
    "prompt-engine.md",
    "knowledge-graphs.md",
)
READ = (
    "benchmark-inspect.md",
    "benchmark-memories.md",
    "benchmark-report.md",
    "benchmark-state-bench.md",
    "embedded-models.md",
    "embedders.md",
    "evaluators/README.md",
    "guides/memory.md",
    "tour.md",
)
"""Pages whose blocks are only compiled here: they need weights, or are run by a test of their own."""


def test_every_page_with_python_is_run_or_read() -> None:
    pages = {page.relative_to(DOCS) for page in DOCS.rglob("*.md") if "```python" in page.read_text("utf-8")}
    tutorials = {page for page in pages if page.parent == Path("tutorials")}  # test_tutorials.py walks through them
    assert {str(page) for page in pages - tutorials} == {*RUN, *READ}


@pytest.mark.light_cases(3)
@pytest.mark.parametrize("page", RUN)
def test_the_examples_run_and_print_what_the_page_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    space: dict[str, Any] = {"__name__": "docs"}
    for block in blocks(page):
        if name := file_name(block):
            (tmp_path / name).write_text(block, encoding="utf-8")
            continue
        code = compiled(block)
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(code, space))
        else:
            exec(code, space)
        printed = capsys.readouterr().out.splitlines()
        assert lines_in_order(expected(block), iter(printed)) == [], f"{page}:\n{block}\nprinted {printed}"


@each_row("page", READ)
def test_the_examples_compile(page: str) -> None:
    found = blocks(page)
    assert found
    for block in found:
        compiled(block)


async def test_the_documented_evaluator_works_from_its_file(tmp_path: Path) -> None:
    (code,) = blocks("evaluators/README.md")
    file = tmp_path / "short.py"
    file.write_text(code, encoding="utf-8")
    short = build("evaluators", Spec(str(file), {"words": 2}), {})
    assert isinstance(short, Evaluator)
    episode = Episode("e.1", Task("t"), trials=(Trial(1, Attempt("one two three")),))
    assert await short.evaluate(episode) == Feedback(False, "3 words, but at most 2 are allowed.", source="short")
