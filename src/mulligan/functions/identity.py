"""What tells functions and their arguments from others, in any process."""

from __future__ import annotations

import functools
import inspect
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.functions.results import plain

_IN_PYTHON = 1 << 9
"""The flag of classes that are not part of the interpreter or of a compiled module (Py_TPFLAGS_HEAPTYPE)."""


def identity(value: Any) -> Json:
    """What is the same for equal values in any process, functions among them.

    Functions differ where their code does, or a value that they hold: in a closure, among their defaults, as an
    argument of a `partial`, in the object that they are a method of. Raises `InvalidInput` for what has no such form.
    """
    try:
        return _held(value, frozenset())
    except RecursionError:
        raise InvalidInput("a list that holds itself has no JSON form") from None


def _identity(function: Any, within: frozenset[int]) -> Json:
    if id(function) in within:  # it holds itself
        return name_of(function)
    inside = within | {id(function)}
    if isinstance(function, functools.partial):
        made = cast("functools.partial[Any]", function)
        return ["partial", _identity(made.func, inside), _held(made.args, inside), _held(made.keywords, inside)]
    if isinstance(function, (MethodType, BuiltinFunctionType)) and not isinstance(function.__self__, ModuleType):
        return [name_of(function), _held(function.__self__, inside), *_code_of(function)]
    if isinstance(function, FunctionType):
        cells = [_held(_content(cell), inside) for cell in function.__closure__ or ()]
        defaults = [_held(function.__defaults__, inside), _held(function.__kwdefaults__, inside)]
        return [name_of(function), *_code_of(function), cells, defaults]
    wrapped = getattr(function, "__wrapped__", None)  # such as what functools.cache makes
    if wrapped is not None:
        return [name_of(function), _identity(wrapped, inside)]
    if inspect.isroutine(function) or isinstance(function, type):
        return [name_of(function)]
    of = cast("type[Any]", type(function))
    methods = [getattr(of, name, None) for name in ("__call__", "evaluate")]
    return [name_of(function), *[_code_of(method) for method in methods], _state(function, inside)]


def name_of(function: Any) -> str:
    """Module and name of a function, or those of an object's class."""
    named = cast(Any, function if hasattr(function, "__qualname__") else type(function))
    return f"{getattr(named, '__module__', '')}.{named.__qualname__}"


def _held(value: Any, within: frozenset[int]) -> Json:
    """A value that a function holds."""
    if isinstance(value, (list, tuple)):
        return [_held(one, within) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {"items": [[_held(key, within), _held(one, within)] for key, one in items]}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted((_held(one, within) for one in cast("set[Any]", value)), key=repr)}
    if isinstance(value, ModuleType):
        return value.__name__
    if callable(value):
        return _identity(value, within)
    return _state(value, within)


def _state(value: Any, within: frozenset[int]) -> Json:
    try:
        return plain(value)
    except InvalidInput:
        if not hasattr(value, "__dict__") or not all(one.__flags__ & _IN_PYTHON for one in type(value).__mro__[:-1]):
            raise  # what it is may lie where Python does not see it
        return [name_of(value), _held(vars(value), within | {id(value)})]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _code_of(function: Any) -> list[Json]:
    code = getattr(function, "__code__", None)
    return list(_code(code)) if isinstance(code, CodeType) else []


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
