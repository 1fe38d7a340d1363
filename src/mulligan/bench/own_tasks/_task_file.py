"""Reads files of tasks that a user writes: prompts, the judge in the loop, and the hidden judge of each.

The agent learns from the feedback of the judge in the loop. The hidden judge scores the attempts once the episode is
over. An `answer` is hidden: until then the model judges itself, unless the file declares an oracle.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.records import Json, Spec
from mulligan.text.command_lines import split_line
from mulligan.text.toml_lines import array_lines, key_lines


def read_text(file: Path, what: str, where: str = "") -> str:
    """The text of a file. Raises `InvalidInput`, beginning with `where`, if it is missing or is not UTF-8."""
    at = f"{where}: " if where else ""
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput(f"{at}The {what} {file} does not exist.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{at}The {what} {file} cannot be read: {error}.") from error


@dataclass(frozen=True)
class Table:
    """A table of a TOML file, which reports mistakes with file and line.

    Attributes:
        called: its name in errors.
        lines: the line of each key; that of () is the table's header.
    """

    file: Path
    called: str
    values: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]

    def where(self, *keys: str) -> str:
        """`FILE:LINE` of a key, or of the nearest key above it."""
        found = next((self.lines[keys[:n]] for n in range(len(keys), -1, -1) if keys[:n] in self.lines), None)
        return f"{self.file}:{found}" if found else str(self.file)

    def wrong(self, key: str, problem: str) -> InvalidInput:
        return InvalidInput(f"{self.where(key)}: {problem}")

    def has(self, *keys: str) -> tuple[str, ...]:
        """Those of the keys that the table has."""
        return tuple(key for key in keys if key in self.values)

    def one_of(self, *keys: str, why: str) -> str | None:
        """The one of these keys that the table has, or None. Raises `InvalidInput`, ending with `why`, for several."""
        there = self.has(*keys)
        if len(there) > 1:
            raise self.wrong(there[1], f"{' and '.join(there[:2])} are both given: {why}.")
        return there[0] if there else None

    def only(self, keys: Sequence[str]) -> None:
        """Raises `InvalidInput` for any other key; the message suggests the most similar one."""
        for key in self.values:
            if key not in keys:
                raise self.wrong(key, str(UnknownName(f"key of {self.called}", key, keys)))

    def text(self, key: str) -> str:
        """The text under a key; a number becomes text."""
        value = self.values[key]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(key, f"{key} must be a non-empty string, not {value!r}.")
        return value

    def texts(self, key: str) -> str | list[str]:
        """A text, or a list of them with at least one."""
        value = self.values[key]
        if not isinstance(value, list):
            return self.text(key)
        given = cast(list[Any], value)
        if not given:
            raise self.wrong(key, f"{key} is an empty list.")
        return [Table(self.file, self.called, {key: one}, self.lines).text(key) for one in given]

    def flag(self, key: str) -> bool:
        if not isinstance(value := self.values[key], bool):
            raise self.wrong(key, f"{key} must be true or false, not {value!r}.")
        return value

    def table(self, key: str) -> Table:
        value = self.values[key]
        if not isinstance(value, dict):
            raise self.wrong(key, f"{key} must be a table, not {value!r}.")
        below = {keys[1:]: line for keys, line in self.lines.items() if keys[:1] == (key,)}
        below.setdefault((), self.lines.get((), 0))
        return Table(self.file, f"{key} in {self.called}", cast(dict[str, Any], value), below)

    def file_at(self, key: str, what: str) -> Path:
        """The file that the text names, relative to the folder of this file. Raises `InvalidInput` if it is missing."""
        path = (self.file.parent / Path(self.text(key)).expanduser()).resolve()
        if not path.is_file():
            raise self.wrong(key, f"The {what} {path} does not exist.")
        return path

    def json(self, key: str) -> dict[str, Json]:
        """A table of values that JSON has, too. Raises `InvalidInput` for others, such as dates."""
        given = self.table(key)
        for name, value in given.values.items():
            _plain(given, name, value)
        return dict(given.values)


def _plain(table: Table, key: str, value: Any) -> None:
    inner: list[Any] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []  # pyright: ignore
    if not isinstance(value, (bool, int, float, str, list, dict)):
        raise table.wrong(key, f"{key} must be a string, a number, true or false, a list or a table, not {value!r}.")
    for one in inner:
        _plain(table, key, one)


def read_tables(file: Path) -> tuple[Table, list[Table]]:
    """The file as a table, and its `[[task]]` tables (of .jsonl: its lines) in order. Raises `InvalidInput`."""
    text = read_text(file, "file of tasks")
    if file.suffix == ".jsonl":
        return Table(file, "a file of tasks", {}, {}), list(_lines(file, text))
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{file} is not valid TOML: {error}.") from error
    top = Table(file, "a file of tasks", values, key_lines(text))
    tasks = values.get("task", [])
    if not isinstance(tasks, list) or not all(isinstance(one, dict) for one in cast(list[Any], tasks)):
        raise top.wrong("task", "Each task is a table [[task]], in double brackets.")
    lines = array_lines(text, "task")
    given = cast(list[dict[str, Any]], tasks)
    if len(lines) != len(given):  # written as one list in one value
        lines = [{(): top.lines.get(("task",), 0)} for _ in given]
    return top, [Table(file, "a task", one, at) for one, at in zip(given, lines, strict=True)]


def _lines(file: Path, text: str) -> Iterator[Table]:
    """The tasks of JSON Lines: objects with the keys of a task, or prompts alone. Raises `InvalidInput`."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value: Any = json.loads(line)
        except ValueError as error:
            raise InvalidInput(f"{file}:{number}: The line is not valid JSON: {error}.") from None
        value = {"prompt": value} if isinstance(value, str) else value
        if not isinstance(value, dict):
            raise InvalidInput(
                f'{file}:{number}: A task is an object such as {{"prompt": "…"}}, or a string: the prompt.'
            )
        yield Table(file, "a task", cast(dict[str, Any], value), {(): number})


