"""The errors that Mulligan raises on purpose. Some other modules have special kinds of them.

MulliganError
├── InvalidInput        what was given cannot work: reported before any model is called
│   └── UnknownName     no such plug-in, model, prompt: lists the known ones
├── OutOfOrder          an event that the episode was not waiting for
├── BadAnswer           a thinker's answer that does not fit its question
├── ModelError          a provider refused, failed or broke off, after retries
├── OverBudget          a limit was reached at the gate
├── GaveUp              a role sees no way on: the episode ends as given up
├── NotSolved           no try of a function that is retried was right
├── ToolError           a tool could not do what was asked: its model is told so
├── SandboxError        the sandbox could not run the job at all
├── WorldError          an environment failed, died, or did not answer in time
├── WorkspaceError      git or the disk failed where an agent works
├── GraphError          a graph database could not be reached, or died
│   └── QueryError      a query that its writer can mend: wrong, refused, too slow, too much
├── ClusterError        Ray could not be reached, or failed, where cases are worked on
├── FetchError          a file could not be fetched, or is not the pinned one
├── StoreError          the store could not be read or written
│   ├── NotFound        no such run or episode
│   │   └── AmbiguousId several ids begin with this prefix
│   ├── RecordLost      its file was deleted or replaced while it was in use
│   ├── LessonChanged   somebody changed a lesson after it was read
│   ├── Unreadable      a record that is there and cannot be read
│   └── LeaseLost       somebody else drives this episode
└── JournalError
    ├── JournalDiverged what is asked now differs from what was recorded
    └── StepInFlight    a step that may not be repeated was cut off before its result was known
"""

from __future__ import annotations

import copyreg
import difflib
import os
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from mulligan.core.records import Episode


class MulliganError(Exception):
    """The base class of Mulligan's errors. `str(error)` is a message for people.

    Attributes:
        facts: the ids of the facts that rules had learned before the error.
    """

    facts: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what the error holds. By default an exception is made anew from its message, which fails for an
        `__init__` with other arguments, and with it the pool of processes in which it was raised.
        """
        return copyreg.__newobj__, (type(self), *self.args), self.__getstate__()  # pyright: ignore


LONGEST_MESSAGE = 600
"""How many characters of one exception's message are shown."""
CHAIN = 8
"""How many exceptions of a chain, or of a group, are shown."""
LONGEST_TEXT = 3000
"""How many characters of an exception's whole text are shown."""
_GROUP: type[BaseException] = BaseExceptionGroup
"""For a type checker, a class without a parameter: what a group holds is not known here."""


def error_text(error: BaseException, outer: BaseException | None = None, *, context: bool = True) -> str:
    """`ValueError: message`, and on further lines its notes, the exceptions of a group, and those that it was raised
    from or while handling. The length is limited.

    Args:
        outer: An exception that was being handled before the code ran, as `sys.exception()` gives it: it is left out.
        context: Whether to show exceptions that were being handled.
    """
    return shortened("\n".join(_lines_of(error, {id(outer)} - {id(error)}, context)), LONGEST_TEXT)


def _lines_of(error: BaseException, seen: set[int], context: bool) -> list[str]:
    lines, chain = list[str](), _chain(error, seen, context)
    for place, (lead, link) in enumerate(chain):
        if CHAIN // 2 <= place < len(chain) - CHAIN // 2:  # the first and the last ones say most
            continue
        lines.append(f"{lead}{headline(link)}")
        lines += [shortened(text_of(note), LONGEST_MESSAGE) for note in _items(link, "__notes__")[:CHAIN]]
        members = _items(link, "exceptions") if isinstance(link, _GROUP) else ()
        for member in members[:CHAIN]:
            known = id(member) in seen or len(seen) >= CHAIN**2  # perhaps it is also the cause of its group
            first, *rest = [headline(member)] if known else _lines_of(member, seen, context)
            lines += [f"- {first}", *(f"  {line}" for line in rest)]
        if len(members) > CHAIN:
            lines.append(f"- and {len(members) - CHAIN} more")
    return lines


