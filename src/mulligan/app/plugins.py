"""Finds a plug-in by name, dotted path, `./mine.py` or entry point, and builds it with its settings and ports.

The registry is the list of files in a folder. A plug-in is imported when it is first used.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from mulligan.app.plugin_files import Unread, check_unchanged, is_own, outline, real_path
from mulligan.app.plugin_files import file_of as file_of
from mulligan.app.prompts import FilePrompts
from mulligan.core.errors import InvalidInput, MulliganError, UnknownName, described
from mulligan.core.records import Json, Spec
from mulligan.sessions.agents import readable

_WORDS = {str: "a string", int: "an integer", float: "a number", bool: "true or false", NoneType: "null"}


def fits(value: Any, kind: Any) -> bool:
    """Whether the value fits the annotation. Any value fits an annotation of another type than those below."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in arguments)
    if origin is Literal:
        return value in arguments
    if kind in (int, float):
        return isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
    if kind in _WORDS:
        return isinstance(value, kind)
    if origin in (Sequence, list, tuple):
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            return False
        return not arguments or all(fits(item, arguments[0]) for item in cast(Sequence[Any], value))
    return isinstance(value, Mapping) if origin in (Mapping, dict) else True


def worded(kind: Any) -> str:
    """The annotation in words, such as "an integer or null"."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(worded(part) for part in arguments)
    if origin is Literal:
        return " or ".join(repr(part) for part in arguments)
    if origin in (Sequence, list, tuple):
        item = worded(arguments[0]).removeprefix("a ") if arguments else ""
        return f"a list of {item}s" if item else "a list"
    return _WORDS.get(kind, "a table" if origin in (Mapping, dict) else "")


class Role(NamedTuple):
    """A kind of plug-in.

    Attributes:
        kind: Its name in a sentence.
        method: The method that every class of this kind has.
        awaited: The methods that are awaited. Methods of other roles are called without await.
        folder: The pattern of its folders in the package, if they are not named like the role.
    """

    kind: str
    method: str
    awaited: tuple[str, ...] = ()
    folder: str = ""


ROLES = {
    "actors": Role("actor", "act", ("act",)),
    "evaluators": Role("evaluator", "evaluate", ("evaluate",)),
    "reflectors": Role("reflector", "reflect", ("reflect",)),
    "strategies": Role("strategy", "past"),
    "foresights": Role("foresight", "check", ("check",)),
    "tools": Role("tool", "call", ("offer", "call", "close")),
    "retrieval": Role("retrieval strategy", "rank", folder="bank/recall/retrieval"),
    "deduplication": Role("deduplication strategy", "near", folder="bank/upkeep/deduplication"),
    "merging": Role("merging strategy", "group", folder="bank/upkeep/merging"),
    "environments": Role("environment", "step", ("reset", "offer", "step", "close"), "bench/*/environments"),
    "benchmarks": Role("benchmark", "score", ("score",), "bench/*"),
    "memories": Role("memory", "recall", ("learn", "recall", "close"), "bench/arms"),
    "transcripts": Role("format of transcripts", "read", folder="bank/learn/transcripts"),
}

_PACKAGE = Path(__file__).parent.parent
_NOT_FAMILIES = ("arms", "commands", "fanout", "harness", "report")
"""The folders of `bench/` that hold no benchmark."""
_USER_MODULE = "mulligan_user_"
"""The prefix of the names of modules that were loaded from a user's file."""


def parse_spec(role: str, text: str) -> Spec:
    """`name`, `name:argument`, `./mine.py`, `./mine.py:Class`, `package.module:Class`.

    An argument goes to the plug-in's first setting. Raises `UnknownName`, or `InvalidInput` for an empty text.
    """
    name, colon, argument = text.partition(":")
    if not name.strip():
        raise InvalidInput(f"The name of one of the {role} is empty. Available: {', '.join(names(role))}.")
    if file_of(name):
        return Spec(f"{real_path(name)}{colon}{argument}")
    if not colon or "." in name:
        return Spec(text)
    first = next(iter(settings_of(find(role, name))), None)
    if first is None:
        raise InvalidInput(f"{name!r} takes no argument, but got {argument!r}.")
    return Spec(name, {first: argument})


def names(role: str) -> list[str]:
    """The names of a role's plug-ins that ship with Mulligan or with installed packages."""
    return sorted({*_shipped(role), *_installed(role)})


def find(role: str, name: str) -> type[Any]:
    """The plug-in's class. Raises `UnknownName`, or `InvalidInput` when the file cannot be used."""
    path, _, class_name = name.partition(":")
    if file_of(path):
        file = _existing(path)
        return _class_in(_load(file, file.stat().st_mtime_ns), role, class_name)
    if "." in path:
        try:
            return _class_in(importlib.import_module(path), role, class_name)
        except ModuleNotFoundError as error:
            raise InvalidInput(f"{name!r} cannot be imported: {error}. Is it installed here?") from error
    if module := _shipped(role).get(path):
        return _class_in(importlib.import_module(module), role, class_name)
    if point := _installed(role).get(path):
        return point.load()
    kind = "judge" if role == "evaluators" else ROLES[role].kind
    raise UnknownName(kind, path, names(role), "Or use your own file: ./mine.py.")


