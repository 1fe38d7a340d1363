"""[memory] of mulligan.toml, and every key of ReasoningBank-MCP's config.yaml in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mulligan.app.config import Config, load
from mulligan.app.memory import Bank
from mulligan.app.memory_config import KEYS, OF_BANK, STRATEGIES, MemorySettings
from mulligan.app.plugins import find, names, settings_of
from mulligan.app.project_file import check_project
from mulligan.app.project_schema import BankTable
from mulligan.app.trusting import trust
from mulligan.bank.ports import Settings
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Spec

DOCS = Path(__file__).parents[2] / "docs" / "memory.md"


def of(**table: Any) -> MemorySettings:
    return MemorySettings.of(Config(values={"memory": table}))


def test_every_key_is_described_and_has_the_bank_s_default() -> None:
    assert list(BankTable.model_fields) == list(KEYS)
    assert of() == MemorySettings()
    for key in OF_BANK:
        assert f"`{key}`" in DOCS.read_text("utf-8")
        assert getattr(of().bank, key) == getattr(Settings(), key)


def test_every_setting_of_a_strategy_stands_in_the_docs_with_its_default() -> None:
    table = DOCS.read_text("utf-8").partition("| strategy | setting |")[2].partition("\n\n")[0]
    said: dict[tuple[str, str], str] = {}
    strategy = ""
    for row in table.splitlines()[2:]:
        named, keys, defaults, _ = (cell.strip() for cell in row.strip("|").split("|"))
        strategy = named or strategy
        for name in re.findall(r"`(\w+)`", strategy):
            said |= {
                (name, key): said for key, said in zip(re.findall(r"`(\w+)`", keys), defaults.split(", "), strict=True)
            }
    for role in STRATEGIES:
        for name in names(role):
            for key, parameter in settings_of(find(role, name)).items():
                assert said[name, key] == in_words(parameter.default), f"{name}.{key}"


def in_words(default: Any) -> str:
    if isinstance(default, bool) or default is None:
        return "–" if default is None else str(default).lower()
    return f"{default:g}"


def test_a_strategy_is_a_name_or_a_table() -> None:
    assert of(merging="voting").merging == Spec("voting")
    table = {"name": "voting", "min_group_size": 4}
    assert of(merging=table).merging == Spec("voting", {"min_group_size": 4})
    assert of(merging={"min_similar_count": 5}).merging == Spec("llm", {"min_similar_count": 5})


def test_a_strategy_of_one_s_own_lies_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("class Mine:\n    def group(self, lesson, alike): return ()\n")
    (tmp_path / "mulligan.toml").write_text('[memory]\nmerging = "./mine.py"\n')
    trust(tmp_path)
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    assert MemorySettings.of(load()).merging == Spec(str(tmp_path / "mine.py"))
    assert check_project(tmp_path) == []


def test_the_paper_decides_by_itself() -> None:
    paper = of(preset="paper", top_k=2, tokens=500)
    assert (paper.retrieval, paper.bank.paper, paper.bank.fold, paper.bank.auto_merge) == (
        Spec("cosine"),
        True,
        False,
        False,
    )
    assert (paper.bank.top_k, paper.bank.tokens) == (2, 500)
    assert of(preset="paper").bank.top_k == 1
    config = Config(values={"memory": {"fold": True, "top_k": 5}})
    assert MemorySettings.of(config, preset="paper").bank == of(preset="paper", top_k=5).bank
    with pytest.raises(InvalidInput, match='preset = "paper" already sets fold'):
        of(preset="paper", fold=True)


def test_what_is_given_goes_before_the_file() -> None:
    config = Config(values={"memory": {"top_k": 5, "threshold": "strict"}})
    bank = MemorySettings.of(config, {"top_k": 2, "merging": "voting"})
    assert (bank.bank.top_k, bank.bank.threshold, bank.merging.name) == (2, "strict", "voting")
    with pytest.raises(InvalidInput, match="Did you mean 'top_k'"):
        MemorySettings.of(config, {"topk": 2})


WRONG = [
    ("topk = 1", 2, "Did you mean 'top_k'?"),
    ("top_k = 0", 2, "top_k must be an integer of at least 1, not 0"),
    ("threshold = 'strickt'", 2, "strict, standard, lenient, not 'strickt'"),
    ("threshold = 1.5", 2, "A threshold must be a relevance from 0 to 1"),
    ("fold = 'yes'", 2, "fold must be true or false, not 'yes'"),
    ("near_duplicates = 'drop'", 2, "near_duplicates must be link or skip, not 'drop'"),
    ("\nmerging = 'llmm'", 3, "Did you mean 'llm'?"),
    ("merging = {name = 'llm', min_similar = 3}", 2, "Did you mean 'min_similar_count'?"),
    ("merging = {name = 'llm', min_similar_count = 'three'}", 2, "must be an integer, not 'three'"),
    ("merging = {name = 'llm', min_similar_count = 1}", 2, "must be at least 2, not 1"),
    ("merging = {name = 3}", 2, "The name of merging must be a string"),
    ("merging = 3", 2, "merging must be a name or a table with a name, not 3"),
    ("preset = 'papper'", 2, "The only preset is 'paper', not 'papper'"),
    ("fold = true\npreset = 'paper'", 3, 'preset = "paper" already sets fold'),
    ("model = 'opnai:x'", 2, "Did you mean 'openai'?"),
    ("model = ''", 2, "model must be a name, not ''"),
    ("embedder = 1", 2, "embedder must be a name, not 1"),
]


@pytest.mark.parametrize(("text", "line", "says"), WRONG)
def test_a_mistake_is_found_by_lint_with_its_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    (tmp_path / "mulligan.toml").write_text(f"[memory]\n{text}\n")
    (problem,) = check_project(tmp_path)
    assert (problem.line, problem.level) == (line, "error")
    assert says in problem.message


def test_a_mistake_is_reported_with_its_line_when_a_bank_is_opened(tmp_path: Path) -> None:
    (tmp_path / "mulligan.toml").write_text("[memory]\n\ntop_k = 0\n")
    with pytest.raises(InvalidInput, match=r"mulligan.toml:3: top_k must be"):
        MemorySettings.of(load(tmp_path))


def test_a_setting_that_was_removed_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "mulligan.toml").write_text("[memory]\n\nkinds_by_cluster = false\n")
    (problem,) = check_project(tmp_path)
    assert (problem.line, problem.level) == (3, "error")
    assert "remove the line" in problem.message
    with pytest.raises(InvalidInput, match=r"mulligan.toml:3: .*remove the line"):
        MemorySettings.of(load(tmp_path))
    with pytest.raises(InvalidInput, match="remove the line"):
        of(kinds_by_cluster=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("agent_id", 3), ("store", "mine.db"), ("embedder", 3), ("settings", 3), ("config", {}), ("project", 3)],
)
def test_a_bank_names_the_argument_of_a_wrong_type(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=rf"^{name} must be (an?|the) .*, not "):
        Bank.open(**{name: value})  # pyright: ignore[reportArgumentType]
