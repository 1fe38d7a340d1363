"""Find in a session, without a model, what failed and was overcome, and how a user corrected the agent.

A pair is a command, file or test that failed and was green later, with what was done between. The search is a fold over
what happened, and its state is JSON: however a transcript is cut into several reads, the same is found once.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from mulligan.core.codec import from_json, to_json
from mulligan.core.errors import InvalidInput
from mulligan.core.lesson_history import RULE
from mulligan.core.records import Json, Lesson, Origin
from mulligan.core.turns import Turn
from mulligan.sessions.agents import is_shell
from mulligan.sessions.commands import (
    before_tail,
    chained,
    changes_nothing,
    differences,
    folder,
    hides_its_end,
    only_looks,
    parts,
    printed_exit_code,
    short,
    variables,
    within,
)
from mulligan.sessions.corrections import correction_in, lasts, withdraws
from mulligan.sessions.effects import going_around
from mulligan.sessions.events import SHOWN
from mulligan.sessions.mends import mends_of, short_digest
from mulligan.sessions.other_forms import done_first, other_form_counts, variables_count
from mulligan.sessions.plain_command import plain
from mulligan.sessions.remedies import (
    CHANGE,
    Failure,
    asserts,
    cause_in,
    checks_style,
    fixer_in,
    is_transient,
    lines_of,
    says_nothing_to_learn,
    steps_that_count,
    words,
)
from mulligan.sessions.signature import (
    causes,
    command_key,
    is_well,
    keys,
    normalised,
    proposal_keys,
    signature,
    telling_lines,
)
from mulligan.text.plain import one_line
from mulligan.text.secrets import MASK, Masks, one_mask

TAG, CORRECTION = "hook", "correction"
"""Tags of lessons that were learned from coding agents, and of those that quote a user."""
RULES = 3
"""By what these lessons are drawn, and the version of it: lessons of an earlier one are judged anew."""
OPEN, STEPS = 30, 12
"""Failures of a session that are kept in mind; steps between a failure and its end."""
HEAD, TAIL = 400, 1200
"""Characters of an output that are kept as evidence: from its beginning and its end."""
_FIRST, _LAST = 20_000, 60_000
"""Characters of an output in which secrets and the error are looked for: at its beginning and its end."""
SAID = 400
"""Characters of a correction at most: what is longer is a task."""

_EXIT = re.compile(r"\A(?:Error: )?Exit code -?\d+\n?")
_ANY_HOME = re.compile(r"(?<![\w.~/-])/(?:home|Users)/[\w.-]+(?=/)")
_HOME = re.compile(rf"(?<![^\s=:]){_ANY_HOME.pattern}")
"""A home folder, which is another one for each user: as a word of a command, where the shell takes ~ for it."""
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z]+")
_SOON = 3
"""Things that happen after a failure among which the agent may say its cause."""
_TESTS = re.compile(r"\b(pytest|unittest|jest|vitest|mocha|rspec|phpunit|cargo test|go test|npm test|tox|nox|ctest)\b")
_INSTALLS = re.compile(r"\b(?:install|add|i)\s")
_TALKS = re.compile(r"(?:git|gh|echo|printf)\s")
"""Commands whose words are texts."""


@dataclass(frozen=True)
class Open:
    """A command that failed and was not overcome yet.

    Attributes:
        errors: what its error is known by, see `signature.keys`; empty for a check of style whose output names none.
        named: what is wrong, in a line.
        lines: the lines of the output that say so, as they stand there.
        steps: what was done since.
        variables: those that were set for the command, such as "CI=1".
        folder: the folder that the command line changed to.
        cause: the sentence in which the agent said why it failed.
        since: how much happened since.
        closed: the same was run again, and failed for another reason: what is done from then on is about that.
    """

    agent: str
    session: str
    call: str
    command: str
    output: str
    errors: tuple[str, ...]
    named: str
    lines: tuple[str, ...]
    at: float = 0.0
    subagent: str = ""
    steps: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    folder: str = ""
    cause: str = ""
    since: int = 0
    closed: bool = False


@dataclass(frozen=True)
class Found:
    """What is to be learned.

    Attributes:
        errors: what the error is known by; of a correction, the digest of what the user said.
        mends: what each step that mended it is known by; empty for a correction.
        seen: the evidence: agent, session, calls, both outputs, when.
        habit: it goes with the command, whatever its error was.
        refusal: the error of a call of a tool; a recall gives the fact where the query holds that error.
        lasting: the user says that it holds from now on, which counts like a second sighting.
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
    habit: bool = False
    refusal: str = ""
    judged: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def session(self) -> str:
        return str(self.seen["session"])

    @property
    def call(self) -> str:
        """What the evidence is known by: the session and the call that failed."""
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
    """What a session has open. after: the agent's last action, which a user who speaks now may correct."""

    agent: str
    session: str
    open: tuple[Open, ...] = ()
    after: str = ""
    after_call: str = ""

    def kept(self) -> Json:
        return to_json(self)

    @classmethod
    def of(cls, agent: str, session: str, kept: Json) -> State:
        """The state that was kept; an empty one where there is none, or another version's."""
        try:
            return from_json(cls, kept)
        except InvalidInput:
            return cls(agent, session)


