"""Any sequence of calls: without an id as the seed's server answers, with one in the order of the machine or not at all."""

import asyncio
import json
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reflexion_clients import told
from repetition import repeats

from mulligan.app.service import Service
from mulligan.core.codec import to_json
from mulligan.mcp_server.tool import ConnectionState

Call = dict[str, Any]
Move = tuple[str, Call, int]
DEPTH = 3
many = settings(max_examples=repeats(400))


class World:
    """One service for all examples; each has a connection, or an episode, of its own."""

    def __init__(self, runner: asyncio.Runner, service: Service) -> None:
        self._runner, self.service = runner, service

    def tell(self, link: ConnectionState | None, call: Call) -> tuple[bool, dict[str, Any], str]:
        """Whether it was refused, the answer, and the text of it."""
        reply = self._runner.run(told(self.service, link, call))
        return reply.error, json.loads(reply.text), reply.text

    def record(self, id: str) -> Any:
        async def read() -> Any:
            store = self.service.store
            steps = [(row.key, row.request, row.result, row.done) for row in await store.steps(id)]
            return to_json(await store.load(id)), steps

        return self._runner.run(read())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setenv("MULLIGAN_HOME", str(tmp_path_factory.mktemp("world")))
        service = Service()
        yield World(runner, service)
        runner.run(service.close())


class Seed:
    """The seed's server, by what is known of it (spec/mcp-reference.md); what ours mends is marked."""

    def __init__(self) -> None:
        self.memory: list[str] = []
        self.history = 0
        self.task = ""

    def call(self, a: Call) -> Any:
        for name in ("trialNumber", "maxTrials"):
            number = a.get(name)
            if isinstance(number, bool) or not isinstance(number, int | float) or number < 1 or number % 1:  # mended
                return {"error": f"Invalid '{name}': must be a positive integer."}
        if a["trialNumber"] > a["maxTrials"]:
            return {"error": "'trialNumber' cannot exceed 'maxTrials'."}
        kind, override = a.get("stepType"), a.get("memoryOverride")
        memory = self.memory if override is None else [m for m in override if isinstance(m, str)][:DEPTH]  # mended
        numbers: Call = {"trialNumber": int(a["trialNumber"]), "maxTrials": int(a["maxTrials"])}
        wanted = {"actor": "actorInputText", "evaluator": "actorOutputText", "self-reflection": "actorOutputText"}
        if kind not in wanted:
            return {"error": f"Unknown stepType: '{kind}'. Must be 'actor', 'evaluator', or 'self-reflection'."}
        text, score, reflection = a.get(wanted[kind]), a.get("evaluatorScore"), a.get("reflectionText")
        if not isinstance(text, str):
            return {"error": f"Invalid '{wanted[kind]}': must be a string for '{kind}' step."}
        if kind == "self-reflection" and (isinstance(score, bool) or not isinstance(score, str | int | float)):
            return {"error": "Invalid 'evaluatorScore': must be a string or number for 'self-reflection' step."}
        self.memory = memory  # mended: only now
        if kind == "actor":
            self.task = text
            return {"nextStep": "evaluator", "prompt_for_actor": text, "current_memory": memory, **numbers}
        if kind == "evaluator":
            return {"nextStep": "self-reflection", "content_to_evaluate": text, **numbers}
        if reflection is None:
            prompt = {"task_description": a.get("actorInputText", self.task), "actor_output": text}
            prompt |= {"evaluator_score": score, "current_memory": memory}
            return {"nextStep": "self-reflection", "prompt_for_reflection_llm": prompt, **numbers, "message": ...}
        self.memory, self.history = [reflection, *memory][:DEPTH], self.history + 1
        after: Call = {"memory": self.memory, "next_trial_needed": a["trialNumber"] < a["maxTrials"]}
        said: Call = {"trialCompleted": int(a["trialNumber"]), "reflection_added_to_memory": reflection}
        return {**said, **after, "trial_history_length": self.history}


def odd(*usual: Any, never: tuple[Any, ...] = ()) -> st.SearchStrategy[Any]:
    """One of the usual values, and now and then one that is none."""
    return st.one_of(*[st.sampled_from(usual)] * 12, *([st.sampled_from(never)] if never else []))


