"""Pages of blocks as HTML: foreign text stays text in every block, long ones are folded, and changed words are marked."""

from __future__ import annotations

import re
from base64 import b64encode
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.records import Finding
from mulligan.text.colours import coloured
from mulligan.text.diffs import diff
from mulligan.text.pages import (
    Bar,
    Block,
    Checks,
    Diff,
    Facts,
    Fence,
    Fold,
    Heading,
    Jumps,
    Line,
    Picture,
    Quote,
    Section,
    Table,
    markdown,
    plain,
)
from mulligan.text.web_pages import fragment, html

HOSTILE = st.text(alphabet=st.sampled_from(list("<>&\"'`\\=/ \nab*[]()#\x1b\u202e")), max_size=40)


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags = list[str]()
        self.names = set[str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}


def every(text: str) -> list[Block]:
    """A block of each kind with this text in each of its places."""
    return [
        Heading(1, text, "passed", text),
        Line(text, text, href="/runs/x", mark="failed", word=text),
        Line(text, slanted=True, small=True),
        Facts({"a": text or "x"}),
        Bar("passed", text, {"b": text or "x"}),
        Jumps(text, [Line(strong=text, href="#a", mark="passed", word=text)]),
        Fence(text),
        Quote(text),
        Diff(text, f"{text} more"),
        Checks([Finding(text, text, text, text), Finding(text, passed=True)]),
        Table([text], [[text]]),
        Picture(text, "/x.png", "image/png", b"x"),
        Fold(text, [Fence(text)]),
        Section("id", [Heading(2, text)], card=True),
    ]


@given(HOSTILE)
def test_foreign_text_adds_no_tag_and_no_attribute_to_any_block(text: str) -> None:
    for alone in (False, True):
        tame, page = (Tags(fragment(every(one), alone=alone)) for one in ("tame", text))
        allowed = {*tame.tags, "code", "b", "span", "del", "ins", "p"}
        assert set(page.tags) <= allowed
        assert page.names <= {*tame.names, "class"}
        assert not re.search("[\x1b\u202e]", fragment(every(text), alone=alone))


@given(st.text(max_size=200))
def test_colours_and_comparisons_lose_nothing(text: str) -> None:
    assert "".join(part for part, _ in coloured(text)) == text
    lines = diff(text, f"{text}\nend")
    assert [line.text for line in lines if line.sign == "+"][-1:] == ["end"]
    assert all(line.text in text.splitlines() for line in lines if line.sign in ("-", " "))


def test_texts_that_differ_only_at_their_end_are_not_called_unchanged() -> None:
    text = "line\n" * 3_000
    assert "Nothing changed" not in fragment([Diff(f"{text}old", f"{text}new")])
    assert plain([Diff(f"{text}old", f"{text}new")]) == "    Only the first 3,000 lines are compared.\n"
    assert plain([Diff(f"{text}old", f"{text}old")]) == "\n"


def test_words_that_changed_are_marked_and_lines_that_have_nothing_in_common_are_not() -> None:
    page = fragment([Diff("a = float(x)\nsame", "a = Decimal(x)\nsame")])
    assert "a = <b>float</b>(x)</del>" in page
    assert "a = <b>Decimal</b>(x)</ins>" in page
    assert "<b>" not in fragment([Diff("one two", "3 + 4 = 7")])


def test_no_secret_is_shown_in_pieces() -> None:
    secret = "sk-ant-api03-" + "x" * 95
    page = fragment([Diff(f"key = '{secret}'", "key = 'none'"), Checks([Finding(secret, secret, secret, secret)])])
    assert "api03" not in page


def test_no_comparison_shows_the_middle_of_a_private_key() -> None:
    lines = [b64encode(bytes(range(n, n + 48))).decode() for n in range(16)]
    key = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    changed = Diff(key, key.replace(lines[8], lines[8][::-1]))
    for page in (fragment([changed]), markdown([changed]), plain([changed])):
        assert not any(line in page for line in lines)
    assert "xxxx" not in page


def test_code_has_colours_and_prose_has_none() -> None:
    page = fragment([Fence('def f(x):\n    return "a" + 1  # why')])
    for kind in ("word", "string", "number", "comment"):
        assert f'class="c-{kind}"' in page
    assert "c-" not in fragment([Fence("I return to the class, for 3 of them.")])


@pytest.mark.parametrize(
    ("lines", "rest"), [(60, ""), (65, ""), (70, "Show all 70 lines"), (9000, "Show all 9,000 lines")]
)
def test_long_texts_are_folded(lines: int, rest: str) -> None:
    page = fragment([Fence("\n".join(f"line {n}" for n in range(lines)))])
    assert f"line {lines - 1}" in page
    assert "".join(re.findall("Show all[^<]+", page)) == rest


def test_a_page_that_stands_alone_holds_its_pictures_and_leads_nowhere() -> None:
    blocks = [
        Picture("Screen", "/runs/x/images/1", "image/png", b"png"),
        Line("why", "A lesson", href="/bank/lessons/l"),
    ]
    alone, within = html("T", blocks), fragment(blocks)
    assert 'src="data:image/png;base64,cG5n"' in alone
    assert "href=" not in alone
    assert 'src="/runs/x/images/1"' in within
    assert 'href="/bank/lessons/l"' in within
    assert "details-content" in alone, "on paper nothing is folded"


def test_the_same_blocks_are_read_as_markdown_and_as_plain_text() -> None:
    checks = Checks([Finding("assert f(2) == 4", "4", "f(2) returned 3", "test_two"), Finding("test_one", passed=True)])
    blocks = [Fold("More", [Fence("inside")]), checks, Diff("a", "b")]
    assert "More:\n\n```text\ninside\n```" in markdown(blocks)
    assert "- ✗ test\\_two: assert f(2) == 4; got: f(2) returned 3\n- ✓ test\\_one" in markdown(blocks)
    assert "    - a\n    + b" in plain(blocks)
