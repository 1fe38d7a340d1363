"""Which model a step gets: flag, front matter, environment, mulligan.toml, built in, in this order."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from each_row import each_row

from mulligan.agentfile.agent import ModelChoice
from mulligan.app.config import load
from mulligan.app.model_roles import Models, StepModel, check_model_name, chosen, role_of
from mulligan.app.trusting import trust
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.models.provider import ProviderModel
from mulligan.models.scripted import ScriptedModel

FILE = """\
model = "scripted:all.txt"

[calls]
timeout = 9
attempts = 2

[models]
thinker = "scripted:think.txt"
worker = { name = "openai:gpt", temperature = 0.3, max_tokens = 50, base_url = "http://127.0.0.1:1/v1", timeout = 7 }

[models.critic]
temperature = 0.1
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    for name in ("all", "think", "other"):
        (tmp_path / f"{name}.txt").write_text(name)
    (tmp_path / "mulligan.toml").write_text(FILE)
    trust(tmp_path)
    return tmp_path


def pick(wanted: ModelChoice | None = None, pattern: Literal["react", "oneshot"] = "react", flag: str | None = None):
    return chosen(load(), wanted, pattern, flag)


@pytest.mark.parametrize(
    ("wanted", "pattern", "flag", "expected"),
    [
        (None, "react", None, StepModel("thinker", 1.0)),
        (None, "oneshot", None, StepModel("worker", 0.3, 50)),
        (ModelChoice(role="worker"), "react", None, StepModel("worker", 0.3, 50)),
        (ModelChoice(role="worker", temperature=0.9, max_tokens=5), "react", None, StepModel("worker", 0.9, 5)),
        (ModelChoice(role="critic"), "react", None, StepModel("critic", 0.1)),
        (ModelChoice(name="openai:gpt"), "oneshot", None, StepModel("openai:gpt", 0.3, 50)),
        (ModelChoice(role="thinker"), "oneshot", "local", StepModel("local", 1.0)),
        (ModelChoice(name="openai:gpt", temperature=0.7), "react", "worker", StepModel("worker", 0.7, 50)),
    ],
)
def test_flag_then_front_matter_then_the_pattern_s_role(
    project: Path, wanted: ModelChoice | None, pattern: Any, flag: str | None, expected: StepModel
) -> None:
    assert pick(wanted, pattern, flag) == expected


async def test_several_models_are_roles_or_names_wherever_one_can_be_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = "thinker, scripted:../other.txt"
    assert pick(ModelChoice(name=both)) == StepModel(both, 1.0)
    assert pick(flag=both) == StepModel(both, 1.0)
    opened = Models(load()).open(both)
    assert opened.name == "scripted:think.txt, scripted:other.txt"
    monkeypatch.setenv("MULLIGAN_MODEL_CRITIC", "scripted:../other.txt, local")
    assert role_of(load(), "critic").model == f"scripted:{project / 'other.txt'}, local"
    for wrong in ("thinker, nobody", "openai:gpt, opnai:gpt"):
        with pytest.raises(InvalidInput):
            Models(load()).open(wrong)
    with pytest.raises(UnknownName, match="opnai"):
        pick(ModelChoice(name="openai:gpt, opnai:gpt"))


def test_the_environment_goes_before_the_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_MODEL_WORKER", "scripted:../other.txt")
    monkeypatch.setenv("MULLIGAN_MODEL_WORKER_TEMPERATURE", "0.5")
    monkeypatch.setenv("MULLIGAN_MODEL_WORKER_MAX_TOKENS", "77")
    monkeypatch.setenv("MULLIGAN_MODEL_WORKER_BASE_URL", "http://localhost:2/v1")
    monkeypatch.setenv("MULLIGAN_MODEL_CRITIC", " ")  # as good as not set
    role = role_of(load(), "worker")
    assert (role.model, role.temperature, role.max_tokens) == (f"scripted:{project / 'other.txt'}", 0.5, 77)
    assert role.calls == {"base_url": "http://localhost:2/v1", "timeout": 7}
    assert role_of(load(), "critic").model == f"scripted:{project / 'all.txt'}"


def test_a_role_may_stand_in_the_environment_alone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_MODEL_MY_JUDGE", "openai:gpt")
    assert pick(ModelChoice(role="my-judge")) == StepModel("my-judge", 0.8)
    assert role_of(load(), "my_judge").model == "openai:gpt"


