"""Plays ALFWorld's games faster in TextWorld's PDDL engine. Imports TextWorld, so only the worker process imports it.

The output is that of the original engine, which parses the strings of its grammar again for each possible command at
each step, deep-copies data that it only reads, and translates the game's PDDL twice at each load and each reset: to
play, and for its planner. Here, a string is parsed once, data that is only read is shared, and a translation is kept in
memory and, as JSON, on disk. The planner is never used, so it gets the same translation. design/020 lists what is
replaced, and the measurements.

Run as a program, this is the worker process: it reads requests as lines of JSON from stdin, and writes an answer to
each to stdout. It ends when its stdin is closed, and therefore with the process that started it.

- The answer to {"do": "open", "game": PATH} is {"notice": TEXT}: why the slow engine is in use, or "".
- The answer to {"do": "reset"} and {"do": "step", "command": TEXT} is {"text": TEXT, "commands": [TEXT, …], "won":
  BOOL}.
- An error is {"error": TEXT}, with "invalid": true if the game cannot be played.

Each answer also has "cpu", the seconds of processor time that it took.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import sys
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from mulligan.plugins import InvalidInput

KNOWN: Mapping[str, str] = {"textworld": "1.7.0", "fast-downward-textworld": "20.6.4"}
"""The versions whose internals are known. With other versions nothing is replaced."""


def unknown_versions() -> list[str]:
    """A text for each package with an unknown version."""
    versions = {name: version(name) for name in KNOWN}
    return [f"{name} {versions[name]} and not {KNOWN[name]}" for name in KNOWN if versions[name] != KNOWN[name]]


@contextmanager
def faster(translate: Callable[..., Any]) -> Generator[None]:
    """A context in which the engine is fast. translate: replaces `fast_downward.pddl2sas`."""
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
    """A parser with a cache. Each call returns a copy, as the engine writes a context into the symbols."""
    original, copied = textgen._parse_and_convert, _copier(textgen)

    @cache
    def parsed(text: str, rule_name: str) -> Any:
        return original(text, rule_name=rule_name)

    def parse(text: str, rule_name: str, **_: Any) -> Any:
        return copied(parsed(text, rule_name))

    return parse


def _copier(textgen: Any) -> Callable[[Any], Any]:
    """Replaces `deepcopy` for symbols, lists of them, and the dicts of a context, whose values are only read.

    Only the symbols in a symbol are copied, because nothing else in it is changed.
    """
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
            {name: copied(part) if isinstance(part, symbol) else part for name, part in vars(value).items()}
        )
        return new

    return copied


def _compiled(textgen: Any) -> Callable[..., Any]:
    """Replaces `EvalSymbol.derive`: compiles an expression only once. `check` has checked it."""

    @cache
    def code(text: str) -> Any:
        return compile(text.strip(), "<grammar>", "eval")

    def derive(self: Any, context: Any = None) -> list[Any]:
        variables = (context or self.context)["variables"]
        return [textgen.TerminalSymbol(eval(code(self.expression), {"__builtins__": {}}, variables))]

    return derive


FORM = 1
"""The version of the files. A file of another version is written again."""

CACHED = 4
"""The maximum number of translations in memory, one for each game."""


@dataclass(frozen=True)
class Translations:
    """Replaces `fast_downward.pddl2sas`, with a cache.

    Attributes:
        original: that function.
        versions: the versions of the libraries that translate, which are part of the key of a file.
        folder: the folder of the cache. None: the cache is only in memory.
    """

    original: Callable[..., Any]
    versions: str
    folder: Path | None
    _recent: OrderedDict[str, Any] = field(default_factory=OrderedDict[str, Any], init=False)

    def __call__(self, domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        """The task (the part of it that TextWorld reads) and the SAS text.

        TextWorld gives `verbose`, which only prints, and `optimize` for its planner, which is never used.
        """
        texts = (self.versions, domain, problem)
        key = hashlib.sha256("".join(f"{len(text)}:{text}" for text in texts).encode()).hexdigest()
        if key not in self._recent:
            translation = self._read(key)
            if translation is None:
                translation = _as_json(*self.original(domain, problem))
                self._write(key, translation)
            self._recent[key] = (_task(translation), translation["sas"])
            while len(self._recent) > CACHED:
                self._recent.popitem(last=False)
        self._recent.move_to_end(key)
        return self._recent[key]

    def _read(self, key: str) -> Any:
        """The cached translation, or None if it is missing or cannot be read."""
        if self.folder is None:
            return None
        try:
            translation = json.loads(zlib.decompress((self.folder / f"{key}.json.z").read_bytes()))
            return translation if translation["form"] == FORM else None
        except (OSError, ValueError, TypeError, KeyError, zlib.error):
            return None

    def _write(self, key: str, translation: Any) -> None:
        """Writes the whole cache file or none. On a full or read-only disk, the game is played without a cache."""
        if self.folder is None:
            return
        part = self.folder / f"{key}.{os.getpid()}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_bytes(zlib.compress(json.dumps(translation).encode()))
            part.replace(self.folder / f"{key}.json.z")
        except OSError:
            with suppress(OSError):  # a read-only disk also refuses this, even if there is no such file
                part.unlink()


def _as_json(task: Any, sas: str) -> dict[str, Any]:
    """The part of a task that TextWorld's `PddlState` reads, as JSON, in the same order."""
    return {
        "form": FORM,
        "actions": [[a.name, [[p.name, p.type_name] for p in a.parameters]] for a in task.actions],
        "types": [[t.name, list(t.supertype_names)] for t in task.types],
        "objects": [[o.name, o.type_name] for o in task.objects],
        "init": [fact for fact in map(_fact, task.init) if fact],
        "sas": sas,
    }


