"""Read what git would answer about a folder from its files, without starting git.

Hooks of coding agents ask at each session, and git takes 5 to 20 ms to start. A bare repository counts only where
`GIT_DIR` names it, as with `safe.bareRepository=explicit`: a folder of a work tree can look like one.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False  # as a type checker reads it; without the import, because the program of hooks starts so often

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Patterns are compiled when they are used, because the program of hooks starts so often.
_HEADER = r'\[([A-Za-z0-9_.-]+)\]|\[([A-Za-z0-9_.-]+)[ \t]+"((?:[^"\\\n]|\\[^\n])*)"\]'
_NAME = r"([A-Za-z][A-Za-z0-9-]*)[ \t]*"
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\", "\n": ""}
_ID = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_QUOTED = r"'((?:[^']|'\\''|'\\!')*)'(?:='((?:[^']|'\\'')*)')?"
_DEEPEST = 10
"""Files that include one another, one below the other."""
_MOST = 1 << 24


class Repository:
    """The repository that git finds for a folder.

    Attributes:
        top: the folder that has `.git`.
        git: git's folder of this work tree.
        common: git's folder that all work trees of the repository share.
        origin: the address of the remote origin, as git would fetch from it; "" for none.
        own: whether the repository itself says that this work tree is its own. A link to git's folder says it alone.
    """

    def __init__(self, top: str, git: str, common: str, origin: str, own: bool) -> None:
        self.top, self.git, self.common, self.origin, self.own = top, git, common, origin, own

    @property
    def head(self) -> str:
        """The commit that is checked out; "" for none."""
        head = self._read(self.git, "HEAD").strip()
        for _ in range(5):
            if not head.startswith("ref:"):
                return head if re.fullmatch(_ID, head) else ""
            ref = head[4:].strip()
            head = self._read(self.common, *ref.split("/")).strip() or self._packed(ref)
        return ""

    def _read(self, *parts: str) -> str:
        """The text of a file of the repository; "" where it is a link to somewhere else."""
        file = os.path.join(*parts)
        inside = os.path.realpath(file).startswith((os.path.join(self.git, ""), os.path.join(self.common, "")))
        return _text(file) if inside else ""

    def _packed(self, ref: str) -> str:
        """The commit of a reference in `packed-refs`; "" for none."""
        lines = self._read(self.common, "packed-refs").splitlines()
        return next((line.partition(" ")[0] for line in lines if line.endswith(f" {ref}")), "")

    def has(self, commit: str) -> bool:
        """Whether the repository stores this commit itself. Objects that it borrows from another do not count."""
        objects = os.path.join(self.common, "objects")
        if not re.fullmatch(_ID, commit) or os.path.realpath(objects) != objects:
            return False
        loose, packs = os.path.join(objects, commit[:2], commit[2:]), os.path.join(objects, "pack")
        if os.path.realpath(loose) == loose and os.path.isfile(loose):
            return True
        try:
            names = os.listdir(packs) if os.path.realpath(packs) == packs else []
        except OSError:
            names = []
        return any(_indexed(os.path.join(packs, name), bytes.fromhex(commit)) for name in names if name[-4:] == ".idx")


def repository(folder: str, environ: Mapping[str, str] = os.environ) -> Repository | None:
    """The repository of a folder; None where git finds none, or refuses the one that it finds."""
    folder = os.path.realpath(folder)
    named = environ.get("GIT_DIR", "")
    top, git = (folder, _given(os.path.join(folder, named), environ)) if named else _discovered(folder, environ)
    if not git:
        return None
    common = _common(git, environ)
    try:
        shared = _entries(_shared_files(environ), git)
        if not named and not _is_mine(top, git, shared):
            return None
        local = _entries([os.path.join(common, "config")], git)
        if _flag(local, "extensions.worktreeconfig"):
            local += _entries([os.path.join(git, "config.worktree")], git)
        entries = [*shared, *local, *_of_environment(environ)]
        own = bool(named) or _is_own(top, git, common, local)
        return Repository(top, git, common, _origin(entries), own)
    except ValueError:  # a mistake in the configuration, with which git does nothing
        return None


# --- where the repository is ------------------------------------------------------------------------------------------


def _discovered(folder: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """The nearest folder upward that has `.git`, and git's folder there; "" where the search ends without one."""
    ceilings = {os.path.realpath(one) for one in environ.get("GIT_CEILING_DIRECTORIES", "").split(os.pathsep) if one}
    across = environ.get("GIT_DISCOVERY_ACROSS_FILESYSTEM", "").lower() in ("1", "true", "yes", "on")
    top, device = folder, _device(folder)
    while True:
        link = os.path.join(top, ".git")
        if os.path.isfile(link):  # a link that leads nowhere ends the search
            return top, _given(link, environ)
        if _is_git(link, environ):
            return top, os.path.realpath(link)
        above = os.path.dirname(top)
        if _is_git(top, environ) or above == top or above in ceilings:
            return top, ""
        there = _device(above)
        if device is not None and there != device and not across:
            return top, ""
        top, device = above, there


