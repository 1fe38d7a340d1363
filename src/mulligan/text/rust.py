"""Rust in an answer: its code and its tests. Strings, characters and comments are told apart; nothing is compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from mulligan.text.thoughts import answer_of

_ROOM = 24_000
# Characters and asserts that are read: a hostile answer must not cost minutes.
_MOST = 100
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_DEAD = re.compile(
    r"""//[^\n]*|b?r(?P<hashes>\#{0,20})".*?"(?P=hashes)|b?"(?:[^"\\]|\\.)*"|b?'(?:[^'\\\n]|\\[^\n][^'\n]{0,10})'""",
    re.DOTALL,
)
_ASSERT = re.compile(r"\b(?:debug_)?assert(_eq|_ne)?!\s*(?=[(\[{])")
_FUNCTION = re.compile(r"\bfn\s+(\w+)[^{;]*$")
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def rust_tests(text: str, name: str | None = None) -> tuple[str, ...]:
    """The assert!, assert_eq! and assert_ne! statements that use the function `name` (None: any call), in order,
    each once and ending in a semicolon. Never raises.

    A test is a statement of its function's body: a loop around asserts is one test, and the statements that give it
    its variables stand before it, so that a test may be several statements.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")[:_ROOM]
    blocks = [match[2] for match in _FENCED.finditer(text)]
    found = dict[str, str]()
    for block in [one for one in blocks if "assert" in one] or [text]:
        for test in _Block.of(block).tests(name):
            found.setdefault(" ".join(test.split()), test)
    return tuple(found.values())


def statements(text: str) -> tuple[str, ...]:
    """Return the statements of a function's body, in order, without the comments before them. Never raises."""
    block = _Block.of("{" + text + "\n}")
    return tuple(block.text[begin:stop].strip() for begin, stop in block.body() if begin < stop)


def balanced(text: str) -> bool:
    """Return whether all brackets outside comments, strings and characters are closed in order."""
    open_ = list[str]()
    for char in masked(text):
        if char in _PAIRS:
            open_.append(_PAIRS[char])
        elif char in ")]}" and (not open_ or open_.pop() != char):
            return False
    return not open_


def masked(text: str) -> str:
    """Return the code with blanks in place of comments, strings and characters.

    It has the same length, so that an index into it is an index into the text.
    """
    pieces, at = list[str](), 0
    while at < len(text):
        if text.startswith("/*", at):
            end = _comment_end(text, at)
        elif text[at] in "/\"'br" and not _in_word(text, at) and (dead := _DEAD.match(text, at)):
            end = dead.end()
        else:
            pieces.append(text[at])
            at += 1
            continue
        quoted = '""' if text[at] != "/" and end - at > 1 else ""
        blank = re.sub(r"[^\n]", " ", text[at + len(quoted) : end])
        pieces.append(
            quoted + blank if quoted and "\n" not in text[at : at + 2] else re.sub(r"[^\n]", " ", text[at:end])
        )
        at = end
    return "".join(pieces)


def _in_word(text: str, at: int) -> bool:
    return text[at] in "br" and at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_")


