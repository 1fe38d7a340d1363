"""Puts Mulligan's hooks into the settings of coding agents, and takes them out again (design/064).

A file is changed as text, so that what others wrote into it stays as it is. What `uninstall` needs to restore the file
byte for byte is kept in Mulligan's home.
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
from mulligan.hooks.journal import Journal
from mulligan.hooks.journal_file import FILE
from mulligan.sessions.agents import NAMES, SCOPES, CodingAgent, Scope, agent
from mulligan.text.json_text import add, loads, remove

PROGRAM = "mulligan-hook"


class Change(NamedTuple):
    """A planned change of a file.

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
    """The file with the agent's hooks. Raises `InvalidInput` if the agent has none of this scope."""
    settings = of.settings
    name = {"user": settings.user, "project": settings.project, "local": settings.local}[scope]
    if name:
        return (Path(of.folder()) if scope == "user" else folder) / name
    if scope == "local" and settings.project:
        raise InvalidInput(
            f"{of.title} has no project settings that stay on this machine. Use --shared to write "
            f"{settings.project}, which everyone with the repository shares"
            + (", or --user for all your projects." if settings.user else ".")
        )
    other = "--user" if scope != "user" else "--project --shared"
    raise InvalidInput(f"{of.title} does not read hooks from {scope} settings: use {other}.")


def installation(of: CodingAgent, scope: Scope, folder: Path) -> Change:
    """What installing changes; nothing if the current hooks are there. Older ones are replaced."""
    path = settings_file(of, scope, folder)
    text_before = _read(path)
    command = PROGRAM if scope == "project" else shlex.quote(program())
    if path.suffix == ".js":
        if text_before is not None and PROGRAM not in text_before:
            raise InvalidInput(f"{path} is not Mulligan's plug-in: rename it. Nothing was written.")
        return Change(path, text_before, plugin(command))
    hooks = entries(of, command, edits=_guards_paths())
    try:
        if installed(path, text_before or "") == hooks:
            return Change(path, text_before, text_before)
    except InvalidInput as error:
        lines = json.dumps({"hooks": hooks}, indent=2, ensure_ascii=False)
        raise InvalidInput(f"{error} Correct the file, or add these lines to it yourself:\n\n{lines}") from None
    text_without = None if text_before is None else removal(path, text_before).after
    new_text = of.settings.new if text_without is None or _is_blank(text_without) else text_without
    for event, groups in hooks.items():
        for group in groups:
            new_text = add(new_text, ("hooks", event), group)
    return Change(path, text_before, new_text, text_without)


def installations(folder: Path) -> list[tuple[str, Scope, Path, str]]:
    """The files with Mulligan's hooks, for this user and for the project in a folder.

    Each has the agent, the scope, the path and the text. Codex's config.toml is among them if it trusts our hooks.
    """
    rows: list[tuple[str, Scope, Path, str]] = []
    for coding_agent in map(agent, NAMES):
        for scope in SCOPES:
            try:
                path = settings_file(coding_agent, scope, folder)
            except InvalidInput:  # it has none
                continue
            text = _read(path)
            if text and _holds_hooks(path, text):
                rows.append((coding_agent.name, scope, path, text))
    config = Path(agent("codex").folder()) / "config.toml"
    if _MARK in (text := _read(config) or ""):
        rows.append(("codex", "user", config, text))
    return rows


def stripped() -> list[str]:
    """The files from which another program has removed the hooks that were installed, in sentences."""
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
    """What removing Mulligan's hooks from a file changes."""
    record = _kept()["files"].get(str(path), {})
    for state in (record, record.get("earlier", {})):
        if state.get("sha256") == _digest(before):
            return Change(path, before, _restored(before, state))
    if path.suffix == ".js":
        return Change(path, before, None)
    after = _without_trust(before)[0] if path.suffix == ".toml" else _without_hooks(path, before)
    note = (
        f"{path} has changed since the installation, or another copy of Mulligan changed it. Only Mulligan's entries "
        "are removed."
    )
    return Change(path, before, after, note=note if after != before else "")


def write(changes: Iterable[Change], *, installing: bool) -> None:
    """Write the files, each completely or not at all. A link stays, and its target is written or removed.

    What restores a file is kept before the file is written.

    Raises:
        InvalidInput: a file cannot be written, or has changed in the meantime.
    """
    for change in changes:
        path, real = str(change.path), change.path.resolve()
        if _read(change.path) != change.before:
            raise InvalidInput(f"{path} has changed in the meantime, so it was not written: try again.")
        record = _kept()
        earlier = record["files"].pop(path, {})
        if installing and change.after is not None:
            record["folders"] += [str(parent) for parent in real.parents if not parent.exists()]
            earlier = {"earlier": {key: value for key, value in earlier.items() if key != "earlier"}} if earlier else {}
            record["files"][path] = {**_difference(change.base, change.after), **earlier}
            _keep(record, f" So {path} was not changed.")
        if change.after is None:
            real.unlink(missing_ok=True)
        else:
            _put(real, change.after)
        if not installing:
            record["folders"] = [folder for folder in record["folders"] if not _emptied(Path(folder))]
            _keep(record, f" {path} was restored nevertheless.")


def program() -> str:
    """The path of the program that hooks run. Raises `InvalidInput` if it is not there."""
    path = Path(sys.executable).with_name(PROGRAM)
    path_found = str(path) if path.is_file() else shutil.which(PROGRAM)
    if not path_found:
        raise InvalidInput(f"The program {PROGRAM} is not next to {sys.executable}: reinstall Mulligan.")
    return path_found


