"""Measures whether the lessons of hooks help: the same tasks of a project with its bank and without.

Each run is a session of the user's coding agent in a fresh copy of the project. Its hooks are called in both arms and
learn nothing. In one arm the bank is a copy of the project's, in the other it is empty. A command of the user judges.
Each ended run is a line in `runs.jsonl`, so that an interrupted proof can be resumed.
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
from mulligan.hooks import RECALL, SWITCH
from mulligan.hooks.journal import Journal, Session
from mulligan.hooks.journal_file import FILE
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
TOP_KEYS = ("bank", "mode", "task")
TASK_KEYS = ("name", "prompt", "check", "folder", "family", "setup")
PLAN, BANK, RUNS = "plan.json", "bank.db", "runs.jsonl"
WORK, HOMES = "work", "homes"
"""The folders of the copies of projects, and of Mulligan's homes, while sessions run."""
_STORE, _EPISODE_PREFIX = "mulligan.db", "prove-"
_TOKEN_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(frozen=True)
class ProofTask:
    """A task of the file.

    Attributes:
        check: the command that judges: status 0 means solved. It runs in the copy of the project.
        folder: the project's folder.
        family: the group of similar tasks that it belongs to; its own name if it has none.
        setup: a command that brings a fresh copy into the state in which the task begins.
        bank: the agent id of the bank.
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
    """What is run.

    Attributes:
        agent: the command line of the coding agent.
        seconds: the time limit of each run and each check.
        mode: how a project is copied. "": as a worktree if it has a repository.
        id: part of the names of copies.
    """

    tasks: tuple[ProofTask, ...]
    agent: str
    repeats: int = 1
    seed: int = 0
    seconds: float = 600.0
    mode: Literal["", "worktree", "copy"] = ""
    id: str = ""

    def runs(self) -> Iterator[Run]:
        """All runs in order: for each task both arms, in random order."""
        chance, n = random.Random(self.seed), 0
        for repeat in range(1, self.repeats + 1):
            for task in self.tasks:
                for arm in chance.sample(ARMS, 2):
                    n += 1
                    yield Run(n, task, repeat, arm)


@dataclass(frozen=True)
class Run:
    """A session of the plan: a task in an arm. n: its number in the order of all runs, from 1."""

    n: int
    task: ProofTask
    repeat: int
    arm: Arm

    @property
    def name(self) -> str:
        return f"{self.task.name}, {self.arm}" + (f", {self.repeat}" if self.repeat > 1 else "")


@dataclass(frozen=True)
class Row:
    """A session that has ended; the columns of the CSV. None: unknown.

    Attributes:
        n: see `Run`.
        solved: whether the check passed afterwards.
        hooked: whether the agent called its hooks.
        shown: the number of lessons that it was shown.
        calls, failed: the number of tool calls, and of those that failed with an error.
        again: the number of failed calls whose error had occurred before in the session.
        tokens: the number of tokens according to the agent's output.
        halted: why the agent did not end well.
        swallowed: the number of errors that the hooks hid from the agent.
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
    top.only(TOP_KEYS)
    mode = top.text("mode") if "mode" in top.values else ""
    if mode not in ("", "worktree", "copy"):
        raise top.wrong("mode", f"'mode' must be worktree or copy, not {mode!r}.")
    if not tables:
        raise InvalidInput(
            f"{file} contains no task: add [[task]] with a name, prompt and check, or run `mulligan bench prove "
            "--draft FILE` to draft tasks from this project's lessons."
        )
    tasks = dict[str, ProofTask]()
    banks = _Banks(top.text("bank") if "bank" in top.values else "")
    for table in tables:
        task = _task(table, banks)
        if task.name in tasks:
            raise table.wrong("name", f"The task {task.name!r} already exists: {tasks[task.name].where}.")
        tasks[task.name] = task
    return tuple(tasks.values()), mode


