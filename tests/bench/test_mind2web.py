"""Mind2Web on pages of our own: each metric against a value computed by hand, and the pickle that nothing runs."""

import json
import os
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from each_row import each_row

from mulligan.bench.commands import bench
from mulligan.bench.harness.running import resume_benchmark, run_benchmark
from mulligan.bench.mind2web._choosing import Choice, Walk, read_answer, step_scores, token_f1, totals
from mulligan.bench.mind2web._pages import excerpt, read_page
from mulligan.bench.mind2web._scores import read_ranks
from mulligan.bench.mind2web._tasks import WebTask, read_tasks
from mulligan.bench.mind2web.environments.mind2web import Mind2Web
from mulligan.core.errors import InvalidInput, JournalDiverged
from mulligan.models.scripted import ScriptedModel
from mulligan.store.sqlite import SqliteStore

PAGE = (
    '<html backend_node_id="1"><div backend_node_id="2" class="bar"><input backend_node_id="3" placeholder="From"/>'
    '<input backend_node_id="4" placeholder="To"/><button backend_node_id="5"><text backend_node_id="6">Find</text>'
    '</button></div><ul backend_node_id="7">'
    + "".join(f'<li backend_node_id="{n}"><text backend_node_id="{n}0">Offer {n}</text></li>' for n in range(11, 16))
    + '</ul><svg backend_node_id="20"><use backend_node_id="21" xlink:href="#a"/></svg></html>'
)


def action(uid: str, op: str, value: str, right: list[str], wrong: list[str], page: str = PAGE) -> dict[str, Any]:
    """A step whose candidates are ranked in the order in which they are named, the right ones first."""
    ranked = {id: rank for rank, id in enumerate([*right, *wrong])}

    def candidates(ids: list[str]) -> list[dict[str, Any]]:
        return [{"backend_node_id": id, "rank": ranked[id], "tag": "x"} for id in ids]

    operation = {"op": op, "original_op": op, "value": value}
    return {
        "action_uid": uid,
        "cleaned_html": page,
        "raw_html": "",
        "operation": operation,
        "pos_candidates": candidates(right),
        "neg_candidates": candidates(wrong),
    }


def task(id: str, *actions: dict[str, Any]) -> dict[str, Any]:
    said = [f"[x] {one['action_uid']} -> {one['operation']['op']}" for one in actions]
    return {
        "annotation_id": id,
        "website": "trains",
        "domain": "Travel",
        "subdomain": "Rail",
        "confirmed_task": f"Do {id}.",
        "action_reprs": said,
        "actions": list(actions),
    }


TASKS = [
    task("two", action("a", "TYPE", "Marlow Town", ["4"], ["3", "5"]), action("b", "CLICK", "", ["5"], ["3"])),
    task("empty", action("a", "TYPE", "", ["3"], ["4"]), action("b", "CLICK", "", [], ["3", "4"])),
    task("many", action("a", "CLICK", "", ["11"], ["12", "13", "14", "15", "3", "4"])),
    task("none", action("a", "CLICK", "", [], ["3", "4"])),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MULLIGAN_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "test_task").mkdir(parents=True)
    (tmp_path / "data" / "test_task" / "test_task_0.json").write_text(json.dumps(TASKS), encoding="utf-8")
    return tmp_path


def tasks_in(folder: Path, rows: Any = None) -> dict[str, WebTask]:
    file = folder / "data" / "test_task" / "test_task_0.json"
    if rows is not None:
        file.write_text(json.dumps(rows), encoding="utf-8")
        os.utime(file, ns=(1, hash(file.read_bytes()) & 0xFFFFFFFF))  # another version, however quickly it comes
    return dict(read_tasks(file))


def answered(walk: Walk, element: str | None, action: str) -> str:
    """The answer that names the element, by its description among the choices; A where it is not there."""
    known = {"3": "placeholder=From", "4": "placeholder=To", "5": "Find"}
    what = None if element is None else known.get(element, f"Offer {element}")
    lines = walk.question.rpartition("not among them):\n\n")[2].splitlines()
    letter = next((line[0] for line in lines[1:] if what and what in line), "A")
    return f"Answer: {letter}\n{action}"


