"""Judges Python code by a tests file, with the verdict computed where the code cannot reach.

Two sandboxed processes: the candidate holds the model's code, the examiner runs the tests with stand-ins for the
candidate's functions, and this file carries lines between them. Only plain values cross. Tests that need candidate
and tests in one process get that, and the verdict is marked: it can be forged. How tests are read and rewritten, and
what crosses, is in `mulligan/oracle/python/`.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from contextlib import AsyncExitStack
from typing import Any, Literal

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Channel, Job, Sandbox
from mulligan.core.records import Episode, Feedback
from mulligan.oracle.python import programs, wire
from mulligan.oracle.python.feedback import FORGEABLE, failed, feedback, verdicts
from mulligan.oracle.python.names import foreign
from mulligan.oracle.python.plan import read
from mulligan.oracle.python.remote import CALL
from mulligan.text.thoughts import output_of

_GRACE = 2.0
"""Seconds that the examiner gets to finish by itself when the time for the tests is over."""
_LINE = 2 * wire.MOST
_CALL = wire.encode(CALL)


class UnitTests:
    """Runs a Python tests file against each attempt. `score` is the share of tests that passed, 0 to 1.

    The verdict is computed outside the process of the attempt, because any check that shares a process with hostile
    code can be forged (design/005).

    Args:
        tests: the text of the tests file.
        seconds: wall time for the whole file.
        longest: seconds that one test may take. None means a fourth of `seconds` if there are four tests or more.
        memory: MB for each process.
        name: what errors call the file.
        tests_run: "apart" from the attempt wherever that is possible, or "beside" it in one process, where the attempt
            can forge the verdict.

    Raises:
        InvalidInput: the file cannot be used: it is broken, holds no test, or asks for a fixture that it does not
            define.
    """

    expects: Literal["text", "code", "workspace"] = "code"
    replayable = True

    def __init__(
        self,
        tests: str,
        *,
        sandbox: Sandbox,
        seconds: float = 10.0,
        longest: float | None = None,
        memory: int = 1024,
        name: str = "tests.py",
        tests_run: Literal["apart", "beside"] = "apart",
    ) -> None:
        if tests_run not in ("apart", "beside"):
            raise InvalidInput(f"tests_run must be apart or beside, not {tests_run!r}.")
        for what, value in (("seconds", seconds), ("longest", longest)):
            if value is not None and value <= 0:
                raise InvalidInput(f"{what} must be above 0, not {value}.")
        if tests.endswith(".py") and "\n" not in tests:
            raise InvalidInput(
                f"unit_tests takes the text of a tests file, not its name: write tests={tests!r}, or "
                f"judge=Path({tests!r})."
            )
        self._plan = read(tests, name)
        self._sandbox = sandbox
        self._seconds = seconds
        self._longest = min(longest or self._plan.share(seconds), seconds)
        self._memory = memory
        self._beside = tests_run == "beside"

    @classmethod
    def check(cls, tests: str, name: str = "tests.py") -> None:
        """Raises `InvalidInput`, with file and line, when this tests file cannot be used."""
        read(tests, name)

    async def evaluate(self, episode: Episode) -> Feedback:
        """Judges the newest attempt's output as code. Raises `SandboxError` when nothing could be run."""
        return self._feedback(*await self._judged(output_of(episode.trials[-1].attempt)))

    async def each(self, episode: Episode) -> tuple[Feedback, tuple[bool, ...]]:
        """What `evaluate` says, and for each test whether it passed, in order; none where there is no verdict."""
        report, notes = await self._judged(output_of(episode.trials[-1].attempt))
        first = self._feedback(report, notes)
        return first, () if first.passed is None else verdicts(self._plan, report)

    async def _judged(self, code: str) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The report, and what qualifies it."""
        # design/005: the tests or the user choose the path, never the attempt
        why = self._plan.why or ("as you chose" if self._beside else None)
        if why is None:
            report = await self._ask(code, in_process=False)
            if "forgeable" not in report:
                return report, ()
            why = str(report["forgeable"])
        return await self._ask(code, in_process=True), (f"{FORGEABLE} ({why})",)

    def _feedback(self, report: dict[str, Any], notes: tuple[str, ...]) -> Feedback:
        if "failed" in report:
            return failed(report["failed"], notes)
        if "unknown" in report:
            return Feedback(None, report["unknown"], source="unit_tests", notes=notes)
        try:
            return feedback(self._plan, report, self._seconds, notes)
        except (LookupError, TypeError, ValueError, AttributeError):  # in-process, the code may have written it
            return failed("No test result: the report of the tests is garbled.", notes)

    async def _ask(self, code: str, *, in_process: bool) -> dict[str, Any]:
        """The examiner's report; or "failed" or "unknown" with the reason, when it gave none."""
        try:
            order = wire.encode(self._plan.job(code, in_process, self._seconds, self._longest))
        except (wire.NotPlain, UnicodeError) as error:
            return {"failed": f"The code cannot be run: it {error}"}
        job = self._job("examiner", code)
        async with AsyncExitStack() as stack:
            examiner = await stack.enter_async_context(self._sandbox.open(job))
            candidate = _Candidate(self._sandbox, self._job("candidate", code), self._longest)
            stack.push_async_callback(candidate.stop)
            try:
                async with asyncio.timeout(self._seconds + _GRACE):
                    report = await _relay(examiner, candidate, order, self._seconds)
            except TimeoutError:
                report = None
                why = f"the tests did not finish within {self._seconds:g} s"
            else:
                why = "the process ended before the tests were over (os._exit, a crash, or out of memory)"
        if report is not None:
            return report
        if in_process or candidate.asked:
            return {"failed": f"No test result: {why}."}
        return {"unknown": f"The tests could not judge the code: {why}, and the code was never called."}

    def _job(self, program: Literal["examiner", "candidate"], code: str) -> Job:
        """Python without site packages starts twice as fast; they are there when code or tests import any."""
        lean = () if foreign(code) or self._plan.modules else ("-S",)
        return Job(
            (sys.executable, "-I", *lean, "-c", programs.START),
            files={"program": programs.program(program)},
            env={} if lean else {"OPENBLAS_NUM_THREADS": "1"},  # numpy takes memory for each thread
            seconds=self._seconds + 2 * _GRACE,
            memory=self._memory,
            output=_LINE,
        )


