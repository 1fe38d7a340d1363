"""Finds in a session, without a model, what failed and was overcome, and how a user corrected the agent.

A pair is a command, file or test that failed and passed later, with what was done between. The search is a fold over
what happened, and its state is JSON: however a transcript is cut into several reads, the same is found once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from mulligan.core.codec import from_json, to_json
from mulligan.core.errors import InvalidInput
from mulligan.core.lesson_history import RULE
from mulligan.core.records import Json, Lesson, Origin
from mulligan.core.turns import Turn
from mulligan.sessions import commands, remedies, signature
from mulligan.sessions.agents import is_shell
from mulligan.sessions.corrections import correction_in, lasts, says_it_lasts, withdraws
from mulligan.sessions.effects import going_around
from mulligan.sessions.events import SHOWN
from mulligan.sessions.mends import mends_of, short_digest
from mulligan.sessions.overcoming import Open, Remedy, is_same, remedy_for, remedy_of_environment
from mulligan.sessions.plain_command import plain
from mulligan.sessions.remedies import CHANGE, Failure, words
from mulligan.sessions.signature import normalised
from mulligan.text.plain import one_line
from mulligan.text.secrets import MASK, Masks, one_mask

TAG, CORRECTION = "hook", "correction"
"""Tags of lessons that were learned from coding agents, and of those that quote a user."""
RULES = 4
"""The version of the rules that draw these lessons. Lessons of an earlier version are judged anew."""
OPEN, STEPS = 30, 12
"""Most open failures of a session, and most steps that are kept of one."""
HEAD, TAIL = 400, 1200
"""Characters of an output that are kept as evidence: from its beginning and its end."""
_FIRST, _LAST = 20_000, 60_000
"""Characters of an output that are searched for secrets and the error: from its beginning and its end."""
MAX_CORRECTION = 400
"""Characters that a correction has at most: a longer message is a task."""

_EXIT = re.compile(r"\A(?:Error: )?Exit code -?\d+\n?")
_ANY_HOME = re.compile(r"(?<![\w.~/-])/(?:home|Users)/[\w.-]+(?=/)")
_HOME = re.compile(rf"(?<![^\s=:]){_ANY_HOME.pattern}")
"""The home folder of any user, as a word of a command, so that the shell takes ~ for it."""
_WORD = re.compile(r"[A-Za-z]+")
_SOON = 3
"""How many things may happen after a failure until the agent says its cause."""


@dataclass(frozen=True)
class Found:
    """What can be learned from a session.

    Attributes:
        errors: the keys of the error; of a correction, the digest of what the user said.
        mends: the steps of the remedy by their keys; empty for a correction.
        seen: the evidence: agent, session, calls, both outputs, when.
        habit: it goes with the command, whatever the error was.
        refusal: the error of a call of a tool. The lesson is recalled if a query contains it.
        lasting: the user says that it holds from now on, which counts like a second sighting.
        inferred: no word says that it lasts, only the whole sentence.
        judged: who judged it, and how; empty: rules alone.
    """

    title: str
    content: str
    description: str
    errors: Sequence[str]
    mends: Mapping[str, str]
    seen: Mapping[str, Json]
    correction: bool = False
    lasting: bool = False
    inferred: bool = False
    habit: bool = False
    refusal: str = ""
    judged: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def session(self) -> str:
        return str(self.seen["session"])

    @property
    def call(self) -> str:
        """The id of the evidence: the session and the call that failed."""
        return f"{self.session}/{cast(list[str], self.seen['calls'])[0]}"

    def lesson(self) -> Lesson:
        """A draft of the candidate."""
        return Lesson(
            id="",
            title=self.title,
            content=self.content,
            outcome="success",
            description=self.description,
            origin=Origin("extracted", by=str(self.judged.get("by", RULE))),
            tags=(TAG, CORRECTION) if self.correction else (TAG,),
            context={
                "errors": list(self.errors),
                "mends": dict(self.mends),
                **({"habit": True} if self.habit else {}),
                **({"inferred": True} if self.inferred else {}),
                **({"refusal": self.refusal} if self.refusal else {}),
                "rules": RULES,
                "judged": dict(self.judged) or {"by": "rules"},
                "calls": [self.call],
                "seen": [dict(self.seen)],
            },
            nature="fact",
            confirmed=False,
        )


@dataclass(frozen=True)
class State:
    """The open failures of a session. after: the agent's last action, which the user's next message may correct."""

    agent: str
    session: str
    open: tuple[Open, ...] = ()
    after: str = ""
    after_call: str = ""

    def kept(self) -> Json:
        return to_json(self)

    @classmethod
    def of(cls, agent: str, session: str, kept: Json) -> State:
        """The state that was kept; an empty one if there is none, or one of another version."""
        try:
            return from_json(cls, kept)
        except InvalidInput:
            return cls(agent, session)


# --- the fold --------------------------------------------------------------------------------------------------------


def find(state: State, events: Iterable[Turn], masks: Masks | None = None) -> tuple[State, list[Found]]:
    """The state after these events, and what they overcome or correct.

    masks: learn the secrets in these events. What one event shows to be a secret is masked in all of them.
    """
    masks, events, lessons = masks or Masks(), list(events), list[Found]()
    quoted: Found | None = None  # from the user's message before
    for failure in state.open:
        masks.learn("\n".join((failure.command, failure.output, *failure.lines, *failure.steps)))  # its masks are taken
    for event in events:
        for text in (event.command, event.output) if event.is_call else (event.text,):
            masks.learn(_ends(text))
    state = replace(state, open=tuple(_masked(failure, masks) for failure in state.open), after=masks.text(state.after))
    for event in events:
        if not event.is_call:
            if event.who == "user":
                if withdraws(event.text):
                    lessons = [lesson for lesson in lessons if lesson != quoted]
                quoted = _correction(state, event, masks)
                lessons += [quoted] if quoted else []
                state = replace(state, after="", after_call="")
            else:
                state = _explained(state, masks.text(event.text))
            continue
        call = event
        shell = is_shell(call.tool, state.agent)
        if shell:
            call = call._replace(command=commands.within(call.folder, call.command))
            hidden = call.failed is False and commands.hides_its_end(call.command)
            call = _with_verdict(call) if hidden else call
            state, learned = (_after_view if hidden and call.failed is None else _after)(state, call, masks)
            lessons += learned
        elif call.failed is False and call.command and call.output.strip():
            state = _edited(state, call, masks)
        command = masks.text(plain(call.command) if shell else call.command)
        state = replace(state, after=one_line(command, SHOWN), after_call=call.id)
    return state, lessons


def _with_verdict(call: Turn) -> Turn:
    """A call whose exit code is not that of its command, with the verdict that its output shows, if it shows one."""
    if shown := commands.printed_exit_code(call.command, call.output):
        command, output, code = shown
        return call._replace(command=command, output=output, failed=code != 0)
    command = commands.before_tail(call.command)
    return call._replace(command=command) if command and signature.is_well(call.output) else call._replace(failed=None)


def _masked(failure: Open, masks: Masks) -> Open:
    """An open failure without the secrets that only later events showed."""
    lines, steps = (tuple(map(masks.text, texts)) for texts in (failure.lines, failure.steps))
    named = failure.named if lines == failure.lines else normalised(one_mask(lines[0]))
    command, output = masks.text(failure.command), masks.text(failure.output)
    return replace(failure, command=command, output=output, named=named, lines=lines, steps=steps)


def _explained(state: State, said: str) -> State:
    """The state after the agent said something, such as the cause of a failure, or that there is nothing to learn."""
    still_open: list[Open] = []
    for failure in state.open:
        if failure.since < _SOON:
            subject = words("\n".join((failure.command, *failure.lines, failure.output)))
            if remedies.says_nothing_to_learn(said) and words(said) & subject:
                continue
            if not failure.cause and (cause := remedies.cause_in(said)) and words(cause) & subject:
                failure = replace(failure, cause=cause)
        still_open.append(replace(failure, since=failure.since + 1))
    return replace(state, open=tuple(still_open))


def _edited(state: State, call: Turn, masks: Masks) -> State:
    """The state after an edit of a file."""
    change = [
        line
        for line in call.output.splitlines()
        if line[:1] in "+-" and line[1:].strip() and line[:3] not in ("+++", "---")
    ]
    step = one_line(masks.text(f"{CHANGE}{call.command}: {'  '.join(change[:4])}"), SHOWN)
    return replace(state, open=tuple(_with_step(failure, step) for failure in state.open))


def _with_step(failure: Open, *added: str) -> Open:
    steps = failure.steps if failure.closed else (*failure.steps, *added)[-STEPS:]
    return replace(failure, steps=steps, since=failure.since + 1)


def _after_view(state: State, call: Turn, masks: Masks) -> tuple[State, list[Found]]:
    """The state after a command of which only the output is known, such as `npm start | head`, and what it overcame: an
    error of the environment, if what it prints begins otherwise."""
    call = call._replace(command=commands.before_view(call.command))
    if not call.command or not call.output.strip() or signature.names_error(call.output):
        return state, []
    core, still_open, lessons = masks.text(plain(call.command)), list[Open](), list[Found]()
    for failure in state.open:
        if remedy := remedy_of_environment(failure, (), core, call, masks):
            lessons.append(_overcome(failure, call, remedy, masks))
        else:
            still_open.append(failure)
    return replace(state, open=tuple(still_open)), lessons


def _after(state: State, call: Turn, masks: Masks) -> tuple[State, list[Found]]:
    """The state after a command, and what the command overcame."""
    if call.failed is None or commands.only_looks(call.command):
        return state, []
    core, output = masks.text(plain(call.command)), _EXIT.sub("", call.output)
    failed, still_open, lessons = bool(call.failed), list[Open](), list[Found]()
    errors = signature.keys(output) if failed else ()
    causes = signature.causes(output) if errors else ()
    of_style = failed and not causes and remedies.checks_style(core)
    error = Failure(core, "\n".join(causes) or (signature.telling_lines(call.output) if failed else ""), call.output)
    reached_code = of_style or (error.is_of_code and not error.is_of_environment)
    matters = not failed and any(not failure.closed for failure in state.open)
    steps = [commands.short(step, SHOWN) for step in _steps(core, call, masks)] if matters else []
    for failure in state.open:
        if not failed:
            remedy = remedy_for(failure, core, call, masks)
            if remedy is None:
                still_open.append(_with_step(failure, *steps))
            elif remedy.steps and not any(map(going_around, remedy.steps)):
                lessons.append(_overcome(failure, call, remedy, masks))
        elif reached_code and (remedy := remedy_of_environment(failure, errors, core, call, masks)):
            lessons.append(_overcome(failure, call, remedy, masks))
        else:
            again = is_same(failure, core)
            if not again or (failure.errors and set(failure.errors).isdisjoint(errors)):
                still_open.append(replace(failure, since=failure.since + 1, closed=failure.closed or again))
            # else the same failure is opened anew, below
    lines = [*causes, *signature.telling_lines(call.output).splitlines()]
    if of_style or (causes and not remedies.is_transient("\n".join(map(normalised, lines)))):
        named = (core,) if of_style else _masked_signature(call, masks, signature.causes)
        still_open.append(
            Open(
                agent=state.agent,
                session=state.session,
                call=call.id,
                command=core,
                output=evidence(call.output, masks),
                errors=errors if causes else (),
                named=named[0],
                lines=error_lines(call.output, named, masks),
                at=call.at,
                subagent=call.subagent,
                variables=tuple(map(masks.text, commands.variables(call.command))),
                folder=commands.folder(call.command),
            )
        )
    return replace(state, open=tuple(still_open[-OPEN:])), lessons


def _steps(core: str, call: Turn, masks: Masks) -> list[str]:
    """The steps that a command is. One that goes around a safeguard keeps its variables, which may be what does so."""
    command = masks.text(" ".join((*commands.variables(call.command), core)))
    return [command] if going_around(command) else commands.chained(core) or [core]


def signature_of(call: Turn, agent: str) -> tuple[str, ...]:
    """The signature of the error of an agent's command; empty if the command did not fail, or only looks."""
    if not call.failed or not is_shell(call.tool, agent) or commands.only_looks(call.command):
        return ()
    return signature.signature(_EXIT.sub("", call.output))


