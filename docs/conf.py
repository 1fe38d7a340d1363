"""The documentation as a site, built by Sphinx from docs/ and design/ as they are: design/090.

`make site` builds it. The links of docs/README.md, heading by heading, are the navigation.
"""

import re
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
PAGE = re.compile(r"\]\(([\w/.-]+)\.md\)")

project = html_title = "Mulligan"
author = "The Mulligan authors"
project_copyright = "the Mulligan authors"

root_doc = "docs/README"
include_patterns = ["docs/**", "design/**"]
templates_path = ["_templates"]
extensions = ["myst_parser"]
myst_heading_anchors = 4
highlight_language = "none"

html_theme = "furo"
html_additional_pages = {"index": "home.html"}  # the address of the site's folder leads to the first page
html_copy_source = False
html_use_index = False
html_show_sphinx = False


def with_navigation(text: str) -> str:
    """The index with a hidden table of contents for each of its headings, and one for the notes in design/."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)[1:]
    found = {heading: dict.fromkeys(PAGE.findall(part)) for heading, part in zip(parts[::2], parts[1::2], strict=True)}
    notes = sorted(f"/design/{note.stem}" for note in (ROOT / "design").glob("*.md"))
    trees = [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {heading}", "", *pages, "```"])
        for heading, pages in {**found, "Decisions": notes}.items()
        if pages
    ]
    return "\n\n".join([text, *trees])


def without_others(text: str, here: Path) -> str:
    """The text without links to folders and to pages that the site lacks; other files become downloads."""

    def plain(link: re.Match[str]) -> str:
        there = (here / link[2]).resolve()
        lacking = there.suffix == ".md" and not {ROOT / "docs", ROOT / "design"} & set(there.parents)
        return link[1] if there.is_dir() or lacking else link[0]

    return LINK.sub(plain, text)


def prepare(app: Sphinx, name: str, source: list[str]) -> None:
    """Makes of a page for a Git host one for the site."""
    source[0] = without_others(source[0], (ROOT / name).parent)
    if name == root_doc:
        source[0] = with_navigation(source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", prepare)
    app.add_lexer("mermaid", TextLexer)  # a picture's text, as it would need a program from elsewhere
