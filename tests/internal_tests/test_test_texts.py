"""Tests are taken out of whatever a model writes around them."""

import time

from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.text.python_code import parsed
from mulligan.text.python_tests import modules, python_tests, reference_tests
from mulligan.text.rust import rust_tests

ANSWER = '''Sure! Here's what I'd test:

1. `assert f(1) == 2` is the base case
2. assert f(2) == 3
- Test 3: assert f([1,
    2]) == "assert"

```python
# assert f(9) == 9
x = "assert f(8) == 8"
"""
assert f(7) == 7
"""
def test_it():
    xs = [1, 2]
    result = f(xs)
    assert result == 3, f"got {result}"
    for a in xs:
        assert f(a) == 1

def check(candidate):
    assert candidate(5) == 6
    assert candidate(5)   == 6
def f(x):
    assert f(0)
assert f({
    'a': 1,
}) == {'é': 2}
assert f(12
```
    assert f(100) == 2
if so:
assert f(55) == 5
assert f(66) ==
'''


def test_asserts_are_found_wherever_they_stand() -> None:
    assert python_tests(ANSWER, "f") == (
        "assert f(1) == 2",
        "assert f(2) == 3",
        'assert f([1,\n    2]) == "assert"',
        "assert (f([1, 2]) == 3)",
        "assert f(5) == 6",
        "assert f({\n    'a': 1,\n}) == {'é': 2}",
        "assert f(100) == 2",
        "assert f(55) == 5",
    )


@each_row(
    "text",
    [
        "# assert f(1) == 1",
        'x = "assert f(1) == 1"',
        "assert True",
        "assert g(1) == 1",
        "assert f",
        "assert callable(f)",
        "assert (f(1) == 2, 'always')",
        "assert f(1) == f(1)",
        "assert f(...) == ...",
        "assert [f(1)]",
        "assert f(1) == 2 or True",
        "def f(x):\n    assert f(x - 1)",
        "for a in [1]:\n    assert f(a) == 1",
        "def test_f(data):\n    assert f(data) == 1",
        "import numpy as np\nassert f(np.zeros(1)) == 1",
        "There is nothing to assert here.",
    ],
)
def test_what_tests_nothing_is_no_test(text: str) -> None:
    assert python_tests(text, "f") == ()


def test_variables_are_put_in_their_place() -> None:
    text = "b = 'x' 'y'\nassert f(b, key=lambda a: a) == 1\nb = (1,\n 2)\nassert f(b)[0] == 2\nassert f(lambda b: b, b)"
    assert python_tests(text, "f") == ("assert f('x' 'y', key=lambda a: a) == 1", "assert f(((1,\n 2)))[0] == 2")


def test_what_a_class_or_a_method_calls_counts() -> None:
    text = "assert Solution().f(1) == 2\nassert sorted(map(f, [1])) == [2]\nassert math.isclose(f(1), 2)"
    assert python_tests(text, "f") == tuple(text.split("\n"))
    assert modules(python_tests(text, "f")) == ("math",)


def test_the_rule_of_the_reference_keeps_comments_strings_and_doubles() -> None:
    text = (
        "assert f(1) == 1\n  assert f(1) == 1\n# assert\nx = 'assert'\nassert f(\nprose to assert\nassert g([\n1]) == 1"
    )
    assert reference_tests(text) == (
        "assert f(1) == 1",
        "assert f(1) == 1",
        "# assert",
        "x = 'assert'",
        "assert g([\n1]) == 1",
    )


FRAGMENTS = [
    *("assert ", "f(", ")", " == ", "1", "\n", "    ", "'", '"', '"""', "```python\n", "```\n", "# ", "def f(x):\n"),
    *("- ", "1. ", "if x:\n", "for", "[", "{", "\\", "é", "\t", "class A:", "x = ", "lambda", "\x00", "\r\n", ";"),
    *("assert_eq!(", "assert!(f(1) == 2);", "/*", "*/", "//", "fn ", "let a = ", "b'", 'r#"', "}", "::"),
]


@given(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=8)), max_size=60))
def test_no_text_breaks_or_hangs_it_and_each_test_parses(pieces: list[str]) -> None:
    text = "".join(pieces)
    for test in python_tests(text, "f"):
        tree = parsed(test)
        assert tree is not None
        assert type(tree.body[0]).__name__ == "Assert"
        assert "f" in test
    assert all(parsed(test) for test in reference_tests(text))
    for test in rust_tests(text, "f"):
        assert "assert" in test
        assert "f" in test


HOSTILE = [
    *("(" * 50_000, "assert f(" * 9000, "'''" * 9000, "the quick fox\n" * 4000, "if x:\n" * 6000, "-" * 90_000 + "1"),
    *("fn a(){" + "assert!(f(1)==1);" * 3000 + "}", "let a = 1;" * 3000 + "assert!(f(a));" * 2000, "/*" * 40_000),
]


@each_row("text", HOSTILE)
def test_a_hostile_text_costs_seconds_at_most(text: str) -> None:
    began = time.monotonic()
    python_tests(text, "f")
    rust_tests(text, "f")
    assert time.monotonic() - began < 10


RUST = """It's this; don't "worry":
```rust
// assert_eq!(f(9), 9);
/* assert_eq!(f(9), 8); /* nested */ assert!(f(1)); */
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn test_a() {
        let s = String::from("a;b \\" assert_eq!(f(0), 0);");
        let c = ';';
        let x: &'static str = "q";
        assert_eq!(f(s), 1);
        assert_eq!(f("x;y"), 2, "msg");
        assert!(f(c) == '\\'');
        let mut v = vec![1];
        v.push(2);
        assert_eq!(f(&v), 3);
        assert_eq!(f(&v),   3);
        for (a, b) in [(1, 2)] {
            assert_eq!(f(a), b);
        }
        assert!(true);
        assert_eq!(f(1));
        assert_eq!(f(1), f(1));
        assert_eq!(g(1), 2);
        assert_eq!(f(r#"raw ; "# ), 2)
    }
    fn check(candidate: fn(i32) -> i32) { assert_eq!(candidate(3), 4); }
    fn f(x: i32) -> i32 { assert!(f(x) > 0); x }
}
assert_eq!(f(
```
"""


def test_rust_is_split_by_its_own_rules() -> None:
    assert rust_tests(RUST, "f") == (
        'let s = String::from("a;b \\" assert_eq!(f(0), 0);");\nassert_eq!(f(s), 1);',
        'assert_eq!(f("x;y"), 2, "msg");',
        "let c = ';';\nassert!(f(c) == '\\'');",
        "let mut v = vec![1];\nv.push(2);\nassert_eq!(f(&v), 3);",
        "for (a, b) in [(1, 2)] {\n            assert_eq!(f(a), b);\n        }",
        'assert_eq!(f(r#"raw ; "# ), 2);',
        "assert_eq!(f(3), 4);",
    )


def test_rust_without_a_fence() -> None:
    assert rust_tests('It\'s: assert_eq!(f(1), 2); and assert!(f("a;"));\n;', "f") == (
        "assert_eq!(f(1), 2);",
        'assert!(f("a;"));',
    )
