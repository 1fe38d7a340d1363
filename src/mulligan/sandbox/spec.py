"""A job as the supervisor gets it: the values that cross from Mulligan to the process that starts it."""

from __future__ import annotations

from typing import TypedDict


class Spec(TypedDict):
    """A job as the supervisor gets it, in plain values. Paths are absolute and real; sizes in bytes.

    given: those of the readable and writable folders that the job itself asked for.
    """

    argv: list[str]
    env: dict[str, str]
    cwd: str
    scratch: str
    files: dict[str, str]
    readable: list[str]
    writable: list[str]
    given: list[str]
    network: bool
    seconds: float
    memory: int
    file_size: int
    processes: int
    limits: bool
    landlock: int
    seccomp: bool
    unprivileged: bool
    namespaces: bool
    bwrap: str
    seatbelt: str
