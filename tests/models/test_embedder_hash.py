"""The embedder for tests: near where words are shared, and the same everywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Embedder
from mulligan.models.catalog import open_embedder
from mulligan.models.embedders.hash import HashEmbedder


def test_it_is_an_embedder_with_its_dimension_in_its_id() -> None:
    embedder = open_embedder("hash")
    assert isinstance(embedder, Embedder)
    assert (embedder.id, embedder.dim) == ("hash:384", 384)
    assert open_embedder("hash:16").id == "hash:16"
    for wrong in ("hash:0", "hash:x"):
        with pytest.raises(InvalidInput, match="dimension"):
            open_embedder(wrong)


async def test_texts_that_share_words_are_near() -> None:
    rows = np.asarray(
        await HashEmbedder().embed(
            [
                "Refund a duplicate charge",
                "a DUPLICATE charge: refund!",
                "refund the fee",
                "sort a list",
                "sort 客户 now",
            ]
        )
    )
    near = rows @ rows.T
    assert near[0, 1] > 0.7 > near[0, 2] > near[0, 3] - 0.1
    assert near[3, 4] > 0.2


async def test_the_same_on_every_machine() -> None:
    row = np.asarray(await HashEmbedder(8).embed(["one two"]))[0]
    assert [round(float(value), 4) for value in row] == [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]


@given(st.lists(st.text(), max_size=5), st.integers(1, 64))
async def test_rows_have_length_1(texts: list[str], dim: int) -> None:
    rows = np.asarray(await HashEmbedder(dim).embed(texts))
    assert rows.shape == (len(texts), dim)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
