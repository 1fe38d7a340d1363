"""What a memory costs: nothing shown leaves a task as it is, the balance is that of the report, code is drawn anew."""

from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan.app.memory import open_bank
from mulligan.bench.harness.stream import Arm, run_stream
from mulligan.bench.report.stream import read_stream
from mulligan.core.protocols import Store
from mulligan.store import open_store

SMALL = {"reader": "small", "forms": ["lessons"], "embedder": "none"}


@pytest.fixture
async def store(tmp_path: Path) -> Any:
    async with open_store(f"sqlite:///{tmp_path}/runs.db") as opened:
        yield opened


async def ran(store: Store, memory: dict[str, Any], family: str = "code", **settings: Any) -> Any:
    run = await run_stream(
        f"stream:{family}",
        arms=(Arm("none"), Arm("priced", memory)),
        orders=1,
        model=f"reader:{family}",
        store=store,
        settings={"benchmark": settings},
    )
    return await read_stream(store, run.id)


async def requests(store: Store, episode: str) -> list[Any]:
    return [step.request for step in await store.steps(episode) if "/model." in step.key]


@pytest.mark.slow
async def test_where_nothing_is_shown_prompt_and_answer_are_those_without_memory(store: Store) -> None:
    report = await ran(store, SMALL, tasks=5, kinds=12, drift="none")  # kinds that never come again
    without, priced = ([row for row in report.rows if row.arm == arm] for arm in ("none", "priced"))
    assert len(without) == len(priced) == 5
    assert [row.recalled for row in priced] == [0] * 5
    for one, other in zip(without, priced, strict=True):
        assert await requests(store, one.episode) == await requests(store, other.episode)
        ours, theirs = [await store.load(row.episode) for row in (one, other)]
        assert [trial.attempt.output for trial in ours.trials] == [trial.attempt.output for trial in theirs.trials]
        assert one.tokens == other.tokens


@pytest.mark.slow
@pytest.mark.parametrize(("family", "kinds"), [("game", 12), ("database", 4), ("service", 8)])
async def test_facts_that_change_unannounced_lose_nothing_and_cost_little(
    store: Store, family: str, kinds: int
) -> None:
    report = await ran(store, SMALL, family, tasks=12, kinds=kinds, drift=5, announce=False)
    arms = {arm.arm: arm for arm in report.arms}
    assert arms["priced"].score >= arms["none"].score - 0.05
    assert arms["priced"].tokens <= 1.1 * arms["none"].tokens


@pytest.mark.parametrize("share", [0.1, pytest.param(1, marks=pytest.mark.slow)])
async def test_the_balance_agrees_with_the_report_to_the_token(store: Store, share: float) -> None:
    memory = {**SMALL, "reader": "large", "forms": ["notebook", "lessons"], "learn_share": share}
    report = await ran(store, memory, "service", tasks=8, kinds=2, drift="none")
    rows = [row for row in report.rows if row.arm == "priced"]
    async with open_bank(f"{report.run.id}-priced-1", embedder="none") as bank:
        found = await bank.balance()
    assert found.tasks == len(rows)
    assert found.task_tokens == sum(row.tokens_in + row.tokens_out for row in rows)
    assert found.learning_tokens == sum(row.memory_tokens_in + row.memory_tokens_out for row in rows)
    assert found.recalled_tokens == sum(row.recalled_tokens for row in rows)
    assert found.recalled_tokens > 0
    assert (found.learning_tokens > 0) == (share == 1)
    assert found.recalls == sum(row.recalled > 0 for row in rows)


WRONG, RIGHT = "def double(x):\n    return x", "def double(x):\n    return 2 * x"


async def test_code_that_failed_before_is_drawn_anew_and_warmer(tmp_path: Path) -> None:
    tests = tmp_path / "tests.py"
    tests.write_text("assert double(2) == 4\n")
    model = mulligan.ScriptedModel([WRONG, f"{WRONG}  # the same", WRONG, RIGHT])
    episode = await mulligan.solve("Write double(x).", model=model, tests=str(tests), trials=3)
    assert (episode.solved, len(episode.trials), len(model.questions)) == (True, 2, 4)
