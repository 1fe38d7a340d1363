"""What a judge is asked about a session, and what of its answer is believed.

Rules find little and are seldom wrong; a judge that the user has named says which events made the difference, and which
sentence of the user holds beyond the task. What it says is checked: each id has to be one of the account, each command
and quotation has to stand there literally, and nothing may go around a safeguard. design/131 says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import dropwhile
from typing import Any, cast

from mulligan.bank.learn.screening import flags_of
from mulligan.core.records import Json, Lesson
from mulligan.core.turns import Turn
from mulligan.sessions.agents import is_shell
from mulligan.sessions.commands import only_looks, parts, short
from mulligan.sessions.corrections import lasts
from mulligan.sessions.effects import going_around
from mulligan.sessions.events import SHOWN
from mulligan.sessions.mends import mends_of, short_digest
from mulligan.sessions.pairs import Found, error_lines, evidence
from mulligan.sessions.plain_command import plain
from mulligan.sessions.records import as_record, inner, inner_list
from mulligan.sessions.remedies import CHANGE, lines_of
from mulligan.sessions.signature import causes, keys
from mulligan.text.formatting import fenced
from mulligan.text.plain import one_line
from mulligan.text.safeguards import patterns
from mulligan.text.secrets import MASK, Masks

FACTS = 3
"""Facts of one answer that are kept."""
SENTENCE = 240
"""Characters of a fact at most."""
ROOM = 24_000
"""Characters of an account at most."""
RULES_ALONE, PERSON, AGENT = "rules", "person", "agent"
"""By whom a lesson was judged, besides models and command lines: `judged` in its context."""
_AFTER = 14
"""Events after a failure that are told."""
_SOON = 3
"""Events after a failure among which the agent says its cause."""
_USER, _AGENT, _CAUSE = 400, 220, 200
"""Characters that are told of what the user said, of what the agent said, and of a line of an error."""
_QUOTED = re.compile(r"`([^`\n]+)`|[\"“]([^\"”\n]*\w [^\"”\n]+)[\"”]|(?<!\w)['‘]([^'‘’\n]*\w [^'‘’\n]+)['’](?!\w)")
"""What is quoted: in backticks, or several words."""
_TAG = re.compile(r"</?(?:system|assistant|user|human|lessons?|instructions?|tools?|function\w*)\b", re.IGNORECASE)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_VERDICTS = {"yes": True, "no": False}

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    name: {"type": "string"} for name in ("fact", "failed", "helped", "command", "said", "quote")
                },
                "required": ["fact"],
            },
        },
        "lessons": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["facts"],
}


@dataclass(frozen=True)
class Account:
    """A session as a judge reads it.

    Attributes:
        question: the whole question; "" where there is nothing to ask.
        text: all that stands in these events, masked.
        events: the events by their ids, such as F2.
        after: the last call before what the user said, by the id of that.
        lessons: the ids of lessons by theirs, such as L1.
    """

    agent: str
    session: str
    masks: Masks
    question: str = ""
    text: str = ""
    events: Mapping[str, Turn] = field(default_factory=dict[str, Turn])
    after: Mapping[str, Turn] = field(default_factory=dict[str, Turn])
    lessons: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Verdict:
    """What is believed of an answer: facts to keep, and what is said of lessons by their ids: True, False, or a better
    sentence."""

    facts: tuple[Found, ...] = ()
    lessons: Mapping[str, bool | str] = field(default_factory=dict[str, "bool | str"])


def account_of(agent: str, session: str, events: Sequence[Turn], lessons: Sequence[Lesson]) -> Account:
    """What a judge is told and asked. lessons: those that rules drew from this session."""
    masks = Masks()
    for event in events:
        for text in (event.command, event.output[-4000:]) if event.is_call else (event.text,):
            masks.learn(text)
    lines, told, after = _told(agent, events, masks)
    named = {f"L{n}": lesson.id for n, lesson in enumerate(lessons, 1)}
    drawn = [f"L{n} {one.title}\n{_indented(one.content)}" for n, one in enumerate(lessons, 1)]
    if not named and not any(key[0] == "F" for key in told) and sum(key[0] == "U" for key in told) < 2:
        return Account(agent, session, masks)
    text = fenced(masks.text("\n".join(lines)))
    if drawn:
        text += "\n\nRules drew these lessons from it:\n\n" + fenced(masks.text("\n".join(drawn)))
    each = [(one.command, one.output) if one.is_call else (one.text,) for one in told.values()]
    whole = masks.text("\n".join(text for both in each for text in both))
    return Account(agent, session, masks, _asked().format(account=text), whole, told, after, named)


@cache
def _asked() -> str:
    return files("mulligan.hooks").joinpath("judging.md").read_text("utf-8").strip()


def _told(agent: str, events: Sequence[Turn], masks: Masks) -> tuple[list[str], dict[str, Turn], dict[str, Turn]]:
    """The account, a line or a few for each event; the events by their ids; and the last call before what was said."""
    lines: dict[str, str] = {}
    told: dict[str, Turn] = {}
    after: dict[str, Turn] = {}
    since = _AFTER  # events since the last failure
    known = set[str]()
    last: Turn | None = None
    for event in events:
        since += 1
        kind, line, shell = "", "", event.is_call and is_shell(event.tool, agent)
        if not event.is_call:
            if event.who == "user" and event.text.strip():
                kind, line = "U", f"user: {one_line(masks.text(event.text), _USER)}"
            elif since <= _SOON:
                kind, line = "A", f"agent: {one_line(masks.text(event.text), _AGENT)}"
        else:
            command = short(masks.text(event.command), SHOWN)
            errors = keys(event.output) if event.failed and shell else ()
            if errors and not only_looks(event.command):
                if not known.issuperset(errors):
                    kind = "F"
                    causing = error_lines(event.output, causes(masks.text(event.output)), masks)
                    line = "\n".join([f"failed: {command}", *(f"    {one}" for one in causing)])
                    known.update(errors)
                since = 0
            elif event.failed is False and since <= _AFTER and shell and not only_looks(event.command):
                kind, line = "C", f"worked: {command}"
            elif event.failed is False and since <= _AFTER and not shell and event.output[:1] in "+-":
                kind, line = "E", f"changed: {event.command}: {one_line(masks.text(event.output), _CAUSE)}"
        if kind and not set(flags_of(line)) - _of_commands():  # what speaks to a model is told to none
            id = f"{kind}{len(told) + 1}"
            told[id], lines[id] = event, f"{id} {line}"
            if kind == "U" and last is not None:
                after[id] = last
        if event.is_call:
            last = event
    for least in ("E", "A", "C", "F", "U"):  # what is told last goes first, until the rest has room
        for id in [id for id in lines if id[0] == least]:
            if sum(map(len, lines.values())) <= ROOM:
                break
            del lines[id], told[id]
    return list(lines.values()), told, after


@cache
def _of_commands() -> frozenset[str]:
    """The flags of commands: a session may have run them, and the checks of an answer look for them again."""
    return frozenset(flag for flag, _ in patterns("commands"))


def _indented(text: str) -> str:
    return "\n".join(f"    {line.strip()}" for line in text.splitlines())


def believed(account: Account, answer: Json, by: str) -> Verdict:
    """What of a judge's answer passes the checks. by: who answered."""
    given = as_record(answer)
    found = (_fact(account, one, by) for one in inner_list(given, "facts")[:FACTS])
    facts = [one for one in found if one is not None]
    lessons: dict[str, bool | str] = {}
    for name, verdict in inner(given, "lessons").items():
        if (id := account.lessons.get(name)) and isinstance(verdict, str):
            if (plainly := _VERDICTS.get(verdict.strip(" .!").casefold())) is not None:
                lessons[id] = plainly
            elif sentence := believable(account.masks.text(verdict), account.text):
                lessons[id] = sentence
    return Verdict(tuple(facts), lessons)


