"""The `Model` of any provider that pydantic-ai supports: one question, one answer, with retries and costs.

pydantic-ai and the provider's SDK are imported at the first call. For budgets and journals, see `gate`.
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

_OPTIONAL_SETTINGS = {"temperature": "temperature", "seed": "seed", "stop_sequences": "stop"}
"""Settings that can be left out, each with the word by which a provider's refusal names it."""


class ProviderModel(ProviderClient["PydanticModel"]):
    """A model of a provider, made by `open_model`, which has checked the key.

    An answer that was cut off at `max_tokens` is returned as it is (unless it should be JSON). If the provider's
    content filter withholds the answer, or all tokens went into thinking, `ModelError` is raised. Any other empty
    answer counts as an answer.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.name = self.id
        self._key = KnownSecrets(target.access.secrets)
        self._seller = target.provider.partition("-")[0]  # openai-chat and openai-responses are sold by openai
        self._dropped: set[str] = set()
        # Servers that copy OpenAI's format know `max_tokens`; only OpenAI's newer models need another name for it.
        self._uses_max_tokens = self._provider in ("alibaba", "ollama") or (
            self._provider == "openai" and target.access.base_url is not None
        )
        self._refused: set[Mode] = set()
        self._lacks_tools = False

    def _build(self) -> PydanticModel:
        return _wire().build(self._provider, self._model, self._access, self._settings)

    def price(self) -> Price | None:
        """US dollars per token; None if unknown. A server on this machine costs nothing."""
        return self._flat or prices.listed(self._seller, self._model)

    @property
    def calls_tools(self) -> bool:
        """Whether the model has tool calls; if not, every answer to a question with tools is a call in JSON.

        For some servers this is known only after a call.
        """
        return not self._lacks_tools and self.load().profile.get("supports_tools", True)

    @property
    def sees(self) -> bool:
        """Whether the model accepts images, by the settings or else by its profile."""
        sees = self._settings.sees
        return self.load().profile.get("supports_image_input", True) if sees is None else sees

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        """Asks the model.

        A setting or an answer format that the model refuses is left out from then on, with a warning in the log. If it
        refuses tools, or has none, calls are asked for as JSON.

        Raises:
            ModelError: the last attempt failed.
            Unreadable: (a `BadAnswer`) the answer is not the JSON that was asked for, or has only thoughts.
            InvalidInput: no provider accepts such a question.
        """
        await self._ready()
        attempts = 0
        while True:
            sent = self._as_sent(question)
            mode = self._mode(sent.schema)
            result, tries = await self._send(self._request(sent, sampling, mode))
            attempts += tries
            if not isinstance(result, Failure):
                return self._answer(result, question, sent, sampling)
            if not self._drop_refused(result, sent, sampling, mode):
                raise self._error(result, attempts)

    def _as_sent(self, question: Question) -> Question:
        """The question as it is sent: without tools if the model cannot call them."""
        if question.tools and not self.load().profile.get("supports_tools", True):
            self._disable_tools("its profile says so")
        return in_json(question) if self._lacks_tools or not question.tools else question

    def _mode(self, schema: Json) -> Mode:
        if schema is None:
            return "prompted"
        return next(mode for mode in _wire().modes(self.load().profile, schema) if mode not in self._refused)

    def _request(self, question: Question, sampling: Sampling, mode: Mode) -> Callable[[], Awaitable[ModelResponse]]:
        """A function that sends the question through pydantic-ai."""
        wire, model = _wire(), self.load()
        ask = wire.parameters(question, mode)
        messages = wire.messages_of(question)  # sent unchanged, so that the journal holds what the model was told
        model_settings = wire.model_settings(
            sampling, model, self._dropped, self._settings.timeout, uses_max_tokens=self._uses_max_tokens
        )
        if sampling.temperature is not None and "temperature" not in model_settings:
            self._drop("temperature", "it samples in its own way")
        return lambda: instrumented(model).request(messages, model_settings, ask)

    def _drop_refused(self, failure: Failure, question: Question, sampling: Sampling, mode: Mode) -> bool:
        """Leaves out from now on what the provider refuses, if its message names it. Returns whether it does."""
        message = failure.message.lower()
        if question.tools and "tool" in message and (failure.rejected or message.startswith("404")):
            self._disable_tools(failure.message)  # OpenRouter answers 404: no endpoint supports tool use
            return True
        if not failure.rejected:
            return False
        if "max_tokens" in message and sampling.max_tokens is not None and self._uses_max_tokens:
            self._uses_max_tokens = False
            return True
        values = {"temperature": sampling.temperature, "seed": sampling.seed, "stop_sequences": sampling.stop or None}
        for setting, word in _OPTIONAL_SETTINGS.items():
            if word in message and values[setting] is not None and setting not in self._dropped:
                self._drop(setting, failure.message)
                return True
        formats = ("response_format", "json", "schema", "tool", "structured", "output")
        if question.schema is not None and mode != "prompted" and any(word in message for word in formats):
            self._refused.add(mode)
            log.warning("%s does not support %s JSON, asking in another way: %s", self.name, mode, failure.message)
            return True
        return False

    def _disable_tools(self, why: str) -> None:
        if not self._lacks_tools:
            self._lacks_tools = True
            self._refused.add("tool")
            log.warning("%s does not support tools, asking for calls as JSON: %s", self.name, why)

    def _drop(self, setting: str, why: str) -> None:
        if setting not in self._dropped:
            self._dropped.add(setting)
            log.warning("%s does not support %s, continuing without: %s", self.name, setting.replace("_", " "), why)

    def _answer(self, response: ModelResponse, question: Question, sent: Question, sampling: Sampling) -> Answer:
        """The answer in a response. sent: the question as it was sent."""
        reply = _masked(_wire().reply_of(response, sent), self._key)  # some servers echo the key
        model = f"{self._provider}:{reply.model or self._model}"
        usage = self._usage(response, sent, reply.text + "".join(str(call.arguments) for call in reply.calls))
        if reply.finish == "content_filter":
            raise Unusable(f"{self.name} withheld its answer: its content filter rejected the question.", usage)
        is_cut = reply.finish == "length"
        if is_cut and not reply.text and not reply.calls:
            raise Unusable(
                f"{self.name} used all {usage.output_tokens} tokens before it started to answer: raise max_tokens.",
                usage,
            )
        if is_cut:
            log.warning("%s was cut off after %d tokens", self.name, usage.output_tokens)
        elif reply.thought and not reply.text and not reply.calls:
            raise Unreadable(ONLY_THOUGHTS, text="", model=model, usage=usage, thoughts=True)
        cut_reason = f"it was cut off after {usage.output_tokens} tokens: raise max_tokens" if is_cut else ""
        answered_question = sent if sent.schema is None else replace(question, schema=sent.schema)
        return answer_in(
            reply.text,
            answered_question,
            model=model,
            usage=usage,
            calls=reply.calls,
            repairs=reply.repairs,
            cut=cut_reason,
            stop=sampling.stop,
        )

    def _usage(self, response: ModelResponse, question: Question, text: str) -> Usage:
        counted = response.usage
        tokens = counted.input_tokens, counted.output_tokens
        if not any(tokens):  # some servers count nothing: for the budget, a rough guess is better than zero
            tokens = sum(len(m.text) for m in question.messages) // 4 + 1, len(text) // 4 + 1
            log.warning("%s reports no usage: %d and %d tokens are estimates", self.name, *tokens)
        if self._flat:
            cost = tokens[0] * self._flat.input + tokens[1] * self._flat.output
        else:
            cost = prices.cost_of(response, self._seller, self._model)
        return Usage(*tokens, calls=1, cost=cost)


def _wire():  # without a return type, so that pyright infers the module
    from mulligan.models import wire  # it imports pydantic-ai

    return wire


def _masked(reply: Reply, key: KnownSecrets) -> Reply:
    """The reply with the key masked wherever the server echoes it."""
    calls = tuple(ToolCall(key.mask(call.name), key.mask_json(call.arguments)) for call in reply.calls)
    model = None if reply.model is None else key.mask(reply.model)
    return replace(reply, text=key.mask(reply.text), model=model, calls=calls)
