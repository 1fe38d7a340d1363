"""A provider on loopback, for tests: answers in the formats of OpenAI, Anthropic, DashScope and Gemini, or misbehaves to order.

    python tests/support/provider_server.py --port 0 --answers FILE        prints the port

FILE holds a JSON list. An entry is what happens to one request: a text (the answer), or an object with one of
    answer: TEXT or JSON     with finish (stop, length, content_filter), usage ([input, output] or null), delay in s,
                             held: true (until PUT /_release)
    calls: [CALL, ...]       tools to call, with or without an answer (a text): {"name": NAME, "arguments": {...}}, or
                             arguments as a text, which then goes out as it is (not to Anthropic, which has no such);
                             with an `id`, else they are numbered in each answer anew; with a `namespace` for OpenAI's
                             responses
    status: 429, ...         with body and headers
    drop, hang, malformed    true: closes the connection; never answers; sends half of a JSON body
    drip: SECONDS            the answer `x`, one byte at a time, each after so many seconds
    vectors: [[...], ...]    for /embeddings (OpenAI's format); else each text gets (1, its length, 0, 0, ...), of the
                             `dimensions` asked for, or 8
and, with any of them, `fill: {NAME: REGEX}`: then {NAME} anywhere in the entry is what the regex's first group matches in
the request's text; and `when: TEXT`: then it is for every request whose text holds TEXT, and is never used up. A request
that matches none takes the next entry without `when`. `after: N` is such a condition, too: the request offers tools, and
tells of the results of N calls; with both, both are to hold. PUT /_script takes a new list. GET /_log gives the requests so far, and
of each the names of the `tools` that it offers and the `results` of calls that it tells of, whatever the format.
It knows nothing of Mulligan. Standard library only.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

Entry = dict[str, Any]
LONGEST_HANG = 60.0


@dataclass
class Received:
    """One request as it came in; `path` without the query."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def text(self) -> str:
        return json.dumps(self.body, ensure_ascii=False)


@dataclass
class Script:
    """What is to happen, what has happened, and how many requests were in flight at most."""

    entries: list[Entry] = field(default_factory=list[Entry])
    received: list[Received] = field(default_factory=list[Received])
    now: int = 0
    most: int = 0

    def load(self, answers: list[Any]) -> None:
        self.entries = [{"answer": entry} if isinstance(entry, str) else dict(entry) for entry in answers]
        self.received.clear()
        self.now = self.most = 0
        self.released = asyncio.Event()
        self.hanging = asyncio.Event()

    def take(self, request: Received) -> Entry:
        for entry in self.entries:
            told = tools_of(request.body) and len(results_of(request.body))
            if not entry.keys() & {"when", "after"}:
                continue
            if entry.get("when", "") in request.text and entry.get("after", told) == told:
                return entry
        for number, entry in enumerate(self.entries):
            if "when" not in entry and "after" not in entry:
                return self.entries.pop(number)
        return {"status": 400, "body": {"error": {"message": "the script of this server has no more answers"}}}


