"""Words the results of Rust tests and the compiler's errors as feedback, in Mulligan's layout or in Reflexion's.

The compiler's errors are sorted by whether the code or a test is at fault. Our layout follows that of `unit_tests`: two
headings, a line for each test.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mulligan.core.errors import SandboxError
from mulligan.core.records import Finding
from mulligan.oracle.python.feedback import TEXT, Line, fitting, reference_text, shorter
from mulligan.oracle.rust.building import FILE, MODULE, ROOT, Crate, Toolchain
from mulligan.text.rust import masked

_SCRATCH = re.compile(r"(?:/[\w.+-]+)*/mulligan-[0-9a-f]{16}/?")
"""The folder of a job, which is different each time."""
_CALL = re.compile(r"(?:assert_eq|assert_ne)!\s*\(\s*(\w+\s*\(.*?\))\s*,", re.DOTALL)


@dataclass(frozen=True)
class Verdict:
    """The verdict on a test.

    Attributes:
        kind: "passed", or how it failed.
        left, right: the values of a comparison.
        line: of the code, for a panic.
    """

    kind: str
    left: str = ""
    right: str = ""
    message: str = ""
    line: int = 0

    @property
    def passed(self) -> bool:
        return self.kind in ("passed", "own")


def read(report: str, secret: str) -> dict[int, Verdict]:
    """The verdicts by the numbers of the tests in the crate. Lines that do not begin with the secret are ignored."""
    verdicts = dict[int, Verdict]()
    for line in report.splitlines():
        mark, _, rest = line.partition(" ")
        words = rest.split()
        if mark != secret or len(words) < 2 or not words[0].isdecimal():
            continue
        verdicts[int(words[0])] = _verdict(words[1], words[2:])
    return verdicts


def _verdict(kind: str, words: Sequence[str]) -> Verdict:
    try:
        decoded = (bytes.fromhex(word[1:]).decode("utf-8", "replace") for word in words if word.startswith("="))
        texts = [_SCRATCH.sub("", text) for text in decoded]
        if kind == "panicked":
            return Verdict(kind, message=texts[0], line=int(words[0]))
        if kind in ("unequal", "equal", "mixed", "false"):
            left, right, message = texts
            return Verdict(kind, left, right, message)
        return Verdict(kind, message=" ".join(words))
    except (ValueError, IndexError):
        return Verdict("garbled")


def ours(tests: Sequence[tuple[str, Verdict]]) -> str:
    """The feedback in Mulligan's layout: two headings, and a line for each test."""
    passed = [" ".join(text.split()) for text, verdict in tests if verdict.passed]
    failed = [
        f"{shorter(' '.join(text.split()), 400)}  // {_why(text, verdict)}"
        for text, verdict in tests
        if not verdict.passed
    ]
    return f"Tests passed:\n{fitting(passed, 1_000)}\n\nTests failed:\n{fitting(failed, TEXT - 1_600)}"


def findings(tests: Sequence[tuple[str, Verdict]]) -> list[Finding]:
    """The verdicts as data."""
    return [
        Finding(
            shorter(" ".join(text.split()), 400),
            shorter(verdict.right, 400) if verdict.kind == "unequal" else "",
            "" if verdict.passed else _why(text, verdict),
            passed=verdict.passed,
        )
        for text, verdict in tests
    ]


def as_reference(tests: Sequence[tuple[str, Verdict]]) -> str:
    """The feedback as Reflexion's code prints it, with the messages that it is meant to print."""
    lines = [Line(text, verdict.passed, "" if verdict.passed else _output(verdict)) for text, verdict in tests]
    return reference_text(lines, mark="//")


def _why(test: str, verdict: Verdict) -> str:
    described = _described(test, verdict)
    extra = f"; {verdict.message}" if verdict.message and verdict.kind in ("unequal", "equal", "false") else ""
    return shorter(" ".join((described + extra).split()), 500)


def _described(test: str, verdict: Verdict) -> str:
    left, right = verdict.left, verdict.right
    match verdict.kind:
        case "unequal" | "equal":
            call = _CALL.search(masked(test))
            if call and "=" not in test.partition("assert")[0]:
                return f"{' '.join(test[call.start(1) : call.end(1)].split())} returned {left}"
            return f"left is {left}, right is {right}" if verdict.kind == "unequal" else f"both sides are {left}"
        case "false":
            return "is false"
        case "mixed":
            return f"compares a value of a type that the code defines ({left}) with {right}, which is not a test"
        case "panicked":
            return f"panicked{f' in line {verdict.line}' if verdict.line else ''}: {verdict.message or '(no message)'}"
        case _:
            return _ended(verdict)


def _ended(verdict: Verdict) -> str:
    """How a test ended that could not report it itself."""
    match verdict.kind:
        case "exited":
            return f"the code ended the process with status {verdict.message} before the test was over"
        case "killed":
            return f"the code was ended by {_signal(verdict.message)}"
        case "timeout":
            return f"timed out after {int(verdict.message or 0) / 1000:g} s"
        case "late":
            return "not run: the time for all tests was used up"
        case "uncompiled":
            return f"does not compile with the code: {verdict.message}"
        case "unread":
            return f"cannot be run: {verdict.message}"
        case _:
            return f"no result: {verdict.message or 'the process ended, or something wrote into its report'}"


