"""Plain Python values as one line of text, and back: all that may cross between candidate and examiner.

A flat list of tokens instead of `repr`, because what a candidate sends is hostile: nothing here hands it to Python's
parser, whose stack a deep literal can break, and every type is named by us and rebuilt by us. It knows nothing of
tests. Runs inside the sandbox: no import that costs.
"""

from __future__ import annotations

import sys
from math import nan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

LIMIT = 1_000_000
"""Characters of one value on the wire."""
MOST = 32_000_000
"""Characters of a request to the candidate and of its reply: what a test of a large input compares."""
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


def encode(value: Any, special: Callable[[Any], str | None] = lambda value: None, limit: int = LIMIT) -> str:
    """The value in tokens. `special` gives the token for what only one side can hold, or None for anything else.

    Raises `NotPlain`.
    """
    out: list[str] = []
    _put(value, out, special, 0, limit // 2)
    text = " ".join(out)
    if len(text) > limit:
        raise TooMuch(f"is too large: over {limit:,} characters")
    return text


def decode(text: str, special: Callable[..., Any] | None = None, limit: int = LIMIT) -> Any:
    """The value again; `special` gets the tag and the rest of a token that its other side made. Raises `NotPlain`."""
    if len(text) > limit:
        raise TooMuch(f"is too large: over {limit:,} characters")
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
    return "s" + escaped_name(value)


def escaped_name(value: str) -> str:
    """A text as a part of a token: ASCII without a space. `plain_name` reads it."""
    return value.encode("unicode_escape").decode("ascii").replace(" ", "\\x20")


def plain_name(text: str) -> str:
    return text.encode("ascii").decode("unicode_escape")


def stdlib_name(kind: Any) -> str | None:
    """`module:name` for a class of the standard library or numpy; None for any other, whatever it calls itself."""
    module, name = kind.__module__, kind.__qualname__
    return f"{module}:{name}" if stdlib_class(f"{module}:{name}") is kind else None


def stdlib_class(name: str) -> Any:
    """The class of this name, if its module is imported here; else None. It imports nothing."""
    module, _, path = name.partition(":")
    if module.partition(".")[0] not in sys.stdlib_module_names | {"numpy"}:
        return None
    found: Any = sys.modules.get(module) or sys.modules.get("_" + module.replace(".", "_"))  # as _collections_abc
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


def change(old: Any, new: Any) -> None:
    """Makes `old` what the other side made of it, in place and inside as far as the shapes agree."""
    if type(old) is not type(new):
        return
    if is_a(old, list | tuple) and len(old) == len(new):
        for place, (before, after) in enumerate(zip(old, new, strict=True)):
            if _inside(before, after):
                change(before, after)
            elif is_a(old, list):
                old[place] = after
    elif is_a(old, list | bytearray) or (hasattr(old, "dtype") and old.shape == new.shape):
        old[:] = new
    elif is_a(old, dict):
        kept = {key: old[key] for key in new if key in old and _inside(old[key], new[key])}
        for key, value in kept.items():
            change(value, new[key])
        merged = {**new, **kept}
        old.clear()
        old.update(merged)
    elif is_a(old, set):
        old.clear()
        old.update(new)
    elif hasattr(old, "extend"):
        old.clear()
        old.extend(new)


def _inside(before: Any, after: Any) -> bool:
    """Whether the two are containers that can be brought in line without replacing one by the other."""
    if type(before) is not type(after):
        return False
    if is_a(before, tuple):
        pairs = zip(before, after, strict=False)
        return len(before) == len(after) and all(x == y or _inside(x, y) for x, y in pairs)
    return isinstance(before, list | dict | set | bytearray)


SCALARS: dict[type, Callable[[Any], str]] = {
    type(None): lambda value: "N",
    type(...): lambda value: "E",
    type(NotImplemented): lambda value: "U",
    bool: lambda value: "T" if value else "F",
    int: lambda value: f"i{value:x}",
    float: lambda value: "dnan*" if value is nan else "d" + value.hex(),
    complex: lambda value: f"c{value.real.hex()},{value.imag.hex()}",
    str: _text,
    bytes: lambda value: "b" + value.hex(),
    bytearray: lambda value: "B" + value.hex(),
}
UNSCALARS: dict[str, Callable[[str], Any]] = {
    "N": lambda rest: None,
    "E": lambda rest: ...,
    "U": lambda rest: NotImplemented,
    "T": lambda rest: True,
    "F": lambda rest: False,
    "i": lambda rest: int(rest, 16),
    "d": lambda rest: nan if rest == "nan*" else float.fromhex(rest),  # which equals itself in a list
    "c": lambda rest: complex(*map(float.fromhex, rest.split(","))),
    "s": plain_name,
    "b": bytes.fromhex,
    "B": bytearray.fromhex,
}
SEQUENCES: dict[type, str] = {list: "l", tuple: "t", set: "S", frozenset: "Z"}
UNSEQUENCES: dict[str, Callable[[list[Any]], Any]] = {"l": list, "t": tuple, "S": set, "Z": frozenset, "x": iter}

FACTORIES = {kind.__name__: kind for kind in (bool, int, float, str, bytes, list, tuple, dict, set, frozenset)}


def _zone(value: Any) -> Any:
    """The time zone of a time, as one that can cross."""
    zone = value.tzinfo
    if zone is None or f"{type(zone).__module__}.{type(zone).__qualname__}" in KNOWN:
        return zone
    offset = value.utcoffset()
    return offset if offset is None else __import__("datetime").timezone(offset)


def _timezone(module: Any, parts: list[Any]) -> Any:
    made = module.timezone(*parts)
    return module.timezone.utc if made == module.timezone.utc and parts[1] == "UTC" else made


def _factory(factory: Any) -> Any:
    """The factory of a defaultdict: the name of a builtin type, or itself."""
    name = getattr(factory, "__name__", "")
    return name if FACTORIES.get(name) is factory else factory


def _as_text(name: str) -> tuple[Callable[[Any], list[Any]], Callable[[Any, list[Any]], Any]]:
    """A type that is made of its text."""
    return lambda v: [str(v)], lambda m, p: getattr(m, name)(*p)


KNOWN: dict[str, tuple[Callable[[Any], list[Any]], Callable[[Any, list[Any]], Any]]] = {
    "builtins.range": (lambda v: [v.start, v.stop, v.step], lambda m, p: range(*p)),
    "builtins.slice": (lambda v: [v.start, v.stop, v.step], lambda m, p: slice(*p)),
    "builtins.dict_keys": (lambda v: [list(v)], lambda m, p: dict.fromkeys(*p).keys()),
    "builtins.dict_values": (lambda v: [list(v)], lambda m, p: dict(zip(range(len(p[0])), p[0], strict=True)).values()),
    "builtins.dict_items": (lambda v: [list(v)], lambda m, p: dict(p[0]).items()),
    "decimal.Decimal": (lambda v: [str(v)], lambda m, p: m.Decimal(*p)),
    "fractions.Fraction": (lambda v: [v.numerator, v.denominator], lambda m, p: m.Fraction(*p)),
    "datetime.date": (lambda v: [v.isoformat()], lambda m, p: m.date.fromisoformat(*p)),
    "datetime.time": (
        lambda v: [v.hour, v.minute, v.second, v.microsecond, _zone(v), v.fold],
        lambda m, p: m.time(*p[:5], fold=p[5]),
    ),
    "datetime.datetime": (
        lambda v: [v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, _zone(v), v.fold],
        lambda m, p: m.datetime(*p[:8], fold=p[8]),
    ),
    "datetime.timezone": (lambda v: [v.utcoffset(None), v.tzname(None)], _timezone),
    "zoneinfo.ZoneInfo": _as_text("ZoneInfo"),
    "datetime.timedelta": (lambda v: [v.days, v.seconds, v.microseconds], lambda m, p: m.timedelta(*p)),
    "collections.deque": (lambda v: [list(v), v.maxlen], lambda m, p: m.deque(*p)),
    "collections.Counter": (lambda v: [dict(v)], lambda m, p: m.Counter(*p)),
    "collections.OrderedDict": (lambda v: [list(v.items())], lambda m, p: m.OrderedDict(*p)),
    "collections.defaultdict": (
        lambda v: [_factory(v.default_factory), dict(v)],
        lambda m, p: m.defaultdict(FACTORIES[p[0]] if is_a(p[0], str) else p[0], p[1]),
    ),
    "collections.ChainMap": (lambda v: [v.maps], lambda m, p: m.ChainMap(*p[0])),
    "collections.UserDict": (lambda v: [v.data], lambda m, p: m.UserDict(*p)),
    "collections.UserList": (lambda v: [v.data], lambda m, p: m.UserList(*p)),
    "collections.UserString": (lambda v: [v.data], lambda m, p: m.UserString(*p)),
    "builtins.mappingproxy": (lambda v: [dict(v)], lambda m, p: __import__("types").MappingProxyType(*p)),
    "builtins.memoryview": (lambda v: [bytes(v)], lambda m, p: memoryview(*p)),
    "types.SimpleNamespace": (lambda v: [vars(v)], lambda m, p: m.SimpleNamespace(**p[0])),
    "array.array": (lambda v: [v.typecode, v.tolist()], lambda m, p: m.array(*p)),
    "re.Pattern": (lambda v: [v.pattern, v.flags], lambda m, p: m.compile(*p)),
    "uuid.UUID": (lambda v: [v.int], lambda m, p: m.UUID(int=p[0])),
    **{
        f"ipaddress.IP{name}": _as_text(f"IP{name}")
        for v in "46"
        for name in (f"v{v}Address", f"v{v}Network", f"v{v}Interface")
    },
    **{
        f"{module}.{name}": _as_text(name)
        for module in ("pathlib", "pathlib._local")
        for name in ("PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath")
    },
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
_TYPES = {kind.__name__: kind for kind in (*FACTORIES.values(), complex, bytearray, range, object, type(None))}
"""Classes that cross by name, besides those of `KNOWN` and exceptions. None of them runs what it is given."""
_ENUMS = ("http", "signal", "re", "uuid", "calendar", "socket", "decimal", "enum", "string")
"""Modules that are imported for a member of their enumerations."""


def _put(value: Any, out: list[str], special: Callable[[Any], str | None], depth: int, room: int) -> None:
    if depth > DEPTH:
        raise TooMuch(f"is nested more than {DEPTH} deep")
    if len(out) > room:
        raise TooMuch(f"is too large: over {room:,} parts")
    kind: Any = kind_of(value)
    if kind in SCALARS:
        out.append(SCALARS[kind](value))
    elif kind in SEQUENCES:
        out.append(f"{SEQUENCES[kind]}{len(value)}")
        for part in value:
            _put(part, out, special, depth + 1, room)
    elif kind is dict:
        out.append(f"D{len(value)}")
        for key, part in value.items():
            _put(key, out, special, depth + 1, room)
            _put(part, out, special, depth + 1, room)
    elif (name := f"{kind.__module__}.{kind.__qualname__}") in KNOWN:
        out.append("v" + name)
        _put(KNOWN[name][0](value), out, special, depth + 1, room)
    elif hasattr(kind, "_member_map_") and (name := stdlib_name(kind)) is not None:
        out.append("e" + name)
        _put(value.value, out, special, depth + 1, room)
    elif kind is type and (name := _type_name(value)) is not None:
        out.append("k" + name)
    elif kind.__module__ == "numpy" and hasattr(value, "item") and not getattr(value, "ndim", 1):
        _put(value.item(), out, special, depth + 1, room)
    elif plain := next((make for base, make in BASES if issubclass(kind, base)), None):
        if (token := special(value)) is not None:
            out.append(token)
            if token[0] != "w":
                return
        fields: Any = getattr(kind, "_fields", None)
        if plain is tuple and is_a(fields, tuple):
            out.append("n")
            _put([kind.__name__, list(fields), list(value)], out, special, depth + 1, room)
        else:
            _put(plain(value), out, special, depth + 1, room)
    elif (token := special(value)) is not None:
        out.append(token)
    else:
        raise NotPlain(f"is an object of type {kind.__name__}")


def known_base(kind: Any) -> str | None:
    """The well-known type that a class is made of."""
    names = (f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__)
    return next((name for name in names if name in KNOWN), None)


def _type_name(value: Any) -> str | None:
    """The name by which a class crosses; None for one that stays."""
    if _TYPES.get(value.__name__) is value:
        return value.__name__
    if issubclass(value, BaseException) or f"{value.__module__}.{value.__qualname__}" in KNOWN:
        return stdlib_name(value)
    return None


def _type(name: str) -> Any:
    found: Any = _TYPES.get(name) or stdlib_class(name)
    if found is None and name.replace(":", ".") in KNOWN:
        found = getattr(__import__(name.partition(":")[0]), name.partition(":")[2], None)
    if found is None or _type_name(found) != name:
        raise NotPlain("is a class that is not known here")
    return found


def _member(name: str, value: Any) -> Any:
    """A member of an enumeration of the standard library; its plain value, where that is not imported here."""
    if (module := name.partition(":")[0]) in _ENUMS:
        __import__(module)
    kind = stdlib_class(name)
    return kind(value) if hasattr(kind, "_member_map_") else value


def _take(tokens: Iterator[str], special: Callable[..., Any] | None, depth: int) -> Any:
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
    if tag == "e":
        return _member(rest, _take(tokens, special, depth + 1))
    if tag == "k":
        return _type(rest)
    if tag == "w":
        content = _take(tokens, special, depth + 1)
        return content if special is None else special(tag, rest, content)
    if tag == "r" and special is not None:
        return special(tag, rest, _take(tokens, special, depth + 1))
    if special is None:
        raise NotPlain("holds something that only the other side has")
    return special(tag, rest)
