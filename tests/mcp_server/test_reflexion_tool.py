"""`reflexion-thinking` through a real client: what it records, and what episodeId, passed, reset, learn and agentId do."""

import asyncio
import json
from typing import Any

import jsonschema
import pytest
from reflexion_clients import NAME, a_client, a_service, good, recorded, refused, step, told

from mulligan.core.records import Episode
from mulligan.mcp_server.tool import ConnectionState
from mulligan.mcp_server.tools.reflexion_thinking import TOOL

TASK = "Name a prime above 8."


def act(trial: int, trials: int = 3, **more: Any) -> dict[str, Any]:
    return step("actor", trial, trials, actorInputText=more.pop("task", TASK), **more)


def evaluate(trial: int, output: str, trials: int = 3, **more: Any) -> dict[str, Any]:
    return step("evaluator", trial, trials, actorOutputText=output, **more)


def reflect(trial: int, output: str, text: str | None = None, trials: int = 3, **more: Any) -> dict[str, Any]:
    more = {"evaluatorScore": "no"} | more | ({} if text is None else {"reflectionText": text})
    return step("self-reflection", trial, trials, actorOutputText=output, **more)


def course(episode: Episode) -> list[tuple[str, bool | None, str | None]]:
    """Each trial's output, whether it passed ("-": not judged yet), and its reflection."""
    return [
        (t.attempt.output, t.feedback.passed if t.feedback else None, t.reflection.text if t.reflection else None)
        for t in episode.trials
    ]


async def test_a_client_of_the_seed_is_recorded_like_any_other() -> None:
    async with a_service() as service, a_client(service) as client:
        ids = set[str]()
        for n, output in enumerate(("9", "10", "12"), 1):
            for arguments in (act(n), evaluate(n, output), reflect(n, output), reflect(n, output, f"r{n}")):
                ids.add((await good(client, arguments))["episodeId"])
        (episode,) = await recorded(service)
        assert ids == {episode.id}
        assert course(episode) == [("9", False, "r1"), ("10", False, "r2"), ("12", False, "r3")]
        assert (episode.task.prompt, episode.agent) == (TASK, "")
        assert episode.stop
        assert (episode.stop.reason, episode.stop.detail) == ("exhausted", "3 of 3 tries used")
        assert episode.head.settings["led_by"] == "client"
        after = await good(client, act(1))
        assert after["current_memory"] == ["r3", "r2", "r1"]
        assert after["episodeId"] != episode.id


UNORDERED: dict[str, tuple[list[dict[str, Any]], list[list[tuple[str, bool | None, str | None]]]]] = {
    "another attempt without a verdict": (
        [evaluate(1, "a"), evaluate(1, "b")],
        [[("a", None, None), ("b", None, None)]],
    ),
    "the evaluator twice": ([evaluate(1, "a"), evaluate(1, "a")], [[("a", None, None)]]),
    "a reflection on what was not acted": ([reflect(2, "a", "r")], [[("a", False, "r")]]),
    "a reflection on another attempt": (
        [evaluate(1, "a"), reflect(1, "b", "r")],
        [[("a", None, None), ("b", False, "r")]],
    ),
    "a reflection that never came": (
        [evaluate(1, "a"), reflect(1, "a"), act(2), evaluate(2, "b")],
        [[("a", False, ""), ("b", None, None)]],
    ),
    "a late reflection": ([evaluate(1, "a"), act(2), reflect(1, "a", "r")], [[("a", False, "r")]]),
    "the last call again": ([reflect(1, "a", "r"), reflect(1, "a", "r")], [[("a", False, "r")]]),
    "the same again, tried anew": (
        [reflect(1, "a", "r"), act(2), reflect(2, "a", "r")],
        [[("a", False, "r"), ("a", False, "r")]],
    ),
    "a different task": (
        [evaluate(1, "a"), act(1, task="Another."), evaluate(1, "b")],
        [[("a", None, None)], [("b", None, None)]],
    ),
    "the same task from the start": (
        [reflect(1, "a", "r"), act(1), evaluate(1, "b")],
        [[("a", False, "r")], [("b", None, None)]],
    ),
    "after the end": ([reflect(3, "a", "r"), evaluate(3, "b")], [[("a", False, "r")], [("b", None, None)]]),
    "the end again": ([reflect(3, "a", "r"), evaluate(3, "a"), reflect(3, "a", "r")], [[("a", False, "r")]]),
    "passed": ([evaluate(1, "a", passed=True)], [[("a", True, None)]]),
    "passed after all": ([evaluate(1, "a"), reflect(1, "a", passed=True)], [[("a", True, None)]]),
    "an afterthought to it": ([evaluate(1, "a", passed=True), reflect(1, "a", "r")], [[("a", True, None)]]),
    "passed after it had failed": (
        [reflect(1, "a"), reflect(1, "a", "r", passed=True)],
        [[("a", False, ""), ("a", True, None)]],
    ),
}


