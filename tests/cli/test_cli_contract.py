"""Every command and option is explained, here and in docs/cli.md; every end has its status; --help is light."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from each_row import each_row

from mulligan.bench import commands as bench
from mulligan.cli.errors import exit_status
from mulligan.cli.groups import Group
from mulligan.cli.main import LazyGroup, cli
from mulligan.cli.words import closing
from mulligan.core.errors import (
    InvalidInput,
    JournalDiverged,
    LeaseLost,
    ModelError,
    NotFound,
    StoreError,
    UnknownName,
)
from mulligan.core.limits import Limits
from mulligan.core.records import Attempt, Episode, Feedback, Head, Stop, StopReason, Task, Trial, Usage

PAGES = Path(__file__).parent.parent.parent / "docs"
DOCS = "".join((PAGES / page).read_text(encoding="utf-8") for page in ("cli.md", "formats/options.md"))


def commands(command: click.Command, name: str = "mulligan") -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            assert found is not None
            yield from commands(found, f"{name} {sub}")


ALL = dict(commands(cli))


@each_row("name", ALL)
def test_each_option_has_help_and_stands_in_the_docs(name: str) -> None:
    docs, command = DOCS, ALL[name]
    assert command.help
    assert f"`{name}" in docs
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{name} {option.opts} has no help"
            assert f"`{max(option.opts, key=len)}" in docs, f"{name} {option.opts} is not in the docs"


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    lines = LazyGroup.lines
    assert {name: ALL[f"mulligan {name}"].get_short_help_str(1000) for name in lines} == lines
    listed = bench.COMMANDS
    assert {name: ALL[f"mulligan bench {name}"].get_short_help_str(1000) for name in listed} == listed


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom mulligan.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit as end: assert end.code == 0\n"
        "print(sorted({'rich', 'asyncio', 'pydantic', 'pydantic_ai', 'sqlite3', 'mulligan.core.records'} & "
        "set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stderr == "[]\n"


def episode(reason: StopReason | None, passed: bool | None = False, *, judge: str = "unit_tests") -> Episode:
    head = Head(models={"actor": "m", "evaluator": "m"}, settings={"evaluator": {"name": judge}})
    usage = Usage(10, 5, 1, None)
    trial = Trial(1, Attempt("x", usage=usage), Feedback(passed, "because", notes=("in-process: can be forged",)))
    return Episode("r.1", Task("t"), run="r", head=head, trials=(trial,), stop=reason and Stop(reason, "so it is"))


@each_row(
    ("end", "status"),
    [
        (episode("solved", True), 0),
        *((episode(reason), 1) for reason in ("exhausted", "gave_up", "stuck")),
        *((episode(reason, None), 4) for reason in ("exhausted", "gave_up", "stuck")),
        *((episode("unconfirmed", passed), 4) for passed in (False, None)),
        *((episode(reason, None), 3) for reason in ("interrupted", "over_budget", "error")),
        (episode(None), 3),
        (InvalidInput("x"), 2),
        (UnknownName("x", "y", []), 2),
        (NotFound("x"), 2),
        (JournalDiverged(["x"]), 2),
        *((error, 3) for error in (StoreError(), LeaseLost("x"), ModelError(), KeyError())),
    ],
)
def test_each_end_has_its_status(end: Episode | Exception, status: int) -> None:
    assert exit_status(end) == status


def test_an_unknown_cost_is_never_zero() -> None:
    assert "10 tokens in, 5 out, cost unknown" in closing(episode("solved", True), Limits())[0]


def test_the_closing_lines_qualify_the_verdict() -> None:
    assert "note: in-process: can be forged" in closing(episode("solved", True), Limits())
    itself = "note: the model judged itself; tests (--tests FILE) or a check (--check COMMAND) are stronger"
    assert itself in closing(episode("solved", True, judge="model_judge"), Limits())
    assert itself not in closing(episode("solved", True), Limits())


@pytest.mark.parametrize("name", ["", "memory"])
def test_each_command_stands_in_one_section_of_the_help(name: str) -> None:
    group = ALL[f"mulligan {name}".strip()]
    assert isinstance(group, Group)
    within = [command for names in group.sections.values() for command in names]
    assert sorted(within) == sorted(group.list_commands(click.Context(group)))
