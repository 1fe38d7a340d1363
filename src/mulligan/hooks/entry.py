"""The program that coding agents start for each hook: `mulligan-hook AGENT [EVENT]`, with the payload as its input.

It ends with 0 whatever happens, within `DEADLINE` and `WORK`, and prints an answer in the agent's own form, or nothing.
Errors are noted for `mulligan hooks status`. Agents start it for every tool call, so it imports only what is needed,
when it is needed.
"""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections.abc import Mapping

from mulligan.core.home import home_path
from mulligan.core.light import TYPE_CHECKING, cast
from mulligan.hooks import OVERTIME, RECALL, SWITCH, is_off

if TYPE_CHECKING:
    from typing import Any

    from mulligan.hooks.journal import Journal
    from mulligan.sessions.agents import CodingAgent
    from mulligan.sessions.events import Notice

DEADLINE, WORK = 1.5, 0.25
"""Seconds after which the program ends without an answer: by the clock, and of its own CPU time. The first is longer
because the program is needed most while a failing build keeps the machine busy."""
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
"""Printed if a person starts the program."""
MARKER = "goals.on"
"""A file in Mulligan's home that exists while there is a goal. Without it, no module of goals is imported."""
GOAL = "mulligan-goal"
"""A prompt that begins with this, after a slash or not, sets a goal."""
_STARTED = time.monotonic()
_CHECK_SECONDS, _GOAL_SECONDS = 3540.0, 4.5
"""Seconds for a check at a stop, which is less than the installed limit; and for setting a goal at a prompt."""
_COMMAND = 20
"""Characters at the beginning of a prompt in which `GOAL` is looked for."""
_MAX_PAYLOAD = 1 << 24
_NOTING_SECONDS = 0.05


def main() -> None:
    """Run the program."""
    name, event, *more = [*sys.argv[1:], "", ""][: max(len(sys.argv) - 1, 2)]
    if name.startswith("-") or _is_terminal():
        os.write(1, ABOUT.encode())
    elif not is_off(os.environ):
        _thread.start_new_thread(_end_in_time, (name, event, _STARTED))
        try:
            data = sys.stdin.buffer.read(_MAX_PAYLOAD + 1)
            if more:
                raise ValueError(f"expected only an agent and an event, not also: {' '.join(more)}")
            if len(data) > _MAX_PAYLOAD:
                raise ValueError(f"the payload is larger than {_MAX_PAYLOAD >> 20} MB, so it was not read")
            if text := respond(name, event, data, _STARTED):
                os.write(1, text.encode())
        except BaseException as error:
            _note(name, event, error)
    os._exit(0)  # without the end of the interpreter, which takes longer than the work


def _is_terminal() -> bool:
    """Whether a person started the program."""
    try:
        return os.isatty(0)
    except OSError:
        return False


def respond(name: str, event: str, data: bytes, started: float = 0.0) -> str:
    """The answer to a payload; "" for none.

    Args:
        data: the payload, as JSON.
        started: when this process started, by `time.monotonic`; 0: now.
    """
    started = started or time.monotonic()
    import json

    from mulligan.sessions.agents import NAMES, agent

    if name not in NAMES:
        raise ValueError(f"{name!r} is not a known coding agent: {', '.join(NAMES)}")
    parsed: Any = json.loads(data or b"{}")
    if not isinstance(parsed, dict):
        raise ValueError("the payload is not a JSON object")
    payload = cast("dict[str, Any]", parsed)
    coding_agent = agent(name)
    notice = coding_agent.notice({"hook_event_name": event, **payload} if event else payload, os.environ)
    if notice is None or not matters(notice):
        return ""
    from mulligan.hooks.journal import Journal

    _left_open.append(journal := Journal(wait=WAIT))
    has_goal = os.path.exists(os.path.join(home_path(), MARKER))
    return answer(coding_agent, notice, journal, os.environ, start=started if has_goal else None)


_left_open: list[Journal] = []
"""A process that ends closes no journal: what closes a file of SQLite last moves its log into it, and waits for the
disk."""


