"""The model of one role. Every call is recorded in the journal, counted, and kept within the budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from typing import Any, cast

from mulligan.core.errors import InvalidInput, OverBudget
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter
from mulligan.core.operations import asking
from mulligan.core.protocols import Journal, Model
from mulligan.core.questions import Answer, Message, Question, Sampling
from mulligan.core.records import Json, Usage
from mulligan.models.answers import without_thoughts
from mulligan.models.failures import Unreadable, Unusable
from mulligan.models.prices import Price, Priced
from mulligan.models.requests import answer_of, request_of, result_of
from mulligan.models.sight import Describer, in_words, sees


class Gate:
    """A `Model` for one role in one drive of an episode. Its journal steps are named `model.<role>`.

    The budget is checked before each real call. A call that the journal answers is counted, but never refused. The call
    gets at most the tokens that are left. The journal holds the request without this cap, so that a resume with another
    budget finds it. The length of a prompt is estimated (four characters a token), so a call can exceed a limit by that
    error, and parallel branches by one call each.

    For a model that cannot see, words replace the images (see `sight`).

    If an answer is not the JSON that was asked for, or has only thoughts, the question is asked once more with the
    mistake, as a further step.

    Args:
        limits: The episode's limits.
        describer: Describes images for a model that cannot see. None: the model is only told that there were images.
    """

    def __init__(
        self,
        model: Model,
        *,
        role: str,
        journal: Journal,
        meter: Meter,
        limits: Limits,
        describer: Describer | None = None,
    ) -> None:
        self.name, self.id = model.name, model.id
        self._describer = describer
        self._model, self._role, self._step = model, role, f"model.{role}"
        self._journal, self._meter, self._limits = journal, meter, limits

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        """Raises `OverBudget`, `BadAnswer` if the second answer cannot be read either, and what the model raises."""
        if any(message.images for message in question.messages) and not sees(self._model):
            question = await in_words(question, self._describer)
        asked_again = False
        while True:
            request, call = request_of(self.id, question, sampling), partial(self._call, question, sampling)
            row = cast(dict[str, Any], await self._journal.step(self._step, request, call))
            usage = Usage(**row["usage"])
            self._meter.add(usage)
            try:
                return read_result(row, usage)
            except Unreadable as bad:
                if asked_again or not bad.again:
                    raise
                asked_again, question = True, question_again(question, bad)

    async def _call(self, question: Question, sampling: Sampling) -> Json:
        # design/006: capped in the call, not in the journaled request
        capped = replace(sampling, max_tokens=self._max_tokens(question, sampling.max_tokens))
        try:
            with asking(self._model, question, self._role) as answered:
                answer = answered(await self._model.ask(question, capped))
            return result_of(answer if question.schema is not None else without_thoughts(answer))
        except Unreadable as bad:
            return not_json_row(bad)
        except Unusable as error:
            self._meter.add(error.usage)
            self._max_tokens(question, None)  # raises OverBudget if the budget left too little room for an answer
            raise

    def _max_tokens(self, question: Question, wanted: int | None) -> int | None:
        """How many tokens the answer may have; None: any number. Raises `OverBudget` if not even the question fits."""
        used, limits = self._meter.before + self._meter.usage, self._limits
        asked = estimate(question)
        caps = [] if wanted is None else [wanted]
        if limits.tokens is not None:
            caps.append(limits.tokens - used.tokens - asked)
            if caps[-1] < 1:
                after = "" if used.tokens >= limits.tokens else f", and the next question alone takes about {asked}"
                raise OverBudget(f"the token limit: {used.tokens} of {limits.tokens} tokens used{after}.")
        if limits.cost is not None:
            if used.cost is None:
                raise InvalidInput(_unpriced(self.name))
            price = self._model.price() if isinstance(self._model, Priced) else None
            left = limits.cost - used.cost - asked * (price.input if price else 0.0)
            if left <= 0:
                after = "" if used.cost >= limits.cost else f", and the next question alone takes about {asked} tokens"
                raise OverBudget(f"the cost limit: ${used.cost:.4f} of ${limits.cost:.4f} spent{after}.")
            if price and price.output:
                caps.append(max(1, int(left / price.output)))
        return min(caps, default=None)


def check_prices(models: Iterable[Model], limits: Limits) -> None:
    """Raises `InvalidInput` if a cost limit cannot be enforced. Call it before an episode begins."""
    for model in models if limits.cost is not None else ():
        if isinstance(model, Priced) and not isinstance(model.price(), Price):
            raise InvalidInput(_unpriced(model.name))


def not_json_row(bad: Unreadable) -> Json:
    """The journal's result for an answer that cannot be read; see `read_result`."""
    row: dict[str, Json] = {"text": bad.text, "not_json": bad.why, "again": bad.again, "model": bad.model}
    row |= {"thoughts": True} if bad.thoughts else {}
    return {**row, "usage": asdict(bad.usage)}


def read_result(row: dict[str, Any], usage: Usage) -> Answer:
    """The answer in a journal's result. Raises `Unreadable` if the answer could not be read."""
    if "not_json" in row:
        facts = {"text": row["text"], "model": row["model"], "again": row["again"]}
        raise Unreadable(row["not_json"], **facts, usage=usage, thoughts=row.get("thoughts", False))
    return answer_of(row)


def question_again(question: Question, bad: Unreadable) -> Question:
    """The question, followed by the unreadable answer (unless it has only thoughts) and what is wrong with it."""
    answer = (Message("assistant", bad.text),) if bad.text.strip() and not bad.thoughts else ()
    form = "your answer alone" if bad.thoughts and question.schema is None else "nothing but JSON that fits the schema"
    demand = Message("user", f"That cannot be read: {bad.why}. Answer again, with {form}.")
    return replace(question, messages=(*question.messages, *answer, demand))


async def asked_twice(ask: Callable[[Question], Awaitable[Answer]], question: Question) -> Answer:
    """Asks a question outside an episode, and asks again if the first answer cannot be parsed.

    Raises what `ask` raises.
    """
    try:
        return await ask(question)
    except Unreadable as bad:
        if not bad.again:
            raise
        answer = await ask(question_again(question, bad))
        return replace(answer, usage=bad.usage + answer.usage)


def estimate(question: Question) -> int:
    """Estimates the tokens of a question: one for four characters, a thousand for an image."""
    characters = sum(len(message.text) for message in question.messages) + len(str(question.schema or ""))
    characters += sum(len(tool.name) + len(tool.description) + len(str(tool.parameters)) for tool in question.tools)
    calls = [call for message in question.messages for call in message.calls]
    characters += sum(len(call.name) + len(str(call.arguments)) for call in calls)
    return characters // 4 + 1000 * sum(len(message.images) for message in question.messages)


def _unpriced(name: str) -> str:
    return (
        f"A cost limit cannot be enforced: the price of {name} is unknown. Set the model settings input_price and "
        "output_price (US dollars per million tokens), or limit tokens instead."
    )
