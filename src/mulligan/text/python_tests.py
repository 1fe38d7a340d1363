"""Find the tests in a model's answer, whatever surrounds them. The tests are parsed, but never run.

A test is one assert statement that uses the function under test. A comment or a string that contains `assert` is not a
test. Reflexion's code keeps every line with the word, so it keeps comments and loses statements of several lines.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mulligan.text.python_code import indent, parse, parsed

# Only so many characters of an answer are parsed, at most `_MAX_PARSES` times: a hostile answer must not take minutes.
_MAX_CHARACTERS = 24_000
_MAX_PARSES = 250
_AFTER_PROSE = re.compile(r"^(?P<margin>\s*)(?P<prose>[^#`\"'()=]{0,80}?)(?P<test>assert\b.*)$")
_INLINE = re.compile(r"`+\s*(assert\b[^`]*?)\s*`+")
_ON_LINE = re.compile(r"on line (\d+)$")
_ATOMS = (ast.Name, ast.Constant, ast.List, ast.Dict, ast.Set, ast.Call, ast.Attribute, ast.Subscript, ast.ListComp)
# Built-ins that do not call a function that is passed to them.
_NOT_CALLING = frozenset(
    {"callable", "isinstance", "issubclass", "hasattr", "id", "type", "repr", "str", "bool", "print"}
)


def python_tests(text: str, name: str | None = None) -> tuple[str, ...]:
    """Returns the asserts that test the function `name` (None: any function), in order, without duplicates.

    They may be in fences, lists, prose, `def test_...` or `def check(candidate)`. Variables with a plain assignment are
    replaced by their value. An assert that depends on any other variable around it is left out. Never raises.
    """
    source, tree = _repaired(text.replace("\r\n", "\n").replace("\r", "\n")[:_MAX_CHARACTERS].expandtabs(4))
    found = dict[str, str]()
    for test in _Reader(source, name).read(tree):
        if (key := _key(test, name)) is not None:
            found.setdefault(key, test)
    return tuple(found.values())


def modules(tests: Sequence[str]) -> tuple[str, ...]:
    """Returns the sorted names of the modules of the standard library that these tests use."""
    trees = [tree for tree in map(parsed, tests) if tree]
    named = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return tuple(sorted(named & sys.stdlib_module_names - set(dir(builtins))))


# --- making the text parse --------------------------------------------------------------------------------------


def _repaired(text: str) -> tuple[str, ast.Module]:
    """Returns the text without the lines that are not Python, and its tree. The line numbers do not change."""
    lines, stages = text.split("\n"), dict[int, int]()
    for _ in range(_MAX_PARSES):
        tree = parse("\n".join(lines))
        if isinstance(tree, ast.Module):
            return "\n".join(lines), tree
        if tree is None:
            break
        _fix(lines, stages, tree)
    stripped = [line.strip() for line in lines]
    source = "\n".join(line if line.startswith("assert") and parsed(line) else "" for line in stripped)
    return source, parsed(source) or ast.Module([], [])


def _fix(lines: list[str], stages: dict[int, int], error: SyntaxError) -> None:
    """Changes the line of the error: at stage 0 to the assert that it contains, at 1 to `pass`, at 2 to an empty line.

    After that, it changes the line before it. stages: the stage of each line that was changed.
    """
    block = _ON_LINE.search(error.msg) if isinstance(error, IndentationError) else None
    at = min(max(int(block[1]) if block else error.lineno or 1, 1), len(lines)) - 1
    while at and stages.get(at, 0) > 2:
        at -= 1
    line, stage = lines[at], stages.get(at, 0)
    margin = len(line) - len(line.lstrip())
    if error.msg == "unexpected indent" and margin and stage == 0:
        end = next((n for n in range(at, len(lines)) if lines[n].strip() and indent(lines[n]) < margin), len(lines))
        lines[at:end] = [one[margin:] for one in lines[at:end]]
        return
    test = _assert_in(line) if stage == 0 else None
    if test is not None:
        lines[at], stages[at] = test, 1
    elif stage < 2 and line.strip() != "pass":
        lines[at], stages[at] = f"{line[:margin]}pass", 2
    else:
        lines[at], stages[at] = "", 3


def _assert_in(line: str) -> str | None:
    """Returns the assert in a line of a list or of prose."""
    if inline := _INLINE.search(line):
        return inline[1]
    after = _AFTER_PROSE.match(line)
    return after["margin"] + after["test"] if after and after["prose"] else None


# --- reading the asserts ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reader:
    """Reads the asserts of a tree that test the function `name`.

    Its methods pass on `bound`: the variables that are bound around a statement, each with the source of its value, or
    None if that is unknown.
    """

    source: str
    name: str | None

    def read(self, tree: ast.Module) -> Iterator[str]:
        try:
            yield from self._body(tree.body, {})
        except RecursionError:
            return

    def _body(self, body: Sequence[ast.stmt], bound: dict[str, str | None]) -> Iterator[str]:
        for statement in body:
            match statement:
                case ast.Assert():
                    if test := self._assert(statement, bound):
                        yield test
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    if name != self.name:
                        yield from self._body(statement.body, {**bound, **self._arguments(statement)})
                        bound[name] = None
                case ast.ClassDef(name=name):
                    if name != self.name:
                        yield from self._body(statement.body, dict(bound))
                        bound[name] = None
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    bound[name] = self._value(value, bound)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    bound[name] = self._value(value, bound)
                case ast.Import() | ast.ImportFrom():
                    bound.update(dict.fromkeys(self._imported(statement)))
                case _:
                    yield from self._compound(statement, bound)

    def _compound(self, statement: ast.stmt, bound: dict[str, str | None]) -> Iterator[str]:
        """Reads any other statement. The values of the variables that it binds are unknown from there on."""
        inner: list[list[Any]] = [part for _, part in ast.iter_fields(statement) if isinstance(part, list)]
        stored = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        bound.update(dict.fromkeys(stored - {self.name or ""}))
        for part in inner:
            blocks = [one.body for one in part if isinstance(one, ast.ExceptHandler)]
            for block in (*blocks, [one for one in part if isinstance(one, ast.stmt)]):
                yield from self._body(block, dict(bound))

    def _arguments(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str | None]:
        """Returns the parameters as bound variables. That of a `check(candidate)` stands for the function."""
        arguments = function.args
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        names += [one.arg for one in (arguments.vararg, arguments.kwarg) if one]
        found: dict[str, str | None] = dict.fromkeys(names)
        called = {n.func.id for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        if len(names) == 1 and names[0] in called and self.name:
            found[names[0]] = self.name
        return found

    def _imported(self, statement: ast.Import | ast.ImportFrom) -> list[str]:
        """Returns the names that an import binds and that a test alone would not have."""
        if isinstance(statement, ast.ImportFrom):
            own = [] if statement.module == "typing" else [one.asname or one.name for one in statement.names]
        else:
            own = [one.asname or one.name.partition(".")[0] for one in statement.names]
            own = [name for name in own if name not in sys.stdlib_module_names]
        return [name for name in own if name != self.name]

    def _value(self, value: ast.expr, bound: Mapping[str, str | None]) -> str | None:
        text = self._substituted(value, bound)
        if text is None or len(text) > _MAX_CHARACTERS // 4:
            return None
        plain = isinstance(value, _ATOMS) and "\n" not in text
        return text if plain else f"({text})"

    def _assert(self, statement: ast.Assert, bound: Mapping[str, str | None]) -> str | None:
        if statement.msg and any(isinstance(n, ast.Name) and n.id in bound for n in ast.walk(statement.msg)):
            text = self._substituted(statement.test, bound)
            return text and f"assert ({text})"
        return self._substituted(statement, bound)

    def _substituted(self, node: ast.expr | ast.stmt, bound: Mapping[str, str | None]) -> str | None:
        """Returns the node's source with its variables replaced by their values, or None if one is unknown."""
        own = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        own |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        used = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in bound]
        if any(bound[n.id] is None or n.id in own for n in used):
            return None
        if used and any(isinstance(n, ast.JoinedStr) for n in ast.walk(node)):
            return None  # not every version of Python gives the positions inside an f-string
        lines = self.source.encode("utf-8").split(b"\n")
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        raw = b"\n".join(lines)
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        pieces, at = list[bytes](), begin
        for name in sorted(used, key=lambda n: (n.lineno, n.col_offset)):
            position = starts[name.lineno - 1] + name.col_offset
            pieces += [raw[at:position], (bound[name.id] or "").encode()]
            at = position + len(name.id.encode())
        return b"".join([*pieces, raw[at:end]]).decode("utf-8", "replace")


