"""Records as JSON and back, by the fields of the frozen dataclasses.

Every field is written, defaults too: a default that changes later does not change what an old record says.
Reading, a missing key takes the field's default and an unknown key is ignored, so that fields may be added
within one `SCHEMA`. A change that alters the meaning of what is stored adds a migration, and with it a `SCHEMA`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints, overload

from mulligan.core.episode import Event
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json

T = TypeVar("T")

Migration: TypeAlias = Callable[[str, Json], Json]
"""Takes the name of a class ("Episode", or "Event" for all events) and its JSON; returns that of the next schema."""

MIGRATIONS: tuple[Migration, ...] = ()
"""The first migrates from schema 1 to 2, and so on. A released one is never changed."""

SCHEMA = len(MIGRATIONS) + 1
"""The version of the JSON of the records. What is stored keeps the version that it was written in beside it."""


def to_json(record: Any) -> Json:
    """Returns the record as JSON: tuples as lists, bytes as base64, and an event with its name under "event".

    JSON values in the record are not copied. Raises `InvalidInput`, with the location, if a value is not JSON (nan,
    inf, or a tuple within a JSON value) or does not fit its field.
    """
    try:
        return _shape(cast(Any, type(record))).write(record)
    except _Misfit as misfit:
        raise InvalidInput(misfit.message(type(record).__name__)) from None
    except RecursionError:
        raise InvalidInput(f"{type(record).__name__}: a value in it is nested too deeply for JSON") from None


@overload
def from_json(cls: type[T], data: Json, schema: int = SCHEMA) -> T: ...
@overload
def from_json(cls: UnionType, data: Json, schema: int = SCHEMA) -> Event: ...
def from_json(cls: Any, data: Json, schema: int = SCHEMA) -> Any:
    """Returns the record of this class in `data`, which was written in version `schema`.

    For `Event`, the key "event" in `data` is the class name.

    Raises `InvalidInput`, with the location, if data does not fit or was written by a newer version.
    """
    return _read(cls, "Event" if cls is Event else cls.__name__, data, schema)


def migrate(kind: str, data: Json, schema: int, migrations: tuple[Migration, ...] = MIGRATIONS) -> Json:
    """`data`, written in version `schema`, as the newest version would have written it."""
    newest = len(migrations) + 1
    if not 1 <= schema <= newest:
        raise InvalidInput(
            f"This {kind} was written with record version {schema}; this version of Mulligan reads versions 1 to "
            f"{newest}. Upgrade Mulligan to read it."
        )
    for migration in migrations[schema - 1 :]:
        data = migration(kind, data)
    return data


def record_text(record: Any) -> str:
    """`to_json` of the record as JSON text in ASCII, so that a lone surrogate survives."""
    return _encoded(to_json(record), _COMPACT)


def json_text(value: Json, *, canonical: bool = False) -> str:
    """`value` as JSON text in ASCII; `canonical` sorts the keys.

    Stricter than `json.dumps`: raises `InvalidInput` that names the place for a value that would be read back as
    something else (a tuple, a key that is not a string) or is not JSON (nan, inf).
    """
    try:
        _check(value)
    except _Misfit as misfit:
        raise InvalidInput(misfit.message("value")) from None
    except RecursionError:
        raise InvalidInput("value: is nested too deeply for JSON") from None
    return _encoded(value, _SORTED if canonical else _COMPACT)


def digest(value: Json) -> str:
    """Returns the sha256 of the canonical JSON of `value`.

    Raises:
        InvalidInput: `value` is not a JSON value.
    """
    return hashlib.sha256(json_text(value, canonical=True).encode()).hexdigest()


def changes(before: Json, after: Json, at: str = "") -> list[str]:
    """At most five places where two requests differ, as paths such as `messages.0.text`."""
    if before == after:
        return []
    paths = [
        path for key, old, new in _pairs(before, after) for path in changes(old, new, f"{at}.{key}" if at else key)
    ]
    return paths[:5] or [at or "the request"]


def _pairs(before: Json, after: Json) -> Iterator[tuple[str, Json, Json]]:
    """The pairs of children of two dicts, or of two lists of the same length, with their keys; else nothing."""
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast(dict[str, Json], before), cast(dict[str, Json], after)
        yield from ((key, old.get(key), new.get(key)) for key in sorted({*old, *new}))
    elif isinstance(before, list) and isinstance(after, list):
        ours, theirs = cast(list[Json], before), cast(list[Json], after)
        if len(ours) == len(theirs):
            yield from ((str(n), old, new) for n, (old, new) in enumerate(zip(ours, theirs, strict=True)))


_COMPACT = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_SORTED = json.JSONEncoder(separators=(",", ":"), check_circular=False, sort_keys=True)


def _encoded(value: Json, encoder: json.JSONEncoder) -> str:
    try:
        return encoder.encode(value)
    except (RecursionError, ValueError) as error:  # nested too deeply; an integer with more digits than Python prints
        raise InvalidInput(f"value: cannot be written as JSON: {error}") from None


class _Misfit(Exception):
    """A value does not fit its type. `at` is its path, filled from the inside out as the exception passes up."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.at: list[str] = []

    def message(self, root: str) -> str:
        return f"{'.'.join([root, *reversed(self.at)])}: {self}"


