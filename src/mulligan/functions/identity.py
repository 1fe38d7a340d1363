"""What tells functions and their arguments from others, in any process."""

from __future__ import annotations

import copyreg
import functools
import hashlib
import inspect
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from enum import Enum
from functools import lru_cache
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from mulligan.core.codec import json_text
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json

_PLAIN = (str, int, bool, type(None))
"""Types that JSON keeps apart by itself; floats are, too, where they are finite."""
_IN_PYTHON = 1 << 9
"""The flag of classes that are made as the program runs (Py_TPFLAGS_HEAPTYPE)."""
LARGE = 1 << 24
"""Bytes of a value above which it is not looked at."""


def identity(value: Any) -> Json:
    """What is the same for equal values in any process, functions among them, and differs for others.

    A list and a tuple of the same items count as the same, and dicts whatever the order of their keys. Functions
    differ where their code does, or a value that they hold: in a closure, among their defaults, as an argument of a
    `partial`, in the object that they are a method of. Other objects differ by their class and their attributes, or by
    what `pickle` would write of them.

    Raises `InvalidInput` for what may hold something that nothing shows, such as a lock.
    """
    try:
        return _held(value, frozenset())
    except RecursionError:
        raise InvalidInput("a list that contains itself has no JSON form") from None


def name_of(function: Any) -> str:
    """Module and name of a function, or those of an object's class."""
    named = cast(Any, function if hasattr(function, "__qualname__") else type(function))
    return f"{getattr(named, '__module__', '')}.{named.__qualname__}"


def _held(value: Any, within: frozenset[int]) -> Json:
    kind = cast(Any, type(value))
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if value - value == 0 else _tagged("float", repr(value))
    if kind in (list, tuple):
        return [_held(one, within) for one in value]
    if kind is dict:
        return {"items": _items(value.items(), within)}
    if kind in (set, frozenset):
        return _tagged(kind.__name__, sorted((_held(one, within) for one in value), key=_sorting))
    if kind in (bytes, bytearray):
        return _tagged(kind.__name__, value.hex() if len(value) <= 64 else hashlib.sha256(value).hexdigest())
    if kind is ModuleType:
        return _tagged("module", value.__name__)
    if id(value) in within:  # it holds itself
        return _tagged("within", name_of(value))
    inside = within | {id(value)}
    if isinstance(value, type):
        return _class(cast("type[Any]", value), inside)
    if isinstance(value, (MethodType, functools.partial)) or inspect.isroutine(value):
        return _function(value, inside)
    return _object(value, inside)


def _tagged(kind: str, of: Json, **more: Json) -> Json:
    """A value that is no JSON. The contents of a dict are under "items", so that none is taken for one of these."""
    return {"is": kind, "of": of, **more}


def _items(items: Iterable[tuple[Any, Any]], within: frozenset[int]) -> list[Json]:
    return sorted(([_held(key, within), _held(value, within)] for key, value in items), key=_sorting)


def _sorting(value: Json) -> str:
    return json_text(value, canonical=True)


def _function(function: Any, within: frozenset[int]) -> Json:
    name = name_of(function)
    if isinstance(function, functools.partial):
        made = cast("functools.partial[Any]", function)
        held = [_held(part, within) for part in (made.func, made.args, made.keywords, vars(made))]
        return _tagged("partial", held)
    if isinstance(function, MethodType):
        return _tagged(name, [_held(function.__self__, within), _held(function.__func__, within)])
    if isinstance(function, FunctionType):
        cells = [_held(_content(cell), within) for cell in function.__closure__ or ()]
        own = {key: value for key, value in vars(function).items() if key != "__wrapped__"}
        held = [_held(part, within) for part in (function.__defaults__, function.__kwdefaults__, own)]
        return _tagged(name, [*_code(function.__code__)], cells=cells, held=held)
    inner = [getattr(function, name, None) for name in ("__self__", "__wrapped__")]  # of what functools.cache makes
    return _tagged(name, [_held(None if isinstance(one, ModuleType) else one, within) for one in inner])


