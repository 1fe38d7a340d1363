"""Draw facts by rules: the values that failed checks expect, the actions that were refused with those that worked, and
what observations state.

All is kept word for word. No model is asked.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import cast

from mulligan.core.codec import digest
from mulligan.core.lessons import RULE
from mulligan.core.records import Episode, Finding, Json, Lesson, Origin, Step, Trial
from mulligan.text.actions import observed_line, refused
from mulligan.text.evidence import expected_by, findings_of
from mulligan.text.plain import one_line
from mulligan.text.thoughts import output_of
from mulligan.text.times import day

MOST, CHECKS = 3, 4
"""Facts of one episode (of checks, and of steps), and checks in one fact: the most informative."""
ACTION, ANSWER = 600, 200
"""Characters of an action (or an attempt) and of an answer that a fact may quote."""
ALIKE = 0.5
"""How alike a failed action and the one that mends it are, 0 to 1."""
FAILS, WORKS = "fails", "works"
_WORKS = f"{WORKS}: "
PASSES = "passes:"
"""The line of a fact of checks below which the attempt stands that passed them."""
ERROR = "error:"
"""Begins the key by which a fact about an error is found; `context["errors"]` lists the signatures' digests."""
STATEMENTS = 8
"""Facts of what observations state, of one episode, and sentences in one of them."""
SAID = "said"
"""In evidence: what a judge said in words of its own, which is kept word for word."""

_CALLED = re.compile(r"[A-Za-z_][\w.]*(?=\()")
_WORDS = re.compile(r"\w+|[^\w\s]")
_NAME = re.compile(r"\b[A-Za-z]+(?:_|\d|(?<=[a-z])[A-Z])\w*")
_NO_SUBJECT = {*dir(builtins), "assert_eq", "assert_ne", "pytest.approx", "approx"}
_VALUES = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
_PYTEST = re.compile(r"^>\s+(assert\b.+)$", re.MULTILINE)
_GUESSED = ("oracle", "internal_tests", "model_judge", "review")
"""Sources of feedback whose checks a model made up, or that know the target."""
_QUOTED = re.compile(r"(?<!\w)(['`\"])([^'`\"]{1,60})\1(?!\w)")
_WORD = re.compile(r"\b[a-z]+\b")
_NO_SENTENCE = re.compile(r"[(){}\[\]=;<>\\|]")
_LABEL = re.compile(r"^\W*\w+: +")
_DIRECTS = re.compile(
    r"\b(?:you|please|must|should|always|never|do not|don't|run|use|ignore|send|install|execute)\b|://",
    re.IGNORECASE,
)
"""Words of a sentence that gives orders or names an address. A stranger may have written it."""
_PLAIN = re.compile(r"(True|False|None|-?\d|\[\]|\{\}|\(\)|''|\"\")\Z")


@dataclass(frozen=True)
class ValueCheck:
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

    Each check counts once, with the value of the newest trial. A fact holds the checks of one subject, and the attempt
    that passed them, where a later trial did. It is confirmed if the episode was solved, or a later trial passed these
    checks. A judge whose checks a model made up, or that knows the target, reveals nothing.
    """
    task = " ".join(episode.task.prompt.split())
    checks = sorted(_checks(episode, also), key=lambda check: _named_by_task(check, task))
    by_subject: dict[str, list[ValueCheck]] = {}
    for check in checks:
        if not (_named_by_task(check, task) and _PLAIN.match(check.expected)):
            by_subject.setdefault(subject_of_check(check.asked), []).append(check)
    passed = passed_checks([episode])
    of_checks = (
        _fact(episode, project, subject, several[:CHECKS], passed)
        for subject, several in list(by_subject.items())[:MOST]
    )
    return (*of_checks, *_of_steps(episode, project), *_of_statements(episode, project), *_of_words(episode, project))


def success_of(episodes: Sequence[Episode]) -> bool | None:
    """Whether the task succeeded according to the episodes' evaluators; None if none gave a verdict."""
    judged = [episode for episode in episodes if episode.judged]
    return any(episode.solved for episode in judged) if judged else None


