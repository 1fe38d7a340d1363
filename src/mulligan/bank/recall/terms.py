"""Split a text into search terms: stable hashes with counts, stored as one small blob per lesson.

Words are case-folded and lose their accents, vowel signs and common endings (`_SCRIPTS`); long words, which may be
compounds, count by their beginnings and ends too; identifiers count whole and by their parts; scripts that are written
without spaces (Chinese, Japanese, Korean, Thai) count by single characters and pairs, so that any substring is found.
Single Latin letters and signs count only for a query that has nothing else: see design/036.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mulligan.core.ranking import Array
from mulligan.core.records import Lesson

VERSION = 3
"""Written into every blob. It rises whenever a text would give other terms; older blobs are then made anew."""

TONGUES = ("en", "de", "fr", "es", "nl", "it", "pt", "tr", "ru", "ar", "he", "hi", "zh", "ja", "ko", "")
"""Languages that are told apart, the others as "". Those up to Japanese are the paragraphs of common_words.txt."""

RAREST = 0.015
"""How common a term is taken to be that is not among the common words."""

_HEAD = VERSION.to_bytes(4, "little")

ENTRY = 5
"""Bytes of one entry: the hash (4, little-endian) and the count (1). The first entry of a blob names the version and
the language."""

_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0e00"
_UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af"
)
_PART = rf"(?:[^\W{_UNSPACED}]|[{_MARKS}])+"
_RUNS = re.compile(rf"([{_UNSPACED}]+)|{_PART}(?:(?:\.|(?<=\d),(?=\d)){_PART})*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEAMS = re.compile(r"[_.,]+")
_ELISIONS = re.compile(r"\b(?:[cdjlmnst]|qu|all|dell|nell|un)['’](?=[^\W\d_]{2})", re.IGNORECASE)
_APOSTROPHES = re.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_])")
_SIGNED = re.compile(r"(?<![^\W_])([^\W\d_]\w*)(\+\+|#)(?!\w)")
"""Names such as C++ and F#."""
_WEAK = re.compile(rf"[^\w\s{_MARKS}]|(?<![\w{_MARKS}])_*[^\W\d_]_*(?![\w{_MARKS}])")
_OPTIONAL = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u093c]")
"""Accents, the vowel signs of Hebrew and Arabic, and signs that only stretch a word or mark a sound of another
language: the same word is written with and without them."""
_SPELLINGS = (
    "iı lł oø dđð hħ tŧ \u0627أإآٱ \u064aىئی \u0648ؤ \u0647ة \u0643ک"
    " \u05db\u05da \u05de\u05dd \u05e0\u05df \u05e4\u05e3 \u05e6\u05e5 \u0902\u0901"
)
_ALIKE = {ord(other): one[0] for one in _SPELLINGS.split() for other in one[1:]}
"""Letters that are written for the first of each group."""
_VOWEL = re.compile("[aeiouy]")
_ENDINGS = ("ungen", "ung", "ings", "ing", "ied", "ies", "ed", "es", "ers", "er", "ens", "en", "em", "e", "s")
LONG, PART = 13, 6
"""Letters from which a word counts by its beginnings and ends, and what those have at least."""


def terms(text: str) -> Iterator[str]:
    """The terms of a text, in its order, repeated as they are repeated."""
    text = unicodedata.normalize("NFKC", text)
    if "'" in text or "’" in text:
        text = _APOSTROPHES.sub("", _ELISIONS.sub(" ", text))
    if "+" in text or "#" in text:
        yield from (found[0].casefold() for found in _SIGNED.finditer(text))
    for run in _RUNS.finditer(text):
        word = run[0]
        if run[1]:
            yield from word
            yield from (word[i : i + 2] for i in range(len(word) - 1))
        elif word.isalpha() and (word.islower() or word.istitle()):
            yield from _word(word)
        else:
            yield from _identifier(word)


def _weak(text: str) -> Iterator[str]:
    """The single letters and signs of a text, each once."""
    found = _WEAK.findall(unicodedata.normalize("NFKC", text))
    return iter(dict.fromkeys(_plain(sign.strip("_").casefold()) for sign in found))


def terms_of(text: str) -> bytes:
    """The blob that is stored with a lesson. Equal texts give equal bytes, in every process."""
    counts = Counter(_hash(term) for term in (*terms(text), *_weak(text)))
    entries = b"".join(hash.to_bytes(4, "little") + bytes((min(counts[hash], 255),)) for hash in sorted(counts))
    return _HEAD + bytes((tongue(text),)) + entries


