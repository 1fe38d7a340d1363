"""One game after the other in TextWorld's PDDL engine, with ALFWorld's names. Imports TextWorld: in the worker only.

The engine is made faster; its output stays the same. Upstream parses its grammar's strings again for each command that
is possible at each step, deep-copies what it only reads, and translates the game's PDDL twice at each load and each
reset: once to play by, once for its planner. Here a string is parsed once, what is only read is shared, and a
translation is kept in memory and, as JSON, on disk; nobody plans, so that the second translation is the first again.
What is replaced, and what that was measured to give: design/020.

Run as a program, it is the process that an engine lives in: requests as lines of JSON on stdin, an answer to each on
stdout. {"do": "open", "game": PATH}, {"do": "reset"}, {"do": "step", "command": TEXT}; what went wrong is
{"error": TEXT}. It ends when its stdin does, and so with whoever started it.
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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from mulligan.core.errors import InvalidInput

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
    """An expression is compiled once. It was checked before (`check`)."""

    @cache
    def code(text: str) -> Any:
        return compile(text.strip(), "<grammar>", "eval")

    def derive(self: Any, context: Any = None) -> list[Any]:
        variables = (context or self.context)["variables"]
        return [textgen.TerminalSymbol(eval(code(self.expression), {"__builtins__": {}}, variables))]

    return derive


FORM = 1
"""The version of the files; a file of another version is made anew."""

KEPT = 4
"""Games whose translation is held in memory."""


@dataclass(frozen=True)
class Translations:
    """Takes the place of `fast_downward.pddl2sas`. folder: where files are kept; None: in memory only.

    original: the function itself. versions: of what translates, which is part of a file's name.
    """

    original: Callable[..., Any]
    versions: str
    folder: Path | None
    _held: OrderedDict[str, Any] = field(default_factory=OrderedDict[str, Any])

    def __call__(self, domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        """The task (as much of it as TextWorld reads) and the SAS text."""
        texts = (self.versions, domain, problem)
        key = hashlib.sha256("".join(f"{len(text)}:{text}" for text in texts).encode()).hexdigest()
        if key not in self._held:
            kept = self._read(key)
            if kept is None:
                kept = _kept(*self.original(domain, problem))
                self._write(key, kept)
            self._held[key] = _task(kept), kept["sas"]
            while len(self._held) > KEPT:
                self._held.popitem(last=False)
        self._held.move_to_end(key)
        return self._held[key]

    def _read(self, key: str) -> Any:
        """None for what is not there or cannot be read: it is made again."""
        if self.folder is None:
            return None
        try:
            kept = json.loads(zlib.decompress((self.folder / f"{key}.json.z").read_bytes()))
        except (OSError, ValueError, zlib.error):
            return None
        return kept if isinstance(kept, dict) and kept.get("form") == FORM else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def _write(self, key: str, kept: Any) -> None:
        """Writes the whole file or nothing; a full or read-only disk costs time, not the game."""
        if self.folder is None:
            return
        part = self.folder / f"{key}.{os.getpid()}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_bytes(zlib.compress(json.dumps(kept).encode()))
            part.replace(self.folder / f"{key}.json.z")
        except OSError:
            part.unlink(missing_ok=True)


def _kept(task: Any, sas: str) -> dict[str, Any]:
    """What TextWorld's `PddlState` reads of a task, as JSON, in the same order."""
    return {
        "form": FORM,
        "actions": [[a.name, [[p.name, p.type_name] for p in a.parameters]] for a in task.actions],
        "types": [[t.name, list(t.supertype_names)] for t in task.types],
        "objects": [[o.name, o.type_name] for o in task.objects],
        "init": [fact for fact in map(_fact, task.init) if fact],
        "sas": sas,
    }


def _fact(atom: Any) -> list[Any] | None:
    """As `PddlState` reads it: costs and distances are no facts."""
    expressions = import_module("fast_downward.translate.pddl.f_expression")
    if isinstance(atom, expressions.Assign):
        of: Any = atom
        name = str(of.expression.value)
        return None if of.fluent.symbol == "total-cost" or name.isdigit() else [name, list(of.fluent.args)]
    return [atom.predicate, list(atom.args)]


def _task(kept: dict[str, Any]) -> Any:
    atom = import_module("fast_downward.translate.pddl.conditions").Atom
    return SimpleNamespace(
        actions=[
            SimpleNamespace(name=name, parameters=[SimpleNamespace(name=p, type_name=t) for p, t in parameters])
            for name, parameters in kept["actions"]
        ],
        types=[SimpleNamespace(name=name, supertype_names=above) for name, above in kept["types"]],
        objects=[SimpleNamespace(name=name, type_name=type_name) for name, type_name in kept["objects"]],
        init=[atom(name, args) for name, args in kept["init"]],
    )


