"""The map of the documentation names every page, and no link in the documentation leads nowhere."""

import re
from pathlib import Path

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


def test_no_link_leads_nowhere() -> None:
    assert [
        (page, target) for page in PAGES for target in targets(ROOT / page) if leads_nowhere(ROOT / page, target)
    ] == []
    assert sum(len(targets(ROOT / page)) for page in PAGES) > 500


def targets(page: Path) -> list[str]:
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")) if "://" not in target]


def leads_nowhere(page: Path, target: str) -> bool:
    file, _, anchor = target.partition("#")
    there = (page.parent / file).resolve() if file else page
    return not there.exists() or bool(anchor and anchor not in anchors(there))


def test_no_page_of_start_and_guides_is_long() -> None:
    """Longer ones are reference."""
    text = (DOCS / "README.md").read_text("utf-8")
    begun = text[text.index("## Five ways in") : text.index("## Concepts")]
    words = {page: len((DOCS / page).read_text("utf-8").split()) for page in re.findall(r"\]\(([\w/.-]+\.md)\)", begun)}
    assert len(words) > 20
    assert {page: count for page, count in words.items() if count > 1500} == {}
