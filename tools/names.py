"""Names that are no names, and class names that stand for two things. What there is may only become less.

python tools/names.py            # fails where names_baseline.txt does not have a name as often, or has it more often
python tools/names.py --shrink   # takes out of names_baseline.txt what is gone; it adds nothing

Looked at are public names: modules' constants, functions, their parameters, classes and fields; not what is local.
The last word of a name counts, for a participle before a noun is an adjective (`checked_fields`). What is true or false
may be a participle (`pinned: bool`). Whether a word is a verb or a noun (`links`) is not decided here.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC, BASELINE = ROOT / "src" / "mulligan", Path(__file__).with_name("names_baseline.txt")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PARTICIPLES = _words("""
    begun brought built chosen come done drawn felt forgotten found given gone heard held hidden kept known led left
    lost made meant met said seen sent shown spoken spent sworn taken taught thought thrown told understood unknown
    unsaid unseen untold woken won worn written
""")
"""Irregular ones. `withheld` is a word of the glossary; `read`, `put`, `set` and `run` may be verbs or nouns."""
ADVERBS = _words("""
    ahead again already altogether anew apart away beforehand beside besides forth here instead meanwhile never nowhere
    now once otherwise somewhere soon then there thereby together twice whence
""")
PREPOSITIONS = _words("about above after among around before behind below beneath between beyond since until")
"""No name of a function or class on their own; a parameter may be (`before: float`)."""
NOUNS = _words("bed deed embed feed need quantized red reed screed seed shed shred speed thread weed")
"""Words that end as participles do."""
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def is_no_name(name: str, *, thing: bool, boolean: bool) -> bool:
    """thing: a class, a parameter, a field or a constant, and not a function."""
    words = [word.lower() for word in WORD.findall(name)]
    if not words:
        return False
    last = words[-1]
    if last in ADVERBS or (len(words) == 1 and last in PREPOSITIONS and not thing):
        return True
    regular = last.endswith("ed") and len(last) > 4 and last not in NOUNS
    return not boolean and (last in PARTICIPLES or regular)


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _is_boolean(annotation: ast.expr | None, value: ast.expr | None = None) -> bool:
    text = "" if annotation is None else ast.unparse(annotation)
    constant = isinstance(value, ast.Constant) and isinstance(value.value, bool)
    return constant or "bool" in re.findall(r"\w+", text)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, bool]]:
    for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        yield one.arg, _is_boolean(one.annotation)


def offences(tree: ast.Module) -> Iterator[str]:
    """The names of a file that are none: `Class.method(parameter)`, `Class.field`, `function`, `CONSTANT`."""

    def within(body: Sequence[ast.stmt], above: str) -> Iterator[str]:
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_public(node.name) or node.name == "__init__":
                    if is_no_name(node.name, thing=False, boolean=_is_boolean(node.returns)):
                        yield above + node.name
                    for name, boolean in _parameters(node):
                        if _is_public(name) and is_no_name(name, thing=True, boolean=boolean):
                            yield f"{above}{node.name}({name})"
                case ast.ClassDef() if _is_public(node.name):
                    if is_no_name(node.name, thing=False, boolean=False):
                        yield above + node.name
                    yield from within(node.body, f"{above}{node.name}.")
                case ast.AnnAssign(target=ast.Name(id=name)) if _is_public(name):
                    if is_no_name(name, thing=True, boolean=_is_boolean(node.annotation, node.value)):
                        yield above + name
                case ast.Assign(targets=[ast.Name(id=name)]) if _is_public(name):
                    if is_no_name(name, thing=True, boolean=_is_boolean(None, node.value)):
                        yield above + name
                case _:
                    pass

    yield from within(tree.body, "")


def all_offences(root: Path) -> dict[str, list[str]]:
    """The names that are none, and the ambiguous names of classes, each with its places."""
    places, classes = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for file in sorted(root.rglob("*.py")):
        at, tree = file.relative_to(root).as_posix(), ast.parse(file.read_text(encoding="utf-8"))
        for place in offences(tree):
            places[re.split(r"[.(]", place.rstrip(")"))[-1]].append(f"{at} {place}")
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes[f"class {node.name.lstrip('_')}"].append(at)
    return {**places, **{name: files for name, files in classes.items() if len(files) > 1}}


def main(arguments: Sequence[str], root: Path = SRC, baseline: Path = BASELINE) -> int:
    now = all_offences(root)
    lines = [line.rpartition(" ") for line in baseline.read_text(encoding="utf-8").splitlines()]
    before = {name: int(count) for name, _, count in lines}
    if "--shrink" in arguments:
        before = {name: min(count, len(now[name])) for name, count in before.items() if name in now}
        baseline.write_text("".join(f"{name} {before[name]}\n" for name in sorted(before)), encoding="utf-8")
    for name in sorted({*now, *before}):
        places, known = now.get(name, []), before.get(name, 0)
        if len(places) > known:
            print(f"{name}: no name, or the name of two things; {len(places)} times, and {known} are known:", *places)
        elif len(places) < known:
            print(f"{name}: {len(places)} times, and the baseline has {known}: python tools/names.py --shrink")
    return int(before != {name: len(places) for name, places in now.items()})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