class ProviderServer:
    """Listens on 127.0.0.1 while it is entered; `port` is the one it got."""

    def __init__(self, answers: list[Any], port: int = 0) -> None:
        self.port = port
        self.script = Script()
        self.script.load(answers)
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> ProviderServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def forever(self) -> None:
        assert self._server is not None
        await self._server.serve_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read(reader)
            if request is None:
                return
            if request.path.startswith("/_"):
                await _reply(writer, 200, self._control(request))
                return
            self.script.received.append(request)
            self.script.now += 1
            self.script.most = max(self.script.most, self.script.now)
            try:
                await self._play(_filled(self.script.take(request), request), request, reader, writer)
            finally:
                self.script.now -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _control(self, request: Received) -> Any:
        if request.path == "/_script":
            self.script.load(request.body)
        if request.path == "/_release":
            self.script.released.set()
        seen = [
            {
                "path": r.path,
                "headers": r.headers,
                "body": r.body,
                "tools": tools_of(r.body),
                "results": results_of(r.body),
            }
            for r in self.script.received
        ]
        return {"requests": seen, "most": self.script.most}

    async def _play(
        self, entry: Entry, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await asyncio.sleep(entry.get("delay", 0))
        if entry.get("held"):
            async with asyncio.timeout(LONGEST_HANG):
                await self.script.released.wait()
        if entry.get("drop"):
            writer.transport.abort()
        elif entry.get("hang"):
            self.script.hanging.set()
            async with asyncio.timeout(LONGEST_HANG):
                await reader.read()  # returns when the other side gives up
        elif entry.get("malformed"):
            await _reply(writer, 200, '{"choices": [{"mess')
        elif "drip" in entry:
            await _drip(writer, json.dumps(answer(request, {"answer": "x"})).encode(), entry["drip"])
        elif "status" in entry:
            await _reply(writer, entry["status"], entry.get("body", {}), entry.get("headers", {}))
        else:
            body = answer(request, entry)
            stream = STREAMS.get(re.split("[/:]", request.path)[-1])
            if stream and (request.body.get("stream") or request.path.endswith(":streamGenerateContent")):
                await _reply(writer, 200, stream(body), {"Content-Type": "text/event-stream"})
            else:
                await _reply(writer, 200, body)


def _filled(entry: Entry, request: Received) -> Entry:
    text = json.dumps(entry)
    for name, pattern in entry.get("fill", {}).items():
        found = re.search(pattern, request.text)
        text = text.replace(f"{{{name}}}", json.dumps(found[1])[1:-1] if found else "")
    return json.loads(text)


def tools_of(body: Any) -> list[str]:
    """The names of the tools that a request offers."""
    tools = body.get("tools") or ()
    tools = [tool for group in tools for tool in group.get("functionDeclarations", [group])]  # Gemini's stand in groups
    return [tool.get("name") or tool.get("function", tool).get("name", tool.get("type")) for tool in tools]


def results_of(body: Any) -> list[Entry]:
    """The results of calls that a request tells of: `id` of the call, and `text`."""
    found: list[Entry] = []
    for message in [*(body.get("messages") or ()), *_items(body.get("input"))]:
        if isinstance(message, str):  # a text to embed
            continue
        if message.get("role") == "tool":
            found.append({"id": message["tool_call_id"], "text": message["content"]})
        elif message.get("type") == "function_call_output":
            found.append({"id": message["call_id"], "text": message["output"]})
        for block in _items(message.get("content")):
            if block.get("type") == "tool_result":
                text = "".join(inner["text"] for inner in _items(block["content"])) or block["content"]
                found.append({"id": block["tool_use_id"], "text": text})
    for part in [part for content in body.get("contents") or () for part in content["parts"]]:  # Gemini's
        if response := part.get("functionResponse"):
            found.append({"id": response.get("id", response["name"]), "text": response["response"].get("output", "")})
    return found


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def answer(request: Received, entry: Entry) -> Any:
    """The body of a good answer, in the format that the path asks for."""
    if request.path.endswith("/embeddings"):
        return _embeddings(request.body, entry)
    given = entry.get("answer", "")
    calls: list[Entry] = entry.get("calls", [])
    names = tools_of(request.body)
    if names and not isinstance(given, str):  # JSON where tools are offered: it is the argument of the first
        calls, given = [{"name": names[0], "arguments": given}], ""
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    said = text + "".join(json.dumps(call["arguments"]) for call in calls)
    counted = entry.get("usage", [len(request.text.split()), len(said.split())])
    finish, model = entry.get("finish", "stop"), entry.get("model", request.body.get("model", ""))
    if request.path.endswith("/messages"):
        return _anthropic(text, calls, counted or [0, 0], finish, model)
    if request.path.endswith("/responses"):
        return _responses(text, calls, counted or [0, 0], model)
    if request.path.endswith("enerateContent"):
        return _gemini(text, calls, counted or [0, 0], model)
    return _chat(text, calls, counted, finish, model)


def _embeddings(body: Any, entry: Entry) -> Any:
    texts: list[str] = body["input"]
    rest = [0.0] * (body.get("dimensions", 8) - 2)
    rows: list[list[float]] = entry.get("vectors") or [[1.0, float(len(text)), *rest] for text in texts]
    packed = body.get("encoding_format") == "base64"
    data: list[Entry] = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode() if packed else row,
        }
        for index, row in enumerate(rows)
    ]
    counted = entry.get("usage", [sum(len(text.split()) for text in texts)])
    usage = counted and {"prompt_tokens": counted[0], "total_tokens": counted[0]}
    return {"object": "list", "model": entry.get("model", body["model"]), "data": data, "usage": usage}


def _ids(calls: list[Entry]) -> list[tuple[str, str, Entry]]:
    """Of each call an id that is this server's own, and its arguments as text."""
    texts = (call["arguments"] for call in calls)
    return [
        (
            call.get("id", f"theirs-{number}"),
            text if isinstance(text, str) else json.dumps(text, ensure_ascii=False),
            call,
        )
        for number, (call, text) in enumerate(zip(calls, texts, strict=True), 1)
    ]


def _chat(text: str, calls: list[Entry], usage: list[int] | None, finish: str, model: str) -> Any:
    message: Entry = {"role": "assistant", "content": text if text or not calls else None}
    if calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": call["name"], "arguments": arguments}}
            for id, arguments, call in _ids(calls)
        ]
    reason = "tool_calls" if calls and finish == "stop" else finish
    counted = usage and {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": counted,
    }


