"""Errors name the arguments of Python, and the command line shows its own options for them."""

import re
from pathlib import Path

from each_row import each_row

from mulligan.cli import errors
from mulligan.cli.errors import message_of
from mulligan.core.errors import InvalidInput, JournalDiverged

SHOWN = [
    ("give a command (check=COMMAND) or a model (judge_model=MODEL).", "give a command (--check COMMAND) or a model (--judge-model MODEL)."),
    ("write check='pytest -q', for example.", "write --check 'pytest -q', for example."),
    ("take overflow='useful', or name one with model=.", "take --overflow useful, or name one with --model."),
    ('take actor="command:claude -p", for example', 'take --actor "command:claude -p", for example'),
    ("a new run: fork=True with trials=N.", "a new run: --fork with --trials N."),
    ("give one with bank=.", "give one with --memory."),
    ("the row {model=x} of 'check=1', and a.model=3", "the row {model=x} of 'check=1', and a.model=3"),
    ("nothing to translate", "nothing to translate"),
]  # fmt: skip


@each_row(("said", "shown"), SHOWN)
def test_arguments_are_shown_as_options(said: str, shown: str) -> None:
    assert message_of(InvalidInput(said)) == shown


def test_a_run_that_diverged_names_the_way_on_for_both() -> None:
    error = JournalDiverged(["a prompt"])
    assert "fork=True" in str(error)
    assert message_of(error).endswith("or continue from here with --fork.")


OPTION = re.compile(
    r"--(check|tests|model|judge-model|reflect-model|vision-model|workspace|fork|trials|task|outcome)\b"
)


def test_no_error_of_the_library_names_an_option() -> None:
    source = Path(errors.__file__).parent.parent
    rooms = ("app", "core", "evaluators", "actors", "reflectors", "strategies", "recording", "functions", "bank")
    allowed = {"app/hosted.py", "app/story.py"}  # the command that starts a server; a command to copy
    for file in (file for room in rooms for file in (source / room).rglob("*.py")):
        if str(file.relative_to(source)) not in allowed:
            raised = re.findall(r"raise \w+\((?:[^()]|\([^()]*\))*\)", file.read_text(encoding="utf-8"))
            assert [text for text in raised if OPTION.search(text)] == [], file


def test_an_error_of_the_system_names_the_file_first() -> None:
    assert message_of(FileNotFoundError(2, "No such file or directory", "notes.md")) == (
        "notes.md: No such file or directory"
    )
    assert message_of(OSError("no number")) == "no number"
