"""`mulligan goal`: a check that ends the turn of a coding agent."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import click

from mulligan.cli.terminal import drawn, emit, say
from mulligan.core.errors import InvalidInput, StoreError
from mulligan.core.home import home_path

ACTIONS = ("pause", "resume", "clear", "check")
STYLES = (
    (r".*: passed$", "green"),
    (r"  \d+\. passed", "green"),
    (r"  \d+\. failed", "red"),
    (r"when it was set", "dim"),
)
"""The styles of lines of the status on a terminal."""


class GoalCommand(click.Command):
    """Explains at an unknown option how to write a check of several words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            quote = 'Quote a check that contains spaces: mulligan goal "pytest -q".'
            raise click.NoSuchOption(
                error.option_name, f"{error.message} {quote}", error.possibilities, error.ctx
            ) from None


@click.command(cls=GoalCommand, short_help="Keep a coding agent working until a check passes.")
@click.argument("words", nargs=-1, metavar="[CHECK | pause | resume | clear | check]")
@click.option(
    "--tries",
    "--trials",
    "trials",
    type=int,
    default=5,
    show_default=True,
    help="Maximum number of tries per session.",
)
@click.option("--max-seconds", type=float, metavar="N", help="Maximum working time per session, in seconds.")
@click.option(
    "--check-seconds", type=float, default=600.0, show_default=True, help="Time limit for the check, in seconds."
)
@click.option(
    "--protect",
    multiple=True,
    metavar="PATH",
    help="A file or folder that the check sees as it was when the goal was set. Repeatable.",
)
@click.option(
    "--sandbox",
    metavar="LEVEL",
    default="auto",
    help="Sandbox level: auto (default), none, or another level, as for solve.",
)
@click.option("--no-first-check", is_flag=True, help="Do not run the check when the goal is set.")
@click.option("--tests", metavar="FILE", help="Judge with a copy of this test file instead of running a command.")
@click.option(
    "--judge",
    metavar="NAME:ARG",
    help="Let a model judge the changes: model_judge:RUBRIC, where RUBRIC is text or a file. A model is the weakest "
    "kind of judge.",
)
@click.option("--judge-model", metavar="MODEL", help="The model that judges (default: your configured model).")
@click.option(
    "--maximise",
    metavar="COMMAND",
    help="A command whose output ends with a number, which is the score. Requires --at-least.",
)
@click.option("--at-least", type=float, metavar="X", help="The minimum score.")
@click.option("--run", "agent", metavar="COMMAND", help='Run an agent, such as "claude -p", until the goal is reached.')
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def goal(ctx: click.Context, words: tuple[str, ...], agent: str | None, as_json: bool, **given: Any) -> None:
    """Set a goal for this folder, so that a coding agent keeps working until CHECK passes or no tries are left.

    The hooks of Claude Code, Codex CLI, Gemini CLI and Qwen Code run the check whenever the agent is about to end a
    turn. If the check fails, the agent sees the check's output and continues. Without CHECK, the command prints the
    goal's state.

    `mulligan goal --run "claude -p" "Make the failing tests pass"` runs an agent non-interactively and restarts it with
    the check's output until the check passes or no tries are left. `mulligan goal check` runs the check now, without
    counting it as a try.

    Exit status: 0 if the goal is set or reached, 1 if it is not reached, 2 for invalid input.
    """
    with goals_in_use():
        if agent is not None:
            ctx.exit(_run(agent, words, given))
        if words and words[0] in ACTIONS and len(words) == 1:
            ctx.exit(_act(words[0]))
        elif words or _names_judge(given):
            _set(words, given)
        else:
            ctx.exit(_status(as_json))


@contextmanager
def goals_in_use() -> Generator[None]:
    """Raises `StoreError` if the record of goals cannot be read or written."""
    try:
        os.makedirs(home_path(), exist_ok=True)
    except OSError as error:
        why = f"{home_path()} cannot be created: {error.strerror}"
        raise StoreError(f"Mulligan's folder {why}. Set MULLIGAN_HOME to another folder.") from error
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"The goals file in {home_path()} cannot be used: {error}.") from error


def _set(words: tuple[str, ...], given: dict[str, Any]) -> None:
    from mulligan.app.config import load
    from mulligan.goals.setting import MODEL_WARNING, WARNING, person_only, set_goal
    from mulligan.goals.state import Goals
    from mulligan.hooks.holding import agents_that_hold

    folder = os.getcwd()
    person_only("set a goal", folder)
    if len(words) > 1:
        raise InvalidInput(
            f"Use only one check. Quote a command that contains spaces: mulligan goal {' '.join(words)!r}"
        )
    holding = agents_that_hold(folder, given["trials"])
    wish = _wish(words[0] if words else "", given)
    warning = MODEL_WARNING if wish.rubric else WARNING
    with Goals() as goals:
        there = set_goal(goals, wish, folder, str(load().store), "person", begin=lambda: say(warning))
    first = there.first
    states = {
        True: " It currently passes.",
        False: " It currently fails, as it should.",
        None: " It gives no verdict yet.",
    }
    state = states[first["passed"]] if first else ""
    if first and first["text"].startswith("The check was stopped"):
        state = f" {first['text'].splitlines()[0]} --check-seconds allows more time."
    say(f"The goal of {there.folder} is: {there.label}.{state}")
    for line in holding:
        say(line)


