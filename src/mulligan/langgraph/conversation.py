"""`GptConversation`: a conversation with a model whose key is given in Python, compatible with BioChatter's class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import SecretStr

from mulligan.langgraph.chat import ChatMulligan, chat_model
from mulligan.langgraph.journalled import usage_of
from mulligan.plugins import Json
from mulligan.running import MissingKey, is_role, load


class GptConversation:
    """A conversation with a model. `chat` is its LangChain chat model. Nothing is called before the first question.

    Args:
        model_name: An OpenAI model, such as "gpt-4o-mini"; a model with its provider ("alibaba:qwen-plus"); `local`; or
            a role in mulligan.toml. None: the model in `MULLIGAN_MODEL` or else in mulligan.toml.
        prompts: Stored for code that reads them. To instruct the model, use `append_system_message`.
        base_url: The server, if it is not the provider's own.
        options: The options of `chat_model`.

    Raises:
        InvalidInput: The model is invalid.
    """

    def __init__(
        self,
        model_name: str | None = None,
        prompts: Mapping[str, Any] | None = None,
        *,
        base_url: str | None = None,
        **options: Any,
    ) -> None:
        self.model_name, self.prompts, self.user = _full_name(model_name), dict(prompts or {}), ""
        self.messages: list[BaseMessage] = []
        self._options: dict[str, Any] = {"base_url": base_url, **options}
        self._key: SecretStr | None = None
        self._chat: ChatMulligan | None = None

    def __repr__(self) -> str:
        return f"GptConversation({self.model_name!r})"

    def set_api_key(self, key: str | None, user: str | None = None) -> bool:
        """Set the key, and return whether the model can be asked: False if a key is missing.

        The key is kept in this object and sent only to the provider; the environment does not change. The first call
        shows whether the provider accepts it.

        Raises:
            InvalidInput: the model is invalid for another reason.
        """
        self._key = SecretStr(key.strip()) if key and key.strip() else None
        self.user, self._chat = user or "", None
        try:
            self._chat = self._opened()
        except MissingKey:
            return False
        return True

    @property
    def chat(self) -> ChatMulligan:
        """The LangChain chat model.

        Raises:
            InvalidInput: the model needs a key and there is none.
        """
        if self._chat is None:
            self._chat = self._opened()
        return self._chat

    def _opened(self) -> ChatMulligan:
        key = self._key.get_secret_value() if self._key else None
        try:
            return chat_model(self.model_name, api_key=key, **self._options)
        except MissingKey as error:
            raise MissingKey(f"{error} Or set it with set_api_key(KEY).") from None

    def reset(self) -> None:
        """Start a new, empty conversation."""
        self.messages = []

    def append_system_message(self, text: str) -> None:
        """Add a system message to the conversation."""
        self.messages.append(SystemMessage(text))

    def query(self, text: str) -> tuple[str, dict[str, Json], None]:
        """Ask the model.

        Returns:
            The answer, the usage ("input_tokens", "output_tokens", "cost"), and None (no correction).

        Raises:
            ModelError: the model failed. The question is then not part of the conversation."""
        return self._add(text, self.chat.invoke([*self.messages, HumanMessage(text)]))

    async def aquery(self, text: str) -> tuple[str, dict[str, Json], None]:
        """Same as `query`, for asynchronous code."""
        return self._add(text, await self.chat.ainvoke([*self.messages, HumanMessage(text)]))

    def _add(self, text: str, answer: AIMessage) -> tuple[str, dict[str, Json], None]:
        self.messages += [HumanMessage(text), answer]
        used = usage_of(answer)
        usage = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens, "cost": used.cost}
        return str(answer.text), usage, None


def _full_name(name: str | None) -> str | None:
    """Return a name with its provider. A name without one is OpenAI's, unless it is a role."""
    if name is None or ":" in name or name == "local":
        return name
    return name if is_role(load(), name) else f"openai:{name}"
