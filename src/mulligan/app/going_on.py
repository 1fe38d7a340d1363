"""Learning that a process accepted and did not live to do is gone on with by the next one that serves."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mulligan.core.errors import MulliganError
from mulligan.store import file_of

if TYPE_CHECKING:
    from mulligan.app.service import Service

THINKS = ("extract", "merge")
"""Queued work that is worth loading a bank for. The rest is done when one is open anyway."""

log = logging.getLogger("mulligan")


async def go_on(service: Service) -> None:
    """Has queued extractions and merges done behind the caller's back, if there are any and the service has a model.

    Looks at the store alone, and makes none; a bank is opened only where there is something to do. What goes wrong is
    logged.
    """
    try:
        file = file_of(service.config.store)
        if not service.thinks or (file and not file.is_file()):
            return
        if await service.store.memory.queue.due(THINKS) is not None:
            service.bank(service.served.agent_id).wake()
    except MulliganError as error:
        log.warning("what was left to learn is not gone on with: %s", error)