# --- what happened ---------------------------------------------------------------------------------------------------


def happened(turns: Iterable[Turn], *, subagent: str = "", folder: str = "") -> Iterator[Turn]:
    """The calls that have come back, and what was said, in order, each with an id that is its own in the session."""
    made: dict[str, Turn] = {}
    said = 0
    for turn in turns:
        if turn.role == "assistant" and turn.tool:
            made[turn.id] = turn
        elif turn.role == "tool":
            if turn.id and (call := made.pop(turn.id, None)) is not None:
                command, change = command_of(call.text)
                ran = turn.folder or call.folder or folder
                output = turn.text if not change or turn.failed else change
                yield Turn("tool", turn.text, call.tool, turn.id, turn.failed, turn.at, ran, command, output, subagent)
        elif turn.role in ("user", "assistant"):
            said += 1
            yield turn if turn.id else turn._replace(id=f"said:{said}")


def command_of(arguments: str) -> tuple[str, str]:
    """The command line or the path of the file in a call's arguments, and what the call takes out and puts in."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        paths = _PATCHED.findall(arguments)
        return (", ".join(paths), arguments) if paths else (arguments.strip(), "")
    table = cast(Mapping[str, Any], given)
    for key in ("command", "cmd", "script"):
        value = table.get(key)
        if isinstance(value, list):
            words = [str(word) for word in cast(list[Any], value)]
            value = words[2] if words[1:2] in (["-lc"], ["-c"]) and len(words) == 3 else shlex.join(words)
        if isinstance(value, str) and value.strip():
            return value.strip(), ""
    if isinstance(patch := table.get("input") or table.get("patch"), str) and (paths := _PATCHED.findall(patch)):
        return ", ".join(paths), patch
    for key in ("file_path", "filePath", "absolute_path", "notebook_path", "path", "file"):
        if isinstance(path := table.get(key), str) and path:
            return path, _change(table)
    return "", ""


def _change(table: Mapping[str, Any]) -> str:
    old, new = (
        next((one for key in keys if isinstance(one := table.get(key), str)), "")
        for keys in (
            ("old_string", "oldString", "old_str"),
            ("new_string", "newString", "new_str", "content", "file_text"),
        )
    )
    was, now = set(old.splitlines()), set(new.splitlines())
    removed = [f"-{line}" for line in old.splitlines() if line not in now and line.strip()]
    added = [f"+{line}" for line in new.splitlines() if line not in was and line.strip()]
    return "\n".join([*removed[:3], *added[:3]]) or " "


# --- the fold --------------------------------------------------------------------------------------------------------


def find(state: State, events: Iterable[Turn], masks: Masks | None = None) -> tuple[State, list[Found]]:
    """What these events overcome or correct, and the state after them.

    masks: learn the secrets in these events. What one event shows to be a secret is masked in all of them.
    """
    masks, events, found = masks or Masks(), list(events), list[Found]()
    said: list[Found] = []  # in the user's message before
    for one in state.open:
        masks.learn("\n".join((one.command, one.output, *one.lines, *one.steps)))  # its masks are taken
    for event in events:
        for text in (event.command, event.output) if event.is_call else (event.text,):
            masks.learn(_ends(text))
    state = replace(state, open=tuple(_masked(one, masks) for one in state.open), after=masks.text(state.after))
    for event in events:
        if not event.is_call:
            if event.who == "user":
                if withdraws(event.text):
                    found = [one for one in found if one not in said]
                said = list(_corrections(state, event, masks))
                found += said
                state = replace(state, after="", after_call="")
            else:
                state = _explained(state, masks.text(event.text))
            continue
        call = event
        shell = is_shell(call.tool, state.agent)
        if shell:
            if call.failed is False and hides_its_end(call.command):
                call = _with_verdict(call)
            call = call._replace(command=within(call.folder, call.command))
            state, more = _after(state, call, masks)
            found += more
        elif call.failed is False and call.command and call.output.strip():
            state = _edited(state, call, masks)
        command = masks.text(plain(call.command) if shell else call.command)
        state = replace(state, after=one_line(command, SHOWN), after_call=call.id)
    return state, found


def _with_verdict(call: Turn) -> Turn:
    """A call whose exit code is not its command's, with the verdict that its output shows; None where it shows none."""
    if shown := printed_exit_code(call.command, call.output):
        command, output, code = shown
        return call._replace(command=command, output=output, failed=code != 0)
    whole = before_tail(call.command)
    return call._replace(command=whole) if whole and is_well(call.output) else call._replace(failed=None)


