"""`wrap` runs an agent of a framework again with what failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, overload

from mulligan.core.errors import InvalidInput, error_text
from mulligan.core.optional import with_defaults
from mulligan.core.protocols import Evaluator
from mulligan.core.records import Attempt, Episode
from mulligan.evaluators._judging import JudgeFunction
from mulligan.functions import frameworks
from mulligan.functions.notes import Notes
from mulligan.functions.retry import STREAMS, retry
from mulligan.recording.outages import Outages

T = TypeVar("T")

REFUSED = {"STREAMS": STREAMS, "UNJUDGED": "it runs the agent, or makes one that is run, without the judge"}
"""Why a wrapped agent refuses the methods that a framework lists under each of these names."""


class Framework(Protocol):
    """How to run the agents of a framework and read their results: the contents of a file in `functions/frameworks/`.

    A framework may also have the parts of `WholeFramework` and `GivingReading`.

    Attributes:
        PACKAGE: the package of the agents' classes, or of a base class.
        ENTRIES: the methods that run an agent, and whether each is asynchronous.
    """

    @property
    def PACKAGE(self) -> str: ...
    @property
    def ENTRIES(self) -> Mapping[str, bool]: ...

    def recognises(self, agent: Any) -> bool:
        """Whether an object of the package is an agent."""
        ...

    def task(self, agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """The task that a call with these arguments sets."""
        ...

    def noted(
        self, agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any], notes: str
    ) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
        """The agent and the arguments of a call with these notes. The originals are not changed."""
        ...

    def answer(self, result: Any) -> Any:
        """What the judge sees of a result."""
        ...

    def attempt(self, result: Any) -> Attempt:
        """What is recorded of a result: its text, the steps and the tokens."""
        ...


class WholeFramework(Framework, Protocol):
    """The optional parts of a framework, with their defaults (see `core.optional`).

    Attributes:
        STREAMS, UNJUDGED: the methods that a wrapped agent refuses, for the reasons in `REFUSED`.
    """

    STREAMS: Sequence[str] = ()
    UNJUDGED: Sequence[str] = ()

    def method(self, agent: Any, name: str) -> Any:
        """What to call in place of the agent's method of this name; None if the agent has no such method."""
        return getattr(agent, name, None)


