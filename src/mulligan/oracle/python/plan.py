"""A tests file, read before any model is called: its tests, and the same file instrumented for the examiner.

Every assert outside a function is a test of its own, and so is every assert of a function that the file calls once,
such as HumanEval's `check(candidate)`; a `def test_*` is one test. Each test reports itself, and a failing one does not
hide those after it: `assert E` becomes a statement that evaluates E once, in its own scope, notes what the calls in it
gave, and tells the examiner. Large literals are put aside meanwhile: they hold no name and no call, and are most of the
tree; a row of HumanEval+ holds up to 800 kB of values. This module knows nothing of sandboxes.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import io
import marshal
import re
import warnings
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mulligan.core.errors import InvalidInput
from mulligan.oracle.python import wire
from mulligan.oracle.python.names import SOLUTION, Names, foreign, names_in, needs_process

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
MOST_POINTS = 2_500
"""To instrument more of them takes seconds, in which no signal is heard."""


@dataclass(frozen=True)
class Test:
    """One test as it is reported: its text on one line, and where it stands. `quiet`: a statement that is no test, so
    that it is spoken of only when it fails."""

    text: str
    line: int
    quiet: bool = False


@dataclass(frozen=True)
class Point:
    """A place where a test can fail: its test (-1: that of the function that runs), line and text, the names whose
    values explain it, and the names that it binds."""

    test: int
    line: int
    text: str
    names: tuple[str, ...] = ()
    binds: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Where:
    """In what an assert stands: whether its failure ends its function, loop variables, names to show otherwise."""

    ends: bool
    loops: tuple[str, ...] = ()
    shown: Mapping[str, str] | None = None
    guarded: bool = False


class Instrument:
    """One tests file on its way through. `module` fills the tables. broad: what raises by itself is a test, too."""

    def __init__(self, text: str, names: Names, file: str, *, broad: bool = False) -> None:
        self._broad = broad
        self._lines = list(io.StringIO(text, newline=""))
        self._file = file
        self._candidate = {*names.wanted, *names.certain}
        self._modules: set[str] = set()
        self.tests: list[Test] = []
        self.points: list[Point] = []
        self.calls: list[tuple[str, bool]] = []
        self.functions: list[tuple[int, str]] = []
        self.starts: dict[int, int] = {}

    def module(self, tree: ast.Module) -> ast.Module:
        self._modules = {
            alias.asname or alias.name.partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
            if SOLUTION not in (alias.name, getattr(node, "module", None))
        }
        self._helpers = helpers(tree, self._broad)
        self._own = {node.name for node in tree.body if isinstance(node, (*_FUNCTION, ast.ClassDef))}
        self._called = {
            part.func.id for part in ast.walk(tree) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
        }
        self._fixtures = _fixtures(tree)
        self._classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        body = _inlined(tree.body, self._helpers)
        self._checks = _called_once(body, self._helpers)
        out: list[ast.stmt] = []
        for node in body:
            out += self._top(node)
        return ast.Module(out, [])

    # --- statements ---------------------------------------------------------------------------------------------

    def _top(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.ImportFrom(module="__future__"):
                return [node]
            case ast.ImportFrom() | ast.Import():
                return self._import(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.name.startswith("test") and self._takes_nothing(node):
                    self._register(node, node.name)
                call = self._checks.get(node.name)
                where = _Where(call is None, shown=_shown(node, call))
                node.body = self._block(node.body, where)
                return [self._unit(node, quiet=True)] if node.decorator_list else [node]
            case ast.ClassDef():
                self._tests_of(node)
                for item in node.body:
                    if isinstance(item, _FUNCTION):
                        item.body = self._block(item.body, _Where(True))
                return [self._unit(node, quiet=True)]
            case _:
                return self._block([node], _Where(False))

    def _tests_of(self, node: ast.ClassDef) -> None:
        """Registers the methods that are tests, those that it inherits from classes of the file too."""
        lineage = [node]
        for one in lineage:
            names = [base.id for base in one.bases if isinstance(base, ast.Name)]
            lineage += [self._classes[name] for name in names if name in self._classes and len(lineage) < 50]
        case = any("TestCase" in ast.unparse(base) for one in lineage for base in one.bases)
        if not case and not node.name.startswith("Test"):
            return
        found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        for one in lineage:
            for item in one.body:
                if isinstance(item, _FUNCTION) and item.name.startswith("test"):
                    found.setdefault(item.name, item)
        for name, item in found.items():
            if case or self._takes_nothing(item, node):
                self._register(item, f"{node.name}.{name}")

    def _block(self, body: Sequence[ast.stmt], where: _Where) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for node in body:
            out += self._ends_at_failure(node, where) if where.ends else self._independent(node, where)
        return out

    def _ends_at_failure(self, node: ast.stmt, where: _Where) -> list[ast.stmt]:
        """Inside what ends with the first failure."""
        if isinstance(node, ast.Assert):
            point = self._point(node, -1, where, self._shown_text(node, where.shown))
            begin = _made(f"__oracle_begin__({point})", node)
            check = _made(f"if not TEST: raise __oracle_error__({point}, __oracle_locals__(), MESSAGE)", node)
            return [begin, self._filled(check, node, where)]
        self._inside(node, where)
        return [node]

    def _independent(self, node: ast.stmt, where: _Where) -> list[ast.stmt]:
        """Where each test stands for itself."""
        match node:
            case ast.Assert():
                point = self._test(node, where)
                made = _made(
                    f"if TEST: __oracle_passed__({point})\n"
                    f"else: __oracle_failed__({point}, __oracle_locals__(), MESSAGE)",
                    node,
                )
                return [_guarded(point, [self._filled(made, node, where)], node)]
            case ast.Try() | ast.TryStar() | ast.With() | ast.AsyncWith() if self._may_catch(node):
                inside = _Where(True, where.loops)
                return [self._unit(node, quiet=not _judges(node, self._helpers), where=where, inside=inside)]
            case ast.Expr(ast.Call(func=ast.Name(name))) if name in self._checks:
                return [node if where.guarded else self._unit(node, quiet=True, where=where)]
            case ast.Expr() | ast.Assign() | ast.AnnAssign() if _judges(node, self._helpers):
                return [self._unit(node, where=where)]
            case ast.If() if self._broad and any(isinstance(part, ast.Raise) for part in ast.walk(node)):
                return [self._unit(node, where=where)]
            case ast.For() | ast.AsyncFor() | ast.While() | ast.If() | ast.With() | ast.AsyncWith() | ast.Match():
                if not where.guarded:
                    return [self._unit(node, quiet=True, where=where, inside=where)]
                self._inside(node, where)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._inside(node, _Where(True))
            case ast.Expr() | ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Delete() if not where.guarded:
                return [self._unit(node, quiet=True, where=where)]
            case _:
                pass
        return [node]

    def _may_catch(self, node: ast.stmt) -> bool:
        """Whether exceptions in it may be meant for it: `try`, `raises`, `suppress`, a context manager of the file."""
        if not isinstance(node, ast.With | ast.AsyncWith):
            return True
        items = " ".join(map(ast.unparse, node.items))
        return "raises" in items or "suppress" in items or not self._own.isdisjoint(re.findall(r"\w+", items))

    def _inside(self, node: ast.AST, where: _Where) -> None:
        """Rewrites the blocks within a statement."""
        if isinstance(node, ast.For | ast.AsyncFor):
            targets = tuple(part.id for part in ast.walk(node.target) if isinstance(part, ast.Name))
            where = _Where(where.ends, (*where.loops, *targets), where.shown, where.guarded)
        elif isinstance(node, ast.While):
            where = _Where(where.ends, where.loops, where.shown, guarded=True)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, self._block(block, where))  # pyright: ignore[reportUnknownArgumentType]
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self._inside(part, where)

    def _import(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
        """`solution` is the candidate, and not a module that could be found."""
        out: list[ast.stmt] = []
        for alias in node.names:
            bound = alias.asname or alias.name
            if isinstance(node, ast.ImportFrom) and node.module == SOLUTION:
                made = [] if alias.name == "*" else [_made(f"{bound} = __oracle_get__({alias.name!r})", node)]
            elif isinstance(node, ast.Import) and alias.name == SOLUTION:
                made = [_made(f"{bound} = __oracle_module__", node)]
            elif isinstance(node, ast.Import):
                made = [ast.copy_location(ast.Import([alias]), node)]
            else:
                made = [ast.copy_location(ast.ImportFrom(node.module, [alias], 0), node)]
            out += [self._unit(statement, quiet=True) for statement in made]
        return out

    # --- tables -------------------------------------------------------------------------------------------------

    def _test(self, node: ast.stmt, where: _Where, quiet: bool = False) -> int:
        """The point at which a test of its own begins."""
        text = self._shown_text(node, where.shown)
        self.tests.append(Test(text, node.lineno, quiet))
        return self._point(node, len(self.tests) - 1, where, text)

    def _unit(
        self, node: ast.stmt, *, quiet: bool = False, where: _Where | None = None, inside: _Where | None = None
    ) -> ast.stmt:
        """The statement as a unit of its own, a test or quiet; `inside`: how to rewrite the blocks within it."""
        where = where or _Where(False)
        point = self._test(node, where, quiet)
        if inside:
            self._inside(node, inside)
        end = "__oracle_ran__" if quiet else "__oracle_passed__"
        return _guarded(point, [node, _made(f"{end}({point})", node)], node)

    def _register(self, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> None:
        self.tests.append(Test(name, node.lineno))
        self.functions.append((len(self.tests) - 1, name))
        self.points.append(Point(-1, node.lineno, ""))
        self.starts[len(self.tests) - 1] = len(self.points) - 1

    def _point(self, node: ast.stmt, test: int, where: _Where, text: str) -> int:
        if len(self.points) > MOST_POINTS:
            raise wire.TooMuch("has too many asserts")
        simple = isinstance(node, ast.Assert | ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign)
        names = self._data(node) if simple else ()
        self.points.append(Point(test, node.lineno, text, (*where.loops, *names), tuple(_bound(node))))
        return len(self.points) - 1

    def _shown_text(self, node: ast.stmt, shown: Mapping[str, str] | None) -> str:
        """A statement on one line, in the user's own spelling where that is one line."""
        if isinstance(node, ast.Assert):
            return "assert " + self._spelled(node.test, shown)
        if isinstance(node, ast.With | ast.Try | ast.For | ast.While | ast.If):
            return " ".join(line.strip() for line in ast.unparse(_renamed(node, shown)).splitlines())
        return self._spelled(node, shown).partition("\n")[0]

    def _spelled(self, node: ast.stmt | ast.expr, shown: Mapping[str, str] | None) -> str:
        renamed = _renamed(node, shown)
        if node.end_lineno != node.lineno or renamed is not node:
            return ast.unparse(renamed)
        # Not by ast.get_source_segment, which goes through the whole file each time.
        return self._lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()

    def _data(self, node: ast.AST) -> tuple[str, ...]:
        """The names of values in it: no functions of Python's, no modules, nothing of the candidate's."""
        found = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
        unwanted = self._candidate | self._modules
        return tuple(dict.fromkeys(n for n in found if n not in unwanted and not n.startswith("__")))

    def _filled(self, made: ast.stmt, node: ast.Assert, where: _Where) -> ast.stmt:
        """The template with the assert's test, its calls noted, and its message."""
        test = _Noting(self, where.shown).visit(node.test)
        holes = {"TEST": test, "MESSAGE": node.msg or ast.Constant(None)}
        return _Filling(holes).visit(made)

    def noted(self, call: ast.Call, shown: Mapping[str, str] | None) -> int | None:
        """The index under which this call's value is noted; None for what explains nothing, such as `len(...)`."""
        root: ast.expr = call.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self._modules:
            return None
        if root.id not in self._candidate and hasattr(builtins, root.id) and root.id != "input":
            return None
        name = (shown or {}).get(root.id, root.id)
        self.calls.append((ast.unparse(_renamed(call, shown)), name in self._candidate))
        return len(self.calls) - 1

    def inner(self, call: ast.Call) -> list[str]:
        """The names in a call's arguments that may safely be looked at after it."""
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        parts = [part for value in given for part in ast.walk(value)]
        if any(isinstance(part, ast.IfExp | ast.BoolOp | ast.Lambda | ast.comprehension) for part in parts):
            return []
        names = (name for value in given for name in self._data(value))
        return [name for name in dict.fromkeys(names) if not hasattr(builtins, name)]

    def _takes_nothing(self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ast.ClassDef | None = None) -> bool:
        """Whether a test function can be run by itself. Raises `InvalidInput` for one that waits for a fixture that the
        file does not define."""
        decorators = [*node.decorator_list, *(owner.decorator_list if owner else ())]
        if any("pytest" not in ast.unparse(one) and "mark" not in ast.unparse(one) for one in decorators):
            return True  # a decorator may hand it over
        arguments = node.args.posonlyargs + node.args.args
        needed = {a.arg for a in arguments[: len(arguments) - len(node.args.defaults)]} - self._fixtures
        if owner:
            needed -= {a.arg for a in arguments[:1]}
        rows = [d for d in decorators if isinstance(d, ast.Call) and "parametrize" in ast.unparse(d.func)]
        for row in rows:
            if row.args:
                needed -= set(ast.unparse(row.args[0]).strip("'\"()[] ").replace("'", "").replace(" ", "").split(","))
        if needed and (owner or node.name not in self._called):
            raise InvalidInput(
                f"{self._file}, line {node.lineno}: {node.name} takes {sorted(needed)[0]!r}, and fixtures are not "
                "supported unless this file defines them: make the value inside the test, or give rows with "
                "@pytest.mark.parametrize."
            )
        return not needed


