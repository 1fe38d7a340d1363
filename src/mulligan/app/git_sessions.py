"""The sessions that a repository holds in its refs `entire/checkpoints/*`: those of everybody who worked on it.

Entire keeps them on one branch, a folder for each checkpoint, or in a ref for each checkpoint; either way a session is
a folder with its transcript and a `metadata.json`. They are strangers' sessions: see `learning.keep`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mulligan.app.transcripts import Transcript, read_transcript
from mulligan.core.errors import InvalidInput
from mulligan.sessions.agents import NAMES, agent
from mulligan.sessions.records import record_in, text_at

_REFS = ("refs/heads/entire/checkpoints", "refs/remotes/*/entire/checkpoints", "refs/entire/checkpoints")
_TRANSCRIPT = re.compile(r"(?:full\.jsonl|full\.json|raw_transcript)(?:\.\d+)?")
"""The files of a transcript. A long one is cut into numbered parts."""
_QUIET = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.quotePath=false", "log.showSignature=false")
"""What keeps git from running anything of the repository's."""


@dataclass(frozen=True)
class Stored:
    """A session in a repository. at: when it was stored, as it was written there. read: its transcript, or why not."""

    session: str
    agent: str
    author: str
    at: str
    read: Transcript | str


def sessions_in(folder: str) -> list[Stored]:
    """The sessions of the repository of this folder, oldest first; of each its longest transcript.

    Raises `InvalidInput` where there is no repository, or none of its refs holds sessions.
    """
    listed = _git(folder, "for-each-ref", "--format=%(refname)%00%(authorname)", *_REFS).splitlines()
    if not listed:
        raise InvalidInput(
            "This repository has no refs entire/checkpoints/*, in which Entire keeps sessions. A clone does not fetch "
            "them by default. To fetch them: git fetch origin '+refs/entire/*:refs/entire/*'"
        )
    longest: dict[str, tuple[int, Stored]] = {}
    for line in listed:
        ref, _, author = line.partition("\0")
        for size, one in _of_ref(folder, ref, author):
            if size > longest.get(one.session, (-1, one))[0]:
                longest[one.session] = size, one
    return sorted((one for _, one in longest.values()), key=lambda one: (one.at, one.session))


def _of_ref(folder: str, ref: str, author: str) -> Iterator[tuple[int, Stored]]:
    """The sessions in the tree of a ref, each with the size of its transcript."""
    blobs: dict[str, dict[str, tuple[str, int]]] = {}
    for entry in _git(folder, "ls-tree", "-r", "-l", "-z", ref).split("\0"):
        about, _, path = entry.partition("\t")
        place, _, name = path.rpartition("/")
        if len(parts := about.split()) == 4 and parts[3].isdigit():
            blobs.setdefault(place, {})[name] = parts[2], int(parts[3])
    found = {place: files for place, files in blobs.items() if any(map(_TRANSCRIPT.fullmatch, files))}
    authors = _authors(folder, ref) if len(found) > 1 else dict[str, str]()
    for place, files in found.items():
        names = sorted(filter(_TRANSCRIPT.fullmatch, files))
        known = files.get("metadata.json")
        about = record_in(_git(folder, "cat-file", "blob", known[0]) if known else "")
        text = "".join(_git(folder, "cat-file", "blob", files[name][0]) for name in names)
        titled = text_at(about, "agent")
        read = _read(text, f"{ref}:{place}", next((name for name in NAMES if agent(name).title == titled), ""))
        own = "" if isinstance(read, str) else read.session
        session = text_at(about, "session_id") or text_at(about, "sessionID") or own or place
        at = text_at(about, "created_at") or text_at(about, "createdAt")
        name = "" if isinstance(read, str) else read.format
        who = authors.get(f"{place}/{names[0]}", author)
        yield sum(files[name][1] for name in names), Stored(session, name or titled, who, at, read)


def _read(text: str, name: str, format: str) -> Transcript | str:
    """The transcript in the format that is named, if it is one, else in the one that it is recognised as."""
    named = format if format and agent(format).readable and agent(format).recognises(text) else None
    try:
        return read_transcript(text, name, named)
    except InvalidInput as error:
        return str(error)


def _authors(folder: str, ref: str) -> Mapping[str, str]:
    """Who wrote each file of a branch last."""
    found: dict[str, str] = {}
    author = ""
    for line in _git(folder, "log", "--format=%x00%an", "--name-only", "--no-renames", ref).splitlines():
        if line.startswith("\0"):
            author = line[1:]
        elif line:
            found.setdefault(line, author)
    return found


def _git(folder: str, *arguments: str) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", "--no-pager", *(part for one in _QUIET for part in ("-c", one)), *arguments]
    try:
        ran = subprocess.run(command, cwd=folder, env=environ, capture_output=True, check=False)
    except OSError as error:
        raise InvalidInput(f"git cannot be started: {error}. Install it, or name transcripts.") from error
    if ran.returncode:
        raise InvalidInput(f"{folder}: {ran.stderr.decode('utf-8', 'replace').strip()[:300] or 'git failed'}")
    return ran.stdout.decode("utf-8", "replace")


def unreadable(sessions: Sequence[Stored]) -> Mapping[str, str]:
    """Why sessions could not be read, by their ids."""
    return {one.session: one.read for one in sessions if isinstance(one.read, str)}
