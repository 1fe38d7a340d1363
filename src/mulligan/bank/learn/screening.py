"""Screen a lesson before it is stored: mask secrets, remove invisible text, and flag attempts to instruct its reader.

docs/memory.md says what the filter is for and what it misses. Phrases and commands are in tables
(injection_patterns.toml, text/safeguards.toml); effects.py finds what the tables do not name. Screening a text twice
changes nothing. The texts that the filter is measured on are in tests/bank/screening.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

from mulligan.bank.learn.effects import effects_of
from mulligan.bank.learn.facts import keys_of, subject_of
from mulligan.bank.learn.validation import checked_fields
from mulligan.bank.recall.terms import search_text, terms_of
from mulligan.core.codec import digest
from mulligan.core.lesson_history import Addition, compared_text
from mulligan.core.lessons import MAX_OTHER_QUERIES
from mulligan.core.records import Json, Lesson
from mulligan.sessions.effects import FORBIDS
from mulligan.text.safeguards import LOOK_ALIKES, Patterns, compiled, folded, patterns
from mulligan.text.secrets import mask

TITLE, DESCRIPTION, CONTENT, QUERY, TAG, TAGS = 300, 2000, 20_000, 20_000, 100, 50
"""Maximum characters of each text, and number of tags. Models may write far less; people and imports may write this."""
_SHORT = 2000
"""The flags of texts up to this many characters are remembered."""

_FLAG_EMOJI = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,6}\U000e007f")
_TAGS = re.compile("[\U000e0000-\U000e007f]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_WIDTHLESS = re.compile("[\u200b\u2060-\u2064\ufeff\u180e\u00ad\U000e0100-\U000e01ef]")
_JOINERS = "\u200c\u200d"
_SMUGGLED = re.compile(f"[\u200b\u2060-\u2064\ufeff{_JOINERS}\ufe00-\ufe0f\U000e0100-\U000e01ef]{{4,}}")
_LATIN_JOINED = re.compile(f"(?<=[A-Za-z])[{_JOINERS}]+(?=[A-Za-z])")


def storable(values: Mapping[str, Any], where: str = "A lesson", *, id: str = "", whole: bool = False) -> Lesson:
    """Returns the lesson with these fields, in a form that can be stored: see `checked_fields` and `screened`."""
    return screened(Lesson(id, **checked_fields(values, where, whole=whole)))[0]


def screened(lesson: Lesson, named: str = "") -> tuple[Lesson, tuple[str, ...]]:
    """The lesson as it may be stored, and its flags. Most lessons have none.

    named: A text whose commands earn no flags, such as the task. Flags: override, persona, role tags, tool call, asks
    for its prompt, exfiltration, remote code, concealment, acts unasked, speaks to its reader, encoded, hidden text; of
    commands foreign code, payment, deletes outside, widens rights.
    """
    origin = lesson.origin
    clean = replace(
        lesson,
        title=_kept(" ".join(visible(lesson.title).split()), TITLE),
        description=_kept(lesson.description, DESCRIPTION),
        content=_kept(lesson.content, CONTENT),
        query=_kept(lesson.query, QUERY),
        other_queries=tuple(_kept(query, QUERY) for query in lesson.other_queries[:MAX_OTHER_QUERIES]),
        kind=_kept(lesson.kind, TAG),
        project=_kept(lesson.project, TAG),
        tags=tuple(dict.fromkeys(tag for each in lesson.tags if (tag := _kept(each, TAG).strip())))[:TAGS],
        origin=replace(origin, reason=_kept(origin.reason, DESCRIPTION), by=_kept(origin.by, TITLE)),
        context=cast(Mapping[str, Json], _each_text(dict(lesson.context), _kept)),
    )
    without_flags = (_FLAG_EMOJI.sub(" ", text) for text in _texts(lesson))
    hides_text = any(pattern.search(text) for text in without_flags for pattern in (_TAGS, _BIDI, _SMUGGLED))
    hidden = {"hidden text"} if hides_text else set[str]()
    return clean, tuple(sorted(hidden.union(*(flags_of(text, named) for text in {*_texts(clean)} - {""}))))


def _kept(text: str, most: int) -> str:
    """The text without invisible characters, with secrets masked, and at most `most` characters long."""
    text = mask(visible(text)) if text else ""
    while len(text) > most:  # the cut may go through an emoji of several characters, or leave something like a key
        text = mask(visible(text[: most - 1]).rstrip() + "…")
    return text


def visible(text: str) -> str:
    """The text without control characters, lone surrogates, and characters that only hide or reorder text.

    Joiners stay where scripts and emoji need them.
    """
    text = text.replace("\r\n", "\n")
    before = ""
    while text != before:  # characters that were apart may hide something once they are next to each other
        before = text
        text = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs"))
        pieces, flags = _FLAG_EMOJI.split(text), [*_FLAG_EMOJI.findall(text), ""]
        for pattern in (_SMUGGLED, _TAGS, _BIDI, _WIDTHLESS, _LATIN_JOINED):
            pieces = [pattern.sub("", piece) for piece in pieces]
        text = "".join(piece + flag for piece, flag in zip(pieces, flags, strict=True))
    return text


def _texts(lesson: Lesson) -> list[str]:
    """All texts of a lesson. The title often names what the content acts on, so these two are one text."""
    content = lesson.content.removeprefix("fails: ")  # hooks begin a quotation with it
    texts = [f"{lesson.title}.\n{content}", lesson.description, lesson.query, *lesson.other_queries, lesson.kind]
    texts += [*lesson.tags, lesson.origin.reason]
    _each_text(dict(lesson.context), lambda text, _: texts.append(text))
    return texts


def _each_text(value: Json, change: Callable[[str, int], Any]) -> Json:
    """A copy in which each text and key is replaced by `change(text, maximum length)`."""
    if isinstance(value, str):
        return change(value, CONTENT)
    if isinstance(value, list):
        return [_each_text(inner, change) for inner in cast(list[Any], value)]
    if isinstance(value, Mapping):
        table = cast(Mapping[str, Any], value)
        return {change(key, TITLE): _each_text(inner, change) for key, inner in table.items()}
    return value


# --- text that instructs its reader ---------------------------------------------------------------------------------

_LEET = str.maketrans("013457@$", "oleastas")
_MIXED = re.compile(r"\b(?=\w*[a-z])(?=\w*[0-9@$])[\w@$]{4,}\b")


@cache
def _patterns(table: str) -> Patterns:
    """The lines of a table of injection_patterns.toml, or else of text/safeguards.toml, each with its flag."""
    if table in ("commands", "languages"):
        return patterns(table)
    tables = tomllib.loads(Path(__file__).with_name("injection_patterns.toml").read_text(encoding="utf-8"))
    flags = re.IGNORECASE if table == "markup" else re.NOFLAG
    return compiled(tables[table], tables["words"], look_alikes=False, flags=flags)


def _read_aloud(text: str) -> str:
    """The folded text without accents and with the digits in words read as letters: `1gn0re` is ignore."""
    bare = "".join(char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")
    return _MIXED.sub(lambda word: word[0].replace("1", "i").translate(_LEET), bare)


_FORBIDDEN = re.compile(
    r"(?:\b(?:never|not|don't|cannot|avoid|refuse to|instead of|against|(?:claims?|tries|attempts?) to)\b"
    r"(?!\s+(?:hesitate|fail|forget))[^.;:!?]{0,30}"
    r"|(?:不要|不得|不能|切勿|禁止|避免|拒绝)[^。;:!?]{0,8})$"
)
_WARNS = re.compile(
    r"(?:\b(?:never|not|don't|cannot|avoid|refuse to|instead of|against|jamais|évitez|ne"
    r"|niemals|nie|nicht|vermeide|nunca|evita|n(?:o|ão) (?:us|utili|hag|faç)\w+|никогда|не|нельзя)\b"
    r"(?!\s+(?:hesitate|fail|forget))[^.;:!?,]{0,60}"
    r"|(?:不要|不得|不能|切勿|禁止|避免|拒绝|決して)[^。;:!?]{0,16})$".translate(LOOK_ALIKES)
)
"""Text before a command that warns of it."""
_ABOUT = re.compile(
    r"\b(?:injections?|injected|attacks?|attackers?|jailbreaks?|untrusted|hostile|malicious|phishing|treat\w*|data|content"
    r"|passages?|paragraphs?)\b"
    r"|注入|攻击|恶意|内容|数据"
)
_QUOTED = re.compile(r"\"[^\"]{1,200}\"|'[^'\n]{1,200}'|`[^`]{1,200}`|「[^」]{1,200}」")
_CODE = re.compile(r"`[^`\n]{1,24}`")
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}(?![A-Za-z0-9+/_=-])")
_DECODE = re.compile(
    r"\b(?:decode|decoded|decoding|base64|b64decode|atob|eval|execute|exec)\b|解码|执行", re.IGNORECASE
)


def flags_of(text: str, named: str = "") -> tuple[str, ...]:
    """The flags of a text, sorted. named: a text whose commands earn no flags, such as the task."""
    return (_flags_of_short if len(text) + len(named) <= _SHORT else _flags_of)(text, named)


def _flags_of(text: str, named: str) -> tuple[str, ...]:
    named = folded(named)
    return tuple(
        sorted(
            {
                *_flags_by_pattern(text, named),
                *effects_of(text),
                *(flag for blob in _blobs(text) for flag in ("encoded", *_flags_by_pattern(blob))),
            }
        )
    )


_flags_of_short = lru_cache(maxsize=1000)(_flags_of)
"""Remembered, because the facts that rules draw repeat the same texts."""


def _flags_by_pattern(text: str, named: str = "") -> Iterator[str]:
    simple = folded(text)
    aloud = _read_aloud(simple)
    quoted = [found.span() for found in _QUOTED.finditer(simple)] if _ABOUT.search(simple) else []
    code = [found.span() for found in _CODE.finditer(text)]
    nowhere = list[tuple[int, int]]()
    # A table of patterns, the text it is applied to, the spans in which a match does not count, and the pattern that
    # makes a match harmless if it occurs within so many characters before it.
    searches = (
        ("phrases", simple, quoted, _FORBIDDEN, 60),
        *([("phrases", aloud, nowhere, _FORBIDDEN, 60)] if aloud != simple else []),
        ("languages", simple, quoted, None, 0),
        ("commands", simple, nowhere, _WARNS, 90),
        ("forbids", simple, quoted, None, 0),
        ("markup", text, code, None, 0),
    )
    for table, searched, spans, harmless, distance in searches:
        for flag, pattern in _patterns(table):
            for match in pattern.finditer(searched):
                begin, end = match.span()
                if any(start <= begin and end <= stop for start, stop in spans):
                    continue
                if harmless and harmless.search(searched[max(begin - distance, 0) : begin]):
                    continue
                if table == "commands" and (FORBIDS.match(searched, end) or match[0] in named):
                    continue
                yield flag
                break


def _blobs(text: str) -> Iterator[str]:
    """The decoded base64 in a text, if the text asks to decode it, or the decoded text earns a flag."""
    asks_to_decode = bool(_DECODE.search(text))
    for match in _BLOB.finditer(text):
        is_hex = re.fullmatch(r"[0-9a-fA-F]+", match[0])
        decoded = "" if is_hex else _decoded(match[0])
        if decoded and (asks_to_decode or any(_flags_by_pattern(decoded))):
            yield decoded


def _decoded(blob: str) -> str:
    """The text in a base64 string; "" if it is not text."""
    body = blob.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        decoded = base64.b64decode(body + "=" * (-len(body) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
    return decoded if decoded.isprintable() or decoded.replace("\n", " ").isprintable() else ""


def addition_of(lesson: Lesson, *, quarantine: bool, named: str = "") -> Addition:
    """The screened lesson in the form that the store takes. With `quarantine`, a flagged lesson is quarantined.

    named: the text of the task and its check. A command in it is flagged, but does not quarantine the lesson.
    """
    original = lesson
    lesson, flags = screened(original)
    if flags:
        suspicious = quarantine and bool(screened(original, named)[1] if named else flags)
        state = "quarantined" if suspicious and lesson.state == "active" else lesson.state
        lesson = replace(lesson, state=state, flags=tuple(dict.fromkeys((*lesson.flags, *flags))))
    fact = lesson.nature == "fact"
    lesson = replace(lesson, subject=subject_of(lesson) if fact else "")
    keys = keys_of(lesson) if fact else pair_keys_of(lesson) if lesson.nature == "query_pair" else ()
    return Addition(lesson, fingerprint(lesson), terms_of(search_text(lesson)), keys=keys)


def pair_keys_of(pair: Lesson) -> tuple[str, ...]:
    """The keys that a query pair is looked up by: that of its graph, and that of its shape in this graph."""
    graph = str(pair.context.get("graph"))
    return pair_key(pair.agent_id, graph), pair_key(pair.agent_id, graph, pair.query)


def pair_key(agent_id: str, graph: str, shape: str = "") -> str:
    """The key of the query pairs of this graph, or of those of one shape. graph: see `QueryPairs`."""
    return digest([agent_id, "query_pair", graph, " ".join(shape.casefold().split())])[:16]


def fingerprint(lesson: Lesson) -> str:
    """A hash that is equal for duplicates: lessons whose texts differ only in white space and case.

    Facts must be of the same project, but may have different outcomes (and, if drawn by a rule, different tasks). Query
    pairs must be of the same graph.
    """
    kind = f"fact {lesson.project}" if lesson.nature == "fact" else lesson.outcome
    kind = f"query_pair {lesson.context.get('graph')}" if lesson.nature == "query_pair" else kind
    parts = (kind, *compared_text(lesson))
    plain = "\0".join(" ".join(unicodedata.normalize("NFC", part).casefold().split()) for part in parts)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()
