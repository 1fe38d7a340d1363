"""The pages: one file for each area. The first of its `routes` is the start page of the area."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from starlette.routing import Route

from mulligan.studio.pages import agents, bank, benchmarks, doctor, hooks, overview, queue, runs


class Pages(Protocol):
    """A file of this folder."""

    @property
    def routes(self) -> Sequence[Route]: ...


PAGES: Mapping[str, Pages] = {
    "Overview": overview,
    "Runs": runs,
    "Bank": bank,
    "Coding agents": hooks,
    "Benchmarks": benchmarks,
    "Agents": agents,
    "Queue": queue,
    "Doctor": doctor,
}
"""The areas by their names in the navigation, in this order."""
