"""Ask a model about trajectories: whether the task succeeded, and what is to be learned from them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import cast

from mulligan.bank.learn.facts import checks_say_what_they_expect
from mulligan.bank.learn.trajectory import TOKENS, StepPosition, pair_of, render, step_positions
from mulligan.bank.learn.validation import check_of
from mulligan.core.errors import BadAnswer
from mulligan.core.protocols import Prompts
from mulligan.core.questions import Question, object_schema
from mulligan.core.records import LAYERS, Episode, Json, Lesson, Nature, Origin
from mulligan.text.formatting import labelled, lessons_text

MOST, MOST_BY_CONTRAST, LISTED = 3, 5, 100
MOST_REFLECTIONS = 3
"""Reflections with layers that the model is shown."""
_VALUE = re.compile(r"`.+?`|\".+?\"|(?<!\w)'.+?'(?!\w)|\d|\w_\w|\w[./:]\w|[a-z][A-Z]")
"""What a name, a value, a format or a command looks like in a text."""
_NAMED = re.compile(r"\s*s?(\d{1,9})\s*", re.IGNORECASE | re.ASCII)

TITLE, DESCRIPTION, CONTENT = 120, 500, 2000
"""Characters that a model may use."""
MOST_TAGS, TAG, KIND = 8, 40, 60

TEXTS: Mapping[str, Json] = {
    "title": {"type": "string"},
    "description": {"type": "string"},
    "content": {"type": "string"},
}
"""The properties of a lesson in a JSON schema. Lengths are checked here, because few providers check them."""

NATURES: tuple[Nature, ...] = ("strategy", "fact")
NATURE: Mapping[str, Json] = {"nature": {"type": "string", "enum": list(NATURES)}}

LAYER: Mapping[str, Json] = {"layer": {"type": "string", "enum": list(LAYERS)}}
REFLECTED = """What the agent wrote of it itself, by layer. Give each lesson its "layer", too: "tactical" for one about
a single action, which holds in tasks of this kind; "strategic" for one about the plan of such a task; "metacognitive"
for one about a habit of the agent, worded so that it can be followed in a task of any kind"""

LABELS: Mapping[str, Json] = {
    "tags": {"type": "array", "items": {"type": "string"}},
    "kind": {"type": "string"},
}

NO_GUESSES = "the failed checks say what they expect, and are kept by rules"
VERDICTS = ("success", "failure", "uncertain")


@dataclass(frozen=True)
class Extracted:
    """Drafts of lessons, best first. If there are none, `nothing_because` is the model's reason.

    removed: by id of a lesson that is to be retired, why.
    """

    lessons: tuple[Lesson, ...] = ()
    nothing_because: str = ""
    removed: Mapping[str, str] = field(default_factory=dict[str, str])


class Extractor:
    """Asks a model for the lessons of some episodes, and checks its answer.

    Of one episode that failed and then passed, the last failed trial and the first that passed are compared (a pair). A
    fact is confirmed if the task succeeded; one that holds no name, value or command is taken as a strategy. After a
    failure whose checks say what they expect no fact is kept: the rules keep the checks.

    A draft has no id, agent or times; its query is the task, its origin names episode, trial and the steps that it
    cites. Where it cites several trials, the origin is the one most cited, and `context["cites"]` holds them all. By
    contrast, a lesson that cites only trajectories that failed is one of failure. Of several with the same content, the
    first is taken.

    Args:
        success: how the task ended; of several episodes, one success is enough.
        reason: what a judge said of it, "" if none did.
        contrast: whether several trajectories of one task are compared.
        several: whether the episodes are of several tasks.
        tokens: what task and trajectories may take of the prompt.
        paper: the prompts have the paper's structure, and every lesson is a strategy.
        workflows: each lesson is a workflow, a strategy that lists steps. Several episodes are not compared: those that
            failed are left out.
        project: where facts hold.
    """

    def __init__(
        self,
        prompts: Prompts,
        *,
        success: bool,
        reason: str = "",
        contrast: bool = False,
        several: bool = False,
        tokens: int = TOKENS,
        paper: bool = False,
        workflows: bool = False,
        project: str = "",
    ) -> None:
        which = "workflow" if workflows else "several" if several else "contrast" if contrast else ""
        which = which or ("success" if success else "failure")
        names = [f"paper.{which}" if paper else which, *(["pair"] if which == "success" and not paper else [])]
        self._prompt, *pair = (
            prompts.get(f"extraction.{name}").check("task", "reason", "trajectory", "layers") for name in names
        )
        self._pair = pair[0] if pair else None
        self._success, self._reason, self._tokens = success, reason, tokens
        self._plain, self._workflows, self._project = paper or workflows, workflows, project
        self._most = MOST_BY_CONTRAST if (contrast or several) and not workflows else MOST

    def ask(self, episodes: Sequence[Episode]) -> Question:
        studied = self._studied(episodes)
        prompt = self._pair if self._pair and studied is not episodes else self._prompt
        task, trajectory = render(studied, self._tokens)
        reason = labelled("The judge's reason", self._reason[:CONTENT])
        layers = "" if self._plain else layered_text(episodes)
        *before, last = prompt.render(
            task=task, reason=reason, trajectory=trajectory, layers=labelled(REFLECTED, layers)
        )
        schema = schema_of(self._most, len(step_positions(studied)), natures=not self._plain, layers=bool(layers))
        return Question((*before, replace(last, images=episodes[0].task.images)), schema)

    def _studied(self, episodes: Sequence[Episode]) -> Sequence[Episode]:
        """The episodes, or the pair in the one that failed first and then passed; for workflows the best trial of each
        solved one, or of all if no evaluator said that one was solved."""
        if self._workflows:
            solved = [one for one in episodes if one.judged and one.solved] or episodes
            return [replace(one, trials=(best,)) for one in solved if (best := one.best)]
        pair = pair_of(episodes[0]) if self._pair else None
        return episodes if pair is None else [pair]

    def take(self, episodes: Sequence[Episode], answer: Json) -> Extracted:
        episodes = self._studied(episodes)
        table = object_of(answer, "The answer")
        given = table.get("lessons")
        if not isinstance(given, list):
            raise BadAnswer('The answer needs "lessons": a list, empty if there is nothing to learn.')
        if not given:
            nothing = text_of(table, "nothing_because", CONTENT, "The answer", needed=False)
            if not nothing:
                raise BadAnswer(
                    'There are no lessons. Give at least one, or say in "nothing_because" why there is none.'
                )
            return Extracted(nothing_because=nothing)
        listed = cast(list[Json], given)
        if len(listed) > self._most:
            count, most = len(listed), self._most
            raise BadAnswer(f"There are {count} lessons, and at most {most} are kept: give the best of them.")
        there = step_positions(episodes)
        lessons: dict[str, Lesson] = {}
        facts = self._success or not checks_say_what_they_expect(episodes)
        for number, one in enumerate(listed, 1):
            draft, cited = lesson_from(one, f"Lesson {number}"), cited_places(one, there, f"Lesson {number}")
            content = " ".join(unicodedata.normalize("NFC", draft.content).casefold().split())
            lesson = self._lesson(episodes, draft, cited)
            if facts or lesson.nature == "strategy":
                lessons.setdefault(content, lesson)
        return Extracted(tuple(lessons.values()), "" if lessons else NO_GUESSES)

    def _lesson(self, episodes: Sequence[Episode], draft: Lesson, cited: Sequence[StepPosition]) -> Lesson:
        """The draft with its origin. A fact that holds no value becomes a strategy."""
        fact = draft.nature == "fact" and not self._plain and bool(_VALUE.search(f"{draft.title}\n{draft.content}"))
        failed = all(episodes[n].judged and not episodes[n].solved for n in {place.episode for place in cited})
        contrasted = len(episodes) > 1 and failed
        origin, context = origin_of(episodes, cited, self._reason)
        return replace(
            draft,
            outcome="success" if self._success and not contrasted else "failure",
            query=(task := episodes[cited[0].episode].task).prompt,
            kind=task.kind or draft.kind,
            origin=origin,
            context=context,
            nature="fact" if fact else "strategy",
            layer="" if fact or self._plain else draft.layer,
            project=self._project if fact else "",
            confirmed=self._success or not fact,
        )


def layered_text(episodes: Sequence[Episode]) -> str:
    """The newest reflections with layers, oldest first, by layer; nothing for none."""
    reflections = [one for episode in episodes for one in episode.reflections if one.layers and not one.withheld]
    return lessons_text(reflections[-MOST_REFLECTIONS:])


def schema_of(most: int, steps: int, *, natures: bool = True, layers: bool = False) -> Json:
    """Why comes first, and the steps before the lesson that rests on them. All is required: some providers insist.

    Args:
        natures: whether each lesson names its nature, fact or strategy.
        layers: whether each lesson names its layer.
    """
    fields = {**(NATURE if natures else {}), **(LAYER if layers else {}), **TEXTS, **LABELS}
    lesson = object_schema(steps=steps_schema(steps), **fields)
    return object_schema(
        why={"type": "string"},
        lessons={"type": "array", "items": lesson, "maxItems": most},
        nothing_because={"type": "string"},
    )


def steps_schema(steps: int) -> Json:
    """The numbers of the steps that are cited. Those that exist are listed while they are few: a small model makes up
    others."""
    step: dict[str, Json] = {"type": "integer"}
    if steps <= LISTED:
        step["enum"] = list(range(1, steps + 1))
    return {"type": "array", "items": step, "minItems": 1}


def cited_places(lesson: Json, there: Sequence[StepPosition], where: str) -> tuple[StepPosition, ...]:
    """The places of the steps that a lesson cites, in order: 3, "3" and "s3" are the same. Raises `BadAnswer`."""
    given = cast(Mapping[str, Json], lesson).get("steps")
    listed = cast(list[Json], given) if isinstance(given, list) else [] if given is None else [given]
    known = f"s1 to s{len(there)}" if len(there) > 1 else "only s1"
    if not listed:
        raise BadAnswer(f'{where} cites no step: list the steps that it rests on in "steps" ({known}).')
    numbers: set[int] = set()
    for one in listed:
        named = _NAMED.fullmatch(one) if isinstance(one, str) else None
        number = int(named[1]) if named else one
        if isinstance(number, bool) or number not in range(1, len(there) + 1):
            raise BadAnswer(f"{where} cites {one!r:.40}, which is not a step. Steps: {known}.")
        numbers.add(int(number))
    return tuple(there[number - 1] for number in sorted(numbers))


def origin_of(
    episodes: Sequence[Episode], cited: Sequence[StepPosition], reason: str
) -> tuple[Origin, Mapping[str, Json]]:
    """The origin of a lesson, which is the trial that it cites most (of several, the last), and its context: where it
    cites several trials, all of them."""
    steps: dict[tuple[int, int], list[int]] = {}
    for place in cited:
        steps.setdefault((place.episode, place.trial), []).append(place.step)
    episode, trial = most = max(steps, key=lambda at: (len(steps[at]), at))
    origin = Origin("extracted", episodes[episode].id, trial, tuple(steps[most]), reason=reason)
    cites: list[Json] = [
        {"episode": episodes[at[0]].id, "trial": at[1], "steps": [*numbers]} for at, numbers in steps.items()
    ]
    return origin, {"cites": cites} if len(cites) > 1 else {}


SCHEMA: Json = object_schema(reasoning={"type": "string"}, verdict={"type": "string", "enum": list(VERDICTS)})
"""The reasoning comes first, so that the verdict follows from it."""


@dataclass(frozen=True)
class EpisodeVerdict:
    """`reason` is the judge's, and says so when an uncertain case was taken as a failure."""

    success: bool
    reason: str