@dataclass(frozen=True)
class _Shape:
    """How values of one type are written and read. Both raise `_Misfit`."""

    write: Callable[[Any], Json]
    read: Callable[[Any], Any]


def _read(hint: Any, kind: str, data: Json, schema: int) -> Any:
    try:
        return _shape(hint).read(migrate(kind, data, schema))
    except _Misfit as misfit:
        raise InvalidInput(misfit.message(kind)) from None


@cache
def _shape(hint: Any) -> _Shape:
    if hint in _PLAIN:
        return _PLAIN[hint]
    if is_dataclass(hint):
        return _record(cast(type, hint))
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _literal(args)
    if origin in (Union, UnionType):
        return _union(args)
    if origin is tuple and args[1:] == (...,):
        return _row(_shape(args[0]))
    if origin is not None and issubclass(origin, Mapping) and args[0] is str:
        return _table(_shape(args[1]))
    raise TypeError(
        f"{hint} cannot be represented as JSON here; use a record, tuple[X, ...], Mapping[str, X] or a plain value"
    )


def _record(cls: type) -> _Shape:
    hints = get_type_hints(cls)
    tag = {"event": cls.__name__.lower()} if cls in get_args(Event) else {}
    parts = [(f.name, _shape(hints[f.name])) for f in fields(cls)]
    required = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}

    def write(value: Any) -> Json:
        if type(value) is not cls:
            raise _mismatch(cls.__name__, value)
        table: dict[str, Json] = {**tag}
        name = ""
        try:
            for name, shape in parts:
                table[name] = shape.write(getattr(value, name))
        except _Misfit as misfit:
            misfit.at.append(name)
            raise
        return table

    def read(data: Any) -> Any:
        if not isinstance(data, dict):
            raise _mismatch(f"an object ({cls.__name__})", data)
        table, values = cast(dict[str, Json], data), dict[str, Any]()
        name = ""
        try:
            for name, shape in parts:
                if name in table:
                    values[name] = shape.read(table[name])
                elif name in required:
                    raise _Misfit("is missing")
        except _Misfit as misfit:
            misfit.at.append(name)
            raise
        return cls(**values)

    return _Shape(write, read)


def _union(options: tuple[Any, ...]) -> _Shape:
    """X | None, or a union of events, distinguished by "event"."""
    if NoneType in options:
        rest = tuple(option for option in options if option is not NoneType)
        inner = _shape(rest[0] if len(rest) == 1 else Union[rest])  # noqa: UP007
        return _Shape(
            lambda value: None if value is None else inner.write(value),
            lambda data: None if data is None else inner.read(data),
        )
    if not set(options) <= set(get_args(Event)):
        raise TypeError(f"the members of a union of {options} cannot be distinguished in JSON")
    shapes = {option.__name__.lower(): _shape(option) for option in options}

    def read(data: Any) -> Any:
        name = cast(dict[str, Json], data).get("event") if isinstance(data, dict) else None
        if not isinstance(name, str) or name not in shapes:
            raise _Misfit(f'"event" must be one of {", ".join(sorted(shapes))}, not {name!r}')
        return shapes[name].read(data)

    return _Shape(to_json, read)


def _literal(values: tuple[Any, ...]) -> _Shape:
    def check(value: Any) -> Any:
        if value not in values:
            raise _mismatch(f"one of {', '.join(map(repr, values))}", value)
        return value

    return _Shape(check, check)


