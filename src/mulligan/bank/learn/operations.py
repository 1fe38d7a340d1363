"""Ask a model how an episode should change the notebook, and check the operations that it proposes.

Each operation adds, changes or removes one entry, and cites steps of the episode. Changed entries stay in the bank as
superseded, removed ones as retired.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from mulligan.bank.learn.extraction import (
    CONTENT,
    DESCRIPTION,
    NATURE,
    NO_GUESSES,
    TITLE,
    Extracted,
    cited_places,
    object_of,
    origin_of,
    steps_schema,
    text_of,
)
from mulligan.bank.learn.facts import checks_say_what_they_expect
from mulligan.bank.learn.trajectory import TOKENS, render, step_positions
from mulligan.bank.recall.notebook import entry_text
from mulligan.core.errors import BadAnswer
from mulligan.core.protocols import Prompts
from mulligan.core.questions import Question, object_schema
from mulligan.core.records import Episode, Json, Lesson
from mulligan.text.formatting import fenced, labelled

MOST = 5
"""Maximum number of operations after one episode."""
OPERATIONS = ("add", "change", "remove")
STRATEGIES = """You may also add strategies: how to think or what to check in tasks of this kind, in any project,
without names, numbers and texts of this one. Give each operation its "nature": "strategy" for these, "fact" for
entries of the notebook."""
_ENDED = {True: "The task succeeded.", False: "The task failed.", None: "Nobody judged how the task ended."}
_WORD = re.compile(r"\w{3,}")


class Notekeeper:
    """Asks a model how the notebook of a project should change after some episodes, and checks its answer.

    An added or changed entry is a fact, which is confirmed if the task succeeded. The parent of a changed entry is the
    entry that it replaces.

    Args:
        entries: The entries of the notebook that the model sees.
        success: Whether the task succeeded. None if it was not judged.
        reason: The judge's reason; "" if there is none.
        tokens: Maximum tokens of the task and the trajectories in the prompt.
        strategies: Whether the model may also propose strategies, which hold in any project.
    """

    def __init__(
        self,
        prompts: Prompts,
        entries: Sequence[Lesson],
        *,
        success: bool | None,
        reason: str = "",
        tokens: int = TOKENS,
        project: str = "",
        strategies: bool = False,
    ) -> None:
        slots = ("strategies", "notebook", "task", "ended", "reason", "trajectory")
        self._prompt = prompts.get("extraction.notebook").check(*slots)
        self._strategies = strategies
        self._entries = {entry.id[:8]: entry for entry in entries}
        self._success, self._reason, self._tokens, self._project = success, reason, tokens, project

    def ask(self, episodes: Sequence[Episode]) -> Question:
        task, trajectory = render(episodes, self._tokens)
        page = "\n".join(f"{id} {entry_text(entry)}" for id, entry in self._entries.items())
        *before, last = self._prompt.render(
            strategies=STRATEGIES if self._strategies else "",
            notebook=fenced(page or "(It is empty.)"),
            task=task,
            ended=_ENDED[self._success],
            reason=labelled("The judge's reason", self._reason[:CONTENT]),
            trajectory=trajectory,
        )
        messages = (*before, replace(last, images=episodes[0].task.images))
        return Question(messages, self._schema(len(step_positions(episodes))))

    def _schema(self, steps: int) -> Json:
        entry: Json = {"type": "string", "enum": ["", *self._entries]}
        texts: dict[str, Json] = {name: {"type": "string"} for name in ("title", "content", "when", "reason")}
        fields: dict[str, Json] = {
            "operation": {"type": "string", "enum": list(OPERATIONS)},
            **(NATURE if self._strategies else {}),
            "entry": entry,
            "steps": steps_schema(steps),
            **texts,
            "rests_on": {"type": "array", "items": entry},
        }
        operation = object_schema(**fields)
        return object_schema(
            why={"type": "string"},
            operations={"type": "array", "items": operation, "maxItems": MOST},
        )

    def take(self, episodes: Sequence[Episode], answer: Json) -> Extracted:
        table = object_of(answer, "The answer")
        operations = table.get("operations")
        if not isinstance(operations, list):
            raise BadAnswer('The answer needs "operations": a list, empty if the notebook is complete.')
        listed = cast(list[Json], operations)
        if len(listed) > MOST:
            raise BadAnswer(f"There are {len(listed)} operations, and at most {MOST} are kept: give the best of them.")
        seen = _words("\n".join(render(episodes, self._tokens)))
        facts = self._success or not checks_say_what_they_expect(episodes)
        lessons: list[Lesson] = []
        removed: dict[str, str] = {}
        for number, one in enumerate(listed, 1):
            where = f"Operation {number}"
            fields = object_of(one, where)
            operation = fields.get("operation")
            if operation not in OPERATIONS:
                raise BadAnswer(f'{where}: "operation" must be {", ".join(OPERATIONS)}, not {operation!r:.40}.')
            entry = None if operation == "add" else self._changeable(fields.get("entry"), where)
            reason = text_of(fields, "reason", DESCRIPTION, where, needed=operation != "add")
            cited = cited_places(fields, step_positions(episodes), where)
            if entry is not None and (entry.id in removed or any(entry.id in one.origin.parents for one in lessons)):
                raise BadAnswer(f"{where} is the second operation on entry {entry.id[:8]}: one is enough.")
            if operation == "remove" and entry is not None:
                removed[entry.id] = reason
                continue
            draft = self._draft(fields, where)
            if not _words(draft.content) & seen:
                raise BadAnswer(f"{where}: none of its content is in the record. Keep to the record.")
            if draft.nature == "fact" and not facts:
                continue
            origin, context = origin_of(episodes, cited, self._reason)
            task = episodes[cited[0].episode].task
            lessons.append(
                replace(
                    draft,
                    query=task.prompt,
                    kind=task.kind,
                    origin=replace(origin, parents=(entry.id,) if entry else (), reason=reason or origin.reason),
                    context=context,
                )
            )
        why = text_of(table, "why", 2 * CONTENT, "The answer", needed=False)[:CONTENT]
        nothing = NO_GUESSES if listed else why or "the notebook says it all"
        return Extracted(tuple(lessons), "" if lessons or removed else nothing, removed)

    def _entry(self, id: Json, where: str) -> Lesson:
        if not isinstance(id, str) or id not in self._entries:
            known = ", ".join(self._entries) or "none yet"
            raise BadAnswer(f'{where}: "entry" must be the id of an entry ({known:.400}), not {id!r:.40}.')
        return self._entries[id]

    def _changeable(self, id: Json, where: str) -> Lesson:
        entry = self._entry(id, where)
        if entry.pinned:
            raise BadAnswer(f"{where}: entry {entry.id[:8]} was pinned by a person, and only a person may change it.")
        return entry

    def _draft(self, fields: Mapping[str, Json], where: str) -> Lesson:
        bases = fields.get("rests_on")
        names = cast(list[Json], bases) if isinstance(bases, list) else []
        # Only an added lesson can be a strategy: an entry that replaces another one is a fact like that one.
        may_be_strategy = self._strategies and fields.get("operation") == "add"
        fact = not (may_be_strategy and fields.get("nature") == "strategy")
        return Lesson(
            id="",
            title=text_of(fields, "title", TITLE, where),
            description=text_of(fields, "when", DESCRIPTION, where, needed=False),
            content=text_of(fields, "content", CONTENT, where),
            outcome="success" if self._success else "failure",
            nature="fact" if fact else "strategy",
            project=self._project if fact else "",
            confirmed=bool(self._success) or not fact,
            rests_on=tuple(dict.fromkeys(self._entry(name, where).id for name in names if name)),
        )


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
