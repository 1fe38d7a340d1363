"""Draw facts from episodes by rules, without a model and word for word.

Facts are the values that failed checks expect, refused actions with the similar ones that worked, what observations
state, and what a judge objected to.
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
from mulligan.core.lesson_history import RULE
from mulligan.core.records import Episode, Finding, Json, Lesson, Origin, Step, Trial
from mulligan.text.actions import observed_line, refused
from mulligan.text.evidence import expected_by, findings_of
from mulligan.text.plain import one_line
from mulligan.text.python_code import parsed
from mulligan.text.thoughts import output_of
from mulligan.text.times import day

MAX_FACTS, MAX_CHECKS = 3, 4
"""Facts drawn from one episode by each rule, and checks in one fact."""
MAX_ACTION, MAX_ANSWER = 600, 200
"""Characters of an action (or an attempt), and of an answer, that a fact may quote."""
MIN_SIMILARITY = 0.5
"""How similar, 0 to 1, an action that worked must be to the refused one that it replaces."""
FAILS, WORKS = "fails", "works"
_WORKS = f"{WORKS}: "
PASSES = "passes:"
"""In a fact of checks, the line above the attempt that passed them."""
ERROR = "error:"
"""Prefix of the key of a fact about an error. `context["errors"]` lists the digests of the errors' signatures."""
MAX_STATEMENTS = 8
"""Facts of what observations state that one episode gives, and sentences in one such fact."""
SAID = "said"
"""The key of a judge's own words in its evidence."""

_CALLED = re.compile(r"[A-Za-z_][\w.]*(?=\()")
_WORDS = re.compile(r"\w+|[^\w\s]")
_NAME = re.compile(r"\b[A-Za-z]+(?:_|\d|(?<=[a-z])[A-Z])\w*")
_NO_SUBJECT = {*dir(builtins), "assert_eq", "assert_ne", "pytest.approx", "approx"}
_VALUES = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
_PYTEST = re.compile(r"^>\s+(assert\b.+)$", re.MULTILINE)
_GUESSED = ("oracle", "internal_tests", "model_judge", "review")
"""Sources of feedback whose checks a model wrote, or that know the target."""
_QUOTED = re.compile(r"(?<!\w)(['`\"])([^'`\"]{1,60})\1(?!\w)")
_WORD = re.compile(r"\b[a-z]+\b")
_NO_SENTENCE = re.compile(r"[(){}\[\]=;<>\\|]")
_LABEL = re.compile(r"^\W*\w+: +")
_DIRECTS = re.compile(
    r"\b(?:you|please|must|should|always|never|do not|don't|run|use|ignore|send|install|execute)\b|://",
    re.IGNORECASE,
)
"""Finds sentences that give orders or name an address: somebody else may have written them for the model to obey."""
_PLAIN = re.compile(r"(True|False|None|-?\d|\[\]|\{\}|\(\)|''|\"\")\Z")


@dataclass(frozen=True)
class ValueCheck:
    """A check that failed in a trial: what it asked, the value it expects, and the value it got."""

    asked: str
    expected: str
    got: str
    trial: int

    @property
    def text(self) -> str:
        """The check, word for word."""
        return self.asked if self.expected in self.asked else f"{self.asked}\nexpected: {self.expected}"


def facts_of(episode: Episode, project: str, also: Container[str] = ()) -> tuple[Lesson, ...]:
    """Drafts of the facts that this episode reveals, the most informative first.

    A fact of checks holds failed checks of one subject, each with the value that the newest trial showed, and the
    attempt of a later trial that passed them. It is confirmed if the episode was solved or these checks passed later.
    Checks that a model wrote, and judges that know the target, reveal nothing.

    also: Checks that give facts even though they passed.
    """
    task = " ".join(episode.task.prompt.split())
    checks = sorted(_value_checks(episode, also), key=lambda check: _named_by_task(check, task))
    by_subject: dict[str, list[ValueCheck]] = {}
    for check in checks:
        if not (_named_by_task(check, task) and _PLAIN.match(check.expected)):
            by_subject.setdefault(subject_of_check(check.asked), []).append(check)
    passed = passed_checks([episode])
    facts = [
        _fact_of_checks(episode, project, subject, checks[:MAX_CHECKS], passed)
        for subject, checks in list(by_subject.items())[:MAX_FACTS]
    ]
    for rule in (_facts_of_steps, _facts_of_statements, _facts_of_objections):
        facts += rule(episode, project)
    return tuple(facts)