def _fact(atom: Any) -> list[Any] | None:
    """The fact as `PddlState` reads it; None for costs and distances, which are not facts."""
    expressions = import_module("fast_downward.translate.pddl.f_expression")
    if isinstance(atom, expressions.Assign):
        assignment: Any = atom
        name, fluent = str(assignment.expression.value), assignment.fluent
        return None if fluent.symbol == "total-cost" or name.isdigit() else [name, list(fluent.args)]
    return [atom.predicate, list(atom.args)]


def _task(translation: dict[str, Any]) -> Any:
    atom = import_module("fast_downward.translate.pddl.conditions").Atom
    return SimpleNamespace(
        actions=[
            SimpleNamespace(name=name, parameters=[SimpleNamespace(name=p, type_name=t) for p, t in parameters])
            for name, parameters in translation["actions"]
        ],
        types=[SimpleNamespace(name=name, supertype_names=above) for name, above in translation["types"]],
        objects=[SimpleNamespace(name=name, type_name=type_name) for name, type_name in translation["objects"]],
        init=[atom(name, args) for name, args in translation["init"]],
    )


TEXTS = ("pddl_domain", "grammar", "pddl_problem")
"""The texts that a game's file must have."""
_ALLOWED = (ast.Expression, ast.Name, ast.Attribute, ast.Constant, ast.BoolOp, ast.Or, ast.BinOp, ast.Add, ast.Load)


