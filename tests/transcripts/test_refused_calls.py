"""Calls of tools that were refused: what a session teaches about them, and when a bank says so."""

from __future__ import annotations

import json
from typing import Any

from each_row import each_row

from mulligan import Bank
from mulligan.app.leave_one_out import leave_one_out
from mulligan.app.transcripts import Transcript, learn_from, read_transcript
from mulligan.core.rates import Rate
from mulligan.store import open_store

Result = dict[str, Any]
UNPAID = {"error": "Cannot ship 'express': order 4711 is not paid."}


def call(tool: str, result: Result, **arguments: Any) -> Result:
    return {"name": tool, "arguments": arguments, "result": result}


def session(*calls: Result, task: str = "Send my order.") -> Transcript:
    said = [
        {"role": "user", "content": task},
        {"role": "assistant", "content": "Done.", "tool_calls": list(calls)},
    ]
    return read_transcript(json.dumps({"conversation": said}), "it")


def overcome(order: str, speed: str = "express") -> Transcript:
    error = {"error": f"Cannot ship '{speed}': order {order} is not paid."}
    return session(
        call("ship", error, order_id=order, speed=speed, gift=True),
        call("get_order", {"status": "open"}, order_id=order),
        call("ship", {"status": "sent"}, order_id=order, speed="normal", gift=False),
    )


REFUSED = [call("ship", {"status": "rejected", "reason": "The shop is closed"}, order_id="O-1", day=n) for n in (1, 2)]


@each_row(
    ("calls", "taught"),
    [
        ([call("ship", UNPAID, speed="express"), call("pay", {"ok": 1})], []),
        ([call("ship", {"error": "connection timed out"}, speed="a"), call("ship", {"ok": 1}, speed="b")], []),
        ([call("ship", UNPAID, order_id="1", a=1), call("ship", {"ok": 1}, order_id="2", a=2)], []),
        ([call("ship", {"error": "bad input"}, a=1, b=1), call("ship", {"ok": 1}, a=2, b=2)], []),
        (REFUSED, []),
        (
            [*REFUSED, call("ship", {"status": "rejected", "reason": "The shop is closed"}, order_id="O-1", day=3)],
            ["tried: no other form of ship worked"],
        ),
        (
            [call("ship", {"success": False, "message": "Use `pay` first"}, a=1), call("pay", {"ok": 1}, sum=3)],
            ["works: pay instead of ship"],
        ),
        (
            [call("ship", {"error": "order_id is unknown"}, order_id="1"), call("ship", {"ok": 1}, order_id="2")],
            ["works: ship with another order_id"],
        ),
        (
            [
                call("send", {"error": "Unknown tool: send"}, a=1),
                call("get", {"ok": 1}),
                call("send_parcel", {"ok": 1}),
            ],
            ["works: send_parcel instead of send"],
        ),
        (
            [
                *[call("ship", {"error": "ship() got an unexpected keyword argument 'to'"}, to="Rome", speed="b")] * 15,
                call("ship", {"ok": 1}, city="Oslo", speed="a"),
            ],
            ["works: ship with city=…"],
        ),
        (
            [
                call("get_load", {"error": "get_load is not defined"}),
                call("pay", {"ok": 1}),
                call("read_load", {"ok": 1}),
            ],
            [],
        ),
        (
            [call("get_van_load", {"error": "get_van_load is not defined"}), call("check_van_load", {"load": 1})],
            ["works: check_van_load instead of get_van_load"],
        ),
        (
            [
                call("start", {"error": "The doors have to be locked."}, mode="fast"),
                *[call("lockDoors", {"ok": 1}, all=True), call("honk", {"ok": 1})],
                call("start", {"ok": 1}, mode="fast"),
            ],
            ["works: lockDoors before start"],
        ),
        (
            [
                call("distance", {"error": "nothing is known of it"}, a="Rome", b="Oslo"),
                *[call("code_of", {"code": code}, city=city) for city, code in (("Rome", "00118"), ("Oslo", "0150"))],
                call("distance", {"km": 2000}, a="00118", b="0150"),
            ],
            ["works: distance with a from code_of, b from code_of"],
        ),
        (
            [call("ship", {"error": "gift is not allowed"}, a=1, gift=True), call("ship", {"ok": 1}, a=1)],
            ["works: ship without gift"],
        ),
    ],
)
def test_only_what_an_error_explains_is_learned(calls: list[Result], taught: list[str]) -> None:
    assert [one.content.splitlines()[-1] for one in session(*calls).found()] == taught


async def test_sessions_that_overcame_the_same_error_confirm_each_other_and_the_bank_speaks_at_the_error_alone() -> (
    None
):
    async with open_store("memory:") as store, Bank.open(store=store.memory, embedder="none", model="none") as bank:
        for one in (overcome("4711"), overcome("4712", "overnight")):
            await learn_from(bank, one.episode(), found=one.found())
        (fact,) = await bank.list()
        assert fact.confirmed
        assert fact.content.splitlines()[0::2] == ["fails: ship", 'works: ship with speed="normal"']
        told = await bank.recall("ship: Cannot ship 'rocket': order 9 is not paid.")
        assert [one.id for one in told.lessons] == [fact.id]
        assert not (await bank.recall("Ship my order 4711 express, it is not paid.")).lessons


async def test_a_replay_asks_a_bank_that_has_not_seen_the_session() -> None:
    booked = call("book", {"booking_id": "B-1"}, room="101")
    undone = session(booked, call("cancel_booking", {"status": "cancelled"}, booking_id="B-1"))
    alone = session(*REFUSED, REFUSED[0])
    found = await leave_one_out([overcome("1"), overcome("2"), undone, alone])
    shares = {name: of for name, of in vars(found).items() if isinstance(of, Rate)}
    figures = {name: (of.count, of.n) for name, of in shares.items()}
    assert figures == {
        "hits": (2, 5),
        "sessions": (2, 3),
        "remedies": (2, 2),
        "dead_ends": (0, 0),
        "reversals": (0, 1),
        "disturbances": (0, 5),
    }
    assert (found.transcripts, found.calls, len(found.titles)) == (4, 11, 1)
