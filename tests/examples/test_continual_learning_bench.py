"""The adapter for Continual Learning Bench, run inside a package that has the interface of the benchmark's systems."""

from __future__ import annotations

import importlib
import re
import runpy
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from banks import lessons_of
from pydantic import BaseModel

from mulligan.core.questions import Question, Sampling
from mulligan.models.scripted import ScriptedModel

FILE = Path(__file__).parents[2] / "examples" / "continual_learning_bench" / "mulligan_system.py"

INTERFACE = """
from dataclasses import dataclass
from typing import Any


@dataclass
class Observation:
    content: str
    instance_complete: bool = True
    metadata: Any = None


@dataclass
class Query:
    prompt: str
    response_schema: Any
    feedback: Any = None
    instance_id: Any = None
    instance_index: Any = None
    metadata: Any = None


@dataclass
class Response:
    action: Any
    metadata: Any = None


class ContinualLearningSystem:
    supports_baseline = True
    parallel_safe = True

    def record_usage_event(self, event):
        vars(self).setdefault("events", []).append(event)
"""
USAGE = """
from dataclasses import dataclass


@dataclass
class UsageEvent:
    model: str
    input_tokens: int
    output_tokens: int
"""
REGISTRY = """
SYSTEMS = {}


def register_system(name):
    def register(cls):
        SYSTEMS[name] = cls
        return cls

    return register
"""


SYSTEMS: list[Any] = []
"""Those that a test has made."""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """The stub of the benchmark, with the adapter where its systems stand."""
    folder = tmp_path / "clb_stub"
    (folder / "systems" / "mulligan").mkdir(parents=True)
    files = {"interface": INTERFACE, "usage": USAGE, "registry": REGISTRY, "__init__": "", "systems/__init__": ""}
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "systems/mulligan/__init__.py").write_text(FILE.read_text())
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    importlib.import_module("clb_stub.systems.mulligan")
    yield
    for system in SYSTEMS:
        system.close()
    SYSTEMS.clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "clb_stub"]:
        del sys.modules[name]


class Word(BaseModel):
    word: str


class Mind(ScriptedModel):
    """Says the word that a lesson names, and draws that lesson from what the outcome of an instance revealed."""

    def __init__(self) -> None:
        super().__init__(self._answer, "mind")

    def _answer(self, question: Question, sampling: Sampling) -> Any:
        keys = question.schema["properties"]
        text = "\n".join(message.text for message in question.messages)
        if "verdict" in keys:
            return {"reasoning": "It says so.", "verdict": "failure"}
        revealed = re.findall(r"the word is (\w+)", text)
        if "word" in keys:
            return {"word": revealed[0] if revealed else "unknown"}
        assert "lessons" in keys
        return lessons_of(("The word of the house", f"In this house the word is {revealed[-1]}."))


def play(system: Any, *, turns: int = 1) -> str:
    """One instance; what was said in the end."""
    interface = importlib.import_module("clb_stub.interface")
    said = ""
    for turn in range(1, turns + 1):
        query = interface.Query("What is the word of the house?", Word, instance_id="i", instance_index=0)
        said = system.respond(query).action.word
        over = turn == turns
        content = f"{'right' if said == 'bolt' else 'wrong'}: the word is bolt" if over else "go on"
        success = {"success": said == "bolt"} if over else None
        system.observe(interface.Observation(content, over, success), None if over else query)
    return said


def made(model: ScriptedModel | None = None, **given: Any) -> Any:
    registry = importlib.import_module("clb_stub.registry")
    SYSTEMS.append(registry.SYSTEMS["mulligan"](model=model or Mind(), **given))
    return SYSTEMS[-1]


pytestmark = pytest.mark.usefixtures("bench")


def test_it_acts_with_what_it_learned_and_forgets_on_reset() -> None:
    system = made(forms="lessons")
    assert system.name == "mulligan"
    assert play(system) == "unknown"
    assert play(system) == "bolt"
    notes = system.get_run_artifacts()
    assert any("bolt" in note["content"] for note in notes["notes"])
    assert "bolt" in notes["shown_last"]
    system.reset()
    assert system.get_run_artifacts()["notes"] == []
    assert play(system) == "unknown"


