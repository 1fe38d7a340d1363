"""Decides which steps between a failure and a success are the remedy. If that is not clear, none is.

Most of what an agent does in between has nothing to do with the error, and most failures belong to an edit-test cycle,
which teaches the next session nothing. So a step counts only if the error names what it touches, or if it sets up what
the error says is missing: design/126. For another form of the same command see `other_forms`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from mulligan.sessions.commands import changes_nothing, parts, written
from mulligan.text.plain import one_line

CHANGE = "change "
"""Prefix of a step that edits a file."""
MAX_STEPS = 2
"""Steps that a remedy has at most."""

RUNNERS = ("run", "exec", "x", "task", "-m")
"""Words between a program and what it runs, as in `npm run lint`."""
_FILE = re.compile(r"(?!-)[\w./@\[\]-]*\w\.[a-z]\w{0,4}")
MAX_CAUSE = 160
"""Characters that a cause has at most."""
_WORD = re.compile(r"[A-Za-z_@][\w@.:-]*[\w]|\b[A-Z]{1,6}\d{2,6}\b")
_COMMON_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
        a an and are as at be been but by can cannot could did do does done failed fails failure fatal file
        files for found from get had has have how if import in into is it its let line make module named new
        no not of on one or out run running set should so test tests than that the then there this to up use
        used using was we when where which while will with would you your error errors err exit exited code
        status command script src lib main index true false null none undefined cli app core packages
        package such directory unable can't don't warn warning info npm all any type types value string
        number object name
        """,
    )
)


@cache
def pattern_of(kind: str) -> re.Pattern[str]:
    """A pattern that matches what one of the lists in remedies.toml does. It is read when it is first needed."""
    return re.compile("|".join(_lists()[kind]), re.IGNORECASE | re.MULTILINE)


@cache
def _lists() -> dict[str, list[str]]:
    return tomllib.loads(files("mulligan.sessions").joinpath("remedies.toml").read_text("utf-8"))


def is_transient(error: str) -> bool:
    """Whether an error goes away by itself: of the network, of load, of a lock."""
    return bool(pattern_of("transient").search(error))


def asserts(line: str) -> bool:
    """Whether a line of an output says that a test expected something else."""
    return bool(pattern_of("asserts").search(line))


def cause_in(said: str) -> str:
    """The sentence in which an agent says why something failed; "" if it does not say why."""
    first = re.split(r"(?<=[.!?:])\s|\n", said.strip(), maxsplit=1)[0].strip()
    if (
        not 15 <= len(first) <= MAX_CAUSE
        or first.endswith(":")
        or pattern_of("announces").match(first)
        or not pattern_of("explains").search(first)
    ):
        return ""
    return one_line(first, MAX_CAUSE)


def says_nothing_to_learn(said: str) -> bool:
    """Whether an agent says that it did not cause an error, or that the error comes and goes."""
    return bool(pattern_of("not_mine").search(said[:400]))


def words(text: str) -> frozenset[str]:
    """The words that say what a text is about: names, codes, paths and the names in them."""
    found: set[str] = set()
    for part in re.split(r"[\s'\"`(){}\[\],;|<>=]+", text[:4000]):
        path = part.strip(".:/").casefold()
        found.update(
            word
            for word in (path, *path.split("/"))
            if len(word) > 2 and word not in _COMMON_WORDS and _WORD.search(word)
        )
    return frozenset(found)


@dataclass(frozen=True)
class Failure:
    """A command that failed, the lines of its output that say what is wrong, and the whole output."""

    command: str
    lines: str
    output: str

    @property
    def is_of_code(self) -> bool:
        return bool(pattern_of("code").search(self.lines))

    @property
    def is_of_environment(self) -> bool:
        return bool(pattern_of("environment").search(self.lines))

    @property
    def words(self) -> frozenset[str]:
        """What the failure is about: the words of `lines`, and all paths in the output."""
        paths = (word for word in self.output.split() if "/" in word or "." in word.strip("."))
        return words(self.lines) | words(" ".join(paths))

    def names(self, *wanted: str) -> bool:
        """Whether the lines name one of these words; of a path, its end or a folder above it is enough."""
        names = {name for word in wanted for name in (word, base_name(word), *_folders_above(word)) if len(name) > 1}
        return any(_holds_word(self.lines, name) for name in names)

    def asks_for(self, *wanted: str) -> bool:
        """Whether the lines ask for one of these words."""
        return bool(pattern_of("asks").search(self.lines)) and self.names(*(word for word in wanted if len(word) > 3))

    def mentions(self, *wanted: str) -> bool:
        """Whether the output has all of these words, because it proposes them or lists what there is. Lines that say
        how to run less or to see more do not count."""
        lines = "\n".join(line for line in self.output.splitlines() if not pattern_of("reruns").search(line))
        return all(_holds_word(lines, word) for word in wanted)


def _holds_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE) is not None