def keys_of(call: Turn, agent: str) -> tuple[str, ...]:
    """The keys by which lessons about the error of an agent's command are found; empty if there was none.

    If a filter hides the exit code, an output that reports an error counts.
    """
    if not is_shell(call.tool, agent) or commands.only_looks(call.command):
        return ()
    if call.failed is False and commands.hides_its_end(call.command):
        call = _with_verdict(call)
        if call.failed is None and signature.names_error(call.output):
            shorter = commands.before_tail(call.command) or commands.before_view(call.command)
            call = call._replace(command=shorter or call.command, failed=True)
    return signature.keys_at(call.command, _EXIT.sub("", call.output)) if call.failed else ()


def words_of(call: Turn, masks: Masks) -> tuple[str, ...]:
    """The signature of the error of a command, masked, for people to read."""
    return _masked_signature(call, masks, signature.signature)


def _masked_signature(call: Turn, masks: Masks, read: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
    """What `read` finds in the output. It is masked before, as secrets cannot be found in normalised lines."""
    return read(_EXIT.sub("", one_mask(masks.text(_ends(call.output))))) or (MASK,)


def _overcome(failure: Open, call: Turn, remedy: Remedy, masks: Masks) -> Found:
    """What a failure and its remedy teach. call: the command that works."""
    steps = tuple(_HOME.sub("~", step) for step in remedy.steps)
    fails = _HOME.sub("~", remedy.fails)
    done = [f"works: {steps[0]}"] if remedy.works else remedies.lines_of(steps)
    if remedy.habit:
        title = f"{remedy.fails}: {steps[0]} fixes what it can"
        lines = [f"fails: {fails}", *done]
        errors = (signature.command_key(failure.command),)
    else:
        program = failure.program
        title = failure.named if failure.named.startswith(program) else f"{program}: {failure.named}"
        lines = [f"fails: {fails}", *(f"  {_ANY_HOME.sub('~', line)}" for line in failure.lines), *done]
        lines += [f'the agent said: "{failure.cause}"'] if failure.cause else []
        errors = (*failure.errors, *further_keys(failure.command, failure.output, steps, works=remedy.works))
    content = "\n".join(lines)
    return Found(
        title=one_line(title, 120),
        content=content,
        description=f"When {one_line(failure.command, 80)} fails{'' if remedy.habit else ' with this error'}.",
        errors=errors,
        habit=remedy.habit,
        mends=mends_of(content, steps),
        seen={
            "agent": failure.agent,
            "session": failure.session,
            "subagent": failure.subagent,
            "calls": [failure.call, call.id],
            "command": one_line(_HOME.sub("~", failure.command), SHOWN),
            "fails": failure.output,
            "works": evidence(call.output, masks),
            "at": call.at or failure.at,
        },
    )


def further_keys(command: str, output: str, steps: Sequence[str], *, works: bool) -> tuple[str, ...]:
    """The keys of an error, besides those of its lines, by which a lesson with this remedy is found.

    works: the only step is another form of the command. It holds for other arguments only where it has the same.
    """
    arguments = signature.argument_keys(command, output, steps if works else None)
    return (*signature.proposal_keys(output, steps), *arguments)


def _correction(state: State, message: Turn, masks: Masks) -> Found | None:
    """What the user says against the agent's last action, quoted; None for nothing."""
    text = message.text.strip()
    if not state.after or len(text) > MAX_CORRECTION:
        return None
    if not (correction := correction_in(text)) or (holds := lasts(correction)) is False:
        return None
    quoted = one_line(masks.text(correction), 300)
    return Found(
        title=one_line(f"The user: {quoted}", 120),
        content=f'after: {_HOME.sub("~", state.after)}\nthe user said: "{quoted}"',
        description="What the user of this project wants otherwise.",
        errors=(short_digest(quoted.casefold()),),
        mends={},
        seen={"agent": state.agent, "session": state.session, "calls": [state.after_call], "at": message.at},
        correction=True,
        lasting=holds is True,
        inferred=holds is True and not says_it_lasts(correction),
    )


def error_lines(output: str, words: Sequence[str], masks: Masks) -> tuple[str, ...]:
    """The lines of an output that name its error, as they are there, masked.

    words: the masked signature of the error.
    """
    named: dict[str, str] = {}
    # Normalising a line takes long, so only lines with the longest word of the signature are.
    longest = [max(_WORD.findall(line), key=len, default="") for line in words[:2]]
    for line in masks.text(_ends(output)).splitlines()[-2000:]:
        if any(word in line for word in longest) and (key := normalised(one_mask(line))) in words[:2]:
            named.setdefault(key, one_line(line, SHOWN))
    return tuple(named.values()) or tuple(one_line(line, SHOWN) for line in words[:2])


def evidence(output: str, masks: Masks) -> str:
    """An output, masked, without its middle if it is long."""
    output = masks.text(_ends(output))
    return output if len(output) <= HEAD + TAIL else f"{output[:HEAD]}\n[...]\n{output[-TAIL:]}"


def _ends(text: str) -> str:
    """The text without its middle if it is very long. The cut is far from all that is kept as evidence."""
    if len(text) <= _FIRST + _LAST:
        return text
    return f"{text[:_FIRST]}\n[...]\n{text[-_LAST:].partition(chr(10))[2] or text[-_LAST:]}"