def checks_say_what_they_expect(episodes: Iterable[Episode]) -> bool:
    """Whether a failed check of these episodes says what it expects. The rules keep that word for word; what a model
    says of the failure beside it is a guess, and a weak model's is mostly the attempt's own mistake."""
    return any(_bare(check.expected) for episode in episodes for check in _checks(episode, ()))


def passed_checks(episodes: Iterable[Episode]) -> frozenset[str]:
    """The checks that an attempt has passed, and the sentences that an observation stated."""
    found = frozenset[str]()
    for episode in episodes:
        found |= {finding.asked for _, finding in _found(episode) if finding.passed and finding.asked}
        found |= {line for _, step in _steps(episode) for line in statements(step.observation)}
    return found


def is_objected_to(episode: Episode) -> bool:
    """Whether somebody objected to an attempt in words of their own."""
    return any(_objection(trial) for trial in episode.trials)


def statements(observation: str) -> Mapping[str, str]:
    """The sentences of an observation that relate two quoted names or more and ask nothing of their reader, each with
    the last of these names.

    >>> statements("2 rows\\ntable 'hb_972' holds the 'orders'")
    {"table 'hb_972' holds the 'orders'": 'orders'}
    """
    found: dict[str, str] = {}
    for line in map(str.strip, observation.splitlines()):
        line = _LABEL.sub("", line).rstrip(".")
        names = [match[2] for match in _QUOTED.finditer(line)] if len(line) <= ANSWER else []
        if (
            len(names) > 1
            and not (_NO_SENTENCE.search(line) or _DIRECTS.search(line))
            and len(_WORD.findall(_QUOTED.sub("", line))) > 2
        ):
            found[line] = names[-1]
    return found


def quotes_checks(fact: Lesson) -> bool:
    """Whether a fact quotes checks of a judge. A task that has failed checks of its own is shown those instead."""
    listed = fact.context.get("checks")
    checks = cast(list[Mapping[str, Json]], listed) if isinstance(listed, list) else []
    return any("got" in one for one in checks)


def claims(fact: Lesson) -> Mapping[str, str]:
    """What a fact says, by what it says it of: the value of each check, whether each action works, or its whole content
    by its title. What is said of an error contradicts nothing."""
    if actions := _actions(fact):
        return actions
    if errors_of(fact):  # there may be several ways out of one error
        return {_folded(fact.content): ""}
    values = dict(claim_of(asked, expected) for asked, expected in checks_of(fact).items())
    return values or {_folded(fact.title): fact.content}


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


def names_in(*facts: Lesson) -> frozenset[str]:
    """Names as code and data have them, such as `t_order` or `unitPrice`, in what these facts say to hold. Not those of
    an attempt that passed, which the model chose."""
    texts = (fact.content.rpartition(_WORKS)[2] if _actions(fact) else claimed(fact) for fact in facts)
    return frozenset(name.casefold() for text in texts for name in _NAME.findall(text))


def working_actions(fact: Lesson) -> frozenset[str]:
    """The actions that a fact says to work."""
    return frozenset(action for action, how in _actions(fact).items() if how == WORKS)


def claimed(fact: Lesson) -> str:
    """What a fact says, without the attempt that it shows."""
    return fact.content.partition(f"\n{PASSES}\n")[0]


def shows_more(new: Lesson, old: Lesson) -> bool:
    """Whether a fact says what the old one says, and shows an attempt that passes, which the old one does not."""
    more = claimed(new) != new.content and claimed(old) == old.content
    return more and claims(new).items() >= claims(old).items()


def contradicts(new: Mapping[str, str], old: Mapping[str, str]) -> bool:
    """Whether the newer claims give another value for something that the older ones speak of."""
    return any(old[asked] != value for asked, value in new.items() if asked in old)