def success_of(episodes: Sequence[Episode]) -> bool | None:
    """Whether the task succeeded according to the episodes' evaluators; None if none gave a verdict."""
    judged = [episode for episode in episodes if episode.judged]
    return any(episode.solved for episode in judged) if judged else None


def checks_say_what_they_expect(episodes: Iterable[Episode]) -> bool:
    """Whether a failed check of these episodes states a value that it expects.

    The rules store such a value word for word. What a model writes about the failure is then only a guess, and a weak
    model mostly repeats the mistake of the attempt.
    """
    return any(_unquoted(check.expected) for episode in episodes for check in _value_checks(episode, ()))


def passed_checks(episodes: Iterable[Episode]) -> frozenset[str]:
    """The checks that an attempt has passed, and the sentences that observations stated."""
    passed = frozenset[str]()
    for episode in episodes:
        passed |= {finding.asked for _, finding in _findings(episode) if finding.passed and finding.asked}
        passed |= {line for _, step in _steps(episode) for line in statements(step.observation)}
    return passed


def is_objected_to(episode: Episode) -> bool:
    """Whether somebody objected to an attempt in words of their own."""
    return any(_objection(trial) for trial in episode.trials)


def statements(observation: str) -> Mapping[str, str]:
    """The sentences of an observation that state how quoted names are related, each with the last name in it.

    A sentence counts if it quotes at least two names and gives no orders.

    >>> statements("2 rows\\ntable 'hb_972' holds the 'orders'")
    {"table 'hb_972' holds the 'orders'": 'orders'}
    """
    last_names: dict[str, str] = {}
    for line in map(str.strip, observation.splitlines()):
        line = _LABEL.sub("", line).rstrip(".")
        names = [match[2] for match in _QUOTED.finditer(line)] if len(line) <= MAX_ANSWER else []
        if (
            len(names) > 1
            and not (_NO_SENTENCE.search(line) or _DIRECTS.search(line))
            and len(_WORD.findall(_QUOTED.sub("", line))) > 2
        ):
            last_names[line] = names[-1]
    return last_names


def quotes_checks(fact: Lesson) -> bool:
    """Whether a fact quotes checks of a judge. A task with failed checks of its own is shown those instead."""
    return any("got" in check for check in _check_rows(fact))


def claims(fact: Lesson) -> Mapping[str, str]:
    """The statements of a fact, by their subject, so that facts about the same subject can be compared.

    These are the value of each check, whether each action works, or else the content by the title. For a fact about an
    error the content is the subject, so that it contradicts no other fact.
    """
    if actions := _actions(fact):
        return actions
    if errors_of(fact):  # there may be several ways out of one error
        return {_folded(fact.content): ""}
    values = dict(claim_of(asked, expected) for asked, expected in checks_of(fact).items())
    return values or {_folded(fact.title): fact.content}


def checks_of(fact: Lesson) -> Mapping[str, str]:
    """The checks that a fact holds, with the values that they expect. Facts written by hand have none."""
    checks = _check_rows(fact)
    return {str(check["asked"]): str(check["expected"]) for check in checks if {"asked", "expected"} <= set(check)}


def _check_rows(fact: Lesson) -> Sequence[Mapping[str, Json]]:
    checks = fact.context.get("checks")
    return cast(list[Mapping[str, Json]], checks) if isinstance(checks, list) else []


def claim_of(asked: str, expected: str = "") -> tuple[str, str]:
    """The subject and the value of a check: the check without its value, and the value that it expects."""
    expected = expected or expected_by(asked)
    before, value, after = asked.rpartition(expected) if expected else (asked, "", "")
    return (f"{before}…{after}" if value else asked), expected