@pytest.mark.parametrize("case", UNORDERED)
async def test_whatever_the_order_it_is_recorded(case: str) -> None:
    calls, wanted = UNORDERED[case]
    async with a_service() as service:
        link = ConnectionState()
        for arguments in (act(1), *calls):
            reply = await told(service, link, arguments)
            assert not reply.error, reply.text
        assert [course(episode) for episode in await recorded(service)] == wanted


async def test_a_step_without_any_task_says_so_in_the_record() -> None:
    async with a_service() as service, a_client(service) as client:
        await good(client, evaluate(2, "a"))
        await good(client, act(2))
        await good(client, evaluate(2, "b"))
        tasks = [(episode.task.prompt, course(episode)[0][0]) for episode in await recorded(service)]
        assert tasks == [("(the client named no task)", "a"), (TASK, "b")]


async def test_with_the_episode_id_order_counts_and_memory_is_its_own() -> None:
    async with a_service() as service, a_client(service) as client, a_client(service, "auto") as other:
        id = (await good(client, act(1, memoryOverride=["a", "b"])))["episodeId"]
        assert "expected the evaluator step of trial 1" in await refused(other, reflect(1, "9", episodeId=id))
        await good(other, evaluate(1, "9", episodeId=id))
        prompted = await good(other, reflect(1, "9", episodeId=id))
        assert prompted["prompt_for_reflection_llm"] == {
            "task_description": TASK,
            "actor_output": "9",
            "evaluator_score": "no",
            "current_memory": ["a", "b"],
        }
        done = await good(client, reflect(1, "9", "c", episodeId=id))
        assert done == {
            "trialCompleted": 1,
            "reflection_added_to_memory": "c",
            "memory": ["c", "a", "b"],
            "next_trial_needed": True,
            "trial_history_length": 1,
            "episodeId": id,
        }
        assert (await good(other, act(1, task="Another.")))["current_memory"] == [], "the other connection's own"
        assert (await good(client, act(2)))["current_memory"] == ["c", "a", "b"], "it began the episode"
        assert (await good(client, act(2, episodeId=id)))["current_memory"] == ["c", "a", "b"]


@pytest.mark.parametrize("start", [{}, {"memoryOverride": ["given"]}], ids=["plain", "with an override"])
async def test_an_episode_that_is_led_by_id_leaves_nothing_to_the_next_task(start: dict[str, Any]) -> None:
    async with a_service() as service, a_client(service) as client:
        for n in (1, 2, 3):
            begun = await good(client, act(1, task=f"Task {n}.", **start))
            id = begun["episodeId"]
            assert begun["current_memory"] == start.get("memoryOverride", [])
            await good(client, evaluate(1, "9", episodeId=id))
            await good(client, reflect(1, "9", f"of task {n}", episodeId=id))
            assert (await good(client, act(2, task=f"Task {n}.", episodeId=id)))["current_memory"][0] == f"of task {n}"
            start = start if n < 2 else {}  # the last task begins without an override, after one that had it
        assert len(await recorded(service)) == 3


async def test_an_episode_that_is_led_by_id_leaves_the_connection_as_it_was() -> None:
    async with a_service() as service, a_client(service) as client, a_client(service) as other:
        await good(client, reflect(1, "x", "of the connection", actorInputText="One."))
        id = (await good(client, act(1, task="Two.")))["episodeId"]
        await good(client, reflect(1, "9", "of the connection, too", actorInputText="Two."))
        await good(client, act(2, task="Two.", episodeId=id))
        await good(client, evaluate(2, "7", episodeId=id))
        await good(client, reflect(2, "7", "of two alone", episodeId=id))
        elsewhere = (await good(other, act(1, task="Elsewhere.")))["episodeId"]
        await good(client, evaluate(1, "z", episodeId=elsewhere))
        await good(client, reflect(1, "z", "of elsewhere", episodeId=elsewhere))
        forgot = await good(client, act(3, task="Two."))
        assert (forgot["episodeId"], forgot["current_memory"][0]) == (id, "of two alone"), "the id was forgotten once"
        assert (await good(client, act(1, task="Three.")))["current_memory"] == ["of the connection"]
        assert (await good(other, act(1, task="Three.")))["current_memory"] == []


