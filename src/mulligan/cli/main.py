"""The command `mulligan`: finds the subcommand, lets signals stop its work, and turns every error into a line on stderr
and an exit status.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, NoReturn, TypeVar

import click

from mulligan.cli.commands import SECTIONS, with_examples
from mulligan.cli.groups import Group
from mulligan.cli.terminal import emit, prepare

T = TypeVar("T")

COMMANDS = {name: command for section in SECTIONS.values() for name, command in section.items()}


class LazyGroup(Group):
    """A group that imports a command when it is called."""

    lines: Mapping[str, str] = {name: line for name, (_, line) in COMMANDS.items()}
    sections = SECTIONS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"mulligan.{COMMANDS[cmd_name][0]}"), cmd_name.replace("-", "_"))
        if isinstance(command, click.Group):
            for sub in command.commands.values():
                with_examples(sub, f"{cmd_name} {sub.name}")
        return with_examples(command, cmd_name)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mulligan", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Retry your agent with the reason it failed, and remember the fix next time."""
    if os.environ.get("MULLIGAN_OTEL"):
        from mulligan.app.telemetry import traced_as_configured  # not above: `--help` is quick

        ctx.with_resource(traced_as_configured())


with_examples(cli, "")


@click.command()
@click.argument("command", nargs=-1)
@click.pass_context
def help(ctx: click.Context, command: tuple[str, ...]) -> None:
    """Show help for COMMAND (for example, `mulligan help runs show`), or list all commands."""
    assert ctx.parent is not None
    at, here = ctx.parent, ctx.parent.command
    for name in command:
        if not isinstance(here, click.Group):
            raise click.UsageError(f"{at.command_path} has no subcommands.", at)
        found, here, _ = here.resolve_command(at, [name])
        assert here is not None
        at = click.Context(here, at, info_name=found)
    emit(here.get_help(at))


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command, and ends the process with its exit status (docs/cli.md), without a traceback."""
    prepare()
    gc.set_threshold(50_000, 20, 100)  # the SDKs' imports make a million objects that stay
    try:
        status: Any = cli.main(arguments, prog_name="mulligan", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        from mulligan.cli.errors import UNFINISHED

        click.echo("Interrupted.", err=True)
        status = UNFINISHED
    except Exception as error:
        from mulligan.cli.errors import report  # not above: `--help` is quick

        status = report(error)
    sys.exit(status or 0)


def run(work: Coroutine[Any, Any, T], interrupting: Callable[[], None]) -> T:
    """Like asyncio.run, but the first SIGINT, SIGTERM or SIGHUP cancels the work, and a second ends the process.

    Args:
        interrupting: called at the first signal.

    Raises:
        asyncio.CancelledError: a signal came, and the work has ended.
    """
    with stoppable(work, interrupting) as wait:
        return wait()


@contextmanager
def stoppable(work: Coroutine[Any, Any, T], interrupting: Callable[[], None]) -> Generator[Callable[[], T]]:
    """Yields a function that waits for the work. Signals stop it as `run` says."""
    import asyncio  # not above, like the others here: `--help` is quick
    import signal

    from mulligan.web.signals import stop_signals

    with asyncio.Runner() as runner:
        loop, signals = runner.get_loop(), stop_signals()
        task = loop.create_task(work)

        def stop() -> None:
            for number in signals:
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_DFL)
            interrupting()
            task.cancel()

        for number in signals:
            loop.add_signal_handler(number, stop)
        yield partial(loop.run_until_complete, task)
