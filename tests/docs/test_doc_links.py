"""The map of the documentation names every page, and no link in the documentation leads nowhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(page.relative_to(ROOT)) for folder in (DOCS, ROOT / "design") for page in folder.rglob("*.md"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made on GitHub."""
    heads = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


def test_the_map_names_every_page() -> None:
    named = set(re.findall(r"\]\(([\w/.-]+\.md)\)", (DOCS / "README.md").read_text("utf-8")))
    assert named == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}


@pytest.mark.parametrize("page", PAGES)
def test_no_link_leads_nowhere(page: str) -> None:
    here = ROOT / page
    for target in re.findall(r"\]\(([^)\s]+)\)", here.read_text("utf-8")):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        there = (here.parent / file).resolve() if file else here
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def test_no_page_of_start_and_guides_is_long() -> None:
    """Longer ones are reference."""
    text = (DOCS / "README.md").read_text("utf-8")
    begun = text[text.index("## Five ways in") : text.index("## Concepts")]
    words = {page: len((DOCS / page).read_text("utf-8").split()) for page in re.findall(r"\]\(([\w/.-]+\.md)\)", begun)}
    assert len(words) > 20
    assert {page: count for page, count in words.items() if count > 1500} == {}
