"""The compiler's errors, sorted by whether the code or a test is at fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from mulligan.core.errors import SandboxError
from mulligan.oracle.rust.building import FILE, MODULE, ROOT, Crate
from mulligan.oracle.rust.toolchain import Toolchain

_NO_LINKER = re.compile(r"linker `[^`]*` not found|could not exec the linker")
_OURS = re.compile(rf"\b(crate)(\s*::\s*){MODULE}\b(::)?")
_LAID = re.compile(r"\b(?:lay|inside|judge)_[0-9a-f]{16,24}(?:!\{\})?(?:::)?")
_NOISE = re.compile(r"^ *= note: this error originates in the macro.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Refused:
    """code: errors that lie in the code, as the compiler draws them. tests: by test, why it cannot be compiled with the
    code, each in a line. others: what lies in neither, which the code brings about in a roundabout way."""

    code: tuple[str, ...]
    tests: Mapping[int, tuple[str, ...]]
    others: tuple[str, ...]


def refused(output: str, made: Crate, toolchain: Toolchain) -> Refused:
    """From the compiler's standard error. Raises `SandboxError` where no linker could be run."""
    code, others = list[str](), list[str]()
    tests = dict[int, list[str]]()
    for error in _errors(output):
        message = str(error.get("message"))
        if _NO_LINKER.search(message):
            raise SandboxError(f"Judging Rust needs a linker, which does not run in the sandbox: {message[:300]}")
        places = list(_places(error))
        if any(file == FILE for file, _ in places):
            code.append(_drawn(error, toolchain))
        elif (test := next((n for _, line in places if (n := made.test_at(line)) is not None), None)) is not None:
            tests.setdefault(test, []).append(_told(error, toolchain))
        else:
            others.append(_told(error, toolchain))
    return Refused(tuple(code), {n: tuple(dict.fromkeys(why)) for n, why in tests.items()}, tuple(others))


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
    """File and line of the spans that the error is about, out of macros too; all spans where none is the main one."""
    spans: list[dict[str, Any]] = error.get("spans") or []
    for span in [span for span in spans if span.get("is_primary")] or spans:
        at: dict[str, Any] | None = span
        while at is not None:
            if at["file_name"] in (FILE, ROOT):
                yield at["file_name"], at["line_start"]
                break
            around: dict[str, Any] = at.get("expansion") or {}
            at = around.get("span")


def _drawn(error: Mapping[str, Any], toolchain: Toolchain) -> str:
    return _clean(_NOISE.sub("", str(error.get("rendered") or error.get("message"))).rstrip(), toolchain)


def _told(error: Mapping[str, Any], toolchain: Toolchain) -> str:
    """In a line, without the surroundings: these are ours."""
    code: dict[str, Any] = error.get("code") or {}
    number = f"[{code['code']}]" if code.get("code") else ""
    spans: list[dict[str, Any]] = error.get("spans") or []
    labels = [str(span["label"]) for span in spans if span.get("is_primary") and span.get("label")]
    output = "; ".join(dict.fromkeys([str(error["message"]), *labels]))
    return _clean(f"error{number}: {' '.join(output.split())}", toolchain)


def _clean(text: str, toolchain: Toolchain) -> str:
    """Without names that are drawn for a run and folders of this machine, so that the same code gets the same text."""
    for folder in sorted((toolchain.sysroot, toolchain.folder), key=len, reverse=True):
        text = text.replace(f"{folder}/", "")
    return _LAID.sub("", _OURS.sub(lambda ours: f"{ours[1]}{ours[2] if ours[3] else ''}", text))