STEPS = odd("actor", "evaluator", "self-reflection", never=("reflect", ""))
SCORES = odd("no", "", 0, 1, 1.0, 0.5, never=(True, [], None))
OVERRIDES = st.lists(odd("m", "n", "o", never=(1, None, ["p"])), max_size=5)
LOOSE = st.fixed_dictionaries(
    {"stepType": STEPS, "trialNumber": odd(1, 2, 3, 2.0, never=(0, 1.5, "one", True)), "maxTrials": odd(1, 2, 3, never=(0.5, None))},
    optional={
        "actorInputText": odd("task", "other", "", never=(5, None)),
        "actorOutputText": odd("a", "b", "", never=(5, None)),
        "evaluatorScore": SCORES,
        "reflectionText": st.sampled_from(["r", "q", ""]),
        "memoryOverride": OVERRIDES,
    },
)  # fmt: skip


def like_the_seed(world: World, calls: list[Call]) -> None:
    link, seed = ConnectionState(), Seed()
    for call in calls:
        if not isinstance(call.get("actorInputText", ""), str):
            call = {**call, "stepType": "actor"}  # what it is to a reflection where it is no text is not known
        error, answer, text = world.tell(link, call)
        expected = seed.call(call)
        assert error == ("error" in expected)
        if not error:
            expected |= {"episodeId": answer["episodeId"]}
            expected |= {"message": answer["message"]} if "message" in expected else {}
        assert text == json.dumps(expected, separators=(",", ":")), call


@given(st.lists(LOOSE, max_size=12))
def test_without_an_id_it_answers_as_the_seed(world: World, calls: list[Call]) -> None:
    like_the_seed(world, calls)


@pytest.mark.slow
@many
@given(st.lists(LOOSE, max_size=30))
def test_without_an_id_it_answers_as_the_seed_however_long(world: World, calls: list[Call]) -> None:
    like_the_seed(world, calls)


TAKEN_DOWN = st.fixed_dictionaries(
    {
        "stepType": st.sampled_from(["actor", "evaluator", "self-reflection"]),
        "trialNumber": st.sampled_from([1, 2, 3]),
        "actorOutputText": st.sampled_from(["a", "b"]),
        "evaluatorScore": st.sampled_from(["no", 1]),
    },
    optional={"reflectionText": st.sampled_from(["r", "q"]), "passed": st.booleans(), "reset": st.booleans()},
)


def taken_down(world: World, calls: list[Call]) -> None:
    """Whatever comes is recorded as an episode that the state machine could have made, and no reflection is lost."""
    link = ConnectionState()
    for n, call in enumerate(calls):
        named: Call = {"actorInputText": "task"} if call["stepType"] == "actor" else {}
        if "reflectionText" in call and n % 2:
            named["reflectionText"] = f"r{n}"
        call = {**call, "maxTrials": 3, **named}
        error, answer, text = world.tell(link, call)
        assert not error, text
        episode, steps = world.record(answer["episodeId"])
        trials, stop = episode["trials"], episode["stop"] or {"reason": None}
        assert [trial["number"] for trial in trials] == list(range(1, len(trials) + 1))
        assert all(trial["feedback"] for trial in trials[:-1])
        assert [key for key, _, _, _ in steps] == sorted((key for key, _, _, _ in steps), key=in_time)
        if call["stepType"] != "actor" and stop["reason"] != "solved":
            assert trials[-1]["attempt"]["output"] == call["actorOutputText"]
            if "reflectionText" in call and call["stepType"] == "self-reflection" and not call.get("passed"):
                assert trials[-1]["reflection"]["text"] == call["reflectionText"]


def in_time(key: str) -> tuple[int, int]:
    trial, part, _ = key.split("/")
    return int(trial.removeprefix("trial.")), ("act", "evaluate", "reflect").index(part)


@given(st.lists(TAKEN_DOWN, max_size=15))
def test_whatever_comes_is_taken_down(world: World, calls: list[Call]) -> None:
    taken_down(world, calls)


@pytest.mark.slow
@many
@given(st.lists(TAKEN_DOWN, max_size=40))
def test_whatever_comes_is_taken_down_however_long(world: World, calls: list[Call]) -> None:
    taken_down(world, calls)


