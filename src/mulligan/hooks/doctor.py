"""Tries installed hooks: runs the commands in the settings of agents with payloads that these agents have sent."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import time
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, cast

from mulligan.core.errors import InvalidInput
from mulligan.hooks import RECALL, SWITCH, codex_trust, is_off
from mulligan.hooks.install import PROGRAM, installed, program, settings_file
from mulligan.hooks.journal import Journal
from mulligan.hooks.recall import store_file
from mulligan.sessions.agents import NAMES, SCOPES, CodingAgent, Hook, agent
from mulligan.sessions.signature import digest, signature
from mulligan.store import shown_address
from mulligan.text import json_text

_ABOUT = "No module named 'orders_schema'"
ERROR = digest(signature(f"ModuleNotFoundError: {_ABOUT}"))
"""The digest of the error in the payloads of failures."""
_TIMEOUT = 30.0
_ATTEMPTS = 3
_MAX_SECONDS = 600
"""A longer limit than this was meant in milliseconds."""


class Fired(NamedTuple):
    """A hook that was tried: how long it took, what it gave the model, and what went wrong.

    tried: whether there was a payload to try it with.
    """

    event: str
    milliseconds: float
    text: str
    wrong: str = ""
    tried: bool = True


def commands(of: CodingAgent, path: Path, text: str) -> dict[str, tuple[str, int]]:
    """The commands in an agent's settings by their events, each with its time limit in the agent's unit (0: none)."""
    if path.suffix == ".js":
        match = re.search(r"^const PROGRAM = (\[.*\])$", text, re.MULTILINE)
        words: list[str] = json.loads(match[1]) if match else []
        return {hook.event: (shlex.join([*words, of.name, hook.event]), 0) for hook in of.hooks if words}
    by_event: dict[str, tuple[str, int]] = {}
    for event, groups in installed(path, text).items():
        for group in groups:
            for hook in group.get("hooks", [group]):
                line = str(hook.get("command") or hook.get("bash"))
                if PROGRAM in line:
                    by_event[event] = line, int(hook.get("timeout") or hook.get("timeoutSec") or 0)
    return by_event


def fire(of: CodingAgent, installed_commands: Mapping[str, tuple[str, int]], home: Path) -> Iterator[Fired]:
    """Run each hook that is installed, or should be, with the bank and the journal in `home`."""
    payloads: dict[str, Any] = json.loads(files("mulligan.hooks").joinpath("payloads.json").read_text("utf-8"))
    if of.name not in payloads:
        return
    transcript = home / "transcript.jsonl"
    lines = payloads[of.name].get("transcript", ())
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if name != "MULLIGAN_STORE"}
    environ = {**inherited, "MULLIGAN_HOME": str(home), SWITCH: RECALL}  # a worker would outlive the folder
    calls = payloads[of.name]["calls"]
    events = [payload.get("event") or payload["hook_event_name"] for payload in calls]
    for event, payload in zip(events, calls, strict=True):
        if event not in installed_commands:
            yield Fired(event, 0.0, "", "no hook is installed for this event")
            continue
        if program := _missing(installed_commands[event][0]):
            yield Fired(event, 0.0, "", f"{program} is missing")
            continue
        fired = Fired(event, 0.0, "")
        for attempt in range(_ATTEMPTS):  # a busy machine may take longer than hooks do
            text = json.dumps(payload)
            for name, value in (("folder", home), ("session", f"{event}-{attempt}"), ("transcript", transcript)):
                text = text.replace(f"{{{name}}}", json.dumps(str(value))[1:-1])
            fired = _fired(of, event, installed_commands[event][0], text, home, environ)
            if not fired.wrong:
                break
        yield fired
    yield from (Fired(event, 0.0, "", tried=False) for event in installed_commands if event not in events)


def milliseconds() -> float:
    """The CPU time of a hook before a command, the median of three; 0 if it cannot be measured."""
    try:
        import resource  # not on Windows

        fields = {"hook_event_name": "PreToolUse", "session_id": "status", "cwd": os.getcwd(), "tool_name": "Bash"}
        payload = json.dumps({**fields, "tool_input": {"command": "true"}}).encode()
        seconds: list[float] = []
        patient = {**os.environ, "MULLIGAN_HOOKS_SECONDS": str(_TIMEOUT)}
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([program(), "claude"], input=payload, capture_output=True, env=patient, timeout=_TIMEOUT)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return sorted(seconds)[1] * 1000
    except (ImportError, OSError, InvalidInput, subprocess.SubprocessError):
        return 0.0


def _fired(of: CodingAgent, event: str, command: str, payload: str, home: Path, environ: Mapping[str, str]) -> Fired:
    started = time.perf_counter()
    try:
        ran = subprocess.run(
            command, shell=True, input=payload, capture_output=True, text=True, cwd=home, env=environ, timeout=_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return Fired(event, _TIMEOUT * 1000, "", "it did not finish")
    elapsed = (time.perf_counter() - started) * 1000
    problem = f"it exited with {ran.returncode}: {ran.stderr.strip()[-300:]}" if ran.returncode else ""
    hook = _hook(of, event)
    if not problem and hook and hook.moment in ("failure", "success") and _ABOUT in payload and not ran.stdout:
        problem = "it did not return the lesson about this error" + _swallowed(home)
    return Fired(event, elapsed, _to_model(ran.stdout), problem)


def _hook(of: CodingAgent, event: str) -> Hook | None:
    return next((hook for hook in of.hooks if hook.event == event), None)


def _swallowed(home: Path) -> str:
    with Journal(str(home / "hooks.db")) as journal:
        last = journal.errors(1)
    return f" ({last[0].what})" if last else ""


def _to_model(answer: str) -> str:
    """The text for the model in a hook's answer."""
    try:
        parsed: Any = json.loads(answer or "{}")
    except ValueError:
        return answer
    fields = cast(dict[str, Any], parsed)
    output = fields.get("hookSpecificOutput", fields)
    return str(output.get("additionalContext") or output.get("additional_context") or output.get("text") or "")