class _Candidate:
    """The candidate's process: started when it is first asked, and again after it hung or died."""

    def __init__(self, sandbox: Sandbox, job: Job, limit: float) -> None:
        self._sandbox = sandbox
        self._job = job
        self._limit = limit
        self._stack = AsyncExitStack()
        self._channel: Channel | None = None
        self._load = ""
        self.asked = False

    async def ask(self, line: str, left: float) -> str:
        """Its reply to a request, or ours in its place. `left`: seconds for the whole file that are left."""
        if left <= 0:
            return wire.encode(["timeout", None])
        limit = left if not self._load else min(self._limit, left)
        self.asked = self.asked or line.split(" ", 2)[1] == _CALL
        try:
            async with asyncio.timeout(limit):
                reply = await self._exchange(line)
        except TimeoutError:
            await self.stop()
            return wire.encode(["timeout", round(limit, 2)])
        if reply is None:
            await self.stop()
            return wire.encode(["gone", "it exited, crashed, ran out of memory or sent too much"])
        return reply

    async def _exchange(self, line: str) -> str | None:
        self._load = self._load or line
        if self._channel is None:
            self._channel = await self._stack.enter_async_context(self._sandbox.open(self._job))
            await self._channel.send(self._load)
            loaded = await self._channel.receive()
            if loaded is None or line is self._load:
                return loaded
        await self._channel.send(line)
        return await self._channel.receive()

    async def stop(self) -> None:
        self._channel = None
        await self._stack.aclose()


async def _relay(examiner: Channel, candidate: _Candidate, order: str, seconds: float) -> dict[str, Any] | None:
    """Carries lines until the examiner gives its report with the nonce; None when it ends without one."""
    clock = asyncio.get_running_loop().time
    ends = clock() + seconds
    nonce: str | None = None
    await examiner.send(order)
    while (line := await examiner.receive()) is not None:
        if line.startswith("?"):
            await examiner.send(await candidate.ask(line[1:], ends - clock()))
        elif line == "." and nonce is None:
            nonce = secrets.token_hex(16)
            await examiner.send(nonce)
        elif line.startswith("!"):
            return _report(line[1:], nonce)
    return None


def _report(line: str, nonce: str | None) -> dict[str, Any] | None:
    try:
        first, report = wire.decode(line)
    except (wire.NotPlain, TypeError, ValueError):
        return None
    return report if nonce is not None and first == nonce and isinstance(report, dict) else None  # pyright: ignore
