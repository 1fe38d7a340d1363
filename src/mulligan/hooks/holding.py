"""Which coding agents a goal would hold at work: those whose hooks are installed, trusted and new enough."""

from __future__ import annotations

from pathlib import Path

from mulligan.core.errors import InvalidInput
from mulligan.hooks import doctor, install
from mulligan.sessions.agents import CodingAgent, agent
from mulligan.text.plain import count


def agents_that_hold(folder: str, trials: int, only: str = "") -> list[str]:
    """What a person should know of the agents whose hooks are installed here, in lines.

    only: the name of an agent in whose session the goal is set; "": any.

    Raises:
        InvalidInput: No agent would be held at work; the message says why, such as older hooks or missing trust.
    """
    lines, not_held = list[str](), list[str]()
    here = Path(folder)
    holding: list[CodingAgent] = []
    for name, _, path, text in install.installations(here):
        of = agent(name)
        if not of.holds or path.suffix == ".toml" or (only and name != only):
            continue
        given = doctor.commands(of, path, text)
        if why := doctor.does_not_hold(of, given, here):
            not_held.append(f"{of.title} would not run the check because of {path}: {why}")
        elif of not in holding:
            holding.append(of)
    if not holding:
        plugged = [name for name in ("claude", "codex", "gemini") if doctor.plug_in(agent(name), here)]
        if not plugged:
            nobody = (
                "No coding agent has Mulligan's hooks here, so nothing would run the check. To install them: "
                "`mulligan hooks install`."
            )
            instead = " opencode has no such hook: use `mulligan goal --run opencode CHECK TASK`."
            raise InvalidInput("\n".join(not_held) or nobody + (instead if "opencode" in install.present() else ""))
        lines.append(f"Kept working, if their plug-in has this version: {', '.join(plugged)}.")
    for of in holding:
        tried = "" if of.tried else " (according to its documentation; untested)"
        lines.append(f"Kept working: {of.title}{tried}.")
        if 0 < of.holds_in_row < trials:
            lines.append(
                f"{of.title} ends a turn after {count(of.holds_in_row, 'blocked stop')} in a row, whatever --tries "
                "says."
            )
    return [*lines, *not_held]
