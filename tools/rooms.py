"""The rooms of the source, in layers: what may import what, what does, and the picture in docs/architecture.md.

python tools/rooms.py            # draws the picture again; tests/docs/test_architecture.py compares it
python tools/rooms.py --wall     # what side houses import from the middle, and the middle from side houses
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "mulligan"
PICTURE = ROOT / "docs" / "pictures" / "rooms.svg"

PUBLIC = ("pages", "plugins", "running", "serving", "terminal")
"""The public modules beside `mulligan` itself: all that a side house may import from the middle."""

HARNESS = ("fanout", "harness", "own_tasks", "report")
"""The folders of `bench/` in the middle; `commands/` stands with the command line, and the others are the families."""

LAYERS: Mapping[str, Collection[str]] = {
    "core": ("core",),
    "text": ("text",),
    "real parts": ("recording", "oracle", "models", "sandbox", "sessions", "store", "workspace", "web"),
    "plug-ins": ("actors", "evaluators", "reflectors", "strategies", "foresights", "tools"),
    "features": ("bank", "agentfile", "goals", "hooks"),
    "composition": ("app", "bench", "functions", "."),
    "faces": ("mcp_server",),
    "command line": ("cli", "bench commands"),
    "public modules": PUBLIC,
    "side houses": ("families", "graphs", "inspect_tasks", "langgraph", "studio"),
}
"""From the lowest to the highest, with the rooms of each. An import points down; `.` is the package's own face."""

SIDE_HOUSES = LAYERS["side houses"]
"""They import one another where `SIDEWAYS` says so; all below is the middle."""

MOST_NAMES = 180
"""The most names that side houses may import from the middle. It may only become less."""

SIDEWAYS = {
    *((".", "app"), (".", "bench"), (".", "functions"), ("bench", "app"), ("functions", "app")),
    *(
        ("store", "recording"),
        ("hooks", "bank"),
        ("hooks", "goals"),
        ("bench commands", "cli"),
        ("langgraph", "graphs"),
    ),
}
"""The imports within a layer that are allowed: from the first room to the second."""


def parsed(file: Path) -> ast.Module:
    """The syntax tree of a file. To keep them would cost more: the garbage collector goes through all."""
    return ast.parse(file.read_text(encoding="utf-8"))


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


def imports(file: Path) -> Iterator[tuple[str, int]]:
    """Each module and name that is imported anywhere in a file, such as `mulligan.core.loop.run`, with its line.

    Names handed to `import_module` count, where they are written out.
    """
    tree = parsed(file)
    for node in ast.walk(tree) if "import_module" in file.read_text(encoding="utf-8") else statements(tree):
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
    if inside[0] == "bench":
        return _room_of_bench(inside[1])
    if len(inside) > 1:
        return inside[0]
    if file.stem in PUBLIC:
        return file.stem
    return "cli" if file.name == "__main__.py" else "."


def room_named(dotted: str) -> str | None:
    """The room of a module by its dotted name; None for what is not ours."""
    parts = dotted.split(".")
    if parts[0] != "mulligan" or len(parts) < 2:
        return None
    if parts[1] == "bench" and len(parts) > 2:
        return _room_of_bench(parts[2])
    return parts[1] if parts[1] in PUBLIC or (SRC / parts[1]).is_dir() else "."


def _room_of_bench(inside: str) -> str:
    """The room of a file or folder in `bench/`."""
    if inside == "commands":
        return "bench commands"
    return "bench" if inside in HARNESS or inside == "__init__.py" else "families"


def layer(room: str) -> int:
    return next(n for n, rooms in enumerate(LAYERS.values()) if room in rooms)


@cache
def crossings() -> Sequence[tuple[Path, int, str, str, str]]:
    """Each import from one room of another: file, line, the two rooms, the name that is imported."""
    return [
        (file, line, room_of(file), there, dotted)
        for file in sorted(SRC.rglob("*.py"))
        for dotted, line in imports(file)
        if (there := room_named(dotted)) not in (None, room_of(file))
    ]