class Order:
    """What is due with an episodeId, and what is remembered: by the calls that were due alone."""

    def __init__(self, memory: list[str]) -> None:
        self.trial, self.phase, self.memory = 1, "evaluator", memory[:DEPTH]
        self.output: Any = None
        self.score: Any = None

    def due(self, a: Call) -> bool:
        kind, same = a["stepType"], a["actorOutputText"] == self.output
        if a["trialNumber"] != self.trial or a["trialNumber"] > a["maxTrials"]:
            return False
        match self.phase:
            case "verdict":
                return same and (kind == "self-reflection" or (kind == "evaluator" and a.get("passed") is True))
            case "text":
                alike = isinstance(a["evaluatorScore"], str) == isinstance(self.score, str)
                says = "reflectionText" in a and not a.get("passed") and alike and a["evaluatorScore"] == self.score
                return same and kind == "self-reflection" and says
            case phase:
                return kind == phase

    def aimed(self, a: Call) -> Call:
        """The call made into one that is due, as far as that can be."""
        kinds = {"verdict": "self-reflection", "text": "self-reflection", "over": "actor"}
        a = {**a, "stepType": kinds.get(self.phase, self.phase), "trialNumber": min(self.trial, 3), "maxTrials": 3}
        if self.phase in ("verdict", "text"):
            a |= {"actorOutputText": self.output}
        if self.phase == "text":
            a |= {"evaluatorScore": self.score, "reflectionText": a.get("reflectionText", "s"), "passed": False}
        return a

    def take(self, a: Call) -> None:
        self.memory = a.get("memoryOverride", self.memory)[:DEPTH]
        kind, text = a["stepType"], a.get("reflectionText")
        if kind == "actor":
            self.phase = "evaluator"
            return
        self.output, self.score = a["actorOutputText"], a["evaluatorScore"]
        if kind == "self-reflection" and text is not None:
            self.memory = [text, *self.memory][:DEPTH]
        if a.get("passed"):
            self.phase = "over"
        elif kind == "evaluator":
            self.phase = "verdict"
        elif text is None:
            self.phase = "text"
        else:
            self.trial, self.phase = self.trial + 1, "actor" if self.trial < a["maxTrials"] else "over"


STRICT = st.fixed_dictionaries(
    {
        "stepType": st.sampled_from(["actor", "evaluator", "self-reflection"]),
        "trialNumber": st.sampled_from([1, 1, 2, 3]),
        "maxTrials": st.sampled_from([2, 3, 3]),
        "actorInputText": st.sampled_from(["task", "task", "task", "other"]),
        "actorOutputText": st.sampled_from(["a", "a", "a", "b"]),
        "evaluatorScore": st.sampled_from(["no", "no", "no", "1", 1, 1.0]),
    },
    optional={
        "reflectionText": st.sampled_from(["r", "r", "q"]),
        "passed": st.sampled_from([False, False, True]),
        "memoryOverride": st.lists(st.sampled_from(["m", "n"]), max_size=4),
    },
)


MOVES = st.lists(st.tuples(st.sampled_from(["due", "due", "any", "again"]), STRICT, st.integers(0, 30)), max_size=30)
"""What to call: what is due, anything, or what was called before."""


def in_order(world: World, moves: list[Move], start: list[str]) -> None:
    first: Call = {"stepType": "actor", "trialNumber": 1, "maxTrials": 3, "actorInputText": "task"}
    first |= {"actorOutputText": "a", "evaluatorScore": "no"}
    id = world.tell(None, {**first, "memoryOverride": start})[1]["episodeId"]
    order, answers, record = Order(start), dict[str, str](), world.record(id)
    called = [first]
    for how, call, before in moves:
        call = order.aimed(call) if how == "due" else called[before % len(called)] if how == "again" else call
        called.append(call)
        due = order.due(call)
        error, answer, text = world.tell(None, {**call, "episodeId": id})
        now, name = world.record(id), json.dumps(call)
        if name in answers:
            assert (text, now) == (answers[name], record), "a call that is repeated"
        elif due:
            assert not error, text
            assert now != record
            order.take(call)
            shown = answer.get("current_memory", answer.get("memory"))
            assert shown is None or shown == order.memory
            assert ("next_trial_needed" in answer) == (order.phase in ("actor", "over"))
            answers[name] = text
        else:
            assert now == record, f"it was not due, and {'refused' if error else 'taken'}: {text}"
        record = now
    assert record[0]["stop"] is not None or order.phase != "over"


STARTS = st.lists(st.sampled_from("xyz"), max_size=4)


@given(MOVES, STARTS)
def test_with_an_id_it_follows_the_machine_or_changes_nothing(
    world: World, moves: list[Move], start: list[str]
) -> None:
    in_order(world, moves, start)


@pytest.mark.slow
@many
@given(MOVES, STARTS)
def test_with_an_id_it_follows_the_machine_however_often(world: World, moves: list[Move], start: list[str]) -> None:
    in_order(world, moves, start)
