"""What all pages share: the studio, the templates with their filters, and the pages of long lists."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar, cast
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from mulligan.pages import (
    STATES,
    Block,
    Chart,
    Fence,
    LessonPage,
    Quote,
    count,
    fragment,
    one_line,
    used,
    when,
    zone,
)
from mulligan.pages import harmless as harmless_text
from mulligan.plugins import NotFound
from mulligan.running import Bank, Store
from mulligan.serving import Service
from mulligan.studio.live import Listeners

T = TypeVar("T")

PAGE_ROWS = 50
"""Rows of a list on one page."""


@dataclass(frozen=True)
class Studio:
    """What one studio serves.

    Attributes:
        service: the store and the banks.
        csrf: the secret that each form contains.
        write: whether visitors may change anything.
        listeners: the open pages that update live.
    """

    service: Service
    csrf: str = field(repr=False)
    write: bool
    listeners: Listeners

    @property
    def agent_id(self) -> str | None:
        """The agent whose bank and runs are served. None: the banks and runs of all agents."""
        return self.service.served.agent_id

    @property
    def root(self) -> Path:
        """The folder of the project."""
        return self.service.config.root or Path.cwd()

    @property
    def store(self) -> Store:
        return self.service.store

    @property
    def bank(self) -> Bank:
        """The bank that is shown if none is chosen: the agent's, or all banks together, read-only."""
        return self.service.bank(self.agent_id)

    def chosen_bank(self, name: str) -> Bank:
        """The bank with this name ("": the default bank). Raises `NotFound` if this studio does not serve it."""
        if self.agent_id is not None and name != self.agent_id:
            raise NotFound(f"This studio serves only the bank {self.agent_id!r}.")
        return self.service.bank(name)

    async def bank_of(self, lesson: str) -> Bank:
        """The bank of the lesson whose id begins with `lesson`. Raises `NotFound`, also if the bank is not served."""
        return self.chosen_bank((await self.bank.get(lesson)).agent_id)


@dataclass(frozen=True)
class Rows(Generic[T]):
    """A page of a long list. next: the cursor of the next page (`?after=`); "" on the last page."""

    items: Sequence[T]
    next: str = ""


def studio_of(request: Request) -> Studio:
    return request.app.state.studio


def render(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Renders a template, which also gets `studio`, `nav`, `path`, `zone`, and `csrf`, a field that each form needs.

    A live page passes `live`, the address of its events.
    """
    studio = studio_of(request)
    shared = {"studio": studio, "nav": request.app.state.nav, "path": request.url.path, "live": "", "zone": zone()}
    csrf_field = Markup('<input type="hidden" name="csrf" value="{}">').format(studio.csrf)
    text = environment().get_template(template).render({**shared, "csrf": csrf_field, **values})
    return HTMLResponse(text, status)


def with_query(request: Request, **changed: str) -> str:
    """The address of this page with these parameters changed. "" removes a parameter."""
    unchanged = [(name, value) for name, value in request.query_params.multi_items() if name not in changed]
    query = urlencode([(name, value) for name, value in (*unchanged, *changed.items()) if value])
    return f"{request.url.path}?{query}" if query else request.url.path


@cache
def environment() -> Environment:
    """The templates. All text in them is escaped, and secrets and control characters are removed."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=harmless,
    )
    cast(dict[str, Any], templates.globals).update(signs=STATES, fence=Fence, quote_of=Quote)
    cast(dict[str, Any], templates.filters).update(
        used=used,
        when=when,
        iso=iso,
        count=count,
        line=one_line,
        blocks=blocks,
        chart=chart,
        start=start,
        bank=LessonPage.bank_title,
        page=LessonPage,
    )
    return templates


def compile_templates() -> None:
    """Compiles all templates and caches them."""
    for name in environment().list_templates(["html"]):
        environment().get_template(name)


def harmless(value: Any) -> Any:
    """A text without secrets and control characters, which Jinja then escapes; any other value as it is."""
    return harmless_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def start(text: str, length: int) -> str:
    """The first characters of a text, line breaks included."""
    return str(harmless(text)).strip()[:length]


def iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def blocks(contents: Iterable[Block]) -> Markup:
    """Blocks as HTML. `fragment` masks and escapes them."""
    return Markup(fragment(contents))


def chart(picture: Chart) -> Markup:
    """A chart as SVG in the colours of the page."""
    return Markup(picture.svg())
