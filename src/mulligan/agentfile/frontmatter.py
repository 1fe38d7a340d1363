"""Splits a Markdown file into YAML front matter, with the line of each key, and the body. Never raises.

Only plain YAML is accepted: no anchors (a small file could expand without end), no tags, no dates. Which keys are
valid is checked elsewhere.
"""

from __future__ import annotations

import errno
import math
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import yaml

from mulligan.agentfile.agent import Source
from mulligan.agentfile.problems import Problem
from mulligan.core.records import Json

MAX_BYTES = 1_000_000
"""A larger prompt is a mistake, or an attack."""
MAX_FRONT_MATTER = 64_000
"""Characters of front matter."""
MAX_DEPTH = 20
"""Levels of nesting: deeper ones could overflow the stack of a reader."""
MAX_INTEGER = 2**63 - 1

_HOW_TO_CLOSE = "put a line with --- after the keys, before the text"
_SECOND = "the front matter contains a second YAML document. Remove the line that begins it."
_OPENINGS = tuple(f"while scanning {what}" for what in ("an alias", "an anchor", "a tag", "a block scalar"))
_KEY = re.compile(r"([A-Za-z][\w-]*):(?:\s+(.*)|)")
_ABOVE = re.compile(r"(?s)(?:\s|<!--(?:(?!-->).)*-->)*+(?=---[ \t]*\n)")
"""Empty lines and comments, which lenient reading allows above front matter."""
_UNREADABLE = re.compile("[\\0\ud800-\udfff]")


@dataclass(frozen=True)
class Document:
    """A file, split into front matter and body.

    Attributes:
        values: the front matter; empty if there is none.
        present: whether there is front matter.
        body: the text after it, stripped.
        body_line: the line on which the body begins.
        refused: keys whose values were rejected; `values` has placeholders for them.
    """

    source: Source
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    present: bool = False
    body: str = ""
    body_line: int | None = None
    refused: frozenset[str] = frozenset()


def read_document(path: Path, *, lenient: bool = False) -> tuple[Document | None, list[Problem]]:
    """The document, or None if the file cannot be read, and all problems, including those of single values.

    lenient: accept what other programs accept: front matter below empty lines and comments, ended by `...`, or not
    entirely in UTF-8. Front matter that is not plain YAML is read line by line. A warning says what may be lost.
    """
    try:
        content = _read_bytes(path)
    except OSError as error:
        return None, [Problem(path, None, f"this file cannot be read: {error.strerror or error}")]
    if isinstance(content, str):
        return None, [Problem(path, None, content)]
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = _encoding_problem(path, content, error)
        if not lenient or b"\0" in content:
            return None, [problem]
        document, problems = parse_document(path, content.decode("utf-8-sig", "replace"), lenient=True)
        return document, [replace(problem, level="warning"), *problems]
    return parse_document(path, text, lenient=lenient)


def parse_document(path: Path, text: str, *, lenient: bool = False) -> tuple[Document | None, list[Problem]]:
    """As `read_document`, for the text of a file. The path is only used in messages."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    source = Source(path, text)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        return None, [Problem(path, line, "there is a NUL byte here, so this is not text. Save it as UTF-8 text.")]
    lines = text.split("\n")
    above = _ABOVE.match(text) if lenient else None
    first = above[0].count("\n") if above else 0
    if not _is_fence(lines[first]):
        fence_line = next((number for number, line in enumerate(lines, 1) if line.strip()), 1)
        if _is_fence(lines[fence_line - 1]):
            why = "front matter begins on the first line: remove the empty lines above it."
            return None, [Problem(path, fence_line, why)]
        return _with_body(Document(source), lines, 0), []
    fences = ("---", "...") if lenient else ("---",)
    end = next((number for number, line in enumerate(lines) if number > first and line.rstrip(" \t") in fences), None)
    if end is None:
        return None, [Problem(path, first + 1, f"the front matter that opens here is not closed: {_HOW_TO_CLOSE}.")]
    yaml_text = "\n" * first + "".join(f"{line}\n" for line in lines[first + 1 : end])
    if len(yaml_text) > MAX_FRONT_MATTER:
        why = f"the front matter is longer than {MAX_FRONT_MATTER:,} characters. Move text to the body."
        return None, [Problem(path, 1, why)]
    reader = _FrontMatter(path, yaml_text)
    values = reader.read()
    problems = reader.problems
    if lenient:
        problems = [replace(problem, level="warning") for problem in problems]
        values = _by_lines(yaml_text) if values is None else values
    if values is None:
        return None, problems
    source = replace(source, lines=reader.lines)
    document = Document(source, values, present=True, refused=frozenset(() if lenient else reader.refused))
    return _with_body(document, lines, end + 1), problems


def _by_lines(front: str) -> dict[str, Json]:
    """Front matter that is not YAML: the keys at the beginning of lines, each with the text or list that follows."""
    lines_by_key: dict[str, list[str]] = {}
    key = ""
    for line in front.splitlines():
        if match := _KEY.fullmatch(line):
            key = match[1]
            lines_by_key[key] = [(match[2] or "").strip()]
        elif key and line.strip():
            lines_by_key[key].append(line.strip())
    return {key: _text_or_list(lines) for key, lines in lines_by_key.items()}


def _text_or_list(lines: list[str]) -> Json:
    items = [line.removeprefix("- ") for line in lines[1:]]
    if not lines[0] and items and all(line.startswith("- ") for line in lines[1:]):
        return cast(Json, items)
    text = " ".join(line for line in lines if line and line not in ("|", ">", "|-", ">-"))
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _read_bytes(path: Path) -> bytes | str:
    """The content of the file, or a sentence that says why it is not read. Raises `OSError`."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return "this is a link to a file that does not exist." if path.is_symlink() else "this file does not exist."
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "this is a link that leads back to itself. Put the file itself here."
        raise
    if stat.S_ISDIR(status.st_mode):
        return "this is a folder, but must be a file."
    if not stat.S_ISREG(status.st_mode):
        return "this is neither a file nor a link to one."
    if status.st_size <= MAX_BYTES:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) <= MAX_BYTES:
            return content
    size = f"{status.st_size:,} bytes" if status.st_size > MAX_BYTES else "more"
    return f"this file is too large: {size}, but at most {MAX_BYTES:,} are read. Check that it is the right file."


