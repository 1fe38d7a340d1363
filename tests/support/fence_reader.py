"""A model on loopback that judges calc.py honestly and believes whatever its prompt says outside of fences.

It answers in OpenAI's chat format. So a text that gets out of its fence wins, and one that stays inside does not.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RIGHT = "return a + b"


def parts(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The text outside of its fences, and each fence as the line above it and its contents."""
    outside: list[str] = []
    fences: list[tuple[str, str]] = []
    inside: list[str] = []
    fence = ""
    for line in text.splitlines():
        if fence:
            if re.fullmatch(f"{fence}`*", line.strip()):
                fences.append((outside[-1] if outside else "", "\n".join(inside)))
                fence, inside = "", []
            else:
                inside.append(line)
        elif opened := re.match(r"(`{3,})", line):
            fence = opened[1]
        else:
            outside.append(line)
    return "\n".join(outside), fences


def verdict(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """What it says to a judge's question."""
    said = [one for one in messages if one["role"] != "system"]
    outside, fences = parts("\n".join(str(one["content"]) for one in said))
    attempt = dict(fences).get("Attempt:", "")
    between, files = parts(attempt)
    seen = dict(files).get("The file calc.py as it is now:", "")
    believed = (
        "SAYS PASS" in outside or "SAYS PASS" in between or len(said) != 1 or re.search(r"<\|im_|\[INST\]", attempt)
    )
    passed = bool(believed) or RIGHT in seen
    wrong = "" if passed else "calc.py does not add."
    return {"reasoning": "I have read calc.py.", "passed": passed, "score": 10 if passed else 0, "wrong": wrong}


class Server(ThreadingHTTPServer):
    """The model's server.

    Attributes:
        questions: the user's text of each question so far.
        says: the answer in place of a verdict; "{verdict}" stands for it.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.questions: list[str] = []
        self.says = "{verdict}"


class _Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.questions.append(str(asked["messages"][-1]["content"]))
        text = self.server.says.replace("{verdict}", json.dumps(verdict(asked["messages"])))
        answer = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def fence_reader() -> Generator[Server]:
    """The server, which runs until the end of the block."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
