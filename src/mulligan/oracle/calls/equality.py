"""Decides as EvalPlus does whether a returned value is right (Liu et al. 2023; `check_output` of its harness)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

RELATIVE = 1e-07
FLOATS = 1e-06
"""The absolute tolerance for floats where the task gives none."""


def is_right(rule: str, given: Sequence[Any], out: Any, expected: Any, tolerance: float) -> bool:
    """`rule`: one of `RULES`, or "" for equality. given: the arguments. Raises what comparing odd values raises."""
    if rule == "root":
        return abs(_polynomial(given[0], out)) <= tolerance
    exact = bool(out == expected)
    if rule in _INSTEAD or (rule and not exact):
        exact = RULES[rule](given, out, expected, tolerance)
    tolerance = FLOATS if tolerance == 0 and _floats(expected) else tolerance
    if exact or tolerance == 0:
        return exact
    return type(out) is type(expected) and _near(out, expected, tolerance)


def _some(given: Sequence[Any], out: Any, expected: Any, tolerance: float) -> bool:
    """Whether something was returned, where that is what the task asks."""
    found = expected if isinstance(expected, bool) else expected is not None
    return (out if isinstance(out, bool) else out is not None) == found


def _polynomial(coefficients: Sequence[float], x: float) -> float:
    return math.fsum(coefficient * math.pow(x, power) for power, coefficient in enumerate(coefficients))


def _surface(given: Sequence[Any], out: Any, expected: Any, tolerance: float) -> bool:
    """Of a square pyramid, where the height is that of the pyramid and not of its side."""
    edge, height = given
    return abs(out - round(edge**2 + 2 * edge * math.hypot(edge / 2, height))) <= tolerance


def _digits(given: Sequence[Any], out: Any, expected: Any, tolerance: float) -> bool:
    """The distance of two numbers digit by digit, the shorter one with zeros before it."""
    first, second = map(str, given)
    width = max(len(first), len(second))
    pairs = zip(first.zfill(width), second.zfill(width), strict=True)
    return out == sum(abs(int(a) - int(b)) for a, b in pairs)


RULES: dict[str, Callable[[Sequence[Any], Any, Any, float], bool]] = {
    "any": lambda given, out, expected, tolerance: True,
    "zero": lambda given, out, expected, tolerance: out == 0,
    "set": lambda given, out, expected, tolerance: set(out) == set(expected),
    "some": _some,
    "surface": _surface,
    "digits": _digits,
}
"""What else is right: any answer, 0, the same members in any order, something where something is expected, …"""


_INSTEAD = ("set", "some")
"""Rules that stand in the place of equality; the others are asked where that does not hold."""


def _floats(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        parts = cast(Sequence[Any], value)
        return bool(parts) and all(isinstance(part, float) for part in parts)
    return isinstance(value, float)


def _near(out: Any, expected: Any, tolerance: float) -> bool:
    """As numpy's `allclose`, for numbers and for lists of equal length."""
    if isinstance(expected, (list, tuple)):
        parts, others = cast(Sequence[Any], expected), cast(Sequence[Any], out)
        return (
            isinstance(out, (list, tuple))
            and len(others) == len(parts)
            and all(_near(a, b, tolerance) for a, b in zip(others, parts, strict=True))
        )
    numbers = (int, float, complex)
    if not isinstance(out, numbers) or not isinstance(expected, numbers):
        return False
    return out == expected or abs(out - expected) <= tolerance + RELATIVE * abs(expected)
