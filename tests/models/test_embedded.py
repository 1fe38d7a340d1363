"""The embedded model: what it refuses before anything is loaded, its one thread, and real answers (slow lane)."""

import logging
import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from mulligan.core.errors import InvalidInput, ModelError, UnknownName
from mulligan.core.extras import install_command
from mulligan.core.protocols import Model
from mulligan.core.questions import Message, Question
from mulligan.core.records import Image, Json
from mulligan.models import weights
from mulligan.models.embedded import EmbeddedModel, cut_reason
from mulligan.models.embedded.llama import generate, repeated
from mulligan.models.embedded.worker import EmbeddedWorker, physical_cores, threads_to_use

pytest.importorskip("xllamacpp", reason='needs the extra: pip install "mulligan[local]"')

HELLO = Question((Message("user", "Say hello."),))


@pytest.fixture
def not_weights(tmp_path: Path) -> Path:
    file = tmp_path / "not-weights.gguf"
    file.write_bytes(b"GGUF, but no more than that")
    return file


def test_it_is_a_model_named_as_given_with_the_hash_of_its_weights(not_weights: Path) -> None:
    assert isinstance(EmbeddedModel(), Model)
    assert (EmbeddedModel().name, EmbeddedModel().id) == ("local", "local:smollm2-135m@sha256:b179c9523d0e")
    coder = EmbeddedModel("qwen2.5-coder-1.5b")
    assert (coder.name, coder.id) == ("local:qwen2.5-coder-1.5b", "local:qwen2.5-coder-1.5b@sha256:cc324af070c2")
    own = EmbeddedModel(str(not_weights))
    assert own.name == f"local:{not_weights}"
    assert own.id == f"local:not-weights.gguf@sha256:{weights.sha256_of(not_weights)[:12]}"
    not_weights.write_bytes(b"changed")
    assert EmbeddedModel(str(not_weights)).id != own.id


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "xllamacpp", None)
    with pytest.raises(InvalidInput, match=re.escape(install_command("local")) + "$"):
        EmbeddedModel()


def test_what_cannot_work_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"Did you mean 'smollm2-135m'\? Available: .* path of a \.gguf file"):
        EmbeddedModel("smollm2")
    with pytest.raises(InvalidInput, match=r"There is no file .*gone\.gguf"):
        EmbeddedModel(str(tmp_path / "gone.gguf"))
    with pytest.raises(InvalidInput, match="context must be at least 64 tokens, not 10"):
        EmbeddedModel(context=10)
    with pytest.raises(InvalidInput, match="threads must be an integer of at least 1, not '0'"):
        EmbeddedModel(threads=0)
    with pytest.raises(InvalidInput, match="Run: mulligan models pull smollm2-135m"):
        EmbeddedModel(pull=False)


async def test_images_are_refused(not_weights: Path) -> None:
    seen = Message("user", "What is this?", (Image("image/png", b"png"),))
    with pytest.raises(InvalidInput, match="cannot read images"):
        await EmbeddedModel(str(not_weights)).ask(Question((seen,)))


async def test_a_file_that_is_not_a_model_is_reported(not_weights: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ModelError, match=r"could not load .*not-weights\.gguf .*MULLIGAN_DEBUG=1 shows"):
        await EmbeddedModel(str(not_weights)).ask(HELLO)
    assert capfd.readouterr() == ("", "")


def test_threads_are_the_setting_then_the_variable_then_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MULLIGAN_THREADS", raising=False)
    assert 1 <= physical_cores() <= (os.cpu_count() or 1)
    assert threads_to_use(None) == max(1, physical_cores() - 1)
    monkeypatch.setenv("MULLIGAN_THREADS", "3")
    assert threads_to_use(None) == 3
    assert threads_to_use(2) == 2
    monkeypatch.setenv("MULLIGAN_THREADS", "many")
    with pytest.raises(InvalidInput, match="MULLIGAN_THREADS must be an integer of at least 1, not 'many'"):
        threads_to_use(None)


