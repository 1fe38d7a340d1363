"""Which arguments count as the same call of a retried function: in another process, equal ones and no others."""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportCallIssue=false
import array
import collections
import copy
import dataclasses
import datetime
import enum
import functools
import io
import operator
import re
import threading
import types
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, PrivateAttr, create_model

import mulligan
from mulligan import Notes
from mulligan.core.codec import digest
from mulligan.core.errors import InvalidInput
from mulligan.functions.identity import MAX_BYTES, identity
from mulligan.functions.shared import close_shared


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    yield
    close_shared()


def key(value: object) -> str:
    return digest(identity(value))


class Color(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    ONE = 1


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Slots:
    __slots__ = ("__hidden", "shown")

    def __init__(self, shown: int, hidden: int = 0) -> None:
        self.shown, self.__hidden = shown, hidden


class Held:
    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)

    def method(self) -> None: ...

    def __call__(self) -> None: ...


class Forgetful(Held):
    def __getstate__(self) -> dict[str, Any]:
        return {}

    @functools.cached_property
    def size(self) -> int:
        return len(vars(self))


@dataclasses.dataclass
class Bill:
    total: int
    draft: int = dataclasses.field(default=0, compare=False, repr=False)
    lines: list[int] = dataclasses.field(default_factory=list[int])


@dataclasses.dataclass
class Order:
    total: int
    draft: int = 0
    lines: list[int] = dataclasses.field(default_factory=list[int])


class Model(BaseModel):
    x: int = 1
    left_out: int = Field(0, exclude=True)
    _private: int = PrivateAttr(0)


class Other(BaseModel):
    x: int = 1


class Point(NamedTuple):
    x: int
    y: int


def private(value: int) -> Model:
    model = Model()
    model._private = value  # pyright: ignore[reportPrivateUsage]
    return model


def grown(**attributes: int) -> Bill:
    bill = Bill(1)
    vars(bill).update(attributes)
    return bill


def holding(value: object) -> Callable[..., Any]:
    def function(_: object = None) -> object:
        return value

    return function


def class_of(value: object) -> Any:
    class Desk:
        def bill(self) -> object:
            return value

    return Desk


def marked(mark: int) -> Callable[..., Any]:
    function = holding(1)
    vars(function)["mark"] = mark
    return function