def _chain(error: BaseException, seen: set[int], context: bool) -> list[tuple[str, BaseException]]:
    """Return the error and those before it that are not in `seen`, each with words on how it led to the one before.
    They are added to `seen`.
    """
    chain, lead = list[tuple[str, BaseException]](), ""
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        chain.append((lead, link))
        lead = "caused by " if link.__cause__ is not None else "while handling "
        shown = context and not link.__suppress_context__
        link = link.__cause__ if link.__cause__ is not None else link.__context__ if shown else None
    return chain


def _items(error: BaseException, attribute: str) -> tuple[Any, ...]:
    """Return the notes or members of an exception. Anybody can set `__notes__` to anything."""
    items = getattr(error, attribute, ())
    return tuple(cast("list[Any] | tuple[Any, ...]", items)) if isinstance(items, (list, tuple)) else ()


def headline(error: BaseException) -> str:
    message = text_of(error).strip()
    return f"{type(error).__name__}{f': {shortened(message, LONGEST_MESSAGE)}' if message else ''}"


def text_of(value: object) -> str:
    """`str(value)`; "" if that raises an error."""
    try:
        return str(value)
    except Exception:  # its __str__ raises
        return ""


def shortened(text: str, most: int) -> str:
    """The text; if it has more than `most` characters, its beginning and its end."""
    if len(text) <= most:
        return text
    return f"{text[: most * 2 // 3]} [… {len(text) - most:,} characters …] {text[len(text) - most // 3 :]}"


def described(error: BaseException) -> str:
    """`KeyError: 'x' (FILE, line N)`, with the deepest line of the user's code, or else of an installed package, so
    that an error in a plug-in of a package is found too. Without a place if neither ran.
    """
    ours = (f"{Path(__file__).parent.parent}{os.sep}", "<")
    library = f"{sysconfig.get_path('stdlib')}{os.sep}"
    places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    installed = [place for place in places if _is_installed(place[0]) and not place[0].startswith(ours)]
    of_user = [place for place in places if not _is_installed(place[0]) and not place[0].startswith((*ours, library))]
    place = (of_user or installed or [None])[-1]
    text = "; ".join(line.strip() for line in error_text(error, context=False).splitlines() if line.strip())
    return f"{text}{f' ({place[0]}, line {place[1]})' if place else ''}"


def _is_installed(file: str) -> bool:
    """Whether a package manager put the file there. In a virtual environment that is outside the standard library."""
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


class InvalidInput(MulliganError, ValueError):
    """The input cannot work. The message states what is wrong, where, and what to do."""