def matters(notice: Notice) -> bool:
    """Whether there can be anything to note or to answer."""
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
    """What the hook of an agent prints, in the agent's own form; "" for nothing.

    Args:
        wait: seconds that a call of SQLite waits for another process.
        bound: the only bank that may be read; None: any.
        start: when this process started, which limits the time for a check; None: there is no goal to look for.

    Raises:
        PermissionError: another bank than `bound` is needed.
    """
    from mulligan.hooks.project import project_id

    if journal.is_paused(notice.folder):
        return ""
    earlier = journal.session(notice.agent, notice.session, notice.subagent_id)
    main = journal.session(notice.agent, notice.session) if notice.subagent_id else earlier
    bank = (main and main.project) or journal.bank_of(project_id(notice.folder))
    if bound not in (None, bank):
        raise PermissionError(f"The lessons of {bank} were requested, but this hook may read only those of {bound}.")
    project_bank = bank
    if notice.subagent:
        bank = (earlier and earlier.project) or journal.bank_of_subagent(project_bank, notice.subagent)
    if notice.moment == "before_tool":
        if not notice.command or (main is not None and main.forgotten):
            return ""
        banks = {bank, project_bank}  # what a person marked in the project holds for all of its sub-agents
        denial = next(filter(None, (_denied(of, notice, journal, name, wait) for name in banks)), "")
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
    goal_text, takes_text = "", bool(of.answer(notice, "text"))
    if notice.moment == "prompt" and GOAL in notice.text[:_COMMAND]:
        from mulligan.hooks.goal_prompt import obey

        _allow(_GOAL_SECONDS)
        goal_text, start = obey(of, notice), time.monotonic()
    if start is not None and not notice.subagent_id and notice.moment in ("start", "prompt", "stop"):
        from mulligan.goals import turn

        if notice.moment == "stop":
            if hold := _held(of, notice, journal, bank, wait, start):
                return hold
        elif notice.moment == "prompt" or notice.source == "resume":
            message = turn.prompt(notice, hears=takes_text and notice.moment == "prompt")
            goal_text = goal_text or message
    if learns and notice.moment == "stop" and (question := _question(of, notice, journal)):
        return question
    ends = ends or "compact" in (notice.moment, notice.source)  # the agent now forgets what it overcame
    if learns and (ends or (earlier is None and journal.is_due(besides=notice.session))):
        start_worker(environ)
    lessons = _recalled(notice, journal, bank, wait, first=earlier is None, takes_text=takes_text)
    text = "\n\n".join(filter(None, (goal_text, lessons)))
    return of.answer(notice, text) if text else ""


_SAMPLE = "Traceback (most recent call last):\nValueError: a value is wrong in /a/b.py line 1"


def _prepare_recall() -> None:
    """Import what finds lessons about a failure, and compile its patterns, while the check runs."""
    from mulligan.hooks.recall import without_own
    from mulligan.sessions.signature import keys

    keys(without_own(_SAMPLE))


def _held(of: CodingAgent, notice: Notice, journal: Journal, bank: str, wait: float, started: float) -> str:
    """The answer that keeps an agent at work because its goal is not reached; "" lets it stop."""
    if not of.hold(notice, "text") or notice.waits:
        return ""
    from mulligan.goals import turn

    _allow(_CHECK_SECONDS)
    outcome = turn.stop(notice, started, _CHECK_SECONDS - 1, meanwhile=_prepare_recall)
    if not outcome.text:
        return ""
    failure = notice._replace(moment="failure", tool="", output=outcome.output, call=outcome.call)
    lessons = _recalled(failure, journal, bank, wait, first=False, takes_text=True) if outcome.output else ""
    return of.hold(notice, "\n\n".join(filter(None, (outcome.text, lessons))))


def _question(of: CodingAgent, notice: Notice, journal: Journal) -> str:
    """The answer that asks an agent before it stops why something failed that it overcame; "" if it is not asked."""
    if not of.readable or notice.subagent_id or notice.stop_hook_active or journal.setting("why") != "ask":
        return ""
    from mulligan.sessions.events import QUESTION

    question = of.hold(notice, QUESTION)
    return question if question and journal.ask(notice.agent, notice.session) else ""


