"""For programs with their own loop: configuration, models and plug-ins by name, and the store and its records.

    from mulligan.running import load, open_store

See docs/python.md. Each name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mulligan.app.agents import ProjectAgent
    from mulligan.app.config import Config, load, located_model
    from mulligan.app.doctor import check_machine
    from mulligan.app.editing import rate_run
    from mulligan.app.lint import lint
    from mulligan.app.memory import Bank
    from mulligan.app.model_roles import configured_model, is_role
    from mulligan.app.options import Options, option, place, taken_by
    from mulligan.app.plugins import attribute_of
    from mulligan.app.prompts import FilePrompts
    from mulligan.app.teaching import memory_command, summary, teach
    from mulligan.app.transcripts import lessons_about
    from mulligan.bank.learn.screening import storable
    from mulligan.bank.learn.trajectory import episode_of
    from mulligan.bank.recall.prompt_text import pairs_text
    from mulligan.bench.harness.single import Bench
    from mulligan.core.codec import digest, from_json, to_json
    from mulligan.core.episode import Acted, Evaluated, Event, Recalled, Reflected, Stopped, advance, due
    from mulligan.core.home import home
    from mulligan.core.lessons import LAYERS
    from mulligan.core.loop import Meter, scope
    from mulligan.core.operations import acting_as
    from mulligan.core.protocols import Brief, Observer, Store
    from mulligan.core.records import StopReason
    from mulligan.core.worth import Tally
    from mulligan.models.answers import answer_in
    from mulligan.models.catalog import open_embedder
    from mulligan.models.failures import Unreadable
    from mulligan.models.gate import asked_twice
    from mulligan.models.json_answers import parse, read_object
    from mulligan.models.providers import MissingKey
    from mulligan.models.tool_answers import call_of, in_json
    from mulligan.recording.bridge import portal
    from mulligan.recording.drivers import check_resumable
    from mulligan.recording.journal import JournaledBank, NoJournal, StoredJournal
    from mulligan.recording.ledger import Entry, Ledger
    from mulligan.recording.outages import Outages
    from mulligan.store import open_store

_HOMES = {
    "app.agents": "ProjectAgent",
    "app.config": "Config load located_model",
    "app.doctor": "check_machine",
    "app.editing": "rate_run",
    "app.lint": "lint",
    "app.memory": "Bank",
    "app.model_roles": "configured_model is_role",
    "app.options": "Options option place taken_by",
    "app.plugins": "attribute_of",
    "app.prompts": "FilePrompts",
    "app.teaching": "memory_command summary teach",
    "app.transcripts": "lessons_about",
    "bank.learn.screening": "storable",
    "bank.learn.trajectory": "episode_of",
    "bank.recall.prompt_text": "pairs_text",
    "bench.harness.single": "Bench",
    "core.codec": "digest from_json to_json",
    "core.episode": "Acted Evaluated Event Recalled Reflected Stopped advance due",
    "core.home": "home",
    "core.lessons": "LAYERS",
    "core.loop": "Meter scope",
    "core.operations": "acting_as",
    "core.protocols": "Brief Observer Store",
    "core.records": "StopReason",
    "core.worth": "Tally",
    "models.answers": "answer_in",
    "models.catalog": "open_embedder",
    "models.failures": "Unreadable",
    "models.gate": "asked_twice",
    "models.json_answers": "parse read_object",
    "models.providers": "MissingKey",
    "models.tool_answers": "call_of in_json",
    "recording.bridge": "portal",
    "recording.drivers": "check_resumable",
    "recording.journal": "JournaledBank NoJournal StoredJournal",
    "recording.ledger": "Entry Ledger",
    "recording.outages": "Outages",
    "store": "open_store",
}

__all__ = [
    "LAYERS",
    "Acted",
    "Bank",
    "Bench",
    "Brief",
    "Config",
    "Entry",
    "Evaluated",
    "Event",
    "FilePrompts",
    "JournaledBank",
    "Ledger",
    "Meter",
    "MissingKey",
    "NoJournal",
    "Observer",
    "Options",
    "Outages",
    "ProjectAgent",
    "Recalled",
    "Reflected",
    "StopReason",
    "Stopped",
    "Store",
    "StoredJournal",
    "Tally",
    "Unreadable",
    "acting_as",
    "advance",
    "answer_in",
    "asked_twice",
    "attribute_of",
    "call_of",
    "check_machine",
    "check_resumable",
    "configured_model",
    "digest",
    "due",
    "episode_of",
    "from_json",
    "home",
    "in_json",
    "is_role",
    "lessons_about",
    "lint",
    "load",
    "located_model",
    "memory_command",
    "open_embedder",
    "open_store",
    "option",
    "pairs_text",
    "parse",
    "place",
    "portal",
    "rate_run",
    "read_object",
    "scope",
    "storable",
    "summary",
    "taken_by",
    "teach",
    "to_json",
]


def __getattr__(name: str) -> Any:
    from mulligan.core.lazy import lookup

    return lookup(__name__, _HOMES, name)
