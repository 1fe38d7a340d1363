"""The roles that plug-ins play, and the ports that they speak to: models, sandbox, store, tools, environments.

The protocols of benchmarks are in `core.benchmarks`, those of stores in `core.stores` and `core.lesson_store`, and that
of foresights in `core.foresight`. `core.optional` has optional members of roles.

A plug-in takes its settings and the ports it wants as keyword parameters; `mulligan.app.plugins` hands them in by
name: `model`, `sandbox`, `journal`, `prompts`, `workspace`, `bank`, `tools`, `environment`, `agent`, `solved`. Roles
are built anew for each episode.
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
    """Decides what the next try sees of the past. `reflects`: whether it ever uses reflections.

    A strategy that adapts to the episode also has a method `decide`: see `Adapts`.
    """

    reflects: bool

    def past(self, episode: Episode) -> Past: ...


@runtime_checkable
class Adapts(Protocol):
    """The optional method of a strategy.

    A strategy that learns from earlier episodes also sets `learns = True`. When an episode starts, its setting `seen`
    is filled from the store and recorded in the head: for each arm, how often it won and lost with this model and kind
    of task. The arm that `Decision.choice` names is counted when the episode ends.
    """

    def decide(self, episode: Episode) -> Decision:
        """Decides whether to reflect, at which temperature to sample and when to stop.

        Called before every attempt, including the first, and after each failed try that allows reflection. The
        answer must depend only on the episode, so that a resumed episode continues in the same way.
        """
        ...


@runtime_checkable
class Actor(Protocol):
    """Makes one attempt. Raises `ModelError`, `OverBudget`, `SandboxError`; a bad attempt is not an error.

    A class may also say `makes = "workspace"` (it changes files) or `"tests"`, and `in_words`, its name in a sentence.
    """

    async def act(self, episode: Episode, past: Past) -> Attempt: ...


@dataclass(frozen=True)
class Reply:
    """What an agent answered. halted: why it did not end well; None: it did. discarded: the files that it changed."""

    text: str
    halted: str | None = None
    discarded: tuple[str, ...] = ()


@runtime_checkable
class Agent(Protocol):
    """An actor that can be asked about its work."""

    async def ask(self, episode: Episode, prompt: str) -> Reply:
        """Returns the agent's answer. It works in the folder of its newest attempt; changes to files are discarded."""
        ...


@runtime_checkable
class Evaluator(Protocol):
    """Judges the newest attempt of the episode.

    `expects` says what an attempt's output should be: any text, bare code, or a changed workspace.
    An attempt that cannot be judged gives `passed=None` with the reason; only a broken machine raises.

    A class may also say `judges = False` (it never gives a verdict), `interactive = True` (it asks a person on the
    terminal), and `in_words`, its name in a sentence.
    """

    @property
    def expects(self) -> Literal["text", "code", "workspace"]: ...

    async def evaluate(self, episode: Episode) -> Feedback: ...


@runtime_checkable
class PreflightEvaluator(Protocol):
    """An evaluator that can say, before the first trial, whether it can judge in a workspace at all."""

    async def try_out(self, folder: str, env: Mapping[str, str]) -> Feedback:
        """Its verdict on the unchanged folder. `passed` is None if it cannot judge there; the text has the reason."""
        ...


@runtime_checkable
class Reflector(Protocol):
    """Writes a reflection on the newest try, which failed. None: give up."""

    async def reflect(self, episode: Episode) -> Reflection | None: ...


@dataclass(frozen=True)
class Learned:
    """What the bank learned from episodes. Lessons are given by their ids.

    Attributes:
        lessons: new ones.
        folded: lessons that the bank already had, word for word.
        quarantined: those of `lessons` and `folded` that are quarantined.
        retired: lessons with the same text that a person retired, so they are not recalled.
        success: whether the episodes succeeded, as given or judged.
        reason: the judge's reason.
        nothing_because: why there was nothing to learn.
        failed: why learning failed; "" if it did not.
        work: the id of queued work that is done in the background or waits for an answer.
        question: the question that the caller has to answer and commit with `work`. None: there is none.
        pending: whether the work was accepted and is not done yet.
        facts: what was learned by rules alone, new and known.
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
    """A handle on the lessons of one agent_id."""

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall: ...
    async def learn(self, episodes: Sequence[Episode]) -> Learned: ...


@runtime_checkable
class TextMemory(Protocol):
    """A memory that the exam can test: it learns from one episode after the other, and answers a task with text."""

    async def learn(self, episode: Episode) -> None: ...
    async def recall(self, task: Task) -> str: ...


@runtime_checkable
class SolvedEpisodes(Protocol):
    """Earlier episodes that were solved, if a bank knows them and the store has them."""

    async def nearest(self, episode: Episode) -> Episode | None:
        """The solved episode with the most similar task, with only its passed trial. None: there is none."""
        ...


# --- ports ------------------------------------------------------------------------------------------------------


@runtime_checkable
class Model(Protocol):
    """A language model. `name` is as the user gave it; `id` is recorded, with the weights' hash when there is one.

    Raises `ModelError` (the provider failed, after retries), `OverBudget`, `InvalidInput` (no key, no such model).
    """

    name: str
    id: str

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer: ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors: rows of floats, shape (len(texts), dim). Ours return numpy arrays of float32;
    convert others with `numpy.asarray`. `dim` is 0 if only the first answer will tell it.

    Raises `InvalidInput` if its weights or its key are missing, and `ModelError` if it failed.
    """

    id: str
    dim: int

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


