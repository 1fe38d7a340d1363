"""Serves the candidate's code in a process of its own: values in, values out, and operations on what stays here.

It shares its process with hostile code, so nothing here is trusted: whatever it sends is read as plain values by the
examiner. It knows nothing of the tests. Runs inside the sandbox: no import that costs.
"""

# Values of any kind: nothing here is known to a type checker.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false
from __future__ import annotations

import sys

from mulligan.oracle.python.solution import channel, defined, failure, lineage, load
from mulligan.oracle.python.wire import (
    BASES,
    KNOWN,
    MOST,
    NotPlain,
    change,
    decode,
    encode,
    escaped_name,
    kind_of,
    known_base,
    plain_name,
    stdlib_class,
    stdlib_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MUTABLE = frozenset({"list", "dict", "set", "bytearray", "deque", "defaultdict", "Counter", "OrderedDict", "ndarray"})
BATCH = 64
SHARED = 32
"""Containers that both sides hold and that are kept alike, the newest."""
ALONE = 2
"""References to a value that nobody else holds, as `getrefcount` counts them."""
_FUNCTIONS = (type(channel), type(len))
_PLAIN = frozenset(base for base, _ in BASES)
_NOT_OWN = frozenset({"__module__", "__doc__", "__slots__", "__dict__", "__weakref__", "__init__", "__new__"}) | {
    *(
        "__annotations__",
        "__orig_bases__",
        "__parameters__",
        "__qualname__",
        "__firstlineno__",
        "__static_attributes__",
    ),
    *(
        "__match_args__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__reduce__",
        "__reduce_ex__",
        "__getnewargs__",
    ),
}
"""What a class may define without being more than the plain value that it holds."""


class Server:
    """Answers requests. Holds what cannot cross: what the code names by its name, the rest by number."""

    def __init__(self) -> None:
        self.code = ""
        self.space: dict[str, Any] = {}
        self.kept: dict[str, Any] = {}
        self.names: dict[int, str] = {}
        self.numbers: dict[int, str] = {}
        self.shared: dict[str, tuple[Any, str]] = {}
        self.raising: dict[int, BaseException] = {}
        self.first = hash(object()) % 10**9

    def answer(self, line: str) -> str:
        try:
            reply = self._answer(decode(line, self.held, MOST))
        except BaseException as error:
            reply = self._raised(error)
        try:
            return encode(reply, self.hold, MOST)
        except NotPlain as error:
            return encode(["unsupported", str(error)])
        except BaseException as error:
            return encode(["unsupported", f"cannot be read: {type(error).__name__}"])

    def _raised(self, error: BaseException) -> list[Any]:
        return ["raise", self._failure(error)]

    def _failure(self, error: BaseException) -> list[Any]:
        known = failure(error, self.code, self.hold)
        error.__traceback__ = None  # it holds all variables of the functions that it left
        return [*known, self._number(error)]

    def _answer(self, request: list[Any]) -> list[Any]:
        what, *rest = request
        match what:
            case "load":
                self.code = rest[0]
                self.space = load(self.code)
                self.names = {id(value): name for name, value in self.space.items()}
                return ["value", defined(self.space), {}]
            case "get":
                return self._get(*rest)
            case "next":
                return self._batch(rest[0])
            case "kind":
                return ["value", facts(rest[0]), {}]
            case "share":
                number, value = rest
                change(self.shared[number][0], value)
                self.shared[number] = (self.shared[number][0], encode(value, self.hold, MOST))
                return ["value", None, {}]
            case "attribute":
                return self._done(lambda: getattr(*rest), {})
            case "copy":
                how, item = rest
                return self._done(lambda: getattr(__import__("copy"), how)(item), {})
            case "operate":
                name, item, args = rest
                if name == "__exit__":
                    args = [type(args[0]), args[0], None] if args[0] is not None else [None] * 3
                method = getattr(kind_of(item), name)
                return self._done(lambda: method(item, *args), dict(enumerate(args)))
            case _:
                function, args, named = rest
                return self._done(lambda: function(*args, **named), {**dict(enumerate(args)), **named})

    def _get(self, name: str) -> list[Any]:
        if name not in self.space:
            return ["missing"]
        value = self.space[name]
        if isinstance(value, _FUNCTIONS):
            return ["function"]
        if isinstance(value, type) and issubclass(value, BaseException):
            return ["exception", lineage(value)]
        return self._done(lambda: self.space[name], {})

    def _done(self, work: Callable[[], Any], args: dict[int | str, Any]) -> list[Any]:
        """Does it, and says what came of it: value or exception, arguments that changed; where there are any, shared
        containers that changed and are new, and the argument that is the value itself."""
        given = {
            place: value for place, value in args.items() if type(value).__name__ in MUTABLE or type(value) is tuple
        }
        before = {place: encode(value, self.hold, MOST) for place, value in given.items()}
        counts = {place: sys.getrefcount(value) for place, value in given.items()}
        result = None
        fresh: dict[int | str, str] = {}
        same: int | str | None = None
        try:
            result = work()
            retained = sys.getrefcount(result) > ALONE
            reply: list[Any] = ["value", result]
        except BaseException as error:
            reply, retained = self._raised(error), False
        else:
            for place, value in given.items():
                same = place if value is result else same
            for place, value in given.items():
                if sys.getrefcount(value) > counts[place] + (value is result) * 2:
                    self._share(place, value, fresh)
            if retained and same is None:
                self._share("", result, fresh)
        changed = {place: value for place, value in given.items() if encode(value, self.hold, MOST) != before[place]}
        updates = self._updates() if self.shared else {}
        return [*reply, changed, updates, fresh, same] if updates or fresh or same is not None else [*reply, changed]

    def _share(self, place: int | str, value: Any, fresh: dict[int | str, str]) -> None:
        if type(value).__name__ in MUTABLE:
            number = self._number(value)
            self.shared.pop(number, None)
            self.shared[number] = (value, encode(value, self.hold, MOST))
            if len(self.shared) > SHARED:
                del self.shared[next(iter(self.shared))]
            fresh[place] = number

    def _updates(self) -> dict[str, Any]:
        updates: dict[str, Any] = {}
        for number, (value, last) in self.shared.items():
            now = encode(value, self.hold, MOST)
            if now != last:
                updates[number] = value
                self.shared[number] = (value, now)
        return updates

    def _batch(self, iterator: Any) -> list[Any]:
        """The next items, few enough that a slow or endless iterator is no trap."""
        from time import monotonic

        if (error := self.raising.pop(id(iterator), None)) is not None:
            raise error
        items: list[Any] = []
        ends = monotonic() + 0.01
        try:
            for item in iterator:
                items.append(item)
                if len(items) >= BATCH or monotonic() > ends:
                    return ["items", items, True]
        except BaseException as error:
            if not items:
                raise
            self.raising[id(iterator)] = error  # after the items that came before it
            return ["items", items, True]
        return ["items", items, False]

    def _number(self, value: Any) -> str:
        number = self.numbers.setdefault(id(value), str(self.first + len(self.kept)))
        self.kept[number] = value
        return number

    def hold(self, value: Any) -> str | None:
        """The token for what stays here: f function by name, q another named thing, I iterator, o any other object;
        w one that also holds a plain value, r an exception."""
        kind: Any = kind_of(value)
        name = self.names.get(id(value))
        if base_of(kind) is not None:
            return f"w{self._number(value)}:{self._number(kind)}" if adds(value, kind) else None
        if (known := known_base(kind)) is not None and not adds(value, kind):
            return f"v{known} " + encode(KNOWN[known][0](value), self.hold)
        if isinstance(value, BaseException):
            return "r " + encode(self._failure(value), self.hold)
        if kind in _FUNCTIONS and name is not None:
            return "f" + escaped_name(name)
        if hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools"):
            return f"I{self._number(value)}:{escaped_name(kind.__name__)}"
        if name is not None:
            return f"q{escaped_name(name)}:{self._number(kind)}"
        return f"o{self._number(value)}:{self._number(kind)}"

    def held(self, tag: str, rest: str, content: Any = None) -> Any:
        if tag == "r":
            return made_again(*content)
        name, _, _ = rest.partition(":")
        return self.space[plain_name(name)] if tag in "fq" else self.kept[name]


def made_again(name: str, args: list[Any], attributes: dict[str, Any]) -> BaseException:
    """An exception of the standard library that the tests raised."""
    __import__(name.partition(":")[0])
    kind = stdlib_class(name)
    error: BaseException = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


def base_of(kind: Any) -> Any:
    """The plain type that a class is made of."""
    return next((base for base in kind.__mro__ if base in _PLAIN), None)


def own_classes(kind: Any) -> list[Any]:
    """The class and its bases before the plain or well-known type that it is made of."""
    name = known_base(kind)
    ends = (
        at for at, one in enumerate(kind.__mro__) if one in _PLAIN or f"{one.__module__}.{one.__qualname__}" == name
    )
    return list(kind.__mro__[: next(ends, None)])


def adds(value: Any, kind: Any) -> bool:
    """Whether it is more than the plain value that it holds."""
    own = own_classes(kind)
    fields = getattr(kind, "_fields", ())
    if fields and len(own) == 1:  # a named tuple
        return False
    return bool(getattr(value, "__dict__", None)) or any(not _NOT_OWN.issuperset(vars(one)) for one in own)


def facts(kind: Any) -> list[Any]:
    """What the other side must know of a class: its name, the special methods that it has (with those of a plain type
    only its own), whether it compares by identity, the nearest class of the standard library, its own names."""
    base = base_of(kind)
    own = kind.__mro__[: kind.__mro__.index(base)] if base else kind.__mro__
    methods: dict[str, Any] = {}
    for one in reversed([one for one in own if one is not object]):
        methods.update(vars(one))
    special = [name for name, value in methods.items() if name.startswith("__") and value is not None]
    without = [name for name, value in methods.items() if name.startswith("__") and value is None]
    names = [name for name in methods if not name.startswith("__")] if base else []
    if "__eq__" in methods and not base:
        owner = next(one for one in kind.__mro__ if "__eq__" in vars(one))
        special += ["inherited eq"] if stdlib_name(owner) else []
    near = next((name for one in kind.__mro__ if one is not object and (name := near_name(one))), "")
    return [str(kind.__name__), special, without, near, names]


def near_name(kind: Any) -> str:
    if kind in _PLAIN or f"{kind.__module__}.{kind.__qualname__}" in KNOWN:
        return ""
    if kind.__module__ == "builtins" and not issubclass(kind, BaseException):
        return f"builtins:{kind.__name__}"
    return stdlib_name(kind) or ""


def serve() -> None:
    """Until the other side hangs up."""
    requests, send = channel()
    server = Server()
    for line in requests:
        send(server.answer(line.decode("ascii").rstrip("\n")))
