"""Judges by a command: exit status 0 passes. It runs in the attempt's workspace, or gets the attempt as a file.

What the command prints is the feedback.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, TypeAlias

from mulligan.core.errors import InvalidInput, MulliganError, SandboxError
from mulligan.core.protocols import Job, Ran, Sandbox
from mulligan.core.records import Attempt, Episode, Feedback, Finding, Step
from mulligan.text.command_lines import split_line
from mulligan.text.evidence import evidence_of, findings_of
from mulligan.text.runner_reports import (
    REPORTS,
    Report,
    changed_test_files,
    fewer,
    objection,
    reports_in,
    reports_of,
    runner_of,
    share,
)
from mulligan.text.thoughts import output_of
from mulligan.text.truncate import truncate

CACHES = (
    *("~/.cache", "~/.local/share", "~/.npm", "~/.yarn", "~/.bun", "~/.cargo", "~/go", "~/.gradle", "~/.m2"),
    "~/.nuget",
)
"""Where the usual build tools and test runners keep what they have fetched and compiled."""

_ATTEMPT = "{attempt}"
_REFUSED = re.compile(r"permission denied|\bEACCES\b", re.IGNORECASE)
_NOT_RUN = {126: "it is not executable", 127: "a command was not found"}
_MISSING = re.compile(
    r"\A\S+: No module named '?(?P<module>[\w.]+)'?\Z|\A\S+: can't open file '(?:\S*/)?(?P<file>[^/']+)': .*\Z"
    r"|\Amake: \*\*\* No rule to make target [`'](?P<target>[^']+)'\. +Stop\.\Z"
    r"|\Aerror: Failed to spawn: `(?P<command>[^`]+)`(?:\n.*)*\Z"
)
"""All that a launcher prints on standard error if what it is to start is not there."""
_TOOLS = (
    "pytest",
    "unittest",
    "nose2",
    "coverage",
    "tox",
    "nox",
    "behave",
    "mypy",
    "pyright",
    "ruff",
    "flake8",
    "pylint",
)
_PYTEST = {3: "pytest failed inside", 4: "pytest was used wrongly", 5: "pytest found no tests"}


Baseline: TypeAlias = Callable[[Episode], Awaitable[Feedback | None]]
"""What the check said of the untouched workspace, as the record of the episode keeps it."""


class Command:
    """Runs the check on each attempt.

    `passed` is True for status 0. It is None, with the reason, if the command is not found or may not be executed
    (status 127, 126), and for status 0 without the summary that a test runner printed before: design/120. `score` is
    the share of tests that passed, 0 to 1, if a known test runner reports it; else None.

    A check of text or code runs confined: of the user's files it sees those that the check names, from the working
    folder or by their whole path. A check of a workspace runs as by hand, except that its writes are confined.

    Args:
        check: the command line, split as a shell would but run without one (write `sh -c '…'` for a shell).
        expects: "workspace" runs the check in the folder that the attempt changed. "text" and "code" write the attempt
            to a file whose path replaces `{attempt}`, or give it on standard input if there is no placeholder. None
            means "text" if the check holds `{attempt}`, else "workspace".
        seconds: wall time.
        writable: folders that a workspace check may write to besides the workspace and its TMPDIR, where writes can be
            confined. None means `CACHES`; a list replaces them. Missing folders are left out; "/" confines nothing.
        tokens: what is kept of the output, head and tail. The default leaves room for the command line in a prompt
            that shows both.
        summary: whether a known test runner has to print its summary. False: status 0 is enough.

    Raises:
        MulliganError: the command could not be run, now nor before.
    """

    in_words = "the check's output"

    def __init__(
        self,
        check: str,
        *,
        sandbox: Sandbox,
        baseline: Baseline | None = None,
        expects: Literal["workspace", "text", "code"] | None = None,
        seconds: float = 600,
        writable: Sequence[str] | None = None,
        tokens: int = 1400,
        summary: bool = True,
    ) -> None:
        try:
            self._argv = split_line(check)
        except ValueError as error:
            raise InvalidInput(f"The check {check!r} cannot be read: {error}.") from error
        if not self._argv:
            raise InvalidInput("The check is empty: write check='pytest -q', for example.")
        self.expects: Literal["text", "code", "workspace"] = expects or ("text" if _ATTEMPT in check else "workspace")
        if self.expects == "workspace" and _ATTEMPT in check:
            raise InvalidInput("A check of a workspace cannot use {attempt}: it runs in the changed folder.")
        if seconds <= 0:
            raise InvalidInput(f"The check's seconds must be above 0, not {seconds}.")
        self._copied, self._readable = dict[str, str](), tuple[str, ...]()
        if self.expects != "workspace":
            self._argv = (_found(self._argv[0]), *self._argv[1:])
        elif os.sep not in self._argv[0]:  # a path starts in the workspace, which may not be there yet
            _found(self._argv[0])
        if self.expects != "workspace":
            self._copied, self._readable = _own_files(self._argv)
        self._check = check
        self._sandbox = sandbox
        self._seconds = seconds
        self._writable = tuple(os.path.expanduser(path) for path in (CACHES if writable is None else writable))
        self._tokens = tokens
        self._summary = summary
        self._baseline = baseline
        self._tried: Feedback | None = None

    async def evaluate(self, episode: Episode) -> Feedback:
        attempt = episode.trials[-1].attempt
        if self.expects == "workspace":
            folder, missing = _place(attempt)
            if missing:
                return self._feedback(None, f"The attempt could not be judged: {missing}.")
            ran = await self._run(self.folder_job(folder, {}))
        else:
            ran = await self._run(self._file_job(output_of(attempt)))
        before = await self._verdicts_before(episode)
        if not before and (why := _not_run(ran) or self._missing(ran)):
            raise MulliganError(
                f"The check {self._check!r} could not run, so no attempt can be judged: {why}. Correct the command."
            )
        feedback = self._judged(ran, attempt, before)
        if self.expects != "workspace":
            return feedback
        files = changed_test_files(attempt.output, self._argv)
        note = (f"the attempt changed tests, or files that a test run reads: {', '.join(files)}",) if files else ()
        return replace(feedback, notes=(*note, *feedback.notes))

    async def _verdicts_before(self, episode: Episode) -> list[Feedback]:
        """What this check said of the untouched workspace, and of earlier trials."""
        if self._tried is None and self._baseline is not None and self.expects == "workspace":
            self._tried = await self._baseline(episode)
        told = [self._tried, *(trial.feedback for trial in episode.trials[:-1])]
        return [one for one in told if one and any(by.asked == self._check for by in findings_of(one))]

    async def try_out(self, folder: str, env: Mapping[str, str]) -> Feedback:
        """The check before any attempt. `passed` None: it cannot serve as a judge here, with the reason and its output.

        Stricter than `evaluate`: what pytest cannot even collect is an attempt's fault later, but the set-up's now.
        """
        ran = await self._run(self.folder_job(folder, env))
        self._tried = feedback = self._judged(ran)
        if isinstance(ran, str) or feedback.passed is not False:
            return feedback
        why = "it did not end in time" if ran.timed_out else self._missing(ran)
        if "pytest" in self._check or "py.test" in self._check:
            missing = re.search(r"No module named '?([\w.]+)'?", ran.stdout + ran.stderr)
            why = why or _PYTEST.get(ran.exit_code or 0)
            if ran.exit_code == 2 and missing:
                why = f"the module {missing[1]} is missing"
        if why:
            return self._feedback(None, f"The check cannot judge here: {why}.\n{feedback.text}")
        return feedback

    def _missing(self, ran: Ran | str) -> str:
        """What the command starts and is not there; in a workspace, in which an attempt may make it, only a tool."""
        missing = None if isinstance(ran, str) or not ran.exit_code else _MISSING.search(ran.stderr.strip())
        name = missing[missing.lastgroup or 0] if missing else ""
        if not missing or not any(name in part for part in self._argv):
            return ""
        return missing[0] if self.expects != "workspace" or get_close_matches(name, _TOOLS, cutoff=0.8) else ""

    async def _run(self, job: Job) -> Ran | str:
        """How it ended, or why it could not be started."""
        try:
            return await self._sandbox.run(job)
        except (OSError, SandboxError) as error:
            return str(error)

    def folder_job(self, folder: str, env: Mapping[str, str]) -> Job:
        """The check as a job in a folder."""
        return Job(
            self._argv,
            cwd=folder,
            # Without byte code on disk no stale one is run when a file changes twice within a second.
            env={"PWD": folder, "PYTHONDONTWRITEBYTECODE": "1", **env},
            writable=(_top(folder), *(path for path in self._writable if os.path.exists(path))),
            network=True,
            seconds=self._seconds,
            confined=False,
        )

    def _file_job(self, output: str) -> Job:
        name = "attempt.py" if self.expects == "code" else "attempt.txt"
        placed = any(_ATTEMPT in part for part in self._argv)
        return Job(
            tuple(part.replace(_ATTEMPT, f"{{scratch}}/{name}") for part in self._argv),
            files={**self._copied, name: output},
            stdin="" if placed else output,
            readable=self._readable,
            seconds=self._seconds,
        )

    def _judged(self, ran: Ran | str, attempt: Attempt | None = None, before: Sequence[Feedback] = ()) -> Feedback:
        if isinstance(ran, str):
            return self._feedback(None, f"The check {self._check!r} could not be started: {ran}")
        now = reports_of(ran.stdout, ran.stderr)
        halted = attempt.outcome.halted if attempt and attempt.outcome else None
        note = f"Note: {halted}.\n" if halted else ""
        output = _printed(ran, self._tokens)
        if ran.level.startswith("unconfined") and _REFUSED.search(output):
            note += "Note: the check may write to the workspace, $TMPDIR and the folders of its setting `writable`.\n"
        if ran.timed_out:
            return self._feedback(False, f"{note}The check was stopped after {self._seconds:g} seconds.\n{output}")
        if why := _not_run(ran):
            return self._feedback(None, f"{note}The check could not run: {why}.\n{output}")
        reported = self._reports(before)
        if ran.exit_code == 0 and self._summary and (why := objection(reported, now, self._argv)):
            way = (
                "If it never prints one when the tests pass, set the evaluator's `summary` to false." if not now else ""
            )
            text = f"The check ended with status 0, but nothing shows that the tests passed: {why}. {way}".rstrip()
            return self._feedback(None, f"{note}{text}\n{output}")
        how = "was killed" if ran.exit_code is None else f"ended with status {ran.exit_code}"
        fewer_now = fewer(reported, now) if ran.exit_code == 0 else ""
        return replace(
            self._feedback(ran.exit_code == 0, f"{note}The check {how}.\n{output}", now),
            notes=(fewer_now,) if fewer_now else (),
        )

    def _reports(self, before: Sequence[Feedback]) -> list[Report]:
        """What runners reported before; where the check was not tried first, one that the command line names."""
        reported = [report for one in before for report in reports_in(one.evidence)]
        if reported or self._tried is not None or not (runner := runner_of(self._argv)):
            return reported
        return [Report(runner)]

    def _feedback(self, passed: bool | None, text: str, reports: Sequence[Report] = ()) -> Feedback:
        output = text.rstrip()
        finding = Finding(self._check, got=output, passed=bool(passed))
        kept = {REPORTS: [asdict(one) for one in reports]} if reports else {}
        checked = None if passed is None else evidence_of([finding], **kept)
        return Feedback(passed, output, share(reports), "command", evidence=checked)


def _not_run(ran: Ran | str) -> str:
    """Why the command could not be run; "" if it was."""
    if isinstance(ran, str):
        return ran
    return f"{_NOT_RUN[ran.exit_code]} (status {ran.exit_code})" if ran.exit_code in _NOT_RUN else ""


def _printed(ran: Ran, tokens: int) -> str:
    """What it printed. The longer of its two streams is shortened first, and each keeps its head and its end: that of
    standard output holds a test runner's summary, however much there is on standard error."""
    streams = [Step(observation=text.rstrip()) for text in (ran.stdout, ran.stderr) if text.strip()]
    return "\n".join(step.observation for step in truncate(streams, tokens))


