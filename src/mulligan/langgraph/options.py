"""The options of a question to a graph. `ask_graph`, its command and its record are derived from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mulligan.running import Options, option, place

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.language_models import BaseChatModel

    from mulligan import Limits
    from mulligan.graphs.protocol import Graph
    from mulligan.langgraph.querying import Until
    from mulligan.plugins import Bank, Episode, Json
    from mulligan.running import Observer, Store

BEFORE: Mapping[str, Any] = {"until": "rows", "prompt_engine": True}
"""The values of these options for records that are older than the options."""


class Followed(Options):
    """Where a question is recorded and who observes it. Only Python has these options.

    Attributes:
        store: The store that records the run, instead of the configured one.
        observers: Functions that are called for each event, with the episode and the event.
        on_start: A function that is called when the run starts or resumes.
        on_step: A function that is called with a sentence that describes the next step.
        notice: A function that is called with messages, such as a report of what was learned.
        password: The server's password.
    """

    store: Store | None = None
    observers: Sequence[Observer] = ()
    on_start: Callable[[Episode, Limits], None] | None = None
    on_step: Callable[[str], None] | None = None
    notice: Callable[[str], None] | None = None
    password: str | None = None

    def step(self, sentence: str) -> None:
        if self.on_step is not None:
            self.on_step(sentence)


class ResumeGraphOptions(Followed):
    """The options of `resume_graph`.

    Attributes:
    """

    run: str = place(kw_only=False)


class GraphOptions(Followed):
    """The options of `ask_graph`.

    Attributes:
        user: The user name for a server; the password is read from MULLIGAN_GRAPH_PASSWORD.
        database: The database on a server (default: the server's own default).
        model: The model: local, PROVIDER:NAME or scripted:FILE (default: MULLIGAN_MODEL).
        max_steps: Maximum number of drafts and revisions (default: 30).
        good_score: The minimum score for good rows, out of 10 (default: 7).
        rows: Maximum number of rows in an answer (default: 30).
        seconds: Stop a query after S seconds (default: 10).
        prompt_engine: Let the model choose parts of the schema, or show it the entire schema (default: let it choose if
            the schema is long).
        until: Stop when rows are judged to answer the question (default), or as soon as a query returns rows.
        drafts: Write K first drafts, and compare their rows (default: 1). Works only with --until judged.
        max_tokens: Maximum number of tokens in a draft (default: the model's own limit, or 400 for a local model
            without a limit).
        answer: Also answer in a sentence that uses only the rows.
        bank: The agent whose bank --memory uses (default: the unnamed agent). In Python, you can also pass a bank
            object; no lessons are added to it.
        temperatures: The temperatures of the first draft and of later ones (default: the model's own temperature
            or, for a local model without one, 0 and 0.8).
    """

    question: str = place(kw_only=False)
    graph: str | Path | Mapping[str, Any] | Graph = place(kw_only=False)
    user: str | None = option("NAME", default=None)
    database: str | None = option("NAME", default=None)
    model: str | BaseChatModel | None = option("MODEL", "-m", default=None)
    max_steps: int = option("N", default=30, least=1)
    good_score: float = option("X", default=7.0)
    rows: int = option("N", default=30)
    seconds: float = option("S", default=10.0)
    prompt_engine: bool | None = option("", "--prompt-engine/--no-prompt-engine", default=None)
    until: Until = option("judged|rows", default="judged")
    drafts: int = option("K", default=1)
    max_tokens: int | None = option("N", default=None, least=1)
    answer: bool = option("", default=False)
    bank: Bank | str | None = option("NAME", "--bank", "--agent-id", default=None)
    temperatures: Sequence[float] | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the options that a record keeps to resume the run: without observers and password."""
        kept = GraphOptions.fields().keys() - Followed.fields().keys() - {"question"}
        return {name: getattr(self, name) for name in GraphOptions.fields() if name in kept}
