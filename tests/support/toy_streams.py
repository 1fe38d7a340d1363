"""A stream for tests: cases in families, each with a word that only those of the family before it reveal.

`Learner` is actor and thinker in one: it says the word of a family once its prompt holds it, and after an episode it
extracts that word as a lesson. With a change, all words of the second half are others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from banks import lessons_of

from mulligan.core.questions import Question, Sampling
from mulligan.models.scripted import ScriptedModel

ARMS = {"lessons": '[memory]\nembedder = "none"\nthreshold = 0\ntop_k = 20\nauto_merge = false\nlearn_share = 1\n'}


def word(family: str, phase: int) -> str:
    return f"{family}-{'new' if phase > 1 else 'old'}"


def tasks(folder: Path, families: Sequence[str], each: int, *, drifts: bool = False) -> Path:
    """A file of tasks: `each` cases of each family in each phase."""
    rows = list[str]()
    for phase in (1, 2) if drifts else (1,):
        for n in range(each):
            for family in families:
                first = drifts and phase == 2 and n == 0 and family == families[0]
                change = 'change = "All words are new now."\n' if first else ""
                rows.append(
                    f'[[task]]\nid = "{family}/{phase}-{n}"\nprompt = "{family}/{phase}-{n}: say the word."\n'
                    f'contains = "{word(family, phase)}"\n{change}'
                )
    file = folder / "stream.toml"
    file.write_text("\n".join(rows))
    return file


def arm(folder: Path, name: str = "lessons") -> str:
    """The file of an arm that shows all lessons."""
    file = folder / f"{name}.toml"
    file.write_text(ARMS["lessons"])
    return str(file)


class Learner(ScriptedModel):
    """`asked`: each question that was paid for."""

    def __init__(self) -> None:
        super().__init__(self._answer, "learner")
        self.asked: list[str] = []

    def _answer(self, question: Question, sampling: Sampling) -> Any:
        text = "\n".join(message.text for message in question.messages)
        self.asked.append(text)
        found = re.search(r"(\w+)/(\d)-\d+: say the word", text)
        assert found is not None
        said = word(found[1], int(found[2]))
        schema: Mapping[str, Any] = question.schema or {}
        if "lessons" in schema.get("properties", {}):
            return lessons_of((f"The word of {said}", f"The word is {said}."))
        return said if f"The word is {said}." in text else "I do not know"
