"""`mulligan bench learn`: the learning track of STATE-Bench, and trajectories of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bfcl_wheel import READERS, write_wheel

Run = Callable[..., Any]


def trajectory(number: int) -> str:
    error = {"error": f"Cannot ship 'express': order {number} is not paid."}
    calls = [
        {"name": "ship", "arguments": {"order": number, "speed": "express"}, "result": error},
        {"name": "ship", "arguments": {"order": number, "speed": "normal"}, "result": {"status": "sent"}},
    ]
    said = [
        {"role": "user", "content": f"Ship order {number}."},
        {"role": "assistant", "content": "Done.", "tool_calls": calls},
    ]
    return json.dumps({"task_id": str(number), "task_completion_pass": 0, "conversation": said})


@pytest.fixture
def checkout(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = here / "checkout" / "datasets" / "train_task_trajectories" / "travel"
    folder.mkdir(parents=True)
    for number in (1, 2):
        (folder / f"{number}.json").write_text(trajectory(number))
    (here / "mulligan.toml").write_text('[memory]\nembedder = "none"\n')
    return here / "checkout"


def test_a_domain_is_learned_once_and_served_to_their_harness(
    mulligan: Run, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = ("bench", "learn", "state-bench", "--data", str(checkout), "--domain", "travel", "--format", "json")
    first, again = (json.loads(mulligan(*learn).out)["travel"] for _ in range(2))
    assert (first["bank"], first["transcripts"], first["new"], again["new"]) == ("state-bench-travel", 2, 1, 0)

    from mulligan.bench.state_bench import retrieve_learnings

    monkeypatch.setenv("MULLIGAN_BANK", "state-bench-travel")
    (learning,) = retrieve_learnings("Cannot ship 'overnight': order 3 is not paid.", top_k=3)
    assert 'ship with speed="normal"' in learning
    assert retrieve_learnings("Ship my order.") == []
    assert retrieve_learnings("Cannot ship 'overnight': order 3 is not paid.", bank="another") == []

    missing = mulligan("bench", "learn", "state-bench", "--data", str(checkout), "--domain", "shopping_assistant")
    assert "contains no training trajectories for shopping_assistant" in missing.err


def test_a_folder_of_transcripts_is_replayed_without_a_bank(mulligan: Run, checkout: Path) -> None:
    ended = mulligan("bench", "learn", str(checkout), "--replay", "-q")
    assert "refused calls after which a lesson is shown        2 of 2 (34% to 100%)" in ended.out
    assert "correct calls before which a lesson is shown       0 of 2 (0% to 66%)" in ended.out
    assert mulligan("memory", "list", "--all-banks").out == ""


@pytest.mark.slow
def test_a_run_of_bfcl_is_replayed_with_the_right_calls_of_its_tasks(mulligan: Run, here: Path) -> None:
    wheel = str(write_wheel(here))
    wrong = [[f"lend({name}='Heat', reader='{reader}')", "No."] for reader, name in zip(READERS, "abcd", strict=True)]
    (here / "wrong.json").write_text(json.dumps([line for task in wrong for line in task]))
    model = f"scripted:{here / 'wrong.json'}"
    mulligan("bench", "run", "bfcl", "--data", wheel, "--model", model, "--parallel", "1", "-q")
    (run, *_) = mulligan("bench", "runs").out.splitlines()[-1].split()
    replayed = mulligan("bench", "learn", run, "bfcl", "--data", wheel, "--replay", "--format", "json", "-q")
    figures = json.loads(replayed.out)[f"{run}, bfcl"]
    shares = {name: (figures[name]["count"], figures[name]["n"]) for name in ("hits", "remedies", "disturbances")}
    assert (shares["hits"], shares["remedies"], shares["disturbances"]) == ((4, 4), (4, 4), (0, 8))
    assert "lend" in figures["titles"][0]
    refused = mulligan("bench", "learn", "bfcl", "--data", wheel)
    assert "only its correct calls: add --replay" in refused.err
