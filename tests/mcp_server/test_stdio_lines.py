"""Bytes into lines, and lines into messages: whatever comes, what is kept has a bound and what is wrong is said."""

import json
from itertools import pairwise
from typing import Any

import mcp_types as types
import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.mcp_server import messages
from mulligan.mcp_server.messages import HEAD, Refused, outline, parse
from mulligan.mcp_server.stdio import LineSplitter, TooLong

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda some: st.lists(some) | st.dictionaries(st.text(), some),
)


def cut(data: bytes, at: list[int]) -> list[bytes]:
    """The data in pieces, cut at these places."""
    places = [0, *sorted(place % (len(data) + 1) for place in at), len(data)]
    return [data[one:other] for one, other in pairwise(places)]


@given(st.binary(), st.lists(st.integers(0, 100)), st.integers(0, 20))
def test_lines_are_the_same_however_their_bytes_arrive(data: bytes, at: list[int], longest: int) -> None:
    lines = LineSplitter(longest)
    got = [line for chunk in cut(data, at) for line in lines.feed(chunk)] + list(lines.end())
    parts = data.split(b"\n")
    whole = parts if parts[-1] else parts[:-1]
    for line, part in zip(got, whole, strict=True):
        if isinstance(line, TooLong):
            assert len(part) > longest
            assert (part.startswith(line.head), line.tail) == (True, part)
        else:
            assert (line, len(part) <= longest) == (part, True)


def test_a_line_that_is_too_long_is_not_kept() -> None:
    lines = LineSplitter(1000)
    for _ in range(10_000):
        assert list(lines.feed(b"x" * 900)) == []
    assert len(lines._kept) <= HEAD  # pyright: ignore[reportPrivateUsage]
    long, following = lines.feed(b"the end\nnext\n")
    assert isinstance(long, TooLong)
    assert (len(long.head), len(long.tail), long.tail[-8:]) == (1800, HEAD, b"xthe end")
    assert following == b"next"


def refusal(raw: bytes) -> types.JSONRPCError | None:
    with pytest.raises(Refused) as caught:
        parse(raw)
    return caught.value.error


def told(raw: bytes) -> tuple[int, Any]:
    error = refusal(raw)
    assert error is not None
    return error.error.code, error.id


@each_row(
    ("raw", "code", "id"),
    [
        (b"", -32700, None),
        (b"{", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}', -32700, 1),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":{"a":NaN}}', -32700, "a"),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32700, None),
        (b"[" * 100_000, -32700, None),
        (b'{"id":5,"a":' + b"[" * 300 + b"]" * 300 + b"}", -32700, 5),
        (b'{"id":5,"a":' + b"[" * 1500 + b"]" * 1500 + b"}", -32700, 5),
        (b'{"id":5,"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", -32700, 5),
        (b'{"a":' + b'{"id":4,"a":' * 1500 + b"1" + b"}" * 1500 + b', "id": 5, "method": "x"}', -32700, 5),
        (b'{"a":' + b'{"id":4,"a":' * 1500 + b"1" + b"}" * 1501, -32700, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"null", -32600, None),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":7}', -32600, 7),
        *(
            (b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % id, -32600, None)
            for id in (b"1.5", b"null", b"true", b"[]")
        ),
    ],
)
def test_what_is_not_a_message_is_reported_to_its_sender(raw: bytes, code: int, id: Any) -> None:
    assert told(raw) == (code, id)


@pytest.mark.parametrize("raw", [b'{"result":{"a":NaN}}', b'{"jsonrpc":"2.0","id":[],"error":{}}'])
def test_a_broken_answer_is_not_answered(raw: bytes) -> None:
    assert refusal(raw) is None


@given(st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"]), JSON) | JSON)
def test_any_json_is_a_message_or_refused(value: Any) -> None:
    raw = json.dumps(value).encode("utf-8", "surrogatepass")
    try:
        content = parse(raw).content
    except Refused as refused:
        if refused.error is not None:
            json.loads(messages.serialize(refused.error))
        return
    assert json.loads(messages.serialize(content))["jsonrpc"] == "2.0"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(raw: bytes) -> None:
    with pytest.raises(Refused):
        parse(b"\xfe" + raw)


def test_a_message_of_many_small_values_is_refused_and_one_of_many_commas_in_a_text_is_not() -> None:
    ask = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":%s}}'
    assert told(ask % (b"[" + b"[]," * messages.MAX_VALUES + b"1]"))[0] == -32600
    text = json.dumps('[,{"\\' * messages.MAX_VALUES).encode()
    message = parse(ask % text)
    assert len(text) < message.weight < 2 * len(text)


def test_a_message_that_is_too_long_is_refused_unread() -> None:
    assert told(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * messages.MAX_BYTES + b'"}') == (-32600, 1)
    assert told(b'{"method":"' + b"x" * messages.MAX_BYTES + b'","jsonrpc":"2.0","id":"z"}') == (-32600, "z")
    assert told(b'{"params":{"id":1,"x":"' + b"x" * messages.MAX_BYTES + b'"}}') == (-32600, None)
    assert refusal(b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * messages.MAX_BYTES + b'"}') is None


FIELDS = st.dictionaries(
    st.text(max_size=9), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)
)


@pytest.mark.slow
@given(FIELDS, st.booleans(), st.integers(0, 3000))
def test_the_outline_says_nothing_that_is_not_there(fields: dict[str, Any], ascii: bool, from_end: int) -> None:
    raw = json.dumps(fields, ensure_ascii=ascii).encode("utf-8", "surrogatepass")
    plain = {name: value for name, value in fields.items() if not isinstance(value, list)}
    for name, value in outline(raw, raw[-from_end:]).items():
        if value is not None and name in plain and "\ufffd" not in str(value):
            assert value == plain[name]
    outline(raw[from_end:], raw[:from_end])


def test_an_answer_that_json_cannot_hold_becomes_an_error_of_the_same_id() -> None:
    answer = types.JSONRPCResponse(jsonrpc="2.0", id=3, result={"a": "\ud800"})
    said = json.loads(messages.serialize(answer))
    assert (said["id"], said["error"]["code"]) == (3, -32603)
