"""Serves the candidate's code in a process of its own: calls its functions, and operates on the objects that stay here.

It shares the process with hostile code, so it is not trusted: the examiner reads all that it sends as plain values. It
knows nothing of the tests. Runs inside the sandbox, so it imports only what is quick to import.
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
"""Containers that both sides have and that are kept equal, at most; the oldest are given up."""
ALONE = 2
"""What `getrefcount` counts for a value to which nothing else refers."""
_FUNCTIONS = (type(channel), type(len))
_PLAIN = frozenset(base for base, _ in BASES)
_NOT_OWN = frozenset(
    f"__{name}__"
    for name in (  # noqa: SIM905
        "module doc slots dict weakref init new annotations orig_bases parameters qualname firstlineno "
        "static_attributes match_args dataclass_fields dataclass_params reduce reduce_ex getnewargs"
    ).split()
)
"""What a class can define without being more than the plain value that its objects have."""


class Server:
    """Answers requests. Keeps the objects that cannot cross: those that the code names by name, others by number."""

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
        """Do the work. Returns the value or the exception, and the arguments that changed; and if there are any, the
        shared containers that changed, those that are new, and the argument that is the value itself."""
        containers = {
            place: value for place, value in args.items() if type(value).__name__ in MUTABLE or type(value) is tuple
        }
        before = {place: encode(value, self.hold, MOST) for place, value in containers.items()}
        counts = {place: sys.getrefcount(value) for place, value in containers.items()}
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
            for place, value in containers.items():
                same = place if value is result else same
            for place, value in containers.items():
                if sys.getrefcount(value) > counts[place] + (value is result) * 2:
                    self._share(place, value, fresh)
            if retained and same is None:
                self._share("", result, fresh)
        changed = {
            place: value for place, value in containers.items() if encode(value, self.hold, MOST) != before[place]
        }
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
            text = encode(value, self.hold, MOST)
            if text != last:
                updates[number] = value
                self.shared[number] = (value, text)
        return updates

    def _batch(self, iterator: Any) -> list[Any]:
        """The next items of an iterator, few enough that it may be slow or endless."""
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
            self.raising[id(iterator)] = error  # raised after the items before it
            return ["items", items, True]
        return ["items", items, False]

    def _number(self, value: Any) -> str:
        number = self.numbers.setdefault(id(value), str(self.first + len(self.kept)))
        self.kept[number] = value
        return number

    def hold(self, value: Any) -> str | None:
        """The token for what stays here; None for what can cross.

        It begins with f for a function with a name, q for another object with a name, I for an iterator, o for any
        other object, w for an object that also has a plain value, r for an exception.
        """
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
    """The plain type that a class is a subclass of."""
    return next((base for base in kind.__mro__ if base in _PLAIN), None)


def own_classes(kind: Any) -> list[Any]:
    """The class and its bases up to the plain or well-known type that it is a subclass of."""
    name = known_base(kind)
    ends = (
        at for at, base in enumerate(kind.__mro__) if base in _PLAIN or f"{base.__module__}.{base.__qualname__}" == name
    )
    return list(kind.__mro__[: next(ends, None)])


def adds(value: Any, kind: Any) -> bool:
    """Whether a value is more than the plain value that it has."""
    own = own_classes(kind)
    fields = getattr(kind, "_fields", ())
    if fields and len(own) == 1:  # a named tuple
        return False
    return bool(getattr(value, "__dict__", None)) or any(not _NOT_OWN.issuperset(vars(base)) for base in own)


def facts(kind: Any) -> list[Any]:
    """What the other side has to know of a class: its name, the special methods that it has and those that it sets to
    None, the nearest class of the standard library, and the names of its own attributes.

    Of a subclass of a plain type, only what it defines itself counts.
    """
    base = base_of(kind)
    classes = kind.__mro__[: kind.__mro__.index(base)] if base else kind.__mro__
    methods: dict[str, Any] = {}
    for one in reversed([one for one in classes if one is not object]):
        methods.update(vars(one))
    special = [name for name, value in methods.items() if name.startswith("__") and value is not None]
    absent = [name for name, value in methods.items() if name.startswith("__") and value is None]
    names = [name for name in methods if not name.startswith("__")] if base else []
    if "__eq__" in methods and not base:
        owner = next(one for one in kind.__mro__ if "__eq__" in vars(one))
        special += ["inherited eq"] if stdlib_name(owner) else []
    nearest = next((name for one in kind.__mro__ if one is not object and (name := near_name(one))), "")
    return [str(kind.__name__), special, absent, nearest, names]


def near_name(kind: Any) -> str:
    if kind in _PLAIN or f"{kind.__module__}.{kind.__qualname__}" in KNOWN:
        return ""
    if kind.__module__ == "builtins" and not issubclass(kind, BaseException):
        return f"builtins:{kind.__name__}"
    return stdlib_name(kind) or ""


def serve() -> None:
    """Answer requests until the other side closes the channel."""
    requests, send = channel()
    server = Server()
    for line in requests:
        send(server.answer(line.decode("ascii").rstrip("\n")))