def _device(folder: str) -> int | None:
    try:
        return os.stat(folder).st_dev
    except OSError:
        return None


def _given(path: str, environ: Mapping[str, str]) -> str:
    """Git's folder at a path: itself, or what the file there names; "" for neither."""
    if os.path.isfile(path):
        text = _text(path)
        if not text.startswith("gitdir: "):
            return ""
        path = os.path.join(os.path.dirname(path), text[8:].rstrip("\r\n"))
    return os.path.realpath(path) if _is_git(path, environ) else ""


def _common(git: str, environ: Mapping[str, str]) -> str:
    named = environ.get("GIT_COMMON_DIR", "") or _text(os.path.join(git, "commondir")).rstrip("\r\n")
    return os.path.realpath(os.path.join(git, named))


def _is_git(folder: str, environ: Mapping[str, str]) -> bool:
    head = os.path.join(folder, "HEAD")
    if os.path.islink(head):
        valid = os.readlink(head).startswith("refs/")
    else:
        text = _text(head)
        valid = text[4:].lstrip().startswith("refs/") if text.startswith("ref:") else bool(re.match(_ID, text))
    if not valid:
        return False
    common = _common(folder, environ)
    objects = environ.get("GIT_OBJECT_DIRECTORY") or os.path.join(common, "objects")
    return os.access(objects, os.X_OK) and os.access(os.path.join(common, "refs"), os.X_OK)


def _is_own(top: str, git: str, common: str, local: Sequence[tuple[str, str | None]]) -> bool:
    """Whether git's folder lies in the work tree, or says itself that this is its work tree."""
    link = os.path.join(top, ".git")
    if common == git:
        if git.startswith(os.path.join(top, "")):
            return git == link or not os.path.islink(link)
        inside = next((value for key, value in reversed(local) if key == "core.worktree"), None)
        return bool(inside) and os.path.realpath(os.path.join(git, inside or "")) == top
    back = _text(os.path.join(git, "gitdir")).rstrip("\r\n")
    linked = os.path.dirname(git) == os.path.join(common, "worktrees")
    return linked and os.path.realpath(os.path.join(git, back)) == link


def _is_mine(top: str, git: str, shared: Sequence[tuple[str, str | None]]) -> bool:
    """Whether the user owns the work tree and git's folder, or has called the work tree safe."""
    if not hasattr(os, "geteuid"):
        return True
    users = {os.geteuid()}
    if 0 in users and os.environ.get("SUDO_UID", "").isdecimal():
        users.add(int(os.environ["SUDO_UID"]))
    link = os.path.join(top, ".git")
    try:
        if all(os.lstat(path).st_uid in users for path in {top, link, git}):
            return True
    except OSError:
        return False
    safe = False
    for key, value in shared:
        if key == "safe.directory":
            whole = os.path.expanduser(value or "")
            safe = value != "" and (safe or whole == "*" or _holds(whole, top))
    return safe


def _holds(safe: str, top: str) -> bool:
    return top.startswith(safe[:-1]) if safe.endswith("/*") else os.path.realpath(safe) == top


# --- the configuration ------------------------------------------------------------------------------------------------


