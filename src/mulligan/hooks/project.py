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
"""Hosts that ignore the case of a path."""
_MAX_CLONES = 8
"""How many clones of clones on one disk are followed to the address of the first."""
FILE = "projects.jsonl"
"""The file in Mulligan's home that says which folders use which project, one a line."""
_JOIN_COMMAND = "mulligan hooks rebind --folder"
"""Lets a folder use the lessons of its project. Only a person may start it."""
FIRST, HISTORY, EARLIER, PERSON = "first", "history", "earlier", "person"
"""Why a folder may use a project: no folder used it before, it shares a commit with one that does, hooks ran there
before this was noted, or a person allowed it."""


class Project(NamedTuple):
    """The project of a folder.

    Attributes:
        id: the project whose lessons the folder uses: its address, else its folder; "" if unknown.
        claim: the project that the folder names, by the address of its remote origin or in mulligan.toml.
        folder: what `claim` is open to: git's folder, which all worktrees share, else the folder itself.
        owner: the folder that uses the lessons of `claim`; "" if this one may use them.
    """

    id: str
    claim: str = ""
    folder: str = ""
    owner: str = ""

    @property
    def notice(self) -> str:
        """Why the folder does not use the lessons of `claim`, and how it can; "" if it uses them."""
        if not self.owner:
            return ""
        from shlex import quote  # only here, because the program of hooks starts so often

        folder = quote(self.folder.removesuffix("/.git"))
        return (
            f"{self.claim}'s lessons are not used here: {self.owner} uses them, and only a person can confirm "
            f"that this folder belongs to the same project. To use them here: {_JOIN_COMMAND} {folder}"
        )


def project_id(folder: str) -> str:
    """`project:` and the id of the project of this folder, which need not exist."""
    return PREFIX + project_of(folder).id


def project_of(folder: str, name: str = "") -> Project:
    """The project whose lessons this folder uses. A first use is noted, so that it counts for other folders.

    Args:
        name: of the project, instead of the address of the remote origin.
    """
    claimant = _claimant(folder, name)
    claim, place, _ = claimant
    if claim == place or _admit(claimant):
        return Project(claim, claim, place)
    owner = next((line.folder for line in _lines(claim)), claim)
    return Project(place, claim, place, owner.removesuffix("/.git"))


def allow(folder: str, name: str = "") -> Project:
    """Let this folder use the lessons of the project that it names, because a person said so.

    Args:
        name: as for `project_of`.

    Raises:
        OSError: this could not be noted.
    """
    claimant = _claimant(folder, name)
    claim, place, _ = claimant
    if claim != place and not any(line.folder == place and line.by == PERSON for line in _lines(claim)):
        _append(claimant.line(PERSON))
    return Project(claim, claim, place)


def address(url: str) -> str:
    """The address of a repository as host and path, which is the same for all ways to reach it; "" for none.

    It has no protocol, credentials (also those behind `?`), `.git`, or anything else in which clones differ. A path on
    this disk stays a path.
    """
    url = re.split(r"[\x00-\x1f\x7f]", url.strip())[0]
    if match := re.fullmatch(_SCHEME, url):
        scheme, rest = match[1].lower(), match[2]
        authority, slash, path = rest.partition("/")
        if "@" in path and not _is_host(authority.rpartition("@")[2]):  # a password with a slash in it
            authority, slash, path = rest.rpartition("@")[2].partition("/")
        if scheme == "file":
            return _trimmed(slash + path)
        host, port = _host_and_port(authority.rpartition("@")[2])
        matters = port and scheme in _PORTS and port != _PORTS[scheme]  # with ssh, all ports lead to the same
        return _joined(host, re.split(r"[?#\s]", path)[0], f":{port}" if matters else "")
    if match := re.fullmatch(_SCP, url):
        is_ipv6 = re.match(r"\[[^@]*:[^@]*:", match[1])
        host = match[1] if is_ipv6 else match[1].strip("[]").rpartition("@")[2]  # [user@host:port]:path
        return _joined(_host_and_port(host)[0], match[2])
    return _trimmed(url)


def _host_and_port(authority: str) -> tuple[str, str]:
    """The host (an IPv6 address with its brackets) and the port, "" for none."""
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
    """A line of `FILE`: a folder that uses a project.

    Attributes:
        commit: one that the folder's repository has; "" for none.
        by: why it may use the project, such as `FIRST`.
    """

    project: str
    folder: str
    commit: str
    by: str


class _Claimant(NamedTuple):
    """A folder that names a project. place: what is noted as the folder."""

    claim: str
    place: str
    repository: Repository | None

    def line(self, by: str) -> _Line:
        return _Line(self.claim, self.place, self.repository.head if self.repository else "", by)


