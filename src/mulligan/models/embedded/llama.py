"""llama.cpp in this process, through xllamacpp: load a file, generate one answer. Blocking; one call at a time.

xllamacpp is called in process, not over HTTP. It opens a server on loopback all the same, which gets a random key, so
that nobody else on the machine can use it.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import Any, Protocol, cast

from mulligan.core.errors import ModelError
from mulligan.core.records import Json

BATCH_TOKENS = 64  # after each batch `abandoned` is checked; larger ones were not faster on a CPU

UNIT, TIMES, REPEATED = 400, 4, 200
"""The longest text that is looked for, how often in a row, and over how many characters, before JSON repeats itself."""


class Server(Protocol):
    """The part of `xllamacpp.Server` that is used. The callback gets each chunk; True from it ends the generation."""

    def handle_chat_completions(self, request: Json, callback: Callable[[dict[str, Any]], bool], /) -> object: ...


@dataclass(frozen=True)
class Load:
    """The settings of one loaded model. cache: MB of memory for prompts that were read, of which none is read again."""

    path: Path
    threads: int
    context: int
    cache: int = 0


@dataclass
class Generated:
    """`finish` is "stop", "length" or "repeated". `error` is llama.cpp's own, empty when all went well. Of
    `prompt_tokens`, `known_tokens` were not read again."""

    text: str = ""
    finish: str = ""
    prompt_tokens: int = 0
    known_tokens: int = 0
    completion_tokens: int = 0
    error: Json = None


_loaded: dict[Load, Server] = {}  # only ever touched by the one thread that runs embedded models


def loaded(load: Load) -> Server:
    """The model, loaded once per process and setting. Raises `ModelError` for a file that llama.cpp cannot load."""
    if load not in _loaded:
        _loaded[load] = _start(load)
    return _loaded[load]


def _imported() -> Any:
    """The module, which has no types; strict checks also run where it is not installed.

    Ladybug makes its C++ symbols global. A library that is loaded after it and finds them instead of its own aborts
    (std::bad_alloc), so that xllamacpp then has to look for its own first.
    """
    flags = sys.getdlopenflags()
    if "ladybug" in sys.modules:
        sys.setdlopenflags(flags | getattr(os, "RTLD_DEEPBIND", 0))
    try:
        return import_module("xllamacpp")
    finally:
        sys.setdlopenflags(flags)


def _start(load: Load) -> Server:
    xllamacpp = _imported()
    params = xllamacpp.CommonParams()
    params.model.path = str(load.path)
    params.n_ctx = load.context
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = load.threads
    params.n_parallel = 1
    params.cache_ram_mib = load.cache
    params.n_ctx_checkpoints = 0
    params.api_keys = [secrets.token_hex(16)]
    params.ui = params.endpoint_slots = False
    if not os.environ.get("MULLIGAN_DEBUG"):
        params.verbosity = -1
    try:
        return cast(Server, xllamacpp.Server(params))
    except RuntimeError as error:
        raise ModelError(
            f"llama.cpp could not load {load.path} with a context of {load.context} tokens. Is the file complete, "
            "does this version support its kind, and is there enough memory? MULLIGAN_DEBUG=1 shows its messages."
        ) from error


def generate(server: Server, request: Json, abandoned: Event, cached: bool = False) -> Generated:
    """One chat completion; ends early, within one batch or token, when it is abandoned.

    JSON that only repeats itself ends, too: it goes on to the last token, and what it repeats is never a whole answer.

    Args:
        cached: Whether what is known of the prompt is not read again. llama.cpp does not promise the same numbers then,
            so the same seed can give another answer after another question.

    Raises `ValueError` for a request that llama.cpp cannot take, such as an impossible schema.
    """
    answer, is_json = Generated(), "json_schema" in request

    def take(chunk: dict[str, Any]) -> bool:
        answer.error = chunk.get("error")
        for choice in chunk.get("choices", ()):
            said = choice["delta"].get("content") or ""
            answer.text += said
            answer.completion_tokens += bool(said)
            answer.finish = choice["finish_reason"] or answer.finish
        answer.prompt_tokens = chunk.get("prompt_progress", {}).get("total", answer.prompt_tokens)
        if usage := chunk.get("usage"):
            answer.prompt_tokens, answer.completion_tokens = usage["prompt_tokens"], usage["completion_tokens"]
        answer.known_tokens = chunk.get("timings", {}).get("cache_n", 0)
        if is_json and not answer.finish and repeated(answer.text):
            answer.finish = "repeated"
        return abandoned.is_set() or answer.finish == "repeated"

    # Progress chunks let a long prompt be abandoned too.
    fixed = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True, "cache_prompt": cached}
    server.handle_chat_completions({**request, **fixed}, take)
    return answer


def repeated(text: str) -> str:
    """What the end of a text repeats, at least `TIMES` times over at least `REPEATED` characters; "" for nothing."""
    for length in range(1, min(UNIT, len(text) // TIMES) + 1):
        end = text[-max(TIMES * length, REPEATED) :]
        if len(end) >= REPEATED and end[length:] == end[:-length]:
            return text[-length:]
    return ""
