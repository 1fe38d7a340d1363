"""Messages of the protocol that no well-meaning client would send, made from a seed, and what is owed for each.

    making = Messages(seed, listed, revision="2025-06-18")
    message = making.next()         # .data: its bytes, without an end of line

A message is owed one answer when whatever reads JSON leniently finds a request with an id that can be given back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import cast

from hostile import Json, Raw, Values, dumped

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"

METHODS = (
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "completion/complete",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "server/discover",
    "initialize",
)

FOREIGN = (
    "",
    " ",
    "tools",
    "tools/",
    "tools/list/",
    "TOOLS/LIST",
    "tools/call\x00",
    "sampling/createMessage",
    "roots/list",
    "elicitation/create",
    "tasks/get",
    "rpc.discover",
    "$/cancelRequest",
    "notifications/initialized",
    "notifications/tools/list_changed",
    "__init__",
    "../tools/list",
    "x" * 5_000,
)


_STEP = {"step": 1, "role": "assistant", "content": "I tried the door."}
_ACTED = {"stepType": "actor", "trialNumber": 1, "maxTrials": 3, "actorInputText": "Open the door."}
MAKING: Sequence[tuple[str, dict[str, Json]]] = (
    ("reflexion-thinking", {**_ACTED, "agentId": "hostile"}),
    ("reflexion-thinking", {**_ACTED, "agentId": "other"}),
    ("retrieve_memory", {"query": "the door", "agent_id": "hostile"}),
    ("extract_memory", {"trajectory": [_STEP], "query": "Open the door.", "agent_id": "hostile"}),
    ("extract_memory", {"trajectory": [_STEP], "query": "Open it.", "agent_id": "other", "success_signal": True}),
)
"""Good calls before the hostile ones, so that there is something to take wrongly."""


def ids_in(value: Json) -> Sequence[tuple[str, str]]:
    """The ids that an answer gives out, each behind what it is called."""
    if isinstance(value, dict):
        said = cast(dict[str, Json], value)
        own = [(key, one) for key, one in said.items() if key.lower().endswith("id") and isinstance(one, str) and one]
        return [*own, *(pair for one in said.values() for pair in ids_in(one))]
    return [pair for one in cast(list[Json], value) for pair in ids_in(one)] if isinstance(value, list) else []


def by_name(pairs: Sequence[tuple[str, str]]) -> Mapping[str, Sequence[str]]:
    return {name: [id for key, id in pairs if key == name] for name, _ in pairs}


@dataclass(frozen=True)
class Listed:
    """What a server offers: tools by name with their input schemas, prompts by name with their arguments' names,
    URIs and templates of resources; and ids of what was made with it."""

    tools: Mapping[str, Json] = field(default_factory=dict[str, Json])
    prompts: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    uris: Sequence[str] = ()
    templates: Sequence[str] = ()
    ids: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


@dataclass(frozen=True)
class Message:
    """kind: how it was made. owed: True one answer, False none to any id of ours, None perhaps. key: its id as JSON.
    token: of its progress, as JSON."""

    data: bytes
    kind: str
    owed: bool | None = False
    key: str = ""
    method: str = ""
    cancels: str = ""
    token: str = ""
    maybe: tuple[str, ...] = ()
    """Ids that stand somewhere in what is no JSON: an error may name one of them."""


def id_key(id: Json) -> str:
    return json.dumps(id)


def _read_key(id: str) -> str:
    """The key of an id as it stands in a text; "" for one that is no JSON, such as a string with a wrong escape."""
    try:
        return id_key(json.loads(id, strict=False))
    except ValueError:
        return ""


def whole(digits: str) -> int | None:
    """None for what Python does not read."""
    return int(digits) if len(digits.lstrip("-")) <= 4300 else None


def judged(data: bytes, kind: str) -> Message:
    """The message, with what is owed for it."""
    try:
        found = json.loads(data.decode("utf-8", "replace"), parse_int=whole)
    except (ValueError, RecursionError):
        ids = re.findall(
            r'"id"\s*:\s*(-?(?:0|[1-9]\d{0,3999})(?!\d)|"(?:[^"\\]|\\.)*")', data.decode("utf-8", "replace")
        )
        return Message(data, kind, None, maybe=tuple(key for id in ids if (key := _read_key(id))))
    if not isinstance(found, dict):
        return Message(data, kind, False)
    said = cast(dict[str, Json], found)
    id, method = said.get("id"), said.get("method")
    if isinstance(id, bool) or not isinstance(id, int | str):
        return Message(data, kind, False)
    plain = id.isprintable() and "\ufffd" not in id if isinstance(id, str) else abs(id) < 10**4000
    sure = plain and isinstance(method, str) and not {"result", "error"} & set(said)
    method = method if isinstance(method, str) else ""
    owed = True if sure and method != "subscriptions/listen" else None
    return Message(data, kind, owed, id_key(id), method, token=_token(said.get("params")))


def _token(params: Json) -> str:
    try:
        token = params["_meta"]["progressToken"]
    except (TypeError, KeyError, IndexError):
        return ""
    return id_key(token) if isinstance(token, str | int) and not isinstance(token, bool) else ""


IDS: Sequence[Json] = (None, True, 1.0, 1e300, [], {}, [1], Raw("1" + "0" * 5000))
METHODLESS: Sequence[Json] = (None, 1, [], {}, True)


class Messages:
    """An endless row of them. `tools/call` and its like are made from what the server lists, by twisting good ones."""

    def __init__(self, seed: int, listed: Listed, *, revision: str = "2025-06-18") -> None:
        self.chance = Random(seed)
        self.values = Values(self.chance, listed.ids)
        self.listed, self.revision = listed, revision
        self._n = 0
        self._sent: list[str] = []  # ids, as JSON, of the newest requests
        self._kinds: Mapping[str, tuple[int, Callable[[], Message]]] = {
            "call": (38, self._call),
            "method": (18, self._method),
            "foreign": (4, self._foreign),
            "envelope": (12, self._envelope),
            "meta": (6, self._meta),
            "bytes": (10, self._bytes),
            "cancel": (5, self._cancel),
            "answer": (3, self._answer),
            "twice": (2, self._twice),
            "notification": (2, self._notification),
        }

    def next(self) -> Message:
        weights = [weight for weight, _ in self._kinds.values()]
        make = self.chance.choices([make for _, make in self._kinds.values()], weights)[0]
        message = make()
        if message.key:
            self._sent = [*self._sent[-63:], message.key]
        return message

    def good_params(self, method: str) -> dict[str, Json]:
        """Parameters that this method takes."""
        listed, pick = self.listed, self.chance.choice
        params: dict[str, Json] = {}
        if method == "tools/call" and listed.tools:
            name = pick(sorted(listed.tools))
            params = {"name": name, "arguments": self.values.fitting(listed.tools[name])}
        elif method == "prompts/get" and listed.prompts:
            name = pick(sorted(listed.prompts))
            params = {"name": name, "arguments": {one: self.values.text() for one in listed.prompts[name]}}
        elif method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
            params = {"uri": self._uri()}
        elif method == "completion/complete":
            ref = {"type": "ref/resource", "uri": pick([*listed.templates, *listed.uris, "x://y"])}
            if listed.prompts and self.chance.random() < 0.4:
                ref = {"type": "ref/prompt", "name": pick(sorted(listed.prompts))}
            named = pick(["id", "agent_id", "agentId", "name", "query"])
            params = {"ref": ref, "argument": {"name": named, "value": self.values.text()}}
        elif method == "logging/setLevel":
            params = {"level": pick(["debug", "info", "emergency"])}
        elif method == "initialize":
            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        elif method.endswith("/list") and self.chance.random() < 0.5:
            params = {"cursor": self.values.text()}
        return self._with_envelope(params)

    # --- how one is made ----------------------------------------------------------------------------------------

    def _call(self) -> Message:
        params = self.good_params("tools/call")
        for _ in range(self.chance.choice((0, 0, 1, 1, 2))):
            params["arguments"] = self.values.twisted(params.get("arguments"))
        if self.chance.random() < 0.05:
            params["name"] = self.values.bad()
        if self.chance.random() < 0.2:
            params["_meta"] = {**params.get("_meta", {}), "progressToken": f"token {self._n}"}
        return self._request("tools/call", params, "call")

    def _method(self) -> Message:
        method = self.chance.choice(METHODS)
        params: Json = self.good_params(method)
        if self.chance.random() < 0.7:
            params = self.values.twisted(params)
        return self._request(method, params, "method")

    def _foreign(self) -> Message:
        params = self.values.bad() if self.chance.random() < 0.5 else self._with_envelope({})
        return self._request(self.chance.choice(FOREIGN), params, "foreign")

    def _envelope(self) -> Message:
        """JSON-RPC's own frame, broken."""
        frame = self._frame("tools/list", self._with_envelope({}))
        kind = self.chance.randrange(7)
        if kind == 0:
            value: Json = [frame, self._frame("ping", {})][: self.chance.choice((0, 1, 2))]
        elif kind == 1:
            value = self.values.bad()
        elif kind == 2:
            value = {**frame, "id": self.chance.choice(IDS)}
        elif kind == 3:
            value = {**frame, "id": f"{self.values.text()[:200]}{self._number()}"}
        elif kind == 4:
            value = {**frame, "jsonrpc": self.chance.choice(("1.0", "2", 2.0, None, "", "2.0 ", []))}
        elif kind == 5:
            value = {**frame, "method": self.chance.choice(METHODLESS)}
        else:
            value = self.values.twisted(frame)
        return judged(dumped(value), "envelope")

    def _meta(self) -> Message:
        """Progress tokens, and the envelope of the newest revision, broken in every way."""
        method = self.chance.choice(("tools/list", "tools/call", "ping", "server/discover", "resources/list"))
        params = self.good_params(method)
        meta = dict(self._with_envelope({}, always=True)["_meta"])
        kind = self.chance.randrange(5)
        if kind == 0:
            meta = {"progressToken": self.values.bad()}
        elif kind == 1:
            meta |= {"progressToken": self.chance.choice((0, -1, "", "t", 2**70, True, 1.5))}
        elif kind == 2:
            meta = self.values.twisted(meta)
        elif kind == 3:
            meta[f"{META}protocolVersion"] = self.chance.choice(
                (MODERN, "2025-06-18", "1", None, 2026, [], "9999-01-01")
            )
        else:
            meta |= {"traceparent": self.values.bad(), "baggage": self.values.bad(), self.values.text(): 1}
        return self._request(method, {**params, "_meta": meta}, "meta")

    def _bytes(self) -> Message:
        """A good message with its bytes broken, or bytes that never were one."""
        good, chance = dumped(self._frame("tools/call", self.good_params("tools/call"))), self.chance
        kind = chance.randrange(9)
        if kind == 0:
            data = chance.randbytes(chance.randrange(1, 300))
        elif kind == 1:
            data = good[: chance.randrange(1, len(good))]
        elif kind == 2:
            at = chance.randrange(len(good))
            data = good[:at] + chance.randbytes(chance.randrange(1, 4)) + good[at + 1 :]
        elif kind == 3:
            at = chance.randrange(len(good))
            data = (
                good[:at]
                + chance.choice((b"\x00", b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"))
                + good[at:]
            )
        elif kind == 4:
            data = chance.choice((b"\xef\xbb\xbf" + good, good.decode().encode("utf-16"), good + good, good + b"\x00"))
        elif kind == 5:
            data = chance.choice(
                (b" ", b"\t", b"\x1a", b"\x04", b"{}", b"[]", b"[[]]", b"null", b'"', b"}", b"{" * 900)
            )
        elif kind == 6:
            data = chance.choice(
                (b"GET / HTTP/1.1", b"Content-Length: 20", b"event: message", b"data: {}", b"\x16\x03\x01")
            )
        elif kind == 7:
            data = chance.choice((b"[", b'{"a":', b"[[{")) * chance.choice((150, 250, 1_500, 20_000))
        else:
            data = bytes(chance.sample(good, len(good)))
        return judged(data.replace(b"\n", b" "), "bytes")

    def _cancel(self) -> Message:
        """Of a request before, now or never; sometimes in no shape at all."""
        wanted: Json = Raw(self.chance.choice(self._sent)) if self._sent and self.chance.random() < 0.8 else None
        if wanted is None:
            wanted = self.chance.choice((self._n + 1, -5, "nobody", None, True, 1.5, [], {"id": 1}, Raw("1e999")))
        frame = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": wanted, "reason": "x"}}
        return Message(dumped(frame), "cancel", cancels=dumped(wanted).decode())

    def _answer(self) -> Message:
        """A response that nobody asked for."""
        body = {self.chance.choice(("result", "error")): self.values.bad()}
        id = self.chance.choice((1, 0, "1", None, 10**30, self.values.text()))
        return Message(dumped({"jsonrpc": "2.0", "id": id, **body}), "answer")

    def _twice(self) -> Message:
        """A request with an id that was used before, perhaps of one that is still being answered."""
        id = Raw(self.chance.choice(self._sent)) if self._sent else 0
        frame = {"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": self._with_envelope({})}
        return judged(dumped(frame), "twice")

    def _notification(self) -> Message:
        method = self.chance.choice(
            (
                "notifications/initialized",
                "notifications/progress",
                "notifications/roots/list_changed",
                "x/y",
                "tools/list",
            )
        )
        return Message(dumped({"jsonrpc": "2.0", "method": method, "params": self.values.bad()}), "notification")

    # --- parts --------------------------------------------------------------------------------------------------

    def _request(self, method: str, params: Json, kind: str) -> Message:
        return replace(judged(dumped(self._frame(method, params)), kind), method=method)

    def _frame(self, method: str, params: Json) -> dict[str, Json]:
        number = self._number()
        id: Json = number if self.chance.random() < 0.7 else f"h-{number}"
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}

    def _number(self) -> int:
        self._n += 1
        return self._n

    def _uri(self) -> str:
        known = [*self.listed.uris, *self.listed.templates]
        if known and self.chance.random() < 0.6:
            return re.sub(r"\{.*?\}", lambda _: self._part(), self.chance.choice(known))
        return self.chance.choice(known or ["x:"])[:12] + self.values.text()

    def _part(self) -> str:
        known = [id for several in self.listed.ids.values() for id in several]
        return self.chance.choice([*known, self.values.text()[:50]])

    def _with_envelope(self, params: dict[str, Json], *, always: bool = False) -> dict[str, Json]:
        """Of the newest revision, whose requests all carry one; now and then the other way round."""
        modern = self.revision == MODERN
        if not always and modern == (self.chance.random() < 0.03):
            return params
        about = {"name": "hostile", "version": "0"}
        meta = {f"{META}protocolVersion": MODERN, f"{META}clientInfo": about, f"{META}clientCapabilities": {}}
        return {**params, "_meta": meta}
