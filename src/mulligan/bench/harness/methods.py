"""Chooses the method and the strategy of a run from `--method` and `--strategy` of `bench run`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mulligan.app.compose import OBJECT
from mulligan.app.plugins import file_of, find, names, parse_spec
from mulligan.core.benchmarks import Benchmark, HasFormerNames, Method
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.records import Spec


@dataclass(frozen=True)
class Chosen:
    """The method of a run.

    Attributes:
        strategy: the strategy that replaces the method's own. None: none does.
        notice: if the user wrote a name from before 0.2, how to write it from 0.3 on. Otherwise empty.
    """

    name: str
    method: Method
    strategy: str | None = None
    notice: str = ""


def choose_method(of: str, benchmark: Benchmark, method: str | None, strategy: str | None) -> Chosen:
    """The method and the strategy that the user asked for.

    Without a method, a strategy selects the first method of several trials that has this strategy, or else the first
    method of several trials, whose strategy it replaces. Until 0.3, it may also be the name of a method.

    Args:
        of: the name of the benchmark, for messages.
        method: the name of a method, or its name before 0.2. None: the benchmark's first.
        strategy: a name, `name:argument`, `./mine.py` or `object:CLASS`. None: the method's own.

    Raises:
        UnknownName: the benchmark does not have this method.
        InvalidInput: the strategy does not exist or cannot be used, or the method makes only one attempt.
    """
    methods = benchmark.methods()
    former: Mapping[str, str] = benchmark.former if isinstance(benchmark, HasFormerNames) else {}
    notice = ""
    if method is not None:
        name = former.get(method, method)
        if name not in methods:
            hint = f"{method} is a strategy: write --strategy {method}." if method in names("strategies") else ""
            raise UnknownName(f"method of {of}", method, methods, hint)
        if name != method:
            notice = f"The method {method} of {of} is now called {name}; the old name works until 0.3."
    elif strategy is None:
        name = next(iter(methods))
    elif (name := former.get(strategy, strategy)) in methods:
        if methods[name].strategy.name != strategy:
            notice = _still_a_method(of, strategy, name)
        strategy = None
    else:
        name = _method_for(of, methods, strategy)
    return replace(_with_strategy(of, name, methods, strategy), notice=notice)


def _still_a_method(of: str, strategy: str, name: str) -> str:
    """The notice for a strategy that is the name of a method, or was until 0.2."""
    notice = f"--strategy {strategy} means the method {name} of {of} until 0.3: write --method {name}."
    if strategy in names("strategies"):
        notice += f" For only the strategy, write --method {name} --strategy {strategy}."
    return notice


def _method_for(of: str, methods: Mapping[str, Method], strategy: str) -> str:
    """The name of the method that a strategy selects."""
    spec = _strategy(of, methods, strategy)
    several = [name for name, method in methods.items() if method.trials > 1]
    if not several:
        raise InvalidInput(f"{of} makes one attempt per case, so a strategy has no effect: omit --strategy.")
    return next((name for name in several if methods[name].strategy.name == spec.name), several[0])


def _with_strategy(of: str, name: str, methods: Mapping[str, Method], strategy: str | None) -> Chosen:
    method = methods[name]
    if strategy is None:
        return Chosen(name, method)
    spec = _strategy(of, methods, strategy)
    if spec.name == method.strategy.name:
        if not spec.settings:
            return Chosen(name, method)
        spec = method.strategy.with_settings(**spec.settings)
    if method.trials == 1:
        others = ", ".join(other for other, method in methods.items() if method.trials > 1)
        instead = f" Methods that make several: {others}." if others else ""
        raise InvalidInput(f"The method {name!r} makes one attempt, so a strategy has no effect.{instead}")
    return Chosen(name, replace(method, strategy=spec), spec.name if file_of(strategy) else strategy)


def _strategy(of: str, methods: Mapping[str, Method], text: str) -> Spec:
    """The strategy with this name. Raises `InvalidInput`, which for an unknown name also lists the methods."""
    if text.startswith(OBJECT):
        return Spec(text)
    try:
        spec = parse_spec("strategies", text)
        find("strategies", spec.name)
    except UnknownName as error:
        raise InvalidInput(f"{error} Methods for {of}, with --method: {', '.join(methods)}.") from error
    return spec
