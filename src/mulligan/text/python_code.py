"""Finds the Python code in a completion, whatever surrounds it. The code is parsed, but never run.

It finds the pieces of code (fenced blocks, `[PYTHON]` wrappers, lines of code between prose), chooses one, and adds the
definitions that it uses from the other pieces. Reflexion's code takes the first ```python fence or a bare `def`, and
fails for anything else.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from mulligan.text.thoughts import answer_of

_FENCE = re.compile(r"(?P<before>.*?)(?<![`~])(?P<fence>`{3,}+|~{3,}+)[ \t]*(?P<info>[^`]*)")
_INLINE = re.compile(r"[^`]*(`{3,})(?:python\w*\s|py\s)?([^`]+)\1[^`]*")
_MARGIN = re.compile(r"\s*(?:(?:[-*+]|\d+[.)])\s+)?")
_TAG = re.compile(r"[{.\s]*(?:(?!(?:def|class|import|from|async)\b)(\w+))?[^\w@]*")
_CODE = re.compile(r"(?:async\s+)?def\s+\w|class\s+\w+\s*[:(]|import\s+\w|from\s+\S+\s+import\b|@\w")
_START = re.compile(
    rf"[ \t]*(?:{_CODE.pattern}|[A-Za-z_]\w*\s*(?::[^=]*)?=[^=]|(?:for|while|with|if|try)\b.*:|print\()"
)
_WRAPPER = re.compile(r"^[ \t]*\[PYTHON\](.*?)(?:\[/PYTHON\]|\Z)", re.DOTALL | re.MULTILINE)
_LABEL = re.compile(r"\A\s*(?:python3?|py)[ \t]*\n", re.IGNORECASE)
_PROMPT = re.compile(r"[ \t]*(?:>>>|\.\.\.)(?: |$)")
_RUST = re.compile(r"^[ \t]*(?:pub\s+)?fn\s+(\w+)\s*[<(]", re.MULTILINE)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
# Limits, so that a hostile completion cannot take minutes.
_MAX_ENDS = 24
"""The number of lines that are tried as the end of a block."""
_MAX_PARSES = 200
"""The number of times that a text is parsed to find code between prose."""


@dataclass(frozen=True)
class _Piece:
    """A piece of code. tree: None if the text does not parse. python: False if its fence names another language."""

    text: str
    tree: ast.Module | None
    python: bool = True

    @property
    def defines(self) -> frozenset[str]:
        """The functions and classes of the module."""
        body = self.tree.body if self.tree else []
        return frozenset(node.name for node in _statements(body) if isinstance(node, _DEFINITIONS))


def extract_code(text: str, name: str | None = None) -> str:
    """Returns the code in `text`, without blank lines around it. Text without code is returned stripped. Never raises.

    Of several pieces, it is the last that defines `name`. Without a name, it is the last that defines everything that
    the first piece with definitions does: a corrected version, but not an example of its use. A piece with a syntax
    error is returned unchanged, so that the evaluator reports the error.
    """
    text = answer_of(text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _tidy(_WRAPPER.sub(_as_fence, text))
    if parsed(text):
        return text
    fenced = [piece for piece in _fenced(text.split("\n")) if piece.text]
    fenced = [piece for piece in fenced if piece.python] or fenced
    loose = list(_loose(text)) or list(_loose(_unprompted(text)))
    for wanted in dict.fromkeys((name, None)):
        if chosen := _chosen(fenced, wanted):
            return _completed(chosen, fenced)
        if broken := [piece for piece in fenced if not piece.tree and _mentions(piece.text, wanted)]:
            return broken[-1].text
        if chosen := _chosen(loose, wanted):
            return _completed(chosen, loose)
        if wanted and _mentions(text, wanted):
            return text
    valid = [piece for piece in fenced if piece.tree]
    return next((piece.text for piece in (*valid, *fenced, *loose)), textwrap.dedent(text).strip())


def asked_for(task: str) -> str | None:
    """Returns the name of the function that a task requests.

    If the task is code, as in HumanEval, this is the last function, because helpers come first. Otherwise, it is the
    one in `def f(` or `function f(`.
    """
    tree = parsed(task)
    names = [node.name for node in tree.body if isinstance(node, FUNCTIONS)] if tree else []
    names = names or _RUST.findall(task)
    match = re.search(r"\b(?:def|function|named|called)\s+`?(\w+)`?\s*\(", task)
    return names[-1] if names else match[1] if match else None


def parsed(text: str) -> ast.Module | None:
    """Returns the syntax tree of Python code, or None if the code cannot be parsed."""
    tree = parse(text)
    return tree if isinstance(tree, ast.Module) else None


@lru_cache(maxsize=64)
def same_code(code: str) -> str:
    """Returns a text that is the same for code that differs only in layout and comments."""
    tree = parsed(code)
    return " ".join(code.split()) if tree is None else ast.dump(tree)


# --- finding the pieces -----------------------------------------------------------------------------------------


def _fenced(lines: Sequence[str]) -> Iterator[_Piece]:
    """Yields the blocks between fences."""
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if inline := _INLINE.fullmatch(line):
            yield _piece([inline[2].strip()], 0)
        opening = _FENCE.fullmatch(line)
        if inline or not opening:
            continue
        tag = _TAG.match(opening["info"])
        rest = opening["info"][tag.end() :] if tag else ""
        language = (tag[1] or "") if tag else ""
        python = not language or "py" in opening["info"].lower()
        margin = len(opening["before"])
        if not _MARGIN.fullmatch(opening["before"]):
            if not python or (rest and not _CODE.match(rest)):
                continue  # a fence in the middle of prose, such as "put it between ``` and ```"
            margin = 0
        first = [rest] if _CODE.match(rest) else []
        piece, at = _block(lines, at, first, opening["fence"], margin)
        yield _Piece(piece.text, piece.tree, python)


def _block(lines: Sequence[str], start: int, first: list[str], fence: str, margin: int) -> tuple[_Piece, int]:
    """Returns the block that begins at line `start`, and the number of the line after it.

    It ends at the first fence before which its code parses, so that a fence inside a docstring does not end it.
    """
    ends = list(_ends(lines, start, fence))
    for end, after in ends:
        piece = _piece([*first, *lines[start:end]], margin)
        if piece.tree:
            return piece, after
    code_ends = (end for end in range(start, len(lines)) if lines[end].rstrip().endswith(fence[0] * 3))
    for end in islice(code_ends, _MAX_ENDS):  # a fence on the last line of code
        piece = _piece([*first, *lines[start:end], lines[end].rstrip().rstrip(fence[0])], margin)
        if piece.tree:
            return piece, end + 1
    end, after = ends[0]
    piece = _piece([*first, *lines[start:end]], margin)
    if end == after:
        return _run(piece.text.split("\n"), _parses())[0] or piece, after  # never closed: prose may follow the code
    return piece, after


def _ends(lines: Sequence[str], start: int, fence: str) -> Iterator[tuple[int, int]]:
    """Yields the lines at which a block may end, each with the line at which to continue.

    These are the closing fences, the next opening ones, and the end of the text.
    """
    count = 0
    for at in range(start, len(lines)):
        match = _FENCE.fullmatch(lines[at])
        if not match or match["before"].strip() or match["fence"][0] != fence[0]:
            continue
        opens = bool(match["info"].strip())
        if opens or len(match["fence"]) >= len(fence):
            count += 1
            yield at, at if opens else at + 1
        if count == _MAX_ENDS:
            return
    yield len(lines), len(lines)


def _loose(text: str) -> Iterator[_Piece]:
    """Yields the runs of statements among the prose, each from a line that looks like code to the last that parses."""
    lines, parses = text.split("\n"), _parses()
    at = 0
    while at < len(lines):
        piece, length = _run(lines[at:], parses) if _START.match(lines[at]) else (None, 1)
        if piece:
            yield piece
        at += length


def _parses() -> Iterator[int]:
    return iter(range(_MAX_PARSES))


def _run(lines: Sequence[str], parses: Iterator[int]) -> tuple[_Piece | None, int]:
    """Returns the statements at the beginning of these lines, or None, and the number of lines to skip.

    The lines are cut only between top-level statements, since half a function is another program. parses: has an
    element for each time that the text may still be parsed.
    """
    margin = indent(lines[0])
    end = next((n for n, line in enumerate(lines) if line.strip() and indent(line) < margin), len(lines))
    while end and next(parses, None) is not None:
        text = "\n".join(line[margin:] for line in lines[:end])
        tree = parse(text)
        if isinstance(tree, ast.Module):
            return _Piece(_tidy(text), tree), end
        error_line = (tree.lineno or 0) if tree else 0
        tops = [n for n, line in enumerate(lines[:end]) if line.strip() and indent(line) == margin and n < error_line]
        end = tops[-1] if tops else 0
    after = (n for n, line in enumerate(lines) if n and line.strip() and indent(line) <= margin)
    return None, next(after, len(lines)) if _CODE.match(lines[0].lstrip()) else 1


def _piece(lines: Sequence[str], margin: int) -> _Piece:
    """Returns the piece in these lines, without an indented fence's margin or doctest prompts if it then parses."""
    if margin and all(indent(line) >= margin for line in lines if line.strip()):
        lines = [line[margin:] for line in lines]
    text = _tidy("\n".join(lines))
    for variant in dict.fromkeys((text, textwrap.dedent(text), _unprompted(text))):
        if tree := parsed(variant):
            return _Piece(variant, tree)
    return _Piece(text, None)