def mark_contradictions(lessons: Sequence[Lesson]) -> list[Lesson]:
    """The lessons in their order, each fact that a newer one of them contradicts marked as to be checked."""
    newest: dict[tuple[str, str], tuple[str, Lesson]] = {}
    marked: dict[str, Lesson] = {}
    for fact in sorted((one for one in lessons if one.nature == "fact"), key=lambda one: -one.time):
        for asked, value in claims(fact).items():
            claim, newer = newest.setdefault((fact.project, asked), (value, fact))
            if claim != value:
                why = f"it is from {day(fact.time)}, and a newer fact from {day(newer.time)} contradicts it"
                marked[fact.id] = replace(fact, to_check=why)
    return [marked.get(one.id, one) for one in lessons]


def subject_of(lesson: Lesson) -> str:
    """What a fact is about: the action that works, its first check's subject, else its title."""
    if works := working_actions(lesson):
        return min(works)[:80]
    asked = next(iter(checks_of(lesson)), None)
    return _folded(lesson.title) if asked is None else subject_of_check(asked)


def keys_of(fact: Lesson) -> tuple[str, ...]:
    """What a fact is looked up by."""
    about = set(map(_folded, working_actions(fact))) or {*checks_of(fact), *claims(fact)}
    found = keys(fact.agent_id, fact.project, about, names_in(fact), fact.rests_on)
    return (*found, *sorted({f"{ERROR}{one}" for one in errors_of(fact)}))


def errors_of(fact: Lesson) -> Sequence[str]:
    """The digests of the signatures of the errors that a fact is about."""
    listed = fact.context.get("errors")
    return [str(one) for one in cast(list[Json], listed)] if isinstance(listed, list) else ()


def has_reason(lesson: Lesson, query: str) -> bool:
    """Whether a query gives a reason to show a lesson: one about a refused call is shown where the query holds the
    error, whatever values it names. Any other lesson needs no more than its relevance."""
    refusal = lesson.context.get("refusal")
    return not isinstance(refusal, str) or _without_values(refusal) in _without_values(query)


def keys(
    agent_id: str, project: str, about: Iterable[str] = (), names: Iterable[str] = (), bases: Iterable[str] = ()
) -> tuple[str, ...]:
    """The keys of the facts of a project that speak about one of these (a check, with or without its value, an action
    that works, a title; an action and a title in any spelling), that hold one of these names, or that rest on one of
    the facts with these ids."""
    kinds = {"about": {form for text in about for form in (text, _folded(text))}, "name": names, "base": bases}
    found = ((agent_id, project, kind, text) for kind, texts in kinds.items() for text in texts)
    return tuple(sorted({digest([*one])[:16] for one in found}))


def actions_of(episode: Episode) -> Mapping[str, str]:
    """Whether the actions of this episode worked (`WORKS`) or were refused (`FAILS`), each as it was the last time."""
    return {step.action.strip(): FAILS if refused(step.observation) else WORKS for _, step in _steps(episode)}


def upheld(fact: Lesson, passed: Container[str], actions: Mapping[str, str]) -> bool | None:
    """Whether a fact holds: True where a check of it passed or its action worked, False where its action was refused.

    None: nothing was seen of it.
    """
    if any(asked in passed for asked in checks_of(fact)):
        return True
    seen = {actions[action] for action in working_actions(fact) if action in actions}
    return WORKS in seen if seen else None


def subject_of_check(asked: str) -> str:
    """The first function that a check calls, else the beginning of the check."""
    called = (name for name in _CALLED.findall(asked) if name not in _NO_SUBJECT)
    return next(called, " ".join(asked.split())[:80])


def _fact(episode: Episode, project: str, subject: str, checks: Sequence[ValueCheck], passed: frozenset[str]) -> Lesson:
    solved, value = episode.solved, _named(checks[0].expected)
    attempt = _passing(episode, subject, checks)
    shown = [PASSES, attempt] if attempt else []
    return Lesson(
        id="",
        title=f"{subject} gives {value}" if subject in _CALLED.findall(checks[0].asked) else f"{subject}: {value}",
        description=f"From the task: {one_line(episode.task.prompt, 160)}",
        content="\n".join([*(check.text for check in checks), *shown]),
        outcome="success" if solved else "failure",
        query=episode.task.prompt,
        kind=episode.task.kind,
        origin=Origin("extracted", episode.id, checks[0].trial, by=RULE),
        context={"checks": [{"asked": c.asked, "expected": c.expected, "got": c.got} for c in checks]},
        nature="fact",
        project=project,
        subject=subject,
        confirmed=solved or all(check.asked in passed for check in checks),
    )


