"""[memory] of mulligan.toml, and every key of ReasoningBank-MCP's config.yaml in it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from mulligan.app.config import Config, load
from mulligan.app.memory_config import KEYS, OF_BANK, STRATEGIES, MemorySettings
from mulligan.app.memory_upstream import RULES, import_config
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
    with pytest.raises(InvalidInput, match='preset = "paper" decides fold by itself'):
        of(preset="paper", fold=True)


def test_what_is_given_goes_before_the_file() -> None:
    config = Config(values={"memory": {"top_k": 5, "threshold": "strict"}})
    bank = MemorySettings.of(config, {"top_k": 2, "merging": "voting"})
    assert (bank.bank.top_k, bank.bank.threshold, bank.merging.name) == (2, "strict", "voting")
    with pytest.raises(InvalidInput, match="Did you mean 'top_k'"):
        MemorySettings.of(config, {"topk": 2})


WRONG = [
    ("topk = 1", 2, "Did you mean 'top_k'?"),
    ("top_k = 0", 2, "top_k must be a whole number of at least 1, not 0"),
    ("threshold = 'strickt'", 2, "strict, standard, lenient, not 'strickt'"),
    ("threshold = 1.5", 2, "A threshold is a relevance from 0 to 1"),
    ("fold = 'yes'", 2, "fold must be true or false, not 'yes'"),
    ("near_duplicates = 'drop'", 2, "near_duplicates is link or skip, not 'drop'"),
    ("\nmerging = 'llmm'", 3, "Did you mean 'llm'?"),
    ("merging = {name = 'llm', min_similar = 3}", 2, "Did you mean 'min_similar_count'?"),
    ("merging = {name = 'llm', min_similar_count = 'three'}", 2, "must be a whole number, not 'three'"),
    ("merging = {name = 'llm', min_similar_count = 1}", 2, "must be at least 2, not 1"),
    ("merging = {name = 3}", 2, "The name of merging must be a text"),
    ("merging = 3", 2, "merging must be a name or a table with a name, not 3"),
    ("preset = 'papper'", 2, "The only preset is 'paper', not 'papper'"),
    ("fold = true\npreset = 'paper'", 3, 'preset = "paper" decides fold'),
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


# --- config.yaml of ReasoningBank-MCP ---------------------------------------------------------------------------

SHIPPED: dict[str, Any] = {
    "mode": {"preset": "none"},
    "llm": {
        "provider": "openai",
        "openai": {
            "api_key": "${MY_KEY}",
            "base_url": "https://llm.example/v1",
            "chat_model": "${MY_MODEL:gpt-4o-mini}",
            "temperature": 0.7,
            "max_tokens": 4096,
        },
    },
    "embedding": {
        "provider": "openai",
        "openai": {
            "api_key": "${MY_KEY?}",
            "base_url": "https://llm.example/v1",
            "model": "text-embedding-3-small",
        },
    },
    "retrieval": {
        "strategy": "hybrid",
        "default_top_k": 2,
        "max_top_k": 10,
        "min_score_threshold": 0.9,
        "hybrid": {
            "weights": {"semantic": 0.5, "confidence": 0.3, "success": 0.1, "recency": 0.1},
            "time_decay_halflife": 14,
        },
    },
    "storage": {
        "backend": "json",
        "json": {"memories_path": "m.json", "embeddings_path": "e.json", "archived_path": "a.json", "db_path": "b.db"},
    },
    "extraction": {
        "max_memories_per_trajectory": 3,
        "judge_temperature": 0.0,
        "extract_temperature": 1.0,
        "async_by_default": True,
    },
    "server": {"name": "reasoning-bank", "version": "0.1.0", "log_level": "INFO"},
    "memory_manager": {
        "enabled": True,
        "deduplication": {
            "strategy": "semantic",
            "on_extraction": True,
            "semantic": {"threshold": 0.92, "top_k_check": 5},
        },
        "merge": {
            "strategy": "voting",
            "auto_execute": False,
            "trigger": {"min_similar_count": 4, "similarity_threshold": 0.8},
            "llm": {"temperature": 0.7},
            "voting": {"min_group_size": 3},
            "original_handling": "archive",
            "archive": {"keep_embeddings": False},
        },
    },
}
"""Every key of their files, with values that are not the defaults here."""


def written(folder: Path, config: Any) -> Path:
    file = folder / "config.yaml"
    file.write_text(config if isinstance(config, str) else yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return file


def flat(table: dict[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= (
            flat(cast(dict[str, Any], value), f"{above}{key}.") if isinstance(value, dict) else {f"{above}{key}": value}
        )
    return found


def without(table: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def general(key: str) -> str:
    return re.sub(r"^(llm|embedding|storage)\.\w+\.", r"\1.*.", key)


def test_every_key_of_theirs_stands_in_the_docs() -> None:
    page = DOCS.read_text("utf-8")
    assert {general(key) for key in flat(SHIPPED)} == set(RULES)
    for key in RULES:
        assert (
            f"| `{key.replace('*', 'PROVIDER') if not key.startswith('storage') else key.replace('*', 'BACKEND')}` |"
            in page
        )


def test_every_key_goes_where_it_should_or_says_why_nowhere(tmp_path: Path) -> None:
    text, notes = import_config(written(tmp_path, without(SHIPPED, "mode")))
    made = tomllib.loads(text)
    assert made["models"]["bank"] == {
        "name": "openai:gpt-4o-mini",
        "key": "MY_KEY",
        "base_url": "https://llm.example/v1",
        "temperature": 0.7,
        "max_tokens": 4096,
    }
    memory = made["memory"]
    assert (memory["model"], memory["embedder"]) == ("bank", "openai:text-embedding-3-small")
    assert (memory["top_k"], memory["threshold"]) == (2, "strict")
    assert (memory["near_duplicates"], memory["auto_merge"]) == ("skip", False)
    weights = {key: memory["retrieval"][key] for key in ("semantic", "confidence", "success", "recency")}
    assert weights == {"semantic": 0.5, "confidence": 0.3, "success": 0.1, "recency": 0.1}
    assert 14 in memory["retrieval"].values()
    assert memory["merging"] == {
        "name": "voting",
        "min_similar_count": 4,
        "similarity_threshold": 0.8,
        "min_group_size": 3,
    }
    assert 0.92 in memory["deduplication"].values()
    MemorySettings.of(Config(values=made))  # it can be used as it is
    assert check_made(tmp_path, text) == []
    nowhere = [key for key in flat(SHIPPED) if not RULES[general(key)].to]
    unsaid = [key for key in nowhere if not any(note.startswith(f"{key}:") for note in notes)]
    assert unsaid == []


def check_made(folder: Path, text: str) -> list[Any]:
    (folder / "mulligan.toml").write_text(text, encoding="utf-8")
    return check_project(folder)


@pytest.mark.parametrize("key", [key for key in flat(SHIPPED) if key != "mode.preset"])
def test_a_file_of_one_key_is_read(tmp_path: Path, key: str) -> None:
    """Whatever else is left out: what a key means does not hang on another being there."""
    value: Any = flat(SHIPPED)[key]
    for part in reversed(key.split(".")):
        value = {part: value}
    text, notes = import_config(written(tmp_path, value))
    tomllib.loads(text)
    assert check_made(tmp_path, text) == []
    assert (
        len(text.splitlines()) > 1 or notes or key in ("llm.provider", "embedding.provider", "memory_manager.enabled")
    )


def test_the_paper_faithful_mode_is_the_preset_paper(tmp_path: Path) -> None:
    text, notes = import_config(written(tmp_path, {**SHIPPED, "mode": {"preset": "paper_faithful"}}))
    made = tomllib.loads(text)
    assert made["memory"]["preset"] == "paper"
    assert MemorySettings.of(Config(values=made)).retrieval.name == "cosine"
    assert any("paper decides by itself: retrieval, deduplication, merging" in note for note in notes)
    assert "only paper_faithful is known" in import_config(written(tmp_path, {"mode": {"preset": "none"}}))[1][0]


def test_deleting_originals_is_refused_by_name(tmp_path: Path) -> None:
    text = "memory_manager:\n  merge:\n    original_handling: delete\n"
    with pytest.raises(
        InvalidInput, match=r"config.yaml:3: memory_manager.merge.original_handling: 'delete' is refused"
    ):
        import_config(written(tmp_path, text))


def test_without_their_manager_nothing_is_folded_skipped_or_merged(tmp_path: Path) -> None:
    text, _ = import_config(written(tmp_path, {"memory_manager": {**SHIPPED["memory_manager"], "enabled": False}}))
    memory = tomllib.loads(text)["memory"]
    assert (memory["fold"], memory["near_duplicates"], memory["auto_merge"]) == (False, "link", False)


@pytest.mark.parametrize(
    ("score", "ours"), [(0.95, "strict"), (0.9, "strict"), (0.85, "standard"), (0.75, "lenient"), (0, 0.0)]
)
def test_their_thresholds_are_modes_here(tmp_path: Path, score: float, ours: Any) -> None:
    text, _ = import_config(written(tmp_path, {"retrieval": {"min_score_threshold": score}}))
    assert tomllib.loads(text)["memory"] == {"threshold": ours}


def test_only_the_provider_in_use_needs_its_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their server resolves the variables of all providers, so that users of one need the keys of all (A.6.6)."""
    monkeypatch.delenv("NOT_SET", raising=False)
    llm: dict[str, Any] = {
        "provider": "openai",
        "openai": {"api_key": "${NOT_SET}", "chat_model": "gpt"},
        "dashscope": {"api_key": "${NOT_SET}", "chat_model": "${NOT_SET}"},
    }
    text, notes = import_config(written(tmp_path, {"llm": llm}))
    assert tomllib.loads(text)["models"]["bank"] == {"name": "openai:gpt", "key": "NOT_SET"}
    assert notes == ["llm.dashscope.*: not in use there, so nothing is taken from it."]
    llm["provider"] = "dashscope"
    with pytest.raises(InvalidInput, match=r"llm.dashscope.chat_model: the variable NOT_SET is not set"):
        import_config(written(tmp_path, {"llm": llm}))