def _encoding_problem(path: Path, content: bytes, error: UnicodeDecodeError) -> Problem:
    line = content.count(b"\n", 0, error.start) + 1
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Problem(path, 1, "this file is UTF-16 text. Save it as UTF-8.")
    what = f"byte 0x{content[error.start]:02x} at position {error.start}"
    return Problem(path, line, f"this file is not UTF-8 text ({what}). Save it as UTF-8.")


def _is_fence(line: str) -> bool:
    return line.rstrip(" \t") == "---"


def _with_body(document: Document, lines: list[str], start: int) -> Document:
    first = next((number for number, line in enumerate(lines[start:], start + 1) if line.strip()), None)
    return replace(document, body="\n".join(lines[start:]).strip(), body_line=first)


class _FrontMatter:
    """Reads one front matter; `text` begins on line 2 of its file."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}
        self.refused: set[str] = set()

    def read(self) -> Mapping[str, Json] | None:
        """The values; None if the front matter cannot be used."""
        try:
            if self._has_forbidden_yaml():
                return None
            loader = yaml.SafeLoader(self._text)
            node: Any = loader.get_single_node()
            if node is None:
                return {}
            if not isinstance(node, yaml.MappingNode):
                what = "a list" if isinstance(node, yaml.SequenceNode) else "a text"
                why = f"front matter is lines such as `name: value` (with a space after the colon), not {what}."
                return self._report(node.start_mark.index, why)
            return cast(Mapping[str, Json], self._value(loader, node, ""))
        except yaml.reader.ReaderError as error:
            why = f"the front matter contains a control character (U+{error.character:04X}). Remove it."
            return self._report(int(error.position), why)
        except yaml.MarkedYAMLError as error:
            return self._report(*self._explain(error))

    def _report(self, index: int, message: str) -> None:
        self.problems.append(Problem(self._path, self._line(index), message))

    def _line(self, index: int) -> int:
        """The line of an index. Counts line feeds, as editors do; YAML also counts U+2028 and the like."""
        return self._text.count("\n", 0, index) + 2

    def _has_forbidden_yaml(self) -> bool:
        """Reports valid YAML that is not accepted, before any value is constructed. Raises `MarkedYAMLError`."""
        depth = documents = 0
        reported: set[str] = set()
        events: Any = cast(Any, yaml).parse(self._text, Loader=yaml.SafeLoader)
        for event in events:
            index = event.start_mark.index
            documents += isinstance(event, yaml.DocumentStartEvent)
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                self._report(index, f"the front matter is nested more than {MAX_DEPTH} levels deep. Make it flatter.")
                return True
            if documents > 1:
                self._report(index, _SECOND)
                return True
            anchored = isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None)
            if anchored and "anchor" not in reported:
                reported.add("anchor")
                why = "anchors (&name) and aliases (*name) are not supported. Write the value out"
                self._report(index, f"{why}, or put a text that begins with & or * in quotes.")
            tag = str(getattr(event, "tag", None) or "").replace("tag:yaml.org,2002:", "!!")
            if tag and "tag" not in reported:
                reported.add("tag")
                why = f"the tag {tag} is not supported. Write a plain value"
                self._report(index, f"{why}, or put a text that begins with ! in quotes.")
        return bool(reported)

    def _value(self, loader: Any, node: Any, key: str) -> Json:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(loader, node, key)
        if isinstance(node, yaml.SequenceNode):
            return [self._item(loader, item, f"{key}.{number}") for number, item in enumerate(node.value)]
        kind, text = str(node.tag).rpartition(":")[2], str(node.value)
        if kind == "timestamp":
            return self._blame(node, key, text, f'is read as a date. Write it in quotes: "{text}".')
        if kind in ("merge", "value"):
            return text
        try:
            value: Json = loader.construct_object(node)
        except (ValueError, OverflowError):
            return self._blame(node, key, text, "is a number that is too big or misspelt.")
        if isinstance(value, int) and abs(value) > MAX_INTEGER:
            return self._blame(node, key, text, "is a number that is too big.")
        if isinstance(value, float) and not math.isfinite(value):
            return self._blame(node, key, text, f"must be a number, and {text} is not one.")
        if isinstance(value, str) and _UNREADABLE.search(value):
            why = "contains an escape that represents no character (\\0, or half of a pair such as \\ud83d)."
            return self._blame(node, key, _UNREADABLE.sub("\ufffd", value), why)
        return value

    def _item(self, loader: Any, node: Any, key: str) -> Json:
        self.lines[key] = self._line(node.start_mark.index)
        return self._value(loader, node, key)

    def _blame(self, node: Any, key: str, stand_in: str, why: str) -> str:
        self.refused.add(key)
        self._report(node.start_mark.index, f"{key} {why}")
        return stand_in

    def _mapping(self, loader: Any, node: Any, parent: str) -> dict[str, Json]:
        values: dict[str, Json] = {}
        for key_node, value_node in node.value:
            index = key_node.start_mark.index
            name = self._value(loader, key_node, "a key") if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(name, str):
                self.refused.add(parent)
                text = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
                hint = f' Write it in quotes: "{text}".' if text else ""
                reading = f", and {text} is read as {_yaml_word(name)}" if text else ""
                self._report(index, f"a key must be a string{reading}.{hint}")
                continue
            key = f"{parent}.{name}" if parent else name
            if name in values:
                self._report(index, f"{key} appears twice: on line {self.lines[key]} and here. Keep one.")
                continue
            self.lines[key] = self._line(index)
            values[name] = self._value(loader, value_node, key)
        return values

    def _explain(self, error: yaml.MarkedYAMLError) -> tuple[int, str]:
        """The position of a mistake, and a message. Those for common mistakes need no knowledge of YAML."""
        problem, context = str(error.problem or ""), str(error.context or "")
        marks: Any = (error.problem_mark, error.context_mark)
        index, context_index = (mark.index if mark else 0 for mark in marks)
        start = self._text.rfind("\n", 0, index) + 1
        end = self._text.find("\n", index)
        line = self._text[start : end if end >= 0 else len(self._text)]
        if "\t" in line[: len(line) - len(line.lstrip())] or "'\\t'" in problem:
            return index, "there is a tab where YAML allows only spaces. Indent with spaces."
        if "quoted scalar" in context and "end of stream" in problem:
            return context_index, "the quote that opens here is not closed."
        if context.startswith("while parsing a flow") and ("expected ',' or" in problem or "<stream end>" in problem):
            start = max(self._text.rfind(bracket, 0, context_index + 1) for bracket in "[{")
            return start, f"the bracket {self._text[start]} that opens here is not closed, or a comma is missing in it."
        if context in _OPENINGS:
            return context_index, f"a value cannot begin with {self._text[context_index]}. Put it in quotes."
        if "that cannot start any token" in problem or "expected the node content" in problem:
            return index, f"a value cannot begin with {self._text[index]}. Put it in quotes."
        if "expected '<document start>'" in problem:
            return index, _SECOND
        if "mapping values are not allowed" in problem:
            return self._colon(index, start)
        if "could not find expected ':'" in problem:
            return context_index, "this line must have the form `name: value`, with a colon and a space."
        if "unknown escape" in problem:
            return index, f"in double quotes, \\{self._text[index]} is not an escape. Write \\\\, or use single quotes."
        if "expected <block end>" in problem:
            why = "this does not continue the lines above it: indent the lines of one list or mapping alike"
            return index, f"{why}, and put text that contains quotes or brackets entirely in quotes."
        return index, f"the front matter is not YAML: {', '.join(part for part in (context, problem) if part)}."

    def _colon(self, index: int, start: int) -> tuple[int, str]:
        line_above = self._text[self._text.rfind("\n", 0, max(start - 1, 0)) + 1 : start]
        if ": " in self._text[start:index]:
            return index, "text that contains a colon and a space must be in quotes."
        if line_above and re.match(r"\s*[\w-]+:[^\s]", line_above):
            return start - 1, "a space is missing after the colon."
        return index, "this key is indented further than the one above it, which already has a value."


def _yaml_word(value: Json) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return "a number"
