"""What `mulligan.retry` costs: CPU of a call that is right at the second try, beside tenacity, and DSPy if it is here.

The function and the judge do nothing, so that only the machinery is measured. Aims: at most 1 ms above tenacity
unrecorded, 3 ms recorded.

python perf/retry.py [CALLS]
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from itertools import count
from statistics import median
from typing import Any

import tenacity

import mulligan
from mulligan import Notes

ROUNDS = 7


def cpu(call: Callable[[int], object], calls: int) -> float:
    """Milliseconds of CPU for a call, the median of the rounds."""
    call(-1)
    found, number = list[float](), count()
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(calls):
            call(next(number))
        found.append((time.process_time() - began) / calls * 1000)
    return median(found)


def with_tenacity() -> Callable[[int], object]:
    tries = list[int]()

    @tenacity.retry(stop=tenacity.stop_after_attempt(3), retry=tenacity.retry_if_result(lambda found: found == 1))
    def act(task: str) -> int:
        tries.append(1)
        return 1 if len(tries) % 2 else 2

    return lambda number: act(f"task {number}")


def with_mulligan(*, record: bool) -> Callable[[int], object]:
    @mulligan.retry(judge=lambda answer: (answer == 2, "not 2"), record=record)
    def act(task: str, notes: Notes) -> int:
        return notes.trial

    return lambda number: act(f"task {number}")


def with_dspy() -> Callable[[int], object] | None:
    try:
        module: Any = import_module("dspy")
    except ImportError:
        return None
    advice: dict[str, Any] = {"discussion": "It is 1.", "advice": {"self": "Say 2."}}
    calls: list[dict[str, Any]] = [{"answer": "1"}, advice, {"answer": "2"}] * 2000

    def reward(given: Any, found: Any) -> float:
        return float(found.answer == "2")

    module.configure(lm=module.utils.DummyLM(calls))
    refine = module.Refine(module.Predict("task -> answer"), N=3, reward_fn=reward, threshold=1.0)
    return lambda number: refine(task=f"task {number}")


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as home:
        os.environ["MULLIGAN_HOME"] = home
        kinds: dict[str, Callable[[int], object] | None] = {
            "tenacity": with_tenacity(),
            "mulligan.retry, record=False": with_mulligan(record=False),
            "mulligan.retry": with_mulligan(record=True),
            "dspy.Refine": with_dspy(),
        }
        for name, call in kinds.items():
            if call is not None:
                print(f"{name:32} {cpu(call, calls):.3f} ms of CPU a call")

        @mulligan.retry(judge=lambda answer: (answer == 2, "not 2"))
        async def act(task: str, notes: Notes) -> int:
            return notes.trial

        async def several() -> float:
            await act("first")
            began = time.process_time()
            for number in range(calls * ROUNDS):
                await act(f"task {number}")
            return (time.process_time() - began) / calls / ROUNDS * 1000

        print(f"{'mulligan.retry, asynchronous':32} {asyncio.run(several()):.3f} ms of CPU a call")


if __name__ == "__main__":
    main()
