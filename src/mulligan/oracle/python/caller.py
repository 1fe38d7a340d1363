"""Calls one function of the code with arguments from lines of input, and writes what it returned.

It knows no expected result, so the code cannot find one here. Runs inside the sandbox: no import that costs.
"""

from __future__ import annotations

import time

from mulligan.oracle.python.solution import Server, channel, failure, load
from mulligan.oracle.python.wire import NotPlain, TooMuch, decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _hash(value: Any) -> str:
    """Of a value that is too long to be sent, the same for equal ones of the same types."""
    import marshal
    from hashlib import sha256

    return sha256(marshal.dumps(value, 2)).hexdigest()  # 2: later versions write the same object once


def answer_calls() -> None:
    """First the code and the function's name, then a list of arguments a line. The replies:

    `=SECONDS VALUE`, `#SECONDS HASH` of a long value, `!MESSAGE` for an exception, `?MESSAGE` for no plain value.
    """
    requests, send = channel()
    server, function = Server(), None
    for line in requests:
        try:
            request = decode(line.decode("ascii").rstrip("\n"))
            if function is None:
                server.code, name = request
                space = load(server.code)
                if name not in space:
                    raise NameError(f"the code defines no {name}")
                function = space[name]
                send("=0 N")
                continue
            began = time.process_time()
            result = function(*request)
            took = time.process_time() - began
            try:
                send(f"={took:.4f} {encode(result, server.hold)}")
            except TooMuch:
                send(f"#{took:.4f} {_hash(result)}")
            del result
        except NotPlain as error:
            send(f"?The returned value {error}")
        except BaseException as error:
            kinds, _, message, at, _ = failure(error, server.code)
            where = f" in line {at}" if at else ""
            send(f"!{kinds[0]}: {message}{where}".replace("\n", " "))