class _Noting(ast.NodeTransformer):
    """`f(x)` becomes `note(7, f(x), {"x": x})`."""

    def __init__(self, work: Instrument, shown: Mapping[str, str] | None) -> None:
        self._work = work
        self._shown = shown

    def visit_Call(self, node: ast.Call) -> ast.expr:
        number, names = self._work.noted(node, self._shown), self._work.inner(node)
        self.generic_visit(node)
        if number is None:
            return node
        table = ast.Dict([ast.Constant(name) for name in names], [ast.Name(name, ast.Load()) for name in names])
        return ast.Call(ast.Name("__oracle_note__", ast.Load()), [ast.Constant(number), node, table], [])


class _Filling(ast.NodeTransformer):
    """Puts an expression in the place of each of these names."""

    def __init__(self, holes: Mapping[str, ast.expr]) -> None:
        self._holes = holes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._holes.get(node.id, node)


def _renamed(node: ast.AST, shown: Mapping[str, str] | None) -> ast.AST:
    if not shown or not any(isinstance(part, ast.Name) and part.id in shown for part in ast.walk(node)):
        return node
    names = {old: ast.Name(new, ast.Load()) for old, new in shown.items()}
    return _Filling(names).visit(ast.parse(ast.unparse(node)))


def _made(text: str, node: ast.AST) -> ast.stmt:
    made = ast.parse(text).body[0]
    for part in ast.walk(made):
        if hasattr(part, "lineno"):
            ast.copy_location(part, node)
    return made