def test_it_learns_when_an_instance_is_over_and_not_before() -> None:
    system = made(forms="lessons")
    play(system, turns=3)
    asked = [set(question.schema["properties"]) for question in system._model._inner.questions]
    assert asked[:3] == [{"word"}] * 3
    assert "lessons" in asked[-1]
    third = system._model._inner.questions[2]
    assert [message.text for message in third.messages].count("Outcome: go on") == 2


def test_each_call_is_recorded_as_usage() -> None:
    system = made(forms="lessons")
    play(system)
    assert len(system.events) == len(system._model._inner.questions) >= 2
    assert all(event.model == "mind" and event.input_tokens > 0 for event in system.events)


def test_an_answer_that_does_not_fit_is_asked_for_again() -> None:
    system = made(ScriptedModel([{"words": "bolt"}, {"word": "bolt"}], "slip"))
    interface = importlib.import_module("clb_stub.interface")
    assert system.respond(interface.Query("Say it.", Word)).action.word == "bolt"


class House:
    """A task in the form of the benchmark: the word of the house changes at `drift`, when the run has come so far.

    follows: whether a single instance, as the baseline runs it, stands in its own place of the sequence.
    """

    drift, instances = 3, 6

    def __init__(self, *, follows: bool) -> None:
        self._follows = follows

    def outcomes(self, system: Any, indices: list[int]) -> list[dict[str, Any]]:
        interface = importlib.import_module("clb_stub.interface")
        found: list[dict[str, Any]] = []
        system.reset()
        for local, index in enumerate(indices):
            position = index if self._follows else local
            word = "nail" if position >= self.drift else "bolt"
            notice = "NOTICE: the words are new.\n" if position == self.drift else ""
            query = interface.Query(f"{notice}What is the word of the house?", Word, instance_id=f"i{index}")
            reward = float(system.respond(query).action.word == word)
            said = interface.Observation(f"the word is {word}", True, {"success": bool(reward)})
            system.observe(said)
            found.append({"instance_id": f"i{index}", "instance_index": position, "reward": reward})
        return found

    def run(self, system: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The outcomes of the system, and those of its baseline, which is reset before each instance."""
        alone = [self.outcomes(system, [index])[0] for index in range(self.instances)]
        return self.outcomes(system, list(range(self.instances))), alone


@pytest.mark.slow
def test_gain_and_reward_stand_beside_the_fixed_baseline_and_a_baseline_before_the_drift_is_named() -> None:
    report = runpy.run_path(str(FILE.with_name("figures.py")))["report"]
    run, baseline = House(follows=True).run(made(forms="lessons"))
    sound = report(run, baseline, r_max=1.0, fixed=0.25, drift=House.drift)
    assert [one["reward"] for one in run] == [0, 1, 1, 0, 0, 1], "after the drift, what was learned twice counts"
    earned = sum(one["reward"] for one in run) / 6
    assert sound.faults == ()
    assert sound.comparable == sound.whole
    assert (sound.whole.n, sound.whole.stateless) == (6, 0.0)
    assert sound.whole.gain == sound.whole.gain_norm == sound.whole.reward == pytest.approx(earned)
    assert sound.whole.reward_norm == pytest.approx((earned - 0.25) / 0.75)

    _, alone = House(follows=False).run(made(forms="lessons"))
    assert {one["instance_index"] for one in alone} == {0}, "each counts itself as the first"
    wrong = report(run, alone, r_max=1.0, drift=House.drift)
    assert "3 instances after the drift" in wrong.faults[0]
    assert (wrong.comparable.n, wrong.comparable.gain) == (3, pytest.approx(2 / 3))
    assert wrong.whole.reward_norm is None
    with pytest.raises(ValueError, match="in common"):
        report(run, [], r_max=1.0)
