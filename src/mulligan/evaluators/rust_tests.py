"""Judges Rust code by tests. The feedback has the errors of the compiler, else a verdict for each assert.

The compiler and the program run in the sandbox, each test in a process of its own. In `oracle/rust`, `program` reads
the tests, `building` makes the crate to compile, and `judge.rs` runs the tests. For what can be forged see design/018.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from mulligan.core.errors import InvalidInput, SandboxError
from mulligan.core.protocols import Ran, Sandbox
from mulligan.core.records import Episode, Feedback, Finding, Json
from mulligan.oracle.python.feedback import FORGEABLE
from mulligan.oracle.rust import feedback
from mulligan.oracle.rust.building import COMPILER_SECONDS, NO_PROGRAM, Crate, crate, job, toolchain
from mulligan.oracle.rust.feedback import CompilerErrors, Verdict, refused
from mulligan.oracle.rust.program import read
from mulligan.text.evidence import evidence_of
from mulligan.text.rust import masked, open_braces
from mulligan.text.thoughts import output_of

SOURCE = "rust_tests"
_ROUNDS = 6
"""How often the crate is compiled again without the tests that do not compile: each pass of the compiler finds more."""
_UNSAFE = re.compile(r"\b(unsafe|extern|no_mangle|export_name|link_section|link|global_asm|naked)\b")
_DERIVED = re.compile(r"#!?\[\s*derive\s*\([^)]*\)\s*\]")
_EQUAL = re.compile(r"\bPartialEq\b")


class RustTests:
    """Compiles the attempt with the tests and runs each test.

    `score` is the share of tests that passed, 0 to 1. `evidence` is {"tests": their texts, "passed": for each whether
    it passed}.

    Args:
        tests: a Rust test program with a plain `fn main`, or a list of tests. Each assert of a program is a test, which
            is run after the statements before it that are not asserts.
        seconds: wall time for all tests. With four or more tests, each may take a fourth of it. The compiler has 30 s
            more.
        memory: MB for each test.
        layout: of the feedback: Mulligan's ("ours"), or what Reflexion's code prints ("reference").

    Raises:
        InvalidInput: the tests cannot be used.
        SandboxError: rustc or a linker is missing.
    """

    expects: Literal["text", "code", "workspace"] = "code"
    replayable = True

    def __init__(
        self,
        tests: str | Sequence[str],
        *,
        sandbox: Sandbox,
        seconds: float = 10.0,
        memory: int = 1024,
        layout: Literal["ours", "reference"] = "ours",
    ) -> None:
        if seconds <= 0:
            raise InvalidInput(f"seconds must be greater than 0, not {seconds}.")
        if memory < 16:
            raise InvalidInput(f"memory must be 16 MB or more, not {memory} MB.")
        if layout not in ("ours", "reference"):
            raise InvalidInput(f"layout must be ours or reference, not {layout!r}.")
        self._program = read(tests)
        self._sandbox, self._seconds, self._memory = sandbox, seconds, memory
        self._layout: Literal["ours", "reference"] = layout
        self._toolchain = toolchain()

    @classmethod
    def check(cls, tests: str | Sequence[str]) -> None:
        """Raises `InvalidInput` if tests cannot be used. Needs no compiler."""
        read(tests)

    @classmethod
    def ready(cls) -> None:
        """Raises `SandboxError`, with what to install, if Rust cannot be judged on this machine."""
        toolchain()

    async def evaluate(self, episode: Episode) -> Feedback:
        """Judge the newest attempt's output as code. Raises `SandboxError` if nothing could be compiled or run."""
        code = output_of(episode.trials[-1].attempt).replace("\r\n", "\n")
        if self._program.open and open_braces(code) == 1:
            code += "\n}"
        try:
            code.encode()
        except UnicodeEncodeError as error:
            return self._failed(f"The code cannot be compiled: {error}", ())
        verdicts, why = await self._verdicts(code)
        notes = _notes(code, verdicts)
        return self._failed(why, notes) if why else self._of_verdicts(verdicts, notes)

    def _of_verdicts(self, verdicts: Mapping[int, Verdict], notes: tuple[str, ...]) -> Feedback:
        tests = [(test.text, verdicts[number]) for number, test in enumerate(self._program.tests)]
        passed = [verdict.passed for _, verdict in tests]
        text = feedback.ours(tests) if self._layout == "ours" else feedback.as_reference(tests)
        return self._feedback(passed, text, notes, feedback.findings(tests))

    def _failed(self, text: str, notes: tuple[str, ...]) -> Feedback:
        return self._feedback([False] * len(self._program.tests), text, notes)

    def _feedback(
        self, passed: list[bool], text: str, notes: tuple[str, ...], findings: Sequence[Finding] = ()
    ) -> Feedback:
        extra: dict[str, Json] = {"tests": [test.text for test in self._program.tests], "passed": passed}
        evidence = evidence_of(findings or [Finding(got=text)], **extra)
        return Feedback(all(passed), text, sum(passed) / len(passed), SOURCE, notes, evidence=evidence)

    async def _verdicts(self, code: str) -> tuple[dict[int, Verdict], str]:
        """The verdicts by the numbers of the tests, and why the code cannot be compiled, "" if it can.

        A test that does not compile with the code does not affect the others.
        """
        tests = self._program.tests
        verdicts = {number: Verdict("unread", message=t.broken) for number, t in enumerate(tests) if t.broken}
        for _ in range(_ROUNDS):
            active = [number for number in range(len(tests)) if number not in verdicts]
            if not active:
                return verdicts, ""
            built = crate(self._program, active, self._toolchain, self._seconds, self._memory)
            ran = await self._sandbox.run(job(built, code, self._toolchain, self._seconds))
            if ran.exit_code != NO_PROGRAM:
                return self._ran(verdicts, active, ran, built)
            errors = refused(ran.stderr, built, self._toolchain)
            if errors.code or not errors.tests:
                return verdicts, self._refusal(errors, ran)
            verdicts |= feedback.uncompiled(errors.tests)
        rejected = {number: ("the compiler rejects it",) for number in range(len(tests)) if number not in verdicts}
        return verdicts | feedback.uncompiled(rejected), ""

    def _ran(
        self, verdicts: dict[int, Verdict], active: Sequence[int], ran: Ran, built: Crate
    ) -> tuple[dict[int, Verdict], str]:
        results = feedback.read(ran.stdout, built.secret)
        if not results and ran.exit_code in (126, 127):
            raise SandboxError(f"The judged program could not be started: {ran.stderr.strip()[-600:]}")
        if not results and built.secret not in ran.stdout and ran.exit_code is None:
            late = f"did not finish within {COMPILER_SECONDS:g} s."
            how = late if ran.timed_out else f"was stopped.{ran.stderr.rstrip()[-200:]}"
            return verdicts, f"The code cannot be compiled: the compiler {how}"
        return verdicts | {number: results.get(place, Verdict("lost")) for place, number in enumerate(active)}, ""

    def _refusal(self, errors: CompilerErrors, ran: Ran) -> str:
        messages = errors.code or errors.others
        if not messages:
            if "$message_type" not in ran.stderr and '"level"' not in ran.stderr:
                raise SandboxError(f"The Rust compiler could not be started: {ran.stderr.strip()[-600:]}")
            messages = ("error: the compiler ended without saying where the mistake is",)
        return feedback.refusal(messages, self._layout)


def _notes(code: str, verdicts: Mapping[int, Verdict]) -> tuple[str, ...]:
    """Notes if the code can forge a verdict: code and tests share a process, and only safe Rust is harmless there."""
    bare = masked(code)
    used = sorted(set(_UNSAFE.findall(bare)))
    notes = [f"{FORGEABLE} (the code uses {', '.join(used)})"] if used else []
    compares = any(verdict.kind == "own" for verdict in verdicts.values())
    if compares or _EQUAL.search(_DERIVED.sub("", bare)):
        notes.append(f"{FORGEABLE} (the code decides itself when values of its own types are equal)")
    return tuple(notes)
