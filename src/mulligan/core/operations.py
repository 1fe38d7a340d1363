"""Operations, such as a recall or a model call: who watches them (metrics and traces), and who acts.

Without a watcher, an operation costs next to nothing.
"""

from __future__ import annotations

import logging
import time
from asyncio import CancelledError
from collections.abc import Callable, Generator, Mapping, Sized
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from types import CoroutineType
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

from mulligan.core.protocols import Model
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import Json, Usage

Kind: TypeAlias = Literal[
    "episode",
    "trial",
    "recall",
    "learn",
    "keep",
    "create",
    "change",
    "purge",
    "clear",
    "upkeep",
    "tool",
    "call",
    "model",
]
"""episode, trial, recall, learn: as in the records. keep: stores lessons and folds duplicates. create: stores each as a
lesson of its own. change: changes a lesson. purge: removes lessons for good. clear: removes a whole bank. upkeep: does
queued work of a bank in the background. tool: an agent calls a tool. call: a client calls one of the server's tools.
model: asks a model one question."""

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("mulligan")


@dataclass
class Operation:
    """Something that is being done, or has been done.

    Attributes:
        name: what is called: a tool, a model; "" for the other kinds.
        facts: figures, names and ids, without content; the code inside the block may add some.
        content: what a user or a model wrote, by name: a text, the arguments of a tool, or lessons.
        error: the name of the exception's class; "cancelled" for a cancellation; "" while all is well.
        seconds: how long it took, once it has ended.
        usage: the tokens and the cost of a model call.
    """

    kind: Kind
    name: str = ""
    facts: dict[str, Json] = field(default_factory=dict[str, Json])
    content: dict[str, Any] = field(default_factory=dict[str, Any])
    error: str = ""
    seconds: float = 0.0
    usage: Usage = Usage()


Watcher: TypeAlias = Callable[[Operation], AbstractContextManager[object]]
"""Returns a context that is entered when the operation begins and left when it has ended."""

_watchers: list[Watcher] = []


@contextmanager
def watched_by(watcher: Watcher) -> Generator[None]:
    """Calls this watcher for all operations of this process until the block ends."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


@contextmanager
def operation(
    kind: Kind, name: str = "", facts: Mapping[str, Json] = {}, content: Mapping[str, Json] = {}
) -> Generator[Operation]:
    """An operation that lasts as long as the block. Exceptions of watchers are only logged."""
    done = Operation(kind, name, dict(facts), dict(content))
    if not _watchers:
        yield done
        return
    contexts = [context for watcher in _watchers if (context := _enter(watcher, done)) is not None]
    start = time.monotonic()
    try:
        yield done
    except BaseException as error:
        done.error = "cancelled" if isinstance(error, CancelledError) else type(error).__name__
        raise
    finally:
        done.seconds = time.monotonic() - start
        for context in reversed(contexts):
            try:
                context.__exit__(None, None, None)
            except Exception:
                log.exception("an observer failed; the operation continues")


def _enter(watcher: Watcher, done: Operation) -> AbstractContextManager[object] | None:
    with suppress(Exception):
        context = watcher(done)
        context.__enter__()
        return context
    log.error("an observer could not start; the operation continues")
    return None


@contextmanager
def asking(model: Model, question: Question, role: str) -> Generator[Callable[[Answer], Answer]]:
    """An operation in which the block asks a model and hands in the answer. role: who asks, such as "actor"."""
    with operation("model", model.id, {"role": role}) as done:
        if _watchers:
            done.content = {"question": "\n\n".join(message.text for message in question.messages)}

        def answered(answer: Answer) -> Answer:
            done.usage = answer.usage
            if _watchers:
                done.content["answer"] = str(answer.content)
            return answer

        try:
            yield answered
        except Exception as error:
            done.usage = getattr(error, "usage", done.usage)  # an answer that cannot be used is paid for too
            raise


async def asked(model: Model, question: Question, sampling: Sampling, role: str) -> Answer:
    """Asks the model, as an operation."""
    with asking(model, question, role) as answered:
        return answered(await model.ask(question, sampling))


def as_operation(
    kind: Kind, *facts: str, content: str = "", records: str = ""
) -> Callable[[Callable[P, CoroutineType[Any, Any, T]]], Callable[P, CoroutineType[Any, Any, T]]]:
    """Makes each call of a bank's method an operation.

    Args:
        facts: attributes of the result that become facts; for one with a length, the length.
        content: the name under which the first argument, a task or a text, becomes content; "": it is left out.
        records: the attribute of the result that holds lessons, which become content; "": there is none.
    """

    def wrap(method: Callable[P, CoroutineType[Any, Any, T]]) -> Callable[P, CoroutineType[Any, Any, T]]:
        @wraps(method)
        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            bank: Any = args[0]
            with operation(kind, facts={"bank": bank.agent_id}) as done:
                if content and len(args) > 1:
                    done.content[content] = str(getattr(args[1], "prompt", args[1]))
                result = await method(*args, **kwargs)
                for name in facts:
                    value = getattr(result, name)
                    done.facts[name] = len(value) if isinstance(value, Sized) else value
                if records:
                    done.content["records"] = getattr(result, records)
                return result

        return call

    return wrap


_actor: ContextVar[str] = ContextVar("mulligan_actor", default="")


@contextmanager
def acting_as(who: str) -> Generator[None]:
    """A context manager that sets the author of changes to lessons in their history, such as "cli anna" or "mcp token
    1".
    """
    token = _actor.set(who)
    try:
        yield
    finally:
        _actor.reset(token)


def actor() -> str:
    """Who acts here, as `acting_as` says; "" if unknown."""
    return _actor.get()


def signature() -> Mapping[str, str]:
    """The part of a change's detail that names who makes it; empty if unknown."""
    return {"by": actor()} if actor() else {}


def detail_of(why: str = "") -> Json:
    """The detail of a change: the reason, and who makes it."""
    return {**({"why": why} if why else {}), **signature()} or None
