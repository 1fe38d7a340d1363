"""WebArena (Zhou et al. 2023) through BrowserGym: a benchmark and its environment, for mulligan bench run.

docs/benchmark-webarena.md says what to install and to start.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from mulligan.plugins import (
    Case,
    Episode,
    InvalidInput,
    Json,
    Method,
    Outcome,
    Score,
    Source,
    Spec,
    Step,
    Task,
    WorldError,
)

T = TypeVar("T")

STEPS, CHARACTERS = 30, 60_000
"""The most actions of a trial, and the most characters of the trajectory in a prompt."""
_THREAD = ThreadPoolExecutor(1)
"""All browsers are driven from here: BrowserGym has one Playwright for the process, which belongs to one thread."""
LEFT_OUT = "map"
"""The site whose tasks are left out by default, as in the ReasoningBank paper."""


class Browser:
    """A task of BrowserGym, as text: the goal, the address and the accessibility tree, whose elements have ids.

    An action is one call of BrowserGym's action set, such as click("a51").

    Args:
        task: its id in BrowserGym without "browsergym/", such as webarena.21.
        options: further arguments of `gymnasium.make`.
    """

    def __init__(self, *, task: str, options: Mapping[str, Json] | None = None) -> None:
        if not re.fullmatch(r"\w[\w.-]*", task):
            raise InvalidInput(f"A task of BrowserGym is a name such as webarena.21, not {task!r}.")
        self._task, self._options = task, dict(options or {})
        self._env: Any = None

    async def reset(self) -> str:
        await self.close()
        return await _run(self._open)

    async def step(self, action: str) -> Step:
        return await _run(lambda: self._act(action.strip()))

    async def close(self) -> None:
        env, self._env = self._env, None
        if env is not None:
            await _run(env.close)

    def _open(self) -> str:
        if find_spec("gymnasium") is None or find_spec("browsergym") is None:
            raise InvalidInput(
                "This needs BrowserGym: pip install browsergym-webarena, then playwright install chromium."
            )
        benchmark = self._task.partition(".")[0]
        import_module(
            "browsergym.core" if benchmark == "openended" else f"browsergym.{benchmark}"
        )  # registers the tasks
        try:
            self._env = import_module("gymnasium").make(f"browsergym/{self._task}", **self._options)
            observation, _ = self._env.reset(seed=0)
        except Exception as error:  # sites that are not there, accounts, a missing browser
            raise WorldError(f"BrowserGym could not begin {self._task}: {error}") from error
        return f"Goal: {observation['goal']}\n\n{_text(observation)}"

    def _act(self, action: str) -> Step:
        observation, reward, terminated, truncated, _ = self._env.step(action)
        return Step(
            action=action,
            observation=_text(observation),
            outcome=Outcome(float(reward), bool(terminated or truncated)),
        )


async def _run(do: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_THREAD, do)


def _text(observation: Mapping[str, Any]) -> str:
    """The page as BrowserGym's own agents show it, and what went wrong with the last action."""
    flatten = import_module("browsergym.utils.obs").flatten_axtree_to_str
    seen = {"extra_properties": observation["extra_element_properties"], "filter_visible_only": True}
    tree: str = flatten(observation["axtree_object"], **seen)
    error = f"The action failed: {observation['last_action_error']}\n" if observation["last_action_error"] else ""
    said = [str(one["message"]) for one in observation["chat_messages"] if one["role"] == "assistant"]
    told = f"You told the user: {said[-1]}\n" if len(said) > 1 else ""  # the first is BrowserGym's greeting
    return f"{error}{told}Address: {observation['url']}\n{tree}"


def _shipped() -> Sequence[Path]:
    """WebArena's own list of tasks, if it is installed."""
    found = find_spec("webarena")
    places = list(found.submodule_search_locations or ()) if found else []
    return [file for place in places if (file := Path(place) / "test.raw.json").is_file()]


class WebArena:
    """Tasks on copies of web sites. The family of a case is its site, or its sites.

    Args:
        without: sites, separated by commas, whose tasks are left out.
    """

    title = "WebArena: tasks on copies of web sites, through BrowserGym"
    data = "test.raw.json"
    sources: Sequence[Source] = ()
    where = "pip install browsergym-webarena brings it"
    own = _shipped()

    def __init__(self, *, without: str = LEFT_OUT) -> None:
        self._without = {site.strip() for site in without.split(",")}

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        rows = [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))]
        return [
            Case(f"{'+'.join(row['sites'])}/{row['task_id']}", Task(row["intent"]), f"webarena.{row['task_id']}")
            for row in rows
            if not self._without.intersection(row["sites"])
        ]

    def methods(self) -> Mapping[str, Method]:
        actor = Spec("interact", {"steps": STEPS, "characters": CHARACTERS})
        reflector, world = Spec("verbal", {"output": "environment"}), Spec(__file__)
        simple = Method(actor, Spec("unjudged"), reflector, summary="one attempt", trials=1, environment=world)
        told = Method(
            *(actor, Spec("outcome"), reflector, Spec("reflexion"), "WebArena's own check is told after each trial"),
            oracle=True,
            environment=world,
        )
        return {"simple": simple, "reflexion": told}

    def play(self, case: Case, method: Method) -> Method:
        world = method.environment or Spec(__file__)
        return replace(method, environment=world.with_settings(task=case.target))

    async def score(self, case: Case, episode: Episode) -> Score:
        """1 where WebArena's own check held the task for done, else 0."""
        outcome = episode.trials[-1].attempt.outcome
        return Score(None, "nothing was done in the browser") if outcome is None else Score(outcome.reward)