def _row(item: _Shape) -> _Shape:
    def write(value: Any) -> Json:
        if not isinstance(value, tuple):
            raise _mismatch("a tuple", value)
        return _each(cast(tuple[Any, ...], value), item.write)

    def read(data: Any) -> Any:
        if not isinstance(data, list):
            raise _mismatch("a list", data)
        return tuple(_each(cast(list[Any], data), item.read))

    return _Shape(write, read)


def _table(item: _Shape) -> _Shape:
    def converter(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def convert_all(value: Any) -> Any:
            if not isinstance(value, Mapping):
                raise _mismatch("an object", value)
            return _entries(cast(Mapping[Any, Any], value), convert)

        return convert_all

    return _Shape(converter(item.write), converter(item.read))


def _each(items: list[Any] | tuple[Any, ...], convert: Callable[[Any], Any]) -> list[Any]:
    converted: list[Any] = []
    try:
        for item in items:
            converted.append(convert(item))
    except _Misfit as misfit:
        misfit.at.append(str(len(converted)))
        raise
    return converted


def _entries(table: Mapping[Any, Any], convert: Callable[[Any], Any]) -> dict[str, Any]:
    converted: dict[str, Any] = {}
    key: Any = ""
    try:
        for key, value in table.items():
            if not isinstance(key, str):
                raise _mismatch("a string as a key", key)
            converted[key] = convert(value)
    except _Misfit as misfit:
        misfit.at.append(str(key))
        raise
    return converted


def _json(value: Any) -> Json:
    """The value itself. Raises `_Misfit` if anything in it is not JSON."""
    _check(value)
    return value


_SCALARS = frozenset({str, int, bool, NoneType})


def _is_plain(value: Any) -> bool:
    """Whether the value is JSON made of exactly the plain types. For others, `_check` says what is wrong."""
    kind = cast("type[Any]", type(value))
    if kind is dict:
        for key in value:  # loops: `all` takes twice as long
            if type(key) is not str:
                return False
        value = value.values()
    elif kind is not list:
        return kind in _SCALARS or (kind is float and math.isfinite(value))
    for item in value:  # noqa: SIM110
        if type(item) not in _SCALARS and not _is_plain(item):  # the first part saves a call for each leaf
            return False
    return True


def _check(value: Any) -> None:
    if _is_plain(value):
        return
    if isinstance(value, float):
        _number(value)
    elif isinstance(value, list):
        _each(cast(list[Any], value), _check)
    elif isinstance(value, dict):
        _entries(cast(dict[Any, Any], value), _check)
    elif value is not None and not isinstance(value, str | int):
        hint = "; make it a list" if isinstance(value, tuple) else ""
        raise _Misfit(f"a {type(cast(Any, value)).__name__} is not JSON{hint}")


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mismatch("a number", value)
    try:
        number = float(value)
    except OverflowError:
        raise _Misfit("the number is too large") from None
    if not math.isfinite(number):
        raise _Misfit(f"{number} is not a JSON number; use None for an unknown value")
    return number


def _instance_of(kind: type, name: str) -> Callable[[Any], Any]:
    """Returns a function that returns its argument if it is of this type, and else raises `_Misfit`."""

    def check(value: Any) -> Any:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise _mismatch(name, value)
        return value

    return check


_text, _bytes = _instance_of(str, "a string"), _instance_of(bytes, "bytes")
_whole, _truth = _instance_of(int, "an integer"), _instance_of(bool, "true or false")


def _to_base64(value: Any) -> str:
    return base64.b64encode(_bytes(value)).decode("ascii")


def _from_base64(data: Any) -> bytes:
    try:
        return base64.b64decode(_text(data), validate=True)
    except (binascii.Error, ValueError) as error:
        raise _Misfit(f"is not base64: {error}") from None


def _mismatch(kind: str, value: Any) -> _Misfit:
    shown = repr(value)
    return _Misfit(f"must be {kind}, not {type(value).__name__} {shown[:60] + '…' if len(shown) > 60 else shown}")


_PLAIN: dict[Any, _Shape] = {
    Any: _Shape(_json, lambda data: data),
    str: _Shape(_text, _text),
    bool: _Shape(_truth, _truth),
    int: _Shape(_whole, _whole),
    float: _Shape(_number, _number),
    bytes: _Shape(_to_base64, _from_base64),
}
