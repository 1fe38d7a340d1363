"""Groups of commands: their help shows each line whole, and for a command that does not exist they suggest one."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence

import click

from mulligan.cli.terminal import sentence

_REMOVE = ("rm", "remove", "purge", "retire", "forget", "uninstall", "clear", "runs rm", "memory purge")
_SHOW = ("show", "status", "stats")
_CREATE = ("add", "init", "install", "load")
MEANT = {
    **dict.fromkeys(
        ("delete", "del", "erase", "drop", "rm", "remove", "purge", "forget", "reset", "clear", "wipe"), _REMOVE
    ),
    **dict.fromkeys(("get", "view", "cat", "info", "inspect", "open", "display", "print", "show"), _SHOW),
    **dict.fromkeys(("create", "new", "insert", "make", "store", "enable", "setup"), _CREATE),
    **dict.fromkeys(("disable", "stop", "off"), ("pause", "uninstall", "retire")),
    **dict.fromkeys(("continue", "restart", "start", "on"), ("resume", "run", "restore")),
    **dict.fromkeys(("find", "query", "grep", "lookup", "recall"), ("search", "ask-graph", "memory search")),
    **dict.fromkeys(("update", "change", "modify", "rename"), ("edit", "set")),
    **dict.fromkeys(("ls", "list", "all"), ("list", "status", "runs list", "memory list")),
    **dict.fromkeys(("log", "logs"), ("history", "status", "runs")),
    **dict.fromkeys(("download", "install"), ("pull", "fetch", "install", "hooks install")),
    **dict.fromkeys(("config", "configure", "settings"), ("set", "init")),
    **dict.fromkeys(("ui", "web", "dashboard"), ("studio",)),
    **dict.fromkeys(("check", "validate", "verify", "test"), ("verify", "lint", "doctor")),
}
"""What somebody who typed this may have meant, the likeliest first, as far as the group has it."""


class Group(click.Group):
    """A group of commands that are here, or that a subclass imports.

    Attributes:
        lines: where a subclass imports its commands: their names with the first line of their help.
        sections: the names of the commands under the headings of the help; one section where there are none.
        old: earlier names of commands, with the words that do the same today.
    """

    lines: Mapping[str, str] = {}
    sections: Mapping[str, Collection[str]] = {}
    old: Mapping[str, Sequence[str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lines) or super().list_commands(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args = [*self.old.get(args[0], args[:1]), *args[1:]]
        if not args[0].startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            near = " or ".join(map(repr, self.suggestions(ctx, args[0])))
            text = f"Error: No such command {args[0]!r}.{f' Did you mean {near}?' if near else ''}"
            ctx.fail(sentence(text, sys.stderr).removeprefix("Error: "))
        return super().resolve_command(ctx, args)

    def suggestions(self, ctx: click.Context, typed: str) -> list[str]:
        """The commands that were probably meant: by the meaning of the word, else by its spelling; at most two."""
        from difflib import get_close_matches

        known = self.list_commands(ctx)
        if typed.lower() in MEANT:
            return [one for one in MEANT[typed.lower()] if one in known or (" " in one and ctx.parent is None)][:2]
        return get_close_matches(typed, known, n=1)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = self.lines or {
            name: command.get_short_help_str(10_000)
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) and not command.hidden
        }
        width = max(map(len, lines)) + 2
        for heading, names in (self.sections or {"Commands": lines}).items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width - 2), lines[name]) for name in names])
