"""Instruments a test file for the examiner, so that each of its tests reports itself.

Every assert outside a function is a test of its own, and so is every assert of a function that the file calls once,
such as HumanEval's `check(candidate)`; a `def test_*` is one test. A failing test does not hide those after it:
`assert E` becomes a statement that evaluates E once, in its own scope, notes the values of the calls in it, and tells
the examiner. This module knows nothing of sandboxes.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mulligan.core.errors import InvalidInput
from mulligan.oracle.python import wire
from mulligan.oracle.python.names import PYTEST_FIXTURES, SOLUTION, Names

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
MAX_POINTS = 2_500
"""Instrumenting more takes seconds, and no signal can interrupt that."""


@dataclass(frozen=True)
class Test:
    """A test as it is reported: its text on one line, and its line.

    quiet: it is a statement that is not a test, and is reported only if it fails.
    """

    text: str
    line: int
    quiet: bool = False


@dataclass(frozen=True)
class Point:
    """A place where a test can fail.

    Attributes:
        test: the index of the test; -1: that of the function that runs.
        names: the names whose values explain a failure.
        binds: the names that the statement binds.
    """

    test: int
    line: int
    text: str
    names: tuple[str, ...] = ()
    binds: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Where:
    """What is around an assert.

    Attributes:
        ends: its failure ends its function.
        loops: the variables of the loops around it.
        shown: names that are shown under another name.
        guarded: it is in a loop whose errors belong to the whole loop.
    """

    ends: bool
    loops: tuple[str, ...] = ()
    shown: Mapping[str, str] | None = None
    guarded: bool = False


class Instrument:
    """Instruments one test file. `module` fills the tables.

    broad: a statement that raises an error itself is a test, too.
    """

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
        self._fixtures = _fixtures(tree) | PYTEST_FIXTURES
        self._classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        body = _inlined(tree.body, self._helpers)
        self._checks = _called_once(body, self._helpers)
        statements: list[ast.stmt] = []
        for node in body:
            statements += self._top(node)
        return ast.Module(statements, [])

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
        """Register the methods of a class that are tests, also those that it inherits from classes of the file."""
        lineage = [node]
        for kind in lineage:
            names = [base.id for base in kind.bases if isinstance(base, ast.Name)]
            lineage += [self._classes[name] for name in names if name in self._classes and len(lineage) < 50]
        case = any("TestCase" in ast.unparse(base) for kind in lineage for base in kind.bases)
        if not case and not node.name.startswith("Test"):
            return
        methods: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        for kind in lineage:
            for item in kind.body:
                if isinstance(item, _FUNCTION) and item.name.startswith("test"):
                    methods.setdefault(item.name, item)
        for name, item in methods.items():
            if case or self._takes_nothing(item, node):
                self._register(item, f"{node.name}.{name}")

    def _block(self, body: Sequence[ast.stmt], where: _Where) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        for node in body:
            statements += self._ends_at_failure(node, where) if where.ends else self._independent(node, where)
        return statements

    def _ends_at_failure(self, node: ast.stmt, where: _Where) -> list[ast.stmt]:
        """Rewrite a statement inside a function that ends with its first failure."""
        if isinstance(node, ast.Assert):
            point = self._point(node, -1, where, self._shown_text(node, where.shown))
            begin = _made(f"__oracle_begin__({point})", node)
            check = _made(f"if not TEST: raise __oracle_error__({point}, __oracle_locals__(), MESSAGE)", node)
            return [begin, self._filled(check, node, where)]
        self._inside(node, where)
        return [node]

    def _independent(self, node: ast.stmt, where: _Where) -> list[ast.stmt]:
        """Rewrite a statement whose failure does not hide the tests after it."""
        match node:
            case ast.Assert():
                point = self._test(node, where)
                reporting = _made(
                    f"if TEST: __oracle_passed__({point})\n"
                    f"else: __oracle_failed__({point}, __oracle_locals__(), MESSAGE)",
                    node,
                )
                return [_guarded(point, [self._filled(reporting, node, where)], node)]
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
        """Whether it may handle exceptions: `try`, `raises`, `suppress`, or a context manager of the file."""
        if not isinstance(node, ast.With | ast.AsyncWith):
            return True
        items = " ".join(map(ast.unparse, node.items))
        return "raises" in items or "suppress" in items or not self._own.isdisjoint(re.findall(r"\w+", items))

    def _inside(self, node: ast.AST, where: _Where) -> None:
        """Rewrite the blocks within a statement."""
        if isinstance(node, ast.For | ast.AsyncFor):
            targets = tuple(part.id for part in ast.walk(node.target) if isinstance(part, ast.Name))
            where = replace(where, loops=(*where.loops, *targets))
        elif isinstance(node, ast.While):
            where = replace(where, guarded=True)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, self._block(block, where))  # pyright: ignore[reportUnknownArgumentType]
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self._inside(part, where)

    def _import(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
        """Rewrite imports of `solution`, which is the candidate and not a module that can be found."""
        statements: list[ast.stmt] = []
        for alias in node.names:
            bound = alias.asname or alias.name
            if isinstance(node, ast.ImportFrom) and node.module == SOLUTION:
                bindings = [] if alias.name == "*" else [_made(f"{bound} = __oracle_get__({alias.name!r})", node)]
            elif isinstance(node, ast.Import) and alias.name == SOLUTION:
                bindings = [_made(f"{bound} = __oracle_module__", node)]
            elif isinstance(node, ast.Import):
                bindings = [ast.copy_location(ast.Import([alias]), node)]
            else:
                bindings = [ast.copy_location(ast.ImportFrom(node.module, [alias], 0), node)]
            statements += [self._unit(statement, quiet=True) for statement in bindings]
        return statements

    # --- tables -------------------------------------------------------------------------------------------------

    def _test(self, node: ast.stmt, where: _Where, quiet: bool = False) -> int:
        """Add a test that begins with this statement. Returns the index of its point."""
        text = self._shown_text(node, where.shown)
        self.tests.append(Test(text, node.lineno, quiet))
        return self._point(node, len(self.tests) - 1, where, text)

    def _unit(
        self, node: ast.stmt, *, quiet: bool = False, where: _Where | None = None, inside: _Where | None = None
    ) -> ast.stmt:
        """Wrap a statement as a test, or a quiet one. inside: how to rewrite the blocks within it."""
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
        if len(self.points) > MAX_POINTS:
            raise wire.TooMuch("has too many asserts")
        simple = isinstance(node, ast.Assert | ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign)
        names = self._data(node) if simple else ()
        self.points.append(Point(test, node.lineno, text, (*where.loops, *names), tuple(_bound(node))))
        return len(self.points) - 1

    def _shown_text(self, node: ast.stmt, shown: Mapping[str, str] | None) -> str:
        """A statement on one line, as the user wrote it if it was on one line."""
        if isinstance(node, ast.Assert):
            return "assert " + self._spelled(node.test, shown)
        if isinstance(node, ast.With | ast.Try | ast.For | ast.While | ast.If):
            return " ".join(line.strip() for line in ast.unparse(_renamed(node, shown)).splitlines())
        return self._spelled(node, shown).partition("\n")[0]

    def _spelled(self, node: ast.stmt | ast.expr, shown: Mapping[str, str] | None) -> str:
        renamed = _renamed(node, shown)
        if node.end_lineno != node.lineno or renamed is not node:
            return ast.unparse(renamed)
        # Not by `ast.get_source_segment`, which reads the whole file each time.
        return self._lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()

    def _data(self, node: ast.AST) -> tuple[str, ...]:
        """The names of values in a node: not modules, nor names of the candidate."""
        names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
        unwanted = self._candidate | self._modules
        return tuple(dict.fromkeys(n for n in names if n not in unwanted and not n.startswith("__")))

    def _filled(self, made: ast.stmt, node: ast.Assert, where: _Where) -> ast.stmt:
        """Fill the test of an assert, with its calls noted, and its message into a template."""
        test = _Noting(self, where.shown).visit(node.test)
        holes = {"TEST": test, "MESSAGE": node.msg or ast.Constant(None)}
        return _Filling(holes).visit(made)

    def noted(self, call: ast.Call, shown: Mapping[str, str] | None) -> int | None:
        """The index under which the value of a call is noted; None if it explains nothing, as that of `len(...)`."""
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
        """The names in a call's arguments whose values can safely be read after the call."""
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        parts = [part for value in values for part in ast.walk(value)]
        if any(isinstance(part, ast.IfExp | ast.BoolOp | ast.Lambda | ast.comprehension) for part in parts):
            return []
        names = (name for value in values for name in self._data(value))
        return [name for name in dict.fromkeys(names) if not hasattr(builtins, name)]

    def _takes_nothing(self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ast.ClassDef | None = None) -> bool:
        """Whether a test function can be run without arguments of ours.

        Raises:
            InvalidInput: it needs a fixture that the file does not define.
        """
        decorators = [*node.decorator_list, *(owner.decorator_list if owner else ())]
        if any(
            "pytest" not in ast.unparse(decorator) and "mark" not in ast.unparse(decorator) for decorator in decorators
        ):
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
                f"{self._file}, line {node.lineno}: {node.name} takes {sorted(needed)[0]!r}, which this file "
                f"does not define. Of pytest's own fixtures, only {', '.join(sorted(PYTEST_FIXTURES))} are supported."
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
    """Replaces each of these names by an expression."""

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
    statement = ast.parse(text).body[0]
    for part in ast.walk(statement):
        if hasattr(part, "lineno"):
            ast.copy_location(part, node)
    return statement


