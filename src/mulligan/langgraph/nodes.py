"""The nodes of the Reflexion graph: draft, execute the tool, revise. They record each trial as core's events.

A trial is a drafted or revised answer and the result of executing it. One call of the model then evaluates it, reflects
on it and writes the next answer. LangGraph owns order, checkpoints, streaming and interrupts.
"""

from __future__ import annotations

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
from mulligan.langgraph.journalled import model_id, models_in
from mulligan.langgraph.judging import Judgement
from mulligan.langgraph.state import (
    DRAFT,
    EXECUTE_TOOL,
    REVISE,
    Reading,
    Record,
    ReflexionState,
    answered,
    message_of,
    newest,
    result_of,
    since_question,
    text_of,
)
from mulligan.langgraph.working import Recorder, Work, log
from mulligan.pages import count
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
    Outages,
    Recalled,
    Reflected,
    Stopped,
    digest,
    due,
    portal,
    teach,
    to_json,
)

Approve: TypeAlias = Callable[[AIMessage, str, str, int], tuple[AIMessage, ToolMessage | None]]
"""Takes the proposal, its answer, the question and the trial's number. Returns the proposal to execute, perhaps edited,
and the tool message that replaces its execution if it was refused."""

STEPS = 30
"""The default number of steps. A step is a draft or a revision."""
OWN_RULE = "the agent's own rule ended it"
REFUSED = "A person refused to run this."
HOW_TO_DECIDE = 'Answer with Command(resume=…): True, {"edit": "…"} or {"refuse": "why"}.'


def ask_person(proposal: AIMessage, answer: str, question: str, trial: int) -> tuple[AIMessage, ToolMessage | None]:
    """Interrupt the graph until a person has decided. An invalid decision is asked for again."""
    payload: dict[str, Any] = {"approve": answer, "question": question, "trial": trial, "how": HOW_TO_DECIDE}
    decision = interrupt(payload)
    while (outcome := _outcome_of(decision, proposal, answer)) is None:
        decision = interrupt({**payload, "error": f"{decision!r} is not a valid decision."})
    return outcome


def _outcome_of(decision: Any, proposal: AIMessage, answer: str) -> tuple[AIMessage, ToolMessage | None] | None:
    """Return what `Approve` returns for this decision; None if it is not valid."""
    if decision is True or decision == "approve":
        return proposal, None
    if decision is False or decision == "refuse":
        return proposal, answered(proposal, REFUSED, "error")
    if not isinstance(decision, dict) or len(cast(dict[str, Any], decision)) != 1:
        return None
    ((kind, value),) = cast(dict[str, Any], decision).items()
    if kind == "edit" and isinstance(value, str) and value.strip():
        return with_answer(proposal, answer, value), None
    if kind == "refuse" and isinstance(value, str):
        return proposal, answered(proposal, f"{REFUSED} {value}".strip(), "error")
    return None


def with_answer(proposal: AIMessage, answer: str, edited: str) -> AIMessage:
    """Return the proposal with the edited answer, in its text or wherever its tool call holds the answer."""
    if not proposal.tool_calls:
        return proposal.model_copy(update={"content": edited})
    call = proposal.tool_calls[0]
    arguments = {name: _replace(value, answer, edited) for name, value in call["args"].items()}
    calls = [{**call, "args": arguments}, *proposal.tool_calls[1:]]
    content = proposal.content
    if isinstance(content, list):  # some providers repeat the calls there
        content = [
            {**block, "input": arguments} if isinstance(block, dict) and _is_call(block, call["id"]) else block
            for block in content
        ]
    return proposal.model_copy(update={"tool_calls": calls, "content": content, "additional_kwargs": {}})


def _replace(value: Any, answer: str, edited: str) -> Any:
    if isinstance(value, list):
        return [_replace(item, answer, edited) for item in cast(list[Any], value)]
    return edited if value == answer else value


def _is_call(block: Mapping[str, Any], id: str | None) -> bool:
    return block.get("type") == "tool_use" and block.get("id") == id