def _class(cls: type[Any], within: frozenset[int]) -> Json:
    """A class by its name and the code of its methods, so that two of one name differ; not by its other attributes,
    which a program changes. One that was made inside a function also by what its methods hold."""
    if cls.__module__ in sys.stdlib_module_names:
        return _tagged("class", name_of(cls))
    functions = {name: one for name, one in vars(cls).items() if isinstance(one, FunctionType)}
    held = "<locals>" in cls.__qualname__
    methods = {name: _held(one, within) if held else [*_code(one.__code__)] for name, one in functions.items()}
    bases: list[Json] = [_held(base, within) for base in cls.__bases__ if base is not object]
    return _tagged("class", name_of(cls), methods={"items": [[*pair] for pair in methods.items()]}, bases=bases)


def _object(value: Any, within: frozenset[int]) -> Json:
    """An object by its class, its attributes, and what `pickle` would keep of it."""
    cls = cast("type[Any]", type(value))
    if cls is object or getattr(value, "nbytes", 0) > LARGE:
        raise InvalidInput(f"{cls.__name__}: nothing identifies it")
    kind = _class(cls, within)
    if isinstance(value, Enum):
        return {"is": kind, "of": [value.name, _held(value.value, within)]}
    if cls.__module__ in sys.stdlib_module_names:  # whose attributes may be caches
        return {"is": kind, "of": _reduced(value, cls, within)}
    has = _held(_attributes(value, cls), within)
    return {"is": kind, "has": has, "of": None if _is_open(cls) else _reduced(value, cls, within)}


def _is_open(cls: type[Any]) -> bool:
    """Whether the attributes of an object are all that it holds: no base of its class is a type of the interpreter or
    of a compiled module."""
    root = cls
    while root.__base__ not in (object, None):
        root = root.__base__
    names = vars(root)
    return bool(root.__flags__ & _IN_PYTHON) and ("__slots__" in names or {"__dict__", "__weakref__"} <= names.keys())


def _reduced(value: Any, cls: type[Any], within: frozenset[int]) -> Json:
    """What `pickle` would keep. Raises `InvalidInput` for what cannot be pickled."""
    try:
        reduce: Callable[[Any], Any] | None = copyreg.dispatch_table.get(cls)
        made: Any = reduce(value) if reduce is not None else value.__reduce_ex__(4)
    except Exception as error:
        raise InvalidInput(f"{cls.__name__} has no JSON form: {error}") from error
    if isinstance(made, str):  # the name of what there is once
        return made
    function, args, state, items, pairs, *_ = (*made, None, None, None, None)
    listed = _held(None if items is None else list(items), within)
    paired: Json = None
    if pairs is not None:
        paired = _held(list(pairs), within) if isinstance(value, OrderedDict) else _items(pairs, within)
    return [name_of(function), _held(args, within), _held(state, within), listed, paired]


def _attributes(value: Any, cls: type[Any]) -> dict[str, Any]:
    """All attributes of an object, also those that it leaves out of a pickle, but for what properties have cached."""
    names, cached = set[str](getattr(value, "__dict__", ())), {"__dict__", "__weakref__"}
    for one in cls.__mro__:
        slots: Any = vars(one).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            private = name.startswith("__") and not name.endswith("__")
            names.add(f"_{one.__name__.lstrip('_')}{name}" if private else name)
        cached.update(name for name, of in vars(one).items() if isinstance(of, functools.cached_property))
    return {name: getattr(value, name) for name in sorted(names - cached) if hasattr(value, name)}


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


@lru_cache(maxsize=1000)
def _code(code: CodeType) -> tuple[Json, ...]:
    return code.co_code.hex(), list(code.co_names), [_constant(one) for one in code.co_consts]


def _constant(value: Any) -> Json:
    """A constant of the code, the same in each process: `repr` gives a set's items in an order that is not."""
    if isinstance(value, CodeType):
        return list(_code(value))
    if isinstance(value, tuple):
        return [_constant(one) for one in cast("tuple[Any, ...]", value)]
    if isinstance(value, frozenset):
        return sorted(repr(one) for one in cast("frozenset[Any]", value))
    return repr(value)
