"""Put Mulligan's hooks into the settings of coding agents, and take them out again: design/064.

A file is changed as text, so that what others wrote into it stays as it is. What `uninstall` needs to give the file
back byte for byte is kept in Mulligan's home.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import shlex
import shutil
import sqlite3
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.home import home
from mulligan.hooks.guards import is_path, words_of
from mulligan.hooks.journal import FILE, Journal
from mulligan.sessions.agents import NAMES, SCOPES, CodingAgent, Scope, agent
from mulligan.text.json_text import add, loads, remove

PROGRAM = "mulligan-hook"


class Change(NamedTuple):
    """What is to become of a file.

    Attributes:
        before: the text of the file now; None if the file does not exist.
        after: the text to write; None to delete the file.
        base: the text that `uninstall` restores; None if it deletes the file.
        note: what a person should know.
    """

    path: Path
    before: str | None
    after: str | None
    base: str | None = None
    note: str = ""

    def diff(self) -> str:
        """The change as a unified diff; "" if nothing changes."""
        old, new = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        lines = difflib.unified_diff(old, new, str(self.path), str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def present(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The agents of this machine: those whose program is on the PATH, or that have a folder of settings."""
    return [name for name in NAMES if shutil.which(name) or Path(agent(name).folder(environ)).is_dir()]


def settings_file(of: CodingAgent, scope: Scope, folder: Path) -> Path:
    """The file that the agent's hooks stand in. Raises `InvalidInput` where the agent has none of this scope."""
    settings = of.settings
    name = {"user": settings.user, "project": settings.project, "local": settings.local}[scope]
    if name:
        return (Path(of.folder()) if scope == "user" else folder) / name
    if scope == "local" and settings.project:
        raise InvalidInput(
            f"{of.title} has no project settings that stay on this machine. Use --shared to write "
            f"{settings.project}, which everyone with the repository gets"
            + (", or --user for all your projects." if settings.user else ".")
        )
    other = "--user" if scope != "user" else "--project --shared"
    raise InvalidInput(f"{of.title} does not read hooks from {scope} settings: use {other}.")


def installation(of: CodingAgent, scope: Scope, folder: Path) -> Change:
    """What installing changes: nothing if the hooks are there as they should be. Older ones are replaced."""
    path = settings_file(of, scope, folder)
    before = _read(path)
    command = PROGRAM if scope == "project" else shlex.quote(program())
    if path.suffix == ".js":
        if before is not None and PROGRAM not in before:
            raise InvalidInput(f"{path} is not Mulligan's plug-in: give it another name. Nothing was written.")
        return Change(path, before, plugin(command))
    wanted = entries(of, command, edits=_guards_paths())
    try:
        if installed(path, before or "") == wanted:
            return Change(path, before, before)
    except InvalidInput as error:
        lines = json.dumps({"hooks": wanted}, indent=2, ensure_ascii=False)
        raise InvalidInput(f"{error} Correct the file, or add these lines to it yourself:\n\n{lines}") from None
    base = None if before is None else removal(path, before).after
    text = of.settings.new if base is None or _is_blank(base) else base
    for event, groups in wanted.items():
        for group in groups:
            text = add(text, ("hooks", event), group)
    return Change(path, before, text, base)


def installations(folder: Path) -> list[tuple[str, Scope, Path, str]]:
    """Each file that Mulligan's hooks stand in, for this user and for the project in a folder: the agent, whose
    settings they are, the file and its text. With Codex's its config.toml, if trust stands in it."""
    found: list[tuple[str, Scope, Path, str]] = []
    for of in map(agent, NAMES):
        for scope in SCOPES:
            try:
                path = settings_file(of, scope, folder)
            except InvalidInput:  # it has none
                continue
            text = _read(path)
            if text and _holds_hooks(path, text):
                found.append((of.name, scope, path, text))
    config = Path(agent("codex").folder()) / "config.toml"
    if _MARK in (text := _read(config) or ""):
        found.append(("codex", "user", config, text))
    return found


def stripped() -> list[str]:
    """What another program has taken out: files into which hooks were installed, and that no longer have them."""
    lines: list[str] = []
    for name in _kept()["files"]:
        path = Path(name)
        if path.suffix == ".toml":
            continue
        if (text := _read(path)) is None:
            lines.append(
                f"{path}, in which hooks were installed, no longer exists. `mulligan hooks install` restores them."
            )
        elif not _holds_hooks(path, text):
            lines.append(
                f"The hooks that were installed in {path} are no longer there: another program has rewritten the "
                "file. `mulligan hooks install` restores them."
            )
    return lines


def _holds_hooks(path: Path, text: str) -> bool:
    if PROGRAM not in text or path.suffix != ".json":
        return PROGRAM in text
    try:
        return bool(installed(path, text))
    except InvalidInput:  # whoever changes it says what is wrong with it
        return True


