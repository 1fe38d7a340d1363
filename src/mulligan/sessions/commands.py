"""Read a command line: its commands, their words, what stands around them, and whether they only look."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mulligan.core.late_pattern import LatePattern
from mulligan.sessions.plain_command import plain
from mulligan.text.plain import one_line

_LOOKS = LatePattern(
    r"(ls|cd|cat|head|tail|grep|egrep|rg|ag|find|fd|pwd|which|type|echo|printf|wc|tree|stat|file|less|env|date|du|df|ps"
    r"|diff|set|sleep|wait|true|jq|sort|uniq|cut|tr|awk|git (status|diff|log|show|branch|blame|grep|ls-files|rev-parse"
    r"|merge-base|describe|reflog)|sed -n|test|\[|command -v)(?=\s|$)"
)
"""Commands that only look: they change nothing, and what they do not find is no error."""
_ASKS = LatePattern(
    r"(lsof|ss|netstat|ping|nslookup|printenv|uname|whoami|id|docker inspect|kubectl get|pip3? freeze|git remote -v"
    r"|xcode-select -p|\S+ ([a-z][\w-]* )?(list\S*|ls|ps|show\S*|display\S*|view|info|status|describe|logs|images"
    r"|outdated|current|history|checks|diff|doctor|whoami|--list\S*)|\S+ (--help|-h|--?version|-[vV]|version)$)(?=\s|$)"
)
"""Commands that change nothing either, and whose errors count."""
_FILTERS = LatePattern(r"\|\s*(tail|head|grep|egrep|rg|tee|cat|sed|awk|less|sort|uniq|wc|cut|tr|jq)\b[^|]*$")
_HIDES = LatePattern(r"\|\|\s*(true|:|echo\b.*)\s*$|;\s*(echo|true|exit 0)\b[^;]*$|&\s*$")
"""Ends of a command line after which its exit code says nothing of the command."""
_TAIL = LatePattern(r"(?:\s*2>&1)?\s*\|\s*tail(?:\s+-\w+(?:\s+\d+)?)*\s*$")
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
"""Options that take a text for people."""
_KIND = LatePattern(r"[\"'](\w+(?:\([\w-]+\))?!?: )")
"""What a message begins with by convention, such as "fix: "."""
_NEXT = LatePattern(r"(?<![\\;&|(])[ \t]*\n\s*")
"""Where a line of a command ends, and the next one is another command."""
_TOKEN = LatePattern(
    r"""(?P<note>(?<!\S)\#[^\n]*)
    | (?P<end>&&|\|\|?|;|&(?!>)|\n|\(|\))
    | (?P<to>\d*(?:&>>?|>>?&?|<<<|<)\s*&?[^\s;&|()]*)
    | (?P<word>(?:[^\s;&|<>()'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+)
    | (?P<other>\s+|.)""",
    flags=re.VERBOSE | re.DOTALL,
)
_QUOTED = LatePattern(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|\\(.)", flags=re.DOTALL)
_LONGEST = 4000
"""Characters of a command line that are read."""


def parts(command: str) -> list[tuple[str, ...]]:
    """The commands of a line, each as its words without quotes; where output goes is left out."""
    found: list[list[str]] = [[]]
    for token in _TOKEN.finditer(HEREDOC.sub("", command[:_LONGEST].replace("\\\n", " "))):
        if token["end"]:
            found.append([])
        elif token["word"]:
            found[-1].append(_QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or quoted[3] or "", token["word"]))
    return [tuple(words) for words in found if words]


def written(command: str) -> list[str]:
    """The files that a line writes its output to."""
    text = HEREDOC.sub("", command[:_LONGEST])
    targets = (token["to"].lstrip("0123456789&").lstrip(">").strip() for token in _TOKEN.finditer(text) if token["to"])
    return [path for path in targets if path and path[0] not in "&<" and path != "/dev/null"]


def chained(command: str) -> list[str]:
    """The commands, plain, that have worked where a line of them does: those joined by `&&`. Of one before a pipe the
    line does not say it, one after a later `cd` is another folder's; a line with other joints says nothing of any."""
    text = command[:_LONGEST]
    joints = [token for token in _TOKEN.finditer(text) if token["end"]]
    if any(joint["end"] not in ("&&", "|") for joint in joints):
        return []
    edges = [0, *(at for joint in joints if joint["end"] == "&&" for at in joint.span()), len(text)]
    pipes = [joint.start() for joint in joints if joint["end"] == "|"]
    found: list[str] = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        one = text[start:end].strip()
        if start and re.match(r"(?:cd|pushd)\b", one):
            break
        if not any(start < pipe < end for pipe in pipes):
            found.append(plain(one))
    return found


def variables(command: str) -> list[str]:
    """The variables that are set before the command, each with its value."""
    core = plain(command)
    return _SET.findall(command[: command.find(core)]) if core else []


def folder(command: str) -> str:
    """The folder that a command line changes to first; "" for none."""
    found = _FOLDER.match(command)
    return found[1].strip("\"'") if found else ""


def only_looks(command: str) -> bool:
    """Whether a command line only looks at something."""
    return all(_LOOKS.match(" ".join(words)) for words in parts(plain(command))) and not written(command)


def changes_nothing(command: str) -> bool:
    """Whether a command, without what stands around it, only looks or asks."""
    return bool(_LOOKS.match(command) or _ASKS.match(command))


def hides_its_end(command: str) -> bool:
    """Whether the exit code of a line is that of a filter behind the command, and not the command's."""
    return bool(_HIDES.search(command) or ("pipefail" not in command and _FILTERS.search(command)))


def before_tail(command: str) -> str:
    """A line without the `tail` that shows the end of its output; "" where something else hides its exit code."""
    cut = _TAIL.sub("", command)
    return "" if cut == command or hides_its_end(cut) else cut


def printed_exit_code(command: str, output: str) -> tuple[str, str, int] | None:
    """A line without the `echo $?` behind it, its output without the code, and the code; None where it is not the
    command's."""
    if not (echo := _STATUS.search(command)) or hides_its_end(cut := command[: echo.start()]):
        return None
    code = re.search(rf"(?:\A|\n){re.escape(echo['label'])}(\d+)\s*\Z", output)
    return (cut, output[: code.start()], int(code[1])) if code else None


def within(folder: str, command: str) -> str:
    """A command line that is run in a project's folder, with the paths in that folder relative to it; as it is where it
    works in another folder, or where the folder is one of the system or a home."""
    inside = folder.rstrip("/") + "/"
    if len(inside) <= 2 or _NO_PROJECT.match(inside) or _ELSEWHERE.search(command):
        return command
    return re.sub(rf"(?<![\w/.~-]){re.escape(inside)}(?=[\w.@])", "", command)


def short(command: str, most: int) -> str:
    """A command on a line, without the text of messages and here-documents."""

    def without_text(message: re.Match[str]) -> str:
        kind = _KIND.match(message[2])
        return f"{message[1]} {kind[1] if kind else ''}…"

    return one_line(_NEXT.sub("; ", _MESSAGE.sub(without_text, HEREDOC.sub("", command)).strip()), most)


def differences(failed: str, works: str, most: int) -> tuple[str, str]:
    """Both commands on a line each; of long ones the words in which they differ, with what stands beside these."""
    failed, works = short(failed, _LONGEST), short(works, _LONGEST)
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