def _guarded(point: int, body: list[ast.stmt], node: ast.stmt) -> ast.stmt:
    made = _made(
        f"try:\n __oracle_begin__({point})\n"
        f"except __oracle_any__ as __oracle_e__:\n __oracle_raised__({point}, __oracle_e__, __oracle_locals__())",
        node,
    )
    assert isinstance(made, ast.Try)
    made.body += body
    return made


def helpers(tree: ast.Module, broad: bool = False) -> frozenset[str]:
    """The file's own functions and classes that assert, themselves or through another of them, and imported ones such
    as `assert_allclose`; not those that are run as tests. broad: or raise."""
    own = {
        node.name: node for node in tree.body if isinstance(node, (*_FUNCTION, ast.ClassDef)) and not _runs_anyhow(node)
    }
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module != SOLUTION]
    names = {alias.asname or alias.name for node in imports for alias in node.names}
    found = frozenset(name for name in names if name.startswith("assert"))
    while more := {
        name
        for name, node in own.items()
        if name not in found
        and (_judges(node, found) or (broad and any(isinstance(part, ast.Raise) for part in ast.walk(node))))
    }:
        found |= more
    return found


def _runs_anyhow(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether it is a test function, or a class of tests."""
    if isinstance(node, ast.ClassDef):
        return node.name.startswith("Test") or any("TestCase" in ast.unparse(base) for base in node.bases)
    return node.name.startswith("test") and not node.args.args


def _judges(node: ast.AST, helpers: Collection[str]) -> bool:
    """Whether it asserts, or calls or hands over one of these helpers."""
    parts = list(ast.walk(node))
    calls = [part for part in parts if isinstance(part, ast.Call)]
    if any(isinstance(part, ast.Assert) for part in parts) or any(map(_is_check, calls)):
        return True
    return bool(calls) and any(isinstance(part, ast.Name) and part.id in helpers for part in parts)


def _is_check(call: ast.Call) -> bool:
    """`pytest.raises(...)`, `np.testing.assert_equal(...)`. A function of the file's own has to assert: `helpers`."""
    name = ast.unparse(call.func).rpartition(".")[2]
    return name == "raises" or (name.startswith("assert") and isinstance(call.func, ast.Attribute))


def _fixtures(tree: ast.Module) -> set[str]:
    """The names of the fixtures that a file defines."""
    names: set[str] = set()
    for node in ast.walk(tree):
        for one in node.decorator_list if isinstance(node, _FUNCTION) else ():
            if "fixture" in ast.unparse(one):
                given = one.keywords if isinstance(one, ast.Call) else []
                other = [k.value.value for k in given if k.arg == "name" and isinstance(k.value, ast.Constant)]
                names.add(str(other[0]) if other else node.name)  # type: ignore[attr-defined]
    return names


def _bound(node: ast.stmt) -> Iterable[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _inlined(body: Sequence[ast.stmt], helpers: Collection[str]) -> list[ast.stmt]:
    """Without `if __name__ == ...` and calls of test functions, which run anyhow; a test function that only calls
    another function (MultiPL-E's `test_check`) as that call."""
    out: list[ast.stmt] = []
    plain = {n.name for n in body if isinstance(n, ast.FunctionDef) and _runs_anyhow(n)}
    for node in body:
        match node:
            case ast.If(test=ast.Compare(left=ast.Name("__name__"))):
                continue
            case ast.Expr(ast.Call(func=ast.Name(name))) if name in plain:
                continue
            case ast.FunctionDef(name=name, body=[ast.Expr(ast.Call(func=ast.Name(other))) as call]) if (
                name in plain and other in helpers and not node.decorator_list
            ):
                out.append(call)
            case _:
                out.append(node)
    return out


def _called_once(body: Sequence[ast.stmt], helpers: Collection[str]) -> dict[str, ast.Call]:
    """The functions of these that the file calls just once, as a statement of its own."""
    used = [part.id for node in body for part in ast.walk(node) if isinstance(part, ast.Name)]
    functions = {node.name for node in body if isinstance(node, ast.FunctionDef)} & set(helpers)
    return {
        node.value.func.id: node.value
        for node in body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
        if node.value.func.id in functions and used.count(node.value.func.id) == 1
    }


def _shown(node: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call | None) -> dict[str, str] | None:
    """In a check, the parameter's name gives way to that of the function which is handed in."""
    if call is None:
        return None
    pairs = zip(node.args.args, call.args, strict=False)
    return {parameter.arg: given.id for parameter, given in pairs if isinstance(given, ast.Name)}


SMALLEST = 100
"""Nodes of a literal that is put aside."""
_KEPT = "oracle_literal"
_LOAD = ast.Load()


def folded(tree: ast.Module) -> ast.Module:
    """The tree with a stand-in for each large literal, which `unfolded` takes out again."""
    _fold(tree)
    return tree


def unfolded(tree: ast.Module) -> ast.Module:
    return _Unfolding().visit(tree)


def _fold(node: ast.AST) -> int:
    """The size of a literal, in nodes; 0 for anything else, in which the large literals are replaced."""
    if isinstance(node, ast.Constant):
        return 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return 2
    sizes = [(part, _fold(part)) for part in ast.iter_child_nodes(node) if not isinstance(part, ast.expr_context)]
    if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict) and all(size for _, size in sizes):
        return 1 + sum(size for _, size in sizes) if isinstance(getattr(node, "ctx", _LOAD), ast.Load) else 0
    large = {id(part): _stand_in(part) for part, size in sizes if size >= SMALLEST and isinstance(part, ast.expr)}
    if large:
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, name, [large.get(id(part), part) for part in value])  # pyright: ignore
            elif id(value) in large:
                setattr(node, name, large[id(value)])
    return 0


