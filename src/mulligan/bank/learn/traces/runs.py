"""Put spans together into the runs of agents: who did what for one task, and how that was judged.

A run is what one agent did in one trace, without what it left to other agents. If a conversation goes on in another
trace, the run there begins after what was said before. A trace in which no user says anything new belongs to the run
before it. Spans are held in a temporary SQLite database, so that memory does not grow with their number.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from mulligan.bank.learn.traces.conventions import (
    TRIAL,
    Evaluation,
    Kind,
    Rule,
    agent_of,
    call_of,
    conversation_of,
    error_of,
    evaluations_in,
    evaluations_of,
    input_and_output,
    is_message,
    kind_of,
    messages_of,
    passes_by_label,
    response_of,
)
from mulligan.bank.learn.traces.dialects import in_conventions
from mulligan.bank.learn.traces.history import History, common_length
from mulligan.bank.learn.traces.otlp import Span, SpanEvent
from mulligan.core.codec import digest
from mulligan.core.errors import InvalidInput
from mulligan.core.turns import Turn
from mulligan.text.plain import encodable

_TABLES = """
CREATE TABLE spans (
    n INTEGER PRIMARY KEY, trace TEXT NOT NULL, id TEXT NOT NULL, parent TEXT NOT NULL, near INTEGER NOT NULL,
    kind TEXT NOT NULL, start REAL NOT NULL, end REAL NOT NULL, agent TEXT NOT NULL, conversation TEXT NOT NULL,
    response TEXT NOT NULL, failed TEXT, anchor INTEGER, top INTEGER, outer INTEGER, data TEXT, UNIQUE (trace, id));
