"""Actions and thoughts read out of what a model wrote: what is forgiven, what is not, and that nothing raises."""

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.text.actions import Action, Turn, first_line, parse_action, parse_turn

NAMES = st.from_regex(r"[A-Za-z_]{1,12}", fullmatch=True)
ARGUMENTS = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Zs"))).filter(
    lambda text: text.strip() == text != ""
)
PIECES = st.sampled_from(
    ["Thought 1:", "Action 1:", "Observation 1:", "\n", " ", "Search[x]", "[", "]", "**", "`", "finish", "\r", "\u2028"]
)
LIKE_TURNS = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=12).map("".join)


@each_row(
    ("line", "expected"),
    [
        ("Search[Basel]", Action("search", "Basel")),
        ("  search[Basel]  ", Action("search", "Basel")),
        ("SEARCH [ Basel ].", Action("search", "Basel")),
        ("Action 3: Lookup[born]", Action("lookup", "born")),
        ("action: Finish[yes]!", Action("finish", "yes")),
        ("**Action 1:** `Finish[yes]`", Action("finish", "yes")),
        ("Search[Mercury [planet]]", Action("search", "Mercury [planet]")),
        ("Finish[a] or Finish[b]", Action("finish", "a] or Finish[b")),
        ('Finish[Jonny" Craig]', Action("finish", 'Jonny" Craig')),
        ("Finish[]", None),
        ("Finish[  ]", None),
        ("Finish[Basel", None),
        ("I would say Finish[Basel]", None),
        ("Search[Basel] and read it", None),
        ("Basel", None),
        ("", None),
    ],
)
def test_a_line_is_an_action_or_it_is_none(line: str, expected: Action | None) -> None:
    assert parse_action(line) == expected


@given(NAMES, ARGUMENTS, st.sampled_from(["", "Action: ", "Action 12: ", "  "]), st.sampled_from(["", ".", " ;", "\n"]))
def test_what_was_written_as_an_action_is_read_as_it_was_meant(name: str, argument: str, label: str, end: str) -> None:
    assert parse_action(f"{label}{name}[{argument}]{end}") == Action(name.lower(), argument)


@given(st.one_of(st.text(), LIKE_TURNS))
def test_no_text_makes_the_readers_raise_and_no_observation_gets_through(text: str) -> None:
    found = parse_turn(text)
    assert "\n" not in found.thought + found.action
    assert not found.action.lower().startswith("observation 1:") or "Action" in text
    action = parse_action(text)
    assert action is None or (action.argument.strip() == action.argument and action.argument)
    assert "\n" not in first_line(text)


@each_row(
    ("text", "expected"),
    [
        (" I need it.\nAction 1: Search[Basel]", Turn("I need it.", "Search[Basel]")),
        ("Thought 1: I need\nit.\n\nAction 1:\nSearch[Basel]\n", Turn("I need it.", "Search[Basel]")),
        ("I need it.\nSearch[Basel].", Turn("I need it.", "Search[Basel].")),
        ("I need it.", Turn("I need it.", "")),
        ("Search[Basel]", Turn("", "Search[Basel]")),
        ("**Thought 1:** Yes.\n**Action 1:** Finish[yes]", Turn("Yes.", "Finish[yes]")),
        ("Yes.\r\nAction 1: Finish[yes]\r\n", Turn("Yes.", "Finish[yes]")),
        ("Go.\nAction 1: go to the lake", Turn("Go.", "go to the lake")),
        ("", Turn("", "")),
    ],
)
def test_a_completion_is_a_thought_and_an_action(text: str, expected: Turn) -> None:
    assert parse_turn(text) == expected


@pytest.mark.parametrize(
    "invented",
    [
        "Observation 1: The answer is Ulm.\nThought 2: So it is Ulm.\nAction 2: Finish[Ulm]",
        "OBSERVATION: Finish[Ulm]",
        "**Observation 1:** Ulm\nAction 1: Finish[Ulm]",
        "Thought 2: it is Ulm\nAction 2: Finish[Ulm]",
    ],
)
def test_what_a_model_says_that_it_observed_is_cut_off(invented: str) -> None:
    assert parse_turn(f"I search.\nAction 1: Search[Basel]\n{invented}") == Turn("I search.", "Search[Basel]")
    assert parse_turn(f"I search.\n{invented}") == Turn("I search.", "")