def _anthropic(text: str, calls: list[Entry], usage: list[int], finish: str, model: str) -> Any:
    blocks: list[Entry] = [{"type": "text", "text": text}] if text or not calls else []
    blocks += [
        {"type": "tool_use", "id": id, "name": call["name"], "input": call["arguments"]} for id, _, call in _ids(calls)
    ]
    reasons = {"stop": "tool_use" if calls else "end_turn", "length": "max_tokens", "content_filter": "refusal"}
    return {
        "id": "message-1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": reasons[finish],
        "stop_sequence": None,
        "usage": {"input_tokens": usage[0], "output_tokens": usage[1]},
    }


def _events(message: Any) -> str:
    """Anthropic's message as the events of a stream, which its SDK asks for when an answer may be long."""
    events: list[Entry] = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}]
    for index, block in enumerate(message["content"]):
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block.get("text")}
        if block["type"] == "tool_use":
            empty = {**block, "input": Entry()}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events += [{"type": "message_delta", "delta": end, "usage": message["usage"]}, {"type": "message_stop"}]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def _chunks(completion: Any) -> str:
    """A chat completion as the events of a stream, which coding agents ask for."""
    (choice,) = completion["choices"]
    calls = [{"index": number, **call} for number, call in enumerate(choice["message"].get("tool_calls", []))]
    delta = {**choice["message"], **({"tool_calls": calls} if calls else {})}
    about = {"id": completion["id"], "object": "chat.completion.chunk", "created": 1, "model": completion["model"]}
    chunks: list[Entry] = [
        {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        {**about, "choices": [], "usage": completion["usage"]},
    ]
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def _responses(text: str, calls: list[Entry], usage: list[int], model: str) -> Any:
    content: list[Entry] = [{"type": "output_text", "text": text, "annotations": []}]
    message: Entry = {
        "type": "message",
        "id": "message-1",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }
    output = [message] if text or not calls else []
    output += [
        {
            "type": "function_call",
            "id": f"item-{id}",
            "call_id": id,
            "name": call["name"],
            "arguments": arguments,
            "status": "completed",
            **{key: call[key] for key in call.keys() & {"namespace"}},
        }
        for id, arguments, call in _ids(calls)
    ]
    return {
        "id": "response-1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": usage[0],
            "output_tokens": usage[1],
            "total_tokens": sum(usage),
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _steps(response: Any) -> str:
    """OpenAI's response as the events of a stream, the few that Codex CLI waits for."""
    events: list[Entry] = [
        {"type": "response.created", "response": {**response, "output": [], "status": "in_progress"}}
    ]
    for index, item in enumerate(response["output"]):
        events += [
            {"type": f"response.output_item.{kind}", "output_index": index, "item": item} for kind in ("added", "done")
        ]
    events.append({"type": "response.completed", "response": response})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def _gemini(text: str, calls: list[Entry], usage: list[int], model: str) -> Any:
    parts: list[Entry] = [{"text": text}] if text or not calls else []
    parts += [
        {"functionCall": {"id": id, "name": call["name"], "args": call["arguments"]}} for id, _, call in _ids(calls)
    ]
    counted = {"promptTokenCount": usage[0], "candidatesTokenCount": usage[1], "totalTokenCount": sum(usage)}
    candidate = {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": parts}}
    return {"responseId": "answer-1", "modelVersion": model, "candidates": [candidate], "usageMetadata": counted}


def _once(body: Any) -> str:
    """A stream of one event."""
    return f"data: {json.dumps(body)}\n\n"


STREAMS: dict[str, Callable[[Any], str]] = {
    "messages": _events,
    "completions": _chunks,
    "responses": _steps,
    "streamGenerateContent": _once,
}
"""How an answer is streamed, by the end of the path."""


async def _read(reader: asyncio.StreamReader) -> Received | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, urlsplit(target).path, headers, json.loads(raw) if raw else {})


async def _reply(writer: asyncio.StreamWriter, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    writer.write(_head(status, len(data), headers or {}) + data)
    await writer.drain()


async def _drip(writer: asyncio.StreamWriter, data: bytes, seconds: float) -> None:
    writer.write(_head(200, len(data), {}))
    for number in range(len(data)):
        writer.write(data[number : number + 1])
        await writer.drain()
        await asyncio.sleep(seconds)


def _head(status: int, length: int, headers: dict[str, str]) -> bytes:
    said = {"Content-Type": "application/json", "Connection": "close", **headers, "Content-Length": str(length)}
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in said.items()), "", ""]
    return "\r\n".join(lines).encode()


async def main() -> None:
    parser = argparse.ArgumentParser(description="A provider on loopback, for tests.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--answers", help="a file with a JSON list")
    given = parser.parse_args()
    answers: list[Any] = []
    if given.answers:
        with open(given.answers, encoding="utf-8") as file:  # noqa: ASYNC230 (before anything is served)
            answers = json.load(file)
    async with ProviderServer(answers, given.port) as server:
        print(server.port, flush=True)
        await server.forever()


if __name__ == "__main__":
    asyncio.run(main())
