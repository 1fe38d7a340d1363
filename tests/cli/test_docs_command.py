"""`mulligan docs` shows the pages that ship, and each page that a help or an error names is there."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mulligan.cli.commands import PAGES
from mulligan.cli.docs import drawn
from mulligan.core.extras import install_command

Run = Callable[..., Any]
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ((), "README.md"),
        (("memory",), "memory.md"),
        (("memory.md",), "memory.md"),
        (("docs/formats/agent.md",), "formats/agent.md"),
        (("claude",), "coding-agents/claude.md"),
        (("evaluators",), "evaluators/README.md"),
    ],
)
def test_a_page_is_shown_as_it_is_written(mulligan: Run, name: tuple[str, ...], page: str) -> None:
    ended = mulligan("docs", *name)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == (DOCS / page).read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("memroy", " Did you mean memory"),
        ("python3", " Did you mean python"),
        ("zzz", ""),
        ("../README", ""),
        ("", ""),
    ],
)
def test_an_unknown_page_is_refused_with_the_nearest(mulligan: Run, name: str, hint: str) -> None:
    ended = mulligan("docs", name)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"Error: There is no page named {name!r}.{hint}")
    assert ended.err.endswith("To list the pages: mulligan docs --list\n")


def test_the_list_has_every_page_with_its_title(mulligan: Run) -> None:
    lines = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in mulligan("docs", "--list").out.splitlines())
    assert lines.keys() == {str(file.relative_to(DOCS).with_suffix("")) for file in DOCS.rglob("*.md")}
    assert lines["glossary"] == "Glossary"


def test_each_page_that_help_and_errors_name_is_there(mulligan: Run) -> None:
    named = {page for page in PAGES.values() if page} | {"cli"}
    for file in (ROOT / "src").rglob("*.py"):
        named |= set(re.findall(r"mulligan docs ([a-z][\w/-]+)", file.read_text("utf-8")))
    for page in sorted(named):
        assert mulligan("docs", page).status == 0, page


def test_without_sphinx_the_site_names_its_extra(mulligan: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(module: str) -> None:
        """Finds no module."""

    monkeypatch.setattr("mulligan.core.extras.find_spec", nowhere)
    ended = mulligan("docs", "--browser")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("Error: The site needs Sphinx: ")
    assert install_command("docs") in ended.err


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_page_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = drawn(
        "# Title\n\nSee [the bank](memory.md) and [cli.md](cli.md).\n\n![a picture](x.svg)\n\n" + "several words " * 40
    )
    assert max(map(len, text.splitlines())) <= min(columns, 100)
    assert "See the bank and mulligan docs cli." in text
    assert "memory.md" not in text
    assert "picture" not in text


def test_a_narrow_table_loses_no_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = drawn(
        "| strategy | what the next try sees |\n|---|---|\n| `last_attempt_and_reflexion` | " + "words " * 20 + "|\n"
    )
    assert "last_attempt_and_reflexion" in "".join(line[:20].strip() for line in text.splitlines())
