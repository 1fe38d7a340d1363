"""Split a text into search terms: stable hashes with counts, stored as one small blob per lesson.

Words are case-folded and lose accents, vowel signs and common endings (`_SCRIPTS`). Long words, which may be compounds,
also give their beginnings and ends, and identifiers give their parts. Text written without spaces (Chinese, Japanese,
Korean, Thai) gives single characters and pairs, so that any substring is found. Single Latin letters and signs count
only for a query that has nothing else: see design/036.
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
"""The first bytes of every blob. Raise it when texts give other terms: older blobs are then computed again."""

LANGUAGES = ("en", "de", "fr", "es", "nl", "it", "pt", "tr", "ru", "ar", "he", "hi", "zh", "ja", "ko", "")
"""The languages that are told apart, "" for any other. Those up to "ja" are the paragraphs of common_words.txt."""

RAREST = 0.015
"""The commonness of a term that is not a common word."""

_HEAD = VERSION.to_bytes(4, "little")

ENTRY = 5
"""Bytes of one entry: the hash (4, little-endian) and the count (1); in the first one, the version and the language."""

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
_LOOSE = re.compile(rf"(?<![\w{_MARKS}])[\u0300-\u036f]+")
_OPTIONAL = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u093c]")
"""Signs that the same word is written with and without: accents, Hebrew and Arabic vowel signs, and signs that stretch
a word or mark a foreign sound."""
_SPELLINGS = (
    "iı lł oø dđð hħ tŧ \u0627أإآٱ \u064aىئی \u0648ؤ \u0647ة \u0643ک"
    " \u05db\u05da \u05de\u05dd \u05e0\u05df \u05e4\u05e3 \u05e6\u05e5 \u0902\u0901"
)
_ALIKE = {ord(other): one[0] for one in _SPELLINGS.split() for other in one[1:]}
"""Maps letters to the first letter of their group, which is often written instead."""
_VOWEL = re.compile("[aeiouy]")
_ENDINGS = ("ungen", "ung", "ings", "ing", "ied", "ies", "ed", "es", "ers", "er", "ens", "en", "em", "e", "s")
LONG_WORD, SHORTEST_PART = 13, 6
"""A word of at least `LONG_WORD` letters also gives its beginnings and ends of at least `SHORTEST_PART` letters."""


def _normal(text: str) -> str:
    """The text in its compatible form. An accent without a letter, such as "´", goes: it would join the next word."""
    text = unicodedata.normalize("NFKC", text)
    return text if text.isascii() else _LOOSE.sub(" ", text)


def terms(text: str) -> Iterator[str]:
    """The terms of a text in order, each as often as it occurs."""
    text = _normal(text)
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
    found = _WEAK.findall(_normal(text))
    return iter(dict.fromkeys(_plain(sign.strip("_").casefold()) for sign in found))


def terms_of(text: str) -> bytes:
    """The terms of a text as the blob that is stored with a lesson. Equal texts give equal bytes in every process."""
    counts = Counter(_hash(term) for term in (*terms(text), *_weak(text)))
    entries = b"".join(hash.to_bytes(4, "little") + bytes((min(counts[hash], 255),)) for hash in sorted(counts))
    return _HEAD + bytes((language_of(text),)) + entries


def read_blobs(blobs: list[bytes]) -> tuple[Array, Array, Array]:
    """The hashes (uint32) and counts (uint8) of all blobs, and the number of entries of each blob.

    A blob that is empty, damaged or of another version has no entries.
    """
    import numpy as np

    usable = [blob if is_current(blob) else _HEAD + b"\0" for blob in blobs]
    sizes = np.fromiter((len(blob) // ENTRY for blob in usable), np.int64, len(usable))
    entries = np.frombuffer(b"".join(usable), np.dtype([("hash", "<u4"), ("count", "u1")]))
    body = np.ones(len(entries), bool)
    body[np.cumsum(sizes) - sizes] = False
    return entries["hash"][body], entries["count"][body], sizes - 1


def languages_of(blobs: list[bytes]) -> list[int]:
    """The language of each blob's text: see `language_of`."""
    return [blob[4] if is_current(blob) else 0 for blob in blobs]


def language_of(text: str) -> int:
    """The language of a text as an index of `LANGUAGES`, judged by its scripts and its most frequent words.

    Text that gives no hint, such as code, counts as English.
    """
    text = text[:LANGUAGE_SAMPLE]
    scripts = () if text.isascii() else map(_script_language, text)
    letters = Counter(script for script in scripts if script is not None)
    not_latin = letters.total() - letters[""]
    if 4 * not_latin > letters.total():
        del letters[""]
        return LANGUAGES.index("ja" if letters["ja"] else letters.most_common(1)[0][0])
    words = re.findall(r"[^\W\d_]+", text.casefold())
    hits = Counter(language for word in words for language in _small_words().get(word, ()))
    hits.update(LANGUAGES.index(_OWN_LETTERS[letter]) for letter in {*text.casefold()} & {*_OWN_LETTERS})
    accented = any(not word.isascii() for word in words)
    best = max(hits, key=lambda one: (hits[one], -one), default=len(LANGUAGES) - 1 if accented else 0)
    return best if hits[best] > hits[0] or (accented and not hits[0]) else 0


def weighted_terms(text: str) -> tuple[Array, Array, Array]:
    """The terms of a query: their hashes (uint32), how often each occurs in it, and how common each is anywhere."""
    import numpy as np

    counts = Counter(terms(text)) or Counter(_weak(text))
    hashes = np.fromiter((_hash(term) for term in counts), np.uint32, len(counts))
    times = np.fromiter(counts.values(), np.float64, len(counts))
    return hashes, times, np.fromiter((commonness(term) for term in counts), np.float64, len(counts))


