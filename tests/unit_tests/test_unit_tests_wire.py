"""What crosses between candidate and examiner comes back equal and of the same type, or is refused."""

import ast
import collections
import datetime
import decimal
import fractions
import math
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.oracle.python import programs
from mulligan.oracle.python.programs import PROGRAMS
from mulligan.oracle.python.wire import LIMIT, NotPlain, decode, encode

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(st.characters(codec=None))
    | st.binary()
    | st.just(...)
    | st.dates()
    | st.times()
    | st.datetimes()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 5))
)
hashable = st.recursive(scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)
values: Any = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(hashable, inner, max_size=4)
        | st.sets(hashable, max_size=4)
        | st.lists(inner, max_size=4).map(collections.deque)
        | st.dictionaries(hashable, inner, max_size=4).map(collections.OrderedDict)
    ),
    max_leaves=12,
)


def same(a: Any, b: Any) -> bool:
    """Equal, of the same type all the way down, NaN being itself, and -0.0 not 0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, list | tuple | collections.deque):
        return len(a) == len(b) and all(map(same, a, b))  # pyright: ignore
    if isinstance(a, dict):
        return all(map(same, a.items(), b.items())) and len(a) == len(b)  # pyright: ignore
    if isinstance(a, set | frozenset):
        return len(a) == len(b) and all(any(same(x, y) for y in b) for x in a)  # pyright: ignore
    return a == b


@given(values)
def test_a_value_crosses_unchanged(value: Any) -> None:
    line = encode(value)
    assert line.isascii()
    assert "\n" not in line
    assert same(decode(line), value)


def always(a: object, b: object) -> bool:
    return True


class Point(NamedTuple):
    x: int
    y: int


@each_row(
    ("value", "arrives"),
    [
        (type("I", (int,), {"__eq__": always, "__hash__": int.__hash__})(3), 3),
        (type("L", (list,), {})([1]), [1]),
        (type("S", (str,), {})("a"), "a"),
        (collections.Counter("aab"), collections.Counter("aab")),
        (bytearray(b"\0a"), bytearray(b"\0a")),
        (decimal.Decimal("1.10"), decimal.Decimal("1.10")),
        (fractions.Fraction(1, 3), fractions.Fraction(1, 3)),
        (
            datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
            datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
        ),
        ([1 << 20000], [1 << 20000]),
        ("\ud800 \n\x85\u2028 é", "\ud800 \n\x85\u2028 é"),
    ],
)
def test_a_subclass_arrives_as_the_plain_value_it_holds(value: Any, arrives: Any) -> None:
    got = decode(encode(value))
    assert type(got) is type(arrives)
    assert got == arrives


def test_a_named_tuple_keeps_its_fields_and_equals_a_tuple() -> None:
    got = decode(encode([Point(1, 2)]))[0]
    assert (got.x, got.y, got == (1, 2), type(got).__name__) == (1, 2, True, "Point")


def test_views_of_a_dict_arrive_as_views() -> None:
    keys, items, values = decode(encode([{"a": 1}.keys(), {"a": 1}.items(), {"a": 1}.values()]))
    assert (keys == {"a"}, items == {("a", 1)}, list(values)) == (True, True, [1])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (object(), "is an object of type object"),
        (lambda: 0, "is an object of type function"),
        ("x" * (LIMIT + 1), "is too large: over 1,000,000 characters"),
        ([0] * LIMIT, "is too large: over 500,000 parts"),
    ],
)
def test_what_cannot_cross_says_why(value: Any, said: str) -> None:
    with pytest.raises(NotPlain, match=f"^{said}"):
        encode(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotPlain, match="nested more than 200 deep"):
        encode(loop)


@given(st.text(alphabet="NETFidcsbBltSZxDvnIof0123456789-,. :abuiltns.range\\", max_size=60))
def test_garbage_is_refused_or_is_a_plain_value_and_nothing_else_happens(line: str) -> None:
    try:
        value = decode(line)
    except NotPlain:
        return
    if not isinstance(value, type(iter([]))):
        assert same(decode(encode(value)), value)


@each_row("line", ["", "l1 " * 100_000 + "N", "l9999999999 N", "N N", "vos.system s", "n s1 l0 l0", "iz"])
def test_hostile_lines_are_refused(line: str) -> None:
    with pytest.raises(NotPlain):
        decode(line)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_name_is_defined_in_two_parts_of_a_program(name: str) -> None:
    """In the sandbox the parts share one namespace, so the later definition would win in the earlier part, too."""
    homes: dict[str, set[str]] = {}
    for part in PROGRAMS[name][0]:
        for node in ast.parse(Path(programs.__file__).with_name(f"{part}.py").read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                homes.setdefault(node.name, set()).add(part)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for one in (one for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)):
                    homes.setdefault(one.id, set()).add(part)
    assert {name: parts for name, parts in homes.items() if len(parts) > 1} == {"TYPE_CHECKING": homes["TYPE_CHECKING"]}
