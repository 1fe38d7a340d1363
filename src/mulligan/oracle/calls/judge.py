"""Judges a function by comparing what it returns for many arguments with what a canonical program returns.

The code runs in the sandbox and gets only the arguments. What it returns is compared here, as plain values, as in
EvalPlus (Liu et al. 2023; `check_output` of its harness).
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Channel, Job, Sandbox
from mulligan.core.records import Episode, Feedback
from mulligan.oracle.python import programs, wire
from mulligan.oracle.python.feedback import shorter
from mulligan.oracle.python.names import foreign
from mulligan.text.plain import count

RELATIVE_TOLERANCE = 1e-07
FLOAT_TOLERANCE = 1e-06
"""The absolute tolerance for floats if the task gives none."""


def is_right(rule: str, arguments: Sequence[Any], result: Any, expected: Any, tolerance: float) -> bool:
    """Whether a result is right. Raises what the comparison of odd values raises.

    rule: one of `RULES`, "root", or "" for equality.
    """
    if rule == "root":
        return abs(_polynomial(arguments[0], result)) <= tolerance
    exact = bool(result == expected)
    if rule in _INSTEAD or (rule and not exact):
        exact = RULES[rule](arguments, result, expected, tolerance)
    tolerance = FLOAT_TOLERANCE if tolerance == 0 and _floats(expected) else tolerance
    if exact or tolerance == 0:
        return exact
    return type(result) is type(expected) and _near(result, expected, tolerance)


def _some(arguments: Sequence[Any], result: Any, expected: Any, tolerance: float) -> bool:
    """Whether something is returned exactly if something is expected."""
    is_expected = expected if isinstance(expected, bool) else expected is not None
    return (result if isinstance(result, bool) else result is not None) == is_expected


def _polynomial(coefficients: Sequence[float], x: float) -> float:
    return math.fsum(coefficient * math.pow(x, power) for power, coefficient in enumerate(coefficients))


def _surface(arguments: Sequence[Any], result: Any, expected: Any, tolerance: float) -> bool:
    """The surface of a square pyramid, if `height` is that of the pyramid, not of its side."""
    edge, height = arguments
    return abs(result - round(edge**2 + 2 * edge * math.hypot(edge / 2, height))) <= tolerance


def _digits(arguments: Sequence[Any], result: Any, expected: Any, tolerance: float) -> bool:
    """The sum of the differences between the digits of two numbers, the shorter one padded with zeros."""
    first, second = map(str, arguments)
    width = max(len(first), len(second))
    pairs = zip(first.zfill(width), second.zfill(width), strict=True)
    return result == sum(abs(int(a) - int(b)) for a, b in pairs)


RULES: dict[str, Callable[[Sequence[Any], Any, Any, float], bool]] = {
    "any": lambda given, out, expected, tolerance: True,
    "zero": lambda given, out, expected, tolerance: out == 0,
    "set": lambda given, out, expected, tolerance: set(out) == set(expected),
    "some": _some,
    "surface": _surface,
    "digits": _digits,
}
"""Other results that are right: any, 0, the same members in any order, something if something is expected, …"""


_INSTEAD = ("set", "some")
"""Rules that replace equality. The others apply if the results are not equal."""


def _floats(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        parts = cast(Sequence[Any], value)
        return bool(parts) and all(isinstance(part, float) for part in parts)
    return isinstance(value, float)


def _near(result: Any, expected: Any, tolerance: float) -> bool:
    """Like numpy's `allclose`, for numbers and for lists of equal length."""
    if isinstance(expected, (list, tuple)):
        expected_parts, parts = cast(Sequence[Any], expected), cast(Sequence[Any], result)
        return (
            isinstance(result, (list, tuple))
            and len(parts) == len(expected_parts)
            and all(_near(a, b, tolerance) for a, b in zip(parts, expected_parts, strict=True))
        )
    numbers = (int, float, complex)
    if not isinstance(result, numbers) or not isinstance(expected, numbers):
        return False
    return result == expected or abs(result - expected) <= tolerance + RELATIVE_TOLERANCE * abs(expected)


SOURCE = "calls"
_BATCH_CHARACTERS = 32_000
"""Characters of arguments that are sent at once: less than a pipe holds, so that neither side waits for the other."""
_CANONICAL_SECONDS = 600.0
"""Seconds that the canonical program may take: nothing can be judged without it."""
_TIME_FACTOR = 4.0
"""How much longer than the canonical program a call may take, as in EvalPlus."""
_WALL_FACTOR = 3.0
"""How much longer than its CPU time a call may take by the clock, because it sleeps or the machine is busy."""