def _names_judge(given: dict[str, Any]) -> bool:
    return any(given[name] is not None for name in ("tests", "judge", "maximise", "at_least"))


def _wish(check: str, given: dict[str, Any]) -> Any:
    """Returns the goal that the options describe. Raises `InvalidInput` if they contradict each other."""
    from mulligan.goals.setting import Wish

    if (given["maximise"] is None) != (given["at_least"] is None):
        raise InvalidInput("Use --maximise and --at-least together.")
    if check and given["maximise"] is not None:
        raise InvalidInput(f"Use only one judge: {check!r} or --maximise.")
    rubric, model = _judge(given)
    check, tests = check or given["maximise"] or "", given["tests"] or ""
    same = {name: given[name] for name in ("at_least", "trials", "max_seconds", "protect", "sandbox")}
    first = not given["no_first_check"]
    return Wish(check, tests, rubric, model, seconds=given["check_seconds"], first_check=first, **same)


def _judge(given: dict[str, Any]) -> tuple[str, str]:
    """Returns the rubric and the model that judges by it, or empty texts if no model judges."""
    from pathlib import Path

    from mulligan.app.config import choose_model, load, located_model
    from mulligan.app.plugins import parse_spec

    if given["judge"] is None:
        if given["judge_model"] is not None:
            raise InvalidInput("--judge-model needs --judge model_judge:RUBRIC.")
        return "", ""
    spec = parse_spec("evaluators", given["judge"])
    rubric = spec.settings.get("rubric")
    if spec.name != "model_judge" or not isinstance(rubric, str) or not rubric.strip():
        raise InvalidInput(
            f"A goal's --judge must be model_judge:RUBRIC, where RUBRIC is text or a file, not {given['judge']!r}. "
            "Any other judge is a command: mulligan goal COMMAND."
        )
    config = load()
    config.refuse_held("judge_model")
    model = given["judge_model"] or config.text("judge_model")
    if model is None:
        config.refuse_held("model")
    return rubric, located_model(choose_model(model, config) or "", Path.cwd())


def _act(action: str) -> int:
    from mulligan.goals.checks import check_now
    from mulligan.goals.setting import end, pause, person_only, resume
    from mulligan.goals.state import CLEARED, Goals

    if action != "check":
        person_only(f"{action} a goal", os.getcwd())
    with Goals() as goals:
        place, there = _here(goals)
        if there is None:
            raise InvalidInput('There is no goal here. Set one: mulligan goal "pytest -q"')
        if action == "check":
            if not there.settings["check"]:
                person_only("have a model judge a goal", os.getcwd())
            feedback = check_now(there, place.where(there), place.top)
            emit(f"{feedback.text}\n")
            return 0 if feedback.passed else 1
        if action == "clear":
            end(goals, there, CLEARED, "person")
        else:
            (pause if action == "pause" else resume)(goals, there, "person")
        say(f"{there.label}: {'cleared' if action == 'clear' else 'paused' if action == 'pause' else 'resumed'}.")
    return 0


def _here(goals: Any) -> tuple[Any, Any]:
    from mulligan.goals.place import Place

    place = Place(os.getcwd())
    return place, place.goal(goals.standing())


def _status(as_json: bool) -> int:
    from mulligan.app.goals import in_json, in_words
    from mulligan.goals.record import sync
    from mulligan.goals.state import Goals

    with Goals() as goals:
        place, there = _here(goals)
        there = there or goals.newest(place.folder)
        if there is None:
            emit("{}\n" if as_json else 'There is no goal here. Set one: mulligan goal "pytest -q"\n')
            return 1
        sync(goals, there.id)
        emit(in_json(goals, there) if as_json else drawn(in_words(goals, there).splitlines(), STYLES))
        return 0


def _run(agent: str, words: tuple[str, ...], given: dict[str, Any]) -> int:
    from mulligan.app.goals import agent_words, run_agent
    from mulligan.goals.setting import person_only

    if len(words) not in ((1,) if _names_judge(given) else (1, 2)):
        raise InvalidInput(
            '--run takes a task, or a check and a task: mulligan goal --run "claude -p" "Fix the tests".'
        )
    words_of_agent = agent_words(agent)
    person_only("start an agent under a goal", os.getcwd())
    if len(words) == 2 or _names_judge(given):
        from mulligan.app.config import load
        from mulligan.goals.setting import set_goal
        from mulligan.goals.state import Goals

        with Goals() as goals:
            wish = _wish(words[0] if len(words) == 2 else "", given)
            set_goal(goals, wish, os.getcwd(), str(load().store), "person")
    return run_agent(words_of_agent, words[-1], os.getcwd(), say)
