"""Word pieces against those of the reference's tokenizer. The vocabulary here is the part of it that the texts need:
the longest piece that fits is in it wherever the whole one has it."""

from embedding_reference import PIECES, TEXTS, VOCABULARY
from hypothesis import given
from hypothesis import strategies as st

from mulligan.models.embedders.pieces import WordPieces

BY_NUMBER = {number: piece for piece, number in VOCABULARY.items()}
WORDS = WordPieces([BY_NUMBER.get(number, f"\0{number}") for number in range(max(BY_NUMBER) + 1)])
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
