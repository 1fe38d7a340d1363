"""HotPotQA: what is read, who sees what of it, who judges, and what cannot be read."""

import json
from pathlib import Path
from typing import Any

import pytest

from mulligan.app.plugins import build
from mulligan.bench.hotpotqa.hotpotqa import HotPotQA
from mulligan.core.benchmarks import Benchmark
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Evaluator
from mulligan.core.records import Attempt, Case, Episode, Spec, Trial

ROW: dict[str, Any] = {
    "id": "q1",
    "question": " Which river flows by the birthplace of Odo Brandt? ",
    "answer": "The Erle",
    "type": "bridge",
    "level": "hard",
    "context": [
        {"title": "Odo Brandt", "sentences": ["A clockmaker.", " Born in Hallweil."]},
        {"title": "Ulm", "sentences": ["Ulm has a steeple."]},
        {"title": "Hallweil", "sentences": ["A town on the Erle.", " It has mills."]},
        {"title": "Blank", "sentences": [" "]},
    ],
    "supporting_facts": [
        {"title": "Hallweil", "sent_id": 0},
        {"title": "Odo Brandt", "sent_id": 1},
        {"title": "Hallweil", "sent_id": 1},
    ],
}
OFFICIAL = {
    "_id": "q1",
    "question": ROW["question"],
    "answer": ROW["answer"],
    "type": "bridge",
    "level": "hard",
    "context": [[page["title"], page["sentences"]] for page in ROW["context"]],
    "supporting_facts": [[fact["title"], fact["sent_id"]] for fact in ROW["supporting_facts"]],
}


COLUMNS = {
    **ROW,
    "context": {name: [page[name] for page in ROW["context"]] for name in ("title", "sentences")},
    "supporting_facts": {name: [fact[name] for fact in ROW["supporting_facts"]] for name in ("title", "sent_id")},
}
"""As the reference's sample has them, once it is written as JSON."""


def judges(spec: Spec) -> Evaluator:
    return build("evaluators", spec, {})


def made(**settings: Any) -> HotPotQA:
    return HotPotQA(judges=judges, **settings)


def loaded(folder: Path, rows: Any, **settings: Any) -> Case:
    file = folder / "hotpot.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    return made(**settings).load([file])[0]


@pytest.mark.parametrize("mode", ["react", "cot", "cot-context"])
def test_all_forms_of_the_file_give_the_same_case(mode: str, tmp_path: Path) -> None:
    case = loaded(tmp_path, [ROW], mode=mode)
    assert case == loaded(tmp_path, [OFFICIAL], mode=mode) == loaded(tmp_path, [COLUMNS], mode=mode)
    assert case.id == "q1"
    assert case.task.prompt == "Which river flows by the birthplace of Odo Brandt?"
    assert case.target["answer"] == "The Erle"


def test_the_context_has_each_paragraph_once_in_the_order_of_the_facts(tmp_path: Path) -> None:
    case = loaded(tmp_path, [ROW], mode="cot-context")
    assert case.task.inputs == {"context": "A town on the Erle. It has mills.\n\nA clockmaker. Born in Hallweil."}


def test_who_has_to_search_is_not_told_which_pages_count(tmp_path: Path) -> None:
    case = loaded(tmp_path, [ROW])
    other = loaded(tmp_path, [{**ROW, "supporting_facts": [{"title": "Ulm", "sent_id": 0}]}])
    assert case == other
    assert case.task.inputs == {}
    benchmark = made()
    world = benchmark.play(case, benchmark.methods()["reflexion"]).environment
    assert world is not None
    assert world.name == "wiki"
    assert [page["title"] for page in world.settings["pages"]] == ["Odo Brandt", "Ulm", "Hallweil"]


def test_methods_are_the_papers_and_the_first_is_reflexion() -> None:
    benchmark = made()
    assert isinstance(benchmark, Benchmark)
    methods = benchmark.methods()
    assert list(methods) == ["reflexion", "simple", "resample", "last_attempt", "last_attempt_and_reflexion"]
    assert {name: method.strategy.name for name, method in methods.items()} == {
        "reflexion": "reflexion",
        "simple": "none",
        "resample": "none",
        "last_attempt": "last_attempt",
        "last_attempt_and_reflexion": "last_attempt_and_reflexion",
    }
    assert {name: method.trials for name, method in methods.items() if method.trials != 5} == {"simple": 1}


