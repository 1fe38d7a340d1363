"""Language models inside this process: no key, no server, and no network once the weights are on this machine.

`llama` runs the weights; `worker` runs one question after the other.
"""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from pathlib import Path
from threading import Event

from mulligan.core.errors import InvalidInput, ModelError, UnknownName
from mulligan.core.extras import require
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import Json, Usage
from mulligan.models.answers import answer_in
from mulligan.models.embedded.llama import Generated, Load, generate, loaded, repeated
from mulligan.models.embedded.worker import embedded_worker, overload, prompt_cache, threads_to_use
from mulligan.models.failures import Unreadable
from mulligan.models.tool_answers import call_of, in_json
from mulligan.models.weights import Progress, on_stderr, path_of, pull, sha256_of
from mulligan.models.weights.known import KNOWN

DEFAULT_MODEL = "smollm2-135m"
DEFAULT_MAX_TOKENS = 1024
LEAST_CONTEXT = 64
SEEDS = 2**32 - 1  # llama.cpp takes the last of the 2**32 values for "choose a random seed"

log = logging.getLogger(__name__)


class EmbeddedModel:
    """Known weights, or any .gguf file, run by llama.cpp on this machine.

    Models with the same file and settings are loaded once per process. All questions to embedded models are answered
    one after the other. `id` ends in the first 12 digits of the sha256 of the weights.

    Args:
        name: The name of known weights, or the path of a .gguf file. None: `smollm2-135m`.
        threads: None: `MULLIGAN_THREADS`, else the physical cores minus one.
        context: Maximum number of tokens of prompt and answer together.
        pull: Whether the first question downloads known weights that are missing. A callback gets the progress;
            otherwise it goes to stderr.

    Raises:
        InvalidInput: The extra or the file is missing, or a number is wrong.
        UnknownName: The name is neither known weights nor a .gguf file.
    """

    calls_tools = False
    sees = False
    # With tools, every answer is a call.

    def __init__(
        self,
        name: str | None = None,
        *,
        threads: int | None = None,
        context: int = 8192,
        pull: bool | Progress = True,
    ) -> None:
        require("Models that run inside Mulligan need an extra", "xllamacpp", "local")
        if context < LEAST_CONTEXT:
            raise InvalidInput(f"context must be at least {LEAST_CONTEXT} tokens, not {context}.")
        self.name = f"local:{name}" if name else "local"
        self._known = KNOWN.get(name or DEFAULT_MODEL)
        path = path_of(self._known.name) if self._known else gguf_file(name or "")
        self._load = Load(path, threads_to_use(threads), context, prompt_cache())
        self._label, digest = (self._known.name, self._known.sha256) if self._known else (path.name, sha256_at(path))
        self.id = f"local:{self._label}@sha256:{digest[:12]}"
        self._pull = pull
        self._warned = False
        if self._known and not pull and not path.is_file():
            raise InvalidInput(
                f"The weights of {self._label} are not on this machine. Run: mulligan models pull {self._label}"
            )

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        """Answers from the weights. `max_tokens` is 1024 if not set; cost is 0. With a schema only JSON that fits it
        can be generated, and with tools only a call of one of them. The same weights, settings, seed and question give
        the same answer on the same machine, unless `MULLIGAN_PROMPT_CACHE` is set.

        Cancelling returns at once; the generation ends soon after, before the next question's begins. Raises
        `InvalidInput` for images or a schema that cannot be used, `BadAnswer` for JSON that was cut off or only repeats
        itself, `ModelError` for a prompt that is too long, weights that could not be pulled or loaded.
        """
        sent = in_json(question)
        body = request(sent, sampling)
        reply = await embedded_worker().run(lambda abandoned: self._answer(body, abandoned))
        usage = Usage(reply.prompt_tokens, reply.completion_tokens, 1, 0.0)
        if sent.schema is None:
            cut = "" if reply.finish == "stop" else cut_reason(reply, body["max_tokens"])
            return answer_in(reply.text, sent, model=self.id, usage=usage, cut=cut)
        try:
            if question.tools:
                call = call_of(reply.text, cut=reply.finish != "stop")
                return Answer("", self.id, usage, (call,))
            return Answer(json.loads(reply.text), self.id, usage)
        except ValueError:
            why = cut_reason(reply, body["max_tokens"])
            raise Unreadable(why, text=reply.text, model=self._label, usage=usage, again=False) from None

    def _answer(self, body: Json, abandoned: Event) -> Generated:
        """Downloads and loads the weights if necessary, then generates. Runs in the worker's thread."""
        if self._known:
            _pull_unless_abandoned(self._known.name, self._pull, abandoned)
        if not self._warned and (load := overload()):
            self._warned = True
            slow = "This machine is busy (load %.1f per CPU), so %s will answer slowly on its %d thread(s)."
            log.warning(slow + " MULLIGAN_THREADS sets the number of threads.", load, self._label, self._load.threads)
        try:
            reply = generate(loaded(self._load), body, abandoned, self._load.cache > 0)
        except ValueError as error:
            raise InvalidInput(f"llama.cpp cannot process this question: {error}") from error
        if abandoned.is_set():
            raise ModelError("The question was cancelled.")
        if reply.error:
            raise ModelError(self._error_message(reply.error))
        if not reply.finish:
            raise ModelError(f"{self._label} stopped in the middle of its answer. MULLIGAN_DEBUG=1 shows why.")
        return reply

    def _error_message(self, error: Json) -> str:
        if error.get("type") != "exceed_context_size_error":
            return f"llama.cpp failed with {self._label}: {error.get('message', error)}"
        prompt, context = error["n_prompt_tokens"], error["n_ctx"]
        return (
            f"The prompt has {prompt} tokens, {prompt - context} more than the context of {self._label} ({context}), "
            "and the answer also needs room. Shorten the task, show less of the past, or give the model a larger "
            "context."
        )


