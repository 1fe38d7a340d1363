"""Prove that the lessons of hooks help, or not: the same tasks of a project with its bank and without.

Each run is a session of the user's coding agent in a fresh copy of the project. Its hooks are called in both arms and
learn nothing; in one arm the bank is a copy of the project's, in the other it is empty. A command of the user judges.
What has ended is a line in `runs.jsonl`, so that an interrupted proof goes on.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from mulligan.actors.command import HOMES as WRITABLE
from mulligan.actors.command import agent_job, check_tree, halted, split_command
from mulligan.app.backup import copy_file
from mulligan.bench.own_tasks._task_file import Table, read_tables
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.protocols import Checkout, Sandbox
from mulligan.core.records import Episode, Task
from mulligan.core.turns import Turn
from mulligan.evaluators.command import Command
from mulligan.hooks.entry import RECALL, SWITCH
from mulligan.hooks.journal import FILE, Journal, Session
from mulligan.hooks.learning import events_since
from mulligan.hooks.project import project_id
from mulligan.hooks.recall import Reader, store_file
from mulligan.models import weights
from mulligan.sessions.agents import agent
from mulligan.sessions.pairs import signature_of
from mulligan.sessions.signature import digest
from mulligan.text.command_lines import split_line
from mulligan.text.secrets import mask
from mulligan.workspace.git_workspace import GitWorkspace
from mulligan.workspace.leftovers import leftovers, repository_of
from mulligan.workspace.preflight import preflight

Arm: TypeAlias = Literal["control", "treatment"]
ARMS: tuple[Arm, Arm] = ("control", "treatment")
"""Without the bank, and with it."""
TOP = ("bank", "mode", "task")
TASK = ("name", "prompt", "check", "folder", "family", "setup")
PLAN, BANK, RUNS = "plan.json", "bank.db", "runs.jsonl"
WORK, HOMES = "work", "homes"
"""The copies of projects, and Mulligan's homes, of sessions that go on."""
_STORE, _PREFIX = "mulligan.db", "prove-"
_USAGE = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(frozen=True)
class ProofTask:
    """A task of the file.

    Attributes:
        check: the command that judges: status 0 is solved. It runs in the copy of the project.
        folder: of the project.
        family: the name of a group of like tasks; its own name where there is none.
        setup: a command that brings a fresh copy into the state that the task begins with.
        bank: the agent id of the lessons.
        where: `FILE:LINE`.
    """

    name: str
    prompt: str
    check: str
    folder: str
    family: str
    setup: str
    bank: str
    where: str


@dataclass(frozen=True)
class Plan:
    """What is run. agent: its command line. mode: how a project is copied. id: names the runs in a repository."""

    tasks: tuple[ProofTask, ...]
    agent: str
    repeats: int = 1
    seed: int = 0
    seconds: float = 600.0
    mode: Literal["", "worktree", "copy"] = ""
    id: str = ""

    def runs(self) -> Iterator[Run]:
        """All runs in order: the two arms of a task one after the other, which first by a draw."""
        drawn, n = random.Random(self.seed), 0
        for repeat in range(1, self.repeats + 1):
            for task in self.tasks:
                for arm in drawn.sample(ARMS, 2):
                    n += 1
                    yield Run(n, task, repeat, arm)


@dataclass(frozen=True)
class Run:
    """One session to be: a task in an arm."""

    n: int
    task: ProofTask
    repeat: int
    arm: Arm

    @property
    def name(self) -> str:
        return f"{self.task.name}, {self.arm}" + (f", {self.repeat}" if self.repeat > 1 else "")


@dataclass(frozen=True)
class Row:
    """A session that has ended; the columns of the CSV. None: not known.

    Attributes:
        n: its place in the order of all.
        solved: whether the check passed afterwards.
        hooked: whether the agent called its hooks.
        shown: lessons that it was shown.
        calls, failed: tool calls, and those of them that failed with an error.
        again: failed calls with an error that had come before in the session.
        tokens: what the agent's output says that it took.
        halted: why the agent did not end well.
        swallowed: errors that the hooks kept from the agent.
    """

    n: int
    task: str
    family: str
    repeat: int
    arm: Arm
    solved: bool
    hooked: bool
    shown: int
    calls: int | None
    failed: int | None
    again: int | None
    seconds: float
    tokens: int | None
    halted: str
    swallowed: int


# --- the plan --------------------------------------------------------------------------------------------------------


