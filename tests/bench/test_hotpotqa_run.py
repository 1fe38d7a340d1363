"""HotPotQA over the one loop: fail, reflect, solve; what the models are shown; cut off in a step and gone on with."""

import asyncio
import json
import re
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.running import resume_benchmark, run_benchmark
from mulligan.core.errors import InvalidInput, JournalDiverged
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import Episode
from mulligan.models.scripted import ScriptedModel
from mulligan.store.sqlite import SqliteStore

DATA = Path(__file__).parents[3] / "shared" / "data" / "hotpotqa" / "distractor-100.json"
LESSON = "Read the second page before the answer."
ROW: dict[str, Any] = {
    "id": "q1",
    "question": "Which river flows by the birthplace of Odo Brandt?",
    "answer": "Zanzibar",
    "context": [
        {"title": "Odo Brandt", "sentences": ["A clockmaker.", " Born in Hallweil."]},
        {"title": "Hallweil", "sentences": ["A town on the Erle."]},
    ],
    "supporting_facts": [{"title": "Odo Brandt", "sent_id": 1}, {"title": "Hallweil", "sent_id": 0}],
}


def written(folder: Path, *rows: dict[str, Any]) -> str:
    file = folder / "hotpot.json"
    file.write_text(json.dumps(list(rows)), encoding="utf-8")
    return str(file)


def text_of(question: Question) -> str:
    return "\n\n".join(message.text for message in question.messages)


