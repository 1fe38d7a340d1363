"""Find in a session, without a model, what failed and was overcome, and how a user corrected the agent.

A pair is a command, file or test that failed and was green later, with what was done between. The search is a fold over
what happened, and its state is JSON: however a transcript is cut into several reads, the same is found once.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, TypeAlias, cast

from mulligan.core.codec import from_json, to_json
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Turn
from mulligan.core.records import Json, Lesson, Origin
from mulligan.hooks.corrections import correction_in
from mulligan.hooks.events import Call, Said
from mulligan.hooks.recall import SHOWN
from mulligan.hooks.signature import digest, normalised, signature
from mulligan.text.plain import one_line
from mulligan.text.safeguards import going_around
from mulligan.text.secrets import MASK, Masks, one_mask

TAG, CORRECTION = "hook", "correction"
"""Tags of lessons that were learned from coding agents, and of those that quote a user."""
RULE = "rule"
OPEN, STEPS = 30, 4
"""Failures of a session that are kept in mind; steps between a failure and its end."""
HEAD, TAIL = 400, 1200
"""Characters of an output that are kept as evidence: from its beginning and its end."""
_FIRST, _LAST = 20_000, 60_000
"""Characters of an output in which secrets and the error are looked for: at its beginning and its end."""
SAID = 400
"""Characters of a correction at most: what is longer is a task."""
ALIKE, _WORDY = 0.6, 120
"""How alike two commands are of which one stands in for the other; words of both together: a script is no command."""

Happened: TypeAlias = "Call | Said"

_SHELLS = ("bash", "shell", "exec_command", "run_shell_command", "local_shell", "terminal", "run_terminal_cmd")
_READERS = ("read", "read_file", "view", "grep", "glob", "ls", "list", "search", "webfetch", "websearch", "todowrite")
_LOOKS = re.compile(
    r"(ls|cat|head|tail|grep|rg|find|fd|pwd|which|type|echo|printf|wc|tree|stat|file|less|env|date|du|df|ps|diff|sleep"
    r"|git (status|diff|log|show|branch|blame|grep|ls-files|rev-parse)|sed -n|test|\[|command -v)(?=\s|$)"
)
"""Commands that only look: they change nothing, and what they do not find is no error."""
_FILTERS = re.compile(r"\|\s*(tail|head|grep|egrep|rg|tee|cat|sed|awk|less|sort|uniq|wc|cut|tr|jq)\b[^|]*$")
_HIDES = re.compile(r"\|\|\s*(true|:|echo\b.*)\s*$|;\s*(echo|true|exit 0)\b[^;]*$|&\s*$")
"""Ends of a command line after which its exit code says nothing of the command."""
_BEFORE = re.compile(
    r"^\s*(?:cd\s+(?:\"[^\"]*\"|'[^']*'|[^\s;&|]+)\s*(?:&&|;)|(?:export\s+)?\w+=\S*\s*(?:&&|;)?(?=\s)|timeout\s+\S+(?=\s))\s*"
)
_AFTER = re.compile(r"\s*(?:\d?>&\d|\d?>\s*/dev/null|&>\s*\S+)\s*$")
_SET = re.compile(r"(?<!\S)(\w+=[^\s;&]*)")
_EXIT = re.compile(r"\A(?:Error: )?Exit code -?\d+\n?")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z]+")
_TESTS = re.compile(r"\b(pytest|unittest|jest|vitest|mocha|rspec|phpunit|cargo test|go test|npm test|tox|nox|ctest)\b")


@dataclass(frozen=True)
class Open:
    """A failure that was not overcome yet.

    Attributes:
        session: where it happened.
        error: the digest of its signature.
        named: the first line of the signature.
        lines: the lines of the output that name the error.
        steps: what was done since.
        closed: the same was run again, and this error did not come back.
        variables: those that were set for the command, such as "CI=1".
    """

    agent: str
    session: str
    call: str
    tool: str
    command: str
    output: str
    error: str
    named: str
    lines: tuple[str, ...]
    at: float = 0.0
    subagent: str = ""
    steps: tuple[str, ...] = ()
    closed: bool = False
    variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """What is to be learned.

    Attributes:
        error: the digest of the error; of a correction, that of what the user said.
        mends: what each step that mended it is known by; empty for a correction.
        seen: the evidence: agent, session, calls, both outputs, when.
    """

    title: str
    content: str
    description: str
    error: str
    mends: Mapping[str, str]
    seen: Mapping[str, Json]
    correction: bool = False

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
            origin=Origin("extracted", by=RULE),
            tags=(TAG, CORRECTION) if self.correction else (TAG,),
            context={
                "errors": [self.error],
                "mends": dict(self.mends),
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
        """As JSON, without the failures of other sessions."""
        return to_json(replace(self, open=tuple(one for one in self.open if one.session == self.session)))

    @classmethod
    def of(cls, agent: str, session: str, kept: Json) -> State:
        """The state that was kept; an empty one where there is none, or another version's."""
        try:
            return from_json(cls, kept)
        except InvalidInput:
            return cls(agent, session)


