"""Quotas of a server: how many calls, tokens and dollars each agent may use in a day, kept in the store.

What an agent has used today is stored as an entry of its work queue that always waits. So servers share it through
their store, and a restart loses nothing (design/108).
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from mulligan.core.errors import InvalidInput, LeaseLost, MulliganError, StoreError, UnknownName
from mulligan.core.operations import Operation
from mulligan.core.work_queue import QUOTA, Queue
from mulligan.recording.holders import owner

SECONDS = 5.0
"""How old the figures of other servers may be, and how long usage may be unsaved."""

DAY = 86_400

log = logging.getLogger("mulligan")

_payer: ContextVar[str | None] = ContextVar("mulligan_payer", default=None)
"""The agent that pays for models that are asked here."""


class QuotaExceeded(MulliganError):
    """An agent has used up what it may use in a day."""


@dataclass(frozen=True)
class Used:
    """The usage of an agent in a day. unpriced: calls of models whose price is unknown."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def __add__(self, other: Used) -> Used:
        return Used(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Used)))


@dataclass(frozen=True)
class Quota:
    """How much each agent may use in a day (UTC): calls of tools, tokens, US dollars. None: any amount."""

    calls: float | None = None
    tokens: float | None = None
    cost: float | None = None

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Quota:
        """The quota that texts such as "calls=1000" describe. Raises `InvalidInput`, `UnknownName`."""
        values: dict[str, float] = {}
        for text in texts:
            name, _, number = text.partition("=")
            if name not in cls.__dataclass_fields__:
                raise UnknownName("quota", name, cls.__dataclass_fields__, "Write it as calls=1000.")
            try:
                values[name] = float(number)
            except ValueError:
                raise InvalidInput(f"The quota {text!r} has no number: write it as {name}=1000.") from None
            if not 0 < values[name] < float("inf"):
                raise InvalidInput(
                    f"The quota {text!r} must be greater than 0; to deny an agent access, do not give it a token."
                )
        return cls(**values)

    def __bool__(self) -> bool:
        return any(value is not None for value in asdict(self).values())

    def exceeded(self, used: Used) -> str:
        """Which quota is used up, in words; "": none is."""
        if self.calls is not None and used.calls >= self.calls:
            return f"{used.calls:,} of {self.calls:,.0f} calls"
        if self.tokens is not None and used.tokens >= self.tokens:
            return f"{used.tokens:,} of {self.tokens:,.0f} tokens"
        if self.cost is not None and used.cost >= self.cost:
            return f"${used.cost:.2f} of ${self.cost:.2f}"
        if self.cost is not None and used.unpriced:
            return (
                f"{used.unpriced} calls of a model whose price is unknown, so the limit of ${self.cost:.2f} "
                "cannot be enforced"
            )
        return ""


@dataclass
class _QuotaAccount:
    """An agent's usage today: what is stored, and what is new since. looked: when the store was last read."""

    day: str
    stored: Used = Used()
    new: Used = Used()
    looked: float = 0.0


class Quotas:
    """Counts what agents use, and refuses calls beyond their quota.

    Args:
        queue: keeps what was used.
        seconds: see `SECONDS`.
    """

    def __init__(self, quota: Quota, queue: Queue, *, seconds: float = SECONDS) -> None:
        self._quota, self._queue, self._seconds = quota, queue, seconds
        self._owner = owner()
        self._accounts: dict[str, _QuotaAccount] = {}

    @asynccontextmanager
    async def call(self, agent_id: str) -> AsyncGenerator[None]:
        """Counts a call of this agent, which also pays for models that are asked in it. A call that has begun is
        finished.

        Raises `QuotaExceeded` before it begins.
        """
        account = await self._looked_up(agent_id)
        if why := self._quota.exceeded(account.stored + account.new):
            left = DAY - int(time.time()) % DAY
            raise QuotaExceeded(
                f"The agent {agent_id!r} has used up today's quota: {why}. It resets at 00:00 UTC, in "
                f"{left // 3600} h {left % 3600 // 60} min."
            )
        account.new += Used(calls=1)
        token = _payer.set(agent_id)
        try:
            yield
        finally:
            _payer.reset(token)
            try:
                await self._save_old()
            except StoreError as error:  # the call is done, and its answer must not be lost
                log.warning("the usage of agents has not been saved yet: %s", error)

    @contextmanager
    def watch(self, done: Operation) -> Generator[None]:
        """Watches model calls. The agent that background work belongs to pays for it."""
        token = _payer.set(str(done.facts["agent"])) if done.kind == "upkeep" else None
        try:
            yield
        finally:
            if token is not None:
                _payer.reset(token)
        if done.kind == "model" and (agent_id := _payer.get()) is not None:
            usage = done.usage
            unpriced = int(usage.cost is None)
            self._account(agent_id).new += Used(0, usage.tokens, usage.cost or 0.0, unpriced)

    async def save(self) -> None:
        """Saves all usage."""
        for agent_id, account in list(self._accounts.items()):
            await self._save(agent_id, account)

    def _account(self, agent_id: str) -> _QuotaAccount:
        """The agent's account of today. Unsaved usage of earlier days is dropped."""
        day = time.strftime("%Y-%m-%d", time.gmtime())
        account = self._accounts.get(agent_id)
        if account is None or account.day != day:
            account = self._accounts[agent_id] = _QuotaAccount(day)
        return account

    async def _looked_up(self, agent_id: str) -> _QuotaAccount:
        account = self._account(agent_id)
        if time.monotonic() - account.looked >= self._seconds or not account.looked:
            work = await self._queue.find(agent_id, QUOTA, account.day)
            if work is not None:
                account.stored = _used((await self._queue.look(agent_id, work)).payload)
            account.looked = time.monotonic()
        return account

    async def _save_old(self) -> None:
        """Saves usage that has been unsaved for long, and drops the accounts of earlier days."""
        now, today = time.monotonic(), time.strftime("%Y-%m-%d", time.gmtime())
        for agent_id, account in list(self._accounts.items()):
            if account.day != today:
                self._accounts.pop(agent_id)
            elif now - account.looked >= self._seconds:
                await self._save(agent_id, account)

    async def _save(self, agent_id: str, account: _QuotaAccount) -> None:
        """Adds new usage to the stored one. If another server is saving, it stays new."""
        if account.new == Used():
            return
        day, added, empty = account.day, account.new, {"day": account.day, **asdict(Used())}
        work = await self._queue.find(agent_id, QUOTA, day)
        if work is None:
            for old in await self._queue.pending(agent_id, kind=QUOTA):  # entries of earlier days
                with suppress(LeaseLost):
                    _, claim = await self._queue.take(agent_id, old.id, self._owner, self._seconds + 10)
                    await self._queue.finish(claim, None)
            work = await self._queue.enqueue(QUOTA, agent_id, empty, key=day, waiting=True)
        with suppress(LeaseLost):  # another call or server is saving
            stored, claim = await self._queue.take(agent_id, work, self._owner, self._seconds + 10)
            total = _used(stored.payload) + added
            await self._queue.keep(claim, {"day": day, **asdict(total)})
            await self._queue.waits(claim)
            account.stored, account.looked = total, time.monotonic()
            account.new += replace(added, **{name: -value for name, value in asdict(added).items()})


def _used(payload: Any) -> Used:
    return Used(**{name: payload[name] for name in Used.__dataclass_fields__})
