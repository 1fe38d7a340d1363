"""Answers questions about a repository from its files, as git would, but without starting git.

Hooks of coding agents ask in each session, and git takes 5 to 20 ms to start. A bare repository counts only if
`GIT_DIR` names it, as with `safe.bareRepository=explicit`, because a folder of a work tree can look like one.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False  # type checkers take it for True; not imported, because hooks start often and must start fast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Patterns are compiled only when they are used, for the same reason.
_HEADER = r'\[([A-Za-z0-9_.-]+)\]|\[([A-Za-z0-9_.-]+)[ \t]+"((?:[^"\\\n]|\\[^\n])*)"\]'
_NAME = r"([A-Za-z][A-Za-z0-9-]*)[ \t]*"
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\", "\n": ""}
_ID = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_QUOTED = r"'((?:[^']|'\\''|'\\!')*)'(?:='((?:[^']|'\\'')*)')?"
_MAX_INCLUDES = 10
"""Levels of files that include other files."""
_MAX_CHARACTERS = 1 << 24
"""More of a file is not read."""


class Repository:
    """The repository that git finds for a folder.

    Attributes:
        top: the folder that has `.git`.
        git: git's folder of this work tree.
        common: git's folder that all work trees of the repository share.
        origin: the address that git would fetch the remote origin from; "" if there is none.
        own: whether the repository itself confirms that this is its work tree. (Anybody can write a `.git` file that
            points to a repository.)
    """

    def __init__(self, top: str, git: str, common: str, origin: str, own: bool) -> None:
        self.top, self.git, self.common, self.origin, self.own = top, git, common, origin, own

    @property
    def head(self) -> str:
        """The commit that is checked out; "" if there is none."""
        head = self._read(self.git, "HEAD").strip()
        for _ in range(5):
            if not head.startswith("ref:"):
                return head if re.fullmatch(_ID, head) else ""
            ref = head[4:].strip()
            head = self._read(self.common, *ref.split("/")).strip() or self._packed(ref)
        return ""

    def _read(self, *parts: str) -> str:
        """The text of a file of the repository; "" if it is a link to somewhere else."""
        file = os.path.join(*parts)
        inside = os.path.realpath(file).startswith((os.path.join(self.git, ""), os.path.join(self.common, "")))
        return _text(file) if inside else ""

    def _packed(self, ref: str) -> str:
        """The commit of a reference in `packed-refs`; "" if it is not there."""
        lines = self._read(self.common, "packed-refs").splitlines()
        return next((line.partition(" ")[0] for line in lines if line.endswith(f" {ref}")), "")

    def has(self, commit: str) -> bool:
        """Whether the repository itself stores this commit. Objects borrowed from another repository do not count."""
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
        return any(
            _index_has(os.path.join(packs, name), bytes.fromhex(commit)) for name in names if name[-4:] == ".idx"
        )


def repository(folder: str, environ: Mapping[str, str] = os.environ) -> Repository | None:
    """The repository of a folder; None if git finds none, or refuses the one that it finds."""
    folder = os.path.realpath(folder)
    named = environ.get("GIT_DIR", "")
    if named:
        top, git = folder, _git_folder(os.path.join(folder, named), environ)
    else:
        top, git = _discover(folder, environ)
    if not git:
        return None
    common = _common(git, environ)
    try:
        shared = _entries(_shared_files(environ), git)
        if not named and not _is_trusted(top, git, shared):
            return None
        local = _entries([os.path.join(common, "config")], git)
        if _flag(local, "extensions.worktreeconfig"):
            local += _entries([os.path.join(git, "config.worktree")], git)
        entries = [*shared, *local, *_of_environment(environ)]
        own = bool(named) or _confirms_work_tree(top, git, common, local)
        return Repository(top, git, common, _origin(entries), own)
    except ValueError:  # a mistake in the configuration, for which git refuses to work
        return None


# --- where the repository is ------------------------------------------------------------------------------------------


def _discover(folder: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """The nearest folder upward that has `.git`, and git's folder there; "" if the search ends without one."""
    paths = environ.get("GIT_CEILING_DIRECTORIES", "").split(os.pathsep)
    ceilings = {os.path.realpath(path) for path in paths if path}
    across = environ.get("GIT_DISCOVERY_ACROSS_FILESYSTEM", "").lower() in ("1", "true", "yes", "on")
    top, device = folder, _device(folder)
    while True:
        link = os.path.join(top, ".git")
        if os.path.isfile(link):  # a link that leads nowhere ends the search
            return top, _git_folder(link, environ)
        if _is_git_folder(link, environ):
            return top, os.path.realpath(link)
        parent = os.path.dirname(top)
        if _is_git_folder(top, environ) or parent == top or parent in ceilings:
            return top, ""
        parent_device = _device(parent)
        if device is not None and parent_device != device and not across:
            return top, ""
        top, device = parent, parent_device


