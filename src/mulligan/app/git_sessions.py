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
"""The names of a transcript's files. A long one is cut into numbered parts."""
_SAFE_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.quotePath=false", "log.showSignature=false")
"""Settings that keep git from running anything from the repository."""


@dataclass(frozen=True)
class Stored:
    """A session in a repository. at: its recorded time. read: its transcript, or why it cannot be read."""

    session: str
    agent: str
    author: str
    at: str
    read: Transcript | str


def sessions_in(folder: str) -> list[Stored]:
    """The sessions in the repository of this folder, oldest first, each with its longest transcript.

    Raises `InvalidInput` where there is no repository, or none of its refs holds sessions.
    """
    listed = _git(folder, "for-each-ref", "--format=%(refname)%00%(authorname)", *_REFS).splitlines()
    if not listed:
        raise InvalidInput(
            "This repository has no refs entire/checkpoints/*, where Entire stores sessions. Cloning does not "
            "fetch them by default. To fetch them: git fetch origin '+refs/entire/*:refs/entire/*'"
        )
    longest: dict[str, tuple[int, Stored]] = {}
    for line in listed:
        ref, _, author = line.partition("\0")
        for size, session in _sessions_of_ref(folder, ref, author):
            if size > longest.get(session.session, (-1, session))[0]:
                longest[session.session] = size, session
    return sorted((session for _, session in longest.values()), key=lambda session: (session.at, session.session))


def _sessions_of_ref(folder: str, ref: str, author: str) -> Iterator[tuple[int, Stored]]:
    """The sessions in the tree of a ref, each with the size of its transcript."""
    blobs: dict[str, dict[str, tuple[str, int]]] = {}
    for entry in _git(folder, "ls-tree", "-r", "-l", "-z", ref).split("\0"):
        about, _, path = entry.partition("\t")
        place, _, name = path.rpartition("/")
        if len(parts := about.split()) == 4 and parts[3].isdigit():
            blobs.setdefault(place, {})[name] = parts[2], int(parts[3])
    session_files = {place: files for place, files in blobs.items() if any(map(_TRANSCRIPT.fullmatch, files))}
    authors = _authors(folder, ref) if len(session_files) > 1 else dict[str, str]()
    for place, files in session_files.items():
        names = sorted(filter(_TRANSCRIPT.fullmatch, files))
        metadata = files.get("metadata.json")
        about = record_in(_git(folder, "cat-file", "blob", metadata[0]) if metadata else "")
        text = "".join(_git(folder, "cat-file", "blob", files[name][0]) for name in names)
        title = text_at(about, "agent")
        read = _read(text, f"{ref}:{place}", next((name for name in NAMES if agent(name).title == title), ""))
        session_in_text = "" if isinstance(read, str) else read.session
        session = text_at(about, "session_id") or text_at(about, "sessionID") or session_in_text or place
        at = text_at(about, "created_at") or text_at(about, "createdAt")
        name = "" if isinstance(read, str) else read.format
        who = authors.get(f"{place}/{names[0]}", author)
        yield sum(files[name][1] for name in names), Stored(session, name or title, who, at, read)


def _read(text: str, name: str, format: str) -> Transcript | str:
    """The transcript, read in the named format if the text fits it, else in the one that is recognised."""
    named = format if format and agent(format).readable and agent(format).recognises(text) else None
    try:
        return read_transcript(text, name, named)
    except InvalidInput as error:
        return str(error)


def _authors(folder: str, ref: str) -> Mapping[str, str]:
    """The last author of each file of a branch."""
    authors: dict[str, str] = {}
    author = ""
    for line in _git(folder, "log", "--format=%x00%an", "--name-only", "--no-renames", ref).splitlines():
        if line.startswith("\0"):
            author = line[1:]
        elif line:
            authors.setdefault(line, author)
    return authors


def _git(folder: str, *arguments: str) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", "--no-pager", *(part for setting in _SAFE_SETTINGS for part in ("-c", setting)), *arguments]
    try:
        result = subprocess.run(command, cwd=folder, env=environ, capture_output=True, check=False)
    except OSError as error:
        raise InvalidInput(f"git cannot be started: {error}. Install git, or pass transcript files.") from error
    if result.returncode:
        raise InvalidInput(f"{folder}: {result.stderr.decode('utf-8', 'replace').strip()[:300] or 'git failed'}")
    return result.stdout.decode("utf-8", "replace")


def unreadable(sessions: Sequence[Stored]) -> Mapping[str, str]:
    """Why sessions could not be read, by their ids."""
    return {session.session: session.read for session in sessions if isinstance(session.read, str)}
