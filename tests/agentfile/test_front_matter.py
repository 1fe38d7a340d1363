"""Front matter: it never raises, and each key's line is the line of the file."""

import os
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mulligan.agentfile.frontmatter import MAX_BYTES, MAX_DEPTH, MAX_FRONT_MATTER, parse_document, read_document

FILE = Path("AGENT.md")

pieces = st.sampled_from(
    [
        *("---\n", "a: ", "b:\n", "  ", "\t", "- ", "[", "]", "{", "}", "'", '"', "&x ", "*x", "!!int ", "|\n", ">-\n"),
        *("\\ud800", "2026-01-01", "1e999", ".nan", "0x_", "<<: ", "? ", ": ", ", ", "\n", "\r\n", "\x00", "\x85", "…"),
    ]
)


@given(st.lists(pieces | st.text(max_size=5)).map("".join), st.booleans())
def test_arbitrary_text_never_raises_and_is_read_or_refused(text: str, fenced: bool) -> None:
    text = f"---\n{text}\n---\n" if fenced else text
    document, problems = parse_document(FILE, text)
    assert document is not None or problems
    count = len(re.split("\r\n|\r|\n", text))
    assert all(problem.line and 1 <= problem.line <= count and problem.message for problem in problems)
    if document is not None:
        assert all(1 <= line <= count for line in document.source.lines.values())
        str(document.values).encode()
        assert document.refused or not problems or not document.values or document.source.lines


@given(st.binary(max_size=60))
def test_arbitrary_bytes_never_raise(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.md"
    path.write_bytes(content)
    document, problems = read_document(path)
    assert document is not None or problems


names = st.text("abcdefghij", min_size=1, max_size=4).map(lambda name: f"k{name}")
leaves = (
    st.integers(-(2**40), 2**40)
    | st.booleans()
    | st.none()
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
    | st.floats(-1e3, 1e3)
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8
)


@given(st.dictionaries(names, values, max_size=4), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
def test_what_yaml_writes_is_read_with_its_lines(
    table: dict[str, object], newline: str, mark: bool, flow: bool
) -> None:
    written = yaml.safe_dump(table, allow_unicode=False, default_flow_style=flow, sort_keys=False, indent=2)
    lines = ["---", *written.split("\n")[:-1], "---", "", "The text.", ""]
    document, problems = parse_document(FILE, ("\ufeff" if mark else "") + newline.join(lines))
    assert problems == []
    assert document is not None
    assert (document.values, document.body, document.body_line) == (table, "The text.", len(lines) - 1)
    for key, line in document.source.lines.items():
        name = key.rpartition(".")[2]
        assert name.isdigit() or re.search(rf"\b{name}\b", lines[line - 1])
    for name in table:
        assert flow or lines[document.source.lines[name] - 1].startswith(f"{name}:")


def test_lines_by_dotted_key() -> None:
    text = """---
# a comment
call:

  model: {role: thinker,
    temperature: 0.1}
  uses:
  - one

  # another
  - two
note: |
  several
  ---
  lines
"a b": "\u2028" # a line for YAML, not for an editor
last: 1
---
"""
    document, problems = parse_document(FILE, text)
    assert problems == []
    assert document is not None
    assert document.values["note"] == "several\n---\nlines\n"
    assert document.source.lines == {
        "call": 3,
        "call.model": 5,
        "call.model.role": 5,
        "call.model.temperature": 6,
        "call.uses": 7,
        "call.uses.0": 8,
        "call.uses.1": 11,
        "note": 12,
        "a b": 16,
        "last": 17,
    }


def test_a_file_without_front_matter_is_all_body() -> None:
    document, problems = parse_document(FILE, "\n\n  Hello\n---\nworld\n")
    assert problems == []
    assert document is not None
    assert (document.present, document.values, document.body_line) == (False, {}, 3)
    assert document.body == "Hello\n---\nworld"


def test_the_source_names_the_nearest_key_above() -> None:
    document, _ = parse_document(FILE, "---\nname: x\ncall:\n  model: y\n---\n")
    assert document is not None
    lines = [document.source.problem(key, "").line for key in ("call.model.role", "call.uses.0", "other", "")]
    assert lines == [4, 3, None, None]


def test_limits_of_size_are_exact(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_bytes(b"x" * MAX_BYTES)
    assert read_document(path)[1] == []
    path.write_bytes(b"x" * (MAX_BYTES + 1))
    assert "too large" in read_document(path)[1][0].message
    fits = "a: " + "x" * (MAX_FRONT_MATTER - 4)
    assert parse_document(FILE, f"---\n{fits}\n---")[1] == []
    assert "longer than" in parse_document(FILE, f"---\n{fits}x\n---")[1][0].message
    deep = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    assert parse_document(FILE, f"---\na: {deep}\n---")[1] == []
    assert "nested" in parse_document(FILE, f"---\na: [{deep}]\n---")[1][0].message


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    with path.open("wb") as file:
        file.truncate(10**12)  # a hole on the disk: reading it would not end
    (problem,) = read_document(path)[1]
    assert (
        problem.message
        == "this file is too large: 1,000,000,000,000 bytes, but at most 1,000,000 are read. Check that it is the "
        "right file."
    )


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.md")
    (problem,) = read_document(tmp_path / "x.md")[1]
    assert problem.message == "this is neither a file nor a link to one."


def test_what_the_disk_refuses_is_reported(tmp_path: Path) -> None:
    (tmp_path / "x.md").symlink_to("/proc/self/mem")
    (problem,) = read_document(tmp_path / "x.md")[1]
    assert problem.message == "this file cannot be read: Input/output error"
    (problem,) = read_document(tmp_path / ("x" * 300))[1]
    assert problem.message == "this file cannot be read: File name too long"
