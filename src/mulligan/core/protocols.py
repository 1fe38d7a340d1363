"""The roles that plug-ins play, and the ports that they speak to: models, sandbox, store, tools, environments.

The protocols of benchmarks are in `core.benchmarks`, those of stores in `core.stores` and `core.lesson_store`, and that
of foresights in `core.foresight`. `core.optional` has optional members of roles.

A plug-in takes its settings and ports as keyword parameters; `mulligan.app.plugins` passes them by
name: `model`, `sandbox`, `journal`, `prompts`, `workspace`, `bank`, `tools`, `environment`, `agent`, `solved`. Roles
are instantiated for each episode.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from mulligan.core.episode import Event
from mulligan.core.prompts import Prompt
from mulligan.core.questions import Answer, Question, Sampling, Tool
from mulligan.core.records import (
    Artifact,
    Attempt,
    Check,
    Decision,
    Episode,
    Feedback,
    Image,
    Json,
    Past,
    Recall,
    Reflection,
    Step,
    Task,
)
from mulligan.core.stores import AppendsSeveral as AppendsSeveral
from mulligan.core.stores import Brief as Brief
from mulligan.core.stores import Lease as Lease
from mulligan.core.stores import StepRow as StepRow
from mulligan.core.stores import Store as Store
from mulligan.core.turns import Role as Role
from mulligan.core.turns import Turn as Turn

# --- roles ------------------------------------------------------------------------------------------------------


@runtime_checkable
class Strategy(Protocol):
    """Decides what the next try sees of the past.

    A strategy that adapts to the episode also has a method `decide` (see `Adapts`).

    Attributes:
        reflects: whether the strategy uses reflections.
    """

    reflects: bool

    def past(self, episode: Episode) -> Past:
        """Returns what the next try sees of the past."""
        ...


@runtime_checkable
class Adapts(Protocol):
    """A strategy's optional method.

    A strategy that learns from earlier episodes also sets `learns = True`. When an episode starts, its setting `seen`
    is read from the store and recorded in the head: how often each arm won and lost with this model and kind of task.
    The arm in `Decision.choice` is counted when the episode ends.
    """

    def decide(self, episode: Episode) -> Decision:
        """Decides whether to reflect, which temperature to use, and when to stop.

        Called before every attempt, including the first, and after each failed try that allows reflection. The
        decision must depend only on the episode, so that a resumed episode continues in the same way.
        """
        ...


@runtime_checkable
class Actor(Protocol):
    """Makes one attempt. A bad attempt is not an error.

    A class can also set `makes = "workspace"` (it changes files) or `makes = "tests"`, and `in_words`, its name in
    messages.

    Raises:
        ModelError, OverBudget, SandboxError
    """

    async def act(self, episode: Episode, past: Past) -> Attempt:
        """Returns the next attempt. `past` contains what the strategy shows of the past."""
        ...


@dataclass(frozen=True)
class Reply:
    """An agent's answer.

    Attributes:
        halted: why the agent failed; None if it did not.
        discarded: the files that it changed.
    """

    text: str
    halted: str | None = None
    discarded: tuple[str, ...] = ()


@runtime_checkable
class Agent(Protocol):
    """An actor that can be asked about its work."""

    async def ask(self, episode: Episode, prompt: str) -> Reply:
        """Returns the agent's answer. The agent works in its newest attempt's folder; its changes are discarded."""
        ...


@runtime_checkable
class Evaluator(Protocol):
    """Judges the newest attempt of an episode.

    `expects` is the kind of output to judge: text, bare code, or a changed workspace. If an attempt cannot be judged,
    the feedback has `passed=None` and the reason; only a failure of the machine raises an exception.

    A class can also set `judges = False` (it never gives a verdict), `interactive = True` (it asks a person at the
    terminal), and `in_words`, its name in messages.
    """

    @property
    def expects(self) -> Literal["text", "code", "workspace"]:
        """The kind of output that the evaluator judges."""
        ...

    async def evaluate(self, episode: Episode) -> Feedback:
        """Returns the verdict on the newest attempt."""
        ...


@runtime_checkable
class PreflightEvaluator(Protocol):
    """An evaluator that can check, before the first trial, whether it can judge in a workspace."""

    async def try_out(self, folder: str, env: Mapping[str, str]) -> Feedback:
        """Returns the verdict on the unchanged folder. If it cannot judge there, `passed` is None."""
        ...


@runtime_checkable
class Reflector(Protocol):
    """Writes a reflection on the newest try, which failed. Returning None means giving up."""

    async def reflect(self, episode: Episode) -> Reflection | None:
        """Returns a reflection on the newest try, or None to give up."""
        ...


@dataclass(frozen=True)
class Learned:
    """What the bank learned from episodes. Lessons are given by their ids.

    Attributes:
        lessons: the new lessons.
        folded: the lessons that the bank already contained, with the same text.
        quarantined: the lessons in `lessons` and `folded` that are quarantined.
        retired: lessons with the same text that a person retired. They are not recalled.
        success: whether the episodes succeeded, as given or judged.
        reason: the judge's reason.
        nothing_because: why there was nothing to learn.
        failed: why learning failed; "" if it did not.
        work: the id of a queued job that runs in the background or waits for an answer.
        question: the question whose answer the caller must commit with `work`; None if there is none.
        pending: whether the job was accepted but is not finished.
        facts: the facts that rules learned, both new and known.
        by: the model that wrote the lessons, if any.
    """

    lessons: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    success: bool | None = None
    reason: str = ""
    nothing_because: str = ""
    failed: str = ""
    work: str | None = None
    question: Question | None = None
    pending: bool = False
    facts: tuple[str, ...] = ()
    by: str = ""


@runtime_checkable
class Bank(Protocol):
    """The lessons of one agent."""

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        """Recalls lessons for a task."""
        ...

    async def learn(self, episodes: Sequence[Episode]) -> Learned:
        """Learns lessons from episodes of one task."""
        ...


@runtime_checkable
class TextMemory(Protocol):
    """A memory that the exam can test. It learns from one episode after another, and recalls text for a task."""

    async def learn(self, episode: Episode) -> None:
        """Learns from a finished episode."""
        ...

    async def recall(self, task: Task) -> str:
        """Returns the text for a task; "" if there is nothing to recall."""
        ...


@runtime_checkable
class SolvedEpisodes(Protocol):
    """Earlier solved episodes that are in both the bank and the store."""

    async def nearest(self, episode: Episode) -> Episode | None:
        """Returns the solved episode with the most similar task, with only the trial that passed, or None."""
        ...


# --- ports ------------------------------------------------------------------------------------------------------


@runtime_checkable
class Model(Protocol):
    """A language model.

    Attributes:
        name: the name that the user gave.
        id: the recorded id, which includes the hash of the weights if there is one.

    Raises:
        ModelError: the provider failed, after retries.
        OverBudget: a limit of the episode would be exceeded.
        InvalidInput: the API key is missing, or the model does not exist.
    """

    name: str
    id: str

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        """Returns the model's answer to a question."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Converts texts to unit vectors: rows of floats, with the shape (len(texts), dim).

    Mulligan's own embedders return numpy arrays of float32. Convert others with `numpy.asarray`. `dim` is 0 until the
    first answer, if it is not known before.

    Raises:
        InvalidInput: the weights or the key are missing.
        ModelError: the embedder failed.
    """

    id: str
    dim: int

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Returns one vector for each text."""
        ...


