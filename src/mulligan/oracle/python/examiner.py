"""Runs the instrumented tests and reports test by test; the program of the examiner's process.

Outside path: the candidate is `Remote`, and no model code runs here. In-process path: the candidate is `Local`, and
shares this process, so what is reported can be forged. The nonce that makes a report a verdict is asked for only when
all tests are over. It knows nothing of wording: the report is plain values. No import that costs.
"""

from __future__ import annotations

import builtins
import posix
import sys
from time import monotonic

from mulligan.oracle.python.remote import Forgeable, ProcessEnded, Refused, Remote, Stopped, TimedOut, Undecided
from mulligan.oracle.python.runner import Runner
from mulligan.oracle.python.shim import install, is_skip
from mulligan.oracle.python.solution import channel, load, place
from mulligan.oracle.python.wire import decode, encode, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SHOWN = 500
"""Characters of one value that are reported; more is cut in the middle."""


class Local:
    """The candidate in this very process."""

    def __init__(self) -> None:
        self.asked = False
        self.stopped: Stopped | None = None
        self._space: dict[str, Any] = {}

    def load(self, code: str) -> list[str]:
        self.asked = True
        self._space = load(code)
        return [name for name in self._space if not name.startswith("_")]

    def get(self, name: str) -> Any:
        return self._space[name]