@dataclass(frozen=True)
class Parts:
    """The functions that the nodes call with the messages since the question. Those that are not async run in a thread.

    Attributes:
        draft, execute, revise: Return the node's message. A draft or a revision raises `BadAnswer` if there is no valid
            answer.
        read: Reads a draft or a revision.
        answered: Returns the answer that was really executed.
        passed: Returns whether a trial is good enough, given the revision and the tool's message; None if unknown.
        goes_on: A rule of the user's after a revision, which returns "execute_tool" or END; None: `passed`, `settles`
            and the limits decide.
        settles: Returns why a result ends the loop in any case; "" if it does not.
        approve: Asks a person before anything is executed; None: nobody is asked.
        judge: Judges each result, the last one included, before a revision. `passed`, `settles` and `goes_on` are then
            not called. `revise` gets the critique as the last message, and its score does not count. None: the
            revision judges.
        conclude: Called before the run ends, with the question and the tool's message of the answer that counts. The
            record keeps what it asks a model, so that a resumed run does not ask again.
        notice: Called with a sentence that says what the bank learned.

    If `goes_on` or `settles` ends a loop whose result has not passed, it ends as "unconfirmed".
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
    notice: Callable[[str], None] = log.info


@dataclass(frozen=True)
class Nodes:
    """The three nodes.

    Attributes:
        agent_id: The owner of the records.
        head, files: The record's versions, models, settings and prompts.
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
        """The limits of the episode. A step is a draft or revision; without a judge, the last one only judges."""
        return Limits(trials=self.steps if self.parts.judge else max(self.steps - 1, 1), identical=None)

    @property
    def _outages(self) -> Outages:
        """The failures of the bank."""
        return Outages(f"bank of {self.name}")

    async def draft(self, state: ReflexionState, config: RunnableConfig) -> Mapping[str, Any]:
        messages, removed = since_question(state["messages"]), list[RemoveMessage]()
        if messages[0].id and messages[0].id == (state.get("record") or {}).get("question"):
            # the same question again: start over
            removed = [RemoveMessage(id=message.id or "") for message in messages[1:]]
            messages = messages[:1]
        record = await self._record(messages[0], config)
        async with self.recorder.work(record, "trial.1", "draft") as work:
            if self.bank is not None:
                bank, task = JournaledBank(portal.wrap(self.bank), work.journal), work.episode.task
                recall = await self._outages.tolerated("nothing is recalled", lambda: bank.recall(task), Recall(""))
                await work.keep(Recalled(recall, work.lap()))
            work.steps = 1
            try:
                message = await portal.call(self.parts.draft, messages)
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
            approved, refusal = self.parts.approve(proposal, answer, question, number)
            if approved is not proposal:
                messages = [approved if message is proposal else message for message in messages]
                proposal, edits = approved, [approved]
        async with self.recorder.work(record, f"trial.{number}", "act") as work:
            message: ToolMessage = refusal or await portal.call(self.parts.execute, messages)
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
                message: AIMessage = await portal.call(self.parts.revise, messages)
            except BadAnswer as error:
                return await self._learn(await self._unrevised(work, tool, error), work)
            reading = self.parts.read(message)
            passed, end_reason = await self._verdict(reading, tool), self.parts.settles(tool)
            is_last = number >= self.limits.trials
            if self.parts.goes_on is not None:
                if self.parts.goes_on([*messages, message]) != END:
                    passed, end_reason = False, ""
                elif not end_reason and not is_last:  # the limit ends the last step
                    end_reason = OWN_RULE
            if end_reason and passed is False:
                passed = None
            text, usage = _feedback_text(reading, critique=passed is not False or is_last), work.spent()
            feedback = Feedback(passed, text, reading.score, "revise", usage=usage)
            await work.keep(Evaluated(number, feedback, work.lap()))
            update = {"messages": [message], **await self._after_verdict(work, reading, tool, end_reason)}
        return await self._learn(update, work)

    async def _judged(self, work: Work, messages: list[BaseMessage]) -> dict[str, Any]:
        """Judge the newest result; then end the run, or revise."""
        assert self.parts.judge is not None, "revise calls this only with a judge"
        number, tool = len(work.episode.trials), newest(messages, ToolMessage)
        judgement: Judgement = await portal.call(self.parts.judge, messages)
        text = judgement.critique if judgement.passed is not False else "the rows do not answer the question"
        feedback = Feedback(judgement.passed, text, judgement.score, "judge", usage=work.spent())
        await work.keep(Evaluated(number, feedback, work.lap()))
        if judgement.passed is False:
            await work.keep(Reflected(number, Reflection(judgement.critique)))
        if (stop := self._stop_of(work, judgement)) is not None:
            return await self._stopped(work, stop, tool, messages)
        work.steps += 1
        try:
            message: AIMessage = await portal.call(self.parts.revise, [*messages, HumanMessage(judgement.critique)])
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
        used = f"{work.steps} of {count(self.steps, 'step')} used"
        return _unsure(work, used) or replace(move, detail=used)

    async def _unrevised(self, work: Work, tool: ToolMessage, error: BadAnswer) -> dict[str, Any]:
        """End a run without a valid revision. A result that is good or ends the loop counts all the same."""
        passed, end_reason = await self._verdict(Reading(""), tool), self.parts.settles(tool)
        if not passed and not end_reason:
            return await self._stopped(work, Stop("gave_up", str(error)), tool)
        feedback = Feedback(passed or None, str(error), source="revise", usage=work.spent())
        await work.keep(Evaluated(len(work.episode.trials), feedback, work.lap()))
        return await self._after_verdict(work, Reading(""), tool, end_reason)

    async def _after_verdict(
        self, work: Work, reading: Reading, tool: ToolMessage, end_reason: str = ""
    ) -> dict[str, Any]:
        """Return the update of the state after a verdict: the end, or the reflection and the next trial.

        Args:
            end_reason: Why the loop ends, if a rule besides the verdict and the limits ends it.
        """
        move, number = due(work.episode, self.limits), len(work.episode.trials)
        feedback = work.episode.trials[-1].feedback
        if end_reason and feedback is not None and feedback.passed is None:
            return await self._stopped(work, Stop("unconfirmed", f"{end_reason}; {feedback.text}"), tool)
        if isinstance(move, Stop):
            used = f"{work.steps} of {count(self.steps, 'step')} used"
            stop = replace(move, detail=used) if move.reason == "exhausted" else move
            return await self._stopped(work, stop, tool)
        if move.kind == "reflect":
            await work.keep(Reflected(number, Reflection(reading.reflection)))
        work.next = EXECUTE_TOOL
        return {"record": self.recorder.update(work)}

    async def _stopped(
        self, work: Work, stop: Stop, tool: ToolMessage | None = None, messages: Sequence[BaseMessage] = ()
    ) -> dict[str, Any]:
        """End the run, and return the update of the state. messages: needed if an earlier answer may be the best."""
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
            bank, notice, learns = self.bank, self.parts.notice, self.learn
            learned = lambda: portal.settled(teach(bank, work.episode, notice, learns=learns))  # noqa: E731
            await self._outages.tolerated("nothing is learned from a run of a graph", learned, None)
        return update

    async def _verdict(self, reading: Reading, tool: ToolMessage) -> bool | None:
        passed = self.parts.passed
        verdict = passed(reading, tool)
        return await (verdict if getattr(passed, "both_ways", False) else portal.settled(verdict))

    async def _record(self, question: BaseMessage, config: RunnableConfig) -> Record:
        """Return the record of this run. Within one thread, running again on the same message gives the same record."""
        prompt = question.text
        if not prompt.strip():
            raise InvalidInput("The question is empty. Write what you want to find out.")
        settings = config.get("configurable", {})
        thread, run = settings.get("thread_id"), secrets.token_hex(6)
        if thread is not None and question.id:
            outer_namespace = str(settings.get("checkpoint_ns", "")).rpartition("|")[0]  # without this node's own task
            run = digest([str(thread), outer_namespace, question.id, prompt, self.agent_id, self.name])[:12]
            if (stored := await self.recorder.stored(f"{run}.1")) is not None:
                return _new_record(stored, question)
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
            if (stored := await self.recorder.stored(episode.id)) is None:
                raise
            return _new_record(stored, question)  # another run of the same thread has created it
        return record


