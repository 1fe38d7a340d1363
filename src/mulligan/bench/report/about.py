"""How a benchmark run was set up: its options, models and data, and the command that starts such a run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass
from typing import cast

from mulligan.app.plugins import short_name
from mulligan.bench.harness.plan import LOG, SETTING, BenchOptions, choice_json, options_of_today
from mulligan.core.benchmarks import BenchRun
from mulligan.core.records import Episode, Json

DATA = "data "
"""The prefix of the names of data files in `BenchRun.rests_on`."""
MODEL = "model of the "
"""The prefix of the names of models in `BenchRun.rests_on`."""
_IN_OTHER_ROWS = ("benchmark", "method", "strategy", "model", "seed", "cases")
"""Options that do not appear among the settings, because the description of a run has a row for them."""
_LIMIT_OPTIONS = {"tokens": "max-tokens", "cost": "max-cost", "seconds": "max-seconds"}


@dataclass(frozen=True)
class About:
    """How a run was set up.

    Attributes:
        method: the benchmark's method.
        strategy: the strategy, which decides what the next trial is shown.
        replaced: whether the user chose the strategy instead of the method's own.
        created: when the run began, in seconds since 1970.
        models: the ids of the models by role; those of local models include the hash of their weights.
        data: the sha256 of each data file.
        differs: the options that are not the defaults.
        versions: the versions of Mulligan and of the libraries that matter.
        command: the command that starts such a run again.
        scripted: why this is not the result of a model. Empty: it is one.
    """

    run: str
    benchmark: str
    method: str
    strategy: str
    replaced: bool
    created: float
    models: Mapping[str, str]
    data: Mapping[str, str]
    differs: Mapping[str, Json]
    seed: int
    versions: Mapping[str, str]
    command: str
    scripted: str


def about(run: BenchRun, episodes: Iterable[Episode]) -> About:
    """How a run was set up, from its record and its episodes."""
    options = options_of_today(run.options)
    roles = {name.removeprefix(MODEL): str(id) for name, id in run.rests_on.items() if name.startswith(MODEL)}
    versions: dict[str, str] = {}
    for episode in episodes:
        for name, number in episode.head.versions.items():
            known = versions.setdefault(name, number)
            versions[name] = known if number in known.split(", ") else f"{known}, {number}"
    return About(
        run.id,
        run.benchmark,
        method=str(options.get("method") or ""),
        strategy=_strategy(run),
        replaced=bool(options.get("strategy")),
        created=run.created,
        models=roles,
        data=data_hashes(run),
        differs={name: value for name, value in _non_defaults(options).items() if name not in _IN_OTHER_ROWS},
        seed=int(cast(int, options.get("seed", 0))),
        versions=versions,
        command=command_of(run),
        scripted=_scripted([*roles.values(), str(options.get("model") or "")]),
    )


def _strategy(run: BenchRun) -> str:
    """The name of the run's strategy. If it is a file, without its folder."""
    spec = run.rests_on.get(f"{SETTING}strategy")
    return short_name(str(cast(dict[str, Json], spec)["name"])) if isinstance(spec, dict) else ""


def _non_defaults(options: Mapping[str, Json]) -> dict[str, Json]:
    """The options that differ from the defaults, and those that this version does not have."""
    defaults = choice_json(BenchOptions(""))
    return {name: value for name, value in options.items() if defaults.get(name, MISSING) != value}


def _scripted(models: Iterable[str]) -> str:
    """See `About.scripted`. models: ids or names; "" is ignored."""
    named = [model for model in models if model]
    if any(re.match(r"scripted\b", model) for model in named):
        return "Scripted model: not a result. The answers were written beforehand, and say nothing about any model."
    if any(re.match(r"reader\b", model) for model in named):
        return "Scripted reader: it answers by rule from what it is shown, so the figures say nothing about a model."
    if any(re.match(r"replay\b|log:", model) for model in named):
        return "Replayed model: not an independent result. The answers come from an earlier run or log."
    if not named:
        return "No model took part, so this is not a result of a model."
    return ""


def command_of(run: BenchRun) -> str:
    """The command that starts such a run."""
    words = ["mulligan", "bench", "run", run.benchmark]
    if run.benchmark.startswith(LOG):
        words[2:] = ["replay", run.benchmark.removeprefix(LOG)]
    for name, value in _non_defaults(options_of_today(run.options)).items():
        flag = f"--{name.replace('_', '-')}"
        if name == "benchmark" or value is None:
            continue
        if name == "cases":
            words += [word for id in value for word in ("--case", str(id))]
        elif name == "limits":
            for limit, most in value.items():
                words += [f"--{_LIMIT_OPTIONS.get(limit, limit)}", str(0 if most is None else most)]
        elif name == "settings":
            for role, settings in value.items():
                for key, setting in settings.items():
                    words += ["--set", f"{role}.{key}={json.dumps(setting, ensure_ascii=False)}"]
        else:
            words += [flag] if value is True else [flag, str(value)]
    return shlex.join(words)


def data_hashes(run: BenchRun) -> dict[str, str]:
    """The sha256 of each data file of a run, by the file's name."""
    return {name.removeprefix(DATA): str(sha) for name, sha in run.rests_on.items() if name.startswith(DATA)}
