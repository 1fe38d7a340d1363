"""What the agent of seed 004 is told and how it ends, move by move. Written from the seed and the spec before the code."""

from pathlib import Path
from typing import Any

import pytest
from seed_agents import AGENT, ONESHOT_REFLECTOR, code_improver

import mulligan
from mulligan import Episode, ScriptedModel

TASK = "Write add(a, b)."


def finish(key: str, value: str) -> dict[str, Any]:
    return {"tool": "finish", "arguments": {"key": key, "value": value}}


def first(task: str) -> str:
    return task


def again(task: str, last: str, feedback: str) -> str:
    return (
        f"Original task: {task}\n\nPrevious attempt:\n{last}\n\nFeedback:\n{feedback}\n\n"
        "Please improve your answer based on this feedback."
    )


def review(task: str, last: str) -> str:
    return f"Task: {task}\n\nResult:\n{last}"


class Ran:
    """An episode, and what the model was told in the user's message of each question."""

    def __init__(self, episode: Episode, model: ScriptedModel) -> None:
        self.episode = episode
        self.reason = episode.stop.reason if episode.stop else None
        self.questions = model.questions
        self.samplings = model.samplings
        self.told = [next(m.text for m in question.messages if m.role == "user") for question in model.questions]


async def ran(project: Path, answers: list[Any], **given: Any) -> Ran:
    model = ScriptedModel(answers)
    return Ran(await mulligan.run("my-reflexion", TASK, model=model, **given), model)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    code_improver(tmp_path)
    return tmp_path


async def test_done_at_once(project: Path) -> None:
    it = await ran(project, [finish("done", "v1"), finish("done", "Looks great")])
    assert it.told == [first(TASK), review(TASK, "v1")]
    assert (it.reason, len(it.episode.trials)) == ("solved", 1)
    trial = it.episode.trials[0]
    assert trial.attempt.output == "v1"
    assert trial.feedback
    assert (trial.feedback.passed, trial.feedback.text, trial.feedback.source) == (True, "Looks great", "review")


async def test_retry_twice_then_done(project: Path) -> None:
    answers = [
        *(finish("done", "v1"), finish("retry", "Missing X, Y")),
        *(finish("done", "v2"), finish("again", "Still missing Y")),
        *(finish("done", "v3"), finish("done", "Looks great")),
    ]
    it = await ran(project, answers)
    assert it.told == [
        *(first(TASK), review(TASK, "v1")),
        *(again(TASK, "v1", "Missing X, Y"), review(TASK, "v2")),
        *(again(TASK, "v2", "Still missing Y"), review(TASK, "v3")),
    ]
    assert (it.reason, len(it.episode.trials)) == ("solved", 3)
    assert it.episode.best
    assert it.episode.best.attempt.output == "v3"


async def test_exhausted_is_distinguished_from_solved_and_the_last_trial_is_judged(project: Path) -> None:
    pairs = [(finish("done", f"v{n}"), finish("retry", f"no {n}")) for n in range(1, 5)]
    it = await ran(project, [line for pair in pairs for line in pair])
    assert (it.reason, len(it.episode.trials), len(it.questions)) == ("exhausted", 4, 8)
    assert it.told[6:] == [again(TASK, "v3", "no 3"), review(TASK, "v4")]
    assert it.episode.trials[-1].feedback
    assert it.episode.trials[-1].feedback.passed is False


async def test_judge_last_false_saves_the_last_review(project: Path) -> None:
    code_improver(project, agent=AGENT.replace("max_iter: 4", "max_iter: 2\njudge_last: false"))
    it = await ran(project, [finish("done", "v1"), finish("retry", "no"), finish("done", "v2")])
    assert (it.reason, len(it.episode.trials), len(it.questions)) == ("exhausted", 2, 3)
    assert it.episode.trials[-1].feedback
    assert it.episode.trials[-1].feedback.passed is None


async def test_the_same_attempt_again_is_no_reason_to_stop(project: Path) -> None:
    it = await ran(project, [finish("done", "v1"), finish("retry", "no")] * 4)
    assert (it.reason, len(it.episode.trials)) == ("exhausted", 4)


