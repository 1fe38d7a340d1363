"""`retry`: calls a function again with what failed, until a judge accepts the result.

    @mulligan.retry(judge=right, tries=3, bank="billing")
    async def bill(task: str, notes: mulligan.Notes) -> str: ...

A call is an episode: the function acts, the judge evaluates, and what failed reaches the next try as notes.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from types import UnionType
from typing import (
    Annotated,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    overload,
)

from mulligan.app.options import taken_by
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode
from mulligan.evaluators._judging import returned
from mulligan.functions.calls import Call, Result
from mulligan.functions.notes import Notes
from mulligan.functions.results import declared_type
from mulligan.functions.settings import RetryOptions, RetrySettings
from mulligan.recording.bridge import is_asynchronous, portal

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")

TASKS = ("task", "prompt", "question", "query", "message", "input", "text")
"""Names of the parameter that is taken for the task if the option `task` is not given."""
STREAMS = "it yields its result piece by piece, and a caller cannot unsee the output of a failed try"


class _NewestEpisodes:
    """The episodes of a function's newest calls: in this task or thread, and in any."""

    def __init__(self) -> None:
        self.here: ContextVar[Episode | None] = ContextVar("mulligan_newest_episode", default=None)
        self.anywhere: Episode | None = None


class Retrying(Generic[P, R]):
    """A function that is retried with what failed. Call it like the original function, without the notes."""

    def __init__(self, function: Callable[..., Any], settings: RetrySettings) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function, self._settings = function, settings
        self._bound: tuple[Any, ...] = ()
        self._newest = _NewestEpisodes()
        self.__signature__ = settings.call_signature

    @property
    def episode(self) -> Episode | None:
        """The record of the newest finished call in this task or thread, or else anywhere; None before the first
        call.
        """
        return self._newest.here.get() or self._newest.anywhere

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Returns the result of the try that passed. For what happens if no try passes, see `retry`."""
        return self.run(*args, **kwargs).value

    def run(self, *args: P.args, **kwargs: P.kwargs) -> Result[R]:
        """Like calling the function, but returns the value together with the episode."""
        return portal.finish(self._run(args, kwargs))

    async def _run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Result[Any]:
        call = Call(self._settings, self._function, (*self._bound, *args), kwargs)
        try:
            return await call.run()
        finally:
            self._newest.here.set(call.episode)
            self._newest.anywhere = call.episode

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: Retrying[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> Retrying[Q, R]: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else self._method_of(instance)

    def _method_of(self, instance: object) -> Self:
        method = object.__new__(type(self))
        method.__dict__.update(self.__dict__, _bound=(instance,))
        return method

    def __reduce__(self) -> Any:
        """Pickles and copies by name, as for functions."""
        return (getattr, (self._bound[0], self._function.__name__)) if self._bound else self._function.__qualname__


class AsyncRetrying(Retrying[P, R]):
    """`Retrying` for an asynchronous function."""

    _is_coroutine = getattr(asyncio.coroutines, "_is_coroutine", None)  # asyncio.iscoroutinefunction looks at it

    def __init__(self, function: Callable[..., Any], settings: RetrySettings) -> None:
        super().__init__(function, settings)
        if sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(self)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:  # pyright: ignore[reportIncompatibleMethodOverride]
        return (await self._run(args, kwargs)).value

    async def run(self, *args: P.args, **kwargs: P.kwargs) -> Result[R]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return await self._run(args, kwargs)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: AsyncRetrying[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> AsyncRetrying[Q, R]: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else self._method_of(instance)


class Retry(Protocol):
    """The decorator that `retry` returns.

    It removes the parameter for the notes from the function's type, if it is one of the first three parameters and
    annotated `Notes`."""

    # The overloads where the notes come last are first: a parameter of type object would match `Notes` as well.
    @overload
    def __call__(
        self, function: Callable[Concatenate[A, B, Notes, P], Coroutine[Any, Any, R]], /
    ) -> AsyncRetrying[Concatenate[A, B, P], R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[A, Notes, P], Coroutine[Any, Any, R]], /
    ) -> AsyncRetrying[Concatenate[A, P], R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Notes, P], Coroutine[Any, Any, R]], /) -> AsyncRetrying[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncRetrying[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[A, B, Notes, P], R], /) -> Retrying[Concatenate[A, B, P], R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[A, Notes, P], R], /) -> Retrying[Concatenate[A, P], R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Notes, P], R], /) -> Retrying[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Retrying[P, R]: ...


class _Retry(Protocol[Q]):
    """The type of `retry` for type checkers."""

    @overload
    def __call__(self, function: Callable[..., Coroutine[Any, Any, R]], /) -> AsyncRetrying[..., R]: ...
    @overload
    def __call__(self, function: Callable[..., R], /) -> Retrying[..., R]: ...
    @overload
    def __call__(self, *args: Q.args, **options: Q.kwargs) -> Retry: ...


def _with_options_of(record: Callable[Q, RetryOptions]) -> Callable[[Callable[..., Any]], _Retry[Q]]:
    return cast(Any, taken_by(record))


@_with_options_of(RetryOptions)
def retry(function: Callable[..., Any] | None = None, /, **given_options: Any) -> Any:
    """Decorator that calls a function again, with what failed, until the judge accepts the result.

    A retry repeats the function's side effects, which `before_retry` can undo. No model is needed. Without options,
    `@mulligan.retry` needs no parentheses.

    Returns:
        A decorator for a synchronous or asynchronous function or method. The decorated function has a method `run(…)`,
        which returns a `Result` with the value and the episode, and an attribute `episode`, the episode of the newest
        call.

    Raises:
        InvalidInput: the options cannot work. This is raised when the function is decorated.
    """

    options: RetryOptions = RetryOptions.from_call("retry", (), given_options)
    failures: Any = options.failures

    def decorate(function: Callable[..., Any]) -> Any:
        if isinstance(function, (classmethod, staticmethod)):
            bare = cast("staticmethod[..., Any]", function)
            return type(bare)(decorate(bare.__func__))
        name = _checked_name(function)
        inner = inspect.unwrap(function)
        signature = _signature(function, name)
        optional = options.judge is None
        notes, appended_to = _where_notes_go(name, signature, _annotations(inner), options.notes, optional=optional)
        names = [parameter for parameter in signature.parameters if parameter != notes]
        settings = RetrySettings(
            name=name,
            signature=signature,
            notes=notes,
            appended_to=appended_to,
            task=options.task or next((task for task in TASKS if task in names), None),
            returns=declared_type(inner),
            judge=returned if options.judge is None else options.judge,
            failures=tuple(failures) if isinstance(failures, (list, tuple, set, frozenset)) else failures,  # pyright: ignore[reportUnknownArgumentType]
            options=options,
        )
        settings.check()
        retrying = cast(Any, AsyncRetrying if is_asynchronous(inner) else Retrying)
        return retrying(function, settings)

    return decorate if function is None else decorate(function)


def _checked_name(function: Any) -> str:
    """The function's name. Raises `InvalidInput` if it cannot be retried."""
    if not callable(function):
        raise InvalidInput(f"mulligan.retry decorates a function, not a {type(function).__name__}.")
    name = getattr(function, "__qualname__", type(function).__name__)
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise InvalidInput(f"{name} cannot be retried: {STREAMS}. Let it return the whole result.")
    return name


