"""Finds the sentence by which a user corrects a coding agent, in nine languages, by rules.

A sentence that is wrongly taken for a correction becomes a lesson, while a user repeats one that is missed. So a
question, a new request and a phrase of politeness are not corrections. corrections.toml has the words, and norms.toml
the weights by which other sentences are recognised as what always holds (design/168).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_TYPED = re.compile(
    r"\b(do|does|did|is|are|was|should|would|could|ca|wo)nt\b|\b(that|it)s (?=wrong|not)|\bpl[sz]\b", re.IGNORECASE
)
"""Words that are typed in haste."""
_MAX_NORM = 120
"""The most characters of a sentence that states a norm."""
_MAX_MESSAGE = 240
"""The most characters of a message with such a sentence."""
_MIN_WEIGHT = 2.0
"""The weight that such a sentence needs."""
_OF_HOOKS = "<mulligan-"
"""What a text of our own hooks contains, which is no word of the user."""
_ANNOUNCES = re.compile(r"we (?:use|have|are|run)\b", re.IGNORECASE)
"""How an English sentence begins that corrects, or that only tells what the task after it is about."""
_QUESTION = re.compile(r"¿|.*[?？]\W*$|.*(?:吗|呢|ですか|ますか|でしょうか)[。.!！]*$", re.DOTALL)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")
_OPENS = re.compile(
    r"\A(?:(?:hold on|wait|careful|hm+|hey|uh|oh|sorry|btw|by the way|fyi|note|thanks|thx|great|good"
    r"|nice|cool|perfect|fine|lgtm|looks good|one (?:more|other) thing|just so you know|for the record"
    r"|(?:ok(?:ay)?|well|also|and|but|so)(?=[,.:;!])|moment|warte(?: mal)?|vorsicht|achtung|attends|attention|cuidado"
    r"|esper[ae]|un (?:moment|momento)|atenção|calma|погоди|постой|подожди|осторожно|внимание|等等|等一下|注意"
    r"|(?:ちょっと)?待って(?:ください)?|잠깐(?:만요?)?|잠시만(?:요)?|주의)[\s,.:;!、，。！…-]+)+",
    re.IGNORECASE,
)
"""Words that a correction can begin with, and that mean nothing for it."""
_BETWEEN = r"\s*[,.:;!?\u3001\uff0c\u3002\uff01\uff1a\uff1b\u2013\u2014-]+\s*"
"""What is between a no and what to do instead."""
MAX_WITHDRAWAL = 300
"""Characters that a message has at most that withdraws another one: a longer message is a task."""


def lasts(correction: str) -> bool | None:
    """Whether a correction holds beyond the current task. False: it is for this moment only; None: it does not say."""
    if says_it_lasts(correction):
        return True
    return False if _holds()[1].search(correction) else states_norm(correction) or None


def says_it_lasts(correction: str) -> bool:
    """Whether words of a correction say that it holds beyond the current task, such as "always"."""
    return bool(_holds()[0].search(correction))


def withdraws(text: str) -> bool:
    """Whether a message withdraws the one before, such as "sorry, wrong chat"."""
    return len(text) <= MAX_WITHDRAWAL and bool(_withdraws().search(text))


@cache
def _withdraws() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{language['withdraws']})" for language in _words()), re.IGNORECASE)


@cache
def _holds() -> tuple[re.Pattern[str], re.Pattern[str]]:
    words = _words()
    alternatives = ("|".join(f"(?:{language[key]})" for language in words) for key in ("lasts", "now"))
    lasting, now = (re.compile(pattern, re.IGNORECASE) for pattern in alternatives)
    return lasting, now


@cache
def _words() -> list[dict[str, Any]]:
    text = files("mulligan.sessions").joinpath("corrections.toml").read_text("utf-8")
    tables = tomllib.loads(text).values()
    languages = ((language, f"(?:{language['work']})") for language in tables)
    return [
        {
            **language,
            "says": [
                phrase.replace("<work>", work).replace("<task>", language.get("task", ""))
                for phrase in language["says"]
            ],
            "then": language["then"].replace("<work>", work),
        }
        for language, work in languages
    ]


def correction_in(text: str) -> str:
    """What a user says against an agent's last action, beginning with the sentence that corrects; "" for nothing."""
    if _OF_HOOKS in text:
        return ""
    text = _TYPED.sub(_spelled_out, text.strip().replace("’", "'"))
    sentences = [sentence.strip() for sentence in _SENTENCES.split(text) if sentence.strip()]
    found = _from_first(_joined(sentences), _corrects) or _from_first(sentences, _corrects)
    if not found and len(text) <= _MAX_MESSAGE:
        found = _from_first(sentences, lambda sentence, _: states_norm(sentence))
    return found


