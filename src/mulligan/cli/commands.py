"""The commands of `mulligan`: where each is, the first line of its help, its examples and its page.

`--help` imports none of them. A side house is named here and nowhere else in the middle.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Coding agents": {
        "hooks": ("cli.hooks", "Install and inspect the hooks that let coding agents learn."),
        "goal": ("cli.goal", "Keep a coding agent working until a check passes."),
        "learn": (
            "cli.learn",
            "Learn lessons from a transcript or traces in FILE (- for standard input), and list the lessons.",
        ),
    },
    "Tasks and agents": {
        "solve": ("cli.solve", "Try TASK, judge the result, reflect on it, and try again."),
        "run": ("cli.run", "Run AGENT on TASK."),
        "fan-out": (
            "bench.commands.fan_out",
            "Solve the tasks in the file TASKS in parallel, on one machine or several.",
        ),
        "demo": ("cli.demo", "Run the built-in example: write a function that passes its tests."),
    },
    "Runs and lessons": {
        "runs": ("cli.runs", "List, show, resume, export and remove recorded runs."),
        "memory": ("cli.memory", "Search, change, import and export the bank: the lessons that agents have learned."),
        "studio": ("studio.command", "Show runs, banks, coding agents and benchmarks live in a browser."),
    },
    "Set up": {
        "doctor": (
            "cli.doctor",
            "Check what works on this machine (sandbox, store, models) and explain how to fix the rest.",
        ),
        "models": (
            "cli.models",
            "List, pull and remove the weights of local models and embedders, and list providers.",
        ),
        "init": ("cli.scaffold", "Create a project in FOLDER (default: the working folder)."),
        "add": ("cli.scaffold", "Write a new, ready-to-use agent or skill named NAME."),
        "lint": ("cli.lint", "Check a project, an agent, a skill, or one of their files."),
        "trust": (
            "cli.trust",
            "Show what the project in FOLDER (default: the working folder) would run or redirect, and ask whether you "
            "trust it.",
        ),
        "serve": ("cli.serve", "Serve reflexion-thinking and the memory tools to MCP clients."),
    },
    "Benchmarks, graphs, servers": {
        "bench": ("bench.commands", "Run benchmarks and score their cases against hidden targets."),
        "strategies": ("cli.strategies", "Show or reset what adaptive strategies have learned."),
        "graph": ("graphs.command", "Query graph databases, load them from files, or write a sample graph."),
        "ask-graph": (
            "langgraph.command",
            "Answer QUESTION from a graph database: write a query, run it, examine the rows, and improve the query.",
        ),
        "store": ("cli.store", "Inspect, back up, copy and set up the store of runs and lessons."),
    },
    "Help": {
        "docs": (
            "cli.docs",
            "Show the documentation page PAGE, for example with `mulligan docs memory` (default: the overview).",
        ),
        "help": (
            "cli.main",
            "Show help for COMMAND (for example, `mulligan help runs show`), or list all commands.",
        ),
        "schema": ("cli.schema", "Print the JSON Schema of a file format, for editors."),
    },
}
"""The commands in the sections of the help, each with its module below `mulligan`. It has a click command of the same
name, with an underscore for a hyphen."""

FORMER_COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {"hooks": {"prove": ("bench.commands.prove", "command")}}
"""By group: its earlier commands, with the module and the present name of each. The help does not list them."""

EXAMPLES = {
    "": ("mulligan demo", 'mulligan solve "Write add(a, b)." --tests tests.py', "mulligan doctor"),
    "add": ("mulligan add reflexion reviewer",),
    "ask-graph": ('mulligan ask-graph "Which genes cause asthma?" --graph kg -m ollama:qwen3',),
    "bench": ("mulligan bench list", "mulligan bench run humaneval --limit 5", "mulligan bench report RUN"),
    "bench report": ("mulligan bench report RUN", "mulligan bench report RUN OTHER --format html -o report.html"),
    "bench run": ("mulligan bench run humaneval --limit 5 -n 3", "mulligan bench run mine.toml -m ollama:qwen3"),
    "demo": ("mulligan demo", "mulligan demo -m ollama:qwen3", 'mulligan demo --actor "command:claude -p"'),
    "fan-out": (
        "mulligan fan-out tasks.jsonl -m ollama:qwen3",
        "mulligan fan-out tasks.jsonl -m openai:gpt-5-mini --on ray://HOST:10001 --parallel 200",
    ),
    "hooks": ("mulligan hooks install claude", "mulligan hooks status"),
    "memory": ('mulligan memory search "parse a date"', "mulligan memory list"),
    "models": ("mulligan models list", "mulligan models pull smollm2-135m"),
    "run": ('mulligan run answerer "Why is the sky blue?"', "mulligan run reviewer --input draft.md -m ollama:qwen3"),
    "runs": ("mulligan runs list", "mulligan runs show RUN", "mulligan runs resume RUN"),
    "runs show": ("mulligan runs show RUN --full", "mulligan runs show RUN --html run.html"),
    "store": (
        "mulligan store setup postgresql://owner@host/db --role mulligan_all --all-banks",
        "mulligan store migrate --from sqlite:///mulligan.db --to postgresql://mulligan_all@host/db",
        "mulligan store status",
    ),
    "solve": (
        'mulligan solve "Write add(a, b)." -t tests.py -n 3',
        'mulligan solve "Fix the tests." --check "pytest -q" --actor "command:claude -p" --workspace .',
    ),
}
"""Examples by command; "" for `mulligan` itself. RUN is the id that a run printed."""
PAGES = {
    "": "",
    "add": "agents",
    "ask-graph": "knowledge-graphs",
    "bench": "benchmarks",
    "bench report": "benchmark-report",
    "demo": "tour",
    "doctor": "sandbox",
    "fan-out": "fan-out",
    "graph": "graphs",
    "hooks": "coding-agents",
    "init": "formats/project",
    "learn": "memory",
    "memory": "memory",
    "models": "models",
    "run": "agents",
    "runs": "record",
    "serve": "serve",
    "store": "stores",
    "strategies": "strategies",
    "studio": "studio",
    "trust": "trust",
}
"""The pages about commands or groups. The other commands are on the page of the command line."""


def with_examples(command: click.Command | None, name: str) -> click.Command | None:
    """Returns the command, with examples and the address of the documentation at the end of its help."""
    if command is not None and command.epilog is None:
        examples = EXAMPLES.get(name, ())
        lines = ["\b", "Examples:", *(f"  {one}" for one in examples), ""] if examples else []
        page = PAGES.get(name, PAGES.get(name.partition(" ")[0], "cli"))
        command.epilog = "\n".join([*lines, f"Documentation: mulligan docs {page}".rstrip()])
    return command