class EpisodeJudge:
    """tokens: what task and trajectory may take of the prompt. paper: the prompt has the paper's structure.

    Of several trajectories of one task, one that succeeded is enough. Ask it at temperature 0.
    """

    def __init__(self, prompts: Prompts, *, tokens: int = TOKENS, paper: bool = False) -> None:
        self._prompt = prompts.get("judging.paper" if paper else "judging.judge").check("task", "trajectory")
        self._tokens = tokens

    def ask(self, episodes: Sequence[Episode]) -> Question:
        task, trajectory = render(episodes, self._tokens)
        *before, last = self._prompt.render(task=task, trajectory=trajectory)
        return Question((*before, replace(last, images=episodes[0].task.images)), SCHEMA)

    def take(self, episodes: Sequence[Episode], answer: Json) -> EpisodeVerdict:
        table = object_of(answer, "The verdict")
        reason = text_of(table, "reasoning", 50 * CONTENT, "The verdict")[:CONTENT]
        verdict = table.get("verdict")
        if not isinstance(verdict, str) or verdict not in VERDICTS:
            raise BadAnswer(f'"verdict" must be {", ".join(VERDICTS[:2])} or {VERDICTS[2]}, not {verdict!r:.80}.')
        if verdict == "uncertain":
            return EpisodeVerdict(False, f"Uncertain, and so taken as a failure: {reason}")
        return EpisodeVerdict(verdict == "success", reason)


