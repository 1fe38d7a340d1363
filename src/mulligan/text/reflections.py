"""Scores reflections, and says why one should not be shown, by rules without a model.

Use it alone in your own reflector:

    quality = quality_of("…", trial=[task, attempt, feedback], earlier=[…], examples=[…])
    print(quality.score, quality.parts, quality.missing)

`fault` returns "", or a sentence that says why the reflection should not be shown. Both use the same measures: a part
with a fault is zero. design/040 and design/074 have the figures behind the thresholds.
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
"""The number of consecutive words that count as copied if an example contains them and the trial does not."""
COPIED = 0.45
"""The share of words in such runs from which a reflection is a copy."""
LONG_RUN = 9
"""The number of consecutive copied words that make any reflection a copy."""
REPEATED = 0.8
"""The share of common three-word runs from which one reflection repeats the other."""
MAX_CHARACTERS = 200_000
"""The number of characters of each text of a trial that are read."""
MIN_DETAILS, MAX_DETAILS, WORDS_PER_DETAIL = 1, 6, 6
"""A reflection is fully specific if it names one detail of its trial for every six words, at least one and at most six.
A quoted value, a name and a number count as two details."""
SIMILAR = (0.4, 0.8)
"""The likeness to an earlier reflection from which `new` falls below 1, and from which it is 0."""
MIN_PART = 0.5
"""A part below this value counts as missing."""
MAX_EARLIER = 20
"""The number of newest reflections that a new one is compared with, so that the cost of a try is bounded."""

_QUOTED = re.compile(r"'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|`([^`\n]{1,80})`|[“„‘«]([^”“’»\n]{1,80})[”“’»]")
_LETTER = re.compile(r"(?<![\w.'’-])[b-hj-zB-HJ-Z](?!\w|[.'’-]\w)")
"""A name of one letter, such as x, but not a, I, or a part of "e.g." or "it's"."""
_IN_NAMES = re.compile(r"[a-z][A-Z]|[^\W\d_]\d|[^\W_]_[^\W_]")
"""The parts that mark a word as a name: readFile, x1, read_file."""
_NUMBER = re.compile(r"(?<![\w.])-?\d(?:[\d.,:]*\d)?(?!\w)")
_POINT = re.compile(r"^[ \t]*\d+[.)][ \t]", re.MULTILINE)
"""The number of a list item, which is not about the trial."""
_UNSPACED = re.compile(f"[{UNSPACED}]")
_STEM = 5
"""The number of first characters of words that are compared, so that `rounds` equals `rounded`."""


def quality_of(
    reflection: str,
    *,
    trial: Iterable[str],
    earlier: Iterable[str] = (),
    examples: Iterable[str] = (),
    answers: Iterable[str] = (),
) -> Quality:
    """Returns the quality of a reflection, with a score from 0 to 1. Higher is better.

    Unknown parts are omitted: `new` without an earlier reflection, `original` without an example, `no_leak` without an
    answer, `specific` if the trial has no details to mention, and `causal` and `actionable` in a text without English
    words.

    Args:
        reflection: the text to score.
        trial: the texts of its trial: the task, the attempt with its steps, and the feedback.
        earlier: the earlier reflections on the same task.
        examples: the worked examples that the writer of the reflection saw.
        answers: the oracle's answers, which the next trial must not learn.
    """
    about = "\n".join(text[:MAX_CHARACTERS] for text in trial)
    parts: dict[str, float | None] = {
        "specific": _specific(reflection, about),
        "causal": _causal(reflection),
        "actionable": _actionable(reflection),
        "new": min((_newness(reflection, text) for text in earlier), default=None),
        "original": _original(reflection, tuple(filter(None, examples)), about),
        "no_leak": _no_leak(reflection, tuple(answers), about),
    }
    return scored({name: round(value, 3) for name, value in parts.items() if value is not None})


def scored(parts: Mapping[str, float]) -> Quality:
    """Returns the quality of these parts. The part `judged` is a model's score from 0 to 1.

    The content of a reflection counts only if it is about its trial, and does not repeat, copy or leak.
    """
    content = [parts[name] for name in ("causal", "actionable") if name in parts]
    worth = parts.get("specific", 1.0) * (0.5 + 0.5 * (sum(content) / len(content) if content else 0.5))
    if "judged" in parts:
        worth = (worth + parts["judged"]) / 2
    limit = min(parts.get(name, 1.0) for name in ("new", "original", "no_leak"))
    missing = tuple(MISSING[name] for name, value in parts.items() if value < MIN_PART and name in MISSING)
    return Quality(round(worth * limit, 3), parts, missing)


def quality_in(episode: Episode, number: int, text: str) -> Quality:
    """Scores a reflection on this trial of the episode."""
    visible = descent(episode, number, number)
    own = episode.trials[number - 1].reflection
    earlier = [each.text for each in visible.newest_reflections(MAX_EARLIER + 1) if each.text and each is not own]
    return quality_of(text, trial=trial_texts(visible), earlier=earlier)


def rated(reflection: Reflection, episode: Episode, number: int) -> Reflection:
    """Returns the reflection with its quality, for the record. A quality that its reflector set is kept.

    Only this function knows an oracle's answers. Reflectors do not learn that a reflection leaks one, since that would
    confirm the answer.
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
    feedback = trial.feedback.text if trial.feedback else ""
    return task_text(episode.task), trajectory_text(trial.attempt.steps), output_of(trial.attempt), feedback