def names_in(*facts: Lesson) -> frozenset[str]:
    """The identifiers that these facts state, such as `t_order` or `unitPrice`.

    Those of a quoted attempt are left out, because the model chose them.
    """
    texts = (fact.content.rpartition(_WORKS)[2] if _actions(fact) else claimed(fact) for fact in facts)
    return frozenset(name.casefold() for text in texts for name in _NAME.findall(text))


def working_actions(fact: Lesson) -> frozenset[str]:
    """The actions that work according to a fact."""
    return frozenset(action for action, how in _actions(fact).items() if how == WORKS)


def claimed(fact: Lesson) -> str:
    """The content of a fact without the attempt that it shows."""
    return fact.content.partition(f"\n{PASSES}\n")[0]


def shows_more(new: Lesson, old: Lesson) -> bool:
    """Whether a fact states all that the old one does, and shows a passing attempt that the old one lacks."""
    more = claimed(new) != new.content and claimed(old) == old.content
    return more and claims(new).items() >= claims(old).items()


def contradicts(new: Mapping[str, str], old: Mapping[str, str]) -> bool:
    """Whether the newer claims have another value for a subject of the older ones."""
    return any(old[asked] != value for asked, value in new.items() if asked in old)


def mark_contradictions(lessons: Sequence[Lesson]) -> list[Lesson]:
    """The lessons in the same order. Facts that a newer one contradicts are marked as to be checked."""
    newest: dict[tuple[str, str], tuple[str, Lesson]] = {}
    marked: dict[str, Lesson] = {}
    for fact in sorted((lesson for lesson in lessons if lesson.nature == "fact"), key=lambda fact: -fact.time):
        for subject, value in claims(fact).items():
            newest_value, newer = newest.setdefault((fact.project, subject), (value, fact))
            if newest_value != value:
                why = f"it is from {day(fact.time)}, and a newer fact from {day(newer.time)} contradicts it"
                marked[fact.id] = replace(fact, to_check=why)
    return [marked.get(one.id, one) for one in lessons]


def subject_of(lesson: Lesson) -> str:
    """The subject of a fact: the action that works, or that of its first check, or its title."""
    if works := working_actions(lesson):
        return min(works)[:80]
    asked = next(iter(checks_of(lesson)), None)
    return _folded(lesson.title) if asked is None else subject_of_check(asked)


def keys_of(fact: Lesson) -> tuple[str, ...]:
    """The keys that a fact is looked up by."""
    about = set(map(_folded, working_actions(fact))) or {*checks_of(fact), *claims(fact)}
    lookup_keys = keys(fact.agent_id, fact.project, about, names_in(fact), fact.rests_on)
    return (*lookup_keys, *sorted({f"{ERROR}{digest}" for digest in errors_of(fact)}))


def errors_of(fact: Lesson) -> Sequence[str]:
    """The digests of the signatures of the errors that a fact is about."""
    digests = fact.context.get("errors")
    return [str(each) for each in cast(list[Json], digests)] if isinstance(digests, list) else ()


def has_reason(lesson: Lesson, query: str) -> bool:
    """Whether a query gives a reason to show a lesson.

    A lesson about a refused call needs its error in the query, with any values. Other lessons need no reason.
    """
    refusal = lesson.context.get("refusal")
    return not isinstance(refusal, str) or _without_values(refusal) in _without_values(query)


def keys(
    agent_id: str, project: str, about: Iterable[str] = (), names: Iterable[str] = (), bases: Iterable[str] = ()
) -> tuple[str, ...]:
    """The keys by which facts of a project are looked up.

    Args:
        about: Checks with or without their values, working actions, and titles. Case and spaces do not matter.
        names: Identifiers in the facts: see `names_in`.
        bases: Ids of the facts that the facts rest on.
    """
    kinds = {"about": {form for text in about for form in (text, _folded(text))}, "name": names, "base": bases}
    rows = ([agent_id, project, kind, text] for kind, texts in kinds.items() for text in texts)
    return tuple(sorted({digest(row)[:16] for row in rows}))


def actions_of(episode: Episode) -> Mapping[str, str]:
    """The actions of this episode, with whether each one worked (`WORKS`) or was refused (`FAILS`) the last time."""
    return {step.action.strip(): FAILS if refused(step.observation) else WORKS for _, step in _steps(episode)}