def walked(task: WebTask, *wanted: tuple[str | None, str], top_k: int = 50) -> tuple[Walk, list[str]]:
    """The walk that wants this element and says this at each step, and its answers."""
    walk, answers = Walk(task, top_k), list[str]()
    while walk.question:
        element, action = wanted[len(walk.choices)]
        answers.append(answered(walk, element, action))
        walk.answer(answers[-1])
    return walk, answers


@each_row(
    ("said", "wanted", "f1"),
    [
        ("CLICK", "CLICK", 1.0),
        ("", "", 1.0),
        ("", "CLICK", 0.0),
        ("TYPE Marlow", "TYPE Marlow Town", 0.8),  # precision 2/2, recall 2/3
        ("CLICK", "TYPE Marlow Town", 0.0),
        ("SELECT Marlow Town", "TYPE Marlow Town", 2 / 3),  # precision 2/3, recall 2/3
        ("TYPE", "TYPE Marlow Town", 0.5),  # precision 1/1, recall 1/3
        ("TYPE a a a", "TYPE a", 1.0),  # sets of words
    ],
)
def test_action_f1_counts_words_as_sets(said: str, wanted: str, f1: float) -> None:
    assert token_f1(said, wanted) == pytest.approx(f1)


@each_row(
    ("text", "read"),
    [
        ("Answer: C.\nAction: TYPE\nValue: Marlow Town ", (1, "TYPE Marlow Town")),
        ("Answer: A\nAction: CLICK", (None, "CLICK")),
        ("Answer: (B)\nAction: SELECT\nValue:", (0, "SELECT")),
        ("I would choose B.", (None, "")),
        ("", (None, "")),
        ("Answer: Buy it\nAction: HOVER", (None, "")),
    ],
)
def test_an_answer_is_read_as_letter_operation_and_value(text: str, read: tuple[int | None, str]) -> None:
    assert read_answer(text) == read


def test_the_metrics_of_each_edge_are_those_computed_by_hand(folder: Path) -> None:
    tasks = tasks_in(folder)
    _, two = walked(tasks["two"], ("4", "Action: TYPE\nValue: Marlow"), ("5", "Action: CLICK"))
    (first, second) = step_scores(tasks["two"], 50, two)
    assert (first.element, first.action_f1, first.success) == (1.0, pytest.approx(0.8), 0.0), "a part of the value"
    assert (second.element, second.action_f1, second.success) == (1.0, 1.0, 1.0)

    _, wrong = walked(tasks["two"], ("3", "Action: TYPE\nValue: Marlow Town"), ("5", "Action: SELECT"))
    (first, second) = step_scores(tasks["two"], 50, wrong)
    assert (first.element, first.action_f1, first.success) == (0.0, 1.0, 0.0), "the wrong element, the right action"
    assert (second.element, second.action_f1, second.success) == (1.0, 0.0, 0.0), "the wrong operation"

    _, empty = walked(tasks["empty"], ("3", "Action: TYPE\nValue:"), (None, ""))
    (first, second) = step_scores(tasks["empty"], 50, empty)
    assert first.success == 1.0, "an empty value"
    assert (second.element, second.action_f1, second.choice) == (0.0, 0.0, Choice()), "no positive candidate"
    assert len(empty) == 1, "which is not asked"

    _, nothing = walked(tasks["two"], (None, "Action: TYPE\nValue: Marlow Town"), (None, "Action: CLICK"))
    assert [(one.element, one.action_f1) for one in step_scores(tasks["two"], 50, nothing)] == [(0.0, 0.0)] * 2

    every = [step_scores(tasks["two"], 50, two), step_scores(tasks["empty"], 50, empty)]
    found = totals([*every, step_scores(tasks["none"], 50, [])])
    assert found.steps == 5
    assert found.micro == pytest.approx({"element_accuracy": 3 / 5, "action_f1": 2.8 / 5, "step_success": 2 / 5})
    macro = {"element_accuracy": (1 + 0.5 + 0) / 3, "action_f1": (0.9 + 0.5 + 0) / 3, "step_success": (0.5 + 0.5) / 3}
    assert found.macro == pytest.approx(macro)
    assert found.success == 0.0
    assert found.errors == {"0": 0.0, "1": 1.0, "2": 0.0, "3": 0.0, ">3": 0.0}


