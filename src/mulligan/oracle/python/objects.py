"""Stand-ins for objects that stay in the candidate's process, with the special methods of the object's class.

What they can decide is limited, because the code behind them may lie (design/118). They never learn what the tests
compare them with: `==` with a plain value is false without a question. If the answer of an operator alone would decide,
after a value of the tests went into it, there is no verdict. Runs inside the sandbox, in the examiner.
"""

# Values of any kind: nothing here is known to a type checker.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false
from __future__ import annotations

import sys

from mulligan.oracle.python.wire import is_a, kind_of, stdlib_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mulligan.oracle.python.remote import Remote

MATERIALIZE = 10_000
"""Items of an iterator that are read at once."""
_TEXT = ("__str__", "__repr__", "__format__")
_COMPARING = ("__lt__", "__le__", "__gt__", "__ge__")
_ARITHMETIC = tuple(
    f"__{side}{name}__"
    for side in ("", "r", "i")
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul"),
        *("and", "or", "xor", "lshift", "rshift"),
    )
)
_OPERATORS = frozenset(_COMPARING + _ARITHMETIC)
_OTHER = (
    *("__abs__", "__neg__", "__pos__", "__invert__", "__int__", "__float__", "__complex__", "__index__", "__round__"),
    *("__trunc__", "__floor__", "__ceil__", "__len__", "__getitem__", "__setitem__", "__delitem__", "__iter__"),
    *("__next__", "__reversed__", "__enter__", "__bytes__", "__fspath__", "__bool__", "__missing__"),
    *("__instancecheck__", "__subclasscheck__", "__hash__"),
)
_DECIDING: dict[str, Any] = {
    **dict.fromkeys(("startswith", "endswith", "isdisjoint", "issubset", "issuperset"), bool),
    **dict.fromkeys(("difference", "symmetric_difference", "intersection", "union"), (set, frozenset)),
    **dict.fromkeys(("removeprefix", "removesuffix", "strip", "lstrip", "rstrip", "replace"), str),
}
"""Methods of plain values whose result can show whether an argument is the right value; and the result's type."""
_ASKED = frozenset({"__dict__", "__name__", "__qualname__", "__doc__", "__wrapped__", "__members__", "__cause__"}) | {
    *("__context__", "__notes__", "__call__", "__self__", "__func__", "__traceback__", "__annotations__"),
}
"""Special attributes that tests may read. Python itself asks for all others."""


_SLOTS = ("oracle_remote", "oracle_token", "oracle_mixed")


class Held:
    """Stands for an object of the candidate."""

    __slots__ = ()
    oracle_remote: Remote
    oracle_token: str
    oracle_mixed: Any
    """Whether a value of the tests went into it by an operator, so that it may know what is expected of it. For a
    method: the type of a result that may know it."""
    oracle_own = True
    oracle_near: Any = None
    oracle_plain: Any = None
    oracle_silent = False
    """Whether its text is only its address."""
    oracle_inherits = False
    """Whether its `==` is that of a class of the standard library, such as `Mapping`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name not in _ASKED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.oracle_remote.attribute(self, name, _DECIDING.get(name))

    def __setattr__(self, name: str, value: Any) -> None:
        self.oracle_remote.operate(self, "__setattr__", name, value)

    def __delattr__(self, name: str) -> None:
        self.oracle_remote.operate(self, "__delattr__", name)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        kind = kind_of(self)
        return kind.oracle_near or kind

    def __copy__(self) -> Any:
        return self.oracle_remote.copy(self, "copy")

    def __deepcopy__(self, _: Any) -> Any:
        return self.oracle_remote.copy(self, "deepcopy")

    def __reduce_ex__(self, _: Any) -> Any:
        raise self.oracle_remote.undecided("pickles an object from the code")


def new(kind: Any, remote: Remote, token: str, *content: Any) -> Any:
    """Make a stand-in of this class."""
    plain = kind.oracle_plain
    item = object.__new__(kind) if plain is None else plain.__new__(kind, *content)
    if plain in (list, set, dict):
        plain.__init__(item, *content)
    for name, value in zip(_SLOTS, (remote, token, False), strict=True):
        object.__setattr__(item, name, value)
    return item


def stand_in(facts: list[Any], plain: Any) -> Any:
    """Make the class of the stand-ins for the objects of one class of the candidate.

    Args:
        facts: what `server.facts` says of the class.
        plain: the plain type whose value its objects have, if any.
    """
    name, special, without, near, names = facts
    space: dict[str, Any] = {"__module__": "solution", "oracle_plain": plain}
    if plain is None:
        space["__slots__"] = _SLOTS
        space["oracle_near"] = _NEAR.get(near) or stdlib_class(near)
        space.update({method: METHODS[method] for method in _TEXT})
        space["oracle_silent"] = {"__str__", "__repr__"}.isdisjoint(special)
        space["oracle_inherits"] = "inherited eq" in special
        space["__eq__"], space["__hash__"] = _same, _by_token
    else:  # most of them have no room for slots
        space["__class__"] = property(kind_of)
        space["__dict__"] = _Own("__dict__")
    for method in special:
        if method in METHODS:
            space[method] = _checked(method) if plain and method in _OPERATORS else METHODS[method]
    if "__eq__" in special and "__hash__" not in special:
        space["__hash__"] = plain.__hash__ if plain else None
    space.update({method: None for method in without if method in METHODS})
    for attribute in names:
        space.setdefault(str(attribute), _Own(str(attribute)))
    return type(str(name), (Held,) if plain is None else (plain, Held), space)


class _Own:
    """An attribute that a subclass of a plain type defines itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, item: Any, kind: Any = None) -> Any:
        return self if item is None else item.oracle_remote.attribute(item, self._name, _DECIDING.get(self._name))


