"""Judges attempts by a command: exit status 0 passes, and what the command prints is the feedback.

The command runs in the attempt's workspace, or gets the attempt as a file.
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
from mulligan.text.plain import count
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
_PERMISSION_DENIED = re.compile(r"permission denied|\bEACCES\b", re.IGNORECASE)
_NOT_RUN = {126: "it is not executable", 127: "a command was not found"}
"""The exit statuses of a command that did not run, and what they mean."""
_MISSING = re.compile(
    r"\A\S+: No module named '?(?P<module>[\w.]+)'?\Z|\A\S+: can't open file '(?:\S*/)?(?P<file>[^/']+)': .*\Z"
    r"|\Amake: \*\*\* No rule to make target [`'](?P<target>[^']+)'\. +Stop\.\Z"
    r"|\Aerror: Failed to spawn: `(?P<command>[^`]+)`(?:\n.*)*\Z"
)
"""The standard error of a launcher whose program or module does not exist."""
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
_PYTEST_ERRORS = {3: "pytest failed inside", 4: "pytest was used wrongly", 5: "pytest found no tests"}
"""The exit statuses with which pytest has judged nothing."""

Baseline: TypeAlias = Callable[[Episode], Awaitable[Feedback | None]]
"""Returns the check's recorded verdict on the untouched workspace; None if there is none."""


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
        tokens: how much of the output is kept, head and tail. The default leaves room for the command line in a prompt
            that shows both.
        summary: whether a known test runner has to print its summary. False: status 0 is enough.

    Raises:
        InvalidInput: the check or a setting is wrong, or the command was not found.
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
            raise InvalidInput(f"The check {check!r} cannot be parsed: {error}.") from error
        if not self._argv:
            raise InvalidInput("The check is empty. Use, for example, check='pytest -q'.")
        self.expects: Literal["text", "code", "workspace"] = expects or ("text" if _ATTEMPT in check else "workspace")
        if self.expects == "workspace" and _ATTEMPT in check:
            raise InvalidInput("A workspace check cannot use {attempt}: it runs in the changed folder.")
        if seconds <= 0:
            raise InvalidInput(f"The check's time limit in seconds must be greater than 0, not {seconds}.")
        self._copied: dict[str, str] = {}
        self._readable: tuple[str, ...] = ()
        if self.expects != "workspace":
            self._argv = (_resolved(self._argv[0]), *self._argv[1:])
            self._copied, self._readable = _named_files(self._argv)
        elif os.sep not in self._argv[0]:  # a path starts in the workspace, which may not exist yet
            _resolved(self._argv[0])
        self._check = check
        self._sandbox = sandbox
        self._seconds = seconds
        self._writable = tuple(os.path.expanduser(path) for path in (CACHES if writable is None else writable))
        self._tokens = tokens
        self._summary = summary
        self._baseline = baseline
        self._first_verdict: Feedback | None = None

    async def evaluate(self, episode: Episode) -> Feedback:
        """Run the check on the last attempt.

        Raises:
            MulliganError: the command cannot be run, and never ran in this episode.
        """
        attempt = episode.trials[-1].attempt
        if self.expects == "workspace":
            folder, missing = _changed_folder(attempt)
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
        """This check's verdicts on the untouched workspace and on earlier trials."""
        if self._first_verdict is None and self._baseline is not None and self.expects == "workspace":
            self._first_verdict = await self._baseline(episode)
        verdicts = [self._first_verdict, *(trial.feedback for trial in episode.trials[:-1])]
        return [one for one in verdicts if one and any(finding.asked == self._check for finding in findings_of(one))]

    async def try_out(self, folder: str, env: Mapping[str, str]) -> Feedback:
        """Run the check before any attempt. If it cannot judge here, `passed` is None, and the text says why.

        This is stricter than `evaluate`: tests that pytest cannot collect are an attempt's fault later, but not now.
        """
        ran = await self._run(self.folder_job(folder, env))
        self._first_verdict = feedback = self._judged(ran)
        if isinstance(ran, str) or feedback.passed is not False:
            return feedback
        why = "it did not end in time" if ran.timed_out else self._missing(ran)
        if "pytest" in self._check or "py.test" in self._check:
            missing = re.search(r"No module named '?([\w.]+)'?", ran.stdout + ran.stderr)
            why = why or _PYTEST_ERRORS.get(ran.exit_code or 0)
            if ran.exit_code == 2 and missing:
                why = f"the module {missing[1]} is missing"
        if why:
            return self._feedback(None, f"The check cannot judge here: {why}.\n{feedback.text}")
        return feedback

    def _missing(self, ran: Ran | str) -> str:
        """The launcher's message if what it should start does not exist; else "".

        In a workspace only a test tool counts: an attempt may still have to write anything else.
        """
        if isinstance(ran, str) or not ran.exit_code:
            return ""
        message = _MISSING.search(ran.stderr.strip())
        if message is None:
            return ""
        name = message[message.lastgroup or 0]
        if not any(name in part for part in self._argv):
            return ""
        return message[0] if self.expects != "workspace" or get_close_matches(name, _TOOLS, cutoff=0.8) else ""

    async def _run(self, job: Job) -> Ran | str:
        """How the job ended; a text says why it could not be started."""
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
            writable=(_repository_root(folder), *(path for path in self._writable if os.path.exists(path))),
            network=True,
            seconds=self._seconds,
            confined=False,
        )

    def _file_job(self, output: str) -> Job:
        name = "attempt.py" if self.expects == "code" else "attempt.txt"
        as_file = any(_ATTEMPT in part for part in self._argv)
        return Job(
            tuple(part.replace(_ATTEMPT, f"{{scratch}}/{name}") for part in self._argv),
            files={**self._copied, name: output},
            stdin="" if as_file else output,
            readable=self._readable,
            seconds=self._seconds,
        )

    def _judged(self, ran: Ran | str, attempt: Attempt | None = None, before: Sequence[Feedback] = ()) -> Feedback:
        if isinstance(ran, str):
            return self._feedback(None, f"The check {self._check!r} could not be started: {ran}")
        reports = reports_of(ran.stdout, ran.stderr)
        halted = attempt.outcome.halted if attempt and attempt.outcome else None
        note = f"Note: {halted}.\n" if halted else ""
        output = _printed(ran, self._tokens)
        if ran.level.startswith("unconfined") and _PERMISSION_DENIED.search(output):
            note += "Note: the check may write to the workspace, $TMPDIR and the folders of its setting `writable`.\n"
        if ran.timed_out:
            return self._feedback(
                False, f"{note}The check was stopped after {count(self._seconds, 'second')}.\n{output}"
            )
        if why := _not_run(ran):
            return self._feedback(None, f"{note}The check could not run: {why}.\n{output}")
        earlier = self._earlier_reports(before)
        if ran.exit_code == 0 and self._summary and (why := objection(earlier, reports, self._argv)):
            text = f"The check ended with status 0, but nothing shows that the tests passed: {why}."
            if not reports:
                text += " If it never prints one when the tests pass, set the evaluator's `summary` to false."
            return self._feedback(None, f"{note}{text}\n{output}")
        end = "was killed" if ran.exit_code is None else f"ended with status {ran.exit_code}"
        feedback = self._feedback(ran.exit_code == 0, f"{note}The check {end}.\n{output}", reports)
        fewer_tests = fewer(earlier, reports) if ran.exit_code == 0 else ""
        return replace(feedback, notes=(fewer_tests,)) if fewer_tests else feedback

    def _earlier_reports(self, before: Sequence[Feedback]) -> list[Report]:
        """What test runners reported before; without a first verdict, the runner that the command line names."""
        reports = [report for feedback in before for report in reports_in(feedback.evidence)]
        if reports or self._first_verdict is not None or not (runner := runner_of(self._argv)):
            return reports
        return [Report(runner)]

    def _feedback(self, passed: bool | None, text: str, reports: Sequence[Report] = ()) -> Feedback:
        output, evidence = text.rstrip(), None
        if passed is not None:
            finding = Finding(self._check, got=output, passed=passed)
            evidence = evidence_of([finding], **({REPORTS: [asdict(report) for report in reports]} if reports else {}))
        return Feedback(passed, output, share(reports), "command", evidence=evidence)