def test_the_memory_for_prompts_is_a_whole_number(not_weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_PROMPT_CACHE", "1 GB")
    with pytest.raises(InvalidInput, match="MULLIGAN_PROMPT_CACHE must be an integer of at least 0, not '1 GB'"):
        EmbeddedModel(str(not_weights))


def test_a_busy_machine_is_warned_of_once(
    not_weights: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (100.0 * (os.cpu_count() or 1), 0.0, 0.0))
    model = EmbeddedModel(str(not_weights), threads=1)

    async def ask_twice() -> None:
        for _ in range(2):
            with pytest.raises(ModelError):
                await model.ask(HELLO)

    import asyncio

    with caplog.at_level(logging.WARNING, "mulligan.models.embedded"):
        asyncio.run(ask_twice())
    assert [record.getMessage() for record in caplog.records] == [
        "This machine is busy (load 100.0 per CPU), so not-weights.gguf will answer slowly on its 1 thread(s). "
        "MULLIGAN_THREADS sets the number of threads."
    ]


def test_jobs_run_one_after_the_other_and_an_error_ends_only_its_own() -> None:
    worker = EmbeddedWorker()
    order: list[int] = []

    def fail(abandoned: threading.Event) -> None:
        raise ModelError("broken")

    jobs = [worker.submit(lambda abandoned, n=n: order.append(n)) for n in range(3)]
    broken = worker.submit(fail)
    last = worker.submit(lambda abandoned: "still here")
    assert last.future.result(30) == "still here"
    assert [job.future.result(30) for job in jobs] == [None] * 3
    assert order == [0, 1, 2]
    with pytest.raises(ModelError, match="broken"):
        broken.future.result(30)
    worker.close()


def test_closing_abandons_the_job_at_hand_and_a_job_cancelled_in_the_queue_never_runs() -> None:
    worker = EmbeddedWorker()
    began = threading.Event()

    def until_abandoned(abandoned: threading.Event) -> bool:
        began.set()
        return abandoned.wait(30)

    running = worker.submit(until_abandoned)
    assert began.wait(30)
    waiting = worker.submit(lambda abandoned: "ran")
    assert waiting.future.cancel()
    worker.close()
    assert running.future.result(30) is True
    with pytest.raises(CancelledError):
        waiting.future.result(30)


class Writer:
    """A llama.cpp server that writes these tokens, one in each chunk, until it is told to stop."""

    def __init__(self, *tokens: str) -> None:
        self.left = list(tokens)

    def handle_chat_completions(self, request: Json, callback: Callable[[dict[str, Any]], bool], /) -> None:
        first = {"prompt_progress": {"total": 30}}
        while self.left:
            delta = {"choices": [{"delta": {"content": self.left.pop(0)}, "finish_reason": None}]}
            if callback({**delta, **first}):
                return
            first = {}
        callback({"choices": [{"delta": {}, "finish_reason": "length"}]})


LOOPING = ['{"answer": "', *["n.name = 'A' OR "] * 100]


def test_json_that_only_repeats_itself_is_ended() -> None:
    writer = Writer(*LOOPING)
    reply = generate(writer, {"json_schema": {}}, threading.Event())
    assert reply.finish == "repeated"
    assert repeated(reply.text) == "n.name = 'A' OR "
    assert (reply.prompt_tokens, reply.completion_tokens) == (30, len(LOOPING) - len(writer.left))
    assert reply.completion_tokens < 20
    assert "only repeats \"n.name = 'A' OR \"" in cut_reason(reply, 1024)


def test_text_that_repeats_itself_is_left_to_its_limit() -> None:
    writer = Writer(*LOOPING)
    assert generate(writer, {}, threading.Event()).finish == "length"
    assert not writer.left


@pytest.mark.parametrize("text", ["", "ab" * 50, "x" * 199, " OR ".join(f"n.name = 'A{n}'" for n in range(99))])
def test_what_is_short_or_goes_on_otherwise_repeats_nothing(text: str) -> None:
    assert repeated(text) == ""
