"""The nodes of the Reflexion graph: draft, execute the tool, revise. They record each trial as core's events.

A trial is a drafted or revised answer and the result of executing it. One call of the model then evaluates it, reflects
on it and writes the next answer. LangGraph owns order, checkpoints, streaming and interrupts.
"""

from __future__ import annotations

import inspect
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from langgraph.types import interrupt

from mulligan import Limits
from mulligan.langgraph.calling import called
from mulligan.langgraph.journalled import model_id, models_in
from mulligan.langgraph.judging import Judgement
from mulligan.langgraph.working import (
    DRAFT,
    EXECUTE_TOOL,
    REVISE,
    Reading,
    Record,
    Recorder,
    ReflexionState,
    Work,
    answered,
    log,
    message_of,
    newest,
    result_of,
    since_question,
    text_of,
)
from mulligan.plugins import (
    Attempt,
    BadAnswer,
    Bank,
    Episode,
    Feedback,
    Head,
    InvalidInput,
    Json,
    Plan,
    Recall,
    Reflection,
    Step,
    Stop,
    StoreError,
    Task,
)
from mulligan.running import (
    Acted,
    Evaluated,
    JournaledBank,
    Recalled,
    Reflected,
    Settling,
    Stopped,
    digest,
    due,
    settled,
    teach,
    tell_outcome,
    to_json,
    tolerated,
    versions,
)

Approve: TypeAlias = Callable[[AIMessage, str, str, int], tuple[AIMessage, ToolMessage | None]]
"""Takes the proposal, its answer, the question and the trial's number. Returns the proposal to execute, perhaps edited,
and the tool message that replaces its execution if it was refused."""

REFUSED = "A person refused to run this."
HOW = 'Answer with Command(resume=…): True, {"edit": "…"} or {"refuse": "why"}.'


def ask_person(proposal: AIMessage, answer: str, question: str, trial: int) -> tuple[AIMessage, ToolMessage | None]:
    """Interrupt the graph until a person has decided. An invalid decision is asked for again."""
    payload: dict[str, Any] = {"approve": answer, "question": question, "trial": trial, "how": HOW}
    decision = interrupt(payload)
    while (taken := _taken(decision, proposal, answer)) is None:
        decision = interrupt({**payload, "error": f"{decision!r} is not a valid decision."})
    return taken


def _taken(decision: Any, proposal: AIMessage, answer: str) -> tuple[AIMessage, ToolMessage | None] | None:
    if decision is True or decision == "approve":
        return proposal, None
    if decision is False or decision == "refuse":
        return proposal, answered(proposal, REFUSED, "error")
    if not isinstance(decision, dict) or len(decided := cast(dict[str, Any], decision)) != 1:
        return None
    ((kind, value),) = decided.items()
    if kind == "edit" and isinstance(value, str) and value.strip():
        return edited(proposal, answer, value), None
    if kind == "refuse" and isinstance(value, str):
        return proposal, answered(proposal, f"{REFUSED} {value}".strip(), "error")
    return None


def edited(proposal: AIMessage, answer: str, instead: str) -> AIMessage:
    """Return the proposal with another answer, in its text or wherever its tool call holds the answer."""
    if not proposal.tool_calls:
        return proposal.model_copy(update={"content": instead})
    call = proposal.tool_calls[0]
    args = {name: _replaced(value, answer, instead) for name, value in call["args"].items()}
    calls = [{**call, "args": args}, *proposal.tool_calls[1:]]
    content = proposal.content
    if isinstance(content, list):  # providers that repeat their calls there
        content = [_block(block, call["id"], args) for block in content]
    return proposal.model_copy(update={"tool_calls": calls, "content": content, "additional_kwargs": {}})


def _replaced(value: Any, answer: str, instead: str) -> Any:
    if isinstance(value, list):
        return [_replaced(item, answer, instead) for item in cast(list[Any], value)]
    return instead if value == answer else value


def _block(block: Any, id: str | None, args: dict[str, Any]) -> Any:
    if not isinstance(block, dict):
        return block
    found = cast(dict[str, Any], block)
    return {**found, "input": args} if found.get("type") == "tool_use" and found.get("id") == id else found


STEPS = 30
"""The default number of steps. A step is a draft or a revision."""
OWN_RULE = "the agent's own rule ended it"


