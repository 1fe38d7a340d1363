"""`mulligan fan-out` as a person meets it: a line for each task as it ends, bad files, judges, going on with a run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def tasks(here: Path, *lines: Any) -> str:
    (here / "tasks.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    return "tasks.jsonl"


def said(here: Path, *answers: str) -> tuple[str, ...]:
    (here / "said.json").write_text(json.dumps(answers))
    return ("-m", "scripted:said.json", "--method", "resample")


def printed(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


CAPITAL = {"id": "capital", "prompt": "The capital of Australia?", "contains": "Canberra"}


def test_each_result_is_a_line_with_the_attempt(mulligan: Run, here: Path) -> None:
    file = tasks(here, CAPITAL, {"prompt": "The capital of France?", "answer": "Paris", "contains": "a"})
    ended = mulligan("fan-out", file, *said(here, "Sydney", "Canberra", "Marseille"), "-n", "2")
    assert ended.status == 1
    first, second = printed(ended.out)
    assert first.pop("seconds") >= 0
    assert first == {
        "id": "capital",
        "status": "solved",
        "output": "Canberra",
        "score": 1.0,
        "trials": 2,
        "episode": first["episode"],
        "tokens": first["tokens"],
        "cost": 0.0,
        "text": first["text"],
    }
    assert mulligan("runs", "show", first["episode"]).out.partition("\n\n")[2].startswith("solved, ")
    assert [second[key] for key in ("id", "status", "output", "score")] == ["task-2", "failed", "Marseille", 0.0]
    run = first["episode"].partition(".")[0]
    assert f"{run}: 1 of 2 solved, 1 failed, 0 unjudged, 0 errors" in ended.err


@pytest.mark.slow
def test_a_prompt_alone_is_a_task_and_an_option_says_who_judges(mulligan: Run, here: Path) -> None:
    file = tasks(here, "Say right.", "Say right, too.", {**CAPITAL, "id": "own"})
    quiet = ("-q", "-n", "1")
    unjudged = mulligan("fan-out", file, *said(here, "right"), *quiet)
    assert unjudged.status == 2
    assert f"{here / file}:1: the task 'task-1' has no judge" in unjudged.err
    judged = mulligan("fan-out", file, *said(here, "right", "wrong", "Canberra"), *quiet, "-e", "contains:right")
    assert [line["status"] for line in printed(judged.out)] == ["solved", "failed", "solved"]
    checked = mulligan("fan-out", file, *said(here, "1", "x", "Canberra"), *quiet, "-c", "grep 1 {attempt}")
    assert [line["status"] for line in printed(checked.out)] == ["solved", "failed", "solved"]
    both = mulligan("fan-out", file, *said(here, "1"), "-c", "true", "-e", "contains:right")
    assert (both.status, "Only one can judge" in both.err) == (2, True)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("{", "tasks.jsonl:1: The line is not valid JSON"),
        ('\n["a"]', "tasks.jsonl:2: A task is an object such as"),
        ('{"prompt": "a", "contians": "b"}', "tasks.jsonl:1: No key of a task is called 'contians'"),
        ("", 'tasks.jsonl has no task: start one with {"prompt": "…"}.'),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_line(mulligan: Run, here: Path, lines: str, why: str) -> None:
    (here / "tasks.jsonl").write_text(lines)
    ended = mulligan("fan-out", "tasks.jsonl", *said(here, "a"))
    assert ended.status == 2
    assert why in ended.err


def test_names_of_files_and_options_that_cannot_be(mulligan: Run, here: Path) -> None:
    (here / "tasks.txt").write_text("a")
    for arguments, why in (
        (("tasks.txt",), "its name must end in .jsonl or .toml"),
        (("none.jsonl",), "The task file none.jsonl does not exist."),
        ((), "Specify a task file, or a run to resume"),
        (("--resume", "b1", "--seed", "1"), "No such option"),
        (("--resume", "b1", "-n", "1"), "omit --tries"),
    ):
        ended = mulligan("fan-out", *arguments)
        assert (ended.status, why in ended.err) == (2, True), ended.err


def test_a_run_is_resumed_and_prints_all_its_results(mulligan: Run, here: Path) -> None:
    file = tasks(here, {**CAPITAL, "id": "one"}, {**CAPITAL, "id": "two"})
    broken = mulligan("fan-out", file, *said(here, "Canberra"))
    assert broken.status == 3
    first, second = printed(broken.out)
    assert (first["status"], second["status"], second["trials"]) == ("solved", "error", 0)
    assert "has 1 answer but was asked for number 2" in second["text"]
    run = first["episode"].partition(".")[0]
    assert f"to rerun the cases with errors: mulligan fan-out --resume {run}" in broken.err
    again = mulligan("fan-out", "--resume", run)
    assert [line["id"] for line in printed(again.out)] == ["one", "two"]
    assert printed(again.out)[0] == first
