import re
import socket
import time
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from inline_snapshot import snapshot
from wire_client import KEY, Naps, Wire, patience

from mulligan.core.errors import ModelError
from mulligan.core.protocols import Model
from mulligan.core.questions import Message, Question
from mulligan.models.catalog import open_model
from mulligan.models.failures import masked
from mulligan.models.settings import CallSettings
from mulligan.text.secrets import MASK

ASKED = Question((Message("user", "Say hello."),))
FORMATS = ["openai:gpt-4o", "openai-responses:gpt-4o", "anthropic:claude-haiku-4-5", "alibaba:qwen-plus"]
PATIENT = CallSettings(timeout=30)
NO_CHOICES: dict[str, Any] = {
    "id": "chat-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o",
    "choices": [],
    "usage": {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1},
}
PASSING: dict[str, Any] = {
    "429": {"status": 429, "body": {"error": {"message": "slow down"}}},
    "500": {"status": 500, "body": "oops"},
    "503": {"status": 503},
    "529": {"status": 529, "body": {"error": {"type": "overloaded_error", "message": "Overloaded"}}},
    "dropped": {"drop": True},
    "malformed": {"malformed": True},
    "hang": {"hang": True},
    "slow body": {"drip": 0.2},
    "no choices": {"status": 200, "body": {"hello": "world"}},
    "an empty list of choices": {"status": 200, "body": NO_CHOICES},
    "a body that is no object": {"status": 200, "body": []},
}
FINAL: dict[str, Any] = {
    "400": ({"status": 400, "body": {"error": {"message": "bad request"}}}, "400 bad request"),
    "401": ({"status": 401, "body": {"error": {"message": f"Incorrect API key: {KEY}"}}}, "Check the key in"),
    "403": ({"status": 403, "body": {"error": {"message": "not allowed"}}}, "403 not allowed"),
    "404": ({"status": 404, "body": {"error": {"message": "no such model"}}}, "Check the model's name"),
    "413": ({"status": 413, "body": "too large"}, "413"),
}


def opened(name: str, naps: Naps, settings: CallSettings = PATIENT) -> Model:
    return open_model(name, settings=settings, sleep=naps.sleep, chance=naps.chance)


@pytest.mark.light_cases(12)
@pytest.mark.parametrize("trouble", PASSING)
@pytest.mark.parametrize("name", FORMATS)
async def test_passing_trouble_is_survived(wire: Wire, naps: Naps, name: str, trouble: str) -> None:
    wire.plays(PASSING[trouble], "hello")
    settings = CallSettings(timeout=patience(PASSING[trouble]))
    assert (await opened(name, naps, settings).ask(ASKED)).content == "hello"
    assert len(wire.requests) == 2, "our own retries only, each counted once"
    assert naps.seconds == [1.0]


@pytest.mark.parametrize(
    "trouble", [pytest.param(one, marks=pytest.mark.slow) if one == "slow body" else one for one in PASSING]
)
async def test_lasting_trouble_ends_in_a_clear_error(wire: Wire, naps: Naps, trouble: str) -> None:
    wire.plays(*[PASSING[trouble]] * 3)
    settings = CallSettings(timeout=patience(PASSING[trouble]), attempts=3)
    with pytest.raises(
        ModelError, match=r"openai:gpt-4o at http://127.0.0.1:\d+/v1 failed \(tried 3 times\): "
    ) as caught:
        await opened("openai:gpt-4o", naps, settings).ask(ASKED)
    assert len(wire.requests) == 3
    assert naps.seconds == [1.0, 2.0]
    assert str(caught.value)[-1] == "."