def test_of_many_candidates_the_chosen_one_comes_back_until_it_is_alone(folder: Path) -> None:
    many = tasks_in(folder)["many"]
    walk, answers = walked(many, ("11", "Action: CLICK"))
    assert len(answers) == 2, "seven candidates, five at once: the chosen one meets the last two"
    assert walk.choices == [Choice("11", "CLICK")]
    assert totals([step_scores(many, 50, answers)]).success == 1.0
    assert totals([step_scores(many, 50, answers[:1])]).success == 0.0, "a walk that was cut off is wrong"


def test_a_letter_that_was_not_offered_loses_what_was_chosen_before(folder: Path) -> None:
    walk = Walk(tasks_in(folder)["two"], 50)
    walk.answer("Answer: F\nAction: CLICK")
    assert walk.choices == [Choice()]


def test_only_the_best_candidates_are_kept(folder: Path) -> None:
    rows = [task("low", action("a", "CLICK", "", ["5"], ["3", "4"]))]
    rows[0]["actions"][0]["pos_candidates"][0]["rank"] = 7
    low = tasks_in(folder, rows)["low"]
    assert Walk(low, 7).choices == [Choice()], "rank 7 is the eighth"
    assert Walk(low, 8).question
    one = tasks_in(folder, [task("one", action("a", "CLICK", "", ["5"], []))])["one"]
    assert Walk(one, 50).choices == [Choice()], "a candidate alone is never asked, as in the reference"


def test_a_question_shows_the_page_around_its_candidates_and_the_actions_before(folder: Path) -> None:
    walk = Walk(tasks_in(folder)["two"], 50)
    assert "Previous actions:\nNone" in walk.question
    assert "Task: Do two." in walk.question
    assert "Marlow" not in walk.question, "what a person typed is the target"
    assert "D. <button id=2> Find </button>" in walk.question
    walk.answer("Answer: A")
    assert "Previous actions:\n[x] a -> TYPE" in walk.question
    shown = excerpt(read_page(PAGE), ["11", "77"])
    assert shown.choices == (("11", "<li id=0> Offer 11 </li>"),), "77 is not on the page"
    assert "Offer 14" in shown.text, "a neighbour"
    assert "Offer 15" not in shown.text, "too far away"


def scores_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ranks: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        for one in row["actions"]:
            for candidate in [*one["pos_candidates"], *one["neg_candidates"]]:
                ranks[f"{row['annotation_id']}_{one['action_uid']}"][candidate["backend_node_id"]] = candidate.pop(
                    "rank"
                )
    return {"scores": {step: {id: np.float32(0.5) for id in of} for step, of in ranks.items()}, "ranks": ranks}


@pytest.mark.parametrize("protocol", range(6))
def test_scores_are_read_from_a_pickle_of_any_protocol(folder: Path, protocol: int) -> None:
    rows = json.loads(json.dumps(TASKS))
    file = folder / "scores.pkl"
    data = scores_of(rows)
    data["ranks"]["two_a"]["3"] = np.int64(1)
    file.write_bytes(pickle.dumps(data, protocol))
    assert read_ranks(file)["two_a"] == {"4": 0, "3": 1, "5": 2}
    plain = tasks_in(folder, rows)["two"]
    with pytest.raises(InvalidInput, match="without a rank"):
        plain.steps[0].best(50)
    ranked = read_tasks(folder / "data" / "test_task" / "test_task_0.json", file)["two"]
    assert ranked.steps[0].best(2) == ["4", "3"]


def test_ranks_that_change_in_their_file_are_read_again(folder: Path) -> None:
    rows = json.loads(json.dumps(TASKS))
    file, data = folder / "scores.pkl", scores_of(rows)
    tasks_in(folder, rows)
    for time, ranks in enumerate([{"4": 0, "3": 1, "5": 2}, {"4": 2, "3": 1, "5": 0}]):
        data["ranks"]["two_a"] = ranks
        file.write_bytes(pickle.dumps(data))
        os.utime(file, ns=(time, time))
        task = read_tasks(folder / "data" / "test_task" / "test_task_0.json", file)["two"]
        assert task.steps[0].candidates == ranks
    file.unlink()
    with pytest.raises(InvalidInput, match=r"scores\.pkl cannot be read: No such file"):
        read_tasks(folder / "data" / "test_task" / "test_task_0.json", file)


