"""Find the Rust in a completion, whatever surrounds it. It reads items and braces and never compiles.

Only strings, comments and brackets are understood; broken code goes to the compiler unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mulligan.text.rust_tests import masked

_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})[ \t]*\{?\.?([\w+#-]*)[^`\n]*$")
_ITEM = re.compile(
    r"""^(?:///|//!|\#!?\[|macro_rules!\s*\w|extern\s+crate\s
        |(?:pub(?:\([^)\n]*\))?\s+)?(?:
            (?:(?:const|unsafe|async|extern(?:\s+"\w+")?)\s+)*fn\s+\w+\s*[<(]
            |use\s+[\w:{]+[^\n]*[;{,]|(?:struct|enum|trait|union|mod)\s+\w+\s*[{<(;:]|impl\b[\s<][^\n]*[{<]
            |type\s+\w+\s*[=<]|(?:static|const)\s+\w+\s*:))""",
    re.MULTILINE | re.VERBOSE,
)
_FUNCTION = re.compile(r"\bfn\s+(\w+)")
_USE = re.compile(r"\s*(?:pub(?:\([^)\n]*\))?\s+)?use\b")
_DEFINED = re.compile(r"\b(?:fn|struct|enum|union|trait|type|mod|const|static)\s+(\w+)")
_INNER = re.compile(r"(?:[ \t]*(?:(?:#!\[[^\n]*\]|//![^\n]*)[ \t]*)?\n)*")
_SEMICOLON = re.compile(r"\s*;")
_LANGUAGES = frozenset({"rust", "rs", ""})
_ROOM = 40_000
_STARTS = 60
# Characters of a completion that are read, items that are looked for between prose, and braces within braces of an
# import: a hostile one must not cost minutes.
_DEEP = 20


@dataclass(frozen=True)
class Item:
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
    text = text.replace("\r\n", "\n").replace("\r", "\n")[:_ROOM]
    blocks = [items(block) for block in _blocks(text.split("\n"))]
    pieces = blocks or [list(_loose(text))]
    holding = [piece for piece in pieces if any(item.name not in ("", "main") for item in piece)]
    chosen = next((p for p in reversed(holding) if any(i.name == name for i in p)), holding[-1] if holding else None)
    if chosen is None:
        return (next(iter(_blocks(text.split("\n"))), text)).strip("\n").rstrip()
    others = [item for piece in pieces if piece is not chosen for item in piece]
    return with_imports(joined(chosen), others)


def with_imports(code: str, offered: Iterable[Item]) -> str:
    """The code after the imports among `offered` whose names neither it nor an import before them binds: the compiler
    refuses a name that is imported twice. Attributes of the whole file stay in front."""
    own, bound, lacking = items(code), set[str](), list[Item]()
    bound.update(*(item.names() for item in own))
    for item in offered:
        names = item.names() if item.imports else {}
        new = [name for name in names if name not in bound]
        bound.update(new)
        lacking += [item] if len(new) == len(names) > 0 else [Item(names[name], "") for name in new]
    if not lacking:
        return code
    inner = _INNER.match(code)
    begin = inner.end() if inner else 0
    return code[:begin] + joined([*lacking, Item(code[begin:], "")])


def items(code: str) -> list[Item]:
    """The top-level items in order; anything else belongs to the item after it."""
    found, start, mask = list[Item](), 0, masked(code)
    for end in (*_ends(mask), len(code)):
        piece, head = code[start:end].strip("\n").rstrip(), mask[start:end].partition("{")[0]
        start = end
        if piece.strip():
            named = _FUNCTION.search(head)
            found.append(Item(piece, named[1] if named else ""))
    return found


def joined(parts: Sequence[Item]) -> str:
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


def _loose(text: str) -> Iterator[Item]:
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
