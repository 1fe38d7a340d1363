"""Open the bank of an agent, with the configured store, strategies, model and embedder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mulligan.app.config import Config, choose_model, load, project_name, prompts_folder
from mulligan.app.memory_config import MemorySettings
from mulligan.app.models_by_name import Models
from mulligan.app.plugins import build
from mulligan.app.prompts import FilePrompts
from mulligan.bank import bank
from mulligan.bank.ports import Ports
from mulligan.bank.recall.embedding import Vectors
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import Memory
from mulligan.core.protocols import Embedder, Model
from mulligan.core.specs import Spec
from mulligan.recording.holders import owner
from mulligan.store import open_store


class Bank(bank.Bank):
    """The lessons of one agent: recalls, learns, and looks after them. Nothing in it is ever overwritten.

    Close it, or use it as an async context manager. Methods raise `InvalidInput`, `NotFound` (also for another agent's
    lesson) and `StoreError`; those that ask a model, `ModelError` and `BadAnswer`, too.
    """

    @classmethod
    def open(cls, agent_id: str | None = "", **options: Any) -> Bank:
        """The bank of this agent in the configured store. The options are those of `open_bank`."""
        return open_bank(agent_id, **options)


def open_bank(
    agent_id: str | None = "",
    *,
    store: Memory | None = None,
    model: str | Model | None = None,
    embedder: str | Embedder | None = None,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    config: Config | None = None,
    models: Models | None = None,
    project: str | None = None,
) -> Bank:
    """The bank of this agent; nothing is opened, loaded or called until it is used.

    agent_id: whose lessons; "" is the unnamed agent, None reads those of all and writes to the unnamed one.
    store: None is `mulligan.db` beside mulligan.toml, or in the user's data folder. model: who judges, extracts and
    merges; only one that was named (here, in [memory], by MULLIGAN_MODEL, as `model` in mulligan.toml); without one,
    questions are handed out. embedder: "local", PROVIDER:MODEL, "hash" (for tests), "none". preset: "paper".
    settings: over those of [memory] in mulligan.toml. project: the one that is worked on, whose facts are recalled;
    None stands for that of the working folder. Raises `InvalidInput`.
    """
    config = config or load()
    memory = MemorySettings.of(config, settings or {}, preset)
    models = models or Models(config)
    own = prompts_folder(config)
    prompts = FilePrompts([Path(own)] if own else [])
    named = models.name(model) or memory.model or choose_model(None, config)
    return Bank(
        Ports(
            memory=store or open_store(config.store).memory,
            agent_id=agent_id,
            vectors=Vectors(_embedder(embedder or memory.embedder, config)),
            retrieval=_strategy("retrieval", memory.retrieval, prompts),
            deduplication=_strategy("deduplication", memory.deduplication, prompts),
            merging=_strategy("merging", memory.merging, prompts),
            model=models.open(named) if named else None,
            prompts=prompts,
            settings=memory.bank,
            owner=owner(),
            strategy=Path(memory.retrieval.name).stem,
            project=project_name(config) if project is None else project,
        )
    )


def _strategy(role: str, spec: Spec, prompts: FilePrompts) -> Any:
    return build(role, spec, {"prompts": prompts})


def _embedder(given: str | Embedder, config: Config) -> Embedder | None:
    """None: lessons are found by their words alone."""
    if not isinstance(given, str):
        return given
    if given == "none":
        return None
    from mulligan.models.catalog import open_embedder
    from mulligan.models.settings import CallSettings

    with config.errors_at("calls"):
        calls = CallSettings.parse(config.table("calls"))
    try:
        return open_embedder(given, settings=calls)
    except InvalidInput:
        if given == "local":  # not installed: said by the recall, and no reason to refuse one
            return None
        raise
