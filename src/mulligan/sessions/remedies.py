"""Decide what of all that lies between a failure and a success is the remedy. Where it is not clear, nothing is.

Most of what an agent does in between has nothing to do with the error, and most failures are of an edit-test cycle,
which teaches the next session nothing. So a step counts where the error names what it touches, or where it sets up
what the error says is missing; another form of a command counts where the words in which it differs are what the error
is about: design/126.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from mulligan.sessions.commands import changes_nothing, only_looks, parts, written
from mulligan.text.plain import one_line

CHANGE = "change "
"""Begins a step that edits a file."""
MOST = 2
"""Steps of a remedy at most."""

_WRAPS_NOTHING = ("time", "nohup", "env", "exec", "command", "sudo", "doas", "nice", "strace", "watch")
_NARROWS = tuple("-run -k -t -v -vv -q -x -n -s -count --filter --verbose --quiet --tail --grep -rf".split())  # noqa: SIM905
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
_RUNNERS = ("run", "exec", "x", "task", "-m")
_FILE = re.compile(r"(?!-)[\w./@\[\]-]*\w\.[a-z]\w{0,4}")
_LIST = re.compile(r"[\w.-]+(?:,[\w.-]+)+")
CAUSE = 160
"""Characters of a cause at most."""
_WORD = re.compile(r"[A-Za-z_@][\w@.:-]*[\w]|\b[A-Z]{1,6}\d{2,6}\b")
_COMMON = frozenset(
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
def _any(kind: str) -> re.Pattern[str]:
    """What one of the lists in remedies.toml matches. Read when it is needed."""
    return re.compile("|".join(_lists()[kind]), re.IGNORECASE | re.MULTILINE)


@cache
def _lists() -> dict[str, list[str]]:
    return tomllib.loads(files("mulligan.sessions").joinpath("remedies.toml").read_text("utf-8"))


def is_transient(error: str) -> bool:
    """Whether an error goes away by itself: of the network, of load, of a lock."""
    return bool(_any("transient").search(error))


def asserts(line: str) -> bool:
    """Whether a line of an output says that a test expected something else."""
    return bool(_any("asserts").search(line))


def cause_in(said: str) -> str:
    """The sentence in which an agent says why something failed; "" where it says none."""
    first = re.split(r"(?<=[.!?:])\s|\n", said.strip(), maxsplit=1)[0].strip()
    if (
        not 15 <= len(first) <= CAUSE
        or first.endswith(":")
        or _any("announces").match(first)
        or not _any("explains").search(first)
    ):
        return ""
    return one_line(first, CAUSE)


def says_nothing_to_learn(said: str) -> bool:
    """Whether an agent says that an error is not of its doing, or comes and goes."""
    return bool(_any("not_mine").search(said[:400]))


def words(text: str) -> frozenset[str]:
    """The words that say what a text is about: names, paths and their ends, codes."""
    found: set[str] = set()
    for part in re.split(r"[\s'\"`(){}\[\],;|<>=]+", text[:4000]):
        whole = part.strip(".:/").casefold()
        for one in (whole, *whole.split("/")):
            if len(one) > 2 and one not in _COMMON and _WORD.search(one):
                found.add(one)
    return frozenset(found)


@dataclass(frozen=True)
class Failure:
    """What failed: the command, the lines that say what is wrong, and the whole output."""

    command: str
    lines: str
    output: str

    @property
    def is_of_code(self) -> bool:
        return bool(_any("code").search(self.lines))

    @property
    def is_of_environment(self) -> bool:
        return bool(_any("environment").search(self.lines))

    @property
    def words(self) -> frozenset[str]:
        """What it is about: the words of the lines that say what is wrong, and all paths."""
        paths = (word for word in self.output.split() if "/" in word or "." in word.strip("."))
        return words(self.lines) | words(" ".join(paths))

    def names(self, *wanted: str) -> bool:
        """Whether the lines name one of these words, or of a path its end or a folder above it."""
        forms = {form for word in wanted for form in (word, _base(word), *_above(word))}
        found = (
            re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", self.lines, re.IGNORECASE)
            for one in forms
            if len(one) > 1
        )
        return any(found)

    def asks_for(self, *wanted: str) -> bool:
        """Whether the lines say that one of these has to be chosen."""
        return bool(_any("asks").search(self.lines)) and self.names(*(one for one in wanted if len(one) > 3))

    def mentions(self, *wanted: str) -> bool:
        """Whether the output has all of these, as they stand: it proposes them, or lists what there is. How to run
        less, or to see more, is no proposal."""
        lines = "\n".join(line for line in self.output.splitlines() if not _any("reruns").search(line))
        return all(re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", lines, re.IGNORECASE) for one in wanted)


def steps_that_count(steps: Sequence[str], failure: Failure) -> list[str]:
    """Of the steps between a failure and the success of the same command, those that overcame it: commands on a line
    each, and edits that begin with `CHANGE`."""
    about = words(failure.lines) if failure.is_of_code else failure.words
    own_words = words(failure.command)
    environment, edited = failure.is_of_environment, False
    counts: list[str] = []
    likely: list[str] = []
    others: list[str] = []
    for step in steps:
        if step.startswith(CHANGE):
            path, _, text = step.removeprefix(CHANGE).partition(": ")
            if not _any("configures").search(path):
                edited, likely, others = True, [], []
            elif (words(_put_in(text)) | words(path)) & words(failure.lines):
                counts.append(step)
            continue
        if files := written(step):
            if any(_any("configures").search(file) for file in files) and words(step) & words(failure.lines):
                counts.append(step)
            else:
                edited = True
            continue
        does = (one[one[0] in ("sudo", "doas") :] for one in parts(step))
        own = [" ".join((_base(one[0]), *one[1:])) for one in does if one and not changes_nothing(" ".join(one))]
        if not own or all(_any("chores").match(one) or _any("checks").match(one) for one in own):
            continue
        if any(_destroys(one) for one in own):
            continue
        if any(_any("edits").match(one) or _fixes_style(one.split()) for one in own):
            edited = True
            continue
        if any(_any("proposed").match(one) for one in own):
            if all(failure.mentions(" ".join(one.split()[:2])) for one in own):
                counts.append(step)
            continue
        sets_up = any(_any("sets_up").match(one) for one in own)
        proposed = len(step.split()) > 1 and failure.mentions(step) and not _any("accepts").search(step)
        if proposed or ((words(step) - own_words) & about and (sets_up or environment)):
            counts.append(step)
        elif environment or not failure.is_of_code:
            (likely if sets_up else others).append(step)
    if edited and environment and not failure.is_of_code and len(likely) == 1 and not others:
        edited = bool(_any("basic").fullmatch(_base(likely[0].split()[0])))  # else it was set up after the last edit
    if not counts and not edited and len(likely) <= MOST and (not others or len(likely) + len(others) == 1):
        counts = likely or others
    return list(dict.fromkeys(counts))[-MOST:]


def _destroys(command: str) -> bool:
    """Whether a command removes a folder with all in it that no tool makes again."""
    paths = [word for word in command.split()[1:] if not _is_flag(word)]
    return bool(_any("removes").match(command)) and not all(_any("remade").search(path) for path in paths)


def checks_style(command: str) -> bool:
    """Whether a command looks for what a tool may fix by itself, such as `npm run lint`."""
    return any(_of_style(one) for one in parts(command))


def _of_style(words: Sequence[str]) -> bool:
    named = [_base(words[0]), *(word for word in words[1:] if not _is_flag(word))]
    return not _any("no_style").fullmatch(named[0]) and any(map(_any("style").fullmatch, named))


def _fixes_style(words: Sequence[str]) -> bool:
    """Whether a command lets a tool fix what it found: by its name behind the program, or by an option."""
    if any(map(_any("accepts").search, words)):
        return False
    at = 2 if words[1:2] and words[1] in _RUNNERS else 1
    named = next((word for word in words[at:] if not _is_flag(word)), "")
    return bool(_any("fixers").fullmatch(named)) or (
        _of_style(words) and any(map(_any("fix_options").fullmatch, words))
    )


def fixer_in(steps: Sequence[str], failed: str) -> str:
    """The step that lets the tool of a failing check fix what it found, if no file was edited by hand after it. A check
    of some files is not run again."""
    if not checks_style(failed) or any(_FILE.fullmatch(word) for one in parts(failed) for word in one[1:]):
        return ""
    for step in reversed(steps):
        if step.startswith(CHANGE):
            return ""
        for one in parts(step):
            of_all = not any(_FILE.fullmatch(word) for word in one[1:])  # the next finding is in another file
            if of_all and _fixes_style(one) and any(one[0] == other[0] for other in parts(failed)):
                return one_line(" ".join(one), 200)
        if written(step) or any(_any("edits").match(" ".join(one)) for one in parts(step)):
            return ""
    return ""


def done_first(works: str, failure: Failure) -> list[str]:
    """What a line does before the command that failed, as far as that overcame it."""
    before, after = _doing(failure.command), _doing(works)
    if not before or len(after) <= len(before) or after[-len(before) :] != before:
        return []
    join = [shlex.join(one) if " " in "".join(one) else " ".join(one) for one in after[: -len(before)]]
    return steps_that_count(join, failure)


def _doing(line: str) -> list[tuple[str, ...]]:
    """The commands of a line, without those that only look."""
    return [one for one in parts(line) if not only_looks(" ".join(one))]


def other_form_counts(works: str, failure: Failure, *, edited: bool) -> bool:
    """Whether a command that works is another form of one that failed, and differs from it in what the error is about.

    edited: files were changed in between, so that the command itself may not have made the difference.
    """
    before, after = _doing(failure.command), _doing(works)
    left, new = [one for one in before if one not in after], [one for one in after if one not in before]
    if not left and not new:  # it was quoted
        return before == after and "no matches found" in failure.lines
    return len(left) == len(new) == 1 and _form_counts(left[0], new[0], failure, edited)


def variables_count(new: Sequence[str], failure: Failure, *, edited: bool) -> bool:
    """Whether variables that were set for the command that works are what the error is about."""
    if any(_any("accepts").search(each) for each in new):
        return False
    if any(failure.names(each.partition("=")[0]) for each in new):
        return True
    values = [word for each in new for word in re.findall(r"--[a-z][\w-]+", each.partition("=")[2])]
    if values and not edited and failure.mentions(*values):
        return True
    if not edited and failure.asks_for(*(each.partition("=")[0].rpartition("_")[2] for each in new)):
        return True
    of_code = not failure.is_of_environment
    if edited or (of_code and (_any("rights").search(failure.lines) or any(map(_any("leaves_out").search, new)))):
        return False
    return not all(_any("tells_more").match(each) for each in new)


def _form_counts(failed: tuple[str, ...], works: tuple[str, ...], failure: Failure, edited: bool) -> bool:
    failed, works = (tuple(word.removeprefix("./") or word for word in one) for one in (failed, works))
    names, program, other = failure.names, failed[0], works[0]
    if _any("rights").search(failure.lines) and any(map(_any("identity").fullmatch, left_over(works, failed))):
        return False
    wrapper = works[: -len(failed)] if len(works) > len(failed) and works[-len(failed) :] == failed else ()
    if long := _LONG_FORMS.get(" ".join(works[:2])) or _LONG_FORMS.get(program):  # the short one has other meanings
        failed, works = (tuple(long.get(word, word) for word in one) for one in (failed, works))
    if set(works) & {"--help", "--version", "help"} or works[-1] == "-h" or _any("basic").fullmatch(_base(program)):
        return False
    if failure.is_of_environment:
        if len(works) < len(failed) and failed[-len(works) :] == works:  # a wrapper was taken off
            return names(program, failed[len(failed) - len(works)])
        if wrapper:  # one was put on
            return not edited and wrapper[0] not in _WRAPS_NOTHING
        if failed[1:] == works[1:]:  # another program, or that of an environment
            return names(program) or (not edited and (_base(other) == program or failure.mentions(other)))
        if program == other and len(works) > 2 and works[2:] == failed[1:]:  # `rtk bun` and `rtk test bun`
            return names(failed[1])
    if len(wrapper) > 1 and failure.mentions(" ".join(wrapper)):
        return not edited and wrapper[0] not in _WRAPS_NOTHING
    if program != other:
        return _base(program) == _base(other) and failure.is_of_environment and names(program)
    removed, added = left_over(failed, works), left_over(works, failed)
    if works[:2] == ("git", "commit") and _any("messages").search(failure.lines):
        return not edited and len(removed) == len(added) == 1 and not _is_flag(added[0])
    if works[:2] == ("git", "push") and _any("protected").search(failure.lines):
        return not failed[-1].startswith("-") and failed[-1] in removed and names(failed[-1])
    if len(removed) + len(added) > 8 or any(_any(of).search(word) for word in added for of in ("fixes", "accepts")):
        return False
    if len(works) == len(failed) + 1 and works[:-1] == failed and _any("no_such_command").search(failure.lines):
        return True  # `make` and `make build`
    at = 2 if failed[1:2] == works[1:2] and failed[1] in _RUNNERS else 1
    subcommands = (removed, added) == ([*failed[at : at + 1]], [*works[at : at + 1]])
    if subcommands and not _is_flag(added[0]):
        return bool(_any("no_such_command").search(failure.lines)) and names(*removed)
    if (
        len(removed) == len(added) == 1
        and not edited
        and not failure.is_of_code
        and _any("offers").search(failure.output)
    ):
        wrong, right = (_parts_left(*pair) for pair in ((removed[0], added[0]), (added[0], removed[0])))
        if (
            wrong and right and "/" not in "".join(wrong + right) and failure.mentions(*wrong, *right)
        ):  # one of those that the output lists
            return True
    if len(removed) == len(added) == 1 and not edited and _any("no_such_target").search(failure.lines):
        wrong, right = re.escape(removed[0]), added[0]  # `nx test cart` and `nx test web-cart`
        if names(*removed) and "/" not in right and re.search(rf"(?<=[-_.]){wrong}$|^{wrong}(?=[-_.])", right):
            return True
    was, now = ([word for word in one[1:3] if not _is_flag(word)] for one in (failed, works))
    if removed and (
        next((word for word in works[1:] if not _is_flag(word)), "") not in failed or _is_another(was, now)
    ):
        return False
    if any(_is_flag(word) and names(word.partition("=")[0]) for word in removed):
        return True
    if _any("about_options").search(failure.lines) and any(
        _is_flag(word) and names(word.partition("=")[0].strip("-")) for word in removed
    ):
        return True
    if any(_is_flag(word) and names(flag := word.partition("=")[0]) and failure.mentions(flag) for word in added):
        return not edited and not any(word in _NARROWS for word in added)
    if not removed and not edited and not failure.is_of_code:
        if len(added) == 1 and not _is_flag(added[0]) and _any("asks").search(failure.lines):
            return "/" in added[0] or "." in added[0]  # `dotnet test` and `dotnet test src/App.sln`
        flags = [word.partition("=")[0].removeprefix("-D") for word in added if re.match(r"--|-D\w", word)]
        values = [word for word in added if not _is_flag(word)]
        if flags and failure.mentions(*flags):  # the output proposes it
            return True
        own = [word.lstrip("-") for word in flags if len(word) > 5 and word not in _NARROWS]
        if failure.asks_for(*own) or (failure.is_of_environment and names(*own)):
            return True
        if (
            _is_flag(added[0])
            and len(values) == sum(map(_is_flag, added))
            and failure.is_of_environment
            and (
                (len(values) == 1 and names(*(v for v in values if "/" in v)))
                or all(_any("places").fullmatch(word) for word in added if _is_flag(word))
            )
        ):
            return added[0] not in _NARROWS or bool(_any("no_such_command").search(failure.lines))
        if any(len(part) > 4 and names(part, part.rstrip("s")) for flag in flags for part in flag.split("-")):
            return not any(word in _NARROWS for word in flags)
    if failed[1:2] == works[1:2]:
        kept = {part for word in added for part in word.split(",")}
        fields = [part for word in removed if _LIST.fullmatch(word) for part in word.split(",")]
        if kept & set(fields) and any(part not in kept and names(part) for part in fields):
            return True
    if removed and not added and "ignored by" in failure.lines:  # a path was left out
        return names(*removed)
    flags = [word for word in (*removed, *added) if _is_flag(word)]
    if flags and len(flags) == len(removed) + len(added) and failure.is_of_environment and not edited:
        return not any(word.partition("=")[0] in _NARROWS for word in flags)
    return False


def _is_another(was: Sequence[str], now: Sequence[str]) -> bool:
    """Whether the subcommands of a program such as `gh pr view` differ in the second word."""
    return len(was) == len(now) == 2 and was != now and all(word.isalpha() and word.islower() for word in (*was, *now))


def left_over(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """The words that the others have not, each as often as it is missing there."""
    rest = list(others)
    left: list[str] = []
    for word in words:
        if word in rest:
            rest.remove(word)
        else:
            left.append(word)
    return left


def _parts_left(word: str, other: str) -> list[str]:
    """The parts of a word such as "a=b,c=d" that another has not."""
    return left_over(re.split(r"[,=]", word), re.split(r"[,=]", other))


def _above(path: str) -> list[str]:
    """The folders above a path, but the first."""
    parts_of = path.split("/")
    return ["/".join(parts_of[:n]) for n in range(2, len(parts_of))]


def _is_flag(word: str) -> bool:
    return word.startswith(("-", "+")) and len(word) > 1


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _put_in(change: str) -> str:
    """The lines that an edit puts in; a step has them on one line."""
    return " ".join(part for part in re.split(r"(?<=\s)(?=[+-] ?\S)", change) if part[:1] == "+")


def lines_of(remedies: Iterable[str]) -> list[str]:
    """The lines of a lesson that say what was done."""
    return ["works after:", *(f"  {step}" for step in remedies)]
