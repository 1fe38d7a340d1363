"""LeetcodeHard (Shinn et al. 2023): the examples of a question are visible tests; only leetcode.com has hidden ones."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from mulligan.bench.programming import _programs
from mulligan.bench.programming._programs import methods
from mulligan.plugins import Case, Episode, InvalidInput, Method, Score, Source, Spec, Task, asked_for, parsed, text_in

_VISIBLE = Spec("given_tests", {"tests": ["assert True"]})
"""A placeholder, in which `play` puts the tests of the case."""
_EXAMPLE = re.compile(
    r"""^Input\b[ :]*(?P<given>.+?)^Output\b[ :]*(?P<wanted>.+?)
        (?=^[ \t]*$|^(?:Explanation|Example|Input|Constraints|Note|def)\b)""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_SEVERAL = re.compile(r"\bany (?:order|of them|valid|such|solution|one)\b|\bmultiple (?:answers|solutions|valid)", re.I)
"""Phrases in a prompt that allow several answers."""
_PLAIN_TYPES = frozenset({"int", "float", "str", "bool", "List", "list", "Optional", "Tuple", "tuple", "Dict", "dict"})
_CONSTANTS = {"true": True, "false": False, "null": None}


class Leetcode:
    """The benchmark LeetcodeHard.

    A row has `prompt` and either `task_id` and `visible_tests` (asserts), or, as in the reference's file of all 296
    questions, `entry_point` as its id and the examples in the prompt. If these cannot be read as tests, the model
    writes its own.

    Args:
        seconds: time limit for each test.
    """

    title = (
        "LeetcodeHard: visible tests judge in the loop; only the website has the final verdict, so cases end unjudged"
    )
    data = "leetcode-hard-py*.jsonl"
    sources: Sequence[Source] = ()
    where = (
        "https://github.com/GammaTauAI/leetcode-hard-gym has leetcode-hard-py.jsonl (296 questions) in "
        "leetcode_dataset/data at commit 8586829, and makes newer ones with an account of your own"
    )

    def __init__(self, *, seconds: float = 5.0) -> None:
        self._seconds = seconds
        self._visible: dict[str, Sequence[str]] = {}

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        cases = list[Case]()
        for file, line, row in _programs.read_rows(files):
            prompt, listed = text_in(str(file), line, row, "prompt"), "visible_tests" in row
            if asked_for(prompt) is None:
                raise InvalidInput(
                    f"{file}, line {line}: 'prompt' must end with the header of the function or class to write."
                )
            id = text_in(str(file), line, row, "task_id" if listed else "entry_point")
            self._visible[id] = _tests(file, line, row["visible_tests"]) if listed else list(_examples(prompt))
            cases.append(Case(id, Task(prompt), None))
        _programs.check_unique(files, [case.id for case in cases])
        return cases

    def methods(self) -> Mapping[str, Method]:
        return methods("py", _VISIBLE)

    def play(self, case: Case, method: Method) -> Method:
        if method.evaluator != _VISIBLE:
            return method
        settings = {"tests": list(self._visible[case.id]), "seconds": self._seconds}
        evaluator = Spec("given_tests", settings) if settings["tests"] else Spec("internal_tests")
        return replace(method, evaluator=evaluator)

    async def score(self, case: Case, episode: Episode) -> Score:
        return Score(None, "Only leetcode.com has the hidden tests, and nothing is sent there: unjudged.")


def _tests(file: Path, line: int, value: Any) -> list[str]:
    """The asserts under "visible_tests". Raises `InvalidInput`."""
    where = f"{file}, line {line}: 'visible_tests'"
    tests = cast(list[Any], value) if isinstance(value, list) else []
    if not tests or not all(isinstance(test, str) for test in tests):
        raise InvalidInput(f"{where} should be a list of asserts.")
    tests = [textwrap.dedent(test).strip() for test in tests]  # the reference's are indented
    for test in tests:
        if parsed(test) is None or "assert" not in test:
            raise InvalidInput(f"{where}: this is not a valid assert: {test[:80]!r}.")
    return tests


def _examples(prompt: str) -> Iterator[str]:
    """The examples in the comments of a prompt, as asserts.

    Yields nothing if several answers are right, or if values are instances of classes that only the site has.
    """
    tree = parsed(f"{prompt.rstrip()}\n    pass")
    node = tree.body[-1] if tree and tree.body else None
    if not isinstance(node, ast.FunctionDef) or _SEVERAL.search(prompt) or not _is_plain(node):
        return
    names = [argument.arg for argument in node.args.args]
    has_self = names[:1] == ["self"]
    comments = re.sub(r"^# ?", "", prompt, flags=re.MULTILINE)
    for example in _EXAMPLE.finditer(comments):
        inputs, outputs = _values(f"f({example['given'].strip()})"), _values(f"f({example['wanted'].strip()})")
        if inputs is None or outputs is None or len(outputs) != 1 or len(inputs) != len(names) - has_self:
            continue
        if "" not in inputs and list(inputs) != names[has_self:]:
            continue
        (expected,) = outputs.values()
        call = f"{node.name}({', '.join([*(['None'] if has_self else []), *map(repr, inputs.values())])})"
        is_float = isinstance(expected, float)
        yield f"assert abs({call} - {expected!r}) <= 1e-05" if is_float else f"assert {call} == {expected!r}"


def _is_plain(node: ast.FunctionDef) -> bool:
    """Whether the function takes and returns only values that have literals."""
    annotations = [*(argument.annotation for argument in node.args.args if argument.arg != "self"), node.returns]
    if node.returns is None or (isinstance(node.returns, ast.Constant) and node.returns.value is None):
        return False
    parts = [part for annotation in annotations if annotation for part in ast.walk(annotation)]
    quoted = any(isinstance(part, ast.Constant) for part in parts)
    return {part.id for part in parts if isinstance(part, ast.Name)} <= _PLAIN_TYPES and not quoted


def _values(call: str) -> dict[str, Any] | None:
    """The arguments of a call by name. A single argument can have no name (""). None: one of them is not a literal."""
    tree = parsed(call)
    node = tree.body[0] if tree and len(tree.body) == 1 else None
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call) or len(node.value.args) > 1:
        return None
    arguments = [("", value) for value in node.value.args]
    arguments += [(keyword.arg or "", keyword.value) for keyword in node.value.keywords]
    try:
        return {name: ast.literal_eval(_Constants().visit(value)) for name, value in arguments}
    except (ValueError, TypeError):
        return None


class _Constants(ast.NodeTransformer):
    """Replaces JSON's names of constants with those of Python."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_CONSTANTS[node.id]) if node.id in _CONSTANTS else node
