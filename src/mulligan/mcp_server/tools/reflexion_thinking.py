"""`reflexion-thinking`: the client acts, judges and reflects; the tool keeps order, reflections and record.

A call without an episodeId is answered as the original reflexion-thinking server does: one memory and one history for
the connection, steps in any order. With one, the order and the reflections of that episode count.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from mulligan.app.client_led.steps import MOST_TRIALS, ClientStep, StepResult
from mulligan.core.errors import InvalidInput, MulliganError, NotFound
from mulligan.core.records import Episode, Json
from mulligan.mcp_server.tool import Call, Reply, Tool, definition, failed
from mulligan.mcp_server.tools.memory_task import extraction_reply, facts_text, outcome_reply

NAME = "reflexion-thinking"

MAX_TEXT = 2_000_000
"""Characters of all texts of a call together."""

MAX_ID = 80

MAX_AGENTS = 16
"""Agents that one connection remembers; beyond that the least recently used are forgotten."""

MAX_WEIGHT = 4_000_000
"""Characters that one connection remembers: at least a task and a reflection of the longest kind."""


# The call's arguments, checked in the order and refused in the words of the original server.


@dataclass(frozen=True)
class StepRequest:
    """The arguments of one call.

    Attributes:
        step: what the client did.
        text: `actorInputText`, whatever the step; None if it is not a string.
        episode: the episodeId, if given.
        reset: whether to start again.
        learn: whether to learn from the episode at its end.
        recall: the id of the retrieval that gave the client lessons; the outcome counts for it.
    """

    step: ClientStep
    text: str | None = None
    episode: str | None = None
    reset: bool = False
    learn: bool = False
    recall: str | None = None


def parse(arguments: Mapping[str, Json] | None) -> StepRequest:
    """Checks the arguments; None: none were sent. Raises `InvalidInput`."""
    if arguments is None:
        raise InvalidInput("Invalid input: stepData must be an object.")
    _check_length(arguments)
    trial, trials = _positive(arguments, "trialNumber"), _positive(arguments, "maxTrials")
    if trials > MOST_TRIALS:
        raise InvalidInput(f"Invalid 'maxTrials': must be at most {MOST_TRIALS}.")
    if trial > trials:
        raise InvalidInput("'trialNumber' cannot exceed 'maxTrials'.")
    memory = _memory(arguments.get("memoryOverride"))
    kind, texts = _texts(arguments)
    step = ClientStep(kind, trial, trials, **texts, passed=_boolean(arguments, "passed"), memory=memory)
    task = arguments.get("actorInputText")
    episode, reset = _episode_id(arguments.get("episodeId")), bool(_boolean(arguments, "reset"))
    if reset and episode is not None:
        raise InvalidInput("'reset' starts a new episode: omit 'episodeId', or omit 'reset' to continue the episode.")
    learn = bool(_boolean(arguments, "learn"))
    recall = arguments.get("retrievalId")
    if recall is not None and not isinstance(recall, str):
        raise InvalidInput("Invalid 'retrievalId': must be the retrieval_id that retrieve_memory returned.")
    return StepRequest(step, task if isinstance(task, str) else None, episode, reset, learn, recall)


def _check_length(arguments: Mapping[str, Json]) -> None:
    texts: list[Json] = list(arguments.values())
    override = arguments.get("memoryOverride")
    texts += cast(list[Json], override) if isinstance(override, list) else []
    length = sum(len(text) for text in texts if isinstance(text, str))
    if length > MAX_TEXT:
        raise InvalidInput(
            f"The strings have {length:,} characters in total, but at most {MAX_TEXT:,} are accepted: shorten them."
        )


def _positive(arguments: Mapping[str, Json], name: str) -> int:
    number = arguments.get(name)
    whole = isinstance(number, int) or (isinstance(number, float) and number.is_integer())
    if isinstance(number, bool) or not whole or cast(float, number) < 1:
        raise InvalidInput(f"Invalid '{name}': must be a positive integer.")
    return int(cast(float, number))


def _memory(value: Json) -> tuple[str, ...] | None:
    """The reflections in `memoryOverride`. Like the original server, it drops items that are not strings."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise InvalidInput("Invalid 'memoryOverride': must be an array of strings.")
    return tuple(item for item in cast(list[Json], value) if isinstance(item, str))


_UNSET: Any = object()


def _texts(arguments: Mapping[str, Json]) -> tuple[Literal["act", "evaluate", "reflect"], dict[str, Json]]:
    """The kind of the step, and the texts that it needs and may have."""
    step = arguments.get("stepType", _UNSET)
    if step == "actor":
        return "act", {"prompt": _text(arguments, "actorInputText", step)}
    if step not in ("evaluator", "self-reflection"):
        raise InvalidInput(
            f"Unknown stepType: '{_as_javascript(step)}'. Must be 'actor', 'evaluator', or 'self-reflection'."
        )
    texts: dict[str, Json] = {"output": _text(arguments, "actorOutputText", step)}
    score = arguments.get("evaluatorScore")
    if isinstance(score, str) or _is_number(score):
        texts["score"] = score
    elif step == "self-reflection":
        raise InvalidInput(f"Invalid 'evaluatorScore': must be a string or number for '{step}' step.")
    if step == "evaluator":
        return "evaluate", texts
    if arguments.get("reflectionText") is not None:
        texts["reflection"] = _text(arguments, "reflectionText", step)
    return "reflect", texts


