"""Lets an agent work on instances of SWE-bench in turn, and writes its patches for SWE-bench's own harness.

docs/benchmark-swe-bench.md says what to install, and how the patches are judged.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import mulligan


def git(folder: Path, *words: str) -> str:
    """What git prints. Raises `CalledProcessError`."""
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8", errors="surrogateescape").stdout


def read(file: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines; none where there is no file."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def checked_out(instance: dict[str, Any], repos: Path, work: Path) -> Path:
    """A fresh clone of the instance's repository at its base commit, from repos/OWNER__NAME."""
    source = repos / instance["repo"].replace("/", "__")
    folder = work / instance["instance_id"]
    if not folder.exists():
        git(repos, "clone", "--quiet", "--no-checkout", str(source.resolve()), str(folder.resolve()))
    git(folder, "checkout", "--quiet", "--force", instance["base_commit"])
    return folder


async def predicted(instance: dict[str, Any], folder: Path, name: str, options: dict[str, Any]) -> dict[str, str]:
    """The agent's patch to this instance, as SWE-bench's harness reads it; "" where it changed nothing."""
    episode = await mulligan.solve(instance["problem_statement"], workspace=folder, **options)
    states = f"refs/mulligan/{episode.id}"
    best = episode.best
    patch = git(folder, "diff", "--binary", f"{states}/start", f"{states}/trial-{best.number}") if best else ""
    return {"instance_id": instance["instance_id"], "model_name_or_path": name, "model_patch": patch}


async def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "instances", type=Path, help="JSON lines with instance_id, repo, base_commit, problem_statement"
    )
    parser.add_argument("--repos", type=Path, required=True, help="a folder of clones, each named OWNER__NAME")
    parser.add_argument("--work", type=Path, default=Path("work"), help="where the instances are checked out")
    parser.add_argument("--output", type=Path, default=Path("predictions.jsonl"), help="instances in it are left out")
    parser.add_argument("--actor", required=True, help="the agent, such as 'command:claude -p --permission-mode …'")
    parser.add_argument("--evaluator", default="unjudged", help="who judges in the loop: unjudged, review, …")
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--model", help="the model of the bank, and of an actor that asks one")
    parser.add_argument("--bank", help="an agent_id: recall that agent's lessons, and learn after each instance")
    parser.add_argument("--name", default="mulligan", help="what the predictions are called")
    given = parser.parse_args(words)
    options = {"actor": given.actor, "evaluator": given.evaluator, "trials": given.trials, "model": given.model}
    options["bank"] = given.bank
    given.work.mkdir(parents=True, exist_ok=True)
    done = {prediction["instance_id"] for prediction in read(given.output)}
    for instance in read(given.instances):
        if instance["instance_id"] in done:
            continue
        folder = checked_out(instance, given.repos, given.work)
        prediction = await predicted(instance, folder, given.name, options)
        with given.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(prediction) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