# --- what happened ---------------------------------------------------------------------------------------------------


def happened(turns: Iterable[Turn], *, subagent: str = "", folder: str = "") -> Iterator[tuple[str, Happened]]:
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
                yield turn.id, Call(turn.id, call.tool, command, output, turn.failed, turn.at, subagent, ran)
        elif turn.role in ("user", "assistant"):
            said += 1
            yield turn.id or f"said:{said}", Said("user" if turn.role == "user" else "agent", turn.text, turn.at)


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
        for keys in (("old_string", "oldString"), ("new_string", "newString", "content"))
    )
    was, now = set(old.splitlines()), set(new.splitlines())
    removed = [f"-{line}" for line in old.splitlines() if line not in now and line.strip()]
    added = [f"+{line}" for line in new.splitlines() if line not in was and line.strip()]
    return "\n".join([*removed[:3], *added[:3]]) or " "


# --- the fold --------------------------------------------------------------------------------------------------------


def find(state: State, events: Iterable[Happened], masks: Masks | None = None) -> tuple[State, list[Found]]:
    """What these events overcome or correct, and the state after them.

    masks: learn the secrets in these events. What one event shows to be a secret is masked in all of them.
    """
    masks, events, found = masks or Masks(), list(events), list[Found]()
    for one in state.open:
        masks.learn("\n".join((one.command, one.output, *one.lines, *one.steps)))  # its masks are taken
    for event in events:
        for text in (event.text,) if isinstance(event, Said) else (event.command, event.output):
            masks.learn(_ends(text))
    state = replace(state, open=tuple(_masked(one, masks) for one in state.open), after=masks.text(state.after))
    for event in events:
        if isinstance(event, Said):
            if event.who == "user":
                found += _corrections(state, event, masks)
                state = replace(state, after="", after_call="")
            continue
        call = (
            event if event.failed is not False or not is_shell(event.tool) else event._replace(failed=_verdict(event))
        )
        state, more = _after(state, call, masks)
        found += (one for one in more if not any(map(going_around, one.mends.values())))  # never offered as a remedy
        state = replace(state, after=one_line(masks.text(_plain(call)), SHOWN), after_call=call.id)
    return state, found


def _masked(one: Open, masks: Masks) -> Open:
    """An open failure without what only later events show to be a secret."""
    lines, steps = (tuple(map(masks.text, texts)) for texts in (one.lines, one.steps))
    named = one.named if lines == one.lines else normalised(one_mask(lines[0]))
    command, output = masks.text(one.command), masks.text(one.output)
    return replace(one, command=command, output=output, named=named, lines=lines, steps=steps)