def _text(arguments: Mapping[str, Json], name: str, step: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise InvalidInput(f"Invalid '{name}': must be a string for '{step}' step.")
    return value


def _is_number(value: Json) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _boolean(arguments: Mapping[str, Json], name: str) -> bool | None:
    value = arguments.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidInput(f"Invalid '{name}': must be true or false.")
    return value


def _episode_id(value: Json) -> str | None:
    """The episodeId. An empty one counts as left out, because some clients fill in every parameter."""
    if value is not None and not isinstance(value, str):
        raise InvalidInput("Invalid 'episodeId': must be a string.")
    return (value or "").strip() or None


def _as_javascript(value: Json) -> str:
    """The value as a template string shows it in JavaScript, the language of the original server."""
    if value is _UNSET:
        return "undefined"
    if isinstance(value, dict):
        return "[object Object]"
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 100 else f"{shown[:100]}…"


# What a connection remembers for clients that pass no episodeId.


@dataclass
class AgentMemory:
    """What a connection remembers for one agent.

    Attributes:
        reflections: newest first.
        done: how many trials are done.
        task: the newest task.
        episode: the newest episode.
        before: the reflections from before that episode began.
        led: whether the client has passed the id of that episode. Then only the episode keeps its reflections.
    """

    reflections: tuple[str, ...] = ()
    done: int = 0
    task: str | None = None
    episode: str | None = None
    before: tuple[str, ...] = ()
    led: bool = False

    @property
    def weight(self) -> int:
        """How many characters it holds."""
        return len(self.task or "") + sum(map(len, {*self.reflections, *self.before}))


@dataclass
class ConnectionMemory:
    """What a connection remembers.

    Attributes:
        agent: the agent that was named last.
        agents: what is remembered for each.
        lock: held by a call, so that calls of one connection are answered one after the other.
    """

    agent: str = ""
    agents: dict[str, AgentMemory] = field(default_factory=dict[str, AgentMemory])
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def recall(self, agent: str) -> AgentMemory:
        """A copy, so that a call that fails changes nothing."""
        return replace(self.agents.get(agent, AgentMemory()))

    def hand_over(self, episode: str) -> None:
        """Forgets what was learned in this episode, because the client has passed its id."""
        for memory in self.agents.values():
            if memory.episode == episode and not memory.led:
                memory.reflections, memory.led = memory.before, True

    def keep(self, agent: str, memory: AgentMemory) -> None:
        """Over a limit, forgets the least recently used agents, then this one's oldest reflections."""
        self.agent = agent
        self.agents.pop(agent, None)
        self.agents[agent] = memory
        while len(self.agents) > MAX_AGENTS or (len(self.agents) > 1 and self.weight > MAX_WEIGHT):
            del self.agents[next(iter(self.agents))]
        if self.weight > MAX_WEIGHT:
            memory.before = ()
        while len(memory.reflections) > 1 and self.weight > MAX_WEIGHT:
            memory.reflections = memory.reflections[:-1]

    @property
    def weight(self) -> int:
        return sum(memory.weight for memory in self.agents.values())


# The tool.


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    request = parse(None if call.bare else arguments)
    agent = call.agent(arguments.get("agentId") or None)
    if request.episode is not None:
        return await _in_episode(request, request.episode, agent, call)
    if call.state is None:
        return await _begin(request, agent, call)
    connection: ConnectionMemory = call.state.values.setdefault(NAME, ConnectionMemory())
    async with connection.lock:
        unnamed = agent is None and arguments.get("agentId") is None
        reply = await _in_connection(request, connection.agent if unnamed else agent or "", connection, call)
        call.state.weight = connection.weight
        return reply


async def _in_episode(request: StepRequest, episode: str, agent: str | None, call: Call) -> Reply:
    """A call with an episodeId."""
    try:
        if len(episode) > MAX_ID or not episode.isascii():
            raise NotFound("There is no episode with this id.")
        result = await call.service.client_led.take(episode, request.step, agent)
    except NotFound:
        raise InvalidInput(
            f"There is no episode {episode[:MAX_ID]!r} here: pass the episodeId that the actor step of trial 1 "
            "returned, or call that step without one."
        ) from None
    if call.state is not None and NAME in call.state.values:
        connection: ConnectionMemory = call.state.values[NAME]
        async with connection.lock:
            connection.hand_over(result.episode.id)
            call.state.weight = connection.weight
    return await _reply_to_step(request, result, call)


async def _begin(request: StepRequest, agent: str | None, call: Call) -> Reply:
    """Answers a call without an episodeId if nothing is kept between calls."""
    if (request.step.kind, request.step.trial) != ("act", 1):
        raise InvalidInput(
            "This connection remembers nothing between calls: pass the episodeId that the first call (the actor step "
            "of trial 1) returned."
        )
    return await _reply_to_step(request, await call.service.client_led.begin(request.step, agent or ""), call)


async def _reply_to_step(request: StepRequest, result: StepResult, call: Call) -> Reply:
    answer = _answer(request.step, result.memory, result.episode.task.prompt, not result.over, result.completed)
    return await _reply(answer, result.episode, request, call)


async def _in_connection(request: StepRequest, agent: str, connection: ConnectionMemory, call: Call) -> Reply:
    """Answers a call without an episodeId from what the connection remembers, and records the step.

    If the client has passed the id of its newest episode before, and now leaves it out, that episode's reflections are
    used.
    """
    depth = call.service.served.depth
    state = AgentMemory() if request.reset else connection.recall(agent)
    step, reflections = request.step, state.reflections
    if request.text is not None and (step.kind == "act" or state.task is None):
        state.task = request.text
    if state.led and state.episode is not None:
        recorded = await call.service.client_led.remembered(state.episode, step, state.task or "", agent)
        state.led = recorded is not None
        reflections = reflections if recorded is None else recorded
    memory = (reflections if step.memory is None else step.memory)[:depth]
    memory_after = memory if step.reflection is None else (step.reflection, *memory)[:depth]
    state.done += _completes(step)
    shown = memory_after if _completes(step) else memory
    another = step.trial < step.trials and not step.passed
    task = state.task if request.text is None else request.text
    answer = _answer(step, shown, task or "", another, state.done)
    episode = await call.service.client_led.follow(state.episode, replace(step, memory=memory), state.task or "", agent)
    if episode.id != state.episode:
        state.episode, state.before = episode.id, state.reflections
    if not state.led:
        state.reflections = memory_after
    connection.keep(agent, state)
    return await _reply(answer, episode, request, call)


def _completes(step: ClientStep) -> bool:
    """Whether the trial is done with this step."""
    return bool(step.passed and step.kind != "act") or step.reflection is not None


def _answer(step: ClientStep, memory: tuple[str, ...], task: str, another: bool, done: int) -> dict[str, Json]:
    """The answer, its keys in the order of the original server. `another`: whether a trial follows a finished one."""
    numbers: dict[str, Json] = {"trialNumber": step.trial, "maxTrials": step.trials}
    if step.kind == "act":
        shown = {"prompt_for_actor": step.prompt, "current_memory": list(memory)}
        return {"nextStep": "evaluator", **shown, **numbers}
    if _completes(step):
        added = {} if step.reflection is None else {"reflection_added_to_memory": step.reflection}
        after: dict[str, Json] = {"memory": list(memory), "next_trial_needed": another, "trial_history_length": done}
        return {"trialCompleted": step.trial, **added, **after}
    if step.kind == "evaluate":
        return {"nextStep": "self-reflection", "content_to_evaluate": step.output, **numbers}
    prompt: Json = {
        "task_description": task,
        "actor_output": step.output,
        "evaluator_score": step.score,
        "current_memory": list(memory),
    }
    message = (
        "Reflect on this: why it failed, and what to do otherwise. Then call again with the same arguments and "
        "reflectionText."
    )
    return {"nextStep": "self-reflection", "prompt_for_reflection_llm": prompt, **numbers, "message": message}


async def _reply(answer: dict[str, Json], episode: Episode, request: StepRequest, call: Call) -> Reply:
    """The answer, with the fields that the original server does not have: "learning" and "episodeId"."""
    if (request.learn or request.recall) and episode.stop is not None and _completes(request.step):
        answer["learning"] = await _learn(episode, request, call)
    return Reply({**answer, "episodeId": episode.id}, indent=None)


async def _learn(episode: Episode, request: StepRequest, call: Call) -> Json:
    """Counts the outcome of a finished episode for the recalled lessons, and learns lessons if the call asks for it.

    An error in learning does not undo the step.
    """
    try:
        bank = call.service.bank(episode.agent)
        if not request.learn:
            return await outcome_reply(bank, str(request.recall), episode.solved)
        if request.recall:
            episode = replace(episode, recall=await bank.recalled(request.recall))
        learned = await bank.learn(episode, background=True)
        return await extraction_reply(bank, learned, by_tool="extract_memory" in call.offered)
    except MulliganError as error:
        what = "No strategy was learned" if error.facts else "Nothing was learned"
        what = what if request.learn else "The outcome of the recall was not recorded"
        return {"status": "error", "message": f"{what}: {error}{facts_text(error.facts)}"}


TOOL = Tool(definition("reflexion_thinking"), call, failed)