def _as_fence(wrapper: re.Match[str]) -> str:
    text = wrapper[1].strip("\n")
    has_fence = "```" in text or "~~~" in text
    return text if has_fence and not parsed(text) else f"```python\n{text}\n```"


def _tidy(text: str) -> str:
    """Returns the text without blank lines around it, trailing white space, and a first line with only "python"."""
    return re.sub(r"\A(?:[ \t]*\n)+", "", _LABEL.sub("", text)).rstrip()


def _unprompted(text: str) -> str:
    """Returns the code of a doctest, or the text itself if it has no prompts."""
    if ">>>" not in text:
        return text
    return "\n".join(_PROMPT.sub("", line, count=1) for line in text.split("\n") if _PROMPT.match(line))


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def parse(text: str) -> ast.Module | SyntaxError | None:
    """Returns the tree of Python code, or its syntax error, or None if the parser fails otherwise."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as one about an invalid escape in a model's string
            return ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        return None


# --- choosing and completing ------------------------------------------------------------------------------------


def _chosen(pieces: Sequence[_Piece], name: str | None) -> _Piece | None:
    defining = [piece for piece in pieces if piece.defines]
    wanted = {name} if name else defining[0].defines if defining else set[str]()
    return next((piece for piece in reversed(defining) if piece.defines >= wanted), None)


def _mentions(text: str, name: str | None) -> bool:
    """Whether the text has a definition of `name` (None: of anything), even if it does not parse."""
    pattern = re.escape(name) if name else r"\w+"
    return re.search(rf"^[ \t]*(?:async\s+)?(?:def|class)\s+{pattern}\b", text, re.MULTILINE) is not None


def _completed(chosen: _Piece, pieces: Sequence[_Piece]) -> str:
    return with_others(chosen.text, [piece.text for piece in pieces if piece is not chosen])


def with_others(code: str, others: Sequence[str]) -> str:
    """Returns the code after the statements of others that define the names it lacks.

    If several statements define a name, the last one is used. Others that do not parse are ignored.
    """
    definitions: dict[str, tuple[int, int, str]] = {}
    for order, text in enumerate(others):
        tree = parsed(text)
        for statement in tree.body if tree else ():
            definitions |= dict.fromkeys(bound(statement), (order, statement.lineno, source_of(text, statement)))
    missing, used = unbound(code) if definitions else set[str](), set[tuple[int, int, str]]()
    while new := {definitions[name] for name in missing if name in definitions} - used:
        used |= new
        missing = set[str]().union(*(unbound(source) for _, _, source in new))
    return with_preamble(code, "\n\n".join(source for _, _, source in sorted(used)))


def with_preamble(code: str, preamble: str) -> str:
    """Returns the code after this preamble, but with its `from __future__` imports first."""
    tree = parsed(code)
    imports = [one for one in tree.body if isinstance(one, ast.ImportFrom)] if tree else []
    future = [one for one in imports if one.module == "__future__"]
    if not preamble or not future:
        return f"{preamble}\n\n\n{code}" if preamble else code
    lines, end = code.split("\n"), future[-1].end_lineno or 0
    return "\n".join([*lines[:end], preamble, *lines[end:]])


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields these statements, and those in their `if` and `try` blocks, but not in `if __name__ == "__main__"`."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        is_main = isinstance(node, ast.If) and "id='__name__'" in ast.dump(node.test)
        if isinstance(node, (ast.If, ast.Try, ast.TryStar, ast.ExceptHandler)) and not is_main:
            waiting += ast.iter_child_nodes(node)


def bound(statement: ast.stmt) -> set[str]:
    """Returns the names that a definition, import or assignment binds, also in `if` and `try` blocks."""
    names = set[str]()
    for node in _statements([statement]):
        if isinstance(node, _DEFINITIONS):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            names |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return names


def source_of(text: str, statement: ast.stmt) -> str:
    """Returns the lines of a statement of this text, with its decorators."""
    decorators = statement.decorator_list if isinstance(statement, _DEFINITIONS) else []
    first = min((node.lineno for node in decorators), default=statement.lineno)
    return "\n".join(text.split("\n")[first - 1 : statement.end_lineno])


def unbound(text: str) -> set[str]:
    """Returns the global names that the code reads but never binds, without built-ins."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            top = symtable.symtable(text, "<completion>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    tables = [top]
    for table in tables:
        tables.extend(table.get_children())
    names = {s.get_name() for table in tables for s in table.get_symbols() if s.is_global() and s.is_referenced()}
    own = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    return names - own - set(dir(builtins))
