"""`BoltGraph`: a database on a server that speaks Bolt, such as Neo4j, through the driver in a worker process."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from urllib.parse import unquote, urlsplit

from mulligan.graphs._guarded import MEMORY, GuardedGraph, Worker
from mulligan.plugins import InvalidInput, require

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


class BoltGraph(GuardedGraph):
    """A database on a server.

    It asks the server for read mode and a time limit. Because not every server keeps to these, it refuses queries that
    could write before they are sent, and cuts off a query that runs too long. A server that ignores both may still
    continue the query, so give the user that Mulligan connects as the right to read and no other.

    Args:
        address: bolt://host:port, with the driver's schemes: +s is TLS, +ssc is TLS with a self-signed certificate;
            neo4j:// is for clusters.
        memory: The megabytes that one answer may take in the worker process.

    Raises:
        InvalidInput: The address is not valid.
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
        procedures: Collection[str] = (),
    ) -> None:
        require("Graphs on a server need the Neo4j driver", "neo4j", "kg")
        server, own_user, own_password, own_database = _split_address(address)
        database = database or own_database
        name = server + (f"/{database}" if database else "")
        setup = {
            "engine": "bolt",
            "name": name,
            "address": server,
            "user": own_user if user is None else user,
            "password": own_password if password is None else password,
            "database": database,
        }
        super().__init__(name, Worker(name, setup, memory), procedures=procedures)


def _split_address(address: str) -> tuple[str, str | None, str | None, str | None]:
    """Return scheme, host and port as one string; then the user, the password and the database, or None each."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or PORT
    except ValueError as error:
        raise InvalidInput(f"The graph address is not valid ({error}). Write it as bolt://host:7687.") from None
    if parts.scheme not in SCHEMES or not host:
        raise InvalidInput(f"A graph address must start with one of {'://, '.join(SCHEMES)}://, followed by a host.")
    shown = f"[{host}]" if ":" in host else host
    routing = f"?{parts.query}" if parts.query else ""
    user = unquote(parts.username) if parts.username is not None else None
    password = unquote(parts.password) if parts.password is not None else None
    return f"{parts.scheme}://{shown}:{port}{routing}", user, password, unquote(parts.path.strip("/")) or None
