import asyncio
import gc
import logging
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from wire_client import KEY, Naps, Wire, running

from mulligan.core.errors import BadAnswer, InvalidInput, ModelError
from mulligan.core.questions import Answer, Message, Question, Sampling
from mulligan.core.records import Image, Usage
from mulligan.models.catalog import open_model
from mulligan.models.failures import Unreadable, Unusable
from mulligan.models.settings import CallSettings

ASKED = Question((Message("system", "Be brief."), Message("user", "Say hello.")))
SCHEMA = {"type": "object", "properties": {"passed": {"type": "boolean"}}, "required": ["passed"]}
JUDGED = Question((Message("user", "Is it right?"),), SCHEMA)
FORMATS = ["openai:gpt-4o", "openai-responses:gpt-5.6-luna", "anthropic:claude-haiku-4-5", "alibaba:qwen-plus"]


@pytest.mark.parametrize("name", FORMATS)
async def test_a_text_in_every_format(wire: Wire, name: str) -> None:
    wire.plays({"answer": "hello", "usage": [1000, 100], "model": "the-model-that-answered"})
    answer = await open_model(name).ask(ASKED)
    provider = name.partition(":")[0]
    assert (answer.content, answer.model) == ("hello", f"{provider}:the-model-that-answered")
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.calls) == (1000, 100, 1)


@pytest.mark.parametrize("name", FORMATS)
async def test_json_in_every_format(wire: Wire, name: str) -> None:
    wire.plays({"answer": {"passed": True}})
    assert (await open_model(name).ask(JUDGED)).content == {"passed": True}


async def test_what_goes_over_the_wire_to_a_server_of_openai_format(wire: Wire) -> None:
    wire.plays("hello")
    picture = Message("user", "And this?", (Image("image/png", b"png"),))
    question = Question((*ASKED.messages, Message("assistant", "Hello."), picture))
    await open_model("openai:qwen2.5").ask(question, Sampling(0.8, 50, 7, ("\n\n",)))
    assert wire.bodies == snapshot(
        [
            {
                "messages": [
                    {"content": "Be brief.", "role": "system"},
                    {"role": "user", "content": "Say hello."},
                    {"role": "assistant", "content": "Hello."},
                    {
                        "role": "user",
                        "content": [
                            {"text": "And this?", "type": "text"},
                            {"image_url": {"url": "data:image/png;base64,cG5n"}, "type": "image_url"},
                        ],
                    },
                ],
                "model": "qwen2.5",
                "seed": 7,
                "stop": ["\n\n"],
                "stream": False,
                "temperature": 0.8,
                "max_tokens": 50,
            }
        ]
    )
    assert wire.requests[0]["path"] == "/v1/chat/completions"
    assert wire.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"


async def test_costs_come_from_the_price_tables(wire: Wire) -> None:
    wire.plays(*[{"answer": "hello", "usage": [1000, 100]}] * 4)
    assert (await open_model("openai:gpt-4o").ask(ASKED)).usage.cost == pytest.approx(0.0035)
    assert (await open_model("anthropic:claude-haiku-4-5").ask(ASKED)).usage.cost == pytest.approx(0.0015)
    assert (await open_model("alibaba:qwen-plus").ask(ASKED)).usage.cost is None
    told = CallSettings(input_price=2.0, output_price=10.0)
    assert (await open_model("alibaba:qwen-plus", settings=told).ask(ASKED)).usage.cost == pytest.approx(0.003)


async def test_a_server_on_this_machine_costs_nothing(wire: Wire) -> None:
    wire.plays({"answer": "hello", "usage": [1000, 100]})
    model = open_model("ollama:qwen3", settings=CallSettings(base_url=wire.url))
    assert (await model.ask(ASKED)).usage == Usage(1000, 100, calls=1, cost=0.0)


