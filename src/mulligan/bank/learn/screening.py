"""Screen a lesson before it is kept: mask secrets, remove invisible text, flag attempts to instruct its reader.

docs/memory.md says what the filter is for and what it misses. Phrases and commands are in tables
(injection_patterns.toml, text/safeguards.toml); effects.py finds what they do not name.

It changes nothing in a text that it has seen before. tests/bank/screening has the texts that it is measured on.
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
from mulligan.bank.recall.terms import search_text, terms_of
from mulligan.core.codec import digest
from mulligan.core.lesson_history import Addition, compared_text
from mulligan.core.records import Json, Lesson
from mulligan.sessions.effects import FORBIDS
from mulligan.text.safeguards import LOOK_ALIKES, Patterns, compiled, folded, patterns
from mulligan.text.secrets import mask

TITLE, DESCRIPTION, CONTENT, QUERY, TAG, TAGS = 300, 2000, 20_000, 20_000, 100, 50
"""Characters, and tags, that are kept: far more than thinkers may write, for what is written and imported."""
_REMEMBERED = 2000
"""Characters of a text, at most, whose flags are remembered."""

_FLAG_EMOJI = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,6}\U000e007f")
_TAGS = re.compile("[\U000e0000-\U000e007f]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_WIDTHLESS = re.compile("[\u200b\u2060-\u2064\ufeff\u180e\u00ad\U000e0100-\U000e01ef]")
_JOINERS = "\u200c\u200d"
_SMUGGLED = re.compile(f"[\u200b\u2060-\u2064\ufeff{_JOINERS}\ufe00-\ufe0f\U000e0100-\U000e01ef]{{4,}}")
_LATIN_JOINED = re.compile(f"(?<=[A-Za-z])[{_JOINERS}]+(?=[A-Za-z])")


def screened(lesson: Lesson, named: str = "") -> tuple[Lesson, tuple[str, ...]]:
    """The lesson as it may be kept, and the flags for which it should be held back; most get none.

    Flags: override, persona, role tags, tool call, asks for its prompt, exfiltration, remote code, concealment, acts
    unasked, speaks to its reader, encoded, hidden text; of commands foreign code, payment, deletes outside, widens
    rights, unless they stand in the text `named`.
    """
    origin = lesson.origin
    clean = replace(
        lesson,
        title=_kept(" ".join(visible(lesson.title).split()), TITLE),
        description=_kept(lesson.description, DESCRIPTION),
        content=_kept(lesson.content, CONTENT),
        query=_kept(lesson.query, QUERY),
        kind=_kept(lesson.kind, TAG),
        project=_kept(lesson.project, TAG),
        tags=tuple(dict.fromkeys(tag for each in lesson.tags if (tag := _kept(each, TAG).strip())))[:TAGS],
        origin=replace(origin, reason=_kept(origin.reason, DESCRIPTION), by=_kept(origin.by, TITLE)),
        context=cast(Mapping[str, Json], _each_text(dict(lesson.context), _kept)),
    )
    visibly = (_FLAG_EMOJI.sub(" ", text) for text in _texts(lesson))
    hides = any(pattern.search(text) for text in visibly for pattern in (_TAGS, _BIDI, _SMUGGLED))
    hidden = {"hidden text"} if hides else set[str]()
    return clean, tuple(sorted(hidden.union(*(flags_of(text, named) for text in {*_texts(clean)} - {""}))))


def _kept(text: str, most: int) -> str:
    """Without what cannot be seen, secrets masked, no longer than `most` characters."""
    text = mask(visible(text)) if text else ""
    while len(text) > most:  # again: the cut may go through an emoji of several characters, or leave what is a key
        text = mask(visible(text[: most - 1]).rstrip() + "…")
    return text


def visible(text: str) -> str:
    """Without control characters, half surrogates and characters that only hide or reorder text. Joiners stay where
    scripts and emoji need them."""
    text = text.replace("\r\n", "\n")
    before = ""
    while text != before:  # what was kept apart may hide something once it stands together
        before = text
        text = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs"))
        pieces, flags = _FLAG_EMOJI.split(text), [*_FLAG_EMOJI.findall(text), ""]
        for pattern in (_SMUGGLED, _TAGS, _BIDI, _WIDTHLESS, _LATIN_JOINED):
            pieces = [pattern.sub("", piece) for piece in pieces]
        text = "".join(piece + flag for piece, flag in zip(pieces, flags, strict=True))
    return text


def _texts(lesson: Lesson) -> list[str]:
    """All that somebody may be shown. A title often names what the content acts on, so they are read together."""
    content = lesson.content.removeprefix("fails: ")  # how hooks begin a quote, and no reason for what it quotes
    texts = [f"{lesson.title}.\n{content}", lesson.description, lesson.query, lesson.kind, *lesson.tags]
    texts.append(lesson.origin.reason)
    _each_text(dict(lesson.context), lambda text, _: texts.append(text))
    return texts


def _each_text(value: Json, change: Callable[[str, int], Any]) -> Json:
    """A copy with each text and key changed by `change(text, characters that are kept of it)`."""
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
    """The folded text with digits in words read as letters, and without accents: `1gn0re` is ignore."""
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
"""Before a command: it is warned of."""
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
    """The flags that this text earns, sorted; none for most. named: a text whose commands are none, such as the
    task."""
    return (_flags_of_short if len(text) + len(named) <= _REMEMBERED else _flags_of)(text, named)


def _flags_of(text: str, named: str) -> tuple[str, ...]:
    named = folded(named)
    return tuple(
        sorted(
            {
                *_found(text, named),
                *effects_of(text),
                *(flag for blob in _blobs(text) for flag in ("encoded", *_found(blob))),
            }
        )
    )


_flags_of_short = lru_cache(maxsize=1000)(_flags_of)
"""The facts that rules draw say the same again and again."""


def _found(text: str, named: str = "") -> Iterator[str]:
    simple = folded(text)
    aloud = _read_aloud(simple)
    quoted = [found.span() for found in _QUOTED.finditer(simple)] if _ABOUT.search(simple) else []
    code = [found.span() for found in _CODE.finditer(text)]
    # where each table of patterns is looked for, which spans do not count, and what before it makes it harmless
    ways = (
        ("phrases", simple, quoted, _FORBIDDEN, 60),
        *([("phrases", aloud, list[tuple[int, int]](), _FORBIDDEN, 60)] if aloud != simple else []),
        ("languages", simple, quoted, None, 0),
        ("commands", simple, list[tuple[int, int]](), _WARNS, 90),
        ("forbids", simple, quoted, None, 0),
        ("markup", text, code, None, 0),
    )
    for table, where, spans, harmless, before in ways:
        for flag, pattern in _patterns(table):
            for found in pattern.finditer(where):
                at, end = found.span()
                if any(start <= at and end <= stop for start, stop in spans):
                    continue
                if harmless and harmless.search(where[max(at - before, 0) : at]):
                    continue
                if table == "commands" and FORBIDS.match(where, end):
                    continue
                if table != "commands" or found[0] not in named:
                    yield flag
                    break


def _blobs(text: str) -> Iterator[str]:
    """What base64 in the text stands for, where it is to be decoded or says something that earns a flag by itself."""
    asked = bool(_DECODE.search(text))
    for found in _BLOB.finditer(text):
        if (
            not re.fullmatch(r"[0-9a-fA-F]+", found[0])
            and (decoded := _decoded(found[0]))
            and (asked or any(_found(decoded)))
        ):
            yield decoded


def _decoded(blob: str) -> str:
    """The text in it; "" where it is none."""
    body = blob.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        decoded = base64.b64decode(body + "=" * (-len(body) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
    return decoded if decoded.isprintable() or decoded.replace("\n", " ").isprintable() else ""


def addition_of(lesson: Lesson, *, quarantine: bool, named: str = "") -> Addition:
    """The lesson with secrets masked, flagged, and held back for its flags where `quarantine`.

    named: what the task and its check say. A command that stands there is flagged, and holds nothing back.
    """
    given = lesson
    lesson, flags = screened(given)
    if flags:
        held = quarantine and bool(screened(given, named)[1] if named else flags)
        state = "quarantined" if held and lesson.state == "active" else lesson.state
        lesson = replace(lesson, state=state, flags=tuple(dict.fromkeys((*lesson.flags, *flags))))
    fact = lesson.nature == "fact"
    lesson = replace(lesson, subject=subject_of(lesson) if fact else "")
    keys = keys_of(lesson) if fact else pair_keys_of(lesson) if lesson.nature == "query_pair" else ()
    return Addition(lesson, fingerprint(lesson), terms_of(search_text(lesson)), keys=keys)


def pair_keys_of(pair: Lesson) -> tuple[str, ...]:
    """What a query pair is looked up by: its graph, and its shape there."""
    graph = str(pair.context.get("graph"))
    return pair_key(pair.agent_id, graph), pair_key(pair.agent_id, graph, pair.query)


def pair_key(agent_id: str, graph: str, shape: str = "") -> str:
    """The key of the query pairs of this graph, or of those of one shape. graph: see `QueryPairs`."""
    return digest([agent_id, "query_pair", graph, " ".join(shape.casefold().split())])[:16]


def fingerprint(lesson: Lesson) -> str:
    """Equal for lessons that may be duplicates: those that say the same but for white space and capitals; of facts, in
    the same project, whatever became of the task, and of facts by rule, whichever task it was; of query pairs, over the
    same graph."""
    kind = f"fact {lesson.project}" if lesson.nature == "fact" else lesson.outcome
    kind = f"query_pair {lesson.context.get('graph')}" if lesson.nature == "query_pair" else kind
    parts = (kind, *compared_text(lesson))
    plain = "\0".join(" ".join(unicodedata.normalize("NFC", part).casefold().split()) for part in parts)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()
