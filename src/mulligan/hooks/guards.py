"""Whether a guard stops a command: its pattern is compared with each command of a command line.

A pattern names one thing: a command with its flags (`git push --force`), a flag alone (`--no-verify`), a variable with
its value (`HUSKY=0`), or a path (`migrations/`, `*.lock`). A guard helps an agent that means well. It is not a security
boundary: a script, an alias or another spelling gets past it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from mulligan.sessions.commands import HEREDOC, changes_nothing, parts, written

MAX_NESTING = 4
"""How deep shells inside shells are searched for commands."""
_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish"))
_WRAPPER = re.compile(
    r"sudo|doas|env|time|timeout|nice|ionice|nohup|setsid|stdbuf|command|exec|builtin|xargs|caffeinate|unbuffer|chronic"
    r"|then|do|else|if|while|until|!|\{"
)
"""Words before a command that do not make it another one. With `uv run` or `docker exec` it is another command."""
_WRAPPER_OPTIONS_WITH_VALUE = {
    "sudo": "-u -g -h -p -C -U -D -R -T --user --group --chdir",
    "doas": "-u -C",
    "env": "-u -C --unset --chdir",
    "timeout": "-k -s --kill-after --signal",
    "nice": "-n --adjustment",
    "ionice": "-c -n -p",
    "time": "-f -o",
    "exec": "-a",
    "xargs": "-a -I -n -P -L -s -d -E --arg-file --max-args --max-procs --delimiter",
    "stdbuf": "-i -o -e",
}
"""The options of wrappers whose value is the next word."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_SUBSTITUTION = re.compile(r"(?<!\\)`((?:[^`\\]|\\.)*)`|(?<!\\)\$\(([^()]*)\)")
_DURATION = re.compile(r"[\d.]+[smhd]?")
_OPTION_WITH_VALUE = re.compile(
    r"-C|--(?:git-dir|work-tree|namespace|prefix|filter|workspace|context|cwd|dir|directory|project|config|file"
    r"|manifest-path|profile|region)"
)
"""Options whose value is the next word."""
_OPTIONS_PERHAPS_WITH_VALUE = frozenset(("-c", "-n", "-w", "-f"))
"""Options that have a value in some programs only: `kubectl -n prod delete`, but `git push -n origin`."""
_SINGLE_DASH_PROGRAM = re.compile(r"go|javac?|find|terraform|tofu|openssl|gcc|g\+\+|clang(?:\+\+)?|ffmpeg")
"""Programs with options such as `-run`, which is not `-r -u -n`."""
_LETTERS = re.compile(r"-[A-Za-z]{2,4}")
_FLAG_ALIASES = (
    (("git", "push"), "-f", "--force"),
    (("git", "commit"), "-n", "--no-verify"),
    (("rm",), "-r", "--recursive"),
    (("rm",), "-R", "--recursive"),
    (("rm",), "-f", "--force"),
    (("docker", "compose", "down"), "-v", "--volumes"),
    (("npm",), "-g", "--global"),
    (("pip",), "-U", "--upgrade"),
)
"""Commands, and a short and a long way to write one of their flags."""


def words_of(pattern: str) -> tuple[str, ...]:
    """Return the words of a pattern; none if it names several commands, or nothing in particular."""
    commands = parts(pattern)
    words = commands[0] if len(commands) == 1 else ()
    return words if any(re.search(r"\w{2}", word) for word in words) else ()


def is_path(words: Sequence[str]) -> bool:
    """Whether a pattern is a path."""
    word = words[0] if len(words) == 1 else ""
    return not word.startswith("-") and not _ASSIGNMENT.match(word) and bool(re.search(r"[/*]|\w\.\w|^\.\w", word))


def stops(pattern: str, command: str, *, shell: bool = True) -> bool:
    """Whether a guard with this pattern stops a call.

    Args:
        command: a command line; if `shell` is False, the path of the file that the call edits.
    """
    wanted = words_of(pattern)
    if not wanted:
        return False
    path = wanted[0] if is_path(wanted) else ""
    if not shell:
        return bool(path) and _is_within(command, path)
    return any(_matches(wanted, words) for words in _commands(command, MAX_NESTING)) or (
        bool(path) and any(_is_within(file, path) for file in written(command))
    )


def program_of(word: str) -> str:
    """The name of the program that the first word of a command starts."""
    return word.lstrip("`").rpartition("/")[2]


def _commands(line: str, depth: int) -> Iterator[tuple[str, ...]]:
    """The words of each command of a line, also of those in substitutions, `eval`, `find -exec` and `sh -c`."""
    nested = ["".join(groups) for groups in _SUBSTITUTION.findall(re.sub(r"'[^']*'", "", HEREDOC.sub("", line)))]
    for words in parts(line):
        yield words
        yield from (words[n + 1 :] for n, word in enumerate(words) if word in ("-exec", "-execdir", "-ok"))
        if words and program_of(words[0]) == "eval":
            nested.append(" ".join(words[1:]))
        shell = next((n for n, word in enumerate(words) if program_of(word) in _SHELLS), len(words))
        for option, script in zip(words[shell + 1 :], words[shell + 2 :], strict=False):
            if re.fullmatch(r"-[a-z]*c", option):
                nested.append(script)
                break
    if depth:
        for text in nested:
            yield from _commands(text, depth - 1)


