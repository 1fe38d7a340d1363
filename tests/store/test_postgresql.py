"""The PostgreSQL store beyond the contract: who may serve, the walls under our code, processes that meet, and crashes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import postgres_server
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from lesson_kit import ALL, entry
from postgres_server import PostgresServer, database, server

import mulligan
from mulligan.app.doctor import check_machine
from mulligan.cli.main import cli
from mulligan.core.episode import Acted
from mulligan.core.errors import InvalidInput, NotFound, StoreError
from mulligan.core.lesson_history import Link, Receipt
from mulligan.core.protocols import Store
from mulligan.core.records import Attempt, Episode, Task
from mulligan.store import open_store
from mulligan.store.sqlite.schema import expected

pytestmark = pytest.mark.slow

HOSTILE = (
    "a' OR '1'='1",
    "*",
    "=b",
    "",
    "b%",
    '"; DROP TABLE lessons; --',
    "a\\",
    "=",
    "ü\u202eb",
    "b ",
    " b",
    "B",
    "%s",
)

OWN = ["n", "id", "agent", "lesson", "episode", "step"]


@pytest.fixture
def place(tmp_path: Path) -> str:
    """The name of a database with all tables, and nothing in them."""
    return database(tmp_path)


@pytest.fixture
def bound(place: str) -> str:
    """The address of it for a role that serves the agent b alone."""
    from mulligan.store.postgresql.schema import setup

    setup(server().owner_of(place), "mulligan_tests_b", agent="b")
    return server().address(place, "mulligan_tests_b")


async def filled(store: Store, agent: str) -> None:
    """Something of this agent in each table."""
    lessons, queue = store.memory.lessons, store.memory.queue
    await store.create(Episode(f"e {agent}", Task("p"), agent=agent), {"f": f"text of {agent}"})
    lease = await store.acquire(f"e {agent}", "me", 60)
    await store.begin_step(lease, "trial.1/act/model.actor#1", {}, "h")
    await store.finish_step(lease, "trial.1/act/model.actor#1", {})
    await store.append(lease, 0, Acted(1, Attempt("y")))
    await lessons.add(agent, [entry("1"), entry("2")])
    await lessons.link(agent, [Link("1", "2", 0.5, "e")])
    await lessons.recalled(Receipt("r", agent, 1.0, "q", {"1": 0.5}))
    await lessons.outcome_of(agent, "r", True)
    await queue.enqueue("k", agent, {"of": agent}, follows=["r"])


def tables(place: str) -> dict[str, list[str]]:
    """The columns of each table."""
    found: dict[str, list[str]] = {}
    query = (
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'mulligan' ORDER BY 1, 2"
    )
    for table, column in server().sql(query, place):
        found.setdefault(str(table), []).append(str(column))
    return found


def seen(address: str, agent: str | None) -> dict[str, int]:
    """How many rows of each table a role sees that asks for everything. agent: the setting; None: it is not set."""
    import psycopg

    with psycopg.connect(address) as db:
        db.execute("SET search_path = mulligan")
        if agent is not None:
            db.execute("SELECT set_config('mulligan.agent', %s, TRUE)", (agent,))
        walled = db.execute("SELECT relname FROM pg_class WHERE relrowsecurity AND relname <> 'servers' ORDER BY 1")
        names = [name for (name,) in walled.fetchall()]
        return {name: db.execute(f"SELECT count(*) FROM {name}".encode()).fetchone()[0] for name in names}  # type: ignore[index]


# --- tables and roles -------------------------------------------------------------------------------------------


def test_the_tables_have_the_columns_of_the_sqlite_store(place: str) -> None:
    ours = {name: sorted(column.name for column in one.columns) for name, one in expected().items() if one.columns}
    theirs = {name: sorted(columns) for name, columns in tables(place).items() if name not in ("servers", "version")}
    assert theirs == ours


def test_every_table_with_something_of_an_agent_has_a_wall(place: str) -> None:
    shared = {"arms", "bank", "bench_cases", "bench_leases", "bench_runs", "embedders", "version"}
    open_to_all = server().sql(
        "SELECT relname FROM pg_class WHERE relnamespace = 'mulligan'::regnamespace AND relkind = 'r'"
        " AND NOT relrowsecurity",
        place,
    )
    assert {name for (name,) in open_to_all} == shared


@pytest.mark.parametrize("table", ["uses", "vectors", "query_vectors", "keys"])
def test_what_belongs_to_lessons_is_seen_without_a_look_at_those_of_others(place: str, table: str) -> None:
    """An index answers the wall of a table without a column for the agent (design/113)."""
    import psycopg

    with psycopg.connect(server().address(place), autocommit=True) as db:
        db.execute("SET search_path = mulligan; SET enable_seqscan = off; SET mulligan.agent = '=a'")
        plan = "\n".join(line for (line,) in db.execute(f"EXPLAIN SELECT count(*) FROM {table}".encode()))
    assert "on lessons l" in plan, plan
    assert "Index Cond: ((agent >= " in plan, plan


@pytest.mark.parametrize(
    ("role", "why"),
    [
        ("postgres", "is a superuser"),
        ("mulligan_tests_bypassing", "bypasses row-level security"),
        ("mulligan_tests_owner", "owns the tables"),
        ("mulligan_tests_member", "owns the tables"),
        ("mulligan_tests_stranger", "is not allowed to serve this store"),
    ],
)
async def test_who_may_not_serve_is_told_how_to_make_a_role_that_may(place: str, role: str, why: str) -> None:
    for statement in (
        "CREATE ROLE mulligan_tests_bypassing LOGIN BYPASSRLS",
        "CREATE ROLE mulligan_tests_owner LOGIN",
        "CREATE ROLE mulligan_tests_member LOGIN IN ROLE mulligan_tests_owner",
        "CREATE ROLE mulligan_tests_stranger LOGIN",
    ):
        name = statement.split()[2]
        if not server().sql(f"SELECT 1 FROM pg_roles WHERE rolname = '{name}'"):
            server().sql(statement)
    server().sql("ALTER SCHEMA mulligan OWNER TO mulligan_tests_owner", place)
    async with open_store(server().address(place, role)) as store:
        for _ in range(2):
            with pytest.raises(
                StoreError, match=rf"role {role} {why}.* mulligan store setup postgresql://.* --role \w+"
            ):
                await store.list()


async def test_a_database_without_a_store_and_one_of_an_older_version(place: str) -> None:
    from mulligan.store.postgresql.schema import setup

    async with open_store(server().address("postgres")) as store:
        with pytest.raises(StoreError, match=r"has no Mulligan store.* store setup .* --role mulligan_tests"):
            await store.list()
    server().sql("UPDATE mulligan.version SET number = 3", place)
    server().sql("ALTER TABLE mulligan.version DROP COLUMN readable_from", place)
    server().sql("ALTER TABLE mulligan.lessons DROP COLUMN expires", place)
    async with open_store(server().address(place)) as store:
        with pytest.raises(StoreError, match=r"has version 3, .* To upgrade it: mulligan store setup"):
            await store.list()
    assert setup(server().owner_of(place)) == 2
    async with open_store(server().address(place)) as store:
        assert await store.list() == ()


async def test_the_tables_of_each_earlier_version_become_those_of_a_new_store(place: str) -> None:
    from mulligan.store.postgresql.schema import NEWEST, setup

    migrations = Path(mulligan.__file__).parent / "store/postgresql/migrations"
    scripts = sorted(migrations.glob("*.sql"), key=lambda file: int(file.name.partition("_")[0]))
    for version in range(1, NEWEST):
        older = f"{place}_{version}"
        server().sql(f"CREATE DATABASE {older}")
        made = "".join(script.read_text("utf-8") for script in scripts[:version])
        done = f"INSERT INTO version (number) VALUES ({version});"
        server().sql(f"CREATE SCHEMA mulligan; SET search_path = mulligan; {made} {done}", older)
        assert setup(server().owner_of(older), postgres_server.ROLE) == NEWEST - version
        assert described(older) == described(place)


def described(place: str) -> list[list[tuple[object, ...]]]:
    """The columns, indexes, policies and functions of a store."""
    queries = (
        "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
        " WHERE table_schema = 'mulligan'",
        "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'mulligan'",
        "SELECT tablename, policyname, qual, with_check FROM pg_policies WHERE schemaname = 'mulligan'",
        "SELECT proname, pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace s ON s.oid = p.pronamespace"
        " WHERE s.nspname = 'mulligan'",
    )
    return [server().sql(f"{query} ORDER BY 1, 2", place) for query in queries]


async def test_an_address_that_cannot_be_read_or_reached(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be parsed"):
        open_store("postgresql://h/db?nonsense=1")
    async with open_store(f"postgresql://me:secret@/db?host={tmp_path}") as store:
        with pytest.raises(StoreError, match="cannot be reached") as error:
            await store.list()
    assert "secret" not in str(error.value)


def test_a_role_that_no_wall_holds_for_is_not_set_up(place: str) -> None:
    from mulligan.store.postgresql.schema import setup

    with pytest.raises(InvalidInput, match="is a superuser"):
        setup(server().owner_of(place), "postgres")
    assert setup(server().owner_of(place), postgres_server.ROLE) == 0


def test_the_commands(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*words: str) -> str:
        done = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    said = run("store", "setup", server().owner_of(place), "--role", "mulligan_tests_ann", "--agent-id", "ann")
    assert "The tables were up to date" in said
    assert "mulligan_tests_ann may serve the agent 'ann'" in said
    monkeypatch.setenv("MULLIGAN_STORE", server().address(place, "mulligan_tests_ann"))
    run("memory", "add", "--agent-id", "ann", "--title", "Close files", "--content", "Close what you open.")
    assert "Close files" in run("memory", "search", "--agent-id", "ann", "close files")
    assert "mulligan_tests_ann, for the agent 'ann'" in run("store", "status")
    run("memory", "verify")
    (row,) = [row for row in check_machine().rows if row.name == "store"]
    assert (row.ok, "mulligan_tests_ann" in row.detail) == (True, True)
    monkeypatch.setenv("MULLIGAN_STORE", server().owner_of(place))
    (row,) = [row for row in check_machine().rows if row.name == "store"]
    assert (row.ok, "is a superuser" in row.remedy) == (False, True)


# --- walls ------------------------------------------------------------------------------------------------------


async def test_our_own_where_left_out_shows_nothing_of_another_agent(place: str, bound: str) -> None:
    everybody = server().address(place)
    async with open_store(everybody) as store:
        await filled(store, "a")
        one = seen(everybody, "=a")
        assert {name for name, rows in one.items() if not rows} == {
            "accounts",
            "found_kinds",
            "images",
            "keys",
            "shown",
        }
        await filled(store, "b")
        await store.memory.lessons.add("b", [entry("only b's")])
    assert set(seen(everybody, None).values()) == {0}
    assert seen(everybody, "=a") == one
    assert set(seen(everybody, "=nobody").values()) == {0}
    both = seen(everybody, "*")
    assert both["lessons"] == 5
    assert both["texts"] == both["episodes"] == 2
    # a role that is bound to b sees b's, whatever it asks for
    assert seen(bound, "=b")["lessons"] == 3
    for setting in (None, "", "*", "=a", "=", "b", "= b"):
        assert set(seen(bound, setting).values()) == {0}, setting


async def test_a_bound_server_serves_its_agent_alone(place: str, bound: str) -> None:
    async with open_store(server().address(place)) as store:
        await filled(store, "a")
    async with open_store(bound) as store:
        await filled(store, "b")
        assert [one.id for one in await store.list()] == ["e b"]
        assert await store.memory.lessons.list("a", ALL) == ()
        with pytest.raises(NotFound):
            await store.load("e a")
        with pytest.raises(NotFound):
            await store.acquire("e a", "me", 60)
        for write in (
            store.memory.lessons.add("a", [entry("new")]),
            store.create(Episode("new", Task("p"), agent="a")),
            store.memory.queue.enqueue("k", "a", {}),
        ):
            with pytest.raises(StoreError, match="is not allowed to write for this agent"):
                await write
        assert await store.memory.queue.claim("me", 60, ["k"]) is not None
        assert await store.memory.queue.claim("me", 60, ["k"]) is None  # a's is not there
        assert [one.agent_id for one in await store.memory.lessons.archive(None)] == ["b"]
        assert await store.memory.lessons.verify() == []


async def walled(address: str, one: str, other: str) -> None:
    """Nothing that the agent `one` stores is told to the agent `other`."""
    async with open_store(address) as store:
        lessons = store.memory.lessons
        await lessons.add(one, [entry("1", f"secret of {one}")])
        try:
            assert await lessons.list(other, ALL) == ()
            assert (await lessons.delta(other, "e")).rows == []
            assert {lesson.agent_id for lesson in await lessons.list(one, ALL)} == {one}
            with pytest.raises(NotFound):
                await lessons.get(other, ["1"])
            assert await lessons.purge(other, None) == 0
            assert len(await lessons.list(one, ALL)) == 1
        finally:
            await lessons.purge(one, None)


@pytest.mark.parametrize("agent", HOSTILE, ids=range(len(HOSTILE)))
async def test_a_hostile_agent_id_is_a_name_like_any_other(place: str, agent: str) -> None:
    await walled(server().address(place), agent, "b")
    await walled(server().address(place), "b", agent)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> str:
    return postgres_server.address(tmp_path_factory.mktemp("walls"))


@settings(max_examples=40)  # each opens a store
@given(
    pair=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
        min_size=2,
        max_size=2,
        unique=True,
    )
)
def test_no_two_agent_ids_share_anything(shared: str, pair: list[str]) -> None:
    asyncio.run(walled(shared, *pair))


@pytest.mark.parametrize("agent", ["a\0b", "\ud800"], ids=["NUL", "surrogate"])
async def test_a_name_that_postgresql_has_no_characters_for_is_refused(place: str, agent: str) -> None:
    async with open_store(server().address(place)) as store:
        with pytest.raises(StoreError, match="cannot store this"):
            await store.memory.lessons.add(agent, [entry("1")])
        assert await store.memory.lessons.agents() == ()


# --- many processes and crashes ---------------------------------------------------------------------------------


async def test_each_piece_of_work_is_claimed_once(place: str) -> None:
    stores = [open_store(server().address(place)) for _ in range(3)]
    ids = {await stores[0].memory.queue.enqueue("k", agent, {"n": n}) for n in range(20) for agent in "ab"}
    claimed: list[str] = []

    async def take(store: Store, name: str) -> None:
        while (found := await store.memory.queue.claim(name, 60, ["k"])) is not None:
            claimed.append(found[0].id)
            await store.memory.queue.finish(found[1], {})

    await asyncio.gather(*(take(store, f"{n}.{k}") for n, store in enumerate(stores) for k in range(4)))
    for store in stores:
        await store.close()
    assert sorted(claimed) == sorted(ids)


async def test_writes_that_meet_fold_duplicates_and_miss_no_change(place: str) -> None:
    stores = [open_store(server().address(place)) for _ in range(3)]
    known: dict[int, str] = {}

    async def follow(until: asyncio.Event) -> None:
        since, last = 0, False
        while not last:
            last = until.is_set()
            delta = await stores[2].memory.lessons.delta(None, "e", since)
            known.update({row.n: row.id for row in delta.rows})
            since = delta.tip

    done = asyncio.Event()
    following = asyncio.create_task(follow(done))
    adds = [
        store.memory.lessons.add(agent, [entry(f"{agent} {n} {k}", f"says {n}")])
        for n in range(15)
        for agent in "ab"
        for k, store in enumerate(stores[:2])
    ]
    folded = [one.folded for added in await asyncio.gather(*adds) for one in added]
    done.set()
    await asyncio.wait_for(following, 60)
    there = await stores[0].memory.lessons.list(None, ALL)
    assert sorted(folded) == [False] * 30 + [True] * 30
    assert sorted(known.values()) == sorted(lesson.id for lesson in there)
    assert {lesson.support for lesson in there} == {2}
    for store in stores:
        await store.close()


_WRITER = """
import asyncio, sys
from mulligan.core.errors import StoreError
from mulligan.core.records import Episode, Task
from mulligan.store import open_store