async def test_a_call_that_is_repeated_is_answered_the_same_and_recorded_once() -> None:
    async with a_service() as service, a_client(service) as client:
        id = (await good(client, act(1)))["episodeId"]
        calls = [act(1), evaluate(1, "9"), reflect(1, "9"), reflect(1, "9", "r"), act(2), evaluate(2, "7", passed=True)]
        first = [await good(client, {**arguments, "episodeId": id}) for arguments in calls]
        (before,) = await recorded(service)
        assert [await good(client, {**arguments, "episodeId": id}) for arguments in calls] == first
        assert await recorded(service) == [before]
        assert first[-1] == {
            "trialCompleted": 2,
            "memory": ["r"],
            "next_trial_needed": False,
            "trial_history_length": 2,
            "episodeId": id,
        }
        assert "a different output: '9'" in await refused(client, evaluate(1, "8", episodeId=id))
        assert "this episode is over: solved" in await refused(client, act(3, episodeId=id))


async def test_an_unknown_episode_and_another_agents_look_the_same() -> None:
    async with a_service() as service:
        link = ConnectionState()
        id = json.loads((await told(service, link, act(1, agentId="mine"))).text)["episodeId"]
        said = {
            (await told(service, link, evaluate(1, "9", episodeId=named, agentId=agent), bound)).text.replace(
                named, "ID"
            )
            for named, agent, bound in (
                (id, "other", None),
                (id, None, "other"),
                (id, "other", "other"),
                ("0" * 12 + ".1", "mine", None),
                ("0" * 12 + ".1", None, "other"),
            )
        }
        assert len(said) == 1
        assert "There is no episode 'ID' here" in said.pop()
        for odd in ("x" * 1_000_000, "\ud800", "é", "'; --", "\0", id[:-1], f"x{id}"):
            text = (await told(service, link, evaluate(1, "9", episodeId=odd))).text
            assert text.startswith('{"error":"There is no episode ')
            assert len(text) < 500
        assert not (await told(service, None, evaluate(1, "9", episodeId=id))).error
        assert not (await told(service, None, evaluate(1, "9", episodeId=id), "mine")).error
        assert "serves only 'mine'" in (await told(service, link, act(1, agentId="other"), "mine")).text


async def test_agents_of_one_connection_do_not_mix_and_a_name_holds() -> None:
    async with a_service() as service, a_client(service) as client:
        await good(client, reflect(1, "x", "of nobody"))
        await good(client, reflect(1, "x", "of a", agentId="a"))
        await good(client, reflect(1, "x", "of b", agentId="b"))
        assert (await good(client, act(2)))["current_memory"] == ["of b"]
        assert (await good(client, act(2, agentId="a")))["current_memory"] == ["of a"]
        assert (await good(client, act(2, agentId="")))["current_memory"] == ["of nobody"]
        agents = {episode.agent for episode in await recorded(service)}
        assert agents == {"", "a", "b"}


async def test_a_bound_server_records_for_its_agent() -> None:
    async with a_service(agent_id="bound") as service, a_client(service) as client:
        await good(client, act(1))
        (episode,) = await recorded(service)
        assert episode.agent == "bound"


async def test_without_a_connection_the_first_call_gives_the_id_that_ties_the_rest() -> None:
    async with a_service() as service:
        for arguments in (act(2), evaluate(1, "9"), reflect(1, "9", "r")):
            reply = await told(service, None, arguments)
            assert reply.error
            assert "pass the episodeId that the first call (the actor step of trial 1) returned" in reply.text
        assert await recorded(service) == []
        reply = await told(service, None, act(1, memoryOverride=["d", "c", "b", "a"], reset=True))
        answer: dict[str, Any] = dict(reply.data)
        assert answer["current_memory"] == ["d", "c", "b"]
        assert not (await told(service, None, evaluate(1, "9", episodeId=answer["episodeId"]))).error
        assert "must be a positive integer" in (await told(service, None, {})).text


async def test_an_actor_step_that_comes_again_without_the_id_says_what_is_remembered() -> None:
    async with a_service() as service, a_client(service) as client:
        await good(client, act(1, memoryOverride=["a"]))
        id = (await good(client, act(1, memoryOverride=["b"])))["episodeId"]
        assert (await good(client, act(1, episodeId=id)))["current_memory"] == ["b"]
        assert len(await recorded(service)) == 1


async def test_the_depth_is_that_of_the_server() -> None:
    async with a_service(depth=1) as service, a_client(service) as client:
        id = (await good(client, act(1, memoryOverride=["a", "b"])))["episodeId"]
        assert (await good(client, reflect(1, "x", "r")))["memory"] == ["r"]
        assert (await good(client, act(2, episodeId=id)))["current_memory"] == ["r"]


