"""Walks through a page of docs/tutorials as a reader does, in an empty folder. As a program, prints the seconds it takes:

    python tests/support/tutorials.py PAGE… [--install CHECKOUT]

A `sh` block is run, a `text` block is what the one before it printed (… stands for anything), and any other block is
saved under the name that the sentence above it gives. `pip install` is run only with `--install`, from that folder.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
LONGEST = 300.0
"""Seconds that a tutorial may take: five minutes."""
_PART = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"\bas `([\w.]+)`")


@dataclass
class Walk:
    """A reader's empty folder and empty home.

    Attributes:
        checkout: what `pip install` installs. None: Mulligan is on the PATH already, and blocks that install are left out.
        env: what the reader's shell has besides.
    """

    folder: Path
    checkout: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])

    def through(self, page: str) -> list[tuple[str, str]]:
        """Do what the page says.

        Returns:
            What the page says is printed, and what was printed, for each `text` block.
        """
        text = (FOLDER / page).read_text(encoding="utf-8")
        printed, compared, end = "", list[tuple[str, str]](), 0
        for part in _PART.finditer(text):
            language, block = part.groups()
            if language == "sh":
                printed = self._run(block)
            elif language == "text":
                compared.append((block, printed))
            else:
                (self.project / _NAMED.findall(text[end : part.start()])[-1]).write_text(block, encoding="utf-8")
            end = part.end()
        return compared

    @property
    def project(self) -> Path:
        (self.folder / "project").mkdir(exist_ok=True)
        return self.folder / "project"

    def _run(self, block: str) -> str:
        if "pip install" in block:
            if self.checkout is None:
                return ""
            block = block.replace("PATH-OF-THE-CHECKOUT", str(self.checkout))
        activate = self.project / ".venv" / "bin" / "activate"
        lines = f". {activate}\n{block}" if activate.exists() else block
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **self.env}
        ran = subprocess.run(
            ["bash", "-e", "-c", lines],
            cwd=self.project,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
        )
        assert ran.returncode == 0, f"{block}\n{ran.stdout}"
        return ran.stdout


def prints(shown: str, printed: str) -> bool:
    """Whether this was printed as the page shows it, where … stands for anything."""
    pattern = ".*".join(re.escape(piece) for piece in shown.rstrip("\n").split("…"))
    return re.fullmatch(pattern, printed.rstrip("\n"), re.DOTALL) is not None


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("pages", nargs="+")
    asked.add_argument("--install", type=Path)
    given = asked.parse_args()
    for name in given.pages:
        with tempfile.TemporaryDirectory() as empty:
            begun = time.monotonic()
            both = Walk(Path(empty), given.install and given.install.resolve()).through(name)
            print(f"{name}: {time.monotonic() - begun:.0f} s")
            for shown, printed in both:
                if not prints(shown, printed) or shown.strip() == "…":
                    print(f"--- shown\n{shown}--- printed\n{printed}")