def _matches(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Whether one command is what the words of a pattern name."""
    variables = 0
    while variables < len(words) and _ASSIGNMENT.match(words[variables]):
        variables += 1
    command = words[variables:]
    if len(wanted) == 1 and _ASSIGNMENT.match(wanted[0]):
        only_looks = command and command[0] != "env" and changes_nothing(" ".join(command))
        return wanted[0] in (words[:variables] if only_looks else words)
    if not command:
        return False
    if is_path(wanted):
        prints = command[0] in ("echo", "printf")
        return not prints and any(
            _is_within(path, wanted[0]) for word in command for path in (word, word.rpartition("=")[2])
        )
    program = program_of(command[0])
    if _WRAPPER.fullmatch(program) and command[0] != wanted[0]:
        return _matches(wanted, _wrapped(command))
    if program in ("npm", "pnpm", "bun"):
        command = [command[0], *("install" if word == "i" else word for word in command[1:])]
    if wanted[0].startswith("-"):  # a flag alone: a command that only looks may look for it
        return not changes_nothing(" ".join(command)) and _has_flags(wanted, command)
    if wanted[0] != (command[0] if "/" in wanted[0] else program):
        return False
    return _begins_with(wanted, command) and _has_flags(wanted, command)


def _wrapped(words: Sequence[str]) -> Sequence[str]:
    """The command that a program such as `sudo` runs; none for `command -v`, which only looks for one."""
    program = program_of(words[0])
    if program == "command" and {"-v", "-V"} & set(words[1:2]):
        return ()
    with_value = _WRAPPER_OPTIONS_WITH_VALUE.get(program, "").split()
    start = 1
    while start < len(words) and (
        words[start].startswith("-") or _ASSIGNMENT.match(words[start]) or _DURATION.fullmatch(words[start])
    ):
        start += 2 if words[start] in with_value else 1
    return words[start:]


def _begins_with(wanted: Sequence[str], command: Sequence[str]) -> bool:
    """Whether a command begins with the words of a pattern, apart from flags and from the values of options."""
    missing = [word for word in wanted[1:] if not word.startswith("-")]
    option = ""
    for word in command[1:]:
        if not missing:
            return True
        if word.startswith("-") and word != "-":
            option = word
            continue
        value_of, option = option, ""
        is_value = bool(_OPTION_WITH_VALUE.fullmatch(value_of))
        if is_value and value_of not in wanted:
            continue
        if word == missing[0] or ("*" in missing[0] and fnmatchcase(word, missing[0])):
            missing.pop(0)
        elif not is_value and value_of not in _OPTIONS_PERHAPS_WITH_VALUE:
            return False
    return not missing


def _has_flags(wanted: Sequence[str], command: Sequence[str]) -> bool:
    """Whether a command has all flags of a pattern before its `--`, in whatever way they are written."""
    named = (program_of(command[0]), *command[1:])
    aliases = {
        short: long
        for start, short, long in _FLAG_ALIASES
        if start in (named[: len(start)], tuple(wanted[: len(start)]))
    }
    letters = not _SINGLE_DASH_PROGRAM.fullmatch(named[0])
    end = command.index("--") + 1 if "--" in command else len(command)
    flags = _flags(command[1:end], aliases, letters)
    if ("git", "push") in (named[:2], tuple(wanted[:2])) and any(word.startswith("+") for word in command):
        flags.add("--force")  # `git push origin +main`
    return _flags(wanted, aliases, letters) <= flags


def _flags(words: Sequence[str], aliases: dict[str, str], letters: bool) -> set[str]:
    """The flags among these words, in one spelling. letters: `-rf` is `-r -f`."""
    flags: set[str] = set()
    for word in words:
        if word.startswith("--"):
            flags |= {word, word.partition("=")[0]}
        elif word.startswith("-"):
            flags |= {f"-{letter}" for letter in word[1:]} if letters and _LETTERS.fullmatch(word) else {word}
    return {aliases.get(flag, flag) for flag in flags}


def _is_within(path: str, wanted: str) -> bool:
    """Whether a path is the one that a pattern names, or lies below it."""
    path, wanted = path.removeprefix("./").replace("\\", "/"), wanted.removeprefix("./").rstrip("/")
    ends = [path, *(path[n + 1 :] for n, letter in enumerate(path) if letter == "/")] if path else []
    if wanted.startswith(("/", "~")):
        ends = [path]
    if "*" in wanted:
        return any(fnmatchcase(end, wanted) or fnmatchcase(end, f"{wanted}/*") for end in ends)
    return any(end == wanted or end.startswith(f"{wanted}/") for end in ends)
