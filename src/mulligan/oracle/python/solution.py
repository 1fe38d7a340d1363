"""Loads the candidate's code, and in a process of its own serves calls to it: values in, values out.

It shares its process with hostile code, so nothing here is trusted: whatever it sends is read as plain values by the
examiner. It knows nothing of the tests. Runs inside the sandbox: no import that costs.
"""

from __future__ import annotations

import posix
import sys

from mulligan.oracle.python.wire import NotPlain, decode, encode, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedReader
    from typing import Any

FILE = "solution.py"
MUTABLE = frozenset({"list", "dict", "set", "bytearray", "deque", "defaultdict", "Counter", "OrderedDict", "ndarray"})
BATCH = 64


def channel() -> tuple[BufferedReader, Callable[[str], None]]:
    """Reading and writing lines on descriptors of our own; 0, 1 and 2 lead nowhere from now on."""
    reader = open(posix.dup(0), "rb")  # noqa: SIM115  (for as long as the process lives)
    write_to = posix.dup(1)
    null = posix.open("/dev/null", posix.O_RDWR)
    for descriptor in (0, 1, 2):
        posix.dup2(null, descriptor)

    def send(line: str) -> None:
        data = line.encode("ascii", "backslashreplace") + b"\n"
        while data:
            data = data[posix.write(write_to, data) :]

    return reader, send


def load(code: str) -> dict[str, Any]:
    """Runs the code as the module `solution`; what it raises is raised."""
    module = type(sys)("solution")
    sys.modules["solution"] = module
    module.__file__ = FILE
    exec(compile(code, FILE, "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def defined(space: dict[str, Any]) -> list[str]:
    """The names that the code itself defines: no imports, nothing private."""
    return [
        name
        for name, value in list(space.items())
        if not name.startswith("_")
        and not isinstance(value, type(sys))
        and getattr(value, "__module__", "solution") == "solution"
    ]


def failure(error: BaseException, code: str) -> list[Any]:
    """An exception as plain values: type names (nearest first), arguments, message, line of the code and its text."""
    names = [kind.__name__ for kind in type(error).__mro__ if kind is not object]
    try:
        message = str(error)[:2000]
    except BaseException:
        message = "(its message cannot be shown)"
    line, text = place(error, code)
    try:
        args = encode(list(error.args))
    except BaseException:
        args = encode([message])
    return [names, args, message, line, text]


def place(error: BaseException, code: str) -> tuple[int, str]:
    """Where in the candidate's code it rose: line (0 for nowhere) and its text."""
    line = 0
    if isinstance(error, SyntaxError) and error.filename == FILE:
        line = error.lineno or 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    lines = code.splitlines()
    return line, lines[line - 1].strip()[:200] if 0 < line <= len(lines) else ""


class Server:
    """Answers requests: load, get, call, next. Holds what cannot cross: functions by name, the rest by number."""

    def __init__(self) -> None:
        self.code = ""
        self.space: dict[str, Any] = {}
        self.kept: dict[str, Any] = {}
        self.names: dict[int, str] = {}
        self.numbers: dict[int, str] = {}
        self.first = hash(object()) % 10**9

    def answer(self, line: str) -> str:
        try:
            reply = self._answer(decode(line, self.held))
        except BaseException as error:
            reply = ["raise", *failure(error, self.code)]
        try:
            return encode(reply, self.hold)
        except NotPlain as error:
            return encode(["unsupported", str(error)])
        except BaseException as error:
            return encode(["unsupported", f"cannot be read: {type(error).__name__}"])

    def _answer(self, request: list[Any]) -> list[Any]:
        what, *rest = request
        if what == "load":
            self.code = rest[0]
            self.space = load(self.code)
            self.names = {id(value): name for name, value in self.space.items()}
            return ["value", defined(self.space), {}]
        if what == "get":
            name = rest[0]
            if name not in self.space:
                return ["missing"]
            value = self.space[name]
            return ["function"] if callable(value) else ["value", value, {}]
        if what == "next":
            return self._batch(rest[0])
        return self._call(*rest)

    def _call(self, function: Any, args: list[Any], named: dict[str, Any]) -> list[Any]:
        given: dict[int | str, Any] = {
            place: value
            for place, value in (*enumerate(args), *named.items())
            if type(value).__name__ in MUTABLE or type(value) is tuple
        }
        before = {place: encode(value, self.hold) for place, value in given.items()}
        result = function(*args, **named)
        changed = {place: value for place, value in given.items() if encode(value, self.hold) != before[place]}
        return ["value", result, changed]

    def _batch(self, iterator: Any) -> list[Any]:
        """The next items, few enough that a slow or endless iterator is no trap."""
        from time import monotonic

        items: list[Any] = []
        ends = monotonic() + 0.01
        for item in iterator:
            items.append(item)
            if len(items) >= BATCH or monotonic() > ends:
                return ["items", items, True]
        return ["items", items, False]

    def hold(self, value: Any) -> str | None:
        """The token for what stays here: f function by name, I iterator, o any other object."""
        if (name := self.names.get(id(value))) is not None and name.isascii():
            return "f" + name
        number = self.numbers.setdefault(id(value), str(self.first + len(self.kept)))
        self.kept[number] = value
        name = type(value).__name__
        return (
            f"{'I' if hasattr(kind_of(value), '__next__') else 'o'}{number}:{name if name.isidentifier() else 'object'}"
        )

    def held(self, tag: str, rest: str) -> Any:
        return self.space[rest] if tag == "f" else self.kept[rest.partition(":")[0]]


def serve() -> None:
    """Until the other side hangs up."""
    requests, send = channel()
    server = Server()
    for line in requests:
        send(server.answer(line.decode("ascii").rstrip("\n")))
