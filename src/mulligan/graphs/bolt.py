"""Servers that speak Bolt, such as Neo4j: the official driver, in a process of ours that can be killed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

from mulligan.core.errors import InvalidInput
from mulligan.core.extras import MissingExtra
from mulligan.graphs._asking import MEMORY, Asking
from mulligan.graphs._process import Engine

SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
PORT = 7687
NOTES = (
    "A label, relationship type or property that the graph does not have is no error: it gives no rows.",
    "labels(n) are a node's labels and type(r) is a relationship's type.",
    "A path of several steps is -[:TYPE*1..3]->: always give it an upper bound.",
    "The shortest path is MATCH p = shortestPath((a)-[:TYPE*..10]->(b)).",
    "Dates are date('2020-01-31'), times datetime('2020-01-31T12:00:00').",
    "A regular expression has to match the whole text: n.name =~ '.*kinase.*'.",
)


class BoltGraph(Asking):
    """A database of a server. address: bolt://host:port, with the schemes of the driver: +s is TLS, +ssc TLS with a
    certificate that nobody signed; neo4j:// is for clusters.

    The server is asked for read mode and a time-out; as not every server keeps to these, what could write is refused
    before it is sent, and a query that runs on is cut off here. A server that minds neither may go on with it all the
    same: give the user that Mulligan connects as no more than the right to read.
    memory: MB that one answer may take on this side. Raises `InvalidInput` for an address that is none.
    """

    language: str = "Cypher"
    notes: Sequence[str] = NOTES

    def __init__(
        self,
        address: str,
        *,
        user: str | None = None,
        password: str | None = None,
        database: str | None = None,
        memory: int = MEMORY,
    ) -> None:
        if find_spec("neo4j") is None:
            raise MissingExtra("Graphs on a server need the Neo4j driver", "kg")
        place, its_user, its_password, its_database = _taken_apart(address)
        database = database or its_database
        name = place + (f"/{database}" if database else "")
        setup = {
            "engine": "bolt",
            "name": name,
            "address": place,
            "user": its_user if user is None else user,
            "password": its_password if password is None else password,
            "database": database,
        }
        super().__init__(name, Engine(name, setup, memory))


def _taken_apart(address: str) -> tuple[str, str | None, str | None, str | None]:
    """Scheme, host and port; and the user, password and database that were given with them, if any."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or PORT
    except ValueError as error:
        raise InvalidInput(f"The address of a graph cannot be read ({error}): it is bolt://host:7687.") from None
    if parts.scheme not in SCHEMES or not host:
        raise InvalidInput(f"The address of a graph begins with {'://, '.join(SCHEMES)}://, and a host follows.")
    shown = f"[{host}]" if ":" in host else host
    routing = f"?{parts.query}" if parts.query else ""
    user = unquote(parts.username) if parts.username is not None else None
    password = unquote(parts.password) if parts.password is not None else None
    return f"{parts.scheme}://{shown}:{port}{routing}", user, password, unquote(parts.path.strip("/")) or None
