"""Embedders of providers, over a real socket: batches, units, costs, retries, and what is said when it goes wrong."""

import math
from typing import Any, cast

import numpy as np
import pytest
from wire_client import KEY, Naps, Wire, patience

from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.protocols import Embedder
from mulligan.models.catalog import open_embedder
from mulligan.models.embedders.provider import ProviderEmbedder
from mulligan.models.settings import CallSettings

PATIENT = CallSettings(timeout=30)
SMALL = "openai:text-embedding-3-small"


def opened(name: str, naps: Naps, settings: CallSettings = PATIENT) -> ProviderEmbedder:
    return cast(ProviderEmbedder, open_embedder(name, settings=settings, sleep=naps.sleep, chance=naps.chance))


@pytest.mark.parametrize("name", [SMALL, "openai-chat:x", "alibaba:text-embedding-v3", "ollama:nomic-embed-text:v1.5"])
async def test_vectors_come_in_order_and_of_length_1(
    wire: Wire, naps: Naps, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", wire.url)
    wire.plays({"vectors": [[3, 4], [0, 2]]})
    embedder = opened(name, naps)
    assert isinstance(embedder, Embedder)
    assert (embedder.id, embedder.dim) == (name, 0)
    rows = await embedder.embed(["one", "two"])
    assert rows.dtype == np.float32
    assert np.allclose(rows, [[0.6, 0.8], [0, 1]])
    assert embedder.dim == 2
    [request] = wire.requests
    assert request["path"].endswith("/embeddings")
    assert request["body"]["model"] == name.partition(":")[2]
    assert request["body"]["input"] == ["one", "two"]
    assert "dimensions" not in request["body"]


async def test_the_dimensions_asked_for_are_part_of_the_name(wire: Wire, naps: Naps) -> None:
    wire.plays({}, {})
    embedder = opened(f"{SMALL}@256", naps)
    assert (embedder.id, embedder.dim) == (f"{SMALL}@256", 256)
    assert (await embedder.embed(["one"])).shape == (1, 256)
    assert wire.bodies[0]["model"] == "text-embedding-3-small"
    assert wire.bodies[0]["dimensions"] == 256
    assert opened("openai:gecko@003", naps).dim == 0, "a version, not a dimension"


@pytest.mark.parametrize(("name", "sizes"), [("alibaba:text-embedding-v3", [10, 10, 5]), (SMALL, [25])])
async def test_many_texts_go_in_batches_that_the_provider_takes(
    wire: Wire, naps: Naps, name: str, sizes: list[int]
) -> None:
    wire.plays(*[{}] * len(sizes))
    texts = ["x" * n for n in range(25)]
    rows = await opened(name, naps).embed(texts)
    assert [len(body["input"]) for body in wire.bodies] == sizes
    assert wire.bodies[0]["input"][0] == " ", "an empty text would be refused"
    lengths = [float(row[1] / row[0]) for row in rows]
    assert np.allclose(lengths[1:], range(1, 25), rtol=1e-4)


async def test_no_texts_take_no_call(wire: Wire, naps: Naps) -> None:
    assert len(await opened(SMALL, naps).embed([])) == 0
    assert wire.requests == []


async def test_what_was_spent_adds_up(wire: Wire, naps: Naps) -> None:
    wire.plays({"usage": [1_000_000]}, {"usage": [500_000]})
    embedder = opened(SMALL, naps, CallSettings(input_price=0.5, output_price=0.0))
    await embedder.embed(["one"])
    await embedder.embed(["two"])
    assert (embedder.spent.input_tokens, embedder.spent.calls, embedder.spent.cost) == (1_500_000, 2, 0.75)


async def test_a_price_of_the_tables_is_known_and_another_is_unknown_not_zero(wire: Wire, naps: Naps) -> None:
    wire.plays({"usage": [1_000_000]}, {"usage": [7]}, {"usage": None})
    known = opened(SMALL, naps)
    await known.embed(["one"])
    assert known.spent.cost == pytest.approx(0.02)
    mystery = opened("alibaba:mystery", naps)
    await mystery.embed(["two"])
    assert (mystery.spent.input_tokens, mystery.spent.cost) == (7, None)
    await mystery.embed(["four" * 4])
    assert mystery.spent.input_tokens == 7 + 5, "a server that counts nothing: a guess"


async def test_a_server_of_the_user_costs_nothing(wire: Wire, naps: Naps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", wire.url)
    wire.plays({})
    embedder = opened("ollama:nomic-embed-text", naps)
    await embedder.embed(["one"])
    assert embedder.spent.cost == 0.0


@pytest.mark.parametrize(
    "trouble",
    [{"status": 429}, {"status": 503}, {"drop": True}, {"malformed": True}, {"hang": True}],
    ids=["429", "503", "dropped", "malformed", "hang"],
)
async def test_passing_trouble_is_survived(wire: Wire, naps: Naps, trouble: dict[str, Any]) -> None:
    wire.plays(trouble, {})
    settings = CallSettings(timeout=patience(trouble))
    assert (await opened(SMALL, naps, settings).embed(["one"])).shape == (1, 8)
    assert len(wire.requests) == 2, "our own retries only, each counted once"
    assert naps.seconds == [1.0]


async def test_a_refusal_is_reported_once_and_without_the_key(wire: Wire, naps: Naps) -> None:
    wire.plays({"status": 401, "body": {"error": {"message": f"Incorrect API key: {KEY}"}}})
    with pytest.raises(
        ModelError, match=r"text-embedding-3-small at http.* failed \(tried once\).*Check the key"
    ) as caught:
        await opened(SMALL, naps).embed(["one"])
    assert KEY not in str(caught.value)
    assert len(wire.requests) == 1


@pytest.mark.parametrize(
    "vectors",
    [[[1.0, 2.0]], [[1.0, 2.0], [1.0]], [[1.0], [math.inf]], [[0.0, 0.0], [1.0, 0.0]]],
    ids=["too few", "ragged", "not finite", "no direction"],
)
async def test_what_is_not_an_array_of_directions_is_refused(wire: Wire, naps: Naps, vectors: Any) -> None:
    wire.plays({"vectors": vectors})
    with pytest.raises(ModelError, match=r"gave|returned"):
        await opened(SMALL, naps).embed(["one", "two"])


async def test_another_dimension_than_before_is_refused(wire: Wire, naps: Naps) -> None:
    wire.plays({"vectors": [[1, 2]]}, {"vectors": [[1, 2, 3]]})
    embedder = opened(SMALL, naps)
    await embedder.embed(["one"])
    with pytest.raises(ModelError, match="returned vectors of 3 dimensions, not 2"):
        await embedder.embed(["two"])


async def test_what_cannot_work_is_refused_before_any_call(naps: Naps, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="set OPENAI_API_KEY"):
        opened(SMALL, naps)
    for wrong in ("text-embedding-3-small", "openai:", ""):
        with pytest.raises(InvalidInput, match="Use local, or PROVIDER:MODEL"):
            opened(wrong, naps)
    with pytest.raises(InvalidInput, match="No model provider is called 'opnai'"):
        opened("opnai:x", naps)
    with pytest.raises(InvalidInput, match="sentence-transformers"):
        opened("sentence-transformers:all-MiniLM-L6-v2", naps)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with pytest.raises(InvalidInput, match="anthropic has no embedder"):
        await opened("anthropic:claude", naps).embed(["one"])
