"""Errors reach their readers whole: across processes, and with the place in the code of whoever can mend it."""

import copy
import pickle
import re
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row

import mulligan
from mulligan.app.quotas import QuotaExceeded
from mulligan.core import errors
from mulligan.core.errors import (
    JournalDiverged,
    LeaseLost,
    MulliganError,
    OutOfOrder,
    QueryError,
    RecordLost,
    StepInFlight,
    UnknownName,
    described,
)
from mulligan.core.records import Usage
from mulligan.models.failures import Unusable


class OfAUser(MulliganError):
    def __init__(self, *, code: int) -> None:
        super().__init__(f"failed with {code}")
        self.code = code


@each_row(
    "error",
    [
        OutOfOrder("an answer", "a question"),
        UnknownName("model", "gpd", ["gpt"], "See the docs."),
        QueryError("no such label", "unknown", 1, 7),
        RecordLost("the file is gone"),
        LeaseLost("somebody else drives it", 17),
        JournalDiverged(["the prompt", "a file"], "step 3"),
        StepInFlight("trial-1"),
        QuotaExceeded("no tokens are left"),
        Unusable("no answer", Usage()),
        OfAUser(code=3),
    ],
)
def test_an_error_crosses_processes(error: MulliganError) -> None:
    """A pool of processes breaks if an error cannot be unpickled."""
    error.facts = ("fact-1",)
    error.add_note("while billing")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    assert str(copy.deepcopy(error)) == str(error)


def test_the_tree_of_errors_has_them_all() -> None:
    parents, path = dict[str, str](), ["MulliganError"]
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"([│ ]*[├└]── )(\w+)", line):
            depth = len(found[1]) // 4
            path[depth:] = [found[2]]
            parents[found[2]] = path[depth - 1]
    classes = [it for it in vars(errors).values() if isinstance(it, type) and issubclass(it, MulliganError)]
    assert parents == {it.__name__: it.__bases__[0].__name__ for it in classes if it is not MulliganError}


LIBRARY = f"{sysconfig.get_path('stdlib')}/json/decoder.py"
OURS = Path(mulligan.__file__).parent
PACKAGE = "/home/ann/.venv/lib/python3.11/site-packages/click/types.py"
SYSTEM = "/usr/lib/python3/dist-packages/click/types.py"
USERS = "/home/ann/bills.py"

CODE = """
def call(*inner):
    if not inner:
        raise KeyError("x")
    inner[0](*inner[1:])
"""


@each_row(
    ("files", "place"),
    [
        ([USERS], f"({USERS}, line 4)"),
        ([USERS, PACKAGE], f"({USERS}, line 5)"),
        ([USERS, SYSTEM, LIBRARY], f"({USERS}, line 5)"),
        ([USERS, f"{OURS}/core/loop.py", PACKAGE], f"({USERS}, line 5)"),
        ([PACKAGE, LIBRARY], f"({PACKAGE}, line 5)"),
        ([f"{OURS}/core/loop.py", LIBRARY], ""),
        ([f"{OURS}_wares/judge.py", f"{OURS}/core/loop.py"], f"({OURS}_wares/judge.py, line 5)"),
    ],
)
def test_an_error_is_placed_in_the_code_of_whoever_can_mend_it(files: list[str], place: str) -> None:
    """The code runs as if it were in these files, each of which calls the next."""
    calls = list[Any]()
    for file in files:
        space = dict[str, Any]()
        exec(compile(CODE, file, "exec"), space)
        calls.append(space["call"])
    with pytest.raises(KeyError) as raised:
        calls[0](*calls[1:])
    error = raised.value
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next  # without this test, which would be the user's code
    assert described(error) == f"KeyError: 'x' {place}".strip()
