"""What the reader knows of `stream:service`: the operations, and how quirks are worded, but no value of a quirk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from mulligan.bench.streams.reader.facts import Form, Notes

OPENING = "A job for the service:"
HEADER = Form("{operation}: too many calls without the header '{header}'", ("operation",), "{operation}: header")
PREFIX = Form(
    "{operation}: the field '{field}' must begin with '{prefix}'", ("operation", "field"), "{operation}: {field}"
)
PAGE = Form("{operation}: the first page has the number '{page}'", ("operation",), "{operation}: pages")
TWICE = Form(
    "{operation}: the field '{field}' must be sent a second time as '{again}'",
    ("operation", "field"),
    "{operation}: {field} twice",
)
UNIT = Form(
    "{operation}: the field '{field}' must end with the unit '{unit}'", ("operation", "field"), "{operation}: {field}"
)
FORMS = (HEADER, PREFIX, PAGE, TWICE, UNIT)

_SUCCESS = re.compile(r"call\[(\w+) (.+)\]\n.*\b200 \1: ")
_FIELD = re.compile(r"(\w+)=(\S+)")
_DONE = re.compile(r"^200 \w+: (\S+)$")


@dataclass(frozen=True)
class Operation:
    """An operation of the service.

    Attributes:
        id: the field for an id.
        more: the other field, or "".
        quirk: what the operation's second field needs, or its id if it has only that.
        job: the words of a task. `{id}` and `{more}` stand for the numbers in these fields.
    """

    name: str
    id: str
    more: str
    quirk: Literal["page", "twice", "unit"]
    job: str


OPERATIONS = (
    Operation("balance", "client", "", "twice", "read the balance of the client {id} and answer with it"),
    Operation("entries", "ledger", "page", "page", "count the entries on the first page of the ledger {id}"),
    Operation("order", "article", "pieces", "unit", "order {more} pieces of the article {id}"),
    Operation("move", "parcel", "depot", "twice", "move the parcel {id} to the depot {more}"),
    Operation("visits", "patient", "page", "page", "count the visits on the first page of the patient {id}"),
    Operation("brew", "kettle", "grams", "unit", "brew {more} grams of tea in the kettle {id}"),
    Operation("cancel", "booking", "", "twice", "cancel the booking {id}"),
    Operation("refill", "tank", "litres", "unit", "refill the tank {id} with {more} litres"),
)


def job_of(task: str) -> tuple[Operation, str, str]:
    """The operation that a task asks for, and the values of its fields."""
    for operation in OPERATIONS:
        pattern = operation.job.replace("{id}", r"(?P<id>\d+)").replace("{more}", r"(?P<more>\d+)")
        if match := re.search(pattern, task):
            return operation, match["id"], match.groupdict().get("more", "")
    raise AssertionError(f"this is not a task from the stream: {task!r}")


def call_of(operation: Operation, fields: Mapping[str, str]) -> str:
    return f"call[{' '.join((operation.name, *(f'{name}={value}' for name, value in fields.items())))}]"


def implied_facts(account: str) -> Iterator[str]:
    """The facts that an account implies by a successful call."""
    operations = {operation.name: operation for operation in OPERATIONS}
    for match in _SUCCESS.finditer(account):
        name, fields = match[1], dict(_FIELD.findall(match[2]))
        if (operation := operations.get(name)) is None or not {"header", operation.id} <= fields.keys():
            continue
        third, value = operation.more or operation.id, fields.get(operation.more, "")
        yield HEADER.state(operation=name, header=fields["header"])
        yield PREFIX.state(operation=name, field=operation.id, prefix=fields[operation.id].rstrip("0123456789"))
        if operation.quirk == "page":
            yield PAGE.state(operation=name, page=value)
        elif operation.quirk == "unit":
            yield UNIT.state(operation=name, field=third, unit=value.lstrip("0123456789"))
        for again in fields.keys() - {operation.id, operation.more, "header"}:
            yield TWICE.state(operation=name, field=third, again=again)


def act(notes: Notes) -> str:
    """Call with every known quirk, or answer with the result of a successful call."""
    if notes.steps and (done := _DONE.match(notes.steps[-1][1])):
        return f"answer[{done[1]}]"
    operation, id, more = job_of(notes.task)

    def known(form: Form, *key: str) -> str | None:
        return next(iter(notes.values(form, operation.name, *key, marked=True)), None)

    fields = {operation.id: f"{known(PREFIX, operation.id) or ''}{id}"}
    if operation.quirk == "page":
        fields[operation.more] = known(PAGE) or "1"
    elif operation.quirk == "unit":
        fields[operation.more] = f"{more}{known(UNIT, operation.more) or ''}"
    elif operation.more:
        fields[operation.more] = more
    if operation.quirk == "twice" and (again := known(TWICE, operation.more or operation.id)):
        fields[again] = fields[operation.more or operation.id]
    if header := known(HEADER):
        fields["header"] = header
    return call_of(operation, fields)