def troubles(of: CodingAgent, installed_commands: Mapping[str, tuple[str, int]], folder: Path) -> Iterator[str]:
    """What keeps an agent's hooks from running as they should, in sentences."""
    yield from _switched_off(of, folder)
    yield from gone(of, installed_commands)
    if (store := os.environ.get("MULLIGAN_STORE", "")) and not store.endswith(store_file()):
        store = shown_address(store)
        yield f"MULLIGAN_STORE is {store}, which is not a single file for all folders, so hooks use {store_file()}."
    in_milliseconds = min((hook.timeout for hook in of.hooks if hook.timeout), default=0) >= 1000
    for event, (command, limit) in installed_commands.items():
        hook = _hook(of, event)
        if hook is None:
            yield f"Mulligan has no hook for the event {event}: run `mulligan hooks install {of.name}` again."
        elif in_milliseconds and 0 < limit < 1000:
            yield f"The time limit for {event} is {limit}: {of.title} counts milliseconds, not seconds."
        elif hook.timeout and not in_milliseconds and limit > max(_MAX_SECONDS, hook.timeout):
            yield f"The time limit for {event} is {limit}: {of.title} counts seconds, not milliseconds."
        elif hook.moment == "stop" and 0 < limit < hook.timeout:
            yield (
                f"The time limit for {event} is {limit}, too short for goals: run `mulligan hooks install "
                f"{of.name}` again."
            )
        elif hook.timeout and not limit:
            yield f"{event} has no time limit: run `mulligan hooks install {of.name}` again."
        if not command.endswith(f"{of.name} {event}"):
            yield f"The command for {event} differs from the one that this version of Mulligan writes: {command}"
    if missing := [hook.event for hook in of.hooks if hook.event not in installed_commands]:
        yield f"There is no hook for {', '.join(missing)}: run `mulligan hooks install {of.name}` again."
    if of.name == "codex":
        yield from _untrusted(folder)