def _origin(entries: Sequence[tuple[str, str | None]]) -> str:
    """The first address of the remote origin, rewritten as `url.BASE.insteadOf` says."""
    urls: list[str] = []
    for key, value in entries:
        if key == "remote.origin.url":
            urls = [*urls, value] if value else []
    if not urls:
        return ""
    rules = [(value, key[4:-10]) for key, value in entries if value and key[:4] == "url." and key[-10:] == ".insteadof"]
    fitting = [(old, new) for old, new in rules if urls[0].startswith(old)]
    if not fitting:
        return urls[0]
    old, new = max(fitting, key=lambda one: len(one[0]))
    return new + urls[0][len(old) :]


def _shared_files(environ: Mapping[str, str]) -> Iterator[str]:
    """The files of the machine and of the user."""
    if environ.get("GIT_CONFIG_NOSYSTEM", "").lower() not in ("1", "true", "yes", "on"):
        yield environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"
    if (chosen := environ.get("GIT_CONFIG_GLOBAL")) is not None:
        yield chosen
        return
    home = environ.get("HOME") or os.path.expanduser("~")
    yield os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git", "config")
    yield os.path.join(home, ".gitconfig")


def _of_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """What `git -c` and `GIT_CONFIG_COUNT` set."""
    count = environ.get("GIT_CONFIG_COUNT", "")
    for n in range(int(count) if count.isdecimal() else 0):
        yield _lower(environ.get(f"GIT_CONFIG_KEY_{n}", "")), environ.get(f"GIT_CONFIG_VALUE_{n}", "")
    for found in re.finditer(_QUOTED, environ.get("GIT_CONFIG_PARAMETERS", "")):
        key, value = (part and part.replace("'\\''", "'").replace("'\\!'", "!") for part in found.groups())
        if value is None and key and "=" in key:
            key, _, value = key.partition("=")
        yield _lower(key or ""), value


def _lower(key: str) -> str:
    """The key with its section and its name in small letters."""
    section, _, rest = key.partition(".")
    between, dot, name = rest.rpartition(".")
    return f"{section.lower()}.{between}{dot}{name.lower()}"


def _flag(entries: Sequence[tuple[str, str | None]], name: str) -> bool:
    value = next((value for key, value in reversed(entries) if key == name), "")
    return value is None or value.lower() in ("1", "true", "yes", "on")


def _entries(files: Sequence[str] | Iterator[str], git: str) -> list[tuple[str, str | None]]:
    """The keys and values of these files, with those of the files that they include.

    Raises `ValueError` for what git does not read.
    """
    found: list[tuple[str, str | None]] = []
    for file in files:
        found += _included(file, git, found, 0)
    return found


def _included(
    file: str, git: str, before: Sequence[tuple[str, str | None]], depth: int
) -> Iterator[tuple[str, str | None]]:
    if depth > _DEEPEST:
        raise ValueError(f"{file} is included too deeply")
    here = list(_parsed(_text(file)))
    for key, value in here:
        yield key, value
        condition = key[10:-5] if key.startswith("includeif.") and key.endswith(".path") else None
        if value and (key == "include.path" or (condition and _applies(condition, file, git, [*before, *here]))):
            path = os.path.join(os.path.dirname(file), os.path.expanduser(value))
            yield from _included(path, git, before, depth + 1)


def _applies(condition: str, file: str, git: str, entries: Sequence[tuple[str, str | None]]) -> bool:
    """Whether an `includeIf` with this condition counts."""
    kind, _, pattern = condition.partition(":")
    if kind in ("gitdir", "gitdir/i"):
        pattern = os.path.expanduser(pattern)
        if pattern.startswith("./"):
            pattern = os.path.join(os.path.dirname(os.path.realpath(file)), pattern[2:])
        pattern = pattern if os.path.isabs(pattern) else f"**/{pattern}"
        return _fits(pattern, git, kind == "gitdir/i")
    if kind == "onbranch":
        head = _text(os.path.join(git, "HEAD")).strip().removeprefix("ref:").strip()
        return head.startswith("refs/heads/") and _fits(pattern, head.removeprefix("refs/heads/"))
    if kind == "hasconfig" and pattern.startswith("remote.*.url:"):
        urls = [value for key, value in entries if value and key[:7] == "remote." and key[-4:] == ".url"]
        return any(_fits(pattern.removeprefix("remote.*.url:"), url) for url in urls)
    return False


