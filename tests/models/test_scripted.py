from pathlib import Path

import pytest

from mulligan.core.errors import BadAnswer, InvalidInput, ModelError
from mulligan.core.protocols import Model
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.records import Usage
from mulligan.models.catalog import open_model
from mulligan.models.scripted import ScriptedModel

ASKED = Question((Message("system", "be brief"), Message("user", "one two three")))
JUDGED = Question(ASKED.messages, {"type": "object"})


async def test_answers_come_in_order_and_questions_are_kept() -> None:
    model = ScriptedModel(["a b c", {"passed": True}])
    assert isinstance(model, Model)
    assert (await model.ask(ASKED, Sampling(0.8))).content == "a b c"
    assert (await model.ask(JUDGED)).content == {"passed": True}
    assert model.questions == [ASKED, JUDGED]
    assert model.samplings == [Sampling(0.8), Sampling()]


async def test_usage_is_counted_in_words() -> None:
    assert (await ScriptedModel(["a b c"], cost=0.5).ask(ASKED)).usage == Usage(5, 3, calls=1, cost=0.5)
    assert (await ScriptedModel(["a b c"], cost=None).ask(ASKED)).usage.cost is None


async def test_the_end_of_the_script_is_reported_clearly() -> None:
    model = ScriptedModel(["only one"], name="judge")
    await model.ask(ASKED)
    with pytest.raises(ModelError, match=r"judge has 1 answer but was asked for number 2.*'one two three'"):
        await model.ask(ASKED)


async def test_an_exception_in_the_script_is_raised() -> None:
    with pytest.raises(ModelError, match="out of order"):
        await ScriptedModel([ModelError("out of order")]).ask(ASKED)


async def test_a_function_answers_by_the_question() -> None:
    model = ScriptedModel(lambda question, sampling: f"{question.messages[-1].text} at {sampling.temperature}")
    assert (await model.ask(ASKED, Sampling(0.8))).content == "one two three at 0.8"
    assert (await model.ask(ASKED)).content == "one two three at None"


async def test_text_for_a_question_with_a_schema_is_read_as_a_providers() -> None:
    model = ScriptedModel(['Well: ```json\n{"passed": false}\n```', "Well."])
    assert (await model.ask(JUDGED)).content == {"passed": False}
    with pytest.raises(BadAnswer):
        await model.ask(JUDGED)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("answers.txt", "first\nline\n---\n\nsecond\n---\n"),
        ("answers.md", "first\r\nline\r\n---\r\nsecond"),
        ("answers.json", '["first\\nline", "second"]'),
        ("answers.jsonl", '"first\\nline"\n\n"second"\n'),
    ],
)
async def test_a_script_comes_from_a_file(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    model = open_model(f"scripted:{file}")
    assert [(await model.ask(ASKED)).content for _ in range(2)] == ["first\nline", "second"]
    assert model.name == f"scripted:{name}"
    assert str(tmp_path) not in model.id


async def test_an_answer_may_contain_any_separator_of_lines(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('"one\u2028two\x85"\r\n"three"', encoding="utf-8", newline="")
    model = open_model(f"scripted:{tmp_path}/a.jsonl")
    assert [(await model.ask(ASKED)).content for _ in range(2)] == ["one\u2028two\x85", "three"]


def test_the_id_tells_scripts_apart(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    before = open_model(f"scripted:{tmp_path}/a.txt").id
    (tmp_path / "a.txt").write_text("two")
    assert open_model(f"scripted:{tmp_path}/a.txt").id != before


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", "[", "a.json, line 1: Expecting value"),
        ("a.jsonl", '"a"\n{', "a.jsonl, line 2"),
        ("a.jsonl", "[" * 100_000, "a.jsonl, line 1: maximum recursion depth"),
        ("a.json", '{"a": 1}', "must contain a list"),
        ("a.json", "[1]", "must contain a list"),
        ("a.txt", "---\n\n", "contains no answer"),
    ],
)
def test_a_script_that_cannot_work_is_refused(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=says):
        open_model(f"scripted:{tmp_path / name}")
