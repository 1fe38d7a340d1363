"""Banks as files: our own export, whole and lossless, one for reading, and which known format a file is in.

A file is read whole and checked before anything is done with it. Whose lessons they become is the bank's to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from mulligan.bank.recall.prompt_text import UNCONFIRMED
from mulligan.core.codec import SCHEMA, from_json, to_json
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import Archive
from mulligan.core.records import Json, Lesson
from mulligan.text.json_lines import parsed
from mulligan.text.secrets import mask_json

OURS, UPSTREAM, MEMORY_SERVER = "mulligan", "ReasoningBank-MCP", "server-memory"
LARGEST = 500_000_000
"""Bytes of a file: it is read whole."""


@dataclass(frozen=True)
class BankFile:
    """A file that was read. `format` is one of those above; notes: what of it has no place here, in sentences."""

    format: str
    archives: tuple[Archive, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Ours:
    agents: tuple[Archive, ...]


def read_bank_file(path: Path) -> BankFile:
    """The file, whichever of the known formats it has. Raises `InvalidInput` that names the file and the line, or the
    way to the value, of what is wrong."""
    text = file_text(path)
    if (lines := _json_lines(text)) is not None:
        from mulligan.bank.exchange.foreign import of_memory_server

        lessons, notes = of_memory_server(path, lines)
        return BankFile(MEMORY_SERVER, (Archive("", lessons),), notes)
    data = mask_json(parsed(path, text))
    if isinstance(data, dict):
        table = cast(dict[str, Json], data)
        if "agents" in table:
            return BankFile(OURS, archives_from_json(table, path))
        if "memories" in table:
            from mulligan.bank.exchange.foreign import of_upstream

            lessons, notes = of_upstream(path, table)
            agents = dict.fromkeys(lesson.agent_id for lesson in lessons)
            own = (Archive(agent, tuple(one for one in lessons if one.agent_id == agent)) for agent in agents)
            return BankFile(UPSTREAM, tuple(own), notes)
        if "embeddings" in table:
            raise InvalidInput(f"{path} holds vectors alone: name the memories.json beside it.")
        if "episodes" in table:
            raise InvalidInput(f"{path} is an export of runs, not of lessons.")
    raise InvalidInput(
        f"{path} is no file of lessons that is known here: an export of `mulligan memory export`, the memories.json or "
        f"archived_memories.json of {UPSTREAM}, or the memory.jsonl of {MEMORY_SERVER}."
    )


# --- our own ----------------------------------------------------------------------------------------------------


def archives_to_json(archives: Sequence[Archive]) -> Json:
    """The export: the version of Mulligan, that of the records, then what there is of each agent; secrets masked.
    Raises `InvalidInput` for what has no place in JSON."""
    from importlib.metadata import version

    return mask_json({"mulligan": version("mulligan"), "schema": SCHEMA, **to_json(_Ours(tuple(archives)))})


def archives_from_json(data: Mapping[str, Json], path: Path | str = "The export") -> tuple[Archive, ...]:
    """Raises `InvalidInput` that names the way to what is wrong."""
    schema = data.get("schema")
    if isinstance(schema, bool) or not isinstance(schema, int):
        raise InvalidInput(f"{path}: schema: the version of the records is missing, so this is no export of ours.")
    try:
        archives = from_json(_Ours, dict(data), schema).agents
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {str(error).removeprefix('_Ours.')}") from error
    agents: set[str | None] = set()
    for n, archive in enumerate(archives):
        if archive.agent_id in agents:
            raise InvalidInput(f"{path}: agents.{n}.agent_id: {archive.agent_id!r} is there twice.")
        agents.add(archive.agent_id)
        if wrong := _wrong(archive):
            raise InvalidInput(f"{path}: agents.{n}.{wrong}")
    return archives


def _wrong(archive: Archive) -> str:
    """What does not belong together: a lesson that is there twice, or something told of one that is not there."""
    ids: set[str] = set()
    for n, lesson in enumerate(archive.lessons):
        at = f"lessons.{n}"
        if lesson.agent_id != archive.agent_id:
            return f"{at}: it is of another agent, {lesson.agent_id!r}."
        if not lesson.id or lesson.id in ids:
            return f"{at}: the id {lesson.id} is there twice." if lesson.id else f"{at}: it has no id."
        if not lesson.title.strip() or not lesson.content.strip():
            return f"{at}: a lesson needs a title and a content."
        if not 0 <= lesson.confidence <= 1 or lesson.uses < 0 or lesson.support < 1:
            return f"{at}: confidence is from 0 to 1, uses at least 0, support at least 1."
        ids.add(lesson.id)
    for id, versions in archive.history.items():
        if id not in ids:
            return f"history.{id}: this lesson is not in the file."
        for n, version in enumerate(versions):
            if version.lesson and (version.lesson.id, version.lesson.agent_id) != (id, archive.agent_id):
                return f"history.{id}.{n}: it tells of another lesson."
    for n, link in enumerate(archive.links):
        if {link.a, link.b} - ids:
            return f"links.{n}: it links a lesson that is not in the file."
    for n, receipt in enumerate(archive.receipts):
        if receipt.agent_id != archive.agent_id:
            return f"receipts.{n}: it is of another agent, {receipt.agent_id!r}."
    return ""


# --- for reading ------------------------------------------------------------------------------------------------


def markdown(archives: Sequence[Archive]) -> str:
    """The lessons for a person to read, agent by agent, newest first; their texts stand in quotes."""
    blocks: list[str] = []
    for archive in archives:
        blocks += [f"# Lessons of {inline(archive.agent_id)}" if archive.agent_id else "# Lessons"]
        for lesson in sorted(archive.lessons, key=lambda lesson: -lesson.created):
            blocks += _story(lesson)
    return "\n\n".join(blocks) + "\n"


def _story(lesson: Lesson) -> Iterator[str]:
    yield f"## {inline(lesson.title)}"
    yield "\n".join(f"- **{name}:** {inline(said)}" for name, said in facts(lesson).items())
    if lesson.description:
        yield quoted(lesson.description)
    yield quoted(lesson.content)


def facts(lesson: Lesson) -> dict[str, str]:
    """What is known of a lesson beside its text, by its name in words; what there is nothing of is left out."""
    origin, steps = lesson.origin, ", ".join(map(str, lesson.origin.steps))
    trial = f", trial {origin.trial}" if origin.trial is not None else ""
    gone = " (run removed)" if origin.removed else ""
    said = {
        "id": lesson.id,
        "agent": lesson.agent_id,
        "state": lesson.state,
        "superseded by": lesson.superseded_by or "",
        "flags": ", ".join(lesson.flags),
        "from a": lesson.outcome,
        "nature": _nature(lesson),
        "task": lesson.query,
        "kind": lesson.kind,
        "tags": ", ".join(lesson.tags),
        "origin": f"{origin.kind}{f' by {origin.by}' if origin.by else ''}",
        "episode": f"{origin.episode}{trial}{f', steps {steps}' if steps else ''}{gone}" if origin.episode else "",
        "merged from" if origin.kind != "extracted" else "in place of": ", ".join(origin.parents),
        "judged": origin.reason,
        "confidence": f"{lesson.confidence:g}",
        "created": moment(lesson.created),
        "recalled": f"{lesson.uses} times, last {moment(lesson.last_used)}" if lesson.last_used else "never",
        "stands for": f"{lesson.support} equal lessons" if lesson.support > 1 else "",
        "vector of": lesson.embedder or "",
        "context": json.dumps(lesson.context, ensure_ascii=False) if lesson.context else "",
    }
    return {name: text for name, text in said.items() if text}


def _nature(lesson: Lesson) -> str:
    """What a fact is, and whether it is sure; nothing for a strategy."""
    if lesson.nature == "strategy":
        return ""
    of = f" of the project {lesson.project}" if lesson.project else ""
    return f"fact{of}{'' if lesson.confirmed else f', {UNCONFIRMED}'}"


def moment(seconds: float) -> str:
    """A time for a person, in UTC."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):  # a year that calendars do not have
        return f"{seconds:g} s"


def inline(text: str) -> str:
    """Foreign text in one line, with what Markdown would act on escaped."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(text.split()))


def quoted(text: str) -> str:
    """Foreign text as a quotation, so that no line of it passes for ours."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


# --- reading a file ---------------------------------------------------------------------------------------------


def file_text(path: Path) -> str:
    """All of a file. Raises `InvalidInput` for one that cannot be read, or has nothing in it."""
    try:
        if path.is_dir():
            raise InvalidInput(f"{path} is a folder: name a file in it.")
        if (size := path.stat().st_size) > LARGEST:
            raise InvalidInput(f"{path} has {size:,} bytes; {LARGEST:,} can be read.")
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{path}:{line}: not UTF-8 (byte {error.start}): save it as UTF-8.") from error
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from error
    if not text.strip():
        raise InvalidInput(f"{path} is empty.")
    return text


def _json_lines(text: str) -> Sequence[tuple[int, str]] | None:
    """The lines that are not empty, with their numbers, of a file that holds an object of a memory server on each."""
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    try:
        first: Any = json.loads(lines[0][1])
    except (ValueError, RecursionError):
        return None
    typed = isinstance(first, dict) and cast(dict[str, Json], first).get("type") in ("entity", "relation")
    return lines if typed else None
