"""`memory_group`: several trajectories of one task that the client ran; the best of them, and lessons by contrast."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.questions import Question
from mulligan.core.records import Episode, Feedback, Json, Stop, Task
from mulligan.mcp_server.tool import Call, Reply, Tool, definition
from mulligan.mcp_server.tools.extract_memory import read_trajectory
from mulligan.mcp_server.tools.memory_task import extraction_reply, prompt_of
from mulligan.mcp_server.tools.retrieve_memory import kind_of, query_of

if TYPE_CHECKING:
    from mulligan.bank.bank import Bank
    from mulligan.bank.learn.groups import Closed, Group

ACTIONS = ("open", "submit", "close")


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    action = arguments.get("action")
    if action not in ACTIONS:
        raise InvalidInput(f"'action' must be {', '.join(ACTIONS)}, not {action!r:.80}.")
    bank = call.service.bank(call.agent(arguments.get("agent_id")) or "")
    if action == "open":
        task = Task(query_of(arguments.get("query")), kind=kind_of(arguments.get("kind")) or "")
        return Reply(_open_reply(bank, await bank.groups.open(task)))
    id = arguments.get("group_id")
    if not isinstance(id, str) or not id:
        raise InvalidInput(f'group_id is missing: pass the one that action "open" returned, to {action} this group.')
    if action == "submit":
        return Reply(_open_reply(bank, await bank.groups.submit(id, await _trajectory(bank, arguments))))
    closed = await bank.groups.close(id, best=_whole(arguments.get("best")))
    return Reply(await _closed_reply(bank, closed, by_tool="extract_memory" in call.offered))


def failed(message: str, arguments: Mapping[str, Json]) -> Reply:
    id = arguments.get("group_id")
    return Reply({"status": "error", "message": message, "group_id": id[:80] if isinstance(id, str) else None}, True)


async def _trajectory(bank: Bank, arguments: Mapping[str, Json]) -> Episode:
    """The submitted trajectory with its outcome, and the recall that it was given lessons by."""
    given, signal, score = (arguments.get(name) for name in ("trajectory", "success_signal", "score"))
    if given is None:
        raise InvalidInput("trajectory is missing: the list of steps taken, or a string that describes them.")
    if signal is not None and not isinstance(signal, bool):
        raise InvalidInput(f"success_signal must be true, false, or omitted if unknown, not {signal!r:.80}.")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float) or not _finite(score)):
        raise InvalidInput(f"'score' must be a number (higher is better), not {score!r:.80}.")
    if isinstance(given, str):
        given = [{"step": 1, "role": "assistant", "content": given}] if given.strip() else []
    episode = read_trajectory(cast(Json, given), "(the task of the group)")
    if signal is not None or score is not None:
        told = Feedback(signal, score=None if score is None else float(score), source="caller")
        stop = Stop("solved" if signal else "exhausted", "handed in as a trajectory")
        episode = replace(episode, trials=(replace(episode.trials[-1], number=1, feedback=told),), stop=stop)
    recall = arguments.get("retrieval_id")
    if recall is None:
        return episode
    if not isinstance(recall, str):
        raise InvalidInput("'retrieval_id' must be the string that retrieve_memory returned.")
    return replace(episode, recall=await bank.recalled(recall))


def _finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _whole(best: Json) -> int | None:
    if best is not None and (isinstance(best, bool) or not isinstance(best, int)):
        raise InvalidInput(f"'best' must be the number of a trajectory, such as 2, not {best!r:.80}.")
    return best


def _open_reply(bank: Bank, group: Group) -> dict[str, Json]:
    from mulligan.text.times import moment

    expires = moment(group.expires)
    if group.number is None:
        message = (
            "Run the task several times, each without knowing of the others, and submit each trajectory with this "
            f"group_id; then close the group. It expires at {expires}, later if something is submitted."
        )
    elif group.known:
        message = f"This trajectory was submitted before, as number {group.number}."
    else:
        message = f"Kept as trajectory {group.number}. Submit the others, then close the group."
    number: dict[str, Json] = {} if group.number is None else {"trajectory": group.number}
    return {
        **_head("open", message, bank, group.id, group.trajectories),
        **number,
        "expires": expires,
    }


def _head(status: str, message: str, bank: Bank, id: str, trajectories: int) -> dict[str, Json]:
    return {
        "status": status,
        "message": message,
        "group_id": id,
        "agent_id": bank.agent_id or None,
        "trajectories": trajectories,
    }


async def _closed_reply(bank: Bank, closed: Closed, *, by_tool: bool) -> dict[str, Json]:
    alike = ", ".join(map(str, closed.alike))
    if closed.best is None:
        why = f"The server's model could not compare them: {closed.failed} " if closed.failed else ""
        message = (
            f"{why}The outcomes of trajectories {alike} are equally good, as far as they were told. Compare them by "
            "`prompt`, then close the group again with best: the number of the best one."
        )
        asked = {"wanted": "best", **prompt_of(cast(Question, closed.question))}
        return {**_head("needs_thinking", message, bank, closed.id, closed.trajectories), **asked}
    by = "by its outcome" if len(closed.alike) == 1 else f"of {alike}, whose outcomes are equally good"
    assert closed.learned is not None
    learning: dict[str, Any] = await extraction_reply(bank, closed.learned, by_tool=by_tool)
    if closed.failed:
        learning["message"] = f"The server's model failed, and the task waits: {closed.failed} Close the group again."
    return {
        **_head("closed", f"The best is trajectory {closed.best}, {by}.", bank, closed.id, closed.trajectories),
        "best": closed.best,
        "success": closed.success,
        "score": closed.score,
        "output": closed.output,
        "learning": learning,
    }


TOOL = Tool(definition("memory_group"), call, failed)