@dataclass(frozen=True)
class Parts:
    """The functions that the nodes call with the messages since the question. Those that are not async run in a thread.

    Attributes:
        draft, execute, revise: Return the node's message. A draft or a revision may raise `BadAnswer`: no valid answer.
        read: Reads a draft or a revision.
        answered: Returns the answer that was really executed.
        passed: Whether a trial is good enough, given the revision and the tool's message; None: it cannot be told.
        goes_on: A rule of the user's after a revision, which returns "execute_tool" or END; None: `passed`, `settles`
            and the limits decide.
        settles: Returns why a result ends the loop in any case; "" if it does not.
        approve: Asks a person before anything is executed; None: nobody is asked.
        judge: Judges each result, the last one included, before anything is revised; `passed`, `settles` and `goes_on`
            then say nothing. `revise` gets the critique as the last message, and its score does not count. None: the
            revision judges.
        conclude: Called before the run ends, with the question and the tool's message of the answer that counts. The
            record keeps what it asks a model, so that a resumed run does not ask again.

    A loop that `goes_on` or `settles` ends, and that `passed` does not call good, ends as "unconfirmed".
    """

    draft: Callable[[list[BaseMessage]], Any]
    execute: Callable[[list[BaseMessage]], Any]
    revise: Callable[[list[BaseMessage]], Any]
    read: Callable[[AIMessage], Reading]
    answered: Callable[[Reading, ToolMessage], str]
    passed: Callable[[Reading, ToolMessage], Any]
    goes_on: Callable[[list[BaseMessage]], str] | None = None
    settles: Callable[[ToolMessage], str] = lambda message: ""
    approve: Approve | None = None
    judge: Callable[[list[BaseMessage]], Any] | None = None
    conclude: Callable[[str, ToolMessage], Awaitable[None]] | None = None