# --- a lesson in a model's answer -------------------------------------------------------------------------------------


def lesson_from(answer: Json, where: str) -> Lesson:
    """The lesson in this object of a model's answer, without id or origin.

    Raises `BadAnswer`; `where` names the object in it, such as "Lesson 2".
    """
    table = object_of(answer, where)
    tags: Json = table.get("tags")
    tags = [] if tags is None else tags
    if not check_of(Sequence[str])[1](tags):
        raise BadAnswer(f'{where}: "tags" must be a list of strings; leave it empty for none.')
    tags = list(dict.fromkeys(tag.strip() for tag in cast(list[str], tags) if tag.strip()))
    if len(tags) > MOST_TAGS or any(len(tag) > TAG for tag in tags):
        raise BadAnswer(f'{where}: "tags" may be at most {MOST_TAGS} words of at most {TAG} characters each.')
    nature: Json = table.get("nature", "strategy")
    if nature not in NATURES:
        raise BadAnswer(f'{where}: "nature" must be {" or ".join(NATURES)}, not {nature!r:.40}.')
    layer: Json = table.get("layer") or ""
    if layer not in ("", *LAYERS):
        raise BadAnswer(f'{where}: "layer" must be {", ".join(LAYERS[:-1])} or {LAYERS[-1]}, not {layer!r:.40}.')
    return Lesson(
        id="",
        title=text_of(table, "title", TITLE, where),
        description=text_of(table, "description", DESCRIPTION, where),
        content=text_of(table, "content", CONTENT, where),
        outcome="success",
        tags=tuple(tags),
        kind=text_of(table, "kind", KIND, where, needed=False),
        nature=nature,
        layer=layer,
    )


def object_of(answer: Json, where: str) -> Mapping[str, Json]:
    """The answer. Raises `BadAnswer` unless it is an object."""
    if not isinstance(answer, dict):
        raise BadAnswer(f"{where} must be a JSON object, but is {_kind(answer)}.")
    return cast(dict[str, Json], answer)


def text_of(table: Mapping[str, Json], name: str, most: int, where: str, *, needed: bool = True) -> str:
    """The text under this name without white space around it. Raises `BadAnswer` when it is missing or too long."""
    value = table.get(name)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        raise BadAnswer(f'{where}: "{name}" must be a string, but is {_kind(value)}.')
    text = value.strip()
    if needed and not text:
        raise BadAnswer(f'{where}: "{name}" is empty.')
    if len(text) > most:
        raise BadAnswer(f'{where}: "{name}" has {len(text)} characters; at most {most} are allowed. Shorten it.')
    return text


_KINDS: Mapping[type, str] = {
    NoneType: "missing",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    str: "a string",
}


def _kind(value: Json) -> str:
    return next((words for kind, words in _KINDS.items() if isinstance(value, kind)), "a number")
