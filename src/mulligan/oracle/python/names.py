"""Finds the names in a test file that mean the candidate, and whether the tests need it in their own process.

Only the tests are read. If the candidate's code had a say, it could choose the path that can be forged.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

SOLUTION = "solution"
_CLASS = re.compile(r"_*[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
_TOUCHY = frozenset({"inspect", "asyncio", "unittest", "threading", "gc", "weakref", "dis", "tracemalloc"}) | {
    *("tempfile", "shutil", "logging", "warnings", "locale", "signal", "socket", "multiprocessing", "concurrent"),
    *("contextvars", "importlib", "builtins", "sqlite3", "doctest", "pickle", "atexit", "resource", "fileinput"),
}
_NETWORK = frozenset({"socket", "socketserver", "http", "urllib", "xmlrpc", "ssl", "smtplib", "ftplib"}) | {
    *("imaplib", "poplib", "requests", "httpx", "aiohttp", "websockets"),
}
_CAPTURES = frozenset({"redirect_stdout", "redirect_stderr", "stdout", "stderr", "stdin", "settrace", "_getframe"}) | {
    *("get_type_hints", "signature", "wraps", "singledispatch", "warns", "deprecated_call"),
}
_STATE = frozenset({"seed", "setstate", "getcontext", "setcontext", "localcontext", "setrecursionlimit", "environ"}) | {
    *("putenv", "unsetenv", "chdir", "getcwd", "listdir", "scandir", "remove", "rename", "makedirs"),
    *("mkdir", "rmdir", "unlink", "touch", "walk", "stat", "isfile", "isdir", "getsize", "abspath", "realpath"),
    *("exists", "is_file", "is_dir", "iterdir", "glob", "rglob", "resolve", "absolute", "cwd", "home", "tzset"),
    *("read_text", "read_bytes", "write_text", "write_bytes", "set_int_max_str_digits", "getenv", "system", "popen"),
}
"""Names of modules that give access to the state of a process: its files, settings and random numbers."""
PYTEST_FIXTURES = frozenset({"tmp_path", "monkeypatch", "capsys"})
"""The fixtures of pytest that a test may ask for. Each acts on the process."""
_ENDLESS = frozenset({"count", "cycle", "repeat"})
_METHODS = frozenset(
    name
    for kind in (str, bytes, bytearray, list, tuple, dict, set, frozenset, int, float, complex, range, BaseException)
    for name in dir(kind)
) | frozenset(
    {
        *("numerator", "denominator", "quantize", "as_tuple", "appendleft", "popleft", "rotate", "maxlen"),
        *("most_common", "elements", "total", "subtract", "move_to_end", "default_factory", "value", "match"),
        *("year", "month", "day", "hour", "minute", "second", "microsecond", "isoformat", "strftime", "weekday"),
        *("isoweekday", "date", "time", "timestamp", "days", "seconds", "microseconds", "total_seconds", "errno"),
    }
)
"""Attributes of plain values: the tests may look at these on the outside path."""
_OF_ARRAYS = frozenset(
    {"all", "any", "astype", "dtype", "flatten", "max", "mean", "min", "ndim", "ravel", "reshape"}
) | {
    *("round", "shape", "size", "std", "sum", "T", "tolist", "transpose"),
}
"""Likewise, of arrays of numpy, in tests that import it."""
_LOOKS = frozenset({"abs", "all", "any", "bool", "dict", "float", "frozenset", "int", "isinstance", "len", "list"}) | {
    *("repr", "round", "set", "str", "tuple", "type"),
}
"""Builtins that tests put around a call to look at its value."""
_NEVER_MEANT = frozenset({"exit", "globals", "locals", "print", "quit", "super"})


@dataclass(frozen=True)
class Names:
    """The names in a test file that mean the candidate.

    Attributes:
        wanted: names that the tests use and do not define, so the candidate has to.
        certain: names that are called, imported or constants, so that it is the candidate's fault if they are missing,
            and not a mistake in the tests.
    """

    wanted: tuple[str, ...]
    certain: tuple[str, ...]


def names_in(tree: ast.Module, text: str) -> Names:
    """The names that the candidate must define."""
    top = symtable.symtable(text, "tests", "exec")
    defined = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    names = {name for name in _globals(top) if name not in defined} - {"__name__", "__file__", "__doc__"}
    free = {name for name in names if not hasattr(builtins, name)}
    nodes, aliases = tuple(ast.walk(tree)), _aliases(tree)
    free |= _builtins_meant(tree, names - free, alone=not free and SOLUTION not in _modules(nodes))
    certain = {name for name in free if name.isupper()}
    for node in nodes:
        if isinstance(node, ast.Call):
            used = [node.func, *node.args, *(k.value for k in node.keywords)]
            certain |= {part.id for part in used if isinstance(part, ast.Name)} & free
        elif isinstance(node, ast.ImportFrom) and node.module == SOLUTION:
            certain |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            certain.add(node.attr)
    return Names(tuple(sorted(free)), tuple(sorted(certain)))


def _builtins_meant(tree: ast.Module, named: set[str], alone: bool) -> set[str]:
    """The builtin functions, among `named`, that mean functions of the candidate.

    These are the ones that are passed to `check`. If the tests use no other name of the candidate (alone), they are the
    ones that are passed to another function of the tests that calls them, else those that the tests call.
    """
    named = {name for name in named if name.islower() and not name.startswith("_")} - _NEVER_MEANT
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    handed: dict[str, set[str]] = {}
    for node in ast.walk(tree) if named and (alone or "check" in functions) else ():
        match node:
            case ast.Call(func=ast.Name(function), args=[ast.Name(name), *_]) if (
                function in functions and name in named and _calls_its_first(functions[function])
            ):
                handed.setdefault(function, set()).add(name)
            case _:
                pass
    if "check" in handed or not alone:
        return handed.get("check", set())
    return set[str]().union(*handed.values()) if handed else _looked_at(tree, set(functions), named)


def _calls_its_first(function: ast.FunctionDef) -> bool:
    """Whether a function calls its first parameter, or passes it on."""
    first = next((a.arg for a in (*function.args.posonlyargs, *function.args.args)), None)
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(isinstance(part, ast.Name) and part.id == first for call in calls for part in (call.func, *call.args))


def _looked_at(tree: ast.Module, functions: set[str], named: set[str]) -> set[str]:
    """The builtin that every assert calls; of several, the outermost. If there is none, the outermost of each assert.

    If no assert calls a builtin, the assignments decide in the same way, and then the bare calls.
    """
    helpers = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (node.args or node.keywords)
    } & functions
    body = [node for node in tree.body if getattr(node, "name", None) not in helpers]
    outside = [part for node in body for part in ast.walk(node)]
    bare = [node for node in outside if isinstance(node, ast.Expr)]
    checked = [node for node in bare if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in helpers]
    asserts = [node.test for node in outside if isinstance(node, ast.Assert)]
    assigned = [node for node in outside if isinstance(node, ast.Assign | ast.AnnAssign)]
    for level in ((*asserts, *checked), assigned, bare):
        rows = [(set(_calls(node, named)), _outermost(node, named)) for node in level]
        rows = [row for row in rows if row[0]]
        if rows:
            every = set[str].intersection(*(called for called, _ in rows))
            outermost = set[str]().union(*(names for _, names in rows))
            return every & outermost or every or outermost
    return set()


def _outermost(node: ast.AST, named: set[str]) -> set[str]:
    """The builtins whose calls are not inside another one; of a comparison, those in its first side that has any.

    `list(...)`, `len(...)` and the like count only if there is no other.
    """
    if isinstance(node, ast.Compare):
        sides = (_outermost(side, named) for side in (node.left, *node.comparators))
        return next(filter(None, sides), set[str]())
    for kinds in (named - _LOOKS, named):
        if names := set(_calls(node, kinds, deeper=False)):
            return names
    return set()


def _calls(node: ast.AST, named: set[str], deeper: bool = True) -> Iterator[str]:
    """The names, among `named`, that a node calls. deeper: also those inside such a call."""
    match node:
        case ast.Call(func=ast.Name(name)) if name in named:
            yield name
            if not deeper:
                return
        case _:
            pass
    for part in ast.iter_child_nodes(node):
        yield from _calls(part, named, deeper)


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    is_top = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (is_top or symbol.is_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _globals(child)


def foreign(code: str) -> frozenset[str]:
    """Top-level modules that the code imports and Python does not have. Only lines are read: hostile code is not
    parsed."""
    modules = re.findall(r"^[ \t]*(?:import|from)[ \t]+(\w+)", code, re.MULTILINE)
    return frozenset(modules) - sys.stdlib_module_names - {SOLUTION, "pytest", "__future__"}


def uses_network(tree: ast.Module) -> bool:
    """Whether the tests import a module that opens sockets. The sandbox permits none."""
    return not _NETWORK.isdisjoint(_modules(ast.walk(tree)))


def needs_process(tree: ast.Module, names: Names) -> str | None:
    """Why these tests need the candidate in their own process; None if they do not."""
    nodes, aliases = tuple(ast.walk(tree)), _aliases(tree)
    candidate = set(names.wanted) | set(names.certain)
    imported = {alias.asname or alias.name.partition(".")[0] for alias in _imports(nodes)}
    modules = _modules(nodes)
    if touchy := sorted(modules & _TOUCHY):
        return f"the tests import {touchy[0]}"
    if others := sorted(modules - sys.stdlib_module_names - {SOLUTION, "pytest", "numpy"}):
        return f"the tests import {others[0]}, whose values only one process can hold"
    if classes := sorted(name for name in candidate if _CLASS.fullmatch(name)):
        return f"the tests use the candidate's class {classes[0]}"
    defined = imported | {node.name for node in nodes if isinstance(node, ast.ClassDef)} | {"self", "cls"} | aliases
    assigned = _assigned(nodes)
    defined |= {
        name for name, value in assigned.items() if _from_module(value, defined) and not _mentions(value, candidate)
    }
    plain = _METHODS | _OF_ARRAYS if "numpy" in modules else _METHODS
    if reason := _state(nodes, candidate, imported | aliases, modules):
        return reason
    for node in nodes:
        if reason := _reason(node, candidate, defined, assigned, plain):
            return f"line {node.lineno} of the tests {reason}"  # type: ignore[attr-defined]
    return None


def _state(nodes: Sequence[ast.AST], candidate: set[str], imported: set[str], modules: set[str]) -> str | None:
    """Why these tests depend on the state of the candidate's process, or of an iterator that both of them read."""
    read, handed = dict[str, int](), set[str]()
    for node in nodes:
        reason = None
        match node:
            case ast.Attribute(value=value, attr=attr, ctx=ctx) if _from_module(value, imported):
                if not isinstance(ctx, ast.Load):
                    reason = f"sets {ast.unparse(node)}"
                elif attr in _STATE:
                    reason = f"uses {ast.unparse(node)}"
                elif attr in _ENDLESS and "itertools" in modules:
                    reason = "makes an endless iterator"
            case ast.Name(name, ctx=ast.Load()) if name in imported and name in _STATE | _CAPTURES:
                reason = f"uses {name}"
            case ast.Name(name, ctx=ast.Load()) if name in imported & _ENDLESS and "itertools" in modules:
                reason = "makes an endless iterator"
            case ast.Call(func=ast.Name("open")) if "open" not in candidate:
                reason = "opens a file"
            case ast.While(test=ast.Constant(True)) if any(isinstance(part, ast.Yield) for part in ast.walk(node)):
                reason = "makes an endless iterator"
            case ast.ClassDef(bases=bases) if any(
                isinstance(base, ast.Name) and base.id in candidate for base in bases
            ):
                reason = "makes a subclass of a class of the candidate's"
            case ast.Call(func=ast.Name("next" | "list" | "tuple" | "sum"), args=[ast.Name(name), *_]):
                read[name] = node.lineno
            case ast.Call(func=ast.Name(function), args=args) if function in candidate:
                handed |= {part.id for part in args if isinstance(part, ast.Name)}
            case _:
                pass
        if reason:
            return f"line {node.lineno} of the tests {reason}"  # type: ignore[attr-defined]
    iterators = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and _makes_iterator(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    shared = sorted(iterators & handed & set(read))
    return f"line {read[shared[0]]} of the tests reads {shared[0]}, which it also hands over" if shared else None


def _makes_iterator(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in ("iter", "map", "filter", "zip", "enumerate", "reversed")
    return isinstance(value, ast.GeneratorExp)


def _reason(
    node: ast.AST, candidate: set[str], defined: set[str], assigned: Mapping[str, ast.Call], allowed: frozenset[str]
) -> str | None:
    """Why a node needs the candidate in the process of the tests, as the end of 'line 3 of the tests ...'."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=right) if any(
            isinstance(op, ast.Is | ast.IsNot) for op in ops
        ):
            if not any(isinstance(side, ast.Constant) for side in (left, *right)) and not _is_type(left, right):
                return "compares identity"
        case ast.Call(func=ast.Name("id" | "vars" | "dir" | "getattr" | "setattr" | "hasattr" as name)) if (
            name not in candidate
        ):
            return f"looks inside objects with {name}"
        case ast.Call(func=ast.Name(name), args=args) if name in candidate:
            if name.isupper():
                return f"uses the candidate's class {name}"
            if any(isinstance(part, ast.Lambda) for part in args):
                return "hands over a function"
        case ast.Call(func=ast.Call()):
            return "calls what a call returned"
        case ast.Call(func=ast.Name(name)) if name in assigned:
            return f"calls {name}, which was made at run time"
        case ast.Attribute(attr=attr) if attr in _CAPTURES:
            return f"reads {attr}"
        case ast.Attribute(value=ast.Name(name)) if name in defined:
            return None
        case ast.Attribute(value=ast.Name(name), attr=attr) if name in candidate:
            return f"reads {name}.{attr}"
        case ast.Attribute(attr=attr, value=value) if attr not in allowed and not _from_module(value, defined):
            return f"reads the attribute {attr}"
        case ast.AsyncFunctionDef() | ast.Await():
            return "is asynchronous"
        case ast.FunctionDef(args=ast.arguments(args=args)) if asked := sorted(PYTEST_FIXTURES & {a.arg for a in args}):
            return f"asks for {asked[0]}"
        case _:
            return None
    return None


def _is_type(left: ast.expr, others: list[ast.expr]) -> bool:
    """Whether it is a comparison such as `type(x) is int`, which does not compare the identity of values."""
    return any(isinstance(side, ast.Call) and ast.unparse(side.func) == "type" for side in (left, *others))


def _from_module(value: ast.expr, own: set[str]) -> bool:
    """Whether a chain of attributes and calls begins with a name that the tests import or define."""
    while isinstance(value, ast.Attribute | ast.Call):
        value = value.value if isinstance(value, ast.Attribute) else value.func
    return isinstance(value, ast.Name) and value.id in own


def _imports(nodes: Sequence[ast.AST]) -> Iterator[ast.alias]:
    """The imported names, without the candidate."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias for alias in node.names if alias.name != SOLUTION)
        elif isinstance(node, ast.ImportFrom) and node.module != SOLUTION:
            yield from node.names


def _aliases(tree: ast.Module) -> set[str]:
    """The names under which `solution` itself is imported."""
    imports = (alias for node in tree.body if isinstance(node, ast.Import) for alias in node.names)
    return {alias.asname or alias.name for alias in imports if alias.name == SOLUTION}


def _modules(nodes: Iterable[ast.AST]) -> set[str]:
    """The top-level modules that are imported."""
    modules: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add((node.module or "").partition(".")[0])
    return modules


def _assigned(nodes: Sequence[ast.AST]) -> dict[str, ast.Call]:
    """The names that are assigned the result of a call, with the last such call."""
    return {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _mentions(value: ast.expr, names: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(value))
