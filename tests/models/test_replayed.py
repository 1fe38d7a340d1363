import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mulligan.core.codec import digest
from mulligan.core.errors import BadAnswer, InvalidInput, ModelError
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter
from mulligan.core.protocols import Model
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.records import Json
from mulligan.models.catalog import open_model
from mulligan.models.gate import Gate
from mulligan.models.scripted import ScriptedModel
from mulligan.text.secrets import mask_json

ASKED = Question((Message("system", "be brief"), Message("user", "Task: add two numbers\nwith care")))
JUDGED = Question((Message("user", "Is it right?"),), {"type": "object"})
WARM = Sampling(temperature=0.8)


class Tape:
    """A journal that writes down what `mulligan runs export` would."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = [{"key": "trial.1/act/command#1", "request": {}, "result": {"exit": 0}}]

    async def step(self, name: str, request: Json, do: Any, *, repeatable: bool = True) -> Json:
        result = await do()
        key = f"trial.{len(self.steps)}/act/{name}#1"
        self.steps.append({"key": key, "request": request, "request_hash": digest(request), "result": result})
        return result

    def save(self, file: Path) -> Path:
        file.write_text(json.dumps({"steps": self.steps}))
        return file


def gated(model: Model, tape: Tape) -> Gate:
    return Gate(model, role="actor", journal=tape, meter=Meter(), limits=Limits())


async def recorded(folder: Path) -> Path:
    tape = Tape()
    model = gated(ScriptedModel(["first", "second", "warm", "no json", {"passed": True}]), tape)
    for question, sampling in [(ASKED, Sampling()), (ASKED, Sampling()), (ASKED, WARM), (JUDGED, Sampling())]:
        await model.ask(question, sampling)
    return tape.save(folder / "run.json")


async def test_a_recording_answers_as_the_run_was_answered(tmp_path: Path) -> None:
    model = open_model(f"replay:{await recorded(tmp_path)}")
    assert (await model.ask(ASKED, WARM)).content == "warm"
    first = await model.ask(ASKED)
    assert (first.content, first.model, first.usage.tokens) == ("first", "scripted", 9)
    assert (await model.ask(ASKED)).content == "second"


async def test_a_question_whose_secrets_were_masked_in_the_export_is_found(tmp_path: Path) -> None:
    tape = Tape()
    question = Question((Message("user", "Why does sk-0123456789abcdefgh not work?"),))
    await gated(ScriptedModel(["It is no key."]), tape).ask(question)
    tape.steps = mask_json(tape.steps)
    assert "0123456789abcdefgh" not in tape.save(tmp_path / "run.json").read_text()
    assert (await open_model(f"replay:{tmp_path / 'run.json'}").ask(question)).content == "It is no key."


async def test_a_recording_stands_in_for_the_model_behind_the_gate(tmp_path: Path) -> None:
    model = gated(open_model(f"replay:{await recorded(tmp_path)}"), Tape())
    assert (await model.ask(JUDGED)).content == {"passed": True}


async def test_an_answer_that_was_no_json_is_none_again(tmp_path: Path) -> None:
    model = open_model(f"replay:{await recorded(tmp_path)}")
    with pytest.raises(BadAnswer, match="not valid JSON"):
        await model.ask(JUDGED)


async def test_an_unknown_question_is_told_what_differs(tmp_path: Path) -> None:
    model = open_model(f"replay:{await recorded(tmp_path)}")
    changed = replace(ASKED, messages=(ASKED.messages[0], Message("user", "Task: add two numbers\nin haste")))
    with pytest.raises(ModelError, match=r"not recorded; the nearest is trial\.1/act/.*differs in messages\.1\.text\."):
        await model.ask(changed)
    with pytest.raises(ModelError, match=r"differs in sampling\.temperature\."):
        await model.ask(ASKED, Sampling(temperature=0.9))


async def test_one_time_too_many_is_reported_too(tmp_path: Path) -> None:
    model = open_model(f"replay:{await recorded(tmp_path)}")
    await model.ask(ASKED, WARM)
    with pytest.raises(ModelError, match=r"recorded 1 times and is asked once more \(last at trial\.3"):
        await model.ask(ASKED, WARM)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no json", "is not an export of a run"),
        ("[]", "is not an export of a run"),
        ('{"steps": [{}]}', "is not an export of a run"),
        ('{"steps": []}', "contains no finished model call"),
        (
            '{"steps": [{"key": "a/model.actor#1", "request": {"messages": []}, "result": null}]}',
            "no finished model call",
        ),
    ],
)
def test_a_file_that_is_not_a_recording_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InvalidInput, match=says):
        open_model(f"replay:{tmp_path / 'run.json'}")
