"""STATE-Bench (Microsoft 2026): serve a customer with a domain's tools, so that the records end in the right state.

It runs on the user's own checkout. The benchmark's code scores the final state when the episode is over. The judge's
model plays the customer, and in the method `judged` also the benchmark's judge, with the benchmark's own prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from mulligan.bench.state_bench._checkout import StateBenchCheckout, calls_of
from mulligan.plugins import Case, Episode, InvalidInput, Json, Method, Sandbox, Score, Source, Spec, Task

STEPS = 120
"""The maximum number of actions of a try: 15 turns of eight calls, the limits of their harness."""
STATE = "final state"
"""The name of the part of a score that says whether the records ended as required."""


class StateBench:
    """The benchmark.

    Args:
        domain: the domain of the held-out tasks.
    """

    title = "STATE-Bench: serve a customer with tools; the final state counts (needs a checkout)"
    data = "train_test*.json"
    sources: Sequence[Source] = ()
    where = "Clone https://github.com/microsoft/STATE-Bench and pass its folder to --data"
    domains: Sequence[str] = ("travel", "customer_support", "shopping_assistant")

    def __init__(
        self, *, domain: Literal["travel", "customer_support", "shopping_assistant"] = "travel", sandbox: Sandbox
    ) -> None:
        self._domain, self._sandbox = domain, sandbox
        self._checkout = StateBenchCheckout(Path(), domain)
        self._files: Sequence[Path] = ()

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        self._checkout = StateBenchCheckout.of(files, self._domain)
        tasks = self._checkout.tasks("test")
        own = [self._checkout.task_file(task["task_id"]) for task in tasks]
        self._files = [*own, *map(self._records_of, tasks), *self._checkout.code()]
        return [
            Case(
                task["task_id"],
                Task(task["opening_message"]),
                {"state": task.get("state_requirements") or [], "said": task.get("task_requirements") or []},
                str(task.get("task_type") or ""),
            )
            for task in tasks
        ]

    def _records_of(self, task: Mapping[str, Json]) -> Path:
        return self._checkout.root / str(task.get("task_env_path") or "")

    def beside(self) -> Sequence[Path]:
        return [file for file in self._files if file.is_file()]

    def trajectories(self, folder: Path, domain: str) -> Sequence[Path]:
        """A file for each training trajectory, as in their repository, or files with a line for each.

        Raises:
            InvalidInput: the folder has no such files.
        """
        for pattern in (f"train_task_trajectories/{domain}/*.json", f"{domain}.jsonl"):
            if files := sorted(folder.rglob(pattern)):
                return files
        raise InvalidInput(
            f"{folder} contains no training trajectories for {domain}. Use --data to pass a checkout of "
            "https://github.com/microsoft/STATE-Bench."
        )

    def methods(self) -> Mapping[str, Method]:
        actor = Spec("interact", {"steps": STEPS, "max_tokens": 512, "anew": False})
        note = "official figures need the model of their protocol as --judge-model"
        return {
            "simple": Method(actor, Spec("unjudged"), summary=f"only the final state counts; {note}", trials=1),
            "judged": Method(
                actor, Spec("outcome"), summary=f"its judge of what was said also counts; {note}", trials=1, oracle=True
            ),
        }

    def play(self, case: Case, method: Method) -> Method:
        """The method with the task of this case."""
        settings = {"root": str(self._checkout.root.absolute()), "domain": self._domain, "task": case.id}
        return replace(method, environment=Spec("state_bench", {**settings, "judge": method.oracle}))

    async def score(self, case: Case, episode: Episode) -> Score:
        """1 if the records end as required, and the judge, if there is one, passes the conversation; else 0."""
        attempt = episode.trials[-1].attempt
        calls = [call for step in attempt.steps[1:] if not step.refused for call in calls_of(step.action) or ()]
        result = await self._checkout.run(self._sandbox, case.id, "score", [{"calls": calls}])
        state, text = result["state"], result["text"]
        if state is None:
            return Score(None, text)
        parts = {STATE: float(state)}
        if (feedback := attempt.outcome.feedback if attempt.outcome else None) is None:
            return Score(float(state), text, parts)
        passed = feedback.passed
        return Score(None if passed is None else float(passed), feedback.text, parts)
