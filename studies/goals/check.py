"""Show that each repository's tests fail at the start, and that with the reference solution its hidden tests pass, too.

python studies/goals/check.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

REPOSITORIES = Path(__file__).parent / "repositories"
REHEARSAL = Path(__file__).parent / "rehearsal.toml"
"""A repository that is not measured."""
SECONDS = 30.0
"""Seconds that tests may take."""
SETTINGS = "[pytest]\naddopts = --tb=short -p no:cacheprovider\n"


@dataclass(frozen=True)
class Repository:
    """A module with a task, the tests that the agent sees, and those that it does not.

    Attributes:
        fix: texts of the module, each with what the reference solution has in its place.
    """

    name: str
    task: str
    module: str
    tests: str
    hidden: str
    fix: list[list[str]]

    @property
    def file(self) -> str:
        return f"{self.name}.py"

    @property
    def solution(self) -> str:
        text = self.module
        for old, new in self.fix:
            if text.count(old) != 1:
                raise ValueError(f"{self.name}: {old!r} stands {text.count(old)} times in the module.")
            text = text.replace(old, new)
        return text

    def write(self, folder: Path) -> None:
        """Write the repository as the agent finds it."""
        folder.mkdir(parents=True)
        for name, text in ((self.file, self.module), (f"test_{self.file}", self.tests), ("pytest.ini", SETTINGS)):
            (folder / name).write_text(text, encoding="utf-8")
        (folder / ".gitignore").write_text("__pycache__/\n", encoding="utf-8")


def read(file: Path) -> Repository:
    values = tomllib.loads(file.read_text(encoding="utf-8"))
    texts = {name: value.lstrip("\n") for name, value in values.items() if name != "fix"}
    return Repository(file.stem, **texts, fix=values["fix"])


def repositories() -> list[Repository]:
    """All repositories, by name."""
    return [read(file) for file in sorted(REPOSITORIES.glob("*.toml"))]


def passes(repository: Repository, module: str, tests: str) -> bool:
    """Whether tests pass with this text of the module."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in ((repository.file, module), ("test_it.py", tests), ("pytest.ini", SETTINGS)):
            (folder / file).write_text(text, encoding="utf-8")
        words = [sys.executable, "-B", "-m", "pytest", "-q"]
        env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        try:
            ran = subprocess.run(words, cwd=folder, env=env, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return False
        return ran.returncode == 0


def faults(repository: Repository) -> list[str]:
    """What is wrong with a repository."""
    wanted = {
        "the visible tests pass at the start": not passes(repository, repository.module, repository.tests),
        "the solution fails the visible tests": passes(repository, repository.solution, repository.tests),
        "the solution fails the hidden tests": passes(repository, repository.solution, repository.hidden),
    }
    return [fault for fault, right in wanted.items() if not right]


def main() -> None:
    bad = 0
    for repository in [*repositories(), read(REHEARSAL)]:
        found = faults(repository)
        bad += bool(found)
        print(f"{repository.name}: {'; '.join(found) or 'as it should be'}")
    sys.exit(bad)


if __name__ == "__main__":
    main()
