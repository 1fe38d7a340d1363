"""`solve`: a whole task handed over to the server's own model, tried and judged until it passes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from mulligan.core.episode import Acted, Evaluated, Event, Recalled, Reflected
from mulligan.core.errors import InvalidInput, MulliganError, UnknownName
from mulligan.core.plain import one_line
from mulligan.core.records import Episode, Feedback, Json, Trial
from mulligan.core.truncate import truncate_text
from mulligan.mcp_server.tool import Call, Reply, Tool, either

if TYPE_CHECKING:
    from mulligan.app.hosted import Wanted

log = logging.getLogger("mulligan.serve")

TOKENS = 400
"""What is told of one feedback or reflection, head and tail; `mulligan runs show --full` has all of it."""

WIDTH = 160
"""Characters of foreign text in a line of progress."""

LEAVING = 10.0
"""Seconds that a cancelled episode gets to be recorded as interrupted; it takes milliseconds."""

_TEXT: Json = {"type": "string"}
_ARGUMENTS: dict[str, Json] = {
    "task": {
        "type": "string",
        "minLength": 1,
        "description": "The whole task. The model sees nothing else: no files, tools, network or earlier talk.",
    },
    "tests": {
        "type": "string",
        "description": "The text (not the name) of a Python test file that judges: plain asserts or pytest style. The "
        "output is then Python code; both run in a sandbox.",
    },
    "expected": {
        "type": "string",
        "description": "The exact answer, compared without case, punctuation and articles. The model is not told it.",
    },
    "trials": {
        "type": "integer",
        "minimum": 1,
        "maximum": 20,
        "description": "Attempts at most, the first included (default: 4).",
    },
    "agentId": {"type": "string", "description": "Whose record this is, and whose lessons are used."},
    "remember": {
        "type": "boolean",
        "description": "Recall lessons of earlier tasks first, and learn from this one (default: false).",
    },
}

INPUT: dict[str, Json] = {
    "type": "object",
    "properties": _ARGUMENTS,
    "required": ["task"],
    "additionalProperties": False,
}
OUTPUT: dict[str, Json] = {
    "type": "object",
    "properties": {
        "status": {
            "type": "string",
            "enum": ["solved", "exhausted", "stuck", "gave_up", "over_budget", "error"],
            "description": "solved; trials used up; the same attempt again and again; given up; a limit of the server "
            "reached; stopped by an error (such an answer is marked as one).",
        },
        "solved": {"type": "boolean"},
        "output": either("string", "null", description="The best attempt, solved or not."),
        "episodeId": {
            "type": "string",
            "description": "To be read as mulligan://episodes/ID, or by `mulligan runs show`.",
        },
        "trials": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "number": {"type": "integer"},
                    "passed": either("boolean", "null", description="null: it could not be judged."),
                    "score": either("number", "null", description="Higher is better."),
                    "feedback": _TEXT,
                    "reflection": either("string", "null", description="What the next trial was told."),
                },
                "required": ["number", "passed", "score", "feedback", "reflection"],
            },
        },
        "usage": {
            "type": "object",
            "properties": {
                "tokens": {"type": "integer"},
                "calls": {"type": "integer"},
                "cost": either("number", "null", description="US dollars; null: the price is not known."),
            },
            "required": ["tokens", "calls", "cost"],
        },
        "judgedBy": {"type": "string", "enum": ["unit_tests", "exact_match", "model_judge"]},
        "notes": {"type": "array", "items": _TEXT, "description": "What qualifies the verdict; what was learned."},
    },
    "required": ["status", "solved", "output", "episodeId", "trials", "usage", "judgedBy", "notes"],
}

Line: TypeAlias = "tuple[float, float, str]"
"""A notification of progress: how far (in trials), of how many, in words."""


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    from mulligan.app.hosted import solve_hosted

    watch = Watch()
    wanted = wanted_of(arguments, call)
    begun = solve_hosted(call.service, wanted, on_start=watch.began, observers=(watch.saw,), notice=watch.notes.append)
    work = asyncio.create_task(begun)
    try:
        episode = await _finished(work, watch, call)
    except MulliganError as error:  # what could not be kept, say; the episode itself takes the model's errors
        if watch.episode is None:
            raise
        return _erred(str(error), watch.episode)
    if episode.stop is not None and episode.stop.reason == "error":
        return _erred(episode.stop.detail, episode)
    return Reply(answer(episode, watch.notes), indent=None)


def failed(message: str, arguments: Mapping[str, Json]) -> Reply:
    return Reply({"error": message}, error=True, indent=None)


def wanted_of(arguments: Mapping[str, Json], call: Call) -> Wanted:
    """The arguments, checked; null stands for one that is left out. Raises `InvalidInput`."""
    from mulligan.app.hosted import Wanted

    for name in arguments:
        if name not in _ARGUMENTS:
            raise UnknownName("argument of solve", name, _ARGUMENTS)
    given = {name: value for name, value in arguments.items() if value is not None}
    for name in ("task", "tests", "expected"):
        if name in given and not (isinstance(given[name], str) and given[name].strip()):
            raise InvalidInput(f"{name!r} must be a text that is not empty.")
    if "task" not in given:
        raise InvalidInput("'task' is missing: say what is to be done.")
    trials, remember = given.get("trials"), given.get("remember", False)
    if isinstance(trials, float) and trials.is_integer():
        trials = int(trials)
    if trials is not None and (isinstance(trials, bool) or not isinstance(trials, int)):
        raise InvalidInput(f"'trials' must be a whole number, not {trials!r}.")
    if not isinstance(remember, bool):
        raise InvalidInput("'remember' must be true or false.")
    agent = call.agent(given.get("agentId")) or ""
    return Wanted(given["task"], given.get("tests"), given.get("expected"), trials, agent, remember)


async def _finished(work: asyncio.Task[Episode], watch: Watch, call: Call) -> Episode:
    """The episode at its end, told of as it goes. It has a task of its own: the scope in which a call is cancelled
    cancels again at each await, and an episode needs some to be recorded as interrupted."""
    work.add_done_callback(lambda _: watch.lines.put_nowait(None))
    try:
        while (line := await watch.lines.get()) is not None:
            await call.progress(*line)
        return await work
    finally:
        if not work.done():
            work.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({work}, timeout=LEAVING)
            if not work.done():
                log.warning("a cancelled episode is still not recorded as interrupted after %g s", LEAVING)


class Watch:
    """Follows the episode from inside its task, and puts what is to be told into `lines`; None is the end of them."""

    def __init__(self) -> None:
        self.episode: Episode | None = None
        self.lines: asyncio.Queue[Line | None] = asyncio.Queue()
        self.notes: list[str] = []
        self._trials = 0

    def began(self, episode: Episode, limits: Any) -> None:
        self.episode, self._trials = episode, limits.trials
        self._tell(0, f"episode {episode.id} begun, judged by {judge_of(episode)}")

    def saw(self, episode: Episode, event: Event) -> None:
        self.episode = episode
        before, at = len(episode.trials) - 1, f"trial {len(episode.trials)} of {self._trials}"
        match event:
            case Recalled(recall):
                self._tell(0.1, f"recalled {len(recall.lessons)} lessons")
            case Acted():
                self._tell(before + 0.4, f"{at}: tried")
            case Evaluated(_, feedback):
                self._tell(before + 0.8, _line(f"{at}: {_verdict(feedback)}", "" if feedback.passed else feedback.text))
            case Reflected(_, reflection) if reflection:
                self._tell(before + 1, _line(f"{at}: reflected", reflection.text))
            case _ if episode.stop:
                self._tell(self._trials, _line(f"over: {episode.stop.reason}", episode.stop.detail))
            case _:
                pass

    def _tell(self, done: float, words: str) -> None:
        self.lines.put_nowait((done, self._trials, words))


def answer(episode: Episode, notes: list[str]) -> dict[str, Json]:
    """The episode as the output schema has it."""
    best, usage = episode.best, episode.usage
    return {
        "status": episode.stop.reason if episode.stop else "interrupted",
        "solved": episode.solved,
        "output": best.attempt.output if best else None,
        "episodeId": episode.id,
        "trials": [_told(trial) for trial in episode.trials],
        "usage": {"tokens": usage.tokens, "calls": usage.calls, "cost": usage.cost},
        "judgedBy": judge_of(episode),
        "notes": [*_qualified(episode), *notes],
    }


def judge_of(episode: Episode) -> str:
    spec: Any = episode.head.settings["evaluator"]
    return str(spec["name"])


def _told(trial: Trial) -> Json:
    feedback, reflection = trial.feedback, trial.reflection
    return {
        "number": trial.number,
        "passed": feedback.passed if feedback else None,
        "score": feedback.score if feedback else None,
        "feedback": truncate_text(feedback.text, TOKENS) if feedback else "",
        "reflection": truncate_text(reflection.text, TOKENS) if reflection else None,
    }


def _qualified(episode: Episode) -> list[str]:
    """What whoever reads the verdict has to know of it."""
    notes, models, best = list[str](), episode.head.models, episode.best
    if judge_of(episode) == "model_judge":
        who = models.get("evaluator", "a model")
        itself = "the model that tried, " if who == models.get("actor") else ""
        notes.append(f"Judged by {itself}{who}, not by a test: weaker than `tests` or `expected`.")
    if best and best.feedback:
        notes += best.feedback.notes
    if episode.stop and episode.stop.reason != "solved":
        notes.append(f"Not solved: {episode.stop.detail}.")
    if episode.stop and episode.stop.reason == "over_budget":
        notes.append(f"With a higher limit it goes on: mulligan runs resume {episode.run}")
    return notes


def _erred(message: str, episode: Episode) -> Reply:
    """An error that names the episode: what it had is kept, and can be gone on with."""
    best = episode.best
    so_far: dict[str, Json] = {"output": best.attempt.output} if best else {}
    said = f"{message.rstrip('.')}. What was done is recorded: mulligan runs resume {episode.run}"
    return Reply({"error": said, "status": "error", "episodeId": episode.id, **so_far}, error=True, indent=None)


def _verdict(feedback: Feedback) -> str:
    said = {True: "passed", False: "failed", None: "no verdict"}[feedback.passed]
    return said if feedback.score is None else f"{said}, score {feedback.score:.2f}"


def _line(start: str, text: str) -> str:
    shown = one_line(text, WIDTH)
    return f"{start}: {shown}" if shown else start


TOOL = Tool(
    name="solve",
    title="Solve a task by second tries",
    description=(
        "Hand a whole task over to this server's own model: it tries, the attempt is judged, and after a failure it "
        "reflects and tries again with what it learned, until an attempt passes or the trials are used up. Choose it "
        "for a task that can be said in one text and whose success can be checked: give `tests` (Python) or `expected` "
        "(an exact answer); without either the model judges itself, which is weaker. To do the thinking yourself, use "
        "`reflexion-thinking` instead. It takes several model calls, so seconds to minutes; progress is told, and a "
        "cancelled call is kept and can be resumed. Returns the best attempt, whether it is solved, and the trials."
    ),
    input_schema=INPUT,
    output_schema=OUTPUT,
    call=call,
    failed=failed,
    open_world=True,
    offered=lambda service: service.model is not None,
)
