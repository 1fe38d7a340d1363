"""Whether a command is one that a guard stops: the words of its pattern against those of each command of the line.

A pattern names one thing: a command with its flags (`git push --force`), a flag alone (`--no-verify`), a variable with
its value (`HUSKY=0`), or a path (`migrations/`, `*.lock`). A guard is a help for an agent that means well. It is no
boundary of security: a script, an alias or another spelling goes past it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from mulligan.sessions.commands import HEREDOC, changes_nothing, parts, written

DEPTH = 4
"""Shells in shells that are looked into."""
_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish"))
_THROUGH = frozenset(
    (
        *("sudo", "doas", "env", "time", "timeout", "nice", "ionice", "nohup", "setsid", "stdbuf", "command", "exec"),
        *(
            "builtin",
            "xargs",
            "caffeinate",
            "unbuffer",
            "chronic",
            "then",
            "do",
            "else",
            "if",
            "while",
            "until",
            "!",
            "{",
        ),
    )
)
"""Before a command, and the command is the same. What runs it elsewhere (`uv run`, `docker exec`) makes it another."""
_TAKES = {
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
"""Their options that take the next word."""
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_INNER = re.compile(r"(?<!\\)`((?:[^`\\]|\\.)*)`|(?<!\\)\$\(([^()]*)\)")
_DURATION = re.compile(r"[\d.]+[smhd]?")
_WITH_VALUE = frozenset(
    (
        *(
            "-C",
            "-c",
            "-n",
            "-w",
            "-f",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--prefix",
            "--filter",
            "--workspace",
        ),
        *("--context", "--cwd", "--dir", "--directory", "--project", "--config", "--file", "--manifest-path"),
        *("--profile", "--region"),
    )
)
"""Options before or between the words of a command that take the next word."""
_LONG = frozenset(
    ("go", "java", "javac", "find", "terraform", "tofu", "openssl", "gcc", "g++", "clang", "clang++", "ffmpeg")
)
"""Programs whose options have one dash and several letters: these are no letters set together."""
_SAME = (
    (("git", "push"), "-f", "--force"),
    (("git", "commit"), "-n", "--no-verify"),
    (("rm",), "-r", "--recursive"),
    (("rm",), "-R", "--recursive"),
    (("rm",), "-R", "-r"),
    (("rm",), "-f", "--force"),
    (("docker", "compose", "down"), "-v", "--volumes"),
    (("npm",), "-g", "--global"),
    (("pip",), "-U", "--upgrade"),
)
"""Two ways to write the same flag."""


def words_of(pattern: str) -> tuple[str, ...]:
    """The words of a pattern; empty for one that names no single thing, or that would stop everything."""
    found = parts(pattern)
    words = found[0] if len(found) == 1 else ()
    return () if not any(re.search(r"\w{2}", word) for word in words) else words


def is_path(words: Sequence[str]) -> bool:
    """Whether a pattern is a path."""
    one = words[0] if len(words) == 1 else ""
    return not one.startswith("-") and not _ASSIGNED.match(one) and bool(re.search(r"[/*]|\w\.\w|^\.\w", one))


def stops(pattern: str, command: str, *, shell: bool = True) -> bool:
    """Whether a guard with this pattern stops a call. shell: the command is a command line, else the path of a file."""
    wanted = words_of(pattern)
    if not wanted:
        return False
    if not shell:
        return is_path(wanted) and _lies_in(command, wanted[0])
    path = is_path(wanted)
    return any(_meets(wanted, words, path) for words in _commands(command, DEPTH)) or (
        path and any(_lies_in(file, wanted[0]) for file in written(command))
    )


def _commands(line: str, depth: int) -> Iterator[tuple[str, ...]]:
    """The commands of a line as their words, also those that a shell is given as a text."""
    inner = ["".join(both) for both in _INNER.findall(re.sub(r"'[^']*'", "", HEREDOC.sub("", line)))]
    for words in parts(line):
        yield words
        yield from (words[n + 1 :] for n, word in enumerate(words) if word in ("-exec", "-execdir", "-ok"))
        program = _name(words[0]) if words else ""
        if program == "eval":
            inner.append(" ".join(words[1:]))
        for at, word in enumerate(words[:-1]):
            if _name(word) in _SHELLS:
                inner += [words[n + 1] for n in range(at + 1, len(words) - 1) if re.fullmatch(r"-[a-z]*c", words[n])][
                    :1
                ]
                break
    if depth:
        for text in inner:
            yield from _commands(text, depth - 1)


def _name(word: str) -> str:
    return word.lstrip("`").rpartition("/")[2]


def _through(words: Sequence[str]) -> Sequence[str]:
    """The command that a program such as `sudo` runs: without its options, their values, variables and durations."""
    takes = _TAKES.get(_name(words[0]), "").split()
    if _name(words[0]) == "command" and {"-v", "-V"} & set(words[1:2]):
        return ()
    at = 1
    while at < len(words) and (words[at][:1] == "-" or _ASSIGNED.match(words[at]) or _DURATION.fullmatch(words[at])):
        at += 2 if words[at] in takes else 1
    return words[at:]


def _meets(wanted: Sequence[str], words: Sequence[str], path: bool) -> bool:
    """Whether one command is what the pattern names. path: the pattern is a path."""
    at = 0
    while at < len(words) and _ASSIGNED.match(words[at]):
        at += 1
    if len(wanted) == 1 and _ASSIGNED.match(wanted[0]):
        of_text = words[at:] and words[at] != "env" and changes_nothing(" ".join(words[at:]))
        return wanted[0] in (words[:at] if of_text else words)
    words = words[at:]
    if not words:
        return False
    if path:
        named = () if words[0] in ("echo", "printf") else words
        return any(_lies_in(value, wanted[0]) for word in named for value in (word, word.rpartition("=")[2]))
    if _name(words[0]) in _THROUGH and words[0] != wanted[0]:
        return _meets(wanted, _through(words), path)
    flags = [word for word in wanted if word.startswith("-")]
    if _name(words[0]) in ("npm", "pnpm", "bun"):
        words = [words[0], *("install" if word == "i" else word for word in words[1:])]
    if wanted[0].startswith("-"):  # a flag alone: what only looks may look for it
        return not changes_nothing(" ".join(words)) and _has(flags, words, wanted)
    program = words[0] if "/" in wanted[0] else _name(words[0])
    if program != wanted[0]:
        return False
    rest = [word for word in wanted[1:] if not word.startswith("-")]
    return _in_order(rest, words[1:]) and _has(flags, words, wanted)


def _in_order(rest: Sequence[str], words: Sequence[str]) -> bool:
    """Whether a command's words begin with these, its flags and their values left out."""
    left = list(rest)
    before = ""
    for word in words:
        if not left:
            return True
        if word.startswith("-") and word != "-":
            before = word
            continue
        if _is(word, left[0]):
            left.pop(0)
        elif before not in _WITH_VALUE:
            return False
        before = ""
    return not left