_PIECE = r"(?s)(^|/)\*\*/|/\*\*$|\*+|\?|\[(!|\^)?(\]?[^\]]*)\]|\\(.)|(.)"


def _fits(pattern: str, text: str, any_case: bool = False) -> bool:
    """Whether a path fits a pattern of git, in which `*` ends at a slash and `**/` does not."""

    def regex(found: re.Match[str]) -> str:
        piece = found[0]
        if piece.endswith("**/"):
            return f"{found[1]}(?:.*/)?"
        if piece == "/**":
            return "/.*"
        if piece[0] in "*?":
            return "[^/]*" if piece[0] == "*" else "[^/]"
        if found[3]:
            inside = found[3].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
            return f"(?!/)[{'^' if found[2] else ''}{inside}]"
        return re.escape(found[4] or piece)

    whole = re.sub(_PIECE, regex, f"{pattern}**" if pattern.endswith("/") else pattern)
    try:
        return bool(re.fullmatch(whole, text, re.DOTALL | (re.IGNORECASE if any_case else 0)))
    except re.error:
        return False


def _parsed(text: str) -> Iterator[tuple[str, str | None]]:
    """The keys and values of a file. A key has its section and name in small letters; a value is None for a key alone.

    Raises `ValueError` for what git does not read.
    """
    header, name_of = re.compile(_HEADER), re.compile(_NAME)
    text, section, at = text.removeprefix("\ufeff").replace("\r\n", "\n"), "", 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] in "#;":
            at = (text.find("\n", at) + 1) or len(text)
        elif found := header.match(text, at):
            plain, name, sub = found.groups()
            section = plain.lower() if plain else f"{name.lower()}." + re.sub(r"\\(.)", r"\1", sub)
            at = found.end()
        elif section and (found := name_of.match(text, at)):
            at, value = found.end(), None
            if at < len(text) and text[at] == "=":
                value, at = _value(text, at + 1)
            elif at < len(text) and text[at] != "\n":
                raise ValueError(f"no value can be read at {text[at : at + 20]!r}")
            yield f"{section}.{found[1].lower()}", value
        else:
            raise ValueError(f"no key can be read at {text[at : at + 20]!r}")


def _value(text: str, at: int) -> tuple[str, int]:
    """The value that begins there, without comment, quotes and escapes, and where it ends."""
    plain, space, quoted = "", "", False
    while at < len(text) and (text[at] != "\n"):
        char = text[at]
        at += 1
        if not quoted and char in "#;":
            return plain, (text.find("\n", at) + 1) or len(text)
        if not quoted and char.isspace():
            space += char if plain else ""
            continue
        plain, space = plain + space, ""
        if char == "\\":
            if text[at : at + 1] not in _ESCAPES:
                raise ValueError(f"{text[at - 1 : at + 1]!r} is not an escape")
            plain, at = plain + _ESCAPES[text[at]], at + 1
        elif char == '"':
            quoted = not quoted
        else:
            plain += char
    if quoted:
        raise ValueError("a quote is not closed")
    return plain, at


# --- files ----------------------------------------------------------------------------------------------------------


def _indexed(file: str, id: bytes) -> bool:
    """Whether a pack's index lists the object with this id."""
    if os.path.realpath(file) != file:
        return False
    try:
        with open(file, "rb") as opened:
            if opened.read(8) != b"\xfftOc\x00\x00\x00\x02":
                return False
            fanout = opened.read(1024)
            low = int.from_bytes(fanout[id[0] * 4 - 4 : id[0] * 4], "big") if id[0] else 0
            high = int.from_bytes(fanout[id[0] * 4 : id[0] * 4 + 4], "big")
            while low < high:
                middle = (low + high) // 2
                opened.seek(1032 + middle * len(id))
                there = opened.read(len(id))
                if there == id:
                    return True
                low, high = (middle + 1, high) if there < id else (low, middle)
    except OSError:
        return False
    return False


def _text(file: str) -> str:
    try:
        if not os.path.isfile(file):  # opening a pipe waits for its writer
            return ""
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read(_MOST)
    except (OSError, ValueError):
        return ""
