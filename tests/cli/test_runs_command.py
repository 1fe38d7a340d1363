"""`mulligan runs`, `models` and `doctor`: what is recorded, shown and taken elsewhere."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mulligan import retry
from mulligan.models.weights import path_of

Run = Callable[..., Any]


def test_a_run_is_listed_shown_exported_and_replayed(mulligan: Run, here: Path, second: tuple[str, ...]) -> None:
    assert mulligan(*second, "-q").status == 0
    (row,) = json.loads(mulligan("runs", "list", "--json").out)
    assert (row["state"], row["trials"], row["task"]) == ("solved", 2, "say it")
    head, line = mulligan("runs", "list").out.splitlines()
    assert head.split() == ["run", "when", "state", "tries", "model", "task"]
    assert line.split()[0] == row["run"]
    assert line.endswith("say it")

    shown = mulligan("runs", "show", row["run"][:5]).out
    assert shown.startswith("say it\n======\n\nsolved, Tries 2, Judge ")
    assert f", Run {row['run']}.1\n" in shown
    parts = ["Try 1: failed", "    wrong", "Feedback from judge", "Lesson", "    Say right.", "Try 2: passed"]
    assert sorted(parts, key=shown.index) == parts

    assert mulligan("runs", "export", row["run"], "-o", "run.json") == (0, "", "Wrote run.json\n")
    assert mulligan("runs", "export", row["run"], "--format", "md").out.startswith("# say it\n")
    replayed = mulligan(*second, "--model", "replay:run.json", "-q")
    assert (replayed.status, replayed.out) == (0, "right\n")
    assert mulligan("runs", "export", row["run"], "-o", "no/such/x").status == 2


@pytest.mark.parametrize(
    ("script", "state"), [("never.txt", "not solved"), ("unclear.txt", "could not be judged"), ("second.txt", "solved")]
)
def test_a_run_that_is_over_has_one_word_for_its_state(
    mulligan: Run, second: tuple[str, ...], script: str, state: str
) -> None:
    ended = mulligan(*(word.replace("second.txt", script) for word in second), "--tries", "2")
    assert f"\n{state}" in ended.err
    line = mulligan("runs", "list").out.splitlines()[1]
    assert f"  {state}  " in line
    assert f"has ended ({state})" in mulligan("runs", "resume", line.split()[0]).err


@pytest.mark.parametrize("command", ["runs list", "memory list", "bench runs"])
def test_a_limit_that_no_list_can_have_is_refused(mulligan: Run, command: str) -> None:
    ended = mulligan(*command.split(), "--limit", "9" * 30)
    assert (ended.status, "Invalid value for '--limit'" in ended.err) == (2, True)


def test_a_call_of_a_function_is_shown_and_is_resumed_by_its_program_alone(mulligan: Run, here: Path) -> None:
    def is_right(answer: str) -> bool:
        return answer == "right"

    @retry(judge=is_right, notes=None)
    def answer_right(task: str) -> str:
        return "right"

    answer_right("say it")
    assert answer_right.episode is not None
    shown = mulligan("runs", "show", answer_right.episode.run).out
    assert re.search(r", Tries 1, Judge is_right, Time \d+\.\d s, ", shown)
    assert re.search(r"\nFunction .*answer_right\n", shown)
    refused = mulligan("runs", "resume", answer_right.episode.run)
    assert refused.status == 2
    assert "which your program retries: make the call again" in refused.err


def test_a_lesson_that_is_withheld_is_said_to_be(mulligan: Run, here: Path, second: tuple[str, ...]) -> None:
    (here / "vague.txt").write_text("wrong\n---\nTry harder.\n---\nTry harder.\n---\nright\n")
    judged = ("--evaluator", "./judge.py", "--model", "scripted:vague.txt", "--strategy", "reflexion")
    told = mulligan("solve", "say mulberry", *judged, "--trace")
    assert "try 1 of 4: lesson not shown: It is too general" in told.err
    run = json.loads(mulligan("runs", "list", "--json").out)[0]["run"]
    shown = mulligan("runs", "show", run).out
    assert "not shown to later tries It is too general" in shown
    assert "    Try harder." in shown
    assert "Quality 0.00 (specific 0" in shown
    assert "; the next try: passed. It names too little of this trial" in shown
    page = mulligan("runs", "export", run, "--format", "md").out
    assert "not shown to later tries It is too general" in page
    assert "Quality 0.00 (specific 0" in page


def test_show_cuts_long_texts_and_lets_none_move_the_cursor(mulligan: Run, here: Path) -> None:
    (here / "long.txt").write_text("\x1b[2J\x1b]0;title\x07right " + "word " * 5000)
    assert mulligan("solve", "x", "--evaluator", "./judge.py", "--model", "scripted:long.txt", "-q").status == 0
    run = json.loads(mulligan("runs", "list", "--json").out)[0]["run"]
    short, full = mulligan("runs", "show", run).out, mulligan("runs", "show", run, "--full").out
    assert "tokens cut" in short
    assert len(short) < 10_000 < len(full)
    assert "\x1b" not in full
    assert "\x07" not in full


def test_nothing_recorded_and_nothing_found(mulligan: Run) -> None:
    assert mulligan("runs", "list") == (
        0,
        "",
        "No runs recorded here yet. For benchmark runs: mulligan bench runs\n",
    )
    assert mulligan("runs", "list", "--json").out == "[]\n"
    for wanted in ("show", "resume", "export"):
        ended = mulligan("runs", wanted, "nothing")
        assert (ended.status, ended.out) == (2, "")
        assert "mulligan runs list" in ended.err


def test_a_changed_script_is_named_and_can_be_forked(mulligan: Run, here: Path) -> None:
    first = ("solve", "x", "--evaluator", "./judge.py", "--strategy", "none", "--model", "scripted:unclear.txt", "-q")
    ended = mulligan(*first)
    assert ended.status == 3
    run = ended.err.split()[-1]
    (here / "unclear.txt").write_text("right")
    ended = mulligan("runs", "resume", run)
    assert ended.status == 2
    assert "model actor" in ended.err
    assert "--fork" in ended.err
    ended = mulligan("runs", "resume", run, "--fork")
    assert (ended.status, ended.out) == (0, "right\n")


def test_a_run_that_is_over_is_forked_with_another_strategy_and_more_trials(mulligan: Run, here: Path) -> None:
    ended = mulligan(
        *("solve", "x", "--evaluator", "./judge.py", "--strategy", "none", "--trials", "1"),
        *("--model", "scripted:never.txt"),
    )
    assert ended.status == 1
    (row,) = json.loads(mulligan("runs", "list", "--json").out)
    run, fork = row["run"], ("runs", "resume", row["run"], "--fork", "--strategy", "reflexion")
    assert "--fork" in mulligan("runs", "resume", run, "--trials", "2").err
    refused = mulligan(*fork)
    assert refused.status == 2
    assert "1 of 1 try used" in refused.err
    ended = mulligan(*fork, "--trials", "2", "--set", "strategy.window=1", "--set", "reflector.check=false")
    assert (ended.status, ended.out) == (1, "longer, but wrong\n")
    said = ["resuming after 1 try", "try 1 of 2: lesson: wrong", "try 2 of 2: failed"]
    assert [line for line in said if line in ended.err] == said
    newest, old = json.loads(mulligan("runs", "list", "--json").out)
    assert (newest["trials"], old["trials"], old["run"]) == (2, 1, run)
    assert f"Forked from  {run}.1\n" in mulligan("runs", "show", newest["run"]).out


def test_models_lists_weights_and_the_variables_of_providers(mulligan: Run) -> None:
    listed = mulligan("models", "list").out
    assert "local:smollm2-135m" in listed
    assert "mulligan models pull smollm2-135m" in listed
    assert "Apache-2.0" in listed
    assert "OPENAI_API_KEY" in listed


@pytest.mark.slow
def test_remove_asks_first(process: Run) -> None:
    weights = path_of("smollm2-135m")
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"x" * 2_000_000)
    ended = process("models", "remove", "smollm2-135m", stdin="n\n")
    assert (ended.status, ended.out, weights.is_file()) == (0, "", True)
    assert ended.err.endswith("Nothing was removed.\n")
    assert process("models", "remove", "smollm2-135m").status == 3  # nobody to answer
    ended = process("models", "remove", "smollm2-135m", "--yes")
    assert (ended.status, weights.is_file()) == (0, False)
    assert "2 MB freed" in ended.err


def test_unknown_weights_are_bad_input(mulligan: Run) -> None:
    for wanted in (("pull", "smollm2"), ("remove", "smollm2", "--yes")):
        ended = mulligan("models", *wanted)
        assert ended.status == 2
        assert "smollm2-135m" in ended.err


def test_doctor_says_what_is_there_and_what_mends_the_rest(mulligan: Run) -> None:
    ended = mulligan("doctor")
    rows = {line[4:].split("  ")[0]: line[:2] for line in ended.out.splitlines() if line.startswith(("ok", "no"))}
    assert rows["python"] == "ok"
    assert rows["store"] == "ok"
    assert rows["weights smollm2-135m"] == "no"
    assert "-> mulligan models pull smollm2-135m" in ended.out
    assert rows["embedder"] == "no"
    assert "lessons in different words are often missed" in ended.out
    assert "mulligan models pull minilm-l6-v2" in ended.out
    assert ended.status == (0 if rows["sandbox"] == rows["local models"] == "ok" else 1)


def test_doctor_looks_into_the_store(mulligan: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(here))
    (here / "mulligan.db").write_bytes(b"no database, but much longer than one hundred bytes" * 10)
    ended = mulligan("doctor")
    assert ended.status == 1
    assert "is not a Mulligan database" in ended.out
    assert "set MULLIGAN_HOME to another folder" in ended.out


def test_a_run_is_one_page_to_send(mulligan: Run, here: Path) -> None:
    secret = "sk-ant-" + "a1B2c3D4" * 6
    hostile = f"<script>alert(1)</script><img src=https://example.org/x> {secret}"
    (here / "hostile.txt").write_text(hostile)
    mulligan("solve", hostile, "--evaluator", "./judge.py", "--model", "scripted:hostile.txt", "--trials", "1")
    (run,) = json.loads(mulligan("runs", "list", "--json").out)
    ended = mulligan("runs", "show", run["run"], "--html", "run.html")
    assert (ended.status, ended.out, ended.err) == (0, "", "Wrote run.html\n")
    page = (here / "run.html").read_text(encoding="utf-8")
    assert f"<title>Run {run['run']}</title>" in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    assert "&lt;script&gt;alert(1)" in page
    assert not re.search(r"<(script|img|link|iframe|a|form)\b", page)
    assert secret not in page
    again = mulligan("runs", "show", run["run"], "--html", "run.html")
    assert (again.status, again.err) == (
        2,
        "Error: run.html already exists. Choose another file, or remove the existing one first.\n",
    )
    assert (here / "run.html").read_text(encoding="utf-8") == page
    assert mulligan("runs", "show", run["run"], "--html", "other.html", "--json").status == 2