@dataclass(frozen=True)
class Nodes:
    """The three nodes.

    Attributes:
        agent_id: The owner of the records.
        head, files: What the record says about versions, models and prompts.
        bank: Lessons are recalled from it before the draft.
        learn: Whether the bank learns from each run that ends.
        name: The name of the graph.
    """

    parts: Parts
    recorder: Recorder
    steps: int = STEPS
    agent_id: str = ""
    head: Head = field(default_factory=Head)
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    bank: Bank | None = None
    learn: bool = False
    name: str = "reflexion"

    @cached_property
    def limits(self) -> Limits:
        """The limits of the episode: a step is a draft or a revision, and without a judge the last one only judges."""
        return Limits(trials=self.steps if self.parts.judge else max(self.steps - 1, 1), identical=None)

    async def draft(self, state: ReflexionState, config: RunnableConfig) -> Mapping[str, Any]:
        messages, removed = since_question(state["messages"]), list[RemoveMessage]()
        if messages[0].id and messages[0].id == (state.get("record") or {}).get("question"):
            removed = [
                RemoveMessage(id=message.id or "") for message in messages[1:]
            ]  # the same question again: start over
            messages = messages[:1]
        record = await self._record(messages[0], config)
        async with self.recorder.work(record, "trial.1", "draft") as work:
            if self.bank is not None:
                bank, task = JournaledBank(cast(Bank, Settling(self.bank)), work.journal), work.episode.task
                recall = await tolerated(
                    f"bank of {self.name}", "nothing is recalled", lambda: bank.recall(task), Recall("")
                )
                await work.keep(Recalled(recall, work.lap()))
            work.steps = 1
            try:
                message = await called(self.parts.draft, messages)
            except BadAnswer as error:
                return {"messages": removed, **await self._stopped(work, Stop("gave_up", str(error)))}
            work.next = EXECUTE_TOOL
            update = {"messages": [*removed, message], "record": self.recorder.update(work)}
            return update if state.get("reflexion") is None else {**update, "reflexion": None}

    async def execute_tool(self, state: ReflexionState, config: RunnableConfig) -> Mapping[str, Any]:
        record = state["record"]
        messages = since_question(state["messages"], record["question"])
        number = 1 + len(self.recorder.episode(record).trials)
        proposal, refusal, edits = newest(messages, AIMessage), None, list[BaseMessage]()
        if self.parts.approve is not None:
            answer, question = self.parts.read(proposal).answer, messages[0].text
            edited, refusal = self.parts.approve(proposal, answer, question, number)
            if edited is not proposal:
                messages = [edited if message is proposal else message for message in messages]
                proposal, edits = edited, [edited]
        async with self.recorder.work(record, f"trial.{number}", "act") as work:
            message: ToolMessage = refusal or await called(self.parts.execute, messages)
            reading = self.parts.read(proposal)
            answer = reading.answer if refusal else self.parts.answered(reading, message)
            step = Step(action=answer, observation=text_of(message))
            await work.keep(Acted(number, Attempt(answer, (step,), usage=work.spent()), seconds=work.lap()))
            work.next = REVISE
            update = {"messages": [*edits, message]}
            if self.steps > 1 or self.parts.judge:
                return {**update, "record": self.recorder.update(work)}
            await work.keep(Evaluated(number, Feedback(None, "no step was left to judge it", source="revise")))
            update |= await self._after_verdict(work, reading, message)
        return await self._learn(update, work)

    async def revise(self, state: ReflexionState, config: RunnableConfig) -> Mapping[str, Any]:
        record = state["record"]
        messages = since_question(state["messages"], record["question"])
        number, tool = len(self.recorder.episode(record).trials), newest(messages, ToolMessage)
        async with self.recorder.work(record, f"trial.{number}", "evaluate") as work:
            if self.parts.judge is not None:
                return await self._learn(await self._judged(work, messages), work)
            work.steps += 1
            try:
                message: AIMessage = await called(self.parts.revise, messages)
            except BadAnswer as error:
                return await self._learn(await self._unrevised(work, tool, error), work)
            reading = self.parts.read(message)
            passed, ended, last = (
                await self._verdict(reading, tool),
                self.parts.settles(tool),
                number >= self.limits.trials,
            )
            if self.parts.goes_on is not None:
                ends = self.parts.goes_on([*messages, message]) == END
                own = "" if last else OWN_RULE  # at the last step, it is the limit that ends it
                passed, ended = (passed, ended or own) if ends else (False, "")
            if ended and passed is False:
                passed = None
            text, usage = _feedback_text(reading, critique=passed is not False or last), work.spent()
            feedback = Feedback(passed, text, reading.score, "revise", usage=usage)
            await work.keep(Evaluated(number, feedback, work.lap()))
            update = {"messages": [message], **await self._after_verdict(work, reading, tool, ended)}
        return await self._learn(update, work)

    async def _judged(self, work: Work, messages: list[BaseMessage]) -> dict[str, Any]:
        """Judge the newest result; then end the run, or revise."""
        assert self.parts.judge is not None, "only a run with a judge is judged"
        number, tool = len(work.episode.trials), newest(messages, ToolMessage)
        judgement: Judgement = await called(self.parts.judge, messages)
        text = judgement.critique if judgement.passed is not False else "the rows do not answer the question"
        feedback = Feedback(judgement.passed, text, judgement.score, "judge", usage=work.spent())
        await work.keep(Evaluated(number, feedback, work.lap()))
        if judgement.passed is False:
            await work.keep(Reflected(number, Reflection(judgement.critique)))
        if (stop := self._stop_of(work, judgement)) is not None:
            return await self._stopped(work, stop, tool, messages)
        work.steps += 1
        try:
            message: AIMessage = await called(self.parts.revise, [*messages, HumanMessage(judgement.critique)])
        except BadAnswer as error:
            stop = _unsure(work, str(error)) or Stop("gave_up", str(error))
            return await self._stopped(work, stop, tool, messages)
        work.next = EXECUTE_TOOL
        return {"messages": [message], "record": self.recorder.update(work)}

    def _stop_of(self, work: Work, judgement: Judgement) -> Stop | None:
        """Return why the run is over after this judgement; None if it goes on."""
        if judgement.absent:
            return Stop("absent", judgement.absent)
        if judgement.doubt:
            return Stop("unsure", judgement.doubt)
        move = due(work.episode, self.limits)
        if not isinstance(move, Stop) or move.reason != "exhausted":
            return move if isinstance(move, Stop) else None
        if judgement.missing:
            return Stop("absent", judgement.missing)
        used = f"{work.steps} of {self.steps} steps used"
        return _unsure(work, used) or replace(move, detail=used)

    async def _unrevised(self, work: Work, tool: ToolMessage, error: BadAnswer) -> dict[str, Any]:
        """End a run without a valid revision. A result that is good or ends the loop counts all the same."""
        passed, ended = await self._verdict(Reading(""), tool), self.parts.settles(tool)
        if not passed and not ended:
            return await self._stopped(work, Stop("gave_up", str(error)), tool)
        feedback = Feedback(passed or None, str(error), source="revise", usage=work.spent())
        await work.keep(Evaluated(len(work.episode.trials), feedback, work.lap()))
        return await self._after_verdict(work, Reading(""), tool, ended)

    async def _after_verdict(self, work: Work, reading: Reading, tool: ToolMessage, ended: str = "") -> dict[str, Any]:
        """Return the update of the state after a verdict: the end, or the reflection and the next trial.

        Args:
            ended: Why the loop ends, if a rule besides the verdict and the limits ended it.
        """
        move, number = due(work.episode, self.limits), len(work.episode.trials)
        feedback = work.episode.trials[-1].feedback
        if ended and feedback is not None and feedback.passed is None:
            return await self._stopped(work, Stop("unconfirmed", f"{ended}; {feedback.text}"), tool)
        if isinstance(move, Stop):
            used = f"{work.steps} of {self.steps} steps used"
            stop = replace(move, detail=used) if move.reason == "exhausted" else move
            return await self._stopped(work, stop, tool)
        if move.kind == "reflect":
            await work.keep(Reflected(number, Reflection(reading.reflection)))
        work.next = EXECUTE_TOOL
        return {"record": self.recorder.update(work)}

    async def _stopped(
        self, work: Work, stop: Stop, tool: ToolMessage | None = None, messages: Sequence[BaseMessage] = ()
    ) -> dict[str, Any]:
        """End the run, and return the update of the state. messages: needed where an earlier answer may be the best."""
        if messages:
            tool = message_of(replace(work.episode, stop=stop), messages)
        if self.parts.conclude is not None and tool is not None:
            await self.parts.conclude(work.episode.task.prompt, tool)
        await work.keep(Stopped(stop, work.spent(), work.lap()))
        work.next = END
        return {"record": self.recorder.update(work), "reflexion": result_of(work.episode, work.steps, tool)}

    async def _learn(self, update: dict[str, Any], work: Work) -> dict[str, Any]:
        """Return the update after the bank has learned from an episode that has ended."""
        if self.bank is not None and work.episode.stop is not None:
            tell, bank = teach if self.learn else tell_outcome, self.bank
            learned = lambda: settled(tell(bank, work.episode, log.info))  # noqa: E731
            await tolerated(f"bank of {self.name}", "nothing is learned from a run of a graph", learned, None)
        return update

    async def _verdict(self, reading: Reading, tool: ToolMessage) -> bool | None:
        passed = self.parts.passed
        verdict = passed(reading, tool)
        if getattr(passed, "both_ways", False):
            return await verdict
        return await settled(verdict) if inspect.isawaitable(verdict) else verdict

    async def _record(self, question: BaseMessage, config: RunnableConfig) -> Record:
        """Return the record of this run. Within one thread, running again on the same message gives the same record."""
        prompt = question.text
        if not prompt.strip():
            raise InvalidInput("The question is empty. Write what you want to find out.")
        where = config.get("configurable", {})
        thread, run = where.get("thread_id"), secrets.token_hex(6)
        if thread is not None and question.id:
            outer = str(where.get("checkpoint_ns", "")).rpartition("|")[0]  # without the task of this node
            run = digest([str(thread), outer, question.id, prompt, self.agent_id, self.name])[:12]
            if (known := await self.recorder.stored(f"{run}.1")) is not None:
                return _new_record(known, question)
        plan = Plan(recalls=self.bank is not None, reflects=True)
        head, started = self.head, round(time.time(), 3)
        if thread is not None:
            head = replace(head, settings={**head.settings, "thread": str(thread)})
        episode = Episode(f"{run}.1", Task(prompt), run, self.agent_id, plan, head, started)
        lean = thread is None and not self.recorder.records  # no checkpoint and no store will ask for JSON
        record = _new_record(episode if lean else to_json(episode), question)
        try:
            await self.recorder.begin(episode, record, self.files)
        except StoreError:
            if (known := await self.recorder.stored(episode.id)) is None:
                raise
            return _new_record(known, question)  # another run of the thread was faster
        return record


