"""A server that speaks Bolt, inside the worker: asked through the official driver, in read mode. Raises `Trouble`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from mulligan.core.records import Json
from mulligan.graphs._bolt_values import json_of
from mulligan.graphs._database import Trouble

CONNECTING = 10.0
FETCHED = 1_000
"""Rows that the server sends at a time, at most."""
_PLACES = (
    (re.compile(r"line (\d+), column (\d+) \(offset"), 0),  # Neo4j counts columns from 1
    (re.compile(r"at line (\d+), column (\d+)"), 1),  # ArcadeDB from 0
    (re.compile(r"at line (\d+):(\d+)"), 1),
)
_KINDS = (
    ("Neo.ClientError.Security", "gone"),
    ("Neo.ClientError.Database", "gone"),
    ("Neo.ClientError.Transaction.TransactionTimedOut", "slow"),
    ("Neo.ClientError.Transaction.LockClientStopped", "slow"),
    ("Neo.TransientError.General.MemoryPoolOutOfMemoryError", "large"),
    ("Neo.TransientError.General.OutOfMemoryError", "large"),
    ("Neo.ClientError.Statement.AccessMode", "refused"),
    ("Neo.ClientError.Security.Forbidden", "refused"),
)
_UNKNOWN = re.compile(r"[Uu]nknown (function|procedure)|not defined|UndefinedVariable|Expected parameter")
_LONGEST = 2_000


class BoltDatabase:
    files = True
    reserved = 0

    def __init__(self, setup: Mapping[str, Any]) -> None:
        import logging

        import neo4j

        logging.getLogger("neo4j").setLevel(logging.CRITICAL)
        self._neo4j: Any = neo4j
        self._name = setup["name"]
        self._database = setup["database"]
        auth = (setup["user"], setup["password"] or "") if setup["user"] is not None else None
        self._session: Any = None
        try:
            self._driver: Any = self._neo4j.GraphDatabase.driver(
                setup["address"],
                auth=auth,
                connection_timeout=CONNECTING,
                connection_acquisition_timeout=CONNECTING,
                max_connection_pool_size=2,
                max_transaction_retry_time=0,
                telemetry_disabled=True,
            )
            self._driver.verify_connectivity()
        except Exception as error:
            raise self._unreachable(error) from None

    def rows(
        self, query: str, parameters: Mapping[str, Json], seconds: float, rows: int
    ) -> tuple[Sequence[str], Iterator[Sequence[Json]]]:
        result = self._run(query, parameters, seconds, min(rows + 1, FETCHED))
        return self._called(result.keys), self._values(result)

    def schema(self, seconds: float) -> Json:
        from mulligan.graphs._bolt_schema import described

        def listed(query: str) -> list[dict[str, Any]]:
            result = self._run(query, {}, seconds, FETCHED)
            found = self._called(lambda: [dict(record.items()) for record in result])
            self.settle()
            return found

        return described(listed)

    def settle(self) -> None:
        """What is left of the answer is not read: the server is told, or the line to it is dropped by the driver."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):
                session.close()

    def _run(self, query: str, parameters: Mapping[str, Json], seconds: float, fetched: int) -> Any:
        self.settle()
        self._session = self._driver.session(
            database=self._database, default_access_mode=self._neo4j.READ_ACCESS, fetch_size=fetched
        )
        asked = self._neo4j.Query(query, timeout=seconds)
        return self._called(lambda: self._session.run(asked, dict(parameters)))

    def _called(self, do: Callable[[], Any]) -> Any:
        try:
            return do()
        except MemoryError:
            raise
        except Exception as error:
            raise self._trouble(error) from None

    def _values(self, result: Any) -> Iterator[Sequence[Json]]:
        end = object()
        records = iter(result)
        while (record := self._called(lambda: next(records, end))) is not end:
            yield [json_of(value) for value in record.values()]

    def _trouble(self, error: Exception) -> Trouble:
        code, said = getattr(error, "code", None), getattr(error, "message", None) or str(error)
        if not isinstance(error, self._neo4j.exceptions.Neo4jError) or not code:
            if isinstance(error, self._neo4j.exceptions.DriverError):
                return self._broken_off(error)
            return Trouble(f"{type(error).__name__}: {said}", "failed")
        kind = next((kind for start, kind in reversed(_KINDS) if code.startswith(start)), None)
        if kind == "gone":
            return self._unreachable(error)
        if kind in ("slow", "large"):
            return Trouble("", kind)
        if kind is None:
            kind = "unknown" if _UNKNOWN.search(said) else "syntax" if code.endswith(".SyntaxError") else "failed"
        line, column = _place(said)
        return Trouble(said if len(said) <= _LONGEST else said[:_LONGEST] + " ...", kind, line, column)

    def _broken_off(self, error: Exception) -> Trouble:
        """A server that answers again at once has broken off over this query, and not for good."""
        try:
            self._driver.verify_connectivity()
        except Exception:
            return self._unreachable(error)
        return Trouble(
            f"{self._name} broke off the connection over this query: it may take too much memory there.", "failed"
        )

    def _unreachable(self, error: Exception) -> Trouble:
        """In one sentence, without what was given as user and password."""
        code, said = getattr(error, "code", None) or "", getattr(error, "message", None) or str(error)
        first = said.strip().splitlines()[0].rstrip(":") if said.strip() else type(error).__name__
        if code.startswith("Neo.ClientError.Security"):
            return Trouble(f"{self._name} did not accept the user and password: {first}", "gone")
        if code.startswith("Neo.ClientError.Database"):
            return Trouble(f"{self._name} has no such database: {first}", "gone")
        return Trouble(f"{self._name} cannot be reached: {first}", "gone")


def _place(said: str) -> tuple[int, int] | tuple[None, None]:
    for pattern, more in _PLACES:
        if found := pattern.search(said):
            return int(found[1]), int(found[2]) + more
    return None, None
