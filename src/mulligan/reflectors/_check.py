"""Checks a reflection before the next trial is shown it, by rules over texts and without a model.

Works alone, in a reflector of your own: `fault("…", trial=[task, attempt, feedback], examples=[…], earlier=[…])`
gives "", or a sentence that says what is wrong. The figures behind the thresholds: design/040.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from mulligan.text.likeness import UNSPACED, likeness, runs_of, words_of

RUN = 5
"""So many words in a row that an example has too, and the trial has not, count as taken from the example."""
COPIED = 0.45
"""The share of a reflection's words in such runs from which on it is a copy."""
LONGEST = 9
"""So many words in a row are a copy whatever stands around them."""
REPEATED = 0.8
"""The share of three-word runs that two reflections have in common, of those of both, from which on one repeats the
other."""

_QUOTED = re.compile(r"'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|`([^`\n]{1,80})`|[“„‘«]([^”“’»\n]{1,80})[”“’»]")
_LETTER = re.compile(r"(?<![\w.'’-])[b-hj-zB-HJ-Z](?!\w|[.'’-]\w)")
"""A name of one letter, such as x: no a, no I, no part of "e.g." or "it's"."""
_IN_NAMES = re.compile(r"[a-z][A-Z]|[^\W\d_]\d|[^\W_]_[^\W_]")
"""What a word has inside that is a name: readFile, x1, read_file."""
_NUMBER = re.compile(r"(?<![\w.])-?\d(?:[\d.,:]*\d)?(?!\w)")
_POINT = re.compile(r"^[ \t]*\d+[.)][ \t]", re.MULTILINE)
"""The number of a point in a list, which says nothing of a trial."""
_STEM = 5
"""Characters by which words are compared, so that `rounds` and `rounded` are one."""


def fault(reflection: str, *, trial: Iterable[str], examples: Iterable[str] = (), earlier: Iterable[str] = ()) -> str:
    """Says why the reflection should not be shown.

    Args:
        reflection: the text to check.
        trial: the texts of the trial that it is about: task, attempt, feedback.
        examples: worked examples that the writer of the reflection was shown.
        earlier: the reflections before it on the same task.

    Returns:
        One sentence, or "" if the reflection may be shown.
    """
    about = "\n".join(trial)
    if _is_copied(reflection, tuple(examples), about):
        return "It copies a worked example, which is about another task."
    if any(_is_repeated(reflection, each) for each in earlier):
        return "It repeats an earlier lesson, which was not enough."
    if not _is_grounded(reflection, about):
        return (
            "It names nothing of this trial: no value, no name and no particular word of the task, attempt or feedback."
        )
    return ""


def copied_share(reflection: str, examples: Iterable[str], about: str = "") -> float:
    """The share of the reflection's words in runs that an example has and `about` has not, 0 to 1."""
    words = words_of(reflection)
    taken = _taken(words, examples, about, RUN)
    inside = {at + n for at in range(len(words) - RUN + 1) if tuple(words[at : at + RUN]) in taken for n in range(RUN)}
    return len(inside) / max(len(words), 1)


def _taken(words: Sequence[str], examples: Iterable[str], about: str, length: int) -> set[tuple[str, ...]]:
    """The runs of this length that an example has, too, and `about` has not."""
    shared = runs_of(words, length) & set[tuple[str, ...]]().union(
        *(runs_of(words_of(each), length) for each in examples)
    )
    return shared - runs_of(words_of(about), length) if shared else shared


def _is_copied(reflection: str, examples: Sequence[str], about: str) -> bool:
    if _taken(words_of(reflection), examples, about, LONGEST):
        return True
    return copied_share(reflection, examples, about) >= COPIED


def _is_repeated(reflection: str, earlier: str) -> bool:
    return likeness(reflection, earlier) >= REPEATED


def _stem(word: str) -> str:
    return (word if word.endswith("ss") else word.removesuffix("s"))[:_STEM]


def _stems(text: str) -> set[str]:
    """The words that are not common ones, by their beginnings; of scripts without spaces, pairs of characters."""
    words = words_of(text)
    spaced = {_stem(word) for word in words if len(word) > 2 and not word.isdigit()}
    pairs = {a + b for a, b in pairwise(words) if _unspaced(a) and _unspaced(b)}
    return (spaced - _COMMON_STEMS) | pairs


def _unspaced(word: str) -> bool:
    return len(word) == 1 and re.match(rf"[{UNSPACED}]", word) is not None


_COMMON_STEMS = frozenset(map(_stem, Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8").split()))


def specifics(text: str) -> set[str]:
    """What can only be of one matter: quoted literals, names as programs have them, numbers."""
    plain = unicodedata.normalize("NFKC", text)
    quoted = {found[found.lastindex or 0].strip().casefold() for found in _QUOTED.finditer(plain)}
    named = {word for word in re.findall(r"\w+", plain) if _IN_NAMES.search(word)} | set(_LETTER.findall(plain))
    return (
        {each for each in quoted if each}
        | {name.casefold() for name in named}
        | set(_NUMBER.findall(_POINT.sub(" ", plain)))
    )


def _is_grounded(reflection: str, about: str) -> bool:
    """Whether they share something that is not common; also where the trial has nothing of the kind to be named."""
    lowered = unicodedata.normalize("NFKC", about).casefold()
    if any(_stands_in(each, lowered) for each in specifics(reflection)):
        return True
    theirs = _stems(about)
    return bool(_stems(reflection) & theirs) or not (theirs or specifics(about))


def _stands_in(part: str, text: str) -> bool:
    """Whether the part stands in the text, and not within a word."""
    before = r"(?<!\w)" if part[0].isalnum() else ""
    after = r"(?!\w)" if part[-1].isalnum() else ""
    return re.search(f"{before}{re.escape(part)}{after}", text) is not None
