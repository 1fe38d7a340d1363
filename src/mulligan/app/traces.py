"""Learns from traces: each run of an agent is an episode, and each span is learned from once.

`traces.db` in the user's data folder records what was learned: a number for each span, made of the span, the bank and
its store. A run is learned first and recorded then. The bank recognises an episode that it has learned, so nothing is
learned twice if the process dies in between. A run on which a judge gave its verdict is recorded even if there was
nothing to learn, so that the judge is not paid again.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from mulligan.app.config import Config, load
from mulligan.app.memory import Bank, open_bank
from mulligan.app.model_roles import Models
from mulligan.app.plugins import build, fitted, parse_spec
from mulligan.app.prompts import FilePrompts
from mulligan.app.transcripts import Transcript, has_something_to_learn, learn_from
from mulligan.bank import bank as plain
from mulligan.bank.learn.facts import facts_of
from mulligan.bank.learn.traces.conventions import Rule
from mulligan.bank.learn.traces.otlp import TraceFile, looks_like_traces
from mulligan.bank.learn.traces.runs import Counts, Run, Spans
from mulligan.core.errors import MulliganError, StoreError
from mulligan.core.home import home
from mulligan.core.protocols import Evaluator, Learned, Model
from mulligan.core.write_ahead import keep_log
from mulligan.text.plain import count

FILE = "traces.db"
_MAX_WAIT = 3600.0
"""Seconds that a run waits for the span that encloses it."""
_HEAD_BYTES = 65_536
"""Bytes at the beginning of a file by which traces are recognised."""

State: TypeAlias = Literal["new", "nothing", "known", "silent", "unfinished", "error"]
"""The result for a run.