def _unsure(work: Work, detail: str) -> Stop | None:
    """Return the end of a run whose best answer has rows that were not judged good enough; None without such rows."""
    best = work.episode.best
    feedback = best.feedback if best else None
    if best is None or feedback is None or feedback.score == 0:
        return None
    critique = best.reflection.text if best.reflection else feedback.text
    return Stop("unsure", f"{detail}; {critique}")


def _feedback_text(reading: Reading, *, critique: bool) -> str:
    """Return the score in words, with the critique if no reflection will hold it."""
    score = "no score" if reading.score is None else f"scored {reading.score:g} of 10 by the model itself"
    return f"{score}: {reading.reflection}" if critique and reading.reflection else score


def _new_record(begun: Any, question: BaseMessage) -> Record:
    return {"begun": begun, "events": [], "question": question.id or "", "steps": 0, "next": DRAFT, "spent": None}


def episode_head(models: Mapping[str, Any], prompts: Mapping[str, str], settings: Mapping[str, Json]) -> Head:
    """Return what the record of an episode says about versions, models, prompts and settings.

    Args:
        models: Journalled models by role.
        prompts: sha256 by name.
    """
    named = {role: ", ".join(map(model_id, models_in(model))) for role, model in models.items()}
    return Head(versions("langgraph", "langchain-core"), named, {"led_by": "langgraph", **settings}, prompts)
