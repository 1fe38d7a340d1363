"""The process that asks a database: reads requests as lines of JSON, writes answers as lines of JSON.

Started by `_process`, and bounded before it reads the first query: it can write no file, take only so much memory, with
an embedded engine open no file either, and is ended by the kernel's alarm when a query holds it past its time-out, even
if nobody is there any more to kill it.
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
from typing import Any

from mulligan.core.records import Json
from mulligan.graphs._database import EXHAUSTED, GRACE, Database, Trouble, address_space


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an engine prints is no answer
    fcntl.fcntl(2, fcntl.F_SETFL, fcntl.fcntl(2, fcntl.F_GETFL) | os.O_NONBLOCK)  # and nobody may be reading it
    requests = sys.stdin.buffer
    setup = json.loads(requests.readline() or "{}")
    if not setup:
        return
    try:
        database = _opened(setup)
    except Trouble as trouble:
        _say(answers, _error(trouble))
        return
    _bound(setup["memory"] - database.reserved, files=database.files)
    _say(answers, {"ready": True})
    for line in requests:
        try:
            _say(answers, _answered(database, json.loads(line), setup["answer"]))
            database.settle()
            _say(answers, {"settled": True})
        except MemoryError:
            os._exit(EXHAUSTED)
    os._exit(0)  # nobody asks any more: no engine is waited for


def _opened(setup: Mapping[str, Any]) -> Database:
    if setup["engine"] == "ladybug":
        from mulligan.graphs._ladybug_database import LadybugDatabase

        return LadybugDatabase(setup)
    from mulligan.graphs._bolt_database import BoltDatabase

    return BoltDatabase(setup)


def _bound(memory: int, *, files: bool) -> None:
    nowhere = tempfile.mkdtemp()
    os.chdir(nowhere)
    os.rmdir(nowhere)  # a relative path leads nowhere now
    taken = address_space()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if not files:
        lowest = os.dup(1)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, lowest))
    if taken is not None:  # elsewhere memory is not bounded
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
    """At most so many rows, and so many bytes of them, of which the first row may take more than its share."""
    kept: list[Json] = []
    size = 0
    for row in values:
        size += len(_line(row))
        if len(kept) == rows or (kept and size > most):
            return {"columns": columns, "rows": kept, "truncated": True}
        if size > most:
            raise Trouble(f"One row of the answer alone is larger than {most:,} bytes: ask for less of it.", "large")
        kept.append(row)
    return {"columns": columns, "rows": kept, "truncated": False}


def _distinct(columns: Sequence[str]) -> list[str]:
    """A second column of a name is told from the first, as rows are kept by column."""
    names: list[str] = []
    for column in columns:
        name, n = column, 1
        while name in names:
            n += 1
            name = f"{column} ({n})"
        names.append(name)
    return names


def _error(trouble: Trouble) -> Json:
    return {
        "error": {"kind": trouble.kind, "message": str(trouble), "line": trouble.line, "column": trouble.column},
    }


def _say(answers: Any, message: Json) -> None:
    answers.write(_line(message))
    answers.flush()


def _line(message: Json) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


if __name__ == "__main__":
    main()