def _masked(one: Open, masks: Masks) -> Open:
    """An open failure without what only later events show to be a secret."""
    lines, steps = (tuple(map(masks.text, texts)) for texts in (one.lines, one.steps))
    named = one.named if lines == one.lines else normalised(one_mask(lines[0]))
    command, output = masks.text(one.command), masks.text(one.output)
    return replace(one, command=command, output=output, named=named, lines=lines, steps=steps)


def _explained(state: State, said: str) -> State:
    """The state after the agent said something: the cause of what has just failed, or that it teaches nothing."""
    left: list[Open] = []
    for one in state.open:
        if one.since < _SOON:
            about = words("\n".join((one.command, *one.lines, one.output)))
            if says_nothing_to_learn(said) and words(said) & about:
                continue
            if not one.cause and (cause := cause_in(said)) and words(cause) & about:
                one = replace(one, cause=cause)
        left.append(replace(one, since=one.since + 1))
    return replace(state, open=tuple(left))


def _edited(state: State, call: Turn, masks: Masks) -> State:
    """The state after an edit of a file."""
    change = [
        line
        for line in call.output.splitlines()
        if line[:1] in "+-" and line[1:].strip() and line[:3] not in ("+++", "---")
    ]
    step = one_line(masks.text(f"{CHANGE}{call.command}: {'  '.join(change[:4])}"), SHOWN)
    return replace(state, open=tuple(_with_step(one, step) for one in state.open))


def _with_step(one: Open, *more: str) -> Open:
    steps = one.steps if one.closed else (*one.steps, *more)[-STEPS:]
    return replace(one, steps=steps, since=one.since + 1)


