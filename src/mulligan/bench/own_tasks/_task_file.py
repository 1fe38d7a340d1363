"""Reads a user's file of tasks: their prompts, the judges in the loop, and the hidden judges.

The agent learns from the feedback of the judge in the loop. The hidden judge scores the attempts when the episode is
over. An `answer` is hidden: in the loop the model judges itself, unless the file declares an oracle.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.records import Json, Spec
from mulligan.text.command_lines import split_line
from mulligan.text.toml_lines import array_lines, key_lines

T = TypeVar("T")


def read_text(file: Path, what: str, where: str = "") -> str:
    """The text of a file. Raises `InvalidInput`, beginning with `where`, if it is missing or is not UTF-8."""
    prefix = f"{where}: " if where else ""
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput(f"{prefix}The {what} {file} does not exist.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{prefix}The {what} {file} cannot be read: {error}.") from error


@dataclass(frozen=True)
class Table:
    """A table of a TOML file, which reports mistakes with file and line.

    Attributes:
        called: the name of the table in errors.
        lines: the line number of each key, and under () that of the table's header.
    """

    file: Path
    called: str
    values: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]

    def where(self, *keys: str) -> str:
        """`FILE:LINE` of a key, or of the nearest key above it."""
        line = next((self.lines[keys[:n]] for n in range(len(keys), -1, -1) if keys[:n] in self.lines), None)
        return f"{self.file}:{line}" if line else str(self.file)

    def wrong(self, key: str, problem: str) -> InvalidInput:
        """An error about a key, to be raised."""
        return InvalidInput(f"{self.where(key)}: {problem}")

    def has(self, *keys: str) -> tuple[str, ...]:
        """Those of the keys that the table has."""
        return tuple(key for key in keys if key in self.values)

    def one_of(self, *keys: str, why: str) -> str | None:
        """The one of the keys that the table has, or None. If it has several, raises `InvalidInput` with `why`."""
        present = self.has(*keys)
        if len(present) > 1:
            raise self.wrong(present[1], f"{' and '.join(present[:2])} are both given: {why}.")
        return present[0] if present else None

    def only(self, keys: Sequence[str]) -> None:
        """Raises `InvalidInput` for any other key, and suggests the most similar valid key."""
        for key in self.values:
            if key not in keys:
                raise self.wrong(key, str(UnknownName(f"key of {self.called}", key, keys)))

    def text(self, key: str) -> str:
        """The string under a key. A number is converted."""
        value = self.values[key]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(key, f"{key} must be a non-empty string, not {value!r}.")
        return value

    def texts(self, key: str) -> str | list[str]:
        """The string, or the list of at least one string, under a key."""
        value = self.values[key]
        if not isinstance(value, list):
            return self.text(key)
        if not value:
            raise self.wrong(key, f"{key} is an empty list: add at least one string.")
        return [Table(self.file, self.called, {key: text}, self.lines).text(key) for text in cast(list[Any], value)]

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
        """The file under a key, relative to the folder of this file. Raises `InvalidInput` if it does not exist."""
        path = self.file.parent / os.path.expanduser(self.text(key))
        if not os.path.isfile(path):  # unlike `Path.is_file`, also False for a name that no file can have
            raise self.wrong(key, f"The {what} {path} does not exist.")
        return path.resolve()

    def json(self, key: str) -> dict[str, Json]:
        """The table under a key. Raises `InvalidInput` for values that JSON does not have, such as dates."""
        table = self.table(key)
        for name, value in table.values.items():
            _check_json(table, name, value)
        return dict(table.values)


def _check_json(table: Table, key: str, value: Any) -> None:
    if not isinstance(value, (bool, int, float, str, list, dict)):
        raise table.wrong(key, f"{key} must be a string, a number, true or false, a list or a table, not {value!r}.")
    items = cast(list[Any], value) if isinstance(value, list) else []
    for item in cast(dict[str, Any], value).values() if isinstance(value, dict) else items:
        _check_json(table, key, item)


def read_tables(file: Path) -> tuple[Table, list[Table]]:
    """The file as a table, and its `[[task]]` tables (for .jsonl: its lines) in order. Raises `InvalidInput`."""
    text = read_text(file, "file of tasks")
    if file.suffix == ".jsonl":
        return Table(file, "a file of tasks", {}, {}), list(_lines(file, text))
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number with thousands of digits, or a thousand brackets
        raise InvalidInput(f"{file} is not valid TOML: {error}.") from error
    top = Table(file, "a file of tasks", values, key_lines(text))
    tasks = values.get("task", [])
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in cast(list[Any], tasks)):
        raise top.wrong("task", "Each task is a table [[task]], in double brackets.")
    lines = array_lines(text, "task")
    tables = cast(list[dict[str, Any]], tasks)
    if len(lines) != len(tables):  # the tasks are a single list of inline tables
        lines = [{(): top.lines.get(("task",), 0)} for _ in tables]
    return top, [Table(file, "a task", *task) for task in zip(tables, lines, strict=True)]


def _lines(file: Path, text: str) -> Iterator[Table]:
    """The tasks of a .jsonl file, whose lines are objects or only prompts. Raises `InvalidInput`."""
    for number, line in enumerate(text.split("\n"), 1):  # not `splitlines`: a JSON string can contain U+2028
        if not line.strip():
            continue
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{file}:{number}: The line is not valid JSON: {error}.") from None
        value = {"prompt": value} if isinstance(value, str) else value
        if not isinstance(value, dict):
            raise InvalidInput(
                f'{file}:{number}: A task is an object such as {{"prompt": "…"}}, or a string: the prompt.'
            )
        yield Table(file, "a task", cast(dict[str, Any], value), {(): number})


JUDGES = ("tests", "check", "contains", "regex", "evaluator")
"""The keys that name a judge."""
ANSWERS = ("answer", "answers")
HIDDEN_KEYS = (*ANSWERS, *JUDGES, "settings")
JUDGE_KEYS = (*HIDDEN_KEYS, "hidden", "hidden_tests", "oracle", "output")
TASK_KEYS = ("id", "prompt", "prompt_file", "change", "family", *JUDGE_KEYS)
TOP_KEYS = ("name", "judge", "task")

_PROGRAM = re.compile(r"(?:.*/)?(?:python[\d.]*|bash|sh)")
"""Programs whose first argument is a file to run."""


@dataclass(frozen=True)
class Entry:
    """A task of a file.

    Attributes:
        loop: the evaluator in the loop.
        hidden: the hidden judge: an evaluator and its settings, which contain the texts of files. None: the verdict of
            the loop counts.
        output: "text" or "code". None: what the evaluator in the loop expects.
        oracle: whether the answer judges in the loop.
        where: `FILE:LINE` of the task.
        files: all files that the task names.
        change: a sentence about what changes in the world from this task on.
        family: the group of similar tasks that it belongs to.
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
        judge: the keys of the table [judge], if the file has no such table.

    Raises:
        InvalidInput: for the first mistake, with file and line.
    """
    top, tables = read_tables(file)
    top.only(TOP_KEYS)
    if "name" in top.values:
        top.text("name")
    if not tables:
        begin = '{"prompt": "…"}' if file.suffix == ".jsonl" else '[[task]], then prompt = "…"'
        raise InvalidInput(f"{file} has no task: start one with {begin}.")
    default = top.table("judge") if "judge" in top.values else Table(file, "the setting judge", judge or {}, {})
    default.only(JUDGE_KEYS)
    entries = dict[str, Entry]()
    for number, table in enumerate(tables, 1):
        entry = _Reader(table, default).entry(number)
        if entry.id in entries:
            raise table.wrong("id", f"The task {entry.id!r} already exists: {entries[entry.id].where}.")
        entries[entry.id] = entry
    return list(entries.values())


class _Reader:
    """Reads a task. default: the table [judge], whose keys apply if the task does not have them."""

    def __init__(self, table: Table, default: Table) -> None:
        self._table, self._default = table, default
        self._files = list[Path]()

    def entry(self, number: int) -> Entry:
        """The task. number: its number in the file, from 1."""
        table = self._table
        table.only(TASK_KEYS)
        id = table.text("id") if "id" in table.values else f"task-{number}"
        prompt = self._prompt()
        hidden, loop = self._hidden_judge(), self._loop_judge()
        oracle = self._value("oracle", Table.flag) or False
        source = self._source("oracle")
        if oracle and loop is not None:
            raise source.wrong("oracle", f"With oracle = true, the answer is the judge in the loop: omit {loop.name}.")
        if oracle and (hidden is None or hidden["evaluator"] != "exact_match"):
            raise source.wrong(
                "oracle", "With oracle = true, the answer is the judge in the loop: add an answer to the task."
            )
        if oracle:
            loop = Spec("exact_match", {**hidden["settings"], "oracle": True})
        if loop is None and hidden is None:
            raise InvalidInput(
                f"{table.where()}: the task {id!r} has no judge: give it an answer, {', '.join(JUDGES)}. "
                "To have the model judge itself, use the evaluator model_judge. "
                "`fan-out --judge` sets one judge for all such tasks."
            )
        output = self._output(loop, hidden)
        optional = {key: table.text(key).strip() for key in table.has("change", "family")}
        return Entry(
            id,
            prompt,
            loop or Spec("model_judge"),
            hidden,
            output,
            oracle,
            where=table.where(),
            files=tuple(self._files),
            **optional,
        )

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

    def _value(self, key: str, read: Callable[[Table, str], T]) -> T | None:
        """The value of a key of the task, else of the defaults."""
        table = self._source(key)
        return read(table, key) if key in table.values else None

    def _source(self, *keys: str) -> Table:
        """The table to read these keys from: the task if it has one of them, else the defaults."""
        return self._table if self._table.has(*keys) else self._default

    def _loop_judge(self) -> Spec | None:
        """The evaluator in the loop, if one is named."""
        table = self._source(*JUDGES)
        key = table.one_of(*JUDGES, why="only one can judge in the loop. Put a judge that runs afterwards under hidden")
        if key is None:
            for source in (self._table, self._default):
                if "settings" in source.values:
                    raise source.wrong("settings", "settings need an evaluator, but none is specified.")
            return None
        spec = self._spec(table, key, names_files=True)
        return spec if table is self._table else spec.with_settings(**self._settings(self._table, names_files=True))

    def _hidden_judge(self) -> Json:
        """The hidden judge, as `Entry.hidden` has it."""
        why = "only one can judge afterwards. An answer is always hidden"
        keys = (*ANSWERS, "hidden", "hidden_tests")
        table = self._source(*keys)
        key = table.one_of(*keys, why=why)
        if key == "hidden_tests":
            table, key = Table(table.file, table.called, {"tests": table.values[key]}, table.lines), "tests"
        elif key == "hidden":
            table = table.table("hidden")
            table.only(HIDDEN_KEYS)
            key = table.one_of(*ANSWERS, *JUDGES, why=why)
            if key is None:
                raise InvalidInput(
                    f"{table.where()}: hidden has no judge: give it one of {', '.join((*ANSWERS, *JUDGES))}."
                )
        elif key is not None:
            table = Table(table.file, table.called, {key: table.values[key]}, table.lines)
        if key is None:
            return None
        spec = self._spec(table, key, names_files=False)
        return {"evaluator": spec.name, "settings": dict(spec.settings)}

    def _spec(self, table: Table, key: str, *, names_files: bool) -> Spec:
        """The evaluator that a key names.

        names_files: whether its settings name files, which are read when it is built, or contain their texts.
        """
        settings = self._settings(table, names_files=names_files)
        if key == "tests":
            path = self._file(table, key, "test file")
            text: Json = {"file": str(path)} if names_files else read_text(path, "test file", table.where(key))
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
        """The command, with absolute paths for files in the folder of this file."""
        line = table.text("check")
        try:
            parts = list(split_line(line))
        except ValueError as error:
            raise table.wrong("check", f"The check cannot be parsed: {error}.") from error
        for number, part in enumerate(parts):
            path = table.file.parent / part
            if number == 0 and os.sep not in part:
                continue
            if not os.path.isfile(path):  # a word can be too long for the name of a file
                if number == 0 or (number == 1 and _PROGRAM.fullmatch(parts[0]) and part.endswith((".py", ".sh"))):
                    raise table.wrong("check", f"The check runs {path}, which does not exist.")
                continue
            parts[number] = str(path.resolve())
            self._files.append(path.resolve())
        return shlex.join(parts)

    def _evaluator(self, table: Table) -> str:
        """The name of the evaluator. The path of a plug-in file is relative to the folder of this file."""
        name, colon, inner = table.text("evaluator").partition(":")
        if name.endswith(".py"):
            path = Table(table.file, table.called, {"evaluator": name}, table.lines).file_at(
                "evaluator", "plug-in file"
            )
            self._files.append(path)
            return f"{path}{colon}{inner}"
        if colon and "." not in name:
            raise table.wrong("evaluator", f"Write the settings of {name} as settings = {{ … }}, not after a colon.")
        return f"{name}{colon}{inner}"

    def _settings(self, table: Table, *, names_files: bool) -> dict[str, Json]:
        settings = table.json("settings") if "settings" in table.values else {}
        return {name: self._setting(table, value, names_files) for name, value in settings.items()}

    def _setting(self, table: Table, value: Json, names_files: bool) -> Json:
        """The value of a setting. {file = "name"} is the text of a file in the folder of this file."""
        values = cast(dict[str, Json], value if isinstance(value, dict) else {})
        if set(values) != {"file"}:
            return cast(Json, value)
        setting = Table(table.file, table.called, values, {(): table.lines.get(("settings",), 0)})
        path = self._file(setting, "file", "file")
        return {"file": str(path)} if names_files else read_text(path, "file", setting.where())

    def _file(self, table: Table, key: str, what: str) -> Path:
        path = table.file_at(key, what)
        self._files.append(path)
        return path

    def _read(self, table: Table, key: str, what: str) -> str:
        return read_text(self._file(table, key, what), what, table.where(key))

    def _output(self, loop: Spec | None, hidden: Json) -> str | None:
        """What an attempt is: "code" if tests judge it. None: what the evaluator in the loop expects."""
        value = self._value("output", Table.text)
        tests = "unit_tests" in (loop and loop.name, hidden and hidden["evaluator"])
        if value is None:
            return "code" if tests else None
        if value not in ("text", "code"):
            raise self._source("output").wrong("output", f"output must be a string or code, not {value!r}.")
        if value == "text" and tests:
            raise self._source("output").wrong("output", "Tests judge code: omit output.")
        return value


def files_of(entries: Sequence[Entry]) -> list[Path]:
    """The files that the tasks name, in order, each once."""
    return list(dict.fromkeys(file for entry in entries for file in entry.files))
