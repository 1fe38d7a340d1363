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

from mulligan.core.errors import UnknownName
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Json
from mulligan.models.reader import code, database, game, service
from mulligan.models.reader.facts import Fact, Form, Notes
from mulligan.models.scripted import Line, ScriptedModel

_STEP = re.compile(r"^s(\d+) (?:thought|action|observation|output):", re.MULTILINE)


class _Family(NamedTuple):
    opening: str
    act: Callable[[Notes], str]
    facts: Callable[[str], Iterable[Fact]]


def _stated(forms: Sequence[Form]) -> Callable[[str], Iterable[Fact]]:
    return lambda text: (fact for form in forms for fact in form.facts(text))


FAMILIES: Mapping[str, _Family] = {
    "database": _Family(database.OPENING, database.act, _stated(database.FORMS)),
    "game": _Family(game.OPENING, game.act, _stated(game.FORMS)),
    "code": _Family(code.OPENING, code.act, code.facts),
    "service": _Family(service.OPENING, service.act, _stated(service.FORMS)),
}


class Reader(ScriptedModel):
    """`reader:FAMILY`. Its cost is 0, and usage is counted in words.

    Asked for a reflection, it repeats the facts that the trial observed. Asked for lessons, it states what the steps
    observed, one lesson for each thing that facts are about, the newest first as far as there is room. Asked for a
    verdict, it cannot tell.
    """

    def __init__(self, family: str) -> None:
        if family not in FAMILIES:
            raise UnknownName("family of the scripted reader", family, FAMILIES)
        super().__init__(self._line, f"reader:{family}")
        self._family = FAMILIES[family]

    def _line(self, question: Question, sampling: Sampling) -> Line:
        text = question.messages[-1].text
        if question.schema is not None:
            return self._thought(text, cast(Mapping[str, Any], question.schema)["properties"])
        if text.rstrip().endswith("Lesson:"):
            return " ".join(dict.fromkeys(fact.sentence for fact in self._family.facts(text))) or "No fact was seen."
        return self._family.act(Notes.read(text, self._family.opening))

    def _thought(self, text: str, properties: Mapping[str, Any]) -> Line:
        """The answer to a question with a schema."""
        if "verdict" in properties:
            return {"reasoning": "The reader judges nothing.", "verdict": "uncertain"}
        lessons = self._lessons(text)[: properties["lessons"].get("maxItems")]
        return {"why": "", "lessons": lessons, "nothing_because": "" if lessons else "No step observed a fact."}

    def _lessons(self, text: str) -> list[Json]:
        """The facts in the numbered steps of a record: of each thing those of the newest step, the newest first."""
        pieces = _STEP.split(text)
        found: dict[str, tuple[int, dict[str, None]]] = {}
        for number, observed in reversed(list(zip(pieces[1::2], pieces[2::2], strict=True))):
            for fact in self._family.facts(observed):
                step, sentences = found.setdefault(fact.title, (int(number), {}))
                if step == int(number):
                    sentences[fact.sentence] = None
        return [_lesson(title, step, sentences) for title, (step, sentences) in found.items()]


def _lesson(title: str, step: int, sentences: Iterable[str]) -> Json:
    texts = {"title": title, "description": f"For a task that needs this: {title}", "content": "\n".join(sentences)}
    return {"steps": [step], "nature": "fact", **texts, "tags": [], "kind": ""}