def _task(table: Table, banks: _Banks) -> ProofTask:
    table.only(TASK_KEYS)
    for key in ("name", "prompt", "check"):
        if key not in table.values:
            raise table.wrong(key, f"The task has no {key}.")
    texts = {key: table.text(key) for key in table.values}
    folder = os.path.realpath(table.file.parent / os.path.expanduser(texts.get("folder", ".")))
    if not os.path.isdir(folder):
        raise table.wrong("folder", f"The folder {folder} does not exist.")
    for key in ("check", "setup"):
        if key in texts:
            _check_command(table, key, texts[key])
    return ProofTask(
        name=texts["name"],
        prompt=texts["prompt"],
        check=texts["check"],
        folder=folder,
        family=texts.get("family", texts["name"]),
        setup=texts.get("setup", ""),
        bank=banks.of(folder),
        where=table.where(),
    )


def _check_command(table: Table, key: str, line: str) -> None:
    """Raises `InvalidInput` for a command line that cannot be started. A path is not checked: see the project."""
    try:
        program = (*split_line(line), "")[0]
    except ValueError as error:
        raise table.wrong(key, f"The {key} {line!r} cannot be parsed: {error}.") from error
    if os.sep not in program and shutil.which(program) is None:
        raise table.wrong(key, f"The {key} {line!r} starts {program!r}, which is not on the PATH.")


class _Banks:
    """The banks of projects. common: the bank that a file of tasks names for all of them; "": none."""

    def __init__(self, common: str) -> None:
        self._common = common
        self._by_folder = dict[str, str]()

    def of(self, folder: str) -> str:
        """The agent id of the bank of the project in this folder."""
        if self._common:
            return self._common
        if folder not in self._by_folder:
            with Journal() as journal:
                self._by_folder[folder] = journal.bank_of(project_id(folder))
        return self._by_folder[folder]


def check_banks(tasks: Sequence[ProofTask]) -> None:
    """Raises `InvalidInput` if one of the banks has no lessons."""
    for bank in dict.fromkeys(task.bank for task in tasks):
        with closing(Reader(bank, wait=5.0)) as reader:
            if sum(reader.numbers()) == 0:
                raise InvalidInput(
                    f"The bank {bank} has no lessons for hooks to show, so there is nothing to compare. `mulligan "
                    "learn --since 30d` learns from past sessions in this folder's project."
                )


# --- running ---------------------------------------------------------------------------------------------------------

OnRow: TypeAlias = Callable[[Run, Row | None], None]
"""Called before each run with None, and after it with its row."""


