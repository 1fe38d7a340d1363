"""Long texts by their pieces: all of it is read, in order, and short texts are as the embedder gives them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.bank.recall.embedding import LONGEST, Vectors, embed, pieces
from mulligan.core.errors import ModelError
from mulligan.models.embedders.hash import HashEmbedder
from mulligan.text.truncate import estimate


class Counting(HashEmbedder):
    def __init__(self) -> None:
        super().__init__(64)
        self.seen: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Any:
        self.seen += texts
        return await super().embed(texts)


@given(st.text(max_size=30) | st.lists(st.text("ab1. ", max_size=9), max_size=400).map(" ".join))
def test_pieces_hold_all_words_in_order_and_none_is_too_long(text: str) -> None:
    cut = pieces(text)
    assert " ".join(cut).split() == text.split()
    assert all(estimate(piece) <= 1.1 * LONGEST + 10 for piece in cut)


def test_chinese_is_cut_without_spaces() -> None:
    cut = pieces("订单" * 500)
    assert "".join(cut) == "订单" * 500
    assert len(cut) == 5


@each_row(
    "words",
    [
        ["中" * 90, "文" * 190],
        ["中" * 199, "文" * 200],
        ["订" * 150] * 6,
        ["中" * 150, "文" * 200, "订" * 150],
    ],
)
def test_long_chinese_words_fill_no_piece_beyond_what_the_embedder_reads(words: list[str]) -> None:
    cut = pieces(" ".join(words))
    assert " ".join(cut).split() == words
    assert max(map(estimate, cut)) <= 250


def test_long_words_of_other_scripts_are_cut_as_they_always_were() -> None:
    """Or stored vectors would differ from those of today."""
    words = ["word"] * 180 + ["9" * 190] + ["word"] * 190
    assert estimate(pieces(" ".join(words))[0]) == 370


async def test_why_not_is_about_the_last_call() -> None:
    class Sometimes(Counting):
        async def embed(self, texts: Sequence[str]) -> Any:
            if not self.seen:
                self.seen.append("")
                raise ModelError("down")
            return await super().embed(texts)

    vectors = Vectors(Sometimes())
    assert (await vectors.of(["a"]), vectors.why_not) == (None, "down")
    assert (len(await vectors.of(["a"])), vectors.why_not) == (1, "")


async def test_a_short_text_is_as_the_embedder_gives_it() -> None:
    embedder = Counting()
    made = await embed(embedder, ["order price", "weather"])
    assert made == pytest.approx(await HashEmbedder(64).embed(["order price", "weather"]))
    assert embedder.seen == ["order price", "weather"]


async def test_a_long_text_is_the_mean_of_its_pieces() -> None:
    text, embedder = " ".join(f"w{n}" for n in range(500)), Counting()
    made = await embed(embedder, ["one", text, "two"])
    assert made.shape == (3, 64)
    assert made.dtype == np.float32
    assert np.linalg.norm(made, axis=1) == pytest.approx(1)
    parts = await HashEmbedder(64).embed(pieces(text))
    assert len(parts) > 3
    assert made[1] == pytest.approx(parts.sum(0) / np.linalg.norm(parts.sum(0)), abs=1e-6)
    assert made[2] == pytest.approx((await HashEmbedder(64).embed(["two"]))[0])
    assert " ".join(embedder.seen) == f"one {text} two"
