"""Which sentences of a user correct a coding agent, in each language."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from each_row import each_row
from session_turns import call

from mulligan.core.turns import Turn
from mulligan.sessions.corrections import correction_in, lasts
from mulligan.sessions.events import QUESTION
from mulligan.sessions.pairs import State, find

CORPUS: dict[str, dict[str, list[str]]] = tomllib.loads(Path(__file__).with_name("corrections.toml").read_text("utf-8"))

NORMS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("norms.toml").read_text("utf-8"))
HOLDS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("holds.toml").read_text("utf-8"))


def each(kind: str) -> list[str]:
    return [sentence for language in CORPUS.values() for sentence in language[kind]]


def test_every_language_has_examples() -> None:
    words = files("mulligan.sessions").joinpath("corrections.toml").read_text("utf-8")
    assert CORPUS.keys() == tomllib.loads(words).keys()
    assert all(len(language[kind]) >= 12 for language in CORPUS.values() for kind in ("corrects", "none"))


def test_a_correction_is_quoted_from_where_it_begins() -> None:
    for before in ("", "OK.\n"):
        quoted = {sentence: correction_in(before + sentence) for sentence in each("corrects")}
        assert quoted == {sentence: sentence.replace("’", "'") for sentence in quoted}


def test_a_question_a_wish_and_politeness_are_none() -> None:
    assert [sentence for sentence in each("none") if correction_in(sentence)] == []


def test_as_a_question_it_is_none() -> None:
    asked = [f"{sentence.rstrip('.!。')}?" for sentence in (*each("corrects"), "Now add a test.")]
    assert [sentence for sentence in asked if correction_in(sentence)] == []


@pytest.mark.parametrize("language", ["Chinese", "Japanese"])
def test_punctuation_may_be_wide(language: str) -> None:
    wide = {ord(narrow): chr(ord(narrow) + 0xFEE0) for narrow in ",:;!?"}
    for sentence in CORPUS[language]["corrects"]:
        assert correction_in(sentence.translate(wide)) == sentence.translate(wide)
    for sentence in CORPUS[language]["none"]:
        assert correction_in(sentence.translate(wide)) == ""


def test_what_hooks_ask_is_no_correction() -> None:
    assert correction_in(QUESTION) == ""


@each_row(
    ("sentence", "holds"),
    [
        ("No, we never use npm here.", True),
        ("From now on run the linter first.", True),
        ("I told you to use bun, not npm", True),
        ("Immer zuerst die Tests laufen lassen.", True),
        ("Никогда не пушь в main!", True),
        ("以后不要用 npm", True),
        ("don't change anything, just let me know", False),
        ("Don't commit yet.", False),
        ('Instead of "Strategy ready" write "Ready to go".', False),
        ("No, use the staging bucket.", None),
    ],
)
def test_what_holds_beyond_the_task_is_told_from_what_holds_now(sentence: str, holds: bool | None) -> None:
    assert correction_in(sentence)
    assert lasts(sentence) is holds


@each_row(
    "sentence",
    [
        "I asked you not to touch the lock file",
        "wrong. The fixtures live in conftest.py.",
        "Not yarn, bun!",
        "You should have asked before deleting that.",
        "next time run the formatter first",
        "why did you mock the client? use the real one.",
        "again: never edit the generated code",
        "revert that, we don't commit build output",
        "this is not right, the port is 8080",
        "Ich hab doch gesagt: nimm ruff.",
        "Je t'ai déjà dit de lancer make check.",
        "Ya te dije que no uses npm.",
        "我说过不要改这个文件",
        "さっき言ったよね、pnpmを使って",
    ],
)
def test_a_correction_in_other_words(sentence: str) -> None:
    assert correction_in(sentence)


def test_what_holds_from_now_on_counts_at_once() -> None:
    assert [sentence for sentence in HOLDS["lasting"] if lasts(correction_in(sentence)) is not True] == []


def test_a_correction_need_not_say_how_long_it_holds() -> None:
    assert [sentence for sentence in HOLDS["corrects"] if lasts(correction_in(sentence) or "today") is not None] == []


def test_what_holds_for_the_moment_is_no_lesson() -> None:
    found = {sentence: correction_in(sentence) for sentence in HOLDS["moment"]}
    assert [sentence for sentence, correction in found.items() if correction and lasts(correction) is not False] == []


def test_a_task_a_report_and_thanks_are_none() -> None:
    assert [sentence for sentence in HOLDS["none"] if correction_in(sentence)] == []


@pytest.mark.parametrize(("rows", "kept"), [("kept", True), ("missed", False), ("none", False), ("mistaken", True)])
def test_what_states_a_norm_is_kept_at_once(rows: str, kept: bool) -> None:
    assert [one for one in NORMS[rows] if bool((said := correction_in(one)) and lasts(said)) is not kept] == []


def test_of_what_states_a_norm_most_is_kept_and_of_the_rest_little() -> None:
    assert len(NORMS["kept"]) > len(NORMS["missed"])
    assert len(NORMS["none"]) > 20 * len(NORMS["mistaken"])


def test_no_list_is_empty() -> None:
    assert min(map(len, HOLDS.values())) > 5


TAKEN_BACK = (
    "sorry wrong chat. ignore last message",
    "never mind",
    "You're right, my mistake.",
    "Falscher Chat, sorry.",
    "mauvaise fenêtre, pardon",
    "me equivoqué, perdona",
    "esqueça isso, por favor",
    "发错了，抱歉",
    "さっきのは無視してください",
    "не тот чат, извини",
    "방금 메시지는 무시해 주세요",
)
STANDS = ("thanks", "and ignore that file while you search")


def learned_from(*messages: str) -> int:
    made = call("1", "Bash", "npm install x", "ok")
    said = [Turn("user", message) for message in messages]
    return len(find(State("claude", "s"), [made, *said])[1])


@each_row("message", TAKEN_BACK)
def test_what_the_next_message_takes_back_teaches_nothing(message: str) -> None:
    assert learned_from("No, use pnpm in this repository.", message) == 0


@pytest.mark.parametrize("message", STANDS)
def test_another_message_takes_nothing_back(message: str) -> None:
    assert learned_from("No, use pnpm in this repository.", message) == 1