@runtime_checkable
class Journal(Protocol):
    """Records effects, so that a resumed episode does not repeat them."""

    async def step(
        self, name: str, request: Json, do: Callable[[], Awaitable[Json]], *, repeatable: bool = True
    ) -> Json:
        """Returns the recorded result of this step, or else the result of `do()`, which it records first.

        The request and the result must be strict JSON (lists instead of tuples, no nan). Parallel branches must each
        open their own `scope`.

        Raises:
            JournalDiverged: the step was recorded with a different request.
            StepInFlight: the step was interrupted and is not repeatable.
            JournalError: two steps with the same name run at the same time in one scope.
        """
        ...


@dataclass(frozen=True)
class Job:
    """An untrusted process to run.

    Attributes:
        argv: the program and its arguments. "{scratch}" is replaced with the path of the scratch folder.
        files: texts by relative path, which are written to the scratch folder before the start.
        stdin: the text on standard input.
        cwd: the working folder. None: the scratch folder, which is created for the job and removed afterwards.
        env: environment variables, which are added to a nearly empty environment.
        writable, readable: further folders that the process can write or read.
        network: whether the process can open network sockets.
        seconds: the time limit (wall-clock time).
        memory, file_size: limits in MB.
        processes: the maximum number of concurrent processes.
        output: the number of bytes of each stream to keep, half from the beginning and half from the end.
        confined: False runs the process like the user's own, in its own process group, with limits on time and output
            only. If `writable` contains folders and the kernel supports it, the process cannot write elsewhere.
    """

    argv: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    stdin: str = ""
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    network: bool = False
    seconds: float = 10.0
    memory: int = 1024
    file_size: int = 16
    processes: int = 32
    output: int = 64_000
    confined: bool = True


