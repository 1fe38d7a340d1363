"""The whole program in a completion: its code, and around a body the function that the task began.

Models answer a task that is code, as HumanEval's are, with the whole function or with what comes after the prompt;
every judge, in the loop and after it, has to see the same whole function. Nothing is run.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
import typing
from typing import Literal, TypeAlias

from mulligan.text.python_code import FUNCTIONS, asked_for, bound, extract_code, parsed, source_of, unbound
from mulligan.text.rust import extract_rust, items, open_braces, with_imports
from mulligan.text.thoughts import answer_of

Language: TypeAlias = Literal["py", "rs"]
"""The languages of programs that can be judged, by the endings of their files."""

_TYPING = frozenset(name for name in dir(typing) if name[0].isupper())
# As fences name them.
NAMES = {"py": "python", "rs": "rust"}


def program(said: str, task: str, language: Language = "py") -> str:
    """The program in what a model said to this task. A completion without code comes back stripped. Never raises."""
    said = answer_of(said.replace("\r\n", "\n").replace("\r", "\n"))
    if language == "rs":
        return whole(extract_rust(said, asked_for(task)), task, language)
    if (signature := parsed(task)) and (body := _as_body(task, signature, said)):
        return body
    return whole(extract_code(said, asked_for(task)), task)


def whole(code: str, task: str, language: Language = "py") -> str:
    """Code that was taken out already, with what it lacks of the task: how its function begins, helpers, imports."""
    return _whole_rust(task, code) if language == "rs" else _whole_python(task, code)


def typed(code: str) -> str:
    """The code after an import of the names of `typing` that it uses and never binds.

    Reflexion's code runs all programs behind `from typing import *`, and its models relied on it.
    """
    names = sorted(unbound(code) & _TYPING)
    return _behind_future(f"from typing import {', '.join(names)}", code, parsed(code)) if names else code


def meaning_solution(tests: str, name: str | None) -> str:
    """These tests of the function `name`, which they import where they would otherwise mean a builtin of that name."""
    tree = parsed(tests)
    if name is None or not hasattr(builtins, name) or not tree or any(name in bound(node) for node in tree.body):
        return tests
    return _behind_future(f"from solution import {name}", tests, tree)


def runs_by_itself(tests: str, name: str) -> str:
    """These hidden tests with a call of `check` on the function `name` where they define one and call nothing of their
    own, as HumanEval's do. A call behind `if __name__ == ...` counts for none: tests are not run as a program."""
    tests = meaning_solution(tests, name)
    tree = parsed(tests)
    body = tree.body if tree else []
    defined = {node.name for node in body if isinstance(node, FUNCTIONS)}
    done = [one for one in body if not isinstance(one, (*FUNCTIONS, ast.ClassDef)) and not _as_program(one)]
    calls = [node.func for one in done for node in ast.walk(one) if isinstance(node, ast.Call)]
    called = {call.id for call in calls if isinstance(call, ast.Name)}
    return tests if "check" not in defined or called & defined else f"{tests}\n\ncheck({name})\n"


def _as_program(node: ast.stmt) -> bool:
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
    """The code after what the task itself gives and it lacks: helper functions, and the imports that it uses."""
    there = set[str]().union(*map(bound, tree.body))
    lacking = [one for one in signature.body if bound(one) and not bound(one) & there]
    kept = [one for one in lacking if not isinstance(one, (ast.Import, ast.ImportFrom))]
    used = unbound("\n".join([code, *(source_of(task, one) for one in kept)]))
    kept = [one for one in lacking if one in kept or bound(one) & used]
    if not kept:
        return code
    before = "\n\n".join(source_of(task, one) for one in kept)
    return _behind_future(before, code, tree)


def _behind_future(before: str, code: str, tree: ast.Module | None) -> str:
    """`before` and the code, whose `from __future__` has to stand first."""
    body = tree.body if tree else []
    own = [one for one in body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
    if not own:
        return f"{before}\n\n\n{code}"
    lines, end = code.split("\n"), own[-1].end_lineno or 0
    return "\n".join([*lines[:end], before, *lines[end:]])


def _as_body(task: str, signature: ast.Module, text: str) -> str | None:
    """The task with this text as the rest of its last function; None where that is no function with a body."""
    name = asked_for(task)
    start = next((node for node in signature.body if name and _is(node, name)), None)
    if start is None or not text.strip() or not isinstance(start, FUNCTIONS):
        return None
    margin = " " * start.body[0].col_offset
    text = text.strip("\n").rstrip()
    tree = parsed(text)
    variants = [textwrap.indent(text, margin)] if tree and _returns(tree) else []
    if tree is None:
        variants = [text, margin + text.lstrip()]  # the second: a completion that was stripped
    for variant in variants:
        whole = f"{task.rstrip()}\n{variant}"
        made = parsed(whole)
        node = next((node for node in made.body if _is(node, name or "")), None) if made else None
        if isinstance(node, FUNCTIONS) and len(node.body) > len(start.body):
            return whole
    return None


def _is(node: ast.stmt, name: str) -> bool:
    return isinstance(node, FUNCTIONS) and node.name == name


def _returns(tree: ast.Module) -> bool:
    """Whether it returns outside of any function, as a body does."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return False


def _whole_rust(task: str, code: str) -> str:
    """After the imports of the task, or as the rest of the function that it leaves open."""
    name = asked_for(task)
    own = items(code)
    if name is None or not any(item.name == name for item in items(task)):
        return code
    if any(item.name == name for item in own):
        return with_imports(code, items(task))
    whole = f"{task.rstrip()}\n{code}"
    return whole + "\n}" * max(open_braces(whole), 0)
