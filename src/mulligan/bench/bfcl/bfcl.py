"""The multi-turn part of BFCL (Patil et al. 2025): serve a user by calling functions, turn after turn.

BFCL's own checker compares the state of the services after each turn, and the results of the calls. It runs when the
episode is over. The loop does not see its verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast

from mulligan.bench.bfcl._right_calls import right_episodes
from mulligan.bench.bfcl._wheel import dialogues, run_services, truths, wheel_of
from mulligan.plugins import Case, Episode, InvalidInput, Json, Method, Sandbox, Score, Source, Spec, Task

FIRST = "first turn"
"""The name of the part of a score that says whether the first turn was right."""
ANSWERS = 200
"""The maximum number of answers of a model in a task, more than seven turns of 20 steps."""


class Bfcl:
    """The benchmark. A case is a dialogue.

    Args:
        category: the category of the multi-turn part. `miss_func`: a function is missing until the user adds it.
            `miss_param`: at first, the user leaves out a value. `long_context`: results are long.
    """

    title = "BFCL v4, multi-turn: serve a user by calling functions (base, miss_func, miss_param, long_context)"
    data = "*.whl"
    sources: Sequence[Source] = (
        Source(
            "bfcl_eval-2026.3.23-py3-none-any.whl",
            "pip:bfcl-eval==2026.3.23",
            "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
            1_925_664,
            "Apache-2.0",
        ),
        Source(
            "mpmath-1.3.0-py3-none-any.whl",
            "pip:mpmath==1.3.0",
            "a0b2b9fe80bbcd81a6647ff13108738cfb482d481d826cc0e02f5b35e5c88d2c",
            536_198,
            "BSD-3-Clause",
        ),
    )
    where = "The wheels of bfcl-eval 2026.3.23 and of mpmath 1.3.0"

    def __init__(
        self,
        *,
        category: Literal["base", "miss_func", "miss_param", "long_context"] = "base",
        sandbox: Sandbox,
    ) -> None:
        self._category, self._sandbox = category, sandbox
        self._wheels: Sequence[Path] = ()

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        wheel = wheel_of(files)
        self._wheels = [wheel, *(file for file in files if file.name.startswith("mpmath-"))]
        answers = truths(wheel, self._category)
        cases = list[Case]()
        for id, dialogue in dialogues(wheel, self._category).items():
            if len(cast(list[Json], answers.get(id) or [])) != len(dialogue.turns):
                raise InvalidInput(f"{wheel}: {id} does not have an answer for every turn.")
            family = "+".join(sorted(cast(list[str], dialogue.entry["involved_classes"])))
            cases.append(Case(id, Task(dialogue.turns[0]), answers[id], family=family))
        return cases

    async def right_episodes(self, files: Sequence[Path]) -> Mapping[str, Episode]:
        """The right calls of each task as a recorded episode."""
        return await right_episodes(self._sandbox, files)

    def methods(self) -> Mapping[str, Method]:
        actor = Spec("interact", {"steps": ANSWERS, "max_tokens": 256, "anew": False})
        return {"simple": Method(actor, Spec("unjudged"), summary="one dialogue, as in BFCL", trials=1)}

    def play(self, case: Case, method: Method) -> Method:
        """The method with the dialogue of this case."""
        files: list[Json] = [str(file.absolute()) for file in self._wheels]
        return replace(method, environment=Spec("bfcl", {"files": files, "task": case.id}))

    async def score(self, case: Case, episode: Episode) -> Score:
        """1 if BFCL's checker accepts all turns, else 0. Its part is 1 if the first turn alone is right."""
        dialogue = dialogues(wheel_of(self._wheels), self._category)[case.id]
        steps = episode.trials[-1].attempt.steps[1:]
        *completed, _ = dialogue.in_turns([step.action for step in steps if not step.refused])
        turns: list[Json] = [[list(calls) for calls in turn] for turn in completed]
        item: dict[str, Json] = {"entry": dict(dialogue.entry), "turns": turns, "truth": case.target}
        (verdict,) = await run_services(self._sandbox, self._wheels, [item])
        return Score(float(verdict["valid"]), verdict["text"], {FIRST: float(verdict["first"])})