def _passing(episode: Episode, subject: str, checks: Sequence[ValueCheck]) -> str:
    """The newest attempt that passed all these checks, if it is short and has what they are about; else ""."""
    asked = {check.asked for check in checks}
    for trial in reversed(episode.trials):
        passed = {finding.asked for finding in findings_of(trial.feedback) if finding.passed}
        attempt = output_of(trial.attempt).strip()
        if asked <= passed and len(attempt) <= ACTION and re.search(rf"(?<!\w){re.escape(subject)}(?!\w)", attempt):
            return attempt
    return ""


def _actions(fact: Lesson) -> Mapping[str, str]:
    """The actions that a fact of steps holds, with whether they work."""
    given = fact.context.get("actions")
    actions: Mapping[str, Json] = cast("dict[str, Json]", given) if isinstance(given, dict) else {}
    return {name.strip(): str(how) for name, how in actions.items()}


def _steps(episode: Episode) -> Iterator[tuple[int, Step]]:
    """The steps that did something and saw what came of it, with the number of the trial. Not those of a trial of one
    step, which is the attempt itself."""
    for trial in episode.trials:
        if len(trial.attempt.steps) > 1:
            for step in trial.attempt.steps:
                if step.action.strip() and step.observation.strip() and len(step.action) <= ACTION:
                    yield trial.number, step


def _of_steps(episode: Episode, project: str) -> Iterator[Lesson]:
    """Facts of actions that were refused, with the like action that worked later; and of the action that showed the
    answer of a solved episode."""
    steps, mends = list(_steps(episode)), dict[str, tuple[int, list[Step]]]()
    for n, (_, step) in enumerate(steps):
        later = ((trial, one) for trial, one in steps[n + 1 :] if not refused(one.observation) and _alike(step, one))
        trial, mended = next(later, (0, None)) if refused(step.observation) else (0, None)
        if mended is not None and (mended.action in mends or len(mends) < MOST):
            mends.setdefault(mended.action, (trial, []))[1].append(step)
    for action, (trial, failed) in mends.items():
        whys = list(dict.fromkeys(observed_line(step.observation) for step in failed))
        lines = [f"fails: {failed[0].action.strip()}", *(f"  {why}" for why in whys), f"{_WORKS}{action.strip()}"]
        actions = {**{step.action: FAILS for step in failed}, action: WORKS}
        yield _fact_of_steps(episode, project, trial, f"instead of: {whys[0]}", lines, actions)
    best = episode.best
    answer = output_of(best.attempt).strip() if episode.solved and best else ""
    for trial, step in reversed(steps if 0 < len(answer) <= ANSWER else []):
        shows = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", step.observation)
        if shows and not refused(step.observation) and answer not in step.action:
            if step.action not in mends:
                title, lines = f"for {one_line(episode.task.prompt, 80)!r}", [f"{_WORKS}{step.action.strip()}"]
                yield _fact_of_steps(episode, project, trial, title, lines, {step.action: WORKS})
            return


def _of_statements(episode: Episode, project: str) -> Iterator[Lesson]:
    """A fact of what each observation states, the newest first; of an action that was refused, the mend says it."""
    seen: set[str] = set()
    count = 0
    for trial, step in reversed(list(_steps(episode))):
        stated: Mapping[str, str] = {} if refused(step.observation) else statements(step.observation)
        lines = [line for line in stated if claim_of(line, stated[line])[0] not in seen][:STATEMENTS]
        if lines and count < STATEMENTS:
            count += 1
            seen |= {claim_of(line, stated[line])[0] for line in lines}
            fact = _fact_of_steps(episode, project, trial, lines[0], lines, {})
            checks: list[Json] = [{"asked": line, "expected": stated[line]} for line in lines]
            yield replace(fact, context={"checks": checks}, confirmed=True)