def believable(sentence: str, within: str) -> str:
    """A sentence as it may be kept; "" where it says too much or too little, does not pass the screening of lessons, or
    has a command in backticks that does not stand in the evidence."""
    sentence = one_line(sentence, SENTENCE + 1)
    if not 12 <= len(sentence) <= SENTENCE or flags_of(sentence) or _TAG.search(sentence):
        return ""
    if MASK in sentence or sentence.count("`") % 2:
        return ""
    quoted = ("".join(each) for each in _QUOTED.findall(sentence))
    return "" if any(not _stands(words, within) for words in quoted) else sentence


def _fact(account: Account, given: Mapping[str, Any], by: str) -> Found | None:
    text = {name: value.strip() for name, value in given.items() if isinstance(value, str)}
    sentence = believable(account.masks.text(text.get("fact", "")), account.text)
    if not sentence:
        return None
    judged: Mapping[str, Json] = {"by": by, "verdict": "fact"}
    failed = account.events.get(text.get("failed", ""))
    if failed is not None and failed.is_call and failed.failed:
        return _overcome(account, sentence, failed, text, judged)
    said = account.events.get(text.get("said", ""))
    if said is not None and not said.is_call and said.who == "user":
        quote = one_line(account.masks.text(text.get("quote", "")), 300)
        if len(quote) < 8 or not _stands(quote, account.masks.text(said.text)) or lasts(quote) is False:
            return None
        before = account.after.get(text["said"])
        shown = one_line(account.masks.text(plain(before.command)), SHOWN) if before and before.command else ""
        return Found(
            title=sentence,
            content="\n".join(filter(None, (shown and f"after: {shown}", f'the user said: "{quote}"'))),
            description="What the user of this project wants.",
            errors=(short_digest(quote.casefold()),),
            mends={},
            seen=_seen(account, [before.id if before else text["said"]], said.at),
            correction=True,
            lasting=True,
            judged=judged,
        )
    return None


