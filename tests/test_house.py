"""The rules of the house, as tests: reasons for long files and functions, arrows that point one way, quiet imports.

`make check` runs all of them; those that read the whole source are slow.
"""

import ast
import importlib
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from measures import in_circles
from rooms import (
    MOST_NAMES,
    PUBLIC,
    ROOT,
    SRC,
    crossings,
    imports,
    imports_from_the_middle,
    statements,
    wrong_crossings,
)

HEAVY = {"pydantic", "pydantic_ai", "numpy", "rich", "click", "mcp", "starlette", "xllamacpp", "openai", "anthropic"}


def sources() -> list[Path]:
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.py"], cwd=ROOT, capture_output=True)
    files = [ROOT / line for line in tracked.stdout.decode().splitlines() if (ROOT / line).is_file()]
    environments = {file.parent for file in ROOT.glob("*/pyvenv.cfg")}  # whatever they are called
    return [file for file in files if not environments.intersection(file.parents)]


OUTSIDE = {
    "mulligan.app.sessions": "finish project_bank",
    "mulligan.app.transcripts": "read_transcript",
    "mulligan.core.lessons": "Lesson Selection",
    "mulligan.core.records": "Attempt Episode Task Trial",
    "mulligan.evaluators.contains": "Contains",
    "mulligan.evaluators.exact_match": "ExactMatch",
    "mulligan.evaluators.unit_tests": "UnitTests",
    "mulligan.hooks.agents": "agent",
    "mulligan.hooks.corrections": "correction_in",
    "mulligan.hooks.entry": "answer SWITCH RECALL",
    "mulligan.hooks.events": "Call Notice",
    "mulligan.hooks.journal": "Journal",
    "mulligan.hooks.pairs": "State find happened",
    "mulligan.langgraph": "BankStore BioCypherPromptEngine ask_graph create_reflexion_graph",
    "mulligan.models.json_answers": "parse",
    "mulligan.models.scripted": "ScriptedModel",
    "mulligan.sandbox.local": "LocalSandbox",
    "mulligan.text.python_code": "extract_code",
}
"""What scripts outside the repository import, such as the exam over real sessions."""


@pytest.mark.parametrize("module", OUTSIDE)
def test_what_scripts_outside_import_stays_where_it_is(module: str) -> None:
    loaded = importlib.import_module(module)
    assert [name for name in OUTSIDE[module].split() if not hasattr(loaded, name)] == []


LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}
"""What may be longer than the alarm, by path (`file.py` or `file.py:function`), and why it is one idea all the same."""


def test_a_long_file_has_a_reason() -> None:
    files = sources()
    assert len(files) > 20
    long = {str(f.relative_to(ROOT)) for f in files if len(f.read_text().splitlines()) > 700}
    assert long == set(LONG_FILES)


@pytest.mark.slow
def test_a_long_function_has_a_reason() -> None:
    long: set[str] = set()
    for file in sources():
        text = file.read_text()
        for node in statements(ast.parse(text)) if text.count("\n") > 100 else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > 100:
                    long.add(f"{file.relative_to(ROOT)}:{node.name}")
    assert long == set(LONG_FUNCTIONS)


@pytest.mark.slow
def test_imports_point_one_way() -> None:
    assert len(crossings()) > 500
    assert wrong_crossings() == []


@pytest.mark.slow
def test_side_houses_take_no_more_names_from_the_middle() -> None:
    assert 50 < len(imports_from_the_middle()) <= MOST_NAMES


@pytest.mark.slow
def test_no_module_imports_itself_in_a_circle() -> None:
    assert in_circles(SRC) == []


def test_core_is_standard_library_only() -> None:
    known = sys.stdlib_module_names | {"mulligan"}
    foreign = [
        f"{file.name}:{line}: {dotted}"
        for file in (SRC / "core").rglob("*.py")
        for dotted, line in imports(file)
        if dotted.split(".")[0] not in known
    ]
    assert foreign == []


POSIX = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"}
LINUX_PROCESSES = {"sandbox/confine.py", "graphs/_worker.py"}
"""Imported only by processes that are never started on Windows."""


def test_no_two_test_files_have_one_name() -> None:
    """pytest cannot collect both in one run, and whoever runs a part of the tests does not notice."""
    names = sorted(file.name for file in sources() if file.name.startswith("test_"))
    assert [name for name, other in pairwise(names) if name == other] == []


def test_modules_that_windows_does_not_have_are_imported_where_they_are_used() -> None:
    """On Windows the bank and the server work, and `solve` says where it runs: tests/other_systems."""
    at_the_top = {
        str(file.relative_to(SRC))
        for file in SRC.rglob("*.py")
        for names in re.findall(r"^import (.+)", file.read_text(), re.MULTILINE)
        if POSIX & {name.split()[0] for name in names.split(", ")}
    }
    assert at_the_top == LINUX_PROCESSES


def test_import_is_light() -> None:
    code = f"import sys, mulligan{', mulligan.'.join(['', *PUBLIC])}; print(sorted({HEAVY!r} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "[]"
