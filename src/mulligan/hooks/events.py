"""The earlier place of `mulligan.sessions.events`, for programs that import it."""

from __future__ import annotations

from typing import Any

from mulligan.core.turns import Turn
from mulligan.sessions.events import Notice as Notice


class _Calls(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Turn) and instance.is_call


class Call(metaclass=_Calls):
    """What `isinstance` asks for, where it was a type of its own: a turn that is a call and what it gave back."""
