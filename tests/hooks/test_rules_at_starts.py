"""Which lessons a session is shown at its start: those of likely errors, and what a person wants to last."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from agent_transcripts import AT
from test_learning_from_sessions import FAILS, MENDS, MISSING, failing, project, stopped, transcript

from mulligan.app.sessions import finish
from mulligan.hooks.entry import respond
from mulligan.hooks.journal import Journal

__all__ = ["project"]  # a fixture


def starting(project: Path, session: str) -> str:
    """What the hook of Claude Code answers at the start of a session."""
    payload = {"session_id": session, "cwd": str(project), "hook_event_name": "SessionStart", "source": "startup"}
    return respond("claude", "", json.dumps(payload).encode())


async def starts(project: Path, lesson: str, *stories: tuple[tuple[Any, ...], ...]) -> str:
    """At the start of which of these sessions, one after the other, the lesson is shown: + or -."""
    shown = ""
    for story in stories:
        with Journal() as journal:
            session = f"s{len(journal.sessions())}"
            shown += "+" if lesson in starting(project, session) else "-"
            file = transcript(project, session, (("user", "Build it."), *story, ("agent", "Done.")))
            file.write_text(file.read_text().replace(AT, datetime.now(UTC).isoformat()))
            stopped(journal, project, session, file)
            await finish(journal)
    return shown


OTHER = (("sh", "make docs", "ok", 0),)


@pytest.mark.anyio
@pytest.mark.parametrize("hidden", [False, True])
async def test_a_rule_is_shown_at_a_start_while_its_error_is_likely(project: Path, hidden: bool) -> None:
    fails = (FAILS, *MENDS)
    third = (("sh", "pytest tests 2>&1 | tail -5", MISSING, 0),) if hidden else fails
    shown = await starts(project, "pip install pyyaml", fails, fails, third, OTHER, OTHER, OTHER)
    assert shown == "---++-", "in 3 of 3, 3 of 4 and 3 of 5 sessions"


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_rule_that_is_followed_stays_until_ten_sessions_had_no_such_error(project: Path) -> None:
    fails = (FAILS, *MENDS)
    shown = await starts(project, "pip install pyyaml", *[fails] * 3, *[MENDS] * 10, OTHER, fails, OTHER)
    assert shown == "---" + "+" * 10 + "--" + "+", "after one more failure it is back"


@pytest.mark.slow
@pytest.mark.anyio
async def test_what_only_sounds_lasting_is_shown_at_ten_starts_unless_it_is_said_again(project: Path) -> None:
    said = "please use conventional commits"
    story = (("sh", "git commit -m x", "ok", 0), ("user", said), ("sh", "git commit -m 'feat: x'", "ok", 0))
    assert await starts(project, said, story) == "-"
    assert ["conventional" in starting(project, f"t{n}") for n in range(12)] == [True] * 10 + [False] * 2
    assert await starts(project, said, story, OTHER) == "-+"
    always = (("sh", "git commit -m x", "ok", 0), ("user", "never commit without tests"), OTHER[0])
    await starts(project, "never", always)
    assert all("never commit" in starting(project, f"u{n}") for n in range(12))


@pytest.mark.anyio
async def test_a_fixer_is_shown_whatever_the_check_found_and_at_no_start(project: Path) -> None:
    async def learned(session: str, output: str) -> None:
        fixed = (("sh", "npm run lint:fix", "ok", 0), ("sh", "npm run lint 2>&1 && npm test", "ok", 0))
        story = (("user", "Build it."), ("sh", "npm run lint 2>&1", output, 1), *fixed, ("agent", "Done."))
        with Journal() as journal:
            stopped(journal, project, session, transcript(project, session, story))
            await finish(journal)

    await learned("s1", "src/a.js:1:1 lint/noUnusedVariables")
    assert "fixes what it can (seen once, unproven)" in failing(project, "s2", "c1", "npm run lint", "src/b.js")
    for session in ("s3", "s5", "s6"):
        await learned(session, "Found 1 error.")
    assert starting(project, "s7") == ""
    shown = failing(project, "s4", "c2", "cd web && npm run lint 2>&1", "Found 2 errors.")
    assert "npm run lint: npm run lint:fix fixes what it can" in shown
    assert "works after" not in shown, "its title says all"
    assert failing(project, "s4", "c3", "npm test", "src/d.js") == ""
    unsafe = "src/a.js:3:1 lint/noUnusedVariables\n  i Unsafe fix: Prepend an underscore."
    assert failing(project, "u1", "c1", "npm run lint", unsafe) == "", "the tool does not fix this by itself"
    assert failing(project, "u2", "c1", "npm run lint", f"{unsafe}\n× Formatter would have printed this:\n1 - x\n")
    for n, absent in enumerate(
        ('error: Script not found "lint"', "npm error Missing script: lint", "sh: npm: not found")
    ):
        assert failing(project, f"s{8 + n}", "c1", "npm run lint", absent) == "", "the check did not run"
