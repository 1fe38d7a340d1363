"""`reflexion-thinking`: the client acts, judges and reflects; here its order, its memory and its record are kept.

Without an episodeId it answers as the seed's server: one memory and one history for the connection, in any order. With
one the episode's own order and memory count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mulligan.app.client_led_steps import ClientStep, Taken
from mulligan.core.errors import InvalidInput, MulliganError, NotFound
from mulligan.core.records import Episode, Json
from mulligan.mcp_server.reflexion_request import Asked, asked
from mulligan.mcp_server.reflexion_schema import DESCRIPTION, INPUT, OUTPUT
from mulligan.mcp_server.tool import Call, Reply, Tool

NAME = "reflexion-thinking"

LONGEST_ID = 80

AGENTS = 16
"""Agents that one connection remembers for, the longest unused forgotten first."""

KEPT = 4_000_000
"""Characters that one connection remembers: of a task and a reflection, each as long as a call may be, at least."""


@dataclass
class Remembered:
    """What a connection keeps for one agent: reflections newest first, trials done, the newest task, the episode.

    before: the reflections from before that episode began. led: whether the client has passed the id of that episode;
    its reflections are then the episode's alone, and none of the connection's.
    """

    memory: tuple[str, ...] = ()
    done: int = 0
    task: str | None = None
    episode: str | None = None
    before: tuple[str, ...] = ()
    led: bool = False

    @property
    def weight(self) -> int:
        """Characters that it holds."""
        return len(self.task or "") + sum(map(len, {*self.memory, *self.before}))


@dataclass
class Connection:
    """`agent`: the one that was named last. `turn`: calls of one connection are answered one after the other."""

    agent: str = ""
    agents: dict[str, Remembered] = field(default_factory=dict[str, Remembered])
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def remembered(self, agent: str) -> Remembered:
        """A copy: what a call changes counts once it has succeeded."""
        return replace(self.agents.get(agent, Remembered()))

    def hand_over(self, episode: str) -> None:
        """The client has passed the id of this episode: what it learned there is not remembered for other tasks."""
        for state in self.agents.values():
            if state.episode == episode and not state.led:
                state.memory, state.led = state.before, True

    def keep(self, agent: str, now: Remembered) -> None:
        """What is too much is forgotten: the longest unused agents, then this one's oldest reflections."""
        self.agent = agent
        self.agents.pop(agent, None)
        self.agents[agent] = now
        while len(self.agents) > AGENTS or (len(self.agents) > 1 and self.weight > KEPT):
            del self.agents[next(iter(self.agents))]
        if self.weight > KEPT:
            now.before = ()
        while len(now.memory) > 1 and self.weight > KEPT:
            now.memory = now.memory[:-1]

    @property
    def weight(self) -> int:
        return sum(state.weight for state in self.agents.values())


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    ask = asked(None if call.bare else arguments)
    agent = call.agent(arguments.get("agentId"))
    if ask.episode is not None:
        return await _in_order(ask, ask.episode, agent, call)
    if call.link is None:
        return await _first(ask, agent, call)
    connection: Connection = call.link.kept.setdefault(NAME, Connection())
    async with connection.turn:
        unnamed = agent is None and arguments.get("agentId") is None
        reply = await _as_the_seed(ask, connection.agent if unnamed else agent or "", connection, call)
        call.link.weight = connection.weight
        return reply


def failed(message: str, arguments: Mapping[str, Json]) -> Reply:
    return Reply({"error": message}, error=True, indent=None)


async def _in_order(ask: Asked, episode: str, agent: str | None, call: Call) -> Reply:
    try:
        if len(episode) > LONGEST_ID or not episode.isascii():
            raise NotFound("No id is like this.")
        taken = await call.service.client_led.take(episode, ask.step, agent)
    except NotFound:
        raise InvalidInput(
            f"There is no episode {episode[:LONGEST_ID]!r} here: pass the episodeId that the actor step of trial 1 "
            "returned, or call that step without one."
        ) from None
    if call.link is not None and NAME in call.link.kept:
        connection: Connection = call.link.kept[NAME]
        async with connection.turn:
            connection.hand_over(taken.episode.id)
            call.link.weight = connection.weight
    return await _told(ask, taken, call)


