"""`mulligan docs`: the documentation that ships with the package, in the terminal or as a site in the browser."""

from __future__ import annotations

import re
import subprocess
import sys
import webbrowser
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar

import click

from mulligan.cli.terminal import emit, say
from mulligan.core.errors import InvalidInput
from mulligan.core.extras import require
from mulligan.core.home import home

FIRST = "README"
WIDEST = 100
"""The most columns of a text that is read."""


def folder() -> Path:
    """Returns the folder of the pages: in the package or, in a checkout, beside its source."""
    inside = Path(__file__).parents[1] / "docs"
    return inside if inside.is_dir() else Path(__file__).parents[3] / "docs"


def pages() -> dict[str, Path]:
    """Returns the pages by name, such as cli or formats/agent."""
    here = folder()
    return {file.relative_to(here).with_suffix("").as_posix(): file for file in sorted(here.rglob("*.md"))}


def page_of(name: str) -> tuple[str, Path]:
    """Returns the page of this name. The last part of a name is enough if it is unique.

    Raises:
        InvalidInput: there is no such page, or several.
    """
    known, wanted = pages(), name.removeprefix("docs/").removesuffix(".md").strip("/")
    if wanted in known:
        return wanted, known[wanted]
    matches = [page for page in known if page.endswith(f"/{wanted}") or page == f"{wanted}/{FIRST}"]
    if len(matches) == 1:
        return matches[0], known[matches[0]]
    near = matches or get_close_matches(wanted, known, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise InvalidInput(f"There is no page named {name!r}.{hint} To list the pages: mulligan docs --list")


@click.command()
@click.argument("page", default=FIRST)
@click.option("--list", "lists", is_flag=True, help="List the pages with their titles.")
@click.option(
    "--browser", is_flag=True, help="Build the site (requires the `docs` extra) and open the page in a browser."
)
def docs(page: str, lists: bool, browser: bool) -> None:
    """Show the documentation page PAGE, for example with `mulligan docs memory` (default: the overview).

    The pages ship with Mulligan and need no network access. If the output is not a terminal, the page is
    printed as Markdown.
    """
    if lists:
        width = max(map(len, pages()))
        emit("\n".join(f"{name:<{width}}  {_title(file)}" for name, file in pages().items()))
        return
    name, file = page_of(page)
    if browser:
        address = (built() / "docs" / f"{name}.html").as_uri()
        if not webbrowser.open(address):
            say(f"No browser was found. Open this address yourself: {address}")
        return
    text = file.read_text(encoding="utf-8")
    if not sys.stdout.isatty():
        emit(text)
        return
    click.echo_via_pager(drawn(text))


def built() -> Path:
    """Returns the folder of the site, after building it if a page is newer.

    Raises:
        InvalidInput: the site cannot be built.
    """
    require("The site needs Sphinx", "sphinx", "docs")
    source, site = folder(), home() / "site"
    first = site / "docs" / f"{FIRST}.html"
    if first.is_file() and first.stat().st_mtime >= max(file.stat().st_mtime for file in source.rglob("*.*")):
        return site
    say("Building the site, which takes about a minute.")
    build = [sys.executable, "-m", "sphinx", "-q", "-c", source, "-d", home() / "site.doctrees", source.parent, site]
    ended = subprocess.run(list(map(str, build)), capture_output=True, text=True, check=False)
    if ended.returncode or not first.is_file():
        raise InvalidInput(f"The site cannot be built: {(ended.stderr or ended.stdout).strip()[-500:]}")
    first.touch()
    return site


def _title(file: Path) -> str:
    heading = re.search(r"^# (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return heading[1].replace("`", "") if heading else ""


def drawn(text: str) -> str:
    """Returns the page for a terminal, with commands in place of links to pages, and without pictures."""
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Markdown, TableElement
    from rich.table import Table

    class Tables(TableElement):
        """Tables that break a word that is wider than its column. Rich would cut it off."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            for table in super().__rich_console__(console, options):
                for column in table.columns if isinstance(table, Table) else ():
                    column.overflow = "fold"
                yield table

    class Page(Markdown):
        elements: ClassVar = Markdown.elements | {"table_open": Tables}

    text = re.sub(r"^!\[[^\]]*\]\([^)]*\)\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[([\w/.-]+)\.md\]\([^)\s]*\)", r"`mulligan docs \1`", text)
    text = re.sub(r"\[([^\]\n]+)\]\((?!\w+:)[^)\s]*\)", r"\1", text)
    console = Console(highlight=False)
    width = min(console.width, WIDEST)
    with console.capture() as capture:
        console.print(Page(text, hyperlinks=False), width=width)
    return capture.get()
