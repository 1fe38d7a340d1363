"""`chat_model` gives any model of Mulligan as a LangChain chat model, such as `chat_model("openai:gpt-4o-mini")`.

It needs none of LangChain's provider packages. Inside a node of a Mulligan graph, wrapped by `journalled`, each call is
one step of the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr, SecretStr

from mulligan.app.config import choose_model, load
from mulligan.app.model_roles import is_role, role_of
from mulligan.app.models_by_name import Models
from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.protocols import Model
from mulligan.core.questions import Sampling
from mulligan.core.records import Json
from mulligan.langgraph.bridge import run
from mulligan.langgraph.chat_messages import chunk_of, from_answer, to_messages, unreadable
from mulligan.langgraph.chat_tools import ToolRequest, chosen_tool, tool_schemas, tools_of
from mulligan.models.failures import NotJson
from mulligan.models.settings import CallSettings

NO_MODEL = (
    'No model was named. Give one, such as "openai:gpt-6-luna" or "local", set MULLIGAN_MODEL, or write model = "…" '
    "into mulligan.toml. docs/models.md lists the names."
)
_OPTIONS = (
    "model",
    "temperature",
    "max_tokens",
    "seed",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "strict",
    "stream",
)


class ChatMulligan(BaseChatModel):
    """A LangChain chat model over a model of Mulligan. Make it with `chat_model`, which checks the arguments at once.

    Attributes that are None have the value of the role, or else the provider's default.

    Attributes:
        model: A name as in docs/models.md, or a role of mulligan.toml; None: `MULLIGAN_MODEL`, else mulligan.toml.
        base_url, timeout, max_retries: They replace the values of [calls] in mulligan.toml; timeout is in seconds per
            attempt.
        api_key: Kept in this object and sent to the provider only.

    Raises:
        ModelError: The model fails.
        InvalidInput: A message or an option is not valid.
    """

    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: list[str] | None = None
    base_url: str | None = None
    timeout: float | None = None
    max_retries: int | None = None
    api_key: SecretStr | None = None
    _opened: dict[str | None, tuple[Model, Sampling]] = PrivateAttr(default_factory=dict[str | None, Any])

    @property
    def _llm_type(self) -> str:
        """The model's id, which a journal keeps, the same before and after its first call; or its name, if it cannot
        be opened."""
        with suppress(InvalidInput):
            return self.open()[0].id
        return self.model or "mulligan"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        names = ("model", "temperature", "max_tokens", "seed", "stop", "base_url")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        provider, _, name = cast(str, kwargs.get("model") or self.model or "").partition(":")
        told = super()._get_ls_params(stop, **kwargs)
        return {**told, "ls_provider": provider if name else "mulligan", "ls_model_name": name or provider}

    def open(self, name: str | None = None) -> tuple[Model, Sampling]:
        """Return the model, opened once, and its sampling. Nothing is called. Raises `InvalidInput`."""
        name = name or self.model
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    def _open(self, name: str | None) -> tuple[Model, Sampling]:
        config = load()
        named = choose_model(name, config)
        if named is None:
            raise InvalidInput(NO_MODEL)
        calls = {"base_url": self.base_url, "timeout": self.timeout}
        if self.max_retries is not None:
            calls["attempts"] = self.max_retries + 1
        key = self.api_key.get_secret_value() if self.api_key else None
        given = {setting: value for setting, value in calls.items() if value is not None}
        CallSettings.parse(given)  # checked here, so that an error does not blame mulligan.toml
        model = Models(config).open(named, calls=given, key=key)
        if ":" not in named and is_role(config, named):
            role = role_of(config, named)
            return model, Sampling(role.temperature, role.max_tokens)
        return model, Sampling()

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools to the model. Raises `InvalidInput` and `UnknownName`.

        A required call is requested as JSON of the tools' schemas, which local models and most providers enforce. If
        the model returns something else, the message has `invalid_tool_calls`.

        Args:
            tools: Pydantic classes, functions, LangChain's tools, schemas.
            tool_choice: "auto", "none", "any" (or "required"), or the name of the tool that must be called.
        """
        given = tool_schemas(tools)
        choice = chosen_tool(tool_choice, given)
        return self.bind(tools=given, **({} if choice is None else {"tool_choice": choice}), **kwargs)

    def with_structured_output(self, schema: Any, *, include_raw: bool = False, **kwargs: Any) -> Runnable[Any, Any]:
        """Like LangChain's. The result raises `BadAnswer` if the model's answer does not fit the schema."""
        parsed = super().with_structured_output(schema, include_raw=include_raw, **kwargs)
        return parsed if include_raw else parsed | _parsed

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        _check(kwargs)
        name = kwargs.get("model") or self.model
        opened = self._opened.get(name) or await asyncio.to_thread(self.open, name)
        bound = tool_schemas(cast(list[Any], kwargs.get("tools") or []))
        request = ToolRequest(
            opened[0],
            self._sampling(opened[1], stop, kwargs),
            to_messages(messages),
            tools_of(bound),
            chosen_tool(kwargs.get("tool_choice"), bound) if bound else None,
            parallel=kwargs.get("parallel_tool_calls") is not False,
        )
        try:
            message = from_answer(await request.answer(), request.messages)
        except NotJson as bad:
            message = unreadable(bad, request.required[0].name if len(request.required) == 1 else "")
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return run(self._agenerate(messages, stop, None, **kwargs))

    async def _astream(self, messages: list[BaseMessage], *given: Any, **named: Any) -> AsyncIterator[Any]:
        """Yield the whole answer as one chunk: a call that can be resumed is not given out in pieces."""
        yield chunk_of((await self._agenerate(messages, *given, **named)).generations[0])

    def _stream(self, messages: list[BaseMessage], *given: Any, **named: Any) -> Iterator[Any]:
        yield chunk_of(self._generate(messages, *given, **named).generations[0])

    def _sampling(self, of_role: Sampling, stop: Sequence[str] | None, options: Mapping[str, Any]) -> Sampling:
        """Return the sampling: the call's options first, then this object's, then the role's."""

        def first(name: str) -> Any:
            values = (options.get(name), getattr(self, name), getattr(of_role, name))
            return next((value for value in values if value is not None), None)

        return Sampling(first("temperature"), first("max_tokens"), first("seed"), tuple(stop or self.stop or ()))


def chat_model(
    model: str | Model | None = None,
    *,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
    stop: Sequence[str] | None = None,
    base_url: str | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    api_key: str | None = None,
) -> ChatMulligan:
    """Return a LangChain chat model over a model of Mulligan: a name, a role of mulligan.toml, or an object.

    Nothing is called. Raises `InvalidInput` for an unknown model or none. See `ChatMulligan` for the arguments.
    """
    made = ChatMulligan(
        model=model.name if isinstance(model, Model) else model,
        temperature=temperature,
        max_tokens=max_tokens,
        seed=seed,
        stop=None if stop is None else list(stop),
        base_url=base_url,
        timeout=timeout,
        max_retries=max_retries,
        api_key=None if api_key is None else SecretStr(api_key),
    )
    if isinstance(model, Model):
        made._opened[made.model] = (model, Sampling())  # pyright: ignore[reportPrivateUsage]
    made.open()
    return made


def _check(options: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` for unknown options. `strict` and `stream` are accepted and ignored."""
    for name in options:
        if name not in _OPTIONS:
            raise InvalidInput(f"A model of Mulligan has no option {name!r}. Available: {', '.join(_OPTIONS)}.")


def _parsed(parsed: Json) -> Json:
    if parsed is None:
        raise BadAnswer("The model gave nothing that fits the schema. Raise max_tokens, or use a larger model.")
    return parsed
