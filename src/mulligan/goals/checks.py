"""Runs the check of a goal and judges what it shows.

The job is described when the goal is set, with the environment of that moment, and is started from that description
alone: whatever an agent has done to its own environment since counts nothing.
"""

from __future__ import annotations

import os
from contextlib import suppress

from mulligan.core.home import home_path
from mulligan.sandbox import client

TYPE_CHECKING = False  # what judges is imported while the check runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mulligan.core.records import Episode, Feedback
    from mulligan.evaluators.command import Command
    from mulligan.goals.database import Row

SCRATCH = "{scratch}"


def specify(check: str, folder: str, seconds: float, sandbox: str) -> dict[str, Any]:
    """The check as a job. Raises `InvalidInput` for one that cannot be read or found, `SandboxError`."""
    import shutil

    from mulligan.evaluators.command import Command
    from mulligan.sandbox import policy
    from mulligan.sandbox.local import LocalSandbox

    local = LocalSandbox(level=sandbox)
    command = Command(check, sandbox=local, seconds=seconds)
    job = command.folder_job(folder, {})
    level = local.level_for(job)
    spec = dict(policy.specify(job, level, SCRATCH))
    program = job.argv[0]
    spec["argv"] = [program if os.sep in program else shutil.which(program) or program, *job.argv[1:]]
    return {**spec, "level": level.name}


def start(spec: Mapping[str, Any], folder: str, top: str, more: Mapping[str, str] | None = None) -> client.Begun:
    """Start the check in a folder.

    Args:
        spec: what `specify` gave.
        top: the tree that the folder is in, which the check may write to.
        more: variables beside those of the moment when the goal was set.
    """
    folder_of_scratch = os.path.realpath(os.environ.get("TMPDIR") or "/tmp")  # `tempfile` takes 5 ms to import
    scratch = os.path.join(folder_of_scratch, f"mulligan-{os.urandom(8).hex()}")
    env = {name: value.replace(SCRATCH, scratch) for name, value in spec["env"].items()}
    writable = [path.replace(SCRATCH, scratch) for path in spec["writable"]]
    job: Any = {name: value for name, value in spec.items() if name != "level"}
    job |= {"scratch": scratch, "cwd": folder, "env": {**env, "PWD": folder, **(more or {})}}
    job["writable"] = [*writable, top]
    return client.Begun(job)


_TICK = 10_000_000
"""Nanoseconds by which the kernel's clock for the times of files may be behind."""


