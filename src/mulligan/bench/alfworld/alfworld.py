"""ALFWorld (Shridhar et al. 2021): six kinds of household tasks in a text world, trial after trial.

The game itself decides whether a trial succeeded, so there is no hidden target. Reflexion's code plays all games in
trial 1, then the unsolved ones in trial 2, and so on. Here all trials of a game are played before the next game starts.
The result is the same, because the reflections on a game are shown only in that game.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mulligan.bench.alfworld import _env_results as env_results
from mulligan.bench.alfworld._env_results import EnvResult
from mulligan.pages import count
from mulligan.plugins import Case, Episode, InvalidInput, Method, ResultFile, Score, Source, Spec, Task, read_text

KINDS: Mapping[str, str] = {
    "pick_and_place": "put",
    "pick_clean_then_place": "clean",
    "pick_heat_then_place": "heat",
    "pick_cool_then_place": "cool",
    "look_at_obj": "examine",
    "pick_two_obj": "puttwo",
}
"""The names of the examples for each kind of task, by the prefix of the task's folder."""

TASK = "Your task is to: "
UNSUPPORTED_NAMES = ("movable", "Sliced")
"""Parts of the names of tasks that ALFWorld's text games do not support. Its own code also leaves them out."""

_EXAMPLES = "interact.alfworld.games"
_ACTOR = Spec("interact", {"steps": 49, "max_tokens": 256, "examples": _EXAMPLES, "anew": False})
_REFLECTOR = Spec("verbal", {"output": "environment", "temperature": 0.0, "max_tokens": 256})
_REMEMBER = ("reflexion", "last_attempt_and_reflexion", "evidence_and_reflexion")
_SUMMARIES = {
    "reflexion": "the newest three plans from earlier tries are shown (Shinn et al. 2023)",
    "resample": "one try after another; nothing from the past is shown",
    "simple": "one try",
    "last_attempt": "the previous try is shown",
    "last_attempt_and_reflexion": "the previous try and the plans are shown",
}


class Alfworld:
    """The benchmark ALFWorld.

    Args:
        results: a file of results of the reference (`_env_results`) to start from. Games that it marks as solved or
            skipped are not played. The memories of the others are shown from the first trial on. "env_3" is the fourth
            game of the data.
    """

    title = "ALFWorld: household tasks in a text world, six kinds (needs the extra alfworld)"
    data = "*.tw-pddl"
    sources: Sequence[Source] = ()
    where = (
        "ALFWorld's own downloader gets its games: pip install 'mulligan[alfworld]', then alfworld-download; give "
        "--data the folder of a split, such as ~/.cache/alfworld/json_2.1.1/valid_unseen"
    )

    former: Mapping[str, str] = MappingProxyType({"base": "resample"})

    def __init__(self, *, results: str = "") -> None:
        self._results = results
        self.earlier: Sequence[EnvResult] = ()
        """The entries of the file of results, after the data is loaded."""
        self._games: dict[str, Path] = {}

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        games = [(file, task) for file in files if (task := _task(file)) is not None]
        self._games = {f"{file.parent.parent.name}/{file.parent.name}": file for file, _ in games}
        if len(self._games) < len(games):
            raise InvalidInput("Two games have folders with the same name: point --data at the folder of one split.")
        by_name = self._read_results(len(games))
        cases = list[Case]()
        for number, (id, (_, task)) in enumerate(zip(self._games, games, strict=True)):
            earlier = by_name.get(f"env_{number}", EnvResult(f"env_{number}"))
            if not earlier.is_success and not earlier.skip:
                cases.append(Case(id, Task(task), {"env": earlier.name, "memory": list(earlier.memory)}))
        return cases

    def _read_results(self, games: int) -> Mapping[str, EnvResult]:
        if not self._results:
            return {}
        path = Path(self._results).expanduser()
        self.earlier = env_results.read(read_text(path, f"The results {path}"), str(path))
        names = {f"env_{number}" for number in range(games)}
        for each in self.earlier:
            if each.name not in names:
                raise InvalidInput(
                    f"{path} belongs to different data: it contains a result for {each.name!r}, but this data has "
                    f"{count(games, 'game')}."
                )
        return {each.name: each for each in self.earlier}

    def methods(self) -> Mapping[str, Method]:
        return {
            name: Method(
                _ACTOR,
                Spec("outcome"),
                _REFLECTOR,
                Spec("none" if name in ("resample", "simple") else name),
                summary,
                trials=1 if name == "simple" else 5,
            )
            for name, summary in _SUMMARIES.items()
        }

    def play(self, case: Case, method: Method) -> Method:
        game = self._games[case.id]
        kind = next(kind for prefix, kind in KINDS.items() if case.id.startswith(prefix))
        method = replace(method, environment=Spec("alfworld", {"game": str(game.absolute())}))
        if method.actor.name == "interact":
            method = replace(method, actor=method.actor.with_settings(kind=kind))
        earlier: list[str] = case.target["memory"]
        if not earlier or method.strategy.name not in _REMEMBER:
            return method
        strategy, reflector = (spec.with_settings(earlier=earlier) for spec in (method.strategy, method.reflector))
        return replace(method, strategy=strategy, reflector=reflector)

    async def score(self, case: Case, episode: Episode) -> Score:
        """1 if the game ended with success, else 0."""
        outcome = episode.trials[-1].attempt.outcome
        if outcome is None:
            return Score(None, "The attempt has no outcome: the actor did not act in the game.")
        if outcome.done and outcome.reward == 1.0:
            return Score(1.0, "The task was done.")
        return Score(0.0, f"The task was not done: {outcome.halted or 'the trial was cut short'}.")

    def result_files(self, cases: Sequence[Case], episodes: Mapping[str, Episode], start: int) -> Sequence[ResultFile]:
        """The results of a run in the format of Reflexion's code."""
        return [
            ResultFile(
                env_results.file_name(number),
                env_results.rendered(results),
                sum(each.is_success for each in results),
                len(results),
            )
            for number, results in enumerate(env_results.after_each_trial(cases, episodes, self.earlier), start)
        ]


def _task(file: Path) -> str | None:
    """The sentence of the task; None for a game that is left out.

    Raises `InvalidInput` for a file that is not a game.
    """
    folder = file.parent.parent.name
    if any(word in folder for word in UNSUPPORTED_NAMES):
        return None
    if not folder.startswith(tuple(KINDS)):
        place = "TASK/TRIAL/game.tw-pddl, where TASK begins with a task kind such as pick_and_place_simple"
        raise InvalidInput(f"{file} is not at the path of an ALFWorld game: {place}.")
    try:
        game: Any = json.loads(file.read_text(encoding="utf-8"))
        grammar, solvable = str(game["grammar"]), game["solvable"]
        start = grammar.index(TASK)
        task = grammar[start : grammar.index('"', start)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput(f"{file} is not an ALFWorld game: {type(error).__name__}: {error}.") from error
    return task if solvable else None
