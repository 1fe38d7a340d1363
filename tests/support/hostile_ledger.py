"""Keeps count of what was asked and what was answered, and what holds of each answer, whatever was asked.

    ledger = Ledger()
    ledger.asked(message); ledger.heard(line); ledger.owing -> keys of requests that wait for their one answer
Each broken rule is an `AssertionError` that says which message it was about.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

from hostile_messages import Message, id_key, whole
from jsonschema import Draft202012Validator
from walks import in_full

Json = Any

RESULTS: Mapping[str, str] = {
    "tools/list": "tools",
    "tools/call": "content",
    "prompts/list": "prompts",
    "prompts/get": "messages",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "resources/read": "contents",
    "completion/complete": "completion",
    "initialize": "serverInfo",
    "server/discover": "supportedVersions",
}
"""The key that a good result of this method holds."""

NOTIFICATIONS = ("notifications/progress", "notifications/message")


class Ledger:
    def __init__(self) -> None:
        self._validators: dict[str, Draft202012Validator] = {}
        self._open: dict[str, Message] = {}
        self._asked: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()
        self._methods: dict[str, set[str]] = {}
        self._tools: dict[str, str] = {}
        self._newest: dict[str, Message] = {}
        self._tokens: Counter[str] = Counter()
        self._token_of: dict[str, list[str]] = {}
        self._nameless = 0
        self.kinds: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()

    @property
    def owing(self) -> list[str]:
        return list(self._open)

    def about(self, key: str) -> Message:
        return self._open[key]

    def validate(self, tools: Mapping[str, Json]) -> None:
        """From now on what these tools answer has to fit these output schemas."""
        self._validators = {name: Draft202012Validator(schema) for name, schema in tools.items()}

    def newest(self, line: bytes) -> bytes:
        """What was asked with the id of this answer, as far as it is short."""
        try:
            return self._newest[id_key(json.loads(line)["id"])].data[:2_000]
        except (ValueError, KeyError, TypeError, RecursionError):
            return b"?"

    def asked(self, message: Message, tool: str = "") -> None:
        self.kinds[message.kind] += 1
        if message.owed is not True:
            self._nameless += 1
        if message.cancels:
            meant = _coerced(message.cancels)
            for key in [key for key in self._open if _coerced(key) == meant]:
                del self._open[key]
            return
        for key in message.maybe:
            self._asked[key] += 1
        if not message.key:
            return
        self._asked[message.key] += 1
        self._methods.setdefault(message.key, set()).add(message.method)
        if tool:
            self._tools[message.key] = tool if tool in self._validators else ""
        self._newest[message.key] = message
        if message.token:
            self._tokens[message.token] += 1
            self._token_of.setdefault(message.key, []).append(message.token)
        if message.owed and self._asked[message.key] == 1:
            self._open[message.key] = message

    def heard(self, line: bytes) -> tuple[str, Json] | None:
        """The id as JSON and the answer; None for a notification."""
        said = strict(line)
        assert isinstance(said, dict), f"no object: {line[:300]!r}"
        answer = cast(dict[str, Json], said)
        assert answer.get("jsonrpc") == "2.0", f"no JSON-RPC: {line[:300]!r}"
        if "method" in answer:
            assert "id" not in answer, f"the server asks something: {line[:300]!r}"
            assert answer["method"] in NOTIFICATIONS, f"an unknown notification: {line[:300]!r}"
            token = id_key(answer["params"].get("progressToken"))
            assert self._tokens[token] > 0, f"progress of nothing that is under way: {line[:300]!r}"
            self.codes["progress"] += 1
            return None
        assert ("result" in answer) != ("error" in answer), f"neither or both: {line[:300]!r}"
        if answer["id"] is None:
            self._nameless -= 1
            assert "error" in answer, f"a result for nobody: {line[:300]!r}"
            assert self._nameless >= 0, f"more errors without an id than there were broken messages: {line[:300]!r}"
        else:
            self._counted(id_key(answer["id"]), line)
        self._sound(answer, line)
        return id_key(answer["id"]), answer

    def _counted(self, key: str, line: bytes) -> None:
        assert self._asked[key], f"an answer to what nobody asked: {line[:300]!r}"
        self._answered[key] += 1
        assert self._answered[key] <= self._asked[key], f"answered twice: {line[:300]!r}"
        self._open.pop(key, None)
        if self._token_of.get(key) and self._answered[key] == self._asked[key]:
            for token in self._token_of.pop(key):
                self._tokens[token] -= 1
        while len(self._newest) > 500:
            del self._newest[next(iter(self._newest))]

    def _sound(self, answer: dict[str, Json], line: bytes) -> None:
        if "error" in answer:
            self.sound(answer, line, "", "")
            return
        key, result = id_key(answer["id"]), answer["result"]
        methods = self._methods[key]
        fits = [method for method in methods if RESULTS.get(method, "") in ("", *result)]
        assert fits, f"not for {methods}: {line[:300]!r}"
        self.sound(answer, line, fits[0] if len(methods) == 1 else "", self._tools.get(key, ""))

    def sound(self, answer: dict[str, Json], line: bytes, method: str, tool: str) -> None:
        """What holds of an answer to this method, by this tool; method "": it may be to any."""
        if "error" in answer:
            error = answer["error"]
            assert isinstance(error["code"], int), f"no code: {line[:300]!r}"
            assert isinstance(error["message"], str), f"no message: {line[:300]!r}"
            assert error["code"] not in (0, -32603), f"an error of the server's own: {line[:600]!r}"
            self.codes[str(error["code"])] += 1
            return
        result = answer["result"]
        assert RESULTS.get(method, "") in ("", *result), f"not for {method}: {line[:300]!r}"
        if method == "tools/call":
            self._called(tool if tool in self._validators else "", result, line)

    def _called(self, tool: str, result: dict[str, Json], line: bytes) -> None:
        (block,) = result["content"]
        assert block["type"] == "text", f"no text: {line[:300]!r}"
        said = strict(block["text"].encode())
        assert "The server failed" not in block["text"], f"an unexpected failure: {line[:600]!r}"
        if result.get("isError"):
            self.codes[f"{tool or '?'}: refused"] += 1
            assert "structuredContent" not in result, f"an error with content: {line[:300]!r}"
            return
        self.codes[f"{tool or '?'}: answered"] += 1
        whole = result["structuredContent"]
        said = in_full(said, whole)
        assert said == whole, f"two answers in one: {line[:300]!r}"
        if tool in self._validators:
            wrong = next(cast(Any, self._validators[tool]).iter_errors(said), None)
            assert wrong is None, (
                f"against its own output schema: {wrong.message[:300] if wrong else ''}: {line[:300]!r}"
            )


def strict(data: bytes) -> Json:
    """JSON as the standard has it: no NaN, no broken UTF-8, no halves of surrogate pairs."""

    def never(name: str) -> Json:
        raise AssertionError(f"{name} is no JSON: {data[:300]!r}")

    try:
        text = data.decode("utf-8")
        found = json.loads(text, parse_constant=never, parse_int=whole)
    except (ValueError, RecursionError) as error:
        raise AssertionError(f"the server wrote what is no JSON ({error}): {data[:300]!r}") from None
    if "\\ud" in text.lower():
        json.dumps(found, ensure_ascii=False).encode()  # raises for half a pair
    return found


def _coerced(key: str) -> Json:
    """As a cancellation reads an id: "7" and 7 are one."""
    try:
        found = json.loads(key) if len(key) < 400 else key
        return int(found) if isinstance(found, str) else found
    except ValueError:
        return key
