"""Find the Python in a completion, whatever surrounds it. The code is parsed and never run.

Three steps: find the pieces (fenced blocks, `[PYTHON]` wrappers, lines of code between prose), choose the one that is
wanted, and put before it what it uses and only another piece defines. Reflexion's code takes the first ```python fence
or a bare `def`, and dies on the rest.
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
_ENDS = 24
# How many lines are tried as the end of one block, and how often one text is parsed to find code between prose: a
# completion needs a handful of each, and a hostile one must not cost minutes.
_TRIES = 200


@dataclass(frozen=True)
class _Piece:
    """`tree` is None when the text does not parse; `python` is False when its fence names another language."""

    text: str
    tree: ast.Module | None
    python: bool = True

    @property
    def defines(self) -> frozenset[str]:
        """The functions and classes at the top level."""
        body = self.tree.body if self.tree else []
        return frozenset(node.name for node in body if isinstance(node, _DEFINITIONS))


def extract_code(text: str, name: str | None = None) -> str:
    """The code in `text`, without blank lines around it; text without code comes back stripped. Never raises.

    Of several pieces: the last that defines `name`; without a name, the last that defines all that the first defining
    one does, so that a corrected version wins over the first attempt, and a usage example over neither. A piece with
    a syntax error comes back as it is, for the evaluator to report.
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
    whole = [piece for piece in fenced if piece.tree]
    return next((piece.text for piece in (*whole, *fenced, *loose)), textwrap.dedent(text).strip())


def asked_for(task: str) -> str | None:
    """The function that a task asks for: the last one of a task that is code itself, as HumanEval's are, where helpers
    come first; else the one it names as `def f(`, `fn f(` or `function f(`."""
    tree = parsed(task)
    own = [node.name for node in tree.body if isinstance(node, FUNCTIONS)] if tree else []
    if not own:
        own = _RUST.findall(task)
    found = re.search(r"\b(?:def|function|named|called)\s+`?(\w+)`?\s*\(", task)
    return own[-1] if own else found[1] if found else None


def parsed(text: str) -> ast.Module | None:
    """The tree of this Python; None where it does not parse."""
    tree = parse(text)
    return tree if isinstance(tree, ast.Module) else None


@lru_cache(maxsize=64)
def same_code(code: str) -> str:
    """A text that is equal for code which differs only in layout and comments."""
    tree = parsed(code)
    return " ".join(code.split()) if tree is None else ast.dump(tree)


# --- finding the pieces -----------------------------------------------------------------------------------------


def _fenced(lines: Sequence[str]) -> Iterator[_Piece]:
    """The blocks between fences, in order."""
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
    """The block that begins at `start`, and the line after it.

    It ends at the first closing fence that leaves code that parses: a fence inside a docstring does not end it.
    """
    ends = list(_ends(lines, start, fence))
    for end, after in ends:
        piece = _piece([*first, *lines[start:end]], margin)
        if piece.tree:
            return piece, after
    stuck = (end for end in range(start, len(lines)) if lines[end].rstrip().endswith(fence[0] * 3))
    for end in islice(stuck, _ENDS):  # a fence on the last line of code
        piece = _piece([*first, *lines[start:end], lines[end].rstrip().rstrip(fence[0])], margin)
        if piece.tree:
            return piece, end + 1
    end, after = ends[0]
    piece = _piece([*first, *lines[start:end]], margin)
    if end == after:
        return _run(piece.text.split("\n"), _tries())[0] or piece, after  # never closed: prose may follow the code
    return piece, after


def _ends(lines: Sequence[str], start: int, fence: str) -> Iterator[tuple[int, int]]:
    """Where a block may end, and where to go on: closing fences, the next opening ones, the end of the text."""
    found = 0
    for at in range(start, len(lines)):
        match = _FENCE.fullmatch(lines[at])
        if not match or match["before"].strip() or match["fence"][0] != fence[0]:
            continue
        opens = bool(match["info"].strip())
        if opens or len(match["fence"]) >= len(fence):
            found += 1
            yield at, at if opens else at + 1
        if found == _ENDS:
            return
    yield len(lines), len(lines)


def _loose(text: str) -> Iterator[_Piece]:
    """Runs of whole statements among the prose: from a line that looks like code to the last line that parses."""
    lines, tries = text.split("\n"), _tries()
    at = 0
    while at < len(lines):
        piece, length = _run(lines[at:], tries) if _START.match(lines[at]) else (None, 1)
        if piece:
            yield piece
        at += length


def _tries() -> Iterator[int]:
    return iter(range(_TRIES))


