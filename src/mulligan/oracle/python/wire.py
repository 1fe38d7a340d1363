"""Plain Python values as one line of text, and back: all that may cross between candidate and examiner.

A flat list of tokens instead of `repr`, because what a candidate sends is hostile: nothing here hands it to Python's
parser, whose stack a deep literal can break, and every type is named by us and rebuilt by us. It knows nothing of
tests. Runs inside the sandbox: no import that costs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

LIMIT = 1_000_000
"""Characters of one value on the wire."""
DEPTH = 200


def is_a(value: Any, kinds: Any) -> bool:
    """`isinstance`, which leaves the value `Any` to a type checker."""
    return isinstance(value, kinds)


def kind_of(value: Any) -> Any:
    """`type`, likewise."""
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
    return kind


class NotPlain(Exception):
    """A value that cannot cross. The message says why, as the end of the sentence 'the value ...'."""


class TooMuch(NotPlain):
    """A plain value that is too large or too deep."""


def encode(value: Any, special: Callable[[Any], str | None] = lambda value: None) -> str:
    """The value in tokens. `special` gives the token for what only one side can hold, or None for anything else.

    Raises `NotPlain`.
    """
    out: list[str] = []
    _put(value, out, special, 0)
    text = " ".join(out)
    if len(text) > LIMIT:
        raise TooMuch(f"is too large: over {LIMIT:,} characters")
    return text


def decode(text: str, special: Callable[[str, str], Any] | None = None) -> Any:
    """The value again; `special` gets the tag and the rest of a token that its other side made. Raises `NotPlain`."""
    if len(text) > LIMIT:
        raise TooMuch(f"is too large: over {LIMIT:,} characters")
    tokens = iter(text.split(" "))
    try:
        value = _take(tokens, special, 0)
    except NotPlain:
        raise
    except (Exception, StopIteration) as error:
        raise NotPlain("is not a value in the expected form") from error
    if next(tokens, None) is not None:
        raise NotPlain("is followed by something else")
    return value


def _text(value: str) -> str:
    return "s" + value.encode("unicode_escape").decode("ascii").replace(" ", "\\x20")


SCALARS: dict[type, Callable[[Any], str]] = {
    type(None): lambda value: "N",
    type(...): lambda value: "E",
    bool: lambda value: "T" if value else "F",
    int: lambda value: f"i{value:x}",
    float: lambda value: "d" + value.hex(),
    complex: lambda value: f"c{value.real.hex()},{value.imag.hex()}",
    str: _text,
    bytes: lambda value: "b" + value.hex(),
    bytearray: lambda value: "B" + value.hex(),
}
UNSCALARS: dict[str, Callable[[str], Any]] = {
    "N": lambda rest: None,
    "E": lambda rest: ...,
    "T": lambda rest: True,
    "F": lambda rest: False,
    "i": lambda rest: int(rest, 16),
    "d": float.fromhex,
    "c": lambda rest: complex(*map(float.fromhex, rest.split(","))),
    "s": lambda rest: rest.encode("ascii").decode("unicode_escape"),
    "b": bytes.fromhex,
    "B": bytearray.fromhex,
}
SEQUENCES: dict[type, str] = {list: "l", tuple: "t", set: "S", frozenset: "Z"}
UNSEQUENCES: dict[str, Callable[[list[Any]], Any]] = {"l": list, "t": tuple, "S": set, "Z": frozenset, "x": iter}

KNOWN: dict[str, tuple[Callable[[Any], list[Any]], Callable[[Any, list[Any]], Any]]] = {
    "builtins.range": (lambda v: [v.start, v.stop, v.step], lambda m, p: range(*p)),
    "builtins.slice": (lambda v: [v.start, v.stop, v.step], lambda m, p: slice(*p)),
    "builtins.dict_keys": (lambda v: [list(v)], lambda m, p: dict.fromkeys(*p).keys()),
    "builtins.dict_values": (lambda v: [list(v)], lambda m, p: dict(zip(range(len(p[0])), p[0], strict=True)).values()),
    "builtins.dict_items": (lambda v: [list(v)], lambda m, p: dict(p[0]).items()),
    "decimal.Decimal": (lambda v: [str(v)], lambda m, p: m.Decimal(*p)),
    "fractions.Fraction": (lambda v: [v.numerator, v.denominator], lambda m, p: m.Fraction(*p)),
    "datetime.date": (lambda v: [v.isoformat()], lambda m, p: m.date.fromisoformat(*p)),
    "datetime.time": (lambda v: [v.isoformat()], lambda m, p: m.time.fromisoformat(*p)),
    "datetime.datetime": (lambda v: [v.isoformat()], lambda m, p: m.datetime.fromisoformat(*p)),
    "datetime.timedelta": (lambda v: [v.days, v.seconds, v.microseconds], lambda m, p: m.timedelta(*p)),
    "collections.deque": (lambda v: [list(v), v.maxlen], lambda m, p: m.deque(*p)),
    "collections.Counter": (lambda v: [dict(v)], lambda m, p: m.Counter(*p)),
    "collections.OrderedDict": (lambda v: [list(v.items())], lambda m, p: m.OrderedDict(*p)),
    "collections.defaultdict": (lambda v: [dict(v)], lambda m, p: m.defaultdict(None, *p)),
    "numpy.ndarray": (
        lambda v: [v.dtype.str, list(v.shape), v.ravel().tolist()],
        lambda m, p: m.fromiter(p[2], p[0], len(p[2])).reshape(p[1]),
    ),
}
"""Well-known value types: their parts, and how the other side builds them anew (given the type's module first)."""

BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__pos__),
    (float, float.__pos__),
    (complex, complex.__pos__),
    (str, "".join),
    (bytes, bytes),
    (list, list),
    (tuple, tuple),
    (set, set),
    (frozenset, frozenset),
    (dict, dict),
)
"""A subclass of these crosses as the plain value that it holds."""


