"""The golden files of seed 000's server, call by call, through a real client."""

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client
from reflexion_clients import NAME, a_client, a_service, good, text_of

GOLDEN = Path(__file__).parent / "golden" / "reflexion"
PAGE = Path(__file__).parents[2] / "docs" / "reflexion-thinking.md"
FILES = ("three_trials", "conic", "steps", "errors", "mended")


def calls(name: str) -> list[dict[str, Any]]:
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["calls"]


def settled(expected: Any, answer: Any) -> Any:
    """What is expected, with `<text>` as what was answered, where that is a text."""
    if expected == "<text>" and isinstance(answer, str) and answer:
        return answer
    if isinstance(expected, dict) and isinstance(answer, dict):
        wanted, given = cast(dict[str, Any], expected), cast(dict[str, Any], answer)
        return {key: settled(value, given.get(key)) for key, value in wanted.items()}
    return cast(Any, expected)


async def check(client: Client, golden: dict[str, Any], at: str) -> None:
    result = await client.call_tool(golden.get("tool", NAME), golden["request"])
    text = text_of(result)
    answer = json.loads(text)
    assert bool(result.is_error) == golden["isError"], f"{at}: {text}"
    expected = settled(golden["answer"], answer)
    if golden["isError"]:
        assert result.structured_content is None
    else:
        assert result.structured_content == answer
        assert isinstance(answer["episodeId"], str)
        expected["episodeId"] = answer["episodeId"]
    compact = json.dumps(expected, ensure_ascii=False, separators=(",", ":"))
    assert text == compact, f"{at}: {golden['why']}"  # so the order of the keys counts


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("name", FILES)
async def test_every_call_is_answered_as_the_golden_file_says(name: str, mode: str) -> None:
    async with a_service() as service, a_client(service, mode) as client:
        for number, golden in enumerate(calls(name), 1):
            await check(client, golden, f"{name}.json, call {number}")


def test_every_deviation_that_is_shown_is_listed() -> None:
    listed = {one["name"]: one for one in json.loads((GOLDEN / "deviations.json").read_text("utf-8"))}
    shown = {golden["mends"] for golden in calls("mended")}
    assert shown <= listed.keys()
    assert {listed[name]["kind"] for name in shown} == {"mended"}
    page = PAGE.read_text("utf-8")
    missing = [one["ours"] for one in listed.values() if one["kind"] != "added" and one["ours"] not in page]
    assert missing == [], "docs/reflexion-thinking.md lists what is mended and what is not known"


async def test_the_walk_of_the_documentation_is_what_happens() -> None:
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)]
    assert len(blocks) == 12
    async with a_service() as service, a_client(service) as client:
        id = ""
        for request, expected in zip(blocks[::2], blocks[1::2], strict=True):
            given = await good(client, {**request, **({"episodeId": id} if "episodeId" in request else {})})
            id = given["episodeId"]
            shown = {**given, "episodeId": expected["episodeId"]}
            shown |= {"message": "…"} if "message" in shown else {}
            assert json.dumps(shown) == json.dumps(expected)