def steps_that_count(steps: Sequence[str], failure: Failure) -> list[str]:
    """The steps that overcame a failure, out of all those between it and the success of the same command.

    A step is a command line, or an edit that begins with `CHANGE`.
    """
    about = words(failure.lines) if failure.is_of_code else failure.words
    words_of_command = words(failure.command)
    environment, edited = failure.is_of_environment, False
    counts: list[str] = []
    likely: list[str] = []  # those that set something up
    others: list[str] = []
    for step in steps:
        if step.startswith(CHANGE):
            path, _, text = step.removeprefix(CHANGE).partition(": ")
            if not pattern_of("configures").search(path):
                edited, likely, others = True, [], []
            elif (words(_added_lines(text)) | words(path)) & words(failure.lines):
                counts.append(step)
            continue
        if files := written(step):
            if any(pattern_of("configures").search(file) for file in files) and words(step) & words(failure.lines):
                counts.append(step)
            else:
                edited = True
            continue
        argvs = (argv[argv[0] in ("sudo", "doas") :] for argv in parts(step))
        commands = [
            " ".join((base_name(argv[0]), *argv[1:])) for argv in argvs if argv and not changes_nothing(" ".join(argv))
        ]
        if all(pattern_of("chores").match(command) or pattern_of("checks").match(command) for command in commands):
            continue
        if any(map(_destroys, commands)):
            continue
        if any(pattern_of("edits").match(command) or _fixes_style(command.split()) for command in commands):
            edited = True
            continue
        if any(map(pattern_of("proposed").match, commands)):
            if all(failure.mentions(" ".join(command.split()[:2])) for command in commands):
                counts.append(step)
            continue
        sets_up = any(map(pattern_of("sets_up").match, commands))
        proposed = len(step.split()) > 1 and failure.mentions(step) and not pattern_of("accepts").search(step)
        if proposed or ((words(step) - words_of_command) & about and (sets_up or environment)):
            counts.append(step)
        elif environment or not failure.is_of_code:
            (likely if sets_up else others).append(step)
    if edited and environment and not failure.is_of_code and len(likely) == 1 and not others:
        # A tool that sets something up was what made the difference; a program such as `cp` may not have been.
        edited = bool(pattern_of("basic").fullmatch(base_name(likely[0].split()[0])))
    if not counts and not edited and len(likely) <= MAX_STEPS and (not others or len(likely) + len(others) == 1):
        counts = likely or others
    return list(dict.fromkeys(counts))[-MAX_STEPS:]


def _destroys(command: str) -> bool:
    """Whether a command removes folders that no tool makes again."""
    paths = [word for word in command.split()[1:] if not is_flag(word)]
    return bool(pattern_of("removes").match(command)) and not all(pattern_of("remade").search(path) for path in paths)


def checks_style(command: str) -> bool:
    """Whether a command looks for what a tool may fix by itself, such as `npm run lint`."""
    return any(map(_is_about_style, parts(command)))


def _is_about_style(argv: Sequence[str]) -> bool:
    names = [base_name(argv[0]), *(word for word in argv[1:] if not is_flag(word))]
    return not pattern_of("no_style").fullmatch(names[0]) and any(map(pattern_of("style").fullmatch, names))


def _fixes_style(argv: Sequence[str]) -> bool:
    """Whether a command lets a tool fix what it found: by the name of the task, or by an option."""
    if any(map(pattern_of("accepts").search, argv)):
        return False
    start = 2 if argv[1:2] and argv[1] in RUNNERS else 1
    task = next((word for word in argv[start:] if not is_flag(word)), "")
    if pattern_of("fixers").fullmatch(task):
        return True
    return _is_about_style(argv) and any(map(pattern_of("fix_options").fullmatch, argv))


def fixer_in(steps: Sequence[str], failed: str) -> str:
    """The step that lets the tool of a failing check fix what it found; "" for none.

    A check of some files only has none, as it is not run again. Nor does one with an edit by hand after the step.
    """
    if not checks_style(failed) or any(map(_names_file, parts(failed))):
        return ""
    for step in reversed(steps):
        if step.startswith(CHANGE):
            return ""
        for argv in parts(step):
            # A step for some files is none: the next finding is in another file.
            if not _names_file(argv) and _fixes_style(argv) and any(argv[0] == checked[0] for checked in parts(failed)):
                return one_line(" ".join(argv), 200)
        if written(step) or any(pattern_of("edits").match(" ".join(argv)) for argv in parts(step)):
            return ""
    return ""


def _names_file(argv: Sequence[str]) -> bool:
    return any(map(_FILE.fullmatch, argv[1:]))


def left_over(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """The words that are not among the others. A word that occurs more often than there is left over so often."""
    others = list(others)
    missing: list[str] = []
    for word in words:
        if word in others:
            others.remove(word)
        else:
            missing.append(word)
    return missing


def _folders_above(path: str) -> list[str]:
    """The folders above a path, without the first."""
    names = path.split("/")
    return ["/".join(names[:n]) for n in range(2, len(names))]


def is_flag(word: str) -> bool:
    return word.startswith(("-", "+")) and len(word) > 1


def base_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _added_lines(change: str) -> str:
    """The lines that an edit adds. A step has all of its lines on one."""
    return " ".join(part for part in re.split(r"(?<=\s)(?=[+-] ?\S)", change) if part[:1] == "+")


def lines_of(steps: Iterable[str]) -> list[str]:
    """The lines of a lesson that say what was done."""
    return ["works after:", *(f"  {step}" for step in steps)]