CREATE TABLE events (
    n INTEGER PRIMARY KEY, trace TEXT NOT NULL, span TEXT NOT NULL, response TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE parts (
    n INTEGER PRIMARY KEY, trace TEXT NOT NULL, anchor INTEGER NOT NULL, agent TEXT NOT NULL,
    conversation TEXT NOT NULL, start REAL NOT NULL, end REAL NOT NULL, key TEXT NOT NULL);
"""
_SPEAKING = ("agent", "part", "llm", "tool")


@dataclass(frozen=True)
class Verdict:
    """Whether a task was done.

    Attributes:
        success: None if it is not known.
        why: what the judge said.
        source: `evaluation NAME` or `status`. If success is not known, the evaluations that decide nothing.
    """

    success: bool | None = None
    why: str = ""
    source: str = ""


@dataclass(frozen=True)
class Run:
    """What an agent did for one task.

    Attributes:
        agent, conversation: as the spans name them; "" if they do not.
        turns: empty if the spans do not hold messages.
        spans: the spans of the run, as `TRACE/SPAN`.
        end: when the last span ended, in seconds since the epoch.
        at: where the first span is in its file.
        unfinished: whether a span that encloses these is still missing.
        error: why the run cannot be read; "" if it can.
    """

    agent: str
    conversation: str
    trace: str
    turns: tuple[Turn, ...]
    verdict: Verdict
    spans: tuple[str, ...]
    end: float
    at: str
    unfinished: bool = False
    error: str = ""


@dataclass(frozen=True)
class Counts:
    """Counts of what was added.

    Attributes:
        spans: all spans, each counted once.
        others: spans that do not belong to agents.
        repeated: spans that had been added before.
        loose: events in logs whose span is missing.
    """

    spans: int
    others: int
    repeated: int
    loose: int


class Spans:
    """Collects spans and events in any order, and finds the runs in them.

    Close it after use, or use it as a context manager.
    """

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = rules
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.executescript(_TABLES)
        self._db.execute("BEGIN")
        self._repeated = 0
        self._judged: tuple[str, tuple[Evaluation, ...]] = ("", ())

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, one: Span | SpanEvent) -> None:
        """Adds a span, unless it was added before, or an event from a log."""
        if isinstance(one, SpanEvent):
            if is_message(one):
                response = one.attributes.get("gen_ai.response.id")
                row = (one.trace, one.span, encodable(response) if isinstance(response, str) else "", _as_json(one))
                self._db.execute("INSERT INTO events (trace, span, response, data) VALUES (?, ?, ?, ?)", row)
            return
        one = in_conventions(one)
        kind = kind_of(one)
        failed = encodable(error_of(one)) if one.status == "error" else None
        about = (agent_of(one), conversation_of(one), response_of(one)) if kind else ("", "", "")
        row = (one.trace, one.id, one.parent, one.near, kind, one.start, one.end, *about, failed)
        added = self._db.execute(
            "INSERT INTO spans "
            "(trace, id, parent, near, kind, start, end, agent, conversation, response, failed, data) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (*row, _as_json(one) if kind else None),
        )
        self._repeated += added.rowcount == 0

    def counts(self) -> Counts:
        spans, others = self._db.execute("SELECT count(*), ifnull(sum(kind = ''), 0) FROM spans").fetchone()
        (loose,) = self._db.execute(
            "SELECT count(*) FROM events WHERE trace NOT IN (SELECT trace FROM spans) "
            "AND (response = '' OR response NOT IN (SELECT response FROM spans))"
        ).fetchone()
        return Counts(spans, others, self._repeated, loose)

    def runs(self) -> Iterator[Run]:
        """The runs, in the order in which their conversations began. Call this once, after all spans were added."""
        self._find_agents()
        self._find_parts()
        keys = self._db.execute("SELECT key FROM parts GROUP BY key ORDER BY min(start), min(n)")
        for (key,) in keys:
            yield from self._of_conversation(key)

    # --- which span belongs to which agent --------------------------------------------------------------------------

    def _find_agents(self) -> None:
        """Finds for each span the agent that it is part of (`anchor`) and the outermost span above it (`top`)."""
        self._db.execute("CREATE INDEX of_kind ON spans (kind)")
        last = 0
        while row := self._db.execute(
            "SELECT n FROM spans WHERE kind <> '' AND anchor IS NULL AND n > ? ORDER BY n LIMIT 1", (last,)
        ).fetchone():
            (last,) = row
            self._anchor_with_parents(last)
        self._db.execute("CREATE INDEX of_anchor ON spans (trace, anchor)")
        self._db.execute("CREATE INDEX of_event ON events (trace, span)")
        self._db.execute("CREATE INDEX of_response ON events (response)")

    def _anchor_with_parents(self, n: int) -> None:
        """Sets `anchor`, `top` and `outer` (the next agent above) of a span and of all spans above it."""
        query = "SELECT n, trace, parent, kind, anchor, top FROM spans WHERE "
        path: dict[int, Kind] = {}
        row = self._db.execute(f"{query} n = ?", (n,)).fetchone()
        while row is not None and row[4] is None and row[0] not in path:
            path[row[0]] = row[3]
            row = self._db.execute(f"{query} trace = ? AND id = ?", (row[1], row[2])).fetchone()
        anchor, top = (row[4], row[5]) if row is not None and row[4] is not None else (0, 0)
        changes: list[tuple[int, int, int, int]] = []
        for number, kind in reversed(path.items()):
            outer, top = anchor, top or number
            if anchor >= 0 and kind in ("agent", "evaluator"):  # all spans below an evaluator belong to it
                anchor = number if kind == "agent" else -number
            changes.append((anchor, top, outer, number))
        self._db.executemany("UPDATE spans SET anchor = ?, top = ?, outer = ? WHERE n = ?", changes)

    def _find_parts(self) -> None:
        """Finds the parts: the spans of one agent in one trace.

        The spans of a trace that belong to no agent are a part, too, unless they only enclose agents: they ask no
        model, use no tool and have not failed.
        """
        rows = self._db.execute(
            "SELECT trace, anchor, min(start), max(end), count(*), min(n), max(agent), max(conversation) FROM spans "
            f"WHERE anchor >= 0 AND kind <> '' GROUP BY trace, anchor HAVING sum(kind IN {_SPEAKING}) > 0 "
            "AND (anchor > 0 OR sum(kind IN ('llm', 'tool') OR failed IS NOT NULL) > 0 "
            "OR NOT EXISTS (SELECT 1 FROM spans a WHERE a.trace = spans.trace AND a.anchor > 0))"
        )
        for trace, anchor, start, end, count, first, agent, conversation in rows:
            own = self._db.execute("SELECT agent, conversation FROM spans WHERE n = ?", (anchor,)).fetchone()
            agent, conversation = (own[0] or agent, own[1] or conversation) if own else (agent, conversation)
            key = f"{agent}\n{conversation}" if conversation else f"{trace}/{anchor}"
            if not conversation and not anchor and count == 1:
                key = self._first_message_key(trace, first) or key
            self._db.execute(
                "INSERT INTO parts (trace, anchor, agent, conversation, start, end, key) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (trace, anchor, agent, conversation, start, end, key),
            )
        self._db.execute("CREATE INDEX of_key ON parts (key, start)")

    def _first_message_key(self, trace: str, n: int) -> str:
        """The key of the conversation of a call that is alone in its trace: the first message of a user in it."""
        span = self._spans("n = ?", (n,))[0][0]
        try:
            given, _ = messages_of(span, self._events(trace, span))
        except InvalidInput:
            return ""
        return next((f"said {digest(turn.text)}" for turn in given if turn.role == "user"), "")

    # --- runs -------------------------------------------------------------------------------------------------------

    def _of_conversation(self, key: str) -> Iterator[Run]:
        """The runs of a conversation, without the turns that a later part repeats from the one before."""
        before: list[Turn] = []
        last: Run | None = None
        query = "SELECT trace, anchor, agent, conversation FROM parts WHERE key = ? ORDER BY start, n"
        parts = self._db.execute(query, (key,))
        for trace, anchor, agent, conversation in parts:
            run = self._part(trace, anchor, agent, conversation)
            turns = list(run.turns)
            continues = bool(before) and common_length(before, turns) == len(before)
            new = turns[len(before) :] if continues else turns
            before = turns or before
            has_request = any(turn.role == "user" for turn in new)
            if last is not None and not last.error and not run.error and turns and not has_request:
                last = _joined(last, run, new)
                continue
            if last is not None:
                yield last
            last = replace(run, turns=tuple(new)) if has_request else run
        if last is not None:
            yield last

    def _part(self, trace: str, anchor: int, agent: str, conversation: str) -> Run:
        """What one agent did in one trace."""
        rows = self._spans("trace = ? AND anchor = ? AND kind <> ''", (trace, anchor))
        top = self._spans("n = (SELECT top FROM spans WHERE n = ?)", (rows[0][2],))
        outermost = self._db.execute(
            "SELECT t.near, s.failed, t.failed, s.outer FROM spans s JOIN spans t ON t.n = s.top WHERE s.n = ?",
            (anchor or rows[0][2],),
        ).fetchone()
        near, own_failure, top_failure, outer = outermost
        failure = own_failure if anchor else top_failure
        first, ended = rows[0][0], max(span.end for span, _, _ in rows)
        spans = tuple(f"{trace}/{span.id}" for span, _, _ in rows)
        run = Run(agent, conversation, trace, (), Verdict(), spans, ended, first.at, bool(near))
        try:
            turns = self._turns(trace, rows, [span for span, _, _ in top])
        except InvalidInput as error:
            where = str(error) if str(error).startswith(first.at.partition(":")[0]) else f"{first.at}: {error}"
            return replace(run, error=where)
        verdict = self._verdict(trace, rows, failure, whole_trace=not (outer if anchor else 0))
        last = next((turn for turn in reversed(turns) if turn.role == "tool"), None)
        if verdict.source == "status" and failure and turns and (last is None or failure not in last.text):
            turns.append(Turn("tool", failure, failed=True))
        return replace(run, turns=tuple(turns), verdict=verdict)

    def _turns(self, trace: str, rows: Sequence[tuple[Span, Kind, int]], top: Sequence[Span]) -> list[Turn]:
        """The turns in these spans. What they lack is taken from the spans that enclose them."""
        history = History()
        for span, kind, _ in rows:
            if kind == "tool":
                history.add_call(*call_of(span))
            elif kind == "llm":
                history.add_messages(*messages_of(span, self._events(trace, span)))
        turns = history.turns
        enclosing = [span for span, kind, _ in rows if kind == "agent"]
        if not enclosing:
            enclosing = [*top, *(span for span, kind, _ in rows if kind == "part")]
        for span in enclosing:
            for given, said in (messages_of(span, self._events(trace, span)), input_and_output(span)):
                if not any(turn.role == "user" for turn in turns):
                    turns = [*[turn for turn in given if turn.role == "user"][:1], *turns]
                if not any(turn.role == "assistant" for turn in turns):
                    turns = [*turns, *said]
                elif turns[-1].role == "tool":  # the spans do not hold the answer to this result
                    turns = [*turns, *(turn for turn in said[-1:] if turn.role == "assistant" and not turn.tool)]
        return turns

    def _verdict(
        self, trace: str, rows: Sequence[tuple[Span, Kind, int]], failure: str | None, *, whole_trace: bool
    ) -> Verdict:
        tries = [number for span, _, _ in rows if isinstance(number := span.attributes.get(TRIAL), int)]
        judged = [span for span, _, _ in rows if span.attributes.get(TRIAL) in (None, *tries[-1:])]
        evaluations = [one for span in judged for one in evaluations_in(span, self._events(trace, span))]
        if whole_trace:
            evaluations += self._of_trace(trace)
        evaluations = list(dict.fromkeys(evaluations))
        for success in (False, True):  # one failed evaluation decides
            if deciding := [one for one in evaluations if self._passes(one) is success]:
                why = "; ".join(dict.fromkeys(one.why.strip() for one in deciding if one.why.strip()))
                names = ", ".join(dict.fromkeys(one.name for one in deciding if one.name))
                return Verdict(success, why, f"evaluation {names}".strip())
        if failure is not None:
            return Verdict(False, "", "status")
        undecided = (
            f"{one.name} {one.label or one.score}" for one in evaluations if one.label or one.score is not None
        )
        return Verdict(None, "", ", ".join(undecided))

    def _passes(self, evaluation: Evaluation) -> bool | None:
        if not self._rules:
            return passes_by_label(evaluation)
        return next((rule.passes(evaluation) for rule in self._rules if rule.name == evaluation.name), None)

    def _of_trace(self, trace: str) -> tuple[Evaluation, ...]:
        """Evaluations of the whole trace: in spans that belong to no agent, and in logs without the span of one."""
        if self._judged[0] != trace:
            evaluations: list[Evaluation] = []
            about = (
                "trace = ?1 AND (anchor < 0 OR (anchor = 0 AND (kind = 'other' OR NOT EXISTS "
                "(SELECT 1 FROM parts WHERE trace = ?1 AND anchor = 0))))"
            )
            for span, _, _ in self._spans(about, (trace,)):
                evaluations += evaluations_in(span, self._events(trace, span))
            loose = self._db.execute(
                "SELECT data FROM events WHERE trace = ?1 AND span NOT IN "
                "(SELECT id FROM spans WHERE trace = ?1 AND kind <> '')",
                (trace,),
            )
            evaluations += [one for (data,) in loose for one in evaluations_of(SpanEvent(**json.loads(data)))]
            self._judged = trace, tuple(evaluations)
        return self._judged[1]

    def _spans(self, where: str, parameters: Sequence[Any]) -> list[tuple[Span, Kind, int]]:
        rows = self._db.execute(f"SELECT data, kind, n FROM spans WHERE {where} ORDER BY start, n", parameters)
        return [(_span_from(data), kind, n) for data, kind, n in rows if data is not None]

    def _events(self, trace: str, span: Span) -> Sequence[SpanEvent]:
        """The records of logs that belong to a span."""
        query = "SELECT data FROM events WHERE trace = ? AND span = ?"
        rows = self._db.execute(query, (trace, span.id)).fetchall()
        if response := response_of(span):
            query = "SELECT data FROM events WHERE response = ? AND NOT (trace = ? AND span = ?)"
            rows += self._db.execute(query, (response, trace, span.id)).fetchall()
        return [SpanEvent(**json.loads(data)) for (data,) in rows]


def _joined(last: Run, run: Run, new: Iterable[Turn]) -> Run:
    """The run continued by a run in another trace."""
    verdict = run.verdict if run.verdict.success is not None else last.verdict
    return replace(
        last,
        turns=(*last.turns, *new),
        spans=(*last.spans, *run.spans),
        verdict=verdict,
        end=max(last.end, run.end),
        unfinished=last.unfinished or run.unfinished,
    )


def _as_json(one: Span | SpanEvent) -> str:
    table = dict(vars(one))
    if isinstance(one, Span):
        table["events"] = [vars(event) for event in one.events]
    return json.dumps(table)


def _span_from(data: str) -> Span:
    table = json.loads(data)
    table["events"] = tuple(SpanEvent(**event) for event in table["events"])
    return Span(**table)