def _device(folder: str) -> int | None:
    try:
        return os.stat(folder).st_dev
    except OSError:
        return None


def _git_folder(path: str, environ: Mapping[str, str]) -> str:
    """Git's folder at a path: the folder itself, or the one that the file there names; "" for neither."""
    if os.path.isfile(path):
        text = _text(path)
        if not text.startswith("gitdir: "):
            return ""
        path = os.path.join(os.path.dirname(path), text[8:].rstrip("\r\n"))
    return os.path.realpath(path) if _is_git_folder(path, environ) else ""


def _common(git: str, environ: Mapping[str, str]) -> str:
    named = environ.get("GIT_COMMON_DIR", "") or _text(os.path.join(git, "commondir")).rstrip("\r\n")
    return os.path.realpath(os.path.join(git, named))


def _is_git_folder(folder: str, environ: Mapping[str, str]) -> bool:
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


def _confirms_work_tree(top: str, git: str, common: str, local: Sequence[tuple[str, str | None]]) -> bool:
    """Whether git's folder is inside the work tree, or itself names this work tree."""
    link = os.path.join(top, ".git")
    if common == git:
        if git.startswith(os.path.join(top, "")):
            return git == link or not os.path.islink(link)
        work_tree = next((value for key, value in reversed(local) if key == "core.worktree"), None)
        return bool(work_tree) and os.path.realpath(os.path.join(git, work_tree or "")) == top
    back_link = _text(os.path.join(git, "gitdir")).rstrip("\r\n")
    is_linked = os.path.dirname(git) == os.path.join(common, "worktrees")
    return is_linked and os.path.realpath(os.path.join(git, back_link)) == link


def _is_trusted(top: str, git: str, shared: Sequence[tuple[str, str | None]]) -> bool:
    """Whether the user owns the work tree and git's folder, or has declared the work tree safe."""
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
            path = os.path.expanduser(value or "")
            matches = top.startswith(path[:-1]) if path.endswith("/*") else os.path.realpath(path) == top
            safe = value != "" and (safe or path == "*" or matches)  # an empty value resets the list
    return safe


# --- the configuration ------------------------------------------------------------------------------------------------


def _origin(entries: Sequence[tuple[str, str | None]]) -> str:
    """The first address of the remote origin, rewritten by the rules of `url.BASE.insteadOf`."""
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
    old, new = max(fitting, key=lambda rule: len(rule[0]))
    return new + urls[0][len(old) :]


def _shared_files(environ: Mapping[str, str]) -> Iterator[str]:
    """The configuration files of the machine and of the user."""
    if environ.get("GIT_CONFIG_NOSYSTEM", "").lower() not in ("1", "true", "yes", "on"):
        yield environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"
    if (file := environ.get("GIT_CONFIG_GLOBAL")) is not None:
        yield file
        return
    home = environ.get("HOME") or os.path.expanduser("~")
    yield os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git", "config")
    yield os.path.join(home, ".gitconfig")


def _of_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """The settings of `git -c` and `GIT_CONFIG_COUNT`."""
    count = environ.get("GIT_CONFIG_COUNT", "")
    for n in range(int(count) if count.isdecimal() else 0):
        yield _lower(environ.get(f"GIT_CONFIG_KEY_{n}", "")), environ.get(f"GIT_CONFIG_VALUE_{n}", "")
    for found in re.finditer(_QUOTED, environ.get("GIT_CONFIG_PARAMETERS", "")):
        key, value = (part and part.replace("'\\''", "'").replace("'\\!'", "!") for part in found.groups())
        if value is None and key and "=" in key:
            key, _, value = key.partition("=")
        yield _lower(key or ""), value


def _lower(key: str) -> str:
    """The key with its section and its name in lower case."""
    section, _, rest = key.partition(".")
    subsection, dot, name = rest.rpartition(".")
    return f"{section.lower()}.{subsection}{dot}{name.lower()}"


def _flag(entries: Sequence[tuple[str, str | None]], name: str) -> bool:
    value = next((value for key, value in reversed(entries) if key == name), "")
    return value is None or value.lower() in ("1", "true", "yes", "on")


def _entries(files: Sequence[str] | Iterator[str], git: str) -> list[tuple[str, str | None]]:
    """The keys and values of these files and of the files that they include.

    Raises `ValueError` for a file that git does not accept.
    """
    entries: list[tuple[str, str | None]] = []
    for file in files:
        entries += _included(file, git, entries, 0)
    return entries