WAYS = ("tests", "check", "contains", "regex", "evaluator")
ANSWERS = ("answer", "answers")
HIDDEN = (*ANSWERS, *WAYS, "settings")
JUDGE = (*HIDDEN, "hidden", "hidden_tests", "oracle", "output")
TASK = ("id", "prompt", "prompt_file", "change", "family", *JUDGE)
TOP = ("name", "judge", "task")

_PROGRAM = re.compile(r"(?:.*/)?(?:python[\d.]*|bash|sh)")
"""Names of programs whose first argument is a file to run."""


@dataclass(frozen=True)
class Entry:
    """A task of a file.

    Attributes:
        loop: the evaluator in the loop.
        hidden: the hidden judge: an evaluator and its settings, with the texts of the files that these name. None: the
            verdict of the loop counts.
        output: "text" or "code"; None: as the evaluator in the loop expects.
        oracle: the answer judges in the loop.
        where: `FILE:LINE` of the task.
        files: all files that the task names.
        change: a sentence that says what is new in the world from this task on.
        family: the name of a group of like tasks.
    """

    id: str
    prompt: str
    loop: Spec
    hidden: Json
    output: str | None
    oracle: bool
    where: str
    files: tuple[Path, ...]
    change: str = ""
    family: str = ""


def read_tasks(file: Path, judge: Mapping[str, Json] | None = None) -> list[Entry]:
    """Read all tasks of a file.

    Args:
        judge: in the place of the table [judge] that the file does not have.

    Raises:
        InvalidInput: for the first mistake, with file and line.
    """
    top, tables = read_tables(file)
    top.only(TOP)
    if "name" in top.values:
        top.text("name")
    if not tables:
        begin = '{"prompt": "…"}' if file.suffix == ".jsonl" else '[[task]], then prompt = "…"'
        raise InvalidInput(f"{file} has no task: start one with {begin}.")
    default = top.table("judge") if "judge" in top.values else Table(file, "the setting judge", judge or {}, {})
    default.only(JUDGE)
    found = dict[str, Entry]()
    for number, table in enumerate(tables, 1):
        entry = _Reader(table, default).entry(number)
        if entry.id in found:
            raise table.wrong("id", f"The task {entry.id!r} already exists: {found[entry.id].where}.")
        found[entry.id] = entry
    return list(found.values())