@runtime_checkable
class Journal(Protocol):
    """Records every effect, so that nothing is paid for twice."""

    async def step(
        self, name: str, request: Json, do: Callable[[], Awaitable[Json]], *, repeatable: bool = True
    ) -> Json:
        """The recorded result of this step, or that of `do()`, recorded before it is returned.

        Request and result are strict JSON (lists, no tuples; no nan). Raises `JournalDiverged` if the step was
        recorded with another request, `StepInFlight` if it was cut off and is not repeatable, `JournalError` for two
        steps of one name at once in one scope: parallel branches each open a `scope` of their own.
        """
        ...


@dataclass(frozen=True)
class Job:
    """An untrusted process to run.

    Attributes:
        argv: the program and its arguments; "{scratch}" in them is replaced by the scratch folder.
        files: texts by relative path, written into the scratch folder before the start.
        stdin: the text on standard input.
        cwd: where it runs. None: the scratch folder, which is made for the job and removed after it.
        env: variables added to a nearly empty environment.
        writable, readable: folders beyond the scratch folder and the system's.
        network: whether sockets beyond the machine's own pipes are allowed.
        seconds: wall time.
        memory, file_size: limits in MB.
        processes: how many may run at once.
        output: how many bytes of each stream are kept, half from its head and half from its tail.
        confined: False runs it as the user would by hand: in its own process group, with limits of time and output
            only. If `writable` names folders and the kernel supports it, it cannot write elsewhere.
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
    """How a job ended. `exit_code` is None when it was killed; `level` names the isolation that was in force.

    The path of the scratch folder is removed from the output, so that the same job prints the same twice.
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
    """A running job to talk to, line by line."""

    async def send(self, line: str) -> None: ...
    async def receive(self) -> str | None:
        """The next line, without its end; None when the job has closed its output or ended. Lines are capped."""
        ...


@runtime_checkable
class Sandbox(Protocol):
    """Runs untrusted code. `level` names the isolation in force, strongest first in its list."""

    level: str

    async def run(self, job: Job) -> Ran: ...
    def open(self, job: Job) -> AbstractAsyncContextManager[Channel]:
        """Start the job and talk to it; it is killed with all its children when the block ends."""
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
    """Where command-line agents work, apart from the user's own tree (or in it, when asked for)."""

    async def open(self, episode: Episode) -> Checkout:
        """The episode's checkout, created if needed, in its newest recorded state. The same one each time.

        Raises `InvalidInput` if the user's folder cannot be worked on this way.
        """
        ...

    def aside(self, episode: Episode, state: str) -> AbstractAsyncContextManager[Checkout]:
        """A second folder in this state of the episode, removed with all changes when the block ends."""
        ...

    async def close(self, episode: Episode) -> None:
        """Removes the folder. The states stay, so that the episode can be opened again."""
        ...


@runtime_checkable
class Prompts(Protocol):
    """Prompt texts by name, such as "complete.code": the user's folder first, then the file beside the plug-in."""

    def get(self, name: str) -> Prompt:
        """Raises `UnknownName`, or `InvalidInput` for a file that cannot be used."""
        ...

    def text(self, name: str) -> str:
        """The text of a file that is not itself a prompt, such as a rubric."""
        ...


Observer = Callable[[Episode, Event], None]
"""Called with each event after it was recorded. It cannot change anything; if it raises, the episode goes on."""


@runtime_checkable
class Toolset(Protocol):
    """One tool, or those of one server: a plug-in of `tools/`. Each drive builds its own; one task uses it at a time.

    Its settings and ports are keyword parameters, like those of a role. A tool that has a parameter `folder` gets the
    absolute path of the folder that it may work in.
    """

    async def offer(self) -> Sequence[Tool]:
        """The tools that can be called. Raises `ToolError` if they cannot be listed: its server may be down."""
        ...

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> str:
        """Calls the tool and returns its answer. Raises `ToolError`, whose message goes to the model."""
        ...

    async def close(self) -> None: ...


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

    def open(self, episode: Episode) -> AbstractAsyncContextManager[Toolbox]: ...


@runtime_checkable
class Environment(Protocol):
    """A world to act in, one per trial. A resume calls `reset`, repeats the recorded actions and compares observations.

    The constructor refuses settings that cannot work, and starts nothing: it is also called only to check settings.

    A class may also have a method `critical(action) -> bool`: whether performing this action now could do harm that
    cannot be undone. It is asked only in episodes with a foresight.
    """

    async def reset(self) -> str:
        """Goes back to the beginning, and returns the first observation."""
        ...

    async def step(self, action: str) -> Step:
        """Performs one action. The step's `outcome` says whether the world is done, and the reward (higher is better).

        An unknown action does not raise: the observation says that it is unknown.
        """
        ...

    async def close(self) -> None: ...


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
    """Opens the environment of this episode. `name`: that of the environment, such as "alfworld"."""

    @property
    def name(self) -> str: ...

    def open(self) -> AbstractAsyncContextManager[Environment]:
        """A new environment for one trial. Every reset and step is journaled, and repeated on a resume."""
        ...


@runtime_checkable
class TranscriptFormat(Protocol):
    def recognises(self, text: str) -> bool:
        """Whether the text is in this format and in no other that ships. Never raises."""
        ...

    def read(self, text: str, name: str) -> Sequence[Turn]:
        """All turns in order. `name` is what errors call the text. Raises `InvalidInput` that says where."""
        ...
