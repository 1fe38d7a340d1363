"""Packages that only some parts of Mulligan need, and what is said where one is missing."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from mulligan.core.errors import InvalidInput

_BOUND = re.compile(r"(>=|<)([\d.]+)")


class MissingExtra(InvalidInput):
    """A part of Mulligan needs packages that are not installed. The message ends with the command that installs them.

    Args:
        need: what needs them, as the beginning of a sentence: "`mulligan studio` needs its web server".
        extras: the extras of Mulligan that bring them.
    """

    def __init__(self, need: str, *extras: str) -> None:
        super().__init__(f"{need}: {install_command(*extras)}")


def require(need: str, module: str, extra: str, *, distribution: str = "") -> None:
    """Raises `MissingExtra` unless this module is here, in a version that the extra takes. Imports nothing.

    Args:
        need: see `MissingExtra`.
        distribution: what brings the module, if it has another name.
    """
    try:
        missing = find_spec(module) is None
    except ModuleNotFoundError:  # the parent of a dotted name
        missing = True
    if missing:
        raise MissingExtra(need, extra)
    if unfit := _unfit(distribution or module):
        raise MissingExtra(f"{need}. {unfit}. Use a new environment, or this one if its other packages allow it", extra)


@cache
def _unfit(distribution: str) -> str:
    """Which version is needed and which is installed; "" where they fit, or nobody says."""
    from importlib.metadata import PackageNotFoundError, requires, version  # as heavy as all else here

    try:
        lines, here = requires("mulligan") or (), version(distribution)
    except PackageNotFoundError:
        return ""
    named = re.compile(rf"{re.escape(distribution)}(?![\w.-])(?:\[[^]]*\])?\s*([^;\[]*)")
    wanted = next((found[1].strip() for line in lines if (found := named.match(line))), "")
    fits = all((numbers(here) >= numbers(than)) == (sign == ">=") for sign, than in _BOUND.findall(wanted))
    return "" if fits else f"It needs {distribution}{wanted}, but {here} is installed here"


@cache
def _origin() -> tuple[str, str]:
    """The address that Mulligan was installed from, and the folder of an editable installation; "" for a registry."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        direct = json.loads(distribution("mulligan").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return "", ""
    url = str(direct.get("url", ""))
    if direct.get("dir_info", {}).get("editable") and url.startswith("file:"):
        return url, unquote(urlsplit(url).path)
    return (f"{direct['vcs_info']['vcs']}+{url}" if "vcs_info" in direct else url), ""


def numbers(version: str) -> list[int]:
    """The numbers of a version, to be compared."""
    return [int(part) for part in re.findall(r"\d+", version)]


def install_command(*extras: str) -> str:
    """The command that installs these extras.

    It takes them from where Mulligan was installed, such as a checkout or a wheel, and names the tool that installed
    it, as `pip install` would reach no tool of uv or pipx.
    """
    url, checkout = _origin()
    listed, here = f"[{','.join(extras)}]", Path(sys.prefix)
    if checkout:
        return f'pip install -e "{checkout}{listed}"'
    wanted = f'"mulligan{listed}{f" @ {url}" if url else ""}"'
    if (here / "uv-receipt.toml").is_file():
        return f"uv tool install {wanted}"
    if (here / "pipx_metadata.json").is_file():
        return f"pipx install --force {wanted}"
    if "archive-v0" in here.parts or "environments-v2" in here.parts:  # where uvx unpacks what it runs
        return f"uvx --from {wanted} mulligan"
    return f"pip install {wanted}"
