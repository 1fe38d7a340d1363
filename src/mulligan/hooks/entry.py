"""The program that coding agents start for each hook: `mulligan-hook AGENT [EVENT]`, with the payload as its input.

It ends with 0 whatever happens, within `DEADLINE` and `WORK`, and prints the agent's own form of answer or nothing.
What goes wrong is noted for `mulligan hooks status`. It is started for every tool call, so it imports what it needs
when it is sure to need it.
"""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections.abc import Mapping

from mulligan.core.home import home_path
from mulligan.core.light import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from typing import Any

    from mulligan.hooks.journal import Journal
    from mulligan.sessions.agents import CodingAgent
    from mulligan.sessions.events import Notice

SWITCH, RECALL = "MULLIGAN_HOOKS", "recall"
"""The environment variable that stops hooks if it is `off`, which hooks set for all that they start. With `recall`,
hooks show lessons, and nothing is learned."""
DEADLINE, WORK = 1.5, 0.25
"""Seconds after which the program ends without an answer: of the clock, and of its own work. A machine that is busy
with the build that has just failed lets it wait, and that is when it is needed."""
OVERTIME = "took longer than"
"""Words in the error of a hook that was ended at its limit, by which `hooks status` counts them."""
WAIT = 0.4
"""Seconds that one call of SQLite waits for another process."""
ABOUT = """\
mulligan-hook AGENT [EVENT] < payload.json

Coding agents start this program for each of their hooks, with JSON on its standard input. It prints an answer in the
agent's own form, or nothing, and always ends with 0. You need not start it yourself:

  mulligan hooks install    puts it into the settings of your coding agents
  mulligan hooks doctor     tries it
  mulligan hooks status     says what it has seen, and what went wrong
"""
"""What a person reads who starts the program."""
MARKER = "goals.on"
"""The file in Mulligan's home that is there while a goal is: without it, nothing of goals is imported."""
GOAL = "mulligan-goal"
"""What a prompt begins with that sets a goal, behind a slash or not."""
_STARTED = time.monotonic()
_CHECK, _SETTING = 3540.0, 4.5
"""Seconds that a check may take at a stop, within the limit that is installed; and setting a goal at a prompt."""
_COMMAND = 20
_MOST = 1 << 24
_LAST = 0.05


def main() -> None:
    """The whole program."""
    name, event, *more = [*sys.argv[1:], "", ""][: max(len(sys.argv) - 1, 2)]
    if name.startswith("-") or _is_terminal():
        os.write(1, ABOUT.encode())
    elif not is_off(os.environ):
        _thread.start_new_thread(_end_in_time, (name, event, _STARTED))
        try:
            given = sys.stdin.buffer.read(_MOST + 1)
            if more:
                raise ValueError(f"expected only an agent and an event: {' '.join(more)}")
            if len(given) > _MOST:
                raise ValueError(f"the payload has more than {_MOST >> 20} MB, so it was not read")
            if text := respond(name, event, given, _STARTED):
                os.write(1, text.encode())
        except BaseException as error:
            _note(name, event, error)
    os._exit(0)  # without the end of the interpreter, which takes longer than the work


def is_off(environ: Mapping[str, str]) -> bool:
    """Whether the environment stops hooks."""
    return environ.get(SWITCH, "").lower() in ("off", "0", "false")


def _is_terminal() -> bool:
    """Whether a person started the program."""
    try:
        return os.isatty(0)
    except OSError:
        return False


def respond(name: str, event: str, given: bytes, started: float = 0.0) -> str:
    """The answer to a payload; "" for none. started: when this process was, by `time.monotonic`; 0: now."""
    started = started or time.monotonic()
    import json

    from mulligan.sessions.agents import NAMES, agent

    if name not in NAMES:
        raise ValueError(f"{name!r} is not a known coding agent: {', '.join(NAMES)}")
    read: Any = json.loads(given or b"{}")
    if not isinstance(read, dict):
        raise ValueError("the payload is not a JSON object")
    payload = cast("dict[str, Any]", read)
    of = agent(name)
    notice = of.notice({"hook_event_name": event, **payload} if event else payload, os.environ)
    if notice is None or not matters(notice):
        return ""
    from mulligan.hooks.journal import Journal

    _left_open.append(journal := Journal(wait=WAIT))
    marked = os.path.exists(os.path.join(home_path(), MARKER))
    return answer(of, notice, journal, os.environ, start=started if marked else None)


_left_open: list[Journal] = []
"""A process that ends closes no journal: what closes a file of SQLite last moves its log into it, and waits for the
disk."""


def matters(notice: Notice) -> bool:
    """Whether there may be anything to note or to answer."""
    return bool(notice.moment != "success" and notice.session and notice.folder)


