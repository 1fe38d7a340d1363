"""Finds Rust code and tests in answers. Strings, characters and comments are recognised; nothing is compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from mulligan.text.thoughts import answer_of

# Limits, so that a hostile answer cannot take minutes.
_MAX_TEST_CHARACTERS = 24_000
_MAX_ASSERTS = 100
_MAX_CODE_CHARACTERS = 40_000
_MAX_ITEMS = 60
"""Items between prose."""
_MAX_DEPTH = 20
"""Nested braces of an import."""
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_UNREAD = re.compile(
    r"""//[^\n]*|b?r(?P<hashes>\#{0,20})".*?"(?P=hashes)|b?"(?:[^"\\]|\\.)*"|b?'(?:[^'\\\n]|\\[^\n][^'\n]{0,10})'""",
    re.DOTALL,
)
_ASSERT = re.compile(r"\b(?:debug_)?assert(_eq|_ne)?!\s*(?=[(\[{])")
_FUNCTION = re.compile(r"\bfn\s+(\w+)[^{;]*$")
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def rust_tests(text: str, name: str | None = None) -> tuple[str, ...]:
    """Returns the asserts that use the function `name` (None: any function), in order, without duplicates.

    A test is a statement of its function's body, such as a loop with asserts, after the statements that define its
    variables. It ends with a semicolon or brace. Never raises.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")[:_MAX_TEST_CHARACTERS]
    blocks = [match[2] for match in _FENCED.finditer(text)]
    tests = dict[str, str]()
    for block in [block for block in blocks if "assert" in block] or [text]:
        for test in _Block.of(block).tests(name):
            tests.setdefault(" ".join(test.split()), test)
    return tuple(tests.values())


def statements(text: str) -> tuple[str, ...]:
    """Returns the statements of a function's body, in order, without the comments before them. Never raises."""
    block = _Block.of("{" + text + "\n}")
    return tuple(block.text[begin:stop].strip() for begin, stop in block.body() if begin < stop)


def balanced(text: str) -> bool:
    """Returns whether all brackets outside comments, strings and characters are closed in order."""
    open_ = list[str]()
    for char in masked(text):
        if char in _PAIRS:
            open_.append(_PAIRS[char])
        elif char in ")]}" and (not open_ or open_.pop() != char):
            return False
    return not open_


def masked(text: str) -> str:
    """Returns the code with blanks for comments, and `""` and blanks for strings and characters, in the same length."""
    pieces, at = list[str](), 0
    while at < len(text):
        if text.startswith("/*", at):
            end = _comment_end(text, at)
        elif text[at] in "/\"'br" and not _in_word(text, at) and (match := _UNREAD.match(text, at)):
            end = match.end()
        else:
            pieces.append(text[at])
            at += 1
            continue
        blank = re.sub(r"[^\n]", " ", text[at:end])
        is_literal = text[at] != "/" and len(blank) > 1 and "\n" not in blank[:2]
        pieces.append(f'""{blank[2:]}' if is_literal else blank)
        at = end
    return "".join(pieces)


def _in_word(text: str, at: int) -> bool:
    return text[at] in "br" and at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_")


def _comment_end(text: str, at: int) -> int:
    """Returns the index after a block comment, which may contain others."""
    depth = 0
    for mark in re.finditer(r"/\*|\*/", text[at:]):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return at + mark.end()
    return len(text)


