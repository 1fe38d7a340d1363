"""Draw facts by rule: the values that failed checks expect, kept word for word. No model is asked."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from mulligan.core.records import Episode, Finding, Json, Lesson, Origin
from mulligan.text.evidence import expected_by, findings_of

MOST, CHECKS = 3, 4
"""Facts of one episode, and checks in one fact: the most informative."""
RULE = "rule"
"""What `Origin.by` says of a fact that was drawn without a model."""

_CALLED = re.compile(r"[A-Za-z_][\w.]*(?=\()")
_NO_SUBJECT = {*dir(builtins), "assert_eq", "assert_ne", "pytest.approx", "approx"}
_PYTEST = re.compile(r"^>\s+(assert\b.+)$", re.MULTILINE)
_GUESSED = ("oracle", "internal_tests", "model_judge", "review")
"""Sources of feedback whose checks a model made up, or that know the target."""
_PLAIN = re.compile(r"(True|False|None|-?\d|\[\]|\{\}|\(\)|''|\"\")\Z")


@dataclass(frozen=True)
class Check:
    """A check that failed in a trial: what it asked, the value that it expects, and what came back."""

    asked: str
    expected: str
    got: str
    trial: int

    @property
    def text(self) -> str:
        """The check, word for word."""
        return self.asked if self.expected in self.asked else f"{self.asked}\nexpected: {self.expected}"


def facts_of(episode: Episode, project: str, also: Container[str] = ()) -> tuple[Lesson, ...]:
    """Drafts of the facts that the failed checks of this episode reveal, the most informative first.

    also: checks that count though they passed.

    Each check counts once, with the value of the newest trial. A fact holds the checks of one subject. It is confirmed
    if the episode was solved, or a later trial passed these checks. A judge whose checks a model made up, or that knows
    the target, reveals nothing.
    """
    task = " ".join(episode.task.prompt.split())
    checks = sorted(_checks(episode, also), key=lambda check: _named_by_task(check, task))
    by_subject: dict[str, list[Check]] = {}
    for check in checks:
        if not (_named_by_task(check, task) and _PLAIN.match(check.expected)):
            by_subject.setdefault(subject_of_check(check.asked), []).append(check)
    passed = passed_checks([episode])
    return tuple(
        _fact(episode, project, subject, several[:CHECKS], passed)
        for subject, several in list(by_subject.items())[:MOST]
    )


def passed_checks(episodes: Iterable[Episode]) -> frozenset[str]:
    """The checks that an attempt has passed."""
    found = (finding for episode in episodes for _, finding in _found(episode))
    return frozenset(finding.asked for finding in found if finding.passed and finding.asked)


def claims(fact: Lesson) -> Mapping[str, str]:
    """What a fact says, by what it says it of: the value of each check, or its whole content by its title."""
    values = dict(claim_of(asked, expected) for asked, expected in checks_of(fact).items())
    return values or {_folded(fact.title): _folded(fact.content)}


def checks_of(fact: Lesson) -> Mapping[str, str]:
    """The checks that a fact holds, with the values that they expect; none of a fact by hand."""
    listed = fact.context.get("checks")
    checks = cast(list[Mapping[str, Json]], listed) if isinstance(listed, list) else []
    return {str(one["asked"]): str(one["expected"]) for one in checks if {"asked", "expected"} <= set(one)}


def claim_of(asked: str, expected: str = "") -> tuple[str, str]:
    """What a check says something of, and what: the check without its value, and the value."""
    expected = expected or expected_by(asked)
    before, value, after = asked.rpartition(expected) if expected else (asked, "", "")
    return (f"{before}…{after}" if value else asked), expected


def contradicts(new: Mapping[str, str], old: Mapping[str, str]) -> bool:
    """Whether the newer claims give another value for something that the older ones speak of."""
    return any(old[asked] != value for asked, value in new.items() if asked in old)


def subject_of(lesson: Lesson) -> str:
    """What a fact is about: the subject of its first check, else its title; "" for a strategy."""
    if lesson.nature != "fact":
        return ""
    asked = next(iter(checks_of(lesson)), None)
    return _folded(lesson.title) if asked is None else subject_of_check(asked)


def subject_of_check(asked: str) -> str:
    """The first function that a check calls, else the beginning of the check."""
    called = (name for name in _CALLED.findall(asked) if name not in _NO_SUBJECT)
    return next(called, " ".join(asked.split())[:80])


def _fact(episode: Episode, project: str, subject: str, checks: Sequence[Check], passed: frozenset[str]) -> Lesson:
    solved, value = episode.solved, _named(checks[0].expected)
    first = " ".join(episode.task.prompt.split())
    first = first if len(first) <= 160 else f"{first[:159]}…"
    return Lesson(
        id="",
        title=f"{subject} gives {value}" if subject in _CALLED.findall(checks[0].asked) else f"{subject}: {value}",
        description=f"From the task: {first}",
        content="\n".join(check.text for check in checks),
        outcome="success" if solved else "failure",
        query=episode.task.prompt,
        origin=Origin("extracted", episode.id, checks[0].trial, by=RULE),
        context={"checks": [{"asked": c.asked, "expected": c.expected, "got": c.got} for c in checks]},
        nature="fact",
        project=project,
        subject=subject,
        confirmed=solved or all(check.asked in passed for check in checks),
    )


def _checks(episode: Episode, also: Container[str]) -> Iterator[Check]:
    """The checks that failed, newest trial first, each once."""
    seen: set[str] = set()
    for trial, finding in _found(episode):
        counts = not finding.passed or finding.asked in also
        for one in (finding, *_of_pytest(finding)) if counts else ():
            expected = one.expected or expected_by(one.asked)
            if one.asked and expected and one.asked not in seen:
                seen.add(one.asked)
                yield Check(one.asked, expected, one.got, trial)


def _found(episode: Episode) -> Iterator[tuple[int, Finding]]:
    """What judges found, with the number of the trial, the newest trial first. Not those that are no evidence."""
    for trial in reversed(episode.trials):
        if trial.feedback is not None and trial.feedback.source not in _GUESSED:
            yield from ((trial.number, finding) for finding in findings_of(trial.feedback))


def _of_pytest(finding: Finding) -> Iterator[Finding]:
    """The asserts that pytest's output shows as failed."""
    for asked in _PYTEST.findall(finding.got):
        yield Finding(asked.strip(), where=finding.asked)


def _named_by_task(check: Check, task: str) -> bool:
    """Whether the task itself names the value."""
    return check.expected in task or _named(check.expected).removeprefix("the form ") in task


def _named(value: str) -> str:
    """The value for a title: of a text, its form."""
    try:
        literal = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        literal = value
    text = f"the form {literal}" if isinstance(literal, str) and literal and literal is not value else value
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
