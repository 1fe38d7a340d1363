"""`judge(code, tests)`: a verdict through the public API, on the real sandbox."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from mulligan.core.records import Attempt, Episode, Feedback, Task, Trial
from mulligan.evaluators.unit_tests import UnitTests
from mulligan.sandbox.local import LocalSandbox

Judge: TypeAlias = Callable[..., Awaitable[Feedback]]


@pytest.fixture
def judge() -> Judge:
    async def judged(code: str, tests: str, seconds: float = 10.0, **settings: Any) -> Feedback:
        evaluator = UnitTests(tests, sandbox=LocalSandbox(), seconds=seconds, **settings)
        return await evaluator.evaluate(Episode("e", Task("task"), trials=(Trial(1, Attempt(code)),)))

    return judged