def _put(value: Any, out: list[str], special: Callable[[Any], str | None], depth: int) -> None:
    if depth > DEPTH:
        raise TooMuch(f"is nested more than {DEPTH} deep")
    if len(out) > LIMIT // 2:
        raise TooMuch(f"is too large: over {LIMIT // 2:,} parts")
    kind: Any = kind_of(value)
    if kind in SCALARS:
        out.append(SCALARS[kind](value))
    elif kind in SEQUENCES:
        out.append(f"{SEQUENCES[kind]}{len(value)}")
        for part in value:
            _put(part, out, special, depth + 1)
    elif kind is dict:
        out.append(f"D{len(value)}")
        for key, part in value.items():
            _put(key, out, special, depth + 1)
            _put(part, out, special, depth + 1)
    elif (name := f"{kind.__module__}.{kind.__qualname__}") in KNOWN:
        out.append("v" + name)
        _put(KNOWN[name][0](value), out, special, depth + 1)
    elif kind.__module__ == "numpy" and hasattr(value, "item") and not getattr(value, "ndim", 1):
        _put(value.item(), out, special, depth + 1)
    elif is_a(value, tuple) and is_a(getattr(kind, "_fields", None), tuple):
        out.append("n")
        _put([kind.__name__, list(kind._fields), list(value)], out, special, depth + 1)
    elif plain := next((make for base, make in BASES if issubclass(kind, base)), None):
        _put(plain(value), out, special, depth + 1)
    elif (token := special(value)) is not None:
        out.append(token)
    else:
        raise NotPlain(f"is an object of type {kind.__name__}")


def _take(tokens: Iterator[str], special: Callable[[str, str], Any] | None, depth: int) -> Any:
    if depth > 2 * DEPTH:
        raise NotPlain("is nested too deep")
    token = next(tokens)
    tag, rest = token[0], token[1:]
    if tag in UNSCALARS:
        return UNSCALARS[tag](rest)
    if tag in UNSEQUENCES:
        return UNSEQUENCES[tag]([_take(tokens, special, depth + 1) for _ in range(int(rest))])
    if tag == "D":
        pairs = [(_take(tokens, special, depth + 1), _take(tokens, special, depth + 1)) for _ in range(int(rest))]
        return dict(pairs)
    if tag == "v":
        make = KNOWN[rest][1]
        return make(__import__(rest.partition(".")[0]), _take(tokens, special, depth + 1))
    if tag == "n":
        name, fields, values = _take(tokens, special, depth + 1)
        return __import__("collections").namedtuple(name, fields)(*values)
    if special is None:
        raise NotPlain("holds something that only the other side has")
    return special(tag, rest)