def _run(lines: Sequence[str], tries: Iterator[int]) -> tuple[_Piece | None, int]:
    """The statements that these lines begin with, and how many lines they are; without a piece, how many to skip.

    It is cut only between statements of the outermost level: half a function would be another program.
    """
    margin = indent(lines[0])
    end = next((n for n, line in enumerate(lines) if line.strip() and indent(line) < margin), len(lines))
    while end and next(tries, None) is not None:
        text = "\n".join(line[margin:] for line in lines[:end])
        tree = parse(text)
        if isinstance(tree, ast.Module):
            return _Piece(_tidy(text), tree), end
        fault = (tree.lineno or 0) if tree else 0
        tops = [n for n, line in enumerate(lines[:end]) if line.strip() and indent(line) == margin and n < fault]
        end = tops[-1] if tops else 0
    inside = (n for n, line in enumerate(lines) if n and line.strip() and indent(line) <= margin)
    return None, next(inside, len(lines)) if _CODE.match(lines[0].lstrip()) else 1


def _piece(lines: Sequence[str], margin: int) -> _Piece:
    """These lines as code: without the margin of an indented fence, or doctest prompts, where that makes it parse."""
    if margin and all(indent(line) >= margin for line in lines if line.strip()):
        lines = [line[margin:] for line in lines]
    text = _tidy("\n".join(lines))
    for variant in dict.fromkeys((text, textwrap.dedent(text), _unprompted(text))):
        if tree := parsed(variant):
            return _Piece(variant, tree)
    return _Piece(text, None)


def _as_fence(wrapped: re.Match[str]) -> str:
    inside = wrapped[1].strip("\n")
    has_fence = "```" in inside or "~~~" in inside
    return inside if has_fence and not parsed(inside) else f"```python\n{inside}\n```"


def _tidy(text: str) -> str:
    """Without blank lines around it, trailing white space, and a leading line that says only "python"."""
    return re.sub(r"\A(?:[ \t]*\n)+", "", _LABEL.sub("", text)).rstrip()


def _unprompted(text: str) -> str:
    """The code of a doctest; the text itself when it has no prompts."""
    if ">>>" not in text:
        return text
    return "\n".join(_PROMPT.sub("", line, count=1) for line in text.split("\n") if _PROMPT.match(line))


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def parse(text: str) -> ast.Module | SyntaxError | None:
    """The tree, or the error that says where the text is no Python; None where it cannot even be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a model's string is not our warning
            return ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        return None


# --- choosing and completing ------------------------------------------------------------------------------------


def _chosen(pieces: Sequence[_Piece], name: str | None) -> _Piece | None:
    defining = [piece for piece in pieces if piece.defines]
    if not defining:
        return None
    wanted = {name} if name else defining[0].defines
    return next((piece for piece in reversed(defining) if piece.defines >= wanted), None)


def _mentions(text: str, name: str | None) -> bool:
    """Whether the text has a definition of `name` (None: of anything), even if it does not parse."""
    called = re.escape(name) if name else r"\w+"
    return re.search(rf"^[ \t]*(?:async\s+)?(?:def|class)\s+{called}\b", text, re.MULTILINE) is not None


def _completed(chosen: _Piece, pieces: Sequence[_Piece]) -> str:
    return with_others(chosen.text, [piece.text for piece in pieces if piece is not chosen])


def with_others(code: str, others: Sequence[str]) -> str:
    """The code after the statements of others that define what it uses and does not define itself, the last of them
    where several do. Others that do not parse have nothing to give."""
    offers: dict[str, tuple[int, int, str]] = {}
    for order, text in enumerate(others):
        tree = parsed(text)
        for statement in tree.body if tree else ():
            offers |= dict.fromkeys(bound(statement), (order, statement.lineno, source_of(text, statement)))
    needed, taken = unbound(code) if offers else set[str](), set[tuple[int, int, str]]()
    while new := {offers[name] for name in needed if name in offers} - taken:
        taken |= new
        needed = set[str]().union(*(unbound(source) for _, _, source in new))
    before = "\n\n".join(source for _, _, source in sorted(taken))
    return f"{before}\n\n\n{code}" if before else code


def bound(statement: ast.stmt) -> set[str]:
    """The names that a definition, import or assignment binds; nothing for other statements."""
    if isinstance(statement, _DEFINITIONS):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in statement.names}
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return {
            node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
    return set()


def source_of(text: str, statement: ast.stmt) -> str:
    """The lines of a statement of this text, decorators included."""
    decorators = statement.decorator_list if isinstance(statement, _DEFINITIONS) else []
    first = min((node.lineno for node in decorators), default=statement.lineno)
    return "\n".join(text.split("\n")[first - 1 : statement.end_lineno])


def unbound(text: str) -> set[str]:
    """The global names that the code reads and never binds, built-ins left out."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            top = symtable.symtable(text, "<completion>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    tables = [top]
    for table in tables:
        tables.extend(table.get_children())
    read = {s.get_name() for table in tables for s in table.get_symbols() if s.is_global() and s.is_referenced()}
    own = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    return read - own - set(dir(builtins))
