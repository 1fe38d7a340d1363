"""Pages: nothing foreign can mark anything up, end a fence, run, or show a secret, in any of the forms."""

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from mulligan.text.pages import Block, Facts, Fence, Heading, Line, Picture, Table, markdown, plain
from mulligan.text.web_pages import html

SECRET = "sk-" + "a1" * 12
HOSTILE = "</pre><script>alert(1)</script> | # *x* `y` <b> & \x1b[31m"


def every(text: str) -> list[Block]:
    """One block of each kind, with this text wherever text can be."""
    return [
        Heading(1, text),
        Line(text, strong=text),
        Line(text, slanted=True),
        Facts({"Name": text, "Empty": ""}),
        Fence(text),
        Table(["column", text], [["row", text], [text, "1"]]),
        Picture(text, "curve.svg", "image/svg+xml", b"<svg/>"),
    ]


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.names, self.data = set[str](), ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)

    def handle_data(self, data: str) -> None:
        self.data += data


@given(st.text(max_size=80).map(lambda text: f"x{text}") | st.just(HOSTILE))
def test_foreign_text_adds_no_tag(text: str) -> None:
    assert Tags(html(text, every(text))).names == Tags(html("title", every("harmless"))).names


def test_html_is_one_file_that_loads_nothing() -> None:
    page = html("title", every(HOSTILE))
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert re.findall(r'(?:src|href)="([^"]{0,20})', page) == ["data:image/svg+xml;b"]
    assert "alert(1)" in Tags(page).data
    assert "\x1b" not in page


def test_no_secret_in_any_form() -> None:
    blocks = every(f"the key is {SECRET} here")
    for page in (html(SECRET, blocks), markdown(blocks), plain(blocks)):
        assert SECRET not in page.replace("\\", "")


@given(st.text(alphabet="`\n ab", max_size=60))
def test_nothing_ends_a_fence_before_its_end(text: str) -> None:
    lines = markdown([Fence(text)]).rstrip("\n").split("\n")
    fence = lines[0].removesuffix("text")
    assert lines[-1] == fence
    assert not any(re.fullmatch(rf" {{0,3}}{fence}`* *", line) for line in lines[1:-1])


@given(st.lists(st.text(max_size=30), min_size=2, max_size=2))
def test_a_row_of_markdown_keeps_its_cells(cells: list[str]) -> None:
    lines = markdown([Table(["a", "b"], [cells])]).rstrip("\n").split("\n")
    assert len(lines) == 3
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[2])) == 3


def test_a_table_may_lead_to_files_beside_the_page() -> None:
    table = Table(["case", "file"], [["c1", "b1-c_1.md"]], left=2, links=True)
    assert "| c1 | [b1-c\\_1.md](<b1-c_1.md>) |" in markdown([table])
    assert '<a href="./b1-c_1.md">b1-c_1.md</a>' in html("t", [table])
    assert plain([table]) == "case  file\nc1    b1-c_1.md\n"


def test_a_terminal_gets_columns_and_no_control_characters() -> None:
    table = Table(["run", "solved", "of"], [["a", "1", "10"], ["long one", "12", "9"]])
    assert plain([table]) == "run       solved  of\na              1  10\nlong one      12   9\n"
    assert "\x1b" not in plain(every(HOSTILE))


def test_half_a_character_is_written_as_a_question_mark() -> None:
    for page in (html("t", every("\ud83d")), markdown(every("\ud83d")), plain(every("\ud83d"))):
        assert page.encode("utf-8")
