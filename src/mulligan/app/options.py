"""The options of a run, each written once.

The keyword arguments of `mulligan.solve`, `run` and `resume`, the options of their commands and of benchmarks, the
checks of their values, and the page that lists them are derived from these classes: design/128.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from os import PathLike
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
)

if TYPE_CHECKING:
    from mulligan.app.runner import OnStart
    from mulligan.app.workspaces import Notice
    from mulligan.core.limits import Limits
    from mulligan.core.protocols import Actor, Bank, Evaluator, Model, Observer, Reflector, Store, Strategy
    from mulligan.core.records import Json, Task
    from mulligan.evaluators._judging import JudgeFunction
    from mulligan.recording.journal import StepObserver
    from mulligan.reflectors._editing import Decide

    AnyJudge: TypeAlias = JudgeFunction | str | Evaluator | type[Evaluator] | PathLike[str]

P = ParamSpec("P")
T = TypeVar("T")

_DESCRIPTION = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


class Option(NamedTuple):
    """An option, as all interfaces see it.

    Attributes:
        kind: its type, as it is written, without None.
        help: its description, from the docstring of its record.
        flags: its names on the command line, the long one first; empty: Python alone has it.
        metavar: the placeholder for its value in the help of a command; "a|b" lists the only values.
        into: the entry of another option for which it is a short form, such as "limits.cost" or
            "settings.strategy.window".
        same_as: the option that means the same and whose name is shown.
        least: its smallest value.
        project: whether mulligan.toml may set it, as text.
    """

    name: str
    kind: str
    default: Any
    help: str
    flags: tuple[str, ...] = ()
    metavar: str = ""
    into: str = ""
    same_as: str = ""
    least: int | None = None
    project: bool = False


class Declared(NamedTuple):
    """A field as its record declares it. at: it can be passed by position. init: it can be passed at all."""

    default: Any = None
    at: bool = False
    init: bool = True
    known: Mapping[str, Any] = {}


def option(metavar: str, *flags: str, default: Any, **more: Any) -> Any:
    """Returns an option that is also on the command line: see `Option`. The default long flag is made from the name."""
    return Declared(default, known={"metavar": metavar, "flags": flags, **more})


def place(*, kw_only: Literal[False]) -> Any:
    """Returns a required parameter that can be passed by position."""
    return Declared(at=not kw_only)


def value(*, default: Any, init: bool = True, least: int | None = None) -> Any:
    """An option that only Python has. init: False if only the short forms of its entries can be passed."""
    return Declared(default, init=init, known={} if least is None else {"least": least})


@cache
def options_in(record: type[Any]) -> tuple[Option, ...]:
    """The options of a record, without the parameters that are passed by position."""
    described: dict[str, str] = {}
    for base in reversed(record.__mro__):
        described |= _DESCRIPTION.findall(inspect.cleandoc(base.__doc__ or ""))
    return tuple(
        _option(name, kind, field, described.get(name, ""))
        for name, (kind, field) in record.fields().items()
        if field.init and not field.at
    )


def _option(name: str, kind: str, field: Declared, description: str) -> Option:
    attributes = dict(field.known)
    flags: tuple[str, ...] = attributes.pop("flags", ())
    if "metavar" in attributes and not any(flag.startswith("--") for flag in flags):
        flags = ("--" + name.replace("_", "-"), *flags)
    return Option(name, kind.removesuffix(" | None"), field.default, " ".join(description.split()), flags, **attributes)


def _signature(record: type[Any]) -> list[inspect.Parameter]:
    positional, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    passed = [(name, kind, field) for name, (kind, field) in record.fields().items() if field.init]
    return [
        inspect.Parameter(name, positional, annotation=kind)
        if field.at
        else inspect.Parameter(name, keyword, default=field.default, annotation=kind)
        for name, kind, field in sorted(passed, key=lambda entry: not entry[2].at)
    ]


def taken_by(record: Callable[P, Any]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """A decorator that gives a function this record's signature and the descriptions of its options.

    The function calls `from_call` with its arguments.
    """

    from textwrap import fill  # not above: the help of commands is quick

    def decorate(function: Callable[..., T]) -> Callable[P, T]:
        options_record: Any = record
        own, parameters = inspect.signature(function), _signature(options_record)
        first = [one for one in own.parameters.values() if one.kind is one.POSITIONAL_ONLY]
        function.__signature__ = own.replace(parameters=[*first, *parameters])  # pyright: ignore[reportFunctionMemberAccess]
        intro, mark, rest = (function.__doc__ or "").partition("\n    Returns:")
        descriptions = [f"{entry.name}: {entry.help}" for entry in options_in(options_record) if not entry.same_as]
        args = "\n".join(fill(text, 120, initial_indent=" " * 8, subsequent_indent=" " * 12) for text in descriptions)
        function.__doc__ = f"{intro}\n    Args:\n{args}\n{mark}{rest}"
        return function

    return decorate


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option, place, value))
class Options:
    """The base class of option records, which behave like frozen dataclasses but are created ten times faster."""

    _own: ClassVar[Mapping[str, tuple[str, Declared]]] = {}
    """The fields that this class declares, by name, with their types as text."""

    def __init_subclass__(cls) -> None:
        declared = {name: (kind, cls.__dict__.get(name)) for name, kind in inspect.get_annotations(cls).items()}
        cls._own = {
            name: (kind, default if isinstance(default, Declared) else Declared(default))
            for name, (kind, default) in declared.items()
        }

    @classmethod
    @cache
    def fields(cls) -> Mapping[str, tuple[str, Declared]]:
        """All fields of the record by name, with their types as text."""
        bases = [base._own for base in reversed(cls.__mro__) if issubclass(base, Options)]
        return {name: field for own in bases for name, field in own.items()}

    def __init__(self, *args: Any, **named: Any) -> None:
        known = self.fields()
        places = [name for name, (_, field) in known.items() if field.at]
        passed = {**dict(zip(places, args, strict=False)), **named}
        self.__dict__.update({name: field.default for name, (_, field) in known.items()} | passed)
        unknown = [name for name in named if name not in known or not known[name][1].init]
        missing = [name for name in places if name not in passed]
        if unknown or missing or len(args) > len(places) or set(places[: len(args)]) & set(named):
            inspect.Signature(_signature(type(self))).bind(*args, **named)  # raises the TypeError of a function call
        self.__post_init__()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot assign to field {name!r}")

    @classmethod
    def from_call(cls, name: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> Self:
        """Returns the record for a call to the function `name`.

        Raises `TypeError`, as a function call does, and `InvalidInput`."""
        try:
            return cls(*args, **named)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None

    def changed(self, **changes: Any) -> Self:
        """Returns a copy of the record with these options replaced."""
        current = {name: getattr(self, name) for name, (_, field) in self.fields().items() if field.init}
        return type(self)(**{**current, **changes})

    def __post_init__(self) -> None:
        """Checks the values, and moves those of aliases and short forms to the options that they stand for."""
        for entry in options_in(type(self)):
            value = getattr(self, entry.name)
            if value is None or value is entry.default:
                continue
            _check(entry, value)
            if entry.same_as and getattr(self, entry.same_as) is not None:
                raise _invalid(f"{entry.same_as} and {entry.name} mean the same: pass only {entry.same_as}.")
            if entry.same_as or entry.into:
                name, *keys = (entry.same_as or entry.into).split(".")
                moved = value if entry.same_as else _with(getattr(self, name), keys, _plain(entry, value))
                self.__dict__.update({name: moved, entry.name: entry.default})


def _with(current: Any, keys: Sequence[str], value: Any) -> Any:
    """The value of an option with this entry added, unless it has the entry already."""
    key, *rest = keys
    if hasattr(current, "__dataclass_fields__"):  # Limits
        return replace(current, **{key: value})
    entries: Mapping[str, Any] = {"name": current} if isinstance(current, str) else current or {}
    if rest:
        return {**entries, key: {rest[0]: value, **entries.get(key, {})}}
    return {key: value, **entries}


def _plain(entry: Option, value: Any) -> Any:
    """The value as a setting: JSON, with absolute paths."""
    if "PathLike" in entry.kind:
        from pathlib import Path  # not above: the help of commands is quick

        return str(Path(value).expanduser().resolve())
    return list(cast(tuple[Any, ...], value)) if isinstance(value, tuple) else value


def _check(entry: Option, value: Any) -> None:
    """Raises `InvalidInput` for a value that has the wrong type, is too small or is no name of a bank."""
    words, classes = _WORDS.get(entry.kind, ("", ""))
    if words:
        from mulligan.core import limits, protocols  # not above: the help of commands is quick

        all_classes: dict[str, Any] = {**vars(protocols), **vars(limits), **_CLASSES}
        mismatch = not isinstance(value, tuple(all_classes[name] for name in classes.split()))
        if mismatch or (isinstance(value, bool) and entry.kind != "bool"):
            advice = " MULLIGAN_STORE names a store by its address." if entry.name == "store" else ""
            raise _invalid(f"{entry.name} must be {words}, not {value!r}.{advice}")
    if entry.name == "bank" and value == "*":
        raise _invalid("bank must be the name of one agent, not '*', which stands for all agents.")
    if entry.least is not None and value < entry.least:
        raise _invalid(f"{entry.name} must be at least {entry.least}, not {value}.")


def _invalid(message: str) -> Exception:
    from mulligan.core.errors import InvalidInput  # not above: the help of commands is quick

    return InvalidInput(message)


_CLASSES = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "tuple": tuple,
    "Mapping": Mapping,
    "PathLike": PathLike,
    "Callable": Callable,
}
_WORDS: Mapping[str, tuple[str, str]] = {
    "str": ("a string", "str"),
    "str | PathLike[str]": ("a path", "str PathLike"),
    "str | Model": ("the name of a model, or an object with `ask`", "str Model"),
    "str | Model | Sequence[str]": (
        "the name of a model, a list of names, or an object with `ask`",
        "str Model list tuple",
    ),
    "int": ("an integer", "int"),
    "float": ("a number", "int float"),
    "bool": ("True or False", "bool"),
    "Limits | Mapping[str, float | None]": ("a Limits object or a mapping such as {'seconds': 60}", "Limits Mapping"),
    "Mapping[str, Mapping[str, Any]]": ("a mapping of roles, such as {'strategy': {'window': 2}}", "Mapping"),
    "Bank | str": ("the name of an agent, or a bank", "str Bank"),
    "Store": ("a store", "Store"),
    "Callable[..., Any]": ("a function", "Callable"),
    "str | Callable[..., str]": ("a function or a string", "str Callable"),
    "str | Model | ReflectFunction | Reflector": (
        "a function or a string or a model or a reflector",
        "str Callable Model Reflector",
    ),
}
"""By type: what a value must be, in words, and the classes of which it may be an instance."""

# --- the options --------------------------------------------------------------------------------------------------


class Watched(Options):
    """Where a run is recorded, and who follows it. Only Python has these options.

    Attributes:
        store: The store that records the run, instead of the configured one.
        observers: Functions that are called for each event, with the episode and the event.
        on_start: A function that is called with each episode and its limits when the episode starts or resumes.
        on_step: A function that is called after each step, with the step.
        notice: A function that is called with messages, such as a report of what was learned.
    """

    store: Store | None = None
    observers: Sequence[Observer] = ()
    on_start: OnStart | None = None
    on_step: StepObserver | None = None
    notice: Notice | None = None


class Budget(Options):
    """What an episode may use: the options of everything that runs one.

    Attributes:
        limits: All limits, or just those that differ from the limits in mulligan.toml, such as {'seconds': 60}.
        max_tokens: Stop before using more than N tokens (input and output).
        max_cost: Stop before spending more than this many US dollars.
        max_seconds: Stop after S seconds of work.
        identical: Stop after N identical attempts in a row (0: never).
        model: The model: local (default), PROVIDER:NAME, scripted:FILE or replay:FILE. In an agent defined by files,
            every step uses this model. If you name several models, each is used when the previous one fails.
    """

    limits: Limits | Mapping[str, float | None] | None = None
    max_tokens: int | None = option("N", default=None, into="limits.tokens")
    max_cost: float | None = option("USD", default=None, into="limits.cost")
    max_seconds: float | None = option("S", default=None, into="limits.seconds")
    identical: int | None = option("N", default=None, into="limits.identical")
    model: str | Model | Sequence[str] | None = option("MODEL", "-m", default=None, project=True)


class Roles(Options):
    """Who reflects and judges, and what the next try sees: the options of a loop whose roles are named.

    Attributes:
        tries: Maximum number of tries, including the first (default: 4).
        trials: Same as --tries.
        strategy: What the next try sees (default: evidence_and_reflexion).
        reflect_model: The model that reflects (default: same as model).
        judge_model: The model that judges (default: same as model).
        settings: Any other setting of a role, such as strategy.window=2.
    """

    tries: int | None = option("N", "-n", default=None, least=1)
    trials: int | None = option("N", default=None, same_as="tries")
    strategy: str | Strategy | type[Strategy] | None = option("NAME", "-s", default=None)
    reflect_model: str | Model | None = option("MODEL", default=None, project=True)
    judge_model: str | Model | None = option("MODEL", default=None, project=True)
    settings: Mapping[str, Mapping[str, Any]] | None = option("ROLE.KEY=VALUE", "--set", default=None)


class Course(Options):
    """The options of a run that do not depend on who acts in it.

    Attributes:
        scale: Run K trajectories: parallel:5 (the bank compares them) or vanilla:5 (the bank learns from each
            separately). With :judge at the end, a model chooses among equally good trajectories. Or run one trajectory
            of at most K attempts: sequential:3 (each attempt checks and refines the previous one).
        sandbox: The sandbox level: auto (default), strict, or a level that `mulligan doctor` lists.
        seed: The random seed, for models that accept one (default: 0).
        foresight: The plug-in that checks actions before they are performed: premortem (default) or ./mine.py.
        check_before: Before actions that match this regular expression or are declared critical, ask the model what
            could go wrong. With `declared`, ask only before declared actions; with `model`, the model decides which
            actions are critical.
        checks: Maximum number of checks in an episode (default: 5).
    """

    scale: str | None = option("KIND:K", default=None)
    sandbox: str | None = option("LEVEL", default=None, project=True)
    seed: int = option("N", default=0)
    foresight: str | Mapping[str, Json] | None = option("NAME[:ARG]", default=None)
    check_before: Sequence[str] = option("PATTERN", default=(), into="foresight.before")
    checks: int | None = option("N", default=None, into="foresight.checks")

    def __post_init__(self) -> None:
        if self.checks is not None and self.foresight is None and not self.check_before:
            raise _invalid("checks= limits the checks, so it needs check_before= or foresight=.")
        super().__post_init__()


class Cast(Options):
    """The other roles of a loop, by name, as objects or as classes; a class is built afresh for each episode.

    Attributes:
        judge: The judge, such as exact_match:42, human or ./mine.py. In Python, it can also be an evaluator object, the
            Path of a test file, or a function that takes either the answer, or the task and the answer.
        evaluator: Same as --judge.
        actor: The actor, which makes the attempts: complete (default), "command:claude -p", ./mine.py, …
        reflector: The reflector, which reflects on failed tries: verbal (default; uses a model), self, …
        vision_model: The model that describes images to models that do not accept images.
        prompts: A folder with your own prompts. Mulligan uses its built-in prompts for any that are missing there.
    """

    judge: AnyJudge | None = option("NAME[:ARG]", "-e", default=None)
    evaluator: AnyJudge | None = option("NAME[:ARG]", default=None, same_as="judge")
    actor: str | Actor | type[Actor] | None = option("NAME[:ARG]", default=None)
    reflector: str | Reflector | type[Reflector] | None = option("NAME[:ARG]", default=None)
    vision_model: str | Model | None = option("MODEL", default=None)
    prompts: str | PathLike[str] | None = option("DIR", default=None, project=True)


class Beginning(Options):
    """What is set when a run begins, and stays.

    Attributes:
        kind: The kind of task, in your own words. Lessons for this kind of task are recalled first.
        workspace: The folder to work on. Mulligan works on a copy of it, unless the mode is in_place.
        mode: How the workspace is isolated from your files: worktree (default), copy or in_place.
        edit_reflections: Ask at the terminal about each lesson before the next try sees it.
        bank: The agent whose bank is used (default on the command line: the unnamed agent). In Python, you can also
            pass a bank object; no lessons are added to it.
        forms: Which parts of the bank the prompt shows: lessons (default), notebook, history, or several of them.
    """

    kind: str | None = option("KIND", default=None)
    workspace: str | PathLike[str] | None = option("DIR", default=None)
    mode: str | None = option("MODE", default=None, into="settings.workspace.mode")
    edit_reflections: bool | Decide = option("", default=False)
    bank: Bank | str | None = option("NAME", "--bank", "--agent-id", default=None)
    forms: Sequence[str] | str | None = option("FORM,FORM", default=None, into="settings.memory.forms")


class SolveOptions(Watched, Beginning, Course, Roles, Cast, Budget):
    """The options of `mulligan.solve`.

    Attributes:
        tests: A Python file of tests (plain asserts or pytest style) that judge the attempt.
        tests_run: Run the tests in a separate process (apart, default) or in the attempt's process (beside), where the
            attempt can forge the verdict.
        check: A command that judges the attempt: exit status 0 means that the attempt passes. {attempt} is replaced
            with the path of the attempt's file.
        environment: The environment in which the actor `interact` acts, such as ./screens.py.
        restarts: Maximum number of independent episodes. The run ends once one of them solves the task.
        protect: A file or folder in the workspace that the check sees as it was before the first try. Repeatable.
        fresh: Start each try from your files, not from the previous try's files.
        window: How many lessons the next try sees (default: 1; with --strategy reflexion: 3).
        lesson_tokens: Maximum total number of tokens in the lessons for the next try.
        overflow: What to show if there are too many lessons: the newest (default), the most useful, or a condensed
            lesson.
        temperatures: The temperature of each try; the last one applies to all later tries.
        examples: A file with worked examples for the actor, which replace the built-in ones.
    """

    task: str | Task | PathLike[str] = place(kw_only=False)
    tests: str | PathLike[str] | None = option("FILE", "-t", default=None)
    tests_run: str | None = option("apart|beside", default=None, into="settings.evaluator.tests_run")
    check: str | None = option("COMMAND", default=None)
    environment: str | None = option("NAME[:ARG]", default=None)
    restarts: int = option("K", default=1, least=1)
    protect: Sequence[str] = option("PATH", default=(), into="settings.workspace.protect")
    fresh: bool = option("", default=False, into="settings.actor.fresh")
    window: int | None = option("N", default=None, into="settings.strategy.window")
    lesson_tokens: int | None = option("N", default=None, into="settings.strategy.tokens")
    overflow: str | None = option("newest|useful|condense", default=None, into="settings.strategy.overflow")
    temperatures: Sequence[float] | None = option("T,T,…", default=None, into="settings.actor.temperatures")
    examples: str | PathLike[str] | None = option("FILE", default=None, into="settings.actor.examples")


class RunOptions(Watched, Beginning, Course, Budget):
    """The options of `mulligan.run`.

    Attributes:
        max_iter: Maximum number of act-reflect cycles (for a react agent, of model calls).
    """

    agent: str | PathLike[str] = place(kw_only=False)
    task: str | Task = place(kw_only=False)
    max_iter: int | None = option("N", default=None, least=1)
    settings: Mapping[str, Mapping[str, Any]] | None = value(default=None, init=False)


class ResumeOptions(Watched, Roles, Cast, Budget):
    """The options of `mulligan.resume`: what replaces the recorded options.

    Attributes:
        fork: Continue as a new run, even if something has changed or RUN has finished. Required to change roles,
            models, settings or prompts.
        edit_reflections: Whether to ask at the terminal about each lesson (default: as when the run started).
        bank: The bank, if the run was started with a bank object.
    """

    run: str = place(kw_only=False)
    fork: bool = option("", default=False)
    edit_reflections: bool | Decide | None = option("", "--edit-reflections/--no-edit-reflections", default=None)
    bank: Bank | None = None