class UnknownName(InvalidInput):
    """No `kind` is called `name`. The message suggests the most similar name and lists up to `MOST` known names."""

    MOST = 30

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        known = sorted(known)
        near = difflib.get_close_matches(name, known, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        more = f" and {len(known) - self.MOST} more" if len(known) > self.MOST else ""
        there = f" Available: {', '.join(known[: self.MOST])}{more}." if known else ""
        if name in REMOVED.get(kind, {}):
            meant, there, hint = f" It was removed: {REMOVED[kind][name]}", "", ""
        super().__init__(f"No {kind} is called {name!r}.{meant}{there}{' ' + hint if hint else ''}")


_KINDS_BY_CLUSTER = "Lessons and runs keep the kinds that they have. For new tasks, write rules under [kinds]"
REMOVED = {
    "strategy": {
        "adaptive": "it was no better than evidence_and_reflexion, the default. examples/thompson_strategy.py in the "
        "repository is the same strategy: copy it and name the copy, such as ./thompson_strategy.py."
    },
    "setting in [memory]": {"kinds_by_cluster": f"remove the line. {_KINDS_BY_CLUSTER} in mulligan.toml."},
    "command of mulligan memory": {
        "kinds": f"tasks are no longer clustered. {_KINDS_BY_CLUSTER} in mulligan.toml, or name a kind with --kind.",
        "import-config": 'write [memory] by hand. "Coming from ReasoningBank-MCP" in docs/memory.md has a line '
        "for each key. `mulligan memory import` still reads the lessons.",
    },
}
"""What was removed from Mulligan, and what to use instead: design/135."""


class OutOfOrder(MulliganError):
    """An episode received an event that it did not expect. `expected` and `got` describe the events."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.expected = expected
        self.got = got


class BadAnswer(MulliganError):
    """A model's or person's answer does not fit the question. The message explains what is wrong with it."""


class ModelError(MulliganError):
    """A model could not answer, even after retries."""


class OverBudget(MulliganError):
    """The next call would exceed a limit. The message states which limit."""


class GaveUp(MulliganError):
    """A role cannot continue. The episode ends with the stop reason `gave_up`."""


class NotSolved(MulliganError):
    """No try of a retried function passed, or none could be judged.

    Attributes:
        episode: the record of the call.
        value: the return value of the best try; None if no try returned a value, and after pickling.
    """

    def __init__(self, message: str, episode: Episode, value: object = None) -> None:
        super().__init__(message)
        self.episode = episode
        self.value = value

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "value": None}


class ToolError(MulliganError):
    """A tool could not perform a call. The message is returned to the model that called it."""


class SandboxError(MulliganError):
    """The sandbox could not run the job. A job that ran and failed is not an error."""


class WorldError(MulliganError):
    """An environment failed, crashed, or did not respond in time. An unknown action is not an error."""


class WorkspaceError(MulliganError):
    """git or the disk failed in the folder in which an agent works. The message contains their error."""


class ClusterError(MulliganError):
    """Ray, which runs a benchmark's cases, could not be reached or failed. Finished cases are kept."""


class GraphError(MulliganError):
    """A graph database could not be reached or crashed. The message states which one, and what to do."""


QueryTrouble: TypeAlias = Literal["syntax", "unknown", "refused", "slow", "large", "failed"]


class QueryError(GraphError):
    """A query has an error that its writer can correct.

    Attributes:
        kind: the kind of error.
        line, column: the position of the error, from 1, if it is known.
    """

    def __init__(
        self,
        message: str,
        kind: QueryTrouble,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: QueryTrouble = kind
        self.line = line
        self.column = column


class FetchError(MulliganError):
    """A file could not be fetched, or is not the pinned file. A partial download is kept if it can be continued."""


class StoreError(MulliganError):
    """The store could not be read or written."""


class NotFound(StoreError):
    """The store does not contain this run, episode, lesson or recall."""


def no_recall(id: str) -> NotFound:
    """The error for a recall that does not exist or is another agent's: the two look the same."""
    return NotFound(
        f"There is no recall {id!r} in this bank. Pass the id that the recall returned, and the same agent."
    )


class AmbiguousId(NotFound):
    """Several ids begin with this prefix."""


class RecordLost(StoreError):
    """The store's file was deleted or replaced while it was in use.

    Attributes:
        episode: the episode that could not be recorded, if it ran to its end.
    """

    def __init__(self, message: str, episode: Episode | None = None) -> None:
        super().__init__(message)
        self.episode = episode


class LessonChanged(StoreError):
    """A lesson was changed after it was read, so writing it would undo that change."""


class Unreadable(StoreError):
    """A record in the store cannot be read. The message states which record, what is wrong, and what to do."""


class LeaseLost(StoreError):
    """Another process or caller drives this episode, or took it over.

    Attributes:
        heartbeat: the holder's heartbeat. While it does not change, the holder may have died.
    """

    def __init__(self, message: str, heartbeat: object = None) -> None:
        super().__init__(message)
        self.heartbeat = heartbeat


class JournalError(MulliganError):
    """A request does not match the journal's record."""


class JournalDiverged(JournalError):
    """A request differs from the recorded request.

    Args:
        changed: what differs, such as a prompt, a file or a setting.
        where: the step at which it differs.
        of: a description of what was recorded.
        otherwise: what the user can do instead of undoing the change.
    """

    def __init__(
        self,
        changed: Iterable[str],
        where: str = "",
        *,
        of: str = "this episode",
        otherwise: str = "continue from here with fork=True",
    ) -> None:
        self.changed = tuple(changed)
        at = f" at {where}" if where else ""
        super().__init__(
            f"Changed since {of} was recorded{at}: {'; '.join(self.changed)}. "
            f"Undo the change to resume it, or {otherwise}."
        )


class StepInFlight(JournalError):
    """The step at `key` was cut off before its result was known, and may not be run twice."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"The step {key} was started and its result is unknown. It is not declared repeatable, so it does not "
            "run again automatically: check what it did, then continue from here with fork=True."
        )
