"""Whatever two agents do, in any order: neither sees the other, nothing goes but by purge, and the past stays told."""

import asyncio
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lesson_kit import ALL, E1, E2, OPENERS, entry, ids, vectors
from repetition import repeats

from mulligan.core.codec import to_json
from mulligan.core.errors import NotFound, StoreError
from mulligan.core.lesson_history import Link, Receipt
from mulligan.core.lesson_store import LessonStore, Memory
from mulligan.core.lessons import Selection
from mulligan.core.records import Json, Lesson

AGENTS = ("a", "b", "")
DOES = ("add", "add", "fold", "edit", "state", "merge", "unmerge", "link", "embed", "recall", "purge", "purge all")

Step = tuple[str, str, int, int]
"""What is done, by whom, and two numbers that choose among the lessons: of all agents, so that strangers are tried."""

steps = st.lists(
    st.tuples(st.sampled_from(DOES), st.sampled_from(AGENTS), st.integers(0, 11), st.integers(0, 11)),
    min_size=1,
    max_size=25,
)


@dataclass
class World:
    """The store, and what is known of it from outside: whose lesson each id is, and what was listed when."""

    memory: Memory
    owners: dict[str, str] = field(default_factory=dict[str, str])
    moments: list[tuple[str, float, list[Json]]] = field(default_factory=list[tuple[str, float, list[Json]]])
    count: int = 0

    def any(self, number: int) -> str:
        return list(self.owners)[number % len(self.owners)] if self.owners else "none"

    async def does(self, what: str, agent: str, x: int, y: int) -> None:
        """Raises `StoreError` where the store refuses; that it must not for strangers' ids is checked by `foreign`."""
        store, one, other = self.memory.lessons, self.any(x), self.any(y)
        self.count += 1
        id = f"{agent or 'un'}{self.count}"
        if what in ("add", "fold"):
            kept = await store.add(
                agent, [entry(id, f"words {x % 3}" if what == "fold" else "", embedder=[E1, None][y % 2])]
            )
            assert self.owners.setdefault(kept[0].id, agent) == agent, "it was folded into another agent's lesson"
        elif what == "merge":
            await store.merge(agent, entry(id), list(dict.fromkeys([one, other])))
            self.owners[id] = agent
        elif what == "unmerge":
            await store.unmerge(agent, one)
        elif what == "link":
            await store.link(agent, [Link(one, other, 0.9, E1)])
        elif what == "embed":
            await store.set_vectors(agent, E2, {one: vectors(one)})
        elif what == "recall":
            await store.recalled(Receipt(f"r{self.count}", agent, time.time(), "q", {one: 0.9, other: 0.8}))
        elif what == "purge":
            await store.purge(agent, [one])
            del self.owners[one]
        elif what == "purge all":
            await store.purge(agent, None)
            self.owners = {id: whose for id, whose in self.owners.items() if whose != agent}
            self.moments = [moment for moment in self.moments if moment[0] != agent]
        else:
            (lesson,) = await store.get(agent, [one])
            if what == "edit":
                await store.change(agent, replace(lesson, title=f"edited {self.count}"), "edited")
            else:
                state: Any = ("active", "retired", "quarantined")[y % 3]
                await store.change(agent, replace(lesson, state=state), "retired")

    async def holds(self) -> None:
        """Each agent lists its own lessons, all of them, and is told of no other's in any way."""
        store = self.memory.lessons
        for agent in AGENTS:
            own = {id for id, whose in self.owners.items() if whose == agent}
            listed = await store.list(agent, ALL)
            assert {lesson.id for lesson in listed} == own
            assert {lesson.agent_id for lesson in listed} <= {agent}
            assert {row.id for row in (await store.delta(agent, E1)).rows} == own
            linked = {link.b for id in own for link in await store.links(agent, id)}
            merged = {lesson.superseded_by for lesson in listed if lesson.superseded_by}
            assert linked | merged <= own
            for stranger in list(set(self.owners) - own)[:2]:
                for ask in (store.history, store.links, store.resolve):
                    with pytest.raises(NotFound):
                        await ask(agent, stranger)
                with pytest.raises(NotFound):
                    await store.get(agent, [stranger])
        assert {lesson.id for lesson in await store.list(None, ALL)} == set(self.owners)


async def told(memory: Memory, agent: str) -> list[Json]:
    return [to_json(lesson) for lesson in await memory.lessons.list(agent, Selection(limit=None))]


async def then_told(memory: Memory, agent: str, at: float) -> list[Json]:
    return [to_json(lesson) for lesson in await memory.lessons.as_of(agent, at)]


