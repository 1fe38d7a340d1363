"""The hooks of coding agents: what failed in a session and was overcome becomes a lesson, shown when it fails again."""

from __future__ import annotations

from collections.abc import Mapping

SWITCH, RECALL = "MULLIGAN_HOOKS", "recall"
"""The environment variable that stops hooks if it is `off`, which hooks set for all that they start. With `recall`,
hooks show lessons, and nothing is learned."""
OVERTIME = "took longer than"
"""Words in the error of a hook that was ended at its limit, by which `hooks status` counts them."""


def is_off(environ: Mapping[str, str]) -> bool:
    """Whether the environment stops hooks."""
    return environ.get(SWITCH, "").lower() in ("off", "0", "false")