async def test_a_server_that_counts_nothing_is_guessed_at(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    wire.plays({"answer": "x" * 400, "usage": None})
    answer = await open_model("openai:gpt-4o").ask(ASKED)
    assert answer.usage.output_tokens == 101
    assert "reports no usage" in caplog.text


async def test_a_server_without_json_schema_is_asked_in_another_way(wire: Wire) -> None:
    def no(what: str) -> dict[str, Any]:
        return {"status": 400, "body": {"error": {"message": f"{what} is not supported"}}}

    wire.plays(
        no("response_format"), no("tool_choice"), '```json\n{"passed": false}\n```', {"answer": {"passed": True}}
    )
    model = open_model("openai:tiny")
    assert (await model.ask(JUDGED)).content == {"passed": False}
    assert (await model.ask(JUDGED)).content == {"passed": True}
    native, tool, prompted, later = wire.bodies
    assert native["response_format"]["type"] == "json_schema"
    assert tool["tools"][0]["function"]["name"] == "answer"
    assert '"passed"' in prompted["messages"][0]["content"]
    assert prompted.keys() == later.keys()


async def test_a_refused_temperature_is_left_out(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    refusal = {"status": 400, "body": {"error": {"message": "Unsupported value: 'temperature' must be 1."}}}
    wire.plays(refusal, "hello", "hello again")
    model = open_model("openai:thinker")
    assert (await model.ask(ASKED, Sampling(0.8))).content == "hello"
    await model.ask(ASKED, Sampling(0.8))
    assert ["temperature" in body for body in wire.bodies] == [True, False, False]
    assert caplog.text.count("does not support temperature") == 1


@pytest.mark.parametrize("name", ["openai:o3", "anthropic:claude-haiku-5-5"])
async def test_a_known_reasoning_model_gets_no_temperature(
    wire: Wire, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    wire.plays("hello")
    await open_model(name).ask(ASKED, Sampling(0.8))
    assert "temperature" not in wire.bodies[0]
    assert "does not support temperature" in caplog.text


async def test_max_tokens_goes_out_under_the_name_that_is_asked_for(wire: Wire) -> None:
    refusal = {"status": 400, "body": {"error": {"message": "Use 'max_completion_tokens', not 'max_tokens'."}}}
    wire.plays(refusal, "hello")
    await open_model("openai:new").ask(ASKED, Sampling(max_tokens=9))
    assert [body.get("max_completion_tokens") for body in wire.bodies] == [None, 9]


async def test_stop_sequences_hold_where_the_provider_has_none(wire: Wire) -> None:
    wire.plays("one\ntwo")
    answer = await open_model("openai-responses:gpt-5.6-luna").ask(ASKED, Sampling(stop=("\n",)))
    assert answer.content == "one"


async def test_an_answer_cut_off_is_an_answer(wire: Wire) -> None:
    wire.plays({"answer": "hel", "finish": "length"})
    assert (await open_model("openai:gpt-4o").ask(ASKED)).content == "hel"


async def test_json_cut_off_says_so_and_what_it_took(wire: Wire) -> None:
    wire.plays({"answer": '{"pas', "finish": "length", "usage": [5, 20]})
    with pytest.raises(BadAnswer, match=r"cut off after 20 tokens: raise max_tokens") as caught:
        await open_model("openai:gpt-4o").ask(JUDGED)
    assert isinstance(caught.value, Unreadable)
    assert not caught.value.again
    assert caught.value.usage.tokens == 25


async def test_an_empty_answer_is_one_unless_thinking_took_it_all(wire: Wire) -> None:
    wire.plays("", {"answer": "", "finish": "length", "usage": [5, 20]})
    model = open_model("openai:gpt-4o")
    assert (await model.ask(ASKED)).content == ""
    with pytest.raises(ModelError, match="used all 20 tokens before it started to answer"):
        await model.ask(ASKED)


@pytest.mark.parametrize("name", ["openai:gpt-4o", "anthropic:claude-haiku-4-5"])
async def test_a_content_filter_is_an_error_that_was_paid_for(wire: Wire, name: str) -> None:
    wire.plays({"answer": "I'd ra", "finish": "content_filter", "usage": [5, 20]})
    with pytest.raises(Unusable, match="content filter") as caught:
        await open_model(name).ask(ASKED)
    assert caught.value.usage.tokens == 25


async def test_images_belong_to_the_user(wire: Wire) -> None:
    with pytest.raises(InvalidInput, match="Only user messages can contain images"):
        await open_model("openai:gpt-4o").ask(Question((Message("system", "", (Image("image/png", b""),)),)))


async def test_no_more_calls_at_once_than_set_over_all_models_of_a_provider(wire: Wire) -> None:
    wire.plays({"when": "hello", "answer": "hello", "delay": 0.05})
    settings = CallSettings(parallel=2)
    models = [open_model(name, settings=settings) for name in ("openai:one", "openai:two", "openai:three")]
    answers: list[Answer] = await asyncio.gather(*(model.ask(ASKED) for model in models for _ in range(3)))
    assert [answer.content for answer in answers] == ["hello"] * 9
    assert wire.log["most"] == 2


async def test_keys_stay_out_of_the_log(wire: Wire, naps: Naps, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    wire.plays({"status": 500, "body": {"error": {"message": f"key {KEY} broke us"}}}, "hello")
    await open_model("openai:gpt-4o", sleep=naps.sleep).ask(ASKED)
    assert "attempt 1 of 4 failed (500 key [secret masked] broke us.)" in caplog.text
    assert KEY not in caplog.text


@pytest.mark.slow
def test_a_model_outlives_its_event_loop(wire: Wire) -> None:
    wire.plays("one", "two")
    model = open_model("openai:gpt-4o")
    assert [asyncio.run(model.ask(ASKED)).content for _ in range(2)] == ["one", "two"]
    gc.collect()  # a connection left open would warn here, and warnings are errors


async def test_the_server_answers_by_what_it_is_asked_and_never_runs_out_of_that(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text('[{"when": "hello", "answer": "greeted"}, "first"]')
    with running("--answers", str(file)) as server:
        model = open_model("openai:any", settings=CallSettings(base_url=server.url, attempts=1))
        other = Question((Message("user", "Something else."),))
        asked = (ASKED, other, ASKED)
        assert [(await model.ask(question)).content for question in asked] == ["greeted", "first", "greeted"]
        with pytest.raises(ModelError, match="no more answers"):
            await model.ask(other)