def upheld(fact: Lesson, passed: Container[str], actions: Mapping[str, str]) -> bool | None:
    """Whether a fact holds: True if one of its checks passed or its action worked, False if its action was refused.

    None if the fact was not put to the test.
    """
    if any(asked in passed for asked in checks_of(fact)):
        return True
    seen = {actions[action] for action in working_actions(fact) if action in actions}
    return WORKS in seen if seen else None


def subject_of_check(asked: str) -> str:
    """The first function that a check calls, or else the beginning of the check."""
    functions = (name for name in _CALLED.findall(asked) if name not in _NO_SUBJECT)
    return next(functions, " ".join(asked.split())[:80])


def _fact_of_checks(
    episode: Episode, project: str, subject: str, checks: Sequence[ValueCheck], passed: frozenset[str]
) -> Lesson:
    solved, value = episode.solved, _value_for_title(checks[0].expected)
    attempt = _passing_attempt(episode, subject, checks)
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
        context={"checks": [{"asked": one.asked, "expected": one.expected, "got": one.got} for one in checks]},
        nature="fact",
        project=project,
        subject=subject,
        confirmed=solved or all(check.asked in passed for check in checks),
    )


def _passing_attempt(episode: Episode, subject: str, checks: Sequence[ValueCheck]) -> str:
    """The newest attempt that passed all these checks, if it is short and names their subject; else ""."""
    asked = {check.asked for check in checks}
    for trial in reversed(episode.trials):
        passed = {finding.asked for finding in findings_of(trial.feedback) if finding.passed}
        attempt = output_of(trial.attempt).strip()
        if asked <= passed and len(attempt) <= MAX_ACTION and re.search(rf"(?<!\w){re.escape(subject)}(?!\w)", attempt):
            return attempt
    return ""


def _actions(fact: Lesson) -> Mapping[str, str]:
    """The actions that a fact of steps holds, with whether they work."""
    value = fact.context.get("actions")
    actions: Mapping[str, Json] = cast("dict[str, Json]", value) if isinstance(value, dict) else {}
    return {action.strip(): str(how) for action, how in actions.items()}


def _steps(episode: Episode) -> Iterator[tuple[int, Step]]:
    """The steps with an action and an observation, each with the number of its trial.

    A trial of one step has none: that step is the attempt itself.
    """
    for trial in episode.trials:
        if len(trial.attempt.steps) > 1:
            for step in trial.attempt.steps:
                if step.action.strip() and step.observation.strip() and len(step.action) <= MAX_ACTION:
                    yield trial.number, step


def _facts_of_steps(episode: Episode, project: str) -> Iterator[Lesson]:
    """Facts about refused actions, with a similar one that worked later, and about the one that showed the answer."""
    steps = list(_steps(episode))
    replaced: dict[str, tuple[int, list[Step]]] = {}  # by the action that worked: its trial, and the refused steps
    for n, (_, step) in enumerate(steps):
        if not refused(step.observation):
            continue
        for trial, later in steps[n + 1 :]:
            if not refused(later.observation) and _similar(step, later):
                if later.action in replaced or len(replaced) < MAX_FACTS:
                    replaced.setdefault(later.action, (trial, []))[1].append(step)
                break
    for action, (trial, failed) in replaced.items():
        whys = list(dict.fromkeys(observed_line(step.observation) for step in failed))
        lines = [f"fails: {failed[0].action.strip()}", *(f"  {why}" for why in whys), f"{_WORKS}{action.strip()}"]
        actions = {**{step.action: FAILS for step in failed}, action: WORKS}
        yield _fact_of_steps(episode, project, trial, f"instead of: {whys[0]}", lines, actions)
    best = episode.best
    answer = output_of(best.attempt).strip() if episode.solved and best else ""
    for trial, step in reversed(steps if 0 < len(answer) <= MAX_ANSWER else []):
        shows = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", step.observation)
        if shows and not refused(step.observation) and answer not in step.action:
            if step.action not in replaced:
                title, lines = f"for {one_line(episode.task.prompt, 80)!r}", [f"{_WORKS}{step.action.strip()}"]
                yield _fact_of_steps(episode, project, trial, title, lines, {step.action: WORKS})
            return