async def main():
    async with open_store(sys.argv[1]) as store:
        for n in range(100_000):
            try:
                await store.create(Episode(f"e{n}", Task("p"), agent="a"))
                print(n, flush=True)
            except StoreError as error:
                print("unsure" if "may or may not be stored" in str(error) else f"failed {error}", flush=True)

asyncio.run(main())
"""


@pytest.fixture
def mortal() -> Iterator[PostgresServer]:
    with postgres_server.mortal() as made:
        yield made


def test_nothing_acknowledged_is_lost_when_postgresql_is_killed(mortal: PostgresServer) -> None:
    address = mortal.address("postgres")
    with subprocess.Popen([sys.executable, "-c", _WRITER, address], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said: list[str] = []
        for _ in range(2):
            said += [writer.stdout.readline().strip() for _ in range(100)]
            mortal.kill()
            mortal.start()
        said += [writer.stdout.readline().strip() for _ in range(300)]
        writer.kill()
        said += writer.stdout.read().split("\n")[:-1]
    assert not [line for line in said if line.startswith("failed")]
    acknowledged = {f"e{line}" for line in said if line.isdigit()}
    assert len(acknowledged) >= 400
    assert acknowledged <= {id for (id,) in mortal.sql("SELECT id FROM mulligan.episodes")}
