"""Find Rust's tests in a model's answer. Strings, characters, comments and brackets are recognised.

The reference splits at every semicolon, which breaks string literals and counts an empty tail as a test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise

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
    """The statements of a function's body, in order, without the comments before them. Never raises."""
    block = _Block.of("{" + text + "\n}")
    return tuple(block.text[begin:stop].strip() for begin, stop in block.body() if begin < stop)


def balanced(text: str) -> bool:
    """Whether all brackets are closed, in order, those in comments, strings and characters left out."""
    open_ = list[str]()
    for char in masked(text):
        if char in _PAIRS:
            open_.append(_PAIRS[char])
        elif char in ")]}" and (not open_ or open_.pop() != char):
            return False
    return not open_


def masked(text: str) -> str:
    """The code with blanks for what is in comments, strings and characters: of the same length, so that places in it
    are places in the text."""
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
    """Where the block comment ends, nested ones counted."""
    depth = 0
    for mark in re.finditer(r"/\*|\*/", text[at:]):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return at + mark.end()
    return len(text)


@dataclass(frozen=True)
class _Block:
    """`mask`: the code without its dead parts. `ends`: by the place of an opening bracket that of its end."""

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
        """Whether the macro has the arguments that it needs, and compares two things."""
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
        """Where the body of the function around this place begins (-1: there is none), its name, its one parameter."""
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
        """The statement of the function's body that the assert is in; without a function, the assert itself."""
        if body < 0:
            return start, self._semicolon(end + 1)
        for begin, stop in self._statements(body):
            if begin <= start < stop:
                return begin, stop
        return start, self._semicolon(end + 1)

    def body(self) -> Iterator[tuple[int, int]]:
        """The statements of a text that is one body in braces."""
        if 0 in self.ends:
            yield from self._statements(0)

    def _statements(self, body: int) -> Iterator[tuple[int, int]]:
        """Those of a body, in order: each ends after its semicolon, or a block's brace."""
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
        """Where its code begins: comments before it are left out."""
        return begin + len(self.mask[begin:end]) - len(self.mask[begin:end].lstrip())

    def _needed(self, body: int, before: int, mask: str) -> list[tuple[int, int]]:
        """The statements before this place that its variables come from, and what changes them, in order."""
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
        """After the semicolon that follows, if one does."""
        rest = re.match(r"\s*;", self.mask[at:])
        return at + rest.end() if rest else at
