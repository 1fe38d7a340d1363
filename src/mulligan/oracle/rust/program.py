"""Splits Rust tests into parts that can be run separately: the asserts of a test program, or single asserts.

It only knows the strings, comments and brackets of the language (`text.rust`), and compiles nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mulligan.core.errors import InvalidInput
from mulligan.text.rust import balanced, items, masked, statements

MAX_TESTS = 1000
"""Tests that a program has at most."""
_ASSERT = re.compile(r"\b(?:debug_)?assert(?:_eq|_ne)?!")
_MAIN = re.compile(r"\s*(?:pub\s+)?fn\s+main\s*\(\s*\)\s*\{")
_FUNCTION = re.compile(r"\bfn\s+main\s*\(")
_MACRO = re.compile(r"(?<![\w:$!])(debug_)?(assert|assert_eq|assert_ne)(?=!\s*[(\[{])")
_OTHERS = re.compile(
    r"(?<![\w:$!])(?=(?:vec|format|matches|panic|print|println|unreachable|write|writeln|concat)!\s*[(\[{])"
)


@dataclass(frozen=True)
class Test:
    """A test.

    Attributes:
        text: its text in feedback.
        code: the statements that are run.
        broken: why it cannot be run; "" if it can.
    """

    text: str
    code: str
    broken: str = ""


@dataclass(frozen=True)
class Program:
    """The tests of a program.

    Attributes:
        items: what the tests need, such as helper functions.
        open: the text begins with the brace that ends the function. Some data sets leave the function open.
    """

    tests: tuple[Test, ...]
    items: str = ""
    open: bool = False


def read(tests: str | Sequence[str]) -> Program:
    """Read a program with `fn main`, statements only, or a list of tests.

    Raises:
        InvalidInput: the tests cannot be used. A single test of a list that cannot be used is only marked as broken.
    """
    if isinstance(tests, str):
        program = _program(tests.replace("\r\n", "\n"))
    else:
        texts = [str(text).strip() for text in tests]
        program = Program(tuple(Test(text, text, _wrong(text)) for text in texts))
    if not program.tests or not all(test.code.strip() for test in program.tests):
        raise InvalidInput(
            "rust_tests needs at least one test, such as `assert_eq!(f(1), 2);`, and no test may be empty."
        )
    if len(program.tests) > MAX_TESTS:
        raise InvalidInput(f"rust_tests accepts at most {MAX_TESTS} tests, not {len(program.tests)}.")
    return program


def ours(code: str, crate: str) -> str:
    """The code with the asserts of `crate`, and with full paths for macros of the standard library, so that the judged
    code cannot replace them."""
    mask, pieces, copied = masked(code), list[str](), 0
    changes = [(m.start(), m.end(), f"::{crate}::{m[2]}") for m in _MACRO.finditer(mask)]
    changes += [(m.start(), m.start(), "::std::") for m in _OTHERS.finditer(mask)]
    for start, end, new in sorted(changes):
        pieces += [code[copied:start], new]
        copied = end
    return "".join([*pieces, code[copied:]])


def _wrong(text: str) -> str:
    """Why these tests cannot be used; "" if they can."""
    if not balanced(text):
        return "its brackets do not match"
    return "tests that define macros are not supported" if "$" in masked(text) else ""


def _program(text: str) -> Program:
    stripped = text.lstrip()
    open_ = stripped.startswith("}")
    text = stripped[1:] if open_ else text
    if wrong := _wrong(text):
        raise InvalidInput(f"The Rust test program cannot be used: {wrong}.")
    parts = items(text) if _FUNCTION.search(masked(text)) else []
    main = next((part for part in parts if part.name == "main"), None)
    if main is None:
        if parts or re.search(r"^\s*(?:#\[|(?:pub\s+)?fn\s)", masked(text), re.MULTILINE):
            raise InvalidInput("A Rust test program needs a plain `fn main() { … }` with its asserts.")
        return Program(_split(statements(text), frozenset()), open=open_)
    mask = masked(main.text)
    head = _FUNCTION.search(mask)
    begin = _MAIN.match(mask, head.start()) if head else None
    if begin is None:
        raise InvalidInput("A Rust test program needs a plain `fn main() { … }` that returns nothing.")
    others = [part for part in parts if part is not main]
    before_main = main.text[: begin.start()]
    helpers = frozenset(part.name for part in others if part.name and _ASSERT.search(masked(part.text)))
    body = main.text[begin.end() : mask.rindex("}")]
    outside = "\n".join([before_main, *(part.text for part in others)])
    return Program(_split(statements(body), helpers), outside, open_)


def _split(body: Sequence[str], helpers: frozenset[str]) -> tuple[Test, ...]:
    """Make a test of each statement that asserts, with all statements before it that do not.

    Statements after the last assert are one more test.
    """
    tests, before, late = list[Test](), list[str](), list[str]()
    calls = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(helpers)))})\s*\(") if helpers else None
    for statement in body:
        mask = masked(statement)
        if _ASSERT.search(mask) or (calls and calls.search(mask)):
            tests.append(Test(statement, "\n".join([*before, statement])))
            late = []
        else:
            before.append(statement)
            late.append(statement)
    if late:
        tests.append(Test("\n".join(late), "\n".join(before)))
    return tuple(tests)
