"""Removes runs and what they left behind: records, working folders, and states in the user's repositories.

    runs = await removable_runs("3f2a", "77c01b9e")             # what would be removed, and what stays, and why
    runs = await removable_runs(older_than=timedelta(days=30))  # old finished runs, and leftovers
    await remove_runs(runs)

Lessons stay, and say that their run was removed. Branches with results stay, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from mulligan.app.backup import erasures_file, noted_erasure
from mulligan.app.config import load
from mulligan.app.session import opened_store
from mulligan.app.story import run_state
from mulligan.core.errors import LeaseLost, NotFound, StoreError, WorkspaceError
from mulligan.core.home import home
from mulligan.core.protocols import Brief, Store
from mulligan.core.records import RESUMABLE, Episode
from mulligan.recording.leases import leased
from mulligan.text.plain import count
from mulligan.workspace.leftovers import Leftovers, leftovers, repository_of

PAGE = 1000
"""Episodes that are read at once."""

NO_LIMIT = 2**62
"""As a limit of rows, for SQLite."""


@dataclass(frozen=True)
class Removable:
    """A run, or what one left behind.

    Attributes:
        id: of the run, or of the episode that left something.
        what: a description.
        stays: why it is not removed; "" if it is.
        episodes: the ids of its recorded episodes.
        left: what it left in folders and repositories.
        states: whether to remove the states of trials, or only the working folders.
    """

    id: str
    what: str
    stays: str = ""
    episodes: tuple[str, ...] = ()
    left: tuple[Leftovers, ...] = field(default=(), repr=False)
    states: bool = True


async def removable_runs(
    *runs: str, older_than: timedelta | None = None, store: Store | None = None
) -> Sequence[Removable]:
    """Returns what `remove_runs` would remove: the runs with these ids or prefixes of ids, finished or not.

    Without ids, these are leftovers of runs that are no longer recorded, working folders of finished runs and, with
    `older_than`, finished runs that started earlier.

    Raises:
        NotFound
    """
    async with opened_store(store, load()) as at:
        left = await _left_behind(at)
        if runs:
            return [await _named_run(at, run, left) for run in runs]
        recorded = await _all_briefs(at)
        old_runs: list[Removable] = []
        if older_than is not None:
            old_runs = await _old_runs(at, recorded, time.time() - older_than.total_seconds(), left)
        removed_episodes = {episode for run in old_runs for episode in run.episodes}
        unreadable = set(await at.ids("", limit=NO_LIMIT)) - set(recorded)  # they may be repaired later
        others = {id: one for id, one in left.items() if id not in removed_episodes | unreadable}
        return [*old_runs, *_leftovers(others, recorded)]


async def remove_runs(found: Sequence[Removable], *, store: Store | None = None) -> Sequence[Removable]:
    """Removes what `removable_runs` lists, except for what must be kept.

    In the result, `stays` also lists what could not be removed.

    Runs in progress are not removed. Restoring a backup of the configured store does not restore removed runs;
    restoring a backup of a store that you pass does.
    """
    async with opened_store(store, load()) as at:
        erasures = erasures_file(load().store) if store is None else None
        return [one if one.stays else await _remove(at, one, erasures) for one in found]


async def _remove(at: Store, one: Removable, erasures: Path | None) -> Removable:
    try:
        async with AsyncExitStack() as stack:
            leases = [await stack.enter_async_context(leased(at, id, removing=True)) for id in one.episodes]
            for left in one.left:
                if not await asyncio.to_thread(left.remove, states=one.states):
                    return replace(one, stays=_in_use(left))
            with noted_erasure(erasures if leases else None, episodes=[lease.episode for lease in leases]):
                for lease in leases:  # last, so that the rest is found again after an interruption
                    await at.remove(lease)
    except (LeaseLost, WorkspaceError, OSError) as error:
        return replace(one, stays=str(error))
    return one


async def _named_run(at: Store, name: str, left: Mapping[str, Leftovers]) -> Removable:
    try:
        ids = tuple(await at.resolve(name))
    except NotFound:
        orphans = [one for id, one in left.items() if name and id.startswith(name)]
        if len(orphans) != 1:
            raise
        return Removable(orphans[0].episode, _described("no longer recorded", orphans), left=tuple(orphans))
    try:
        episodes = [await at.load(id) for id in ids]
    except StoreError as error:
        return Removable(name, str(error), "", ids, tuple(left[id] for id in ids if id in left))
    first = episodes[0]
    if bench := first.head.settings.get("bench"):
        return Removable(first.run, f"of the benchmark run {bench}", "a benchmark's report needs its episodes", ids)
    trials = sum(len(episode.trials) for episode in episodes)
    return _removable_run(first.run or first.id, ids, episodes[-1], trials, left)


async def _old_runs(
    at: Store, recorded: Mapping[str, Brief], before: float, left: Mapping[str, Leftovers]
) -> list[Removable]:
    runs = dict[str, list[Brief]]()
    for brief in recorded.values():
        runs.setdefault(brief.run or brief.id, []).append(brief)
    removable = list[Removable]()
    for run, briefs in runs.items():
        if any(not _is_over(brief) or brief.started > before for brief in briefs):
            continue
        try:
            if (await at.load(briefs[0].id)).head.settings.get("bench"):
                continue
        except StoreError:
            continue
        ids = tuple(brief.id for brief in briefs)
        removable.append(_removable_run(run, ids, briefs[0], sum(brief.trials for brief in briefs), left))
    return removable


def _removable_run(
    run: str, ids: tuple[str, ...], last: Episode | Brief, trials: int, left: Mapping[str, Leftovers]
) -> Removable:
    leftovers_of_run = tuple(left[id] for id in ids if id in left)
    state = run_state(last, running=False).word
    description = _described(f"{state}, {count(trials, 'try')}", leftovers_of_run)
    stays = next((_in_use(one) for one in leftovers_of_run if one.in_use), "")
    return Removable(run, description, stays, ids, leftovers_of_run)


def _leftovers(left: Mapping[str, Leftovers], recorded: Mapping[str, Brief]) -> list[Removable]:
    removable = list[Removable]()
    for id, one in left.items():
        brief = recorded.get(id)
        if brief is None:
            stays = "" if one.ours else f"another store may have its record. To remove it: mulligan runs rm {id} --yes"
            removable.append(
                Removable(
                    id, _described("no longer recorded", [one]), _in_use(one) if one.in_use else stays, left=(one,)
                )
            )
        elif one.working:
            stays = "" if _is_over(brief) else f"the run is not finished. To remove it: mulligan runs rm {id} --yes"
            stays = _in_use(one) if one.in_use else stays
            removable.append(Removable(id, "its working folder", stays, left=(one,), states=False))
    return removable


def _is_over(brief: Brief) -> bool:
    return brief.stop is not None and brief.stop not in RESUMABLE


def _described(beginning: str, left: Sequence[Leftovers]) -> str:
    """A description that also says what is in folders and repositories."""
    states = sum(len(names) for one in left for names in one.refs.values())
    repositories = dict.fromkeys(repository for one in left for repository in one.refs)
    parts = [beginning]
    parts += ["its working folder"] if any(one.working for one in left) else []
    parts += [f"{count(states, 'state')} in {', '.join(repositories)}"] if states else []
    return "; ".join(parts)


def _in_use(left: Leftovers) -> str:
    return f"a process is working in {left.folder}: let it finish, or end it first"


async def _all_briefs(at: Store) -> Mapping[str, Brief]:
    """All episodes, newest first."""
    briefs, before = dict[str, Brief](), None
    while page := await at.briefs(before=before, limit=PAGE):
        briefs |= {brief.id: brief for brief in page}
        before = page[-1].id
    return briefs


async def _left_behind(at: Store) -> Mapping[str, Leftovers]:
    """The leftovers in our data folders and in the repositories of recorded runs and of the current folder, by
    episode."""
    data_folders, folders = [str(home() / "workspaces")], [str(Path.cwd())]
    for settings in await at.workspaces():
        data_folders += [str(settings["data"])] if settings.get("data") else []
        folders.append(str(settings.get("folder", ".")))

    def search() -> Mapping[str, Leftovers]:
        repositories = [repository for folder in dict.fromkeys(folders) if (repository := repository_of(folder))]
        return leftovers([str(Path(top).expanduser().resolve()) for top in data_folders], repositories)

    return await asyncio.to_thread(search)
