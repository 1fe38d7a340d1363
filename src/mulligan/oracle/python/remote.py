"""Asks the candidate's process for the values, functions and objects of its code, over the wire.

What cannot cross is a stand-in here that equals no plain value, so an object that claims to equal everything is just an
unknown object (`objects`). Runs inside the sandbox, in the examiner, where no model code runs.
"""

from __future__ import annotations

import sys

from mulligan.oracle.python.objects import MATERIALIZE, Held, is_own, new, stand_in
from mulligan.oracle.python.wire import (
    MOST,
    NotPlain,
    TooMuch,
    change,
    decode,
    encode,
    escaped_name,
    is_a,
    kind_of,
    plain_name,
    stdlib_class,
    stdlib_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

CALL = "call"
REPR_ITEMS = 20
"""Items of an iterator that its repr shows."""
_OPERATES = frozenset({CALL, "operate", "attribute", "next", "copy"})
_TEXTUAL = frozenset({"__str__", "__repr__", "__format__", "__eq__", "__hash__"})
IN_PLACE = "in place"
"""The mark of an object that changed itself with a value of the tests, as by `cart += item`."""
_LOOKS_INSIDE = frozenset({"__len__", "__iter__", "__next__", "__getitem__", "__reversed__", "__enter__"})
_TAKES_INPUT = frozenset({"__getitem__", "__setitem__", "__delitem__", "__round__", "__exit__", "__setattr__"}) | {
    *("__delattr__", "__instancecheck__", "__subclasscheck__", "__format__", "__missing__"),
}
"""Special methods whose arguments are not values to compare with."""


class Stopped(BaseException):
    """Ends the test that runs. `Remote.stop` notes it, so that a test that catches it does not pass."""


class TimedOut(Stopped):
    """The candidate did not answer in time."""


class ProcessEnded(Stopped):
    """The candidate's process ended while it was asked."""


class Forgeable(Stopped):
    """The tests pass an argument that cannot cross, so they need the candidate in their process. Says why."""


class Refused(Stopped):
    """The candidate returned a value that cannot leave its process."""


class Undecided(Stopped):
    """The tests do something that cannot be judged from outside. Says why."""


def tests_line() -> str:
    """The line of the tests that runs, in words."""
    frame: Any = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_globals.get("__name__") != "tests":
        frame = frame.f_back
    return f"line {frame.f_lineno} of the tests" if frame else "a line of the tests"


class Remote:
    """Asks the candidate's process through `ask`, one line out and one line back."""

    asked: bool
    """Whether a value of the candidate has entered the tests."""
    stopped: Stopped | None
    """The first error that stopped the current test."""

    def __init__(self, ask: Callable[[str], str]) -> None:
        self._ask = ask
        self._known: dict[str, Any] = {}
        self._kinds: dict[str, Any] = {}
        self._lines: dict[str, Any] = {}
        self._shared: dict[str, list[Any]] = {}
        self.asked = False
        self.stopped = None

    def stop(self, error: Stopped) -> Stopped:
        """Note an error that stops the test. Returns it, to be raised."""
        self.stopped = self.stopped or error
        return error

    def undecided(self, why: str) -> Stopped:
        """Do the same with an `Undecided`. why: what the tests do, after 'line 3 of the tests'."""
        return self.stop(Undecided(f"{tests_line()} {why}"))

    def load(self, code: str) -> list[str]:
        """Load the code. Returns the names that it defines, and raises what loading it raised."""
        return self._result(self._exchange(["load", code]), {})

    def get(self, name: str) -> Any:
        """The function or value of this name. Raises `KeyError` when the code has none."""
        if name not in self._known:
            reply = self._exchange(["get", name])
            if reply[0] == "missing":
                raise KeyError(name)
            if reply[0] == "function":
                self._known[name] = Function(self, name)
            elif reply[0] == "exception":
                self._known[name] = self._exception(reply[1])
            else:
                self.asked = True
                value = self._result(reply, {})
                if not is_own(value):  # later it may have another value
                    return value
                self._known[name] = value
        return self._known[name]

    def call(self, function: Any, args: list[Any], named: dict[str, Any]) -> Any:
        reply = self._exchange([CALL, function, args, named])
        result = self._result(reply, {**dict(enumerate(args)), **named})
        return self._judged(function, result, "is called") if isinstance(function, Held) else result

    def attribute(self, item: Any, name: str, deciding: Any) -> Any:
        """The attribute of an object.

        deciding: for a method whose result may depend on an expected value, the type of that result.
        """
        result = self._result(self._exchange(["attribute", item, name]), {})
        if deciding and is_own(result):
            result = mixed(result, deciding)
        return self._judged(item, result, f"reads .{name} of")

    def operate(self, item: Any, name: str, *args: Any, trusted: bool = False) -> Any:
        """Call a special method. trusted: the caller judges the result."""
        result = self._result(self._exchange(["operate", name, item, list(args)]), dict(enumerate(args)))
        if result is NotImplemented or result is None or trusted or name in _TEXTUAL:
            return result
        if item.oracle_mixed == IN_PLACE and name in _LOOKS_INSIDE:
            return result
        if name in _TAKES_INPUT or all(map(is_own, args)):
            if item.oracle_mixed == IN_PLACE and name not in _TAKES_INPUT:
                if is_own(result) and kind_of(result).oracle_plain is None:
                    return mixed(result, IN_PLACE)
                raise self.undecided(
                    f"uses {name} of an object from the code, to which an operator has given a plain value"
                )
            return self._judged(item, result, f"uses {name} of")
        if is_own(result) and kind_of(result).oracle_plain is None:
            return mixed(result, IN_PLACE if result.oracle_token == item.oracle_token else True)
        raise self.undecided(
            f"uses {name} of an object from the code with a plain value, and that object could give any answer"
        )

    def copy(self, item: Any, how: str) -> Any:
        return self._judged(item, self._result(self._exchange(["copy", how, item]), {}), "copies")

    def _judged(self, item: Any, result: Any, what: str) -> Any:
        """Let an object that knows values of the tests return only another such object, or nothing."""
        how = item.oracle_mixed
        if not how or how == IN_PLACE or result is None:
            return result
        if how is not True and not is_own(result) and not isinstance(result, how):
            return result
        if is_own(result) and kind_of(result).oracle_plain is None:
            return mixed(result)
        raise self.undecided(f"{what} an object from the code, to which an operator has passed a plain value")

    def pull(self, token: str) -> Iterator[Any]:
        """The items of an iterator that the candidate holds."""
        more = True
        while more:
            reply = self._exchange(["next", Opaque(token)])
            if reply[0] != "items":
                self._result(reply, {})
            if len(reply) != 3 or not is_a(reply[1], list):
                raise self.stop(Refused("the returned value is not a reply"))
            _, items, more = reply
            yield from items

    def _exchange(self, request: list[Any]) -> list[Any]:
        if self._shared and request[0] in _OPERATES:
            self._share()
        try:
            line = encode(request, self._hold, MOST)
        except TooMuch as error:  # no reason to share a process: the candidate could have caused it
            raise self.undecided(f"hands over an argument that {error}") from None
        except NotPlain as error:
            raise self.stop(Forgeable(f"an argument {error}")) from None
        self.asked = self.asked or request[0] in _OPERATES
        try:
            reply = decode(self._ask(line), self._held, MOST)
            if not isinstance(reply, list) or not reply:
                raise NotPlain("is not a reply")
        except NotPlain as error:
            raise self.stop(Refused(f"what came back {error}")) from None
        return reply  # pyright: ignore[reportUnknownVariableType]

    def _share(self) -> None:
        """Send the changes of the tests in containers that both sides have."""
        for number, entry in self._shared.items():
            text = encode(entry[0], self._hold, MOST)
            if text != entry[1]:
                entry[1] = text
                self._exchange(["share", number, entry[0]])

    def _result(self, reply: list[Any], arguments: dict[int | str, Any]) -> Any:
        what, *rest = reply
        raised: BaseException | None = None
        try:
            if what in ("value", "raise"):
                value = self._effects(*rest, arguments=arguments)
                if what == "value":
                    return value
                raised = self._rebuilt(rest[0])
        except Exception:  # the reply has the right form, but its content does not
            raised = None
        if raised is not None:
            raise raised
        if what == "timeout":
            raise self.stop(TimedOut(*rest))
        if what == "gone":
            raise self.stop(ProcessEnded(*rest))
        if what == "unsupported":
            raise self.stop(Refused(f"the value that came back {rest[0] if rest else 'cannot be read'}"))
        raise self.stop(Refused("the returned value is not a reply"))

    def _effects(
        self,
        value: Any,
        changed: dict[Any, Any] | None = None,
        updates: dict[str, Any] | None = None,
        fresh: dict[Any, str] | None = None,
        same: Any = None,
        *,
        arguments: dict[int | str, Any],
    ) -> Any:
        """Apply the candidate's changes to the containers of the tests. Returns the value.

        Args:
            changed: the new contents of arguments, by their places.
            updates: the new contents of shared containers, by their numbers.
            fresh: the numbers of containers that are shared from now on, by their places; "" is the value.
            same: the place of the argument that is the value.
        """
        for place, content in (changed or {}).items():
            if place in arguments:
                change(arguments[place], content)
        for number, content in (updates or {}).items():
            if number in self._shared:
                entry = self._shared[number]
                change(entry[0], content)
                entry[1] = encode(entry[0], self._hold, MOST)
        if same in arguments:
            value = arguments[same]
        for place, number in (fresh or {}).items():
            if place in arguments:
                self._shared[number] = [arguments[place], encode(arguments[place], self._hold, MOST)]
            elif number in self._shared:
                value = self._shared[number][0]
            else:
                self._shared[number] = [value, encode(value, self._hold, MOST)]
        return value

    # --- what stays with the candidate --------------------------------------------------------------------------

    def _hold(self, value: Any) -> str | None:
        if is_own(value) or isinstance(value, Stream | Opaque):
            return value.oracle_token
        if isinstance(value, BaseException):
            return _exception_token(value, self._hold)
        if _only_iterates(kind_of(value)):
            return self._materialized(value)
        return None

    def _materialized(self, value: Any) -> str:
        items = [item for _, item in zip(range(MATERIALIZE + 1), value, strict=False)]
        if len(items) > MATERIALIZE:  # not a reason to share a process: the candidate may have made it long
            raise self.undecided(f"hands over an iterator over more than {MATERIALIZE:,} items")
        return " ".join((f"x{len(items)}", *(encode(item, self._hold, MOST) for item in items)))

    def _held(self, tag: str, rest: str, content: Any = None) -> Any:
        name, _, kind = rest.partition(":")
        if tag == "f":
            return Function(self, plain_name(rest))
        if tag == "I":
            return Stream(self, tag + rest)
        if tag == "r":
            return self._rebuilt(content)
        if tag not in "oqw" or not name or not kind:
            raise NotPlain("is not a value in the expected form")
        plain = kind_of(content) if tag == "w" else None
        token = f"{'o' if tag == 'w' else tag}{rest}"
        return new(self._kind(kind, plain), self, token, *(() if plain is None else (content,)))

    def _kind(self, number: str, plain: Any) -> Any:
        if number not in self._kinds:
            facts = self._result(self._exchange(["kind", Opaque(f"o{number}:")]), {})
            if not is_a(facts, list) or len(facts) != 5:
                raise NotPlain("has an unknown class")
            self._kinds.setdefault(number, stand_in(facts, plain))
        kind = self._kinds[number]
        if kind.oracle_plain is not plain:
            raise NotPlain("has a different class than before")
        return kind

    # --- exceptions ---------------------------------------------------------------------------------------------

    def _exception(self, line: Any) -> Any:
        """The class for a lineage: one of the standard library, if it is imported here, else a new one."""
        if is_a(line, str):
            kind = stdlib_class(line)
            return kind if isinstance(kind, type) and issubclass(kind, BaseException) else None
        number, name, bases = line
        if number not in self._lines:
            kinds = [kind for kind in map(self._exception, bases) if kind is not None]
            self._lines[number] = type(str(name), tuple(kinds) or (Exception,), self._methods())
        return self._lines[number]

    def _methods(self) -> dict[str, Any]:
        """The methods of a class of exceptions of the candidate. Only what it sent of an exception is known here."""

        def init(item: Any, *_: Any, **__: Any) -> None:
            raise self.undecided("creates an exception whose class the code defines")

        def lacks(item: Any, name: str) -> Any:
            if name.startswith(("__", "oracle_")):
                raise AttributeError(name)
            raise self.undecided(f"reads the attribute .{name} of an exception whose class the code defines")

        return {"__module__": "solution", "__init__": init, "__getattr__": lacks, "__str__": _message}

    def _rebuilt(self, failure: list[Any]) -> BaseException:
        """The exception that was raised, with its arguments and the place where it was raised."""
        line, args, attributes, message, at, text, cause, context, *number = failure
        kind = self._exception(line) or Exception
        try:
            values = decode(args, self._held)
            error: Any = kind.__new__(kind, *values)
            if type(init := _init(kind)) is type(object.__init__):
                init(error, *values)
            error.__dict__.update(decode(attributes, self._held))
        except Exception:
            error = kind.__new__(kind, message)
        if number:
            error.oracle_token = f"o{int(number[0])}:"
        error.oracle_message = str(message)
        name = line.rpartition(":")[2].rpartition(".")[2] if is_a(line, str) else line[1]
        error.oracle_place = [str(name), str(message), int(at), str(text)]
        if cause is not None:
            error.__cause__ = self._rebuilt(cause)
        if context is not None:
            error.__context__ = self._rebuilt(context)
        return error


class Opaque:
    """A token that is sent as it is."""

    def __init__(self, token: str) -> None:
        self.oracle_token = token


class Function:
    """A function of the candidate, called by its name."""

    oracle_own = True
    oracle_plain = None
    oracle_mixed = False

    def __init__(self, remote: Remote, name: str) -> None:
        self._remote = remote
        self.__name__ = self.__qualname__ = name
        self.oracle_token = "f" + escaped_name(name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._remote.call(self, list(args), named)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self.oracle_token == other.oracle_token

    def __hash__(self) -> int:
        return hash(self.oracle_token)

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


class Stream:
    """An iterator of the candidate, which is read only as far as the tests read it."""

    def __init__(self, remote: Remote, token: str) -> None:
        self._items = remote.pull(token)
        self._given: list[Any] = []
        self.oracle_token = token

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Any:
        value = next(self._items)
        if len(self._given) < REPR_ITEMS:
            self._given.append(value)
        return value

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        return _GENERATOR if self.oracle_token.endswith(":generator") else kind_of(self)

    def __repr__(self) -> str:
        return f"<{self.oracle_token.partition(':')[2]} that gave {', '.join(map(repr, self._given)) or 'nothing yet'}>"


_GENERATOR = type(_ for _ in ())


def _only_iterates(kind: Any) -> bool:
    """Whether this is a class of iterators that offer nothing else, unlike files."""
    return hasattr(kind, "__next__") and {name for name in dir(kind) if name[0] != "_"} <= set(dir(_GENERATOR))


def mixed(item: Any, how: Any = True) -> Any:
    """Mark a stand-in: a value of the tests went into it. Returns it."""
    if hasattr(item, "oracle_remote"):
        object.__setattr__(item, "oracle_mixed", how)
    return item


def _message(error: Any) -> str:
    return error.oracle_message


def _init(kind: Any) -> Any:
    """The `__init__` for exceptions of this class; for a class of the candidate, that of its base."""
    base: Any
    for base in kind.__mro__:
        if "__init__" in base.__dict__ and base.__module__ != "solution":
            return base.__init__
    return None


def _exception_token(error: BaseException, hold: Callable[[Any], str | None]) -> str | None:
    """The token for an exception that the candidate raised, or that is of the standard library."""
    if (token := getattr(error, "oracle_token", None)) is not None:
        return token
    name = stdlib_name(type(error))
    attributes = {key: value for key, value in vars(error).items() if not key.startswith("oracle_")}
    return name and "r " + encode([name, list(error.args), attributes], hold)
