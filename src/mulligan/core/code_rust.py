"""Takes the Rust out of a completion, whatever stands around it. It reads items and braces and never compiles.

It knows no more of the language than strings, comments and brackets: what is broken goes to the compiler as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mulligan.core.rust_texts import masked

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
_USE = re.compile(r"(?:pub\s+)?use\b")
_LANGUAGES = frozenset({"rust", "rs", ""})
_ROOM = 40_000
_STARTS = 60
"""Characters of a completion that are read, and items that are looked for between prose: a hostile one must not cost
minutes."""


@dataclass(frozen=True)
class Item:
    """A top-level item with the comments and attributes before it. `name`: of a function, else empty."""

    text: str
    name: str

    @property
    def imports(self) -> bool:
        return _USE.match(self.text) is not None


def extract_rust(text: str, name: str | None = None) -> str:
    """The code in `text`: of several blocks the last with `fn name`, after the `use` lines that only others have.

    A `fn main` that shows how the function is used is left out, as the tests bring their own. Text without code comes
    back stripped. Never raises.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")[:_ROOM]
    blocks = [items(block) for block in _blocks(text.split("\n"))]
    pieces = blocks or [list(_loose(text))]
    holding = [piece for piece in pieces if any(item.name not in ("", "main") for item in piece)]
    chosen = next((p for p in reversed(holding) if any(i.name == name for i in p)), holding[-1] if holding else None)
    if chosen is None:
        return (next(iter(_blocks(text.split("\n"))), text)).strip("\n").rstrip()
    own = [item for item in chosen if item.name != "main" or name == "main"]
    there = {item.text for item in own}
    before = {i.text: i for piece in pieces if piece is not chosen for i in piece if i.imports and i.text not in there}
    return joined([*before.values(), *own])


def items(code: str) -> list[Item]:
    """The top-level items in order; what is no item stands with the one after it."""
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
    """Behind each brace that closes the last bracket open, and each semicolon outside of all."""
    level = 0
    for at, char in enumerate(mask):
        if char in "{([":
            level += 1
        elif char in "})]":
            level = max(level - 1, 0)
        if not level and char in "};":
            yield at + 1
