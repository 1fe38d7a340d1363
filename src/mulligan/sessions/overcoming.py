"""Decides how a command that works overcame one that failed before in the session."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from mulligan.core.turns import Turn
from mulligan.sessions import remedies, signature
from mulligan.sessions.commands import chained, changes_nothing, differences, folder, parts, short, variables
from mulligan.sessions.effects import going_around
from mulligan.sessions.events import SHOWN
from mulligan.sessions.other_forms import done_first, other_form_counts, variables_count
from mulligan.sessions.plain_command import plain
from mulligan.sessions.remedies import CHANGE, Failure, fixer_in, steps_that_count
from mulligan.text.secrets import Masks, one_mask

_TESTS = re.compile(r"\b(pytest|unittest|jest|vitest|mocha|rspec|phpunit|cargo test|go test|npm test|tox|nox|ctest)\b")
_INSTALLS = re.compile(r"\b(?:install|add|i)\s")
_TALKS = re.compile(r"(?:git|gh|echo|printf)\s")
"""Commands whose arguments are texts."""


@dataclass(frozen=True)
class Open:
    """A command that failed and was not overcome yet.

    Attributes:
        errors: the keys of its error (see `signature.keys`); empty for a check of style whose output names no error.
        named: what is wrong, in a line.
        lines: the lines of the output that say so, as they are there.
        steps: what was done since.
        variables: those that were set for the command, such as "CI=1".
        folder: the folder that the command line changed to.
        cause: the sentence in which the agent said why it failed.
        since: how many things happened since.
        closed: the same command failed again for another reason, so later steps are about that.
    """

    agent: str
    session: str
    call: str
    command: str
    output: str
    errors: tuple[str, ...]
    named: str
    lines: tuple[str, ...]
    at: float = 0.0
    subagent: str = ""
    steps: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    folder: str = ""
    cause: str = ""
    since: int = 0
    closed: bool = False

    @property
    def was_edited(self) -> bool:
        """Whether a file was edited since."""
        return any(step.startswith(CHANGE) for step in self.steps)

    @property
    def program(self) -> str:
        """The runner of tests, else the program."""
        if runner := _TESTS.search(self.command):
            return runner[0]
        return (_words(self.command) or ["?"])[0].rpartition("/")[2]


@dataclass(frozen=True)
class Remedy:
    """What overcame a failure.

    Attributes:
        fails: the command, as a lesson shows it.
        steps: what was done, or with `works` the command that works instead.
        habit: it goes with the command, whatever the error was.
    """

    fails: str
    steps: tuple[str, ...] = ()
    works: bool = False
    habit: bool = False


def remedy_for(failure: Open, core: str, call: Turn, masks: Masks) -> Remedy | None:
    """How a command that works overcame a failure.

    An empty remedy means that the failure is over and nothing says why; None, that the command has nothing to do with
    it. core: the command of `call`, plain and masked.
    """
    shown = short(failure.command, SHOWN)
    fixer = fixer_in(failure.steps, failure.command) or _fixer_before(failure, core)
    if not failure.errors:  # nothing is known of the error, so only a fixer of its own can be the remedy
        return Remedy(shown, (fixer,), habit=True) if fixer and is_same(failure, core) else None
    error = _failure(failure.command, failure.lines, failure.output)
    edited = failure.was_edited
    changed = edited or not (error.is_of_environment or all(map(changes_nothing, failure.steps)))
    if not failure.closed and (first := done_first(core, error)):
        return Remedy(shown, tuple(first))
    if core != failure.command and not failure.closed and other_form_counts(core, error, edited=edited):
        fails, works = differences(failure.command, core, SHOWN)
        return Remedy(fails, (works,), works=True)
    if not is_same(failure, core):
        return None
    new = [variable for variable in map(masks.text, variables(call.command)) if variable not in failure.variables]
    if new and not failure.closed and variables_count(new, error, edited=changed):
        return Remedy(shown, (short(" ".join((*new, core)), SHOWN),), works=True)
    if steps := steps_that_count(failure.steps, error):
        return Remedy(shown, tuple(steps))
    directory = masks.text(folder(call.command))
    of_code = error.is_of_code and not error.is_of_environment
    if not of_code and not failure.steps and directory not in ("", failure.folder) and core == failure.command:
        return Remedy(shown, (short(f"cd {directory} && {core}", SHOWN),), works=True)
    return Remedy(shown, (fixer,), habit=True) if fixer else Remedy(shown)


def remedy_of_environment(failure: Open, errors: Sequence[str], core: str, call: Turn, masks: Masks) -> Remedy | None:
    """How a command overcame an error of the environment, although it then failed because of the code. errors: the keys
    of that second error."""
    if not failure.errors or set(failure.errors) & set(errors):
        return None
    if not Failure(failure.command, "\n".join(failure.lines), "").is_of_environment:
        return None
    remedy = remedy_for(failure, core, call, masks)
    return remedy if remedy and remedy.steps and not any(map(going_around, remedy.steps)) else None


def _fixer_before(failure: Open, core: str) -> str:
    """The fixer that a line runs before the check that failed, as in `make fmt && make lint`, if no file was edited."""
    line = chained(core)
    if failure.command not in line or failure.was_edited:
        return ""
    return fixer_in(line[: line.index(failure.command)], failure.command)


def _failure(command: str, lines: Sequence[str], output: str) -> Failure:
    """The failure, by the lines that name the error and those that tell more of it, without what assertions quote."""
    if all(map(remedies.asserts, lines)):
        return Failure(command, "\n".join(line.partition(":")[0] for line in lines), output)
    return Failure(command, "\n".join((*lines, signature.telling_lines(output))), output)


def stands(content: str, command: str, output: str) -> bool:
    """Whether today's rules would learn a lesson from the failure that it was learned from.

    Args:
        content: the text of the lesson.
        command: the whole command that failed, as far as it was kept.
        output: the output of that command.
    """
    lines = [line.strip() for line in content.split("\n")]
    start = next((n for n, line in enumerate(lines) if line.startswith(("works:", "works after:"))), len(lines))
    steps = [line for line in lines[start + 1 :] if line and not line.startswith(("why:", "the agent said:"))]
    telling = signature.telling_lines(output)
    failure = _failure(command, signature.causes(output), output)
    if start == len(lines) or not telling or remedies.is_transient(telling):
        return False
    if works := lines[start].removeprefix("works:").removeprefix("works after:").strip():
        new = [variable for variable in variables(works) if variable not in variables(command)]
        if new and plain(works) == command:
            return variables_count(new, failure, edited=False)
        return bool(done_first(works, failure)) or other_form_counts(works, failure, edited=False)
    return set(steps) == set(steps_that_count(steps, failure)) or fixer_in(steps, command) in steps


def is_same(failure: Open, core: str) -> bool:
    """Whether a command is the one that failed, contains it, or runs the same test or all tests.

    core: the command, plain and masked.
    """
    command, failed = one_mask(core), one_mask(failure.command)
    if command == failed or failed in chained(command):
        return True
    lines = [" ".join(words) for words in parts(command)]
    if "||" in command or all(map(_TALKS.match, filter(_TESTS.search, lines))):
        return False  # what it runs may have failed, or is only named in a text
    old, new = _TESTS.search(failed), _TESTS.search(command)
    if not old or not new or old[0] != new[0] or _INSTALLS.search(command[: new.start()]):
        return False
    old_targets, new_targets = _targets(failed[old.end() :]), _targets(command[new.end() :])
    if not new_targets:
        return True
    return bool(old_targets) and all(any(_contains(new, old) for new in new_targets) for old in old_targets)


def _targets(arguments: str) -> list[str]:
    """The files and tests among the arguments of a runner."""
    return [word for word in _words(arguments) if not word.startswith("-") and re.search("[/.:]", word)]


def _contains(target: str, test: str) -> bool:
    """Whether a target of a runner is this test, or its file or folder."""
    return test == target or test.startswith((f"{target}::", f"{target.rstrip('/')}/"))


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()
