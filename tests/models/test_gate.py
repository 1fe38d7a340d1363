import json
from collections.abc import Awaitable, Callable

import pytest
from inline_snapshot import snapshot
from wire_client import KEY, Wire

from mulligan.core.errors import BadAnswer, InvalidInput, ModelError, OverBudget
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter
from mulligan.core.protocols import Journal, Model
from mulligan.core.questions import Answer, Message, Question, Sampling
from mulligan.core.records import Image, Json, Usage
from mulligan.models.catalog import open_model
from mulligan.models.gate import Gate, check_prices, estimate
from mulligan.models.scripted import ScriptedModel
from mulligan.models.settings import CallSettings
from mulligan.recording.journal import NoJournal

ASKED = Question((Message("user", "one two three four"),))
SCHEMA = {"type": "object", "properties": {"passed": {"type": "boolean"}}}
JUDGED = Question((Message("user", "Is it right?"),), SCHEMA)


class Notes:
    """A journal in memory that keeps JSON text, as a file would."""

    def __init__(self) -> None:
        self.done: dict[str, tuple[str, str]] = {}
        self.counts: dict[str, int] = {}

    def again(self) -> "Notes":
        """The same records, in a new drive."""
        self.counts = {}
        return self

    async def step(
        self, name: str, request: Json, do: Callable[[], Awaitable[Json]], *, repeatable: bool = True
    ) -> Json:
        self.counts[name] = self.counts.get(name, 0) + 1
        key = f"{name}#{self.counts[name]}"
        asked = json.dumps(request, sort_keys=True, allow_nan=False)
        if key in self.done:
            assert self.done[key][0] == asked, "diverged"
        else:
            self.done[key] = (asked, json.dumps(await do(), allow_nan=False))
        return json.loads(self.done[key][1])


def gate(
    model: Model,
    limits: Limits,
    meter: Meter | None = None,
    *,
    journal: Journal | None = None,
    spent: Usage = Usage(),
    role: str = "actor",
) -> Gate:
    journal = journal or NoJournal()
    meter = meter or Meter()
    meter.before = spent
    return Gate(model, role=role, journal=journal, meter=meter, limits=limits)


async def test_a_call_is_journaled_whole_and_metered() -> None:
    notes, meter = Notes(), Meter()
    model = ScriptedModel(["five six"])
    question = Question((Message("system", "Be brief."), Message("user", "See:", (Image("image/png", b"png"),))))
    ours = gate(model, Limits(), meter, journal=notes, role="reflector")
    answer = await ours.ask(question, Sampling(0.8, 100, 7, ("END",)))
    assert answer == Answer("five six", "scripted", Usage(3, 2, 1, 0.0))
    assert meter.usage == answer.usage
    assert (ours.name, ours.id) == ("scripted", "scripted")
    [(key, (request, result))] = notes.done.items()
    assert key == "model.reflector#1"
    assert json.loads(request) == snapshot(
        {
            "messages": [
                {"role": "system", "text": "Be brief."},
                {"images": [{"data": "cG5n", "media_type": "image/png"}], "role": "user", "text": "See:"},
            ],
            "model": "scripted",
            "sampling": {"max_tokens": 100, "seed": 7, "stop": ["END"], "temperature": 0.8},
            "schema": None,
        }
    )
    assert json.loads(result) == snapshot(
        {
            "content": "five six",
            "model": "scripted",
            "usage": {"input_tokens": 3, "output_tokens": 2, "calls": 1, "cost": 0.0},
        }
    )


async def test_a_replayed_call_is_metered_and_neither_made_nor_refused() -> None:
    notes = Notes()
    first = await gate(ScriptedModel(["five"]), Limits(), journal=notes).ask(ASKED)
    meter, silent = Meter(), ScriptedModel([])
    tight = gate(silent, Limits(tokens=1), meter, journal=notes.again(), spent=Usage(10, 10, 1))
    assert await tight.ask(ASKED) == first
    assert meter.usage == first.usage
    assert silent.questions == []
    with pytest.raises(OverBudget):
        await tight.ask(ASKED)


async def test_tokens_are_held_call_by_call() -> None:
    meter = Meter()
    ours = gate(ScriptedModel(["five six"] * 9), Limits(tokens=18), meter)
    for _ in range(3):
        await ours.ask(ASKED)
    with pytest.raises(OverBudget, match="the token limit: 18 of 18 tokens used"):
        await ours.ask(ASKED)
    assert meter.usage.tokens == 18


async def test_what_was_used_before_a_resume_counts() -> None:
    ours = gate(ScriptedModel(["five"]), Limits(tokens=100), spent=Usage(60, 40, 3))
    with pytest.raises(OverBudget, match="100 of 100 tokens used"):
        await ours.ask(ASKED)


async def test_a_question_that_does_not_fit_is_not_asked() -> None:
    model = ScriptedModel(["five"])
    with pytest.raises(OverBudget, match="0 of 20 tokens used, and the next question alone takes about 250"):
        await gate(model, Limits(tokens=20)).ask(Question((Message("user", "x" * 1000),)))
    assert model.questions == []


