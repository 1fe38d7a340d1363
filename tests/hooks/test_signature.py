"""Signatures: the same for the same error, whatever its paths and numbers, and another for any other error."""

import string
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from each_row import each_row
from hypothesis import example, given
from hypothesis import strategies as st
from signature_corpus import alike, corpus, parts, unlike

from mulligan.bank.learn import facts
from mulligan.sessions import events
from mulligan.sessions.signature import MAX_LINES, digest, keys, normalised, signature

NAMES = st.text(string.ascii_lowercase, min_size=3, max_size=9)
FOLDERS = st.lists(st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=8), min_size=1, max_size=4)
NUMBERS = st.integers(0, 99_999)
HASHES = st.text("0123456789abcdef", min_size=12, max_size=40).map(lambda text: f"a1{text}")

PAIRS: dict[str, list[tuple[str, str]]] = tomllib.loads(Path(__file__).with_name("keys.toml").read_text("utf-8"))

SHAPES = [
    'Traceback (most recent call last):\n  File "{path}/app.py", line {n}, in <module>\n'
    "ModuleNotFoundError: No module named '{name}'",
    "{path}/index.ts({n},{m}): error TS2304: Cannot find name '{name}'.",
    "{path}/main.c:{n}:{m}: error: '{name}' undeclared (first use in this function)",
    "FAILED {path}/test_app.py::test_{name} - assert {n} == {m}\n1 failed in 0.{m}s",
    "fatal: cannot lock ref '{name}': object {hash} is missing",
    "bash: line {n}: {name}: command not found",
    "Error: Cannot find module '{name}'\n    at require ({path}/x.js:{n}:{m})",
]


def test_the_corpus_is_whole() -> None:
    found = corpus()
    assert len({kind for kind, _ in found}) == 20
    assert len(found) == 100
    assert all(len(outputs) == 2 for outputs in found.values())
    assert all(one != other for one, other in found.values())


@pytest.mark.parametrize("part", [0, 1], ids=["tuned on", "kept back"])
def test_recorded_outputs_match_the_same_error_and_no_other(part: int) -> None:
    found = parts(corpus())[part]
    assert len(found) == (64, 36)[part]
    assert unlike(found) == []
    assert alike(found) == []


@pytest.mark.parametrize("shape", SHAPES)
@given(name=NAMES, one=st.tuples(FOLDERS, NUMBERS, NUMBERS, HASHES), other=st.tuples(FOLDERS, NUMBERS, NUMBERS, HASHES))
@example(name="aaa", one=(["0"], 0, 0, "a1000000000000"), other=(["0s"], 0, 0, "a1000000000000"))  # no duration
def test_places_and_numbers_say_nothing(
    shape: str, name: str, one: tuple[list[str], int, int, str], other: tuple[list[str], int, int, str]
) -> None:
    def output(of: tuple[list[str], int, int, str]) -> str:
        folders, n, m, hash = of
        return shape.format(path="/" + "/".join(folders), n=n, m=m, hash=hash, name=name)

    assert signature(output(one)) == signature(output(other)) != ()


@pytest.mark.parametrize("shape", SHAPES)
@given(one=NAMES, other=NAMES)
def test_what_the_error_is_about_stays(shape: str, one: str, other: str) -> None:
    def key(name: str) -> str:
        return digest(signature(shape.format(path="/a/b", n=1, m=2, hash="a1b2c3d4e5f6", name=name)))

    assert (key(one) == key(other)) is (one == other)


@each_row(("one", "other"), PAIRS["meet"])
def test_the_same_cause_meets_in_another_run(one: str, other: str) -> None:
    assert set(keys(one)) & set(keys(other))


@each_row(("one", "other"), PAIRS["apart"])
def test_different_causes_share_no_key(one: str, other: str) -> None:
    assert not set(keys(one)) & set(keys(other))


@given(st.text(max_size=400))
def test_any_text_has_a_small_signature(text: str) -> None:
    found = signature(text)
    assert len(found) <= MAX_LINES
    assert all(line == line.strip() and "\n" not in line and len(line) <= 240 for line in found)
    assert bool(digest(found)) is bool(found)


def test_a_long_output_is_read_at_both_ends() -> None:
    noise = "compiling something harmless\n" * 20_000
    at_the_end = signature(noise + "ModuleNotFoundError: No module named 'yaml'\n")
    at_the_beginning = signature("ModuleNotFoundError: No module named 'yaml'\n" + noise)
    assert at_the_end == at_the_beginning == ("ModuleNotFoundError: No module named 'yaml'",)


def test_colours_and_progress_bars_are_no_part_of_it() -> None:
    plain = "error[E0425]: cannot find value `x` in this scope"
    assert signature(f"\x1b[0m\x1b[1m\x1b[38;5;9m{plain}\x1b[0m") == signature(plain)
    assert signature(f" 10%\r 99%\r{plain}\r\n") == signature(plain)


def test_another_code_is_another_error() -> None:
    assert normalised("HTTP/1.1 404 Not Found") != normalised("HTTP/1.1 403 Forbidden")
    assert normalised("[Errno 2] No such file") != normalised("[Errno 13] No such file")
    assert normalised("exit code 137") != normalised("exit code 1")
    assert normalised("took 12.3 s at 0x7ffe21") == normalised("took 4 s at 0x55d0")


def test_the_bank_and_the_hooks_build_the_same_key() -> None:
    assert events.KEY == facts.ERROR


LONG = [
    "=" * 80_000,
    "_" * 80_000,
    " " * 80_000,
    "-" * 80_000,
    "warning: " * 9_000,
    "_logs/" * 9_000,
    "test x" + " " * 80_000,
]


@each_row("line", LONG)
def test_of_a_long_line_only_the_beginning_is_read(line: str) -> None:
    """A pattern keeps all threads waiting, that of the deadline too. Unbounded, some of these take hours."""
    code = (
        "import sys; from mulligan.sessions.signature import signature; from mulligan.hooks.recall import without_own\n"
        "text = sys.stdin.read()\nprint(signature(text) == signature(without_own(text)) == ('first',))"
    )
    given = f"error: first\n{line} error: boom"
    ran = subprocess.run(
        [sys.executable, "-c", code], input=given, capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout == "True\n"


@given(st.sampled_from(SHAPES), st.text(string.printable, max_size=300))
def test_what_stands_far_behind_in_a_line_says_nothing(shape: str, behind: str) -> None:
    line = shape.splitlines()[-1].ljust(2_000, "x")
    assert signature(f"{line}{' '.join(behind.split())} error: boom") == signature(line)
