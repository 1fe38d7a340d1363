"""Everything that a caller can ask with an id in its hand, and what it is told, made comparable."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hostile_secrets import MARK, Calls, lesson, step

Json = Any
Probe = tuple[str, dict[str, Json]]

_TRAJECTORY = [{"step": 1, "role": "assistant", "content": "I looked."}]
_REFLECTED: dict[str, Json] = {"actorOutputText": "An output.", "evaluatorScore": "no"}
BASES: Mapping[str, Sequence[dict[str, Json]]] = {
    "reflexion-thinking": (
        step("actor", actorInputText="A task."),
        step("evaluator", actorOutputText="An output."),
        step("self-reflection", **_REFLECTED, reflectionText="Look."),
        step("evaluator", 2, actorOutputText="An output.", passed=True, learn=True),
    ),
    "retrieve_memory": ({"query": "What of the bystander?", "top_k": 5},),
    "extract_memory": (
        {"trajectory": _TRAJECTORY, "query": "Look."},
        {"trajectory": _TRAJECTORY, "query": "Look.", "success_signal": True, "lessons": [lesson("found")]},
        {},
        {"lessons": [lesson("found")]},
        {"success_signal": True},
    ),
    "memory_task": ({},),
}
"""Good arguments of each tool, or such as need one more."""


def probes(
    id: str, schemas: Mapping[str, Json], templates: Sequence[str], prompts: Mapping[str, Sequence[str]]
) -> Iterator[Probe]:
    """Each tool with each of its texts set to this id, and each other request that takes one."""
    for tool, schema in schemas.items():
        texts = [
            name for name, one in schema["properties"].items() if one.get("type") == "string" and "enum" not in one
        ]
        for base in BASES.get(tool, ({},)):
            for name in texts:
                yield "tools/call", {"name": tool, "arguments": {**base, name: id}}
            if "task_id" in texts:
                yield "tools/call", {"name": tool, "arguments": {**base, "task_id": f"extract_{id}"}}
    for template in templates:
        for shown in (id, f"{id}/", f"../{id}", id.upper(), f"{id}*", f"{id[:4]}%"):
            yield "resources/read", {"uri": template.replace("{id}", shown)}
        for begun in dict.fromkeys((id, id[:-1], id[:6], id[:2], f"{id[:2]}%", f"{id[:3]}*", "%", "_", "[", "")):
            ref = {"type": "ref/resource", "uri": template}
            yield "completion/complete", {"ref": ref, "argument": {"name": "id", "value": begun}}
            context = {"arguments": {"agent_id": id}}
            yield "completion/complete", {"ref": ref, "argument": {"name": "id", "value": begun}, "context": context}
    yield "resources/read", {"uri": f"mulligan://{id}"}
    for prompt, arguments in prompts.items():
        for name in (*arguments, "agent_id", "agentId"):
            yield "prompts/get", {"name": prompt, "arguments": {name: id}}
            ref = {"type": "ref/prompt", "name": prompt}
            for begun in (id, id[:3], ""):
                yield "completion/complete", {"ref": ref, "argument": {"name": name, "value": begun}}
    for cursor in (id, *(_cursor(pair) for pair in ([id, ""], ["", id], [id, id]))):
        for method in ("resources/list", "tools/list", "prompts/list", "resources/templates/list"):
            yield method, {"cursor": cursor}


def _cursor(pair: Sequence[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(pair).encode()).decode()


_MADE = re.compile(r"\b(?:extract_)?[rw]?[0-9a-f]{8,32}(?:\.\d+)?\b")
_TIME = re.compile(r"\b20\d\d-\d\d-\d\d[T ]?(?:\d\d:\d\d(?::\d\d)?)?(?:\.\d+)?Z?\b|\b17\d{8}\.\d+")


def plain(answer: str, asked: str, ids: Sequence[str]) -> str:
    """What was answered, without ids that were asked for (now or before), ids that were made just now, and times."""
    for n, id in sorted(enumerate(ids), key=lambda one: -len(one[1])):
        answer = answer.replace(id, f"<asked {n}>").replace(id.upper(), f"<ASKED {n}>")
    answer = _TIME.sub("<time>", _MADE.sub("<made>", answer))
    for length in () if asked.startswith("extract_") else (len(asked) - 1, 6, 4):
        answer = answer.replace(f"{asked[:length]}", "<begun>")
    return answer


async def offered(caller: Calls) -> tuple[Mapping[str, Json], Sequence[str], Mapping[str, Sequence[str]]]:
    """Schemas of the tools, templates of resources, and arguments of prompts, as this caller is told them."""
    tools = (await caller.ask("tools/list", {}))["result"]["tools"]
    templates = (await caller.ask("resources/templates/list", {}))["result"]["resourceTemplates"]
    prompts = (await caller.ask("prompts/list", {}))["result"]["prompts"]
    return (
        {one["name"]: one["inputSchema"] for one in tools},
        [one["uriTemplate"] for one in templates],
        {one["name"]: [argument["name"] for argument in one.get("arguments", ())] for one in prompts},
    )


async def told(caller: Calls, ids: Sequence[str]) -> Sequence[tuple[str, Probe, str, str]]:
    """Of each id and each probe with it: what was answered, as it came and made comparable."""
    known = await offered(caller)
    answers: list[tuple[str, Probe, str, str]] = []
    for id in ids:
        for probe in probes(id, *known):
            answer = json.dumps(await caller.ask(*probe), ensure_ascii=False)
            answers.append((id, probe, answer, plain(answer, id, ids)))
    return answers


Told = Sequence[tuple[str, Probe, str, str]]


def as_if_nobody(heard: Told, expected: Told) -> None:
    """Both were told the same, the one with ids that there are, the other with such as there are not."""
    assert len(heard) == len(expected)
    for (_, probe, answer, plainly), (_, other, _, same) in zip(heard, expected, strict=True):
        if not _may_be_ours(probe):
            assert plainly == same, f"{probe}: {answer}\nnot as {other}: {same}"


def _may_be_ours(probe: Probe) -> bool:
    """A beginning so short that ids of the caller's own, which are made by chance, may begin so."""
    method, params = probe
    return method == "completion/complete" and 0 < len(params["argument"]["value"].strip("%*_[")) < 4


def nothing_of_theirs(heard: Told, names: Sequence[str], ids: Sequence[str]) -> None:
    """But for what was asked, now or before on the same connection, and so is echoed."""
    for asked, probe, answer, _ in heard:
        rest = answer.lower()
        for name in names[: names.index(asked) + 1]:
            rest = rest.replace(name.lower(), "")
        assert MARK not in rest, f"{probe}: {answer}"
        for id in ids:
            assert id.lower() not in rest, f"{probe} tells of {id}: {answer}"