- "new": something was learned.
- "nothing": there is nothing to learn.
- "known": it was learned from, or judged, before.
- "silent": its spans contain no messages.
- "unfinished": it is not finished.
- "error": it cannot be read, or learning failed.
"""


@dataclass(frozen=True)
class TraceRun:
    """A run in traces, and what was learned from it.

    Attributes:
        agent_id: whose bank.
        success: whether the task was done, by the traces or the judge; None: unknown.
        source: who says so; if unknown, the evaluations that do not decide it.
        drawn: the titles of what rules find, before it is learned.
        why_not: why nothing was learned from it.
        titles: the titles of what was learned, new and known, by id.
    """

    agent_id: str
    agent: str
    conversation: str
    trace: str
    task: str
    turns: int
    success: bool | None
    why: str
    source: str
    state: State
    drawn: tuple[str, ...] = ()
    why_not: str = ""
    learned: Learned = field(default_factory=Learned)
    titles: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class TracesLearned:
    """What was learned from traces.

    Attributes:
        runs: the number of runs by state.
        lessons: ids of lessons and facts, new and known, in order; they may be in several banks.
        spans: the number of spans; `others` belong to no agent, and `repeated` ones came before.
        errors: what could not be read or learned from, with its place.
        notes: sentences for the user about what was left out.
    """

    runs: Mapping[State, int]
    lessons: tuple[str, ...]
    spans: Counts
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def are_traces(file: str | os.PathLike[str]) -> bool:
    """Whether the beginning of the file looks like traces."""
    if not Path(file).is_file():  # reading from a pipe would consume its content
        return False
    try:
        with open(file, "rb") as opened:
            return looks_like_traces(opened.read(_HEAD_BYTES))
    except OSError:
        return False


async def learn_traces(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    bank: Bank | str | None = "",
    model: str | Model | None = None,
    judge: str | Evaluator | None = None,
    judge_model: str | Model | None = None,
    evaluations: Sequence[str] = (),
    dry_run: bool = False,
    progress: Callable[[TraceRun], Awaitable[None] | None] = lambda _: None,
) -> TracesLearned:
    """Learns from agent runs in OpenTelemetry files that a collector or an exporter wrote.

    Args:
        files: traces as OTLP JSON, with one request per line or one per file. Logs with events that belong to the spans
            can be among them. Files can be gzipped.
        bank: a bank, or the agent whose bank to open. None: each agent in the traces has a bank with its name.
        model: the model that judges and extracts, in banks that are opened here. None: the model in [memory] or
            MULLIGAN_MODEL.
        judge: an evaluator or its name, for runs whose traces do not show whether they succeeded.
        judge_model: the model for a judge that needs one.
        evaluations: the evaluations that decide, such as `correctness` or `correctness>=0.8`. Empty: all whose label is
            pass or fail.
        dry_run: whether to only find and report the runs, without judging or learning.
        progress: called with each run when it is done.

    Raises:
        InvalidInput: a file cannot be read. The error gives the line and the span. This is raised before anything is
            learned.
        StoreError: a bank or the record of what was learned cannot be read or written.
    """
    rules = [Rule.parse(text) for text in evaluations]
    paths = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    learner = TraceLearner(bank, model=model, judge=judge, judge_model=judge_model, dry_run=dry_run)
    notes: list[str] = []
    with Spans(rules) as spans:
        for file in paths:
            reading = TraceFile(file)
            for request in reading:
                spans.add(request)
            if reading.torn:
                notes.append(f"The last line of {reading.name} is cut off: it will be read next time.")
            if reading.others:
                notes.append(f"{reading.name} has {reading.others:,} metrics and records that are not events.")
        try:
            result = await learner.learn(spans, progress)
        finally:
            await learner.close()
    return replace(result, notes=(*notes, *result.notes))


class TraceLearner:
    """Learns from runs into banks, which it opens when it needs them. It must be closed. The options are those of
    `learn_traces`."""

    def __init__(
        self,
        bank: Bank | str | None = "",
        *,
        model: str | Model | None = None,
        judge: str | Evaluator | None = None,
        judge_model: str | Model | None = None,
        dry_run: bool = False,
    ) -> None:
        self._config = load()
        self._given, self._model, self._dry_run = bank, model, dry_run
        self._judge = _evaluator(judge, judge_model, self._config)
        self._judge_name = judge if isinstance(judge, str) else getattr(judge, "name", type(judge).__name__)
        self._open: dict[str, plain.Bank] = {}
        self._now = time.time()

    async def close(self) -> None:
        """Closes the banks that were opened here."""
        while self._open:
            await self._open.popitem()[1].close()

    async def learn(
        self, spans: Spans, progress: Callable[[TraceRun], Awaitable[None] | None] = lambda _: None
    ) -> TracesLearned:
        runs: dict[State, int] = {}
        lessons: dict[str, None] = {}
        errors: list[str] = []
        with closing(Seen(str(self._config.store))) as seen:
            for run in spans.runs():
                result = await self._one(run, seen)
                runs[result.state] = runs.get(result.state, 0) + 1
                lessons |= dict.fromkeys(result.titles)
                if result.state == "error":
                    errors.append(result.why_not)
                if (waiting := progress(result)) is not None:
                    await waiting
        return TracesLearned(runs, tuple(lessons), spans.counts(), tuple(errors), tuple(_notes(runs, spans.counts())))

    async def _one(self, run: Run, seen: Seen) -> TraceRun:
        """Learns from one run, if it is new."""
        agent_id = self._agent_id(run)
        keys = [seen.key(agent_id, span) for span in run.spans]
        verdict, known = run.verdict, seen.known(keys)
        task = next((turn.text for turn in run.turns if turn.role == "user"), "")
        result = TraceRun(
            agent_id=agent_id,
            agent=run.agent,
            conversation=run.conversation,
            trace=run.trace,
            task=task,
            turns=len(run.turns),
            success=verdict.success,
            why=verdict.why,
            source=verdict.source,
            state="nothing",
        )
        if known:
            later = f"{count(len(keys) - known, 'span')} of it came later" if known < len(keys) else ""
            return replace(result, state="known", why_not=later)
        if run.error:
            return replace(result, state="error", why_not=run.error)
        if not task or not any(turn.role == "assistant" for turn in run.turns):
            return replace(result, state="silent", why_not=f"{run.at}: the spans contain no messages")
        if run.unfinished and run.end > self._now - _MAX_WAIT:
            return replace(result, state="unfinished", why_not="the span that encloses it has not arrived yet")
        try:
            result = await self._learned(run, result)
        except StoreError:
            raise
        except MulliganError as error:
            return replace(result, state="error", why_not=f"{run.at}: {error}")
        judged = result.state == "nothing" and result.success != verdict.success
        if (result.state == "new" or judged) and not self._dry_run:
            seen.add(keys)
        return result

    def _agent_id(self, run: Run) -> str:
        if self._given is None:
            return run.agent
        return self._given if isinstance(self._given, str) else self._given.agent_id or ""

    async def _learned(self, run: Run, result: TraceRun) -> TraceRun:
        """Judges the run, if nobody did, and learns from it. Raises `MulliganError`."""
        transcript, bank = Transcript(run.at, "otlp", run.turns, run.spans[0]), self._bank(result.agent_id)
        episode = transcript.episode(success=result.success, why=result.why)
        if result.success is None and self._judge is not None:
            result = replace(result, source=f"to be judged by {self._judge_name}")
            if not self._dry_run:
                feedback = await self._judge.evaluate(episode)
                result = replace(result, success=feedback.passed, why=feedback.text, source=self._judge_name)
                episode = transcript.episode(success=result.success, why=result.why)
        found = () if bank.paper else transcript.found()
        facts = () if bank.paper else (fact.title for fact in facts_of(episode, bank.project))
        result = replace(result, drawn=(*(lesson.title for lesson in found), *facts))
        if not found and not has_something_to_learn(bank, episode):
            return replace(result, state="nothing", why_not="no model is named, and rules find nothing")
        if self._dry_run:
            return replace(result, state="new")
        learned = await learn_from(bank, episode, None, found)
        if learned.failed:
            return replace(result, state="error", why_not=f"{run.at}: {learned.failed}")
        ids = dict.fromkeys((*learned.facts, *learned.lessons, *learned.folded))
        titles = {id: (await bank.get(id)).title for id in ids}
        return replace(result, state="new", success=learned.success, learned=learned, titles=titles)

    def _bank(self, agent_id: str) -> plain.Bank:
        if isinstance(self._given, plain.Bank):
            return self._given
        if agent_id not in self._open:
            self._open[agent_id] = open_bank(agent_id, model=self._model, config=self._config)
        return self._open[agent_id]


class Seen:
    """Records which spans were learned from. It must be closed. Raises `StoreError`."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._path = home() / FILE
        with self._as_store_error():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch(mode=0o600)
            self._db = sqlite3.connect(self._path, timeout=30.0, isolation_level=None, check_same_thread=False)
            try:
                keep_log(self._db)
                self._db.execute("PRAGMA synchronous = NORMAL")
                self._db.execute("CREATE TABLE IF NOT EXISTS learned (key INTEGER PRIMARY KEY)")
            except BaseException:
                self._db.close()
                raise

    @contextmanager
    def _as_store_error(self) -> Generator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"The results of learning from traces cannot be recorded in {self._path}: {error}."
            ) from error

    def close(self) -> None:
        self._db.close()

    def key(self, agent_id: str, span: str) -> int:
        """The number that stands for a span in a bank."""
        named = "\0".join((self._store, agent_id, span)).encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.sha256(named).digest()[:8], "big", signed=True)

    def known(self, keys: Iterable[int]) -> int:
        """How many of these were learned from."""
        query = "SELECT count(*) FROM learned WHERE key = ?"
        with self._as_store_error():
            return sum(self._db.execute(query, (key,)).fetchone()[0] for key in keys)

    def add(self, keys: Iterable[int]) -> None:
        with self._as_store_error():
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:  # commits, or rolls back
                self._db.executemany("INSERT OR IGNORE INTO learned VALUES (?)", [(key,) for key in keys])


def _evaluator(judge: str | Evaluator | None, model: str | Model | None, config: Config) -> Evaluator | None:
    """The judge, built if it is named. Raises `InvalidInput`."""
    if judge is None:
        return None
    if not isinstance(judge, str):
        return fitted("evaluators", judge)
    models = Models(config)
    named = models.name(model) or config.text("judge_model")
    ports = {"prompts": FilePrompts(), "model": models.open(named) if named else None}
    return build("evaluators", parse_spec("evaluators", judge), ports)


def _notes(runs: Mapping[State, int], spans: Counts) -> Iterator[str]:
    if spans.others:
        yield f"Spans of no agent: {spans.others:,} of {spans.spans:,}."
    if spans.repeated:
        yield f"Spans that appear more than once: {spans.repeated:,}."
    if spans.loose:
        yield f"Events in logs that belong to missing spans: {spans.loose:,}."
    if silent := runs.get("silent"):
        yield (
            f"Runs whose spans contain no messages: {silent:,}. Instrumentation records messages only if you turn "
            "this on, for example with OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT."
        )
    if unfinished := runs.get("unfinished"):
        yield f"Runs that were not finished when they were exported: {unfinished:,}. They will be read next time."
