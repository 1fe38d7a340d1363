"""Makes TextWorld's PDDL engine faster; its output stays the same. Runs in the worker only.

Upstream parses its grammar's strings again for each command that is possible at each step, deep-copies what it only
reads, and translates the game's PDDL anew at each load and each reset. Here a string is parsed once, what is only read
is shared, and a translation is kept. What is replaced, and what that was measured to give: design/020.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any, cast

KNOWN: Mapping[str, str] = {"textworld": "1.7.0", "fast-downward-textworld": "20.6.4"}
"""The versions whose insides are known. With others nothing is replaced."""


def unknown() -> list[str]:
    """The packages whose version is not a known one, as text; empty where all are known."""
    found = {name: version(name) for name in KNOWN}
    return [f"{name} {found[name]} and not {KNOWN[name]}" for name in KNOWN if found[name] != KNOWN[name]]


@contextmanager
def faster(translate: Callable[..., Any]) -> Generator[None]:
    """While it lasts, the engine is the faster one. translate: what takes the place of `fast_downward.pddl2sas`."""
    new = _replacements(translate)
    old: list[tuple[Any, str, Any]] = [(owner, name, vars(owner)[name]) for owner, name, _ in new]
    for owner, name, value in new:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in old:
            setattr(owner, name, value)


def _replacements(translate: Callable[..., Any]) -> list[tuple[Any, str, Any]]:
    textgen, logic = import_module("textworld.envs.pddl.textgen"), import_module("textworld.logic")
    return [
        (textgen, "_parse_and_convert", _parsed_once(textgen)),
        (textgen, "deepcopy", _copier(textgen)),
        (textgen.EvalSymbol, "derive", _compiled(textgen)),
        (logic.Rule, "parse_conjunctive_query", staticmethod(cache(logic.Rule.parse_conjunctive_query))),
        (import_module("fast_downward"), "pddl2sas", translate),
    ]


def _parsed_once(textgen: Any) -> Callable[..., Any]:
    """What was parsed is copied each time, because the engine writes a context into the symbols that it is given."""
    original, copied = textgen._parse_and_convert, _copier(textgen)

    @cache
    def parsed(text: str, rule_name: str) -> Any:
        return original(text, rule_name=rule_name)

    def parse(text: str, rule_name: str, **_: Any) -> Any:
        return copied(parsed(text, rule_name))

    return parse


def _copier(textgen: Any) -> Callable[[Any], Any]:
    """Instead of a deep copy: symbols, the symbols in them, lists and dicts; all else is only read."""
    symbol: type[object] = textgen.Symbol

    def copied(value: object) -> Any:
        if isinstance(value, list):
            return [copied(each) for each in cast(list[object], value)]
        if isinstance(value, dict):
            return dict(cast(dict[object, object], value))
        if not isinstance(value, symbol):
            return value
        new = object.__new__(type(value))
        new.__dict__.update(
            {name: copied(held) if isinstance(held, symbol) else held for name, held in vars(value).items()}
        )
        return new

    return copied


def _compiled(textgen: Any) -> Callable[..., Any]:
    """An expression is compiled once. It was checked before (`engine.check`)."""

    @cache
    def code(text: str) -> Any:
        return compile(text.strip(), "<grammar>", "eval")

    def derive(self: Any, context: Any = None) -> list[Any]:
        variables = (context or self.context)["variables"]
        return [textgen.TerminalSymbol(eval(code(self.expression), {"__builtins__": {}}, variables))]

    return derive
