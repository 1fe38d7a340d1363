"""Finds calls of tools that were refused, and how that was overcome, in the session of an agent that calls tools.

Unlike a command, a call has a name and arguments, and its error is a text. The remedy is the difference between a
refused call and a later one of the same tool that worked, as far as the error names it. If it is not clear what made
the difference, nothing is learned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mulligan.core.turns import Turn
from mulligan.sessions.events import SHOWN
from mulligan.sessions.mends import mend_key
from mulligan.sessions.pairs import Found, evidence
from mulligan.sessions.records import Record, as_record, record_in, text_at
from mulligan.sessions.remedies import is_transient
from mulligan.sessions.signature import digest, keys, normalised
from mulligan.text.plain import one_line
from mulligan.text.secrets import Masks

REMEDY_WINDOW = 12
"""How many calls after a refusal are searched for its remedy, without mere repetitions."""
MIN_FORMS = 3
"""A call is a dead end if so many forms of it were refused, and none worked."""
_REFUSED = ("rejected", "refused", "denied", "error", "failed")
_REASONS = ("reason", "message", "detail", "error_message")
_ID = re.compile(r"(?:^|_)ids?$|Ids?$")
_UNKNOWN = re.compile(
    r"\bnot (?:defined|found|available|a (?:valid|known) (?:tool|function))\b|\bunknown (?:tool|function)\b"
    r"|\bno (?:such )?(?:tool|function)\b|\bdoes not exist\b",
    re.IGNORECASE,
)
_UNEXPECTED = re.compile(
    r"\b(?:unexpected|unknown|unrecogni[sz]ed|unsupported|extra|additional)\b.*\b(?:argument|parameter|propert|field|input)"
    r"|\bno (?:such )?(?:argument|parameter|field)\b|\bextra inputs are not permitted\b",
    re.IGNORECASE,
)
"""An error about the name of an argument, not about its value."""
_NAME_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_PLAIN_ERROR = re.compile(r"\W*\w*(?:error|exception)\b", re.IGNORECASE)
_MAX_ERROR = 400


@dataclass(frozen=True)
class AnsweredCall:
    """A call of a tool. error: with which it was refused; "" if it worked."""

    tool: str
    arguments: Mapping[str, Any]
    output: str
    error: str
    id: str
    at: float = 0.0

    def form(self) -> str:
        """The call as text."""
        return f"{self.tool}({', '.join(f'{name}={_written(value)}' for name, value in self.arguments.items())})"

    @property
    def text(self) -> str:
        """The call and its error, as text."""
        return f"{self.form()}: {self.error}"

    @property
    def errors(self) -> tuple[str, ...]:
        """The keys of the error: first as one of this tool, whatever the values of the call are, then by its text."""
        text = self.error
        for name, value in sorted(self.arguments.items(), key=lambda item: -len(str(item[1]))):
            if isinstance(value, str) and len(value) > 1:
                text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", f"<{name}>", text)
            if _UNEXPECTED.search(self.error):
                text = re.sub(rf"(['\"`]){re.escape(name)}\1", "<argument>", text)
        return (digest((f"call of {self.tool}", normalised(text))), *keys(self.error)) if self.error else ()


def error_in(output: str) -> str:
    """The error in the result of a tool; "" if it has none."""
    record = record_in(output)
    error = record.get("error") or record.get("isError") or record.get("is_error")
    if error:
        return (
            (error if isinstance(error, str) else _reason(as_record(error))) or _reason(record) or output[:_MAX_ERROR]
        )
    if record.get("success") is False or str(record.get("status")).lower() in _REFUSED:
        return _reason(record) or (output[:_MAX_ERROR] if record.get("success") is False else "")
    return output[:_MAX_ERROR].strip() if not record and _PLAIN_ERROR.match(output) else ""


def calls_of(turns: Iterable[Turn]) -> list[AnsweredCall]:
    """The calls of these turns that were answered, in the order of their answers."""
    pending: dict[str, Turn] = {}
    calls: list[AnsweredCall] = []
    for turn in turns:
        if turn.role == "assistant" and turn.tool:
            pending[turn.id] = turn
        elif turn.role == "tool" and (call := pending.pop(turn.id, None)) is not None:
            error = (
                "" if turn.failed is False else error_in(turn.text) or (turn.text[:_MAX_ERROR] if turn.failed else "")
            )
            calls.append(
                AnsweredCall(call.tool, record_in(call.text), turn.text, one_line(error, _MAX_ERROR), turn.id, turn.at)
            )
    return calls


def remedy_of(calls: Sequence[AnsweredCall], place: int) -> str:
    """What the session did to overcome the refused call at this place; "" if that is not clear.

    It is the argument of a later call of the same tool that worked, if the error names it or if nothing else differs.
    For a value that came from a call in between, it is that call; if the arguments are the same, it is the call that
    the error asks for. For a tool or an argument that does not exist, it is the right name.
    """
    failed, succeeded = calls[place], list[AnsweredCall]()
    pairs = pairwise(calls[place:])
    for later in [call for before, call in pairs if call.text != before.text][:REMEDY_WINDOW]:
        if later.error:
            continue
        if later.tool != failed.tool:
            if _says(failed.error, later.tool) or (_is_unknown(failed) and _is_alike(failed.tool, later.tool)):
                return f"{later.tool} instead of {failed.tool}"
            succeeded.append(later)
            continue
        changed = _changed(failed, later)
        named = [name for name in changed if _names(failed.error, name, failed.arguments.get(name))]
        unnamed = [name for name in changed if name not in named and failed.arguments.get(name) not in ("", None)]
        if any(_ID.search(name) for name in unnamed):
            continue  # it is about something else
        if not changed:
            needed = [call.tool for call in succeeded if _asks_for(failed.error, call.tool)]
            return f"{needed[-1]} before {failed.tool}" if needed else ""
        if named and later.arguments and _UNEXPECTED.search(failed.error):
            instead = [name for name in later.arguments if name not in failed.arguments] or sorted(later.arguments)
            return f"{later.tool} with {', '.join(f'{name}=…' for name in instead)}"
        givers = {name: tool for name in changed if (tool := _giver(later.arguments.get(name), succeeded))}
        counts = named or (changed if len(changed) in (1, len(givers)) else [])
        return _step(later, counts, givers) if counts else ""
    return ""


def dead_end(tool: str) -> str:
    """What is learned if a call was refused in every form that was tried."""
    return f"tried: no other form of {tool} worked"


def overcome(agent: str, session: str, turns: Sequence[Turn]) -> list[Found]:
    """What a session teaches about refused calls: those that it overcame, and those that are dead ends."""
    masks, lessons, known = Masks(), list[Found](), set[str]()
    calls = calls_of(turns)
    for call in calls:
        masks.learn("\n".join((json.dumps(call.arguments), call.output)))
    for n, call in enumerate(calls):
        if not call.error or known.intersection(call.errors) or is_transient(call.error):
            continue
        if step := remedy_of(calls, n):
            outcome = f"works: {step}"
        elif len(_refused_forms(calls, n)) >= MIN_FORMS:
            step = outcome = dead_end(call.tool)
        else:
            continue
        known.update(call.errors)
        lessons.append(
            Found(
                title=one_line(masks.text(f"{call.tool}: {call.error}"), 120),
                content=masks.text(f"fails: {call.tool}\n  {call.error}\n{outcome}"),
                description=f"When {call.tool} is refused with this error.",
                errors=call.errors,
                mends={mend_key(step): masks.text(step)},
                refusal=masks.text(call.error),
                seen={
                    "agent": agent,
                    "session": session,
                    "calls": [call.id],
                    "command": one_line(masks.text(call.form()), SHOWN),
                    "fails": evidence(call.output, masks),
                    "works": "",
                    "at": call.at,
                },
            )
        )
    return lessons


def reversals(calls: Sequence[AnsweredCall]) -> Iterator[int]:
    """The places of calls that worked, and whose result a later call removed again."""
    known: set[str] = set()
    for n, call in enumerate(calls):
        created = _ids(record_in(call.output)) - known - set(map(str, call.arguments.values()))
        known |= _ids(record_in(call.output))
        removing = (later for later in calls[n + 1 :] if not later.error and _REMOVES.match(later.tool))
        if not call.error and any(created & set(map(str, later.arguments.values())) for later in removing):
            yield n


_REMOVES = re.compile(r"(?:cancel|remove|delete|undo|revert)(?:_|[A-Z]|$)")


def _refused_forms(calls: Sequence[AnsweredCall], at: int) -> set[str]:
    """The forms of a call that were refused with its error; empty if a form worked later."""
    first, forms = calls[at], set[str]()
    subject = list(first.arguments)[:1]
    for call in calls[at:]:
        if call.tool != first.tool or any(call.arguments.get(name) != first.arguments[name] for name in subject):
            continue
        if not call.error:
            return set()
        if set(call.errors) & set(first.errors):
            forms.add(call.form())
    return forms


def _changed(failed: AnsweredCall, works: AnsweredCall) -> list[str]:
    names = dict.fromkeys((*works.arguments, *failed.arguments))
    return [name for name in names if failed.arguments.get(name) != works.arguments.get(name)]


def _says(error: str, name: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", error, re.IGNORECASE))


def _is_unknown(call: AnsweredCall) -> bool:
    """Whether the error says that there is no such tool."""
    return bool(_UNKNOWN.search(call.error)) and _says(call.error, call.tool)


def _is_alike(name: str, other: str) -> bool:
    """Whether one name has all words of the other, or they differ in only one word."""
    first, second = _words_of(name), _words_of(other)
    shared = len(first & second)
    return first <= second or second <= first or (shared > 1 and max(len(first), len(second)) == shared + 1)


def _asks_for(error: str, tool: str) -> bool:
    """Whether an error has all words of the name of a tool, with any endings."""
    words = re.findall(r"\w+", error.casefold())
    return all(any(word.startswith(part) for word in words) for part in _words_of(tool))


def _words_of(name: str) -> set[str]:
    return {word.casefold() for word in _NAME_WORDS.findall(name)}


def _giver(value: Any, calls: Sequence[AnsweredCall]) -> str:
    """The tool of the last of these calls whose result has a value that its arguments did not have; "" for none."""
    text = str(value)
    tools = (
        call.tool
        for call in reversed(calls)
        if _says(call.output, text) and text not in map(str, call.arguments.values())
    )
    return next(tools, "") if len(text) > 1 and not isinstance(value, bool) else ""


def _names(error: str, name: str, value: Any) -> bool:
    """Whether an error names an argument, or the value that it had."""
    forms = [name, name.replace("_", " "), *([value] if isinstance(value, str) and len(value) > 1 else [])]
    return any(_says(error, form) for form in forms)


def _step(works: AnsweredCall, names: Sequence[str], givers: Mapping[str, str]) -> str:
    """The call that works, in words: the value of each argument, or the tool that gave it. Ids are left out, as they
    differ in every session."""
    kept = [
        f"{name} from {givers[name]}"
        if name in givers
        else f"another {name}"
        if _ID.search(name)
        else f"{name}={_written(works.arguments[name])}"
        for name in names
        if name in works.arguments
    ]
    left_out = [name for name in names if name not in works.arguments]
    parts = [f"{word} {', '.join(several)}" for word, several in (("with", kept), ("without", left_out)) if several]
    return f"{works.tool} {' and '.join(parts)}"


def _written(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), 80)


def _reason(record: Record) -> str:
    return next((text for key in _REASONS if (text := text_at(record, key))), "")


def _ids(record: Record) -> set[str]:
    """The ids in an object, at its top or one level below."""
    inner = [as_record(value) for value in record.values()]
    return {
        value
        for table in (record, *inner)
        for name, value in table.items()
        if _ID.search(name) and isinstance(value, str)
    }
