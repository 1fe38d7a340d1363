"""What people say of recorded runs and of lessons of the bank: ratings, and lessons that they change."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from mulligan.app.editing import person

Run = Callable[..., Any]


@pytest.fixture
def failed(mulligan: Run, here: Path) -> str:
    """A run of two failed trials; the first has a lesson."""
    (here / "two.txt").write_text(
        "tea\n---\nIt says tea: say wine.\n---\nwine\n---\nIt says wine: say right.\n---\nright"
    )
    judged = ("--evaluator", "./judge.py", "--model", "scripted:two.txt", "--strategy", "reflexion")
    mulligan("solve", "x", *judged, "--trials", "2", "-q")
    return json.loads(mulligan("runs", "list", "--json").out)[0]["run"]


def record(mulligan: Run, run: str) -> dict[str, Any]:
    (episode,) = json.loads(mulligan("runs", "show", run, "--json").out)
    return episode


def test_a_changed_lesson_is_what_a_fork_is_shown_and_the_original_is_kept(mulligan: Run, failed: str) -> None:
    told = mulligan("runs", "reflect", failed, "--trial", "1", "--text", "It says tea: say water.", "--by", "Ann")
    assert (told.status, told.err) == (0, "The lesson of try 1 was written.\n")
    (reflection, *_) = [trial["reflection"] for trial in record(mulligan, failed)["trials"]]
    (edit,) = reflection["edits"]
    assert reflection["text"] == "It says tea: say water."
    assert (edit["decision"], edit["by"], edit["before"]) == ("written", "Ann", "It says tea: say wine.")
    assert "decision: written by Ann\n\nBefore:\n    It says tea: say wine." in mulligan("runs", "show", failed).out
    page = mulligan("runs", "export", failed, "--format", "md").out
    assert "It says tea: say wine." in page

    forked = mulligan("runs", "resume", failed, "--fork", "--trials", "3", "--trace")
    assert "It says tea: say water." in forked.err
    events = json.loads(mulligan("runs", "export", failed).out)["episodes"][0]["events"]
    assert [event["event"] for event in events][-2:] == ["stopped", "revised"]
    assert [e["reflection"]["text"] for e in events if e["event"] == "reflected"] == ["It says tea: say wine."]
    assert json.loads(mulligan("runs", "list", "--json").out)[1]["state"] == "exhausted"


def test_a_vetoed_lesson_is_shown_no_more_and_can_be_taken_again(mulligan: Run, failed: str) -> None:
    assert mulligan("runs", "reflect", failed, "--trial", "1", "--veto").status == 0
    assert record(mulligan, failed)["trials"][0]["reflection"]["withheld"] == "A person vetoed it."
    assert mulligan("runs", "reflect", failed, "--trial", "1", "--take").status == 0
    reflection = record(mulligan, failed)["trials"][0]["reflection"]
    assert (reflection["withheld"], len(reflection["edits"])) == ("", 2)
    assert reflection["edits"][0]["by"] == person()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ((), "Use one of"),
        (("--veto", "--take"), "Use one of"),
        (("--trial", "7", "--veto"), "has no try 7; it has 2"),
        (("--trial", "2", "--veto"), "Try 2 has no lesson"),
        (("--text", " "), "empty"),
    ],
)
def test_what_cannot_be_changed_is_refused(mulligan: Run, failed: str, given: tuple[str, ...], why: str) -> None:
    refused = mulligan("runs", "reflect", failed, *given)
    assert refused.status == 2
    assert why in refused.err


def test_ratings_are_kept_shown_exported_and_removed_with_the_run(mulligan: Run, failed: str) -> None:
    rated = mulligan("runs", "rate", failed, "0.25", "--trial", "1", "--by", "Ann", "--comment", "too vague")
    assert (rated.status, rated.err) == (0, "The lesson of try 1 was rated 0.25.\n")
    assert mulligan("runs", "rate", failed, "--bad", "--by", "Bob").err == "The result was rated 0.\n"
    first, second = record(mulligan, failed)["ratings"]
    assert (first["score"], first["by"], first["trial"], first["comment"]) == (0.25, "Ann", 1, "too vague")
    assert (second["score"], second["trial"]) == (0.0, None)
    listed = mulligan("runs", "ratings")
    assert listed.out.replace(failed, "RUN") == snapshot("""\
RUN.1  The lesson of try 1 was rated 0.25 by Ann: too vague
RUN.1  The result was rated 0 by Bob
""")
    assert listed.err == snapshot("""\
People's scores of lessons and their quality: 1 of each, too few to tell whether they agree (at least 10 are needed).
People's scores of results and their judges: 1 of each, too few to tell whether they agree (at least 10 are needed).
""")
    exported = json.loads(mulligan("runs", "export", failed).out)["episodes"][0]
    assert len(exported["episode"]["ratings"]) == 2
    assert "was rated 0.25 by Ann: too vague" in mulligan("runs", "export", failed, "--format", "md").out
    assert mulligan("runs", "rm", failed, "--yes").status == 0
    assert json.loads(mulligan("runs", "ratings", "--json").out) == {
        "ratings": [],
        "agreement": {"lessons": None, "results": None},
    }


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ((), "Pass one score"),
        (("0.5", "--good"), "Pass one score"),
        (("1.5",), "from 0 to 1"),
        (("1", "--trial", "2"), "Try 2 has no lesson to rate"),
    ],
)
def test_a_rating_that_cannot_be_is_refused(mulligan: Run, failed: str, given: tuple[str, ...], why: str) -> None:
    refused = mulligan("runs", "rate", failed, *given)
    assert refused.status == 2
    assert why in refused.err


@pytest.mark.slow
def test_a_lesson_of_the_bank_is_rated_and_its_history_says_so(mulligan: Run, here: Path) -> None:
    ids = [
        mulligan(
            "memory", "add", "--title", f"Look {n} times", "--content", f"Look {n} times before you leap."
        ).out.strip()
        for n in range(10)
    ]
    for n, id in enumerate(ids):
        assert mulligan("memory", "rate", id, str(n / 10), "--by", "Ann").status == 0
    assert mulligan("memory", "rate", ids[0], "--good", "--by", "Bob", "--comment", "short").status == 0
    lesson = json.loads(mulligan("memory", "show", ids[0], "--json").out)["lesson"]
    assert [(one["score"], one["by"], one["comment"]) for one in lesson["ratings"]] == [
        (0, "Ann", ""),
        (1, "Bob", "short"),
    ]
    assert mulligan("memory", "history", ids[0]).out.count("edited") == 2
    exported = mulligan("memory", "export").out
    assert '"comment": "short"' in exported
    assert "People's scores of lessons and their confidence: rank correlation" in mulligan("memory", "stats").err
    assert mulligan("memory", "rate", ids[0], "2").status == 2