def removal(path: Path, before: str) -> Change:
    """What taking Mulligan's hooks out of a file changes."""
    kept = _kept()["files"].get(str(path), {})
    for one in (kept, kept.get("earlier", {})):
        if one.get("sha256") == _digest(before):
            return Change(path, before, _restored(before, one))
    if path.suffix == ".js":
        return Change(path, before, None)
    after = _without_trust(before)[0] if path.suffix == ".toml" else _without_hooks(path, before)
    note = f"{path} has changed since, or another Mulligan changed it: only Mulligan's entries are removed."
    return Change(path, before, after, note=note if after != before else "")


def write(changes: Iterable[Change], *, installing: bool) -> None:
    """Write the files, each at once or not at all; a link stays, and what it leads to is written or removed.

    What gives a file back is kept before the file is written. Raises `InvalidInput` if that, or a file, cannot be
    written, or if a file was changed in the meantime.
    """
    for change in changes:
        path, real = str(change.path), change.path.resolve()
        if _read(change.path) != change.before:
            raise InvalidInput(f"{path} has changed in the meantime, so it was not written: try again.")
        kept = _kept()
        earlier = kept["files"].pop(path, {})
        if installing and change.after is not None:
            kept["folders"] += [str(parent) for parent in real.parents if not parent.exists()]
            earlier = {"earlier": {key: value for key, value in earlier.items() if key != "earlier"}} if earlier else {}
            kept["files"][path] = {**_difference(change.base, change.after), **earlier}
            _keep(kept, f" So {path} was not changed.")
        if change.after is None:
            real.unlink(missing_ok=True)
        else:
            _put(real, change.after)
        if not installing:
            kept["folders"] = [made for made in kept["folders"] if not _emptied(Path(made))]
            _keep(kept, f" {path} was restored nevertheless.")


def program() -> str:
    """The path of the program that hooks run. Raises `InvalidInput` if it is not there."""
    beside = Path(sys.executable).with_name(PROGRAM)
    found = str(beside) if beside.is_file() else shutil.which(PROGRAM)
    if not found:
        raise InvalidInput(f"The program {PROGRAM} is not next to {sys.executable}: reinstall Mulligan.")
    return found


def _guards_paths() -> bool:
    """Whether a guard here is of a path: then hooks are called before edits, too."""
    try:
        if not os.path.exists(home() / FILE):
            return False
        with Journal(wait=1.0) as journal:
            return any(is_path(words_of(pattern)) for pattern in (journal.guards() or {}).values())
    except (sqlite3.Error, OSError):
        return False


def entries(of: CodingAgent, command: str, *, edits: bool = False) -> dict[str, list[Any]]:
    """What stands in the settings under `hooks`: for each event its groups of hooks, or its hooks.

    edits: the hook before a command is for edits of files, too.
    """
    found: dict[str, list[Any]] = {}
    for hook in of.hooks:
        if edits and of.edits and hook.moment == "before_tool":
            hook = hook._replace(matcher=f"{hook.matcher}|{of.edits}")
        found.setdefault(hook.event, []).append(of.entry(hook, f"{command} {of.name} {hook.event}"))
    return found


def installed(path: Path, text: str) -> dict[str, list[Any]]:
    """The entries of Mulligan's in a file of settings, under their events."""
    found: dict[str, list[Any]] = {}
    hooks = _hooks(_parsed(path, text))
    for event, *place in _places(hooks):
        entry: Any = hooks[event][place[0]]
        if entry not in found.setdefault(event, []):
            found[event].append(entry)
    return found


def plugin(command: str) -> str:
    """The plug-in for opencode, which starts this command."""
    text = files("mulligan.hooks").joinpath("packages", "opencode.js").read_text("utf-8")
    return text.replace('["mulligan-hook"]', json.dumps(shlex.split(command)))


def _hooks(data: dict[str, Any]) -> dict[str, list[Any]]:
    return cast(dict[str, list[Any]], data.get("hooks", {}))


def _parsed(path: Path, text: str) -> dict[str, Any]:
    """The settings in a file. Raises `InvalidInput` for what could not be changed with care."""
    unchanged = "Nothing was written."
    try:
        data: Any = {} if _is_blank(text) else loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be changed: it is not valid JSON ({error}). {unchanged}") from None
    hooks: Any = cast(dict[str, Any], data).get("hooks", {}) if isinstance(data, dict) else None
    lists = cast(dict[str, Any], hooks).values() if isinstance(hooks, dict) else [None]
    if not all(isinstance(groups, list) for groups in lists):
        raise InvalidInput(f"{path} cannot be changed: `hooks` should be an object of lists. {unchanged}")
    return cast(dict[str, Any], data)


def _is_blank(text: str) -> bool:
    return not text.strip("\ufeff \t\r\n")