class Wrapped:
    """An agent whose methods that run it are retried. All other attributes are the agent's own.

    Attributes:
        episode: the record of the newest call in this task or thread.
    """

    def __init__(self, agent: Any, framework: Framework, options: Mapping[str, Any]) -> None:
        whole = with_defaults(framework, WholeFramework)
        method = whole.method
        entries = {
            name: _entry(agent, name, is_async, framework, method, options)
            for name, is_async in framework.ENTRIES.items()
            if method(agent, name) is not None
        }
        refused = {name: why for kind, why in REFUSED.items() for name in getattr(whole, kind)}
        self.__dict__.update(_agent=agent, _entries=entries, _refused=refused)

    @property
    def episode(self) -> Episode | None:
        episodes = [entry.episode for entry in self._entries.values() if entry.episode is not None]
        return max(episodes, key=lambda episode: episode.started, default=None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not self.__dict__:  # `copy` asks before there are attributes
            raise AttributeError(name)
        if name in self._entries:
            return self._entries[name]
        return self._refusing(name) if name in self._refused else getattr(self._agent, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._agent, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._entries.get("__call__", self._refusing("__call__"))(*args, **kwargs)

    def _refusing(self, name: str) -> Callable[..., Any]:
        def refuse(*_: Any, **__: Any) -> Any:
            why = self._refused.get(name, REFUSED["UNJUDGED"])
            raise InvalidInput(
                f"{type(self._agent).__name__}.{name} of a wrapped agent cannot be used: {why}. Call "
                f"{', '.join(self._entries)}, or use the agent that you passed to mulligan.wrap."
            )

        return refuse


class _RunnerAgent(Protocol):
    """Tells a type checker that an agent is one of openai-agents."""

    handoffs: Any

    async def get_system_prompt(self, run_context: Any, /) -> str | None: ...


class Runs(Protocol):
    """The type of a wrapped agent of openai-agents: it has the methods of the `Runner`, without the agent."""

    async def run(self, input: Any, **options: Any) -> Any: ...
    def run_sync(self, input: Any, **options: Any) -> Any: ...
    @property
    def episode(self) -> Episode | None: ...


@overload
def wrap(agent: _RunnerAgent, *, judge: JudgeFunction | Evaluator | str | PathLike[str], **options: Any) -> Runs: ...
@overload
def wrap(
    agent: T,
    *,
    judge: JudgeFunction | Evaluator | str | PathLike[str],
    framework: Framework | None = None,
    **options: Any,
) -> T: ...
def wrap(agent: Any, *, judge: Any, framework: Framework | None = None, **options: Any) -> Any:
    """Wrap an agent, so that it runs again with what failed, until the judge accepts the result.

        agent = mulligan.wrap(my_agent, judge=right, bank="billing")
        result = await agent.run("Write the total of …")       # the framework's own method and result

    Args:
        agent: a pydantic-ai, openai-agents or smolagents agent, a LangChain runnable, a LangGraph graph, a DSPy module
            or a CrewAI crew. The wrapper of an openai-agents agent has `run` and `run_sync`, which call the `Runner`.
        judge: as in `retry`. A function takes the framework's answer, or the task and the answer.
        framework: how to run an agent of another framework.
        options: as in `retry`.

    Returns:
        An object with the agent's methods and attributes. Methods that run the agent try again; methods that would
        run it without the judge, such as streams, raise an error.

    Raises:
        InvalidInput: the agent does not belong to a known framework.
    """
    return Wrapped(agent, framework or _framework_of(agent), {"judge": judge, **options})


def _entry(
    agent: Any,
    name: str,
    is_async: bool,
    framework: Framework,
    method: Callable[[Any, str], Any],
    options: Mapping[str, Any],
) -> Any:
    """The agent's method of this name, as a function that is retried."""
    full_name = f"{type(agent).__name__}.{name}"
    parameters = signature(method(agent, name))

    def call(args: Sequence[Any], kwargs: Mapping[str, Any], notes: Notes) -> Any:
        noted_agent = agent
        if notes:
            try:
                noted_agent, args, kwargs = framework.noted(agent, args, kwargs, str(notes))
            except InvalidInput:
                raise
            except Exception as error:  # an error of Mulligan's, not of the agent: the agent still runs
                Outages(full_name).warn("an agent is tried again without notes", error_text(error))
        return method(noted_agent, name)(*args, **kwargs)

    async def run(*args: Any, notes: Notes, **kwargs: Any) -> Any:
        return await call(args, kwargs, notes)

    def run_sync(*args: Any, notes: Notes, **kwargs: Any) -> Any:
        return call(args, kwargs, notes)

    def task(*args: Any, **kwargs: Any) -> str:
        try:
            parameters.bind(*args, **kwargs)  # wrong arguments are an error at once, not a failed try
        except TypeError as error:
            raise TypeError(f"{full_name}: {error}") from None
        try:
            return framework.task(agent, args, kwargs)
        except InvalidInput:
            raise
        except Exception as error:  # an error of Mulligan's, not of the agent
            Outages(full_name).warn("the task of an agent is not known", error_text(error))
            return ""

    function: Callable[..., Any] = run if is_async else run_sync
    function.__qualname__ = function.__name__ = full_name
    retry_options: dict[str, Any] = {"task": task, "reads": framework, **options}
    return retry(**retry_options)(function)


@cache
def _frameworks() -> tuple[Framework, ...]:
    folder = Path(frameworks.__file__).parent
    names = sorted(file.stem for file in folder.glob("[a-z]*.py"))
    return tuple(cast(Framework, import_module(f"{frameworks.__name__}.{name}")) for name in names)


def _framework_of(agent: Any) -> Framework:
    packages = {cls.__module__.partition(".")[0] for cls in type(agent).__mro__}
    for framework in _frameworks():
        if framework.PACKAGE in packages and framework.recognises(agent):
            return framework
    known = ", ".join(framework.PACKAGE for framework in _frameworks())
    raise InvalidInput(
        f"{type(agent).__name__} is not an agent from a known framework ({known}). Use mulligan.retry to "
        "decorate a function that runs it, or framework= to describe how to run it. See: mulligan docs functions"
    )