async def test_reset_forgets() -> None:
    async with a_service() as service, a_client(service) as client:
        first = await good(client, reflect(1, "x", "r", actorInputText=TASK))
        await refused(client, step("actor", 1, 3, reset=True))
        assert (await good(client, act(2)))["current_memory"] == ["r"], "a call that fails resets nothing"
        after = await good(client, reflect(1, "y", "q", reset=True))
        assert (after["memory"], after["trial_history_length"]) == (["q"], 1)
        assert after["episodeId"] != first["episodeId"]
        assert "omit 'episodeId'" in await refused(client, act(1, reset=True, episodeId=first["episodeId"]))
        assert (await good(client, evaluate(1, "x", reset=False, episodeId=first["episodeId"])))["nextStep"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"passed": "yes"}, "Invalid 'passed': must be true or false."),
        ({"reset": 1}, "Invalid 'reset': must be true or false."),
        ({"learn": "no"}, "Invalid 'learn': must be true or false."),
        ({"episodeId": 5}, "Invalid 'episodeId': must be a string."),
        ({"agentId": 5}, "The agent id must be a string."),
        (
            {"actorOutputText": "x" * 2_000_001},
            "The strings have 2,000,032 characters in total, but at most 2,000,000 are accepted",
        ),
        ({"memoryOverride": ["x" * 1_000_001] * 2}, "shorten them"),
        ({"evaluatorScore": 10**400}, "Invalid 'evaluatorScore': must be a string or number"),
        ({"evaluatorScore": float("inf")}, "Invalid 'evaluatorScore': must be a string or number"),
        ({"trialNumber": float("nan")}, "Invalid 'trialNumber'"),
        ({"maxTrials": 10**400}, "Invalid 'maxTrials': must be at most 1000."),
        ({"stepType": {"a": 1}}, "Unknown stepType: '[object Object]'"),
    ],
)
async def test_what_cannot_be_is_refused_before_anything_is_done(more: dict[str, Any], said: str) -> None:
    async with a_service() as service:
        reply = await told(service, ConnectionState(), {**reflect(1, "the attempt", "the reflection"), **more})
        assert reply.error
        assert said in json.loads(reply.text)["error"]
        assert await recorded(service) == []


async def test_empty_optional_parameters_count_as_left_out() -> None:
    async with a_service() as service, a_client(service) as client:
        nothing = dict.fromkeys(("reflectionText", "memoryOverride", "passed", "reset", "learn"))
        answer = await good(client, evaluate(1, "x", episodeId="", agentId="", **nothing))
        assert answer["nextStep"] == "self-reflection"


async def test_calls_of_one_connection_are_answered_one_after_the_other() -> None:
    async with a_service() as service, a_client(service) as client:
        answers = await asyncio.gather(*(good(client, reflect(2, f"{n}", f"r{n}")) for n in range(20)))
        assert sorted(answer["trial_history_length"] for answer in answers) == list(range(1, 21))
        (episode,) = await recorded(service)
        assert len(episode.trials) == 20


async def test_every_answer_fits_the_schema_and_every_field_is_described() -> None:
    jsonschema.Draft202012Validator.check_schema(dict(TOOL.input_schema))
    jsonschema.Draft202012Validator.check_schema(dict(TOOL.output_schema))
    fields: dict[str, Any] = TOOL.output_schema["properties"]
    async with a_service() as service, a_client(service) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed[NAME].input_schema["required"]) == {"stepType", "trialNumber", "maxTrials"}
        calls = [
            act(1),
            evaluate(1, "x"),
            reflect(1, "x"),
            reflect(1, "x", "r"),
            evaluate(2, "y", passed=True, learn=True),
            reflect(1, "x", evaluatorScore=0.5),
        ]
        seen = set[str]()
        for arguments in calls:
            jsonschema.validate(arguments, listed[NAME].input_schema)
            seen |= (await good(client, arguments)).keys()
    assert seen == fields.keys()
    assert all("description" in field for field in fields.values())
    offered = TOOL.input_schema["properties"].values()
    assert all("description" in {**field, **field.get("anyOf", [{}])[0]} for field in offered)


async def test_a_store_that_fails_changes_nothing_that_is_remembered() -> None:
    async with a_service() as service, a_client(service) as client:
        await good(client, reflect(1, "x", "r"))
        await service.store.close()
        assert "was closed" in await refused(client, reflect(2, "y", "q"))
        service._store = service._client_led = None  # pyright: ignore[reportPrivateUsage]
        assert (await good(client, act(3)))["current_memory"] == ["r"]