def _signal(number: str) -> str:
    try:
        name = signal.Signals(int(number)).name
    except ValueError:
        name = f"signal {number}"
    aborted = " (an abort, too deep a recursion, or out of memory)" if name in ("SIGABRT", "SIGSEGV") else ""
    return name + aborted


def _output(verdict: Verdict) -> str:
    match verdict.kind:
        case "unequal":
            return f"assertion failed: {verdict.left} == {verdict.right}"
        case "equal":
            return f"assertion failed: {verdict.left} != {verdict.right}"
        case "false":
            return f"assertion failed: {verdict.left}"
        case "panicked":
            return verdict.message
        case "timeout" | "late":
            return "TIMEOUT"
        case _:
            return _described("", verdict)


def refusal(errors: Sequence[str], layout: Literal["ours", "reference"]) -> str:
    """The feedback on code that does not compile, with as many errors as fit."""
    if layout == "reference":
        return "\n\n".join(errors)
    shown = list[str]()
    for error in errors:
        if shown and sum(map(len, shown)) + len(error) > TEXT - 200:
            break
        shown.append(shorter(error, TEXT - 200))
    remaining = len(errors) - len(shown)
    last = [f"... and {remaining} more error{'s' if remaining > 1 else ''}"] if remaining else []
    return "\n\n".join(["The code does not compile, so no test was run:", *shown, *last])


def uncompiled(tests: Mapping[int, Sequence[str]]) -> dict[int, Verdict]:
    return {number: Verdict("uncompiled", message="; ".join(why)) for number, why in tests.items()}


_NO_LINKER = re.compile(r"linker `[^`]*` not found|could not exec the linker")
_OURS = re.compile(rf"\b(crate)(\s*::\s*){MODULE}\b(::)?")
_LAID = re.compile(r"\b(?:lay|inside|judge)_[0-9a-f]{16,24}(?:!\{\})?(?:::)?")
_NOISE = re.compile(r"^ *= note: this error originates in the macro.*\n", re.MULTILINE)


@dataclass(frozen=True)
class CompilerErrors:
    """The errors of the compiler.

    Attributes:
        code: errors in the code, as the compiler prints them.
        tests: for each test that cannot be compiled with the code the reasons, each on one line.
        others: errors that are in neither, which the code causes indirectly.
    """

    code: tuple[str, ...]
    tests: Mapping[int, tuple[str, ...]]
    others: tuple[str, ...]


def refused(output: str, crate: Crate, toolchain: Toolchain) -> CompilerErrors:
    """Read the errors from the compiler's standard error. Raises `SandboxError` if the linker could not be run."""
    code, others = list[str](), list[str]()
    tests = dict[int, list[str]]()
    for error in _errors(output):
        message = str(error.get("message"))
        if _NO_LINKER.search(message):
            raise SandboxError(f"Judging Rust needs a linker, which does not run in the sandbox: {message[:300]}")
        places = list(_places(error))
        if any(file == FILE for file, _ in places):
            code.append(_rendered(error, toolchain))
        elif (test := next((n for _, line in places if (n := crate.test_at(line)) is not None), None)) is not None:
            tests.setdefault(test, []).append(_one_line(error, toolchain))
        else:
            others.append(_one_line(error, toolchain))
    return CompilerErrors(tuple(code), {n: tuple(dict.fromkeys(why)) for n, why in tests.items()}, tuple(others))


def _errors(output: str) -> Iterator[Mapping[str, Any]]:
    for line in output.splitlines():
        try:
            entry: object = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            error = cast(dict[str, Any], entry)
            aborting = str(error.get("message")).startswith("aborting due to")
            if str(error.get("level")).startswith("error") and not aborting:
                yield error


def _places(error: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The file and line of the main spans of an error, or of all if there is no main one. Macros are followed."""
    spans: list[dict[str, Any]] = error.get("spans") or []
    for span in [span for span in spans if span.get("is_primary")] or spans:
        place: dict[str, Any] | None = span
        while place is not None:
            if place["file_name"] in (FILE, ROOT):
                yield place["file_name"], place["line_start"]
                break
            expansion: dict[str, Any] = place.get("expansion") or {}
            place = expansion.get("span")


def _rendered(error: Mapping[str, Any], toolchain: Toolchain) -> str:
    return _clean(_NOISE.sub("", str(error.get("rendered") or error.get("message"))).rstrip(), toolchain)


def _one_line(error: Mapping[str, Any], toolchain: Toolchain) -> str:
    """An error on one line, without the code around it, which is ours."""
    code: dict[str, Any] = error.get("code") or {}
    number = f"[{code['code']}]" if code.get("code") else ""
    spans: list[dict[str, Any]] = error.get("spans") or []
    labels = [str(span["label"]) for span in spans if span.get("is_primary") and span.get("label")]
    output = "; ".join(dict.fromkeys([str(error["message"]), *labels]))
    return _clean(f"error{number}: {' '.join(output.split())}", toolchain)


def _clean(text: str, toolchain: Toolchain) -> str:
    """The text without random names and folders of this machine, so that the same code gets the same text."""
    for folder in sorted((toolchain.sysroot, toolchain.folder), key=len, reverse=True):
        text = text.replace(f"{folder}/", "")
    return _LAID.sub("", _OURS.sub(lambda ours: f"{ours[1]}{ours[2] if ours[3] else ''}", text))