@dataclass(frozen=True)
class _Block:
    """A piece of code. mask: the code as `masked` returns it. ends: the closing index of each opening bracket."""

    text: str
    mask: str
    ends: Mapping[int, int]

    @classmethod
    def of(cls, text: str) -> _Block:
        mask = masked(text)
        ends, open_ = dict[int, int](), list[int]()
        for at, char in enumerate(mask):
            if char in _PAIRS:
                open_.append(at)
            elif char in ")]}":
                while open_ and _PAIRS[mask[open_[-1]]] != char:
                    open_.pop()  # never closed
                if open_:
                    ends[open_.pop()] = at
        return cls(text, mask, ends)

    def tests(self, name: str | None) -> Iterator[str]:
        done = -1
        for match in islice(_ASSERT.finditer(self.mask), _MAX_ASSERTS):
            end = self.ends.get(match.end())
            if end is None or match.start() < done or not self._sound(match, end):
                continue
            body, function, candidate = self._function(match.start())
            if function is not None and function == name:
                continue
            begin, stop = self._statement(match.start(), end, body)
            done = stop
            parts = [*self._definitions(body, begin, self.mask[begin:stop]), (begin, stop)]
            if test := self._test(parts, name, candidate):
                yield test

    def _test(self, parts: list[tuple[int, int]], name: str | None, candidate: str | None) -> str | None:
        mask = "\n".join(self.mask[begin:end] for begin, end in parts)
        text = "\n".join(self.text[begin:end].strip() for begin, end in parts)
        if candidate and name and re.search(rf"\b{candidate}\s*\(", mask):
            text, mask = (re.sub(rf"\b{candidate}\b(?=\s*\()", name, code) for code in (text, mask))
        uses = re.search(rf"\b{re.escape(name)}\b", mask) if name else re.search(r"\b[a-z_]\w*\s*\(", mask)
        if not uses or "..." in mask or "…" in mask:
            return None
        return text if text.endswith((";", "}")) else f"{text};"

    def _sound(self, match: re.Match[str], end: int) -> bool:
        """Whether the macro has its arguments, and compares two different expressions."""
        cuts, at = [match.end()], match.end() + 1
        while at < end:
            if self.mask[at] == ",":
                cuts.append(at)
            at = self.ends.get(at, at) + 1 if self.mask[at] in _PAIRS else at + 1
        cuts.append(end)
        arguments = [self.text[a + 1 : b].strip() for a, b in pairwise(cuts)]
        if match[1] is None:
            return arguments[0] not in ("", "true")
        return len(arguments) >= 2 and all(arguments[:2]) and arguments[0] != arguments[1]

    def _function(self, at: int) -> tuple[int, str | None, str | None]:
        """Returns the start of the enclosing function's body (-1 without one), its name, and its only parameter."""
        around = sorted((begin for begin, end in self.ends.items() if begin < at < end), reverse=True)
        for begin in around:
            if self.mask[begin] != "{":
                continue
            head = self.mask[max(self.mask.rfind("}", 0, begin), self.mask.rfind(";", 0, begin)) + 1 : begin]
            if function := _FUNCTION.search(head):
                parameters = re.findall(r"[(,]\s*(?:mut\s+)?(\w+)\s*:", head[function.start() :])
                return begin, function[1], parameters[0] if len(parameters) == 1 else None
        return -1, None, None

    def _statement(self, start: int, end: int, body: int) -> tuple[int, int]:
        """Returns the statement of the function's body that contains the assert, or the assert alone."""
        for begin, stop in self._statements(body) if body >= 0 else ():
            if begin <= start < stop:
                return begin, stop
        return start, self._semicolon(end + 1)

    def body(self) -> Iterator[tuple[int, int]]:
        """Yields the statements of a text that is one body in braces."""
        if 0 in self.ends:
            yield from self._statements(0)

    def _statements(self, body: int) -> Iterator[tuple[int, int]]:
        """Yields the statements of a body in order. Each ends after its semicolon or the brace of its block."""
        at = begin = body + 1
        stop = self.ends[body]
        while at < stop:
            char = self.mask[at]
            if char in _PAIRS and at in self.ends:
                at = self.ends[at]
                is_let = self.mask[begin:at].lstrip().startswith("let ")
                if (
                    char == "{"
                    and not is_let
                    and not re.match(r"\s*(?:else\b|;|\.|\?|,|\)|as\b)", self.mask[at + 1 : stop])
                ):
                    yield self._trimmed(begin, at + 1), at + 1
                    begin = at + 1
            elif char == ";":
                yield self._trimmed(begin, at + 1), at + 1
                begin = at + 1
            at += 1
        if self.mask[begin:stop].strip():
            yield self._trimmed(begin, stop), stop

    def _trimmed(self, begin: int, end: int) -> int:
        """Returns the index of a statement's code, after comments and blanks."""
        return begin + len(self.mask[begin:end]) - len(self.mask[begin:end].lstrip())

    def _definitions(self, body: int, end: int, mask: str) -> list[tuple[int, int]]:
        """Returns the statements before `end` that define or change the variables of this code, in order."""
        if body >= 0:
            earlier = [part for part in self._statements(body) if part[1] <= end]
        else:
            earlier = [match.span() for match in re.finditer(r"\blet\s[^;]*;", self.mask[:end])]
        needed, definitions = set(re.findall(r"\b[a-z_]\w*\b", mask)), list[tuple[int, int]]()
        bound = {name for part in earlier for name in self._binds(part)}
        for part in reversed(earlier):
            code = self.mask[slice(*part)]
            words = set(re.findall(r"\b[a-z_]\w*\b", code))
            if not _ASSERT.search(code) and words & needed & bound:
                definitions.append(part)
                needed |= words
        return definitions[::-1]

    def _binds(self, part: tuple[int, int]) -> list[str]:
        let = re.match(r"\s*let\s+([^=:;]+)", self.mask[slice(*part)])
        return [name for name in re.findall(r"\b[a-z_]\w*\b", let[1]) if name not in ("mut", "ref")] if let else []

    def _semicolon(self, at: int) -> int:
        """Returns the index after a following semicolon, or the index itself."""
        rest = re.match(r"\s*;", self.mask[at:])
        return at + rest.end() if rest else at


