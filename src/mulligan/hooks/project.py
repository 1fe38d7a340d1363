"""Which project a folder belongs to, read from the files of git, without starting git.

The worktrees and clones of one repository are one project: its address is what they share. A fork has another address,
so it is another project.
"""

from __future__ import annotations

import os
import re

PREFIX = "project:"

USER = "user:everywhere"
"""The bank of lessons that hold in all projects of this user."""

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.IGNORECASE | re.DOTALL)
_SCP = re.compile(r"(?:[^/@\[\]]*@)?(\[[^\]]+\]|[^/:\[\]]{2,}):(?!//)(.*)", re.DOTALL)  # one letter is a drive
_SECTION = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_URL = re.compile(r"\s*url\s*=\s*(.*)", re.IGNORECASE)
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


def project_id(folder: str) -> str:
    """`project:` and the repository's address (that of the remote origin), else git's folder that its worktrees share,
    else the folder. The folder need not exist."""
    return PREFIX + _identity(os.path.realpath(folder), _FOLLOWED)


def address(url: str) -> str:
    """An address of a repository in the form that all ways to it share: host and path; "" for none.

    Without the protocol, credentials (also those behind `?`), `.git` and what else differs between clones. A path on
    this disk stays a path.
    """
    url = re.split(r"[\x00-\x1f\x7f]", url.strip())[0]
    if found := _SCHEME.fullmatch(url):
        scheme, rest = found[1].lower(), found[2]
        authority, slash, path = rest.partition("/")
        if "@" in path and not _is_host(authority.rpartition("@")[2]):  # a password with a slash in it
            authority, slash, path = rest.rpartition("@")[2].partition("/")
        if scheme == "file":
            return _trimmed(slash + path)
        host, _, port = authority.rpartition("@")[2].partition(":") if "[" not in authority else (authority, "", "")
        if "[" in authority:
            host, _, port = authority.rpartition("@")[2].rpartition("]")
            host, port = host + "]", port.lstrip(":")
        kept = port and scheme in _PORTS and port != _PORTS[scheme]  # ssh: a port says how, not what
        return _joined(host, re.split(r"[?#\s]", path)[0], f":{port}" if kept else "")
    if found := _SCP.fullmatch(url):
        return _joined(found[1].strip("[]").partition(":")[0], found[2])
    return _trimmed(url)


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


def _identity(folder: str, most: int) -> str:
    top = folder
    while not (git := _git_folder(top)):
        above = os.path.dirname(top)
        if above == top:
            return folder
        top = above
    url = _origin(os.path.join(git, "config"))
    if not url:
        return git
    if (_SCHEME.match(url) and not url.lower().startswith("file:")) or _SCP.fullmatch(url):
        return address(url) or git
    there = os.path.realpath(os.path.join(top, re.sub("^file:(//[^/]*)?", "", url, flags=re.IGNORECASE)))
    if there in (top, git) or not most:
        return git
    if os.path.isdir(there) and (_git_folder(there) or _is_git(there)):
        return _identity(there, most - 1)
    return there


def _git_folder(top: str) -> str:
    """Git's folder of a work tree, the one that its worktrees share; of a bare repository, itself; "" for neither."""
    link = os.path.join(top, ".git")
    if os.path.isdir(link):
        own = link if _is_git(link) else ""
    elif text := _text(link):
        given = text.partition("gitdir:")[2].strip()
        own = os.path.join(top, given) if given else ""
    else:
        own = top if _is_git(top) else ""
    if not own or not os.path.isdir(own):
        return ""
    common = _text(os.path.join(own, "commondir")).strip()
    return os.path.realpath(os.path.join(own, common))


def _is_git(folder: str) -> bool:
    inside = ("HEAD", "objects", "config")
    return all(os.path.exists(os.path.join(folder, name)) for name in inside)


def _origin(config: str) -> str:
    """The first address of the remote origin. Included files and rewritten addresses are not followed."""
    here = False
    for line in _text(config).splitlines():
        if found := _SECTION.match(line):
            name, sub = found[1].lower(), found[2]
            here = (name == "remote" and sub == "origin") or (name == "remote.origin" and sub is None)
            line = line[found.end() :]
        if here and (found := _URL.match(line)):
            return _value(found[1])
    return ""


def _value(text: str) -> str:
    """A value of git's configuration: without comment, quotes and escapes."""
    plain, quoted, at = "", False, 0
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            at += 1
            plain += text[at]
        elif char == '"':
            quoted = not quoted
        elif char in "#;" and not quoted:
            break
        else:
            plain += char
        at += 1
    return plain.strip()


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            return opened.read(1 << 20)
    except OSError:
        return ""