UTC, PARIS = datetime.UTC, ZoneInfo("Europe/Paris")
HOUR = datetime.timezone(datetime.timedelta(hours=1))
NEW_YEAR = datetime.datetime(2026, 1, 1)
DIFFERENT: list[tuple[Any, Any]] = [
    (collections.OrderedDict([("a", 1), ("b", 2)]), collections.OrderedDict([("b", 2), ("a", 1)])),
    (collections.defaultdict(int, {"a": 1, "b": 2}), collections.defaultdict(int, {"b": 1, "a": 2})),
    *((1, True), (1, 1.0), ("1", 1), (None, "None"), (0.0, -0.0), (0, False), ("", None), ([], None), ([], {}), ({}, set())),
    *((float("nan"), None), (float("nan"), "nan"), (float("inf"), float("-inf")), (1j, 2j), (10**400, 1)),
    *((b"a", "a"), (b"a", bytearray(b"a")), (b"a" * 100, b"a" * 99 + b"b"), ("é", "e\u0301"), ("a", "a ")),
    *((NEW_YEAR.date(), "2026-01-01"), (NEW_YEAR, NEW_YEAR.date()), (NEW_YEAR, NEW_YEAR.replace(tzinfo=UTC))),
    *((NEW_YEAR.replace(tzinfo=UTC), NEW_YEAR.replace(tzinfo=HOUR)), (NEW_YEAR, NEW_YEAR.replace(fold=1))),
    *((NEW_YEAR.replace(tzinfo=PARIS), NEW_YEAR.replace(tzinfo=HOUR)), (datetime.timedelta(1), 86400.0)),
    *((Decimal("1.0"), 1.0), (Decimal("1.0"), "1.0"), (Decimal(1), 1), (Fraction(1, 2), 0.5), (uuid.UUID(int=1), str(uuid.UUID(int=1)))),
    *((Color.RED, "red"), (Color.RED, Color.BLUE), (Size.ONE, 1), (Rights.READ, Rights.READ | Rights.WRITE)),
    *((Path("a"), "a"), (PurePosixPath("a"), PureWindowsPath("a")), (range(2), [0, 1]), (slice(1), slice(2))),
    *(({"a": 1}, {"a": "1"}), ({1: "a"}, {"1": "a"}), ({None: 1}, {"None": 1}), ({True: 1}, {1: 1}), ({"a": 1}, [["a", 1]])),
    *(({"items": []}, {}), ({"is": "float", "of": "nan"}, float("nan")), ({"is": "bytes", "of": "61"}, b"a")),
    *(({1}, {2}), ({1}, [1]), ({1}, frozenset({1})), ([1, [2]], [1, 2]), ([[1], 2], [1, [2]])),
    *((collections.defaultdict(int), collections.defaultdict(list)), (collections.defaultdict(int), {})),
    *((collections.OrderedDict(a=1), {"a": 1}), (collections.Counter("a"), {"a": 1}), (Point(1, 2), (1, 2))),
    *((collections.deque([1], 2), collections.deque([1], 3)), (collections.deque([1]), [1])),
    *((np.array([1]), [1]), (np.array([1]), np.array([2])), (np.array([[1, 2]]), np.array([1, 2])), (np.float64(1), 1.0)),
    *((np.array([1], "int8"), np.array([1], "int16")), (np.array(["a"], object), np.array(["b"], object)), (np.int64(1), 1)),
    *((Slots(1), Slots(2)), (Slots(1, 1), Slots(1, 2)), (Held(a=1), Held(a=2)), (Held(a=1), Held(b=1)), (Held(a=1), {"a": 1})),
    *((Forgetful(a=1), Forgetful(a=2)), (Held(a=Held(b=1)), Held(a=Held(b=2))), (Held(), Forgetful())),
    *((Model(), Model(left_out=2)), (private(1), private(2)), (Model(), Other()), (Other(), {"x": 1})),
    (create_model("Made", x=(int, 1))(), create_model("Made", y=(int, 1))()),
    *((Bill(1, 0), Bill(1, 2)), (Bill(1), Order(1)), (Bill(1), {"total": 1, "draft": 0, "lines": []}), (grown(a=1), grown(a=2))),
    *((lambda: 1, lambda: 2), (holding(1), holding(2)), (holding(1), holding("1")), (marked(1), marked(2)), (len, max)),
    *((functools.partial(holding, 1), functools.partial(holding, 2)), (functools.partial(holding, 1), holding(1))),
    *((functools.cache(holding(1)), functools.cache(holding(2))), (staticmethod(holding(1)), staticmethod(holding(2)))),
    *((Held(c=1).method, Held(c=2).method), (Held(c=1), Held(c=2)), ([].append, [1].append), ("a".join, "b".join)),
    *((class_of(1)(), class_of(2)()), (class_of(1), class_of(2)), (int, float), (re, io)),
    (type("A", (), {"f": lambda self: 1})(), type("A", (), {"f": lambda self: 2})()),
    *((types.SimpleNamespace(a=1), types.SimpleNamespace(a=2)), (re.compile("a"), re.compile("a", re.I)), (re.compile("a"), "a")),
    *((array.array("i", [1]), array.array("h", [1])), (ValueError("a"), ValueError("b")), (ValueError("a"), KeyError("a"))),
    *((io.StringIO("a"), io.StringIO("b")), (iter([1]), iter([2])), (operator.itemgetter(1), operator.itemgetter(2))),
]  # fmt: skip


@each_row("pair", DIFFERENT)
def test_arguments_that_differ_are_different_calls(pair: tuple[Any, Any]) -> None:
    one, other = (digest_or_none(value) for value in pair)
    assert one is None or other is None or one != other
    assert one is not None


def digest_or_none(value: object) -> str | None:
    try:
        return key(value)
    except InvalidInput:  # more digits than JSON has
        return None if not isinstance(value, int) else str(value.bit_length())


def used_up(value: Any) -> Any:
    """The value, after what makes it fill its caches."""
    _ = getattr(value, "size", None)
    return (str(value), hash(value))[:0] or value


