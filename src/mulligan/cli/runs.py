"""`mulligan runs`: lists, shows, resumes, exports and removes recorded runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from mulligan.app.options import ResumeOptions
from mulligan.app.run_context import RunContext, run_context
from mulligan.app.story import markdown, rating_text, story, web_page, without_steps
from mulligan.cli import table, words
from mulligan.cli.errors import BAD_INPUT, SOLVED
from mulligan.cli.groups import Group
from mulligan.cli.options import (
    arguments,
    export_options,
    limit_option,
    progress_options,
    rating_options,
    record_options,
    score_of,
)
from mulligan.cli.stores import with_store
from mulligan.cli.terminal import emit, newest, page_text, put, say
from mulligan.core.codec import to_json
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Store
from mulligan.core.records import Episode
from mulligan.recording.drivers import asked_by_name
from mulligan.store.export import each_readable
from mulligan.store.export import export as export_json
from mulligan.text.pages import Block
from mulligan.text.times import span_of

T = TypeVar("T")

if TYPE_CHECKING:
    Ages = click.ParamType[timedelta]
else:
    Ages = click.ParamType  # not generic before click 8.4


class _Age(Ages):
    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if (span := span_of(str(value))) is None:
            self.fail(f"{value!r} is not an age such as 30d, 12h or 8w.", param, ctx)
        return span


@click.group(cls=Group)
def runs() -> None:
    """List, show, resume, export and remove recorded runs."""


@runs.command("list")
@limit_option(20)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_runs(limit: int, as_json: bool) -> None:
    """List the recorded runs, newest first. `mulligan bench runs` lists benchmark runs."""

    async def look(store: Store) -> tuple[Sequence[Episode], set[str]]:
        episodes = newest(await store.list(limit=limit + 1, benches=False), limit)
        return episodes, await _running(store, episodes)

    episodes, running = with_store(look)
    if as_json:
        emit(json.dumps([table.facts(episode, episode.id in running) for episode in episodes], indent=2))
    elif episodes:
        emit(table.rows(episodes, running))
        if table.cut(episodes):
            say("Long tasks and model names are shortened. To show them in full: mulligan runs show RUN --full")
    else:
        say("No runs recorded here yet. For benchmark runs: mulligan bench runs")


@runs.command()
@click.argument("run")
@click.option(
    "--full", is_flag=True, help="Show everything in full, including the journal and what each try was shown."
)
@click.option("--json", "as_json", is_flag=True, help="Print the complete episodes as a JSON list.")
@click.option("--html", metavar="FILE", help="Write a single shareable web page, with secrets masked.")
def show(run: str, full: bool, as_json: bool, html: str | None) -> None:
    """Show RUN's episodes, try by try. The first few characters of the id are enough."""
    if html is not None and as_json:
        raise click.UsageError("Use either --html or --json.")

    if html is not None:
        if Path(html).exists():
            raise InvalidInput(f"{html} already exists. Choose another file, or remove the existing one first.")

        async def write(store: Store) -> str:
            return await web_page(store, await store.resolve(run))

        put(with_store(write), html)
        return

    async def look(store: Store) -> Sequence[tuple[Episode, RunContext, Sequence[Block]]]:
        episodes = [episode for _, episode in await each_readable(await store.resolve(run), store.load)]
        return [(one, await run_context(store, one), await without_steps(store, one)) for one in episodes]

    episodes = with_store(look)
    if as_json:
        emit(json.dumps([table.story(episode, context) for episode, context, _ in episodes], indent=2))
        return
    blocks = [block for *_, blocks in episodes for block in blocks]
    short = page_text(blocks, TOKENS)
    emit(page_text(block for episode, context, _ in episodes for block in story(episode, context)) if full else short)
    if not full and short != page_text(blocks):
        say(f"Long texts are shortened. To show them in full: mulligan runs show {run} --full")


