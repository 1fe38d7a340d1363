"""Each option of a run is written once, and every face has it: Python's signature, the command, the checks, the files."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row

import mulligan
from mulligan import Limits
from mulligan.agentfile.reading import read_agent
from mulligan.app.options import SolveOptions, options_in
from mulligan.bench.harness.plan import BenchOptions, choice_json, choice_of
from mulligan.cli.solve import solve as command
from mulligan.core.errors import InvalidInput


def test_signature_help_and_command_have_every_option() -> None:
    known = {it.name: it for it in options_in(SolveOptions)}
    parameters = inspect.signature(mulligan.solve).parameters
    assert list(parameters) == ["task", *known]
    assert {name: parameters[name].default for name in known} == {name: it.default for name, it in known.items()}
    assert {param.name for param in command.params} >= {name for name, it in known.items() if it.flags}
    described = inspect.getdoc(mulligan.solve) or ""
    assert all(it.help and f"{name}: " in described for name, it in known.items() if not it.same_as)


@each_row(
    ("given", "name", "value"),
    [
        ({"trials": 3}, "tries", 3),
        ({"evaluator": "human"}, "judge", "human"),
        ({"max_cost": 0.5, "limits": {"seconds": 9}}, "limits", {"cost": 0.5, "seconds": 9}),
        ({"max_seconds": 5.0, "limits": Limits(trials=2)}, "limits", Limits(trials=2, seconds=5.0)),
        ({"window": 2, "temperatures": (0, 1)}, "settings", {"strategy": {"window": 2}, "actor": {"temperatures": [0, 1]}}),
        ({"window": 2, "settings": {"strategy": {"window": 5}}}, "settings", {"strategy": {"window": 5}}),
        ({"checks": 2, "foresight": "premortem"}, "foresight", {"checks": 2, "name": "premortem"}),
    ],
)  # fmt: skip
def test_aliases_and_short_options_set_what_they_stand_for(given: dict[str, Any], name: str, value: Any) -> None:
    options = SolveOptions("t", **given)
    assert getattr(options, name) == value
    assert getattr(options.changed(seed=4), name) == value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"evaluator": "a", "judge": "b"}, "judge and evaluator mean the same"),
        ({"max_tokens": "9"}, "max_tokens must be an integer, not '9'"),
        ({"fresh": "yes"}, "fresh must be True or False, not 'yes'"),
        ({"checks": 2}, "checks= limits the checks"),
    ],
)
def test_a_wrong_option_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        SolveOptions("t", **given)


def test_options_of_a_benchmark_are_stored_under_their_names_of_before() -> None:
    stored = choice_json(BenchOptions("toy", tries=3, max_cost=1.0))
    assert (stored["trials"], stored["limits"], "tries" in stored) == (3, {"cost": 1.0}, False)
    assert choice_json(choice_of(stored)) == stored


def test_an_agent_file_may_say_tries_and_judge(tmp_path: Path) -> None:
    front = 'name: a\ndescription: b\nversion: "1"\npattern: oneshot\nlimits: {tries: 2}\nevaluate: {judge: human}\n'
    (tmp_path / "AGENT.md").write_text(f"---\n{front}---\nSay it.\n")
    agent, problems = read_agent(tmp_path, (), strict=True)
    assert not problems
    assert agent is not None
    assert (agent.limits, agent.evaluate) == ({"trials": 2}, {"evaluator": "human"})


def test_the_signature_of_run_benchmark_shows_each_option() -> None:
    shown = inspect.signature(mulligan.run_benchmark).parameters
    assert {it.name for it in options_in(BenchOptions)} <= set(shown)
    assert (shown["parallel"].default, shown["model"].annotation) == (1, "str | Model | Sequence[str] | None")
