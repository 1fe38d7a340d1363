"""The levels of isolation, weakest first, and the mechanisms of each. `detect` finds out what this machine can do."""

from __future__ import annotations

from dataclasses import dataclass

from mulligan.core.errors import UnknownName


@dataclass(frozen=True)
class Level:
    """A level of isolation.

    Attributes:
        holds: what is limited, and what stays open, in words.
        limits: whether limits of time, memory and the like apply. The other flags name further mechanisms.
    """

    name: str
    holds: str
    limits: bool = True
    landlock: bool = False
    seccomp: bool = False
    unprivileged: bool = False
    namespaces: bool = False
    bwrap: bool = False
    seatbelt: bool = False

    def fits(self, platform: str) -> bool:
        """Whether a system of this name (`sys.platform`) has the level's mechanisms."""
        if self.seatbelt:
            return platform == "darwin"
        return platform == "linux" or not (self.landlock or self.seccomp or self.namespaces)

    @property
    def open(self) -> bool:
        """Whether a job can read and write everything that its user can."""
        return not (self.landlock or self.bwrap or self.seatbelt)


# All levels, weakest first.
LEVELS = (
    Level(
        "none",
        "limits only time, output and leftover processes; otherwise, jobs run with your permissions",
        limits=False,
    ),
    Level("limits", "resource limits and a cleared environment; jobs can access all files and the network"),
    Level(
        "limits+unprivileged",
        "resource limits and a cleared environment, not as root; jobs can access all files and the network",
        unprivileged=True,
    ),
    Level(
        "landlock+unprivileged",
        "confined file access and no TCP; other sockets are open",
        landlock=True,
        unprivileged=True,
    ),
    Level("seatbelt", "macOS's own sandbox: confined file access and no network; untested", seatbelt=True),
    Level(
        "landlock+seccomp",
        "confined file access and no network; jobs run as root",
        landlock=True,
        seccomp=True,
    ),
    Level(
        "landlock+seccomp+unprivileged",
        "confined file access and no network, not as root",
        landlock=True,
        seccomp=True,
        unprivileged=True,
    ),
    Level(
        "namespaces+landlock+seccomp+unprivileged",
        "confined file access and no network, not as root; all files are read-only, except for a size-limited "
        "scratch folder in memory",
        landlock=True,
        seccomp=True,
        unprivileged=True,
        namespaces=True,
    ),
    Level(
        "bwrap+seccomp+unprivileged",
        "in bubblewrap: jobs see only their own files and processes and an empty network; not as root",
        seccomp=True,
        unprivileged=True,
        namespaces=True,
        bwrap=True,
    ),
)

NONE, LIMITS = LEVELS[:2]
# For unconfined jobs that name the folders they may write to. Not in `LEVELS`: it is not for untrusted code.
WRITES = Level(
    "unconfined+landlock-writes",
    "your permissions, but jobs can write only to their own folders, their scratch folder and devices",
    limits=False,
    landlock=True,
)


def level_named(name: str) -> Level:
    """Raises `UnknownName`."""
    for level in LEVELS:
        if level.name == name:
            return level
    raise UnknownName("sandbox level", name, ["auto", "strict", *(level.name for level in LEVELS)])


# The weakest level that `level="strict"` accepts.
STRICT = level_named("landlock+seccomp+unprivileged")
