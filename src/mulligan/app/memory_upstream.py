"""The config.yaml of ReasoningBank-MCP as a mulligan.toml: where each of its keys goes here, or why it goes nowhere.

Nothing is read from the environment for a provider that is not in use, and no key is ever copied.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from mulligan.agentfile.frontmatter import parse_document
from mulligan.app.memory_config import OF_PAPER, STRATEGIES, check_key
from mulligan.app.model_roles import errors_at
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.records import Json
from mulligan.text.files import read_text

ROLE = "bank"
"""The role in [models] that stands for the model of the bank."""


@dataclass(frozen=True)
class Rule:
    """Where a key goes: a key of [memory], of a strategy's table in it, or of the role; else the reason why nowhere."""

    to: str
    why: str
    turn: Callable[[Json], Json]


def _switch(value: Json) -> Json:
    if not isinstance(value, bool):
        raise InvalidInput(f"true or false is expected, not {value!r}.")
    return value


def _threshold(value: Json) -> Json:
    """Their scores cannot be compared with our calibrated relevance; the modes that their README names can."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"a number from 0 to 1 is expected, not {value!r}.")
    if value <= 0:
        return 0.0
    return "strict" if value >= 0.9 else "standard" if value >= 0.8 else "lenient"


def _handled(value: Json) -> None:
    if value == "delete":
        raise InvalidInput(
            "'delete' is refused: nothing that was learned is deleted by a merge. Take the line out: the originals are "
            "archived, and `mulligan memory purge` deletes what you name."
        )
    if value not in ("archive", "mark"):
        raise InvalidInput(f"archive or mark is expected, not {value!r}.")


def _skips(value: Json) -> Json:
    return "skip" if _switch(value) else "link"


_TURNS: Mapping[str, Callable[[Json], Json]] = {
    "": lambda value: value,
    "paper": lambda _: "paper",
    "threshold": _threshold,
    "switch": _switch,
    "skips": _skips,
    "handled": _handled,
}
RULES = {
    key: Rule(rule.get("to", ""), rule.get("why", ""), _TURNS[rule.get("turn", "")])
    for key, rule in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}

CHOICES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "llm": ("provider", "dashscope", {"dashscope": "alibaba", "openai": "openai", "anthropic": "anthropic"}),
    "embedding": ("provider", "dashscope", {"dashscope": "alibaba", "openai": "openai"}),
    "retrieval": ("strategy", "hybrid", {"cosine": "cosine", "hybrid": "hybrid", "llm_assisted": ""}),
    "storage": ("backend", "json", {"json": "", "sqlite": "", "chroma": ""}),
    "memory_manager.deduplication": ("strategy", "semantic", {"semantic": "semantic", "hash": "none"}),
    "memory_manager.merge": ("strategy", "llm", {"llm": "llm", "voting": "voting", "template": ""}),
}
"""Tables of which one counts: the key that says which, its default, and what is called so here ("": nothing is)."""

_THEIR_DEFAULTS = {"retrieval": "hybrid", "deduplication": "semantic", "merging": "llm"}

_VARIABLE = re.compile(r"\$\{(?P<name>[^:?}]+)(?:(?P<optional>\?)|:(?P<default>[^}]*))?\}")


def import_config(file: Path) -> tuple[str, list[str]]:
    """The text of a mulligan.toml that does what this config.yaml asks for, and a sentence on each key that it has not.

    Raises `InvalidInput` that names the line: for what is no YAML, a value that cannot be, `original_handling: delete`,
    and a variable without a default that is not set, of a provider in use.
    """
    leaves = _leaves(file)
    chosen = {section: _chosen(section, leaves, file) for section in CHOICES}
    found, notes, unused = dict[str, Json](), list[str](), set[str]()
    for key, (value, line) in leaves.items():
        section, choice = _table(key)
        if choice and choice != chosen[section]:
            unused.add(f"{section}.{choice}")
            continue
        with errors_at(f"{file}:{line}: {key}"):
            to, to_value, note = _turned(key, value)
        notes += [f"{key}: {note}."] if note else []
        if to:
            with errors_at(f"{file}:{line}: {key}"):
                if "." not in to:
                    check_key(to, to_value)
            found[to] = to_value
    notes += [f"{table}.*: not in use there, so nothing is taken from it." for table in sorted(unused)]
    return _toml(file, found, notes), notes


def _turned(key: str, value: Json) -> tuple[str, Json, str]:
    """Where a value goes, as what, and what is to be said of it."""
    general = re.sub(r"^(llm|embedding|storage)\.\w+\.", r"\1.*.", key)
    rule = RULES.get(general)
    if rule is None:
        near = get_close_matches(general, RULES, n=1)
        return (
            "",
            None,
            f"not a key of ReasoningBank-MCP; left out{f'. Did you mean {near[0]}?' if near else ''}".rstrip("?"),
        )
    if key == "mode.preset" and value != "paper_faithful":
        return "", None, "only paper_faithful is known; nothing is taken from it"
    if key.endswith(".api_key"):
        return _secret(rule, value)
    value = _filled(value)
    section, _, last = key.rpartition(".")
    if section in CHOICES and CHOICES[section][0] == last:
        ours = CHOICES[section][2][cast(str, value)]
        note = rule.why or ("" if ours else f"{value} has no counterpart; the default of Mulligan is taken")
        return (rule.to if ours else ""), ours, note
    turned = rule.turn(value)
    return rule.to, turned, _SKIPPED if turned == "skip" else rule.why


_SKIPPED = (
    'near_duplicates = "skip" does not keep a lesson that nearly says what another says; "link", the default of '
    "Mulligan, keeps both"
)


def _secret(rule: Rule, value: Json) -> tuple[str, Json, str]:
    """The name of the variable that holds a key; never the key."""
    variable = _VARIABLE.fullmatch(value) if isinstance(value, str) else None
    if value and (variable is None or variable["default"]):
        note = "a key stands in the file itself. It is not copied: put it into .env"
        return (rule.to if variable else ""), variable and variable["name"], note
    return (rule.to if variable else ""), variable and variable["name"], rule.why


def _filled(value: Json) -> Json:
    """The value of `${NAME}` (which has to be set), `${NAME?}` or `${NAME:default}`, as their server reads them."""
    variable = _VARIABLE.fullmatch(value) if isinstance(value, str) else None
    if variable is None:
        return value
    given = os.environ.get(variable["name"])
    if given is None and variable["default"] is None and not variable["optional"]:
        raise InvalidInput(f"the variable {variable['name']} is not set: set it, or write the value into the file.")
    return given if given is not None else variable["default"] or ""


def _table(key: str) -> tuple[str, str]:
    """The choice that a key belongs to: ("llm", "openai") for llm.openai.chat_model; empty where it always counts."""
    for section, (_, _, names) in CHOICES.items():
        inner = key.removeprefix(f"{section}.").partition(".")
        if key.startswith(f"{section}.") and inner[1] and inner[0] in names:
            return section, inner[0]
    return "", ""


def _chosen(section: str, leaves: Mapping[str, tuple[Json, int]], file: Path) -> str:
    selector, default, names = CHOICES[section]
    value, line = leaves.get(f"{section}.{selector}", (default, 0))
    with errors_at(f"{file}:{line}: {section}.{selector}"):
        value = _filled(value)
        if not isinstance(value, str) or value not in names:
            raise UnknownName(f"{selector} of {section}", str(value), names)
    return value


def _toml(file: Path, found: dict[str, Json], notes: list[str]) -> str:
    """The values by table; what one of them decides, the others do not say as well."""
    tables: dict[str, dict[str, Json]] = {"": {}, **{name: {} for name in ("role", "embedder", *STRATEGIES)}}
    for to, value in found.items():
        table, _, key = to.rpartition(".")
        tables[table][key] = value
    memory, role, embedder = tables.pop(""), tables.pop("role"), tables.pop("embedder")
    if role.get("model"):
        provider = role.pop("provider", None) or CHOICES["llm"][2][CHOICES["llm"][1]]
        role = {"name": f"{provider}:{role.pop('model')}", **role}
        memory["model"] = ROLE
    else:
        role = {}
    if embedder.get("model"):
        provider = embedder.get("provider") or CHOICES["embedding"][2][CHOICES["embedding"][1]]
        memory["embedder"] = f"{provider}:{embedder['model']}"
    if memory.get("fold") is False:
        memory |= {"near_duplicates": "link", "auto_merge": False}
    if memory.get("fold") is True:
        del memory["fold"]
    if memory.get("preset") == "paper":
        decided = [key for key in OF_PAPER if memory.pop(key, None) is not None or tables.pop(key, None)]
        notes += [f"mode.preset: paper decides by itself: {', '.join(decided)}."] if decided else []
    for name, table in tables.items():
        if table:
            table.setdefault("name", _THEIR_DEFAULTS[name])
            with errors_at(f"{file}: {name}"):
                check_key(name, table)
    named = {"memory": memory, **{f"memory.{name}": table for name, table in tables.items()}, f"models.{ROLE}": role}
    lines = [f"# From {file.name} of ReasoningBank-MCP, by `mulligan memory import-config`."]
    for name, table in named.items():
        lines += ["", f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())] if table else []
    return "\n".join(lines) + "\n"


def _leaves(file: Path) -> dict[str, tuple[Json, int]]:
    """The values of a YAML file by their dotted keys, with their lines."""
    document, problems = parse_document(file, f"---\n{read_text(file)}\n---\n")
    if document is None or problems:
        at = problems[0]
        raise InvalidInput(f"{file}:{(at.line or 2) - 1}: {at.message}")
    return {key: (value, document.source.lines.get(key, 2) - 1) for key, value in _flat(document.values)}


def _flat(table: Mapping[str, Json], above: str = "") -> Iterator[tuple[str, Json]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(cast(dict[str, Json], value), f"{above}{key}.")
        elif value is not None:
            yield f"{above}{key}", value
