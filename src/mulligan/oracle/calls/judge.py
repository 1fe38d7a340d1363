"""Judges a function by what it returns for many arguments, next to what a canonical program returns for them.

The code runs in the sandbox and is sent arguments alone; what it returns is compared here, as plain values, as EvalPlus
does (Liu et al. 2023; `check_output` of its harness).
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

RELATIVE = 1e-07
FLOATS = 1e-06
"""The absolute tolerance for floats where the task gives none."""


def is_right(rule: str, given: Sequence[Any], out: Any, expected: Any, tolerance: float) -> bool:
    """`rule`: one of `RULES`, or "" for equality. given: the arguments. Raises what comparing odd values raises."""
    if rule == "root":
        return abs(_polynomial(given[0], out)) <= tolerance
    exact = bool(out == expected)
    if rule in _INSTEAD or (rule and not exact):
        exact = RULES[rule](given, out, expected, tolerance)
    tolerance = FLOATS if tolerance == 0 and _floats(expected) else tolerance
    if exact or tolerance == 0:
        return exact
    return type(out) is type(expected) and _near(out, expected, tolerance)


def _some(given: Sequence[Any], out: Any, expected: Any, tolerance: float) -> bool:
    """Whether something was returned, where that is what the task asks."""
    found = expected if isinstance(expected, bool) else expected is not None
    return (out if isinstance(out, bool) else out is not None) == found


def _polynomial(coefficients: Sequence[float], x: float) -> float:
    return math.fsum(coefficient * math.pow(x, power) for power, coefficient in enumerate(coefficients))


def _surface(given: Sequence[Any], out: Any, expected: Any, tolerance: float) -> bool:
    """Of a square pyramid, where the height is that of the pyramid and not of its side."""
    edge, height = given
    return abs(out - round(edge**2 + 2 * edge * math.hypot(edge / 2, height))) <= tolerance


def _digits(given: Sequence[Any], out: Any, expected: Any, tolerance: float) -> bool:
    """The distance of two numbers digit by digit, the shorter one with zeros before it."""
    first, second = map(str, given)
    width = max(len(first), len(second))
    pairs = zip(first.zfill(width), second.zfill(width), strict=True)
    return out == sum(abs(int(a) - int(b)) for a, b in pairs)


RULES: dict[str, Callable[[Sequence[Any], Any, Any, float], bool]] = {
    "any": lambda given, out, expected, tolerance: True,
    "zero": lambda given, out, expected, tolerance: out == 0,
    "set": lambda given, out, expected, tolerance: set(out) == set(expected),
    "some": _some,
    "surface": _surface,
    "digits": _digits,
}
"""What else is right: any answer, 0, the same members in any order, something where something is expected, …"""


_INSTEAD = ("set", "some")
"""Rules that stand in the place of equality; the others are asked where that does not hold."""


def _floats(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        parts = cast(Sequence[Any], value)
        return bool(parts) and all(isinstance(part, float) for part in parts)
    return isinstance(value, float)


def _near(out: Any, expected: Any, tolerance: float) -> bool:
    """As numpy's `allclose`, for numbers and for lists of equal length."""
    if isinstance(expected, (list, tuple)):
        parts, others = cast(Sequence[Any], expected), cast(Sequence[Any], out)
        return (
            isinstance(out, (list, tuple))
            and len(others) == len(parts)
            and all(_near(a, b, tolerance) for a, b in zip(others, parts, strict=True))
        )
    numbers = (int, float, complex)
    if not isinstance(out, numbers) or not isinstance(expected, numbers):
        return False
    return out == expected or abs(out - expected) <= tolerance + RELATIVE * abs(expected)


SOURCE = "calls"
_BATCH = 32_000
"""Characters of arguments that are sent at once: less than a pipe holds, so that neither side waits for the other."""
_CANONICAL = 600.0
"""Seconds that the canonical program may take: it is waited for, as nothing can be judged without it."""
_FACTOR = 4.0
"""How much longer than the canonical program a call may take, as in EvalPlus."""
_WALL = 3.0
"""How much longer than its CPU time a call may take by the clock: it may sleep, or the machine be busy."""


@dataclass(frozen=True)
class _Reply:
    """kind: `=` a value, `#` the hash of a long one, `!` an exception, `?` no plain value, `@` none in time, `.` the
    process ended. seconds: of CPU in the function. wall: by the clock, until the reply was here."""

    kind: str
    text: str
    seconds: float = 0.0
    wall: float = 0.0


