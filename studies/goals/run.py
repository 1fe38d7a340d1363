"""Run the study, or go on with it, and print its figures.

    python studies/goals/run.py --into DIR

Each session is written into DIR as it ends, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import math
import shutil
import tempfile
import time
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from agent import ARMS, Answers, as_json, work
from check import REHEARSAL, Repository, read, repositories

from mulligan.core.rates import mcnemar
from mulligan.models.catalog import open_model

BUDGET = 2500
"""Tokens of a session, at which its record is cut for the comparison at equal tokens."""


async def run(into: Path, model: str, until: float | None, chosen: list[Repository]) -> None:
    answers = Answers(open_model(model), into / "answers.jsonl")
    for repository in chosen:
        for arm in ARMS:
            file = into / f"{repository.name}.{arm}.json"
            if file.exists() or (until is not None and time.time() >= until):
                continue
            folder = Path(tempfile.mkdtemp(prefix="goals-study-"))
            try:
                session = await work(repository, arm, answers, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            file.write_text(as_json(session), encoding="utf-8")
            tries = [f"{one.visible:d}{one.hidden:d}" for one in session.tries]
            print(repository.name, arm, tries, session.claims, session.tokens, session.seconds, flush=True)


def outcome(session: dict[str, Any], tokens: float) -> dict[str, Any]:
    """How a session stands after so many tokens."""
    tries = [one for one in session["tries"] if one["tokens"] <= tokens]
    last = tries[-1] if tries else {"visible": False, "hidden": False}
    solved = last["visible"] and last["hidden"]
    claims = session["claims"] and session["tokens"] <= tokens
    return {
        "solved": solved,
        "ended as done": claims,
        "false ends": claims and not solved,
        "tries": len(tries),
        "different files": len({one["module"] for one in tries}),
        "tokens": min(session["tokens"], tokens),
    }


def write_rows(file: Path, sessions: list[list[dict[str, Any]]]) -> None:
    """A row for each session; of its tries what passed, and the tokens so far, each with spaces between."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        rows = csv.writer(opened, lineterminator="\n")
        rows.writerow(["task", "arm", "visible", "hidden", "tokens", "done", "seconds"])
        for one in chain.from_iterable(sessions):
            tries = [
                " ".join(str(int(each[name])) for each in one["tries"]) for name in ("visible", "hidden", "tokens")
            ]
            rows.writerow([one["task"], one["arm"], *tries, int(one["claims"]), one["seconds"]])


def figures(into: Path, chosen: list[Repository]) -> None:
    files = [[into / f"{repository.name}.{arm}.json" for arm in ARMS] for repository in chosen]
    done = [three for three in files if all(file.exists() for file in three)]
    sessions = [[json.loads(file.read_text(encoding="utf-8")) for file in three] for three in done]
    if not sessions:
        return
    write_rows(into / "runs.csv", sessions)
    for title, tokens in (("equal tries (3)", math.inf), (f"equal tokens ({BUDGET})", BUDGET)):
        print(f"\n{title}, n = {len(sessions)}\n")
        print("| arm | solved | ended as done | false ends | tries | different files | tokens |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        rows = {arm: [outcome(three[n], tokens) for three in sessions] for n, arm in enumerate(ARMS)}
        for arm, ends in rows.items():
            sums = {name: sum(end[name] for end in ends) for name in ends[0]}
            mean = round(sums["tokens"] / len(ends))
            shown = [str(count) for name, count in sums.items() if name != "tokens"]
            print(f"| {arm} | {' | '.join(shown)} | {mean} |")
        print("\n| pair | what | only the first | only the second | p |\n|---|---|---:|---:|---:|")
        for (first, ones), (second, others) in combinations(reversed(rows.items()), 2):
            for what in ("solved", "false ends"):
                more = sum(a[what] and not b[what] for a, b in zip(ones, others, strict=True))
                less = sum(b[what] and not a[what] for a, b in zip(ones, others, strict=True))
                print(f"| {first}, {second} | {what} | {more} | {less} | {mcnemar(more, less):.2g} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    parser.add_argument("--minutes", type=float, help="start no session after so many minutes; 0: print only")
    parser.add_argument("--rehearse", action="store_true", help="run the repository that is not measured")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    until = time.time() + given.minutes * 60 if given.minutes is not None else None
    chosen = [read(REHEARSAL)] if given.rehearse else repositories()
    asyncio.run(run(given.into, given.model, until, chosen))
    figures(given.into, chosen)


if __name__ == "__main__":
    main()