class Proof:
    """A proof in a folder: its plan, a frozen copy of the bank, and the rows of the runs that have ended."""

    def __init__(self, plan: Plan, into: Path, sandbox: Sandbox) -> None:
        self.plan = plan
        self.into = into
        self._sandbox = sandbox
        self._argv = split_command(plan.agent)

    @classmethod
    def open(cls, into: Path, sandbox: Sandbox) -> Proof:
        """Opens a proof that was begun. Raises `InvalidInput` if the folder has none."""
        try:
            plan: dict[str, Any] = json.loads((into / PLAN).read_text(encoding="utf-8"))
            plan["tasks"] = tuple(ProofTask(**task) for task in plan["tasks"])
            return cls(Plan(**plan), into, sandbox)
        except FileNotFoundError:
            raise InvalidInput(f"{into} contains no comparison: {PLAN} is missing.") from None
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise InvalidInput(f"{into / PLAN} cannot be read: {error}.") from error

    @classmethod
    async def begin(
        cls, plan: Plan, into: Path, sandbox: Sandbox, on_task: Callable[[ProofTask], None] = lambda _: None
    ) -> Proof:
        """Begins a proof: copies the bank, tries each check in a fresh copy of its project, and writes the plan.

        No agent is called. Raises `InvalidInput` for tasks that cannot run or would prove nothing, such as one whose
        check already passes. on_task: called with each task before its check is tried.
        """
        proof = cls(replace(plan, id=secrets.token_hex(4)), into, sandbox)
        if plan.repeats < 1 or plan.seconds <= 0:
            raise InvalidInput("repeats and seconds must be greater than 0.")
        check_banks(plan.tasks)
        if inside := next((task for task in plan.tasks if into.is_relative_to(_repository(task.folder))), None):
            raise InvalidInput(f"{into} is inside the project of task {inside.name!r}: choose another folder.")
        if (into / PLAN).exists():
            raise InvalidInput(
                f"{into} already contains a comparison. To continue it: mulligan bench prove --resume {into}"
            )
        try:
            _copy_bank(into)
            for task in plan.tasks:
                on_task(task)
                await proof._try_check(task)
        except BaseException:
            _remove_beginnings(into)
            raise
        (into / PLAN).write_text(json.dumps(asdict(proof.plan), indent=1), encoding="utf-8")
        return proof

    async def _try_check(self, task: ProofTask) -> None:
        """Raises `InvalidInput` if the setup fails, or the check cannot run or already passes."""
        workspace, episode = self._workspace(task), self._episode(task, 0)
        try:
            await self._set_up(await workspace.open(episode), task)
            await preflight(workspace, episode, self._judge(task))
        except InvalidInput as error:
            raise InvalidInput(f"{task.where}: the task {task.name!r}: {error}") from error
        finally:
            await _remove(workspace, episode)

    def rows(self) -> list[Row]:
        """The rows of the runs that have ended, in order."""
        file = self.into / RUNS
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
        complete = (line for line in lines if line.endswith("}\n"))  # a killed process may have left half a line
        return sorted((Row(**json.loads(line)) for line in complete), key=lambda row: row.n)

    async def run(self, on_row: OnRow = lambda _, __: None) -> None:
        """Runs what has not ended yet. Raises `MulliganError`; ended runs are kept."""
        before = self.rows()
        ended, hooked = {row.n for row in before}, any(row.hooked for row in before)
        for run in self.plan.runs():
            if run.n in ended:
                continue
            on_row(run, None)
            row = await self._run(run)
            if not (hooked := hooked or row.hooked):
                raise InvalidInput(
                    "The agent did not call Mulligan's hooks, so it received no lessons. "
                    f"{row.halted or 'It ended normally'}; its output: {self._output(run)}. Use `mulligan hooks "
                    "doctor` to check that the hooks are installed for all of this user's projects. Then run: "
                    f"mulligan bench prove --resume {self.into}"
                )
            on_row(run, row)

    async def _run(self, run: Run) -> Row:
        """Runs a session, and stores its row."""
        workspace, episode = self._workspace(run.task), self._episode(run.task, run.n)
        home = self.into / HOMES / str(run.n)
        shutil.rmtree(home, ignore_errors=True)  # a killed process may have left it
        await workspace.discard(episode.id)
        try:
            place = await workspace.open(episode)
            await self._set_up(place, run.task)
            self._make_home(home, place, run)
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
                n=run.n,
                task=run.task.name,
                family=run.task.family,
                repeat=run.repeat,
                arm=run.arm,
                solved=judged.passed is True,
                seconds=round(ran.seconds, 1),
                tokens=_tokens(ran.stdout),
                halted=halted(ran, self.plan.seconds) or "",
                **_measured(home),
            )
            if row.hooked or self.rows():  # `run` refuses a first run without hooks
                with (self.into / RUNS).open("a", encoding="utf-8") as file:
                    file.write(f"\n{json.dumps(asdict(row))}\n")  # never after half a line
            await check_tree(place, f"the run {run.name}")
            return row
        finally:
            await _remove(workspace, episode)
            shutil.rmtree(home, ignore_errors=True)

    def _make_home(self, home: Path, place: Checkout, run: Run) -> None:
        """Makes Mulligan's home for a session, with a copy of the bank in the arm that has it."""
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
        return Episode(f"{_EPISODE_PREFIX}{self.plan.id}-{n}", Task(task.prompt))

    def _judge(self, task: ProofTask) -> Command:
        return Command(task.check, sandbox=self._sandbox, expects="workspace", seconds=self.plan.seconds)

    def _output(self, run: Run) -> Path:
        return self.into / "outputs" / f"{run.n}.txt"