def commonness(term: str) -> float:
    """The approximate share of short texts that hold a term, for a bank too young to have counts of its own."""
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
    """The common words of each language, the most frequent first."""
    text = Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8")
    return [words.split() for words in re.sub(r"(?m)^#.*\n", "", text).strip().split("\n\n")]


@cache
def _ranks() -> dict[str, int]:
    ranks: dict[str, int] = {}
    for words in _common_words():
        for rank, word in enumerate(words, 1):
            # A word in a script without spaces counts whole: its letters occur in other words, too.
            for term in (word,) if _RUNS.fullmatch(word)[1] else terms(word):  # pyright: ignore[reportOptionalSubscript]
                ranks[term] = min(rank, ranks.get(term, rank))
    return ranks


LANGUAGE_SAMPLE = 1000
"""Characters at the beginning of a text by which its language is judged."""
SMALL_WORDS = 300
"""How many words of each language, the most frequent, are used to recognise it."""
_OWN_LETTERS = {"ı": "tr", "ğ": "tr", "ş": "tr", "ß": "de", "ñ": "es", "ã": "pt", "õ": "pt"}
"""Letters that only one of these languages uses."""


@cache
def _small_words() -> dict[str, tuple[int, ...]]:
    """The languages, by each of their most frequent words."""
    languages: dict[str, tuple[int, ...]] = {}
    for language, words in enumerate(_common_words()):
        for word in words[:SMALL_WORDS]:
            languages[word] = (*languages.get(word, ()), language)
    return languages


_SCRIPT_BLOCKS = (
    (0x0400, 0x052F, "ru"),
    (0x0590, 0x05FF, "he"),
    (0x0600, 0x077F, "ar"),
    (0x0900, 0x097F, "hi"),
    (0x1100, 0x11FF, "ko"),
    (0x3040, 0x30FF, "ja"),
    (0x3400, 0x9FFF, "zh"),
    (0xAC00, 0xD7AF, "ko"),
)
"""The first and last code of a block of letters, and the language that it stands for."""


def _script_language(letter: str) -> str | None:
    """The language that a letter's script stands for: "" for Latin script, None if it is not a letter."""
    code = ord(letter)
    if code < 0x250:
        return "" if letter.isalpha() else None
    return next((language for first, last, language in _SCRIPT_BLOCKS if first <= code <= last), None)


def _hash(term: str) -> int:
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


def is_current(blob: bytes) -> bool:
    """Whether a blob is whole and of this version, so that its lesson can be found."""
    return blob.startswith(_HEAD) and len(blob) % ENTRY == 0 and len(blob) > 0


def _identifier(word: str) -> Iterator[str]:
    """The terms of an identifier or number: `readFile_v2.txt` whole, and as read, file, v2 and txt."""
    parts = [part for piece in _SEAMS.split(word) for part in _CAMEL.split(piece) if part]
    if len(parts) > 1:
        yield word.replace(",", "").casefold()
    for part in parts:
        yield from _word(part)


def _word(word: str) -> Iterator[str]:
    """The stem of a word, with the beginnings and ends of a long one: `Datenbank` finds `Datenbanksperre`."""
    stem = _stem(_plain(word.casefold()))
    if len(stem) > 1 or not (stem.isascii() and stem.isalpha()):
        yield stem
    if len(stem) >= LONG_WORD and stem.isalpha():
        yield from (stem[:end] for end in range(SHORTEST_PART, len(stem) - 3))
        yield from (stem[start:] for start in range(4, len(stem) - SHORTEST_PART + 1))


def _stem(word: str) -> str:
    """The word without its ending, so that times and timed, or Rechnung and Rechnungen, are one term."""
    for first, last, shortest, prefixes, endings in _SCRIPTS:
        if first <= word[:1] <= last:
            return _without_affixes(word, shortest, prefixes, endings)
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
    """The word without accents and vowel signs, with interchangeable letters made equal."""
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
        "\u0620",
        "\u06ff",
        3,
        ("وال", "بال", "كال", "فال", "ولل", "لل", "ال", "و"),
        ("ها", "ات", "ون", "ين", "يه", "ان", "ه", "ي"),
    ),
    ("\u0904", "\u097f", 2, (), tuple(_HINDI.split())),
)
"""For the words of a script, given by its first and last letter: how many letters stay at least, which prefixes a word
loses one after another, and which ending. Russian, Hebrew, Arabic (Larkey et al. 2007, light10) and Hindi."""


def _without_affixes(word: str, shortest: int, prefixes: tuple[str, ...], endings: tuple[str, ...]) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= shortest:
            word = word[: -len(ending)]
            break
    while (prefix := next(filter(word.startswith, prefixes), "")) and len(word) - len(prefix) >= shortest:
        word = word[len(prefix) :]
    return word


def is_outdated(blob: bytes) -> bool:
    """Whether a blob is whole and of an earlier version, so that it must be computed again from the lesson's text."""
    return len(blob) >= ENTRY and not len(blob) % ENTRY and 0 < int.from_bytes(blob[:4], "little") < VERSION


def search_text(lesson: Lesson) -> str:
    """The text of a lesson that its search terms come from. A query pair is found by its shape alone."""
    if lesson.nature == "query_pair":
        return lesson.query
    tasks = (lesson.query, *lesson.other_queries)
    return "\n".join((lesson.title, lesson.description, lesson.content, *tasks, lesson.kind, *lesson.tags))


def embedding_text(lesson: Lesson) -> str:
    """The text of a lesson that its vector comes from."""
    if lesson.nature == "query_pair":
        return lesson.query
    return "\n".join(part for part in (lesson.title, lesson.description, lesson.content) if part)