@dataclass(frozen=True)
class Ran:
    """How a job ended. `exit_code` is None if it was killed; `level` is the isolation level that was in force.

    The scratch folder's path is removed from the output, so that the same job always has the same output.
    """

    exit_code: int | None
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    truncated: bool = False
    seconds: float = 0.0
    level: str = ""


@runtime_checkable
class Channel(Protocol):
    """A running job with which the caller exchanges lines."""

    async def send(self, line: str) -> None: ...
    async def receive(self) -> str | None:
        """Returns the next line without its newline, or None if the output is closed. Long lines are cut."""
        ...


@runtime_checkable
class Sandbox(Protocol):
    """Runs untrusted code. `level` is the isolation level in force."""

    level: str

    async def run(self, job: Job) -> Ran:
        """Runs a job to its end."""
        ...

    def open(self, job: Job) -> AbstractAsyncContextManager[Channel]:
        """Starts a job to exchange lines with. The job and all its children are killed when the block ends."""
        ...


@runtime_checkable
class Checkout(Protocol):
    """The folder in which one episode works, and the states that it has been in; a state is a git commit's sha.

    folder: where commands run. start: the state it began with. writable: the folders that working in it needs.
    Raises `InvalidInput`, or `WorkspaceError` where git or the disk fails.
    """

    @property
    def folder(self) -> str: ...
    @property
    def start(self) -> str: ...
    @property
    def writable(self) -> tuple[str, ...]: ...

    async def reset(self, state: str, *, ignored: bool = False) -> None:
        """Bring the folder to exactly this state; `ignored` removes what git ignores, too."""
        ...

    async def save(self, trial: int, parent: str) -> tuple[str, tuple[str, ...]]:
        """Saves the folder as the state of this trial. Returns the state, and sentences on what could not be saved."""
        ...

    async def diff(self, state: str) -> str:
        """What changed from the start to this state, as a unified diff."""
        ...

    async def changed(self) -> tuple[str, ...]:
        """The files that differ from the state that the folder was last brought to, without those that git ignores."""
        ...

    async def strayed(self) -> tuple[str, ...]:
        """What changed in the user's own tree and repository since it was opened: files and refs by name."""
        ...


@runtime_checkable
class Workspace(Protocol):
    """Where command-line agents work: separate from the user's own files or, on request, in them."""

    async def open(self, episode: Episode) -> Checkout:
        """Returns the episode's checkout, in its newest recorded state. Creates the checkout if necessary.

        Raises:
            InvalidInput: this workspace cannot use the user's folder.
        """
        ...

    def aside(self, episode: Episode, state: str) -> AbstractAsyncContextManager[Checkout]:
        """Opens a second folder with this state of the episode. It is removed when the block ends."""
        ...

    async def close(self, episode: Episode) -> None:
        """Removes the folder. The states are kept, so that the episode can be opened again."""
        ...


@runtime_checkable
class Prompts(Protocol):
    """Prompts by name, such as "complete.code". The user's folder takes precedence over the plug-in's files."""

    def get(self, name: str) -> Prompt:
        """Returns a prompt. Raises `UnknownName`, or `InvalidInput` if the file cannot be used."""
        ...

    def text(self, name: str) -> str:
        """Returns the text of a file that is not itself a prompt, such as a rubric."""
        ...


Observer = Callable[[Episode, Event], None]
"""Called with each recorded event. It cannot change anything, and its exceptions do not stop the episode."""


@runtime_checkable
class Toolset(Protocol):
    """One tool, or the tools of one server: a plug-in in `tools/`. One task at a time uses an instance.

    Its settings and ports are keyword parameters, like those of a role. A parameter `folder` receives the absolute path
    of the workspace.
    """

    async def offer(self) -> Sequence[Tool]:
        """Returns the tools that can be called.

        Raises:
            ToolError: the tools cannot be listed.
        """
        ...

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> str:
        """Calls the tool and returns its answer. Raises `ToolError`, whose message is returned to the model."""
        ...

    async def close(self) -> None:
        """Releases the resources of the tools."""
        ...


