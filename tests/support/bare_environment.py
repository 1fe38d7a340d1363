"""An environment of its own that holds Mulligan and what it always needs, without any extra. Nothing is downloaded: its
packages are links to those of the environment of the tests."""

import os
import subprocess
import tomllib
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import distribution, requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

PROJECT: dict[str, Any] = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]


def needed(lines: Iterable[str] = PROJECT["dependencies"]) -> set[str]:
    """The distributions that these requirements bring, here: those of Mulligan without an extra."""
    wanted = [one for one in map(Requirement, lines) if one.marker is None or one.marker.evaluate({"extra": ""})]
    return {one.name.lower() for one in wanted}.union(*(needed(requires(one.name) or ()) for one in wanted))


@dataclass(frozen=True)
class BareEnvironment:
    """folder: where it is. home: where its Mulligan keeps its files."""

    folder: Path
    home: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    def mulligan(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "mulligan", *arguments, cwd=cwd)

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        left_out = ("PYTHONPATH", "VIRTUAL_ENV", "MULLIGAN_MODEL")
        env = {name: value for name, value in os.environ.items() if name not in left_out}
        env |= {"MULLIGAN_HOME": str(self.home), "PATH": f"{self.folder / 'bin'}:{env['PATH']}"}
        return subprocess.run(
            [self.python, *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False
        )


def bare_environment(folder: Path) -> BareEnvironment:
    """Makes it in this folder."""
    venv.create(folder / "python", with_pip=False, symlinks=True)
    (site,) = (folder / "python" / "lib").glob("python*/site-packages")
    for name in ("mulligan", *needed()):
        for file in distribution(name).files or ():
            first, here = file.parts[0], site / file.parts[0]
            if first not in ("..", "__pycache__") and not here.exists():
                here.symlink_to(Path(str(distribution(name).locate_file(first))))
    return BareEnvironment(folder / "python", folder / "home")
