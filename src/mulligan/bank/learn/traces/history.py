"""Put the turns of a run together from its spans, each of which repeats what was said before it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mulligan.bank.learn.trajectory import STEPS
from mulligan.core.errors import InvalidInput
from mulligan.core.turns import Turn

_MAX_TURNS = 2 * STEPS


class History:
    """The turns of a run in order. Add its spans in the order in which they began."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    def add_messages(self, given: Sequence[Turn], said: Sequence[Turn]) -> None:
        """Adds the messages that a model was given, and its answer, as far as they are new."""
        new = [*given, *said]
        shared = common_length(self.turns, new)
        if shared == len(self.turns):
            self.turns = [_merged(old, turn) for old, turn in zip(self.turns, new, strict=False)] + new[shared:]
        elif shared >= len(given):  # the model was asked the same question again
            answer = new[shared:]
            if common_length(self.turns[shared:], answer) < len(answer):
                self.turns += answer
        else:
            self.turns += self._continuation(new[shared:])
        self._check_length()

    def add_call(self, call: Turn, result: Turn | None) -> None:
        """Adds the call of a tool and its result, unless they are known."""
        position = next((n for n in reversed(range(len(self.turns))) if self._is_call(n, call)), None)
        if position is None and not call.id:  # its arguments may be written in another form
            position = next((n for n in range(len(self.turns)) if self._is_unanswered(n, call.tool)), None)
        if position is None:
            self.turns.append(call)
            position = len(self.turns) - 1
        if result is None:
            return
        result = result._replace(id=self.turns[position].id or result.id)
        for n in range(position + 1, len(self.turns)):
            if is_same(self.turns[n], result) or _is_result(self.turns[n], result):
                self.turns[n] = _merged(result, self.turns[n])
                return
        while position + 1 < len(self.turns) and self.turns[position + 1].tool:  # after the other calls of the message
            position += 1
        self.turns.insert(position + 1, result)
        self._check_length()

    def _is_call(self, n: int, call: Turn) -> bool:
        """Whether turn `n` is this call. Without ids, only an unanswered call can be it."""
        turn = self.turns[n]
        if turn.role != "assistant" or not turn.tool or not is_same(turn, call):
            return False
        return bool(call.id and turn.id) or self._is_unanswered(n, call.tool)

    def _is_unanswered(self, n: int, tool: str) -> bool:
        """Whether turn `n` is a call of this tool that has no result yet."""
        turn = self.turns[n]
        is_call = turn.role == "assistant" and turn.tool == tool
        return is_call and not any(_is_result(later, turn) for later in self.turns[n + 1 :])

    def _continuation(self, new: Sequence[Turn]) -> Sequence[Turn]:
        """The turns that follow the last known ones, if the new ones leave out or rewrite the beginning."""
        new = [turn for turn in new if turn.role != "system" or not any(is_same(turn, old) for old in self.turns)]
        for start in range(max(len(self.turns) - len(new), 0), len(self.turns)):
            if common_length(self.turns[start:], new) == len(self.turns) - start:
                return new[len(self.turns) - start :]
        return new

    def _check_length(self) -> None:
        if len(self.turns) > _MAX_TURNS:
            raise InvalidInput(f"more than {_MAX_TURNS:,} turns of one agent in one trace")


def common_length(old: Sequence[Turn], new: Sequence[Turn]) -> int:
    """How many turns at the beginning are the same in both."""
    for n, (old_turn, new_turn) in enumerate(zip(old, new, strict=False)):
        if not is_same(old_turn, new_turn):
            return n
    return min(len(old), len(new))


def is_same(one: Turn, other: Turn) -> bool:
    """Whether these are two forms of one turn."""
    if one.role != other.role or bool(one.tool) != bool(other.tool):
        return one.role == other.role == "tool" and bool(one.id) and one.id == other.id
    if one.id and other.id:
        return one.id == other.id
    return one.tool == other.tool and (one.text == other.text or _normalised(one.text) == _normalised(other.text))


def _is_result(turn: Turn, other: Turn) -> bool:
    """Whether a turn is the result of a call. other: the call, or another form of the result."""
    return turn.role == "tool" and (turn.id == other.id if turn.id and other.id else turn.tool == other.tool)


def _merged(old: Turn, new: Turn) -> Turn:
    """The newer form of a turn, completed with what only the older one has."""
    failed = old.failed if new.failed is None else new.failed
    return new._replace(failed=failed, id=new.id or old.id, tool=new.tool or old.tool)


def _normalised(text: str) -> str:
    """A text; if it is JSON, written in one fixed way."""
    text = text.strip()
    if text[:1] not in ("{", "["):
        return text
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return text
