"""A service with quirks: it refuses a call for one reason at a time, and says what it expects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mulligan.bench.streams._drawing import MAX_POINTS, generator, odd_names, points
from mulligan.bench.streams.reader.service import HEADER, OPERATIONS, PAGE, PREFIX, TWICE, UNIT, Operation
from mulligan.plugins import Outcome, Step, parse_action

PAGES = ("0", "7", "10", "50", "100", "1000")
"""Possible numbers of the first page, without 1, because a caller guesses that first."""


@dataclass(frozen=True)
class Quirks:
    """The quirks of one operation. third: the number of the first page, the second name of a field, or a unit."""

    header: str
    prefix: str
    third: str


def quirks(seed: int, changed: bool, all_change: bool = False) -> Mapping[str, Quirks]:
    """The quirks by operation. The change replaces half of them: two of one operation, one of the next.

    all_change: whether it replaces all of them.
    """
    by_operation = dict[str, Quirks]()
    for number, operation in enumerate(OPERATIONS):
        chance = generator("service", seed, operation.name)
        headers, prefixes, words = (odd_names(chance, form) for form in ("???-##", "?#-", "???"))
        fields = (f"{_third(operation)}_{word}" for word in words)
        third = {"twice": fields, "page": iter(chance.sample(PAGES, 2)), "unit": words}[operation.quirk]
        before = Quirks(next(headers), next(prefixes).upper(), next(third))
        after = Quirks(next(headers), next(prefixes).upper(), next(third))
        if not all_change and number % 2:
            after = Quirks(after.header, before.prefix, after.third)
        elif not all_change:
            after = Quirks(before.header, after.prefix, before.third)
        by_operation[operation.name] = after if changed else before
    return by_operation


def job(seed: int, number: int, kinds: int) -> tuple[Operation, str, str]:
    """The operation of a task and its values. kinds: how many operations rotate."""
    operation, chance = OPERATIONS[number % kinds], generator("job", seed, number)
    return operation, str(chance.randint(11, 99)), str(chance.randint(2, 90))


class Service:
    """The environment of one job.

    Args:
        seed: of the stream.
        number: of the task, from 0.
        changed: whether the task comes after the change.
        kinds: how many operations rotate.
        all_change: whether all quirks change. By default, half of them do.
    """

    replayable = True

    def __init__(
        self,
        *,
        seed: int,
        number: int,
        changed: bool = False,
        kinds: int = len(OPERATIONS),
        all_change: bool = False,
    ) -> None:
        self._operation, self._id, self._more = job(seed, number, kinds)
        self._quirks = quirks(seed, changed, all_change)
        self._result = str(generator("result", seed, number).randint(100, 999))
        self._calls, self._reward = 0, None

    async def reset(self) -> str:
        self._calls, self._reward = 0, None
        return "The service is up."

    async def step(self, action: str) -> Step:
        observation = self._answer(action)
        return Step(
            action=action, observation=observation, outcome=Outcome(self._reward or 0.0, self._reward is not None)
        )

    async def close(self) -> None:
        pass

    def answer(self) -> str:
        """The result of the right call: a receipt, or the value that the task asks for."""
        return self._result

    def _answer(self, line: str) -> str:
        """The observation after an action."""
        action = parse_action(line)
        if self._reward is not None:
            return "The job is over."
        if action and action.name == "call":
            self._calls += 1
            return self._call(action.argument)
        if action and action.name == "answer":
            right = action.argument.strip("'\" ") == self._result
            self._reward = points(self._calls) / MAX_POINTS if right else 0.0
            calls = f"{self._calls} {'call' if self._calls == 1 else 'calls'}"
            return f"Right, with {calls}." if right else f"Wrong: expected {self._result}, got {action.argument}."
        return "Invalid action. Write call[operation field=value …] or answer[value]."

    def _call(self, text: str) -> str:
        name, *pairs = text.split()
        fields = {field: value for field, _, value in (pair.partition("=") for pair in pairs)}
        operations = {operation.name: operation for operation in OPERATIONS}
        if name not in operations:
            return f"404: there is no operation {name}; there are {', '.join(operations)}."
        operation = operations[name]
        if refusal := _refusal(operation, self._quirks[name], fields):
            return refusal
        if missing := [field for field in (operation.id, operation.more) if field and field not in fields]:
            return f"400 {name}: the field {missing[0]} is missing."
        done = operation == self._operation and fields == self._right_fields()
        return f"200 {name}: {self._result if done else generator('other', text).randint(1000, 9999)}"

    def _right_fields(self) -> Mapping[str, str]:
        """The fields of the one right call."""
        operation, quirks = self._operation, self._quirks[self._operation.name]
        fields = {"header": quirks.header, operation.id: f"{quirks.prefix}{self._id}"}
        if operation.more:
            fields[operation.more] = self._more + (quirks.third if operation.quirk == "unit" else "")
        if operation.quirk == "page":
            fields[operation.more] = quirks.third
        if operation.quirk == "twice":
            fields[quirks.third] = fields[_third(operation)]
        return fields


def _third(operation: Operation) -> str:
    """The field of the third quirk."""
    return operation.more or operation.id


def _refusal(operation: Operation, quirks: Quirks, fields: Mapping[str, str]) -> str:
    """The reason why a call is refused, with the expected value; "" if it is accepted."""
    name, third = operation.name, _third(operation)
    value = fields.get(third, "")
    if fields.get("header") != quirks.header:
        return f"429 {HEADER.state(operation=name, header=quirks.header)}."
    if not fields.get(operation.id, quirks.prefix).startswith(quirks.prefix):
        return (
            f"400 {PREFIX.state(operation=name, field=operation.id, prefix=quirks.prefix)}, got {fields[operation.id]}."
        )
    if operation.quirk == "page" and value and value != quirks.third:
        return f"404 {PAGE.state(operation=name, page=quirks.third)}, got {value}."
    if operation.quirk == "twice" and value and fields.get(quirks.third) != value:
        return f"400 {TWICE.state(operation=name, field=third, again=quirks.third)}."
    if operation.quirk == "unit" and value and not value.endswith(quirks.third):
        return f"400 {UNIT.state(operation=name, field=third, unit=quirks.third)}, got {value}."
    return ""
