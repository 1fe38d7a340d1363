"""Which project a folder belongs to, read from the files of git, without starting git; and which folders may use the
lessons of a project.

The worktrees and clones of one repository are one project: its address is what they share. A fork has another address,
so it is another project. Anybody can write an address into a configuration, so the address alone opens the lessons of
a project to the first folder that uses them, and to others that share its history or that a person allowed
(design/122).
"""

from __future__ import annotations

import json
import os
import re

from mulligan.core.home import home_path
from mulligan.core.light import TYPE_CHECKING, NamedTuple
from mulligan.hooks.swallowed import private
from mulligan.workspace.git_files import Repository, repository

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PREFIX = "project:"

USER = "user:everywhere"
"""The bank of lessons that hold in all projects of this user."""

# Patterns are compiled when they are used, because the program of hooks starts so often.
_SCHEME = r"(?is)([a-z][a-z0-9+.-]*)://(.*)"
_SCP = r"(?s)(?:[^/@\[\]]*@)?(\[[^\]]+\]|[^/:\[\]]{2,}):(?!//)(.*)"  # one letter is a drive
_PORTS = {"http": "80", "https": "443", "git": "9418"}
_SSH = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}
"""Hosts that serve the same repositories on the port of https."""
_ANY_CASE = {"github.com", "gitlab.com", "bitbucket.org"}
"""Hosts on which the case of a path means nothing."""
_FOLLOWED = 8
"""Clones of clones on one disk that are followed to the address of the first."""
FILE = "projects.jsonl"
"""The file in Mulligan's home that keeps which folders use which project, one in a line."""
JOIN = "mulligan hooks rebind --folder"
"""The command by which a person lets a folder use the lessons of its project."""
FIRST, HISTORY, EARLIER, PERSON = "first", "history", "earlier", "person"
"""Why a folder may use a project: nothing used it before, they share a commit, a session of hooks took place there
before this was noted, or a person said so."""


class Project(NamedTuple):
    """The project of a folder.

    Attributes:
        id: the project whose lessons the folder uses: its address, else its folder; "" if unknown.
        claim: the project that the folder names, by the address of its remote origin or in mulligan.toml.
        folder: what is allowed or not: git's folder, which all worktrees share, else the folder.
        owner: the folder that uses the lessons of `claim`, where this one may not.
    """

    id: str
    claim: str = ""
    folder: str = ""
    owner: str = ""

    @property
    def notice(self) -> str:
        """Why the folder has lessons of its own, and what changes that; "" if it has those of the project."""
        if not self.owner:
            return ""
        from shlex import quote  # only here, because the program of hooks starts so often

        there = quote(self.folder.removesuffix("/.git"))
        return (
            f"The lessons of {self.claim} are not used here: {self.owner} uses them, and only a person can confirm "
            f"that this folder belongs to the same project. To use them here: {JOIN} {there}"
        )


def project_id(folder: str) -> str:
    """`project:` and the id of the folder's project, which need not exist."""
    return PREFIX + project_of(folder).id


def project_of(folder: str, name: str = "") -> Project:
    """The project whose lessons this folder uses, noted for the folders that come later. name: instead of the address
    of the remote origin."""
    claim, place, found = _claimed(folder, name)
    if claim == place:
        return Project(claim, claim, place)
    if _may_use(claim, place, found):
        return Project(claim, claim, place)
    owner = next((line.folder for line in _lines(claim)), claim)
    return Project(place, claim, place, owner.removesuffix("/.git"))


def allow(folder: str, name: str = "") -> Project:
    """Lets this folder use the lessons of the project that it names, because a person said so. name: as in
    `project_of`. Raises `OSError` where that cannot be noted."""
    claim, place, found = _claimed(folder, name)
    if claim != place and not any(line.folder == place and line.by == PERSON for line in _lines(claim)):
        _append(_Line(claim, place, found.head if found else "", PERSON))
    return Project(claim, claim, place)


def address(url: str) -> str:
    """An address of a repository in the form that all ways to it share: host and path; "" for none.

    Without the protocol, credentials (also those behind `?`), `.git` and what else differs between clones. A path on
    this disk stays a path.
    """
    url = re.split(r"[\x00-\x1f\x7f]", url.strip())[0]
    if found := re.fullmatch(_SCHEME, url):
        scheme, rest = found[1].lower(), found[2]
        authority, slash, path = rest.partition("/")
        if "@" in path and not _is_host(authority.rpartition("@")[2]):  # a password with a slash in it
            authority, slash, path = rest.rpartition("@")[2].partition("/")
        if scheme == "file":
            return _trimmed(slash + path)
        host, port = _host_and_port(authority.rpartition("@")[2])
        kept = port and scheme in _PORTS and port != _PORTS[scheme]  # ssh: a port says how, not what
        return _joined(host, re.split(r"[?#\s]", path)[0], f":{port}" if kept else "")
    if found := re.fullmatch(_SCP, url):
        host = found[1] if re.match(r"\[[^@]*:[^@]*:", found[1]) else found[1].strip("[]").rpartition("@")[2]
        return _joined(_host_and_port(host)[0], found[2])
    return _trimmed(url)


def _host_and_port(authority: str) -> tuple[str, str]:
    """The host, an IPv6 address with its brackets, and the port; "" for none."""
    if authority.startswith("["):
        host, _, port = authority.rpartition("]")
        return f"{host}]", port.removeprefix(":")
    host, _, port = authority.partition(":")
    return host, port


def _is_host(authority: str) -> bool:
    name, _, port = authority.partition(":")
    return authority.startswith("[") or bool(name and (not port or port.isdigit()))