def _after(state: State, call: Turn, masks: Masks) -> tuple[State, list[Found]]:
    """The state after a command, and what it was the end of."""
    if call.failed is None or only_looks(call.command):
        return state, []
    core, steps = masks.text(plain(call.command)), list[str]()
    errors = keys(_EXIT.sub("", call.output)) if call.failed else ()
    about = causes(_EXIT.sub("", call.output)) if errors else ()
    ran = Failure(core, "\n".join(about) or (telling_lines(call.output) if call.failed else ""), call.output)
    of_style = call.failed and not about and checks_style(core)
    ran_on = of_style or (ran.is_of_code and not ran.is_of_environment)
    if not call.failed and any(not one.closed for one in state.open):
        whole = masks.text(" ".join((*variables(call.command), core)))
        # of one that goes around a safeguard, what it sets is what is wrong with it
        steps = [whole] if going_around(whole) else chained(core) or [core]
    left: list[Open] = []
    found: list[Found] = []
    for one in state.open:
        if call.failed:
            again = _same(one, core)
            if ran_on and (remedy := _remedy_of_environment(one, errors, core, call, masks)):
                found.append(_overcome(one, call, remedy, masks))
            elif not (
                again and (not one.errors or set(one.errors) & set(errors))
            ):  # else it failed again, and is open anew
                left.append(replace(one, since=one.since + 1, closed=one.closed or again))
        elif (remedy := _remedy(one, core, call, masks)) is None:
            left.append(_with_step(one, *(short(step, SHOWN) for step in steps)))
        elif remedy.steps and not any(map(going_around, remedy.steps)):
            found.append(_overcome(one, call, remedy, masks))
    told = "\n".join(map(normalised, (*about, *telling_lines(call.output).splitlines()))) if about else ""
    if of_style or (about and not is_transient(told)):
        named = (core,) if of_style else causes(_EXIT.sub("", one_mask(masks.text(_ends(call.output))))) or (MASK,)
        made = Open(
            state.agent,
            state.session,
            call.id,
            core,
            evidence(call.output, masks),
            errors if about else (),
            named[0],
            error_lines(call.output, named, masks),
            call.at,
            call.subagent,
            variables=tuple(map(masks.text, variables(call.command))),
            folder=folder(call.command),
        )
        left.append(made)
    return replace(state, open=tuple(left[-OPEN:])), found


def _remedy(one: Open, core: str, call: Turn, masks: Masks) -> Remedy | None:
    """How a command that works overcame a failure: an empty remedy where it is over and nothing says by what; None
    where the command has nothing to do with it."""
    fixer = fixer_in(one.steps, one.command) or _fixer_before(one, core)
    if not one.errors:  # nothing is known of what it found, but its own fixer
        return Remedy(short(one.command, SHOWN), (fixer,), habit=True) if fixer and _same(one, core) else None
    failure = _failure(one.command, one.lines, one.output)
    edited = any(step.startswith(CHANGE) for step in one.steps)
    changed = edited or not (failure.is_of_environment or all(map(changes_nothing, one.steps)))
    if not one.closed and (first := done_first(core, failure)):
        return Remedy(short(one.command, SHOWN), tuple(first))
    if core != one.command and not one.closed and other_form_counts(core, failure, edited=edited):
        fails, works = differences(one.command, core, SHOWN)
        return Remedy(fails, (works,), works=True)
    if not _same(one, core):
        return None
    fails = short(one.command, SHOWN)
    new = [each for each in map(masks.text, variables(call.command)) if each not in one.variables]
    if new and not one.closed and variables_count(new, failure, edited=changed):
        return Remedy(fails, (short(" ".join((*new, core)), SHOWN),), works=True)
    if counts := steps_that_count(one.steps, failure):
        return Remedy(fails, tuple(counts))
    now = masks.text(folder(call.command))
    of_code = failure.is_of_code and not failure.is_of_environment
    if not of_code and not one.steps and now and now != one.folder and core == one.command:
        return Remedy(fails, (short(f"cd {now} && {core}", SHOWN),), works=True)
    return Remedy(fails, (fixer,), habit=True) if fixer else Remedy(fails)


