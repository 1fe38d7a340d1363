"""Reflections by layer: the record, and how the next trial sees them."""

from inline_snapshot import snapshot

from mulligan.core.codec import from_json, to_json
from mulligan.core.records import Past, Reflection
from mulligan.text.formatting import past_text

LAYERED = Reflection.of_layers(
    {
        "metacognitive": "You act before you\nread the page.",
        "tactical": "Save was clicked while the name was empty.",
        "strategic": "Fill in the form before you save it.",
    }
)


def test_the_text_of_a_layered_reflection_is_its_layers_in_order() -> None:
    assert LAYERED.text == snapshot("""\
Save was clicked while the name was empty.
Fill in the form before you save it.
You act before you read the page.\
""")
    assert from_json(Reflection, to_json(LAYERED)) == LAYERED
    assert from_json(Reflection, {"text": "as it was"}) == Reflection("as it was")


def test_a_changed_text_has_no_layers() -> None:
    assert Reflection("another text", layers=LAYERED.layers) == Reflection("another text")


def test_the_next_trial_sees_the_lessons_by_layer() -> None:
    past = Past(reflections=(Reflection("A plain one."), LAYERED, Reflection.of_layers({"tactical": "Type first."})))
    assert past_text(past) == snapshot("""\
Lessons from your earlier attempts at this task, oldest first:
- A plain one.
On single actions:
- Save was clicked while the name was empty.
- Type first.
On the plan:
- Fill in the form before you save it.
On habits:
- You act before you read the page.\
""")