@pytest.mark.parametrize(
    ("form", "value", "name"),
    [("${A_NAME}", "x", "x"), ("${A_NAME?}", "x", "x"), ("${A_NAME:y}", "x", "x"), ("${A_NAME:y:z}", None, "y:z")],
)
def test_the_forms_of_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, value: str | None, name: str
) -> None:
    monkeypatch.delenv("A_NAME", raising=False)
    if value:
        monkeypatch.setenv("A_NAME", value)
    text, _ = import_config(written(tmp_path, {"llm": {"openai": {"chat_model": form}, "provider": "openai"}}))
    assert tomllib.loads(text)["models"]["bank"]["name"] == f"openai:{name}"
    monkeypatch.delenv("A_NAME", raising=False)
    if form == "${A_NAME?}":  # empty: as if the key were not there
        text, _ = import_config(written(tmp_path, {"llm": {"openai": {"chat_model": form}, "provider": "openai"}}))
        assert "models" not in tomllib.loads(text)


@pytest.mark.parametrize("key", ["sk-abcdefghijklmnop1234", "${MY_KEY:sk-abcdefghijklmnop1234}"])
def test_a_key_is_never_copied(tmp_path: Path, key: str) -> None:
    text, notes = import_config(
        written(tmp_path, {"llm": {"provider": "openai", "openai": {"api_key": key, "chat_model": "m"}}})
    )
    assert "sk-" not in text + "".join(notes)
    assert "It is not copied" in notes[0]


BROKEN = [
    ("a: [", ":1: "),
    ("retrieval:\n  strategy: cosin", ":2: retrieval.strategy: No strategy of retrieval is called 'cosin'"),
    ("retrieval:\n  default_top_k: none", ":2: retrieval.default_top_k: top_k must be a whole number"),
    ("memory_manager:\n  enabled: maybe", ":2: memory_manager.enabled: true or false is expected"),
    ("retrieval:\n  min_score_threshold: high", ":2: retrieval.min_score_threshold: a number from 0 to 1 is expected"),
    ("memory_manager:\n  merge:\n    trigger:\n      min_similar_count: 1", "merging: "),
]


@pytest.mark.parametrize(("text", "says"), BROKEN)
def test_a_broken_file_is_refused_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(InvalidInput) as refused:
        import_config(file)
    assert says in str(refused.value)
    assert str(refused.value).startswith(str(file))


def test_an_unknown_key_is_reported_with_the_nearest(tmp_path: Path) -> None:
    text, notes = import_config(written(tmp_path, {"retrieval": {"default_topk": 3}}))
    assert tomllib.loads(text) == {}
    assert notes == [
        "retrieval.default_topk: not a key of ReasoningBank-MCP; left out. Did you mean retrieval.default_top_k."
    ]