def _remedy_of_environment(one: Open, errors: Sequence[str], core: str, call: Turn, masks: Masks) -> Remedy | None:
    """How a command overcame an error of the environment, though what it ran then found another error, in the code."""
    if (
        not one.errors
        or set(one.errors) & set(errors)
        or not Failure(one.command, "\n".join(one.lines), "").is_of_environment
    ):
        return None
    remedy = _remedy(one, core, call, masks)
    return remedy if remedy and remedy.steps and not any(map(going_around, remedy.steps)) else None


def _fixer_before(one: Open, core: str) -> str:
    """The fixer that a line runs before the check that failed, as in `make fmt && make lint`, if no file was edited."""
    line = chained(core)
    if one.command not in line or any(step.startswith(CHANGE) for step in one.steps):
        return ""
    return fixer_in(line[: line.index(one.command)], one.command)


@dataclass(frozen=True)
class Remedy:
    """What overcame a failure.

    Attributes:
        fails: the command, as a lesson shows it.
        steps: what was done, or with `works` the command that works instead.
        habit: it goes with the command, whatever its error was.
    """

    fails: str
    steps: tuple[str, ...] = ()
    works: bool = False
    habit: bool = False


def _failure(command: str, lines: Sequence[str], output: str) -> Failure:
    """What failed, by the lines that name it and all that tell something of it, but what an assertion quotes."""
    if all(map(asserts, lines)):
        return Failure(command, "\n".join(line.partition(":")[0] for line in lines), output)
    return Failure(command, "\n".join((*lines, telling_lines(output))), output)


def stands(content: str, command: str, output: str) -> bool:
    """Whether what a lesson says would be learned today from the same failure: its text, the whole command as far as it
    was kept, and the output."""
    lines = [line.strip() for line in content.split("\n")]
    at = next((n for n, line in enumerate(lines) if line.startswith(("works:", "works after:"))), len(lines))
    steps = [line for line in lines[at + 1 :] if line and not line.startswith(("why:", "the agent said:"))]
    told = telling_lines(output)
    failure = _failure(command, causes(output), output)
    if at == len(lines) or not told or is_transient(told):
        return False
    if works := lines[at].removeprefix("works:").removeprefix("works after:").strip():
        new = [each for each in variables(works) if each not in variables(command)]
        if new and plain(works) == command:
            return variables_count(new, failure, edited=False)
        return bool(done_first(works, failure)) or other_form_counts(works, failure, edited=False)
    return set(steps) == set(steps_that_count(steps, failure)) or fixer_in(steps, command) in steps


def signature_of(call: Turn, agent: str) -> tuple[str, ...]:
    """The signature of the error of an agent's command; empty if it has not failed, or only looked."""
    if not call.failed or not is_shell(call.tool, agent) or only_looks(call.command):
        return ()
    return signature(_EXIT.sub("", call.output))


def words_of(call: Turn, masks: Masks) -> tuple[str, ...]:
    """The signature of what failed, to be read by people: of the masked output, as normalising changes secrets."""
    return signature(_EXIT.sub("", one_mask(masks.text(_ends(call.output))))) or (MASK,)


def _overcome(one: Open, call: Turn, remedy: Remedy, masks: Masks) -> Found:
    program, steps = _program(one), remedy.steps
    named = one.named if one.named.startswith(program) else f"{program}: {one.named}"
    steps = tuple(_HOME.sub("~", step) for step in steps)
    lines = [f"fails: {_HOME.sub('~', remedy.fails)}"]
    lines += [] if remedy.habit else [f"  {_ANY_HOME.sub('~', line)}" for line in one.lines]
    lines += [f"works: {steps[0]}"] if remedy.works else lines_of(steps)
    if one.cause and not remedy.habit:
        lines.append(f'the agent said: "{one.cause}"')
    content = "\n".join(lines)
    return Found(
        title=one_line(f"{remedy.fails}: {steps[0]} fixes what it can" if remedy.habit else named, 120),
        content=content,
        description=f"When {one_line(one.command, 80)} fails{'' if remedy.habit else ' with this error'}.",
        errors=(command_key(one.command),) if remedy.habit else (*one.errors, *proposal_keys(one.output, steps)),
        habit=remedy.habit,
        mends=mends_of(content, steps),
        seen={
            "agent": one.agent,
            "session": one.session,
            "subagent": one.subagent,
            "calls": [one.call, call.id],
            "command": one_line(_HOME.sub("~", one.command), SHOWN),
            "fails": one.output,
            "works": evidence(call.output, masks),
            "at": call.at or one.at,
        },
    )