def request(question: Question, sampling: Sampling) -> dict[str, Json]:
    """The question as a request to llama.cpp's chat completions. Raises `InvalidInput` for images."""
    if any(message.images for message in question.messages):
        raise InvalidInput("The embedded models cannot read images. Use model= to specify a model that can.")
    body: dict[str, Json] = {
        "messages": [{"role": message.role, "content": message.text} for message in question.messages],
        "max_tokens": DEFAULT_MAX_TOKENS if sampling.max_tokens is None else sampling.max_tokens,
    }
    if sampling.temperature is not None:
        body["temperature"] = sampling.temperature
    if sampling.seed is not None:
        body["seed"] = sampling.seed % SEEDS
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if question.schema is not None:
        body["json_schema"] = question.schema
    return body


def cut_reason(reply: Generated, max_tokens: int) -> str:
    """Why an answer was cut off."""
    if reply.finish == "length":
        room = f"max_tokens is {max_tokens}, and prompt and answer share the context"
        why = f"it was cut off after {reply.completion_tokens} tokens ({room})"
    elif reply.finish == "repeated":
        return f"it was ended after {reply.completion_tokens} tokens, because it only repeats {repeated(reply.text)!r}"
    else:
        why = "it was ended early by a stop text"
    return f"{why}, and ends in {reply.text[-40:]!r}"


def _pull_unless_abandoned(name: str, progress: bool | Progress, abandoned: Event) -> None:
    """Downloads weights if they are missing, until `abandoned` is set. Progress goes to stderr or the callback."""
    report = on_stderr() if isinstance(progress, bool) else progress

    def tell(line: str, done: int, total: int) -> None:
        if abandoned.is_set():
            raise ModelError("The download was cancelled; the part downloaded so far is kept.")
        report(line, done, total)

    pull(name, tell)


def gguf_file(name: str) -> Path:
    path = Path(name).expanduser()
    if path.suffix != ".gguf":
        raise UnknownName("local model", name, KNOWN, "Or use the path of a .gguf file.")
    if not path.is_file():
        raise InvalidInput(f"There is no file {name}. Use the path of a .gguf file, or one of {', '.join(KNOWN)}.")
    return path.resolve()


def sha256_at(path: Path) -> str:
    """The sha256 of a file. Hashing gigabytes takes seconds, so it is done once per process unless the file changes."""
    state = path.stat()
    return _sha256_once(path, state.st_size, state.st_mtime_ns)


@lru_cache
def _sha256_once(path: Path, size: int, modified: int) -> str:
    return sha256_of(path)
