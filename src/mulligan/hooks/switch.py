"""The environment variable by which hooks are turned off, or do no more than show lessons."""

from __future__ import annotations

from collections.abc import Mapping

SWITCH, RECALL = "MULLIGAN_HOOKS", "recall"
"""The environment variable that stops hooks when it is `off`. It is set for all that hooks start themselves. With
`recall`, hooks show lessons, and nothing is learned."""


def is_off(environ: Mapping[str, str]) -> bool:
    """Whether the environment stops hooks."""
    return environ.get(SWITCH, "").lower() in ("off", "0", "false")
