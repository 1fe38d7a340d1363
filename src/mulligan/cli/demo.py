"""`mulligan demo`: runs the example of this package with the small local model, or with a named model or agent."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import click

from mulligan.actors.command import Command as CommandActor
from mulligan.app.config import load
from mulligan.app.solve import solve
from mulligan.cli.errors import NOT_SOLVED, SOLVED
from mulligan.cli.options import progress_options
from mulligan.cli.terminal import say
from mulligan.cli.watch import Watch
from mulligan.core.extras import install_command
from mulligan.core.limits import Limits
from mulligan.core.records import Episode
from mulligan.models.catalog import found_keys
from mulligan.models.providers import PROVIDERS

AGENT_NAMES = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI"}
"""The names of coding agents by their programs."""
STEPS = (
    "A model or an agent tries.",
    "Tests judge the attempt.",
    "A failed try produces a lesson.",
    "The next try sees the lesson. There are at most four tries.",
)
"""The steps of the example, in lines of at most 80 columns."""
OLLAMA = PROVIDERS["ollama"].home or ""
"""The address of an Ollama on this machine."""
SOLVE = 'mulligan solve "Write add(a, b)." --tests tests.py'
EXAMPLE = Path(__file__).parent.parent / "examples" / "factorial"


async def solve_example(*, model: str | None = None, actor: str | None = None, **hooks: Any) -> Episode:
    """Solves the example. Raises the errors of `solve`.

    Args:
        actor: a coding agent, "command:…". It works on a copy of the folder `demo` beside the store, and sees the
            check's output. It needs no model.
        hooks: other arguments of `solve`, such as observers.
    """
    if actor is None:
        return await solve(EXAMPLE, model=model, **hooks)
    folder = load().database.parent / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "factorial.py").write_text("", encoding="utf-8")
    tests = (EXAMPLE / "tests.py").read_text(encoding="utf-8")
    (folder / "test_factorial.py").write_text(f"from factorial import factorial\n\n{tests}", encoding="utf-8")
    task = (EXAMPLE / "task.md").read_text(encoding="utf-8").strip()
    return await solve(
        f"{task} Write it into the file factorial.py.",
        actor=actor,
        check=f"{shlex.quote(sys.executable)} test_factorial.py",
        workspace=folder,
        settings={"workspace": {"mode": "copy", "deliver": "in_place"}},
        model=model,
        **hooks,
    )


@click.command()
@click.option(
    "--model",
    "-m",
    metavar="MODEL",
    help="The model: local (default; downloads 98 MB once), PROVIDER:NAME, scripted:FILE, …",
)
@click.option(
    "--actor",
    metavar="COMMAND",
    help='A coding agent, such as "command:claude -p", that makes the attempts instead of a model.',
)
@progress_options
@click.pass_context
def demo(ctx: click.Context, model: str | None, actor: str | None, quiet: bool, as_json: bool, trace: bool) -> None:
    """Run the built-in example: write a function that passes its tests.

    The small local model usually fails its first try and passes its second. At the end, the command lists other
    models and agents that you can use. The exit status is the same as for `mulligan solve`.
    """
    work = partial(solve_example, model=model, actor=actor)
    told = not quiet and not as_json
    watch = Told(quiet, as_json, trace) if told else Watch(quiet, as_json, trace)
    status = watch.conduct(work)
    if told and status in (SOLVED, NOT_SOLVED):
        say("\nWhat to try next:")
        for what, command in next_steps(ollama_model(), watch.episode.run if watch.episode else ""):
            say(f"  {what}:\n    {command}")
    ctx.exit(status)


class Told(Watch):
    """Describes the example before the run is shown."""

    def began(self, episode: Episode, limits: Limits) -> None:
        if self.episode is None:
            say(f"The task: {(EXAMPLE / 'task.md').read_text(encoding='utf-8').strip()}")
            for number, step in enumerate(STEPS, 1):
                say(f"  {number}. {step}")
        super().began(episode, limits)


def next_steps(ollama: str | None, run: str) -> list[tuple[str, str]]:
    """Returns what to try after the example: descriptions, such as of a model on this machine, and commands.

    Args:
        ollama: the name of a model of Ollama; "" if it has none or does not run; None if it is not installed.
        run: the id of the example's run.
    """
    extra = "" if find_spec("pydantic_ai") else f"{install_command('models')} && "
    steps = [(f"{key} is set", f"{extra}mulligan demo --model {name}") for key, name in found_keys()]
    for agent in CommandActor.installed():
        name = AGENT_NAMES.get(agent.removeprefix("command:").split()[0], "A coding agent")
        steps.append((f"{name} is installed", f"mulligan demo --actor {quoted(agent)}"))
    if ollama:
        steps.append((f"Ollama has the model {ollama}", f"{extra}mulligan demo --model ollama:{ollama}"))
    elif ollama == "":
        steps.append(("Ollama is installed", f"ollama pull qwen3 && {extra}mulligan demo --model ollama:qwen3"))
    return [
        *steps,
        ("A task of your own, judged by your tests", f"echo 'assert add(1, 2) == 3' > tests.py && {SOLVE}"),
        ("Each try in full", f"mulligan runs show {run} --full"),
    ]


def ollama_model(home: str = OLLAMA) -> str | None:
    """Returns the first model of an Ollama on this machine for `next_steps`. Waits for at most half a second."""
    try:
        direct = build_opener(ProxyHandler({}))
        with direct.open(f"{home.removesuffix('/v1')}/api/tags", timeout=0.5) as answer:
            models: Any = json.load(answer)["models"]
        name = next((str(model["name"]) for model in models), "")
    except (OSError, ValueError, LookupError, TypeError):
        return "" if shutil.which("ollama") else None
    return name if re.fullmatch(r"[\w.:/-]+", name) else ""


def quoted(text: str) -> str:
    """Returns the text as one word of a shell, in double quotes if possible."""
    return f'"{text}"' if not set(text) & set('"$`\\!') else shlex.quote(text)