def read_proof(file: Path) -> tuple[tuple[ProofTask, ...], Literal["", "worktree", "copy"]]:
    """The tasks of a file, and how their projects are copied. Raises `InvalidInput` with file and line."""
    top, tables = read_tables(file)
    top.only(TOP)
    mode = top.text("mode") if "mode" in top.values else ""
    if mode not in ("", "worktree", "copy"):
        raise top.wrong("mode", f"'mode' must be worktree or copy, not {mode!r}.")
    if not tables:
        raise InvalidInput(
            f"{file} has no task: start one with [[task]], then name, prompt and check; or let "
            "`mulligan bench prove --draft FILE` write some from the lessons of this project."
        )
    found = dict[str, ProofTask]()
    banks = _Banks(top.text("bank") if "bank" in top.values else "")
    for table in tables:
        task = _task(table, banks)
        if task.name in found:
            raise table.wrong("name", f"The task {task.name!r} already exists: {found[task.name].where}.")
        found[task.name] = task
    return tuple(found.values()), mode


def _task(table: Table, banks: _Banks) -> ProofTask:
    table.only(TASK)
    for key in ("name", "prompt", "check"):
        if key not in table.values:
            raise table.wrong(key, f"The task has no {key}.")
    given = {key: table.text(key) for key in table.values}
    folder = os.path.realpath(table.file.parent / os.path.expanduser(given.get("folder", ".")))
    if not os.path.isdir(folder):
        raise table.wrong("folder", f"The folder {folder} does not exist.")
    for key in ("check", "setup"):
        if key in given:
            _startable(table, key, given[key])
    return ProofTask(
        given["name"],
        given["prompt"],
        given["check"],
        folder,
        given.get("family", given["name"]),
        given.get("setup", ""),
        banks.of(folder),
        table.where(),
    )


def _startable(table: Table, key: str, line: str) -> None:
    """Raises `InvalidInput` for a command line that cannot be started. A path may be that of a file of the project."""
    try:
        program = (*split_line(line), "")[0]
    except ValueError as error:
        raise table.wrong(key, f"The {key} {line!r} cannot be read: {error}.") from error
    if os.sep not in program and shutil.which(program) is None:
        raise table.wrong(key, f"The {key} {line!r} starts {program!r}, which is not on the PATH.")


class _Banks:
    """The banks of projects. named: the one that a file of tasks names for all."""

    def __init__(self, named: str) -> None:
        self._named = named
        self._found = dict[str, str]()

    def of(self, folder: str) -> str:
        if self._named:
            return self._named
        if folder not in self._found:
            with Journal() as journal:
                self._found[folder] = journal.bank_of(project_id(folder))
        return self._found[folder]


def check_banks(tasks: Sequence[ProofTask]) -> None:
    """Raises `InvalidInput` if one of the banks has no lessons."""
    for bank in dict.fromkeys(task.bank for task in tasks):
        with closing(Reader(bank, wait=5.0)) as reader:
            if sum(reader.numbers()) == 0:
                raise InvalidInput(
                    f"The bank {bank} has no lessons for hooks to show, so there is nothing to compare. `mulligan "
                    "learn --since 30d` learns from old sessions of the project in this folder."
                )


# --- running ---------------------------------------------------------------------------------------------------------

OnRow: TypeAlias = Callable[[Run, Row | None], None]
"""Called before each run, and after it with what came of it."""


