"""What a command printed and how it ended, and the type of the fixture that runs one."""

from collections.abc import Callable
from typing import NamedTuple


class Ended(NamedTuple):
    status: int
    out: str
    err: str


Mulligan = Callable[..., Ended]
