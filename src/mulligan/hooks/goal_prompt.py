"""`/mulligan-goal CHECK` in a prompt: what a person says of the goal from within a coding agent.

The hook at a prompt gets the user's own words; a model writes none of them.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.goals.message import fenced
from mulligan.goals.person import nested
from mulligan.goals.place import Place
from mulligan.goals.setting import WARNING, Wish, end, pause, resume, set_goal
from mulligan.goals.state import CLEARED, Goals
from mulligan.hooks.holding import agents_that_hold
from mulligan.hooks.recall import store_file
from mulligan.sessions.agents import CodingAgent
from mulligan.sessions.events import Notice
from mulligan.text.plain import count

_LINE = re.compile(r"\A\s*/?mulligan-goal\b[ \t:]*(.*)")
_OPTION = re.compile(r"\s*--(tries|trials|protect|max-seconds|sandbox)[ =](\S+)")
_WAIT = 3.0
"""Seconds that the first check is waited for; it goes on without the hook."""


def obey(of: CodingAgent, notice: Notice) -> str:
    """Do what the user's line says, and tell the agent what was done. "" where the prompt is no such line."""
    found = _LINE.match(notice.text)
    if not found or notice.subagent_id:
        return ""
    try:
        with Goals() as goals:
            said = _obey(goals, of, notice, found[1].strip())
    except MulliganError as error:
        said = str(error)
    return fenced(
        f"The user's line `/mulligan-goal` was addressed to Mulligan, which has read it: {said}\nTell the user so in "
        "a sentence. You need not run or change anything for this line."
    )


def _obey(goals: Goals, of: CodingAgent, notice: Notice, line: str) -> str:
    if mark := nested(of.name):
        goals.note("", "agent", f"refused in {notice.folder}: /mulligan-goal {line[:200]} ({mark})")
        raise InvalidInput(f"Only a person can set a goal, but {mark}. The attempt was recorded.")
    there = Place(notice.folder).goal(goals.standing())
    if line in ("", "pause", "resume", "clear"):
        if there is None:
            return "There is no goal here. `/mulligan-goal pytest -q` sets one."
        if line == "clear":
            end(goals, there, CLEARED, "person")
        elif line:
            (pause if line == "pause" else resume)(goals, there, "person")
        now = goals.goal(there.id) or there
        tries = goals.tries(there.id, notice.agent, notice.session)
        used = f"{len(tries)} of {count(there.settings['trials'], 'try')}"
        return f"The goal {there.label} is {now.state}; this session has used {used}."
    wish = wished(line)
    holding = agents_that_hold(notice.folder, wish.trials, of.name)
    there = set_goal(goals, wish, notice.folder, store_file(), "person", wait=_WAIT)
    return " ".join([f"The goal of {there.folder} is now: {there.label}.", WARNING, *holding])


def wished(line: str) -> Wish:
    """The goal that a line words: options, then the check; or the check in quotation marks, then options."""
    wish, protect = Wish(), list[str]()
    rest = line
    if line[:1] in ("'", '"'):
        words = shlex.split(line)
        rest, check = " " + shlex.join(words[1:]), words[0]
    else:
        check = ""
    while found := _OPTION.match(rest):
        name, value = found.groups()
        try:
            if name == "protect":
                protect.append(value)
            elif name == "sandbox":
                wish = replace(wish, sandbox=value)
            elif name == "max-seconds":
                wish = replace(wish, max_seconds=float(value))
            else:
                wish = replace(wish, trials=int(value))
        except ValueError:
            raise InvalidInput(f"--{name} must be a number, not {value!r}.") from None
        rest = rest[found.end() :]
    if rest.strip().startswith("--"):
        raise InvalidInput(
            f"{rest.split()[0]} is not an option of /mulligan-goal, or has no value. The options are --tries, "
            f"--protect, "
            "--max-seconds and --sandbox, each before the check."
        )
    if check and rest.strip():
        raise InvalidInput(f"{rest.strip()!r} after the check is not an option.")
    return replace(wish, check=check or rest.strip(), protect=tuple(protect))
