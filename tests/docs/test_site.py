"""The documentation as a site: it builds without a warning, asks nothing of the network, and no link leads nowhere."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGES = {
    str(page.relative_to(ROOT).with_suffix(".html"))
    for folder in ("docs", "design")
    for page in ROOT.glob(f"{folder}/**/*.md")
}
FIRST = "docs/README.html"
GROUPS = ["Start", "Guides", "Concepts", "Reference", "Project"]
LOADS = ("src", "srcset", "poster", "data", "action", "background")
"""Attributes whose address a browser loads unasked; the `href` of `link` is one, too."""
ADDRESS_IN_STYLE = re.compile(r"(?:@import|url\()\s*[\"']?\s*(?:https?:)?//", re.IGNORECASE)
ADDRESS_IN_SCRIPT = re.compile(r"[\"'`](?:(?:https?|wss?):)?//(?!www\.w3\.org/)[\w-]+\.\w")
"""Without the names of the kinds of XML, which nothing loads."""
COMMENT = re.compile(r"/\*.*?\*/|^\s*//[^\n]*", re.DOTALL | re.MULTILINE)


class Page(HTMLParser):
    """A built page.

    Attributes:
        ids: what an anchor may name.
        links: the addresses of its links.
        loads: the addresses that a browser loads with it.
        styles: its CSS, in elements and attributes.
        navigation: the links of the table of contents at its side.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids = set[str]()
        self.links, self.loads, self.styles, self.navigation = list[str](), list[str](), list[str](), list[str]()
        self._in_style = self._in_navigation = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.add(given["id"])
        self.loads += [given[name] for name in LOADS if name in given]
        self.styles += [given["style"]] if "style" in given else []
        self._in_style = tag == "style"
        self._in_navigation = self._in_navigation or "sidebar-tree" in given.get("class", "")
        if tag == "link" and given.get("rel") not in ("next", "prev", "search"):
            self.loads.append(given["href"])
        elif tag == "a" and "href" in given:
            self.links.append(given["href"])
            self.navigation += [given["href"]] if self._in_navigation else []

    def handle_endtag(self, tag: str) -> None:
        self._in_navigation = self._in_navigation and tag != "aside"

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.styles.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` builds it: a warning is an error. CI names the one that it has just built."""
    if built := os.environ.get("MULLIGAN_TEST_SITE"):
        return Path(built)
    made = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs", "-d", str(made / "doctrees")]
    ran = subprocess.run([*build, ".", str(made / "html")], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    return made / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {str(file.relative_to(site)): Page(file.read_text("utf-8")) for file in site.rglob("*.html")}


def test_there_is_a_page_for_each_file_and_the_navigation_has_those_of_docs(pages: dict[str, Page]) -> None:
    """The notes of design/ are reached from the pages that cite them."""
    assert pages.keys() >= PAGES
    listed = {resolved(FIRST, link)[0] for link in pages[FIRST].navigation if not link.startswith("#")}
    assert listed | {FIRST} == {page for page in PAGES if page.startswith("docs/")}


def test_the_navigation_has_five_groups_and_titles(site: Path) -> None:
    first = (site / FIRST).read_text("utf-8")
    assert re.findall(r'<p class="caption"[^>]*><span class="caption-text">(.*?)</span>', first) == GROUPS
    sidebar = first[first.index("sidebar-tree") : first.index("</aside>")]
    titles = re.findall(r'<a class="[^"]*reference internal"[^>]*>(.*?)</a>', sidebar)
    assert len(titles) == len(set(titles)) > 60
    assert [title for title in titles if title.endswith(".md") or "/" in title] == [
        "AGENT.md",
        "SKILL.md",
    ]  # the formats


def test_the_first_page_has_five_cards_the_cast_and_the_studio(site: Path) -> None:
    first = (site / FIRST).read_text("utf-8")
    assert len(re.findall(r'class="sd-card [^"]*"', first)) == 5
    assert {"cast.svg", "studio.png"} <= {Path(name).name for name in re.findall(r'<img[^>]* src="([^"]*)"', first)}
    assert "copybutton.js" in first


def test_a_browser_loads_nothing_from_elsewhere(site: Path, pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert not [address for address in page.loads if urlsplit(address).netloc], name
        assert not [style for style in page.styles if ADDRESS_IN_STYLE.search(style)], name
        for address in page.loads:
            assert (site / resolved(name, address)[0]).is_file(), f"{name} loads {address}"
    styles, scripts = list(site.rglob("*.css")), list(site.rglob("*.js"))
    assert len(styles) > 1
    assert len(scripts) > 3
    for file in styles:
        assert not ADDRESS_IN_STYLE.search(file.read_text("utf-8")), file.name
    for file in scripts:
        if file.name != "searchindex.js":  # it holds the words of the pages
            assert not ADDRESS_IN_SCRIPT.search(COMMENT.sub("", file.read_text("utf-8"))), file.name


def test_no_link_of_a_page_leads_nowhere(site: Path, pages: dict[str, Page]) -> None:
    seen = list(inner(pages))
    assert len(seen) > 1000
    for name, link in seen:
        target, anchor = resolved(name, link)
        assert (site / target).is_file(), f"{name}: {link}"
        assert not anchor or anchor in pages[target].ids, f"{name}: {link}"


def test_the_address_of_the_folder_leads_to_the_first_page(pages: dict[str, Page]) -> None:
    assert pages["index.html"].links == [FIRST]


def test_the_search_finds_words_without_a_server(site: Path) -> None:
    index = (site / "searchindex.js").read_text("utf-8")
    assert index.startswith("Search.setIndex(")  # a script that the page loads: a file opened from disk may not fetch
    assert "docs/tutorials/benchmark" in index


def inner(pages: dict[str, Page]) -> Iterator[tuple[str, str]]:
    """Each page with each of its links that stays in the site."""
    for name, page in pages.items():
        for link in page.links:
            if not urlsplit(link).scheme and not urlsplit(link).netloc:
                yield name, link


def resolved(name: str, link: str) -> tuple[str, str]:
    """The file of the site that a link on this page leads to, and the anchor."""
    parts = urlsplit(link)
    if not parts.path:
        return name, unquote(parts.fragment)
    there = (Path("/") / name).parent / unquote(parts.path)
    return str(there.resolve().relative_to("/")), unquote(parts.fragment)
