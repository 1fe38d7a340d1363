"""The command that starts this very Mulligan, from any folder and with any PATH."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, cast

NAME = "mulligan"


def program() -> tuple[str, ...]:
    """The program by its whole path. An environment that uvx or pipx run has made for a while may be gone tomorrow:
    there it is the command that makes it again.
    """
    prefix = Path(sys.prefix)
    if any(part.startswith(("archive-v", "environments-v", "builds-v")) for part in prefix.parts):
        again = ("--python", _interpreter(), "--from", _requirement())
        return (*_uvx(), *again, "python", "-m", NAME)  # its script looks for other programs in PATH
    if prefix.parent.name == ".cache" or prefix.parent.parts[-2:] == (".cache", "pipx"):
        return (_whole_path("pipx"), "run", "--spec", _requirement(), NAME)
    script = Path(sys.executable).with_name(NAME)
    return (str(script),) if _stands_alone(script) else (sys.executable, "-m", NAME)


def _stands_alone(script: Path) -> bool:
    """Whether it names its interpreter, and need not look for it."""
    try:
        return sys.executable.encode() in script.read_bytes()[:1000]
    except OSError:
        return False


def _uvx() -> tuple[str, ...]:
    uv = os.environ.get("UV")  # uv's own path, which it tells the programs that it starts
    return (uv, "tool", "run") if uv and os.path.isabs(uv) else (_whole_path("uvx"),)


def _whole_path(name: str) -> str:
    found = shutil.which(name)
    return str(Path(found).absolute()) if found else name


def _interpreter() -> str:
    """Without a PATH uv finds none, and would fetch another."""
    return str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")


def _requirement() -> str:
    """What was installed, with its extras: from where it came, else by its version."""
    try:
        here = distribution(NAME)
    except PackageNotFoundError:
        return NAME
    name = NAME + (f"[{','.join(extras)}]" if (extras := _extras(here)) else "")
    said: dict[str, Any] = json.loads(here.read_text("direct_url.json") or "{}")
    if "url" not in said:
        return f"{name}=={here.version}"
    vcs = cast("dict[str, str]", said.get("vcs_info", {}))
    return f"{name} @ {vcs['vcs']}+{said['url']}@{vcs['commit_id']}" if vcs else f"{name} @ {said['url']}"


def _extras(here: Distribution) -> list[str]:
    """Those of which everything is installed."""
    needed: dict[str, list[str]] = {}
    for line in here.requires or ():
        if found := re.match(r"([\w.-]+).*\bextra == ['\"]([\w-]+)['\"]", line):
            needed.setdefault(found[2], []).append(found[1])
    return sorted(extra for extra, names in needed.items() if all(map(_installed, names)))


def _installed(name: str) -> bool:
    try:
        return bool(distribution(name))
    except PackageNotFoundError:
        return False
