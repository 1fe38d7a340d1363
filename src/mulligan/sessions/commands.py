"""Reads command lines: their commands and words, what is around a command, and whether it only looks at something."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mulligan.core.late_pattern import LatePattern
from mulligan.sessions.plain_command import plain

_LOOKS = LatePattern(
    r"(ls|cd|cat|head|tail|grep|egrep|rg|ag|find|fd|pwd|which|type|echo|printf|wc|tree|stat|file|less|env|date|du|df|ps"
    r"|diff|set|sleep|wait|true|jq|sort|uniq|cut|tr|awk|git (status|diff|log|show|branch|blame|grep|ls-files|rev-parse"
    r"|merge-base|describe|reflog)|sed -n|test|\[|command -v)(?=\s|$)"
)
"""Commands that only look: they change nothing, and it is not an error if they find nothing."""
_ASKS = LatePattern(
    r"(lsof|ss|netstat|ping|nslookup|printenv|uname|whoami|id|docker inspect|kubectl get|pip3? freeze|git remote -v"
    r"|xcode-select -p|\S+ ([a-z][\w-]* )?(list\S*|ls|ps|show\S*|display\S*|view|info|status|describe|logs|images"
    r"|outdated|current|history|checks|diff|doctor|whoami|--list\S*)|\S+ (--help|-h|--?version|-[vV]|version)$)(?=\s|$)"
)
"""Commands that change nothing either, but whose errors count."""
_FILTERS = LatePattern(r"\|\s*(tail|head|grep|egrep|rg|tee|cat|sed|awk|less|sort|uniq|wc|cut|tr|jq)\b[^|]*$")
_HIDES = LatePattern(r"\|\|\s*(true|:|echo\b.*)\s*$|;\s*(echo|true|exit 0)\b[^;]*$|&\s*$")
"""Ends of a command line that hide the exit code of its command."""
_TAIL = LatePattern(r"(?:\s*2>&1)?\s*\|\s*tail(?:\s+-\w+(?:\s+\d+)?)*\s*$")
_VIEW = LatePattern(
    r"(?:\s*2>&1)?\s*\|\s*(?:head(?:\s+-\w+(?:\s+\d+)?)*|sed\s+-n\s+['\"]?1,\d+p['\"]?|cat|tee\s+[\w./-]+)\s*$"
)
_STATUS = LatePattern(r"\s*;\s*echo\s+(?P<quote>[\"']?)(?P<label>[\w ()=:.,-]*)\$\?(?P=quote)\s*\Z")
_NO_PROJECT = LatePattern(
    r"/(?:etc|usr|bin|sbin|lib\w*|boot|dev|proc|sys|var|opt|Library|System)/|/root/$|/(?:home|Users)/[^/]+/$"
)
_ELSEWHERE = LatePattern(
    r"(?:^|[\s;&|(])(?:cd|pushd|chdir)\s|\s(?:-C|--prefix|--cwd|--dir\w*|--chdir|--manifest-path)[\s=]"
)
_FOLDER = LatePattern(r"^\s*\(?\s*cd\s+(\"[^\"]*\"|'[^']*'|[^\s;&|]+)\s*(?:&&|;)")
_SET = LatePattern(r"(?<!\S)(\w+=(?:\$\([^()]*\)|\"[^\"]*\"|'[^']*'|(?!\$\()[^\s;&\"'])*+)")
HEREDOC = LatePattern(r"<<-?\s*['\"]?(\w+)['\"]?.*?\n\s*\1\b", flags=re.DOTALL)
_MESSAGE = LatePattern(
    r"(?<!\S)(-m|--message|--body|--title|--description|-b|-t)[ =]+"
    r"""("\$\([^)]*\)"|"(?:[^"\\]|\\.){24,}"|'[^']{24,}')"""
)
"""Options whose value is a text for people."""
_KIND = LatePattern(r"[\"'](\w+(?:\([\w-]+\))?!?: )")
"""The conventional beginning of a message, such as "fix: "."""
_NEXT = LatePattern(r"(?<![\\;&|(])[ \t]*\n\s*")
"""The end of a line after which another command begins."""
_TOKEN = LatePattern(
    r"""(?P<note>(?<!\S)\#[^\n]*)
    | (?P<end>&&|\|\|?|;|&(?!>)|\n|\(|\))
    | (?P<to>\d*(?:&>>?|>>?&?|<<<|<)\s*&?[^\s;&|()]*)
    | (?P<word>(?:[^\s;&|<>()'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+)
    | (?P<other>\s+|.)""",
    flags=re.VERBOSE | re.DOTALL,
)
_QUOTED = LatePattern(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|\\(.)", flags=re.DOTALL)
_MAX_CHARACTERS = 4000
"""Characters of a command line that are read."""


def parts(command: str) -> list[tuple[str, ...]]:
    """The commands of a line, each as its words without quotes and redirections."""
    commands: list[list[str]] = [[]]
    for token in _TOKEN.finditer(HEREDOC.sub("", command[:_MAX_CHARACTERS].replace("\\\n", " "))):
        if token["end"]:
            commands.append([])
        elif token["word"]:
            commands[-1].append(_QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or quoted[3] or "", token["word"]))
    return [tuple(words) for words in commands if words]