def _included(
    file: str, git: str, before: Sequence[tuple[str, str | None]], depth: int
) -> Iterator[tuple[str, str | None]]:
    """The entries of a file and of those that it includes. before: the entries that precede them."""
    if depth > _MAX_INCLUDES:
        raise ValueError(f"{file} is included too deeply")
    entries = list(_parse(_text(file)))
    for key, value in entries:
        yield key, value
        condition = key[10:-5] if key.startswith("includeif.") and key.endswith(".path") else None
        if value and (key == "include.path" or (condition and _applies(condition, file, git, [*before, *entries]))):
            path = os.path.join(os.path.dirname(file), os.path.expanduser(value))
            yield from _included(path, git, before, depth + 1)


def _applies(condition: str, file: str, git: str, entries: Sequence[tuple[str, str | None]]) -> bool:
    """Whether the condition of an `includeIf` holds."""
    kind, _, pattern = condition.partition(":")
    if kind in ("gitdir", "gitdir/i"):
        pattern = os.path.expanduser(pattern)
        if pattern.startswith("./"):
            pattern = os.path.join(os.path.dirname(os.path.realpath(file)), pattern[2:])
        pattern = pattern if os.path.isabs(pattern) else f"**/{pattern}"
        return _matches(pattern, git, ignore_case=kind == "gitdir/i")
    if kind == "onbranch":
        head = _text(os.path.join(git, "HEAD")).strip().removeprefix("ref:").strip()
        return head.startswith("refs/heads/") and _matches(pattern, head.removeprefix("refs/heads/"))
    if kind == "hasconfig" and pattern.startswith("remote.*.url:"):
        urls = [value for key, value in entries if value and key[:7] == "remote." and key[-4:] == ".url"]
        return any(_matches(pattern.removeprefix("remote.*.url:"), url) for url in urls)
    return False


_PIECE = r"(?s)(^|/)\*\*/|/\*\*$|\*+|\?|\[(!|\^)?(\]?[^\]]*)\]|\\(.)|(.)"


def _matches(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Whether a path matches a pattern of git, in which `*` does not match a slash, but `**/` does."""

    def regex(match: re.Match[str]) -> str:
        piece = match[0]
        if piece.endswith("**/"):
            return f"{match[1]}(?:.*/)?"
        if piece == "/**":
            return "/.*"
        if piece[0] in "*?":
            return "[^/]*" if piece[0] == "*" else "[^/]"
        if match[3]:
            characters = match[3].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
            return f"(?!/)[{'^' if match[2] else ''}{characters}]"
        return re.escape(match[4] or piece)

    whole = re.sub(_PIECE, regex, f"{pattern}**" if pattern.endswith("/") else pattern)
    try:
        return bool(re.fullmatch(whole, text, re.DOTALL | (re.IGNORECASE if ignore_case else 0)))
    except re.error:
        return False


def _parse(text: str) -> Iterator[tuple[str, str | None]]:
    """The keys and values of a file, with sections and names in lower case. A key without "=" has the value None.

    Raises `ValueError` for a file that git does not accept.
    """
    header, key_name = re.compile(_HEADER), re.compile(_NAME)
    text, section, at = text.removeprefix("\ufeff").replace("\r\n", "\n"), "", 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] in "#;":
            at = (text.find("\n", at) + 1) or len(text)
        elif match := header.match(text, at):
            plain, name, subsection = match.groups()
            section = plain.lower() if plain else f"{name.lower()}." + re.sub(r"\\(.)", r"\1", subsection)
            at = match.end()
        elif section and (match := key_name.match(text, at)):
            at, value = match.end(), None
            if at < len(text) and text[at] == "=":
                value, at = _value(text, at + 1)
            elif at < len(text) and text[at] != "\n":
                raise ValueError(f"no value can be read at {text[at : at + 20]!r}")
            yield f"{section}.{match[1].lower()}", value
        else:
            raise ValueError(f"no key can be read at {text[at : at + 20]!r}")


def _value(text: str, at: int) -> tuple[str, int]:
    """The value at this position, without comment, quotes and escapes, and the position of its end."""
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


def _index_has(file: str, id: bytes) -> bool:
    """Whether a pack's index lists the object with this id."""
    if os.path.realpath(file) != file:
        return False
    try:
        with open(file, "rb") as index:
            if index.read(8) != b"\xfftOc\x00\x00\x00\x02":
                return False
            fanout = index.read(1024)  # for each first byte, the number of ids up to it
            low = int.from_bytes(fanout[id[0] * 4 - 4 : id[0] * 4], "big") if id[0] else 0
            high = int.from_bytes(fanout[id[0] * 4 : id[0] * 4 + 4], "big")
            while low < high:
                middle = (low + high) // 2
                index.seek(1032 + middle * len(id))
                candidate = index.read(len(id))
                if candidate == id:
                    return True
                low, high = (middle + 1, high) if candidate < id else (low, middle)
    except OSError:
        return False
    return False


def _text(file: str) -> str:
    try:
        if not os.path.isfile(file):  # opening a pipe would wait for its writer
            return ""
        with open(file, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read(_MAX_CHARACTERS)
    except (OSError, ValueError):
        return ""