class Runs:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.marker),))


def test_a_pickle_that_calls_anything_is_refused_and_runs_nothing(folder: Path) -> None:
    file, marker = folder / "scores.pkl", folder / "ran"
    file.write_bytes(pickle.dumps({"ranks": Runs(marker)}))
    with pytest.raises(InvalidInput, match=r"refers to (posix|nt)\.mkdir, which scores do not need"):
        read_ranks(file)
    assert not marker.exists()
    for data in (b"", b"\x80\x04", pickle.dumps([1]), pickle.dumps({"ranks": {"a": 1}}), b"cbuiltins\neval\n."):
        file.write_bytes(data)
        os.utime(file, ns=(1, hash(data) & 0xFFFFFFFF))
        with pytest.raises(InvalidInput, match="cannot be used"):
            read_ranks(file)


@pytest.mark.parametrize(
    ("where", "key", "value", "message"),
    [
        ([0], "confirmed_task", "", r'task 1 needs "confirmed_task"'),
        ([1], "annotation_id", "two", "'two' appears twice"),
        ([0], "actions", [], r'\(two\) needs "actions"'),
        ([0], "action_reprs", ["one"], r'needs "action_reprs", a list with one string per action'),
        ([0, "actions", 1, "operation"], "op", "HOVER", "action 2: the operation must be CLICK"),
        ([0, "actions", 0], "cleaned_html", "<a>", r'"cleaned_html" is not XML'),
        ([0, "actions", 0], "pos_candidates", None, r'"pos_candidates" must be a list'),
    ],
)
def test_data_that_is_wrong_is_refused_with_its_place(
    folder: Path, where: list[Any], key: str, value: Any, message: str
) -> None:
    rows = place = json.loads(json.dumps(TASKS))
    for step in where:
        place = place[step]
    place[key] = value
    with pytest.raises(InvalidInput, match=message):
        tasks_in(folder, rows)


def test_the_command_writes_the_metrics(folder: Path) -> None:
    tasks = tasks_in(folder)
    answers = list[str]()
    answers += walked(tasks["two"], ("4", "Action: TYPE\nValue: Marlow Town"), ("5", "Action: CLICK"))[1]
    answers += walked(tasks["empty"], ("3", "Action: TYPE"), (None, ""))[1]
    answers += walked(tasks["many"], ("12", "Action: CLICK"))[1]
    answers += ["Answer: A"]  # of the task where nothing can be asked
    rows = json.loads(json.dumps(TASKS))
    (folder / "scores.pkl").write_bytes(pickle.dumps(scores_of(rows)))
    tasks_in(folder, rows)
    (folder / "answers.txt").write_text("\n---\n".join(answers), encoding="utf-8")
    given = "run mind2web --data-root data --split test_task --scores-pickle scores.pkl --top-k 50 --output-dir out"
    ran = CliRunner().invoke(bench, [*given.split(), "--model", "scripted:answers.txt"])
    assert ran.exit_code == 1, ran.output
    assert "1 of 4 solved, 3 failed" in ran.stdout
    assert "out: results.json, predictions.json" in ran.stderr
    results = json.loads((folder / "out" / "results.json").read_text())
    assert (results["tasks"], results["steps"], results["success"]) == (4, 6, 0.25)
    assert results["micro"] == pytest.approx({"element_accuracy": 0.5, "action_f1": 4 / 6, "step_success": 0.5})
    macro = {"element_accuracy": (1 + 0.5) / 4, "action_f1": (1 + 0.5 + 1) / 4, "step_success": (1 + 0.5) / 4}
    assert results["macro"] == pytest.approx(macro)
    predictions = json.loads((folder / "out" / "predictions.json").read_text())
    assert predictions[0] == ["two_a", "4", "TYPE Marlow Town"]
    assert predictions[3] == ["empty_b", "", ""]