@dataclass(frozen=True)
class ToolResult:
    """The result of a call. `failed`: the text is an error. `state`: that of the workspace after the call, if any."""

    text: str
    failed: bool = False
    state: str | None = None


@runtime_checkable
class Toolbox(Protocol):
    """The tools of one move. They share the workspace, if there is one."""

    async def offer(self, source: str) -> Sequence[Tool]:
        """The tools of the toolset of this name. Raises `ToolError` when it cannot be reached."""
        ...

    async def call(self, source: str, tool: str, arguments: Mapping[str, Json]) -> ToolResult:
        """Checks the arguments and calls the tool. Mistakes of the tool or the caller give a failed result."""
        ...

    def saw(self, result: ToolResult) -> None:
        """Takes note of each result, new or recorded, so that the workspace is in the right state for the next call."""
        ...

    async def check(self, action: str, tool: Tool, tools: Sequence[Tool], steps: Sequence[Step]) -> Check | None:
        """What the episode's foresight decides about a call of this tool. None: it is not checked.

        action: the call as a trajectory shows it. tools: all that can be called. steps: those of the trial so far.
        """
        ...

    async def artifacts(self, trial: int) -> tuple[Artifact, ...]:
        """The state of the workspace as the artifact of this trial; empty without a workspace."""
        ...


@runtime_checkable
class Tools(Protocol):
    """Opens tools by name, such as "read_file" or "mcp:SERVER"."""

    def open(self, episode: Episode) -> AbstractAsyncContextManager[Toolbox]:
        """Opens the tools for an episode."""
        ...


@runtime_checkable
class Environment(Protocol):
    """An environment for one trial. Resuming calls `reset`, repeats the recorded actions and compares observations.

    The constructor rejects settings that cannot work, and has no side effects: it is also called to check settings.

    A class can also have a method `critical(action) -> bool`, which returns whether this action could do irreversible
    harm now. It is called only in episodes with a foresight.
    """

    async def reset(self) -> str:
        """Returns to the beginning, and returns the first observation."""
        ...

    async def step(self, action: str) -> Step:
        """Performs an action. The step's `outcome` contains the reward, and whether the task has ended.

        An unknown action does not raise an exception. Instead, the observation states that it is unknown.
        """
        ...

    async def close(self) -> None:
        """Releases the environment's resources."""
        ...


@runtime_checkable
class Shows(Protocol):
    """The optional method of an environment that can be seen, such as a screen."""

    def shown(self) -> tuple[Image, ...]:
        """The images after the reset, before any action. Later images come with the steps."""
        ...


@runtime_checkable
class Offers(Protocol):
    """The optional method of an environment whose actions are calls of tools."""

    async def offer(self, actions: Sequence[str]) -> Sequence[Tool]:
        """The tools that can be called after these actions. They depend on the actions and the settings alone."""
        ...


@runtime_checkable
class Converses(Protocol):
    """The optional methods of an environment in which a model plays somebody, such as a customer."""

    async def question(self, action: str, answers: Sequence[Json]) -> Question | None:
        """The next question to the model before the action is performed; None: there is no further one. answers: to the
        questions about this action so far."""
        ...

    def hear(self, answers: Sequence[Json]) -> None:
        """Takes all answers to the questions about the action that is performed next."""
        ...


@runtime_checkable
class World(Protocol):
    """Opens an episode's environment.

    Attributes:
        name: the environment's name, such as "alfworld".
    """

    @property
    def name(self) -> str:
        """The environment's name."""
        ...

    def open(self) -> AbstractAsyncContextManager[Environment]:
        """Opens a new environment for one trial. Resets and steps are recorded, and repeated when resuming."""
        ...


@runtime_checkable
class TranscriptFormat(Protocol):
    """Parses transcripts in one format."""

    def recognises(self, text: str) -> bool:
        """Returns whether the text is in this format and in no other. Never raises an exception."""
        ...

    def read(self, text: str, name: str) -> Sequence[Turn]:
        """Returns all turns in order.

        Args:
            name: the name of the text in errors.

        Raises:
            InvalidInput: the text does not follow the format. The message gives the location.
        """
        ...