class Learner:
    """Answers by rules: the first page, then a wrong answer; what it was told in a lesson mends two cases of three."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = {row["question"].strip(): (number, row) for number, row in enumerate(rows)}

    def __call__(self, question: Question, sampling: Sampling) -> Any:
        last = next(m.text for m in reversed(question.messages) if any(asked in m.text for asked in self.rows))
        number, row = max(
            ((n, r) for asked, (n, r) in self.rows.items() if asked in last), key=lambda f: len(f[1]["question"])
        )
        if question.schema:
            right = f"Attempt:\n```\n{row['answer']}\n```" in last
            return {
                "reasoning": "seen",
                "passed": right,
                "score": 10 * right,
                "wrong": "" if right else "not asked for",
            }
        if "draw the lesson" in question.messages[0].text:
            return f"{LESSON} {row['question']}"
        step = int(re.findall(r"^Thought (\d+):", last, re.MULTILINE)[-1])
        if "Search[title]" in question.messages[0].text and step == 1:
            return f"I search.\nAction 1: Search[{row['context'][0]['title']}]\nObservation 1: made up"
        if number % 10 == 9:
            return "I do not know"
        return f"I know.\nAction {step}: Finish[{row['answer'] if LESSON in last and number % 3 else 'nobody'}]"


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize("judge", ["model", "oracle"])
@pytest.mark.parametrize("mode", ["react", "cot", "cot-context"])
async def test_all_questions_go_through_fail_reflect_and_solve(mode: str, judge: str, tmp_path: Path) -> None:
    rows = json.loads(DATA.read_text("utf-8"))
    model = ScriptedModel(Learner(rows))
    store = SqliteStore(tmp_path / "s.db")
    finished = await run_benchmark(
        "hotpotqa",
        model=model,
        store=store,
        data=str(DATA),
        trials=3,
        parallel=4,
        settings={"benchmark": {"mode": mode, "judge": judge}},
    )
    mended = [n for n in range(100) if n % 3 and n % 10 != 9]
    assert Counter(result.status for result in finished.results) == {"solved": len(mended), "failed": 100 - len(mended)}
    assert [n for n, result in enumerate(finished.results) if result.solved] == mended
    solved, stuck = [await store.load(finished.results[n].episodes[0].episode) for n in (1, 9)]
    assert finished.results[1].episodes[0].scores == (0.0, 1.0)
    assert {trial.feedback.source for trial in solved.trials if trial.feedback} == {
        "oracle" if judge == "oracle" else "model_judge"
    }
    assert [
        (trial.attempt.output, bool(trial.attempt.outcome and trial.attempt.outcome.halted)) for trial in stuck.trials
    ] == [("", True)] * 3
    await store.close()


@pytest.mark.light_cases(5)
@pytest.mark.parametrize("method", ["simple", "resample", "last_attempt", "reflexion", "last_attempt_and_reflexion"])
@pytest.mark.parametrize("mode", ["react", "cot", "cot-context"])
async def test_an_oracles_answer_is_in_no_prompt_and_in_no_trial(mode: str, method: str, tmp_path: Path) -> None:
    def never_knows(question: Question, sampling: Sampling) -> str:
        steps = re.findall(r"^Thought (\d+):", question.messages[-1].text, re.MULTILINE)
        if "draw the lesson" in question.messages[0].text:
            return LESSON
        if len(steps) < 3 and "Search[title]" in question.messages[0].text:
            return f"I search.\nAction 1: {['Search[Odo Brandt]', 'Lookup[born]'][len(steps) - 1]}"
        return "I guess.\nAction 1: Finish[nobody]"

    model = ScriptedModel(never_knows)
    store = SqliteStore(tmp_path / "s.db")
    finished = await run_benchmark(
        "hotpotqa",
        model=model,
        store=store,
        data=written(tmp_path, ROW),
        method=method,
        settings={"benchmark": {"mode": mode, "judge": "oracle"}},
    )
    (result,) = finished.results
    episode = await store.load(result.episodes[0].episode)
    assert result.status == "failed"
    assert len(episode.trials) == (1 if method == "simple" else 5)
    assert len(model.questions) >= len(episode.trials)
    shown = [*map(text_of, model.questions), str(episode.task), str(episode.trials), str(episode.stop)]
    assert not [text for text in shown if "zanzibar" in text.lower()]
    steps = [step for step in await store.steps(episode.id) if "model." in step.key or "environment." in step.key]
    assert steps
    assert "zanzibar" not in str([(step.request, step.result) for step in steps]).lower()
    await store.close()


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
async def test_no_answer_of_the_hundred_shows_before_a_page_is_read(tmp_path: Path) -> None:
    rows = {row["question"].strip(): row for row in json.loads(DATA.read_text("utf-8"))}

    def never_knows(question: Question, sampling: Sampling) -> str:
        if "draw the lesson" in question.messages[0].text:
            return LESSON
        return "Action 1: Lookup[zzz]" if "Observation 1" not in question.messages[-1].text else "Action 2: Finish[zzz]"

    model = ScriptedModel(never_knows)
    store = SqliteStore(tmp_path / "s.db")
    settings = {"benchmark": {"judge": "oracle"}}
    await run_benchmark("hotpotqa", model=model, store=store, data=str(DATA), trials=2, settings=settings)
    await store.close()
    instructions = "\n".join(message.text for message in model.questions[0].messages[:-1])
    checked = 0
    for question in model.questions:
        said = question.messages[-1].text
        row = max((row for asked, row in rows.items() if asked in said), key=lambda row: len(row["question"]))
        if row["answer"].lower() not in f"{instructions}\n{row['question']}".lower() and len(row["answer"]) > 2:
            checked += 1
            assert row["answer"] not in text_of(question).replace(row["question"].strip(), "")
    assert checked > 300


@pytest.mark.parametrize(("window", "shown"), [({}, [0, 1, 2, 3, 3, 3]), ({"window": None}, [0, 1, 2, 3, 4, 5])])
async def test_the_window_is_three_lessons_and_all_of_them_when_asked_for(
    window: dict[str, Any], shown: list[int], tmp_path: Path
) -> None:
    lessons = count(1)

    def rule(question: Question, sampling: Sampling) -> str:
        told = "draw the lesson" in question.messages[0].text
        return f"lesson number {next(lessons)}: not nobody" if told else "Action 1: Finish[nobody]"

    model = ScriptedModel(rule)
    store = SqliteStore(tmp_path / "s.db")
    settings = {"benchmark": {"mode": "cot", "judge": "oracle"}, "strategy": window}
    await run_benchmark("hotpotqa", model=model, store=store, data=written(tmp_path, ROW), trials=6, settings=settings)
    await store.close()
    acted = [text_of(q) for q in model.questions if "draw the lesson" not in q.messages[0].text]
    assert [len(set(re.findall(r"lesson number \d+", text))) for text in acted] == shown


class Pausing:
    """Answers by a rule, and hangs at one question until it is let go."""

    name = id = "pausing"

    def __init__(self, hangs_at: int | None) -> None:
        self.asked: list[str] = []
        self.hanging = asyncio.Event()
        self._hangs_at = hangs_at

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        number = int(re.findall(r"^Thought (\d+):", question.messages[-1].text, re.MULTILINE)[-1])
        if number == self._hangs_at:
            self.hanging.set()
            await asyncio.Event().wait()
        self.asked.append(text_of(question))
        action = ["Search[Odo Brandt]", "Search[Hallweil]", "Lookup[Erle]", "Finish[Erle]"][number - 1]
        return Answer(f"Step {number}.\nAction {number}: {action}", self.id)


OPTIONS: dict[str, Any] = {"method": "simple", "settings": {"benchmark": {"judge": "oracle"}}}


@pytest.mark.parametrize("hangs_at", [2, 4])
async def test_a_trial_that_was_cut_in_a_step_repeats_no_finished_call(hangs_at: int, tmp_path: Path) -> None:
    row = {**ROW, "answer": "Erle"}
    model, store = Pausing(hangs_at), SqliteStore(tmp_path / "s.db")
    runs: list[str] = []
    hooks = Hooks(on_case=lambda run, result: runs.append(run.id))
    options: dict[str, Any] = {**OPTIONS, "data": written(tmp_path, row)}
    task = asyncio.create_task(run_benchmark("hotpotqa", model=model, store=store, hooks=hooks, **options))
    await asyncio.wait_for(model.hanging.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    after = Pausing(None)
    finished = await resume_benchmark(runs[0], model=after, store=store)
    assert finished.results[0].status == "solved"
    assert len(model.asked) == hangs_at - 1
    assert len(model.asked) + len(after.asked) == len({*model.asked, *after.asked}) == 4
    episode = await store.load(finished.results[0].episodes[0].episode)
    assert [step.observation for step in episode.trials[0].attempt.steps] == [
        "A clockmaker. Born in Hallweil.",
        "A town on the Erle.",
        "(Result 1/1) A town on the Erle.",
        "",
    ]
    await store.close()


async def test_a_docstore_that_has_changed_is_not_resumed(tmp_path: Path) -> None:
    pages = tmp_path / "pages.jsonl"
    pages.write_text('{"title": "Odo Brandt", "text": "A clockmaker."}')
    model, store = Pausing(2), SqliteStore(tmp_path / "s.db")
    runs: list[str] = []
    hooks = Hooks(on_case=lambda run, result: runs.append(run.id))
    settings = {"benchmark": {"docstore": str(pages)}}
    options: dict[str, Any] = {**OPTIONS, "data": written(tmp_path, ROW), "settings": settings}
    task = asyncio.create_task(run_benchmark("hotpotqa", model=model, store=store, hooks=hooks, **options))
    await asyncio.wait_for(model.hanging.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    pages.write_text('{"title": "Odo Brandt", "text": "A clockmaker, born in Hallweil."}')
    with pytest.raises(JournalDiverged, match="the cases"):
        await resume_benchmark(runs[0], model=Pausing(None), store=store)
    await store.close()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"benchmark": {"docstore": "{pages}"}}, "line 1: not JSON"),
        ({"environment": {"titles": 3}}, "titles"),
    ],
)
async def test_a_world_that_cannot_be_is_refused_before_any_model_is_asked(
    settings: dict[str, Any], says: str, tmp_path: Path
) -> None:
    pages = tmp_path / "pages.jsonl"
    pages.write_text('{"title": ')
    given = json.loads(json.dumps(settings).replace("{pages}", str(pages)))
    model, store = Pausing(None), SqliteStore(tmp_path / "s.db")
    with pytest.raises(InvalidInput, match=says):
        await run_benchmark("hotpotqa", model=model, store=store, data=written(tmp_path, ROW), settings=given)
    assert not model.asked
    assert not await store.benches.runs()
    await store.close()


async def test_what_judges_is_kept_apart_in_the_record(tmp_path: Path) -> None:
    found: list[Episode] = []
    for judge in ("model", "oracle"):
        model = ScriptedModel(Learner([ROW]))
        store = SqliteStore(tmp_path / f"{judge}.db")
        settings = {"benchmark": {"mode": "cot", "judge": judge}}
        finished = await run_benchmark(
            "hotpotqa", model=model, store=store, data=written(tmp_path, ROW), trials=1, settings=settings
        )
        found.append(await store.load(finished.results[0].episodes[0].episode))
        await store.close()
    assert [e.trials[0].feedback.source for e in found if e.trials[0].feedback] == ["model_judge", "oracle"]
    assert [e.head.settings["evaluator"]["name"] for e in found] == ["model_judge", "exact_match"]