class Calls:
    """`parts`: named lists of calls, each a list of arguments, in the order in which they are judged. The attempt
    passes when all are right; those behind the first wrong one are not made. Score: the share of parts that passed.

    entry_point: the function. canonical: a program that has it. expected: what it returns for the calls of each part,
    where that is known. tolerance, rule: see `is_right`.
    seconds: of CPU for a call, or four times what the canonical program took, if that is more: a busy machine changes
    no verdict. most: of CPU for all calls of a part, or twice what the canonical program took.
    `evidence` holds "parts": for each, whether it passed.
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
            raise InvalidInput(f"seconds must be above 0, not {min(seconds, most)}.")
        self._function, self._canonical, self._sandbox = entry_point, canonical, sandbox
        self._parts: Mapping[str, Sequence[Any]] = parts
        self._tolerance, self._rule = tolerance, rule
        self._seconds, self._most, self._memory = seconds, most, memory
        self._expected = {part: [wire.encode(value) for value in values] for part, values in (expected or {}).items()}
        self._wanted: dict[str, Sequence[_Reply]] = {}
        self._lock = asyncio.Lock()

    async def evaluate(self, episode: Episode) -> Feedback:
        """Judges the newest attempt's output as code. `passed` is None where the canonical program gives no results.
        Raises `SandboxError` when nothing could be run."""
        code = episode.trials[-1].attempt.output
        passed, why = dict[str, bool](), ""
        for part in self._parts:
            wanted = await self._results(part)
            if bad := [n for n, reply in enumerate(wanted) if reply.kind not in "=#"]:
                problem = self._problem(part, bad[0], wanted[bad[0]])
                return Feedback(None, f"The canonical program gives no result. {problem}", source=SOURCE)
            why = why or await self._wrong(code, part, wanted)
            passed[part] = not why
        text = why or f"All {sum(map(len, self._parts.values()))} calls returned what they should."
        score = sum(passed.values()) / len(passed)
        return Feedback(all(passed.values()), text, score, SOURCE, evidence={"parts": passed})

    async def _results(self, part: str) -> Sequence[_Reply]:
        """What the canonical program returns, asked for once; of results that are known, only its times count."""
        async with self._lock:
            if part not in self._wanted:
                limits = [(_CANONICAL, _CANONICAL)] * len(self._parts[part])
                replies = self._replies(self._canonical, self._parts[part], limits, _CANONICAL)
                found = [reply async for reply in replies]
                for number, text in enumerate(self._expected.get(part, ())):
                    times = found[number] if number < len(found) else _Reply("=", "")
                    found[number : number + 1] = [replace(times, kind="=", text=text)]
                self._wanted[part] = found
        return self._wanted[part]

    async def _wrong(self, code: str, part: str, wanted: Sequence[_Reply]) -> str:
        """The first call whose result is not right, in words; "" for none."""
        cpu = [max(self._seconds, _FACTOR * reply.seconds) for reply in wanted]
        wall = [max(1 + _WALL * most, _FACTOR * reply.wall) for most, reply in zip(cpu, wanted, strict=True)]
        limits = list(zip(cpu, wall, strict=True))
        most, number = max(self._most, 2 * sum(reply.seconds for reply in wanted)), -1
        async with aclosing(self._replies(code, self._parts[part], limits, most)) as replies:
            async for reply in replies:
                number += 1
                if not self._right(self._parts[part][number], reply, wanted[number]):
                    return self._problem(part, number, reply, wanted[number])
        return "" if number + 1 == len(wanted) else f"The calls of {part!r} ended early."

    def _right(self, given: Sequence[Any], reply: _Reply, wanted: _Reply) -> bool:
        if reply.kind not in "=#" or (reply.kind, wanted.kind) == ("=", "#"):
            return False
        if reply.text == wanted.text and " o" not in f" {reply.text}" and "dnan" not in reply.text:
            return True
        try:
            out, expected = (wire.decode(one.text, _Unsendable) for one in (reply, wanted))
            return is_right(self._rule, given, out, expected, self._tolerance)
        except Exception:  # odd values compare oddly, and then are not right
            return False

    def _problem(self, part: str, number: int, reply: _Reply, wanted: _Reply | None = None) -> str:
        call = f"{self._function}({', '.join(map(repr, self._parts[part][number]))})"
        match reply.kind:
            case "=" | "#":
                what = f"returned {_shown(reply)}" + (f", not {_shown(wanted)}" if wanted else "")
            case "!":
                what = f"raised {reply.text}"
            case "@":
                what = f"did not return within {reply.seconds:.3g} s"
            case ".":
                what = "ended the process (an exit, a crash, or out of memory)"
            case _:
                what = reply.text
        return f"{part}, call {number + 1} of {len(self._parts[part])}: {shorter(call, 300)}: {shorter(what, 600)}"

    async def _replies(
        self, code: str, calls: Sequence[Any], limits: Sequence[tuple[float, float]], most: float
    ) -> AsyncGenerator[_Reply]:
        """One for each call, up to the first that got none. limits: of CPU and by the clock, for each; most: of CPU,
        for all."""
        try:
            load = wire.encode([code, self._function])
        except (wire.NotPlain, UnicodeError) as error:
            yield _Reply("!", f"The code cannot be run: it {error}")
            return
        lean = () if foreign(code) else ("-S",)
        job = Job(
            (sys.executable, "-I", *lean, "-c", programs.START),
            files={"program": programs.program("caller")},
            seconds=_WALL * most + 60,
            memory=self._memory,
            env={} if lean else {"OPENBLAS_NUM_THREADS": "1"},  # numpy takes memory for each thread
            output=2 * wire.LIMIT,
        )
        lines, clock = [wire.encode(list(call)) for call in calls], asyncio.get_running_loop().time
        async with self._sandbox.open(job) as channel:
            await channel.send(load)
            loaded = await _received(channel, 10 + self._seconds)  # the process starts, and may import much
            if loaded.kind != "=":
                yield loaded
                return
            at, ends, spent = 0, clock() + _WALL * (1 + most), 0.0
            while at < len(lines):
                batch = [lines[at]]
                while at + len(batch) < len(lines) and sum(map(len, batch)) + len(lines[at + len(batch)]) < _BATCH:
                    batch.append(lines[at + len(batch)])
                await channel.send("\n".join(batch))
                for limit, wall in limits[at : at + len(batch)]:
                    began = clock()
                    reply = await _received(channel, min(wall, max(ends - began, 0)))
                    reply, spent = replace(reply, wall=clock() - began), spent + reply.seconds
                    if reply.kind in "=#" and (reply.seconds > limit or spent > most):
                        reply = _Reply("@", "", limit)
                    yield reply
                    if reply.kind in "@.":
                        return
                at += len(batch)


class _Unsendable:
    """What stayed in the other process: equal to nothing."""

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
