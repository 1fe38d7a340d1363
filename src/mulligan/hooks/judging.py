"""Asks a judge about a session, and checks its answer.

Rules find little and are seldom wrong. A judge that the user has named says which events made the difference, and which
sentence of the user holds beyond the task. Its answer is checked: each id has to be one of the account, each command
and quotation has to occur there literally, and nothing may go around a safeguard (design/131).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import chain, dropwhile
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

MAX_FACTS = 3
"""How many facts of one answer are kept."""
MAX_SENTENCE = 240
"""Characters that a fact has at most."""
MAX_ACCOUNT = 24_000
"""Characters that an account has at most."""
RULES_ALONE, PERSON, AGENT = "rules", "person", "agent"
"""Who judged a lesson, besides models and command lines: `judged` in its context."""
_AFTER = 14
"""How many events after a failure the account has."""
_SOON = 3
"""How many events after a failure may pass until the agent says its cause."""
_USER, _AGENT, _CAUSE = 400, 220, 200
"""Characters that the account has of what the user said, of what the agent said, and of a line of an error."""
_QUOTED = re.compile(r"`([^`\n]+)`|[\"“]([^\"”\n]*\w [^\"”\n]+)[\"”]|(?<!\w)['‘]([^'‘’\n]*\w [^'‘’\n]+)['’](?!\w)")
"""A quotation: in backticks, or several words in other quotes."""
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
        question: the whole question; "" if there is nothing to ask.
        text: the text of all events, masked.
        events: the events by their ids in the account, such as F2.
        after: for each message of the user, the last call before it, by the id of the message.
        lessons: the ids of the lessons by their ids in the account, such as L1.
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
    """What passed of an answer: facts to keep; and for lessons, by their ids, True, False, or a better sentence."""

    facts: tuple[Found, ...] = ()
    lessons: Mapping[str, bool | str] = field(default_factory=dict[str, "bool | str"])


def account_of(agent: str, session: str, events: Sequence[Turn], lessons: Sequence[Lesson]) -> Account:
    """The account of a session, with the question to the judge. lessons: those that rules drew from the session."""
    masks = Masks()
    for event in events:
        for text in (event.command, event.output[-4000:]) if event.is_call else (event.text,):
            masks.learn(text)
    lines, events_by_id, after = _lines_and_events(agent, events, masks)
    ids_of_lessons = {f"L{n}": lesson.id for n, lesson in enumerate(lessons, 1)}
    drawn = [f"L{n} {lesson.title}\n{_indented(lesson.content)}" for n, lesson in enumerate(lessons, 1)]
    kinds = [id[0] for id in events_by_id]
    if not lessons and "F" not in kinds and kinds.count("U") < 2:
        return Account(agent, session, masks)
    text = fenced(masks.text("\n".join(lines)))
    if drawn:
        text += "\n\nRules drew these lessons from it:\n\n" + fenced(masks.text("\n".join(drawn)))
    texts = ((event.command, event.output) if event.is_call else (event.text,) for event in events_by_id.values())
    return Account(
        agent,
        session,
        masks,
        question=_question().format(account=text),
        text=masks.text("\n".join(chain.from_iterable(texts))),
        events=events_by_id,
        after=after,
        lessons=ids_of_lessons,
    )


@cache
def _question() -> str:
    return files("mulligan.hooks").joinpath("judging.md").read_text("utf-8").strip()


def _lines_and_events(
    agent: str, events: Sequence[Turn], masks: Masks
) -> tuple[list[str], dict[str, Turn], dict[str, Turn]]:
    """The account, with one or more lines for each event; its events by their ids; and `Account.after`."""
    lines: dict[str, str] = {}
    events_by_id: dict[str, Turn] = {}
    after: dict[str, Turn] = {}
    since = _AFTER  # events since the last failure
    known_errors = set[str]()
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
                if not known_errors.issuperset(errors):
                    kind = "F"
                    named_lines = error_lines(event.output, causes(masks.text(event.output)), masks)
                    line = "\n".join([f"failed: {command}", *(f"    {named_line}" for named_line in named_lines)])
                    known_errors.update(errors)
                since = 0
            elif event.failed is False and since <= _AFTER and shell and not only_looks(event.command):
                kind, line = "C", f"worked: {command}"
            elif event.failed is False and since <= _AFTER and not shell and event.output[:1] in "+-":
                kind, line = "E", f"changed: {event.command}: {one_line(masks.text(event.output), _CAUSE)}"
        if kind and not set(flags_of(line)) - _of_commands():  # texts that address a model are left out
            id = f"{kind}{len(events_by_id) + 1}"
            events_by_id[id], lines[id] = event, f"{id} {line}"
            if kind == "U" and last is not None:
                after[id] = last
        if event.is_call:
            last = event
    for expendable in ("E", "A", "C", "F", "U"):  # the least important go first, until the rest fits
        for id in [id for id in lines if id[0] == expendable]:
            if sum(map(len, lines.values())) <= MAX_ACCOUNT:
                break
            del lines[id], events_by_id[id]
    return list(lines.values()), events_by_id, after


@cache
def _of_commands() -> frozenset[str]:
    """The flags of commands. A session may have run such commands; the checks of an answer look for them again."""
    return frozenset(flag for flag, _ in patterns("commands"))


def _indented(text: str) -> str:
    return "\n".join(f"    {line.strip()}" for line in text.splitlines())


def believed(account: Account, answer: Json, by: str) -> Verdict:
    """What passes the checks of a judge's answer. by: who answered."""
    fields = as_record(answer)
    checked = (_fact(account, fact, by) for fact in inner_list(fields, "facts")[:MAX_FACTS])
    facts = [fact for fact in checked if fact is not None]
    lessons: dict[str, bool | str] = {}
    for name, verdict in inner(fields, "lessons").items():
        if (id := account.lessons.get(name)) and isinstance(verdict, str):
            if (decision := _VERDICTS.get(verdict.strip(" .!").casefold())) is not None:
                lessons[id] = decision
            elif sentence := believable(account.masks.text(verdict), account.text):
                lessons[id] = sentence
    return Verdict(tuple(facts), lessons)