def _comment_end(text: str, at: int) -> int:
    """Return where the block comment ends, with nested ones."""
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
        for match in islice(_ASSERT.finditer(self.mask), _MOST):
            end = self.ends.get(match.end())
            if end is None or match.start() < done or not self._sound(match, end):
                continue
            body, function, candidate = self._function(match.start())
            if function is not None and function == name:
                continue
            begin, stop = self._statement(match.start(), end, body)
            done = stop
            parts = [*self._needed(body, begin, self.mask[begin:stop]), (begin, stop)]
            if test := self._test(parts, name, candidate):
                yield test

    def _test(self, parts: list[tuple[int, int]], name: str | None, candidate: str | None) -> str | None:
        mask = "\n".join(self.mask[begin:end] for begin, end in parts)
        text = "\n".join(self.text[begin:end].strip() for begin, end in parts)
        if candidate and name and re.search(rf"\b{candidate}\s*\(", mask):
            text, mask = (re.sub(rf"\b{candidate}\b(?=\s*\()", name, one) for one in (text, mask))
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
        given = [self.text[a + 1 : b].strip() for a, b in pairwise(cuts)]
        if match[1] is None:
            return bool(given[0]) and given[0] != "true"
        return len(given) >= 2 and all(given[:2]) and given[0] != given[1]

    def _function(self, at: int) -> tuple[int, str | None, str | None]:
        """Return where the body of the enclosing function begins (-1 without one), its name, and its only parameter."""
        around = sorted((begin for begin, end in self.ends.items() if begin < at < end), reverse=True)
        for begin in around:
            if self.mask[begin] != "{":
                continue
            head = self.mask[max(self.mask.rfind("}", 0, begin), self.mask.rfind(";", 0, begin)) + 1 : begin]
            if function := _FUNCTION.search(head):
                given = re.findall(r"[(,]\s*(?:mut\s+)?(\w+)\s*:", head[function.start() :])
                return begin, function[1], given[0] if len(given) == 1 else None
        return -1, None, None

    def _statement(self, start: int, end: int, body: int) -> tuple[int, int]:
        """Return the statement of the function's body with the assert; without a function, the assert itself."""
        if body < 0:
            return start, self._semicolon(end + 1)
        for begin, stop in self._statements(body):
            if begin <= start < stop:
                return begin, stop
        return start, self._semicolon(end + 1)

    def body(self) -> Iterator[tuple[int, int]]:
        """Yield the statements of a text that is one body in braces."""
        if 0 in self.ends:
            yield from self._statements(0)

    def _statements(self, body: int) -> Iterator[tuple[int, int]]:
        """Yield the statements of a body in order. Each ends after its semicolon or the brace of its block."""
        at = begin = body + 1
        stop = self.ends[body]
        while at < stop:
            char = self.mask[at]
            if char in _PAIRS and at in self.ends:
                at = self.ends[at]
                whole = self.mask[begin:at].lstrip().startswith("let ")
                if (
                    char == "{"
                    and not whole
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
        """Return where the code of a statement begins, after comments and blanks."""
        return begin + len(self.mask[begin:end]) - len(self.mask[begin:end].lstrip())

    def _needed(self, body: int, before: int, mask: str) -> list[tuple[int, int]]:
        """Return the statements before this index that define or change its variables, in order."""
        if body >= 0:
            earlier = [part for part in self._statements(body) if part[1] <= before]
        else:
            lets = re.finditer(r"\blet\s[^;]*;", self.mask[:before])
            earlier = [match.span() for match in lets]
        needed, taken = set(re.findall(r"\b[a-z_]\w*\b", mask)), list[tuple[int, int]]()
        bound = {name for part in earlier for name in self._binds(part)}
        for part in reversed(earlier):
            said = self.mask[slice(*part)]
            words = set(re.findall(r"\b[a-z_]\w*\b", said))
            if not _ASSERT.search(said) and words & needed & bound:
                taken.append(part)
                needed |= words
        return taken[::-1]

    def _binds(self, part: tuple[int, int]) -> list[str]:
        let = re.match(r"\s*let\s+([^=:;]+)", self.mask[slice(*part)])
        return [name for name in re.findall(r"\b[a-z_]\w*\b", let[1]) if name not in ("mut", "ref")] if let else []

    def _semicolon(self, at: int) -> int:
        """Return the index after a semicolon that follows, or the index itself."""
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
_CODE_ROOM = 40_000
_STARTS = 60
# Characters of a completion that are read, items that are looked for between prose, and braces within braces of an
# import: a hostile one must not cost minutes.
_DEEP = 20


@dataclass(frozen=True)
class RustItem:
    """A top-level item with the comments and attributes before it. `name`: of a function, else empty."""

    text: str
    name: str

    @property
    def imports(self) -> bool:
        return _USE.match(masked(self.text)) is not None

    def names(self) -> dict[str, str]:
        """What it binds at the top level: by name the import of it alone, "" for what it defines itself."""
        mask = masked(self.text)
        if use := _USE.match(mask):
            return {
                name: f"{use[0].lstrip()} {path};" for name, path in _leaves(mask[use.end() :].rstrip().rstrip(";"))
            }
        defined = _DEFINED.search(re.split(r"[{=;]", mask, maxsplit=1)[0])
        return {defined[1]: ""} if defined else {}


def extract_rust(text: str, name: str | None = None) -> str:
    """The code in `text`: of several blocks the last with `fn name`, after the `use` lines that only others have.

    A block with nothing but a `fn main` shows how the function is used and is left out. Text without code comes back
    stripped. Never raises.
    """
    text = answer_of(text.replace("\r\n", "\n").replace("\r", "\n"))[:_CODE_ROOM]
    blocks = [items(block) for block in _blocks(text.split("\n"))]
    pieces = blocks or [list(_loose(text))]
    holding = [piece for piece in pieces if any(item.name not in ("", "main") for item in piece)]
    chosen = next((p for p in reversed(holding) if any(i.name == name for i in p)), holding[-1] if holding else None)
    if chosen is None:
        return (next(iter(_blocks(text.split("\n"))), text)).strip("\n").rstrip()
    others = [item for piece in pieces if piece is not chosen for item in piece]
    return with_imports(joined(chosen), others)


def with_imports(code: str, offered: Iterable[RustItem]) -> str:
    """The code after the imports among `offered` whose names neither it nor an import before them binds: the compiler
    refuses a name that is imported twice. Attributes of the whole file stay in front."""
    own, bound, lacking = items(code), set[str](), list[RustItem]()
    bound.update(*(item.names() for item in own))
    for item in offered:
        names = item.names() if item.imports else {}
        new = [name for name in names if name not in bound]
        bound.update(new)
        lacking += [item] if len(new) == len(names) > 0 else [RustItem(names[name], "") for name in new]
    if not lacking:
        return code
    inner = _INNER.match(code)
    begin = inner.end() if inner else 0
    return code[:begin] + joined([*lacking, RustItem(code[begin:], "")])


def items(code: str) -> list[RustItem]:
    """The top-level items in order; anything else belongs to the item after it."""
    found, start, mask = list[RustItem](), 0, masked(code)
    for end in (*_ends(mask), len(code)):
        piece, head = code[start:end].strip("\n").rstrip(), mask[start:end].partition("{")[0]
        start = end
        if piece.strip():
            named = _NAME.search(head)
            found.append(RustItem(piece, named[1] if named else ""))
    return found


def joined(parts: Sequence[RustItem]) -> str:
    """Imports line by line, a blank line between all else."""
    text = ""
    for n, part in enumerate(parts):
        text += ("" if not n else "\n" if part.imports and parts[n - 1].imports else "\n\n") + part.text
    return text


def open_braces(code: str) -> int:
    """How many braces are open at the end; strings, characters and comments are not looked at."""
    mask = masked(code)
    return mask.count("{") - mask.count("}")


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    """The texts between fences that name Rust or nothing; the last may never be closed."""
    kept: list[str] | None = None
    fence = language = ""
    for line in lines:
        mark = _FENCE.match(line)
        if kept is None:
            if mark:
                fence, language, kept = mark[1], mark[2].lower(), []
        elif mark and mark[1].startswith(fence) and not mark[2]:
            if language in _LANGUAGES:
                yield "\n".join(kept)
            kept = None
        else:
            kept.append(line)
    if kept is not None and language in _LANGUAGES:
        yield "\n".join(kept)


def _loose(text: str) -> Iterator[RustItem]:
    """Items between prose: each begins at the start of a line and ends where its brackets close."""
    at, starts = 0, 0
    for start in _ITEM.finditer(text):
        if start.start() >= at and starts < _STARTS:
            rest, starts = text[start.start() :], starts + 1
            at = start.start() + next(_ends(masked(rest)), len(rest))
            yield from items(text[start.start() : at])


def _ends(mask: str) -> Iterator[int]:
    """Behind each semicolon outside of all brackets, and each brace that closes the last one open, unless a semicolon
    follows it."""
    level = 0
    for at, char in enumerate(mask):
        if char in "{([":
            level += 1
        elif char in "})]":
            level = max(level - 1, 0)
        if not level and (char == ";" or (char == "}" and not _SEMICOLON.match(mask, at + 1))):
            yield at + 1


def _leaves(tree: str) -> Iterator[tuple[str, str]]:
    """What a `use` tree such as `std::{fmt, io::{self, Read as R}}` binds: each name, and its path."""
    before, path = [""], ""
    for token in re.findall(r"[^{},]+|[{},]", f"{tree},"):
        if token == "{" and len(before) < _DEEP:
            before.append(before[-1] + path)
        elif token not in "{},":
            path = " ".join(token.split())
            continue
        elif path:
            whole = (before[-1] + path).removesuffix("::self")
            name = re.split(r"::|\s", whole)[-1]
            yield (whole if name in "*_" else name), whole
        if token == "}" and len(before) > 1:
            before.pop()
        path = ""
