"""WebShop (Yao et al. 2022): buy what an instruction describes, in a shop of text pages.

The agent acts in the environment `webshop`, whose reward for the purchase is the score. Unlike in the reference, the
actor sees the lessons of earlier trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from mulligan.bench.webshop._shop import Goal, check_installed, read_shop
from mulligan.bench.webshop.environments.webshop import CATALOGUE
from mulligan.plugins import Case, Episode, Json, Method, Score, Source, Spec, Task, read_text

STEPS = 14
"""The maximum number of actions of a trial. The reference has 15, but counts the reset."""
TRAJECTORY = 6400
"""The maximum number of characters of the trajectory in a prompt, as in the reference."""
_ACTOR = Spec("interact", {"steps": STEPS, "characters": TRAJECTORY, "anew": False})
_REFLECTOR = Spec("verbal", {"output": "environment"})
_SUMMARIES = {
    "reflexion": "the lessons of earlier tries are shown (Shinn et al. 2023)",
    "resample": "one try after another; nothing from the past is shown",
    "last_attempt": "the previous try is shown",
    "last_attempt_and_reflexion": "the previous try and the lessons are shown",
}


class WebShop:
    """The benchmark WebShop. A case is a goal; in WebShop's own files its id is its product and a number."""

    title = "WebShop: buy what an instruction describes (a shop of 60 invented products ships)"
    data = "items_*.json"
    sources: Sequence[Source] = ()
    where = (
        "The set-up of https://github.com/princeton-nlp/WebShop downloads its products: put items_shuffle_1000.json, "
        "items_ins_v2_1000.json and items_human_ins.json into one folder"
    )
    own: Sequence[Path] = (CATALOGUE,)
    former: Mapping[str, str] = MappingProxyType({"base": "resample"})

    def __init__(self) -> None:
        self._files: Sequence[Path] = self.own

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        check_installed()
        texts = {str(file): read_text(file) for file in files}
        self._files = files
        return [Case(goal.id, Task(goal.instruction), _target(goal)) for goal in read_shop(texts).goals]

    def methods(self) -> Mapping[str, Method]:
        def method(strategy: str, summary: str) -> Method:
            return Method(_ACTOR, Spec("outcome"), _REFLECTOR, Spec(strategy), summary)

        return {name: method("none" if name == "resample" else name, summary) for name, summary in _SUMMARIES.items()}

    def play(self, case: Case, method: Method) -> Method:
        """The method with an environment for the goal of this case."""
        files = {} if list(self._files) == list(self.own) else {"files": [str(file) for file in self._files]}
        return replace(method, environment=Spec("webshop", {"goal": case.id, **files}))

    async def score(self, case: Case, episode: Episode) -> Score:
        """The reward of the purchase, from 0 to 1; 0 if nothing was bought. 1 counts as solved."""
        outcome = episode.trials[-1].attempt.outcome
        if outcome is None:
            return Score(None, "The attempt has no outcome: the actor did not act in the shop.")
        if not outcome.done:
            return Score(0.0, f"Nothing was bought: {outcome.halted or 'the trial was cut short'}.")
        return Score(outcome.reward, f"The reward was {outcome.reward:g}." if outcome.reward is not None else "")


def _target(goal: Goal) -> Json:
    return {
        "product": goal.product,
        "attributes": list(goal.attributes),
        "options": list(goal.options),
        "price": goal.price,
    }
