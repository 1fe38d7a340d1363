"""The study's questions: what is right is what the graph says, and the check tells right from wrong."""

import collections
import runpy
from pathlib import Path
from typing import Any

import pytest

from mulligan.graphs.opening import open_graph

FOLDER = Path(__file__).parents[2] / "studies" / "graph_questions"
STUDY = runpy.run_path(str(FOLDER / "run.py"))
TEN, THIRTY, NEW, DRAWN = STUDY["TEN"], STUDY["THIRTY"], STUDY["QUESTIONS"]["new"], STUDY["QUESTIONS"]["drawn"]
is_right: Any = STUDY["is_right"]


async def test_what_is_right_is_what_the_graph_says(access: Any) -> None:
    graph = open_graph(access)
    assert (len(TEN), len(THIRTY), len(NEW), len(DRAWN)) == (10, 30, 30, 40)
    for each in (*TEN, *THIRTY, *NEW, *DRAWN):
        rows = (await graph.run(each["query"])).rows
        assert is_right(rows, each["right"]) if each["right"] else not rows, each["question"]
    await graph.close()


@pytest.mark.parametrize("thirty", [THIRTY, NEW], ids=["thirty", "new"])
def test_the_thirty_are_of_six_kinds_and_what_is_absent_is_named(thirty: Any) -> None:
    kinds = collections.Counter(each["kind"] for each in thirty)
    assert kinds == dict.fromkeys(("lookup", "filter", "count", "path", "negation", "absent"), 5)
    for each in thirty:
        assert (each["kind"] == "absent") == (not each["right"]) == ("absent" in each)
        assert each.get("absent", "") in each["question"]


def test_the_check_tells_right_from_wrong() -> None:
    right = ["A", "B"]
    assert is_right([{"n": "B"}, {"n": "A"}, {"n": "A"}], right)
    assert is_right([{"x": 1, "n": "B"}, {"x": 2, "n": "A"}], right)
    assert is_right([{"g": {"id": "1", "label": "G", "properties": {"name": name}}} for name in right], right)
    assert is_right([{"count": 5}], [5])
    for wrong in ([], [{"n": "A"}], [{"n": "A"}, {"n": "B"}, {"n": "C"}], [{"n": ["A", "B"]}], [{"a": "A", "b": "B"}]):
        assert not is_right(wrong, right)
    assert not is_right([{"count": "5"}], [5])