def _stand_in(literal: ast.expr) -> ast.Constant:
    """`...`, which keeps the literal."""
    made = ast.copy_location(ast.Constant(...), literal)
    setattr(made, _KEPT, literal)
    return made


class _Unfolding(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return getattr(node, _KEPT, node)


_ROOM = 100_000
"""Characters that are kept free for an attempt's code."""
_LONGEST = 2 * wire.LIMIT
"""Characters of a tests file. Comments aside, what is longer does not fit on the wire when compiled."""
_SMALLER = "Write the asserts as a loop over rows, make large values by code, or give a smaller part of the file."


@dataclass(frozen=True)
class Plan:
    """`tests` and `points` by index, `calls` the texts of the calls that are noted; `code`: compiled and compressed;
    `why`: what needs one process."""

    tests: tuple[Test, ...]
    points: tuple[Point, ...]
    calls: tuple[tuple[str, bool], ...]
    functions: tuple[tuple[int, str], ...]
    starts: dict[int, int]
    code: bytes
    names: Names
    why: str | None
    modules: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def size(self) -> int:
        return sum(not test.quiet for test in self.tests)

    def job(self, code: str, in_process: bool, seconds: float, limit: float) -> dict[str, Any]:
        """The examiner's job, as plain values. `seconds` for all, `limit` for one test."""
        return {
            "code": code,
            "tests": self.code,
            "points": [{"test": p.test, "line": p.line, "names": p.names, "binds": p.binds} for p in self.points],
            "functions": [list(pair) for pair in self.functions],
            "starts": {str(test): point for test, point in self.starts.items()},
            "wanted": self.names.wanted,
            "firm": self.names.certain,
            "in_process": in_process,
            "seconds": seconds,
            "limit": limit,
        }

    def share(self, seconds: float) -> float:
        """The time of one test, as part of the file's, by default."""
        return seconds / min(max(self.size, 1), 4)


def read(text: str, name: str = "tests.py") -> Plan:
    """The plan of a tests file. Raises `InvalidInput` with file and line for one that cannot be used."""
    text = text.removeprefix("\ufeff")
    if len(text) > _LONGEST:  # to parse it takes seconds, and no signal interrupts that
        raise InvalidInput(
            f"{name} is too large: {len(text):,} characters, and at most {_LONGEST:,} are read. {_SMALLER}"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = folded(ast.parse(text, name))
            names = names_in(tree, text)
    except SyntaxError as error:
        if error.lineno is None:  # a NUL in it, say
            raise InvalidInput(f"{name} cannot be read as Python: {error.msg}") from error
        line = (error.text or "").strip()
        raise InvalidInput(f"{name}, line {error.lineno}: {error.msg}: {line}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise InvalidInput(f"{name} cannot be read as Python: {error}") from error
    if sum(isinstance(node, ast.Assert) for node in tree.body) > MOST_POINTS:
        raise _too_many(name)
    _check_imports(tree, name)
    why = needs_process(tree, names)
    work, tree = _instrumented(tree, text, names, name)
    code = zlib.compress(marshal.dumps(compile(tree, name, "exec", dont_inherit=True)))
    plan = Plan(
        tuple(work.tests),
        tuple(work.points),
        tuple(work.calls),
        tuple(work.functions),
        work.starts,
        code,
        names,
        why,
        foreign(text),
    )
    _check_size(plan, name)
    return plan


def _too_many(name: str) -> InvalidInput:
    return InvalidInput(f"{name} is too large: more than {MOST_POINTS:,} asserts cannot be judged. {_SMALLER}")


def _instrumented(tree: ast.Module, text: str, names: Names, name: str) -> tuple[Instrument, ast.Module]:
    """Raises `InvalidInput` for a file without a test."""
    judges = helpers(tree) & {getattr(node, "name", "") for node in tree.body}
    for broad in (False, True):  # `if f(1) != 2: raise ...` is a test in a file that has no other
        work = Instrument(text, names, name, broad=broad)
        try:
            made = ast.fix_missing_locations(work.module(folded(ast.parse(text)) if broad else tree))
        except wire.TooMuch:
            raise _too_many(name) from None
        if any(not test.quiet for test in work.tests):
            return work, unfolded(made)
    advice = "write asserts such as `assert add(1, 2) == 3`, or functions `def test_...():`"
    if judges:
        advice = f"{min(judges)} asserts, and nothing calls it: add a line such as `{min(judges)}(add)`"
    raise InvalidInput(f"{name} contains no test: {advice}.")


def _check_size(plan: Plan, name: str) -> None:
    """The examiner's job goes over the wire as one value, together with the code of an attempt."""
    try:
        wire.encode(plan.job("x" * _ROOM, False, 1.0, 1.0))
    except wire.TooMuch as error:
        raise InvalidInput(
            f"{name} is too large: {len(plan.points):,} asserts and other statements that can fail, and with the "
            f"values in them more than {wire.LIMIT - _ROOM:,} characters when compiled and compressed. {_SMALLER}"
        ) from error


def _check_imports(tree: ast.Module, name: str) -> None:
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            if node.level:
                raise InvalidInput(
                    f"{name}, line {node.lineno}: a relative import; the attempt's code is `{SOLUTION}`."
                )
            modules = [node.module or ""]
        for module in modules:
            top = module.partition(".")[0]
            if top not in (SOLUTION, "pytest") and importlib.util.find_spec(top) is None:
                line = getattr(node, "lineno", 0)
                raise InvalidInput(
                    f"{name}, line {line}: no module {top!r} is installed here. The attempt's code is imported as "
                    f"`{SOLUTION}`, or used without an import."
                )
