"""`review_lessons`: candidates that coding agents taught, for the agent that the user named as their judge."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.operations import acting_as
from mulligan.core.records import Json, Lesson
from mulligan.mcp_server.tool import Call, NeedsPerson, Reply, Tool, definition
from mulligan.sessions.records import as_record
from mulligan.text.plain import one_line
from mulligan.text.secrets import mask

if TYPE_CHECKING:
    from mulligan.bank.bank import Bank
    from mulligan.hooks.journal import Journal

MOST = 3
"""Candidates that one call gives."""
MAX_TITLE, MAX_CONTENT = 200, 1000
"""Characters of a lesson that a person is asked about."""
VERDICTS = ("yes", "no", "reword", "guard")


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    from mulligan.app.guards import set_guard
    from mulligan.app.session_judge import candidates, decide, may_be_asking
    from mulligan.app.sessions import project_bank
    from mulligan.hooks.journal import Journal
    from mulligan.hooks.judging import AGENT, PERSON, believable
    from mulligan.hooks.learning import OUTPUTS, evidence_of
    from mulligan.hooks.project import project_id

    verdicts = _verdicts(arguments.get("verdicts"))
    folder = _folder(arguments.get("folder"))
    results: list[Json] = []
    with Journal() as journal:
        if journal.setting("why") != "ask":
            raise InvalidInput(
                "The user has not allowed the coding agent to judge lessons. "
                "To allow it, the user runs `mulligan hooks set why ask`."
            )
        agent_id = journal.bank_of(project_id(folder))
        if call.bound not in (None, agent_id):
            raise InvalidInput(f"This server serves only {call.bound!r}, not the lessons of {folder}.")
        async with project_bank(agent_id) as bank:
            of_person, patterns = await _decided_by_person(bank, journal, verdicts, call)
            for id, verdict, words in verdicts:
                lesson = await bank.get(id)
                decision = of_person.get(f"{verdict} {lesson.id}")
                if verdict == "guard":
                    if decision:
                        with acting_as(PERSON):
                            await set_guard(bank, journal, lesson, patterns[lesson.id])
                    results.append({"id": lesson.id, "result": _of_guard(lesson, decision)})
                    continue
                if lesson.confirmed:
                    results.append({"id": lesson.id, "result": "left as it is: it is no longer a candidate"})
                    continue
                given: bool | str = verdict == "yes"
                if verdict == "reword":
                    texts = [str(one.get(name, "")) for one in evidence_of(lesson) for name in ("command", *OUTPUTS)]
                    if not (given := believable(words, "\n".join((lesson.title, lesson.content, *texts)))):
                        raise InvalidInput(
                            f"The wording for {id} cannot be used: write one sentence of 12 to 240 characters. In "
                            "backticks, quote only commands from the evidence, and do not bypass a safeguard."
                        )
                if decision is not None:
                    with acting_as(PERSON):
                        after = await decide(bank, lesson.id, decision, PERSON)
                    results.append({"id": lesson.id, "result": _result(lesson, after, decision, True)})
                    continue
                admits = not may_be_asking(journal, lesson)
                with acting_as(f"judge {AGENT}"):
                    after = await decide(bank, lesson.id, given, AGENT, admits=admits)
                results.append({"id": lesson.id, "result": _result(lesson, after, given, admits)})
            waiting = await candidates(bank)
            shown = [_candidate(one) for one in waiting[:MOST]]
    message = (
        "Judge each: would a colleague who never saw the session do the right thing from these lines alone; would the "
        "same command work with the remedy and nothing else; can it happen again next month; does it harm nothing? "
        "Call again with a verdict for each: yes, no, or reword with better words."
        if shown
        else "No candidate waits for a judge."
    )
    return Reply({"status": "ok", "message": message, "decided": results, "candidates": shown, "waiting": len(waiting)})


async def _decided_by_person(
    bank: Bank, journal: Journal, verdicts: Sequence[tuple[str, str, str]], call: Call
) -> tuple[Mapping[str, bool], Mapping[str, str]]:
    """What a person decided, by verdict and lesson: on guards, and on the lessons that this agent may not admit, as a
    session that taught them may be its own. And the patterns that the person was shown, by lesson.

    Raises:
        NeedsPerson: The client can ask a person, and has not.
    """
    from mulligan.app.guards import guardable
    from mulligan.app.session_judge import may_be_asking

    questions, patterns = dict[str, str](), dict[str, str]()
    for id, verdict, _ in verdicts:
        if verdict == "guard":
            lesson, pattern = await guardable(bank, id)
            patterns[lesson.id] = pattern
            questions[f"guard {lesson.id}"] = (
                f"Should coding agents be refused to use `{pattern}` in this project? {_quoted(lesson)}"
            )
        elif verdict == "yes" and not (lesson := await bank.get(id)).confirmed and may_be_asking(journal, lesson):
            questions[f"yes {lesson.id}"] = f"Should coding agents be shown this lesson? {_quoted(lesson)}"
    if call.decisions is None or not questions:
        return {}, patterns
    if not call.request_state:
        raise NeedsPerson(questions, json.dumps(questions))
    before = json.loads(call.request_state)  # who has seen other words has not decided on these
    decided = {
        key: answer for key, answer in call.decisions.items() if key in questions and before.get(key) == questions[key]
    }
    return decided, patterns


def _quoted(lesson: Lesson) -> str:
    return f"{one_line(mask(lesson.title), MAX_TITLE)}: {one_line(mask(lesson.content), MAX_CONTENT)}"


def _folder(given: Json) -> str:
    """The project's folder: as the caller names it, else as agents say in a variable where they work."""
    folder = given or os.environ.get("CLAUDE_PROJECT_DIR") or os.environ.get("GEMINI_CWD") or "."
    if not isinstance(folder, str) or not os.path.isdir(folder):
        raise InvalidInput(f"folder must be the project's folder, not {folder!r:.200}.")
    return os.path.abspath(folder)


