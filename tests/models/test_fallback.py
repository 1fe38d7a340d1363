"""Several models in the place of one: the next is asked where one fails, and the record says which answered."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from wire_client import Wire

from mulligan.app.solve import solve
from mulligan.cli.main import cli
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.limits import Limits
from mulligan.core.questions import Message, Question
from mulligan.models.catalog import open_model
from mulligan.models.gate import check_prices
from mulligan.models.settings import CallSettings
from mulligan.store.sqlite import SqliteStore

ASKED = Question((Message("user", "What is six times seven?"),))
REFUSED = {"status": 404, "body": {"error": {"message": "no such model"}}}
BUSY = {"status": 429, "body": {"error": {"message": "slow down"}}}
FIRST, SECOND = "openai:gpt-4o", "anthropic:claude-haiku-4-5"


async def test_the_next_model_answers_where_one_is_limited_and_the_last_error_is_shown(wire: Wire) -> None:
    both = open_model(f"{FIRST}, {SECOND}", settings=CallSettings(attempts=1))
    wire.plays(BUSY, "42", BUSY, BUSY)
    answer = await both.ask(ASKED)
    assert (answer.content, answer.model.partition(":")[0]) == ("42", "anthropic")
    with pytest.raises(ModelError, match="anthropic:claude-haiku-4-5"):
        await both.ask(ASKED)


async def test_an_answer_that_was_paid_for_is_not_bought_again(wire: Wire) -> None:
    both = open_model(f"{FIRST}, {SECOND}")
    wire.plays({"answer": "", "finish": "length"})
    with pytest.raises(ModelError, match="raise max_tokens"):
        await both.ask(ASKED)
    assert len(wire.requests) == 1


async def test_a_budget_is_held_at_the_highest_price_and_a_key_goes_to_one_provider(wire: Wire) -> None:
    dear = open_model(f"{FIRST}, ollama:qwen3")
    check_prices([dear], Limits(cost=1.0))
    with pytest.raises(InvalidInput, match="price"):
        check_prices([open_model(f"{FIRST}, alibaba:qwen-plus")], Limits(cost=1.0))
    with pytest.raises(InvalidInput, match="One key"):
        open_model(f"{FIRST}, {SECOND}", key="sk-one-key-of-openai")


@pytest.fixture
def second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A scripted model that answers once, by a path from the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    Path("b.json").write_text(json.dumps(["42"]), encoding="utf-8")
    return "scripted:b.json"


async def test_each_try_records_the_model_that_answered(wire: Wire, second: str, tmp_path: Path) -> None:
    wire.plays("41", REFUSED)
    store = SqliteStore(tmp_path / "mulligan.db")
    episode = await solve(
        "What is six times seven?",
        judge="exact_match:42",
        strategy="evidence",
        model=[FIRST, second],
        store=store,
    )
    steps = [step for step in await store.steps(episode.id) if "model." in step.key]
    await store.close()
    assert episode.solved
    models = [(step.key.partition("/")[0], str(step.result["model"]).partition(":")[0]) for step in steps]  # pyright: ignore
    assert models == [("trial.1", "openai"), ("trial.2", "scripted")]


def test_a_model_named_twice_on_the_command_line(wire: Wire, second: str) -> None:
    wire.plays(REFUSED)
    asked = ["solve", "What is six times seven?", "--judge", "exact_match:42", "--model", FIRST]
    done = CliRunner().invoke(cli, [*asked, "--model", second])
    assert done.exit_code == 0, done.output
    assert "42" in done.output
