"""The worker process that queries a database: it reads requests and writes answers, each a line of JSON.

`_guarded` starts it. Before the first query it limits itself: it cannot write files, its memory is bounded, and with an
embedded engine it cannot open files either. A kernel alarm ends a query that runs past its time limit, even when the
parent process is gone.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mulligan.graphs._database import EXHAUSTED, GRACE, Database, Trouble, address_space

if TYPE_CHECKING:
    from mulligan.plugins import Json


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an engine prints must not mix with the answers
    fcntl.fcntl(2, fcntl.F_SETFL, fcntl.fcntl(2, fcntl.F_GETFL) | os.O_NONBLOCK)  # nobody may be reading it
    requests = sys.stdin.buffer
    setup = json.loads(requests.readline() or "{}")
    if not setup:
        return
    try:
        database = _opened(setup)
    except Trouble as trouble:
        _send(answers, _error(trouble))
        return
    _limit(setup["memory"] - database.reserved, files=database.files)
    _send(answers, {"ready": True})
    for line in requests:
        try:
            _send(answers, _answered(database, json.loads(line), setup["answer"]))
            database.settle()
            _send(answers, {"settled": True})
        except MemoryError:
            os._exit(EXHAUSTED)
    os._exit(0)  # the parent has closed the pipe: do not wait for the engine


def _opened(setup: Mapping[str, Any]) -> Database:
    if setup["engine"] == "ladybug":
        from mulligan.graphs._ladybug_database import LadybugDatabase

        return LadybugDatabase(setup)
    from mulligan.graphs._bolt_database import BoltDatabase

    return BoltDatabase(setup)


def _limit(memory: int, *, files: bool) -> None:
    nowhere = tempfile.mkdtemp()
    os.chdir(nowhere)
    os.rmdir(nowhere)  # a relative path now leads nowhere
    taken = address_space()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if not files:
        lowest = os.dup(1)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, lowest))
    if taken is not None:  # on other systems memory is not bounded
        resource.setrlimit(resource.RLIMIT_AS, (taken + memory, taken + memory))


def _answered(database: Database, request: Mapping[str, Any], most: int) -> Json:
    seconds = request["seconds"]
    signal.setitimer(signal.ITIMER_REAL, seconds + 2 * GRACE)
    try:
        if request["do"] == "schema":
            return {"schema": database.schema(seconds)}
        columns, values = database.rows(request["query"], request["parameters"], seconds, request["rows"])
        return _collected(_distinct(columns), values, request["rows"], most)
    except Trouble as trouble:
        return _error(trouble)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _collected(columns: Sequence[str], values: Iterable[Sequence[Json]], rows: int, most: int) -> Json:
    """Collect at most `rows` rows and `most` bytes of JSON. Raises `Trouble` if the first row alone is larger."""
    kept: list[Json] = []
    size = 0
    for row in values:
        size += len(_line(row))
        if len(kept) == rows or (kept and size > most):
            return {"columns": columns, "rows": kept, "truncated": True}
        if size > most:
            raise Trouble(f"One row of the result is larger than {most:,} bytes. Return less data.", "large")
        kept.append(row)
    return {"columns": columns, "rows": kept, "truncated": False}


def _distinct(columns: Sequence[str]) -> list[str]:
    """Number repeated column names, because rows are stored by column name."""
    names: list[str] = []
    for column in columns:
        name, n = column, 1
        while name in names:
            n += 1
            name = f"{column} ({n})"
        names.append(name)
    return names


def _error(trouble: Trouble) -> Json:
    return {"error": {"kind": trouble.kind, "message": str(trouble), "line": trouble.line, "column": trouble.column}}


def _send(answers: Any, message: Json) -> None:
    answers.write(_line(message))
    answers.flush()


def _line(message: Json) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


if __name__ == "__main__":
    main()
