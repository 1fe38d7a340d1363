"""What was said in a run, put together of spans, each of which repeats what was said before it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mulligan.bank.learn.trajectory import STEPS
from mulligan.core.errors import InvalidInput
from mulligan.core.turns import Turn

_MOST = 2 * STEPS


class History:
    """The turns of a run in their order. Spans are added as they began."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    def say(self, given: Sequence[Turn], said: Sequence[Turn]) -> None:
        """Adds what a model was given and said: all that was not there yet."""
        new = [*given, *said]
        begun = common(self.turns, new)
        if begun == len(self.turns):
            self.turns = [_kept(old, one) for old, one in zip(self.turns, new, strict=False)] + new[begun:]
        elif begun >= len(given):  # asked the same once more
            rest = new[begun:]
            if common(self.turns[begun:], rest) < len(rest):
                self.turns += rest
        else:
            self.turns += self._unheard(new[begun:])
        self._check()

    def use(self, call: Turn, result: Turn | None) -> None:
        """Adds the call of a tool and what came back, unless they are there."""
        at = next((n for n in reversed(range(len(self.turns))) if self._asks(n, call)), None)
        if at is None and not call.id:  # its arguments may be written in another form
            at = next((n for n in range(len(self.turns)) if self._waits(n, call.tool)), None)
        if at is None:
            self.turns.append(call)
            at = len(self.turns) - 1
        if result is None:
            return
        result = result._replace(id=self.turns[at].id or result.id)
        for n in range(at + 1, len(self.turns)):
            if same(self.turns[n], result) or _answers(self.turns[n], result):
                self.turns[n] = _kept(result, self.turns[n])
                return
        while at + 1 < len(self.turns) and self.turns[at + 1].tool:  # behind the other calls of the same answer
            at += 1
        self.turns.insert(at + 1, result)
        self._check()

    def _asks(self, n: int, call: Turn) -> bool:
        """Whether the turn is this call, and one that nothing has answered, if it has no id."""
        turn = self.turns[n]
        if turn.role != "assistant" or not turn.tool or not same(turn, call):
            return False
        return bool(call.id and turn.id) or self._waits(n, call.tool)

    def _waits(self, n: int, tool: str) -> bool:
        """Whether the turn is a call of this tool that nothing has answered."""
        turn = self.turns[n]
        asks = turn.role == "assistant" and turn.tool == tool
        return asks and not any(_answers(later, turn) for later in self.turns[n + 1 :])

    def _unheard(self, new: Sequence[Turn]) -> Sequence[Turn]:
        """What follows the last turns here, where the beginning was left out or written anew."""
        new = [one for one in new if one.role != "system" or not any(same(one, old) for old in self.turns)]
        for start in range(max(len(self.turns) - len(new), 0), len(self.turns)):
            if common(self.turns[start:], new) == len(self.turns) - start:
                return new[len(self.turns) - start :]
        return new

    def _check(self) -> None:
        if len(self.turns) > _MOST:
            raise InvalidInput(f"more than {_MOST:,} turns of one agent in one trace")


def common(old: Sequence[Turn], new: Sequence[Turn]) -> int:
    """How many turns both begin with."""
    return next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if not same(a, b)), min(len(old), len(new)))


def same(a: Turn, b: Turn) -> bool:
    if a.role != b.role or bool(a.tool) != bool(b.tool):
        return a.role == b.role == "tool" and bool(a.id) and a.id == b.id
    if a.id and b.id:
        return a.id == b.id
    return a.tool == b.tool and (a.text == b.text or _plain(a.text) == _plain(b.text))


def _answers(turn: Turn, to: Turn) -> bool:
    """Whether this is what the tool of a call, or of an answer, gave back, as far as can be seen."""
    return turn.role == "tool" and (turn.id == to.id if turn.id and to.id else turn.tool == to.tool)


def _kept(old: Turn, new: Turn) -> Turn:
    """The newer of two forms of a turn, with what only the older one knows."""
    failed = old.failed if new.failed is None else new.failed
    return new._replace(failed=failed, id=new.id or old.id, tool=new.tool or old.tool)


def _plain(text: str) -> str:
    """A text, or what is the same for each way of writing a JSON value."""
    text = text.strip()
    if text[:1] not in ("{", "["):
        return text
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return text