def module_of(dotted: str) -> str:
    """The module of an import: all of the name, or all but the last part."""
    path = SRC.parent.joinpath(*dotted.split("."))
    return dotted if path.is_dir() or path.with_suffix(".py").is_file() else dotted.rpartition(".")[0]


def wrong_crossings() -> list[str]:
    """The imports that point up, sideways without leave, or from a side house past the public modules."""
    return [
        f"{file.relative_to(SRC)}:{line}: {here} imports {dotted}"
        for file, line, here, there, dotted in crossings()
        if layer(there) > layer(here)
        or (layer(there) == layer(here) and (here, there) not in SIDEWAYS)
        or (here in SIDE_HOUSES and there not in (*SIDE_HOUSES, *PUBLIC, "."))
    ]


def imports_from_the_middle() -> dict[str, set[str]]:
    """What side houses import from the middle: each name with the houses that import it."""
    found = defaultdict[str, set[str]](set)
    for _, _, here, there, dotted in crossings():
        if here in SIDE_HOUSES and there not in SIDE_HOUSES:
            found[dotted].add(here)
    return found


def imports_from_side_houses() -> set[str]:
    """What the middle imports from side houses."""
    return {dotted for _, _, here, there, dotted in crossings() if there in SIDE_HOUSES and here not in SIDE_HOUSES}


def picture() -> str:
    """The layers as a picture (SVG), the highest first, with the imports inside of a layer named in its row."""
    width, row, rows, boxes = 860, 58, list[str](), 150
    for n, (name, rooms) in enumerate(reversed(list(LAYERS.items()))):
        y, x = 10 + n * row, boxes
        rows.append(f'<rect x="10" y="{y}" width="{width - 20}" height="{row - 10}" rx="8" fill="#f6f8fa"/>')
        rows.append(f'<text x="24" y="{y + 29}" fill="#57606a">{name}</text>')
        for room in rooms:
            wide = 9 * len(_label(room)) + 14
            rows.append(
                f'<rect x="{x}" y="{y + 9}" width="{wide}" height="30" rx="6" fill="#ffffff" stroke="#8c959f"/>'
            )
            rows.append(f'<text x="{x + wide / 2}" y="{y + 29}" text-anchor="middle">{_label(room)}</text>')
            x += wide + 6
        inside = {room: sorted(_label(other) for one, other in SIDEWAYS if one == room) for room in rooms}
        beside = "; ".join(f"{_label(room)} → {', '.join(others)}" for room, others in inside.items() if others)
        if beside:
            rows.append(f'<text x="{x + 4}" y="{y + 28}" fill="#57606a" font-size="11">{beside}</text>')
    body, height = "\n".join(rows), 10 + len(LAYERS) * row
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" font-size="14" role="img">\n'
        "<title>The rooms of the source in layers; an import points down</title>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>\n<g fill="#24292f">\n{body}\n</g>\n</svg>\n'
    )


def _label(room: str) -> str:
    return "mulligan" if room == "." else room


def wall() -> str:
    """What is imported through the wall, by module, with the houses that import it."""
    names, lines = imports_from_the_middle(), list[str]()
    modules = sorted({module_of(dotted) for dotted in names})
    for module in modules:
        lines.append(module)
        for dotted in sorted(one for one in names if module_of(one) == module):
            lines.append(f"    {dotted.removeprefix(f'{module}.')}: {', '.join(sorted(names[dotted]))}")
    back = sorted(imports_from_side_houses())
    lines += [f"back: {dotted}" for dotted in back]
    for house in SIDE_HOUSES:
        mine = [dotted for dotted, houses in names.items() if house in houses]
        lines.append(f"{house}: {len(mine)} names from {len(set(map(module_of, mine)))} modules")
    return "\n".join([*lines, f"all: {len(names)} names from {len(modules)} modules, {len(back)} back"])


if __name__ == "__main__":
    if "--wall" in sys.argv:
        print(wall())
    else:
        PICTURE.write_text(picture(), encoding="utf-8")
