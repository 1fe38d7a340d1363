"""Roles and ports whose effects are journal steps: what they did once is not done, or paid, again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mulligan.core.codec import from_json, to_json
from mulligan.core.journal import digest
from mulligan.core.loop import Meter
from mulligan.core.protocols import Bank, Evaluator, Journal, Learned
from mulligan.core.records import Episode, Feedback, Json, Recall, Task, Usage


class JournaledEvaluator:
    """`fingerprint` stands for all that the verdict rests on besides the attempt: evaluator, settings, files."""

    def __init__(self, inner: Evaluator, journal: Journal, meter: Meter, fingerprint: Json) -> None:
        self.expects: Literal["text", "code", "workspace"] = inner.expects
        self._inner = inner
        self._journal = journal
        self._meter = meter
        self._fingerprint = fingerprint

    async def evaluate(self, episode: Episode) -> Feedback:
        ran = False

        async def judge() -> Json:
            nonlocal ran
            ran, before = True, self._meter.usage
            feedback = await self._inner.evaluate(episode)
            return {"feedback": to_json(feedback), "usage": to_json(self._meter.usage - before)}

        attempt = episode.trials[-1].attempt
        judged = {"output": attempt.output, "artifacts": [artifact.ref for artifact in attempt.artifacts]}
        request = {"attempt": digest(judged), "evaluator": self._fingerprint}
        result = await self._journal.step("verdict", request, judge)
        if not ran:  # its model calls are inside the recorded verdict, so they are counted from there
            self._meter.add(from_json(Usage, result["usage"]))
        return from_json(Feedback, result["feedback"])


class JournaledBank:
    def __init__(self, inner: Bank, journal: Journal) -> None:
        self._inner = inner
        self._journal = journal

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        async def look() -> Json:
            return to_json(await self._inner.recall(task, top_k=top_k))

        request = {"task": to_json(task), "top_k": top_k}
        return from_json(Recall, await self._journal.step("lessons", request, look))

    async def learn(self, episodes: Sequence[Episode]) -> Learned:
        return await self._inner.learn(episodes)