def _program(one: Open) -> str:
    if found := _TESTS.search(one.command):
        return found[0]
    return (_words(one.command) or ["?"])[0].rpartition("/")[2]


def _corrections(state: State, said: Turn, masks: Masks) -> Iterator[Found]:
    """What the user says against the agent's last action, quoted."""
    text = said.text.strip()
    if not state.after or len(text) > SAID:
        return
    if not (correction := correction_in(text)) or (holds := lasts(correction)) is False:
        return
    quoted = one_line(masks.text(correction), 300)
    yield Found(
        title=one_line(f"The user: {quoted}", 120),
        content=f'after: {state.after}\nthe user said: "{quoted}"',
        description="What the user of this project wants otherwise.",
        errors=(short_digest(quoted.casefold()),),
        mends={},
        seen={"agent": state.agent, "session": state.session, "calls": [state.after_call], "at": said.at},
        correction=True,
        lasting=holds is True,
    )


# --- what is the same ------------------------------------------------------------------------------------------------


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _same(one: Open, core: str) -> bool:
    """Whether a command, plain and masked, is the one that failed, has it as one of several, or runs the same test or
    all tests."""
    command, failed = one_mask(core), one_mask(one.command)
    if command == failed or failed in chained(command):
        return True
    if "||" in command or all(
        _TALKS.match(" ".join(words)) for words in parts(command) if _TESTS.search(" ".join(words))
    ):
        return False  # what it runs may have failed, or is only named in a text
    if not (ran := _TESTS.search(failed)) or not (again := _TESTS.search(command)) or ran[0] != again[0]:
        return False
    if _INSTALLS.search(command[: again.start()]):
        return False
    targets, now = (_targets(text[match.end() :]) for text, match in ((failed, ran), (command, again)))
    return not now or (bool(targets) and all(any(_within(one, other) for other in now) for one in targets))


def _targets(arguments: str) -> list[str]:
    return [
        word for word in _words(arguments) if not word.startswith("-") and ("/" in word or "." in word or ":" in word)
    ]


def _within(target: str, other: str) -> bool:
    """Whether a test stands in another, or in its file or folder."""
    return target == other or target.startswith((f"{other}::", f"{other.rstrip('/')}/"))


def error_lines(output: str, words: Sequence[str], masks: Masks) -> tuple[str, ...]:
    """The lines of the output that name the error, as they stand there. words: its signature, masked."""
    named: dict[str, str] = {}
    longest = [max(_WORD.findall(one), key=len, default="") for one in words[:2]]  # normalising each line takes long
    for line in masks.text(_ends(output)).splitlines()[-2000:]:
        if any(word in line for word in longest) and (key := normalised(one_mask(line))) in words[:2]:
            named.setdefault(key, one_line(line, SHOWN))
    return tuple(named.values()) or tuple(one_line(line, SHOWN) for line in words[:2])


def evidence(output: str, masks: Masks) -> str:
    """An output, masked, its middle left out where it is long."""
    output = masks.text(_ends(output))
    return output if len(output) <= HEAD + TAIL else f"{output[:HEAD]}\n[...]\n{output[-TAIL:]}"


def _ends(text: str) -> str:
    """The text without its middle where it is very long. The cut lies far from all that is kept."""
    if len(text) <= _FIRST + _LAST:
        return text
    return f"{text[:_FIRST]}\n[...]\n{text[-_LAST:].partition(chr(10))[2] or text[-_LAST:]}"