def _same(self: Any, other: Any) -> Any:
    _comparable(self, other)
    return self.oracle_token == other.oracle_token if is_own(other) else NotImplemented


def _by_token(self: Any) -> int:
    return hash(self.oracle_token)


def _equal(self: Any, other: Any) -> Any:
    """The candidate is asked only about two of its own objects."""
    _comparable(self, other)
    if is_own(other):
        return self.oracle_remote.operate(self, "__eq__", other)
    if kind_of(self).oracle_inherits and other is not None:
        raise self.oracle_remote.undecided("compares an object from the code with a plain value")
    plain = kind_of(self).oracle_plain
    return plain.__eq__(self, other) if plain else NotImplemented


def _comparable(self: Any, other: Any) -> None:
    """Refuse to compare with a function or class of Python: whether it is the same object cannot be told here."""
    if callable(other) and not is_own(other) and callable(self):
        remote: Any = self.oracle_remote  # pyright: ignore[reportFunctionMemberAccess]
        raise remote.undecided("compares a function or class from the code with one of Python's")


def is_own(value: Any) -> bool:
    """Whether a value is a stand-in. `isinstance` would ask for its `__class__`."""
    return getattr(kind_of(value), "oracle_own", False)


def _forwarded(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        return self.oracle_remote.operate(self, name, *args)

    return method


def _checked(name: str) -> Callable[..., Any]:
    """An operator that a subclass of a plain type defines itself.

    The candidate is asked about two of its own objects. With a plain value, it has to answer as the plain type.
    """

    def method(self: Any, *args: Any) -> Any:
        if all(map(is_own, args)):
            return self.oracle_remote.operate(self, name, *args)
        result = self.oracle_remote.operate(self, name, *args, trusted=True)
        expected = getattr(kind_of(self).oracle_plain, name, _nothing)(self, *args)
        if expected is not result and not expected == result:
            raise self.oracle_remote.undecided(f"uses an operator ({name}) from the code with a plain value")
        return result

    return method


def _nothing(*_: Any) -> Any:
    return NotImplemented


def _contains(self: Any, item: Any) -> Any:
    """An answer about a plain value has to agree with the items of the object."""
    answer = self.oracle_remote.operate(self, "__contains__", item, trusted=True)
    if is_own(item) and not self.oracle_mixed:
        return answer
    if hasattr(type(self), "__iter__"):
        items = [own_item for _, own_item in zip(range(MATERIALIZE), self, strict=False)]
        if len(items) < MATERIALIZE and any(own_item is item or own_item == item for own_item in items) == bool(answer):
            return answer
    raise self.oracle_remote.undecided("asks an object from the code whether a plain value is in it")


def _call(self: Any, *args: Any, **named: Any) -> Any:
    return self.oracle_remote.call(self, list(args), named)


def _exit(self: Any, kind: Any, error: Any, trace: Any) -> bool:
    """It does not see what ends the test. If it catches an error, an assert may be skipped, so there is no verdict."""
    if error is not None and not is_a(error, Exception | GeneratorExit):
        return False
    if self.oracle_remote.operate(self, "__exit__", error) and error is not None:
        raise self.oracle_remote.undecided(f"leaves it to the code whether {type(error).__name__} is caught")
    return False


METHODS: dict[str, Any] = {name: _forwarded(name) for name in (*_TEXT, *_OPERATORS, *_OTHER)}
METHODS.update(__eq__=_equal, __contains__=_contains, __call__=_call, __exit__=_exit)
_NEAR = {
    f"builtins:{kind.__name__}": kind for kind in (type(_call), type([].append), type(METHODS.get), type(sys), type)
}
_NEAR["builtins:method"] = type(Held().__reduce_ex__)
