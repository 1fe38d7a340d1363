"""Packages that only some parts of Mulligan need, and the error for one that is missing."""

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
    """Raises `MissingExtra` unless this module is installed in a version that the extra accepts. Imports nothing.

    Args:
        need: see `MissingExtra`.
        distribution: the package that contains the module, if its name differs.
    """
    try:
        missing = find_spec(module) is None
    except ModuleNotFoundError:  # the parent of a dotted name
        missing = True
    if missing:
        raise MissingExtra(need, extra)
    if problem := _version_problem(distribution or module):
        way = "Use a new environment, or this one if its other packages allow it"
        raise MissingExtra(f"{need}. {problem}. {way}", extra)


@cache
def _version_problem(distribution: str) -> str:
    """Says which version is needed and which is installed; "" if they fit, or if no version is required."""
    from importlib.metadata import PackageNotFoundError, requires, version  # slow to import

    try:
        lines, installed = requires("mulligan") or (), version(distribution)
    except PackageNotFoundError:
        return ""
    requirement = re.compile(rf"{re.escape(distribution)}(?![\w.-])(?:\[[^]]*\])?\s*([^;\[]*)")
    wanted = next((match[1].strip() for line in lines if (match := requirement.match(line))), "")
    fits = all((numbers(installed) >= numbers(than)) == (sign == ">=") for sign, than in _BOUND.findall(wanted))
    return "" if fits else f"It needs {distribution}{wanted}, but {installed} is installed here"


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
    """The numbers in a version, for comparing versions."""
    return [int(part) for part in re.findall(r"\d+", version)]


def install_command(*extras: str) -> str:
    """The command that installs these extras.

    It installs from where Mulligan was installed, such as a checkout or a wheel, and with the same tool, because `pip
    install` does not reach environments of uv or pipx.
    """
    url, checkout = _origin()
    names, prefix = f"[{','.join(extras)}]", Path(sys.prefix)
    if checkout:
        return f'pip install -e "{checkout}{names}"'
    target = f'"mulligan{names}{f" @ {url}" if url else ""}"'
    if (prefix / "uv-receipt.toml").is_file():
        return f"uv tool install {target}"
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx install --force {target}"
    if "archive-v0" in prefix.parts or "environments-v2" in prefix.parts:  # an environment of uvx
        return f"uvx --from {target} mulligan"
    return f"pip install {target}"