async def live(memory: Memory, done: list[Step]) -> None:
    world = World(memory)
    for what, agent, x, y in done:
        before = await everything(memory, agent, world)
        try:
            await world.does(what, agent, x, y)
        except StoreError:
            assert await everything(memory, agent, world) == before, f"{what} was refused and yet changed something"
        others = {id: text for id, text in before.items() if world.owners.get(id) not in (agent, None)}
        after = await everything(memory, agent, world)
        assert {id: after.get(id) for id in others} == others, f"{what} by {agent!r} changed another agent's lesson"
        await world.holds()
        if what == "purge":
            world.moments = [moment for moment in world.moments if moment[0] != agent]
        world.moments.append((agent, time.time(), await told(memory, agent)))
    for agent, at, lessons in world.moments:
        assert await then_told(memory, agent, at) == lessons
    assert await memory.lessons.verify() == []


async def everything(memory: Memory, agent: str, world: World) -> dict[str, Json]:
    lessons: list[Lesson] = [lesson for name in AGENTS for lesson in await memory.lessons.list(name, ALL)]
    return {lesson.id: (to_json(lesson), len(await memory.lessons.links(None, lesson.id))) for lesson in lessons}


def in_a_store(open: Callable[[Path], Memory], does: Callable[[Memory], Any]) -> None:
    async def run(folder: str) -> None:
        memory = open(Path(folder))
        try:
            await does(memory)
        finally:
            await memory.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


quick = settings(print_blob=True)


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("open", OPENERS)
@quick
@given(done=steps)
def test_whatever_agents_do_they_never_meet_and_nothing_is_lost(
    open: Callable[[Path], Memory], done: list[Step]
) -> None:
    in_a_store(open, lambda memory: live(memory, done))


@pytest.mark.slow
@pytest.mark.parametrize("open", [one for one in OPENERS if one.id != "postgresql"])  # 14 minutes there
@settings(parent=quick, max_examples=repeats(250))
@given(done=steps)
def test_whatever_agents_do_many_times(open: Callable[[Path], Memory], done: list[Step]) -> None:
    in_a_store(open, lambda memory: live(memory, done))


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("open", OPENERS)
@quick
@given(before=steps, parents=st.sets(st.integers(0, 5), min_size=1, max_size=4))
def test_merge_then_unmerge_restores_the_parents(
    open: Callable[[Path], Memory], before: list[Step], parents: set[int]
) -> None:
    """To the letter, but for the vectors, which archives do not hold."""

    async def merges(memory: Memory) -> None:
        world = World(memory)
        for step in before:
            try:
                await world.does(*step)
            except StoreError:
                continue
        await memory.lessons.add("a", [entry(f"p{n}") for n in range(6)])
        ids = [f"p{n}" for n in parents]
        were = await memory.lessons.get("a", ids)
        rest = [lesson for lesson in await told(memory, "a") if lesson["id"] not in ids]
        await memory.lessons.merge("a", entry("m"), ids)
        await memory.lessons.unmerge("a", "m")
        are = await memory.lessons.get("a", ids)
        assert [to_json(lesson) for lesson in are] == [to_json(replace(lesson, embedder=None)) for lesson in were]
        assert [lesson for lesson in await told(memory, "a") if lesson["id"] not in ids] == rest

    in_a_store(open, merges)


async def test_pages_of_an_agent_s_lessons_pass_over_those_of_others(store: LessonStore) -> None:
    for n in range(1, 4):
        for agent in "ab":
            await store.add(agent, [entry(f"{agent}{n}")])
    assert await ids(store, "a", limit=2) == ["a3", "a2"]
    assert await ids(store, "a", before="a2") == ["a1"]
    assert await ids(store, None, before="b2") == ["a2", "b1", "a1"]
    assert await ids(store, None, prefix="b", before="b3") == ["b2", "b1"]
    assert await ids(store, "a", prefix="b") == []
    said: list[str] = []
    for id in ("b1", "none"):
        with pytest.raises(NotFound) as refused:
            await ids(store, "a", before=id)
        said.append(str(refused.value).replace(id, "ID"))
    assert said[0] == said[1]


async def test_agents_with_lessons_are_found_by_how_they_begin(store: LessonStore) -> None:
    for agent in ("", "a", "ab", "b"):
        await store.add(agent, [entry(f"of {agent}")])
    assert await store.agents() == ("a", "ab", "b")
    assert (await store.agents("ab"), await store.agents(limit=1)) == (("ab",), ("a",))
    await store.purge("ab", None)
    assert await store.agents("ab") == ()