def _claimant(folder: str, name: str) -> _Claimant:
    folder = os.path.realpath(folder)
    here = repository(folder)
    place = folder if here is None else here.common if here.own else here.top
    claim = name or (place if here is None else _identity(here, _MAX_CLONES))
    return _Claimant(_plain(claim), _plain(place), here)


def _plain(text: str) -> str:
    """The text on one line, as valid UTF-8."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", text.encode("utf-8", "replace").decode())


def _identity(here: Repository, clones: int) -> str:
    """What names a repository: the address of its remote origin, else git's folder.

    clones: how many origins on this disk are followed to the origin of theirs.
    """
    url = here.origin
    if not url:
        return here.common
    if (re.match(_SCHEME, url) and not url.lower().startswith("file:")) or re.fullmatch(_SCP, url):
        return address(url) or here.common
    path = os.path.realpath(os.path.join(here.top, re.sub("^file:(//[^/]*)?", "", url, flags=re.IGNORECASE)))
    if path in (here.top, here.common) or not clones:
        return here.common
    origin = _repository_at(path)
    return _identity(origin, clones - 1) if origin else path


def _repository_at(path: str) -> Repository | None:
    """The repository at this very path, not above it."""
    for git in (os.path.join(path, ".git"), path, f"{path}.git"):
        if os.path.exists(git) and (here := repository(path, {**os.environ, "GIT_DIR": git})):
            return here
    return None


def _admit(claimant: _Claimant) -> bool:
    """Whether a folder may use the project that it names. If it may for the first time, that is noted."""
    claim, place, here = claimant
    lines = _lines(claim)
    if any(line.folder == place for line in lines):
        return True
    if not lines and _is_free(claim):
        _append(claimant.line(FIRST), quietly=True)
        return any(line.folder == place for line in _lines(claim))  # another process may have been faster
    for line in lines or [_Line(claim, claim, "", FIRST)]:
        if here is not None and here.own and _share_history(here, line):
            _append(claimant.line(HISTORY), quietly=True)
            return True
    return False


def _is_free(claim: str) -> bool:
    """Whether the first folder that names a project gets it. A path names a folder that has lessons of its own, unless
    that is a bare repository, in which nobody works."""
    if not os.path.isabs(claim):
        return True
    there = _repository_at(claim)
    return there is not None and claim == there.common and not claim.endswith("/.git")


def _share_history(here: Repository, line: _Line) -> bool:
    """Whether a repository and the one of a line store a common commit. A reference to one proves nothing: anybody can
    write the id of a commit."""
    if here.has(line.commit):
        return True
    there = _repository_at(line.folder)
    return there is not None and (here.has(there.head) or (there.has(here.head) and here.has(here.head)))


_SESSIONS = """
SELECT project, folder FROM sessions WHERE project LIKE ? AND folder <> '' AND subagent = ''
GROUP BY project, folder ORDER BY max(seen) DESC LIMIT 100
"""


def _lines(project: str) -> Sequence[_Line]:
    """The lines of a project, the oldest first. If two folders came first at the same time, only one of them counts."""
    lines = [line for line in _all_lines() if line.project == project]
    return [line for n, line in enumerate(lines) if n == 0 or line.by != FIRST]


def _all_lines() -> Iterator[_Line]:
    file = os.path.join(home_path(), FILE)
    if not os.path.exists(file):
        _import_from_journal(file)
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            texts = opened.readlines()
    except OSError:
        return
    for text in texts:
        try:
            fields: Mapping[str, str] = json.loads(text)
            yield _Line(*(str(fields[name]) for name in _Line._fields))
        except (ValueError, LookupError, TypeError):  # a line that was not written completely
            continue


def _append(line: _Line, *, quietly: bool = False) -> None:
    """Note that a folder uses a project. quietly: raise no `OSError`."""
    try:
        os.makedirs(home_path(), exist_ok=True)
        with open(os.path.join(home_path(), FILE), "ab", opener=private) as file:
            # In one piece, so that two processes do not mix their lines; after a newline, as the last line may be cut.
            file.write(b"\n" + _encoded([line]))
    except OSError:
        if not quietly:
            raise


def _encoded(lines: Sequence[_Line]) -> bytes:
    return "".join(f"{json.dumps(line._asdict())}\n" for line in lines).encode()


def _import_from_journal(file: str) -> None:
    """Write the folders of the sessions that the journal has to a new file: earlier versions did not note them."""
    import sqlite3  # only once

    from mulligan.hooks.journal_file import FILE as JOURNAL

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
        lines = [
            _claimant(folder, "").line(EARLIER)._replace(project=project.removeprefix(PREFIX))
            for project, folder in sessions
        ]
        try:
            with open(part, "wb", opener=private) as opened:
                opened.write(_encoded(lines))
            os.link(part, file)  # fails if another process was faster
        finally:
            os.unlink(part)
    except (sqlite3.Error, OSError):
        return