def clear_killed(folders: Iterable[Path]) -> int:
    """Removes what killed processes left in the folders of proofs: copies of projects with their worktrees in git, and
    the homes of their sessions. Returns the number of sessions."""
    cleared = 0
    for into in folders:
        for left in leftovers([str(into / WORK)], ()).values():
            if left.folder is None or not left.episode.startswith(_EPISODE_PREFIX):
                continue
            if not left.remove():  # another process still uses it
                continue
            shutil.rmtree(into / HOMES / left.episode.rpartition("-")[2], ignore_errors=True)
            cleared += 1
            if not (into / PLAN).exists():  # so it cannot be resumed
                _remove_beginnings(into)
    return cleared


def _remove_beginnings(into: Path) -> None:
    """Removes what a proof without a plan has left: the copy of the bank, and empty folders."""
    (into / BANK).unlink(missing_ok=True)
    for folder in (into / WORK, into):
        with suppress(OSError):
            folder.rmdir()


async def _remove(workspace: GitWorkspace, episode: Episode) -> None:
    await workspace.close(episode)
    await workspace.discard(episode.id)


def _repository(folder: str) -> Path:
    """The root of the repository that a folder is in; the folder itself if it is in none."""
    parents = (Path(folder), *Path(folder).parents)
    return next((parent for parent in parents if (parent / ".git").exists()), Path(folder))


def _copy_bank(into: Path) -> None:
    """Copies the bank into the folder, as a single file. Raises `StoreError`."""
    into.mkdir(parents=True, exist_ok=True, mode=0o700)
    copy_file(store_file(), into / BANK)


# --- what hooks and transcripts say of a session ---------------------------------------------------------------------


def _measured(home: Path) -> dict[str, Any]:
    """Fields of `Row`, from the journal of hooks in this home and the transcripts that it names."""
    with Journal(str(home / FILE)) as journal:
        sessions = journal.sessions()
        shown = sum(showing.way == "shown" for showing in journal.shown())
        swallowed = len(journal.errors())
    calls = _calls(sessions)
    counts: dict[str, int | None] = {"calls": None, "failed": None, "again": None}
    if calls is not None:
        failed = [digest(lines) for agent_name, call in calls if (lines := signature_of(call, agent_name))]
        counts = {"calls": len(calls), "failed": len(failed), "again": len(failed) - len(set(failed))}
    return {"hooked": bool(sessions), "shown": shown, "swallowed": swallowed, **counts}


def _calls(sessions: Sequence[Session]) -> list[tuple[str, Turn]] | None:
    """The tool calls of these sessions, each with the name of its agent. None: no transcript can be read."""
    transcripts = [(session.agent, turns) for session in sessions if (turns := transcript_of(session)) is not None]
    if not transcripts:
        return None
    return [(agent_name, turn) for agent_name, turns in transcripts for turn in turns if turn.is_call]


def transcript_of(session: Session) -> list[Turn] | None:
    """The turns of a session. None: its transcript is gone or cannot be read."""
    if not agent(session.agent).readable or not session.transcript:
        return None
    try:
        return events_since(session.agent, session.session, session.transcript, {})[0]
    except (OSError, ValueError, sqlite3.Error, MulliganError):
        return None


def _tokens(output: str) -> int | None:
    """The tokens in the last line of an agent's output that is JSON with `usage`. None: there is no such line."""
    for line in reversed(output.splitlines()):
        try:
            message: Any = json.loads(line)
        except ValueError:
            continue
        usage = cast(Mapping[str, Any], message).get("usage") if isinstance(message, dict) else None
        if isinstance(usage, dict):
            counts = cast(Mapping[str, Any], usage)
            return sum(count for name in _TOKEN_COUNTS if isinstance(count := counts.get(name), int))
    return None
