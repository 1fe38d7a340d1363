"""The documentation as a site, built by Sphinx from docs/ and design/ as they are: design/090.

`make site` builds it. The links of docs/README.md, heading by heading, are the navigation, with their texts as titles.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
PAGE = re.compile(r"\[([^\]\n]+)\]\(([\w/.-]+)\.md\)")
CARD = re.compile(r"^- \[([^\]]+)\]\(([\w/.-]+)\.md\): (.*)$", re.MULTILINE)
WAYS, START = "Five ways in", "Start"
"""The heading of the cards, and the group of the navigation that their pages are in."""

project = html_title = "Mulligan"
author = "The Mulligan authors"
project_copyright = "the Mulligan authors"

root_doc = "docs/README"
include_patterns = ["docs/**", "design/**"]
templates_path = ["_templates"]
extensions = ["myst_parser", "sphinx_copybutton", "sphinx_design"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
highlight_language = "none"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_additional_pages = {"index": "home.html"}  # the address of the site's folder leads to the first page
html_copy_source = False
html_use_index = False
html_show_sphinx = False


def with_navigation(text: str) -> str:
    """The index with a hidden table of contents for each of its groups."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)[1:]
    groups: dict[str, list[str]] = {}
    for heading, part in zip(parts[::2], parts[1::2], strict=True):
        entries = [f"{title.replace('`', '')} <{page}>" for title, page in PAGE.findall(part)]
        groups.setdefault(START if heading == WAYS else heading, []).extend(entries)
    trees = [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {heading}", "", *entries, "```"])
        for heading, entries in groups.items()
    ]
    return "\n\n".join([with_cards(text), *trees])


def with_cards(text: str) -> str:
    """The index with a card for each of the ways in, instead of a list."""
    before, heading, rest = text.partition(f"## {WAYS}\n")
    ways, further, after = rest.partition("\n## ")

    def card(way: re.Match[str]) -> str:
        return f":::{{grid-item-card}} {way[1]}\n:link: {way[2]}\n:link-type: doc\n\n{way[3]}\n:::\n"

    first = CARD.search(ways)
    if first is None:
        return text
    cards = "\n".join(map(card, CARD.finditer(ways)))
    last = list(CARD.finditer(ways))[-1].end()
    grid = f"::::{{grid}} 1 1 2 2\n:gutter: 3\n\n{cards}\n::::\n"
    return before + heading + ways[: first.start()] + grid + ways[last:] + further + after


def without_others(text: str, here: Path) -> str:
    """The text without links to folders and to pages that the site lacks; other files become downloads."""

    def plain(link: re.Match[str]) -> str:
        if ":" in link[2]:
            return link[0]
        there = (here / link[2]).resolve()
        lacking = not there.exists() or (
            there.suffix == ".md" and not {ROOT / "docs", ROOT / "design"} & set(there.parents)
        )
        return link[1] if there.is_dir() or lacking else link[0]

    return LINK.sub(plain, text)


def prepare(app: Sphinx, name: str, source: list[str]) -> None:
    """Makes of a page for a Git host one for the site. Notes of design/ are in no navigation."""
    source[0] = without_others(source[0], (ROOT / name).parent)
    if name == root_doc:
        source[0] = with_navigation(source[0])
    elif name.startswith("design/"):
        source[0] = f"---\norphan: true\n---\n\n{source[0]}"


def setup(app: Sphinx) -> None:
    app.connect("source-read", prepare)
