"""How test programs are read into tests. No compiler is needed here."""

import shutil

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as some

from mulligan.core.errors import InvalidInput, SandboxError
from mulligan.evaluators.rust_tests import RustTests
from mulligan.oracle.rust import building
from mulligan.oracle.rust.program import ours, read
from mulligan.sandbox.local import LocalSandbox
from mulligan.text.rust import balanced, masked, statements

PIECES = (
    'assert_eq!(f("a;b}"), 1);', "assert!(f('}') == '\\'');", "let x: &'static str = r#\"}\"; //\"#;", "f(1);",
    "for i in 0..3 { assert!(i < 3); }", "if a { b() } else { c(); }", "let s = S { a: 1 };", "/* ; } /* { */ */ g();",
    "let v = match x { 1 => 2, _ => 3 } + 1;", "assert_ne!(\n    f(2), // no; }\n    3\n);",
)  # fmt: skip


@given(some.lists(some.sampled_from(PIECES)))
def test_statements_are_distinguished_whatever_they_hold(pieces: list[str]) -> None:
    told = statements("\n".join(pieces))
    assert [one.replace("/* ; } /* { */ */ ", "") for one in pieces] == list(told)


@given(some.lists(some.sampled_from(PIECES)))
def test_each_statement_that_asserts_is_a_test(pieces: list[str]) -> None:
    asserts = [piece for piece in pieces if "assert" in piece]
    if not pieces:
        with pytest.raises(InvalidInput):
            read("fn main() {}")
        return
    tests = read("fn main() {\n" + "\n".join(pieces) + "\n}").tests
    assert [test.text for test in tests][: len(asserts)] == asserts
    assert len(tests) - len(asserts) == ("assert" not in pieces[-1])
    for test in tests:
        assert sum("assert" in one for one in statements(test.code)) <= 1


@given(some.text(alphabet=" \n;{}()[]'\"/*\\#rb!aé$", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert len(masked(text)) == len(text)
    balanced(text)
    statements(text)
    ours(text, "judge")
    try:
        program = read(text)
    except InvalidInput:
        return
    assert program.tests


def test_asserts_and_macros_are_taken_from_where_code_cannot_change_them() -> None:
    code = 'assert_eq!(f(vec![1]), "assert!(x)"); std::assert!(a); debug_assert_ne!(b, my::vec![c]);'
    assert ours(code, "judge") == (
        '::judge::assert_eq!(f(::std::vec![1]), "assert!(x)"); std::assert!(a); ::judge::assert_ne!(b, my::vec![c]);'
    )


def test_a_program_with_helpers_and_a_brace_before() -> None:
    program = read(
        "}\nuse std::fmt;\nfn check() { assert!(f()); }\n\nfn main() {\n let a = 1;\n check();\n assert!(a == 1);\n}"
    )
    assert program.open
    assert [(test.text, test.code) for test in program.tests] == [
        ("check();", "let a = 1;\ncheck();"),
        ("assert!(a == 1);", "let a = 1;\nassert!(a == 1);"),
    ]
    assert program.items.split() == ["use", "std::fmt;", "fn", "check()", "{", "assert!(f());", "}"]


def test_statements_alone_and_a_list() -> None:
    assert [test.code for test in read("let a = 1;\nassert!(f(a));").tests] == ["let a = 1;\nassert!(f(a));"]
    assert [test.broken for test in read(["assert!(f(1));", "assert!(f(1);", "$x"]).tests] == [
        "", "its brackets do not match", "tests that define macros are not supported",
    ]  # fmt: skip


@each_row(
    ("tests", "why"),
    [
        ("", "at least one"),
        ([], "at least one"),
        ([" "], "at least one"),
        ("fn main() { assert!(f(1) }", "brackets"),
        ("fn main() -> Result<(), String> { assert!(f(1)); Ok(()) }", "plain `fn main"),
        ("#[test]\nfn works() { assert!(f(1)); }", "plain `fn main"),
        ("macro_rules! m { ($x:expr) => {} }\nfn main() { m!(1); }", "macros"),
        (["assert!(f(1));"] * 1001, "at most"),
    ],
)
def test_what_cannot_be_used_is_refused(tests: str | list[str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        RustTests.check(tests)


def test_without_a_compiler_it_is_reported_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    building.toolchain.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "which", lambda name, path=None: None)  # pyright: ignore
        with pytest.raises(SandboxError, match="apt-get install rustc"):
            RustTests("assert!(f(1));", sandbox=LocalSandbox())