@runs.command()
@click.argument("run")
@record_options(ResumeOptions)
@progress_options
@click.pass_context
def resume(ctx: click.Context, run: str, **given: Any) -> None:
    """Continue RUN where it stopped. Limits given here replace the recorded ones.

    With --fork, you can also continue a finished run if the limits allow more tries. For example, --fork --tries 5
    --strategy none keeps the recorded tries and adds more with that strategy, up to five in total.
    """
    from mulligan.app.solve import resume as library
    from mulligan.cli.main import COMMANDS
    from mulligan.cli.watch import Watch

    if _asked_a_graph(run):
        ctx.exit(import_module(f"mulligan.{COMMANDS['ask-graph'][0]}").resumed(run, given))
    work = partial(library, run, **arguments(ResumeOptions, given))
    ctx.exit(Watch(given["quiet"], given["as_json"], given["trace"]).conduct(work))


@runs.command()
@click.argument("run")
@export_options("json is for replay (--model replay:FILE)")
def export(run: str, form: str, output: str | None) -> None:
    """Export RUN's complete record, with secrets masked."""

    async def write(store: Store) -> str:
        ids = await store.resolve(run)
        if form == "md":
            return await markdown(store, ids)
        return json.dumps(await export_json(store, ids), ensure_ascii=False, indent=2)

    put(with_store(write), output)


@runs.command()
@click.argument("run")
@click.option(
    "--trial", type=int, metavar="N", help="The try whose lesson is changed (default: the latest failed try)."
)
@click.option("--text", metavar="TEXT", help="The lesson's new text.")
@click.option("--edit", is_flag=True, help="Open the lesson in $VISUAL or $EDITOR.")
@click.option("--veto", is_flag=True, help="Do not show the lesson to later tries.")
@click.option("--take", is_flag=True, help="Show the lesson even if it was withheld or vetoed.")
@click.option("--by", metavar="NAME", help="The author's name (default: your user name).")
def reflect(run: str, trial: int | None, by: str | None, **given: Any) -> None:
    """Change one of RUN's recorded lessons for the rest of the run and its forks. The record keeps the original.

    If a try that was shown the lesson is still in progress, the run can be continued only as a
    fork (`runs resume --fork`).
    """
    from mulligan.app.editing import editor_command, person, recorded_trial, revise

    ways = [way for way in ("text", "edit", "veto", "take") if given[way] not in (None, False)]
    if len(ways) != 1:
        raise click.UsageError("Use one of --text TEXT, --edit, --veto and --take.")
    text, decision = given["text"] or "", _DECISIONS[ways[0]]
    if ways == ["edit"]:
        reflection = with_store(lambda store: recorded_trial(store, run, trial)).reflection
        edited = click.edit(reflection.text if reflection else "", editor=" ".join(editor_command()) or None)
        text = (edited or "").strip()
        if not text:
            say("Nothing was changed.")
            return
        decision = "edited" if reflection else "written"
    elif ways == ["text"] and not text.strip():
        raise click.UsageError("The lesson is empty. To show no lesson, use --veto.")
    of = with_store(lambda store: revise(store, run, trial, decision, text.strip(), person() if by is None else by))
    say(f"The lesson of try {of.number} was {decision}.")


_DECISIONS: Mapping[str, Any] = {"text": "written", "edit": "edited", "veto": "vetoed", "take": "taken"}


@runs.command("rate")
@click.argument("run")
@rating_options
@click.option("--trial", type=int, metavar="N", help="Rate this try's lesson instead of the result.")
def rate_run(run: str, trial: int | None, by: str | None, comment: str, **given: Any) -> None:
    """Rate RUN's result or one of its lessons. SCORE is a number from 0 to 1; higher is better."""
    from mulligan.app.editing import rate_run

    score = score_of(given)
    with_store(lambda store: rate_run(store, run, score, trial=trial, comment=comment, by=by))
    say(f"{'The result' if trial is None else f'The lesson of try {trial}'} was rated {score:g}.")