def _overcome(
    account: Account, sentence: str, failed: Turn, text: Mapping[str, str], judged: Mapping[str, Json]
) -> Found | None:
    """A fact about a failure: what helped came after it, did not fail, and holds the copied command."""
    helped = account.events.get(text.get("helped", ""))
    if helped is None or not helped.is_call or helped.failed is not False:
        return None
    if int(text["helped"][1:]) < int(text["failed"][1:]):
        return None
    whole = account.masks.text(helped.command)
    if is_shell(helped.tool, account.agent):
        step = text.get("command") or account.masks.text(plain(helped.command))
        if not _stands(step, whole) or not _whole(step, whole) or going_around(whole) or len(step) < 3:
            return None
        step = short(step, SHOWN)
    else:
        step = one_line(f"{CHANGE}{whole}: {account.masks.text(helped.output)}", SHOWN)
    if going_around(step):
        return None
    core = account.masks.text(plain(failed.command))
    fails, works = short(core, SHOWN), _program(step) == _program(core)
    named = causes(account.masks.text(failed.output))
    causing = [f"  {line}" for line in error_lines(failed.output, named, account.masks)]
    steps = [f"works: {step}"] if works else lines_of((step,))
    content = "\n".join([f"fails: {fails}", *causing, *steps])
    return Found(
        title=sentence,
        content=content,
        description=f"When {one_line(core, 80)} fails with this error.",
        errors=keys(failed.output),
        mends=mends_of(content, (step,)),
        seen={
            **_seen(account, [failed.id, helped.id], helped.at or failed.at),
            "command": one_line(core, SHOWN),
            "fails": evidence(failed.output, account.masks),
            "works": evidence(helped.output, account.masks),
        },
        judged=judged,
    )


def _whole(step: str, line: str) -> bool:
    """Whether what was copied of a line begins where its commands begin, and runs nothing that is half a command."""
    lines = [list(words) for words in parts(line)]
    lines += [list(dropwhile(_ASSIGNED.match, words)) for words in lines]
    return all(any(words[: len(one)] == list(one) for words in lines) for one in parts(step))


def _program(command: str) -> str:
    return command.split()[0] if command.split() else ""


def _seen(account: Account, calls: list[str], at: float) -> dict[str, Json]:
    return {"agent": account.agent, "session": account.session, "calls": cast(Json, calls), "at": at}


def _stands(words: str, text: str) -> bool:
    """Whether words stand in a text as whole words, whatever blanks are between."""
    pattern = r"\s+".join(re.escape(word) for word in words.split())
    return bool(pattern) and re.search(rf"(?<![\w-]){pattern}(?![\w-])", text) is not None