def answer(
    of: CodingAgent,
    notice: Notice,
    journal: Journal,
    environ: Mapping[str, str],
    *,
    wait: float = WAIT,
    bound: str | None = None,
    start: float | None = None,
) -> str:
    """What this agent's hook prints, in the agent's own form; "" for nothing.

    Args:
        bound: the only bank that may be read; None: any. Raises `PermissionError` for another one.
        start: when this process started, where a goal may stand, since its check can take long; None: no goal is
            looked for.
    """
    from mulligan.hooks.project import project_id

    if journal.is_paused(notice.folder):
        return ""
    known = journal.session(notice.agent, notice.session, notice.subagent_id)
    main = journal.session(notice.agent, notice.session) if notice.subagent_id else known
    bank = (main and main.project) or journal.bank_of(project_id(notice.folder))
    if bound not in (None, bank):
        raise PermissionError(f"The lessons of {bank} were requested, but this hook may read only those of {bound}.")
    whole = bank
    if notice.subagent:
        bank = (known and known.project) or journal.bank_of_subagent(whole, notice.subagent)
    if notice.moment == "before_tool":
        if not notice.command or (main is not None and main.forgotten):
            return ""
        both = {bank, whole}  # what a person marked in the project holds for all of its sub-agents
        denial = next(filter(None, (_denied(of, notice, journal, each, wait) for each in both)), "")
        if not denial:
            journal.tries(notice)
            if start is not None:
                from mulligan.goals.turn import command

                command(notice)
        return denial
    session = journal.seen(notice, bank)
    if session.forgotten:
        return ""
    ends = notice.moment == "end" or (notice.moment == "stop" and not of.ends)
    learns = environ.get(SWITCH, "").lower() != RECALL
    told, hears = "", bool(of.answer(notice, "text"))
    if notice.moment == "prompt" and GOAL in notice.text[:_COMMAND]:
        from mulligan.hooks.goal_prompt import obey

        _allow(_SETTING)
        told, start = obey(of, notice), time.monotonic()
    if start is not None and not notice.subagent_id and notice.moment in ("start", "prompt", "stop"):
        from mulligan.goals import turn

        if notice.moment == "stop":
            if held := _held(of, notice, journal, bank, wait, start):
                return held
        elif notice.moment == "prompt" or notice.source == "resume":
            begun = turn.prompt(notice, hears=hears and notice.moment == "prompt")
            told = told or begun
    if learns and notice.moment == "stop" and (question := _question(of, notice, journal)):
        return question
    ends = ends or "compact" in (notice.moment, notice.source)  # the agent forgets what it overcame in this session
    if learns and (ends or (known is None and journal.is_due(besides=notice.session))):
        start_worker(environ)
    text = "\n\n".join(filter(None, (told, _recalled(notice, journal, bank, wait, first=known is None, hears=hears))))
    return of.answer(notice, text) if text else ""


_SAMPLE = "Traceback (most recent call last):\nValueError: a value is wrong in /a/b.py line 1"


def _prepare_recall() -> None:
    """Imports what finds lessons about a failure, and compiles its patterns, while there is nothing else to do."""
    from mulligan.hooks.recall import without_own
    from mulligan.sessions.signature import keys

    keys(without_own(_SAMPLE))


def _held(of: CodingAgent, notice: Notice, journal: Journal, bank: str, wait: float, started: float) -> str:
    """What keeps an agent at work that would stop before its goal is reached; "" lets it stop."""
    if not of.hold(notice, "text") or notice.waits:
        return ""
    from mulligan.goals import turn

    _allow(_CHECK)
    outcome = turn.stop(notice, started, _CHECK - 1, meanwhile=_prepare_recall)
    if not outcome.text:
        return ""
    failure = notice._replace(moment="failure", tool="", output=outcome.output, call=outcome.call)
    lessons = _recalled(failure, journal, bank, wait, first=False, hears=True) if outcome.output else ""
    return of.hold(notice, "\n\n".join(filter(None, (outcome.text, lessons))))


def _question(of: CodingAgent, notice: Notice, journal: Journal) -> str:
    """What lets an agent that would stop say why something failed that it has overcome; "" where it is not asked."""
    if not of.readable or notice.subagent_id or notice.stop_hook_active or journal.setting("why") != "ask":
        return ""
    from mulligan.sessions.events import QUESTION

    question = of.hold(notice, QUESTION)
    return question if question and journal.ask(notice.agent, notice.session) else ""


