"""For reports: a page's blocks, their text as Markdown and HTML, and text for numbers, times and states.

    from mulligan.pages import Heading, Table, markdown

See docs/python.md. Each name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mulligan.app.episode_pages import EpisodePages
    from mulligan.app.story import RunState, run_state
    from mulligan.bank.exchange.lesson_page import LessonPage
    from mulligan.bank.recall.prompt_text import held_back
    from mulligan.bench.report.shown import BenchReport
    from mulligan.core.rates import rate
    from mulligan.hooks.record import HookRecord
    from mulligan.text.arguments import renamed
    from mulligan.text.charts import Chart, Curve, Point
    from mulligan.text.figures import used, when, zone
    from mulligan.text.formatting import labelled
    from mulligan.text.pages import Block, Fence, Heading, Quote, Table, markdown
    from mulligan.text.plain import count, one_line
    from mulligan.text.secrets import mask_json
    from mulligan.text.states import STATES, verdict
    from mulligan.text.thoughts import answer_of
    from mulligan.text.truncate import truncate_text
    from mulligan.text.web_pages import fragment, harmless, style_sheet

_HOMES = {
    "app.episode_pages": "EpisodePages",
    "app.story": "RunState run_state",
    "bank.exchange.lesson_page": "LessonPage",
    "bench.report.shown": "BenchReport",
    "bank.recall.prompt_text": "held_back",
    "core.rates": "rate",
    "hooks.record": "HookRecord",
    "text.arguments": "renamed",
    "text.charts": "Chart Curve Point",
    "text.figures": "used when zone",
    "text.formatting": "labelled",
    "text.pages": "Block Fence Heading Quote Table markdown",
    "text.plain": "count one_line",
    "text.secrets": "mask_json",
    "text.states": "STATES verdict",
    "text.thoughts": "answer_of",
    "text.truncate": "truncate_text",
    "text.web_pages": "fragment harmless style_sheet",
}

__all__ = [
    "STATES",
    "BenchReport",
    "Block",
    "Chart",
    "Curve",
    "EpisodePages",
    "Fence",
    "Heading",
    "HookRecord",
    "LessonPage",
    "Point",
    "Quote",
    "RunState",
    "Table",
    "answer_of",
    "count",
    "fragment",
    "harmless",
    "held_back",
    "labelled",
    "markdown",
    "mask_json",
    "one_line",
    "rate",
    "renamed",
    "run_state",
    "style_sheet",
    "truncate_text",
    "used",
    "verdict",
    "when",
    "zone",
]


def __getattr__(name: str) -> Any:
    from mulligan.core.lazy import lookup

    return lookup(__name__, _HOMES, name)
