"""The study's ten questions: what is right is what the graph says, and the check tells right from wrong."""

import runpy
from pathlib import Path
from typing import Any

from mulligan.app.graphs import open_graph

STUDY = runpy.run_path(str(Path(__file__).parents[2] / "studies" / "graph_questions" / "run.py"))
is_right: Any = STUDY["is_right"]


async def test_what_is_right_is_what_the_graph_says(access: Any) -> None:
    graph = open_graph(access)
    assert len(STUDY["QUESTIONS"]) == 10
    for each in STUDY["QUESTIONS"]:
        rows = (await graph.run(each["query"])).rows
        assert is_right(rows, each["right"]), each["question"]
    await graph.close()


def test_the_check_tells_right_from_wrong() -> None:
    right = ["A", "B"]
    assert is_right([{"n": "B"}, {"n": "A"}, {"n": "A"}], right)
    assert is_right([{"x": 1, "n": "B"}, {"x": 2, "n": "A"}], right)
    assert is_right([{"g": {"id": "1", "label": "G", "properties": {"name": name}}} for name in right], right)
    assert is_right([{"count": 5}], [5])
    for wrong in ([], [{"n": "A"}], [{"n": "A"}, {"n": "B"}, {"n": "C"}], [{"n": ["A", "B"]}], [{"a": "A", "b": "B"}]):
        assert not is_right(wrong, right)
    assert not is_right([{"count": "5"}], [5])
