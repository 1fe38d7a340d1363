"""Groups of commands, whose help shows whole lines, and which suggest a command for an unknown one."""

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
"""The commands that a word may mean, the likeliest first. A group suggests only those that it has."""


class Group(click.Group):
    """A group of commands, which a subclass can import when they are needed.

    Attributes:
        lines: the names of commands that a subclass imports, with the first lines of their help.
        sections: the headings in the help, with the names of their commands; empty for one section.
        old: earlier names of commands, with the names that replace them.
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
        """Returns up to two commands that were probably intended, by the word's meaning or else by its spelling."""
        from difflib import get_close_matches

        known = self.list_commands(ctx)
        if typed.lower() in MEANT:
            return [name for name in MEANT[typed.lower()] if name in known or (" " in name and ctx.parent is None)][:2]
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
