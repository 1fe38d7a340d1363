"""The embedder of this machine: what it refuses, and (slow lane, real weights) what it makes of the reference's texts.

`MULLIGAN_TEST_MODELS` names a folder that keeps the weights from one run to the next.
"""

import asyncio
import os
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from embedding_reference import TEXTS, vectors
from hypothesis import given
from hypothesis import strategies as st

import minilm_graph
from mulligan.core.errors import InvalidInput, ModelError, UnknownName
from mulligan.core.extras import install_command
from mulligan.core.protocols import Embedder
from mulligan.models import weights
from mulligan.models.catalog import open_embedder
from mulligan.models.embedders import network
from mulligan.models.embedders.local import LocalEmbedder, batches
from mulligan.models.weights import pull
from mulligan.models.weights.known import EMBEDDERS

pytest.importorskip("onnxruntime", reason='needs the extra: pip install "mulligan[local]"')


@pytest.fixture
def real(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of real weights, which are pulled if they are not in it."""
    folder = Path(os.environ.get("MULLIGAN_TEST_MODELS") or tmp_path_factory.getbasetemp() / "embedder")
    monkeypatch.setenv("MULLIGAN_MODELS", str(folder))
    for name in EMBEDDERS:
        pull(name, known=EMBEDDERS)
    return folder


async def embedded(embedder: Embedder, texts: list[str]) -> Any:
    async with asyncio.timeout(120):
        return np.asarray(await embedder.embed(texts))


def test_it_is_an_embedder_named_with_the_hash_of_its_weights() -> None:
    minilm, e5 = "minilm-l6-v2@sha256:53aa51172d14", "multilingual-e5-small@sha256:1571fc982750"
    for name, id in (("local", minilm), ("local:minilm-l6-v2", minilm), ("local:multilingual-e5-small", e5)):
        embedder = open_embedder(name)
        assert isinstance(embedder, Embedder)
        assert (embedder.id, embedder.dim) == (f"local:{id}", 384)


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(InvalidInput, match=re.escape(install_command("local")) + "$"):
        LocalEmbedder()


async def test_nothing_is_pulled_unless_it_may_be() -> None:
    embedder = LocalEmbedder()
    assert not embedder.here
    with pytest.raises(InvalidInput, match=r"not on this machine\. Run: mulligan models pull minilm-l6-v2"):
        await embedder.embed(["hello"])
    assert not weights.folder().exists()


async def test_what_cannot_work_is_reported() -> None:
    with pytest.raises(UnknownName, match=r"No local embedder is called 'minilm'.*minilm-l6-v2"):
        open_embedder("local:minilm")
    weights.folder().mkdir(parents=True)
    for name, one in EMBEDDERS.items():
        with (weights.folder() / one.file).open("wb") as file:
            file.truncate(one.size)  # as large as it should be, and empty
        with pytest.raises(ModelError, match=rf"could not be loaded .*models remove {name}"):
            await embedded(LocalEmbedder(name), ["hello"])


@given(st.lists(st.integers(2, 256), max_size=60), st.integers(1, 1024))
def test_batches_hold_each_text_once_and_little_padding(lengths: list[int], most: int) -> None:
    found = list(batches(lengths, most))
    assert sorted(number for batch in found for number in batch) == list(range(len(lengths)))
    for batch in found:
        longest = max(lengths[number] for number in batch)
        assert longest == lengths[batch[-1]]
        assert len(batch) == 1 or len(batch) * longest <= most


@pytest.mark.slow
async def test_it_agrees_with_sentence_transformers(real: Path) -> None:
    rows = await embedded(LocalEmbedder(), TEXTS)
    assert rows.shape == (100, 384)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert float((rows * vectors()).sum(axis=1).min()) > 0.99999


@pytest.mark.slow
async def test_a_text_is_the_same_alone_and_among_others(real: Path) -> None:
    embedder = LocalEmbedder(threads=2)
    together = await embedded(embedder, TEXTS)
    alone = np.concatenate([await embedded(embedder, [text]) for text in TEXTS[::10]])
    assert float((alone * together[::10]).sum(axis=1).min()) > 0.99999
    assert (await embedded(embedder, [])).shape == (0, 384)


@pytest.mark.slow
async def test_cancelling_returns_at_once_and_the_next_call_does_not_wait_long(real: Path) -> None:
    embedder = LocalEmbedder()
    await embedded(embedder, ["warm"])
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await embedder.embed([" ".join(["word"] * 250)] * 5000)  # minutes of work
    await embedded(embedder, ["hello"])
    assert time.monotonic() - started < 10


@pytest.mark.slow
async def test_several_callers_at_once(real: Path) -> None:
    embedder = LocalEmbedder()
    rows = await asyncio.gather(*(embedded(embedder, [text]) for text in TEXTS[10:20]))
    assert float((np.concatenate(rows) * vectors()[10:20]).sum(axis=1).min()) > 0.99999


@pytest.mark.slow
async def test_texts_of_one_meaning_are_near_in_any_language(real: Path) -> None:
    """The cosines that the engine in the package of the weights gives, once the mean of `NEUTRAL` is taken off."""
    texts = [
        "The tests fail because a fixture is missing.",
        "Die Tests schlagen fehl, weil eine Fixture fehlt.",
        "フィクスチャがないのでテストが失敗します。",
        "Le chat dort sur le canapé.",
    ]
    rows = await embedded(LocalEmbedder("multilingual-e5-small"), texts)
    assert np.allclose(rows[0] @ rows.T, [1, 0.8176, 0.5381, 0.3101], atol=0.01)


def test_the_files_of_the_graphs_are_what_their_tool_makes() -> None:
    assert network.GRAPH.read_bytes() == minilm_graph.graph("minilm")
    assert network.E5_GRAPH.read_bytes() == minilm_graph.graph("e5")
