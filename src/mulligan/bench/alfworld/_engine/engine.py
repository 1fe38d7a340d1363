"""One game after the other in TextWorld's PDDL engine, with ALFWorld's names. Imports TextWorld: in the worker only."""

from __future__ import annotations

import ast
import json
import os
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from mulligan.bench.alfworld._engine.faster import KNOWN, faster, unknown
from mulligan.bench.alfworld._engine.translation import Translations
from mulligan.core.errors import InvalidInput

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
            kept = Translations.of(original, versions, None if folder is None else Path(folder))
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