def _places(hooks: Mapping[str, list[Any]]) -> list[tuple[Any, ...]]:
    """Where the hooks of Mulligan's stand, as (event, number) or (event, number, "hooks", number)."""
    found: list[tuple[Any, ...]] = []
    for event, groups in hooks.items():
        for number, group in enumerate(groups):
            if _ours(group):
                found.append((event, number))
            inner: list[Any] = cast(dict[str, Any], group).get("hooks", []) if isinstance(group, dict) else []
            found += [(event, number, "hooks", place) for place, hook in enumerate(inner) if _ours(hook)]
    return found


def _ours(hook: Any) -> bool:
    """Whether a hook starts our program; a user's own may have its name in a path."""
    fields = cast(dict[str, Any], hook) if isinstance(hook, dict) else {}
    command = str(fields.get("command") or fields.get("bash"))
    if PROGRAM not in command:
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return any(re.split(r"[/\\]", word)[-1].removesuffix(".exe") == PROGRAM for word in words)


def _without_hooks(path: Path, text: str) -> str:
    for place in reversed(_places(_hooks(_parsed(path, text)))):
        text = remove(text, ("hooks", *place))
        for depth in range(
            min(len(place) - 1, 2), -1, -1
        ):  # and the group, the event and `hooks`, if they are empty now
            around: Any = loads(text)["hooks"]
            for key in place[:depth]:
                around = around[key]
            if around["hooks"] if depth == 2 else around:
                break
            text = remove(text, ("hooks", *place[:depth]))
    return text


def trust(hooks: Iterable[Mapping[str, Any]], config: Path) -> Change:
    """What lets Codex run these hooks of `hooks/list` without the user's review. Those that were trusted stay so."""
    before = _read(config)
    base, tables = _without_trust(before or "")
    tables |= {
        f"[hooks.state.{json.dumps(hook['key'])}]": f"trusted_hash = {json.dumps(hook['currentHash'])}"
        for hook in hooks
    }
    gap = "\n" if base and not base.endswith("\n") else ""
    after = base + gap + "".join(f"\n{_MARK}\n{name}\n{state}\n" for name, state in tables.items())
    try:
        tomllib.loads(after.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{config} cannot be changed: {error}. Nothing was written.") from None
    return Change(config, before, after, base if before is not None else None)


_MARK = "# mulligan hooks install wrote this, for a hook of Mulligan's"


def _without_trust(text: str) -> tuple[str, dict[str, str]]:
    """A config.toml of Codex without the tables that follow the mark; and these, by their first line."""
    first, *rest = text.split(f"\n{_MARK}\n")
    parts = [(*part.split("\n", 2), "", "")[:3] for part in rest]
    return first + "".join(left for _, _, left in parts), {name: state for name, state, _ in parts if name}


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}. Nothing was written.") from None


def _put(path: Path, text: str, mode: int | None = None) -> None:
    """Write a file at once or not at all, behind a link, with the mode that it has."""
    path = path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            mode = mode or (path.stat().st_mode & 0o777 if path.exists() else 0o644)
            os.chmod(temporary, mode)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}.") from None


def _kept_file() -> Path:
    return home() / "hooks_installed.json"


def _keep(kept: Mapping[str, Any], otherwise: str) -> None:
    try:
        _put(_kept_file(), json.dumps(kept, indent=1), mode=0o600)
    except InvalidInput as error:
        raise InvalidInput(f"Mulligan cannot record what it wrote: {error}{otherwise}") from error


def _kept() -> dict[str, Any]:
    """Of each file that was written what gives it back, and the folders that were made, each before those it is in."""
    try:
        kept = json.loads(_read(_kept_file()) or "{}")
    except ValueError:
        kept = {}
    fields: dict[str, Any] = cast(dict[str, Any], kept) if isinstance(kept, dict) else {}
    noted, made = fields.get("files"), fields.get("folders")  # damaged: then only entries are taken out
    return {
        "files": noted if isinstance(noted, dict) else {},
        "folders": made if isinstance(made, list) else [],
    }


def _emptied(folder: Path) -> bool:
    """Remove a folder if it is empty; whether it is gone."""
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()
    return not folder.exists()


def _difference(base: str | None, text: str) -> dict[str, Any]:
    """What gives `base` back: only what differs is kept, because settings may hold keys."""
    old = base or ""
    start = _alike(old, text)
    end = _alike(old[start:][::-1], text[start:][::-1])
    middle = None if base is None else old[start : len(old) - end]
    return {"sha256": _digest(text), "start": start, "end": end, "middle": middle}


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _restored(text: str, kept: Mapping[str, Any]) -> str | None:
    if kept["middle"] is None:
        return None
    return text[: kept["start"]] + kept["middle"] + text[len(text) - kept["end"] :]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
