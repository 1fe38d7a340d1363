"""What a server counts, in the text format of Prometheus.

No label names an agent, a session or an episode, so how many series there are does not grow with the users.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mulligan.core.errors import StoreError
from mulligan.core.operations import Operation
from mulligan.core.records import Json
from mulligan.core.work_queue import QUOTA, Queue
from mulligan.mcp_server.http.guard import header, log, refusal
from mulligan.mcp_server.tokens import bearer, may
from mulligan.web.tokens import Token

if TYPE_CHECKING:
    from prometheus_client import Counter, Histogram, Metric

    from mulligan.mcp_server.http import Listening

PATH = "/metrics"

MAX_MODELS = 50
"""Pairs of a role and a model that have series of their own; what comes later counts as `other`."""

CALL_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
MODEL_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)


class Metrics:
    """Counts operations while it watches them. Raises nothing into what it watches.

    Args:
        gauges: names and values of what is looked at when somebody reads.
    """

    def __init__(self, gauges: Mapping[str, Callable[[], float]]) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)

        def counter(name: str, says: str, *labels: str) -> Counter:
            return Counter(f"mulligan_{name}", says, labels, registry=registry)

        def histogram(name: str, says: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"mulligan_{name}_seconds", says, labels, buckets=buckets, registry=registry)

        self._calls = counter("calls", "Calls of tools by clients.", "tool", "result")
        self._errors = counter("errors", "Operations that ended with an error.", "operation", "error")
        self._call_seconds = histogram("call", "How long calls of tools took.", CALL_SECONDS, "tool")
        self._recalls = counter("recalls", "Recalls from banks.", "result")
        self._recalled = counter("recalled_lessons", "Lessons that recalls gave.")
        self._recall_seconds = histogram("recall", "How long recalls took.", CALL_SECONDS)
        self._lessons = counter("lessons", "Lessons given to banks to keep.", "result")
        self._episodes = counter("episodes", "Episodes that this server drove to their stop.", "stop")
        self._trials = counter("trials", "Trials of these episodes.", "passed")
        self._model_calls = counter("model_calls", "Questions to models.", "role", "model", "result")
        self._model_seconds = histogram("model_call", "How long models took to answer.", MODEL_SECONDS, "role", "model")
        self._tokens = counter("tokens", "Tokens of model calls.", "role", "model", "direction")
        self._cost = counter("cost_dollars", "Cost of model calls whose price is known.", "role", "model")
        self._unpriced = counter("unpriced_model_calls", "Model calls whose price is unknown.", "role", "model")
        self._responses = counter("http_responses", "HTTP responses.", "method", "status")
        self._queue = Gauge("mulligan_queue", "Queued work of all banks.", ("kind", "status"), registry=registry)
        for name, value in gauges.items():
            Gauge(f"mulligan_{name}", name.replace("_", " ").capitalize() + ".", registry=registry).set_function(value)
        self._models: set[tuple[str, str]] = set()

    @contextmanager
    def watch(self, done: Operation) -> Generator[None]:
        """The watcher: counts the operation once it has ended."""
        yield
        if done.error:
            self._errors.labels(done.kind, done.error).inc()
        match done.kind:
            case "call":
                self._calls.labels(done.name, done.facts["result"]).inc()
                self._call_seconds.labels(done.name).observe(done.seconds)
            case "recall":
                found = int(done.facts.get("lessons", 0))
                self._recalls.labels("failed" if done.error else "lessons" if found else "nothing").inc()
                self._recalled.inc(found)
                self._recall_seconds.observe(done.seconds)
            case "keep" | "create":
                for result in ("new", "known", "quarantined"):
                    self._lessons.labels(result).inc(done.facts.get(result, 0))
            case "episode":
                self._episodes.labels(done.facts.get("stop") or "error").inc()
            case "trial":
                passed: Json = done.facts.get("passed")
                self._trials.labels("unknown" if passed is None else str(passed).lower()).inc()
            case "model":
                self._count_model(done)
            case _:
                pass

    def _count_model(self, done: Operation) -> None:
        which = str(done.facts["role"]), done.name
        if which not in self._models and len(self._models) >= MAX_MODELS:
            which = "other", "other"
        self._models.add(which)
        self._model_calls.labels(*which, "failed" if done.error else "answered").inc()
        self._model_seconds.labels(*which).observe(done.seconds)
        self._tokens.labels(*which, "input").inc(done.usage.input_tokens)
        self._tokens.labels(*which, "output").inc(done.usage.output_tokens)
        if done.usage.cost is None:
            self._unpriced.labels(*which).inc()
        else:
            self._cost.labels(*which).inc(done.usage.cost)

    def responded(self, method: str, status: int) -> None:
        """Counts a response over HTTP."""
        known = method if method in ("GET", "POST", "DELETE", "OPTIONS") else "other"
        self._responses.labels(known, str(status)).inc()

    async def page(self, queue: Queue) -> bytes:
        """All series as text, with the depth of this queue. Raises `StoreError`."""
        from prometheus_client import generate_latest

        depth = await queue.depth()
        self._queue.clear()
        for kind, by_status in depth.items():
            for status, count in by_status.items() if kind != QUOTA else ():
                self._queue.labels(kind, status).set(count)
        return generate_latest(cast(Any, self))  # which asks for `collect` alone

    def collect(self) -> Iterator[Metric]:
        """The series, without the times at which they began, which would double them."""
        for family in self._registry.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


class MetricsPage:
    """An ASGI layer that answers GET /metrics, for a caller who may see all that this server serves."""

    def __init__(self, app: ASGIApp, metrics: Metrics, queue: Callable[[], Queue], listening: Listening) -> None:
        """
        Args:
            app: answers all other requests.
            queue: gives the queue of the store.
            listening: says who may read.
        """
        self._app, self._metrics, self._queue = app, metrics, queue
        self._own, self._tokens, self._guarded = listening.metrics_token, listening.tokens, listening.is_guarded
        self._identity = listening.identity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app: ASGIApp = self._app
        if scope["type"] == "http" and scope["path"] == PATH:
            app = await self._answer(scope)
        await app(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            return refusal(405, "Metrics can be read only with GET.", allow="GET, HEAD")
        if denied := self._denied(scope):
            return denied
        try:
            page = await self._metrics.page(self._queue())
        except StoreError as error:
            log.warning("no metrics: %s", error)
            return refusal(503, "The store does not answer; the log says why.", retry_after="5")
        return Response(page, media_type="text/plain; version=0.0.4")

    def _denied(self, scope: Scope) -> Response | None:
        """A refusal for a caller who may not read. Figures are of all agents, so a token that is bound to one reads
        them only where all tokens are bound to the same, and no identity provider lets further agents in."""
        if self._own is None and not self._guarded:
            return None
        _, _, secret = (header(scope, b"authorization") or "").partition(" ")
        if self._own is not None and Token.with_secret(secret.strip(), [self._own]):
            return None
        token = Token.with_secret(secret.strip(), self._tokens)
        if token is None and self._identity and "administer" in self._identity.scopes and bearer(scope):
            if may(scope, self._identity, "administer"):
                return None
            reason = f"Metrics need a token with the scope {self._identity.scopes['administer']}."
            challenge = self._identity.challenge("insufficient_scope", reason, "administer")
            return refusal(403, reason, www_authenticate=challenge)
        if token is None:
            return refusal(401, "Metrics need a token: Authorization: Bearer TOKEN.", www_authenticate="Bearer")
        others = self._identity is not None or {one.agent_id for one in self._tokens} != {token.agent_id}
        if token.agent_id is not None and others:
            return refusal(403, "Metrics cover all agents, but this token is bound to one, so it may not read them.")
        return None


class CountedResponses:
    """An ASGI layer that counts the responses of all others."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.responded(scope["method"], message["status"])
            await send(message)

        await self._app(scope, receive, watch if scope["type"] == "http" else send)
