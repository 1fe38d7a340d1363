"""`memory` opens an agent's bank for a program with its own loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any, Self

from mulligan.app.memory import open_bank
from mulligan.app.transcripts import has_something_to_learn, learn_from, read_messages
from mulligan.bank.bank import Bank
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.protocols import Learned, Model
from mulligan.core.records import Recall
from mulligan.functions.notes import Notes
from mulligan.recording.outages import Outages


class Memory:
    """The asynchronous context manager that `memory` returns. `bank` is the bank, while it is open."""

    def __init__(self, agent_id: str, options: Mapping[str, Any]) -> None:
        self._agent_id, self._options = agent_id, options
        self._outages = Outages(f"bank {agent_id}")
        self._bank: Bank | None = None
        self._newest: Recall | None = None

    @property
    def bank(self) -> Bank:
        if self._bank is None:
            raise InvalidInput("The memory is not open: use it within `async with mulligan.memory(…) as memory`.")
        return self._bank

    async def __aenter__(self) -> Self:
        self._bank = open_bank(self._agent_id, **self._options)
        return self

    async def __aexit__(self, *_: object) -> None:
        bank, self._bank = self.bank, None
        await self._outages.tolerated("a bank is not closed", bank.close, None)

    async def notes(self, task: str) -> Notes:
        r"""Returns the bank's lessons for a task, as text for a prompt. Append it to the task after a blank line:
        `f"{task}\n\n{notes}"`.

        The text is empty if there are no lessons, or if the bank fails, which logs a warning."""
        if not isinstance(task, str):
            raise InvalidInput(f"'notes' needs the task as a string, not {task!r}.")
        bank = self.bank
        self._newest = await self._outages.tolerated("nothing is recalled", lambda: bank.recall(task), Recall(""))
        return Notes(self._newest.formatted_prompt.strip(), recall=self._newest)

    async def learn(
        self,
        messages: Sequence[Any] | Mapping[str, Any],
        *,
        task: str | None = None,
        success: bool | None = None,
        why: str = "",
        notes: Notes | None = None,
    ) -> Learned:
        """Learns from what an agent said and did.

        Args:
            messages: messages in the format of the OpenAI, Anthropic or Google API, or LangChain, pydantic-ai or
                provider SDK objects.
            task: the task. None: the user's first message.
            success: whether the agent completed the task. None: unknown, so the bank's model judges.
            why: the judge's explanation.
            notes: the notes that the agent received. The outcome counts for their lessons. None: the newest notes from
                this memory.

        Returns:
            What was learned. Without a model, only rules learn facts; `nothing_because` says why nothing was learned.

        Raises:
            InvalidInput: the messages cannot be read, or `why` is not a string, or is given without `success`.
        """
        if not isinstance(task, str | None):
            raise InvalidInput(f"task must be a string, not {task!r}.")
        if success is not None and not isinstance(success, bool):
            raise InvalidInput(f"success must be True, False, or None if it is unknown, not {success!r}.")
        if not isinstance(why, str):
            raise InvalidInput(f"why must be a string, not {why!r}.")
        if why and success is None:
            raise InvalidInput("`why` explains success or failure, so `success` is needed as well.")
        transcript = read_messages(messages)
        episode = transcript.episode(task=task, success=success, why=why)
        receipt = notes.receipt if notes is not None else self._newest.id if self._newest else ""
        facts = transcript.found()
        bank = self.bank

        async def learned() -> Learned:
            if facts or has_something_to_learn(bank, episode):
                return await learn_from(bank, episode, receipt or None, facts)
            if receipt and success is not None:
                await bank.outcome_of(receipt, success)
            return Learned(success=success, nothing_because="no model is named, and rules find nothing in it")

        failed = Learned(success=success, nothing_because="the bank failed; the log says why")
        return await self._outages.tolerated("nothing is learned", learned, failed)


def memory(agent_id: str = "", *, model: str | Model | None = None, **options: Any) -> Memory:
    r"""Open an agent's bank, for a program with its own loop.

        async with mulligan.memory("billing") as memory:
            prompt = f"{task}\n\n{await memory.notes(task)}"
            await memory.learn(messages, task=task, success=False, why="no currency")

    Args:
        agent_id: the agent; "" is the unnamed agent.
        model: the model that judges and extracts. None: the model in [memory] or MULLIGAN_MODEL. Without a model, only
            rules learn facts.
        options: further options for `mulligan.Bank.open`.
    """
    unknown = [name for name in options if name not in signature(open_bank).parameters]
    if unknown:
        raise UnknownName("option of mulligan.memory", unknown[0], signature(open_bank).parameters)
    if not isinstance(agent_id, str):
        raise InvalidInput(f"agent_id must be a string, not {agent_id!r}.")
    return Memory(agent_id, {"model": model, **options})