def _guards_paths() -> bool:
    """Whether a guard protects a path, so that hooks have to be called before edits, too."""
    try:
        if not os.path.exists(home() / FILE):
            return False
        with Journal(wait=1.0) as journal:
            return any(is_path(words_of(pattern)) for pattern in (journal.guards() or {}).values())
    except (sqlite3.Error, OSError):
        return False


def entries(of: CodingAgent, command: str, *, edits: bool = False) -> dict[str, list[Any]]:
    """The value of `hooks` in the settings: for each event its groups of hooks, or its hooks.

    edits: the hook before a command is also called before edits of files.
    """
    groups: dict[str, list[Any]] = {}
    for hook in of.hooks:
        if edits and of.edits and hook.moment == "before_tool":
            hook = hook._replace(matcher=f"{hook.matcher}|{of.edits}")
        groups.setdefault(hook.event, []).append(of.entry(hook, f"{command} {of.name} {hook.event}"))
    return groups


def installed(path: Path, text: str) -> dict[str, list[Any]]:
    """Mulligan's entries in a file of settings, by their events."""
    groups_by_event: dict[str, list[Any]] = {}
    hooks = _hooks(_parsed(path, text))
    for event, *position in _places(hooks):
        entry: Any = hooks[event][position[0]]
        if entry not in groups_by_event.setdefault(event, []):
            groups_by_event[event].append(entry)
    return groups_by_event


def plugin(command: str) -> str:
    """The plug-in for opencode, which starts this command."""
    text = files("mulligan.hooks").joinpath("packages", "opencode.js").read_text("utf-8")
    return text.replace('["mulligan-hook"]', json.dumps(shlex.split(command)))


def _hooks(data: dict[str, Any]) -> dict[str, list[Any]]:
    return cast(dict[str, list[Any]], data.get("hooks", {}))


def _parsed(path: Path, text: str) -> dict[str, Any]:
    """The settings in a file. Raises `InvalidInput` if they cannot be changed safely."""
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
    """The positions of Mulligan's hooks, as (event, number) or (event, number, "hooks", number)."""
    places: list[tuple[Any, ...]] = []
    for event, groups in hooks.items():
        for number, group in enumerate(groups):
            if _ours(group):
                places.append((event, number))
            inner: list[Any] = cast(dict[str, Any], group).get("hooks", []) if isinstance(group, dict) else []
            places += [(event, number, "hooks", position) for position, hook in enumerate(inner) if _ours(hook)]
    return places


def _ours(hook: Any) -> bool:
    """Whether a hook starts our program. A hook of the user may have its name in a path."""
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
        # Remove the group, the event and `hooks` as well, if they are empty now.
        for depth in range(min(len(place) - 1, 2), -1, -1):
            container: Any = loads(text)["hooks"]
            for key in place[:depth]:
                container = container[key]
            if container["hooks"] if depth == 2 else container:
                break
            text = remove(text, ("hooks", *place[:depth]))
    return text


def trust(hooks: Iterable[Mapping[str, Any]], config: Path) -> Change:
    """What makes Codex trust these hooks of its `hooks/list` without a review. Trusted hooks stay trusted."""
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
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{config} cannot be changed: {error}. Nothing was written.") from None
    return Change(config, before, after, base if before is not None else None)


_MARK = "# mulligan hooks install wrote this, for a hook of Mulligan's"


def _without_trust(text: str) -> tuple[str, dict[str, str]]:
    """A config.toml of Codex without the tables that we wrote; and these tables by their first lines."""
    first, *rest = text.split(f"\n{_MARK}\n")
    parts = [(*part.split("\n", 2), "", "")[:3] for part in rest]
    return first + "".join(remainder for _, _, remainder in parts), {name: state for name, state, _ in parts if name}


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}. Nothing was written.") from None


def _put(path: Path, text: str, mode: int | None = None) -> None:
    """Write a file completely or not at all. A link is followed, and the mode of the file stays."""
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
    """What restores each file that was written; and the folders that were made, each before its parents."""
    try:
        kept = json.loads(_read(_kept_file()) or "{}")
    except ValueError:
        kept = {}
    fields: dict[str, Any] = cast(dict[str, Any], kept) if isinstance(kept, dict) else {}
    files_noted, folders = fields.get("files"), fields.get("folders")  # damaged: then only entries are taken out
    return {
        "files": files_noted if isinstance(files_noted, dict) else {},
        "folders": folders if isinstance(folders, list) else [],
    }


def _emptied(folder: Path) -> bool:
    """Remove a folder if it is empty. Returns whether it is gone."""
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()
    return not folder.exists()


def _difference(base: str | None, text: str) -> dict[str, Any]:
    """What restores `base` from `text`. Only the difference is kept, because settings may contain keys."""
    old = base or ""
    start = _alike(old, text)
    end = _alike(old[start:][::-1], text[start:][::-1])
    middle = None if base is None else old[start : len(old) - end]
    return {"sha256": _digest(text), "start": start, "end": end, "middle": middle}


def _alike(first: str, second: str) -> int:
    """The length of the common beginning of two texts."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(first), len(second)))


def _restored(text: str, record: Mapping[str, Any]) -> str | None:
    if record["middle"] is None:
        return None
    return text[: record["start"]] + record["middle"] + text[len(text) - record["end"] :]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
