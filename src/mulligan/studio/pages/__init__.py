"""The pages, a file for each area. Each has `routes`, of which the first is where the area begins."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from starlette.routing import Route

from mulligan.studio.pages import agents, bank, benchmarks, doctor, hooks, queue, runs


class Pages(Protocol):
    """A file of this folder."""

    @property
    def routes(self) -> Sequence[Route]: ...


PAGES: Mapping[str, Pages] = {
    "Runs": runs,
    "Benchmarks": benchmarks,
    "Bank": bank,
    "Agents": agents,
    "Hooks": hooks,
    "Queue": queue,
    "Doctor": doctor,
}
"""The areas by the names that pages show them under, in this order."""
