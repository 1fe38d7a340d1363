"""`LearningSpanProcessor`: learns from the runs of agents in this process, as OpenTelemetry records them."""

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
    SpanProcessor = object  # the SDK asks for no class, and it need not be installed here

_log = logging.getLogger("mulligan.tracing")
_learning: ContextVar[bool] = ContextVar("mulligan_learning", default=False)
"""Whether what runs here is learning itself: the spans of its own calls of models teach nothing."""


class LearningSpanProcessor(SpanProcessor):
    """A span processor of OpenTelemetry that learns from agents of this process, in the background.

        provider.add_span_processor(mulligan.LearningSpanProcessor("billing"))

    The spans of a trace are held until its first span in this process ends; then a thread learns from them,
    as `learn_traces` does. It raises nothing in your program: errors are logged by `mulligan.tracing`.

    Attributes:
        dropped: how many spans were dropped because the buffer was full; logged once.
        failed: how many runs could not be learned from; each is logged.
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
        self._make()  # so that what cannot work is said here
        self._told: Callable[[TraceRun], None] = learned or (lambda _: None)
        self._most_traces, self._most_spans, self._most_ended = traces, spans, queue
        self._closed = False
        self._begin()
        forked = WeakMethod(self._begin)
        os.register_at_fork(after_in_child=lambda: begin() if (begin := forked()) else None)

    def _begin(self) -> None:
        """Holds nothing. A process that was forked begins anew: threads and locks are not taken along."""
        self._held: OrderedDict[int, list[Any]] = OrderedDict()
        self._ended: Queue[list[Any] | None] = Queue(self._most_ended)
        self._lock = threading.RLock()
        self._idle = threading.Condition(self._lock)
        self._left = 0
        self._thread: threading.Thread | None = None
        self.dropped = self.failed = 0

    # --- what OpenTelemetry calls -----------------------------------------------------------------------------------

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Does nothing: a span is read when it ends."""

    def _on_ending(self, span: Any) -> None:
        """Nothing. The SDK calls it of each processor before a span ends."""

    def on_end(self, span: Any) -> None:
        """Holds the span. When the first span of a trace in this process ends, passes on all spans of the trace."""
        if _learning.get() or self._closed:
            return
        try:
            self._hold(span)
        except Exception:  # an agent is not disturbed by what looks on
            _log.exception("a span could not be kept")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Waits until all finished traces are learned from. Returns False if the time is too short."""
        end = time.monotonic() + timeout_millis / 1000
        with self._idle:
            return self._idle.wait_for(lambda: not self._left, timeout=max(end - time.monotonic(), 0.0))

    def shutdown(self) -> None:
        """Learns from the finished traces, for at most 30 seconds, and stops the thread."""
        if self._closed:
            return
        self._closed = True
        done = self.force_flush()
        with self._lock:
            self._drop(sum(map(len, self._held.values())), "their traces were not finished")
            self._held.clear()
            thread, self._thread = self._thread, None
        if thread is not None:
            while not done:  # nothing more is to be done
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
            held = self._held.setdefault(trace, [])
            if len(held) < self._most_spans:
                held.append(span)
            else:
                self._drop(1, f"their traces had more than {self._most_spans:,}")
            if parent is None or parent.is_remote:
                whole, rest = _parted(self._held.pop(trace), span.context.span_id)
                if rest:  # of another span that came from elsewhere in the same trace
                    self._held[trace] = rest
                if any(map(_is_of_agents, whole)):
                    self._hand_over(whole)
            elif len(self._held) > self._most_traces:
                _, oldest = self._held.popitem(last=False)
                self._drop(len(oldest), f"more than {self._most_traces:,} traces had not ended")

    def _hand_over(self, spans: list[Any]) -> None:
        try:
            self._ended.put_nowait(spans)
        except Full:
            self._drop(len(spans), f"more than {self._ended.maxsize:,} traces waited")
            return
        self._left += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="mulligan-tracing", daemon=True)
            self._thread.start()

    def _drop(self, spans: int, why: str) -> None:
        if spans and not self.dropped:
            _log.warning("some spans are dropped: %s (`dropped` counts them; this warning appears once)", why)
        self.dropped += spans

    # --- in the thread that learns ----------------------------------------------------------------------------------

    def _run(self) -> None:
        with _marked():
            while (spans := self._ended.get()) is not None:
                try:
                    asyncio.run(self._learn(spans))
                except Exception:
                    self.failed += 1
                    _log.exception("learning from a trace failed")
                with self._idle:
                    self._left -= 1
                    self._idle.notify_all()

    async def _learn(self, given: Sequence[Any]) -> None:
        learner = self._make()
        try:
            with Spans(self._rules) as spans:
                for one in given:
                    spans.add(span_of(one))
                await learner.learn(spans, self._done)
        finally:
            await learner.close()

    def _done(self, run: TraceRun) -> None:
        if run.state == "error":
            self.failed += 1
            _log.warning("learning from a run failed: %s", run.why_not)
        self._told(run)


@contextmanager
def _marked() -> Generator[None]:
    token = _learning.set(True)
    try:
        yield
    finally:
        _learning.reset(token)


def _parted(spans: Sequence[Any], root: int) -> tuple[list[Any], list[Any]]:
    """The spans that this one encloses, with itself, and the others."""
    parents = {one.context.span_id: one.parent.span_id if one.parent else 0 for one in spans}
    within: dict[int, bool] = {root: True, 0: False}
    for id in parents:
        path: list[int] = []
        while id not in within and id in parents:
            within[id] = False  # also where spans enclose each other
            path.append(id)
            id = parents[id]
        within.update(dict.fromkeys(path, within.get(id, False)))
    parts: tuple[list[Any], list[Any]] = [], []
    for one in spans:
        parts[not within[one.context.span_id]].append(one)
    return parts


def _is_of_agents(span: Any) -> bool:
    """Whether a span may have to do with an agent, by the names of its attributes and events."""
    names = (*(span.attributes or ()), *(event.name for event in span.events))
    return any(name.startswith(("gen_ai.", "openinference.", "llm.")) for name in names)


def span_of(span: Any) -> Span:
    """A span of OpenTelemetry's SDK as files have it."""
    trace, id = f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"
    at = f"trace {trace}, span {id}"
    events = (
        SpanEvent(str(one.name), _plain(one.attributes), None, (one.timestamp or 0) / 1e9, trace, id, at)
        for one in span.events
    )
    status = span.status.status_code.name
    return Span(
        trace,
        id,
        str(span.name),
        f"{span.parent.span_id:016x}" if span.parent is not None else "",
        False,
        _plain({**(span.resource.attributes if span.resource else {}), **(span.attributes or {})}),
        tuple(events),
        "error" if status == "ERROR" else "ok" if status == "OK" else "",
        span.status.description or "",
        (span.start_time or 0) / 1e9,
        (span.end_time or 0) / 1e9,
        at,
    )


def _plain(attributes: Mapping[str, Any] | None) -> dict[str, Json]:
    return {str(key): _value(one) for key, one in (attributes or {}).items()}


def _value(value: Any) -> Json:
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [_value(one) for one in cast("Sequence[Any]", value)]
    if isinstance(value, Mapping):
        return _plain(cast("Mapping[str, Any]", value))
    return f"[{type(value).__name__}]"
