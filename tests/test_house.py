"""The rules of the house, as tests: reasons for long files and functions, arrows that point one way, quiet imports."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parent.parent / "src" / "mulligan"
ROOT = SRC.parent.parent
HEAVY = {"pydantic", "pydantic_ai", "numpy", "rich", "click", "mcp", "starlette", "xllamacpp", "openai", "anthropic"}


def sources() -> list[Path]:
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.py"], cwd=ROOT, capture_output=True)
    return [ROOT / line for line in tracked.stdout.decode().splitlines() if (ROOT / line).is_file()]


def imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Each `mulligan.x.y` that is imported anywhere in the file, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import on line {node.lineno}"
            module = node.module or ""
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from ((str(name.value), node.lineno) for name in node.args if isinstance(name, ast.Constant))


def room(dotted: str) -> str | None:
    parts = dotted.split(".")
    if parts[0] != "mulligan" or len(parts) < 2:
        return None
    return parts[1] if (SRC / parts[1]).is_dir() else "."


LAYERS = (
    {"core"},
    {"text"},
    {"recording", "oracle", "models", "sandbox", "store", "workspace"},
    {
        "actors",
        "evaluators",
        "reflectors",
        "strategies",
        "tools",
        "retrieval",
        "deduplication",
        "merging",
        "transcripts",
    },
    {"bank", "graphs", "agentfile"},
    {"app", "bench", "."},
    {"mcp_server", "langgraph", "inspect_tasks", "studio"},
    {"cli"},
)
"""From the lowest to the highest. An import points down; `.` is the package's own face."""

SIDEWAYS = {(".", "app"), (".", "bench"), ("bench", "app"), ("store", "recording")}
"""The imports within a layer that are allowed: from the first to the second."""


def layer(name: str) -> int:
    return next(n for n, rooms in enumerate(LAYERS) if name in rooms)


LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}
"""What may be longer than the alarm, by path (`file.py` or `file.py:function`), and why it is one idea all the same."""


def test_a_long_file_has_a_reason() -> None:
    files = sources()
    assert len(files) > 20
    long = {str(f.relative_to(ROOT)) for f in files if len(f.read_text().splitlines()) > 700}
    assert long == set(LONG_FILES)


def test_a_long_function_has_a_reason() -> None:
    long: set[str] = set()
    for file in sources():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > 100:
                    long.add(f"{file.relative_to(ROOT)}:{node.name}")
    assert long == set(LONG_FUNCTIONS)


def test_imports_point_one_way() -> None:
    wrong: list[str] = []
    for file in SRC.rglob("*.py"):
        inside = file.relative_to(SRC).parts
        top = "cli" if file.name == "__main__.py" else "."
        here = inside[0] if len(inside) > 1 else top
        for dotted, line in imports(ast.parse(file.read_text())):
            there = room(dotted)
            if there is None or there == here:
                continue
            if layer(there) > layer(here) or (layer(there) == layer(here) and (here, there) not in SIDEWAYS):
                wrong.append(f"{'/'.join(inside)}:{line}: {here} imports {dotted}")
    known = ["bank/bank.py:62: bank imports mulligan.app.memory"]  # until a bank is opened without app
    assert [line for line in wrong if line not in known] == []


def test_core_is_standard_library_only() -> None:
    known = sys.stdlib_module_names | {"mulligan"}
    foreign = [
        f"{file.name}:{line}: {dotted}"
        for file in (SRC / "core").rglob("*.py")
        for dotted, line in imports(ast.parse(file.read_text()))
        if dotted.split(".")[0] not in known
    ]
    assert foreign == []


def test_import_is_light() -> None:
    code = f"import sys, mulligan; print(sorted({HEAVY!r} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "[]"
