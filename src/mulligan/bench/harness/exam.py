"""The exam of memories: streams that measure how much each memory helps, and with two controls, how much it harms.

The controls are those of a stream. The unrelated tasks are from the same family in another world, whose facts are
similar but wrong here: the worst case for a memory of other work.
"""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.app.config import load
from mulligan.bench.harness.stream import CONTROLS, NONE, StreamHooks, read_arm, run_stream
from mulligan.core.benchmarks import BenchRun
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Store

FAMILIES = ("database", "game", "service")
"""The streams of an exam by default. `code` takes ten times as long, because it runs tests in the sandbox."""
MEMORIES = ("default", "markdown")
TASKS, ORDERS, SEED = 20, 1, 1
"""The seed must not be 0, which is the world of the unrelated control."""


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
    """Run the streams of an exam; `read_exam` in bench.report.exam returns their figures.

    Args:
        memories: names or files of the memories. The arm without memory is added.
        families: names of the streams.
        tasks, orders: numbers of tasks and of their orders in each stream.
        seed: the seed of the worlds.
        model: the model that acts. None: the scripted reader of each family.

    Raises:
        InvalidInput: an option cannot be used; no model was called yet.
    """
    if seed == 0:
        raise InvalidInput("Seed 0 is used for the unrelated control's world: choose another seed.")
    config = load()
    arms = [read_arm(memory, config, kind="memory") for memory in memories if memory != NONE]
    if not arms or not families:
        raise InvalidInput("An exam needs at least one memory other than 'none', and at least one stream.")
    return [
        await run_stream(
            f"stream:{family}",
            arms=[NONE, *arms],
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
