"""The rooms of the source, in layers: what may import what, what does, and the picture in docs/architecture.md.

python tools/rooms.py       # draws the picture again; tests/docs/test_architecture.py compares it
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "mulligan"
PAGE = ROOT / "docs" / "architecture.md"

LAYERS: Mapping[str, Collection[str]] = {
    "core": ("core",),
    "text": ("text",),
    "real parts": ("recording", "oracle", "models", "sandbox", "sessions", "store", "workspace", "web"),
    "plug-ins": ("actors", "evaluators", "reflectors", "strategies", "foresights", "tools"),
    "features": ("bank", "graphs", "agentfile", "goals", "hooks"),
    "composition": ("app", "bench", "functions", "."),
    "faces": ("mcp_server", "studio", "langgraph", "inspect_tasks"),
    "command line": ("cli",),
}
"""From the lowest to the highest, with the rooms of each. An import points down; `.` is the package's own face."""

SIDEWAYS = {
    *((".", "app"), (".", "bench"), (".", "functions"), ("bench", "app"), ("functions", "app")),
    *(("store", "recording"), ("hooks", "bank"), ("hooks", "goals")),
}
"""The imports within a layer that are allowed: from the first room to the second."""

_HEAD, _TAIL = "```mermaid\n", "```\n"


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements below a node, at any depth. `ast.walk` also gives the expressions, which are ten times as many."""
    within = [tree]
    while within:
        node = within.pop()
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            found = getattr(node, block, None)
            if isinstance(found, list):
                yield from cast(list[ast.AST], found)
                within += cast(list[ast.AST], found)


def imports(text: str) -> Iterator[tuple[str, int]]:
    """Each module and name that is imported anywhere in a file, such as `mulligan.core.loop.run`, with its line.

    Names handed to `import_module` count, where they are written out.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree) if "import_module" in text else statements(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import on line {node.lineno}"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and "import_module" in (
            getattr(node.func, "id", None),
            getattr(node.func, "attr", None),
        ):
            yield from ((str(name.value), node.lineno) for name in node.args if isinstance(name, ast.Constant))


def room_of(file: Path) -> str:
    """The room that a file of the source stands in."""
    inside = file.relative_to(SRC).parts
    return inside[0] if len(inside) > 1 else "cli" if file.name == "__main__.py" else "."


def room_named(dotted: str) -> str | None:
    """The room of a module by its dotted name; None for what is not ours."""
    parts = dotted.split(".")
    if parts[0] != "mulligan" or len(parts) < 2:
        return None
    return parts[1] if (SRC / parts[1]).is_dir() else "."


def layer(room: str) -> int:
    return next(n for n, rooms in enumerate(LAYERS.values()) if room in rooms)


@cache
def crossings() -> Sequence[tuple[Path, int, str, str, str]]:
    """Each import from one room of another: file, line, the two rooms, the name that is imported."""
    return [
        (file, line, room_of(file), there, dotted)
        for file in sorted(SRC.rglob("*.py"))
        for dotted, line in imports(file.read_text(encoding="utf-8"))
        if (there := room_named(dotted)) not in (None, room_of(file))
    ]


def wrong_crossings() -> list[str]:
    """The imports that point up, or sideways without leave."""
    return [
        f"{file.relative_to(SRC)}:{line}: {here} imports {dotted}"
        for file, line, here, there, dotted in crossings()
        if layer(there) > layer(here) or (layer(there) == layer(here) and (here, there) not in SIDEWAYS)
    ]


def picture() -> str:
    """The rooms as a Mermaid flowchart. An arrow is an import that no way through other rooms implies."""
    uses: dict[str, set[str]] = {}
    for _, _, here, there, _ in crossings():
        uses.setdefault(here, set()).add(there)

    @cache
    def reached(room: str) -> frozenset[str]:
        return frozenset(uses.get(room, ())).union(*(reached(there) for there in uses.get(room, ())))

    lines = ["flowchart TD"]
    for n, (name, rooms) in reversed(list(enumerate(LAYERS.items()))):
        lines += [f'  subgraph L{n}["{name}"]', *(f'    {_node(room)}["{_label(room)}"]' for room in rooms), "  end"]
    for here, theres in sorted(uses.items()):
        direct = {there for there in theres if not any(there in reached(other) for other in theres - {there})}
        lines += [f"  {_node(here)} --> {_node(there)}" for there in sorted(direct)]
    return "\n".join(lines) + "\n"


def _node(room: str) -> str:
    return "face" if room == "." else room


def _label(room: str) -> str:
    return "mulligan" if room == "." else f"{room}/"


def drawn(page: str) -> str:
    """The page with the picture as the source is now."""
    return re.sub(re.escape(_HEAD) + ".*?" + _TAIL, lambda _: _HEAD + picture() + _TAIL, page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