@pytest.mark.parametrize("trouble", FINAL)
@pytest.mark.parametrize("name", FORMATS)
async def test_what_will_not_pass_is_not_tried_again(wire: Wire, naps: Naps, name: str, trouble: str) -> None:
    reply, says = FINAL[trouble]
    wire.plays(reply)
    with pytest.raises(ModelError, match=says) as caught:
        await opened(name, naps).ask(ASKED)
    assert "(tried once)" in str(caught.value)
    assert len(wire.requests) == 1
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.slow
async def test_the_messages_read_well(wire: Wire, naps: Naps) -> None:
    said: list[list[str]] = []
    start = f"openai:gpt-4o at {wire.url} failed (tried once): "
    for trouble in (*PASSING.values(), *(reply for reply, _ in FINAL.values())):
        wire.plays(trouble)
        with pytest.raises(ModelError) as caught:
            await opened("openai:gpt-4o", naps, CallSettings(timeout=patience(trouble), attempts=1)).ask(ASKED)
        said.append(re.split(r"(?<=[a-z)\]]\.) ", str(caught.value).removeprefix(start)))
    assert said == snapshot(
        [
            ["429 slow down.", "Wait a while, or lower the setting parallel."],
            ["500 oops.", "Try again later."],
            ["503 Service Unavailable.", "Try again later."],
            ["529 Overloaded.", "Try again later."],
            [
                "Connection error.",
                "Server disconnected without sending a response.",
                "Check the network and the base URL.",
            ],
            [
                "Failed to decode response as JSON: Unterminated string starting at: line 1 column 15 (char 14).",
                "The server does not use this provider's format: check the base URL.",
            ],
            ["no answer within 1 s.", "Raise the setting timeout."],
            ["no answer within 1 s.", "Raise the setting timeout."],
            [
                "Invalid response from openai chat completions endpoint.",
                "The server does not use this provider's format: check the base URL.",
            ],
            [
                "its answer cannot be read (IndexError: list index out of range).",
                "The server does not use this provider's format: check the base URL.",
            ],
            [
                "Invalid response from openai chat completions endpoint, expected JSON data.",
                "The server does not use this provider's format: check the base URL.",
            ],
            ["400 bad request.", "The provider rejects this request."],
            [
                "401 Incorrect API key: [secret masked].",
                "Check the key in OPENAI_API_KEY, and that it may use this model.",
            ],
            ["403 not allowed.", "Check the key in OPENAI_API_KEY, and that it may use this model."],
            ["404 no such model.", "Check the model's name and the base URL."],
            ["413 too large.", "The provider rejects this request."],
        ]
    )


async def test_retry_after_in_seconds_is_honoured(wire: Wire, naps: Naps) -> None:
    wire.plays(
        {"status": 429, "headers": {"Retry-After": "7"}}, {"status": 503, "headers": {"Retry-After": "5"}}, "hello"
    )
    await opened("openai:gpt-4o", naps).ask(ASKED)
    assert naps.seconds == [7.0, 5.0]


async def test_retry_after_as_a_date_is_honoured(wire: Wire, naps: Naps) -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    wire.plays({"status": 429, "headers": {"Retry-After": then}}, "hello")
    await opened("anthropic:claude-haiku-4-5", naps).ask(ASKED)
    assert 20 < naps.seconds[0] <= 30


async def test_retry_after_is_capped(wire: Wire, naps: Naps) -> None:
    wire.plays({"status": 429, "headers": {"Retry-After": "86400"}}, "hello")
    await opened("openai:gpt-4o", naps, CallSettings(longest_wait=45)).ask(ASKED)
    assert naps.seconds == [45.0]


async def test_waits_double_up_to_the_longest(wire: Wire, naps: Naps) -> None:
    wire.plays(*[PASSING["500"]] * 5, "hello")
    await opened("openai:gpt-4o", naps, CallSettings(attempts=6, first_wait=2, longest_wait=10)).ask(ASKED)
    assert naps.seconds == [2.0, 4.0, 8.0, 10.0, 10.0]


async def test_a_quota_that_is_used_up_is_not_waited_for(wire: Wire, naps: Naps) -> None:
    wire.plays({"status": 429, "body": {"error": {"code": "insufficient_quota", "message": "You are out of credit"}}})
    with pytest.raises(ModelError, match=r"tried once.*credit or quota is used up"):
        await opened("openai:gpt-4o", naps).ask(ASKED)


async def test_a_provider_that_says_not_to_retry_is_believed(wire: Wire, naps: Naps) -> None:
    wire.plays({"status": 500, "headers": {"x-should-retry": "false"}})
    with pytest.raises(ModelError, match="tried once"):
        await opened("openai:gpt-4o", naps).ask(ASKED)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("status", [302, 307, 308])
