"""Mulligan as a system of Continual Learning Bench: a model that acts with the notes of a bank.

Put this file into the benchmark's `src/systems/mulligan/`: docs/continual-learning-bench.md says how.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import tempfile
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from mulligan import Limits
from mulligan.app.config import Config
from mulligan.app.memory import open_bank
from mulligan.models.catalog import open_model
from mulligan.models.gate import Gate, Meter
from mulligan.plugins import (
    Answer,
    Attempt,
    BadAnswer,
    Episode,
    Feedback,
    Message,
    Model,
    Question,
    Sampling,
    Step,
    Task,
    Trial,
    think,
)
from mulligan.recording.journal import NoJournal
from mulligan.store import open_store

from ...interface import ContinualLearningSystem, Observation, Query, Response
from ...registry import register_system
from ...usage import UsageEvent

INSTRUCTIONS = (
    "You solve tasks that come one after another and share hidden structure. Notes of earlier tasks stand before the "
    "task: use what fits. A note that is to be checked may be out of date. Answer with JSON that fits the schema."
)
NOTICE = "NOTICE:"
"""A line of a prompt that begins so announces a change of the world."""


class _Counted:
    """A model whose calls the system records as usage."""

    def __init__(self, inner: Model, system: MulliganSystem) -> None:
        self.name, self.id = inner.name, inner.id
        self._inner, self._system = inner, system

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        answer = await self._inner.ask(question, sampling)
        self._system.spent(self.id, answer)
        return answer


class _Action:
    """Asks for the action of a turn. An answer that does not fit the schema is asked for once more."""

    def __init__(self, question: Question, schema: type[BaseModel]) -> None:
        self._question, self._schema = question, schema

    def ask(self, episodes: Any) -> Question:
        return self._question

    def take(self, episodes: Any, answer: Any) -> BaseModel:
        try:
            return self._schema.model_validate(answer)
        except ValidationError as error:
            raise BadAnswer(f"{error}.") from error


@register_system("mulligan")
class MulliganSystem(ContinualLearningSystem):
    """`respond` acts with the notes of the bank, `observe` learns when an instance is over, `reset` forgets all.

    Args:
        model: who acts and learns, by its name in Mulligan (PROVIDER:NAME).
        forms: what of the past is shown: notebook, lessons, history, with commas between; empty: the bank's default.
        embedder: finds lessons by meaning; "none" by words alone.
    """

    supports_baseline = True
    parallel_safe = True  # each system has a folder of its own

    def __init__(
        self,
        model: str | Model = "anthropic:claude-sonnet-4-6",
        forms: str = "",
        embedder: str = "none",
        name: str = "mulligan",
    ) -> None:
        self._name = name
        self._model = _Counted(open_model(model) if isinstance(model, str) else model, self)
        named = [form.strip() for form in forms.split(",") if form.strip()]
        self._settings: dict[str, Any] = {"forms": named} if named else {}
        self._embedder = embedder
        self._loop = asyncio.Runner()
        self._bank: Any = None
        self._store: Any = None
        self._folder: Any = None
        self.reset()

    @property
    def name(self) -> str:
        return self._name

    def respond(self, query: Query) -> Response:
        """Act on the current prompt, with the notes that the bank has for this instance."""
        return self._loop.run(self._respond(query))

    def observe(self, observation: Observation, next_query: Query | None = None) -> None:
        """Keep what the response led to, and learn from the instance when it is over."""
        if self._turns:
            self._turns[-1] = (*self._turns[-1][:2], observation.content)
        flag = (observation.metadata or {}).get("instance_complete", True)
        if self._turns and observation.instance_complete and flag:
            self._loop.run(self._learn(observation))

    def reset(self) -> None:
        """Forget everything."""
        self._forget()
        self._folder = tempfile.TemporaryDirectory(prefix="mulligan-")
        file = Path(self._folder.name) / "mulligan.db"
        self._store = open_store(file)
        self._bank = open_bank(
            self._name,
            store=self._store.memory,
            model=self._model,
            embedder=self._embedder,
            settings=self._settings,
            config=Config(),
            project="continual-learning-bench",
        )
        self._numbers = itertools.count(1)
        self._turns: list[tuple[str, str, str]] = []
        self._notes = ""
        self._recall: Any = None
        self._usage = {"calls": 0, "input_tokens": 0, "output_tokens": 0}

    def get_run_artifacts(self) -> dict[str, Any] | None:
        """What the bank knows, as text, and what was used since the last reset."""
        entries = self._loop.run(self._bank.list())
        known = [
            {"title": one.title, "content": one.content, "kind": one.nature, "state": one.state} for one in entries
        ]
        return {"notes": known, "shown_last": self._notes, "usage": dict(self._usage)}

    def spent(self, model: str, answer: Answer) -> None:
        """Record the usage of a model call, with the fields that the benchmark's event has."""
        usage = answer.usage
        self._usage["calls"] += 1
        self._usage["input_tokens"] += usage.input_tokens
        self._usage["output_tokens"] += usage.output_tokens
        known = {
            "provider": model.partition(":")[0],
            "model": model,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.tokens,
            "cost": usage.cost,
            "cost_usd": usage.cost,
        }
        taken = inspect.signature(UsageEvent).parameters
        self.record_usage_event(UsageEvent(**{key: value for key, value in known.items() if key in taken}))

    async def _respond(self, query: Query) -> Response:
        notices = [line for line in query.prompt.splitlines() if line.strip().startswith(NOTICE)]
        for notice in notices:
            await self._bank.announce(notice.strip())
        if not self._turns or notices:
            self._recall = await self._bank.recall(query.prompt)
            self._notes = self._recall.formatted_prompt
        action = await self._action(query)
        self._turns.append((query.prompt, action.model_dump_json(), ""))
        shown = len(self._recall.lessons)
        return Response(action=action, metadata={"system_type": "mulligan", "notes_shown": shown, **self._usage})

    async def _action(self, query: Query) -> BaseModel:
        said = [Message("system", INSTRUCTIONS)]
        for number, (prompt, action, seen) in enumerate(self._turns):
            first = f"{self._notes}\n\n{prompt}" if number == 0 and self._notes else prompt
            said += [Message("user", first), Message("assistant", action)]
            said += [Message("user", f"Outcome: {seen}")] if seen else []
        last = query.prompt if self._turns or not self._notes else f"{self._notes}\n\n{query.prompt}"
        question = Question((*said, Message("user", last)), query.response_schema.model_json_schema())
        model = Gate(self._model, role="actor", journal=NoJournal(), meter=Meter(), limits=Limits())
        return await think(_Action(question, query.response_schema), model, (), Sampling())

    async def _learn(self, observation: Observation) -> None:
        turns, self._turns = self._turns, []
        steps = tuple(Step(action=action, observation=seen) for _, action, seen in turns)
        passed = (observation.metadata or {}).get("success")
        feedback = Feedback(passed if isinstance(passed, bool) else None, observation.content, source="environment")
        trial = Trial(1, Attempt(turns[-1][1], steps), feedback)
        id = f"clb.{next(self._numbers)}"
        await self._bank.learn(Episode(id, Task(turns[0][0]), run="clb", recall=self._recall, trials=(trial,)))
        await self._bank.work()

    def close(self) -> None:
        """Forget everything, and use the system no more."""
        self._forget()
        self._loop.close()

    def _forget(self) -> None:
        if self._bank is not None:
            self._loop.run(self._bank.close())
            self._folder.cleanup()