def _verdicts(given: Json) -> Sequence[tuple[str, str, str]]:
    if given is None:
        return ()
    found: list[tuple[str, str, str]] = []
    for n, one in enumerate(cast(list[Any], given) if isinstance(given, list) else [given]):
        fields = as_record(one)
        id, verdict, words = (fields.get(name) for name in ("id", "verdict", "words"))
        if not isinstance(id, str) or not id or verdict not in VERDICTS:
            raise InvalidInput(f"verdicts.{n}: it must have an id and a verdict ({', '.join(VERDICTS)}).")
        if verdict == "reword" and not (isinstance(words, str) and words.strip()):
            raise InvalidInput(f"verdicts.{n}.words: reword needs the new wording.")
        found.append((id, cast(str, verdict), str(words or "")))
    return found


def _result(before: Lesson, after: Lesson, verdict: bool | str, admits: bool) -> str:
    if verdict is True and not admits:
        return "not admitted: a session that taught it may be yours, which may reject it or reword it"
    if after == before:
        return "left as it is: a person decided on it"
    return "rejected" if verdict is False else "kept" if verdict is True else "reworded"


def _of_guard(lesson: Lesson, decision: bool | None) -> str:
    if decision is None:
        return f"no guard: only the user can set one, with `mulligan memory review --guard {lesson.id}`"
    return "guarded: calls of its command are refused from now on" if decision else "no guard: the user declined"


def _candidate(lesson: Lesson) -> Json:
    from mulligan.app.guards import pattern_of
    from mulligan.hooks.learning import OUTPUTS, evidence_of, sessions_of

    seen: Mapping[str, Json] = (evidence_of(lesson) or [{}])[-1]
    evidence: dict[str, Json] = {name: str(seen[name])[-600:] for name in ("command", *OUTPUTS) if seen.get(name)}
    return {
        "id": lesson.id,
        "title": lesson.title,
        "content": lesson.content,
        **({"guard": pattern} if (pattern := pattern_of(lesson)) else {}),
        "evidence": {**evidence, "sessions": len(sessions_of(lesson))},
    }


def failed(message: str, arguments: Mapping[str, Json]) -> Reply:
    return Reply({"status": "error", "message": message}, error=True)


def _is_named(service: object) -> bool:
    """Whether the user lets the agent judge: the tool is in no list otherwise."""
    from mulligan.hooks.journal import Journal

    try:
        with Journal(wait=1.0) as journal:
            return journal.setting("why") == "ask"
    except Exception:  # a journal that cannot be read: `hooks status` says so
        return False


TOOL = Tool(definition("review_lessons"), call, failed, listed=_is_named)
