"""What the reader knows of `stream:database`: how questions and facts are worded, and how to explore."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mulligan.bench.streams.reader.facts import Form, Notes

OPENING = "A question to the database:"
TABLE = Form("table '{table}' holds the '{things}'", ("things",), "Tables of the database")
COLUMN = Form("column '{column}' of '{table}' is the '{attribute}'", ("table", "attribute"), "Columns of '{table}'")
CODE = Form("code '{code}' in '{column}' means '{word}'", ("column", "word"), "Codes in '{column}'")
FORMS = (TABLE, COLUMN, CODE)

_UNKNOWN = re.compile(r"no such (?:table|column): (?:\w+\.)?(\w+)")
_QUERY = re.compile(
    r"query\[SELECT \w+\((?:\*|(?P<measure>\w+))\) FROM (?P<table>\w+) WHERE (?P<where>.+)\]\n(?!.*Error: )"
)
_EQUAL = re.compile(r"(\w+) = '([^']+)'")
_COUNT = re.compile(r"How many (?P<things>\w+) have (?P<conditions>[^?]+)\?")
_OF_ALL = re.compile(
    r"What is the (?P<kind>sum of the|largest) (?P<measure>\w+) of all (?P<things>\w+) with (?P<conditions>[^?]+)\?"
)


@dataclass(frozen=True)
class Inquiry:
    """A question. conditions: an attribute and a value each. measure: "" to count rows."""

    things: str
    conditions: tuple[tuple[str, str], ...]
    measure: str = ""
    largest: bool = False

    def text(self) -> str:
        conditions = " and ".join(f"{attribute} {word}" for attribute, word in self.conditions)
        if not self.measure:
            return f"How many {self.things} have {conditions}?"
        kind = "largest" if self.largest else "sum of the"
        return f"What is the {kind} {self.measure} of all {self.things} with {conditions}?"

    @classmethod
    def read(cls, text: str) -> Inquiry:
        match = _OF_ALL.search(text) or _COUNT.search(text)
        assert match is not None, f"this is not a question of the stream: {text!r}"
        parts = match.groupdict()
        pairs = [condition.split(" ") for condition in parts["conditions"].split(" and ")]
        largest = parts.get("kind") == "largest"
        return cls(parts["things"], tuple((a, w) for a, w in pairs), parts.get("measure") or "", largest)

    def sql(self, table: str, columns: dict[str, str], codes: dict[str, str]) -> str:
        """columns: by attribute or measure. codes: by attribute."""
        kind = "MAX" if self.largest else "SUM"
        what = f"{kind}({columns[self.measure]})" if self.measure else "COUNT(*)"
        where = " AND ".join(f"{columns[attribute]} = '{codes[attribute]}'" for attribute, _ in self.conditions)
        return f"SELECT {what} FROM {table} WHERE {where}"


def implied_facts(account: str) -> Iterator[str]:
    """The facts that an account implies by a query that answered its question."""
    question = account.rpartition(OPENING)[2].partition("\n")[0]
    query = _QUERY.search(account) if question else None
    if query is None:
        return
    inquiry, table = Inquiry.read(question), query["table"]
    yield TABLE.state(table=table, things=inquiry.things)
    if inquiry.measure and query["measure"]:
        yield COLUMN.state(column=query["measure"], table=table, attribute=inquiry.measure)
    for (attribute, word), (column, code) in zip(inquiry.conditions, _EQUAL.findall(query["where"]), strict=False):
        yield COLUMN.state(column=column, table=table, attribute=attribute)
        yield CODE.state(code=code, column=f"{table}.{column}", word=word)


def act(notes: Notes) -> str:
    """The next action: look up an unknown name, query the answer, or answer.

    The reader does not use a name again that the database refused or that its dictionary lacks.
    """
    inquiry = Inquiry.read(notes.task)
    actions = [action for action, _ in notes.steps]
    if notes.steps and actions[-1].startswith("query[SELECT ") and " FROM dictionary " not in actions[-1]:
        lines = notes.steps[-1][1].splitlines()
        if not lines[0].startswith("Error"):
            return f"answer[{lines[1]}]"
    wrong = set[str]()
    for action, observation in notes.steps:
        wrong.update(_UNKNOWN.findall(observation))
        wrong.update(re.findall(r"about = '(\w+)", action) if "(0 rows)" in observation else ())
    query = _next_query(notes, inquiry, wrong)
    return "answer[0]" if query in actions else query


def _next_query(notes: Notes, inquiry: Inquiry, wrong: set[str]) -> str:
    def known(form: Form, *key: str) -> str | None:
        return next((value for value in notes.values(form, *key) if value not in wrong), None)

    table = known(TABLE, inquiry.things)
    if table is None:
        return "query[SELECT note FROM dictionary WHERE kind = 'table']"
    columns, codes = dict[str, str](), dict[str, str]()
    for attribute in filter(None, (*(attribute for attribute, _ in inquiry.conditions), inquiry.measure)):
        column = known(COLUMN, table, attribute)
        if column is None:
            return f"query[SELECT note FROM dictionary WHERE kind = 'column' AND about = '{table}']"
        columns[attribute] = column
    for attribute, word in inquiry.conditions:
        about = f"{table}.{columns[attribute]}"
        code = known(CODE, about, word)
        if code is None:
            return f"query[SELECT note FROM dictionary WHERE kind = 'code' AND about = '{about}']"
        codes[attribute] = code
    return f"query[{inquiry.sql(table, columns, codes)}]"
