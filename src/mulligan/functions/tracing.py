"""`LearningSpanProcessor` learns from the runs of agents in this process that OpenTelemetry records."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakMethod

from mulligan.app.traces import TraceLearner, TraceRun
from mulligan.bank.learn.traces.conventions import Rule
from mulligan.bank.learn.traces.otlp import Span, SpanEvent
from mulligan.bank.learn.traces.runs import Spans
from mulligan.core.protocols import Evaluator, Model
from mulligan.core.records import Json
from mulligan.evaluators._judging import FunctionJudge, JudgeFunction

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
else:
    SpanProcessor = object  # the SDK accepts any class, and need not be installed

_log = logging.getLogger("mulligan.tracing")
_learning: ContextVar[bool] = ContextVar("mulligan_learning", default=False)
"""Whether this context is learning: the spans of its own model calls are ignored."""


class LearningSpanProcessor(SpanProcessor):
    """An OpenTelemetry span processor that learns from this process's agents, in the background.

        provider.add_span_processor(mulligan.LearningSpanProcessor("billing"))

    A trace's spans are kept until its first span in this process ends. A thread then learns from them, as
    `learn_traces` does. It raises no exceptions in your program: `mulligan.tracing` logs errors.

    Attributes:
        dropped: the number of spans that were dropped because the buffer was full. This is logged once.
        failed: the number of runs that could not be learned from. Each is logged.
    """

    def __init__(
        self,
        agent_id: str | None = None,
        *,
        model: str | Model | None = None,
        judge: JudgeFunction | Evaluator | str | None = None,
        judge_model: str | Model | None = None,
        evaluations: Sequence[str] = (),
        learned: Callable[[TraceRun], None] | None = None,
        traces: int = 1000,
        spans: int = 2000,
        queue: int = 100,
    ) -> None:
        """
        Args:
            agent_id: whose bank. None: each agent in the traces has the bank of its name.
            model, judge_model, evaluations: as for `learn_traces`.
            judge: for runs of which the traces do not say how they ended: a function of the answer, or of the task
                and the answer; or an evaluator.
            learned: gets each run once it is done, in the thread that learns.
            traces: traces at most that are held until they end.
            spans: of one trace at most.
            queue: ended traces at most that wait to be learned from.

        Raises:
            InvalidInput: the judge or an evaluation cannot be used.
        """
        self._rules = [Rule.parse(text) for text in evaluations]
        if callable(judge) and not isinstance(judge, (str, Evaluator)):
            judge = FunctionJudge(judge, "a trace")
        options: dict[str, Any] = {"model": model, "judge": judge, "judge_model": judge_model}
        self._make: Callable[[], TraceLearner] = lambda: TraceLearner(agent_id, **options)
        self._make()  # raises errors of the options now
        self._on_learned: Callable[[TraceRun], None] = learned or (lambda _: None)
        self._max_traces = traces
        self._max_spans = spans
        self._max_ended = queue
        self._closed = False
        self._reset()
        reset = WeakMethod(self._reset)
        os.register_at_fork(after_in_child=lambda: method() if (method := reset()) else None)

    def _reset(self) -> None:
        """Starts empty. A forked process calls this again: it inherits neither the thread nor usable locks."""
        self._open: OrderedDict[int, list[Any]] = OrderedDict()  # the spans of traces that have not ended, by trace
        self._ended: Queue[list[Any] | None] = Queue(self._max_ended)
        self._lock = threading.RLock()
        self._idle = threading.Condition(self._lock)
        self._pending = 0  # ended traces that are not learned from yet
        self._thread: threading.Thread | None = None
        self.dropped = self.failed = 0

    # --- called by OpenTelemetry ------------------------------------------------------------------------------------

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Does nothing: a span is read when it ends."""

    def _on_ending(self, span: Any) -> None:
        """Does nothing. The SDK calls it before a span ends."""

    def on_end(self, span: Any) -> None:
        """Keeps the span. If it is its trace's first span in this process, passes on all of the trace's spans."""
        if _learning.get() or self._closed:
            return
        try:
            self._hold(span)
        except Exception:  # observing an agent must not disturb it
            _log.exception("a span could not be kept")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Waits until all finished traces are learned from. Returns False if the time runs out."""
        end = time.monotonic() + timeout_millis / 1000
        with self._idle:
            return self._idle.wait_for(lambda: not self._pending, timeout=max(end - time.monotonic(), 0.0))

    def shutdown(self) -> None:
        """Learns from finished traces for up to 30 seconds, and stops the thread."""
        if self._closed:
            return
        self._closed = True
        all_learned = self.force_flush()
        with self._lock:
            self._drop(sum(map(len, self._open.values())), "their traces were not finished")
            self._open.clear()
            thread, self._thread = self._thread, None
        if thread is not None:
            while not all_learned:  # so that the thread finds nothing more to do
                try:
                    self._drop(len(self._ended.get_nowait() or ()), "the time for shutting down was over")
                except Empty:
                    break
            self._ended.put(None)
            thread.join(5.0)

    # --- in the thread of the agent ---------------------------------------------------------------------------------

    def _hold(self, span: Any) -> None:
        trace, parent = span.context.trace_id, span.parent
        with self._lock:
            spans = self._open.setdefault(trace, [])
            if len(spans) < self._max_spans:
                spans.append(span)
            else:
                self._drop(1, f"their traces had more than {self._max_spans:,}")
            if parent is None or parent.is_remote:  # the first span of the trace in this process
                ended, others = _split(self._open.pop(trace), span.context.span_id)
                if others:  # another process has called this one more than once in this trace
                    self._open[trace] = others
                if any(map(_concerns_agents, ended)):
                    self._hand_over(ended)
            elif len(self._open) > self._max_traces:
                _, oldest = self._open.popitem(last=False)
                self._drop(len(oldest), f"more than {self._max_traces:,} traces had not ended")

    def _hand_over(self, spans: list[Any]) -> None:
        try:
            self._ended.put_nowait(spans)
        except Full:
            self._drop(len(spans), f"more than {self._ended.maxsize:,} traces waited")
            return
        self._pending += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="mulligan-tracing", daemon=True)
            self._thread.start()

    def _drop(self, spans: int, why: str) -> None:
        if spans and not self.dropped:
            _log.warning("some spans are dropped: %s (`dropped` counts them; this warning appears once)", why)
        self.dropped += spans

    # --- in the thread that learns ----------------------------------------------------------------------------------

    def _run(self) -> None:
        with _as_learning():
            while (spans := self._ended.get()) is not None:
                try:
                    asyncio.run(self._learn(spans))
                except Exception:
                    self.failed += 1
                    _log.exception("learning from a trace failed")
                with self._idle:
                    self._pending -= 1
                    self._idle.notify_all()

    async def _learn(self, sdk_spans: Sequence[Any]) -> None:
        learner = self._make()
        try:
            with Spans(self._rules) as spans:
                for span in sdk_spans:
                    spans.add(span_of(span))
                await learner.learn(spans, self._report)
        finally:
            await learner.close()

    def _report(self, run: TraceRun) -> None:
        if run.state == "error":
            self.failed += 1
            _log.warning("learning from a run failed: %s", run.why_not)
        self._on_learned(run)


@contextmanager
def _as_learning() -> Generator[None]:
    token = _learning.set(True)
    try:
        yield
    finally:
        _learning.reset(token)


def _split(spans: Sequence[Any], root: int) -> tuple[list[Any], list[Any]]:
    """The span `root` with all spans that it encloses, and the other spans."""
    parents = {span.context.span_id: span.parent.span_id if span.parent else 0 for span in spans}
    below_root: dict[int, bool] = {root: True, 0: False}
    for id in parents:
        path: list[int] = []
        while id not in below_root and id in parents:
            below_root[id] = False  # ends the loop if spans name each other as parents
            path.append(id)
            id = parents[id]
        below_root.update(dict.fromkeys(path, below_root.get(id, False)))
    enclosed = [span for span in spans if below_root[span.context.span_id]]
    return enclosed, [span for span in spans if not below_root[span.context.span_id]]


def _concerns_agents(span: Any) -> bool:
    """Whether a span may belong to an agent, by the names of its attributes and events."""
    names = (*(span.attributes or ()), *(event.name for event in span.events))
    return any(name.startswith(("gen_ai.", "openinference.", "llm.")) for name in names)


def span_of(span: Any) -> Span:
    """Converts a span of OpenTelemetry's SDK to the form that spans have when they are read from a file."""
    trace, id = f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"
    at = f"trace {trace}, span {id}"
    events = (
        SpanEvent(str(event.name), _json_object(event.attributes), None, (event.timestamp or 0) / 1e9, trace, id, at)
        for event in span.events
    )
    status = span.status.status_code.name
    return Span(
        trace,
        id,
        str(span.name),
        f"{span.parent.span_id:016x}" if span.parent is not None else "",
        False,
        _json_object({**(span.resource.attributes if span.resource else {}), **(span.attributes or {})}),
        tuple(events),
        "error" if status == "ERROR" else "ok" if status == "OK" else "",
        span.status.description or "",
        (span.start_time or 0) / 1e9,
        (span.end_time or 0) / 1e9,
        at,
    )


def _json_object(attributes: Mapping[str, Any] | None) -> dict[str, Json]:
    return {str(key): _json(value) for key, value in (attributes or {}).items()}


def _json(value: Any) -> Json:
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, Mapping):
        return _json_object(cast("Mapping[str, Any]", value))
    return f"[{type(value).__name__}]"