@runs.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ratings(runs: tuple[str, ...], as_json: bool) -> None:
    """List people's ratings of RUN (default: all runs) and show how well the ratings agree with the computed scores."""
    from mulligan.core.agreement import agreement, of_lessons, of_results

    async def look(store: Store) -> Sequence[Episode]:
        ids = (
            [id for run in runs for id in await store.resolve(run)] if runs else await store.ids("", limit=MAX_EPISODES)
        )
        return [episode for _, episode in await each_readable(ids, store.load) if episode.ratings]

    episodes = with_store(look)
    pairs = {"lessons": of_lessons(episodes), "results": of_results(episodes)}
    agreements = {kind: agreement(scores) for kind, scores in pairs.items()}
    if as_json:
        rows = [{"episode": one.id, **cast(dict[str, Any], to_json(r))} for one in episodes for r in one.ratings]
        figures = {kind: one and to_json(one) for kind, one in agreements.items()}
        emit(json.dumps({"ratings": rows, "agreement": figures}, indent=2))
        return
    for episode in episodes:
        for rating in episode.ratings:
            emit(f"{episode.id}  {rating_text(rating)}")
    if not episodes:
        say("No ratings here yet. To rate a run: mulligan runs rate RUN SCORE")
    for kind, other in (("lessons", "their quality"), ("results", "their judges")):
        if pairs[kind]:
            scores = f"People's scores of {kind} and {other}"
            say(words.agreement_text(scores, agreements[kind], len(pairs[kind])))


TOKENS = 400
"""The number of tokens of one text, from its beginning and end, that are shown without --full."""
MAX_EPISODES = 100_000
"""The number of episodes that are searched for ratings."""

_YES = click.option("--yes", is_flag=True, help="Remove the listed items. Without this option, they are only listed.")


@runs.command("rm")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@_YES
@click.pass_context
def remove(ctx: click.Context, runs: tuple[str, ...], yes: bool) -> None:
    """Remove RUN, even if it is unfinished, including its record, working folders and snapshots in your repository.

    Lessons and branches that contain results are kept. A run that is in progress is not removed.
    """
    ctx.exit(_remove(runs, None, yes))


@runs.command()
@click.option(
    "--older-than",
    type=_Age(),
    metavar="AGE",
    help="Also remove finished runs older than this, for example 30d, 12h or 8w.",
)
@_YES
@click.pass_context
def prune(ctx: click.Context, older_than: timedelta | None, yes: bool) -> None:
    """Remove leftovers of runs and, with --older-than, old runs.

    Leftovers are finished runs' working folders, and the folders and snapshots of runs that are no longer recorded.
    Unfinished runs, lessons, and branches that contain results are kept.
    """
    ctx.exit(_remove((), older_than, yes))


def _remove(named: Sequence[str], older_than: timedelta | None, yes: bool) -> int:
    """Removes runs, or only lists them. Returns the exit status, 0 if no named run stays."""
    from mulligan.app.removal import Removable, removable_runs, remove_runs

    async def work() -> Sequence[Removable]:
        items = await removable_runs(*named, older_than=older_than)
        return await remove_runs(items) if yes else items

    items = asyncio.run(work())
    result = "removed" if yes else "would be removed"
    for item in items:
        emit(f"{item.id}  {f'stays: {item.stays}' if item.stays else result}  ({item.what})")
    if not items:
        say("Nothing to remove.")
    elif not yes and any(not item.stays for item in items):
        say("Nothing was removed yet. To remove these items, add --yes.")
    return BAD_INPUT if named and any(item.stays for item in items) else SOLVED


def _asked_a_graph(run: str) -> bool:
    """Whether the run was started by `mulligan ask-graph`."""

    async def look(store: Store) -> bool:
        return asked_by_name(await store.load((await store.resolve(run))[0]))

    return with_store(look)


async def _running(store: Store, episodes: Sequence[Episode]) -> set[str]:
    """Returns the ids of the episodes that a process is working on."""
    return {e.id for e in episodes if e.stop is None and await store.holder(e.id)}