def _oracle_answers(episode: Episode) -> tuple[str, ...]:
    """Returns the answers of the episode's evaluator if it is an oracle."""
    role = cast(Any, episode.head.settings.get("evaluator"))
    settings: Any = role.get("settings") if isinstance(role, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(settings, dict) or not cast(dict[str, Any], settings).get("oracle"):
        return ()
    values = [cast(dict[str, Any], settings).get(name) for name in ("answer", "answers")]
    answers = [one for value in values for one in (cast(list[Any], value) if isinstance(value, list) else [value])]
    return tuple(answer for answer in answers if isinstance(answer, str))


def fault(reflection: str, *, trial: Iterable[str], examples: Iterable[str] = (), earlier: Iterable[str] = ()) -> str:
    """Returns why a reflection should not be shown.

    Args:
        reflection: the text to check.
        trial: the texts of its trial: the task, the attempt and the feedback.
        examples: the worked examples that the reflection's writer was shown.
        earlier: the earlier reflections on the same task.

    Returns:
        One sentence, or "" if the reflection may be shown.
    """
    about = "\n".join(trial)
    if _is_copied(reflection, tuple(examples), about):
        return "It copies a worked example, which is about another task."
    if any(_is_repeated(reflection, text) for text in earlier):
        return "It repeats an earlier lesson, which was not enough."
    if not _is_grounded(reflection, about):
        return (
            "It is too general: it contains no value, no name and no specific word from the task, the attempt or the "
            "feedback."
        )
    return ""


def copied_share(reflection: str, examples: Iterable[str], about: str = "") -> float:
    """Returns the share of the reflection's words, 0 to 1, in runs that an example contains and `about` does not."""
    words = words_of(reflection)
    runs = _copied_runs(words, examples, about, RUN)
    copied = {at + n for at in range(len(words) - RUN + 1) if tuple(words[at : at + RUN]) in runs for n in range(RUN)}
    return len(copied) / max(len(words), 1)


def _copied_runs(words: Sequence[str], examples: Iterable[str], about: str, length: int) -> set[tuple[str, ...]]:
    """Returns the runs of this length that an example contains and `about` does not."""
    theirs = set[tuple[str, ...]]().union(*(runs_of(words_of(example), length) for example in examples))
    shared = runs_of(words, length) & theirs
    return shared - runs_of(words_of(about), length) if shared else shared


def _is_copied(reflection: str, examples: Sequence[str], about: str) -> bool:
    if _copied_runs(words_of(reflection), examples, about, LONG_RUN):
        return True
    return copied_share(reflection, examples, about) >= COPIED


def _is_repeated(reflection: str, earlier: str) -> bool:
    return likeness(reflection, earlier) >= REPEATED


def _stem(word: str) -> str:
    return (word if word.endswith("ss") else word.removesuffix("s"))[:_STEM]


def _stems(text: str) -> set[str]:
    """Returns the stems of uncommon words; in scripts without spaces, pairs of characters."""
    words = words_of(text)
    distinct = {*words}
    stems = {_stem(word) for word in distinct if len(word) > 2 and not word.isdigit()}
    characters = {word for word in distinct if len(word) == 1 and _UNSPACED.match(word)}
    pairs = {a + b for a, b in pairwise(words) if a in characters and b in characters} if characters else set[str]()
    return (stems - _COMMON_STEMS) | pairs


_COMMON_STEMS = frozenset(map(_stem, Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8").split()))


def specifics(text: str) -> set[str]:
    """Returns the specific details of a text: quoted literals, names as in programs, and numbers."""
    plain = unicodedata.normalize("NFKC", text)
    quoted = {match[match.lastindex or 0].strip().casefold() for match in _QUOTED.finditer(plain)} - {""}
    names = {word for word in re.findall(r"\w+", plain) if _IN_NAMES.search(word)} | set(_LETTER.findall(plain))
    return quoted | {name.casefold() for name in names} | set(_NUMBER.findall(_POINT.sub(" ", plain)))


def _is_grounded(reflection: str, about: str) -> bool:
    """Whether both share a detail or an uncommon word, or the trial has none."""
    lowered = unicodedata.normalize("NFKC", about).casefold()
    if any(_contains(lowered, detail) for detail in specifics(reflection)):
        return True
    theirs = _stems(about)
    return bool(_stems(reflection) & theirs) or not (theirs or specifics(about))


def _contains(text: str, part: str) -> bool:
    """Whether the text contains the part, and not only within a word."""
    if part not in text:  # avoids compiling a pattern as long as the part
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
    "judged": "A model judged it to be of little use.",
}
"""The comments on low parts."""

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
"""A verb at the beginning of a clause, as in an order."""
_ENGLISH = re.compile(
    r"\b(the|a|an|of|to|in|is|was|it|and|not|for|with|that|do|no|at|on|there|this|as|be|are)\b", re.IGNORECASE
)


def _specific(reflection: str, about: str) -> float | None:
    theirs = _stems(about)
    if not (theirs or specifics(about)):
        return None
    lowered = unicodedata.normalize("NFKC", about).casefold()
    ours, values = _compared(reflection)
    details = 2 * sum(_contains(lowered, value) for value in values) + len(ours & theirs)
    return min(1.0, details / min(max(len(words_of(reflection)) / WORDS_PER_DETAIL, MIN_DETAILS), MAX_DETAILS))


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
    """Returns how new a reflection is, 0 to 1: by its words or by its values, whichever is higher."""
    alike = likeness(reflection, earlier)
    if alike >= REPEATED:
        return 0.0
    (ours, values), (theirs, earlier_values) = _compared(reflection), _compared(earlier)
    overlap = len(ours & theirs) / len(ours | theirs) if ours | theirs else 0.0
    by_words = 1.0 - _rise((alike + overlap) / 2, *SIMILAR)
    return max(by_words, len(values - earlier_values) / len(values) if values else 0.0)


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
    """Returns 0 if the reflection contains an answer that the trial does not; None if no answer can be recognised."""
    runs = [
        run for answer in answers if (run := words_of(answer)) and (len(run) > 1 or _stems(answer) or len(run[0]) > 1)
    ]
    if not runs:
        return None
    ours, theirs = words_of(reflection), words_of(about)
    leaks = (_has_run(ours, run) and not _has_run(theirs, run) for run in runs if " ".join(run) not in _COMMON)
    return 0.0 if any(leaks) else 1.0


_COMMON = {"yes", "no", "true", "false", "none", "null"}


def _has_run(words: Sequence[str], run: Sequence[str]) -> bool:
    return any(words[at : at + len(run)] == run for at in range(len(words) - len(run) + 1))


def _rise(value: float, low: float, high: float) -> float:
    """Returns 0 up to `low`, 1 from `high`, and a linear value in between."""
    return min(1.0, max(0.0, (value - low) / (high - low)))
