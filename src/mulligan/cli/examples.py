"""What `--help` shows at its end: commands to copy, and where the documentation is."""

from __future__ import annotations

import click

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
"""By command; "" for `mulligan` itself. RUN stands for the id that a run printed."""
DOCS = "docs/cli.md"
"""The page that describes each command, in the repository."""


def with_examples(command: click.Command | None, name: str) -> click.Command | None:
    """The command, with its examples and the address of the documentation at the end of its help."""
    if command is not None and command.epilog is None:
        examples = EXAMPLES.get(name, ())
        lines = ["\b", "Examples:", *(f"  {one}" for one in examples), ""] if examples else []
        command.epilog = "\n".join([*lines, f"Documentation: {DOCS}"])
    return command
