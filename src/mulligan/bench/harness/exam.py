"""The exam of memories: streams of a scripted reader, each memory with two controls, for gain and for harm.

The controls are those of a stream. The unrelated tasks are of the same family in another world, whose facts are worded
alike and are wrong here: the worst that a memory of other work can do.
"""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.bench.harness.stream import CONTROLS, NONE, StreamHooks, run_stream
from mulligan.core.benchmarks import BenchRun
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Store

FAMILIES = ("database", "game", "service")
"""The streams of an exam. `code` runs tests in the sandbox, which takes ten times as long."""
MEMORIES = ("default", "markdown")
TASKS, ORDERS, SEED = 20, 1, 1
"""SEED: any but 0, the world of the unrelated control."""


async def run_exam(
    memories: Sequence[str] = MEMORIES,
    *,
    families: Sequence[str] = FAMILIES,
    tasks: int = TASKS,
    orders: int = ORDERS,
    seed: int = SEED,
    model: str | None = None,
    store: Store | None = None,
    hooks: StreamHooks = StreamHooks(),
) -> list[BenchRun]:
    """Run the streams of an exam; `bench.report.exam` reads what came of them.

    Args:
        memories: arms, besides the one without memory.
        families: the streams.
        tasks, orders: of each stream.
        seed: of the worlds.
        model: None: the scripted reader of each family.

    Raises:
        InvalidInput: an option cannot be used; no model was called yet.
    """
    if seed == 0:
        raise InvalidInput("The seed 0 is used for the world of the unrelated control: choose another.")
    arms = [NONE, *(memory for memory in memories if memory != NONE)]
    if len(arms) == 1 or not families:
        raise InvalidInput("An exam needs at least one memory besides none, and at least one stream.")
    return [
        await run_stream(
            f"stream:{family}",
            arms=arms,
            orders=orders,
            controls=CONTROLS,
            unrelated=f"stream:{family}",
            model=model or f"reader:{family}",
            settings={"benchmark": {"tasks": tasks, "seed": seed}},
            store=store,
            hooks=hooks,
        )
        for family in dict.fromkeys(families)
    ]
