"""`mulligan memory kinds`: proposed, kept, shown, given to lessons, seen in records, and taken back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

DATES = [f"Parse the date {day} with the calendar." for day in ("one", "two", "three", "four")]
BILLS = [f"Add the tax to the invoice for {who} and send it." for who in ("Ann", "Bob", "Cid", "Dan")]
KEEP = ("memory", "kinds", "--keep", "--name", "calendar parse date=chronology")


@pytest.fixture
def filled(here: Path, monkeypatch: pytest.MonkeyPatch, mulligan: Run) -> None:
    (here / "mulligan.toml").write_text('[memory]\nembedder = "hash"\n')
    lessons = [
        {"title": f"L{n}", "content": f"Do it in the way {n}.", "query": task}
        for n, task in enumerate((*DATES, *BILLS))
    ]
    (here / "lessons.json").write_text(json.dumps(lessons))
    with (here / "lessons.json").open() as file, monkeypatch.context() as patch:
        patch.setattr("sys.stdin", file)
        assert mulligan("memory", "add", "-").status == 0


def test_nothing_to_cluster_yet(mulligan: Run, here: Path) -> None:
    ended = mulligan("memory", "kinds")
    assert (ended.status, ended.out) == (0, "")
    assert "nothing to cluster yet: 0 tasks, at least 6" in ended.err
    assert mulligan("memory", "kinds", "--keep").status == 2
    assert "No kinds are kept. To find some: mulligan memory kinds" in mulligan("memory", "kinds", "--kept").err
    assert mulligan("memory", "kinds", "--undo").status == 2


@pytest.mark.usefixtures("filled")
def test_kinds_are_proposed_with_their_tasks_and_size(mulligan: Run) -> None:
    ended = mulligan("memory", "kinds")
    assert "calendar parse date  4 tasks, similarity" in ended.out
    assert f"    {DATES[0]}" in ended.out or f"    {DATES[1]}" in ended.out
    assert "2 kinds among 8 tasks, 0 of them in none; similarity at least 0.5 by hash:384" in ended.err
    found = json.loads(mulligan("memory", "kinds", "--json", "--without", "add invoice send").out)
    assert [(kind["name"], kind["size"], sorted(kind["tasks"])) for kind in found["kinds"]] == [
        ("calendar parse date", 4, sorted(DATES))
    ]
    assert mulligan("memory", "kinds", "--alike", "0.99").err == "no cluster of 8 tasks at a similarity of 0.99\n"


@pytest.mark.usefixtures("filled")
def test_what_is_kept_shows_in_records_and_lessons_and_is_taken_back(mulligan: Run, here: Path) -> None:
    ended = mulligan(*KEEP, "--lessons")
    assert ended.status == 0, ended.err
    assert "a task gets one from a similarity of 0.5 on, by hash:384; 8 lessons got theirs" in ended.err
    kept = json.loads(mulligan("memory", "kinds", "--kept", "--json").out)
    assert {kind["name"] for kind in kept["kinds"]} == {"chronology", "add invoice send"}
    listed = json.loads(mulligan("memory", "list", "--kind", "chronology", "--json").out)
    assert sorted(one["query"] for one in listed) == sorted(DATES)
    found = json.loads(mulligan("memory", "search", DATES[0], "--kind", "chronology", "--threshold", "0", "--json").out)
    assert {one["kind"] for one in found["lessons"]} == {"chronology"}

    (here / "said.json").write_text('["tea"]')
    solve = ("--evaluator", "contains:tea", "--memory", "--model", "scripted:said.json")
    tasks = {
        "Parse the date nine with the calendar.": "kind of task: chronology (by cluster, similarity 0.",
        "Why is the sky so blue?": "kind of task: none (the nearest cluster, ",
    }
    for task, said in tasks.items():
        assert mulligan("solve", task, *solve).status == 0
        run = mulligan("runs", "list").out.split("\n")[1].split()[0]
        assert said in mulligan("runs", "show", run).out
        assert said.split(":")[1].split("(")[0].strip() in mulligan("runs", "export", run, "--format", "md").out
    assert mulligan("solve", DATES[0], *solve, "--kind", "own").status == 0
    run = mulligan("runs", "list").out.split("\n")[1].split()[0]
    assert "kind of task: own (given)" in mulligan("runs", "show", run).out

    ended = mulligan("memory", "kinds", "--undo")
    assert "2 kinds taken back, and those of 8 lessons; none is kept now" in ended.err
    assert "No lessons match" in mulligan("memory", "list", "--kind", "chronology").err


@pytest.mark.usefixtures("filled")
def test_a_model_that_is_named_names_them(mulligan: Run, here: Path) -> None:
    (here / "said.json").write_text(
        json.dumps([{"names": ["billing \u001b[31m", "x"]}, {"names": ["billing", "dates"]}])
    )
    ended = mulligan("memory", "kinds", "--model", "scripted:said.json")
    assert ended.status == 0, ended.err
    assert "billing  4 tasks" in ended.out
    assert "dates  4 tasks" in ended.out


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--keep", "--undo"), "--keep and --undo were both given"),
        (("--lessons",), "give it with --keep"),
        (("--kept", "--alike", "0.5"), "--kept finds no kinds"),
        (("--undo", "--model", "m"), "--undo finds no kinds"),
        (("--name", "dates"), "write OLD=NEW"),
        (
            ("--name", "no such=dates"),
            "No kind 'no such' is proposed. Proposed: add invoice send, calendar parse date.",
        ),
        (("--alike", "0"), "above 0 and at most 1"),
        (("--all-agents",), "name it with --bank NAME"),
    ],
)
@pytest.mark.usefixtures("filled")
def test_what_cannot_be_is_refused(mulligan: Run, options: tuple[str, ...], why: str) -> None:
    ended = mulligan("memory", "kinds", *options)
    assert ended.status == 2
    assert why in ended.err