async def test_a_redirect_takes_no_key_anywhere(wire: Wire, naps: Naps, name: str, status: int) -> None:
    elsewhere = f"http://localhost:{wire.port}/elsewhere"
    wire.plays({"status": status, "headers": {"Location": elsewhere}}, "hello")
    with pytest.raises(ModelError, match="Redirects are not followed"):
        await opened(name, naps).ask(ASKED)
    assert len(wire.requests) == 1


async def test_a_model_that_is_not_there_is_told_what_there_is(wire: Wire, naps: Naps) -> None:
    wire.plays({"status": 404, "body": {"error": {"message": "model: claude-haiku-45"}}})
    with pytest.raises(ModelError, match=r"404 model: .* Did you mean anthropic:claude-haiku-4-5\?"):
        await opened("anthropic:claude-haiku-45", naps).ask(ASKED)


async def test_a_long_complaint_is_cut_and_its_keys_are_masked(wire: Wire, naps: Naps) -> None:
    other = "sk-proj-1AAABBBBCCCCDDDD"
    wire.plays({"status": 400, "body": {"error": {"message": f"{KEY} and {other} " + "x" * 5000}}})
    with pytest.raises(ModelError) as caught:
        await opened("openai:gpt-4o", naps).ask(ASKED)
    message = str(caught.value)
    assert f"{MASK} and [secret masked 2]" in message
    assert KEY not in message
    assert other not in message
    assert len(message) < 500


async def test_a_password_in_the_base_url_is_not_shown(wire: Wire, naps: Naps) -> None:
    url = f"http://me:hunter2hunter2@127.0.0.1:{wire.port}/v1?token=abc"
    wire.plays({"status": 404, "body": {"error": {"message": f"nothing at {url}"}}})
    with pytest.raises(ModelError) as caught:
        await opened("openai:gpt-4o", naps, CallSettings(base_url=url)).ask(ASKED)
    assert "hunter2" not in str(caught.value)
    assert f"at http://127.0.0.1:{wire.port}/v1 failed" in str(caught.value)


async def test_a_server_that_is_not_there(naps: Naps) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(ModelError, match=r"tried 4 times.*Check the network and the base URL"):
        await opened("openai:local-server", naps, CallSettings(base_url=url)).ask(ASKED)


async def test_a_hang_ends_in_the_time_out(wire: Wire, naps: Naps) -> None:
    wire.plays({"hang": True})
    model = opened("openai:gpt-4o", naps, CallSettings(timeout=0.2, attempts=1))
    began = time.monotonic()
    with pytest.raises(ModelError, match=r"no answer within 0\.2 s"):
        await model.ask(ASKED)
    assert time.monotonic() - began < 10


def test_masking_takes_the_longest_secret_first() -> None:
    assert masked("abcdef abc Bearer 0123456789zyxwvu", ["abc", "abcdef"]) == f"{MASK} {MASK} Bearer [secret masked 2]"


@pytest.mark.parametrize(("name", "variable"), [("ollama", "OLLAMA"), ("vllm", "VLLM")])
async def test_a_server_of_the_user_that_is_down_is_answered_with_what_starts_it(
    naps: Naps, monkeypatch: pytest.MonkeyPatch, name: str, variable: str
) -> None:
    with socket.socket() as taken:  # nobody listens there
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv(f"{variable}_BASE_URL", f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        with pytest.raises(
            ModelError, match=rf"Start the server with: {name} serve.* set {variable}_BASE_URL to its address\.$"
        ):
            await opened(f"{name}:qwen3", naps).ask(ASKED)


async def test_a_model_that_ollama_has_not_is_answered_with_what_fetches_it(
    wire: Wire, naps: Naps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", wire.url)
    wire.plays({"status": 404, "body": {"error": {"message": "model 'qwen3:8b' not found"}}})
    with pytest.raises(ModelError, match=r"Fetch it with: ollama pull qwen3:8b\.$"):
        await opened("ollama:qwen3:8b", naps).ask(ASKED)
