"""Which settings of a project wait until a person trusts it, and which variables a `.env` may set. See docs/trust.md.

Trust applies to a folder and the content of what it would run or redirect (design/121). Settings that only restrict
something (limits, kinds, thresholds, formats) need no trust.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mulligan.app.plugin_files import Unsafe, code_digest, file_of, guard, is_code, is_own, real_path
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.core.trusted import BANK, is_foreign, is_noted_bank, note, noted
from mulligan.text.command_lines import split_line
from mulligan.text.plain import one_line

log = logging.getLogger("mulligan")

VARIABLE = "MULLIGAN_TRUST"
"""The environment variable with trusted hashes (`mulligan trust --print`), separated by commas."""

_TABLES = ("project", "models", "calls", "memory", "tools", "mcp")
"""Tables whose keys are checked one by one."""
_CALLS = frozenset({"timeout", "connect", "attempts", "first_wait", "longest_wait", "parallel"})
_STRATEGIES = frozenset({"retrieval", "deduplication", "merging"})
_EMBEDDED = frozenset({"local", "none", "hash"})
"""Models and embedders that run inside Mulligan, and none."""

_SECRET = r"[A-Z][A-Z0-9_]*_(?:API_KEY|KEY|TOKEN|SECRET|PASSWORD|KEY_ID|ACCESS_KEY)"
_PLACE = (
    r"[A-Z][A-Z0-9_]*_BASE_URL|AWS_(?:DEFAULT_)?REGION|AZURE_OPENAI_ENDPOINT|(?:AZURE_)?OPENAI_API_VERSION"
    r"|OPENAI_(?:ORG|PROJECT)_ID|GOOGLE_CLOUD_(?:PROJECT|LOCATION)"
)
_OURS = r"MULLIGAN_(?:MODEL(?:_[A-Z0-9_]+)?|MODELS|HOME|STORE|DATA|THREADS|PROMPT_CACHE|DEBUG)"
_ALLOWED = re.compile(f"{_SECRET}|{_PLACE}|{_OURS}")
_NEVER = re.compile(
    r"(?:LD|DYLD|NODE|GIT|SSH|JAVA|BASH|ZSH|NPM|UV|PIP|XDG|MULLIGAN)_.*|(?:PYTHON|PERL|RUBY|JDK).*|.*PATH|.*PROXY"
    r"|BROWSER|EDITOR|VISUAL|PAGER|SHELL|ENV|IFS|HOME|TMPDIR|.*(?:CERT|CA_BUNDLE).*",
    re.IGNORECASE,
)
"""Names that a `.env` may not set, even if the settings refer to them (`${NAME}`)."""
_REFERENCE = re.compile(r"\$\{(\w+)\}")
_SHOWN = 160


@dataclass(frozen=True)
class TrustItem:
    """Something that needs trust: its name, its content as it is shown to a person, and the hash of the content."""

    name: str
    shown: str
    digest: str


@dataclass(frozen=True)
class Contents:
    """What a folder would run or redirect.

    Attributes:
        unsafe: why it can never be trusted; "" if it can.
        code: its files of code, each with the hash of its folder.
    """

    folder: Path
    items: tuple[TrustItem, ...] = ()
    unsafe: str = ""
    code: tuple[tuple[Path, str], ...] = ()

    @property
    def hash(self) -> str:
        """The hash of names and contents. It does not depend on the folder, so it is the same in each checkout."""
        content = json.dumps(sorted((item.name, item.digest) for item in self.items))
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    @property
    def trusted(self) -> bool:
        """Whether nothing needs trust, or a person has trusted exactly this content."""
        if self.unsafe or not self.items:
            return not self.items
        return self.hash in re.split(r"[,\s]+", os.environ.get(VARIABLE, "")) or self.noted == self.hash

    def hold(self) -> None:
        """From now on, this process loads the code only if it is as it was when it was checked."""
        for file, digest in self.code:
            guard(file, digest)

    @property
    def noted(self) -> str:
        return noted("content", self.folder)

    def trust(self) -> None:
        """Records trust in the content that was checked, not in what is there by now. Raises `OSError`."""
        note("content", self.folder, self.hash)


def contents(
    folder: Path, files: Iterable[Path], values: Mapping[str, Any], code: Iterable[Path], variables: Mapping[str, str]
) -> Contents:
    """What these settings and variables would run or redirect.

    Args:
        files: The files that contain the settings.
        values: The settings that need trust, by name.
        code: The files of code that they name.
        variables: Of a `.env`.
    """
    items = [
        TrustItem(name, one_line(json.dumps(value, default=str), _SHOWN), _digest(value))
        for name, value in values.items()
    ]
    for name, value in variables.items():
        hidden = re.fullmatch(_SECRET, name) is not None
        items.append(TrustItem(f".env {name}", "(not shown)" if hidden else one_line(value, _SHOWN), _digest(value)))
    unsafe, hashes = "", list[tuple[Path, str]]()
    try:
        for file in dict.fromkeys(code):
            hashes.append((file, digest := code_digest(file)))
            items.append(
                TrustItem(
                    f"code of {os.path.relpath(file, os.path.realpath(folder))}", "and the code next to it", digest
                )
            )
    except Unsafe as error:
        unsafe = str(error)
    if items:
        foreign = next((path for path in (folder, *files) if is_foreign(path)), None)
        unsafe = f"{foreign} belongs to another user" if foreign else unsafe
    return Contents(folder, tuple(items), unsafe, tuple(hashes))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode("utf-8", "surrogatepass")).hexdigest()


def risky(values: Mapping[str, Json], root: Path) -> dict[tuple[str, ...], Json]:
    """The settings of a project file that need trust, by their keys."""
    return {keys: value for keys, value in _settings(values) if not _narrows(keys, value, root)}


def without(values: Mapping[str, Json], keys: Collection[tuple[str, ...]]) -> dict[str, Json]:
    """The settings without these keys."""
    left: dict[str, Json] = {}
    for top, value in values.items():
        if (top,) in keys:
            continue
        if top in _TABLES and isinstance(value, dict):
            table = cast(dict[str, Json], value)
            value = {key: one for key, one in table.items() if (top, key) not in keys}
        left[top] = cast(Json, value)
    return left


def _settings(values: Mapping[str, Json]) -> Iterator[tuple[tuple[str, ...], Json]]:
    for top, value in values.items():
        if top in _TABLES and isinstance(value, dict):
            yield from (((top, key), one) for key, one in cast(dict[str, Json], value).items())
        else:
            yield (top,), value


def _narrows(keys: tuple[str, ...], value: Json, root: Path) -> bool:
    """Whether a setting neither runs nor redirects nor loosens anything. Unknown settings need trust."""
    if keys[0] in _TABLES and len(keys) == 1:
        return True  # not a table, which is an error
    match keys:
        case ("limits",) | ("kinds",):
            return True
        case ("sandbox",):
            return value in ("auto", "strict")
        case ("model" | "reflect_model" | "judge_model",) | ("memory", "model" | "embedder"):
            return not isinstance(value, str) or value in _EMBEDDED
        case ("project", "name"):
            return value == root.name  # another name would read the facts of another project
        case ("calls", key):
            return key in _CALLS
        case ("models", _):
            table = cast(dict[str, Json], value) if isinstance(value, dict) else {"name": value}
            name = table.get("name", "local")
            if not isinstance(value, str | dict) or not isinstance(name, str):
                return True  # an error
            return name in _EMBEDDED and set(table) <= {"name", "temperature", "max_tokens", *_CALLS}
        case ("memory", key) if key in _STRATEGIES:
            return _is_plain(value)
        case ("memory", "quarantine"):
            return value is True
        case ("memory", _):
            return True  # numbers and words that the bank knows
        case ("foresight",):
            return _is_plain(value)
        case _:
            return False


def _is_plain(value: Json) -> bool:
    """Whether this names a plug-in of Mulligan or of an installed package."""
    name = cast(dict[str, Json], value).get("name", "") if isinstance(value, dict) else value
    return not isinstance(name, str) or not is_own(name)


def code_named(values: Iterable[Json], *folders: Path) -> list[Path]:
    """The files of code that these settings name: plug-ins, and files in these folders that a command names."""
    files: list[Path] = []
    for text in _texts(values):
        for part in [text, *_words(text)]:
            for folder in folders:
                try:
                    real = real_path(file_of(part) or _module(part, folder) or part, folder)
                    if real.is_file() and is_code(real) and (file_of(part) or folder.resolve() in real.parents):
                        files.append(real)
                except (OSError, InvalidInput):  # not a path: too long, or with a NUL
                    continue
    return files


def _module(name: str, folder: Path) -> str | None:
    """The file in this folder that a dotted path (`evil.mod:Class`) would be imported from."""
    top, dot, _ = name.partition(":")[0].partition(".")
    files = (f"{top}.py", f"{top}/__init__.py", f"{top}/{name.partition(':')[0].split('.')[1]}.py") if dot else ()
    return next((file for file in files if top.isidentifier() and (folder / file).is_file()), None)


def _texts(values: Iterable[Json]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | dict):
            inner = cast(Any, value)
            yield from _texts(inner.values() if isinstance(value, dict) else inner)


def _words(text: str) -> list[str]:
    try:
        return list(split_line(text))
    except ValueError:
        return []


def settings_contents(
    root: Path, file: Path, risks: Mapping[tuple[str, ...], Json], variables: Mapping[str, str]
) -> Contents:
    """What a project file and the `.env` beside it would run or redirect."""
    servers = [cast(dict[str, Json], value) for keys, value in risks.items() if keys[0] == "mcp"]
    folders = [root, *(root / str(table["cwd"]) for table in servers if isinstance(table, dict) and "cwd" in table)]
    code = code_named(risks.values(), *folders)
    files = [file, *([root / ".env"] if variables else [])]
    return contents(root, files, {".".join(keys): value for keys, value in risks.items()}, code, variables)


def allowed(variables: Mapping[str, str], risks: Mapping[tuple[str, ...], Json]) -> dict[str, str]:
    """The variables of a `.env` that a trusted project may set: keys, addresses of providers, some of Mulligan's own,
    and those that its settings refer to as `${NAME}` or `key = "NAME"`."""
    referred = {name for text in _texts(risks.values()) for name in (*_REFERENCE.findall(text), text)}
    return {
        name: value
        for name, value in variables.items()
        if _ALLOWED.fullmatch(name) or (name in referred and not _NEVER.fullmatch(name))
    }


def has_own_bank(root: Path) -> bool:
    """Whether the bank beside a project file was created here, was trusted, or does not exist yet."""
    folder = root / BANK
    if is_foreign(folder):
        return False
    try:
        with os.scandir(folder) as entries:  # `mulligan demo` makes its folder before there is a bank
            has_content = folder.is_symlink() or any(entry.name != "demo" or entry.is_symlink() for entry in entries)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return not has_content or is_noted_bank(folder)


_reported: set[tuple[str, str]] = set()


def say_held(contents: Contents, *, bank: bool) -> None:
    """Logs one line about what is not used, once in this process."""
    names = _names(contents) if not contents.trusted else []
    names += [f"the bank {BANK}/"] if bank else []
    key = (str(contents.folder), f"{contents.hash} {bank}")
    if names and key not in _reported:
        _reported.add(key)
        listed = one_line(", ".join(names), 300)
        log.warning("%s", f"{_state(contents)}, so this is not used: {listed}.{_remedy(contents)}")


def untrusted(contents: Contents) -> str:
    """Why an agent does not run, and what to do."""
    listed = one_line(", ".join(_names(contents)), 300)
    return f"{_state(contents)}, and it would run or redirect: {listed}.{_remedy(contents)}"


def _names(contents: Contents) -> list[str]:
    names = [item.name for item in contents.items]
    return list(dict.fromkeys(".env" if name.startswith(".env ") else name for name in names if name[:8] != "code of "))


def _state(contents: Contents) -> str:
    where = one_line(str(contents.folder), 300)
    if contents.unsafe:
        return f"{where} cannot be trusted ({one_line(contents.unsafe, 300)})"
    changed = contents.noted and not contents.trusted
    return f"{where} has changed since you trusted it" if changed else f"{where} is not trusted yet"


def _remedy(contents: Contents) -> str:
    where = (
        "" if contents.folder == Path(os.path.abspath(".")) else f" {shlex.quote(one_line(str(contents.folder), 300))}"
    )
    return "" if contents.unsafe else f" To see and allow it: mulligan trust{where}"
