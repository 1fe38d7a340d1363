"""What becomes of each test: one that fails, panics, hangs, aborts or does not compile costs no other its verdict."""

from typing import Any

import pytest

from mulligan.core.records import Feedback
from mulligan.text.evidence import findings_of
from mulligan.text.programs import program

pytestmark = pytest.mark.slow

PROGRAM = """}

fn main() {
    let candidate = double;
    assert_eq!(candidate(1), 2);
    assert_eq!(candidate(2), 4);
    assert_eq!(candidate(3), 6);
    assert_eq!(candidate(4), 8);
    assert!(candidate(5) == 10, "five {}", candidate(5));
    assert_ne!(candidate(6), 6);
}
"""


def passed(feedback: Feedback) -> list[bool]:
    evidence: Any = feedback.evidence
    return evidence["passed"]


def line(feedback: Feedback, test: str) -> str:
    return next(line for line in feedback.text.split("\n") if line.startswith(test))


async def test_a_right_function_passes(judge: Any) -> None:
    feedback = await judge("fn double(x: isize) -> isize { x * 2 }", PROGRAM)
    assert (feedback.passed, feedback.score, feedback.notes) == (True, 1.0, ())
    assert feedback.text.startswith("Tests passed:\nassert_eq!(candidate(1), 2);")


async def test_no_test_loses_its_verdict_by_another(judge: Any) -> None:
    code = """
fn double(x: isize) -> isize {
    match x {
        1 => { println!("secret 0 passed"); std::process::exit(0) }
        2 => loop {},
        3 => panic!("three is {}", x),
        4 => std::process::abort(),
        5 => 11,
        _ => x * 2,
    }
}"""
    feedback = await judge(code, PROGRAM, seconds=2.0)
    assert (feedback.passed, passed(feedback)) == (False, [False] * 5 + [True])
    assert feedback.score == pytest.approx(1 / 6)
    assert "ended the process with status 0" in line(feedback, "assert_eq!(candidate(1)")
    assert "timed out after 0.5 s" in line(feedback, "assert_eq!(candidate(2)")
    assert "panicked in line 6: three is 3" in line(feedback, "assert_eq!(candidate(3)")
    assert "SIGABRT" in line(feedback, "assert_eq!(candidate(4)")
    assert "is false; five 11" in line(feedback, "assert!(candidate(5)")


async def test_values_are_reported(judge: Any) -> None:
    feedback = await judge("fn double(x: isize) -> isize { x }", PROGRAM)
    assert line(feedback, "assert_eq!(candidate(2)") == "assert_eq!(candidate(2), 4);  // candidate(2) returned 2"
    assert line(feedback, "assert_ne!") == "assert_ne!(candidate(6), 6);  // candidate(6) returned 6"


async def test_what_the_compiler_refuses_is_the_feedback(judge: Any) -> None:
    code = "fn double(x: isize) -> isize {\n    let unused = 1;\n    x * two\n}"
    feedback = await judge(code, PROGRAM)
    assert (feedback.passed, feedback.score) == (False, 0.0)
    assert "error[E0425]: cannot find value `two` in this scope\n --> solution.rs:3:9" in feedback.text
    assert "unused" not in feedback.text  # a warning
    assert "candidate" not in feedback.text


async def test_brackets_that_do_not_match(judge: Any) -> None:
    for code in ("fn double(x: isize) -> isize { (x * 2 }", "fn double(x: isize) -> isize { x * 2 } }", '"', "/*"):
        feedback = await judge(code, PROGRAM)
        assert feedback.text.startswith("The code does not compile, so no test was run:\n\nerror")


async def test_a_missing_function(judge: Any) -> None:
    feedback = await judge("fn twice(x: isize) -> isize { x * 2 }", PROGRAM)
    assert passed(feedback) == [False] * 6
    assert "does not compile with the code: error[E0425]: cannot find value `double`" in feedback.text


async def test_one_that_does_not_compile_costs_no_other(judge: Any) -> None:
    tests = ["assert_eq!(f(1), 1);", 'assert_eq!(f(1), "1");', "assert_eq!(f(1, 2);", "let x = f(2);\nassert!(x > 1);"]
    feedback = await judge("fn f(x: i32) -> i32 { x }", tests)
    own = {"tests": tests, "passed": [True, False, False, True]}
    assert {**feedback.evidence, **own} == feedback.evidence
    assert [one.passed for one in findings_of(feedback)] == own["passed"]
    assert 'assert_eq!(f(1), "1");  // does not compile with the code: error[E0308]' in feedback.text
    assert "assert_eq!(f(1, 2);  // cannot be run: its brackets do not match" in feedback.text


