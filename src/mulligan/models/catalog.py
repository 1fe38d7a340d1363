"""Opens models and embedders by name, and lists the keys that are set. It calls no model."""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.protocols import Embedder, Model
from mulligan.models.embedders.hash import HashEmbedder
from mulligan.models.embedders.provider import NO_PROVIDER, ProviderEmbedder
from mulligan.models.fallback import Fallback
from mulligan.models.provider import ProviderModel
from mulligan.models.provider_client import Sleep, Target
from mulligan.models.providers import PROVIDERS, Access, access, check_proxies, known_models, require_sdk
from mulligan.models.replayed import ReplayedModel
from mulligan.models.scripted import ScriptedModel
from mulligan.models.settings import CallSettings
from mulligan.models.weights.known import KNOWN
from mulligan.text.files import read_text
from mulligan.text.model_names import model_names

ClientT = TypeVar("ClientT", ProviderModel, ProviderEmbedder)
OURS = ("local", "local:NAME", "local:FILE.gguf", "scripted:FILE", "replay:FILE", "reader:FAMILY")

_ELSEWHERE = {"reader": ("mulligan.bench.streams.reader", "Reader")}
"""Models of other packages, by kind: the module and the class, which is called with the text after the colon."""


def open_model(
    name: str,
    *,
    settings: CallSettings = CallSettings(),
    key: str | None = None,
    sleep: Sleep = asyncio.sleep,
    chance: Callable[[], float] = random.random,
) -> Model:
    """The model of this name: `PROVIDER:MODEL` as in pydantic-ai, or one of ours (`local`, `scripted:`, `replay:`,
    `reader:`). If several names are separated by commas, each is asked when the models before it fail.

    Args:
        key: The provider's key. None: it is read from the environment.
        sleep: Waits between attempts. Only tests set it.
        chance: Returns a number from 0 to 1 that varies the wait. Only tests set it.

    Raises:
        UnknownName, InvalidInput: A provider is unknown, a key, package or file is missing, or a key was given for
            several models.
    """
    if len(names := model_names(name)) > 1:
        return Fallback.of(names, partial(open_model, settings=settings, sleep=sleep, chance=chance), key)
    kind, colon, rest = name.strip().partition(":")
    match kind:
        case "local":
            from mulligan.models.embedded import EmbeddedModel

            return EmbeddedModel(rest or None)
        case "scripted" | "replay":
            return _from_file(kind, rest)
        case _ if kind in _ELSEWHERE:
            module, class_name = _ELSEWHERE[kind]
            return getattr(import_module(module), class_name)(rest)
        case _ if not colon or not rest:
            raise _no_provider(kind)
        case _ if kind in PROVIDERS:
            return ProviderModel(Target(kind, rest, access(kind, rest, settings, key), settings, sleep, chance))
        case _:
            return _ask_pydantic_ai(
                kind, rest, ProviderModel(Target(kind, rest, Access(key=key), settings, sleep, chance))
            )


def open_embedder(
    name: str,
    *,
    settings: CallSettings = CallSettings(),
    sleep: Sleep = asyncio.sleep,
    chance: Callable[[], float] = random.random,
) -> Embedder:
    """Returns the embedder with this name.

    The name is `local` (`local:minilm-l6-v2`), `local:multilingual-e5-small`, `PROVIDER:MODEL` or
    `PROVIDER:MODEL@DIMENSIONS`; for tests, it is `hash` or `hash:DIMENSIONS`. `embed` returns a numpy array of float32.

    Args:
        sleep, chance: See `open_model`.

    Raises:
        UnknownName, InvalidInput: The provider is unknown, or a key or package is missing.
    """
    kind, colon, rest = name.strip().partition(":")
    match kind:
        case "local":
            from mulligan.models.embedders.local import LocalEmbedder

            return LocalEmbedder(rest or None)
        case "hash":
            return _hash_embedder(rest)
        case _ if not colon or not rest:
            raise InvalidInput(
                f"No embedder is called {name!r}. Use local, or PROVIDER:MODEL, such as openai:text-embedding-3-small."
            )
        case _ if kind in PROVIDERS:
            return ProviderEmbedder(Target(kind, rest, access(kind, rest, settings), settings, sleep, chance))
        case _:
            return _ask_pydantic_ai(kind, rest, ProviderEmbedder(Target(kind, rest, Access(), settings, sleep, chance)))


def _hash_embedder(dimensions: str) -> Embedder:
    if not dimensions:
        return HashEmbedder()
    if not dimensions.isdecimal():
        raise InvalidInput(f"hash:{dimensions}: write the number of dimensions after the colon.")
    return HashEmbedder(int(dimensions))