class Proof:
    """A proof in a folder: its plan, a frozen copy of the bank, and the rows of the runs that have ended."""

    def __init__(self, plan: Plan, into: Path, sandbox: Sandbox) -> None:
        self.plan = plan
        self.into = into
        self._sandbox = sandbox
        self._argv = split_command(plan.agent)

    @classmethod
    def open(cls, into: Path, sandbox: Sandbox) -> Proof:
        """One that was begun. Raises `InvalidInput` for a folder that holds none."""
        try:
            given: dict[str, Any] = json.loads((into / PLAN).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InvalidInput(f"{into} contains no comparison: {PLAN} is missing.") from None
        given["tasks"] = tuple(ProofTask(**task) for task in given["tasks"])
        return cls(Plan(**given), into, sandbox)

    @classmethod
    async def begin(
        cls, plan: Plan, into: Path, sandbox: Sandbox, seen: Callable[[ProofTask], None] = lambda _: None
    ) -> Proof:
        """A new one. Copies the bank, tries each check in a fresh copy of its project, then writes the plan.

        Calls no agent. Raises `InvalidInput` for what could not be run or would prove nothing, such as a check that
        passes already. seen: gets each task before its check is tried.
        """
        proof = cls(replace(plan, id=secrets.token_hex(4)), into, sandbox)
        if plan.repeats < 1 or plan.seconds <= 0:
            raise InvalidInput("repeats and seconds must be above 0.")
        check_banks(plan.tasks)
        if inside := next((task for task in plan.tasks if into.is_relative_to(_top(task.folder))), None):
            raise InvalidInput(f"{into} is in the project of the task {inside.name!r}: choose another folder.")
        if (into / PLAN).exists():
            raise InvalidInput(
                f"{into} already contains a comparison. To continue it: mulligan bench prove --resume {into}"
            )
        try:
            _freeze(store_file(), into)
            for task in plan.tasks:
                seen(task)
                await proof._try_check(task)
        except BaseException:
            _take_back(into)
            raise
        (into / PLAN).write_text(json.dumps(asdict(proof.plan), indent=1), encoding="utf-8")
        return proof

    async def _try_check(self, task: ProofTask) -> None:
        workspace, episode = self._workspace(task), self._episode(task, 0)
        try:
            await self._set_up(await workspace.open(episode), task)
            await preflight(workspace, episode, self._judge(task))
        except InvalidInput as error:
            raise InvalidInput(f"{task.where}: the task {task.name!r}: {error}") from error
        finally:
            await _remove(workspace, episode)

    def rows(self) -> list[Row]:
        """What has ended, in order."""
        file = self.into / RUNS
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
        whole = (line for line in lines if line.endswith("}\n"))  # a killed process may have left half a line
        return sorted((Row(**json.loads(line)) for line in whole), key=lambda row: row.n)

    async def run(self, on_row: OnRow = lambda _, __: None) -> None:
        """Runs what has not ended yet. Raises `MulliganError`; what has ended stays."""
        before = self.rows()
        ended, hooked = {row.n for row in before}, any(row.hooked for row in before)
        for run in self.plan.runs():
            if run.n in ended:
                continue
            on_row(run, None)
            row = await self._run(run)
            if not (hooked := hooked or row.hooked):
                raise InvalidInput(
                    f"The agent did not call Mulligan's hooks, so it gets no lessons. {row.halted or 'It ended well'}; "
                    f"its output: {self._output(run)}. Check with `mulligan hooks doctor` that the hooks are "
                    f"installed for all projects of this user, then: mulligan bench prove --resume {self.into}"
                )
            on_row(run, row)

    async def _run(self, run: Run) -> Row:
        workspace, episode = self._workspace(run.task), self._episode(run.task, run.n)
        home = self.into / HOMES / str(run.n)
        shutil.rmtree(home, ignore_errors=True)  # of a process that was killed
        await workspace.discard(episode.id)
        try:
            place = await workspace.open(episode)
            await self._set_up(place, run.task)
            self._furnish(home, place, run)
            environment = {
                "MULLIGAN_HOME": str(home),
                "MULLIGAN_STORE": str(home / _STORE),
                "MULLIGAN_MODELS": str(weights.folder().resolve()),
                SWITCH: RECALL,
            }
            job = agent_job(
                self._argv,
                run.task.prompt,
                place,
                seconds=self.plan.seconds,
                writable=(*WRITABLE, str(home)),
                env=environment,
            )
            ran = await self._sandbox.run(job)
            judged = await self._judge(run.task).try_out(place.folder, {})
            self._output(run).parent.mkdir(exist_ok=True)
            self._output(run).write_text(mask(f"{ran.stdout}\n{ran.stderr}"), encoding="utf-8", errors="replace")
            row = Row(
                run.n,
                run.task.name,
                run.task.family,
                run.repeat,
                run.arm,
                solved=judged.passed is True,
                seconds=round(ran.seconds, 1),
                tokens=_tokens(ran.stdout),
                halted=halted(ran, self.plan.seconds) or "",
                **_measured(home),
            )
            if row.hooked or self.rows():  # `run` refuses a first one that is not
                with (self.into / RUNS).open("a", encoding="utf-8") as file:
                    file.write(f"\n{json.dumps(asdict(row))}\n")  # not behind half a line
            await check_tree(place, f"the run {run.name}")
            return row
        finally:
            await _remove(workspace, episode)
            shutil.rmtree(home, ignore_errors=True)

    def _furnish(self, home: Path, place: Checkout, run: Run) -> None:
        """Mulligan's home for one session: in the arm with the bank a copy of it, else nothing but the address."""
        home.mkdir(parents=True, mode=0o700)
        with Journal(str(home / FILE)) as journal:
            journal.bind(project_id(place.folder), run.task.bank)
        if run.arm == "treatment":
            shutil.copyfile(self.into / BANK, home / _STORE)

    async def _set_up(self, place: Checkout, task: ProofTask) -> None:
        if task.setup:
            done = await Command(task.setup, sandbox=self._sandbox, expects="workspace").try_out(place.folder, {})
            if done.passed is not True:
                raise InvalidInput(f"its setup failed:\n{done.text}")

    def _workspace(self, task: ProofTask) -> GitWorkspace:
        mode = self.plan.mode or ("worktree" if repository_of(task.folder) else "copy")
        return GitWorkspace(folder=task.folder, mode=mode, data=str(self.into / WORK))

    def _episode(self, task: ProofTask, n: int) -> Episode:
        return Episode(f"{_PREFIX}{self.plan.id}-{n}", Task(task.prompt))

    def _judge(self, task: ProofTask) -> Command:
        return Command(task.check, sandbox=self._sandbox, expects="workspace", seconds=self.plan.seconds)

    def _output(self, run: Run) -> Path:
        return self.into / "outputs" / f"{run.n}.txt"


def clear_killed(folders: Iterable[Path]) -> int:
    """Removes what killed processes left in the folders of proofs: copies of projects, with their worktrees in git, and
    the homes of their sessions. From how many sessions."""
    cleared = 0
    for into in folders:
        for left in leftovers([str(into / WORK)], ()).values():
            if left.folder is None or not left.episode.startswith(_PREFIX) or not left.remove():  # it may go on
                continue
            shutil.rmtree(into / HOMES / left.episode.rpartition("-")[2], ignore_errors=True)
            cleared += 1
            if not (into / PLAN).exists():  # so nobody can go on with it
                _take_back(into)
    return cleared


def _take_back(into: Path) -> None:
    """Removes the copy of the bank of a proof that has not begun, and folders that are empty then."""
    (into / BANK).unlink(missing_ok=True)
    for folder in (into / WORK, into):
        with suppress(OSError):
            folder.rmdir()


async def _remove(workspace: GitWorkspace, episode: Episode) -> None:
    await workspace.close(episode)
    await workspace.discard(episode.id)


def _top(folder: str) -> Path:
    """The top of the repository that a folder is in, else the folder."""
    return next((one for one in (Path(folder), *Path(folder).parents) if (one / ".git").exists()), Path(folder))


def _freeze(store: str, into: Path) -> None:
    """Copies the bank into the folder, as one file that stands alone. Raises `StoreError`."""
    into.mkdir(parents=True, exist_ok=True, mode=0o700)
    copy_file(store, into / BANK)


# --- what a session says of itself -----------------------------------------------------------------------------------


def _measured(home: Path) -> dict[str, Any]:
    """What the hooks noted in this home, and the transcripts that they named."""
    with Journal(str(home / FILE)) as journal:
        sessions = journal.sessions()
        shown = sum(one.way == "shown" for one in journal.shown())
        swallowed = len(journal.errors())
    calls = _calls(sessions)
    failed = None if calls is None else [digest(lines) for name, call in calls if (lines := signature_of(call, name))]
    return {
        "hooked": bool(sessions),
        "shown": shown,
        "calls": None if calls is None else len(calls),
        "failed": None if failed is None else len(failed),
        "again": None if failed is None else len(failed) - len(set(failed)),
        "swallowed": swallowed,
    }


def _calls(sessions: Sequence[Session]) -> list[tuple[str, Turn]] | None:
    """The tool calls of these sessions, each with its agent; None where no transcript can be read."""
    read = [(one.agent, events) for one in sessions if (events := transcript_of(one)) is not None]
    return [(name, event) for name, events in read for event in events if event.is_call] if read else None


def transcript_of(session: Session) -> list[Turn] | None:
    """What happened in a session; None if its transcript is gone or cannot be read."""
    if not agent(session.agent).readable or not session.transcript:
        return None
    try:
        return events_since(session.agent, session.session, session.transcript, {})[0]
    except (OSError, ValueError, sqlite3.Error, MulliganError):
        return None


def _tokens(output: str) -> int | None:
    """The tokens in the last line of an agent's output that is JSON with its `usage`; None where there is none."""
    for line in reversed(output.splitlines()):
        try:
            said: Any = json.loads(line)
        except ValueError:
            continue
        usage = cast(Mapping[str, Any], said).get("usage") if isinstance(said, dict) else None
        if isinstance(usage, dict):
            counts = cast(Mapping[str, Any], usage)
            return sum(count for name in _USAGE if isinstance(count := counts.get(name), int))
    return None
