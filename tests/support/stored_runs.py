"""A store that the version before one record of options wrote, with runs that wait to be resumed.

`tests/app/stored_runs/store.sql` is its dump; `@FOLDER@` stands for the folder in which the runs were started.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "app" / "stored_runs"
RUNS: Mapping[str, str] = {
    "programming": "dacd0ebd",
    "reasoning": "15de9322",
    "agent": "bb56c688",
    "restarts": "4112a09f",
    "scale": "898bf58a",
    "adaptive": "dfcaa53b",
    "over": "3be6b4f2",
    "retry": "f185de1e0acd7",
    "graph": "3cb6bdd3906a",
    "bench": "b86eb6507",
}
"""The ids by what is run."""


def restored(folder: Path, home: Path) -> None:
    """Writes the store into `home`, and the files that its runs rest on into `folder`."""
    for name in ("agents/poet/AGENT.md", "agents/poet/act.md", "agents/poet/reflect.md", "tasks.toml", "tests.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        source = FOLDER / ("tests_of_add.py.txt" if name == "tests.py" else name)
        (folder / name).write_bytes(source.read_bytes())
    script = (FOLDER / "store.sql").read_text("utf-8").replace("@FOLDER@", str(folder))
    home.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(home / "mulligan.db")
    database.executescript(script)
    database.close()
