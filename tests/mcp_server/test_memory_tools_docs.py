"""docs/memory-tools.md: its calls are made, in order, and answered as it says; what it says of the seed is what is listed."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
from memory_clients import SETTINGS, a_client, a_service, good

PAGE = (Path(__file__).parents[2] / "docs" / "memory-tools.md").read_text(encoding="utf-8")
BLOCKS: list[Any] = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
IDS = re.compile(r"extract_w[0-9a-f]{12}|r[0-9a-f]{12}|[0-9a-f]{16}")


def said(told: Any, answer: Any) -> Any:
    """The answer as the page tells it: what the page cuts is cut."""
    if isinstance(told, str) and told.endswith("…") and isinstance(answer, str):
        return told if answer.startswith(told[:-1]) else answer
    if told == {"…": "…"} and isinstance(answer, dict):
        return told
    if isinstance(told, dict) and isinstance(answer, dict):
        page = cast(dict[str, Any], told)
        return {key: said(page.get(key), value) for key, value in cast(dict[str, Any], answer).items()}
    return answer


def renamed(text: str, known: dict[str, str]) -> str:
    """With the ids of this run in place of the page's."""
    return IDS.sub(lambda found: known.get(found[0], found[0]), text)


async def test_the_calls_of_the_page_are_answered_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mulligan.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    known: dict[str, str] = {}
    calls = 0
    async with a_service() as service, a_client(service) as client:
        for call, told in itertools.pairwise(BLOCKS):
            if "call" not in call:
                continue
            answer = await good(client, call["call"], **json.loads(renamed(json.dumps(call["with"]), known)))
            for page, real in zip(
                IDS.findall(json.dumps(told)), IDS.findall(json.dumps(said(told, answer))), strict=True
            ):
                assert known.setdefault(page, real) == real
            assert json.loads(renamed(json.dumps(told), known)) == said(
                json.loads(renamed(json.dumps(told), known)), answer
            )
            calls += 1
    assert calls == 4


def test_the_page_lists_all_that_differs() -> None:
    listed = json.loads((Path(__file__).parent / "golden" / "memory" / "deviations.json").read_text())
    for one in listed:
        assert f"| {one['name'].replace('_', ' ')} | " in PAGE
        assert one["ours"] in PAGE
