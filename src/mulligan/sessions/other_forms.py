"""Decides whether another form of a command that failed is the remedy, such as `npm ci` for `npm install`.

It is if the words in which the two differ are what the error is about: design/126.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from mulligan.sessions.commands import only_looks, parts
from mulligan.sessions.remedies import (
    RUNNERS,
    Failure,
    base_name,
    is_flag,
    left_over,
    pattern_of,
    steps_that_count,
)

_NO_REMEDIES = ("time", "nohup", "env", "exec", "command", "sudo", "doas", "nice", "strace", "watch")
"""Programs that run another one, and mend nothing by that."""
_NARROWING = tuple("-run -k -t -v -vv -q -x -n -s -count --filter --verbose --quiet --tail --grep -rf".split())  # noqa: SIM905
"""Flags that run less, or show more or less of it."""
_LONG_FORMS = {
    "git push": {"-u": "--set-upstream"},
    "kubectl": {"-n": "--namespace"},
    "helm": {"-n": "--namespace"},
    "psql": {"-p": "--port"},
    "tsc": {"-p": "--project"},
    "npx tsc": {"-p": "--project"},
}
"""Options whose short form means something else in another program."""
_FIELDS = re.compile(r"[\w.-]+(?:,[\w.-]+)+")
_MAX_CHANGED_WORDS = 8


def done_first(works: str, failure: Failure) -> list[str]:
    """What a line does before the command that failed, as far as that overcame the failure."""
    failed, commands = _commands(failure.command), _commands(works)
    if not failed or len(commands) <= len(failed) or commands[-len(failed) :] != failed:
        return []
    before = commands[: -len(failed)]
    return steps_that_count([shlex.join(argv) if " " in "".join(argv) else " ".join(argv) for argv in before], failure)


def other_form_counts(works: str, failure: Failure, *, edited: bool) -> bool:
    """Whether a command that works is another form of one that failed, and differs from it in what the error is about.

    edited: files were changed in between, so that the command itself may not have made the difference.
    """
    before, after = _commands(failure.command), _commands(works)
    old, new = [argv for argv in before if argv not in after], [argv for argv in after if argv not in before]
    if not old and not new:  # something was quoted
        return before == after and "no matches found" in failure.lines
    if len(old) != 1 or len(new) != 1:
        return False
    forms = _forms(old[0], new[0], failure, edited)
    if forms is None:
        return False
    return next((verdict for rule in _RULES if (verdict := rule(forms)) is not None), False)


def variables_count(assignments: Sequence[str], failure: Failure, *, edited: bool) -> bool:
    """Whether variables that were set for the command that works are what the error is about."""
    if any(map(pattern_of("accepts").search, assignments)):
        return False
    names = [assignment.partition("=")[0] for assignment in assignments]
    if failure.names(*names):
        return True
    values = " ".join(assignment.partition("=")[2] for assignment in assignments)
    options = re.findall(r"--[a-z][\w-]+", values)
    if options and not edited and failure.mentions(*options):
        return True
    if not edited and failure.asks_for(*(name.rpartition("_")[2] for name in names)):
        return True
    if edited:
        return False
    lacks_rights = bool(pattern_of("rights").search(failure.lines))
    if not failure.is_of_environment and (lacks_rights or any(map(pattern_of("leaves_out").search, assignments))):
        return False
    return not all(map(pattern_of("tells_more").match, assignments))


def _commands(line: str) -> list[tuple[str, ...]]:
    """The commands of a line, without those that only look."""
    return [argv for argv in parts(line) if not only_looks(" ".join(argv))]


@dataclass(frozen=True)
class _Forms:
    """A command that failed, and a form of it that works.

    Attributes:
        wrapper: the words that the form has before the whole command that failed.
        removed, added: the words in which they differ.
        edited: files were changed in between.
    """

    failed: tuple[str, ...]
    works: tuple[str, ...]
    wrapper: tuple[str, ...]
    removed: list[str]
    added: list[str]
    failure: Failure
    edited: bool

    @property
    def is_one_word(self) -> bool:
        """Whether one word was put in the place of another."""
        return len(self.removed) == len(self.added) == 1

    def says(self, kind: str) -> bool:
        """Whether the lines of the failure say something of this kind: see remedies.toml."""
        return pattern_of(kind).search(self.failure.lines) is not None


def _forms(failed: tuple[str, ...], works: tuple[str, ...], failure: Failure, edited: bool) -> _Forms | None:
    """The forms; None if they cannot tell a remedy: the form asks for help, works as someone else, or is of a program
    such as `rm`, which does another thing with other words."""
    failed, works = (tuple(word.removeprefix("./") or word for word in argv) for argv in (failed, works))
    is_identity = pattern_of("identity").fullmatch
    if pattern_of("rights").search(failure.lines) and any(map(is_identity, left_over(works, failed))):
        return None
    wrapper = works[: -len(failed)] if len(works) > len(failed) and works[-len(failed) :] == failed else ()
    if long_forms := _LONG_FORMS.get(" ".join(works[:2])) or _LONG_FORMS.get(failed[0]):
        failed, works = (tuple(long_forms.get(word, word) for word in argv) for argv in (failed, works))
    asks_for_help = bool(set(works) & {"--help", "--version", "help"}) or works[-1] == "-h"
    if asks_for_help or pattern_of("basic").fullmatch(base_name(failed[0])):
        return None
    return _Forms(failed, works, wrapper, left_over(failed, works), left_over(works, failed), failure, edited)


# Each rule returns whether the form is a remedy; None leaves that to the next rule.


def _program_or_wrapper(forms: _Forms) -> bool | None:
    """Another program, or one that runs the command: a remedy for an error of the environment."""
    failed, works, failure = forms.failed, forms.works, forms.failure
    program, other = failed[0], works[0]
    wraps = bool(forms.wrapper) and not forms.edited and forms.wrapper[0] not in _NO_REMEDIES
    if failure.is_of_environment:
        if len(works) < len(failed) and failed[-len(works) :] == works:  # without its wrapper
            return failure.names(program, failed[len(failed) - len(works)])
        if forms.wrapper:
            return wraps
        if failed[1:] == works[1:]:  # as `python` and `.venv/bin/python`
            proposed = base_name(other) == program or failure.mentions(other)
            return failure.names(program) or (not forms.edited and proposed)
        if program == other and len(works) > 2 and works[2:] == failed[1:]:  # as `rtk bun` and `rtk test bun`
            return failure.names(failed[1])
    if len(forms.wrapper) > 1 and failure.mentions(" ".join(forms.wrapper)):
        return wraps
    if program != other:
        return base_name(program) == base_name(other) and failure.is_of_environment and failure.names(program)
    return None


def _git(forms: _Forms) -> bool | None:
    """Another message of a commit, or another branch to push to, if the error refuses the first one."""
    failed, works = forms.failed, forms.works
    if works[:2] == ("git", "commit") and forms.says("messages"):
        return not forms.edited and forms.is_one_word and not is_flag(forms.added[0])
    if works[:2] == ("git", "push") and forms.says("protected"):
        branch = failed[-1]
        return not branch.startswith("-") and branch in forms.removed and forms.failure.names(branch)
    return None


def _too_different(forms: _Forms) -> bool | None:
    """Too many other words, or some that fix what a check found or accept it as it is."""
    if len(forms.removed) + len(forms.added) > _MAX_CHANGED_WORDS:
        return False
    mends = any(pattern_of(kind).search(word) for word in forms.added for kind in ("fixes", "accepts"))
    return False if mends else None


def _subcommand(forms: _Forms) -> bool | None:
    """A subcommand that was missing, or another one, if the error does not know the first."""
    failed, works, unknown = forms.failed, forms.works, forms.says("no_such_command")
    if len(works) == len(failed) + 1 and works[:-1] == failed and unknown:  # as `make` and `make build`
        return True
    at = 2 if failed[1:2] == works[1:2] and failed[1] in RUNNERS else 1
    is_subcommand = forms.removed == [*failed[at : at + 1]] and forms.added == [*works[at : at + 1]]
    if is_subcommand and not is_flag(forms.added[0]):
        return unknown and forms.failure.names(*forms.removed)
    return None


def _listed_word(forms: _Forms) -> bool | None:
    """Another word, out of those that the output lists."""
    if not forms.is_one_word or forms.edited:
        return None
    failure, (removed,), (added,) = forms.failure, forms.removed, forms.added
    if not failure.is_of_code and pattern_of("offers").search(failure.output):
        wrong, right = _fields_left(removed, added), _fields_left(added, removed)
        if wrong and right and "/" not in "".join(wrong + right) and failure.mentions(*wrong, *right):
            return True
    if forms.says("no_such_target") and failure.names(removed) and "/" not in added:
        wrong = re.escape(removed)  # as `nx test cart` and `nx test web-cart`
        if re.search(rf"(?<=[-_.]){wrong}$|^{wrong}(?=[-_.])", added):
            return True
    return None


def _other_task(forms: _Forms) -> bool | None:
    """Another thing that the program does, such as `gh pr view` for `gh pr list`."""
    if not forms.removed:
        return None
    first = next((word for word in forms.works[1:] if not is_flag(word)), "")
    old, new = ([word for word in argv[1:3] if not is_flag(word)] for argv in (forms.failed, forms.works))
    is_other = len(old) == len(new) == 2 and old != new and all(word.isalpha() and word.islower() for word in old + new)
    return False if first not in forms.failed or is_other else None


def _named_option(forms: _Forms) -> bool | None:
    """An option that the error names was left out, or one that the output proposes was added."""
    failure = forms.failure
    removed = [word.partition("=")[0] for word in forms.removed if is_flag(word)]
    if any(map(failure.names, removed)):
        return True
    if forms.says("about_options") and any(failure.names(option.strip("-")) for option in removed):
        return True
    added = [word.partition("=")[0] for word in forms.added if is_flag(word)]
    if any(failure.names(option) and failure.mentions(option) for option in added):
        return not forms.edited and not any(word in _NARROWING for word in forms.added)
    return None


def _only_added(forms: _Forms) -> bool | None:
    """Words that were only added, if the error asks for them or the output proposes them."""
    failure, added = forms.failure, forms.added
    if not added or forms.removed or forms.edited or failure.is_of_code:
        return None
    if len(added) == 1 and not is_flag(added[0]) and forms.says("asks"):
        return "/" in added[0] or "." in added[0]  # as `dotnet test` and `dotnet test src/App.sln`
    options = [word.partition("=")[0].removeprefix("-D") for word in added if re.match(r"--|-D\w", word)]
    if options and failure.mentions(*options):
        return True
    names = [option.lstrip("-") for option in options if len(option) > 5 and option not in _NARROWING]
    if failure.asks_for(*names) or (failure.is_of_environment and failure.names(*names)):
        return True
    flags, values = [word for word in added if is_flag(word)], [word for word in added if not is_flag(word)]
    if failure.is_of_environment and is_flag(added[0]) and len(values) == len(flags):
        names_path = len(values) == 1 and failure.names(*(value for value in values if "/" in value))
        if names_path or all(map(pattern_of("places").fullmatch, flags)):
            return added[0] not in _NARROWING or forms.says("no_such_command")
    if any(len(part) > 4 and failure.names(part, part.rstrip("s")) for option in options for part in option.split("-")):
        return not any(option in _NARROWING for option in options)
    return None


def _left_out(forms: _Forms) -> bool | None:
    """A field of a list, or a path, that the error names was left out."""
    if forms.failed[1:2] == forms.works[1:2]:
        kept = {field for word in forms.added for field in word.split(",")}
        fields = [field for word in forms.removed if _FIELDS.fullmatch(word) for field in word.split(",")]
        if kept & set(fields) and any(field not in kept and forms.failure.names(field) for field in fields):
            return True
    if forms.removed and not forms.added and "ignored by" in forms.failure.lines:
        return forms.failure.names(*forms.removed)
    return None


def _only_options(forms: _Forms) -> bool | None:
    """Other options, for an error of the environment."""
    changed = [*forms.removed, *forms.added]
    if changed and all(map(is_flag, changed)) and forms.failure.is_of_environment and not forms.edited:
        return not any(word.partition("=")[0] in _NARROWING for word in changed)
    return None


_RULES = (
    _program_or_wrapper,
    _git,
    _too_different,
    _subcommand,
    _listed_word,
    _other_task,
    _named_option,
    _only_added,
    _left_out,
    _only_options,
)
"""In this order: the first verdict counts."""


def _fields_left(word: str, other: str) -> list[str]:
    """The fields of a word such as "a=b,c=d" that another does not have."""
    return left_over(re.split(r"[,=]", word), re.split(r"[,=]", other))
