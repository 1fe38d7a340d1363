"""`mulligan ask-graph`: answers a question in plain words from a graph database."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from mulligan.graphs.command import table
from mulligan.langgraph.options import GraphOptions
from mulligan.pages import count, one_line
from mulligan.plugins import Episode, InvalidInput, RecordLost
from mulligan.running import Acted, Event, to_json
from mulligan.terminal import (
    Watch,
    arguments,
    emit,
    record_options,
    say,
)

if TYPE_CHECKING:
    from mulligan.langgraph.agent import ReflexionAgentResult


RESUMABLE_STATUS = 3
"""The exit status of a run that can be resumed: docs/cli.md."""


@click.command("ask-graph")
@click.argument("question")
@click.option(
    "--graph",
    required=True,
    metavar="WHERE",
    help="A graph file or a server address: bolt://host:7687, neo4j+s://host, …",
)
@record_options(GraphOptions)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    help="Format of the rows: a table with the query (default), or only the rows as JSON or CSV.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print one JSON object per event. The last event, "result", contains the rows.',
)
@click.option("--quiet", "-q", is_flag=True, help="Print only errors to stderr, not progress.")
@click.pass_context
def ask_graph(ctx: click.Context, question: str, graph: str, form: str, **given: Any) -> None:
    """Answer QUESTION from a graph database: write a query, run it, examine the rows, and improve the query.

    The query and its rows are written to stdout, progress to stderr. Queries are read-only. A server's password is read
    from MULLIGAN_GRAPH_PASSWORD. `mulligan graph sample` writes a sample graph.

    Exit status: 0 if the rows answer the question, as far as rules and the model can tell; 1 if there are no rows; 2
    for invalid input; 3 if interrupted or stopped by an error (you can resume the run); 4 if the answer could not be
    judged or, with --until rows, if the model gives it a low score; 5 if the best rows may be wrong; 6 if the question
    mentions something that is not in the graph.
    """
    from mulligan.langgraph import ask_graph as library

    if given["as_json"] and form != "table":
        raise InvalidInput("--json prints events, with the rows in the last one: omit --format.")
    work = partial(library, question, graph, **arguments(GraphOptions, given))
    ctx.exit(_Watch(given["quiet"], given["as_json"], form).conduct(work))


def resumed(run: str, given: Mapping[str, Any]) -> int:
    """Resume a run of this command and return the exit status.

    Raises `InvalidInput` for options that a resumed run cannot take.
    """
    from mulligan.langgraph import resume_graph

    shown = ("quiet", "as_json")
    if other := [f"--{name.replace('_', '-')}" for name, value in given.items() if value and name not in shown]:
        raise InvalidInput(
            f"A resumed graph question keeps its options: omit {', '.join(sorted(other))}, or ask again with "
            "mulligan ask-graph."
        )
    return _Watch(given["quiet"], given["as_json"]).conduct(partial(resume_graph, run))


class _Watch(Watch):
    """Reports the progress as other commands do, and each query with its result."""

    live = False

    def __init__(self, quiet: bool, as_json: bool, form: str = "table") -> None:
        super().__init__(quiet, as_json)
        self._form = form
        self.on_step = self.began_step
        self._lines = not (quiet or as_json)

    def saw(self, episode: Episode, event: Event) -> None:
        if self._lines and isinstance(event, Acted):
            say(f"query: {one_line(event.attempt.output)}")
            say(f"result: {one_line(came_of(event.attempt.steps[0].observation))}")
            for objection in objections(event.attempt.steps[0].observation):
                say(f"objection: {one_line(objection)}")
        super().saw(episode, event)

    def began_step(self, sentence: str) -> None:
        if self._lines:
            say(sentence)

    def ended(self, result: ReflexionAgentResult) -> int:
        episode = self.episode
        assert episode is not None
        status = self.status
        if self._json:
            emit(json.dumps({"event": "result", **answer(result, episode), "exit_status": status}, ensure_ascii=False))
            return status
        if self._lines or status:
            best = episode.best if episode.stop and episode.stop.reason == "unsure" else None
            last = episode.trials[-1] if episode.trials else None
            for line in self.closing("best query" if best else "last query", best or last):
                say(line)
        if result.note:
            say(f"note: {result.note}")
        for text in printed(result, self._form):
            emit(text)
        return status

    def interrupted(self) -> int:
        if self.episode is None:
            return super().interrupted()
        say(f"Interrupted. Resume it with: mulligan runs resume {self.episode.run}")
        return RESUMABLE_STATUS

    def failed(self, error: Exception) -> int:
        status = super().failed(error)
        if self.episode and status == RESUMABLE_STATUS and not isinstance(error, RecordLost):
            say(f"Resume it with: mulligan runs resume {self.episode.run}")
        return status


def printed(result: ReflexionAgentResult, form: str) -> list[str]:
    """Return what goes to stdout: the sentence, the query and a table of its rows; or the rows alone in another form,
    and then the sentence on stderr.
    """
    rows: list[Any] = result.tool_result or []
    if form != "table":
        if result.sentence:
            say(f"answer: {one_line(result.sentence)}")
        return [json.dumps(rows, ensure_ascii=False, indent=2) if form == "json" else _csv(rows)]
    parts = [one_line(result.sentence), result.answer or "", table(list(rows[0]), rows) if rows else ""]
    return ["\n\n".join(part for part in parts if part)] if any(parts) else []


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as CSV with a header; what is no text, number or truth value as JSON. A cell that a spreadsheet would
    take for a formula begins with an apostrophe.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if rows:
        writer.writerow(map(_csv_cell, rows[0]))
    writer.writerows([_csv_cell(value) for value in row.values()] for row in rows)
    return out.getvalue().removesuffix("\n")


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
    return "" if value is None else value if isinstance(value, int | float) else json.dumps(value, ensure_ascii=False)


def objections(observation: str) -> list[str]:
    """Return the objections to the rows of a query."""
    return [str(each) for each in json.loads(observation).get("objections", ())]


def came_of(observation: str) -> str:
    """Return the result of a query in words."""
    found: Mapping[str, Any] = json.loads(observation)
    if "error" in found:
        return str(found["error"])
    more = f", {found['shown']}" if "shown" in found else ""
    return f"{count(len(found['result']), 'row')}{more}"


def answer(result: ReflexionAgentResult, episode: Episode) -> dict[str, Any]:
    """Return the result as JSON; missing values are null."""
    return {
        "run": episode.run,
        "episode": episode.id,
        "solved": episode.solved,
        "stop": episode.stop and to_json(episode.stop),
        "query": result.answer,
        "rows": result.tool_result,
        "note": result.note,
        "answer": result.sentence,
        "score": result.score,
        "trials": len(episode.trials),
        "used": to_json(episode.usage),
        "seconds": episode.seconds,
    }