def does_not_hold(of: CodingAgent, installed_commands: Mapping[str, tuple[str, int]], folder: Path) -> str:
    """Why an agent with these hooks would not be held at work by a goal, in a sentence; "" if it would."""
    hook = next(hook for hook in of.hooks if hook.moment == "stop")
    advice = f"run `mulligan hooks install {of.name}` again."
    if hook.event not in installed_commands:
        return f"There is no hook for {hook.event}: {advice}"
    if 0 < installed_commands[hook.event][1] < hook.timeout:
        return (
            f"The hook for {hook.event} comes from an older version of Mulligan, and its time limit may be too short: "
            f"{advice}"
        )
    troubled = [*_switched_off(of, folder), *gone(of, {hook.event: installed_commands[hook.event]})]
    untrusted = _untrusted(folder) if of.name == "codex" and not troubled else ()
    return next(iter([*troubled, *untrusted]), "")


def gone(of: CodingAgent, installed_commands: Mapping[str, tuple[str, int]]) -> Iterator[str]:
    """The programs of these hooks that do not exist, in sentences. No hook can note that."""
    for program in sorted({program for command, _ in installed_commands.values() if (program := _missing(command))}):
        yield (
            f"The program {program} does not exist, so {of.title} neither shows nor learns lessons. Was its virtual "
            f"environment moved or removed? Run `mulligan hooks install {of.name}` again."
        )


def _missing(command: str) -> str:
    """The program that a command starts, if it is not there; else ""."""
    program = shlex.split(command)[0]
    return program if shutil.which(program) is None else ""


def _switched_off(of: CodingAgent, folder: Path) -> Iterator[str]:
    if is_off(os.environ):
        yield f"{SWITCH} is {os.environ[SWITCH]} here, which turns all hooks off."
    with Journal() as journal:
        for paused in journal.pausing(str(folder)):
            command = f"mulligan hooks resume {shlex.quote(paused)}".removesuffix(" ''")
            yield f"Hooks are paused {f'in {paused}' if paused else 'everywhere'}: `{command}` ends the pause."
    for file in _settings(of, folder):
        settings = _read(file)
        if switch := of.switched_off(settings):
            yield f"{file} turns all hooks off: {switch}."


def plug_in(of: CodingAgent, folder: Path) -> str:
    """Where an agent has Mulligan's plug-in or extension, and the command that removes it; "" if it has none."""
    if of.extension and (extension := Path(of.folder()) / of.extension).exists():
        return f"{extension} ({of.unplugs} mulligan)"
    for file in _settings(of, folder) if of.plugins else ():
        listed = _read(file).get(of.plugins)
        for name, state in cast(dict[str, Any], listed if isinstance(listed, dict) else {}).items():
            off = state is False or (isinstance(state, dict) and cast(dict[str, Any], state).get("enabled") is False)
            if name.partition("@")[0] == "mulligan" and not off:
                return f"{file} ({of.unplugs} {name})"
    return ""


def _read(file: Path) -> dict[str, Any]:
    """The settings in a file; empty if it cannot be read."""
    try:
        value: Any = (tomllib if file.suffix == ".toml" else json_text).loads(file.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return {}
    return cast(dict[str, Any], value if isinstance(value, dict) else {})


def _settings(of: CodingAgent, folder: Path) -> Iterator[Path]:
    """The files that may turn an agent's hooks off."""
    if of.name == "codex":
        yield from (Path(of.folder()) / "config.toml", folder / ".codex" / "config.toml")
        return
    for scope in SCOPES:
        try:
            yield settings_file(of, scope, folder)
        except InvalidInput:  # it has none
            continue


def _untrusted(folder: Path) -> Iterator[str]:
    try:
        hooks = codex_trust.listed(folder)
    except InvalidInput as error:
        yield str(error)
        return
    if waiting := [hook["eventName"] for hook in hooks if hook["trustStatus"] != "trusted"]:
        yield f"Codex skips {', '.join(waiting)} until you trust them: start codex and type /hooks."
    if off := [hook["eventName"] for hook in hooks if not hook["enabled"]]:
        yield f"These are turned off in Codex: {', '.join(off)}. To turn them on, type /hooks there."


def recorded() -> list[str]:
    """The agents whose payloads were recorded."""
    payloads: dict[str, Any] = json.loads(files("mulligan.hooks").joinpath("payloads.json").read_text("utf-8"))
    return [name for name in NAMES if name in payloads and agent(name).tried]