async def test_a_plain_text_reply_of_the_actor_is_its_result(project: Path) -> None:
    it = await ran(project, ["plain v1", finish("done", "fine")])
    assert it.told[1] == review(TASK, "plain v1")
    assert it.reason == "solved"


async def test_a_plain_retry_of_a_react_reflector_is_feedback(project: Path) -> None:
    it = await ran(project, [finish("done", "v1"), "RETRY: too slow", finish("done", "v2"), finish("done", "ok")])
    assert it.told[2] == again(TASK, "v1", "RETRY: too slow")
    assert (it.reason, len(it.episode.trials)) == ("solved", 2)


async def test_empty_feedback_keeps_the_previous_attempt(project: Path) -> None:
    it = await ran(project, [finish("done", "v1"), finish("retry", ""), finish("done", "v2"), finish("done", "ok")])
    assert it.told[2] == again(TASK, "v1", "")


async def test_a_tool_error_goes_back_to_the_model(project: Path) -> None:
    wrong = {"tool": "search", "arguments": {"q": "x"}}
    halves = {"tool": "finish", "arguments": {"value": "v1"}}
    it = await ran(project, [wrong, halves, finish("done", "v1"), finish("done", "ok")])
    assert it.reason == "solved"
    back = [message.text for message in it.questions[2].messages if message.role == "tool"]
    assert back == [
        "[error: there is no tool 'search' here; there are finish]",
        "[error: finish needs key and value, both texts]",
    ]
    assert [step.action for step in it.episode.trials[0].attempt.steps] == [
        'search(q="x")',
        'finish(value="v1")',
        "finish(key='done')",
    ]


async def test_the_step_limit_ends_the_step_and_keeps_its_trajectory(project: Path) -> None:
    looks = [{"tool": "look", "arguments": {"at": n}} for n in range(10)]
    it = await ran(project, [*looks, finish("retry", "say something"), finish("done", "v2"), finish("done", "ok")])
    attempt = it.episode.trials[0].attempt
    limit = "the step limit of 10 was reached without a call of finish"
    assert attempt.outcome
    assert attempt.outcome.halted == limit
    assert len(attempt.steps) == 10
    assert it.told[10] == review(TASK, f"(no result: {limit})")
    assert it.told[11] == again(TASK, f"(no result: {limit})", "say something")
    assert it.reason == "solved"


async def test_satisfaction_with_a_halted_attempt_does_not_solve(project: Path) -> None:
    looks = [{"tool": "look", "arguments": {"at": n}} for n in range(10)]
    it = await ran(project, [*looks, finish("done", "fine")], max_iter=1)
    assert it.reason == "exhausted"


@pytest.mark.parametrize(
    ("said", "stops"),
    [
        ("DONE", True),
        ("DONE: it is right", True),
        ("done.", True),
        ("  \n Done", True),
        ("Donenot", False),
        ("DONE_ALL", False),
        ("Not DONE", False),
        ("RETRY: DONE is not enough", False),
        ("", False),
    ],
)
async def test_a_oneshot_reflector_stops_by_the_word_done(project: Path, said: str, stops: bool) -> None:
    code_improver(project, reflect=ONESHOT_REFLECTOR)
    it = await ran(project, [finish("done", "v1"), said, finish("done", "v2"), "DONE"])
    assert it.reason == "solved"
    assert len(it.episode.trials) == (1 if stops else 2)
    if not stops:
        assert it.told[2] == again(TASK, "v1", said.strip())


async def test_the_steps_have_their_prompts_tools_and_temperatures(project: Path) -> None:
    it = await ran(project, [finish("done", "v1"), finish("done", "ok")])
    act, reflect = it.questions
    assert act.messages[0].role == "system"
    assert act.messages[0].text.startswith("You are an expert programmer.")
    assert act.messages[0].text.endswith("when your solution is complete.")
    assert reflect.messages[0].text.startswith("You are a code reviewer. You have just seen")
    assert [tool.name for tool in act.tools] == [tool.name for tool in reflect.tools] == ["finish"]
    assert [sampling.temperature for sampling in it.samplings] == [1.0, 0.1]
