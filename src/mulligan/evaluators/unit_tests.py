"""Judges Python code by a test file. The verdict is computed where the code cannot reach it.

There are two sandboxed processes: the candidate has the model's code, and the examiner runs the tests with stand-ins
for the candidate's functions. This file passes lines between them; only plain values cross. If tests need the code in
their own process, they get it, and the verdict is marked as one that can be forged. How tests are read and rewritten,
and what crosses, is in `mulligan/oracle/python/`.
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
"""Seconds that the examiner has to finish by itself after the time for the tests is over."""
_LINE = 2 * wire.MOST
_CALL = wire.encode(CALL)


class UnitTests:
    """Runs a Python test file against each attempt. `score` is the share of tests that passed, 0 to 1.

    The verdict is computed outside the process of the attempt, because any check that shares a process with hostile
    code can be forged (design/005).

    Args:
        tests: the text of the test file.
        seconds: wall time for the whole file.
        longest: seconds that one test may take. None means a fourth of `seconds` if there are four tests or more.
        memory: MB for each process.
        name: what errors call the file.
        tests_run: "apart" from the attempt if possible, or "beside" it in one process, where the attempt can forge the
            verdict.

    Raises:
        InvalidInput: the file is broken, has no test, or needs a fixture that it does not define.
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
                raise InvalidInput(f"{what} must be greater than 0, not {value}.")
        if tests.endswith(".py") and "\n" not in tests:
            raise InvalidInput(
                f"unit_tests needs the text of a test file, not its name: use tests={tests!r}, or "
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
        """Raises `InvalidInput`, with the file and the line, if this test file cannot be used."""
        read(tests, name)

    async def evaluate(self, episode: Episode) -> Feedback:
        """Judge the newest attempt's output as code. Raises `SandboxError` if nothing could be run."""
        return self._feedback(*await self._judged(output_of(episode.trials[-1].attempt)))

    async def each(self, episode: Episode) -> tuple[Feedback, tuple[bool, ...]]:
        """The feedback of `evaluate`, and whether each test passed, in order; empty if there is no verdict."""
        report, notes = await self._judged(output_of(episode.trials[-1].attempt))
        first = self._feedback(report, notes)
        return first, () if first.passed is None else verdicts(self._plan, report)

    async def _judged(self, code: str) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The report of the tests, and notes on it."""
        # design/005: the tests or the user choose the path, never the attempt
        reason = self._plan.why or ("as you chose" if self._beside else None)
        if reason is None:
            report = await self._ask(code, in_process=False)
            if "forgeable" not in report:
                return report, ()
            reason = str(report["forgeable"])
        return await self._ask(code, in_process=True), (f"{FORGEABLE} ({reason})",)

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
        """The examiner's report; if it gave none, "failed" or "unknown" with the reason."""
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
                reason = f"the tests did not finish within {self._seconds:g} s"
            else:
                reason = "the process ended before the tests were over (os._exit, a crash, or out of memory)"
        if report is not None:
            return report
        if in_process or candidate.asked:
            return {"failed": f"No test result: {reason}."}
        return {"unknown": f"The tests could not judge the code: {reason}, and the code was never called."}

    def _job(self, program: Literal["examiner", "candidate"], code: str) -> Job:
        """A job with site packages only if the code or the tests import any: without them, Python starts faster."""
        options = () if foreign(code) or self._plan.modules else ("-S",)
        return Job(
            (sys.executable, "-I", *options, "-c", programs.START),
            files={"program": programs.program(program)},
            env={} if options else {"OPENBLAS_NUM_THREADS": "1"},  # numpy takes memory for each thread
            seconds=self._seconds + 2 * _GRACE,
            memory=self._memory,
            output=_LINE,
        )


class _Candidate:
    """The candidate's process. It is started for the first request, and again after it hung or died."""

    def __init__(self, sandbox: Sandbox, job: Job, limit: float) -> None:
        self._sandbox = sandbox
        self._job = job
        self._limit = limit
        self._stack = AsyncExitStack()
        self._channel: Channel | None = None
        self._load = ""
        self.asked = False

    async def ask(self, line: str, remaining: float) -> str:
        """The reply to a request, or ours if there is none. remaining: seconds for the rest of the file."""
        if remaining <= 0:
            return wire.encode(["timeout", None])
        limit = remaining if not self._load else min(self._limit, remaining)
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
    """Pass lines until the examiner gives its report with the nonce; None if it ends without one."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + seconds
    nonce: str | None = None
    await examiner.send(order)
    while (line := await examiner.receive()) is not None:
        if line.startswith("?"):
            await examiner.send(await candidate.ask(line[1:], deadline - clock()))
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
