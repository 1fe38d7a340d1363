"""The head of a report: everything that others need to check its numbers. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, cast

from mulligan.app.plugins import short_name
from mulligan.bench.harness.plan import LOG, SETTING, Choice, options_of_today
from mulligan.bench.report.figures import of_data
from mulligan.core.benchmarks import BenchRun
from mulligan.core.records import Episode, Json

MODEL = "model of the "
"""The beginning of the names of models in `BenchRun.rests_on`."""
_OWN_PLACE = ("benchmark", "method", "strategy", "model", "seed", "cases")
"""Options with a place of their own in the head."""
_LIMITS = {"tokens": "max-tokens", "cost": "max-cost", "seconds": "max-seconds"}


@dataclass(frozen=True)
class About:
    """method: of the benchmark. strategy: what the next trial was shown; replaced: the user chose it instead of the
    method's own. models: ids by role, local ones with the hash of their weights. data: sha256 by file. differs: options
    that are not the defaults. scripted: why this is no result of a model; empty where it is one."""

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
    options = options_of_today(run.options)
    models = {n.removeprefix(MODEL): str(id) for n, id in run.rests_on.items() if n.startswith(MODEL)}
    versions: dict[str, str] = {}
    for episode in episodes:
        for name, version in episode.head.versions.items():
            known = versions.setdefault(name, version)
            versions[name] = known if version in known.split(", ") else f"{known}, {version}"
    return About(
        run.id,
        run.benchmark,
        str(options.get("method") or ""),
        _strategy(run),
        bool(options.get("strategy")),
        run.created,
        models,
        of_data(run),
        {name: value for name, value in _differing(options).items() if name not in _OWN_PLACE},
        int(cast(int, options.get("seed", 0))),
        versions,
        command_of(run),
        _scripted([*models.values(), str(options.get("model") or "")]),
    )


def _strategy(run: BenchRun) -> str:
    """The name of the strategy in force; a file's without its folder."""
    spec = run.rests_on.get(f"{SETTING}strategy")
    return short_name(str(cast(dict[str, Json], spec)["name"])) if isinstance(spec, dict) else ""


def _differing(options: Mapping[str, Json]) -> dict[str, Json]:
    """The options that differ from the defaults, and those that this version does not know."""
    defaults: dict[str, Any] = {}
    for field in fields(Choice):
        made = field.default_factory() if field.default_factory is not MISSING else field.default
        defaults[field.name] = list(cast(Any, made)) if isinstance(made, tuple) else made
    return {name: value for name, value in options.items() if defaults.get(name, MISSING) != value}


def _scripted(models: Iterable[str]) -> str:
    named = [model for model in models if model]
    if any(re.match(r"scripted\b", model) for model in named):
        return "Scripted model: no result. The answers were written beforehand, and say nothing of any model."
    if any(re.match(r"replay\b|log:", model) for model in named):
        return "Replayed model: no result of its own. The answers are those of an earlier run or log."
    if not named:
        return "No model took part: no result of a model."
    return ""


def command_of(run: BenchRun) -> str:
    """The command that starts such a run."""
    words = ["mulligan", "bench", "run", run.benchmark]
    if run.benchmark.startswith(LOG):
        words[2:] = ["replay", run.benchmark.removeprefix(LOG)]
    for name, value in _differing(options_of_today(run.options)).items():
        flag = f"--{name.replace('_', '-')}"
        if name == "benchmark" or value is None:
            continue
        if name == "cases":
            words += [word for id in value for word in ("--case", str(id))]
        elif name == "limits":
            words += [w for n, v in value.items() for w in (f"--{_LIMITS.get(n, n)}", str(0 if v is None else v))]
        elif name == "settings":
            words += [
                word
                for role, settings in value.items()
                for key, setting in settings.items()
                for word in ("--set", f"{role}.{key}={json.dumps(setting, ensure_ascii=False)}")
            ]
        else:
            words += [flag] if value is True else [flag, str(value)]
    return shlex.join(words)