def _of_words(episode: Episode, project: str) -> Iterator[Lesson]:
    """A fact of each objection that a judge made in words: the result that it was made to, and the one that passed."""
    objections: dict[str, tuple[Trial, str]] = {}
    for trial in episode.trials:
        if said := _objection(trial):
            asked = next((found.asked for found in findings_of(trial.feedback) if found.asked), "")
            objections[asked or said] = (trial, said)
    passed = output_of(episode.best.attempt) if episode.solved and episode.best else ""
    for asked, (trial, said) in list(objections.items())[:MOST]:
        lines = [f"refused: {one_line(output_of(trial.attempt), ANSWER)}", f"  {one_line(said, ANSWER)}"]
        lines += [f"asked: {asked}"] if asked != said else []
        lines += [f"passed: {one_line(passed, ANSWER)}"] if passed else []
        yield _fact_of_steps(episode, project, trial.number, asked, lines, {})


def _objection(trial: Trial) -> str:
    """What a judge said against this attempt in words of its own."""
    evidence = trial.feedback.evidence if trial.feedback and trial.feedback.passed is False else None
    return str(cast("dict[str, Json]", evidence).get(SAID) or "") if isinstance(evidence, dict) else ""


def _fact_of_steps(
    episode: Episode, project: str, trial: int, title: str, lines: Sequence[str], actions: Mapping[str, str]
) -> Lesson:
    return Lesson(
        id="",
        title=one_line(title, 100),
        description=f"From the task: {one_line(episode.task.prompt, 160)}",
        content="\n".join(lines),
        outcome="success" if episode.solved else "failure",
        query=episode.task.prompt,
        kind=episode.task.kind,
        origin=Origin("extracted", episode.id, trial, by=RULE),
        context={"actions": dict(actions)} if actions else {},
        nature="fact",
        project=project,
        confirmed=bool(actions) or episode.solved,
    )


def _alike(one: Step, other: Step) -> bool:
    """Whether two different actions do about the same: they begin with the same word, and share most of their words."""
    first, second = _WORDS.findall(one.action), _WORDS.findall(other.action)
    if not first or first[:1] != second[:1] or one.action.strip() == other.action.strip():
        return False
    return SequenceMatcher(None, first, second, autojunk=False).ratio() >= ALIKE


def _checks(episode: Episode, also: Container[str]) -> Iterator[ValueCheck]:
    """The checks that failed, newest trial first, each once."""
    seen: set[str] = set()
    for trial, finding in _found(episode):
        counts = not finding.passed or finding.asked in also
        shown = [Finding(asked.strip()) for asked in _PYTEST.findall(finding.got)]  # by pytest, as failed
        for one in (finding, *shown) if counts else ():
            expected = one.asked and (one.expected or expected_by(one.asked))
            if expected and one.asked not in seen:
                seen.add(one.asked)
                yield ValueCheck(one.asked, expected, one.got, trial)


def _found(episode: Episode) -> Iterator[tuple[int, Finding]]:
    """What judges found, with the number of the trial, the newest trial first. Not those that are no evidence."""
    for trial in reversed(episode.trials):
        if trial.feedback is not None and trial.feedback.source not in _GUESSED:
            yield from ((trial.number, finding) for finding in findings_of(trial.feedback))


def _named_by_task(check: ValueCheck, task: str) -> bool:
    """Whether the task itself names the value."""
    return check.expected in task or _named(check.expected).removeprefix("the form ") in task


def _bare(value: str) -> str:
    """The value without the quotes around it."""
    return value[1:-1] if len(value) > 2 and value[0] == value[-1] and value[0] in "'\"" else value


def _named(value: str) -> str:
    """The value for a title: of a text, its form."""
    try:
        literal = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        literal = value
    text = f"the form {literal}" if isinstance(literal, str) and literal and literal is not value else value
    return one_line(text, 80)


def _without_values(text: str) -> str:
    return _VALUES.sub("#", _folded(text))


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