def _recalled(notice: Notice, journal: Journal, bank: str, wait: float, *, first: bool, hears: bool) -> str:
    """The text that the model is to read; the lessons in it are taken for this session.

    hears: whether the agent takes a text at this event; if not, a failure is only noted.
    """
    if notice.moment not in ("start", "prompt", "failure") or not (hears or notice.moment == "failure"):
        return ""
    from mulligan.hooks.recall import (
        CHARACTERS,
        LAST,
        MOST,
        REQUEST,
        RULE_CHARACTERS,
        RULES,
        Reader,
        near,
        shown_text,
        without_own,
    )
    from mulligan.sessions.agents import is_shell

    reader = Reader(bank, wait=wait)
    try:
        most, characters = MOST, CHARACTERS
        if notice.moment == "failure":
            from mulligan.sessions.signature import keys, keys_at

            if notice.tool and not is_shell(notice.tool, notice.agent):
                return ""
            output = without_own(notice.output)
            if known := keys(output):
                journal.failed(notice, bank, known[0])  # its words are masked first, by the worker
            found = reader.about(keys_at(notice.command, output)) if hears else ()
        elif notice.moment == "start" or first:
            most, characters = RULES, RULE_CHARACTERS
            found = reader.rules(journal.began(bank, LAST))
        else:
            short = len(notice.text) <= REQUEST  # a long one shares words with anything
            lessons = [
                one for one in reader.kept() if one.pinned or one.by_people or (short and not one.context.get("habit"))
            ]
            found = near(notice.text, lessons)
    finally:
        reader.close()
    silent = journal.useless_lessons() if found and notice.moment == "failure" else ()
    if not (found := [one for one in found if one.pinned or one.by_people or one.id not in silent]):
        return ""
    receipt = f"h{os.urandom(6).hex()}"
    if notice.moment == "failure" and notice.call:  # where hooks are installed twice, one of them answers
        from mulligan.sessions.signature import digest

        receipt = f"h{digest((notice.agent, notice.session, notice.subagent_id, notice.call))[:12]}"
    about = [(one.id, one.digests) for one in found]
    taken = journal.show(notice, bank, about, receipt=receipt, most=most, share=float(journal.setting("withhold")))
    lessons = [one for one in found if one.id in taken]
    return shown_text(lessons, characters) if lessons else ""


def _denied(of: CodingAgent, notice: Notice, journal: Journal, bank: str, wait: float) -> str:
    guards, shell = journal.guards(), True
    if guards is not None and not guards:
        return ""
    from mulligan.hooks.recall import Reader, denial

    if guards:
        from mulligan.sessions.agents import is_shell

        shell = not notice.tool or is_shell(notice.tool, notice.agent)
    reader = Reader(bank, wait=wait)
    try:
        found = reader.denying(notice.command, guards, shell=shell)
    finally:
        reader.close()
    if not found:
        return ""
    guards = guards or {}
    found = [one for one in found if guards.get(one.id)] or found
    about = [(one.id, one.digests) for one in found]
    taken = journal.show(notice, bank, about, receipt=f"h{os.urandom(6).hex()}", way="denied", most=1)
    for one in found:
        pattern, said = guards.get(one.id, ""), one.id in taken
        reason = denial(one, pattern)
        if pattern and not said and (question := of.ask(notice, reason)):
            return question  # the agent insists, so the user decides
        if (pattern or said) and (refusal := of.deny(notice, reason)):
            return refusal
    return ""


def start_worker(environ: Mapping[str, str]) -> None:
    """Starts the process that learns, in a session of its own: it outlives the agent, and holds none of its streams."""
    command = [sys.executable, "-I", "-m", "mulligan.app.sessions"]
    environment = {**environ, SWITCH: "off"}
    if not hasattr(os, "posix_spawn"):
        import subprocess

        none = subprocess.DEVNULL
        subprocess.Popen(command, env=environment, stdin=none, stdout=none, stderr=none, start_new_session=True)
        return
    for started in list(_started):  # in a server: what has ended is taken from the table of processes
        try:
            if os.waitpid(started, os.WNOHANG)[0]:
                _started.discard(started)
        except ChildProcessError:
            _started.discard(started)
    streams: list[Any] = [(os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_RDWR, 0) for n in range(3)]
    _started.add(os.posix_spawn(command[0], command, environment, file_actions=[*streams, *_others()], setsid=True))


_started = set[int]()


def _others() -> list[Any]:
    """What closes the descriptors that an agent has left open."""
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    try:
        numbers = [int(name) for name in os.listdir(folder)]
    except (OSError, ValueError):
        return []
    found: list[Any] = []
    for number in numbers:
        try:
            if number > 2 and os.get_inheritable(number):
                found.append((os.POSIX_SPAWN_CLOSE, number))
        except OSError:  # that of the listing
            continue
    return found


def _allow(seconds: float) -> None:
    """Lets the program go on for so long, whatever its deadline is."""
    _allowed[0] = time.monotonic() + seconds


_allowed = [0.0]


def _end_in_time(name: str, event: str, began: float) -> None:
    """Ends the process at its deadline, also while another thread waits for a disk or a lock."""
    given = os.environ.get("MULLIGAN_HOOKS_SECONDS", "")
    limit = float(given) if given.replace(".", "", 1).isdecimal() else DEADLINE
    work = max(WORK, limit) if given else WORK
    while (left := min(began + limit - time.monotonic(), work - time.process_time())) > 0 or _more() > 0:
        time.sleep(max(left, _more()))
    which = f"{limit} seconds" if time.monotonic() - began >= limit else f"{work} seconds of work"
    _thread.start_new_thread(_note, (name, event, TimeoutError(f"{OVERTIME} {which}")))
    time.sleep(_LAST)
    os._exit(0)


def _more() -> float:
    return _allowed[0] - time.monotonic()


def _note(name: str, event: str, error: BaseException) -> None:
    try:
        from mulligan.hooks.journal import swallow

        swallow(name, event, f"{type(error).__name__}: {error}")
    except BaseException:  # there is nobody left to say it to
        return


if __name__ == "__main__":
    main()