def _joined(sentences: Sequence[str]) -> list[str]:
    """The sentences, where a bare no and what follows it are one: "No. Use make."."""
    joined = list[str]()
    for sentence in sentences:
        if joined and _patterns().bare_no.fullmatch(_OPENS.sub("", joined[-1])):
            joined[-1] += f" {sentence}"
        else:
            joined.append(sentence)
    return joined


def _from_first(sentences: Sequence[str], is_one: Callable[[str, Sequence[str]], bool]) -> str:
    """The first sentence of this kind, and all after it; "" if there is none.

    is_one: whether a sentence, without the words that it opens with, is one. It is also given those after it.
    """
    for n, sentence in enumerate(sentences):
        core, after = _OPENS.sub("", sentence), sentences[n + 1 :]
        if is_one(core, after) and not (_patterns().harmless.match(core) or _QUESTION.match(core)):
            return " ".join(sentences[n:])
    return ""


def _corrects(sentence: str, after: Sequence[str]) -> bool:
    if _ANNOUNCES.match(sentence) and any(map(_patterns().task.match, after)):
        return False
    return bool(_patterns().corrects.match(sentence))


def states_norm(text: str) -> bool:
    """Whether the first sentence states what always holds, by the weights of what it is about."""
    sentence = _SENTENCES.split(text)[0]
    return (
        len(sentence) <= _MAX_NORM
        and sum(weight for weight, pattern in _norms() if pattern.search(sentence)) >= _MIN_WEIGHT
    )


@cache
def _norms() -> list[tuple[float, re.Pattern[str]]]:
    text = files("mulligan.sessions").joinpath("norms.toml").read_text("utf-8")
    return [(weight, re.compile(words, re.IGNORECASE)) for weight, words in tomllib.loads(text).values()]


def _spelled_out(typed: re.Match[str]) -> str:
    if typed[1]:
        return f"{typed[1]}n't"
    return f"{typed[2]}'s " if typed[2] else "please"


@dataclass(frozen=True)
class _CorrectionPatterns:
    """What sentences begin with, in all languages.

    Attributes:
        corrects: a correction.
        bare_no: a no without what to do instead; it is the whole sentence.
        harmless: what only looks like a correction.
        task: a new task.
    """

    corrects: re.Pattern[str]
    bare_no: re.Pattern[str]
    harmless: re.Pattern[str]
    task: re.Pattern[str]


@cache
def _patterns() -> _CorrectionPatterns:
    """The patterns, which are read when they are first needed."""
    words = _words()
    after = [rf"(?:(?:{language['no']}){_BETWEEN}){{1,2}}(?:{language['then']})" for language in words]
    says = [f"(?:(?:{language['no']}){_BETWEEN})?(?:{phrase})" for language in words for phrase in language["says"]]
    no = "|".join(language["no"] for language in words)
    fine = [f"(?:(?:{no}){_BETWEEN})?(?:{phrase})" for language in words for phrase in language["fine"]]
    tasks = [language["task"] for language in words if "task" in language]
    return _CorrectionPatterns(
        corrects=re.compile("|".join([*after, *says]), re.IGNORECASE),
        bare_no=re.compile(rf"(?:(?:{no})\W*){{1,2}}", re.IGNORECASE),
        harmless=re.compile("|".join(fine), re.IGNORECASE),
        task=re.compile("|".join(tasks), re.IGNORECASE),
    )
