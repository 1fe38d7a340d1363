"""Every model of Mulligan as a LangChain chat model: `chat_model("local")`, `chat_model("openai:gpt-4o-mini")`.

None of LangChain's packages for providers is needed. Inside a node of ours, wrapped by `journalled`, each call is one
step of the journal.
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
from mulligan.langgraph.chat_messages import answered, chunk_of, said, unreadable
from mulligan.langgraph.chat_tools import Asking, described, tools_of, wanted
from mulligan.models.failures import NotJson
from mulligan.models.settings import CallSettings

NO_MODEL = (
    'No model was named: give one, such as "openai:gpt-6-luna" or "local", set MULLIGAN_MODEL, or write model = "…" '
    "into mulligan.toml. docs/models.md has the names."
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
    """A chat model over one of Mulligan's. `chat_model` makes one, and says at once what cannot be.

    model: a name as in docs/models.md, or a role of mulligan.toml; None: `MULLIGAN_MODEL`, else mulligan.toml. What is
    None besides is as the role has it, or the provider. base_url, timeout (seconds of one attempt) and max_retries are
    over what mulligan.toml says in [calls]; api_key is held in this object, and goes to the provider alone.

    Raises `ModelError`; and `InvalidInput` for messages and options that cannot be.
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
        """The model's id, which a journal keeps: the same before its first call and after; its name, where it cannot
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
        """The model behind this one, opened once, and how it is sampled. Raises `InvalidInput`; nothing is called."""
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
        CallSettings.parse(given)  # so that no file is blamed for them
        model = Models(config).open(named, calls=given, key=key)
        if ":" not in named and is_role(config, named):
            role = role_of(config, named)
            return model, Sampling(role.temperature, role.max_tokens)
        return model, Sampling()

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """tools: pydantic classes, functions, LangChain's tools, schemas. tool_choice: "auto", "none", "any" (or
        "required"), or the name of the tool that has to be called. Raises `InvalidInput`, `UnknownName`.

        A call that has to be made is asked for as JSON of the tools' schemas, to which local models and most providers
        are held. Where the model gives something else all the same, there is an `invalid_tool_calls`.
        """
        given = described(tools)
        choice = wanted(tool_choice, given)
        return self.bind(tools=given, **({} if choice is None else {"tool_choice": choice}), **kwargs)

    def with_structured_output(self, schema: Any, *, include_raw: bool = False, **kwargs: Any) -> Runnable[Any, Any]:
        """As in LangChain. Raises `BadAnswer`, when it is run, where the model gave nothing to be parsed."""
        parsed = super().with_structured_output(schema, include_raw=include_raw, **kwargs)
        return parsed if include_raw else parsed | _something

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
        bound = described(cast(list[Any], kwargs.get("tools") or []))
        asking = Asking(
            opened[0],
            self._sampling(opened[1], stop, kwargs),
            said(messages),
            tools_of(bound),
            wanted(kwargs.get("tool_choice"), bound) if bound else None,
            parallel=kwargs.get("parallel_tool_calls") is not False,
        )
        try:
            message = answered(await asking.answer(), asking.messages)
        except NotJson as bad:
            message = unreadable(bad, asking.demanded[0].name if len(asking.demanded) == 1 else "")
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
        """The whole answer as one piece: a call that can be taken up again is not given away in pieces."""
        yield chunk_of((await self._agenerate(messages, *given, **named)).generations[0])

    def _stream(self, messages: list[BaseMessage], *given: Any, **named: Any) -> Iterator[Any]:
        yield chunk_of(self._generate(messages, *given, **named).generations[0])

    def _sampling(self, of_role: Sampling, stop: Sequence[str] | None, options: Mapping[str, Any]) -> Sampling:
        """What the call says first, then what this object does, then the role."""

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
    """A LangChain chat model over a model of Mulligan's: a name, a role of mulligan.toml, or an object.

    Raises `InvalidInput` for a model that cannot be, or none at all; nothing is called. The rest: see `ChatMulligan`.
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
    """strict: the schema is kept to wherever that can be done, asked for or not. stream: LangChain's own."""
    for name in options:
        if name not in _OPTIONS:
            raise InvalidInput(f"A model of Mulligan's takes no option {name!r}; it takes {', '.join(_OPTIONS)}.")


def _something(parsed: Json) -> Json:
    if parsed is None:
        raise BadAnswer("The model gave nothing that fits the schema: raise max_tokens, or take a larger model.")
    return parsed
