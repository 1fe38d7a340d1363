"""Word pieces against those of the reference's tokenizer. The vocabulary here is the part of it that the texts need:
the longest piece that fits is in it wherever the whole one has it."""

import pytest
from embedding_reference import PIECES, TEXTS, VOCABULARY
from hypothesis import given
from hypothesis import strategies as st

from mulligan.models.embedders.pieces import Unigram, WordPieces

BY_NUMBER = {number: piece for piece, number in VOCABULARY.items()}
WORDS = WordPieces([BY_NUMBER.get(number, f"\0{number}") for number in range(max(BY_NUMBER) + 1)])
LIKELY = {
    "<s>": 0,
    "<pad>": 0,
    "</s>": 0,
    "<unk>": 0,
    "▁": -3,
    "▁re": -4,
    "▁ret": -4,
    "ry": -5,
    "try": -3,
    "r": -8,
    "y": -8,
}
ANY = Unigram(list(LIKELY), list(LIKELY.values()), {ord("R"): "r", 0x200B: " "}, (0, 2, 1, 3))
BEGIN, END, UNKNOWN = VOCABULARY["[CLS]"], VOCABULARY["[SEP]"], VOCABULARY["[UNK]"]


def test_pieces_are_those_of_the_reference() -> None:
    assert len(TEXTS) == len(PIECES)
    assert [
        (text, pieces) for text, pieces in zip(TEXTS, PIECES, strict=True) if WORDS.numbers(text, 256) != pieces
    ] == []


def test_the_reference_holds_the_hard_cases() -> None:
    lengths = [len(pieces) for pieces in PIECES]
    assert len(TEXTS) == 100
    assert (min(lengths), max(lengths)) == (2, 256)
    assert lengths.count(256) >= 8
    assert "" in TEXTS
    assert any(UNKNOWN in pieces for pieces in PIECES)


@given(st.text(), st.integers(2, 40))
def test_any_text_has_pieces_between_its_marks(text: str, most: int) -> None:
    numbers = WORDS.numbers(text, most)
    assert (numbers[0], numbers[-1]) == (BEGIN, END)
    assert len(numbers) <= most
    assert numbers[:-1] == WORDS.numbers(text, 10_000)[: len(numbers) - 1], "only the end is cut off"


def test_halves_of_surrogates_and_very_long_texts_do_no_harm() -> None:
    assert WORDS.numbers("a\ud800", 256) == WORDS.numbers("a", 256)
    assert len(WORDS.numbers("a " * 1_000_000, 256)) == 256


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("retry", ["▁re", "try"]),  # -7, and -9 for the longest first
        ("  retry\u200bRetry ", ["▁re", "try", "▁re", "try"]),
        ("ry x", ["▁", "ry", "▁", "<unk>"]),
        ("ﬁ", ["▁", "<unk>", "<unk>"]),  # NFKC: f and i
        ("\ud800", ["▁", "<unk>"]),
        ("", []),
    ],
)
def test_a_word_is_cut_in_the_likeliest_way(text: str, pieces: list[str]) -> None:
    names = list(LIKELY)
    assert [names[n] for n in ANY.numbers(text, 256)] == ["<s>", *pieces, "</s>"]
    assert ANY.numbers(text, 3)[1:-1] == ANY.numbers(text, 256)[1:-1][:1]


def test_a_text_without_spaces_has_an_end() -> None:
    assert len(ANY.numbers("ry" * 10**6, 256)) == 256
