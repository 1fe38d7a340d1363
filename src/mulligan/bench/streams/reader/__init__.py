"""A scripted model for tests of memories: it acts on a fact if and only if its prompt contains the fact.

It plays one family of streams. It knows how facts are worded, but not their values. A fact counts anywhere in the
prompt: in a lesson, an entry of a notebook, an account of an earlier task, or an observation. The reader explores what
it does not find, which costs points. So its points show whether a memory brings the facts into the prompt, but not how
well a real model uses them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from mulligan import ScriptedModel
from mulligan.bench.streams.reader import code, database, game, service
from mulligan.bench.streams.reader.facts import Fact, Form, Notes, is_marked
from mulligan.plugins import Json, Question, Sampling, UnknownName

_STEP = re.compile(r"^s(\d+) (?:thought|action|observation|output):", re.MULTILINE)
_ENTRY = re.compile(r"^(?P<id>\w+) - (?P<line>.*)$(?P<content>(?:\n  > .*)*)", re.MULTILINE)
"""An entry of the notebook to update, with its id."""


class _Family(NamedTuple):
    opening: str
    act: Callable[[Notes], str]
    facts: Callable[[str], Iterable[Fact]]
    implied_facts: Callable[[str], Iterable[str]] = lambda _: ()


def _facts_of(forms: Sequence[Form]) -> Callable[[str], Iterable[Fact]]:
    return lambda text: (fact for form in forms for fact in form.facts(text))


FAMILIES: Mapping[str, _Family] = {
    "database": _Family(database.OPENING, database.act, _facts_of(database.FORMS), database.implied_facts),
    "game": _Family(game.OPENING, game.act, _facts_of(game.FORMS)),
    "code": _Family(code.OPENING, code.act, code.facts),
    "service": _Family(service.OPENING, service.act, _facts_of(service.FORMS), service.implied_facts),
}


class Reader(ScriptedModel):
    """`reader:FAMILY`. Its cost is 0, and usage is counted in words.

    A reflection repeats the facts that the trial observed. Lessons state the facts that the steps observed: one lesson
    for each title, the newest first, as many as are allowed. A notebook is updated in the same way, and keeps all of
    its entries. A verdict is always "uncertain".
    """

    def __init__(self, family: str) -> None:
        if family not in FAMILIES:
            raise UnknownName("family of the scripted reader", family, FAMILIES)
        super().__init__(self._line, f"reader:{family}")
        self._family = FAMILIES[family]

    def _line(self, question: Question, sampling: Sampling) -> str | dict[str, Json]:
        text = question.messages[-1].text
        if question.schema is not None:
            return self._json_answer(text, cast(Mapping[str, Any], question.schema)["properties"])
        if text.rstrip().endswith("Lesson:"):
            return " ".join(dict.fromkeys(fact.sentence for fact in self._family.facts(text))) or "No fact was seen."
        return self._family.act(Notes.read(text, self._family.opening, self._family.implied_facts))

    def _json_answer(self, text: str, properties: Mapping[str, Any]) -> dict[str, Json]:
        """The answer to a question with a schema."""
        if "verdict" in properties:
            return {"reasoning": "The reader judges nothing.", "verdict": "uncertain"}
        by_title = self._facts_by_title(text)
        if "operations" in properties:
            operations = [made for title, found in by_title.items() if (made := self._operation(text, title, *found))]
            return {"why": "", "operations": operations[: properties["operations"].get("maxItems")]}
        lessons = [_lesson(title, *found) for title, found in by_title.items()]
        lessons = lessons[: properties["lessons"].get("maxItems")]
        return {"why": "", "lessons": lessons, "nothing_because": "" if lessons else "No step observed a fact."}

    def _facts_by_title(self, text: str) -> Mapping[str, tuple[int, Sequence[Fact]]]:
        """The newest step of a record that observed facts with a title, and these facts. The newest title is first."""
        pieces = _STEP.split(text)
        by_title: dict[str, tuple[int, list[Fact]]] = {}
        for number, observation in reversed(list(zip(pieces[1::2], pieces[2::2], strict=True))):
            for fact in self._family.facts(observation):
                step, facts = by_title.setdefault(fact.title, (int(number), []))
                if step == int(number) and fact not in facts:
                    facts.append(fact)
        return by_title

    def _operation(self, text: str, title: str, step: int, facts: Sequence[Fact]) -> Json:
        """The operation that adds these facts to the notebook in the text. None if an unmarked entry has them.

        Other facts of an entry with this title are kept.
        """
        entry = next((match for match in _ENTRY.finditer(text) if match["line"].startswith(title)), None)
        old = list(self._family.facts(entry["content"])) if entry else []
        if entry and not is_marked(entry["line"]) and {fact.sentence for fact in facts} <= {o.sentence for o in old}:
            return None
        keys = {fact.key for fact in facts}
        others = [fact.sentence for fact in old if fact.key not in keys]
        return {
            "operation": "change" if entry else "add",
            "entry": entry["id"] if entry else "",
            "steps": [step],
            "title": title,
            "content": "\n".join((*others, *(fact.sentence for fact in facts))),
            "when": "",
            "rests_on": [],
            "reason": f"Step {step} shows it." if entry else "",
        }


def _lesson(title: str, step: int, facts: Iterable[Fact]) -> Json:
    content = "\n".join(fact.sentence for fact in facts)
    texts = {"title": title, "description": "In any task of this world", "content": content}
    return {"steps": [step], "nature": "fact", **texts, "tags": [], "kind": ""}
