"""Calls one function of the code with arguments from lines of input, and writes what it returned.

It knows no expected result, so the code cannot find one here. Runs inside the sandbox: no import that costs.
"""

from __future__ import annotations

import time

from mulligan.oracle.python.solution import channel, load, place
from mulligan.oracle.python.wire import BASES, NotPlain, TooMuch, decode, encode, escaped_name, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _hash(value: Any) -> str:
    """Of a value that is too long to be sent, the same for equal ones of the same types."""
    import marshal
    from hashlib import sha256

    return sha256(marshal.dumps(value, 2)).hexdigest()  # 2: later versions write the same object once


def _opaque(value: Any) -> str | None:
    """The token of an object that is no plain value; none for one that holds a plain value, which crosses then."""
    kind: Any = kind_of(value)
    is_plain = any(issubclass(kind, base) for base, _ in BASES)
    return None if is_plain else f"{'I' if hasattr(kind, '__next__') else 'o'}0:{escaped_name(kind.__name__)}"


def _message(error: BaseException) -> str:
    try:
        return str(error)[:2000]
    except BaseException:
        return "(its message cannot be shown)"


def answer_calls() -> None:
    """First the code and the function's name, then a list of arguments a line. The replies:

    `=SECONDS VALUE`, `#SECONDS HASH` of a long value, `!MESSAGE` for an exception, `?MESSAGE` for no plain value.
    """
    requests, send = channel()
    code, function = "", None
    for line in requests:
        try:
            request = decode(line.decode("ascii").rstrip("\n"))
            if function is None:
                code, name = request
                space = load(code)
                if name not in space:
                    raise NameError(f"the code defines no {name}")
                function = space[name]
                send("=0 N")
                continue
            began = time.process_time()
            result = function(*request)
            took = time.process_time() - began
            try:
                send(f"={took:.4f} {encode(result, _opaque)}")
            except TooMuch:
                send(f"#{took:.4f} {_hash(result)}")
            del result
        except NotPlain as error:
            send(f"?The returned value {error}")
        except BaseException as error:
            at, _ = place(error, code)
            where = f" in line {at}" if at else ""
            send(f"!{type(error).__name__}: {_message(error)}{where}".replace("\n", " "))