def _after(state: State, call: Call, masks: Masks) -> tuple[State, list[Found]]:
    """The state after a call, and what the call was the end of."""
    if call.failed is None:
        return state, []
    lines = signature_of(call)
    error, looks = digest(lines), _looks(call)
    plain = call._replace(command=masks.text(_plain(call)))
    step = "" if call.failed or looks else _step(call, masks)
    variables = tuple(map(masks.text, _variables(call)))
    if step and variables and going_around(whole := " ".join((*variables, step))):
        step = one_line(whole, SHOWN)  # what it sets is what is wrong with it
    still: list[Open] = []
    found: list[Found] = []
    for one in state.open:
        if one.session != state.session and one.at > call.at > 0:
            still.append(one)  # this session is the older one
        elif _same(one, plain):
            if call.failed and one.error == error:
                continue  # it came back: it is open anew, below
            new = [one_set for one_set in variables if one_set not in one.variables]
            if call.failed:
                still.append(replace(one, closed=True))
            elif new:
                steps = (*one.steps, one_line(" ".join((*new, plain.command)), SHOWN))[-STEPS:]
                found.append(_overcome(one, call, steps, masks, works=not one.steps))
            elif one.steps:
                found.append(_overcome(one, call, one.steps, masks))
            elif step and _stands_in(one, plain):
                found.append(_overcome(one, call, (step,), masks, works=True))
        elif step and not one.closed and _stands_in(one, plain):
            found.append(_overcome(one, call, (step,), masks, works=True))
        elif step and not one.closed:
            still.append(replace(one, steps=(*one.steps, step)[-STEPS:]))
        else:
            still.append(one)
    if error:
        made = Open(
            state.agent,
            state.session,
            call.id,
            call.tool,
            plain.command,
            evidence(call.output, masks),
            error,
            (words := words_of(call, masks))[0],
            _error_lines(call.output, words, masks),
            call.at,
            call.subagent,
            variables=variables,
        )
        still.append(made)
    return replace(state, open=tuple(still[-OPEN:])), found


def signature_of(call: Call) -> tuple[str, ...]:
    """The signature of the error of a call; empty if it has not failed, or only looked."""
    return signature(_EXIT.sub("", call.output)) if call.failed and not _looks(call) else ()


def words_of(call: Call, masks: Masks) -> tuple[str, ...]:
    """The signature of what failed, to be read by people: of the masked output, as normalising changes secrets."""
    return signature(_EXIT.sub("", one_mask(masks.text(_ends(call.output))))) or (MASK,)


def _overcome(one: Open, call: Call, steps: Sequence[str], masks: Masks, *, works: bool = False) -> Found:
    program = _program(one)
    lines = [f"fails: {one_line(one.command, SHOWN)}", *(f"  {line}" for line in one.lines)]
    done = [f"works: {steps[0]}"] if works else steps_text(steps)
    return Found(
        title=one_line(one.named if one.named.startswith(program) else f"{program}: {one.named}", 120),
        content="\n".join([*lines, *done]),
        description=f"When {one_line(one.command, 80)} fails with this error.",
        error=one.error,
        mends={mend_key(step): step for step in steps},
        seen={
            "agent": one.agent,
            "session": one.session,
            "subagent": one.subagent,
            "calls": [one.call, call.id],
            "command": one_line(one.command, SHOWN),
            "fails": one.output,
            "works": evidence(call.output, masks),
            "at": call.at or one.at,
        },
    )


def steps_text(steps: Iterable[str]) -> list[str]:
    """The lines of a lesson that say what was done."""
    return ["works after:", *(f"  {step}" for step in steps)]


def _program(one: Open) -> str:
    if not is_shell(one.tool):
        return f"{one.tool} {one.command.rpartition('/')[2]}"
    if found := _TESTS.search(one.command):
        return found[0]
    return (_words(one.command) or ["?"])[0].rpartition("/")[2]


def _corrections(state: State, said: Said, masks: Masks) -> Iterator[Found]:
    """What the user says against the agent's last action, quoted."""
    text = said.text.strip()
    if not state.after or len(text) > SAID:
        return
    if not (correction := correction_in(text)):
        return
    quoted = one_line(masks.text(correction), 300)
    yield Found(
        title=one_line(f"The user: {quoted}", 120),
        content=f'after: {state.after}\nthe user said: "{quoted}"',
        description="What the user of this project wants otherwise.",
        error=_short_digest(quoted.casefold()),
        mends={},
        seen={"agent": state.agent, "session": state.session, "calls": [state.after_call], "at": said.at},
        correction=True,
    )