class Judge:
    """Judges tries at a goal in one folder.

    Args:
        goal: as it is recorded.
        folder: where the check runs.
        top: the tree that the folder is in.

    Attributes:
        diff: what the folder differs in from when the goal was set, as far as it is known.
    """

    def __init__(self, goal: Row, folder: str, top: str) -> None:
        self._goal, self._folder, self._top = goal, folder, top
        self._settings: Mapping[str, Any] = goal.settings
        self.diff = self._judged = ""

    async def judge(self, before: Sequence[Any], begun: client.Begun | None) -> Feedback:
        """The verdict on the folder as it is now.

        Args:
            before: the feedback on earlier tries, as `core.codec` writes it.
            begun: the check, which runs; None where a model judges.
        """
        import asyncio
        from dataclasses import replace

        from mulligan.core.records import Feedback
        from mulligan.workspace import states

        own, start = f"{self._goal.id}.{os.urandom(4).hex()}", self._settings.get("start")
        state = states.keep(self._folder, f"{own}/state", self._index(own)) if start else None
        diff = states.diff(self._folder, start, state) if start and state else None
        self.diff = diff or ""
        tracked, kept = list[str](), list[str]()
        if begun and diff is not None:  # read while the check runs
            tracked, kept = states.names(self._folder, str(start)), states.names(self._folder, str(state))
        if begun:
            feedback = await self._run(begun, self._folder, before, self.diff)
        elif state:
            from mulligan.goals import rubric

            feedback = await rubric.judge(
                self._settings, self._goal.spec["env"], self._folder, self._goal.prefix, state
            )
        else:
            feedback = Feedback(None, "Git cannot keep the state of this tree, so the model was not asked.")
        if feedback.passed and (why := self._fewer(feedback)):
            feedback = self._unknown(feedback, f"{why}, so it is unknown whether the goal is reached")
        elif feedback.passed and start and (state is None or diff is None):
            lost = "git does not have the current state of this tree, or its state when the goal was set"
            feedback = self._unknown(feedback, f"it is unknown what has changed: {lost}")
        elif feedback.passed and state and self._settings.get("protect"):
            after = states.keep(self._folder, f"{own}/after", self._index(own))  # what stands when the check is over
            feedback = await self._with_protected(own, feedback, before, after or state)
        hiding = None
        if feedback.passed and start:
            hiding = asyncio.create_task(asyncio.to_thread(states.files_git_hides, self._folder))
        if feedback.passed and begun and (others := await asyncio.to_thread(self._changed_surroundings, tracked)):
            why = f"files outside git that the check depends on have changed: {others}"
            if self._settings.get("protect"):
                feedback = self._unknown(feedback, f"{why}; --protect cannot restore them")
            else:
                feedback = replace(feedback, notes=(*feedback.notes, why))
        if hiding and (hidden := self._steering(await hiding)) and feedback.passed:
            note = f"git ignores files that a test run reads, so it is unknown whether they changed: {hidden}"
            feedback = replace(feedback, notes=(*feedback.notes, note))
        if feedback.passed and begun and state and (moved := self._changed_since(begun.at - _TICK, kept)):
            feedback = replace(feedback, notes=(*feedback.notes, f"files were written while the check ran: {moved}"))
        self._judged = own if state else ""
        return replace(feedback, source="goal")

    def forget(self) -> None:
        """Remove the state that was judged. This takes git a while, so it comes after the verdict is recorded."""
        if self._judged:
            from mulligan.workspace import states

            states.drop(self._folder, self._judged)

    def _changed_surroundings(self, tracked: Sequence[str]) -> str:
        """Names files outside of git that differ from when the goal was set, when git kept the tracked ones."""
        from mulligan.goals.surroundings import differing, surroundings

        goal = self._goal
        before: Mapping[str, Sequence[str]] | None = self._settings.get("surroundings")
        now = surroundings(goal.spec["env"], goal.spec["argv"], goal.folder, goal.prefix, tracked, before)
        return ", ".join(differing(now if before is None else before, now)[:10])

    def _changed_since(self, when: int, names: Sequence[str]) -> str:
        """Those of these files that were written or replaced since a time, in nanoseconds."""
        changed: list[str] = []
        for name in names:
            with suppress(OSError):
                if os.lstat(os.path.join(self._top, name)).st_ctime_ns >= when:
                    changed.append(name)
        return ", ".join(changed[:10])

    def _steering(self, paths: Sequence[str]) -> str:
        """Those of these files that a test run rests on."""
        from mulligan.text.command_lines import split_line
        from mulligan.text.runner_reports import test_files

        return ", ".join(test_files(paths, split_line(self._settings["check"]))[:10])

    async def _run(self, begun: client.Begun, folder: str, before: Sequence[Any], diff: str = "") -> Feedback:
        """What the check says that runs in this folder."""
        from mulligan.core.codec import from_json
        from mulligan.core.errors import MulliganError
        from mulligan.core.records import Artifact, Attempt, Episode, Feedback, Task, Trial
        from mulligan.sandbox.local import BegunSandbox

        os.environ["PATH"] = self._goal.spec["env"].get("PATH", "")
        command = self._command(BegunSandbox(begun, self._goal.spec["level"]))
        told = [from_json(Feedback, one) for one in (self._goal.first, *before) if one]
        trials = [Trial(n, Attempt(""), one) for n, one in enumerate(told, 1)]
        attempt = Attempt(diff, artifacts=(Artifact("folder", "", folder),))
        episode = Episode(
            f"{self._goal.id}.1", Task(self._goal.label), trials=(*trials, Trial(len(trials) + 1, attempt))
        )
        try:
            return self._scored(await command.evaluate(episode))
        except MulliganError as error:
            return Feedback(None, str(error))

    def _command(self, sandbox: Any) -> Command:
        from mulligan.evaluators.command import Command

        return Command(
            self._settings["check"],
            sandbox=sandbox,
            seconds=self._settings["seconds"],
            summary="at_least" not in self._settings,
        )

    def _scored(self, feedback: Feedback) -> Feedback:
        """The verdict of a goal that is a score: the last number that a check prints which ends with 0."""
        if "at_least" not in self._settings or not feedback.passed:
            return feedback
        import re
        from dataclasses import replace

        numbers = re.findall(
            r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])", feedback.text.partition("\n")[2]
        )
        if not numbers:
            return self._unknown(feedback, "it printed no number")
        score, least = float(numbers[-1]), self._settings["at_least"]
        text = f"The score is {score:g}; at least {least:g} is needed.\n{feedback.text}"
        return replace(feedback, passed=score >= least, score=score, text=text)

    def _fewer(self, feedback: Feedback) -> str:
        """What speaks against a check that passes: it ran fewer tests than when the goal was set."""
        from mulligan.text.runner_reports import fewer, reports_in

        first: Mapping[str, Any] = self._goal.first or {}
        return fewer(reports_in(first.get("evidence") or {}), reports_in(feedback.evidence))

    def _unknown(self, feedback: Feedback, why: str) -> Feedback:
        from dataclasses import replace

        return replace(
            feedback, passed=None, text=f"The check passed, but that does not count: {why}.\n{feedback.text}"
        )

    async def _with_protected(self, own: str, feedback: Feedback, before: Sequence[Any], state: str) -> Feedback:
        """The verdict of a worktree of this state in which what the goal protects is as it was when it was set.

        New files that steer a test run, such as a `conftest.py`, are set aside with it, and compiled ones of Python.
        """
        from dataclasses import replace

        from mulligan.core.errors import MulliganError
        from mulligan.core.records import Artifact, Attempt, Episode, Task, Trial
        from mulligan.text.command_lines import split_line
        from mulligan.text.runner_reports import test_files
        from mulligan.workspace import states
        from mulligan.workspace.git_workspace import GitWorkspace

        added = states.added(self._folder, self._settings["start"], state)
        steering = [*test_files(added, split_line(self._settings["check"])), *(n for n in added if n.endswith(".pyc"))]
        protect = (*self._settings["protect"], *self._new(steering))
        workspace = GitWorkspace(folder=self._goal.folder, watch=False, protect=protect)
        attempt = Attempt("", artifacts=(Artifact("git", state, ""),))
        episode = Episode(own, Task(""), trials=(Trial(1, attempt),), forked_from=f"{self._goal.id}.1")
        try:
            place = await workspace.open(episode)
            async with workspace.protecting(episode) as changed:
                known = self._settings.get("contents")
                if known and known != contents(place.folder, self._settings["protect"]):
                    why = "git returns other protected files than when the goal was set"
                    return self._unknown(feedback, f"{why}: its settings, filters or records have changed")
                verdict = await self._beside(place, before)
            if not verdict.passed:
                as_it_is = await self._beside(place, before)
                if not as_it_is.passed:
                    lacks = "a worktree with the same state lacks what the check needs, so the verdict is unknown"
                    return self._unknown(feedback, f"{lacks}. There it said:\n{as_it_is.text}")
        except (MulliganError, OSError) as error:
            return self._unknown(feedback, f"the protected files could not be restored ({error})")
        finally:
            await workspace.close(episode)
        note = f"judged with these files as they were when the goal was set: {', '.join(changed[:10])}"
        return replace(verdict, notes=(*verdict.notes, note)) if changed else verdict

    def _new(self, paths: Sequence[str]) -> list[str]:
        """Paths from the top of the tree, as the goal's folder sees them."""
        return [os.path.relpath(path, self._goal.prefix or ".") for path in paths]

    async def _beside(self, place: Any, before: Sequence[Any]) -> Feedback:
        """What the check says in a worktree; unknown where it runs files of the user's own tree there."""
        from mulligan.workspace.preflight import outside_files, watching_environment

        env = watching_environment(place)
        given = self._goal.spec["env"].get("PYTHONPATH")
        env["PYTHONPATH"] = os.pathsep.join([env["PYTHONPATH"].split(os.pathsep)[0], *([given] if given else [])])
        feedback = await self._run(start(self._goal.spec, place.folder, place.root, env), place.folder, before)
        if outside := outside_files(place):
            return self._unknown(feedback, f"in a worktree it runs files of your own tree: {', '.join(outside[:3])}")
        return feedback

    async def try_out(self) -> str:
        """The `contents` of what the goal protects, in a worktree.

        Raises:
            InvalidInput: the check cannot judge in a worktree.
        """
        from mulligan.core.records import Episode, Task
        from mulligan.sandbox.local import LocalSandbox
        from mulligan.workspace.git_workspace import GitWorkspace
        from mulligan.workspace.preflight import tried

        if not self._settings.get("protect"):
            return ""
        workspace = GitWorkspace(folder=self._folder, watch=False, protect=self._settings["protect"])
        episode: Episode = Episode(f"{self._goal.id}.1", Task(""))
        try:
            place = await workspace.open(episode)
            found = contents(place.folder, self._settings["protect"])
            if self._settings["first_check"]:
                await tried(workspace, episode, self._command(LocalSandbox(level=self._settings["sandbox"])))
            return found
        finally:
            await workspace.close(episode)

    def _index(self, own: str) -> Any:
        from pathlib import Path

        return Path(home_path(), f"goal-{own}.index")


def contents(folder: str, names: Sequence[str]) -> str:
    """A digest of files, and of all below folders, as they are on disk: what git says of them can be changed."""
    import hashlib

    found = hashlib.sha256()
    for name in sorted(names):
        top = os.path.join(folder, name)
        below = [os.path.join(at, one) for at, inner, files in os.walk(top) for one in (*inner, *files)]
        for path in sorted(below) or [top]:
            if os.path.islink(path) or os.path.isfile(path):
                found.update(f"{os.path.relpath(path, folder)}\0".encode(errors="surrogateescape"))
                found.update(
                    os.readlink(path).encode(errors="surrogateescape") if os.path.islink(path) else _read(path)
                )
    return found.hexdigest()


def _read(path: str) -> bytes:
    import hashlib

    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def check_now(goal: Row, folder: str, top: str) -> Feedback:
    """What the check shows at this moment. It is no try, and ends nothing."""
    import asyncio

    begun = start(goal.spec, folder, top) if goal.settings["check"] else None
    judge = Judge(goal, folder, top)
    try:
        return asyncio.run(judge.judge((), begun))
    finally:
        judge.forget()