def _signature(function: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except ValueError:
        raise InvalidInput(f"{name} does not declare its parameters: decorate a function that calls it.") from None


def _annotations(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return inspect.get_annotations(function, eval_str=True)
    except Exception:  # a name that only a type checker imports
        return getattr(function, "__annotations__", {})


def _where_notes_go(
    name: str, signature: inspect.Signature, annotations: Mapping[str, Any], notes: str | None, *, optional: bool
) -> tuple[str | None, str | None]:
    """The parameter that gets the notes, and the one to whose text they are appended; at least one is None.

    optional: the function may have neither.
    """
    parameters = signature.parameters
    for parameter, annotation in annotations.items():
        if parameter in parameters and _is_notes(annotation) and (notes in (None, "notes") or notes in parameters):
            return parameter, None
    if notes is None:
        return None, None
    if notes == "notes" and notes in parameters:
        return notes, None
    if notes in parameters:
        return None, notes
    if optional and notes == "notes":
        return None, None
    raise InvalidInput(
        f"{name} has no parameter {notes!r} for the failures so far: add one (notes: mulligan.Notes), specify a "
        "string parameter to append them to (notes='prompt'), or pass notes=None if the function should not see "
        "them."
    )


def _is_notes(annotation: Any) -> bool:
    """Whether the annotation is `Notes`, `Notes | None` or an `Annotated` of `Notes`."""
    if isinstance(annotation, str):  # if it could not be evaluated
        return bool(re.fullmatch(r"(mulligan\.)?Notes(\s*\|\s*None)?", annotation))
    if get_origin(annotation) in (Union, UnionType, Annotated):
        return any(argument is Notes for argument in get_args(annotation))
    return annotation is Notes
