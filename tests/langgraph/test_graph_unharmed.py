"""A store or a bank that fails costs a graph its record and its lessons, and neither a node nor an answer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from reflexion_graphs import a_graph, asking, chat, echo, on_thread, run

from mulligan.store.sqlite import SqliteStore

WAYS = ("invoke", "ainvoke")


def a_file_in_the_way(folder: Path) -> Path:
    (folder / "home").touch()
    return folder / "home" / "mulligan.db"


def no_database(folder: Path) -> Path:
    (folder / "mulligan.db").write_bytes(b"This is no database at all. " * 300)
    return folder / "mulligan.db"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("breaks", [a_file_in_the_way, no_database], ids=lambda breaks: breaks.__name__)
@pytest.mark.parametrize("thread", [False, True])
def test_a_graph_answers_without_its_store(
    way: str, breaks: Callable[[Path], Path], thread: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(breaks(tmp_path))
    graph = a_graph(chat(3, 8), store=store)
    if thread:
        graph.checkpointer = InMemorySaver()
    result = run(way, graph, asking(), on_thread() if thread else None)["reflexion"]
    assert (result["answer"], result["solved"], result["reflections"]) == ("answer 2", True, ["lesson 1"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("at", [1, 2])
def test_a_store_that_is_lost_during_a_run_ends_no_node(way: str, at: int, tmp_path: Path) -> None:
    calls = list[str]()

    def tool(answer: str) -> str:
        calls.append(answer)
        if len(calls) == at:
            for file in tmp_path.glob("mulligan.db*"):
                file.unlink()
        return echo(answer)

    store = SqliteStore(tmp_path / "mulligan.db")
    result = run(way, a_graph(chat(3, 8), tool, store=store), asking())["reflexion"]
    assert (result["answer"], result["solved"]) == ("answer 2", True)
    assert calls == ["answer 1", "answer 2"]  # no step is done twice


class Broken:
    """A bank whose disk is gone."""

    async def recall(self, task: Any, *, top_k: int | None = None) -> Any:
        raise OSError("the disk is gone")

    async def learn(self, episodes: Any) -> Any:
        raise RuntimeError("a bug of ours")


@pytest.mark.parametrize("way", WAYS)
def test_a_bank_that_fails_is_no_memory(way: str, caplog: pytest.LogCaptureFixture) -> None:
    result = run(way, a_graph(chat(3, 8), bank=Broken()), asking())["reflexion"]
    assert (result["answer"], result["solved"]) == ("answer 2", True)
