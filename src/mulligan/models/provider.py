"""The `Model` port over any provider that pydantic-ai speaks to: one question, one answer, with retries and costs.

pydantic-ai and the provider's SDK are imported at the first call. Budgets and journals: see `gate`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mulligan.core.questions import Answer, Question, Sampling, ToolCall
from mulligan.core.records import Json, Usage
from mulligan.models import prices
from mulligan.models.answers import ONLY_THOUGHTS, answer_in
from mulligan.models.failures import Failure, Unreadable, Unusable
from mulligan.models.prices import Price
from mulligan.models.provider_client import ProviderClient, Target, instrumented, log
from mulligan.models.tool_answers import in_json
from mulligan.text.known_secrets import KnownSecrets

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model as PydanticModel

    from mulligan.models.wire import Mode, Reply

_CAN_GO = {"temperature": "temperature", "seed": "seed", "stop_sequences": "stop"}


class ProviderModel(ProviderClient["PydanticModel"]):
    """A model of a provider. Made by `open_model`, which has looked at the key.

    An answer that was cut off at `max_tokens` is returned as it is (as JSON it fails); one that the provider's content
    filter held back, or that is empty because all tokens went into thinking, raises `ModelError`; any other empty
    answer is an answer.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.name = self.id
        self._key = KnownSecrets(target.access.secrets)
        self._seller = target.provider.partition("-")[0]  # openai-chat and openai-responses are sold by openai
        self._dropped: set[str] = set()
        # Servers that copy OpenAI's format know `max_tokens`; only OpenAI's own newer models want another name for it.
        self._old_name = self._provider in ("alibaba", "ollama") or (
            self._provider == "openai" and target.access.base_url is not None
        )
        self._refused: set[Mode] = set()
        self._no_tools = False

    def _build(self) -> PydanticModel:
        return _wire().build(self._provider, self._model, self._access, self._settings)

    def price(self) -> Price | None:
        """US dollars per token; None when unknown. A server on this machine costs nothing."""
        return self._flat or prices.listed(self._seller, self._model)

    @property
    def calls_tools(self) -> bool:
        """False: with tools, every answer is a call. Some servers only show it when they are called."""
        return not self._no_tools and self.load().profile.get("supports_tools", True)

    @property
    def sees(self) -> bool:
        """Whether the model takes images: as the settings say, else as is known of it."""
        said = self._settings.sees
        return self.load().profile.get("supports_image_input", True) if said is None else said

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        """Raises `ModelError` after the last attempt, `Unreadable` (a `BadAnswer`) for an answer that is not the JSON
        that was asked for or holds thoughts alone, `InvalidInput` for a question that no provider can take. A setting
        or an answer format that the model refuses is left out from then on, with a warning in the log; where it refuses
        tools, or is known to have none, calls are asked for as JSON."""
        await self._ready()
        times = 0
        while True:
            asked = self._asked(question)
            mode = self._mode(asked.schema)
            got, attempts = await self._send(self._request(asked, sampling, mode))
            times += attempts
            if not isinstance(got, Failure):
                return self._answer(got, question, asked, sampling)
            if not self._drop_refused(got, asked, sampling, mode):
                raise self._error(got, times)

    def _asked(self, question: Question) -> Question:
        """The question as it is sent: without tools, if this model cannot call them."""
        if question.tools and not self.load().profile.get("supports_tools", True):
            self._disable_tools("its profile says so")
        return in_json(question) if self._no_tools or not question.tools else question

    def _mode(self, schema: Json) -> Mode:
        if schema is None:
            return "prompted"
        return next(mode for mode in _wire().modes(self.load().profile, schema) if mode not in self._refused)

    def _request(self, question: Question, sampling: Sampling, mode: Mode) -> Callable[[], Awaitable[ModelResponse]]:
        """The question in pydantic-ai's terms, to be sent."""
        wire, model = _wire(), self.load()
        ask = wire.parameters(question, mode)
        messages = wire.messages_of(question)  # sent as they are: what the journal holds is what the model was told
        model_settings = wire.model_settings(
            sampling, model, self._dropped, self._settings.timeout, old_name=self._old_name
        )
        if sampling.temperature is not None and "temperature" not in model_settings:
            self._drop("temperature", "it samples in its own way")
        return lambda: instrumented(model).request(messages, model_settings, ask)

    def _drop_refused(self, failure: Failure, question: Question, sampling: Sampling, mode: Mode) -> bool:
        """Leave out what the provider refuses, if its message names it. False: there is nothing to leave out."""
        message = failure.message.lower()
        if question.tools and "tool" in message and (failure.rejected or message.startswith("404")):
            self._disable_tools(failure.message)  # OpenRouter's refusal is a 404: no endpoint supports tool use
            return True
        if not failure.rejected:
            return False
        if "max_tokens" in message and sampling.max_tokens is not None and self._old_name:
            self._old_name = False
            return True
        sent = {"temperature": sampling.temperature, "seed": sampling.seed, "stop_sequences": sampling.stop or None}
        for setting, word in _CAN_GO.items():
            if word in message and sent[setting] is not None and setting not in self._dropped:
                self._drop(setting, failure.message)
                return True
        formats = ("response_format", "json", "schema", "tool", "structured", "output")
        if question.schema is not None and mode != "prompted" and any(word in message for word in formats):
            self._refused.add(mode)
            log.warning("%s does not support %s JSON, asking in another way: %s", self.name, mode, failure.message)
            return True
        return False

    def _disable_tools(self, why: str) -> None:
        if not self._no_tools:
            self._no_tools = True
            self._refused.add("tool")
            log.warning("%s does not support tools, asking for calls as JSON: %s", self.name, why)

    def _drop(self, setting: str, why: str) -> None:
        if setting not in self._dropped:
            self._dropped.add(setting)
            log.warning("%s does not support %s, continuing without: %s", self.name, setting.replace("_", " "), why)

    def _answer(self, response: ModelResponse, question: Question, asked: Question, sampling: Sampling) -> Answer:
        """asked: the question as it was sent."""
        got = _masked(_wire().reply_of(response, asked), self._key)  # some servers echo the key they were sent
        model = f"{self._provider}:{got.model or self._model}"
        usage = self._usage(response, asked, got.text + "".join(str(call.arguments) for call in got.calls))
        if got.finish == "content_filter":
            raise Unusable(f"{self.name} withheld its answer: its content filter rejected the question.", usage)
        cut = got.finish == "length"
        if cut and not got.text and not got.calls:
            raise Unusable(
                f"{self.name} used all {usage.output_tokens} tokens before it started to answer: raise max_tokens.",
                usage,
            )
        if cut:
            log.warning("%s was cut off after %d tokens", self.name, usage.output_tokens)
        elif got.thought and not got.text and not got.calls:
            raise Unreadable(ONLY_THOUGHTS, text="", model=model, usage=usage, thoughts=True)
        why = f"it was cut off after {usage.output_tokens} tokens: raise max_tokens" if cut else ""
        worded = asked if asked.schema is None else replace(question, schema=asked.schema)
        return answer_in(
            got.text,
            worded,
            model=model,
            usage=usage,
            calls=got.calls,
            repairs=got.repairs,
            cut=why,
            stop=sampling.stop,
        )

    def _usage(self, response: ModelResponse, question: Question, text: str) -> Usage:
        counted = response.usage
        tokens = counted.input_tokens, counted.output_tokens
        if not any(tokens):  # some servers count nothing: a rough guess holds the budget better than zero
            tokens = sum(len(m.text) for m in question.messages) // 4 + 1, len(text) // 4 + 1
            log.warning("%s reports no usage: %d and %d tokens are estimates", self.name, *tokens)
        if self._flat:
            cost = tokens[0] * self._flat.input + tokens[1] * self._flat.output
        else:
            cost = prices.cost_of(response, self._seller, self._model)
        return Usage(*tokens, calls=1, cost=cost)


def _wire():  # pyright gives it the type of the module
    from mulligan.models import wire  # with pydantic-ai

    return wire


def _masked(reply_of: Reply, key: KnownSecrets) -> Reply:
    """The reply with the key masked wherever the server echoes it."""
    calls = tuple(ToolCall(key.mask(call.name), key.mask_json(call.arguments)) for call in reply_of.calls)
    model = None if reply_of.model is None else key.mask(reply_of.model)
    return replace(reply_of, text=key.mask(reply_of.text), model=model, calls=calls)
