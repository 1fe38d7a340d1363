"""Decide what of all that lies between a failure and a success is the remedy. Where it is not clear, nothing is.

Most of what an agent does in between has nothing to do with the error, and most failures are of an edit-test cycle, which
teaches the next session nothing. So a step counts where the error names what it touches, or where it sets up what the
error says is missing; another form of a command counts where the words in which it differs are what the error is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mulligan.hooks.commands import changes_nothing, only_looks, parts
from mulligan.text.plain import one_line

CHANGE = "change "
"""Begins a step that edits a file."""
MOST = 2
"""Steps of a remedy at most."""

_TRANSIENT = re.compile(
    r"""(?xi)
    \b(?:ECONNRESET|ETIMEDOUT|ECONNABORTED|EAI_AGAIN|EPIPE)\b | \btimed?[ -]?out\b | \btimeout\b | could\ not\ resolve\ host
    | temporary\ failure\ in\ name | name\ or\ service\ not\ known | \b(?:429|502|503|504)\b | too\ many\ requests
    | rate[ -]?limit | quota\ exceeded | service\ unavailable | bad\ gateway | network\ (?:aborted|is\ unreachable|error)
    | (?:index|\w+)\.lock\b.*exists | could\ not\ get\ lock | lock\ (?:is\ )?held | database\ is\ locked
    | another\ (?:\w+\ ){1,3}(?:process\ )?(?:is|seems\ to\ be)\ running | socket\ hang\ up | connection\ (?:was\ )?(?:reset|closed|aborted)
    | remote\ end\ hung\ up | overloaded | tls\ handshake | no\ route\ to\ host | try\ again\ later
    """
)
_ENVIRONMENT = re.compile(
    r"""(?xi)
    \bnot\ found\b | no\ such\ (?:file|command|option|table|service|image|container) | cannot\ find | can't\ find | could\ not\ find
    | no\ module\ named | cannot\ import\ name | export\ named | not\ installed | (?:is|are|was)\ not\ set\b | unset\b
    | missing\ (?:script|env|required|dependenc|peer|module|header|api|key|config) | \bENOENT\b | does\ not\ exist | doesn't\ exist
    | permission\ denied | \bEACCES\b | connection\ refused | \bECONNREFUSED\b | not\ running | already\ in\ use | \bEADDRINUSE\b
    | out\ of\ (?:date|sync) | not\ (?:initiali[sz]ed|logged\ in|authenticated|authorized|a\ git\ repository|up\ to\ date)
    | unauthorized | authentication | version\ mismatch | unsupported\ (?:engine|version) | requires\ (?:python|node|go|rust|ruby|a\ different)
    | unknown\ (?:flag|option|command|field|argument|subcommand|json\ field) | unrecognized\ (?:option|argument|subcommand|flag)
    | invalid\ (?:option|choice|flag) | unexpected\ argument | not\ recogni[sz]ed | build\ constraints\ exclude | \bGH\d{3}\b
    | exit(?:ed)?\ (?:with\ )?(?:code|status)\ 127 | cannot\ open\ shared\ object | undefined\ symbol | lock\ ?file | no\ space\ left
    | certificate | not\ a\ directory | is\ a\ directory | not\ in\ (?:the\ )?(?:path|workspace) | already\ (?:exists|claimed)
    | ignored\ by\ one\ of | incompatible | FileNotFoundError | import\ file\ mismatch | stale | migrat | license
    """
)
"""Errors of tools, settings and what is installed, in contrast to those of the code that is being written."""
_OF_CODE = re.compile(
    r"""(?xi)
    \bassert | \bexpected\b | \breceived\b | --- \ FAIL | ^FAILED\s | \bTS\d{4} | error\[E\d | \bSyntaxError | \bundefined: | cannot\ use\b
    | \bmismatched\ types | \bunused\b | declared\ (?:and|but) | imported\ and\ not | redeclared | not\ assignable | \blint | \bformat
    | \bCONFLICT\b | merge\ conflict | could\ not\ apply
    """,
    re.MULTILINE,
)
"""Errors of the code that is being written."""
_SETS_UP = re.compile(
    r"""(?xi)
    (?:npm|pnpm|yarn|bun|composer|bundle|poetry|pdm|pipenv|rye|mix|deno|corepack|mise|asdf|pre-commit|playwright|nvm|rustup
      |conda|brew|gem|apt|apt-get|dnf|apk|snap|husky|lefthook)\ (?:\S+\ )?(?:i|ci|install|add|sync|use|enable|trust|deps\S*|update)\b
    | (?:python3?\ -m\ )?pip3?\ install | uv\ (?:sync|pip|add|venv|lock) | go\ (?:mod|get|install|generate) | cargo\ (?:add|fetch|install|update)
    | (?:npm|pnpm|yarn|bun)\ (?:run\ )?(?:build|generate|codegen|prepare|setup|bootstrap|migrate\S*|prisma)\b
    | make\ (?:deps|install|setup|build|init|bootstrap|generate|proto) | docker(?:-compose)?\ (?:compose\ )?(?:up|start|run|build|pull|network|volume)
    | (?:systemctl|service|supervisorctl|pg_ctl|brew\ services)\ \S+ | (?:terraform|tofu)\ init | git\ (?:submodule|lfs|fetch|remote|config)
    | python3?\ -m\ venv | (?:source|\.)\ \S*activate | (?:createdb|alembic|flask|rails|rake|prisma|knex|sqlx|diesel|manage\.py|python3?\ manage\.py)\b
    | (?:cp|mv|ln|mkdir|touch|chmod|chown|export|install)\ | npx\ (?:prisma|playwright|husky) | (?:aws|gcloud|az|gh|docker|npm)\ (?:\S+\ )?login
    | kill(?:all)?\b | pkill\b | rm\b
    """
)
_CHECKS = re.compile(
    r"(?:[\w@-]+ ){0,3}(?:[\w-]+:)*(?:tests?|lint|checks?|type-?check|vet|tsc|verify|pytest|jest|vitest|clippy|ruff|eslint"
    r"|mypy|pyright|format|fmt)(?:[:-]\w+)*(?=\s|$)"
)
_CHORES = re.compile(
    r"git (?:add|commit|push|stash|checkout|switch|restore|rebase|merge|pull|worktree|tag)\b|gh (?:pr|issue)\b"
)
_CONFIGURES = re.compile(
    r"""(?xi)(?:^|/)(?:
      (?:package|tsconfig|jsconfig|composer|biome|deno|turbo|nx|lerna)[\w.-]*\.jsonc? | pyproject\.toml | setup\.(?:py|cfg)
    | requirements[\w.-]*\.txt | go\.(?:mod|work) | cargo\.toml | gemfile | [\w.-]*dockerfile[\w.-]* | (?:docker-)?compose[\w.-]*\.ya?ml
    | (?:gnu)?makefile | justfile | taskfile\.ya?ml | \.env[\w.-]* | \.[\w-]+rc(?:\.\w+)? | \.[\w-]+\.(?:ya?ml|toml|json) | [\w.-]+\.config\.[cm]?[jt]s
    | mise\.toml | \.tool-versions | \.nvmrc | \.python-version | tox\.ini | pytest\.ini | \.gitignore | \.gitattributes | \.npmignore
    )$ | \.github/workflows/"""
)
"""Files that state rules of a project. An edit of another file is a fix of that day."""
_NARROWS = (
    "-run",
    "-k",
    "-t",
    "-v",
    "-vv",
    "-q",
    "-x",
    "-n",
    "-s",
    "--filter",
    "--verbose",
    "--quiet",
    "--tail",
    "--grep",
    "-count",
)
"""Flags that run less, or show more or less of it."""
_NO_SUCH_COMMAND = re.compile(
    r"(?i)\b(?:unknown|unrecognized|invalid|no such|missing) (?:sub-?command|command|script|task|target|recipe)\b|\bdid you mean\b"
    r"|\bis not a \S+ command\b|\bno rule to make target\b|\bdoes not contain recipe\b"
)
_LIST = re.compile(r"[\w.-]+(?:,[\w.-]+)+")
_RUNNERS = ("run", "exec", "x", "task", "-m")
_STYLE = re.compile(
    r"\b(?:lint|style|format|fmt|check|clippy|eslint|stylelint|ruff|biome|prettier|black|rubocop|vet)\b"
)
_FIXES = re.compile(r"(?<![\w-])(?:\w+[:-])?(?:fix|format|fmt)(?![\w-])|--(?:fix|write|apply)\b")
_NOT_MINE = re.compile(
    r"(?i)\bpre-?existing\b|\bnot (?:mine|related|caused by)\b|\bunrelated\b|\bflak[ye]|\bnot (?:from|due to) (?:my|our|this)\b"
)
"""The agent says that there is nothing to learn."""
_EXPLAINS = re.compile(
    r"(?i)\b(?:because|since|due to|missing|needs?|requires?|must|doesn't|does not|isn't|is not|not installed|instead|wrong|only|was|were)\b"
)
_ANNOUNCES = re.compile(
    r"(?i)\s*(?:let me|let's|now\b|i'll|i will|i'm going|good|great|perfect|ok\b|next\b|first\b|i need to|all (?:good|tests)|running|checking)"
)
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


def is_transient(error: str) -> bool:
    """Whether an error goes away by itself: of the network, of load, of a lock."""
    return bool(_TRANSIENT.search(error))


def cause_in(said: str) -> str:
    """The sentence in which an agent says why something failed; "" where it says none."""
    first = re.split(r"(?<=[.!?:])\s|\n", said.strip(), maxsplit=1)[0].strip()
    if not 15 <= len(first) <= CAUSE or first.endswith(":") or _ANNOUNCES.match(first) or not _EXPLAINS.search(first):
        return ""
    return one_line(first, CAUSE)


def says_nothing_to_learn(said: str) -> bool:
    """Whether an agent says that an error is not of its doing, or comes and goes."""
    return bool(_NOT_MINE.search(said[:400]))


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
        return bool(_OF_CODE.search(self.lines))

    @property
    def is_of_environment(self) -> bool:
        return bool(_ENVIRONMENT.search(self.lines))

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


def steps_that_count(steps: Sequence[str], failure: Failure) -> list[str]:
    """Of the steps between a failure and the success of the same command, those that overcame it: commands on a line
    each, and edits that begin with `CHANGE`."""
    about, own_words = failure.words, words(failure.command)
    environment, edited = failure.is_of_environment, False
    counts: list[str] = []
    likely: list[str] = []
    others: list[str] = []
    for step in steps:
        if step.startswith(CHANGE):
            path, _, text = step.removeprefix(CHANGE).partition(": ")
            if not _CONFIGURES.search(path):
                edited = True
            elif (words(_put_in(text)) | words(path)) & words(failure.lines):
                counts.append(step)
            continue
        own = [" ".join((_base(one[0]), *one[1:])) for one in parts(step) if not changes_nothing(" ".join(one))]
        if not own or all(_CHORES.match(one) or _CHECKS.match(one) for one in own):
            continue
        sets_up = any(_SETS_UP.match(one) for one in own)
        if (words(step) - own_words) & about and (sets_up or environment):
            counts.append(step)
        elif environment or not failure.is_of_code:
            (likely if sets_up else others).append(step)
    if not counts and not edited and len(likely) <= MOST and (not others or len(likely) + len(others) == 1):
        counts = likely or others
    return list(dict.fromkeys(counts))[-MOST:]


def fixer_in(steps: Sequence[str], failed: str) -> str:
    """The step that lets the tool of a failing check fix what it found, if no file was edited by hand after it."""
    if not _STYLE.search(failed):
        return ""
    for step in reversed(steps):
        if step.startswith(CHANGE):
            return ""
        for one in parts(step):
            if _FIXES.search(" ".join(one)) and any(one[0] == other[0] for other in parts(failed)):
                return one_line(" ".join(one), 200)
    return ""


def other_form_counts(works: str, failure: Failure, *, edited: bool) -> bool:
    """Whether a command that works is another form of one that failed, and differs from it in what the error is about.

    edited: files were changed in between, so that the command itself may not have made the difference.
    """
    before, after = ([one for one in parts(text) if not only_looks(" ".join(one))] for text in (failure.command, works))
    if not before or not after:
        return False
    if len(after) > len(before) and after[-len(before) :] == before:  # something was done first
        return bool(steps_that_count([" ".join(one) for one in after[: -len(before)]], failure))
    left, new = [one for one in before if one not in after], [one for one in after if one not in before]
    return len(left) == len(new) == 1 and _form_counts(left[0], new[0], failure, edited)


def _form_counts(failed: tuple[str, ...], works: tuple[str, ...], failure: Failure, edited: bool) -> bool:
    names = failure.names
    if set(works) & {"--help", "-h", "--version", "help"}:
        return False
    if failure.is_of_environment:
        if len(works) < len(failed) and failed[-len(works) :] == works:  # a wrapper was taken off
            return names(failed[0], failed[len(failed) - len(works)])
        if len(works) > len(failed) and works[-len(failed) :] == failed:  # one was put on
            return not edited
        if failed[1:] == works[1:]:  # another program
            return names(failed[0])
        if failed[0] == works[0] and len(works) > 2 and works[2:] == failed[1:]:  # `rtk bun` and `rtk test bun`
            return names(failed[1])
    if (program := failed[0]) != (other := works[0]):
        return _base(program) == _base(other) and failure.is_of_environment and names(program)
    removed, added = _left_over(failed, works), _left_over(works, failed)
    if len(removed) + len(added) > 8 or any(_FIXES.search(word) for word in added):
        return False
    if len(works) == len(failed) + 1 and works[:-1] == failed and _NO_SUCH_COMMAND.search(failure.lines):
        return True  # `make` and `make build`
    at = 2 if failed[1:2] == works[1:2] and failed[1] in _RUNNERS else 1
    if (removed, added) == ([*failed[at : at + 1]], [*works[at : at + 1]]):  # another subcommand
        return bool(_NO_SUCH_COMMAND.search(failure.lines)) and names(*removed)
    if next((word for word in works[1:] if not _is_flag(word)), "") not in failed:
        return False
    if any(_is_flag(word) and names(word.partition("=")[0]) for word in removed):
        return True
    if any(_is_flag(word) and names(word.partition("=")[0]) for word in added):
        return not edited
    if failed[1:2] == works[1:2]:
        kept = {part for word in added for part in word.split(",")}
        fields = [part for word in removed if _LIST.fullmatch(word) for part in word.split(",")]
        if any(part not in kept and names(part) for part in fields):
            return True
    if removed and not added and failure.is_of_environment:  # a path or a word was left out
        return names(*removed)
    flags = [word for word in (*removed, *added) if _is_flag(word)]
    if flags and len(flags) == len(removed) + len(added) and failure.is_of_environment and not edited:
        return not any(word.partition("=")[0] in _NARROWS for word in flags)
    return False


def _left_over(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """The words that the others have not, each as often as it is missing there."""
    rest = list(others)
    left: list[str] = []
    for word in words:
        if word in rest:
            rest.remove(word)
        else:
            left.append(word)
    return left


def _above(path: str) -> list[str]:
    """The folders above a path, but the first."""
    parts_of = path.split("/")
    return ["/".join(parts_of[:n]) for n in range(2, len(parts_of))]


def _is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _put_in(change: str) -> str:
    """The lines that an edit puts in; a step has them on one line."""
    return " ".join(part for part in re.split(r"(?<=\s)(?=[+-] ?\S)", change) if part[:1] == "+")


def lines_of(remedies: Iterable[str]) -> list[str]:
    """The lines of a lesson that say what was done."""
    return ["works after:", *(f"  {step}" for step in remedies)]
