"""Proposes the pattern of a guard for a lesson: what its user is against, or what failed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mulligan.hooks.guards import is_path, program_of, words_of
from mulligan.sessions.commands import parts

_AGAINST = re.compile(
    r"(?:\b(?:never|don'?t|do not|not|no more|stop|avoid|without|instead of|rather than|nie(?:mals)?|nicht|keine?n?"
    r"|ohne|(?:an)?statt|jamais|sans|au lieu de?|ne|nunca|sin|en vez de|n[ãa]o|sem|никогда|не|без)\b|不要"
    r"|别再?|勿|禁止)\s*"
    r"(?:(?:ever|again|to|do|use|using|run|running|call|calling|edit|editing|touch|change|benutze?n?|verwende?n?|mehr|du"
    r"|pas|utiliser?|usar?|uses|usar|используй|使用|用)\b\s*)*(?P<what>[^,.;:!?\n。，！]*(?:\.\w[^,;:!?\n。，！]*)*)",
    re.IGNORECASE,
)
"""A part of a sentence that is against something; `what` is that."""
_CODE = re.compile(r"`([^`\n]{2,})`")
_TOKEN = re.compile(r"[\w./~*+-]*[\w/*]")
_PROGRAM = re.compile(
    r"apt|brew|bun|bundle|cargo|curl|docker|gh|git|go|gradle|helm|kubectl|make|mvn|npm|npx|pip3?|pnpm|poetry|psql|pytest"
    r"|python|rm|rsync|sed|ssh|sudo|terraform|tox|uv|wget|yarn"
)
"""Programs that are recognised although the agent did not just run them."""
_ENGLISH_VERBS = frozenset({"bundle", "go", "make"})
"""Those of them whose names are also English verbs."""
_RUN = re.compile(r"\b(?:run|us|call)(?:e|ning|ing)?\b", re.IGNORECASE)
_SUBCOMMAND = re.compile(r"[a-z][\w:-]*")


def proposal(title: str, content: str) -> str:
    """Return the command, flag or path that the user of a lesson is against, or that failed; "" if it names none."""
    fields: dict[str, str] = {}
    for line in content.split("\n"):
        name, _, value = line.strip().partition(": ")
        fields.setdefault(name, value)
    if "the user said" not in fields and "after" not in fields:
        quoted = [code for code in _CODE.findall(f"{title}\n{content}") if words_of(code)]
        if quoted:
            return quoted[0]
        failing = fields.get("fails", "")
        return failing if words_of(failing) else ""
    sentence = " ".join(filter(None, (fields.get("the user said", "").strip('"'), title)))
    commands = parts(fields.get("after", ""))
    for against in _AGAINST.finditer(sentence):
        is_run = _RUN.search(sentence, against.start(), against.start("what")) is not None
        if pattern := _pattern_in(against["what"], commands, is_run):
            return pattern
    return ""


def _pattern_in(what: str, commands: Sequence[Sequence[str]], is_run: bool) -> str:
    """Return what a part of a sentence names: code in backticks, else one of the agent's last commands, else a flag, a
    path or a known program.

    Args:
        commands: those after which the user said it.
        is_run: whether the sentence speaks of running something, so that "make" and "go" are programs.
    """
    if quoted := _CODE.search(what):
        return quoted[1] if words_of(quoted[1]) else ""
    tokens = _TOKEN.findall(what)
    for words in commands:
        program, rest = program_of(words[0]), words[1:]
        flags = [word for word in rest if word.startswith("-") and (word in tokens or word.lstrip("-") in tokens)]
        subcommand = next((word for word in rest if not word.startswith("-")), "")
        subcommand = subcommand if _SUBCOMMAND.fullmatch(subcommand) else ""
        if flags or (subcommand and subcommand in tokens):
            return " ".join(filter(None, (program, subcommand, *flags)))
        if program in tokens:
            return program
    for n, token in enumerate(tokens):
        if re.fullmatch(r"--[a-z][\w-]+", token) or (is_path((token,)) and words_of(token)):
            return token
        if _PROGRAM.fullmatch(token) and (is_run or token not in _ENGLISH_VERBS):
            following = tokens[n + 1] if n + 1 < len(tokens) else ""
            is_argument = _SUBCOMMAND.fullmatch(following) or re.fullmatch(r"-\S+", following)
            return f"{token} {following}" if is_argument else token
    return ""