def believable(sentence: str, within: str) -> str:
    """A sentence in the form in which it may be kept; "" if it may not be.

    It may not if it is too short or too long, if the screening of lessons flags it, or if it quotes what is not in the
    evidence. within: the evidence.
    """
    sentence = one_line(sentence, MAX_SENTENCE + 1)
    if not 12 <= len(sentence) <= MAX_SENTENCE or flags_of(sentence) or _TAG.search(sentence):
        return ""
    if MASK in sentence or sentence.count("`") % 2:
        return ""
    quoted = ("".join(groups) for groups in _QUOTED.findall(sentence))
    return "" if any(not _stands(words, within) for words in quoted) else sentence


def _fact(account: Account, raw: Mapping[str, Any], by: str) -> Found | None:
    text = {name: value.strip() for name, value in raw.items() if isinstance(value, str)}
    sentence = believable(account.masks.text(text.get("fact", "")), account.text)
    if not sentence:
        return None
    judged: Mapping[str, Json] = {"by": by, "verdict": "fact"}
    failed = account.events.get(text.get("failed", ""))
    if failed is not None and failed.is_call and failed.failed:
        return _overcome(account, sentence, failed, text, judged)
    message = account.events.get(text.get("said", ""))
    if message is not None and not message.is_call and message.who == "user":
        quote = one_line(account.masks.text(text.get("quote", "")), 300)
        if len(quote) < 8 or not _stands(quote, account.masks.text(message.text)) or lasts(quote) is False:
            return None
        before = account.after.get(text["said"])
        last_action = one_line(account.masks.text(plain(before.command)), SHOWN) if before and before.command else ""
        return Found(
            title=sentence,
            content="\n".join(filter(None, (last_action and f"after: {last_action}", f'the user said: "{quote}"'))),
            description="What the user of this project wants.",
            errors=(short_digest(quote.casefold()),),
            mends={},
            seen=_seen(account, [before.id if before else text["said"]], message.at),
            correction=True,
            lasting=True,
            judged=judged,
        )
    return None


def _overcome(
    account: Account, sentence: str, failed: Turn, text: Mapping[str, str], judged: Mapping[str, Json]
) -> Found | None:
    """A fact about a failure; None if what helped came before it, failed, or does not have the quoted command."""
    helped = account.events.get(text.get("helped", ""))
    if helped is None or not helped.is_call or helped.failed is not False:
        return None
    if int(text["helped"][1:]) < int(text["failed"][1:]):
        return None
    full_command = account.masks.text(helped.command)
    if is_shell(helped.tool, account.agent):
        step = text.get("command") or account.masks.text(plain(helped.command))
        if (
            not _stands(step, full_command)
            or not _begins_whole(step, full_command)
            or going_around(full_command)
            or len(step) < 3
        ):
            return None
        step = short(step, SHOWN)
    else:
        step = one_line(f"{CHANGE}{full_command}: {account.masks.text(helped.output)}", SHOWN)
    if going_around(step):
        return None
    core = account.masks.text(plain(failed.command))
    fails, works = short(core, SHOWN), _program(step) == _program(core)
    error_causes = causes(account.masks.text(failed.output))
    causing = [f"  {line}" for line in error_lines(failed.output, error_causes, account.masks)]
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


def _begins_whole(step: str, line: str) -> bool:
    """Whether a step begins where a command of the line begins, and has only whole words of its commands."""
    lines = [list(words) for words in parts(line)]
    lines += [list(dropwhile(_ASSIGNED.match, words)) for words in lines]
    return all(any(words[: len(command)] == list(command) for words in lines) for command in parts(step))


def _program(command: str) -> str:
    return command.split()[0] if command.split() else ""


def _seen(account: Account, calls: list[str], at: float) -> dict[str, Json]:
    return {"agent": account.agent, "session": account.session, "calls": cast(Json, calls), "at": at}


def _stands(words: str, text: str) -> bool:
    """Whether a text has these words, as whole words, with any blanks between them."""
    pattern = r"\s+".join(re.escape(word) for word in words.split())
    return bool(pattern) and re.search(rf"(?<![\w-]){pattern}(?![\w-])", text) is not None
