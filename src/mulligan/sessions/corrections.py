"""Finds the sentence by which a user corrects a coding agent, in nine languages, by rules.

A sentence that is wrongly taken for a correction becomes a lesson, while a user repeats one that is missed. So a
question, a new request and a phrase of politeness are not corrections. corrections.toml has the words, and norms.toml
the weights by which other sentences are recognised as what always holds (design/168).
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

_TYPED = re.compile(
    r"\b(do|does|did|is|are|was|should|would|could|ca|wo)nt\b|\b(that|it)s (?=wrong|not)|\bpl[sz]\b", re.IGNORECASE
)
"""Words that are typed in haste."""
_MAX_NORM, _MAX_MESSAGE, _MIN_WEIGHT = 120, 240, 2.0
"""Characters of a sentence that states a norm, and of its message, at most; and the weight that it needs."""
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
    lasting, now = _holds()
    if lasting.search(correction):
        return True
    return False if now.search(correction) else states_norm(correction) or None


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
    text = _TYPED.sub(_spelled_out, "" if "<mulligan-" in text else text.strip().replace("’", "'"))  # hooks ask, too
    sentences = [sentence.strip() for sentence in _SENTENCES.split(text) if sentence.strip()]
    corrects, bare, fine, task = _patterns()
    joined = list[str]()
    for sentence in sentences:  # "No. Use make." is one sentence here
        if joined and bare.fullmatch(_OPENS.sub("", joined[-1])):
            joined[-1] += f" {sentence}"
        else:
            joined.append(sentence)
    for texts in (joined, sentences):
        for n, sentence in enumerate(_OPENS.sub("", sentence) for sentence in texts):
            announces = re.match(r"we (?:use|have|are|run)\b", sentence, re.IGNORECASE) and any(
                map(task.match, texts[n + 1 :])
            )
            if corrects.match(sentence) and not (announces or fine.match(sentence) or _QUESTION.match(sentence)):
                return " ".join(texts[n:])
    for n, sentence in enumerate(_OPENS.sub("", sentence) for sentence in sentences if len(text) <= _MAX_MESSAGE):
        if states_norm(sentence) and not (fine.match(sentence) or _QUESTION.match(sentence)):
            return " ".join(sentences[n:])
    return ""


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
    return f"{typed[1]}n't" if typed[1] else f"{typed[2]}'s " if typed[2] else "please"


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns of a correction, of a bare no, of what only looks like a correction, and of the beginning of a task.

    They are read when they are first needed.
    """
    words = _words()
    after = [rf"(?:(?:{language['no']}){_BETWEEN}){{1,2}}(?:{language['then']})" for language in words]
    says = [f"(?:(?:{language['no']}){_BETWEEN})?(?:{phrase})" for language in words for phrase in language["says"]]
    no = "|".join(language["no"] for language in words)
    fine = [f"(?:(?:{no}){_BETWEEN})?(?:{phrase})" for language in words for phrase in language["fine"]]
    patterns = ("|".join([*after, *says]), rf"(?:(?:{no})\W*){{1,2}}", "|".join(fine))
    patterns = (*patterns, "|".join(language["task"] for language in words if "task" in language))
    corrects, bare, is_fine, task = (re.compile(pattern, re.IGNORECASE) for pattern in patterns)
    return corrects, bare, is_fine, task
