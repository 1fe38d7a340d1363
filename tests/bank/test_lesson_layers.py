"""Lessons by layer: what extraction takes over from the reflections of an episode."""

from dataclasses import replace
from typing import Any

import pytest
from inline_snapshot import snapshot

from mulligan.app.prompts import FilePrompts
from mulligan.bank.learn.extraction import Extractor
from mulligan.core.errors import BadAnswer
from mulligan.core.records import Attempt, Episode, Feedback, Reflection, Stop, Task, Trial

LAYERED = Reflection.of_layers(
    {
        "tactical": "Year 2023 was taken.",
        "strategic": "Sort the orders first.",
        "metacognitive": "You take what is near.",
    }
)
FAILED = Trial(1, Attempt("2023"), Feedback(False, "Too late."), LAYERED)
EPISODE = Episode(
    "e.1",
    Task("Find the first order."),
    trials=(FAILED, Trial(2, Attempt("2020"), Feedback(True))),
    stop=Stop("solved"),
)
PLAIN = replace(EPISODE, trials=(replace(FAILED, reflection=Reflection("Sort them.")), EPISODE.trials[1]))
PROMPTS = FilePrompts()


def lesson(**changed: Any) -> dict[str, Any]:
    texts = {"title": "Look further", "description": "Always.", "content": "See all before you choose."}
    return {"steps": [1], **texts, "tags": [], "kind": "", **changed}


def answer(*lessons: Any) -> dict[str, Any]:
    return {"why": "It sorted.", "lessons": list(lessons), "nothing_because": ""}


def test_the_model_sees_the_layers_and_names_that_of_each_lesson() -> None:
    question = Extractor(PROMPTS, success=True).ask([EPISODE])
    asked = question.messages[-1].text
    shown = asked[asked.index("What the agent wrote") : asked.index("Answer with")]
    assert shown == snapshot("""\
What the agent wrote of it itself, by layer. Give each lesson its "layer", too: "tactical" for one about
a single action, which holds in tasks of this kind; "strategic" for one about the plan of such a task; "metacognitive"
for one about a habit of the agent, worded so that it can be followed in a task of any kind:
```
On single actions:
- Year 2023 was taken.
On the plan:
- Sort the orders first.
On habits:
- You take what is near.
```

""")
    assert "layer" in question.schema["properties"]["lessons"]["items"]["required"]


@pytest.mark.parametrize(
    "episode", [PLAIN, replace(EPISODE, trials=(replace(FAILED, reflection=replace(LAYERED, withheld="no")),))]
)
def test_without_layers_nobody_asks_for_them(episode: Episode) -> None:
    question = Extractor(PROMPTS, success=True).ask([episode])
    assert "layer" not in question.messages[-1].text
    assert "layer" not in question.schema["properties"]["lessons"]["items"]["required"]


def test_a_lesson_keeps_its_layer_and_a_fact_has_none() -> None:
    fact = lesson(title="`orders` is sorted", content="`orders` is sorted by year.", nature="fact", layer="tactical")
    extractor = Extractor(PROMPTS, success=True)
    taken = extractor.take([EPISODE], answer(lesson(layer="metacognitive"), fact, lesson(content="Other.")))
    assert [(one.nature, one.layer) for one in taken.lessons] == [
        ("strategy", "metacognitive"),
        ("fact", ""),
        ("strategy", ""),
    ]
    with pytest.raises(BadAnswer, match="tactical, strategic or metacognitive, not 'habit'"):
        extractor.take([EPISODE], answer(lesson(layer="habit")))