def read(blobs: list[bytes]) -> tuple[Array, Array, Array]:
    """Of many blobs at once: all hashes (uint32) and counts (uint8), and how many entries each blob has.

    A blob that is empty, damaged or of another version has none.
    """
    import numpy as np

    usable = [blob if current(blob) else _HEAD + b"\0" for blob in blobs]
    sizes = np.fromiter((len(blob) // ENTRY for blob in usable), np.int64, len(usable))
    entries = np.frombuffer(b"".join(usable), np.dtype([("hash", "<u4"), ("count", "u1")]))
    body = np.ones(len(entries), bool)
    body[np.cumsum(sizes) - sizes] = False
    return entries["hash"][body], entries["count"][body], sizes - 1


def tongues(blobs: list[bytes]) -> list[int]:
    """The language of each blob's text, as `tongue` says."""
    return [blob[4] if current(blob) else 0 for blob in blobs]


def tongue(text: str) -> int:
    """The language of a text, by its scripts and its small words, as an index of `TONGUES`. English where nothing says
    otherwise, such as of code."""
    text = text[:TOLD_BY]
    blocks = () if text.isascii() else map(_block, text)
    letters = Counter(block for block in blocks if block is not None)
    other = letters.total() - letters[""]
    if 4 * other > letters.total():
        del letters[""]
        return TONGUES.index("ja" if letters["ja"] else letters.most_common(1)[0][0])
    words = re.findall(r"[^\W\d_]+", text.casefold())
    hits = Counter(language for word in words for language in _small_words().get(word, ()))
    hits.update(TONGUES.index(_OWN_LETTERS[letter]) for letter in {*text.casefold()} & {*_OWN_LETTERS})
    accented = any(not word.isascii() for word in words)
    best = max(hits, key=lambda one: (hits[one], -one), default=len(TONGUES) - 1 if accented else 0)
    return best if hits[best] > hits[0] or (accented and not hits[0]) else 0


def weighed(text: str) -> tuple[Array, Array, Array]:
    """A query: the hash of each of its terms (uint32), how often it stands there, and how common it is anywhere."""
    import numpy as np

    counts = Counter(terms(text)) or Counter(_weak(text))
    hashes = np.fromiter((_hash(term) for term in counts), np.uint32, len(counts))
    times = np.fromiter(counts.values(), np.float64, len(counts))
    return hashes, times, np.fromiter((commonness(term) for term in counts), np.float64, len(counts))


def commonness(term: str) -> float:
    """About the share of short texts that hold a term, for a bank that is too young to know."""
    if (rank := _ranks().get(term)) is not None:
        return max(20 / (20 + rank), RAREST)
    run = _RUNS.fullmatch(term)
    if run and run[1]:
        if all("\u3040" <= letter <= "\u309f" for letter in term):  # Hiragana: endings and particles
            return 0.5 / len(term)
        return 0.1 if len(term) == 1 else RAREST
    return RAREST


@cache
def _common_words() -> list[list[str]]:
    """Those of each language."""
    text = Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8")
    return [words.split() for words in re.sub(r"(?m)^#.*\n", "", text).strip().split("\n\n")]


@cache
def _ranks() -> dict[str, int]:
    ranks: dict[str, int] = {}
    for words in _common_words():
        for rank, word in enumerate(words, 1):
            # of a word without spaces around it, the word itself: its letters stand in others
            for term in (word,) if _RUNS.fullmatch(word)[1] else terms(word):  # pyright: ignore[reportOptionalSubscript]
                ranks[term] = min(rank, ranks.get(term, rank))
    return ranks


TOLD_BY = 1000
"""Characters of a text that tell its language."""
SMALL = 300
"""Words of English that tell it from other languages: its most frequent ones."""
_OWN_LETTERS = {"ı": "tr", "ğ": "tr", "ş": "tr", "ß": "de", "ñ": "es", "ã": "pt", "õ": "pt"}
"""Letters that stand for one of these languages."""


@cache
def _small_words() -> dict[str, tuple[int, ...]]:
    """The languages that a word is a small word of."""
    found: dict[str, tuple[int, ...]] = {}
    for language, words in enumerate(_common_words()):
        for word in words[:SMALL]:
            found[word] = (*found.get(word, ()), language)
    return found


_BLOCKS = (
    *((0x0400, 0x052F, "ru"), (0x0590, 0x05FF, "he"), (0x0600, 0x077F, "ar"), (0x0900, 0x097F, "hi")),
    *((0x1100, 0x11FF, "ko"), (0x3040, 0x30FF, "ja"), (0x3400, 0x9FFF, "zh"), (0xAC00, 0xD7AF, "ko")),
)


def _block(letter: str) -> str | None:
    """The language that a letter's script stands for, "" for Latin; None for what is no letter."""
    code = ord(letter)
    if code < 0x250:
        return "" if letter.isalpha() else None
    return next((language for first, last, language in _BLOCKS if first <= code <= last), None)


def _hash(term: str) -> int:
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


def current(blob: bytes) -> bool:
    """Whether a blob is of this version, so that its lesson can be found."""
    return blob.startswith(_HEAD) and len(blob) % ENTRY == 0 and len(blob) > 0


def _identifier(word: str) -> Iterator[str]:
    """`readFile_v2.txt` whole and as read, file, v2, txt; 1,000 whole and as 1, 000."""
    parts = [part for piece in _SEAMS.split(word) for part in _CAMEL.split(piece) if part]
    if len(parts) > 1:
        yield word.replace(",", "").casefold()
    for part in parts:
        yield from _word(part)


def _word(word: str) -> Iterator[str]:
    """The stem of a word, and of a long one its beginnings and ends: `Datenbanksperre` is found by `Datenbank`."""
    stem = _stem(_plain(word.casefold()))
    if len(stem) > 1 or not (stem.isascii() and stem.isalpha()):
        yield stem
    if len(stem) >= LONG and stem.isalpha():
        yield from (stem[:end] for end in range(PART, len(stem) - 3))
        yield from (stem[start:] for start in range(4, len(stem) - PART + 1))


def _stem(word: str) -> str:
    """Without its ending: times and timed are one term, stop and stopped, Rechnung and Rechnungen."""
    for first, last, least, beginnings, endings in _SCRIPTS:
        if first <= word[:1] <= last:
            return _bare(word, least, beginnings, endings)
    if len(word) <= 3 or not word.isalpha():
        return word
    for ending in _ENDINGS:
        rest = len(word) - len(ending)
        if rest >= 3 and word.endswith(ending) and not word.endswith("ss") and _VOWEL.search(word, 0, rest):
            word = word[:rest]
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] in "eiy" else word


def _plain(word: str) -> str:
    """Without accents and vowel signs, and with one letter for those that are written one for the other."""
    if word.isascii():
        return word
    word = unicodedata.normalize("NFC", _OPTIONAL.sub("", unicodedata.normalize("NFD", word))).translate(_ALIKE)
    return "".join(str(unicodedata.digit(c)) if c.isdigit() else c for c in word) if not word.isalpha() else word


_RUSSIAN = (
    "иями ями ами ого его ому ему ыми ими иях ией иям ием ях ах ов ев ей ой ий ый ом ем ам ям ых их ую юю ая яя ое ее"
    " ые ие ия ию а я о е ы и у ю ь"
)
_HINDI = "ियों ियां ाओं ाएं ुओं ओं ों ें ीं ां ा ि ी ु ू े ै ो"
_SCRIPTS = (
    ("\u0400", "\u04ff", 3, (), tuple(map(_plain, _RUSSIAN.split()))),
    ("\u05d0", "\u05ea", 4, tuple("והבלכמש"), ("יות", "ימ", "ות", "ית")),
    (
        *("\u0620", "\u06ff", 3),
        ("وال", "بال", "كال", "فال", "ولل", "لل", "ال", "و"),
        ("ها", "ات", "ون", "ين", "يه", "ان", "ه", "ي"),
    ),
    ("\u0904", "\u097f", 2, (), tuple(_HINDI.split())),
)
"""Scripts by their first and last letter: how much of a word stays at least, and which beginnings (one after the other)
and which ending it loses. Russian, Hebrew, Arabic (Larkey et al. 2007, light10), Hindi."""


def _bare(word: str, least: int, beginnings: tuple[str, ...], endings: tuple[str, ...]) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= least:
            word = word[: -len(ending)]
            break
    while (cut := next((one for one in beginnings if word.startswith(one)), "")) and len(word) - len(cut) >= least:
        word = word[len(cut) :]
    return word


def older(blob: bytes) -> bool:
    """Whether a blob is whole and of an earlier version, so that it has to be made anew from the lesson's text."""
    return len(blob) >= ENTRY and not len(blob) % ENTRY and 0 < int.from_bytes(blob[:4], "little") < VERSION


def searched(lesson: Lesson) -> str:
    """The text of a lesson that search terms are taken from. A query pair is found by its shape alone."""
    if lesson.nature == "query_pair":
        return lesson.query
    return "\n".join((lesson.title, lesson.description, lesson.content, lesson.query, lesson.kind, *lesson.tags))


def embedded(lesson: Lesson) -> str:
    """The text of a lesson that its vector is made from."""
    if lesson.nature == "query_pair":
        return lesson.query
    return "\n".join(part for part in (lesson.title, lesson.description, lesson.content) if part)