@pytest.mark.parametrize(("mode", "world"), [("react", Spec("wiki")), ("cot", None), ("cot-context", None)])
def test_only_who_searches_has_a_world(mode: Any, world: Spec | None) -> None:
    assert [method.environment for method in made(mode=mode).methods().values()] == [world] * 5


def test_the_model_judges_unless_the_oracle_is_asked_for(tmp_path: Path) -> None:
    case = loaded(tmp_path, [ROW])
    for name, method in made().methods().items():
        played = made().play(case, method)
        assert not played.oracle
        assert played.evaluator.name == ("unjudged" if name == "simple" else "model_judge")
        assert "Erle" not in json.dumps(played.evaluator.settings)


def test_a_declared_oracle_knows_the_answer_and_nobody_else_does(tmp_path: Path) -> None:
    case = loaded(tmp_path, [{**ROW, "answer": "Zanzibar"}])
    benchmark = made(judge="oracle")
    for name, method in benchmark.methods().items():
        played = benchmark.play(case, method)
        assert played.oracle == (name != "simple")
        if played.oracle:
            assert played.evaluator == Spec("exact_match", {"oracle": True, "answer": "Zanzibar"})
        for spec in (played.actor, played.reflector, played.strategy, played.environment):
            assert spec is not None
            assert "Zanzibar" not in json.dumps(spec.settings)
        assert "Zanzibar" not in json.dumps([case.task.prompt, dict(case.task.inputs)])


@pytest.mark.parametrize(
    ("output", "value"), [("the erle.", 1.0), ("Erle", 1.0), ("The river Erle", 0.0), ("", 0.0), ("a", 0.0)]
)
async def test_the_score_is_exact_match(output: str, value: float, tmp_path: Path) -> None:
    case = loaded(tmp_path, [ROW])
    episode = Episode("e.1", case.task, trials=(Trial(1, Attempt(output)),))
    score = await made().score(case, episode)
    assert score.value == value
    assert "Erle" not in score.text


async def test_an_answer_that_the_rule_leaves_nothing_of_is_unscored(tmp_path: Path) -> None:
    case = loaded(tmp_path, [{**ROW, "answer": "A"}])
    score = await made().score(case, Episode("e.1", case.task, trials=(Trial(1, Attempt("A")),)))
    assert score.value is None
    benchmark = made(judge="oracle")
    played = [benchmark.play(case, method) for method in benchmark.methods().values()]
    assert {method.evaluator.name for method in played} == {"unjudged"}, "the other questions can still be run"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({}, "a JSON list of at least one question"),
        ([], "a JSON list of at least one question"),
        ([ROW, 1], "question 2: this must be an object"),
        ([{**ROW, "answer": " "}], 'question 1 needs "answer"'),
        ([{**ROW, "id": None}], 'question 1 needs "id"'),
        ([{**ROW, "context": [{"title": "Ulm"}]}], r"question 1 \(q1\): .*KeyError: 'sentences'"),
        ([{**ROW, "context": [["Ulm"]]}], r"question 1 \(q1\): .*ValueError"),
        ([{**ROW, "context": [["Ulm", "A town."]]}], "the page 'Ulm'"),
        ([{**ROW, "context": [[" ", ["A town."]]]}], "the page ' '"),
        ([ROW, ROW], "'q1' appears twice"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_place(rows: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=said):
        loaded(tmp_path, rows)


@pytest.mark.parametrize(
    ("facts", "said"), [([], "supporting_facts is missing"), ([{"title": "Bonn", "sent_id": 0}], "Bonn is missing")]
)
def test_a_context_needs_its_paragraphs(facts: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=said):
        loaded(tmp_path, [{**ROW, "supporting_facts": facts}], mode="cot-context")
    assert loaded(tmp_path, [{**ROW, "supporting_facts": facts}], mode="cot").id == "q1"


def test_a_docstore_of_the_users_own_takes_the_place_of_the_pages(tmp_path: Path) -> None:
    store = tmp_path / "pages"
    store.mkdir()
    (store / "Ulm.txt").write_text("Ulm has a steeple.")
    case = loaded(tmp_path, [ROW], docstore=str(store))
    assert case.target["world"]["documents"] == str(store.resolve())
    (store / "Ulm.txt").write_text("Ulm has a high steeple.")
    assert loaded(tmp_path, [ROW], docstore=str(store)).target != case.target
    with pytest.raises(InvalidInput, match="does not exist"):
        loaded(tmp_path, [ROW], docstore=str(tmp_path / "none"))
    with pytest.raises(InvalidInput, match="A docstore needs the mode 'react'"):
        made(mode="cot", docstore=str(store))