class MissingFunction:
    """Stands for a function that the candidate lacks."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise NameError(f"name {self._name!r} is not defined", name=self._name)


def short(value: Any) -> str:
    try:
        kind = kind_of(value)
        text = f"<object of type {kind.__name__}>" if getattr(kind, "oracle_silent", False) else repr(value)
    except BaseException as error:
        text = f"<{type(value).__name__}, which cannot be shown: {type(error).__name__}>"
    if len(text) <= SHOWN:
        return text
    half = SHOWN // 2 - 20
    return f"{text[:half]} ... ({len(text) - 2 * half:,} characters left out) ... {text[-half:]}"


class Examiner:
    """What the instrumented tests call. `points` are their asserts and statements, by index: see `instrument.Point`."""

    def __init__(self, job: Mapping[str, Any], candidate: Remote | Local) -> None:
        self.job = job
        self.candidate = candidate
        self.points: list[dict[str, Any]] = job["points"]
        self.results: dict[tuple[int, str], list[Any]] = {}
        self.point = -1
        self.seen: dict[int, tuple[Any, Mapping[str, Any]]] = {}
        self.lost: set[str] = set()
        self.defined: list[str] = []
        self.loading: list[Any] | None = None
        self.broken: str | None = None
        self.space: dict[str, Any] = {}
        self.fluid: list[str] = []
        self.missing: list[str] = []
        self.ends = monotonic() + job["seconds"]

    # --- called by the tests ------------------------------------------------------------------------------------

    def begin(self, point: int) -> None:
        self.point = point
        self.seen = {}
        self.arm()
        for name in self.fluid:
            self.space[name] = self.candidate.get(name)

    def note(self, call: int, value: Any, names: Mapping[str, Any]) -> Any:
        self.seen[call] = (value, names)
        return value

    def passed(self, point: int) -> None:
        if error := self.stopped():
            self.raised(point, error, {})
        else:
            self.count(self.points[point]["test"], "", None)

    def ran(self, point: int) -> None:
        """A statement that is no test has come to its end."""
        if error := self.stopped():
            self.raised(point, error, {})

    def failed(self, point: int, scope: Mapping[str, Any], message: Any = None) -> None:
        if error := self.stopped():
            self.raised(point, error, scope)
        else:
            self.count(self.points[point]["test"], "", self.detail(point, scope, None, message))

    def error(self, point: int, scope: Mapping[str, Any], message: Any = None) -> AssertionError:
        """The error for an assert whose failure ends its function."""
        error: Any = AssertionError(message)
        error.oracle_detail = self.detail(point, scope, None, message)
        return error

    def raised(self, point: int, error: BaseException, scope: Mapping[str, Any]) -> None:
        """A statement, or the test of an assert, raised."""
        error = self.stopped() or error
        if isinstance(error, Forgeable | Undecided):
            raise error
        if is_skip(error) and not self.where(error)[0]:
            return
        detail = self.described(point, error, scope)
        for name in self.points[point]["binds"]:
            self.lost.add(name)
            if scope is self.space:
                self.hide(name)
        if not self.blames(error):
            line = self.points[point]["line"]
            self.broken = self.broken or f"line {line} of the tests: {type(error).__name__}: {error}"
        self.count(self.points[point]["test"], "", detail)

    def stopped(self) -> Stopped | None:
        """What has ended the test that runs. A test that caught it has not passed: design/005. What chooses the path,
        or leaves the rest undecided, ends the run."""
        error = self.candidate.stopped
        if isinstance(error, Forgeable | Undecided):
            raise error
        self.candidate.stopped = None
        return error

    # --- what they add up to ------------------------------------------------------------------------------------

    def count(self, test: int, label: str, detail: dict[str, Any] | None) -> None:
        result = self.results.setdefault((test, label), [0, 0, None])
        result[0 if detail is None else 1] += 1
        result[2] = result[2] or detail

    def described(self, point: int, error: BaseException, scope: Mapping[str, Any]) -> dict[str, Any]:
        found: Any = getattr(error, "oracle_detail", None)
        if found is not None:  # in a helper, whose caller knows the loop's variables
            return {**found, "names": {**self.detail(point, scope, None, None)["names"], **found["names"]}}
        inside = self.point if self.point >= 0 else point
        return self.detail(inside, scope, error, None)

    def detail(self, point: int, scope: Mapping[str, Any], error: BaseException | None, message: Any) -> dict[str, Any]:
        stopped = self.candidate.stopped  # to show an object, it is asked for its text
        names = {n: short(scope[n]) for n in self.points[point]["names"] if n in scope and _is_data(scope[n])}
        seen = [
            [call, short(value), {n: short(v) for n, v in inner.items() if _is_data(v)}]
            for call, (value, inner) in self.seen.items()
        ]
        shown = None if message is None else (message if isinstance(message, str) else short(message))[:SHOWN]
        self.candidate.stopped = stopped
        return {"point": point, "names": names, "seen": seen, "message": shown, "error": self.error_facts(error)}

    def error_facts(self, error: BaseException | None) -> list[Any] | None:
        """Kind of trouble, type, message, line of the candidate's code and its text."""
        if error is None:
            return None
        if isinstance(error, TimedOut):
            return ["timeout", "", short(error.args[0] if error.args else None), 0, ""]
        if isinstance(error, ProcessEnded):
            return ["gone", "", str(error), 0, ""]
        if isinstance(error, Refused):
            return ["refused", "", str(error), 0, ""]
        if isinstance(error, NameError) and _name(error) in self.lost:
            return ["unbound", "NameError", _name(error), 0, ""]
        kind, message, line, text = self.where(error)
        if not kind:
            kind, message = type(error).__name__, str(error)
        if isinstance(error, SyntaxError):
            message = str(error.msg)
        return ["raised", kind, message[:SHOWN], line, text]

    def where(self, error: BaseException) -> tuple[str, str, int, str]:
        """Type, message, line and text in the candidate's code; an empty type when it did not rise there."""
        marked: Any = getattr(error, "oracle_place", None)
        if marked is not None:
            return tuple(marked)
        line, text = place(error, self.job["code"]) if isinstance(self.candidate, Local) else (0, "")
        return (type(error).__name__, str(error), line, text) if line else ("", "", 0, "")

    def blames(self, error: BaseException) -> bool:
        """Whether this is the candidate's fault, rather than tests that are broken themselves."""
        if isinstance(error, Stopped | AssertionError) or self.where(error)[0]:
            return True
        if isinstance(error, NameError):
            return _name(error) in (*self.job["firm"], *self.lost)
        if isinstance(error, ImportError | SyntaxError):
            return False
        return self.candidate.asked and not self.loading

    def arm(self, most: float | None = None) -> None:
        """In-process, an alarm ends a test that takes too long; on the outside path our own process does."""
        left = self.ends - monotonic()
        if left <= 0:
            self.candidate.stopped = TimedOut(None)
            raise self.candidate.stopped
        if isinstance(self.candidate, Local):
            import signal

            limit = min(most or self.job["limit"], left)

            def ring(*_: Any) -> None:
                self.candidate.stopped = TimedOut(limit)
                raise self.candidate.stopped

            signal.signal(signal.SIGALRM, ring)
            signal.setitimer(signal.ITIMER_REAL, limit)

    # --- the run ------------------------------------------------------------------------------------------------

    def run(self) -> dict[str, Any]:
        install()
        self.runner = Runner()
        space: dict[str, Any] = self.runner.module.__dict__
        space["__builtins__"] = builtins
        self.space = space
        # No builtin by its name in what is instrumented: the candidate may be called like one.
        space.update(__oracle_any__=BaseException, __oracle_locals__=locals)
        space.update(__oracle_begin__=self.begin, __oracle_note__=self.note)
        space.update(__oracle_passed__=self.passed, __oracle_ran__=self.ran)
        space.update(__oracle_failed__=self.failed, __oracle_raised__=self.raised)
        space.update(__oracle_error__=self.error, __oracle_get__=self.get)
        try:
            self.arm(self.job["seconds"])
            self.defined = self.candidate.load(self.job["code"])
            self.bind(space)
        except BaseException as error:
            self.loading = self.error_facts(error)
            return self.report()
        import marshal
        import zlib

        self.module(space)
        sys.modules["tests"] = self.runner.module  # for what looks it up by its name, such as dataclasses
        exec(marshal.loads(zlib.decompress(self.job["tests"])), space)
        self.point = -1
        for test, name in self.job["functions"]:
            self.function(test, name)
        self.runner.finish()
        return self.report()

    def bind(self, space: dict[str, Any]) -> None:
        """Puts the candidate's names where the tests look for them."""
        for name in self.job["wanted"]:
            try:
                space[name] = value = self.candidate.get(name)
                if isinstance(value, int | float | str | tuple | None):  # a later value is another object
                    self.fluid.append(name)
            except KeyError:
                self.missing.append(name)
                self.hide(name)

    def hide(self, name: str) -> None:
        """Where a name that the candidate lacks is a builtin's, that must not take its place."""
        if hasattr(builtins, name) and name not in self.space:
            self.space[name] = MissingFunction(name)

    def module(self, space: dict[str, Any]) -> None:
        """`import solution` in the tests means the candidate."""

        def __getattr__(name: str) -> Any:
            return self.get(name)

        if isinstance(self.candidate, Remote):
            stand_in = type(sys)("solution")
            stand_in.__dict__["__getattr__"] = __getattr__
            sys.modules["solution"] = stand_in
        space["__oracle_module__"] = sys.modules["solution"]

    def get(self, name: str) -> Any:
        try:
            return self.candidate.get(name)
        except KeyError:
            self.missing.append(name)
            raise NameError(f"name {name!r} is not defined", name=name) from None

    def function(self, test: int, name: str) -> None:
        """Runs a test function, or a method of a test class, once for each row of its parameters."""
        owner, _, method = name.rpartition(".")
        if name not in self.space and owner not in self.space:
            return
        for row in self.runner.rows(self.space[owner] if owner else None, method):
            self.point, self.seen = -1, {}
            try:
                self.arm()
                row.run()
                if error := self.stopped():
                    raise error
            except (Forgeable, Undecided):
                raise
            except BaseException as caught:
                error = self.stopped() or caught
                if is_skip(error) and not self.where(error)[0]:
                    continue
                if not self.blames(error):
                    self.broken = self.broken or f"{name} in the tests: {type(error).__name__}: {error}"
                detail = self.described(self.job["starts"][str(test)], error, row.values)
                self.count(test, row.label, detail)
            else:
                self.count(test, row.label, None)

    def report(self) -> dict[str, Any]:
        results = [[test, label, *counts] for (test, label), counts in self.results.items()]
        return {
            "results": results,
            "broken": self.broken,
            "missing": list(dict.fromkeys(self.missing)),
            "defined": [name for name in self.defined if isinstance(name, str)][:50],
            "loading": self.loading,
        }


def _name(error: NameError) -> str:
    """The name that had no value. `UnboundLocalError` has it in its message only."""
    return error.name or [*str(error).split("'"), ""][1]


def _is_data(value: Any) -> bool:
    """Worth showing: no function, no module, no object that shows nothing but its address."""
    return not callable(value) and type(value).__repr__ is not object.__repr__ and not isinstance(value, type(sys))


def examine() -> None:
    """One job in, one report out; between them, the questions to the candidate."""
    requests, send = channel()

    def receive() -> str:
        line = requests.readline()
        if not line:  # hung up: nothing of the candidate's, such as atexit, may still run
            posix._exit(0)  # pyright: ignore[reportPrivateUsage]
        return line.decode("ascii").rstrip("\n")

    def ask(line: str) -> str:
        send("?" + line)
        return receive()

    job = decode(receive())
    candidate = Local() if job["in_process"] else Remote(ask)
    examiner = Examiner(job, candidate)
    try:
        report: dict[str, Any] = examiner.run()
    except Forgeable as error:
        report = {"forgeable": str(error)}
    except Undecided as error:
        report = {**examiner.report(), "undecided": str(error)}
    send(".")
    send("!" + encode([receive(), report]))
    receive()
