"""What every page is made with: the studio that it belongs to, templates, filters, and pages of long lists."""

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

from mulligan.bank.exchange.lesson_page import bank_title, brief, state_word
from mulligan.pages import (
    Block,
    Chart,
    Fence,
    Quote,
    badge_signs,
    count,
    fragment,
    one_line,
    svg,
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
        csrf: the secret that each form carries.
        write: whether visitors may change anything.
        listeners: the pages that follow what is recorded.
    """

    service: Service
    csrf: str = field(repr=False)
    write: bool
    listeners: Listeners

    @property
    def agent_id(self) -> str | None:
        """The agent whose bank and runs are served. None: the bank of the unnamed agent, and the runs of all."""
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
        """What this studio shows when no bank is chosen: the agent's own, or all banks, which are then only read."""
        return self.service.bank(self.agent_id)

    def chosen_bank(self, name: str) -> Bank:
        """A bank by its name ("": the default bank). Raises `NotFound` for another agent's than that of this studio."""
        if self.agent_id is not None and name != self.agent_id:
            raise NotFound(f"This studio serves only the bank {self.agent_id!r}.")
        return self.service.bank(name)

    async def bank_of(self, lesson: str) -> Bank:
        """The bank of the lesson whose id begins so. Raises `NotFound`, for a bank that is not served too."""
        return self.chosen_bank((await self.bank.get(lesson)).agent_id)


@dataclass(frozen=True)
class Rows(Generic[T]):
    """A page of a long list. next: where the rest begins (`?after=`), as the store says it; "" at the end."""

    items: Sequence[T]
    next: str = ""


def studio_of(request: Request) -> Studio:
    return request.app.state.studio


def render(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """The page of this template. It also has `studio`, `nav`, `path`, and `csrf`, the field of each form.

    live: the address of the events that the page follows; "" for a page that does not change by itself."""
    studio = studio_of(request)
    shared = {"studio": studio, "nav": request.app.state.nav, "path": request.url.path, "live": "", "zone": zone()}
    field = Markup('<input type="hidden" name="csrf" value="{}">').format(studio.csrf)
    text = environment().get_template(template).render({**shared, "csrf": field, **values})
    return HTMLResponse(text, status)


def with_query(request: Request, **changed: str) -> str:
    """This page's address with these parameters changed; "" leaves one out."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in changed]
    query = urlencode([(name, value) for name, value in (*kept, *changed.items()) if value])
    return f"{request.url.path}?{query}" if query else request.url.path


@cache
def environment() -> Environment:
    """The templates. All text is escaped, masked, and without control characters, wherever it is from."""
    found = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=harmless,
    )
    cast(dict[str, Any], found.globals).update(signs=badge_signs(), fence=Fence, quote_of=Quote)
    filters = cast(dict[str, Any], found.filters)
    filters.update(
        used=used,
        when=when,
        iso=iso,
        count=count,
        line=one_line,
        blocks=blocks,
        chart=chart,
        start=start,
        bank=bank_title,
        brief=brief,
        state=state_word,
    )
    return found


def compile_templates() -> None:
    """Compiles all templates, which are then kept."""
    for name in environment().list_templates(["html"]):
        environment().get_template(name)


def harmless(value: Any) -> Any:
    """Foreign text as it may be shown: without secrets and control characters. Jinja escapes it afterwards."""
    return harmless_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def start(text: str, most: int) -> str:
    """The beginning of a text with its lines, cut where the page could not show more."""
    return str(harmless(text)).strip()[:most]


def iso(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def blocks(several: Iterable[Block]) -> Markup:
    """Blocks as HTML, which is masked and escaped there."""
    return Markup(fragment(several))


def chart(picture: Chart) -> Markup:
    """A chart in the colours of the page."""
    return Markup(svg(picture))
