"""Runs llama.cpp in this process through xllamacpp: loads a file, generates one answer. Blocking; one call at a time.

xllamacpp is called in process, not over HTTP. It still opens a server on loopback, which gets a random key, so that
nobody else on the machine can use it.
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

BATCH_TOKENS = 64  # after each batch `abandoned` is checked; larger batches were not faster on a CPU

# JSON counts as repeating itself if it ends in a text of at most this length, so many times in a row, over at least so
# many characters.
MAX_REPEATED_LENGTH = 400
MIN_REPETITIONS = 4
MIN_REPEATED_CHARACTERS = 200


class Server(Protocol):
    """The part of `xllamacpp.Server` that is used. The callback gets each chunk, and ends the generation with True."""

    def handle_chat_completions(self, request: Json, callback: Callable[[dict[str, Any]], bool], /) -> object: ...


@dataclass(frozen=True)
class Load:
    """The settings of a loaded model. cache: MB of memory for processed prompts, which are then not processed again."""

    path: Path
    threads: int
    context: int
    cache: int = 0


@dataclass
class Generated:
    """The result of a generation.

    Attributes:
        finish: "stop", "length" or "repeated".
        known_tokens: how many of `prompt_tokens` came from the cache.
        error: llama.cpp's error, if any.
    """

    text: str = ""
    finish: str = ""
    prompt_tokens: int = 0
    known_tokens: int = 0
    completion_tokens: int = 0
    error: Json = None


_loaded: dict[Load, Server] = {}  # used only by the thread that runs embedded models


def loaded(load: Load) -> Server:
    """The model, loaded once per process and settings. Raises `ModelError` if llama.cpp cannot load the file."""
    if load not in _loaded:
        _loaded[load] = _start(load)
    return _loaded[load]


def _imported() -> Any:
    """The module xllamacpp. It has no types, and may not be installed where types are checked.

    Ladybug makes its C++ symbols global. A library that is loaded later and finds them instead of its own aborts
    (std::bad_alloc), so xllamacpp must look for its own symbols first.
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
            f"llama.cpp could not load {load.path} with a context of {load.context} tokens. Check that the file is "
            "complete, that this version supports the model, and that there is enough memory. MULLIGAN_DEBUG=1 "
            "shows its messages."
        ) from error


def generate(server: Server, request: Json, abandoned: Event, cached: bool = False) -> Generated:
    """Generates one chat completion. It ends early, within one batch or token, when it is abandoned.

    JSON that only repeats itself is ended as well: it would continue to the last token, and never become complete.

    Args:
        cached: Whether to use the cache of processed prompts. llama.cpp does not promise the same numbers then, so the
            same seed can give another answer after another question.

    Raises `ValueError` for a request that llama.cpp cannot process, such as an impossible schema.
    """
    answer, is_json = Generated(), "json_schema" in request

    def take(chunk: dict[str, Any]) -> bool:
        answer.error = chunk.get("error")
        for choice in chunk.get("choices", ()):
            text = choice["delta"].get("content") or ""
            answer.text += text
            answer.completion_tokens += bool(text)
            answer.finish = choice["finish_reason"] or answer.finish
        answer.prompt_tokens = chunk.get("prompt_progress", {}).get("total", answer.prompt_tokens)
        if usage := chunk.get("usage"):
            answer.prompt_tokens, answer.completion_tokens = usage["prompt_tokens"], usage["completion_tokens"]
        answer.known_tokens = chunk.get("timings", {}).get("cache_n", 0)
        if is_json and not answer.finish and repeated(answer.text):
            answer.finish = "repeated"
        return abandoned.is_set() or answer.finish == "repeated"

    options = {"stream": True, "stream_options": {"include_usage": True}, "cache_prompt": cached}
    options["return_progress"] = True  # so that `take` is called, and can abandon, while a long prompt is processed
    server.handle_chat_completions({**request, **options}, take)
    return answer


def repeated(text: str) -> str:
    """The text that the end of `text` repeats; "" if it does not repeat itself."""
    for length in range(1, min(MAX_REPEATED_LENGTH, len(text) // MIN_REPETITIONS) + 1):
        end = text[-max(MIN_REPETITIONS * length, MIN_REPEATED_CHARACTERS) :]
        if len(end) >= MIN_REPEATED_CHARACTERS and end[length:] == end[:-length]:
            return text[-length:]
    return ""