TEXTS = ("pddl_domain", "grammar", "pddl_problem")
_ALLOWED = (ast.Expression, ast.Name, ast.Attribute, ast.Constant, ast.BoolOp, ast.Or, ast.BinOp, ast.Add, ast.Load)


class Engine:
    """Plays; what it gives is plain JSON. plain: as upstream has it, for comparing.

    folder: where translations are kept. notice: why it is the slow one although it should not be; else "".
    """

    def __init__(self, *, folder: str | None = None, plain: bool = False) -> None:
        if folder is not None:
            os.environ["ALFWORLD_DATA"] = folder  # alfworld makes this folder as it is imported
        self._game, self._stack = "", ExitStack()
        other = unknown()
        self.notice = "" if plain or not other else f"ALFWorld is played slowly: {', '.join(other)}."
        if not plain and not other:
            versions = " ".join(f"{name}={number}" for name, number in KNOWN.items())
            original = import_module("fast_downward").pddl2sas
            kept = Translations(original, versions, None if folder is None else Path(folder))
            self._stack.enter_context(faster(kept))
        textworld, pddl = import_module("textworld"), import_module("textworld.envs.pddl.pddl")
        self._env: Any = pddl.PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True))

    def open(self, game: str) -> None:
        """Loads the game unless it is the one that is loaded. Raises `InvalidInput` for what is no game."""
        if game == self._game:
            return
        self._game = ""
        try:
            data = json.loads(Path(game).read_text(encoding="utf-8"))
            missing = [name for name in TEXTS if not isinstance(data.get(name), str)]
        except (OSError, ValueError, AttributeError) as error:
            raise InvalidInput(f"The game {game} cannot be read: {error}.") from error
        if missing:
            raise InvalidInput(f"The game {game} has no text under {missing[0]!r}: it is no ALFWorld game.")
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
        return _told(self._env.reset())

    def step(self, command: str) -> dict[str, Any]:
        state, _, _ = self._env.step(command)
        return _told(state)

    def close(self) -> None:
        self._stack.close()


def _told(state: Any) -> dict[str, Any]:
    return {"text": state["feedback"], "commands": list(state["admissible_commands"]), "won": bool(state["won"])}


def check(logic: Any) -> None:
    """The grammar of a game is a program: the engine evaluates its expressions. Raises `InvalidInput` for one that does
    more than name an object, which is all that ALFWorld's do."""
    textgen = import_module("textworld.envs.pddl.textgen")
    kind: type[object] = textgen.Symbol
    found = list[str]()

    def walk(symbol: object) -> None:
        if type(symbol) is textgen.EvalSymbol:
            found.append(str(vars(symbol)["expression"]))
        for held in vars(symbol).values():
            if isinstance(held, kind):
                walk(held)

    for rules in logic.grammar._rules.values():
        for rule in rules:
            for symbol in rule.rhs:
                walk(symbol)
    for action in logic.actions.values():
        for text in (action.template, action.feedback_rule):
            for symbol in textgen._parse_and_convert(text, rule_name="symbols"):
                walk(symbol)
    for text in found:
        if not harmless(text):
            raise InvalidInput(f"its grammar runs {text!r}, which is more than the name of an object")


def harmless(expression: str) -> bool:
    """Whether it only names things: `o.indefinite + ' ' + o.name`, `r.name or r.id`."""
    try:
        nodes = list(ast.walk(ast.parse(expression.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {node.id for node in nodes if isinstance(node, ast.Name)}
    return all(isinstance(node, _ALLOWED) for node in nodes) and not any(name.startswith("_") for name in names)


def main(folder: str, kind: str) -> None:
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)  # what the engine prints, in C++ too, is no answer
        engine = Engine(folder=folder or None, plain=kind == "plain")
        for line in sys.stdin:
            before = time.process_time()
            answer = _answered(engine, json.loads(line))
            answer["cpu"] = time.process_time() - before
            out.write(json.dumps(answer) + "\n")
            out.flush()


def _answered(engine: Engine, request: dict[str, Any]) -> dict[str, Any]:
    try:
        match request["do"]:
            case "open":
                engine.open(request["game"])
                return {"notice": engine.notice}
            case "reset":
                return engine.reset()
            case _:
                return engine.step(request["command"])
    except InvalidInput as error:
        return {"error": str(error), "invalid": True}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main(*sys.argv[1:])