async def test_quirks_of_data_sets(judge: Any) -> None:
    opened = "fn double(x: isize) -> isize {\n    x * 2\n"
    own_main = 'use std::fmt;\nfn double(x: isize) -> isize { x * 2 }\nfn main() { println!("{}", double(1)); }'
    attributes = "#![allow(dead_code)]\n//! Doubles.\nfn double(x: isize) -> isize { x * 2 } // done"
    called = "fn double(x: isize) -> isize { if x > 99 { main() } x * 2 }\nfn main() { double(1); }"
    for code in (opened, own_main, called, attributes, own_main.replace("\n", "\r\n")):
        assert (await judge(code, PROGRAM)).passed is True, code


@pytest.mark.parametrize(
    "code",
    [
        "mod m { pub fn two() -> isize { crate::TWO } }\nconst TWO: isize = 2;\nuse crate::m::two;\n"
        "fn double(x: isize) -> isize { x * two() }",
        "macro_rules! two { () => { $crate::TWO } }\nconst TWO: isize = 2;\nfn double(x: isize) -> isize { x * two!() }",
        "pub(crate) mod m { pub(in crate::m) fn a() -> isize { 2 } pub(crate) fn two() -> isize { a() } }\n"
        'fn double(x: isize) -> isize { assert_eq!("crate::x".len(), 8); x * crate :: m::two() }',
    ],
)
async def test_paths_from_the_root_are_the_codes_own(code: str, judge: Any) -> None:
    assert (await judge(code, PROGRAM)).passed is True
    for wrong in ("crate::no::", "crate::no"):
        refused = await judge(code.replace("crate::", wrong), PROGRAM)
        assert refused.passed is False
        assert "crate::solution" not in refused.text


@pytest.mark.parametrize("name", ["HashMap", "HashSet", "BTreeMap", "BTreeSet", "BinaryHeap", "VecDeque"])
async def test_nothing_is_imported_for_the_code(name: str, judge: Any) -> None:
    code = f"fn double(x: isize) -> isize {{ let _ = std::mem::size_of::<{name}<isize{', ()' * ('Map' in name)}>>(); x * 2 }}"
    feedback = await judge(code, PROGRAM)
    assert feedback.passed is False
    assert f"cannot find type `{name}` in this scope" in feedback.text
    assert (await judge(f"use std::collections::{name};\n{code}", PROGRAM)).passed is True


async def test_a_main_that_the_compiler_refuses(judge: Any) -> None:
    said = "```rust\nfn double(x: isize) -> isize { x * 2 }\n\nfn main() { nothing() }\n```"
    feedback = await judge(program(said, "fn double(x: isize) -> isize {\n", "rs"), PROGRAM)
    assert feedback.passed is False
    assert "cannot find function `nothing` in this scope" in feedback.text


async def test_helpers_of_the_tests(judge: Any) -> None:
    program = """
use std::collections::BTreeMap;
struct Pair(isize, isize);
fn check(pair: Pair) { let Pair(a, b) = pair; assert_eq!(double(a), b, "of {}", a); }
fn main() {
    let seen: BTreeMap<isize, isize> = (0..3).map(|x| (x, double(x))).collect();
    check(Pair(1, 2));
    for (x, y) in &seen { assert_eq!(x * 2, *y); }
    check(Pair(2, 5));
}
"""
    feedback = await judge("fn double(x: isize) -> isize { x * 2 }", program)
    assert passed(feedback) == [True, True, False]
    assert "check(Pair(2, 5));  // left is 4, right is 5; of 2" in feedback.text


async def test_the_references_layout(judge: Any) -> None:
    code = 'fn double(x: isize) -> isize { if x == 3 { panic!("no") } if x == 2 { loop {} } x + 1 }'
    feedback = await judge(code, PROGRAM, layout="reference", seconds=2.0)
    assert feedback.text == (
        "Tested passed:\nassert_eq!(candidate(1), 2);\nassert_ne!(candidate(6), 6);\n\nTests failed:\n"
        "assert_eq!(candidate(2), 4); // output: TIMEOUT\n"
        "assert_eq!(candidate(3), 6); // output: no\n"
        "assert_eq!(candidate(4), 8); // output: assertion failed: 5 == 8\n"
        'assert!(candidate(5) == 10, "five {}", candidate(5)); // output: assertion failed: candidate(5) == 10'
    )
    refused = await judge("fn double(x: isize) -> isize { y }", PROGRAM, layout="reference")
    assert refused.text.startswith("error[E0425]")


async def test_memory_is_bounded_for_each_test(judge: Any) -> None:
    code = "fn double(x: isize) -> isize { if x == 2 { vec![1u8; 2 << 30].len() as isize } else { x * 2 } }"
    feedback = await judge(code, PROGRAM, memory=256)
    assert passed(feedback) == [True, False, True, True, True, True]


async def test_long_values_are_cut(judge: Any) -> None:
    feedback = await judge('fn double(x: isize) -> String { "y".repeat(50_000_000) }', ['assert_eq!(double(1), "z");'])
    assert feedback.passed is False
    assert len(feedback.text) < 4_000
