"""Find the sentence by which a user corrects a coding agent, in nine languages.

Rules, no model. A correction that is taken for one and is none becomes a lesson, and one that is missed is said again:
so a question, a new wish and a word of politeness are none. corrections.toml holds the words, and norms.toml the
weights by which a sentence that is on no list states what always holds: design/168.
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
"""Words as they are typed in haste."""
_ONE, _ALL, _LEAST = 120, 240, 2.0
"""Of a sentence that states a norm: its characters, those of the message that it stands in, at most, and its weight."""
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
"""What a correction may begin with and does not depend on."""
_BETWEEN = r"\s*[,.:;!?\u3001\uff0c\u3002\uff01\uff1a\uff1b\u2013\u2014-]+\s*"
"""Between a no and what is to be done."""
TAKEN_BACK = 300
"""Characters of a message that takes one back, at most: what is longer is a task."""


def lasts(correction: str) -> bool | None:
    """Whether a correction holds beyond the task at hand: True where it says so, False where it is for this moment
    alone, None where it does not say."""
    lasting, now = _holds()
    return True if lasting.search(correction) else False if now.search(correction) else states_norm(correction) or None


def withdraws(text: str) -> bool:
    """Whether a user takes back what the message before said, such as "sorry, wrong chat"."""
    return len(text) <= TAKEN_BACK and bool(_withdraws().search(text))


@cache
def _withdraws() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one['withdraws']})" for one in _words()), re.IGNORECASE)


@cache
def _holds() -> tuple[re.Pattern[str], re.Pattern[str]]:
    words = _words()
    both = ("|".join(f"(?:{one[key]})" for one in words) for key in ("lasts", "now"))
    lasting, now = (re.compile(pattern, re.IGNORECASE) for pattern in both)
    return lasting, now


@cache
def _words() -> list[dict[str, Any]]:
    text = files("mulligan.sessions").joinpath("corrections.toml").read_text("utf-8")
    languages = tomllib.loads(text).values()
    filled = ((one, f"(?:{one['work']})") for one in languages)
    return [
        {
            **one,
            "says": [each.replace("<work>", work).replace("<task>", one.get("task", "")) for each in one["says"]],
            "then": one["then"].replace("<work>", work),
        }
        for one, work in filled
    ]


def correction_in(text: str) -> str:
    """What a user says against an agent's last action, from the sentence on that corrects; "" for none."""
    text = _TYPED.sub(_written, "" if "<mulligan-" in text else text.strip().replace("’", "'"))  # hooks ask, too
    sentences = [one.strip() for one in _SENTENCES.split(text) if one.strip()]
    corrects, bare, fine, task = _patterns()
    joined = list[str]()
    for one in sentences:  # "No. Use make." is one sentence here
        if joined and bare.fullmatch(_OPENS.sub("", joined[-1])):
            joined[-1] += f" {one}"
        else:
            joined.append(one)
    for each in (joined, sentences):
        for n, one in enumerate(_OPENS.sub("", one) for one in each):
            told = re.match(r"we (?:use|have|are|run)\b", one, re.IGNORECASE) and any(map(task.match, each[n + 1 :]))
            if corrects.match(one) and not (told or fine.match(one) or _QUESTION.match(one)):
                return " ".join(each[n:])
    for n, one in enumerate(_OPENS.sub("", one) for one in sentences if len(text) <= _ALL):
        if states_norm(one) and not (fine.match(one) or _QUESTION.match(one)):
            return " ".join(sentences[n:])
    return ""


def states_norm(text: str) -> bool:
    """Whether the first sentence states what always holds: each thing that it speaks of has a weight."""
    sentence = _SENTENCES.split(text)[0]
    return len(sentence) <= _ONE and sum(weight for weight, of in _norms() if of.search(sentence)) >= _LEAST


@cache
def _norms() -> list[tuple[float, re.Pattern[str]]]:
    text = files("mulligan.sessions").joinpath("norms.toml").read_text("utf-8")
    return [(weight, re.compile(words, re.IGNORECASE)) for weight, words in tomllib.loads(text).values()]


def _written(typed: re.Match[str]) -> str:
    return f"{typed[1]}n't" if typed[1] else f"{typed[2]}'s " if typed[2] else "please"


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """What corrects, what is only a no, what looks like a correction and is none, and how a task begins. Read when it
    is needed."""
    words = _words()
    after = [rf"(?:(?:{one['no']}){_BETWEEN}){{1,2}}(?:{one['then']})" for one in words]
    says = [f"(?:(?:{one['no']}){_BETWEEN})?(?:{each})" for one in words for each in one["says"]]
    no = "|".join(one["no"] for one in words)
    fine = [f"(?:(?:{no}){_BETWEEN})?(?:{each})" for one in words for each in one["fine"]]
    patterns = ("|".join([*after, *says]), rf"(?:(?:{no})\W*){{1,2}}", "|".join(fine))
    patterns = (*patterns, "|".join(one["task"] for one in words if "task" in one))
    corrects, bare, is_fine, task = (re.compile(pattern, re.IGNORECASE) for pattern in patterns)
    return corrects, bare, is_fine, task