def _not_run(ran: Ran | str) -> str:
    """Why the command could not be run; "" if it was."""
    if isinstance(ran, str):
        return ran
    return f"{_NOT_RUN[ran.exit_code]} (status {ran.exit_code})" if ran.exit_code in _NOT_RUN else ""


def _printed(ran: Ran, tokens: int) -> str:
    """What the command printed, shortened. The longer stream is shortened first, and each keeps its head and its end:
    the end of standard output has a test runner's summary, however much there is on standard error."""
    streams = [Step(observation=text.rstrip()) for text in (ran.stdout, ran.stderr) if text.strip()]
    return "\n".join(step.observation for step in truncate(streams, tokens))


def _resolved(command: str) -> str:
    """The command, with its whole path if it is given as a path. Raises `InvalidInput` if it does not exist."""
    path = os.path.abspath(command) if os.sep in command else command
    if shutil.which(path) is None:
        is_file_here = os.path.isfile(command) and os.sep not in command
        advice = f"It is a file here: write ./{command}." if is_file_here else "Install it, or write its path."
        raise InvalidInput(f"The check's command {command!r} was not found, or is not executable. {advice}")
    return path


def _named_files(argv: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The user's files that a confined check names: the texts of relative paths, and the absolute paths."""
    copied: dict[str, str] = {}
    for part in argv:
        path = Path(part)
        if path.is_absolute() or ".." in path.parts or _ATTEMPT in part or len(part) > 255 or not path.is_file():
            continue
        try:
            copied[part] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"The file {part}, which the check uses, cannot be read: {error}.") from error
    return copied, tuple(part for part in argv if os.path.isabs(part) and os.path.isfile(part))


def _changed_folder(attempt: Attempt) -> tuple[str, str]:
    """The folder that the attempt changed, and why the check cannot run there, "" if it can."""
    folder = next((artifact.location for artifact in attempt.artifacts if artifact.kind in ("git", "folder")), "")
    if os.path.isdir(folder):
        return folder, ""
    return folder, f"its folder {folder} is gone" if folder else "it changed no workspace"


def _repository_root(folder: str) -> str:
    """The root of the repository, else the folder: a check may write beside where it runs, such as a cache."""
    folders = (Path(folder), *Path(folder).parents)
    return str(next((path for path in folders if os.path.lexists(path / ".git")), folder))
