"""Runs the check of a goal, and judges its result.

The job is specified when the goal is set, with the environment of that moment, and started from that specification
only: changes that an agent makes to its own environment have no effect.
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
    """The check as a job.

    Raises:
        InvalidInput: the command line cannot be read, or the command was not found.
        SandboxError: the level of the sandbox does not work here.
    """
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


def start(spec: Mapping[str, Any], folder: str, top: str, variables: Mapping[str, str] | None = None) -> client.Begun:
    """Start the check in a folder.

    Args:
        spec: the job, from `specify`.
        top: the tree of the folder, which the check may write to.
        variables: in addition to those in `spec`.
    """
    folder_of_scratch = os.path.realpath(os.environ.get("TMPDIR") or "/tmp")  # `tempfile` takes 5 ms to import
    scratch = os.path.join(folder_of_scratch, f"mulligan-{os.urandom(8).hex()}")
    env = {name: value.replace(SCRATCH, scratch) for name, value in spec["env"].items()}
    writable = [path.replace(SCRATCH, scratch) for path in spec["writable"]]
    job: Any = {name: value for name, value in spec.items() if name != "level"}
    job |= {"scratch": scratch, "cwd": folder, "env": {**env, "PWD": folder, **(variables or {})}}
    job["writable"] = [*writable, top]
    return client.Begun(job)


_TICK = 10_000_000
"""Nanoseconds by which the times of files may lag behind the clock."""


class Judge:
    """Judges tries at a goal in one folder.

    Args:
        goal: as it is recorded.
        folder: where the check runs.
        top: the tree that the folder is in.

    Attributes:
        diff: the changes in the folder since the goal was set; "" if they are unknown.
    """

    def __init__(self, goal: Row, folder: str, top: str) -> None:
        self._goal, self._folder, self._top = goal, folder, top
        self._settings: Mapping[str, Any] = goal.settings
        self.diff = self._judged = ""

    async def judge(self, before: Sequence[Any], begun: client.Begun | None) -> Feedback:
        """The verdict on the folder as it is now.

        Args:
            before: the feedback on earlier tries, in the form of `core.codec`.
            begun: the running check; None if a model judges.
        """
        import asyncio
        from dataclasses import replace

        from mulligan.core.records import Feedback
        from mulligan.workspace import states

        name, start = f"{self._goal.id}.{os.urandom(4).hex()}", self._settings.get("start")
        state = states.keep(self._folder, f"{name}/state", self._index(name)) if start else None
        diff = states.diff(self._folder, start, state) if start and state else None
        self.diff = diff or ""
        tracked, present = list[str](), list[str]()
        if begun and diff is not None:  # read while the check runs
            tracked, present = states.names(self._folder, str(start)), states.names(self._folder, str(state))
        if begun:
            feedback = await self._run(begun, self._folder, before, self.diff)
        elif state:
            from mulligan.goals import rubric

            feedback = await rubric.judge(
                self._settings, self._goal.spec["env"], self._folder, self._goal.prefix, state
            )
        else:
            feedback = Feedback(None, "Git cannot keep the state of this tree, so the model was not asked.")
        if feedback.passed and (reason := self._fewer(feedback)):
            feedback = self._unknown(feedback, f"{reason}, so it is unknown whether the goal is reached")
        elif feedback.passed and start and (state is None or diff is None):
            missing = "git does not have the current state of this tree, or its state when the goal was set"
            feedback = self._unknown(feedback, f"it is unknown what has changed: {missing}")
        elif feedback.passed and state and self._settings.get("protect"):
            after = states.keep(self._folder, f"{name}/after", self._index(name))  # the check may have written files
            feedback = await self._with_protected(name, feedback, before, after or state)
        hiding = None
        if feedback.passed and start:
            hiding = asyncio.create_task(asyncio.to_thread(states.files_git_hides, self._folder))
        if feedback.passed and begun and (changed := await asyncio.to_thread(self._changed_surroundings, tracked)):
            reason = f"files outside git that the check depends on have changed: {changed}"
            if self._settings.get("protect"):
                feedback = self._unknown(feedback, f"{reason}; --protect cannot restore them")
            else:
                feedback = replace(feedback, notes=(*feedback.notes, reason))
        if hiding and (hidden := self._steering(await hiding)) and feedback.passed:
            note = f"git ignores files that a test run reads, so it is unknown whether they changed: {hidden}"
            feedback = replace(feedback, notes=(*feedback.notes, note))
        if feedback.passed and begun and state and (written := self._changed_since(begun.at - _TICK, present)):
            feedback = replace(feedback, notes=(*feedback.notes, f"files were written while the check ran: {written}"))
        self._judged = name if state else ""
        return replace(feedback, source="goal")

    def forget(self) -> None:
        """Remove the state that was judged. That takes git a while, so it is done after the verdict is recorded."""
        if self._judged:
            from mulligan.workspace import states

            states.drop(self._folder, self._judged)

    def _changed_surroundings(self, tracked: Sequence[str]) -> str:
        """The files outside git that have changed since the goal was set. tracked: those that git kept then."""
        from mulligan.goals.surroundings import differing, surroundings

        goal = self._goal
        before: Mapping[str, Sequence[str]] | None = self._settings.get("surroundings")
        current = surroundings(goal.spec["env"], goal.spec["argv"], goal.folder, goal.prefix, tracked, before)
        return ", ".join(differing(current if before is None else before, current)[:10])

    def _changed_since(self, when: int, names: Sequence[str]) -> str:
        """The files among these that were written or replaced since a time, in nanoseconds."""
        changed: list[str] = []
        for name in names:
            with suppress(OSError):
                if os.lstat(os.path.join(self._top, name)).st_ctime_ns >= when:
                    changed.append(name)
        return ", ".join(changed[:10])

    def _steering(self, paths: Sequence[str]) -> str:
        """The files among these that can change the result of a test run."""
        from mulligan.text.command_lines import split_line
        from mulligan.text.runner_reports import test_files

        return ", ".join(test_files(paths, split_line(self._settings["check"]))[:10])

    async def _run(self, begun: client.Begun, folder: str, before: Sequence[Any], diff: str = "") -> Feedback:
        """The feedback of the check that runs in this folder."""
        from mulligan.core.codec import from_json
        from mulligan.core.errors import MulliganError
        from mulligan.core.records import Artifact, Attempt, Episode, Feedback, Task, Trial
        from mulligan.sandbox.local import BegunSandbox

        os.environ["PATH"] = self._goal.spec["env"].get("PATH", "")
        command = self._command(BegunSandbox(begun, self._goal.spec["level"]))
        verdicts = [from_json(Feedback, verdict) for verdict in (self._goal.first, *before) if verdict]
        trials = [Trial(n, Attempt(""), verdict) for n, verdict in enumerate(verdicts, 1)]
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
        """The feedback of a goal with a score, which is the last number that a check with exit status 0 prints."""
        if "at_least" not in self._settings or not feedback.passed:
            return feedback
        import re
        from dataclasses import replace

        numbers = re.findall(
            r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])", feedback.text.partition("\n")[2]
        )
        if not numbers:
            return self._unknown(feedback, "it printed no number")
        score, wanted = float(numbers[-1]), self._settings["at_least"]
        text = f"The score is {score:g}; at least {wanted:g} is needed.\n{feedback.text}"
        return replace(feedback, passed=score >= wanted, score=score, text=text)

    def _fewer(self, feedback: Feedback) -> str:
        """What is wrong if a check passes with fewer tests than when the goal was set; "" for nothing."""
        from mulligan.text.runner_reports import fewer, reports_in

        first: Mapping[str, Any] = self._goal.first or {}
        return fewer(reports_in(first.get("evidence") or {}), reports_in(feedback.evidence))

    def _unknown(self, feedback: Feedback, why: str) -> Feedback:
        from dataclasses import replace

        return replace(
            feedback, passed=None, text=f"The check passed, but that does not count: {why}.\n{feedback.text}"
        )

    async def _with_protected(self, episode_id: str, feedback: Feedback, before: Sequence[Any], state: str) -> Feedback:
        """The feedback of the check in a worktree of this state, with the protected files as when the goal was set.

        New files that can change a test run, such as a `conftest.py`, are removed there, and compiled Python files.
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
        episode = Episode(episode_id, Task(""), trials=(Trial(1, attempt),), forked_from=f"{self._goal.id}.1")
        try:
            worktree = await workspace.open(episode)
            async with workspace.protecting(episode) as changed:
                contents_then = self._settings.get("contents")
                if contents_then and contents_then != contents(worktree.folder, self._settings["protect"]):
                    reason = "git no longer returns the protected files as they were when the goal was set"
                    return self._unknown(feedback, f"{reason}: its settings, filters or records have changed")
                verdict = await self._beside(worktree, before)
            if not verdict.passed:
                unprotected = await self._beside(worktree, before)
                if not unprotected.passed:
                    lacks = "a worktree with the same state lacks what the check needs, so the verdict is unknown"
                    return self._unknown(feedback, f"{lacks}. There it said:\n{unprotected.text}")
        except (MulliganError, OSError) as error:
            return self._unknown(feedback, f"the protected files could not be restored ({error})")
        finally:
            await workspace.close(episode)
        note = f"judged with these files as they were when the goal was set: {', '.join(changed[:10])}"
        return replace(verdict, notes=(*verdict.notes, note)) if changed else verdict

    def _new(self, paths: Sequence[str]) -> list[str]:
        """Paths that are relative to the top of the tree, relative to the goal's folder."""
        return [os.path.relpath(path, self._goal.prefix or ".") for path in paths]

    async def _beside(self, worktree: Any, before: Sequence[Any]) -> Feedback:
        """The feedback of the check in a worktree; unknown if it uses files of the user's own tree there."""
        from mulligan.workspace.preflight import outside_files, watching_environment

        env = watching_environment(worktree)
        paths = [env["PYTHONPATH"].split(os.pathsep)[0], self._goal.spec["env"].get("PYTHONPATH")]
        env["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        feedback = await self._run(start(self._goal.spec, worktree.folder, worktree.root, env), worktree.folder, before)
        if outside := outside_files(worktree):
            return self._unknown(feedback, f"in a worktree it runs files of your own tree: {', '.join(outside[:3])}")
        return feedback

    async def try_out(self) -> str:
        """Try the check in a worktree, and return the `contents` of the protected files there.

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
            worktree = await workspace.open(episode)
            digest = contents(worktree.folder, self._settings["protect"])
            if self._settings["first_check"]:
                await tried(workspace, episode, self._command(LocalSandbox(level=self._settings["sandbox"])))
            return digest
        finally:
            await workspace.close(episode)

    def _index(self, name: str) -> Any:
        from pathlib import Path

        return Path(home_path(), f"goal-{name}.index")


def contents(folder: str, names: Sequence[str]) -> str:
    """A digest of these files, and of all files in these folders, as they are on disk: what git says can be changed."""
    import hashlib

    digest = hashlib.sha256()
    for name in sorted(names):
        top = os.path.join(folder, name)
        paths = [os.path.join(parent, inner) for parent, folders, files in os.walk(top) for inner in (*folders, *files)]
        for path in sorted(paths) or [top]:
            label = f"{os.path.relpath(path, folder)}\0".encode(errors="surrogateescape")
            if os.path.islink(path):
                digest.update(label + os.readlink(path).encode(errors="surrogateescape"))
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    digest.update(label + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def check_now(goal: Row, folder: str, top: str) -> Feedback:
    """Run the check now. This is not a try, and does not end the goal."""
    import asyncio

    begun = start(goal.spec, folder, top) if goal.settings["check"] else None
    judge = Judge(goal, folder, top)
    try:
        return asyncio.run(judge.judge((), begun))
    finally:
        judge.forget()