def found_keys() -> list[tuple[str, str]]:
    """The environment variables with a provider's key that are set, each with a model name that would use it."""
    models: dict[str, str] = {}
    for name, provider in PROVIDERS.items():
        for variable in provider.keys:
            if os.environ.get(variable, "").strip():
                models.setdefault(variable, f"{name}:{provider.example}")
    return list(models.items())


def _from_file(kind: str, file: str) -> Model:
    if not file:
        raise InvalidInput(f"{kind} needs a file: write {kind}:FILE.")
    text = read_text(Path(file).expanduser(), f"{kind}:{file}", newline=None)
    file_name = Path(file).name
    return ReplayedModel.parse(file_name, text) if kind == "replay" else ScriptedModel.parse(file_name, text)


_NAME_PATTERNS = (
    (r"gpt-oss", "ollama"),
    (r"gpt-?\d|chatgpt-|o[1-9](?=-|$)|codex-|davinci-|text-embedding-", "openai"),
    (r"claude-", "anthropic"),
    (r"gemini-", "google"),
    (r"qwen-|qwq-", "alibaba"),
    (r"deepseek-(?!r\d)", "deepseek"),
    (r"(mistral|ministral|magistral|codestral|devstral|pixtral)-(\w+-)*latest", "mistral"),
    (r"grok-", "xai"),
    (r"kimi-|moonshot-", "moonshotai"),
    (r"glm-", "zai"),
    (r"command-", "cohere"),
    (r"(code|tiny)?llama|qwen|mistral|mixtral|gemma|phi|deepseek|devstral|starcoder|granite", "ollama"),
)
# How the names of well-known models begin, and their providers. Open weights come last: users run them themselves.


def _provider_of(name: str) -> str | None:
    """The provider of a well-known model, by the beginning of its name."""
    return next((provider for pattern, provider in _NAME_PATTERNS if re.match(pattern, name, re.IGNORECASE)), None)


def _no_provider(name: str) -> InvalidInput:
    """The error for a name without a provider: it suggests the nearest known model."""
    if name in PROVIDERS:
        return InvalidInput(f"{name} is a provider: write {name}:MODEL, such as {name}:{PROVIDERS[name].example}.")
    if name in KNOWN or name.endswith(".gguf"):
        return InvalidInput(f"The model {name!r} runs inside Mulligan: write local:{name}.")
    if "/" in name:
        return InvalidInput(f"The model {name!r} needs its provider. Did you mean openrouter:{name}?")
    providers = [provider for provider in PROVIDERS if not provider.startswith("openai-")]
    full_names = {model.partition(":")[2]: model for model in known_models() if model.partition(":")[0] in providers}
    similar = get_close_matches(name, full_names, n=1, cutoff=0.95)  # a typing error
    suggestion = full_names.get(similar[0] if similar else name)
    if suggestion is None and (provider := _provider_of(name)):
        suggestion = f"{provider}:{name}"
    if suggestion:
        return InvalidInput(f"The model {name!r} needs its provider. Did you mean {suggestion}?")
    error = UnknownName("model", name, [*OURS, *full_names])
    match = re.search(r"Did you mean '(.+?)'\?", str(error))
    hint = f" Did you mean {full_names.get(match[1], match[1])}?" if match else ""
    return InvalidInput(f"No model is called {name!r}.{hint} Write PROVIDER:MODEL, or one of {', '.join(OURS)}.")


def _ask_pydantic_ai(kind: str, rest: str, model: ClientT) -> ClientT:
    """Loads a provider that is not in providers.toml, so that a missing package or key is reported before any call."""
    require_sdk(f"{kind}:{rest} needs pydantic-ai")
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.providers import infer_provider_class

    check_proxies()
    try:
        try:
            if kind != NO_PROVIDER:
                infer_provider_class(kind)
        except ValueError:
            if provider := _provider_of(kind):  # the name of a model with a tag, such as llama3.1:8b
                raise InvalidInput(
                    f"The model '{kind}:{rest}' needs its provider. Did you mean {provider}:{kind}:{rest}?"
                ) from None
            raise UnknownName("model provider", kind, [*PROVIDERS, "local", "scripted", "replay", "reader"]) from None
        model.load()
    except ImportError as error:
        command = re.search(r'pip install ".+?"', str(error))
        remedy = f"run  {command[0]}" if command else str(error).splitlines()[0]
        raise InvalidInput(f"{kind}:{rest} needs a package that is not installed: {remedy}") from None
    except UserError as error:
        variables = re.findall(r"`([A-Z][A-Z0-9_]{3,})`", str(error))
        remedy = f"set {' or '.join(variables)}" if variables else str(error).splitlines()[0]
        raise InvalidInput(f"{kind}:{rest} is not set up: {remedy}.") from None
    return model