class _Reader:
    """Reads one task. default: the table [judge], whose keys apply where the task has none."""

    def __init__(self, table: Table, default: Table) -> None:
        self._table, self._default = table, default
        self._files = list[Path]()

    def entry(self, number: int) -> Entry:
        table = self._table
        table.only(TASK)
        id = table.text("id") if "id" in table.values else f"task-{number}"
        prompt = self._prompt()
        hidden, loop = self._hidden(), self._way()
        oracle = self._value("oracle", Table.flag) or False
        judged = self._source("oracle")
        if oracle and loop is not None:
            raise judged.wrong("oracle", f"With oracle = true the answer judges in the loop: leave out {loop.name}.")
        if oracle and (hidden is None or hidden["evaluator"] != "exact_match"):
            raise judged.wrong("oracle", "With oracle = true the answer judges in the loop, but there is no answer.")
        if oracle:
            loop = Spec("exact_match", {**hidden["settings"], "oracle": True})
        if loop is None and hidden is None:
            raise InvalidInput(
                f"{table.where()}: the task {id!r} has no judge: give it an answer, {', '.join(WAYS)}. "
                "To have the model judge itself, use the evaluator model_judge. "
                "`fan-out --judge` sets one judge for all such tasks."
            )
        output = self._output(loop, hidden)
        told = {key: table.text(key).strip() for key in table.has("change", "family")}
        judge, files = loop or Spec("model_judge"), tuple(self._files)
        return Entry(id, prompt, judge, hidden, output, oracle, table.where(), files, **told)

    def _prompt(self) -> str:
        key = self._table.one_of("prompt", "prompt_file", why="keep one of them")
        if key is None:
            raise InvalidInput(f"{self._table.where()}: The task has no prompt: write what the agent should do.")
        if key == "prompt":
            return self._table.text(key).strip()
        text = self._read(self._table, key, "prompt file").strip()
        if not text:
            raise self._table.wrong(key, f"The prompt file {self._table.text(key)} is empty.")
        return text

    def _value(self, key: str, kind: Any) -> Any:
        table = self._source(key)
        return kind(table, key) if key in table.values else None

    def _source(self, *keys: str) -> Table:
        """The table that has one of these keys: the task, else the defaults."""
        return self._table if self._table.has(*keys) else self._default

    def _way(self) -> Spec | None:
        """The evaluator in the loop, if one is named."""
        table = self._source(*WAYS)
        key = table.one_of(*WAYS, why="only one judges in the loop. Put what judges afterwards under hidden")
        if key is None:
            for given in (self._table, self._default):
                if "settings" in given.values:
                    raise given.wrong("settings", "settings need an evaluator, but none is named.")
            return None
        spec = self._spec(table, key, kept=True)
        return spec if table is self._table else spec.with_settings(**self._settings(self._table, True))

    def _hidden(self) -> Json:
        why = "only one judges afterwards. An answer is always hidden"
        keys = (*ANSWERS, "hidden", "hidden_tests")
        table = self._source(*keys)
        key = table.one_of(*keys, why=why)
        if key == "hidden_tests":
            table, key = Table(table.file, table.called, {"tests": table.values[key]}, table.lines), "tests"
        elif key == "hidden":
            table = table.table("hidden")
            table.only(HIDDEN)
            key = table.one_of(*ANSWERS, *WAYS, why=why)
            if key is None:
                raise InvalidInput(
                    f"{table.where()}: hidden has no judge: give it one of {', '.join((*ANSWERS, *WAYS))}."
                )
        elif key is not None:
            table = Table(table.file, table.called, {key: table.values[key]}, table.lines)
        if key is None:
            return None
        spec = self._spec(table, key, kept=False)
        return {"evaluator": spec.name, "settings": dict(spec.settings)}

    def _spec(self, table: Table, key: str, *, kept: bool) -> Spec:
        """The evaluator that this key stands for.

        kept: its settings name files, which are read when it is built; else they hold the texts of the files.
        """
        settings = self._settings(table, kept)
        if key == "tests":
            path = self._file(table, key, "tests file")
            text: Json = {"file": str(path)} if kept else read_text(path, "tests file", table.where(key))
            return Spec("unit_tests", {"tests": text, "name": path.name, **settings})
        if key == "check":
            expects = self._value("output", Table.text) or "text"
            return Spec("command", {"check": self._check(table), "expects": expects, **settings})
        if key == "evaluator":
            return Spec(self._evaluator(table), settings)
        name, setting = {
            "contains": ("contains", "text"),
            "regex": ("regex", "pattern"),
            "answer": ("exact_match", "answer"),
            "answers": ("exact_match", "answers"),
        }[key]
        value = table.text(key) if key in ("regex", "answer") else table.texts(key)
        return Spec(name, {setting: value, **settings})

    def _check(self, table: Table) -> str:
        """The command with absolute paths; those in the file are relative to its folder."""
        try:
            parts = list(split_line(table.text("check")))
        except ValueError as error:
            raise table.wrong("check", f"The check cannot be read: {error}.") from error
        for number, part in enumerate(parts):
            path = table.file.parent / part
            if number == 0 and os.sep not in part:
                continue
            if not path.is_file():
                if number == 0 or (number == 1 and _PROGRAM.fullmatch(parts[0]) and part.endswith((".py", ".sh"))):
                    raise table.wrong("check", f"The check runs {path}, which does not exist.")
                continue
            parts[number] = str(path.resolve())
            self._files.append(path.resolve())
        return shlex.join(parts)

    def _evaluator(self, table: Table) -> str:
        """The name of the evaluator; the path of a plug-in file is relative to the folder of this file."""
        name, colon, inner = table.text("evaluator").partition(":")
        if name.endswith(".py"):
            path = Table(table.file, table.called, {"evaluator": name}, table.lines).file_at(
                "evaluator", "plug-in file"
            )
            self._files.append(path)
            return f"{path}{colon}{inner}"
        if colon and "." not in name:
            raise table.wrong("evaluator", f"Write what {name} needs as settings = {{ … }}, not after a colon.")
        return f"{name}{colon}{inner}"

    def _settings(self, table: Table, kept: bool) -> dict[str, Json]:
        given = table.json("settings") if "settings" in table.values else {}
        return {name: self._setting(table, value, kept) for name, value in given.items()}

    def _setting(self, table: Table, value: Json, kept: bool) -> Json:
        """The value of a setting; {file = "name"} stands for the text of a file in the folder of this file."""
        values = cast(dict[str, Json], value if isinstance(value, dict) else {})
        if set(values) != {"file"}:
            return cast(Json, value)
        given = Table(table.file, table.called, values, {(): table.lines.get(("settings",), 0)})
        path = self._file(given, "file", "file")
        return {"file": str(path)} if kept else read_text(path, "file", given.where())

    def _file(self, table: Table, key: str, what: str) -> Path:
        path = table.file_at(key, what)
        self._files.append(path)
        return path

    def _read(self, table: Table, key: str, what: str) -> str:
        return read_text(self._file(table, key, what), what, table.where(key))

    def _output(self, loop: Spec | None, hidden: Json) -> str | None:
        """What an attempt is: "code" where hidden tests judge. None: as the evaluator in the loop expects."""
        value = self._value("output", Table.text)
        tests = "unit_tests" in (loop and loop.name, hidden and hidden["evaluator"])
        if value is None:
            return "code" if tests else None
        if value not in ("text", "code"):
            raise self._source("output").wrong("output", f"output must be a string or code, not {value!r}.")
        if value == "text" and tests:
            raise self._source("output").wrong("output", "Tests judge code: leave output out.")
        return value


def files_of(entries: Sequence[Entry]) -> list[Path]:
    """The files that the tasks name, in order, without repetitions."""
    return list(dict.fromkeys(file for entry in entries for file in entry.files))
