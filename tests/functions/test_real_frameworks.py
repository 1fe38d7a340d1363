"""`wrap` with the real package of each framework, in an environment of its own: see tests/support/framework_story.py."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from framework_environments import PINS, environment, live
from framework_story import AT_ONCE, LATER, TASK

WORDS = "no currency in '12'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("frameworks")
    yield made
    shutil.rmtree(made)  # pytest would keep gigabytes


@pytest.mark.slow
@pytest.mark.parametrize("framework", PINS)
def test_the_words_of_the_judge_reach_the_next_try_and_the_next_process(
    framework: str, folder: Path, tmp_path: Path
) -> None:
    python = environment(framework, folder)
    first = json.loads(live(framework, "first", python, tmp_path))
    later = json.loads(live(framework, "later", python, tmp_path))
    assert first["network"] == later["network"] == []
    for part in first["parts"].values():
        fails_and_then_is_right(part)
    for part in later["parts"].values():
        assert (part["task"], part["answer"], part["solved"], len(part["trials"])) == (LATER, "12 EUR", True, 1)
        assert WORDS in part["asked"][0]  # of the other process: the bank's
    assert first["parts"].keys() == later["parts"].keys()


def fails_and_then_is_right(part: dict[str, Any]) -> None:
    failed, right = part["trials"]
    assert (part["task"], part["answer"], part["solved"]) == (TASK, "12 EUR", True)
    assert (failed["output"], right["output"]) == ("12", "12 EUR")
    calls = len(part["asked"]) // 2
    assert [WORDS in text for text in part["asked"]] == [False] * calls + [True] * calls
    assert failed["usage"][2] == right["usage"][2] == calls
    if part["tokens"] is not None:
        assert failed["usage"][:2] == right["usage"][:2] == [tokens * calls for tokens in part["tokens"]]
    if calls > 1:  # it looked
        action, seen = failed["steps"][0][1:]
        assert part["looks"][0] in action
        assert part["looks"][1] in seen
    else:
        assert failed["steps"] == []
    assert part["unjudged"] == []
    refused = part["refused"]
    assert refused
    assert [name for name, why in refused.items() if "wrapped agent" not in why and "be retried" not in why] == []
    assert len(part["at_once"]) == AT_ONCE * calls * 2
    assert [numbers for numbers in part["at_once"] if len(numbers) != 1] == [], "notes of another call"
