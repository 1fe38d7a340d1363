"""`solve(judge=…)` takes what `retry(judge=…)` takes, and arguments of a wrong type are refused before any model."""

from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan import Episode, Feedback, ScriptedModel
from mulligan.core.errors import InvalidInput
from support.judges import in_euros


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


class Euros:
    """An evaluator of a program's own."""

    expects = "text"

    async def evaluate(self, episode: Episode) -> Feedback:
        return Feedback(episode.trials[-1].attempt.output.endswith("EUR"), "no currency", source="euros")


async def in_euros_later(answer: str) -> tuple[bool, str]:
    return answer.endswith("EUR"), "no currency"


JUDGES: list[Any] = [
    in_euros,
    lambda answer: answer.endswith("EUR"),  # pyright: ignore
    in_euros_later,
    "exact_match:12 EUR",
    "command:grep -q EUR {attempt}",
    Euros(),
    Euros,
]


@pytest.mark.parametrize("argument", ["judge", "evaluator"])
@pytest.mark.parametrize("judge", JUDGES, ids=range(len(JUDGES)))
async def test_each_kind_of_judge(judge: Any, argument: str) -> None:
    episode = await mulligan.solve(
        "Write the total of 5 and 7.",
        model=ScriptedModel(["12", "12 EUR"]),
        strategy="evidence",
        tries=3,
        **{argument: judge},
    )
    assert [trial.attempt.output for trial in episode.trials] == ["12", "12 EUR"]
    assert episode.solved


async def test_a_path_is_a_file_of_tests(tmp_path: Path) -> None:
    file = tmp_path / "tests.py"
    file.write_text("assert add(2, 3) == 5\n")
    answer = "def add(a, b):\n    return a + b\n"
    episode = await mulligan.solve("Write add.", judge=file, model=ScriptedModel([answer]), tries=1)
    assert episode.solved


@pytest.mark.parametrize("text", ["evaluator = [", "seconds = " + "1" * 5000, "seconds = " + "[" * 5000])
async def test_settings_of_a_task_folder_that_are_not_toml_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "task.md").write_text("Write add.")
    (tmp_path / "evaluate.toml").write_text(text)
    with pytest.raises(InvalidInput, match=r"evaluate\.toml(:1: | cannot be read: )"):
        await mulligan.solve(tmp_path, model=ScriptedModel([]))


async def test_a_run_goes_on_with_the_function_that_judged_it() -> None:
    options: dict[str, Any] = {"model": ScriptedModel(["12"]), "strategy": "evidence"}
    first = await mulligan.solve("Write the total.", judge=in_euros, trials=1, **options)
    assert not first.solved
    more: dict[str, Any] = {"model": ScriptedModel(["12 EUR"]), "limits": {"trials": 2}}
    again = await mulligan.resume(first.run, judge=in_euros, fork=True, **more)
    assert again.solved


def by_price(price: float, answer: str) -> bool:
    return bool(price and answer)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"judge": 3}, "judge must be a function, the Path of a test file, or a name of an evaluator, or an object with"),
    ({"judge": "exact_mach:12"}, "exact_match"),
    ({"judge": by_price}, "needs price, which a task does not have"),
    ({"judge": in_euros, "evaluator": in_euros}, "judge and evaluator mean the same: pass only judge"),
    ({"judge": in_euros, "check": "true"}, "check and judge cannot both judge"),
    ({"tries": 2, "trials": 2}, "tries and trials mean the same"),
    ({"trials": "4"}, "trials must be an integer, not '4'"),
    ({"tries": True}, "tries must be an integer, not True"),
    ({"tries": 0}, "tries must be at least 1, not 0"),
    ({"limits": 3}, "limits must be a Limits object or a mapping such as"),
    ({"limits": {"second": 5}}, "second"),
    ({"restarts": "2"}, "restarts must be an integer, not '2'"),
    ({"seed": 0.5}, "seed must be an integer, not 0.5"),
    ({"model": 3}, "model must be the name of a model, a list of names, or an object with `ask`, not 3"),
    ({"judge_model": 3}, "judge_model must be the name of a model"),
    ({"check": 3}, "check must be a string, not 3"),
    ({"tests": 3}, "tests must be a path, not 3"),
    ({"workspace": 3}, "workspace must be a path, not 3"),
    ({"settings": 3}, "settings must be a mapping of roles"),
    ({"bank": 3}, "bank must be the name of an agent, or a bank, not 3"),
    ({"store": "x.db"}, "store must be a store, not 'x.db'"),
    ({"actor": 3}, "actor must be a name, or an object with `act`, not 3"),
    ({"reflector": 3}, "reflector must be a name, or an object with `reflect`, not 3"),
    ({"strategy": 3}, "strategy must be a name, or an object with `past`, not 3"),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=range(len(WRONG)))
async def test_what_cannot_work_is_refused_before_any_model_is_called(options: dict[str, Any], message: str) -> None:
    model = ScriptedModel(["12 EUR"])
    arguments: dict[str, Any] = {"model": model, **options}
    if not {"judge", "evaluator", "check", "tests"} & options.keys():
        arguments["judge"] = in_euros
    with pytest.raises(InvalidInput, match=message):
        await mulligan.solve("Write the total.", **arguments)
    assert not model.questions


async def test_the_same_error_of_a_judge_in_two_trials_is_a_probable_bug() -> None:
    model = ScriptedModel(["12", "Lesson: more.", "13", "Lesson: more."])
    episode = await mulligan.solve("The total", model=model, judge=lambda answer: answer + 1, trials=2)
    first, second = (trial.feedback for trial in episode.trials)
    assert first is not None
    assert second is not None
    assert (first.passed, second.passed) == (False, None)
    assert "Probably a bug in the judge <lambda>" in second.text
