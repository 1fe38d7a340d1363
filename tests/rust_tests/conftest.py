"""`judge(code, tests)`: a verdict on Rust through the public API, on the real sandbox."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
from rust_compiler import rustc_runs

from mulligan.core.records import Attempt, Episode, Feedback, Task, Trial
from mulligan.evaluators.rust_tests import RustTests
from mulligan.sandbox.local import LocalSandbox

JudgeRust: TypeAlias = Callable[..., Awaitable[Feedback]]


@pytest.fixture
def judge() -> JudgeRust:
    if not rustc_runs():
        pytest.skip("needs rustc")

    async def judged(code: str, tests: str | list[str], **settings: Any) -> Feedback:
        evaluator = RustTests(tests, sandbox=LocalSandbox(), **settings)
        return await evaluator.evaluate(Episode("e", Task("task"), trials=(Trial(1, Attempt(code)),)))

    return judged