class Engine:
    """Plays one game at a time, and answers with plain JSON.

    Args:
        folder: the folder of the cache of translations.
        plain: whether to use the original engine, for comparison.

    Attributes:
        notice: why the slow engine is in use although `plain` is false, or "".
    """

    def __init__(self, *, folder: str | None = None, plain: bool = False) -> None:
        if folder is not None:
            os.environ["ALFWORLD_DATA"] = folder  # alfworld makes this folder as it is imported
        self._game, self._stack = "", ExitStack()
        unknown = unknown_versions()
        self.notice = "" if plain or not unknown else f"ALFWorld is played slowly: {', '.join(unknown)}."
        if not plain and not unknown:
            versions = " ".join(f"{name}={number}" for name, number in KNOWN.items())
            original = import_module("fast_downward").pddl2sas
            translations = Translations(original, versions, None if folder is None else Path(folder))
            self._stack.enter_context(faster(translations))
        textworld, pddl = import_module("textworld"), import_module("textworld.envs.pddl.pddl")
        self._env: Any = pddl.PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True))

    def open(self, game: str) -> None:
        """Load the game, unless it is loaded already. Raises `InvalidInput` for a file that is not a game."""
        if game == self._game:
            return
        self._game = ""
        try:
            data = json.loads(Path(game).read_text(encoding="utf-8"))
            missing = [name for name in TEXTS if not isinstance(data.get(name), str)]
        except (OSError, ValueError, AttributeError) as error:
            raise InvalidInput(f"The game {game} cannot be read: {error}.") from error
        if missing:
            raise InvalidInput(f"The game {game} has no text under {missing[0]!r}, so it is not an ALFWorld game.")
        try:
            self._env.load(data)
            check(self._env._logic)
        except (Exception, SystemExit) as error:
            raise InvalidInput(f"The game {game} cannot be loaded: {type(error).__name__}: {error}.") from error
        entities = self._env._entity_infos
        names = import_module("alfworld.agents.utils.misc").Demangler(game_infos=entities)
        for info in entities.values():
            info.name = names.demangle_alfred_name(info.id)
        self._game = game

    def reset(self) -> dict[str, Any]:
        return _state_of(self._env.reset())

    def step(self, command: str) -> dict[str, Any]:
        state, _, _ = self._env.step(command)
        return _state_of(state)

    def close(self) -> None:
        self._stack.close()


def _state_of(state: Any) -> dict[str, Any]:
    return {"text": state["feedback"], "commands": list(state["admissible_commands"]), "won": bool(state["won"])}


def check(logic: Any) -> None:
    """Check the expressions of a game's grammar, which the engine evaluates as Python.

    Raises:
        InvalidInput: an expression does more than name an object. Those of ALFWorld's own games do only that.
    """
    textgen = import_module("textworld.envs.pddl.textgen")
    kind: type[object] = textgen.Symbol
    expressions = list[str]()

    def walk(symbol: object) -> None:
        if type(symbol) is textgen.EvalSymbol:
            expressions.append(str(vars(symbol)["expression"]))
        for part in vars(symbol).values():
            if isinstance(part, kind):
                walk(part)

    for rules in logic.grammar._rules.values():
        for rule in rules:
            for symbol in rule.rhs:
                walk(symbol)
    for action in logic.actions.values():
        for text in (action.template, action.feedback_rule):
            for symbol in textgen._parse_and_convert(text, rule_name="symbols"):
                walk(symbol)
    for text in expressions:
        if not harmless(text):
            raise InvalidInput(f"its grammar runs {text!r}, which is not just an object's name")


def harmless(expression: str) -> bool:
    """Whether the expression only names things: `o.indefinite + ' ' + o.name`, `r.name or r.id`."""
    try:
        nodes = list(ast.walk(ast.parse(expression.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {node.id for node in nodes if isinstance(node, ast.Name)}
    return all(isinstance(node, _ALLOWED) for node in nodes) and not any(name.startswith("_") for name in names)


def main(folder: str, kind: str) -> None:
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)  # the engine, including its C++ part, prints to stdout, which must not mix with the answers
        engine = Engine(folder=folder or None, plain=kind == "plain")
        for line in sys.stdin:
            before = time.process_time()
            answer = _answer(engine, json.loads(line))
            answer["cpu"] = time.process_time() - before
            out.write(json.dumps(answer) + "\n")
            out.flush()


def _answer(engine: Engine, request: dict[str, Any]) -> dict[str, Any]:
    try:
        match request["do"]:
            case "open":
                engine.open(request["game"])
                return {"notice": engine.notice}
            case "reset":
                return engine.reset()
            case "step":
                return engine.step(request["command"])
            case other:
                raise ValueError(f"unknown request: {other!r}")
    except InvalidInput as error:
        return {"error": str(error), "invalid": True}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main(*sys.argv[1:])
