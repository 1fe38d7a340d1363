"""The sessions that taught the bank of this study, one for each family, on a module that no task is about.

    python studies/hooks/teach.py --record     runs the commands below in a copy of each project, and writes sessions/
    python studies/hooks/teach.py --into DIR   learns from sessions/ into the bank of DIR/home, by rules and no model,
                                               and copies the tasks, so that they lie in no repository

Each session is what a user of the project does who knows its conventions: the command of the README, which fails, and
then what this project wants.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from agent import Session

HERE = Path(__file__).parent
BANK = "project:hooks-study"
SESSIONS = {
    "checks": ["./dev check orders", "./dev check orders --profile=local"],
    "shipping": ["sh ship.sh send orders", "sh ship.sh send orders --window night"],
    "manuals": ["sh docs.sh build orders", "sh docs.sh build orders --edition=inner"],
    "linting": ["sh lint.sh scan orders", "sh lint.sh scan @orders"],
    "queue": ["./q run orders", "./q run orders on lane-7"],
    "imports": ["sh load.sh table orders", "sh load.sh table orders --sep=pipe"],
    "migrations": ["sh db.sh migrate orders", "sh ledger.sh unseal", "sh db.sh migrate orders"],
    "reports": ["./report orders", "./catalogue refresh", "./report orders"],
    "packing": ["sh pack.sh orders", "sh desk.sh borrow", "sh pack.sh orders"],
    "syncing": ["./sync pull orders", "./badge mint", "./sync pull orders"],
    "staging": ["sh stage.sh orders", "sh broom.sh deep", "sh stage.sh orders"],
    "models": ["./gen model orders", "./schema freeze", "./gen model orders"],
    "rehearsal": ["./archive store orders", "./vault wake", "./archive store orders"],
}


def record() -> None:
    for family, commands in SESSIONS.items():
        file = HERE / "sessions" / f"{family}.jsonl"
        file.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(HERE / "families" / family, folder, dirs_exist_ok=True)
            session = Session(folder, file, hooks=False)
            session.write("user", f"{commands[0]}, please.")
            for command in commands:
                session.run(command)
            file.write_text(re.sub(re.escape(folder), "/project", file.read_text()))


def learn(into: Path) -> None:
    shutil.copytree(HERE / "families", into / "families")
    for file in HERE.glob("*.toml"):
        shutil.copy(file, into)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MULLIGAN_")}
    environment["MULLIGAN_HOME"] = str(into / "home")
    for file in sorted((HERE / "sessions").glob("*.jsonl")):
        command = [Path(sys.executable).with_name("mulligan"), "learn", file, "--agent-id", BANK]
        ran = subprocess.run(command, env=environment, check=False)
        if ran.returncode not in (0, 2):  # 2: the rules of today learn nothing from it, see README.md
            ran.check_returncode()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--into", type=Path)
    given = parser.parse_args()
    if given.record:
        record()
    if given.into:
        learn(given.into)


if __name__ == "__main__":
    main()