def _guarded(point: int, body: list[ast.stmt], node: ast.stmt) -> ast.stmt:
    statement = _made(
        f"try:\n __oracle_begin__({point})\n"
        f"except __oracle_any__ as __oracle_e__:\n __oracle_raised__({point}, __oracle_e__, __oracle_locals__())",
        node,
    )
    assert isinstance(statement, ast.Try)
    statement.body += body
    return statement


def helpers(tree: ast.Module, broad: bool = False) -> frozenset[str]:
    """The functions and classes of a file that assert, directly or through others of them.

    Imported functions such as `assert_allclose` are among them; those that are run as tests are not. broad: also those
    that raise an error.
    """
    own = {
        node.name: node for node in tree.body if isinstance(node, (*_FUNCTION, ast.ClassDef)) and not _runs_anyhow(node)
    }
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module != SOLUTION]
    names = {alias.asname or alias.name for node in imports for alias in node.names}
    known = frozenset(name for name in names if name.startswith("assert"))
    while more := {
        name
        for name, node in own.items()
        if name not in known
        and (_judges(node, known) or (broad and any(isinstance(part, ast.Raise) for part in ast.walk(node))))
    }:
        known |= more
    return known


def _runs_anyhow(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether it is a test function, or a class of tests."""
    if isinstance(node, ast.ClassDef):
        return node.name.startswith("Test") or any("TestCase" in ast.unparse(base) for base in node.bases)
    return node.name.startswith("test") and not node.args.args


def _judges(node: ast.AST, helpers: Collection[str]) -> bool:
    """Whether a node asserts, or calls or passes on one of these helpers."""
    parts = list(ast.walk(node))
    calls = [part for part in parts if isinstance(part, ast.Call)]
    if any(isinstance(part, ast.Assert) for part in parts) or any(map(_is_check, calls)):
        return True
    return bool(calls) and any(isinstance(part, ast.Name) and part.id in helpers for part in parts)


def _is_check(call: ast.Call) -> bool:
    """Whether it is a call such as `pytest.raises(...)` or `np.testing.assert_equal(...)`."""
    name = ast.unparse(call.func).rpartition(".")[2]
    return name == "raises" or (name.startswith("assert") and isinstance(call.func, ast.Attribute))


def _fixtures(tree: ast.Module) -> set[str]:
    """The names of the fixtures that a file defines."""
    names: set[str] = set()
    for node in ast.walk(tree):
        for decorator in node.decorator_list if isinstance(node, _FUNCTION) else ():
            if "fixture" in ast.unparse(decorator):
                keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
                named = [k.value.value for k in keywords if k.arg == "name" and isinstance(k.value, ast.Constant)]
                names.add(str(named[0]) if named else node.name)  # type: ignore[attr-defined]
    return names


def _bound(node: ast.stmt) -> Iterable[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _inlined(body: Sequence[ast.stmt], helpers: Collection[str]) -> list[ast.stmt]:
    """The statements without `if __name__ == ...` and without calls of test functions, which are run anyhow.

    A test function that only calls a helper, such as MultiPL-E's `test_check`, becomes that call.
    """
    statements: list[ast.stmt] = []
    run_anyhow = {n.name for n in body if isinstance(n, ast.FunctionDef) and _runs_anyhow(n)}
    for node in body:
        match node:
            case ast.If(test=ast.Compare(left=ast.Name("__name__"))):
                continue
            case ast.Expr(ast.Call(func=ast.Name(name))) if name in run_anyhow:
                continue
            case ast.FunctionDef(name=name, body=[ast.Expr(ast.Call(func=ast.Name(other))) as call]) if (
                name in run_anyhow and other in helpers and not node.decorator_list
            ):
                statements.append(call)
            case _:
                statements.append(node)
    return statements


def _called_once(body: Sequence[ast.stmt], helpers: Collection[str]) -> dict[str, ast.Call]:
    """The helpers that a file calls just once, in a statement of its own, with that call."""
    used = [part.id for node in body for part in ast.walk(node) if isinstance(part, ast.Name)]
    functions = {node.name for node in body if isinstance(node, ast.FunctionDef)} & set(helpers)
    return {
        node.value.func.id: node.value
        for node in body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
        if node.value.func.id in functions and used.count(node.value.func.id) == 1
    }


def _shown(node: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call | None) -> dict[str, str] | None:
    """For each parameter of a check, the name of the function that is passed to it, under which it is shown."""
    if call is None:
        return None
    pairs = zip(node.args.args, call.args, strict=False)
    return {parameter.arg: argument.id for parameter, argument in pairs if isinstance(argument, ast.Name)}
