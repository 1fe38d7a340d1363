"""A loopback server of one file that behaves as it is told: with ranges, without, cut short, stalled, another file."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """`cut`: bytes of an answer after which the connection ends; None: all. stall: it stays open then, and silent.
    ranges: whether they are honoured. asked: the Range of each request, or "". paths: what was asked for."""

    body: bytes
    cut: int | None = None
    ranges: bool = True
    stall: bool = False
    status: int = 200
    url: str = ""
    asked: list[str] = field(default_factory=list[str])
    paths: list[str] = field(default_factory=list[str])
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving_file(served: Served) -> Generator[Served]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = self.headers.get("Range", "")
            served.asked.append(given)
            served.paths.append(self.path)
            start = int(given.removeprefix("bytes=").rstrip("-")) if given and served.ranges else 0
            body = served.body[start:]
            self.send_response(served.status if served.status != 200 else 206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(served.body) - 1}/{len(served.body)}")
            self.end_headers()
            self.wfile.write(body[: served.cut])
            self.wfile.flush()
            if served.stall:
                served.over.wait(60)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        served.url = f"http://127.0.0.1:{server.server_port}/file.jsonl"
        try:
            yield served
        finally:
            served.over.set()
            server.shutdown()
            thread.join()