def written(command: str) -> list[str]:
    """The files that a line writes its output to."""
    text = HEREDOC.sub("", command[:_MAX_CHARACTERS])
    targets = (token["to"].lstrip("0123456789&").lstrip(">").strip() for token in _TOKEN.finditer(text) if token["to"])
    return [path for path in targets if path and path[0] not in "&<" and path != "/dev/null"]


def chained(command: str) -> list[str]:
    """The plain commands that have succeeded if the line has: those that are joined by `&&`.

    Commands before a pipe are left out, and those after a later `cd`, as they belong to another folder. If the line
    joins commands in any other way, there are none.
    """
    text = command[:_MAX_CHARACTERS]
    joints = [token for token in _TOKEN.finditer(text) if token["end"]]
    if any(joint["end"] not in ("&&", "|") for joint in joints):
        return []
    edges = [0, *(at for joint in joints if joint["end"] == "&&" for at in joint.span()), len(text)]
    pipes = [joint.start() for joint in joints if joint["end"] == "|"]
    commands: list[str] = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        part = text[start:end].strip()
        if start and re.match(r"(?:cd|pushd)\b", part):
            break
        if not any(start < pipe < end for pipe in pipes):
            commands.append(plain(part))
    return commands


def variables(command: str) -> list[str]:
    """The variables that are set before the command, each with its value."""
    core = plain(command)
    return _SET.findall(command[: command.find(core)]) if core else []


def folder(command: str) -> str:
    """The folder that a command line changes to first; "" for none."""
    match = _FOLDER.match(command)
    return match[1].strip("\"'") if match else ""


def only_looks(command: str) -> bool:
    """Whether a command line only looks at something."""
    return all(_LOOKS.match(" ".join(words)) for words in parts(plain(command))) and not written(command)


def changes_nothing(command: str) -> bool:
    """Whether a plain command only looks or asks."""
    return bool(_LOOKS.match(command) or _ASKS.match(command))


def hides_its_end(command: str) -> bool:
    """Whether the exit code of a line is that of a filter after the command, and not the command's."""
    return bool(_HIDES.search(command) or ("pipefail" not in command and _FILTERS.search(command)))


def before_tail(command: str) -> str:
    """A line without the `tail` at its end; "" if something else hides the exit code of its command."""
    return _before(_TAIL, command)


def before_view(command: str) -> str:
    """A line without the filter at its end that shows how the output begins, or all of it; "" as for `before_tail`."""
    return _before(_VIEW, command)


def _before(end: LatePattern, command: str) -> str:
    shorter = end.sub("", command)
    return "" if shorter == command or hides_its_end(shorter) else shorter


def printed_exit_code(command: str, output: str) -> tuple[str, str, int] | None:
    """A line without the `echo $?` at its end, its output without the code, and the code; None if it is not that of the
    command."""
    if not (echo := _STATUS.search(command)) or hides_its_end(cut := command[: echo.start()]):
        return None
    code = re.search(rf"(?:\A|\n){re.escape(echo['label'])}(\d+)\s*\Z", output)
    return (cut, output[: code.start()], int(code[1])) if code else None


def within(folder: str, command: str) -> str:
    """A command line with the paths in a project's folder relative to that folder, in which it is run.

    It stays as it is if it works in another folder, or if the folder is a home or one of the system.
    """
    inside = folder.rstrip("/") + "/"
    if len(inside) <= 2 or _NO_PROJECT.match(inside) or _ELSEWHERE.search(command):
        return command
    return re.sub(rf"(?<![\w/.~-]){re.escape(inside)}(?=[\w.@])", "", command)


def short(command: str, most: int) -> str:
    """A command on one line, without the text of messages and here-documents."""
    from mulligan.text.plain import one_line  # not at a failure

    def without_text(message: re.Match[str]) -> str:
        kind = _KIND.match(message[2])
        return f"{message[1]} {kind[1] if kind else ''}…"

    return one_line(_NEXT.sub("; ", _MESSAGE.sub(without_text, HEREDOC.sub("", command)).strip()), most)


def differences(failed: str, works: str, most: int) -> tuple[str, str]:
    """Both commands, each on one line. If they are long, only the words in which they differ, and a few around them."""
    from mulligan.text.plain import one_line  # not at a failure

    failed, works = short(failed, _MAX_CHARACTERS), short(works, _MAX_CHARACTERS)
    if max(len(failed), len(works)) > most:
        failed, works = _differing(failed.split(), works.split())
    return one_line(failed, most), one_line(works, most)


def _differing(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    from difflib import SequenceMatcher

    sides: tuple[list[str], list[str]] = [], []
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        for side, words in zip(sides, (before[a:b], after[c:d]), strict=True):
            side += [*words[:3], "…", *words[-2:]] if kind == "equal" and len(words) > 6 else words
    return " ".join(sides[0]), " ".join(sides[1])