def _facts_of_statements(episode: Episode, project: str) -> Iterator[Lesson]:
    """A fact for each observation that states something, the newest first. Refused actions are left out."""
    seen: set[str] = set()
    count = 0
    for trial, step in reversed(list(_steps(episode))):
        stated: Mapping[str, str] = {} if refused(step.observation) else statements(step.observation)
        lines = [line for line in stated if claim_of(line, stated[line])[0] not in seen][:MAX_STATEMENTS]
        if lines and count < MAX_STATEMENTS:
            count += 1
            seen |= {claim_of(line, stated[line])[0] for line in lines}
            fact = _fact_of_steps(episode, project, trial, lines[0], lines, {})
            checks: list[Json] = [{"asked": line, "expected": stated[line]} for line in lines]
            yield replace(fact, context={"checks": checks}, confirmed=True)


def _facts_of_objections(episode: Episode, project: str) -> Iterator[Lesson]:
    """A fact for each objection in a judge's own words: the result it refused, and the one that passed."""
    objections: dict[str, tuple[Trial, str]] = {}
    for trial in episode.trials:
        if objection := _objection(trial):
            asked = next((finding.asked for finding in findings_of(trial.feedback) if finding.asked), "")
            objections[asked or objection] = (trial, objection)
    passed = output_of(episode.best.attempt) if episode.solved and episode.best else ""
    for asked, (trial, objection) in list(objections.items())[:MAX_FACTS]:
        lines = [f"refused: {one_line(output_of(trial.attempt), MAX_ANSWER)}", f"  {one_line(objection, MAX_ANSWER)}"]
        lines += [f"asked: {asked}"] if asked != objection else []
        lines += [f"passed: {one_line(passed, MAX_ANSWER)}"] if passed else []
        yield _fact_of_steps(episode, project, trial.number, asked, lines, {})


def _objection(trial: Trial) -> str:
    """What a judge objected to in this attempt, in its own words; "" if nothing."""
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


def _similar(one: Step, other: Step) -> bool:
    """Whether two different actions begin with the same word and share most of their words."""
    first, second = _WORDS.findall(one.action), _WORDS.findall(other.action)
    if not first or first[:1] != second[:1] or one.action.strip() == other.action.strip():
        return False
    return SequenceMatcher(None, first, second, autojunk=False).ratio() >= MIN_SIMILARITY


def _value_checks(episode: Episode, also: Container[str]) -> Iterator[ValueCheck]:
    """The failed checks, and those in `also`, that expect a value: the newest trial first, each check once."""
    seen: set[str] = set()
    for trial, finding in _findings(episode):
        if finding.passed and finding.asked not in also:
            continue
        printed = [Finding(asked.strip()) for asked in _PYTEST.findall(finding.got)]  # failed lines in pytest's output
        for one in (finding, *printed):
            expected = one.asked and (one.expected or expected_by(one.asked))
            if expected and one.asked not in seen:
                seen.add(one.asked)
                yield ValueCheck(one.asked, expected, one.got, trial)


def _findings(episode: Episode) -> Iterator[tuple[int, Finding]]:
    """The findings of judges that count as evidence, each with the number of its trial, the newest trial first."""
    for trial in reversed(episode.trials):
        if trial.feedback is not None and trial.feedback.source not in _GUESSED:
            yield from ((trial.number, finding) for finding in findings_of(trial.feedback))


def _named_by_task(check: ValueCheck, task: str) -> bool:
    """Whether the task itself names the value."""
    return check.expected in task or _value_for_title(check.expected).removeprefix("the form ") in task


def _unquoted(value: str) -> str:
    """The value without the quotes around it."""
    return value[1:-1] if len(value) > 2 and value[0] == value[-1] and value[0] in "'\"" else value


def _value_for_title(value: str) -> str:
    """The value as a title shows it: a string literal without its quotes, as "the form …"."""
    tree = parsed(value)
    match tree.body if tree else []:
        case [ast.Expr(ast.Constant(str(literal)))] if literal:
            return one_line(f"the form {literal}", 80)
        case _:
            return one_line(value, 80)


def _without_values(text: str) -> str:
    return _VALUES.sub("#", _folded(text))


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