async def _first(ask: Asked, agent: str | None, call: Call) -> Reply:
    """Where nothing is kept between calls, the episode's id is all that ties them together."""
    if (ask.step.kind, ask.step.trial) != ("act", 1):
        raise InvalidInput(
            "This connection remembers nothing between calls: pass the episodeId that the first call (the actor step "
            "of trial 1) returned."
        )
    return await _told(ask, await call.service.client_led.begin(ask.step, agent or ""), call)


async def _told(ask: Asked, taken: Taken, call: Call) -> Reply:
    needed = not taken.over
    answer = _answer(ask.step, taken.memory, taken.episode.task.prompt, needed, taken.completed)
    return Reply(await _signed(answer, taken.episode, ask, call), indent=None)


async def _as_the_seed(ask: Asked, agent: str, connection: Connection, call: Call) -> Reply:
    """What is answered hangs on the connection alone, the record follows it; only a client that has passed the id of
    its newest episode and leaves it out in a further step of it is answered from that episode.
    """
    depth = call.service.served.depth
    now = Remembered() if ask.reset else connection.remembered(agent)
    step, known = ask.step, now.memory
    if ask.text is not None and (step.kind == "act" or now.task is None):
        now.task = ask.text
    if now.led and now.episode is not None:
        its = await call.service.client_led.remembered(now.episode, step, now.task or "", agent)
        now.led, known = its is not None, known if its is None else its
    memory = (known if step.memory is None else step.memory)[:depth]
    after = memory if step.reflection is None else (step.reflection, *memory)[:depth]
    now.done += _completes(step)
    shown = after if _completes(step) else memory
    needed = step.trial < step.trials and not step.passed
    task = now.task if ask.text is None else ask.text
    answer = _answer(step, shown, task or "", needed, now.done)
    recorded = replace(step, memory=memory)
    episode = await call.service.client_led.follow(now.episode, recorded, now.task or "", agent)
    if episode.id != now.episode:
        now.episode, now.before = episode.id, now.memory
    if not now.led:
        now.memory = after
    connection.keep(agent, now)
    return Reply(await _signed(answer, episode, ask, call), indent=None)


def _completes(step: ClientStep) -> bool:
    """Whether the trial is done with this step."""
    return bool(step.passed and step.kind != "act") or step.reflection is not None


def _answer(step: ClientStep, memory: tuple[str, ...], task: str, needed: bool, done: int) -> dict[str, Json]:
    """In the order of the seed's keys. `needed`: whether another trial is, where this one is done."""
    numbers: dict[str, Json] = {"trialNumber": step.trial, "maxTrials": step.trials}
    if step.kind == "act":
        shown = {"prompt_for_actor": step.prompt, "current_memory": list(memory)}
        return {"nextStep": "evaluator", **shown, **numbers}
    if _completes(step):
        added = {} if step.reflection is None else {"reflection_added_to_memory": step.reflection}
        after: dict[str, Json] = {"memory": list(memory), "next_trial_needed": needed, "trial_history_length": done}
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


async def _signed(answer: dict[str, Json], episode: Episode, ask: Asked, call: Call) -> dict[str, Json]:
    """With what is ours: what became of the lessons, and the episode's id."""
    if ask.learn and episode.stop is not None and _completes(ask.step):
        answer["learning"] = await _learned(episode, call)
    return {**answer, "episodeId": episode.id}


async def _learned(episode: Episode, call: Call) -> Json:
    """The bank of the episode's agent is taught; what goes wrong with it does not undo the step."""
    from mulligan.mcp_server.learning import learning

    try:
        bank = call.service.bank(episode.agent)
        learned = await bank.learn(episode, background=True)
        return await learning(bank, learned, by_tool="extract_memory" in call.offered)
    except MulliganError as error:
        return {"status": "error", "message": f"Nothing was learned: {error}"}


TOOL = Tool(
    name=NAME,
    title="Reflexion: try, judge, reflect, try again",
    description=DESCRIPTION,
    input_schema=INPUT,
    output_schema=OUTPUT,
    call=call,
    failed=failed,
)
