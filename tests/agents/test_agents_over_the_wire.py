"""The seed's agent against a provider on loopback, in three wire formats, with tools called for real."""

import json
from pathlib import Path
from typing import Any

import pytest
from provider_server import ProviderServer
from seed_agents import code_improver

import mulligan

MODELS = {"openai:m": "OPENAI", "anthropic:m": "ANTHROPIC", "alibaba:m": "DASHSCOPE"}


def finish(key: str, value: str) -> dict[str, Any]:
    return {"calls": [{"name": "finish", "arguments": {"key": key, "value": value}}]}


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("model", MODELS)
async def test_the_seeds_agent_mends_its_attempt(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code_improver(tmp_path)
    wrong: dict[str, Any] = {"calls": [{"name": "search", "arguments": {}}]}
    answers: list[Any] = [
        wrong,
        finish("done", "v1"),
        finish("retry", "Missing X"),
        finish("done", "v2"),
        finish("done", "Great"),
    ]
    async with ProviderServer(answers) as server:
        path = {"anthropic:m": "", "alibaba:m": "/compatible-mode/v1"}.get(model, "/v1")
        monkeypatch.setenv(f"{MODELS[model]}_API_KEY", "k")
        monkeypatch.setenv(f"{MODELS[model]}_BASE_URL", f"http://127.0.0.1:{server.port}{path}")
        episode = await mulligan.run("my-reflexion", "Write add(a, b).", model=model)
        sent = [json.dumps(request.body, ensure_ascii=False) for request in server.script.received]
    assert episode.solved
    assert [trial.attempt.output for trial in episode.trials] == ["v1", "v2"]
    assert len(sent) == 5
    assert "[error: there is no tool 'search' here; there are finish]" in sent[1]
    assert all("Hand in the result and end this step." in body for body in sent)
    again = "Original task: Write add(a, b).\n\nPrevious attempt:\nv1\n\nFeedback:\nMissing X\n\nPlease improve"
    assert json.dumps(again)[1:-1] in sent[3]
    assert "Task: Write add(a, b)." in sent[2]