_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})[ \t]*\{?\.?([\w+#-]*)[^`\n]*$")
_ITEM = re.compile(
    r"""^(?:///|//!|\#!?\[|macro_rules!\s*\w|extern\s+crate\s
        |(?:pub(?:\([^)\n]*\))?\s+)?(?:
            (?:(?:const|unsafe|async|extern(?:\s+"\w+")?)\s+)*fn\s+\w+\s*[<(]
            |use\s+[\w:{]+[^\n]*[;{,]|(?:struct|enum|trait|union|mod)\s+\w+\s*[{<(;:]|impl\b[\s<][^\n]*[{<]
            |type\s+\w+\s*[=<]|(?:static|const)\s+\w+\s*:))""",
    re.MULTILINE | re.VERBOSE,
)
_NAME = re.compile(r"\bfn\s+(\w+)")
_USE = re.compile(r"\s*(?:pub(?:\([^)\n]*\))?\s+)?use\b")
_DEFINED = re.compile(r"\b(?:fn|struct|enum|union|trait|type|mod|const|static)\s+(\w+)")
_INNER = re.compile(r"(?:[ \t]*(?:(?:#!\[[^\n]*\]|//![^\n]*)[ \t]*)?\n)*")
_SEMICOLON = re.compile(r"\s*;")
_LANGUAGES = frozenset({"rust", "rs", ""})


@dataclass(frozen=True)
class RustItem:
    """A top-level item with the comments and attributes before it. name: the function's, or ""."""

    text: str
    name: str

    @property
    def imports(self) -> bool:
        return _USE.match(masked(self.text)) is not None

    def names(self) -> dict[str, str]:
        """Returns the names that it binds at the top level, each with an import of it alone, or "" for a definition."""
        mask = masked(self.text)
        if use := _USE.match(mask):
            return {
                name: f"{use[0].lstrip()} {path};" for name, path in _leaves(mask[use.end() :].rstrip().rstrip(";"))
            }
        defined = _DEFINED.search(re.split(r"[{=;]", mask, maxsplit=1)[0])
        return {defined[1]: ""} if defined else {}


def extract_rust(text: str, name: str | None = None) -> str:
    """Returns the code in `text`: the last block with `fn name`, after the imports of other blocks that it lacks.

    A block with `fn main` alone is an example of use and left out. Text without code is returned stripped. Never
    raises.
    """
    text = answer_of(text.replace("\r\n", "\n").replace("\r", "\n"))[:_MAX_CODE_CHARACTERS]
    blocks = [items(block) for block in _blocks(text.split("\n"))]
    pieces = blocks or [list(_loose(text))]
    programs = [piece for piece in pieces if any(item.name not in ("", "main") for item in piece)]
    chosen = next((p for p in reversed(programs) if any(i.name == name for i in p)), programs[-1] if programs else None)
    if chosen is None:
        return next(_blocks(text.split("\n")), text).strip("\n").rstrip()
    others = [item for piece in pieces if piece is not chosen for item in piece]
    return with_imports(joined(chosen), others)


def with_imports(code: str, others: Iterable[RustItem]) -> str:
    """Returns the code after the imports among `others` that it lacks. Attributes of the whole file stay first.

    A name is imported only once, as the compiler requires.
    """
    bound, missing = set[str]().union(*(item.names() for item in items(code))), list[RustItem]()
    for item in others:
        names = item.names() if item.imports else {}
        new = [name for name in names if name not in bound]
        bound.update(new)
        missing += [item] if len(new) == len(names) > 0 else [RustItem(names[name], "") for name in new]
    if not missing:
        return code
    inner = _INNER.match(code)
    begin = inner.end() if inner else 0
    return code[:begin] + joined([*missing, RustItem(code[begin:], "")])


def items(code: str) -> list[RustItem]:
    """Returns the top-level items in order. Any other text belongs to the item after it."""
    parts, start, mask = list[RustItem](), 0, masked(code)
    for end in (*_ends(mask), len(code)):
        piece, head = code[start:end].strip("\n").rstrip(), mask[start:end].partition("{")[0]
        start = end
        if piece.strip():
            name = _NAME.search(head)
            parts.append(RustItem(piece, name[1] if name else ""))
    return parts


def joined(parts: Sequence[RustItem]) -> str:
    """Returns the text of the items, with blank lines except between imports."""
    text = ""
    for n, part in enumerate(parts):
        text += ("" if not n else "\n" if part.imports and parts[n - 1].imports else "\n\n") + part.text
    return text


def open_braces(code: str) -> int:
    """Returns the number of open braces at the end, outside strings, characters and comments."""
    mask = masked(code)
    return mask.count("{") - mask.count("}")


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    """Yields the texts in fences that name Rust or no language. The last fence may be open."""
    block: list[str] | None = None
    fence = language = ""
    for line in lines:
        mark = _FENCE.match(line)
        if block is None:
            if mark:
                fence, language, block = mark[1], mark[2].lower(), []
        elif mark and mark[1].startswith(fence) and not mark[2]:
            if language in _LANGUAGES:
                yield "\n".join(block)
            block = None
        else:
            block.append(line)
    if block is not None and language in _LANGUAGES:
        yield "\n".join(block)


def _loose(text: str) -> Iterator[RustItem]:
    """Yields the items between prose. Each begins at the start of a line and ends where its brackets close."""
    at, count = 0, 0
    for start in _ITEM.finditer(text):
        if start.start() >= at and count < _MAX_ITEMS:
            rest, count = text[start.start() :], count + 1
            at = start.start() + next(_ends(masked(rest)), len(rest))
            yield from items(text[start.start() : at])


def _ends(mask: str) -> Iterator[int]:
    """Yields the index after each top-level semicolon, and after each top-level block that no semicolon follows."""
    level = 0
    for at, char in enumerate(mask):
        if char in "{([":
            level += 1
        elif char in "})]":
            level = max(level - 1, 0)
        if not level and (char == ";" or (char == "}" and not _SEMICOLON.match(mask, at + 1))):
            yield at + 1


def _leaves(tree: str) -> Iterator[tuple[str, str]]:
    """Yields each name that a `use` tree such as `std::{fmt, io::{self, Read as R}}` binds, and its path."""
    prefixes, path = [""], ""
    for token in re.findall(r"[^{},]+|[{},]", f"{tree},"):
        if token == "{" and len(prefixes) < _MAX_DEPTH:
            prefixes.append(prefixes[-1] + path)
        elif token not in "{},":
            path = " ".join(token.split())
            continue
        elif path:
            whole = (prefixes[-1] + path).removesuffix("::self")
            name = re.split(r"::|\s", whole)[-1]
            yield (whole if name in "*_" else name), whole
        if token == "}" and len(prefixes) > 1:
            prefixes.pop()
        path = ""
