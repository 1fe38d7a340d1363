"""Finds the whole program in a completion, with the parts of the task that it lacks. Nothing is run.

If a task is code, as HumanEval's are, models answer with the whole function or only with its body. Every judge, in the
loop and after it, must see the same whole function.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
import typing
from typing import Literal, TypeAlias

from mulligan.text.python_code import (
    FUNCTIONS,
    asked_for,
    bound,
    extract_code,
    parsed,
    source_of,
    unbound,
    with_preamble,
)
from mulligan.text.rust import extract_rust, items, open_braces, with_imports
from mulligan.text.thoughts import answer_of

Language: TypeAlias = Literal["py", "rs"]
"""The languages of programs that can be judged, by the suffixes of their files."""

_TYPING = frozenset(name for name in dir(typing) if name[0].isupper())
NAMES = {"py": "python", "rs": "rust"}
"""The names of the languages in fences."""


def program(completion: str, task: str, language: Language = "py", *, is_code: bool = False) -> str:
    """Returns the program in a completion, with any missing parts from the task: the function's beginning, helpers and
    imports.

    Text without code is returned stripped. Never raises an exception.

    is_code: Whether the completion is already extracted code.
    """
    whole = _whole_rust if language == "rs" else _whole_python
    if is_code:
        return whole(task, completion)
    completion = answer_of(completion.replace("\r\n", "\n").replace("\r", "\n"))
    if language == "rs":
        return whole(task, extract_rust(completion, asked_for(task)))
    if (signature := parsed(task)) and (body := _as_body(task, signature, completion)):
        return body
    return whole(task, extract_code(completion, asked_for(task)))


def typed(code: str) -> str:
    """Returns the code, preceded by an import of the `typing` names that it uses but does not define.

    Reflexion's code runs all programs after `from typing import *`, and its models relied on this.
    """
    names = sorted(unbound(code) & _TYPING)
    return with_preamble(code, f"from typing import {', '.join(names)}") if names else code


def meaning_solution(tests: str, name: str | None) -> str:
    """Returns tests of the function `name`, which they import if a builtin has the same name."""
    tree = parsed(tests)
    if name is None or not hasattr(builtins, name) or not tree or any(name in bound(node) for node in tree.body):
        return tests
    return with_preamble(tests, f"from solution import {name}")


def runs_by_itself(tests: str, name: str) -> str:
    """Returns hidden tests with a call to their function `check`, unless they already call one of their functions.

    A call under `if __name__ == ...` does not count, because the tests are not run as a script.
    """
    tests = meaning_solution(tests, name)
    tree = parsed(tests)
    body = tree.body if tree else []
    functions = {node.name for node in body if isinstance(node, FUNCTIONS)}
    run = [node for node in body if not isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not _is_main(node)]
    calls = [node.func for statement in run for node in ast.walk(statement) if isinstance(node, ast.Call)]
    called = {call.id for call in calls if isinstance(call, ast.Name)}
    return tests if "check" not in functions or called & functions else f"{tests}\n\ncheck({name})\n"


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))


def _whole_python(task: str, code: str) -> str:
    signature, tree = parsed(task), parsed(code)
    name = asked_for(task)
    if signature is None or name is None or not any(_is(node, name) for node in signature.body):
        return code
    if tree and any(name in bound(statement) for statement in tree.body):
        return _with_helpers(task, signature, code, tree)
    return _as_body(task, signature, code) or code


def _with_helpers(task: str, signature: ast.Module, code: str, tree: ast.Module) -> str:
    """Returns the code after the task's helper functions and imports that it lacks. Unused imports are left out."""
    own = set[str]().union(*map(bound, tree.body))
    missing = [node for node in signature.body if bound(node) and not bound(node) & own]
    helpers = [node for node in missing if not isinstance(node, (ast.Import, ast.ImportFrom))]
    used = unbound("\n".join([code, *(source_of(task, node) for node in helpers)]))
    needed = [node for node in missing if node in helpers or bound(node) & used]
    return with_preamble(code, "\n\n".join(source_of(task, node) for node in needed))


def _as_body(task: str, signature: ast.Module, text: str) -> str | None:
    """Returns the task with this text as the rest of its last function, or None if the text is not such a rest."""
    name = asked_for(task)
    start = next((node for node in signature.body if name and _is(node, name)), None)
    if start is None or not text.strip() or not isinstance(start, FUNCTIONS):
        return None
    margin = " " * start.body[0].col_offset
    text = text.strip("\n").rstrip()
    tree = parsed(text)
    variants = [textwrap.indent(text, margin)] if tree and _returns(tree) else []
    if tree is None:
        variants = [text, margin + text.lstrip()]  # the second for a completion that was stripped
    for variant in variants:
        whole = f"{task.rstrip()}\n{variant}"
        tree = parsed(whole)
        node = next((node for node in tree.body if _is(node, name or "")), None) if tree else None
        if isinstance(node, FUNCTIONS) and len(node.body) > len(start.body):
            return whole
    return None


def _is(node: ast.stmt, name: str) -> bool:
    return isinstance(node, FUNCTIONS) and node.name == name


def _returns(tree: ast.Module) -> bool:
    """Whether the code returns outside any function, as a body does."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return False


def _whole_rust(task: str, code: str) -> str:
    """Returns the code after the task's imports, or as the rest of the function that the task leaves open."""
    name = asked_for(task)
    if name is None or not any(item.name == name for item in items(task)):
        return code
    if any(item.name == name for item in items(code)):
        return with_imports(code, items(task))
    whole = f"{task.rstrip()}\n{code}"
    return whole + "\n}" * max(open_braces(whole), 0)