def _has(flags: Sequence[str], words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a command has each of these flags, before a `--`."""
    end = words.index("--") if "--" in words else len(words)
    own = {word.partition("=")[0] if word.startswith("--") else word for word in words[1:end] if word.startswith("-")}
    own |= {word for word in words[1 : end + 1] if word.startswith("--")}
    name = _name(words[0])
    if (name, *words[1:2]) == ("git", "push") and any(word[0:1] == "+" for word in words):
        own.add("--force")
    if name not in _LONG:
        own |= {f"-{letter}" for word in own if re.fullmatch(r"-[A-Za-z]{2,4}", word) for letter in word[1:]}
    for start, short, long in _SAME:
        if (name, *words[1:])[: len(start)] == start or tuple(wanted[: len(start)]) == start:
            own |= {long} if short in own else {short} if long in own else set()
    return all(flag in own or (name not in _LONG and _letters(flag) and _letters(flag) <= own) for flag in flags)


def _letters(flag: str) -> set[str]:
    return {f"-{letter}" for letter in flag[1:]} if re.fullmatch(r"-[A-Za-z]{2,4}", flag) else set()


def _is(word: str, wanted: str) -> bool:
    return word == wanted or ("*" in wanted and fnmatchcase(word, wanted))


def _lies_in(path: str, wanted: str) -> bool:
    """Whether a path is the one that a pattern names, or lies below it."""
    path, wanted = path.removeprefix("./").replace("\\", "/"), wanted.removeprefix("./").rstrip("/")
    ends = [path, *(path[n + 1 :] for n, letter in enumerate(path) if letter == "/")] if path else []
    if wanted.startswith(("/", "~")):
        ends = [path]
    if "*" in wanted:
        return any(fnmatchcase(end, wanted) or fnmatchcase(end, f"{wanted}/*") for end in ends)
    return any(end == wanted or end.startswith(f"{wanted}/") for end in ends)


# --- what a lesson may stop ------------------------------------------------------------------------------------------

_AGAINST = re.compile(
    r"(?:\b(?:never|don'?t|do not|not|no more|stop|avoid|without|instead of|rather than|nie(?:mals)?|nicht|keine?n?"
    r"|ohne|(?:an)?statt|jamais|sans|au lieu de?|ne|nunca|sin|en vez de|n[ãa]o|sem|никогда|не|без)\b|不要"
    r"|别再?|勿|禁止)\s*"
    r"(?:(?:ever|again|to|do|use|using|run|running|call|calling|edit|editing|touch|change|benutze?n?|verwende?n?|mehr|du"
    r"|pas|utiliser?|usar?|uses|usar|используй|使用|用)\b\s*)*(?P<what>[^,.;:!?\n。，！]*(?:\.\w[^,;:!?\n。，！]*)*)",
    re.IGNORECASE,
)
"""What a sentence is against."""
_CODE, _TOKEN = re.compile(r"`([^`\n]{2,})`"), re.compile(r"[\w./~*+-]*[\w/*]")
_PROGRAMS = re.compile(
    r"apt|brew|bun|bundle|cargo|curl|docker|gh|git|go|gradle|helm|kubectl|make|mvn|npm|npx|pip3?|pnpm|poetry|psql|pytest"
    r"|python|rm|rsync|sed|ssh|sudo|terraform|tox|uv|wget|yarn"
)
"""Programs that a sentence may name although the agent did not just run them."""
_VERBS = frozenset({"bundle", "go", "make"})
"""Those whose names are words of English, too."""
_RUN = re.compile(r"\b(?:run|us|call)(?:e|ning|ing)?\b", re.IGNORECASE)


def proposal(title: str, content: str) -> str:
    """The pattern of a guard for a lesson: the one command, flag or path that its user is against, or that failed;
    "" if it names none."""
    lines: dict[str, str] = {}
    for line in content.split("\n"):
        name, _, rest = line.strip().partition(": ")
        lines.setdefault(name, rest)
    if "the user said" not in lines and "after" not in lines:
        quoted = [code for code in _CODE.findall(f"{title}\n{content}") if words_of(code)]
        failing = lines.get("fails", "")
        return quoted[0] if quoted else failing if words_of(failing) else ""
    sentence = " ".join(filter(None, (lines.get("the user said", "").strip('"'), title)))
    after = parts(lines.get("after", ""))
    for against in _AGAINST.finditer(sentence):
        is_run = _RUN.search(sentence, against.start(), against.start("what")) is not None
        if pattern := _named(against["what"], after, is_run):
            return pattern
    return ""


def _named(what: str, after: Sequence[Sequence[str]], is_run: bool) -> str:
    """What a part of a sentence names: a command in backticks, else as far as the command that it is about has it.

    is_run: whether the sentence speaks of running it, so that "make" and "go" are programs.
    """
    if quoted := _CODE.search(what):
        return quoted[1] if words_of(quoted[1]) else ""
    tokens = _TOKEN.findall(what)
    for words in after:
        program, rest = _name(words[0]), words[1:]
        flags = [word for word in rest if word.startswith("-") and (word in tokens or word.lstrip("-") in tokens)]
        under = next((word for word in rest if not word.startswith("-")), "")
        under = under if re.fullmatch(r"[a-z][\w:-]*", under) else ""
        if flags or (under and under in tokens):
            return " ".join(filter(None, (program, under, *flags)))
        if program in tokens:
            return program
    for n, token in enumerate(tokens):
        if re.fullmatch(r"--[a-z][\w-]+", token) or (is_path((token,)) and words_of(token)):
            return token
        if _PROGRAMS.fullmatch(token) and (is_run or token not in _VERBS):
            under = tokens[n + 1] if re.fullmatch(r"[a-z][\w:-]*|-\S+", "".join(tokens[n + 1 : n + 2])) else ""
            return f"{token} {under}".strip()
    return ""
