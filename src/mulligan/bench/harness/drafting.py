"""Drafts tasks for a proof from the lessons that hooks have learned in a project. A person completes them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from mulligan.app.sessions import project_bank
from mulligan.bench.harness.proof import transcript_of
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import Selection
from mulligan.core.records import Lesson
from mulligan.hooks.journal import Journal
from mulligan.hooks.project import project_id
from mulligan.sessions.pairs import CORRECTION, TAG
from mulligan.text.secrets import mask

_HEAD = """\
# Tasks for `mulligan bench prove`, drafted from what hooks have learned in this project. Complete each: the prompt is
# what a user said when the command failed, the check is a command that passed afterwards. A check that passes before
# the agent has done anything proves nothing: have `setup` restore that failing state in the copy, or drop the task.
"""
"""The comment at the top of the file."""
_MAX_PROMPT = 2000
_PLAIN = re.compile(r"[\w ./:@%+,-]*")
"""A command line that a shell would not change."""


def draft(folder: Path, file: Path) -> int:
    """Writes a task for each lesson about a failed command of the project in this folder.

    Returns the number of tasks. Raises `InvalidInput` if the file exists, or if there is no such lesson.
    """
    if file.exists():
        raise InvalidInput(f"{file} already exists; choose another name.")
    with Journal() as journal:
        bank_id = journal.bank_of(project_id(str(folder)))
        lessons = asyncio.run(_lessons(bank_id))
        about_failures = (lesson for lesson in lessons if TAG in lesson.tags and CORRECTION not in lesson.tags)
        tasks = [
            text for n, lesson in enumerate(about_failures, 1) if (text := _task(n, lesson, journal, folder, file))
        ]
    if not tasks:
        raise InvalidInput(
            f"The bank {bank_id} has no lesson about a command that failed, so no task can be drafted. `mulligan "
            "learn --since 30d` learns from past sessions in this folder's project."
        )
    file.write_text("\n".join([_HEAD, *tasks]), encoding="utf-8")
    return len(tasks)


async def _lessons(bank_id: str) -> Sequence[Lesson]:
    async with project_bank(bank_id) as bank:
        return await bank.list(Selection(("active",), nature="fact", limit=None))


def _task(n: int, lesson: Lesson, journal: Journal, folder: Path, file: Path) -> str:
    """The task as TOML; "" for a lesson without evidence."""
    evidence = cast(list[Any], lesson.context.get("seen") or [])
    failures = [cast(Mapping[str, Any], failure) for failure in evidence if isinstance(failure, dict)]
    if not failures:
        return ""
    failed = str(failures[-1].get("command", ""))
    works = lesson.content.partition("\nworks: ")[2].partition("\n")[0] or failed
    prompt = _user_message_before(journal, failures[-1])
    rows = [f"# {line}".rstrip() for line in lesson.content.splitlines()]
    rows += ["[[task]]", f"name = {_quoted(f'{n}-{lesson.id[:8]}')}"]
    rows += [f"prompt = {_quoted(prompt or f'Make this work: {failed}')}"]
    rows += [] if prompt else ["# The transcript of that session no longer exists: write what the user wanted."]
    rows += [
        f"check = {_quoted(_without_shell(works))}",
        f"folder = {_quoted(os.path.relpath(folder, file.resolve().parent))}",
    ]
    return "\n".join([*rows, '# setup = ""', ""])


def _without_shell(command: str) -> str:
    """The command line of a shell as one that runs without a shell."""
    return command if _PLAIN.fullmatch(command) else f"sh -c {shlex.quote(command)}"


def _user_message_before(journal: Journal, failure: Mapping[str, Any]) -> str:
    """The user's last message before the failed call, masked; "" if the transcript is gone."""
    calls = cast(Sequence[str], failure.get("calls") or [""])
    session = journal.session(str(failure.get("agent", "")), str(failure.get("session", "")))
    message = ""
    for turn in (session and transcript_of(session)) or ():
        if not turn.is_call:
            message = turn.text if turn.who == "user" else message
        elif turn.id == calls[0]:
            return mask(message.strip())[:_MAX_PROMPT]
    return ""


def _quoted(text: str) -> str:
    """The text as a basic string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