@pytest.mark.parametrize(("wanted", "sent"), [(None, 75), (500, 75), (30, 30)])
async def test_max_tokens_is_capped_to_what_is_left(wanted: int | None, sent: int) -> None:
    notes, model = Notes(), ScriptedModel(["five"])
    question = Question((Message("user", "x" * 60),))
    ours = gate(model, Limits(tokens=100), journal=notes, spent=Usage(5, 5, 1))
    await ours.ask(question, Sampling(max_tokens=wanted))
    assert model.samplings[0].max_tokens == sent
    [(request, _)] = notes.done.values()
    assert json.loads(request)["sampling"]["max_tokens"] == wanted, "the budget is no part of the request"


async def test_cost_is_held_call_by_call() -> None:
    ours = gate(ScriptedModel(["five"] * 9, cost=0.4), Limits(cost=1.0), spent=Usage(cost=0.1))
    for _ in range(3):
        await ours.ask(ASKED)
    with pytest.raises(OverBudget, match=r"the cost limit: \$1\.3000 of \$1\.0000 spent"):
        await ours.ask(ASKED)


async def test_a_known_price_caps_the_answer(wire: Wire) -> None:
    wire.plays("hello")
    dear = open_model("openai:mine", settings=CallSettings(input_price=1.0, output_price=1000.0))
    await gate(dear, Limits(cost=0.05)).ask(Question((Message("user", "x" * 40),)))
    assert wire.bodies[0]["max_tokens"] == 49  # $0.05 less ten tokens of input, at a tenth of a cent a token


async def test_a_cost_limit_that_nobody_can_hold_is_refused_before_any_call(wire: Wire) -> None:
    qwen = open_model("alibaba:qwen-plus")
    with pytest.raises(InvalidInput, match=r"the price of alibaba:qwen-plus is unknown.*input_price"):
        check_prices([ScriptedModel([]), qwen], Limits(cost=1.0))
    check_prices([qwen], Limits(tokens=10))
    check_prices([ScriptedModel([]), open_model("openai:gpt-4o")], Limits(cost=1.0))
    assert wire.requests == []


async def test_a_cost_that_turns_out_unknown_stops_the_next_call() -> None:
    ours = gate(ScriptedModel(["five"] * 2, cost=None), Limits(cost=1.0))
    await ours.ask(ASKED)
    with pytest.raises(InvalidInput, match="is unknown"):
        await ours.ask(ASKED)


async def test_json_that_cannot_be_read_is_asked_for_once_more_as_a_step_of_its_own() -> None:
    notes, meter = Notes(), Meter()
    model = ScriptedModel(["It passed.", '{"passed": true}'])
    answer = await gate(model, Limits(), meter, journal=notes, role="judge").ask(JUDGED)
    assert answer.content == {"passed": True}
    assert list(notes.done) == ["model.judge#1", "model.judge#2"]
    assert meter.usage.calls == 2
    assert [(m.role, m.text.split(": ")) for m in model.questions[1].messages] == snapshot(
        [
            ("user", ["Is it right?"]),
            ("assistant", ["It passed."]),
            (
                "user",
                [
                    "That cannot be read",
                    "the answer is not valid JSON",
                    "Expecting value",
                    "line 1 column 1 (char 0). Answer again, with nothing but JSON that fits the schema.",
                ],
            ),
        ]
    )


async def test_json_that_cannot_be_read_twice_is_a_bad_answer_and_so_it_is_when_replayed() -> None:
    notes, meter = Notes(), Meter()
    with pytest.raises(BadAnswer, match="asked for JSON: the answer is not valid JSON"):
        await gate(ScriptedModel(["no", "never"]), Limits(), meter, journal=notes).ask(JUDGED)
    assert meter.usage.calls == 2
    again, silent = Meter(), ScriptedModel([])
    with pytest.raises(BadAnswer, match="asked for JSON: the answer is not valid JSON"):
        await gate(silent, Limits(), again, journal=notes.again()).ask(JUDGED)
    assert again.usage == meter.usage
    assert silent.questions == []


async def test_the_second_try_at_json_is_held_to_the_budget_too() -> None:
    model = ScriptedModel(["It passed.", '{"passed": true}'])
    with pytest.raises(OverBudget):
        await gate(model, Limits(tokens=estimate(JUDGED) + 1)).ask(JUDGED)
    assert len(model.questions) == 1


async def test_an_answer_that_cannot_be_used_is_paid_for_all_the_same(wire: Wire) -> None:
    wire.plays({"answer": "", "finish": "content_filter", "usage": [50, 7]})
    notes, meter = Notes(), Meter()
    with pytest.raises(ModelError, match="content filter"):
        await gate(open_model("openai:gpt-4o"), Limits(), meter, journal=notes).ask(ASKED)
    assert meter.usage.tokens == 57
    assert notes.done == {}, "an error is not a result: a resume asks again"


async def test_thinking_that_used_the_budget_up_is_a_matter_of_the_budget(wire: Wire) -> None:
    wire.plays({"answer": "", "finish": "length", "usage": [10, 90]})
    with pytest.raises(OverBudget, match="100 of 100 tokens used"):
        await gate(open_model("openai:gpt-4o"), Limits(tokens=100)).ask(ASKED)


async def test_the_journal_holds_no_key(wire: Wire) -> None:
    wire.plays("hello")
    notes = Notes()
    await gate(open_model("anthropic:claude-haiku-4-5"), Limits(), journal=notes).ask(ASKED)
    assert KEY in json.dumps(wire.requests)
    assert KEY not in str(notes.done)
