"""How a function is retried: the options of `retry`, and what follows from them for one function."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias

from mulligan.app.compose import Composition, Drive, Parts, compose, object_name
from mulligan.app.config import load
from mulligan.app.model_roles import Models, vision_role
from mulligan.app.options import Options, value
from mulligan.app.plugins import find
from mulligan.app.recipe import Recipe
from mulligan.app.session import with_limits
from mulligan.app.tasks import judge_spec
from mulligan.core.errors import InvalidInput
from mulligan.core.failures import Wait, check_wait
from mulligan.core.limits import Limits
from mulligan.core.protocols import Bank, Evaluator, Model, Reflector, Store
from mulligan.core.records import Attempt, Episode, Head, Json, Plan, Reflection, Spec
from mulligan.evaluators._judging import JudgeFunction, check_judge, judge_name
from mulligan.sandbox.local import LocalSandbox

ReflectFunction: TypeAlias = Callable[[Episode], "str | Reflection | Awaitable[str | Reflection | None] | None"]


class Reading(Protocol):
    """Reads results that are not plain values, such as those of a framework. It may be a `GivingReading`."""

    def answer(self, result: Any) -> Any:
        """What the judge sees of a result."""
        ...

    def attempt(self, result: Any) -> Attempt:
        """What is recorded of a result: its text, the steps and the tokens. It is never read back."""
        ...


class GivingReading(Reading, Protocol):
    """A reading that gives the caller something other than the result (see `core.optional`)."""

    def given(self, result: Any) -> Any:
        return result


class RetryOptions(Options):
    """The options of `mulligan.retry`.

    Attributes:
        judge: a function of the answer, and of arguments of the decorated one that it names before it (`task` is
            always known). It returns a bool, a score, (score, "why"), a `Feedback`, or None to accept the result; an
            exception rejects it with its message. Or an evaluator, by name ("exact_match:42", "command:pytest -q") or
            as an object; or the `Path` of a file of tests for the code that the function returns.
        tries: maximum number of calls of the function.
        wait: the wait before each further try: the seconds of the first wait; or (first, longest), where the wait
            doubles up to the longest; or a function of the failed try.
        notes: the parameter that gets the notes (`Notes`, a text; empty at first). The one annotated as `Notes` is
            found by itself. If it names another parameter, its text gets the notes appended. None: no notes.
        task: the parameter that contains the task, or a function of the arguments that returns it. None: the
            parameter named task, prompt, question, …; else the first string.
        threshold: the minimum score of a try that passes.
        failures: exceptions of the function that count as a failed try. All others, and `InvalidInput`, are raised at
            once.
        unsolved: if no try passes, "best" returns the best result, and "raise" raises `NotSolved`. It is always
            raised if no try returned anything.
        before_retry: called before each try after the first, with the notes if it takes an argument.
        bank: the agent whose bank gives lessons to the notes and learns from the call; or a bank.
        reflect: writes a reflection after each failed try: a model by name or object, or a function of the episode.
        judge_model: the model of a judge that needs one.
        key: the key of a call, or a function of its arguments. If a call was cut off (killed, over budget) and is made
            again with the same key, finished tries are not repeated. None: a key made of function, judge and arguments,
            if these have a JSON form.
        record: whether the tries are recorded. If the store fails, a warning is logged and the call continues;
            "required" raises the error.
        limits: further limits, such as {"seconds": 60}.
        store: where the tries are recorded; by default the configured store.
        reads: what the judge sees of a result, and what is recorded of it. None: the result itself.
    """

    judge: JudgeFunction | Evaluator | str | PathLike[str] | None = None
    tries: int = value(default=3, least=1)
    wait: Wait = None
    notes: str | None = "notes"
    task: str | Callable[..., str] | None = None
    threshold: float = 1.0
    failures: type[Exception] | Sequence[type[Exception]] = Exception
    unsolved: Literal["best", "raise"] = "best"
    before_retry: Callable[..., Any] | None = None
    bank: Bank | str | None = None
    reflect: str | Model | ReflectFunction | Reflector | None = None
    judge_model: str | Model | None = None
    key: str | Callable[..., str] | None = None
    record: bool | Literal["required"] = True
    limits: Limits | Mapping[str, float | None] | None = None
    store: Store | None = None
    reads: Reading | None = None


@dataclass(frozen=True)
class RetrySettings:
    """How a function is retried: the options of `retry`, and what follows from them for this function.

    Attributes:
        signature: of the function.
        notes: the parameter for the notes.
        appended_to: the parameter to whose text the notes are appended.
        task: the parameter that contains the task, or a function that returns it.
        returns: the declared return type, if it tells how to read a result back.
    """

    name: str
    signature: inspect.Signature
    notes: str | None
    appended_to: str | None
    task: str | Callable[..., str] | None
    returns: Any
    judge: Any
    failures: Any
    options: RetryOptions

    def check(self) -> None:
        """Raises `InvalidInput` for options that cannot work, before the first call."""
        options = self.options
        names = [name for name in self.signature.parameters if name != self.notes]
        if isinstance(self.task, str) and self.task not in names:
            has = ", ".join(names) or "none"
            raise InvalidInput(f"{self.name} has no parameter {self.task!r} for the task; it has {has}.")
        if options.unsolved not in ("best", "raise"):
            raise InvalidInput(f"unsolved must be 'best' or 'raise', not {options.unsolved!r}.")
        if self.evaluator is not None:
            find("evaluators", self.evaluator.name)
        elif self.judged_by_function:
            check_judge(self.judge, names, self.name)
        elif not isinstance(self.judge, Evaluator):
            raise InvalidInput(
                "judge must be a function, an evaluator or the name of one, or the Path of a test file, not "
                f"{self.judge!r}."
            )
        failures: Any = self.failures
        for kind in failures if isinstance(failures, tuple) else (failures,):  # pyright: ignore[reportUnknownVariableType]
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                raise InvalidInput(f"'failures' must be classes of exceptions, not {kind!r}.")
        check_wait(options.wait)
        if options.record not in (True, False, "required"):
            raise InvalidInput(f"record must be True, False or 'required', not {options.record!r}.")
        if options.reads is not None and not (hasattr(options.reads, "answer") and hasattr(options.reads, "attempt")):
            raise InvalidInput(f"'reads' must have answer and attempt, not {options.reads!r}.")
        if options.threshold != options.threshold:
            raise InvalidInput(f"threshold must be a number, not {options.threshold!r}.")
        if isinstance(options.limits, Mapping) and (counted := {"trials", "tries"}.intersection(options.limits)):
            name = counted.pop()
            raise InvalidInput(f"limits contains {name!r}: use tries={options.limits[name]!r} instead.")
        _ = self.bounds

    @cached_property
    def call_signature(self) -> inspect.Signature:
        """The signature that a caller sees: without the notes."""
        parameters = [parameter for parameter in self.signature.parameters.values() if parameter.name != self.notes]
        return self.signature.replace(parameters=parameters)

    @cached_property
    def bounds(self) -> Limits:
        """The limits of a call. Equal results do not end it: the world may have changed in the meantime."""
        return with_limits(Limits(identical=None), self.options.limits, self.options.tries)

    @cached_property
    def plan(self) -> Plan:
        return Plan(self.options.bank is not None, self.options.reflect is not None)

    @cached_property
    def head(self) -> Head:
        """The head of the record: it names the function, the judge and the limits."""
        if isinstance(self.judge, str):
            judge = self.judge
        elif self.judged_by_function:
            judge = judge_name(self.judge)
        else:
            judge = self.evaluator.name if self.evaluator else object_name(self.judge)
        record_settings: dict[str, Json] = {"led_by": "function", "function": self.name, "judge": judge}
        record_settings["limits"] = asdict(self.bounds)
        return Head({"mulligan": version("mulligan"), "python": platform.python_version()}, settings=record_settings)

    @cached_property
    def evaluator(self) -> Spec | None:
        """The judge, if it is the name of an evaluator or a file of tests."""
        return judge_spec(self.judge)

    @property
    def judged_by_function(self) -> bool:
        return callable(self.judge) and not hasattr(self.judge, "evaluate")

    @property
    def reflects_by_function(self) -> bool:
        return callable(self.options.reflect) and not hasattr(self.options.reflect, "ask")

    @property
    def composes(self) -> bool:
        """Whether a role is named or passed as an object, and so may need a model or a sandbox."""
        return not (self.judged_by_function and (self.options.reflect is None or self.reflects_by_function))


def composed(settings: RetrySettings, objects: Mapping[str, Any], drive: Drive) -> Composition:
    """The roles of a call: `objects`, and those that the options name. Raises `InvalidInput` if they cannot work."""
    config = load()
    models = Models(config)
    reflect: Any = None if settings.reflects_by_function else settings.options.reflect
    recipe = Recipe(
        actor=Spec(object_name(objects["actor"])),
        evaluator=settings.evaluator or Spec(object_name(objects["evaluator"])),
        reflector=Spec(object_name(objects["reflector"])) if "reflector" in objects else Spec("verbal"),
        strategy=Spec("evidence" if settings.options.reflect is None else "evidence_and_reflexion"),
        limits=settings.bounds,
        model=models.name(reflect),
        judge_model=models.name(settings.options.judge_model) or config.text("judge_model"),
        vision_model=vision_role(config),
    )
    return compose(recipe, Parts(models.open, LocalSandbox(), objects), drive)


def takes_argument(function: Callable[..., Any]) -> bool:
    return bool(inspect.signature(function).parameters)
