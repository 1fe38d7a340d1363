"""Judges Rust code by tests: what the compiler refuses is the feedback, else a verdict for each assert.

Compiler and program run in the sandbox, each test in a process of its own. In `oracle/rust`, `program` reads the
tests, `building` says what they are compiled into, and `judge.rs` tells passed from failed. What can be forged:
design/018.
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
from mulligan.oracle.rust.building import COMPILING, NONE_MADE, Crate, crate, job, toolchain
from mulligan.oracle.rust.feedback import CompilerErrors, Verdict, refused
from mulligan.oracle.rust.program import read
from mulligan.text.evidence import evidence_of
from mulligan.text.rust import masked, open_braces
from mulligan.text.thoughts import output_of

SOURCE = "rust_tests"
_ROUNDS = 6
"""How often it is compiled anew without the tests that do not compile: the compiler stops after each of its passes."""
_UNSAFE = re.compile(r"\b(unsafe|extern|no_mangle|export_name|link_section|link|global_asm|naked)\b")
_DERIVED = re.compile(r"#!?\[\s*derive\s*\([^)]*\)\s*\]")
_EQUAL = re.compile(r"\bPartialEq\b")


class RustTests:
    """Compiles the attempt with the tests and runs each test.

    `score` is the share of tests that passed, 0 to 1. `evidence` is {"tests": their texts, "passed": for each whether
    it passed}.

    Args:
        tests: a Rust test program with a plain `fn main`, or a list of tests. Of a program each assert is a test, run
            after the statements before it that assert nothing.
        seconds: wall time of all tests together. One of four or more tests may take a fourth of it. The compiler has
            30 s of its own.
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
            raise InvalidInput(f"seconds must be above 0, not {seconds}.")
        if memory < 16:
            raise InvalidInput(f"memory must be 16 MB or more, not {memory}.")
        if layout not in ("ours", "reference"):
            raise InvalidInput(f"layout must be ours or reference, not {layout!r}.")
        self._program = read(tests)
        self._sandbox, self._seconds, self._memory = sandbox, seconds, memory
        self._layout: Literal["ours", "reference"] = layout
        self._toolchain = toolchain()

    @classmethod
    def check(cls, tests: str | Sequence[str]) -> None:
        """Raises `InvalidInput` for tests that cannot be used. Needs no compiler."""
        read(tests)

    @classmethod
    def ready(cls) -> None:
        """Raises `SandboxError`, saying what to install, where Rust cannot be judged on this machine."""
        toolchain()

    async def evaluate(self, episode: Episode) -> Feedback:
        """Judges the newest attempt's output as code. Raises `SandboxError` when nothing could be compiled or run."""
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
        own: dict[str, Json] = {"tests": [test.text for test in self._program.tests], "passed": passed}
        evidence = evidence_of(findings or [Finding(got=text)], **own)
        return Feedback(all(passed), text, sum(passed) / len(passed), SOURCE, notes, evidence=evidence)

    async def _verdicts(self, code: str) -> tuple[dict[int, Verdict], str]:
        """By test; or why the code cannot be compiled. A test that does not compile with the code costs no other."""
        tests = self._program.tests
        found = {number: Verdict("unread", message=t.broken) for number, t in enumerate(tests) if t.broken}
        for _ in range(_ROUNDS):
            active = [number for number in range(len(tests)) if number not in found]
            if not active:
                return found, ""
            made = crate(self._program, active, self._toolchain, self._seconds, self._memory)
            ran = await self._sandbox.run(job(made, code, self._toolchain, self._seconds))
            if ran.exit_code != NONE_MADE:
                return self._ran(found, active, ran, made)
            errors = refused(ran.stderr, made, self._toolchain)
            if errors.code or not errors.tests:
                return found, self._refusal(errors, ran)
            found |= feedback.uncompiled(errors.tests)
        lacking = {number: ("the compiler rejects it",) for number in range(len(tests)) if number not in found}
        return found | feedback.uncompiled(lacking), ""

    def _ran(
        self, found: dict[int, Verdict], active: Sequence[int], ran: Ran, made: Crate
    ) -> tuple[dict[int, Verdict], str]:
        said = feedback.read(ran.stdout, made.secret)
        if not said and ran.exit_code in (126, 127):
            raise SandboxError(f"The judged program could not be started: {ran.stderr.strip()[-600:]}")
        if not said and made.secret not in ran.stdout and ran.exit_code is None:
            if ran.timed_out:
                return found, f"The code cannot be compiled: the compiler did not finish within {COMPILING:g} s."
            return found, f"The code cannot be compiled: the compiler was stopped.{ran.stderr.rstrip()[-200:]}"
        return found | {number: said.get(place, Verdict("lost")) for place, number in enumerate(active)}, ""

    def _refusal(self, errors: CompilerErrors, ran: Ran) -> str:
        shown = errors.code or errors.others
        if not shown:
            if "$message_type" not in ran.stderr and '"level"' not in ran.stderr:
                raise SandboxError(f"The Rust compiler could not be started: {ran.stderr.strip()[-600:]}")
            shown = ("error: the compiler ended without saying where the mistake is",)
        return feedback.refusal(shown, self._layout)


def _notes(code: str, verdicts: Mapping[int, Verdict]) -> tuple[str, ...]:
    """What qualifies a verdict: code and tests share a process, which safe Rust cannot leave, and some can."""
    bare = masked(code)
    used = sorted(set(_UNSAFE.findall(bare)))
    notes = [f"{FORGEABLE} (the code uses {', '.join(used)})"] if used else []
    own = any(verdict.kind == "own" for verdict in verdicts.values())
    if own or _EQUAL.search(_DERIVED.sub("", bare)):
        notes.append(f"{FORGEABLE} (the code decides itself when values of its own types are equal)")
    return tuple(notes)
