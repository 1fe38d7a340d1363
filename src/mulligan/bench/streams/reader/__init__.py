"""A model for tests of memories: it acts on a fact if and only if the text of its question holds it.

It plays one family of `bench/streams`. It knows how the family words its facts, and none of them. Where a fact stands
in the prompt does not matter: a lesson, an entry of a notebook, an account of an earlier task, an observation. What it
does not find it explores, at the price that the family puts on that. So what it earns says whether a memory brought the
facts to the prompt. It says nothing of how well a real model uses them.
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
"""An entry of a notebook that is brought up to date, with its id."""


class _Family(NamedTuple):
    opening: str
    act: Callable[[Notes], str]
    facts: Callable[[str], Iterable[Fact]]
    shown: Callable[[str], Iterable[str]] = lambda _: ()


def _stated(forms: Sequence[Form]) -> Callable[[str], Iterable[Fact]]:
    return lambda text: (fact for form in forms for fact in form.facts(text))


FAMILIES: Mapping[str, _Family] = {
    "database": _Family(database.OPENING, database.act, _stated(database.FORMS), database.shown),
    "game": _Family(game.OPENING, game.act, _stated(game.FORMS)),
    "code": _Family(code.OPENING, code.act, code.facts),
    "service": _Family(service.OPENING, service.act, _stated(service.FORMS), service.shown),
}


class Reader(ScriptedModel):
    """`reader:FAMILY`. Its cost is 0, and usage is counted in words.

    Asked for a reflection, it repeats the facts that the trial observed. Asked for lessons, it states what the steps
    observed, one lesson for each thing that facts are about, the newest first as far as there is room. Asked to keep up
    a notebook, it adds and changes entries in the same way, and removes none. Asked for a verdict, it cannot tell.
    """

    def __init__(self, family: str) -> None:
        if family not in FAMILIES:
            raise UnknownName("family of the scripted reader", family, FAMILIES)
        super().__init__(self._line, f"reader:{family}")
        self._family = FAMILIES[family]

    def _line(self, question: Question, sampling: Sampling) -> str | dict[str, Json]:
        text = question.messages[-1].text
        if question.schema is not None:
            return self._thought(text, cast(Mapping[str, Any], question.schema)["properties"])
        if text.rstrip().endswith("Lesson:"):
            return " ".join(dict.fromkeys(fact.sentence for fact in self._family.facts(text))) or "No fact was seen."
        return self._family.act(Notes.read(text, self._family.opening, self._family.shown))

    def _thought(self, text: str, properties: Mapping[str, Any]) -> dict[str, Json]:
        """The answer to a question with a schema."""
        if "verdict" in properties:
            return {"reasoning": "The reader judges nothing.", "verdict": "uncertain"}
        seen = self._seen(text)
        if "operations" in properties:
            operations = [made for title, found in seen.items() if (made := self._operation(text, title, *found))]
            return {"why": "", "operations": operations[: properties["operations"].get("maxItems")]}
        lessons = [_lesson(title, *found) for title, found in seen.items()][: properties["lessons"].get("maxItems")]
        return {"why": "", "lessons": lessons, "nothing_because": "" if lessons else "No step observed a fact."}

    def _seen(self, text: str) -> Mapping[str, tuple[int, Sequence[Fact]]]:
        """The facts in the numbered steps of a record, by title: those of the newest step, the newest first."""
        pieces = _STEP.split(text)
        found: dict[str, tuple[int, list[Fact]]] = {}
        for number, observed in reversed(list(zip(pieces[1::2], pieces[2::2], strict=True))):
            for fact in self._family.facts(observed):
                step, facts = found.setdefault(fact.title, (int(number), []))
                if step == int(number) and fact not in facts:
                    facts.append(fact)
        return found

    def _operation(self, text: str, title: str, step: int, facts: Sequence[Fact]) -> Json:
        """What brings the notebook in the text up to date with these facts; None where it holds them, unmarked.

        What an entry says of other things under the same title stays.
        """
        entry = next((found for found in _ENTRY.finditer(text) if found["line"].startswith(title)), None)
        old = list(self._family.facts(entry["content"])) if entry else []
        if entry and not is_marked(entry["line"]) and {fact.sentence for fact in facts} <= {o.sentence for o in old}:
            return None
        seen = {fact.key for fact in facts}
        kept = [fact.sentence for fact in old if fact.key not in seen]
        return {
            "operation": "change" if entry else "add",
            "entry": entry["id"] if entry else "",
            "steps": [step],
            "title": title,
            "content": "\n".join((*kept, *(fact.sentence for fact in facts))),
            "when": "",
            "rests_on": [],
            "reason": f"Step {step} shows it." if entry else "",
        }


def _lesson(title: str, step: int, facts: Iterable[Fact]) -> Json:
    content = "\n".join(fact.sentence for fact in facts)
    texts = {"title": title, "description": "In any task of this world", "content": content}
    return {"steps": [step], "nature": "fact", **texts, "tags": [], "kind": ""}