def test_what_no_role_names_is_the_model_of_all(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(name: str, file: str) -> tuple[str, float]:
        (project / "mulligan.toml").write_text(file)
        trust(project)
        role = role_of(load(), name)
        return role.model, role.temperature

    assert [of(name, "")[1] for name in ("thinker", "worker", "default")] == [1.0, 0.0, 0.8]
    assert of("thinker", "") == ("local", 1.0)
    assert of("thinker", "model = 'openai:a'") == ("openai:a", 1.0)
    assert of("thinker", "model = 'openai:a'\n[models]\ndefault = 'openai:b'") == ("openai:b", 1.0)
    assert of("thinker", "[models]\ndefault = {name = 'openai:b', temperature = 0.2}") == ("openai:b", 0.2)
    both = "[models]\ndefault = {name = 'openai:b', temperature = 0.2}\nmine = {temperature = 0.9}"
    assert of("mine", both) == ("openai:b", 0.9)
    assert of("thinker", "model = 'mine'\n[models]\nmine = {name = 'openai:c', temperature = 0}") == ("openai:c", 0)
    monkeypatch.setenv("MULLIGAN_MODEL", "openai:d")
    assert of("thinker", "model = 'openai:a'") == ("openai:d", 1.0)
    assert of("thinker", "[models]\nthinker = 'openai:b'") == ("openai:b", 1.0)


def test_an_unknown_role_is_refused_with_the_nearest(project: Path) -> None:
    with pytest.raises(
        UnknownName, match=r"Did you mean 'thinker'.*Available: critic, default, thinker, worker"
    ) as bad:
        pick(ModelChoice(role="thinkr"))
    assert "[models] of mulligan.toml" in str(bad.value)


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("[models]\nlocal = 'openai:gpt'", ":2: 'local' is reserved for model names"),
        ("[models]\nopenai = 'openai:gpt'", ":2: 'openai' is reserved for model names"),
        ("[models]\n\n'My Role' = 'openai:gpt'", ":3: the role 'My Role' must be in lower case"),
        ("[models]\nthinker = 7", ":2: the role 'thinker' must be a model's name or a table, not 7"),
        ("[models.thinker]\nname = 'local'\ntemprature = 1", ":3: No setting of a model role is called 'temprature'"),
        ("[models.thinker]\ntemperature = 'hot'", ":2: The temperature must be a number from 0 to 2"),
        ("[models.thinker]\ntemperature = nan", ":2: The temperature must be a number from 0 to 2"),
        ("[models.thinker]\nmax_tokens = 0", ":2: max_tokens must be an integer"),
        ("[models.thinker]\nname = ''", ":2: The name must be a model name"),
        ("[models.thinker]\ntimeout = 0", ":2: The model setting 'timeout' must be more than 0"),
        ("[models]\nthinker = 'worker'", ":2: 'worker' is a role. Specify the model itself"),
        ("model = 'thinker'", ":1: 'thinker' is a role. Specify the model itself"),
        ("models = 3", "[models] must be a table"),
    ],
)
def test_a_mistake_in_the_file_is_reported_with_its_line(project: Path, file: str, says: str) -> None:
    (project / "mulligan.toml").write_text(file)
    trust(project)
    with pytest.raises(InvalidInput) as bad:
        pick()
    assert f"{project}/mulligan.toml" in str(bad.value)
    assert says in str(bad.value)


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("TEMPERATURE", "hot", "MULLIGAN_MODEL_THINKER_TEMPERATURE must be a number"),
        ("TEMPERATURE", "-1", "MULLIGAN_MODEL_THINKER_TEMPERATURE: The temperature must be"),
        ("TEMPERATURE", "nan", "MULLIGAN_MODEL_THINKER_TEMPERATURE: The temperature must be"),
        ("MAX_TOKENS", "1.5", "MULLIGAN_MODEL_THINKER_MAX_TOKENS: max_tokens must be an integer"),
        ("BASE_URL", "localhost", "MULLIGAN_MODEL_THINKER_BASE_URL: The model setting 'base_url' must begin with http"),
        ("PARALLEL", "\u00b2", "MULLIGAN_MODEL_THINKER_PARALLEL must be a number"),
    ],
)
def test_a_bad_variable_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    monkeypatch.setenv(f"MULLIGAN_MODEL_THINKER_{variable}", value)
    with pytest.raises(InvalidInput) as bad:
        pick()
    assert says in str(bad.value)


def test_models_open_roles_with_their_own_call_settings(project: Path) -> None:
    models = Models(load())
    worker = models.open("worker")
    assert isinstance(worker, ProviderModel)
    assert worker.id == "openai:gpt"
    settings = worker._settings  # pyright: ignore[reportPrivateUsage]
    assert (settings.base_url, settings.timeout, settings.attempts) == ("http://127.0.0.1:1/v1", 7, 2)
    assert models.open("thinker").id.startswith("scripted:think.txt@")


def test_roles_of_one_model_share_it(project: Path) -> None:
    (project / "mulligan.toml").write_text("model = 'scripted:all.txt'")
    trust(project)
    models = Models(load())
    assert models.open("thinker") is models.open("worker") is models.open(f"scripted:{project / 'all.txt'}")


def test_a_role_that_cannot_be_opened_is_blamed_where_it_stands(project: Path) -> None:
    (project / "mulligan.toml").write_text("[models]\nthinker = 'opnai:gpt'\n[models.worker]\ninput_price = 1.0\n")
    trust(project)
    with pytest.raises(InvalidInput, match=r"mulligan.toml:2: No model provider is called 'opnai'"):
        Models(load()).open("thinker")
    with pytest.raises(InvalidInput, match="Set both"):
        Models(load()).open("worker")
    with pytest.raises(InvalidInput, match="Or use a model role: thinker, worker, default"):
        Models(load()).open("thinkr")


def test_a_model_given_as_an_object_answers_to_its_name(project: Path) -> None:
    models, mine = Models(load()), ScriptedModel(["x"])
    assert models.open(models.name(mine) or "") is mine
    with pytest.raises(InvalidInput, match="Two models are called"):
        models.name(ScriptedModel(["y"]))


@pytest.mark.parametrize("name", ["local", "openai:gpt-9", "bedrock:some.model", "local:smollm2-135m", "groq:x"])
def test_a_name_that_may_be_a_model_needs_no_key_to_be_checked(name: str) -> None:
    check_model_name(name)


@each_row(
    ("name", "says"),
    [
        ("gpt", "No model is called 'gpt'"),
        ("openai", "openai is a provider: write openai:MODEL"),
        ("openai:", "openai is a provider: write openai:MODEL"),
        ("opnai:gpt", "Did you mean 'openai'"),
        ("local:smollm", "Did you mean 'smollm2-135m'"),
        ("scripted:none.txt", "cannot be read"),
        ("replay:", "replay needs a file"),
    ],
)
def test_a_name_that_no_model_can_have(name: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        check_model_name(name)
