"""What a program takes that drives its own loop: configuration, models, plug-ins by name, the store and its records.

    from mulligan.running import load, open_store

See docs/python.md. Each name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mulligan.app.config import Config, load, located_model, prompts_folder
    from mulligan.app.memory import open_bank
    from mulligan.app.model_roles import configured_model, is_role
    from mulligan.app.options import Options, fields, option, options, place, taken_by
    from mulligan.app.plugins import attribute_of, names
    from mulligan.app.prompts import FilePrompts
    from mulligan.app.teaching import failure, memory_command, summary, teach, tell_outcome
    from mulligan.app.transcripts import lessons_about
    from mulligan.bank.bank import Bank
    from mulligan.bank.learn.screening import screened
    from mulligan.bank.learn.trajectory import episode_of
    from mulligan.bank.learn.validation import checked_fields
    from mulligan.bank.recall.prompt_text import pairs_text
    from mulligan.bench.harness.single import Bench, open_bench, options_of
    from mulligan.core.codec import digest, event_from_json, from_json, to_json
    from mulligan.core.episode import Acted, Evaluated, Event, Recalled, Reflected, Stopped, advance, due
    from mulligan.core.home import home
    from mulligan.core.loop import Meter, scope
    from mulligan.core.protocols import Observer, Store
    from mulligan.core.records import StopReason
    from mulligan.models.answers import answer_in
    from mulligan.models.catalog import open_embedder
    from mulligan.models.failures import Unreadable
    from mulligan.models.gate import asked_twice
    from mulligan.models.json_answers import parse, read_object
    from mulligan.models.providers import MissingKey
    from mulligan.models.tool_answers import call_of, in_json
    from mulligan.recording.bridge import (
        Settling,
        blocking,
        both_ways,
        finish,
        is_asynchronous,
        kept_both_ways,
        portal,
        run_coroutine,
        settled,
    )
    from mulligan.recording.drivers import check_resumable, versions
    from mulligan.recording.journal import JournaledBank, NoJournal, StoredJournal
    from mulligan.recording.ledger import Entry, Ledger, is_move, with_quality
    from mulligan.recording.outages import UnharmedJournal, is_resting, rest, tolerated, warn_once
    from mulligan.store import open_store

_HOMES = {
    "Acted": "core.episode",
    "Bank": "bank.bank",
    "Bench": "bench.harness.single",
    "Config": "app.config",
    "Entry": "recording.ledger",
    "Evaluated": "core.episode",
    "Event": "core.episode",
    "FilePrompts": "app.prompts",
    "JournaledBank": "recording.journal",
    "Ledger": "recording.ledger",
    "Meter": "core.loop",
    "MissingKey": "models.providers",
    "NoJournal": "recording.journal",
    "Observer": "core.protocols",
    "Options": "app.options",
    "Recalled": "core.episode",
    "Reflected": "core.episode",
    "Settling": "recording.bridge",
    "StopReason": "core.records",
    "Stopped": "core.episode",
    "Store": "core.protocols",
    "StoredJournal": "recording.journal",
    "UnharmedJournal": "recording.outages",
    "Unreadable": "models.failures",
    "advance": "core.episode",
    "answer_in": "models.answers",
    "asked_twice": "models.gate",
    "attribute_of": "app.plugins",
    "blocking": "recording.bridge",
    "both_ways": "recording.bridge",
    "call_of": "models.tool_answers",
    "check_resumable": "recording.drivers",
    "checked_fields": "bank.learn.validation",
    "configured_model": "app.model_roles",
    "digest": "core.codec",
    "due": "core.episode",
    "episode_of": "bank.learn.trajectory",
    "event_from_json": "core.codec",
    "failure": "app.teaching",
    "fields": "app.options",
    "finish": "recording.bridge",
    "from_json": "core.codec",
    "home": "core.home",
    "in_json": "models.tool_answers",
    "is_asynchronous": "recording.bridge",
    "is_move": "recording.ledger",
    "is_resting": "recording.outages",
    "is_role": "app.model_roles",
    "kept_both_ways": "recording.bridge",
    "lessons_about": "app.transcripts",
    "load": "app.config",
    "located_model": "app.config",
    "memory_command": "app.teaching",
    "names": "app.plugins",
    "open_bank": "app.memory",
    "open_bench": "bench.harness.single",
    "open_embedder": "models.catalog",
    "open_store": "store",
    "option": "app.options",
    "options": "app.options",
    "options_of": "bench.harness.single",
    "pairs_text": "bank.recall.prompt_text",
    "parse": "models.json_answers",
    "place": "app.options",
    "portal": "recording.bridge",
    "prompts_folder": "app.config",
    "read_object": "models.json_answers",
    "rest": "recording.outages",
    "run_coroutine": "recording.bridge",
    "scope": "core.loop",
    "screened": "bank.learn.screening",
    "settled": "recording.bridge",
    "summary": "app.teaching",
    "taken_by": "app.options",
    "teach": "app.teaching",
    "tell_outcome": "app.teaching",
    "to_json": "core.codec",
    "tolerated": "recording.outages",
    "versions": "recording.drivers",
    "warn_once": "recording.outages",
    "with_quality": "recording.ledger",
}

__all__ = [
    "Acted",
    "Bank",
    "Bench",
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
    "Recalled",
    "Reflected",
    "Settling",
    "StopReason",
    "Stopped",
    "Store",
    "StoredJournal",
    "UnharmedJournal",
    "Unreadable",
    "advance",
    "answer_in",
    "asked_twice",
    "attribute_of",
    "blocking",
    "both_ways",
    "call_of",
    "check_resumable",
    "checked_fields",
    "configured_model",
    "digest",
    "due",
    "episode_of",
    "event_from_json",
    "failure",
    "fields",
    "finish",
    "from_json",
    "home",
    "in_json",
    "is_asynchronous",
    "is_move",
    "is_resting",
    "is_role",
    "kept_both_ways",
    "lessons_about",
    "load",
    "located_model",
    "memory_command",
    "names",
    "open_bank",
    "open_bench",
    "open_embedder",
    "open_store",
    "option",
    "options",
    "options_of",
    "pairs_text",
    "parse",
    "place",
    "portal",
    "prompts_folder",
    "read_object",
    "rest",
    "run_coroutine",
    "scope",
    "screened",
    "settled",
    "summary",
    "taken_by",
    "teach",
    "tell_outcome",
    "to_json",
    "tolerated",
    "versions",
    "warn_once",
    "with_quality",
]


def __getattr__(name: str) -> Any:
    from mulligan.core.lazy import lookup

    return lookup(__name__, _HOMES, name)