SAME: list[tuple[Any, Any]] = [
    ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
    (collections.Counter("ab"), collections.Counter("ba")),
    (collections.defaultdict(int, {"a": 1, "b": 2}), collections.defaultdict(int, {"b": 2, "a": 1})),
    ([1, [2]], (1, (2,))),
    ({3, 1, 2}, {2, 3, 1}),
    (float("nan"), float("nan")),
    (Held(a=1, b=2), Held(b=2, a=1)),
    (Slots(1, 2), Slots(1, 2)),
    (used_up(Path("a/b")), Path("a/b")),
    (used_up(Forgetful(a=1)), Forgetful(a=1)),
    (Bill(1, 2), Bill(1, 2)),
    (Model(left_out=2), Model(left_out=2)),
    (np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3)),
    (NEW_YEAR.replace(tzinfo=PARIS), NEW_YEAR.replace(tzinfo=ZoneInfo("Europe/Paris"))),
    (collections.defaultdict(int, a=1), collections.defaultdict(int, a=1)),
    (re.compile("a"), re.compile("a")),
    (holding(1), holding(1)),
    (Held(c=1).method, Held(c=1).method),
    (class_of(1)(), class_of(1)()),
]


@each_row("pair", SAME)
def test_equal_arguments_are_the_same_call(pair: tuple[Any, Any]) -> None:
    assert key(pair[0]) == key(pair[1])


@pytest.mark.parametrize(
    "value", [object(), threading.Lock(), (n for n in ()), np.zeros(MAX_BYTES, "int16")], ids=range(4)
)
def test_what_may_hold_something_that_nothing_shows_is_no_key(value: object) -> None:
    for held in (value, [value], {"a": value}, Held(a=value), holding(value)):
        with pytest.raises(InvalidInput):
            identity(held)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(UTC))
    | st.decimals()
    | st.uuids()
    | st.sampled_from([*Color, *Size, *Rights])
    | st.builds(Path, st.text("ab/", max_size=4))
)
KEYS = st.none() | st.booleans() | st.integers() | st.text() | st.binary()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.builds(Bill, inner, inner)  # pyright: ignore[reportArgumentType]
        | st.builds(Held, a=inner)
        | st.builds(Slots, inner, inner)  # pyright: ignore[reportArgumentType]
    ),
    max_leaves=6,
)


def typed(value: Any) -> str:
    """What a value is and holds, as text."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(typed, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{typed(name)}: {typed(held)}' for name, held in value.items())}}}"
    if isinstance(value, Slots):
        return f"Slots({typed(value.shown)}, {typed(value._Slots__hidden)})"  # pyright: ignore
    if isinstance(value, (Bill, Held)):
        return f"{type(value).__name__}({typed(vars(value))})"
    return f"{type(value).__name__} {value!r}"


@given(VALUES, VALUES)
def test_arguments_are_the_same_call_where_types_and_contents_are(one: Any, other: Any) -> None:
    assert key(copy.deepcopy(one)) == key(one)
    assert (key(one) == key(other)) is (typed(one) == typed(other))


@pytest.mark.parametrize(
    ("first", "second"),
    [(b"12", "12"), (Bill(1, 0), Bill(1, 2)), (NEW_YEAR.date(), "2026-01-01"), (private(1), private(2))],
    ids=["bytes and text", "a field that does not compare", "a date and a text", "a private attribute"],
)
def test_after_a_killed_call_no_caller_gets_the_try_of_another(first: Any, second: Any) -> None:
    class Calls:
        cut, made = True, list[tuple[str, int]]()

    @mulligan.retry(judge=lambda answer: answer.endswith("right"))
    def bill(of: Any, notes: Notes) -> str:
        Calls.made.append((repr(of), notes.trial))
        if notes.trial == 2 and Calls.cut:
            raise KeyboardInterrupt
        return f"{of!r}{' right' if notes else ''}"

    with pytest.raises(KeyboardInterrupt):
        bill(first)
    Calls.cut = False
    Calls.made.clear()
    assert bill(second) == f"{second!r} right"
    assert bill(first) == f"{first!r} right"
    assert Calls.made == [(repr(second), 1), (repr(second), 2), (repr(first), 2)]