async def test_the_environment_takes_any_answer_and_begins_anew(folder: Path) -> None:
    world = Mind2Web(file=str(folder / "data" / "test_task" / "test_task_0.json"), task="many")
    first = await world.reset()
    for action in ("", "\0", "lone \udcff", "Answer: Z", "x" * 20_000):
        step = await world.step(action)
        assert step.observation.strip()
        assert step.outcome is not None
    assert step.outcome.done, "three refusals leave no candidate, and then the task is over"
    assert await world.reset() == first
    await world.close()
    await world.close()


@pytest.mark.parametrize("split", ["test_website", "test_domain"])
def test_each_split_has_files_of_its_own(folder: Path, split: str) -> None:
    ran = CliRunner().invoke(bench, ["run", "mind2web", "--data-root", "data", "--split", split])
    assert ran.exit_code != 0
    assert f"There is no {split}_[0-9]*.json in" in str(ran.exception)
    assert "--scores-pickle" in str(ran.exception)


def test_a_benchmark_without_metrics_of_its_own_is_refused_before_a_model_is_asked(folder: Path) -> None:
    (folder / "shop.txt").write_text("think[tea]")
    given = ["run", "webshop", "--case", "mug", "--model", "scripted:shop.txt", "--output-dir", "out"]
    ran = CliRunner().invoke(bench, given)
    assert ran.exit_code != 0
    assert "webshop does not have its own metrics for --output-dir" in str(ran.exception)
    assert not (folder / "out").exists()


async def test_messages_of_a_template_stand_before_the_question_and_nothing_of_the_target(folder: Path) -> None:
    shots = [
        {"role": "system", "content": "You browse."},
        {"role": "user", "content": "EXAMPLE QUESTION"},
        {"role": "assistant", "content": "Answer: B."},
        {"role": "user", "content": ""},
    ]
    (folder / "llm_prompt.json").write_text(json.dumps(shots), encoding="utf-8")
    model = ScriptedModel(["Answer: A"] * 2)
    store = SqliteStore(folder / "mulligan.db")
    settings = {"benchmark": {"prompt_template": "llm_prompt.json"}}
    run = await run_benchmark("mind2web", model=model, store=store, data="data", cases=["two"], settings=settings)
    first, second = model.questions
    assert [message.role for message in first.messages] == ["system", "user", "assistant", "user"]
    assert first.messages[1].text == "EXAMPLE QUESTION"
    assert "Task: Do two." in first.messages[-1].text
    assert "Marlow" not in "".join(message.text for message in (*first.messages, *second.messages))
    assert run.results[0].status == "failed"
    assert run.results[0].episodes[0].parts == {
        "element_accuracy": (0.0,),
        "action_f1": (0.0,),
        "step_success": (0.0,),
    }
    (folder / "llm_prompt.json").write_text(json.dumps(shots[:-1]), encoding="utf-8")
    with pytest.raises(InvalidInput, match="must end with a user message"):
        await run_benchmark("mind2web", model=model, store=store, data="data", cases=["two"], settings=settings)
    await store.close()


async def test_our_template_has_three_examples_and_changed_scores_are_refused_on_a_resume(folder: Path) -> None:
    rows = json.loads(json.dumps(TASKS))
    (folder / "scores.pkl").write_bytes(pickle.dumps(data := scores_of(rows)))
    tasks_in(folder, rows)
    model = ScriptedModel(["Answer: A"])  # and no answer to the second question: the case ends with an error
    store = SqliteStore(folder / "mulligan.db")
    settings = {"benchmark": {"scores_pickle": "scores.pkl"}}
    run = await run_benchmark("mind2web", model=model, store=store, data="data", cases=["two"], settings=settings)
    assert [message.role for message in model.questions[0].messages] == ["system", *["user", "assistant"] * 3, "user"]
    assert run.results[0].status == "error"
    again = ScriptedModel(["Answer: A"])
    data["scores"]["two_a"]["4"] = 1.0
    (folder / "scores.pkl").write_bytes(pickle.dumps(data))
    with pytest.raises(JournalDiverged, match=r"scores\.pkl"):
        await resume_benchmark(run.run.id, model=again, store=store)
    await store.close()
