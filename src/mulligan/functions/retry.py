"""`retry`: calls a function again with what failed, until a judge has nothing to object.

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
from mulligan.functions.manner import Manner, RetryOptions
from mulligan.functions.notes import Notes
from mulligan.functions.results import declared_type
from mulligan.recording.bridge import finish, is_asynchronous

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")

TASKS = ("task", "prompt", "question", "query", "message", "input", "text")
"""Names of an argument that is taken for the task, if `retry` is told none."""
STREAMS = "it yields its result piece by piece, and a caller cannot unsee the output of a failed try"


class _Newest:
    """The records of the newest calls of a function."""

    def __init__(self) -> None:
        self.here: ContextVar[Episode | None] = ContextVar("mulligan_newest_episode", default=None)
        self.anywhere: Episode | None = None


class Retrying(Generic[P, R]):
    """A function that is tried again with what failed. Called as the function is, without its notes."""

    def __init__(self, function: Callable[..., Any], manner: Manner) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function, self._manner = function, manner
        self._bound: tuple[Any, ...] = ()
        self._newest = _Newest()
        self.__signature__ = manner.asked

    @property
    def episode(self) -> Episode | None:
        """The record of the newest call that ended in this task or thread, or in any where none did; None before the
        first."""
        return self._newest.here.get() or self._newest.anywhere

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function's result, of the try that passed. See `retry` for what is returned or raised if none did."""
        return self.run(*args, **kwargs).value

    def run(self, *args: P.args, **kwargs: P.kwargs) -> Result[R]:
        """As a call, with the whole record beside the value."""
        return finish(self._run(args, kwargs))

    async def _run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Result[Any]:
        call = Call(self._manner, self._function, (*self._bound, *args), kwargs)
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
        """By name, as functions are pickled and copied."""
        return (getattr, (self._bound[0], self._function.__name__)) if self._bound else self._function.__qualname__


class AsyncRetrying(Retrying[P, R]):
    """`Retrying` for an asynchronous function."""

    _is_coroutine = getattr(asyncio.coroutines, "_is_coroutine", None)  # what asyncio.iscoroutinefunction looks at

    def __init__(self, function: Callable[..., Any], manner: Manner) -> None:
        super().__init__(function, manner)
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
    """What `retry` returns: a decorator. The function loses the parameter for the notes, if it is among its first
    three and is annotated as `Notes`."""

    # Those where the notes come last are first: a parameter of any type, as object, takes notes, too.
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
    """What a type checker sees of `retry`."""

    @overload
    def __call__(self, function: Callable[..., Coroutine[Any, Any, R]], /) -> AsyncRetrying[..., R]: ...
    @overload
    def __call__(self, function: Callable[..., R], /) -> Retrying[..., R]: ...
    @overload
    def __call__(self, *args: Q.args, **options: Q.kwargs) -> Retry: ...


def _taking(record: Callable[Q, RetryOptions]) -> Callable[[Callable[..., Any]], _Retry[Q]]:
    return cast(Any, taken_by(record))


@_taking(RetryOptions)
def retry(function: Callable[..., Any] | None = None, /, **named: Any) -> Any:
    """Decorator: call the function again, with what failed, until the judge accepts the result.

    A retry repeats the function's side effects; `before_retry` can undo them. No model is needed. Without
    options, `@mulligan.retry` needs no parentheses.

    Returns:
        A decorator for a function or method, synchronous or not. The decorated function has `run(…)`, which returns a
        `Result` with the value and the episode, and `episode`, the episode of the latest call.

    Raises:
        InvalidInput: when the function is decorated, if the options cannot work.
    """

    options: RetryOptions = RetryOptions.from_call("retry", (), named)
    failures: Any = options.failures

    def decorate(function: Callable[..., Any]) -> Any:
        if isinstance(function, (classmethod, staticmethod)):
            bare = cast("staticmethod[..., Any]", function)
            return type(bare)(decorate(bare.__func__))
        name = _checked_name(function)
        inner = inspect.unwrap(function)
        signature = _signature(function, name)
        optional = options.judge is None
        noted, into = _where_notes_go(name, signature, _annotations(inner), options.notes, optional=optional)
        names = [one for one in signature.parameters if one != noted]
        manner = Manner(
            name,
            signature,
            noted,
            into,
            options.task or next((one for one in TASKS if one in names), None),
            returns=declared_type(inner),
            judge=returned if options.judge is None else options.judge,
            failures=tuple(failures) if isinstance(failures, (list, tuple, set, frozenset)) else failures,  # pyright: ignore[reportUnknownArgumentType]
            options=options,
        )
        manner.check()
        kind = cast(Any, AsyncRetrying if is_asynchronous(inner) else Retrying)
        return kind(function, manner)

    return decorate if function is None else decorate(function)


def _checked_name(function: Any) -> str:
    """The function's name. Raises `InvalidInput` for what cannot be retried."""
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
    """The parameter that gets the notes, and the one whose text they are appended to: one of them at most.

    optional: it need not have one.
    """
    parameters = signature.parameters
    if annotated := [one for one, of in annotations.items() if one in parameters and _is_notes(of)]:
        return annotated[0], None
    if notes is None:
        return None, None
    if notes == "notes" and notes in parameters:
        return notes, None
    if notes in parameters:
        return None, notes
    if optional and notes == "notes":
        return None, None
    raise InvalidInput(
        f"{name} has no parameter {notes!r} for the failures so far: add one (notes: mulligan.Notes), name a string "
        "parameter to which they are appended (notes='prompt'), or pass notes=None if the function should not see them."
    )


def _is_notes(annotation: Any) -> bool:
    """Whether the annotation is `Notes`, also if it may be None or has something beside it."""
    if isinstance(annotation, str):  # of names that only a type checker imports
        return bool(re.fullmatch(r"(mulligan\.)?Notes(\s*\|\s*None)?", annotation))
    if get_origin(annotation) in (Union, UnionType, Annotated):
        return any(one is Notes for one in get_args(annotation))
    return annotation is Notes