# --- what is the same ------------------------------------------------------------------------------------------------


def is_shell(tool: str) -> bool:
    return tool.lower().rpartition(".")[2] in _SHELLS


def _plain(call: Call | Open) -> str:
    """The command without what stands around it: a change of the folder, variables, where its output goes."""
    command = call.command
    if not is_shell(call.tool):
        return command
    while (shorter := _BEFORE.sub("", command, count=1)) != command or (shorter := _AFTER.sub("", command)) != command:
        command = shorter
    return command.strip() or call.command


def _variables(call: Call) -> list[str]:
    """The variables that are set before the command, each with its value."""
    plain = _plain(call)
    return _SET.findall(call.command[: call.command.find(plain)]) if is_shell(call.tool) and plain else []


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _looks(call: Call) -> bool:
    """Whether the call only looks at something."""
    if not is_shell(call.tool):
        return call.tool.lower() in _READERS or not call.command
    parts = [part.strip() for part in re.split(r"&&|;|\|", _plain(call)) if part.strip()]
    return all(_LOOKS.match(part) for part in parts) and not re.search(r">\s*[^&\s]", _plain(call))


def _verdict(call: Call) -> bool | None:
    """Whether a command failed that its agent says was fine: unknown where the exit code is that of a filter."""
    hides = "pipefail" not in call.command and (_FILTERS.search(call.command) or _HIDES.search(call.command))
    return None if hides else call.failed


def _same(one: Open, call: Call) -> bool:
    """Whether the call runs the same command again, opens the same file, or runs the same test or all tests. The
    commands of both are plain and masked."""
    if is_shell(one.tool) != is_shell(call.tool):
        return False
    command, failed = one_mask(call.command), one_mask(one.command)
    if command == failed:
        return is_shell(one.tool) or one.tool == call.tool
    if not is_shell(one.tool) or not (ran := _TESTS.search(failed)) or not (again := _TESTS.search(command)):
        return False
    if ran[0] != again[0]:
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


def _stands_in(one: Open, call: Call) -> bool:
    """Whether the call is another way to do what failed: the same behind another program, or nearly the same."""
    if not is_shell(one.tool) or not is_shell(call.tool):
        return False
    failed, works = _words(one_mask(one.command)), _words(one_mask(call.command))
    if not failed or not works or failed == works or len(failed) + len(works) > _WORDY:
        return False
    if len(works) > len(failed) and works[-len(failed) :] == failed:
        return True
    ratio = SequenceMatcher(None, failed, works, autojunk=False).ratio()
    return ratio >= ALIKE and (failed[0] == works[0] or failed[1:] == works[1:])


def _step(call: Call, masks: Masks) -> str:
    """What a call did, in a line."""
    if is_shell(call.tool):
        return one_line(masks.text(_plain(call)), SHOWN)
    change = [
        line
        for line in call.output.splitlines()
        if line[:1] in "+-" and line[1:].strip() and line[:3] not in ("+++", "---")
    ]
    return one_line(
        masks.text(f"change {call.command}: {'  '.join(change[:4])}" if change else f"{call.tool} {call.command}"),
        SHOWN,
    )


def mend_key(step: str) -> str:
    """What a step is known by in another session: without folders and numbers."""
    return _short_digest(re.sub(r"\d+", "0", re.sub(r"[\w.~-]*/(?:[\w.~-]+/)*", "", one_mask(step))).casefold())


def _short_digest(text: str) -> str:
    return hashlib.sha256(" ".join(one_mask(text).split()).encode("utf-8", "replace")).hexdigest()[:16]


def _error_lines(output: str, words: Sequence[str], masks: Masks) -> tuple[str, ...]:
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