# --- which asserts are tests ------------------------------------------------------------------------------------


def _key(test: str, name: str | None) -> str | None:
    """Returns a key that equal tests share, or None for an assert that tests nothing."""
    tree = parsed(test)
    if tree is None or len(tree.body) != 1 or not isinstance(statement := tree.body[0], ast.Assert):
        return None
    try:
        return ast.dump(statement.test) if _uses(statement.test, name) and not _always(statement.test) else None
    except (RecursionError, MemoryError):
        return None


def _uses(test: ast.expr, name: str | None) -> bool:
    """Whether the test calls the function or passes it to something that can call it, and has no `...` as a value."""
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call)]
    if any(isinstance(node, ast.Constant) and node.value is ... for node in ast.walk(test)):
        return False
    if name is None:
        return any(_called(call) not in dir(builtins) for call in calls)
    calling = (call for call in calls if _called(call) not in _NOT_CALLING)
    return any(_called(call) == name for call in calls) or any(
        isinstance(part, ast.Name) and part.id == name for call in calling for part in call.args
    )


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _always(test: ast.expr) -> bool:
    """Whether the test passes whatever the function does, such as `assert (a == b, "why")` or `f(1) == f(1)`."""
    match test:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return bool(parts)
        case ast.Lambda() | ast.GeneratorExp():
            return True
        case ast.Constant(value=value):
            return bool(value)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any(map(_always, parts))
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is() | ast.LtE() | ast.GtE()], comparators=[right]):
            return ast.dump(left) == ast.dump(right)
        case _:
            return False


# --- by the rules of Reflexion's code, for logs that it wrote ---------------------------------------------------------


_REFERENCE_FENCE = re.compile(r"```python\n(.*)\n```", re.DOTALL)
_MAX_LINES = 40  # of one test


def reference_code(text: str) -> str:
    """Returns the text of the fence that is tagged python, unchanged, or the whole text if there is no such fence."""
    match = _REFERENCE_FENCE.search(text)
    return match[1] if match else text


def reference_tests(text: str) -> tuple[str, ...]:
    """Returns each line that contains "assert" and parses, stripped, with comments and duplicates.

    Unlike in Reflexion's code, a statement of several lines is kept as a whole. Never raises.
    """
    found, lines, at = list[str](), text.split("\n"), 0
    while at < len(lines):
        ends = range(at + 1, min(at + _MAX_LINES, len(lines)) + 1) if "assert" in lines[at] else ()
        end = next((end for end in ends if parsed("\n".join(lines[at:end]).strip()) is not None), None)
        if end is not None:
            found.append("\n".join(lines[at:end]).strip())
        at = end or at + 1
    return tuple(found)