def _recalled(notice: Notice, journal: Journal, bank: str, wait: float, *, first: bool, takes_text: bool) -> str:
    """The lessons for the model to read, as text. They are noted as shown in this session.

    Args:
        first: this is the first notice of the session.
        takes_text: the agent takes a text at this event. If not, a failure is only noted.
    """
    if notice.moment not in ("start", "prompt", "failure") or not (takes_text or notice.moment == "failure"):
        return ""
    from mulligan.hooks import recall
    from mulligan.sessions.agents import is_shell

    reader = recall.Reader(bank, wait=wait)
    try:
        limit, characters = recall.MAX_LESSONS, recall.CHARACTERS
        if notice.moment == "failure":
            from mulligan.sessions.signature import keys, keys_at

            if notice.tool and not is_shell(notice.tool, notice.agent):
                return ""
            output = recall.without_own(notice.output)
            if error_keys := keys(output):
                journal.failed(notice, bank, error_keys[0])  # its words are masked first, by the worker
            candidates = reader.about(keys_at(notice.command, output)) if takes_text else ()
        elif notice.moment == "start" or first:
            limit, characters = recall.MAX_RULES, recall.RULE_CHARACTERS
            candidates = reader.rules(journal.recent_sessions(bank, recall.HISTORY, current=notice.session))
        else:
            is_short = len(notice.text) <= recall.MAX_REQUEST  # a long prompt shares words with any lesson
            lessons = [
                lesson
                for lesson in reader.kept()
                if lesson.pinned or lesson.by_people or (is_short and not lesson.context.get("habit"))
            ]
            candidates = recall.near(notice.text, lessons)
    finally:
        reader.close()
    useless = journal.useless_lessons() if candidates and notice.moment == "failure" else ()
    candidates = [one for one in candidates if one.pinned or one.by_people or one.id not in useless]
    if not candidates:
        return ""
    receipt = f"h{os.urandom(6).hex()}"
    if notice.moment == "failure" and notice.call:  # where hooks are installed twice, one of them answers
        from mulligan.sessions.signature import digest

        receipt = f"h{digest((notice.agent, notice.session, notice.subagent_id, notice.call))[:12]}"
    offers = [(lesson.id, lesson.digests) for lesson in candidates]
    ids = journal.show(notice, bank, offers, receipt=receipt, most=limit, share=float(journal.setting("withhold")))
    lessons = [lesson for lesson in candidates if lesson.id in ids]
    return recall.shown_text(lessons, characters) if lessons else ""


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
        lessons = reader.denying(notice.command, guards, shell=shell)
    finally:
        reader.close()
    if not lessons:
        return ""
    guards = guards or {}
    lessons = [lesson for lesson in lessons if guards.get(lesson.id)] or lessons
    offers = [(lesson.id, lesson.digests) for lesson in lessons]
    ids = journal.show(notice, bank, offers, receipt=f"h{os.urandom(6).hex()}", way="denied", most=1)
    for lesson in lessons:
        pattern, is_new = guards.get(lesson.id, ""), lesson.id in ids
        reason = denial(lesson, pattern)
        if pattern and not is_new and (question := of.ask(notice, reason)):
            return question  # the agent insists, so the user decides
        if (pattern or is_new) and (refusal := of.deny(notice, reason)):
            return refusal
    return ""


def start_worker(environ: Mapping[str, str]) -> None:
    """Start the process that learns. It outlives the agent, so it gets a session of its own and none of the streams."""
    command = [sys.executable, "-I", "-m", "mulligan.app.sessions"]
    environment = {**environ, SWITCH: "off"}
    if not hasattr(os, "posix_spawn"):
        import subprocess

        none = subprocess.DEVNULL
        subprocess.Popen(command, env=environment, stdin=none, stdout=none, stderr=none, start_new_session=True)
        return
    for started in list(_started):  # only in a server: reap those that have ended
        try:
            if os.waitpid(started, os.WNOHANG)[0]:
                _started.discard(started)
        except ChildProcessError:
            _started.discard(started)
    streams: list[Any] = [(os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_RDWR, 0) for n in range(3)]
    actions = [*streams, *_closing_actions()]
    _started.add(os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True))


_started = set[int]()


def _closing_actions() -> list[Any]:
    """File actions that close the descriptors that an agent has left open."""
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    try:
        numbers = [int(name) for name in os.listdir(folder)]
    except (OSError, ValueError):
        return []
    actions: list[Any] = []
    for number in numbers:
        try:
            if number > 2 and os.get_inheritable(number):
                actions.append((os.POSIX_SPAWN_CLOSE, number))
        except OSError:  # the descriptor of the listing itself
            continue
    return actions


def _allow(seconds: float) -> None:
    """Let the program run for so long, whatever its deadline is."""
    _allowed[0] = time.monotonic() + seconds


_allowed = [0.0]


def _end_in_time(name: str, event: str, began: float) -> None:
    """End the process at its deadline, even if another thread waits for a disk or a lock."""
    setting = os.environ.get("MULLIGAN_HOOKS_SECONDS", "")
    limit = float(setting) if setting.replace(".", "", 1).isdecimal() else DEADLINE
    cpu_limit = max(WORK, limit) if setting else WORK
    while (left := min(began + limit - time.monotonic(), cpu_limit - time.process_time())) > 0 or _extra_time() > 0:
        time.sleep(max(left, _extra_time()))
    reached = f"{limit} seconds" if time.monotonic() - began >= limit else f"{cpu_limit} seconds of work"
    _thread.start_new_thread(_note, (name, event, TimeoutError(f"{OVERTIME} {reached}")))
    time.sleep(_NOTING_SECONDS)
    os._exit(0)


def _extra_time() -> float:
    return _allowed[0] - time.monotonic()


def _note(name: str, event: str, error: BaseException) -> None:
    try:
        from mulligan.hooks.journal import swallow

        swallow(name, event, f"{type(error).__name__}: {error}")
    except BaseException:  # there is nobody left to say it to
        return


if __name__ == "__main__":
    main()
