"""How a function is retried: what `retry` was given, and what that comes to."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any, Literal, Protocol

from mulligan.app.compose import Composition, Drive, Parts, compose, object_name
from mulligan.app.config import load
from mulligan.app.model_roles import Models, vision_role
from mulligan.app.plugins import find
from mulligan.app.recipe import Recipe
from mulligan.app.session import with_limits
from mulligan.app.tasks import judge_spec
from mulligan.core.errors import InvalidInput
from mulligan.core.failures import Wait, check_wait
from mulligan.core.limits import Limits
from mulligan.core.protocols import Bank, Evaluator, Model, Reflector, Store
from mulligan.core.records import Attempt, Head, Json, Plan, Spec
from mulligan.evaluators._judging import check_judge, judge_name
from mulligan.sandbox.local import LocalSandbox

_WORDS: Mapping[type, str] = {
    str: "a text",
    Model: "a model",
    Reflector: "a reflector",
    Bank: "a bank",
    Store: "a store",
}


class Reading(Protocol):
    """How results of a function are read that are no plain values; it may be a `GivingReading`."""

    def answer(self, result: Any) -> Any:
        """What the judge is shown."""
        ...

    def attempt(self, result: Any) -> Attempt:
        """What the record keeps: a text, the steps, and the tokens. It is not read back."""
        ...


class GivingReading(Reading, Protocol):
    """A reading that gives the caller something else than the result: see `core.optional`."""

    def given(self, result: Any) -> Any:
        return result


@dataclass(frozen=True)
class Manner:
    """How a function is retried: what `retry` was given, and what it found out about the function.

    signature: that of the function. notes: the parameter for the notes; into: the one whose text they are appended to.
    returns: the type that the function says it returns, if that says something. The rest is as in `retry`.
    """

    name: str
    signature: inspect.Signature
    notes: str | None
    into: str | None
    task: str | Callable[..., str] | None
    returns: Any
    judge: Any
    threshold: float
    failures: type[Exception] | tuple[type[Exception], ...]
    unsolved: Literal["best", "raise"]
    before_retry: Callable[..., Any] | None
    bank: str | Bank | None
    reflect: Any
    judge_model: str | Model | None
    key: str | Callable[..., str] | None
    record: bool | Literal["required"]
    wait: Wait
    tries: int
    limits: Limits | Mapping[str, float | None] | None
    store: Store | None
    reads: Reading | None = None

    def check(self) -> None:
        """Raises `InvalidInput` for what cannot work, so that no call has to find it out."""
        names = [name for name in self.signature.parameters if name != self.notes]
        if isinstance(self.task, str) and self.task not in names:
            has = ", ".join(names) or "none"
            raise InvalidInput(f"{self.name} has no parameter {self.task!r} for the task; it has {has}.")
        if self.unsolved not in ("best", "raise"):
            raise InvalidInput(f"unsolved must be 'best' or 'raise', not {self.unsolved!r}.")
        if self.evaluator is not None:
            find("evaluators", self.evaluator.name)
        elif self.judged_by_function:
            check_judge(self.judge, names, self.name)
        elif not isinstance(self.judge, Evaluator):
            raise InvalidInput(
                "judge must be a function, an evaluator or the name of one, or the Path of a tests file, not "
                f"{self.judge!r}."
            )
        kinds = self.failures if isinstance(self.failures, tuple) else (self.failures,)
        for kind in kinds:
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                raise InvalidInput(f"failures must be classes of exceptions, not {kind!r}.")
        check_wait(self.wait)
        self._check_types()
        _ = self.bounds

    def _check_types(self) -> None:
        given: Mapping[str, tuple[Any, tuple[type, ...]]] = {
            "before_retry": (self.before_retry, ()),
            "key": (self.key, (str,)),
            "task": (self.task, (str,)),
            "reflect": (self.reflect, (str, Model, Reflector)),
            "judge_model": (self.judge_model, (str, Model)),
            "bank": (self.bank, (str, Bank)),
            "store": (self.store, (Store,)),
        }
        for name, (value, kinds) in given.items():
            may_be_function = name in ("before_retry", "key", "task", "reflect")
            if value is None or isinstance(value, kinds) or (may_be_function and callable(value)):
                continue
            words = ["a function"] * may_be_function + [_WORDS[kind] for kind in kinds]
            raise InvalidInput(f"{name} must be {' or '.join(words)}, not {value!r}.")
        if self.record not in (True, False, "required"):
            raise InvalidInput(f"record must be True, False or 'required', not {self.record!r}.")
        if self.reads is not None and not (hasattr(self.reads, "answer") and hasattr(self.reads, "attempt")):
            raise InvalidInput(f"reads must have answer and attempt, not {self.reads!r}.")
        number = isinstance(self.threshold, (int, float)) and not isinstance(self.threshold, bool)
        if not number or self.threshold != self.threshold:
            raise InvalidInput(f"threshold must be a number, not {self.threshold!r}.")
        if isinstance(self.tries, bool) or not isinstance(self.tries, int) or self.tries < 1:
            raise InvalidInput(f"tries must be a whole number from 1 on, not {self.tries!r}.")
        if isinstance(self.limits, Mapping) and "trials" in self.limits:
            raise InvalidInput(f"limits has 'trials': write tries={self.limits['trials']!r} instead.")

    @cached_property
    def asked(self) -> inspect.Signature:
        """The signature that a caller sees: without the notes."""
        rest = [one for one in self.signature.parameters.values() if one.name != self.notes]
        return self.signature.replace(parameters=rest)

    @cached_property
    def bounds(self) -> Limits:
        """The limits of a call. Equal results are no reason to stop, as the world may have changed meanwhile."""
        return replace(with_limits(Limits(identical=None), self.limits), trials=self.tries)

    @cached_property
    def plan(self) -> Plan:
        return Plan(self.bank is not None, self.reflect is not None)

    @cached_property
    def head(self) -> Head:
        """What the record says of function and judge, where both are the user's own."""
        if isinstance(self.judge, str):
            judge = self.judge
        elif self.judged_by_function:
            judge = judge_name(self.judge)
        else:
            judge = self.evaluator.name if self.evaluator else object_name(self.judge)
        settings: dict[str, Json] = {"led_by": "function", "function": self.name, "judge": judge}
        settings["limits"] = asdict(self.bounds)
        return Head({"mulligan": version("mulligan"), "python": platform.python_version()}, settings=settings)

    @cached_property
    def evaluator(self) -> Spec | None:
        """The judge, if it is an evaluator that was named: by its name, or by a file of tests."""
        return judge_spec(self.judge)

    @property
    def judged_by_function(self) -> bool:
        return callable(self.judge) and not hasattr(self.judge, "evaluate")

    @property
    def reflects_by_function(self) -> bool:
        return callable(self.reflect) and not hasattr(self.reflect, "ask")

    @property
    def composes(self) -> bool:
        """Whether a role is made by name or given as an object, so that it may need a model or a sandbox."""
        return not (self.judged_by_function and (self.reflect is None or self.reflects_by_function))


def composed(manner: Manner, objects: Mapping[str, Any], drive: Drive) -> Composition:
    """The roles that are named, and those given as objects. Raises `InvalidInput` for what cannot work."""
    config = load()
    models = Models(config)
    model = None if manner.reflect is None or manner.reflects_by_function else models.name(manner.reflect)
    recipe = Recipe(
        actor=Spec(object_name(objects["actor"])),
        evaluator=manner.evaluator or Spec(object_name(objects["evaluator"])),
        reflector=Spec(object_name(objects["reflector"])) if "reflector" in objects else Spec("verbal"),
        strategy=Spec("evidence" if manner.reflect is None else "evidence_and_reflexion"),
        limits=manner.bounds,
        model=model,
        judge_model=models.name(manner.judge_model) or config.text("judge_model"),
        vision_model=vision_role(config),
    )
    return compose(recipe, Parts(models.open, LocalSandbox(), objects), drive)


def takes_argument(function: Callable[..., Any]) -> bool:
    return bool(inspect.signature(function).parameters)
