"""Scores a reflection by parts, and says why one should not be shown: rules over texts, without a model.

Works alone, in a reflector of your own:

    quality = quality_of("…", trial=[task, attempt, feedback], earlier=[…], examples=[…])
    print(quality.score, quality.parts, quality.missing)

`fault` gives "", or a sentence that says why the reflection should not be shown at all. The two share their measures:
what is a fault is a part at zero. The figures behind the thresholds: design/040 and design/074.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from mulligan.core.records import Episode, Quality, Reflection
from mulligan.core.search import descent
from mulligan.text.formatting import task_text, trajectory_text
from mulligan.text.likeness import UNSPACED, likeness, runs_of, words_of
from mulligan.text.thoughts import output_of

RUN = 5
"""The number of consecutive words that count as taken from an example, if the example has them and the trial not."""
COPIED = 0.45
"""The share of words in such runs from which a reflection is a copy."""
LONGEST = 9
"""The number of consecutive words that are a copy in any case."""
REPEATED = 0.8
"""The share of common three-word runs from which one reflection repeats the other."""
LONG = 200_000
"""The most characters that are read of each text of a trial."""
FEWEST, MOST, EVERY = 1, 6, 6
"""A reflection is fully specific if it names one thing of its trial for every six words, at least one and at most six.
A quoted value, a name and a number count as two things."""
ALIKE = (0.4, 0.8)
"""The likeness to an earlier reflection from which `new` falls below 1, and from which it is 0."""
LOW = 0.5
"""A part below this value counts as missing."""
MAX_EARLIER = 20
"""The number of newest reflections that a new one is compared with, so that the cost of a try is bounded."""

_QUOTED = re.compile(r"'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|`([^`\n]{1,80})`|[“„‘«]([^”“’»\n]{1,80})[”“’»]")
_LETTER = re.compile(r"(?<![\w.'’-])[b-hj-zB-HJ-Z](?!\w|[.'’-]\w)")
"""A name of one letter, such as x, but not a, I, or a part of "e.g." or "it's"."""
_IN_NAMES = re.compile(r"[a-z][A-Z]|[^\W\d_]\d|[^\W_]_[^\W_]")
"""The inner parts by which a word is a name: readFile, x1, read_file."""
_NUMBER = re.compile(r"(?<![\w.])-?\d(?:[\d.,:]*\d)?(?!\w)")
_POINT = re.compile(r"^[ \t]*\d+[.)][ \t]", re.MULTILINE)
"""The number of a list item, which is not about the trial."""
_UNSPACED = re.compile(f"[{UNSPACED}]")
_STEM = 5
"""The number of first characters by which words are compared, so that `rounds` equals `rounded`."""


def quality_of(
    reflection: str,
    *,
    trial: Iterable[str],
    earlier: Iterable[str] = (),
    examples: Iterable[str] = (),
    answers: Iterable[str] = (),
) -> Quality:
    """Scores a reflection, 0 to 1, higher is better.

    A part that cannot be known is left out: `new` without an earlier reflection, `original` without an example,
    `no_leak` without an answer, `specific` where the trial has nothing particular to name, `causal` and `actionable` in
    a text without English words.

    Args:
        reflection: the text to score.
        trial: the texts of the trial that it is about: task, attempt with its steps, feedback.
        earlier: the reflections before it on the same task.
        examples: worked examples that the writer of the reflection was shown.
        answers: what an oracle expects and the next trial must not be told.
    """
    about = "\n".join(part[:LONG] for part in trial)
    parts: dict[str, float | None] = {
        "specific": _specific(reflection, about),
        "causal": _causal(reflection),
        "actionable": _actionable(reflection),
        "new": min((_newness(reflection, each) for each in earlier), default=None),
        "original": _original(reflection, tuple(filter(None, examples)), about),
        "no_leak": _no_leak(reflection, tuple(answers), about),
    }
    return scored({name: round(value, 3) for name, value in parts.items() if value is not None})


def scored(parts: Mapping[str, float]) -> Quality:
    """The quality of these parts, in which `judged` is the opinion of a model, 0 to 1.

    What a reflection says counts only as far as it is about its trial, and not at all if it repeats, copies or leaks.
    """
    says = [parts[name] for name in ("causal", "actionable") if name in parts]
    worth = parts.get("specific", 1.0) * (0.5 + 0.5 * (sum(says) / len(says) if says else 0.5))
    if "judged" in parts:
        worth = (worth + parts["judged"]) / 2
    held = min(parts.get(name, 1.0) for name in ("new", "original", "no_leak"))
    missing = tuple(MISSING[name] for name, value in parts.items() if value < LOW and name in MISSING)
    return Quality(round(worth * held, 3), parts, missing)


def quality_in(episode: Episode, number: int, text: str) -> Quality:
    """Scores a reflection on this trial of the episode."""
    seen = descent(episode, number, number)
    trial = episode.trials[number - 1]
    before = [
        each.text for each in seen.newest_reflections(MAX_EARLIER + 1) if each.text and each is not trial.reflection
    ]
    return quality_of(text, trial=trial_texts(seen), earlier=before)


def rated(reflection: Reflection, episode: Episode, number: int) -> Reflection:
    """Returns the reflection with its quality, as it is recorded.

    A score that its reflector gave it stays. What an oracle expects is known only here: whoever writes or shows a
    reflection is not told that it leaks, as that would say that the answer is right.
    """
    if not reflection.text:
        return reflection
    quality = reflection.quality or quality_in(episode, number, reflection.text)
    if answers := _oracle_answers(episode):
        leak = _no_leak(reflection.text, answers, "\n".join(trial_texts(descent(episode, number, number))))
        quality = quality if leak is None else scored({**quality.parts, "no_leak": leak})
    return replace(reflection, quality=quality)


def quality_words(quality: Quality) -> str:
    """Returns the score and its parts on one line."""
    parts = ", ".join(f"{name} {value:.2f}".rstrip("0").rstrip(".") for name, value in quality.parts.items())
    return f"quality {quality.score:.2f}{f' ({parts})' if parts else ''}"


AfterLesson: TypeAlias = Literal["passed", "better", "no better"]


def after_lesson(episode: Episode, number: int) -> AfterLesson | None:
    """Returns whether the next trial that grew from this one passed, scored higher, or neither; None if unknown."""
    before = episode.trials[number - 1].feedback
    grown = (trial for trial in episode.trials[number:] if trial.parent in (None, number))
    after = next((trial.feedback for trial in grown), None)
    if before is None or after is None or after.passed is None:
        return None
    known = before.score is not None and after.score is not None
    higher = known and (after.score or 0.0) > (before.score or 0.0)
    return "passed" if after.passed else "better" if higher else "no better"


def trial_texts(episode: Episode) -> tuple[str, ...]:
    """Returns the texts that a reflection on the newest trial may refer to: task, steps, output and feedback."""
    trial = episode.trials[-1]
    said = trial.feedback.text if trial.feedback else ""
    return task_text(episode.task), trajectory_text(trial.attempt.steps), output_of(trial.attempt), said


def _oracle_answers(episode: Episode) -> tuple[str, ...]:
    """Returns the answers that the episode's evaluator has as an oracle."""
    role = cast(Any, episode.head.settings.get("evaluator"))
    settings: Any = role.get("settings") if isinstance(role, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(settings, dict) or not cast(dict[str, Any], settings).get("oracle"):
        return ()
    given = [cast(dict[str, Any], settings).get(name) for name in ("answer", "answers")]
    flat = [one for each in given for one in (cast(list[Any], each) if isinstance(each, list) else [each])]
    return tuple(one for one in flat if isinstance(one, str))


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
            "It is too general: it contains no value, no name and no specific word from the task, the attempt or the "
            "feedback."
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
    different = {*words}
    spaced = {_stem(word) for word in different if len(word) > 2 and not word.isdigit()}
    characters = {word for word in different if len(word) == 1 and _UNSPACED.match(word)}
    pairs = {a + b for a, b in pairwise(words) if a in characters and b in characters} if characters else set[str]()
    return (spaced - _COMMON_STEMS) | pairs


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
    if part not in text:  # spares a pattern as long as the part
        return False
    before = r"(?<!\w)" if part[0].isalnum() else ""
    after = r"(?!\w)" if part[-1].isalnum() else ""
    return re.search(f"{before}{re.escape(part)}{after}", text) is not None


# --- parts --------------------------------------------------------------------------------------------------------

MISSING: Mapping[str, str] = {
    "specific": "It names too little of this trial: steps, values or places of the task, attempt or feedback.",
    "causal": "It does not say why the attempt failed.",
    "actionable": "It does not say what to do differently.",
    "new": "It says little that an earlier lesson did not say.",
    "original": "Much of it is taken from a worked example.",
    "no_leak": "It gives away what the oracle expects.",
    "judged": "The model that was asked finds it of little use.",
}
"""What is said of a part that is low."""

_WHY = re.compile(
    r"\b(because|since|so|thus|therefore|hence|why|reasons?|caus\w+|due to|lead(s|ing)? to|led to|result(s|ed|ing)? in|"
    r"means?|meant|which is|explains?)\b|\w: \w",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r"\b(but|instead|rather|although|though|whereas|while|however|yet|not|no|never|nothing|only|without|wrong|missing|"
    r"too|where|cannot|\w+n['’]t)\b",
    re.IGNORECASE,
)
_TO_DO = re.compile(
    r"\b(should|must|ought|(need|has|have|is|are) to|had better|next (time|attempt|trial|try|step)|I(['’]| wi)ll|will|"
    r"let me|let us|going to|do not|don['’]t)\b",
    re.IGNORECASE,
)
_VERBS = Path(__file__).with_name("order_verbs.txt").read_text(encoding="utf-8").split()
_ORDER = re.compile(
    rf"(?:^|[.;:!?,] |\b(?:and|then|or|first|instead|next|please) )(?:{'|'.join(_VERBS)})\b", re.IGNORECASE
)
"""A verb that begins a clause, as in an order."""
_ENGLISH = re.compile(
    r"\b(the|a|an|of|to|in|is|was|it|and|not|for|with|that|do|no|at|on|there|this|as|be|are)\b", re.IGNORECASE
)


def _specific(reflection: str, about: str) -> float | None:
    theirs = _stems(about)
    if not (theirs or specifics(about)):
        return None
    lowered = unicodedata.normalize("NFKC", about).casefold()
    ours, values = _compared(reflection)
    named = {each for each in values if _stands_in(each, lowered)}
    things = 2 * len(named) + len(ours & theirs)
    return min(1.0, things / min(max(len(words_of(reflection)) / EVERY, FEWEST), MOST))


def _causal(reflection: str) -> float | None:
    if not _ENGLISH.search(reflection):
        return None
    return 1.0 if _WHY.search(reflection) else 0.5 if _CONTRAST.search(reflection) else 0.0


def _actionable(reflection: str) -> float | None:
    if not _ENGLISH.search(reflection):
        return None
    if _TO_DO.search(reflection) or _ORDER.search(reflection):
        return 1.0
    return 0.5 if re.search(r"\b(instead|rather)\b", reflection, re.IGNORECASE) else 0.0


def _newness(reflection: str, earlier: str) -> float:
    """1 for what has nothing of the earlier one; what names other values than that one is as new as these."""
    if _is_repeated(reflection, earlier):
        return 0.0
    (mine, values), (theirs, known) = _compared(reflection), _compared(earlier)
    words = len(mine & theirs) / len(mine | theirs) if mine | theirs else 0.0
    fresh = 1.0 - _rise((likeness(reflection, earlier) + words) / 2, *ALIKE)
    return max(fresh, len(values - known) / len(values) if values else 0.0)


@lru_cache(maxsize=64)
def _compared(reflection: str) -> tuple[set[str], set[str]]:
    return _stems(reflection), specifics(reflection)


def _original(reflection: str, examples: Sequence[str], about: str) -> float | None:
    if not examples:
        return None
    if _is_copied(reflection, examples, about):
        return 0.0
    return 1.0 - copied_share(reflection, examples, about)


def _no_leak(reflection: str, answers: Sequence[str], about: str) -> float | None:
    """0 if an answer stands in the reflection and not in the trial. None if no answer can be recognised."""
    telling = [
        run for answer in answers if (run := words_of(answer)) and (len(run) > 1 or _stems(answer) or len(run[0]) > 1)
    ]
    if not telling:
        return None
    words, known = words_of(reflection), words_of(about)
    leaks = (_holds(words, run) and not _holds(known, run) for run in telling if " ".join(run) not in _COMMON)
    return 0.0 if any(leaks) else 1.0


_COMMON = {"yes", "no", "true", "false", "none", "null"}


def _holds(words: Sequence[str], run: Sequence[str]) -> bool:
    return any(words[at : at + len(run)] == run for at in range(len(words) - len(run) + 1))


def _rise(value: float, low: float, high: float) -> float:
    """Returns 0 up to `low`, 1 from `high`, and a linear value in between."""
    return min(1.0, max(0.0, (value - low) / (high - low)))