def examine(role: str, name: str) -> type[Any]:
    """As `find`, but for checks that must not run the user's code.

    For a file, returns a class with the parameters and methods that it shows; for a dotted path, `Unread`. Raises as
    `find` does.
    """
    path, _, class_name = name.partition(":")
    if not is_own(name):
        return find(role, name)
    if file_of(path):
        file = _existing(path)
        changed = file.stat()
        return outline(file, ROLES[role].method, class_name, changed.st_mtime_ns, changed.st_size)
    top = path.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):  # not a valid name of a module
        spec = None
    if spec is None:
        raise InvalidInput(f"{name!r} cannot be imported: there is no module {top!r} here.")
    return Unread


def _existing(path: str) -> Path:
    file = real_path(path)
    if not file.is_file():
        raise InvalidInput(f"The plug-in file {file} does not exist.")
    return file


def attribute_of(role: str, name: str, attribute: str, default: Any) -> Any:
    """Returns an attribute of a plug-in's class, or `default` if it is missing or the plug-in is a user's file, which
    is not run.
    """
    known = name in _shipped(role) or name in _installed(role)  # in this order, because the second is slow
    return getattr(find(role, name), attribute, default) if known else default


@cache
def _shipped(role: str) -> Mapping[str, str]:
    """The modules of the plug-ins that ship with Mulligan, by the name of the plug-in."""
    files = sorted(_PACKAGE.glob(f"{ROLES[role].folder or role}/*.py"))
    other_folders = _NOT_FAMILIES if role == "benchmarks" else ()
    public = [f for f in files if not f.stem.startswith("_") and f.parent.name not in other_folders]
    shipped = {f.stem: ".".join(("mulligan", *f.relative_to(_PACKAGE).with_suffix("").parts)) for f in public}
    agents = readable() if role == "transcripts" else ()
    return shipped | {name: f"mulligan.sessions.agents.{name}" for name in agents}


@cache
def _installed(role: str) -> Mapping[str, EntryPoint]:
    """The plug-ins of installed packages, by name. This reads the metadata of every package."""
    return {point.name: point for point in entry_points(group=f"mulligan.{role}")}


