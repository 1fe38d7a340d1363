"""Solves a task for a client of the server. The client gives the task and the judge, and the server's configuration the
rest. A request contains no command, file or folder, because the client may be on another machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mulligan.app.kinds import with_kind
from mulligan.app.options import SolveOptions
from mulligan.app.runner import OnStart
from mulligan.app.service import Service
from mulligan.app.session import Session
from mulligan.app.solve import recipe_of
from mulligan.app.workspaces import Notice
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Observer
from mulligan.core.records import Episode, Spec, Task

MAX_TRIALS = 20


@dataclass(frozen=True)
class SolveRequest:
    """A client's request to solve a task.

    Raises `InvalidInput` if both judges are given, and if trials is below 1 or above `MAX_TRIALS`.

    Attributes:
        tests: the text of a Python test file.
        expected: the exact answer. Without tests and expected, the model judges itself.
        trials: None takes mulligan.toml's, else 4.
        agent_id: the agent to which the record and the bank belong.
        remember: whether the bank recalls lessons for the task and learns from the episode.
    """

    task: str
    tests: str | None = None
    expected: str | None = None
    trials: int | None = None
    agent_id: str = ""
    remember: bool = False

    def __post_init__(self) -> None:
        if self.tests is not None and self.expected is not None:
            raise InvalidInput("tests and expected cannot both judge: pass only one.")
        if self.trials is not None and not 1 <= self.trials <= MAX_TRIALS:
            raise InvalidInput(f"trials must be from 1 to {MAX_TRIALS}, not {self.trials}.")

    @property
    def judge(self) -> Spec:
        if self.tests is not None:
            return Spec("unit_tests", {"tests": self.tests, "name": "tests"})
        return Spec("model_judge") if self.expected is None else Spec("exact_match", {"answer": self.expected})


async def solve_hosted(
    service: Service,
    request: SolveRequest,
    *,
    on_start: OnStart | None = None,
    observers: Sequence[Observer] = (),
    notice: Notice | None = None,
) -> Episode:
    """Solves the task. The episode is recorded in the service's store for the agent, and can be resumed.

    Tests run in the strict sandbox unless mulligan.toml names another, because they come from the client. A model that
    failed ends the episode with the stop reason "error". Raises `InvalidInput` before any model is called,
    `SandboxError`, `StoreError`, `asyncio.CancelledError` (resumable).
    """
    config = service.config
    if service.model is None:
        raise InvalidInput("This server has no model to solve with: start it with --model.")
    bank = request.agent_id if request.remember else None
    options = SolveOptions(
        Task(request.task),
        tries=request.trials,
        model=service.model,
        sandbox=config.text("sandbox") or ("auto" if request.tests is None else "strict"),
        bank=bank,
        on_start=on_start,
        observers=observers,
        notice=notice,
    )
    opened = None if bank is None else service.bank(bank)
    session = Session(config, service.models, bank=opened, watched=options)
    recipe, _ = recipe_of(options, session, request.judge)
    async with session.runner(service.store, recipe, request.agent_id) as runner:
        return await runner.run(with_kind(Task(request.task), None, config))
