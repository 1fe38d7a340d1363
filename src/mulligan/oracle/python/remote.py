"""The candidate as the examiner sees it: stand-ins that ask over the wire, and plain values that come back.

What cannot cross is an `Opaque` that equals only itself and has no attributes, so an object that claims to equal
everything is just an unknown object here. Runs inside the sandbox, in the examiner, where no model code runs.
"""

from __future__ import annotations

import builtins

from mulligan.oracle.python.wire import NotPlain, TooMuch, decode, encode, is_a, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

MATERIALIZE = 10_000
CALL = "call"
SHOWN = 20
"""Items of an iterator that its repr shows."""


class Stopped(BaseException):
    """Ends the test that runs. `Remote.stop` keeps it, so that a test which catches it fails all the same."""


class TimedOut(Stopped):
    """The candidate did not answer in time."""


class ProcessEnded(Stopped):
    """The candidate's process ended while it was asked."""


class Forgeable(Stopped):
    """The tests hand over what cannot cross: they need candidate and tests in one process. Says why."""


class Refused(Stopped):
    """The candidate gave what cannot leave its process."""


class Opaque:
    """An object that stays with the candidate: it can be handed back to the remote, and nothing else."""

    def __init__(self, token: str, remote: Remote) -> None:
        self.oracle_token = token
        self._remote = remote

    def __getattr__(self, name: str) -> Any:
        message = f"{self!r} stays in its own process: return plain values instead (asked for .{name})"
        if not name.startswith("__"):  # Python's own protocols ask for these of any object
            self._remote.stop(Refused(message))
        raise AttributeError(message)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and other.oracle_token == self.oracle_token

    def __hash__(self) -> int:
        return hash(self.oracle_token)

    def __repr__(self) -> str:
        return f"<object of type {self.oracle_token.partition(':')[2]}>"


class Remote:
    """Asks the candidate's process through `ask`, one line out and one line back."""

    asked: bool
    """Whether anything of the candidate's has entered the tests."""
    stopped: Stopped | None
    """The first that was raised in the test which runs."""

    def __init__(self, ask: Callable[[str], str]) -> None:
        self._ask = ask
        self._known: dict[str, Any] = {}
        self.asked = False
        self.stopped = None

    def stop(self, error: Stopped) -> Stopped:
        """The error, to be raised."""
        self.stopped = self.stopped or error
        return error

    def load(self, code: str) -> list[str]:
        """What the code defines. Raises what loading it raised."""
        return self._result(self._exchange(["load", code]), None)

    def get(self, name: str) -> Any:
        """The function or value of this name. Raises `KeyError` when the code has none."""
        if name not in self._known:
            reply = self._exchange(["get", name])
            if reply[0] == "missing":
                raise KeyError(name)
            if reply[0] == "function":
                self._known[name] = Function(self, name)
            else:
                self._known[name] = self._result(reply, None)
                self.asked = True
        return self._known[name]

    def call(self, function: Function, args: list[Any], named: dict[str, Any]) -> Any:
        reply = self._exchange([CALL, function, args, named])
        return self._result(reply, {**dict(enumerate(args)), **named})

    def pull(self, token: str) -> Iterator[Any]:
        """The items of an iterator that the candidate holds."""
        more = True
        while more:
            reply = self._exchange(["next", Opaque(token, self)])
            if reply[0] != "items":
                self._result(reply, None)
            if len(reply) != 3 or not is_a(reply[1], list):
                raise self.stop(Refused("what came back is not a reply"))
            _, items, more = reply
            yield from items

    def _exchange(self, request: list[Any]) -> list[Any]:
        try:
            line = encode(request, self._hold)
        except TooMuch as error:  # no reason to change the path: the candidate could have made it so
            raise self.stop(Refused(f"an argument {error}")) from None
        except NotPlain as error:
            raise self.stop(Forgeable(f"an argument {error}")) from None
        self.asked = self.asked or request[0] == CALL
        try:
            reply = decode(self._ask(line), self._held)
            if not isinstance(reply, list) or not reply:
                raise NotPlain("is not a reply")
        except NotPlain as error:
            raise self.stop(Refused(f"what came back {error}")) from None
        return reply  # pyright: ignore[reportUnknownVariableType]

    def _result(self, reply: list[Any], given: dict[int | str, Any] | None) -> Any:
        what, *rest = reply
        raised: BaseException | None = None
        try:
            if what == "value" and len(rest) == 2 and is_a(rest[1], dict):
                changed: dict[Any, Any] = rest[1]
                for place, value in changed.items():
                    if given is not None and place in given:
                        change(given[place], value)
                return rest[0]
            if what == "raise" and len(rest) == 5:
                raised = rebuilt(*rest)
        except Exception:  # the reply is of the right form, and what it holds is not
            raised = None
        if raised is not None:
            raise raised
        if what == "timeout":
            raise self.stop(TimedOut(*rest))
        if what == "gone":
            raise self.stop(ProcessEnded(*rest))
        if what == "unsupported":
            raise self.stop(Refused(f"the value that came back {rest[0] if rest else 'cannot be read'}"))
        raise self.stop(Refused("what came back is not a reply"))

    def _hold(self, value: Any) -> str | None:
        if isinstance(value, Opaque | Function | Stream):
            return value.oracle_token
        if hasattr(kind_of(value), "__next__"):
            items = [item for _, item in zip(range(MATERIALIZE + 1), value, strict=False)]
            if len(items) > MATERIALIZE:
                raise TooMuch(f"is an iterator over more than {MATERIALIZE:,} items")
            return " ".join((f"x{len(items)}", *(encode(item, self._hold) for item in items)))
        return None

    def _held(self, tag: str, rest: str) -> Any:
        if tag == "f":
            return Function(self, rest)
        return Stream(self, tag + rest) if tag == "I" else Opaque(tag + rest, self)


class Function:
    """A function or class of the candidate's, by name."""

    def __init__(self, remote: Remote, name: str) -> None:
        self._remote = remote
        self.__name__ = self.__qualname__ = name
        self.oracle_token = "f" + name

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._remote.call(self, list(args), named)

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


class Stream:
    """An iterator of the candidate's, read as far as the tests read."""

    def __init__(self, remote: Remote, token: str) -> None:
        self._items = remote.pull(token)
        self._given: list[Any] = []
        self.oracle_token = token

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Any:
        item = next(self._items)
        if len(self._given) < SHOWN:
            self._given.append(item)
        return item

    def __repr__(self) -> str:
        return f"<{self.oracle_token.partition(':')[2]} that gave {', '.join(map(repr, self._given)) or 'nothing yet'}>"


def rebuilt(names: list[str], args: str, message: str, line: int, text: str) -> BaseException:
    """The builtin exception nearest to the one that rose, with its arguments, marked with where it rose."""
    kinds = (getattr(builtins, str(name), None) for name in names)
    kind = next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseException)), Exception)
    try:
        error = kind(*decode(args))
    except Exception:
        error = Exception(message)
    error.oracle_place = [str(names[0]), str(message), int(line), str(text)]  # type: ignore[attr-defined]
    return error


def change(old: Any, new: Any) -> None:
    """Makes `old` what the candidate made of it, in place and inside as far as the shapes agree."""
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
    return type(before) is type(after) and isinstance(before, list | dict | set | tuple | bytearray)