def _found(command: str) -> str:
    """The command, by its whole path where it is a file of the user's. Raises `InvalidInput` when there is none."""
    path = os.path.abspath(command) if os.sep in command else command
    if shutil.which(path) is None:
        near = os.path.isfile(command) and os.sep not in command
        what = f"It is a file here: write ./{command}." if near else "Install it, or write its path."
        raise InvalidInput(f"The check's command {command!r} was not found, or is not executable. {what}")
    return path


def _own_files(argv: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The user's files that a confined check names: texts by relative path, and whole paths."""
    copied: dict[str, str] = {}
    for part in argv:
        path = Path(part)
        if path.is_absolute() or ".." in path.parts or _ATTEMPT in part or len(part) > 255 or not path.is_file():
            continue
        try:
            copied[part] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"The file {part} that the check names cannot be read: {error}.") from error
    return copied, tuple(part for part in argv if os.path.isabs(part) and os.path.isfile(part))


def _place(attempt: Attempt) -> tuple[str, str]:
    """The folder that the attempt changed, and what is wrong with it."""
    folder = next((artifact.location for artifact in attempt.artifacts if artifact.kind in ("git", "folder")), "")
    if os.path.isdir(folder):
        return folder, ""
    return folder, f"its folder {folder} is gone" if folder else "it changed no workspace"


def _top(folder: str) -> str:
    """The tree that this folder is in: a check may write beside where it runs, such as a cache at the top."""
    above = (Path(folder), *Path(folder).parents)
    return str(next((path for path in above if os.path.lexists(path / ".git")), folder))