@dataclass(frozen=True)
class _Reply:
    """The reply to a call.

    Attributes:
        kind: `=` a value, `#` the hash of a long value, `!` an exception, `?` not a plain value, `@` no reply in time,
            `.` the process ended.
        seconds: CPU time in the function.
        wall: time by the clock until the reply arrived.
    """

    kind: str
    text: str
    seconds: float = 0.0
    wall: float = 0.0


class Calls:
    """Judges a function by the results of its calls.

    An attempt passes if all results are right. After the first wrong one no more calls are made. The score is the share
    of parts that passed, and `evidence` says under "parts" which did.

    Args:
        entry_point: the name of the function.
        parts: named lists of calls, in the order in which they are judged. Each call is a list of arguments.
        canonical: a program that defines the function.
        expected: the right results of the calls of each part, if they are known.
        tolerance: the absolute tolerance for numbers.
        rule: what else is right: see `is_right`.
        seconds: CPU time for a call, or four times that of the canonical program, if that is more, so that a busy
            machine does not change a verdict.
        most: CPU time for all calls of a part, or twice that of the canonical program, if that is more.
        memory: megabytes.
    """

    expects: Literal["text", "code", "workspace"] = "code"

    def __init__(
        self,
        entry_point: str,
        parts: Mapping[str, Any],
        *,
        sandbox: Sandbox,
        canonical: str = "",
        expected: Mapping[str, Any] | None = None,
        tolerance: float = 0,
        rule: str = "",
        seconds: float = 1.0,
        most: float = 60.0,
        memory: int = 4096,
    ) -> None:
        if seconds <= 0 or most <= 0:
            raise InvalidInput(f"seconds must be greater than 0, not {min(seconds, most)}.")
        self._function, self._canonical, self._sandbox = entry_point, canonical, sandbox
        self._parts: Mapping[str, Sequence[Any]] = parts
        self._tolerance, self._rule = tolerance, rule
        self._seconds, self._most, self._memory = seconds, most, memory
        self._expected = {part: [wire.encode(value) for value in values] for part, values in (expected or {}).items()}
        self._wanted: dict[str, Sequence[_Reply]] = {}
        self._lock = asyncio.Lock()

    async def evaluate(self, episode: Episode) -> Feedback:
        """Judge the newest attempt's output as code. `passed` is None if the canonical program gives no results.

        Raises:
            SandboxError: nothing could be run.
        """
        code = episode.trials[-1].attempt.output
        passed, problem = dict[str, bool](), ""
        for part in self._parts:
            canonical = await self._results(part)
            if without_result := [n for n, reply in enumerate(canonical) if reply.kind not in "=#"]:
                reason = self._problem(part, without_result[0], canonical[without_result[0]])
                return Feedback(None, f"The canonical program gives no result. {reason}", source=SOURCE)
            problem = problem or await self._wrong(code, part, canonical)
            passed[part] = not problem
        text = problem or f"{count(sum(map(len, self._parts.values())), 'call')} returned as expected."
        score = sum(passed.values()) / len(passed)
        return Feedback(all(passed.values()), text, score, SOURCE, evidence={"parts": passed})

    async def _results(self, part: str) -> Sequence[_Reply]:
        """The replies of the canonical program, which runs once. If results are known, only its times count."""
        async with self._lock:
            if part not in self._wanted:
                limits = [(_CANONICAL_SECONDS, _CANONICAL_SECONDS)] * len(self._parts[part])
                replies = self._replies(self._canonical, self._parts[part], limits, _CANONICAL_SECONDS)
                results = [reply async for reply in replies]
                for number, text in enumerate(self._expected.get(part, ())):
                    times = results[number] if number < len(results) else _Reply("=", "")
                    results[number : number + 1] = [replace(times, kind="=", text=text)]
                self._wanted[part] = results
        return self._wanted[part]

    async def _wrong(self, code: str, part: str, canonical: Sequence[_Reply]) -> str:
        """A sentence about the first call whose result is not right; "" if all are right."""
        cpu = [max(self._seconds, _TIME_FACTOR * reply.seconds) for reply in canonical]
        wall = [
            max(1 + _WALL_FACTOR * seconds, _TIME_FACTOR * reply.wall)
            for seconds, reply in zip(cpu, canonical, strict=True)
        ]
        limits = list(zip(cpu, wall, strict=True))
        total, number = max(self._most, 2 * sum(reply.seconds for reply in canonical)), -1
        async with aclosing(self._replies(code, self._parts[part], limits, total)) as replies:
            async for reply in replies:
                number += 1
                if not self._right(self._parts[part][number], reply, canonical[number]):
                    return self._problem(part, number, reply, canonical[number])
        return "" if number + 1 == len(canonical) else f"The calls of {part!r} ended early."

    def _right(self, arguments: Sequence[Any], reply: _Reply, canonical: _Reply) -> bool:
        if reply.kind not in "=#" or (reply.kind, canonical.kind) == ("=", "#"):
            return False
        if reply.text == canonical.text and " o" not in f" {reply.text}" and "dnan" not in reply.text:
            return True
        try:
            result, expected = (wire.decode(side.text, _Unsendable) for side in (reply, canonical))
            return is_right(self._rule, arguments, result, expected, self._tolerance)
        except Exception:  # values that cannot be compared are not right
            return False

    def _problem(self, part: str, number: int, reply: _Reply, canonical: _Reply | None = None) -> str:
        call = f"{self._function}({', '.join(map(repr, self._parts[part][number]))})"
        match reply.kind:
            case "=" | "#":
                outcome = f"returned {_shown(reply)}" + (f", not {_shown(canonical)}" if canonical else "")
            case "!":
                outcome = f"raised {reply.text}"
            case "@":
                outcome = f"did not return within {reply.seconds:.3g} s"
            case ".":
                outcome = "ended the process (an exit, a crash, or out of memory)"
            case _:
                outcome = reply.text
        return f"{part}, call {number + 1} of {len(self._parts[part])}: {shorter(call, 300)}: {shorter(outcome, 600)}"

    async def _replies(
        self, code: str, calls: Sequence[Any], limits: Sequence[tuple[float, float]], most: float
    ) -> AsyncGenerator[_Reply]:
        """The replies to the calls, up to the first call without one.

        Args:
            limits: for each call the seconds of CPU and by the clock.
            most: seconds of CPU for all calls.
        """
        try:
            load = wire.encode([code, self._function])
        except (wire.NotPlain, UnicodeError) as error:
            yield _Reply("!", f"The code cannot be run: it {error}")
            return
        flags = () if foreign(code) else ("-S",)
        job = Job(
            (sys.executable, "-I", *flags, "-c", programs.START),
            files={"program": programs.program("caller")},
            seconds=_WALL_FACTOR * most + 60,
            memory=self._memory,
            env={} if flags else {"OPENBLAS_NUM_THREADS": "1"},  # numpy takes memory for each thread
            output=2 * wire.LIMIT,
        )
        lines, clock = [wire.encode(list(call)) for call in calls], asyncio.get_running_loop().time
        async with self._sandbox.open(job) as channel:
            await channel.send(load)
            loaded = await _received(channel, 10 + self._seconds)  # the process has to start, and may import much
            if loaded.kind != "=":
                yield loaded
                return
            start, deadline, spent = 0, clock() + _WALL_FACTOR * (1 + most), 0.0
            while start < len(lines):
                batch = [lines[start]]
                while (
                    start + len(batch) < len(lines)
                    and sum(map(len, batch)) + len(lines[start + len(batch)]) < _BATCH_CHARACTERS
                ):
                    batch.append(lines[start + len(batch)])
                await channel.send("\n".join(batch))
                for limit, wall in limits[start : start + len(batch)]:
                    started = clock()
                    reply = await _received(channel, min(wall, max(deadline - started, 0)))
                    reply, spent = replace(reply, wall=clock() - started), spent + reply.seconds
                    if reply.kind in "=#" and (reply.seconds > limit or spent > most):
                        reply = _Reply("@", "", limit)
                    yield reply
                    if reply.kind in "@.":
                        return
                start += len(batch)


class _Unsendable:
    """Stands for an object that stayed in the other process. It equals nothing."""

    def __init__(self, tag: str, rest: str) -> None: ...


async def _received(channel: Channel, limit: float) -> _Reply:
    try:
        async with asyncio.timeout(limit):
            line = await channel.receive()
    except TimeoutError:
        return _Reply("@", "", limit)
    if not line:
        return _Reply(".", "")
    if line[0] not in "=#":
        return _Reply(line[0] if line[0] in "!?" else "?", line[1:])
    seconds, _, text = line[1:].partition(" ")
    try:
        return _Reply(line[0], text, float(seconds))
    except ValueError:
        return _Reply("?", "Something wrote into the report.")


def _shown(reply: _Reply | None) -> str:
    if reply is None or reply.kind == "#":
        return "a long value"
    try:
        return repr(wire.decode(reply.text, _Unsendable))
    except wire.NotPlain as error:
        return f"what {error}"
