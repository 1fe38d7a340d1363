"""An order in a real browser: the actor presses the wrong button, reflects, and presses the right one.

As a program: `python form_story.py STORE LOG DIE_AT` runs the story or resumes the one in the store; each answer of the
model is a line of the log, and the process kills itself when question DIE_AT comes (0: never).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import mulligan
from mulligan.models.scripted import ScriptedModel
from mulligan.plugins import Episode, Question, Sampling
from mulligan.store import open_store

FORM = str(Path(__file__).parent / "form" / "form.py")
TASK = "Order 3 lamps for Ada."
PAGE = """<!doctype html><title>Orders</title><body style="font: 16px sans-serif">
<form onsubmit="return false"><label>Name <input id=n></label> <label>Number <input id=m size=3></label><p>
<button onclick="end('Your draft was saved.')">Save</button>
<button onclick="end('The order of ' + m.value + ' lamps for ' + n.value + ' was sent.')">Send order</button>
</form><script>function end(said) { document.body.textContent = said }</script>"""
FILL = ["open", "type[Name|Ada]", "type[Number|3]"]
FIRST, SECOND = [*FILL, "click[Save]", "done"], [*FILL, "click[Send order]", "done"]
LESSON = "I pressed Save, which only kept a draft of the order for Ada; next time I press Send order."


def answer(question: Question, _: Sampling) -> str:
    """The next line of the trial that the question is about, or the lesson."""
    asked = question.messages[-1].text
    if not asked.rstrip("\n").partition("\n\nImage")[0].endswith(">"):
        return LESSON
    done = sum(line.startswith("> ") for line in asked.splitlines())
    return (SECOND if LESSON in asked else FIRST)[done]


@contextmanager
def served(port: int = 0) -> Generator[str]:
    """The page, on loopback."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(PAGE.encode())

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", port), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def describe(question: Question, _: Sampling) -> str:
    (image,) = question.messages[-1].images
    return f"A page, {len(image.data) and 'with a form or a line of text'}."


async def story(store: Path, url: str, model: ScriptedModel, vision: ScriptedModel | None = None) -> Episode:
    options: dict[str, Any] = {"environment": FORM, "model": model, "vision_model": vision, "trials": 2}
    settings = {"environment": {"url": url}, "reflector": {"output": "environment"}}
    async with open_store(store) as at:
        return await mulligan.solve(TASK, store=at, settings=settings, seed=3, **options)


def logged(log: Path, die_at: int) -> Callable[[Question, Sampling], str]:
    def said(question: Question, sampling: Sampling) -> str:
        number = len(log.read_text().splitlines()) + 1 if log.exists() else 1
        if number == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        with log.open("a") as file:
            file.write(f"{number}\n")
        return answer(question, sampling)

    return said


async def main(store: Path, log: Path, die_at: int, port: int, *, begun: bool) -> None:
    model = ScriptedModel(logged(log, die_at))
    with served(port) as url:
        if not begun:
            await story(store, url, model)
            return
        async with open_store(store) as at:
            (episode,) = await at.list()
            await mulligan.resume(episode.id, store=at, model=model)


if __name__ == "__main__":
    at = Path(sys.argv[1])
    asyncio.run(main(at, Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), begun=at.exists()))