def _joined(host: str, path: str, port: str = "") -> str:
    host = host.lower().rstrip(".")
    host = _SSH.get(host, host)
    path = _trimmed(path).lstrip("/")
    return f"{host}{port}/{path.lower() if host in _ANY_CASE else path}".rstrip("/")


def _trimmed(path: str) -> str:
    path = re.sub("/+", "/", path)
    return (path if path == "/" else path.rstrip("/")).removesuffix(".git").rstrip("/") or path[:1]


class _Line(NamedTuple):
    """A folder that uses a project. commit: one that its repository has."""

    project: str
    folder: str
    commit: str
    by: str


def _claimed(folder: str, name: str) -> tuple[str, str, Repository | None]:
    """The project that a folder names, what is noted as the folder, and its repository."""
    folder = os.path.realpath(folder)
    found = repository(folder)
    place = folder if found is None else found.common if found.own else found.top
    claim = name or (place if found is None else _identity(found, _FOLLOWED))
    claim, place = (_plain(one) for one in (claim, place))
    return claim, place, found


def _plain(text: str) -> str:
    """The text in one line, with what is not UTF-8 replaced."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", text.encode("utf-8", "replace").decode())


def _identity(found: Repository, most: int) -> str:
    """The address of the remote origin; of one on this disk, what that names; else git's folder."""
    url = found.origin
    if not url:
        return found.common
    if (re.match(_SCHEME, url) and not url.lower().startswith("file:")) or re.fullmatch(_SCP, url):
        return address(url) or found.common
    there = os.path.realpath(os.path.join(found.top, re.sub("^file:(//[^/]*)?", "", url, flags=re.IGNORECASE)))
    if there in (found.top, found.common) or not most:
        return found.common
    other = _at(there)
    return _identity(other, most - 1) if other else there


def _at(path: str) -> Repository | None:
    """The repository at this path itself."""
    for git in (os.path.join(path, ".git"), path, f"{path}.git"):
        if os.path.exists(git) and (found := repository(path, {**os.environ, "GIT_DIR": git})):
            return found
    return None


def _may_use(claim: str, place: str, found: Repository | None) -> bool:
    lines = _lines(claim)
    if any(line.folder == place for line in lines):
        return True
    head = found.head if found else ""
    if not lines and _is_free(claim):
        _append(_Line(claim, place, head, FIRST), quietly=True)
        return any(line.folder == place for line in _lines(claim))
    for line in lines or [_Line(claim, claim, "", FIRST)]:
        if found is not None and found.own and _share(found, line):
            _append(_Line(claim, place, head, HISTORY), quietly=True)
            return True
    return False


def _is_free(claim: str) -> bool:
    """Whether a project that no folder uses yet is that of the first that names it. A folder of this disk is a project
    of its own, except for a bare repository, in which nobody works."""
    other = _at(claim) if os.path.isabs(claim) else None
    return not os.path.isabs(claim) or (other is not None and claim == other.common and not claim.endswith("/.git"))


def _share(found: Repository, line: _Line) -> bool:
    """Whether a repository has a commit in common with the one of this line, and stores it: anybody can write the id of
    a commit into a reference."""
    if found.has(line.commit):
        return True
    other = _at(line.folder)
    return other is not None and (found.has(other.head) or (other.has(found.head) and found.has(found.head)))


def _lines(project: str) -> Sequence[_Line]:
    """What is noted of a project, the oldest first; of two folders that were first at once, one."""
    lines = [line for line in _noted() if line.project == project]
    return [line for n, line in enumerate(lines) if n == 0 or line.by != FIRST]


def _noted() -> Iterator[_Line]:
    file = os.path.join(home_path(), FILE)
    if not os.path.exists(file):
        _begin(file)
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            texts = opened.readlines()
    except OSError:
        return
    for text in texts:
        try:
            line: Mapping[str, str] = json.loads(text)
            yield _Line(*(str(line[name]) for name in ("project", "folder", "commit", "by")))
        except (ValueError, LookupError, TypeError):  # a line that was not written whole
            continue


def _append(line: _Line, *, quietly: bool = False) -> None:
    try:
        os.makedirs(home_path(), exist_ok=True)
        with open(os.path.join(home_path(), FILE), "ab", opener=private) as file:
            # In one piece, so that two processes do not mix their lines; and on a new line after what was cut off.
            file.write(b"\n" + _encoded([line]))
    except OSError:
        if not quietly:
            raise


def _encoded(lines: Sequence[_Line]) -> bytes:
    named = ({"project": line.project, "folder": line.folder, "commit": line.commit, "by": line.by} for line in lines)
    return "".join(f"{json.dumps(one)}\n" for one in named).encode()


def _begin(file: str) -> None:
    """Notes the folders of the sessions that took place before folders were noted."""
    import sqlite3  # only once

    from mulligan.hooks.journal import FILE as JOURNAL

    journal = os.path.join(home_path(), JOURNAL)
    if not os.path.exists(journal):
        return
    part = f"{file}.{os.getpid()}"
    try:
        db = sqlite3.connect(journal, timeout=0.1)
        try:
            sessions = db.execute(_SESSIONS, (f"{PREFIX}%",)).fetchall()
        finally:
            db.close()
        lines: list[_Line] = []
        for project, folder in sessions:
            _, place, found = _claimed(folder, "")
            lines.append(_Line(project.removeprefix(PREFIX), place, found.head if found else "", EARLIER))
        try:
            with open(part, "wb", opener=private) as opened:
                opened.write(_encoded(lines))
            os.link(part, file)  # fails where another process was faster
        finally:
            os.unlink(part)
    except (sqlite3.Error, OSError):
        return


_SESSIONS = """
SELECT project, folder FROM sessions WHERE project LIKE ? AND folder <> '' AND subagent = ''
GROUP BY project, folder ORDER BY max(seen) DESC LIMIT 100
"""