@cache
def _parameters(cls: type[Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(cls).parameters


def settings_of(cls: type[Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a plug-in in order, without the ports."""
    parameters = _parameters(cls)
    return {n: p for n, p in parameters.items() if n not in PORTS and p.kind is not p.VAR_KEYWORD}


PORTS = frozenset(
    {
        *("model", "sandbox", "journal", "prompts", "workspace", "bank", "tools", "environment", "agent", "judges"),
        *("solved", "baseline"),
    }
)

_HINTS = {
    "model": "Set one with model=.",
    "workspace": "Specify a folder with workspace=.",
    "agent": 'It needs an actor that is itself an agent: actor="command:claude -p", for example.',
}


def ports_of(cls: type[Any]) -> list[str]:
    """The ports that a plug-in asks for."""
    return [name for name in _parameters(cls) if name in PORTS]


def checked(name: str, cls: type[Any], settings: Mapping[str, Json], role: str = "") -> dict[str, inspect.Parameter]:
    """Checks settings, and returns the parameters of the class. role: an error names its plug-ins with that setting.

    Raises `UnknownName`, with the most similar name, for a setting that the class does not have, and `InvalidInput` for
    a value of the wrong type or a missing setting.
    """
    known = settings_of(cls)
    if getattr(cls, "unread", False):
        return known
    for setting, value in settings.items():
        if setting not in known and (others := _with_setting(role, setting)):
            hint = f"{ROLES[role].kind.capitalize()} with this setting: {', '.join(others)}."
            raise UnknownName(f"setting of {name!r}", setting, known, hint)
        check_setting(name, cls, setting, value)
    missing = [n for n, p in known.items() if p.default is p.empty and n not in settings]
    if missing:
        raise InvalidInput(f"{name!r} needs the setting {missing[0]!r}: write it as {name}:VALUE.")
    return known


def _with_setting(role: str, setting: str) -> list[str]:
    return [name for name in names(role) if setting in settings_of(find(role, name))] if role else []


def check_setting(name: str, cls: type[Any], setting: str, value: Json) -> None:
    """Raises `UnknownName` and `InvalidInput` as `checked` does, for one setting."""
    known, kinds = settings_of(cls), _kinds(cls)
    if getattr(cls, "unread", False):
        return
    if setting not in known:
        raise UnknownName(f"setting of {name!r}", setting, known)
    if setting in kinds and not fits(value, kinds[setting]):
        raise InvalidInput(f"The setting {setting!r} of {name!r} must be {worded(kinds[setting])}, not {value!r}.")


@cache
def _kinds(cls: type[Any]) -> Mapping[str, Any]:
    """The annotations of the parameters; empty if they use names that cannot be resolved at run time."""
    try:
        return get_type_hints(cls.__init__)
    except Exception:
        return {}


def build(role: str, spec: Spec, ports: Mapping[str, Any]) -> Any:
    """Builds the plug-in with its settings and the ports that it asks for by name.

    Raises `InvalidInput` for an unknown setting (with the most similar name), a missing one or one of the wrong type,
    a missing port, and if the constructor fails.
    """
    cls = find(role, spec.name)
    checked(spec.name, cls, spec.settings, role)
    optional = [n for n, p in _parameters(cls).items() if p.default is not p.empty]
    needed = [n for n in ports_of(cls) if ports.get(n) is not None or n not in optional]
    absent = [n for n in needed if ports.get(n) is None]
    if absent:
        article = "an" if absent[0][0] in "aeiou" else "a"
        raise InvalidInput(
            f"{spec.name!r} needs {article} {absent[0]}, but there is none here. {_HINTS.get(absent[0], '')}".rstrip()
        )
    try:
        return fitted(role, cls(**spec.settings, **{n: ports[n] for n in needed}))
    except MulliganError:
        raise
    except Exception as error:
        raise InvalidInput(f"The {ROLES[role].kind} {spec.name!r} could not be created: {described(error)}.") from error


def tried(role: str, spec: Spec) -> None:
    """Raises `InvalidInput` for settings that cannot be combined, by building the plug-in without real ports.

    Plug-ins whose constructor asks a person are not built, and neither are those of users, whose constructor may do
    anything.
    """
    cls = examine(role, spec.name)
    checked(spec.name, cls, spec.settings)
    if not is_own(spec.name) and cls.__module__.startswith("mulligan.") and not getattr(cls, "interactive", False):
        build(role, spec, {**dict.fromkeys(PORTS, object()), "prompts": FilePrompts()})


def fitted(role: str, plugin: Any) -> Any:
    """The plug-in, wrapped if its role awaits a method that is a plain `def`.

    A plain method runs in the event loop and blocks it. Raises `InvalidInput` for an `async def` that the role does not
    await.
    """
    awaited = ROLES[role].awaited
    for method in () if awaited else (ROLES[role].method, "decide"):
        if inspect.iscoroutinefunction(getattr(plugin, method, None)):
            name = f"{type(plugin).__name__}.{method}"
            raise InvalidInput(f"{name} is not awaited: define it with def, not async def.")
    plain = [n for n in awaited if hasattr(plugin, n) and not inspect.iscoroutinefunction(getattr(plugin, n))]
    return type(type(plugin).__name__, (_Awaitable,), {})(plugin, plain) if plain else plugin


class _Awaitable:
    """Wraps a plug-in so that its plain methods can be awaited."""

    def __init__(self, inner: Any, plain: Sequence[str]) -> None:
        self._inner, self._plain = inner, plain
        # From Python 3.12 on, `isinstance` of a protocol does not ask `__getattr__`.
        for name, _ in inspect.getmembers(self._inner.__class__, callable):
            if not name.startswith("_"):
                setattr(self, name, self.__getattr__(name))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name not in self._plain:
            return value

        async def awaitable(*given: Any, **named: Any) -> Any:
            result = value(*given, **named)
            return await result if inspect.isawaitable(result) else result

        return awaitable


def short_name(name: str) -> str:
    """The prefix of the plug-in's prompt names: a file's name without its ending, or the last part of a module's."""
    path = name.partition(":")[0]
    return Path(path).stem if file_of(path) else path.rpartition(".")[2]


@cache
def _load(path: Path, changed: int) -> ModuleType:
    """The module in a file. It is run again only if the file has changed."""
    check_unchanged(path)
    spec = importlib.util.spec_from_file_location(f"{_USER_MODULE}{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InvalidInput(f"The plug-in file {path} cannot be loaded: {described(error)}.") from error
    return module


def _class_in(module: ModuleType, role: str, class_name: str) -> type[Any]:
    """The class of that name, else the only public one of the module that can play the role."""
    method = ROLES[role].method
    where = module.__file__ if module.__name__.startswith(_USER_MODULE) else module.__name__
    if class_name:
        cls = getattr(module, class_name, None)
        if not inspect.isclass(cls) or not hasattr(cls, method):
            raise InvalidInput(f"{where} has no class {class_name!r} with a method {method!r}.")
        return cls
    candidates = [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")
        if hasattr(value, method)
    ]
    if len(candidates) != 1:
        count = len(candidates)
        which = f"{count} of them: write {where}:{candidates[0].__name__}, for example" if count else "none"
        raise InvalidInput(f"{where} should contain one class with a method {method!r}; it has {which}.")
    return candidates[0]
