"""`mulligan runs`: what was recorded, going on with it, and taking it elsewhere."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mulligan.cli.options import limit_options, limits_of, progress_options
from mulligan.cli.terminal import emit, put, say

if TYPE_CHECKING:
    from mulligan.core.protocols import Store
    from mulligan.core.records import Episode

T = TypeVar("T")


@click.group()
def runs() -> None:
    """See recorded runs, go on with one, export one."""


@runs.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many, newest first.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list instead of a table.")
def list_runs(limit: int, as_json: bool) -> None:
    """The recorded runs, newest first; those of benchmarks are in `mulligan bench runs`."""
    from mulligan.cli import table

    async def look(store: Store) -> tuple[Sequence[Episode], set[str]]:
        episodes = await store.list(limit=limit, benches=False)
        return episodes, await _running(store, episodes)

    found, running = _with_store(look)
    if as_json:
        emit(json.dumps([table.facts(episode, episode.id in running) for episode in found], indent=2))
    elif found:
        emit(table.rows(found, running))
    else:
        say("No run is recorded here yet. Those of benchmarks: mulligan bench runs")


@runs.command()
@click.argument("run")
@click.option("--full", is_flag=True, help="Nothing cut short.")
def show(run: str, full: bool) -> None:
    """The episodes of RUN, trial by trial. The beginning of an id is enough."""
    from mulligan.cli.show import story

    async def look(store: Store) -> tuple[list[Episode], set[str]]:
        episodes = [await store.load(id) for id in await store.resolve(run)]
        return episodes, await _running(store, episodes)

    found, running = _with_store(look)
    emit("\n\n".join(story(episode, episode.id in running, full=full) for episode in found))


@runs.command()
@click.argument("run")
@click.option("--fork", is_flag=True, help="Go on although something has changed, as a new run.")
@limit_options
@click.option("--model", metavar="MODEL", help="Another model; needs --fork.")
@progress_options
@click.pass_context
def resume(ctx: click.Context, run: str, fork: bool, **given: Any) -> None:
    """Go on with RUN at the first step that is not done. Limits that are given take the place of the recorded ones."""
    from mulligan.app.solve import resume as library
    from mulligan.cli.conduct import Hooks, conduct

    if _asked_a_graph(run):
        from mulligan.cli.ask_graph import resumed

        ctx.exit(resumed(run, fork=fork, given=given))

    async def work(hooks: Hooks) -> Episode:
        return await library(run, fork=fork, limits=limits_of(given), model=given["model"], **hooks)

    ctx.exit(conduct(work, quiet=given["quiet"], as_json=given["as_json"], trace=given["trace"]))


@runs.command()
@click.argument("run")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "md"]),
    default="json",
    show_default=True,
    help="json has all that replaying needs (--model replay:FILE), md is for reading.",
)
@click.option("-o", "--output", metavar="FILE", help="Write there instead of to stdout.")
def export(run: str, form: str, output: str | None) -> None:
    """All that is recorded of RUN, with secrets masked."""

    async def write(store: Store) -> str:
        from mulligan.store.export import export as as_json
        from mulligan.store.story import markdown

        ids = await store.resolve(run)
        if form == "md":
            return await markdown(store, ids)
        return json.dumps(await as_json(store, ids), ensure_ascii=False, indent=2)

    text = _with_store(write)
    put(text, output)


def _asked_a_graph(run: str) -> bool:
    """Whether `mulligan ask-graph` began it."""
    from mulligan.app.graph_led import asked_by_name

    async def look(store: Store) -> bool:
        return asked_by_name(await store.load((await store.resolve(run))[0]))

    return _with_store(look)


def _with_store(work: Callable[[Store], Awaitable[T]]) -> T:
    import asyncio

    from mulligan.app.session import open_store

    async def main() -> T:
        store = open_store()
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(main())


async def _running(store: Store, episodes: Sequence[Episode]) -> set[str]:
    """The ids of those that a process drives now."""
    return {e.id for e in episodes if e.stop is None and await store.holder(e.id)}
