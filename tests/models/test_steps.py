"""A step of an agent: one answer, or tools called until finish, with what goes wrong told to the model."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.errors import BadAnswer, InvalidInput, ModelError, ToolError
from mulligan.core.protocols import ToolResult
from mulligan.core.questions import Question, Sampling, Tool, ToolCall
from mulligan.core.records import Artifact, Check, Image, Json, Step
from mulligan.models.scripted import ScriptedModel
from mulligan.models.steps import MAX_CALLS, MAX_RESULT_CHARACTERS, Performed, Skill, StepFile, call_of, perform, shown
from mulligan.recording.journal import NoJournal

ANY = {"type": "object"}
LOOKING = Skill("looking", "How to look things up.", "Look with `look`.", ("look",), ("deeper",))
DEEPER = Skill("deeper", "How to look deeper.", "Use `dig`.", ("dig",))
CLASHING = Skill("clashing", "Two of one name.", "Look.", ("look", "other"))
BROKEN = Skill("broken", "What cannot be had.", "Never read.", ("look", "down"))
SKILLS = {skill.name: skill for skill in (LOOKING, DEEPER, CLASHING, BROKEN)}


class Box:
    """Tools that are functions. `calls` is what was called, `seen` the results that it was told of."""

    OFFERS: Mapping[str, Sequence[Tool]] = {
        "look": [Tool("look", "Look something up.", ANY, repeatable=True)],
        "dig": [Tool("dig", "Dig.", ANY)],
        "other": [Tool(name, "Another.", ANY) for name in ("look", "finish", "read_skill", "fine")],
    }

    def __init__(self, answer: Callable[[Mapping[str, Json]], ToolResult] = lambda _: ToolResult("found")) -> None:
        self._answer = answer
        self.calls: list[tuple[str, str, Json]] = []
        self.seen: list[ToolResult] = []

    async def offer(self, source: str) -> Sequence[Tool]:
        if source not in self.OFFERS:
            raise ToolError(f"the server {source} does not answer.")
        return self.OFFERS[source]

    async def call(self, source: str, tool: str, arguments: Mapping[str, Json]) -> ToolResult:
        self.calls.append((source, tool, arguments))
        return self._answer(arguments)

    def saw(self, result: ToolResult) -> None:
        self.seen.append(result)

    async def check(self, action: str, tool: Tool, tools: Sequence[Tool], steps: Sequence[Step]) -> Check | None:
        return None

    async def artifacts(self, trial: int) -> tuple[Artifact, ...]:
        return ()


class Recorder(NoJournal):
    """Keeps what was asked of it. `recorded` stands for what a former drive left, by number."""

    def __init__(self, recorded: Sequence[Json] = ()) -> None:
        self.steps: list[tuple[str, Json, bool]] = []
        self._recorded = list(recorded)

    async def step(self, name: str, request: Json, do: Any, *, repeatable: bool = True) -> Json:
        self.steps.append((name, request, repeatable))
        return self._recorded.pop(0) if self._recorded else await super().step(name, request, do)


def line(tool: str, **arguments: Json) -> dict[str, Json]:
    return {"tool": tool, "arguments": arguments}


DONE = line("finish", key="done", value="the end")
READ = line("read_skill", name="looking")


def react(**changes: Any) -> StepFile:
    return StepFile("Be good.", "react", uses=("looking", "clashing", "broken"), skills=SKILLS, **changes)


async def performed(
    *lines: Any, box: Box | None = None, step: StepFile | None = None, journal: Recorder | None = None
) -> tuple[Performed, ScriptedModel]:
    model = ScriptedModel(lines)
    made = await perform(step or react(), "Do it.", model, journal or NoJournal(), box or Box(), 7)
    return made, model


def told(model: ScriptedModel) -> str:
    """The last thing that the model was told."""
    return model.questions[-1].messages[-1].text


def offered(model: ScriptedModel, number: int = -1) -> list[str]:
    return [tool.name for tool in model.questions[number].tools]


async def test_oneshot_asks_once_without_tools() -> None:
    step = StepFile(" Be good.\n", "oneshot", temperature=0.5, max_tokens=9, uses=("looking",), skills=SKILLS)
    made, model = await performed("  An answer.\n", step=step)
    assert made == Performed("An answer.")
    (question,) = model.questions
    assert [(m.role, m.text) for m in question.messages] == [("system", "Be good."), ("user", "Do it.")]
    assert question.tools == ()
    assert model.samplings == [Sampling(0.5, 9, 7)]


async def test_images_go_along() -> None:
    image = Image("image/png", b"hi")
    for pattern in ("oneshot", "react"):
        model = ScriptedModel(["fine"])
        await perform(StepFile("", pattern), "Look.", model, NoJournal(), Box(), 0, (image,))
        assert model.questions[0].messages[-1].images == (image,)


async def test_finish_ends_with_key_and_value() -> None:
    made, model = await performed({**line("finish", key=" retry ", value=" more \n"), "text": "I think."})
    assert made == Performed("more", "retry", (Step("I think.", "finish(key='retry')"),))
    assert offered(model) == ["finish", "read_skill"]
    assert model.questions[0].messages[0].text == (
        "Be good.\n\nAvailable skills. Read one with read_skill(name) before you need what it says:\n"
        "- looking: How to look things up.\n- clashing: Two of one name.\n- broken: What cannot be had."
    )


async def test_a_value_that_is_not_text_is_its_json() -> None:
    made, _ = await performed(line("finish", key="done", value={"ü": [1, None]}))
    assert made.text == '{"ü": [1, null]}'


async def test_plain_text_ends_without_a_key() -> None:
    made, _ = await performed(READ, "RETRY: not yet")
    assert (made.text, made.key, made.halted) == ("RETRY: not yet", None, None)
    assert [step.action for step in made.steps] == ['read_skill(name="looking")']


@pytest.mark.parametrize("arguments", [{}, {"key": "done"}, {"value": "x"}])
async def test_a_finish_that_lacks_something_is_asked_for_again(arguments: dict[str, Json]) -> None:
    made, model = await performed(line("finish", **arguments), DONE)
    assert made.key == "done"
    assert told(model) == "[error: finish needs key and value, both texts]"


async def test_reading_a_skill_unlocks_its_tools_and_its_skills() -> None:
    box, journal = Box(), Recorder()
    made, model = await performed(
        READ, line("look", at="a"), line("read_skill", name="deeper"), line("dig"), DONE, box=box, journal=journal
    )
    assert [offered(model, n)[2:] for n in range(5)] == [[], ["look"], ["look"], ["look", "dig"], ["look", "dig"]]
    assert box.calls == [("look", "look", {"at": "a"}), ("dig", "dig", {})]
    assert made.steps[0].observation == (
        "Look with `look`.\n\nTools that you can call now: look\n\n"
        "Skills that you can read now:\n- deeper: How to look deeper."
    )
    assert made.steps[1] == Step("", 'look(at="a")', "found")
    assert [(name, repeatable) for name, _, repeatable in journal.steps] == [
        *(("tool.read_skill", True), ("tool.look", True), ("tool.read_skill", True), ("tool.dig", False))
    ]
    assert journal.steps[1][1] == {"tool": "look", "arguments": {"at": "a"}}
    assert [m.role for m in model.questions[-1].messages] == ["system", "user", *(["assistant", "tool"] * 4)]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (line("look"), "[error: there is no tool 'look' here; there are finish, read_skill]"),
        (
            line("read_skill", name="deeper"),
            "[error: there is no skill 'deeper' here; there are looking, clashing, broken]",
        ),
        (line("read_skill"), "[error: there is no skill '' here; there are looking, clashing, broken]"),
        (line("read_skill", name="broken"), "[error: the server down does not answer]"),
        ({"tool": "look", "arguments": '{"a": '}, "[error: the arguments of look must be a JSON object]"),
        ({"tool": "finish", "arguments": "[]"}, "[error: the arguments of finish must be a JSON object]"),
    ],
)
async def test_what_the_model_did_wrong_goes_back_to_it(call: Json, why: str) -> None:
    box = Box()
    made, model = await performed(call, DONE, box=box)
    assert told(model) == why
    assert made.steps[0].observation == why
    assert box.calls == []


async def test_a_tool_error_goes_back_as_text() -> None:
    box = Box(lambda _: ToolResult("no such file.", failed=True, state="abc"))
    made, model = await performed(READ, line("look"), DONE, box=box)
    assert told(model) == "[error: no such file]"
    assert made.key == "done"
    assert box.seen == [ToolResult("no such file.", True, "abc")]


async def test_a_name_that_is_taken_is_not_given_twice() -> None:
    box = Box()
    _, model = await performed(line("read_skill", name="clashing"), line("look"), DONE, box=box)
    assert offered(model) == ["finish", "read_skill", "look", "fine"]
    assert box.calls == [("look", "look", {})]
    (said,) = (m.text for m in model.questions[-1].messages if "Not to be had" in m.text)
    assert said.endswith(
        "Tools that you can call now: look, fine\n\nNot to be had, because another tool has the name: "
        "look, finish, read_skill"
    )


async def test_what_was_recorded_is_not_done_again_and_the_box_is_reported() -> None:
    made, _ = await performed(READ, line("look"), DONE)
    box = Box()
    offers: Json = {"failed": "", "offers": {"look": [asdict(Box.OFFERS["look"][0])]}}
    row = asdict(ToolResult("found", state="abc"))
    again, _ = await performed(READ, line("look"), DONE, box=box, journal=Recorder([offers, row]))
    assert again == made
    assert box.calls == []
    assert box.seen == [ToolResult("found", state="abc")]


async def test_several_calls_in_one_answer_are_answered_in_order() -> None:
    box = Box(lambda arguments: ToolResult(str(arguments)))
    several = {"text": "Both.", "calls": [line("look", n=1), line("nothing"), line("look", n=2)]}
    made, model = await performed(READ, several, DONE, box=box)
    assert [m.role for m in model.questions[-1].messages[-4:]] == ["assistant", "tool", "tool", "tool"]
    assert [step.thought for step in made.steps[1:4]] == ["Both.", "", ""]
    assert [step.observation for step in made.steps[1:4]] == [
        *("{'n': 1}", "[error: there is no tool 'nothing' here; there are finish, read_skill, look]", "{'n': 2}")
    ]


async def test_of_a_flood_of_calls_only_so_many_are_made() -> None:
    box = Box()
    flood = {"calls": [line("look", n=n) for n in range(MAX_CALLS + 30)]}
    made, model = await performed(READ, flood, DONE, box=box)
    assert len(box.calls) == MAX_CALLS
    assert told(model) == f"[error: only {MAX_CALLS} calls of one answer are made]"
    assert [m.role for m in model.questions[-1].messages].count("tool") == 1 + MAX_CALLS + 30
    assert made.key == "done"


async def test_finish_among_other_calls_ends_there() -> None:
    box = Box()
    made, _ = await performed(READ, {"calls": [line("look", n=1), DONE, line("look", n=2)]}, box=box)
    assert (made.text, made.key) == ("the end", "done")
    assert box.calls == [("look", "look", {"n": 1})]


@given(st.integers(MAX_RESULT_CHARACTERS - 3, MAX_RESULT_CHARACTERS + 3), st.sampled_from(["x", "ü", "漢", "😀"]))
async def test_a_long_answer_is_cut_by_characters(length: int, character: str) -> None:
    box = Box(lambda _: ToolResult(character * length))
    made, _ = await performed(READ, line("look"), DONE, box=box)
    left = f"\n[cut: {length - MAX_RESULT_CHARACTERS} more characters]" if length > MAX_RESULT_CHARACTERS else ""
    assert made.steps[1].observation == character * min(length, MAX_RESULT_CHARACTERS) + left


async def test_the_step_limit_keeps_what_was_done_and_said() -> None:
    looking = ({**line("look", n=n), "text": f"Look {n}."} for n in range(3))
    made, model = await performed(READ, *looking, step=react(max_iter=4))
    assert made.halted == "the step limit of 4 was reached without a call of finish"
    assert (made.text, made.key, len(made.steps)) == ("Look 2.", None, 4)
    assert len(model.questions) == 4


async def test_empty_answers_and_bad_ones_are_nudged_and_count() -> None:
    made, model = await performed("", BadAnswer("It was no JSON."), " ", step=react(max_iter=3))
    assert made.halted == "the step limit of 3 was reached without a call of finish"
    assert [step.observation for step in made.steps] == [
        "[error: nothing came. Call a tool, or finish with the result.]",
        "[error: It was no JSON. Call a tool, or finish.]",
        "[error: nothing came. Call a tool, or finish with the result.]",
    ]
    assert len(model.questions) == 3


async def test_circles_are_told_once_and_end_the_step_when_they_go_on() -> None:
    again = line("look", at="the same")
    made, model = await performed(READ, *[again] * 8, step=react(max_iter=20))
    assert made.halted == ('it went in circles: The same action was taken 3 times in a row: `look(at="the same")`.')
    assert len(model.questions) == 7
    notes = [step.observation for step in made.steps if "[note: " in step.observation]
    assert notes == [
        'found\n\n[note: The same action was taken 3 times in a row: `look(at="the same")`. Do something else, or finish.]'
    ]
    assert any(message.text == notes[0] for message in model.questions[-1].messages)


async def test_one_that_turns_away_in_time_is_not_stopped() -> None:
    again = line("look", at="the same")
    made, _ = await performed(READ, *[again] * 3, line("look", at="elsewhere"), DONE)
    assert made.key == "done"


async def test_what_the_provider_raises_is_raised() -> None:
    with pytest.raises(ModelError):
        await performed(ModelError("down"))


async def test_without_skills_there_is_only_finish() -> None:
    def answer(question: Question, _: Sampling) -> Json:
        assert question.messages[0].text == "Be good."
        return DONE

    model = ScriptedModel(answer)
    made = await perform(StepFile("Be good.", "react"), "Do it.", model, NoJournal(), Box(), 0)
    assert (made.text, offered(model)) == ("the end", ["finish"])


def test_a_step_comes_back_from_its_record() -> None:
    step = react(temperature=0.1, max_tokens=5, max_iter=3)
    assert StepFile.parse(step.to_json()) == step


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"instructions": "x", "patern": "react"}, "Did you mean 'pattern'"),
        ({"pattern": "react"}, "A step needs instructions"),
        ({"instructions": "x", "pattern": "fsm"}, "react or oneshot"),
    ],
)
def test_a_record_that_is_not_a_step(table: dict[str, Json], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        StepFile.parse(table)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    name=st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True),
    arguments=st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_-]{0,8}", fullmatch=True), JSON_VALUES, max_size=3),
)
def test_a_call_that_is_shown_is_read_back(name: str, arguments: dict[str, Json]) -> None:
    call = ToolCall(name, arguments)
    assert call_of(shown(call)) == call


@given(st.text() | st.from_regex(r"\w+\(.*\)", fullmatch=True))
def test_what_is_no_call_is_refused(text: str) -> None:
    with suppress(BadAnswer):
        assert isinstance(call_of(text).arguments, dict)