def _unsure(work: Work, detail: str) -> Stop | None:
    """Return the stop of a run whose best answer has rows, but not good enough ones; None without such rows."""
    best = work.episode.best
    feedback = best.feedback if best else None
    if best is None or feedback is None or feedback.score == 0:
        return None
    critique = best.reflection.text if best.reflection else feedback.text
    return Stop("unsure", f"{detail}; {critique}")


def _feedback_text(reading: Reading, *, critique: bool) -> str:
    """Return the score in words, with the critique if no reflection holds it."""
    score = "no score" if reading.score is None else f"scored {reading.score:g} of 10 by the model itself"
    return f"{score}: {reading.reflection}" if critique and reading.reflection else score


def _new_record(begun: Any, question: BaseMessage) -> Record:
    return {"begun": begun, "events": [], "question": question.id or "", "steps": 0, "next": DRAFT, "spent": None}


def episode_head(models: Mapping[str, Any], prompts: Mapping[str, str], settings: Mapping[str, Json]) -> Head:
    """Return the head of an episode's record: versions, models, prompts and settings.

    Args:
        models: Journalled models by role.
        prompts: sha256 by name.
    """
    ids = {role: ", ".join(map(model_id, models_in(model))) for role, model in models.items()}
    return Head(Head.versions_of("langgraph", "langchain-core"), ids, {"led_by": "langgraph", **settings}, prompts)
