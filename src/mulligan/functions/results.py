"""Results of functions as text and back, so that a try that a killed process made need not be made again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, get_type_hints

from mulligan.core.codec import json_text
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Artifact, Attempt

KIND = "value"
_TEXT, _JSON, _NONE = "text", "json", ""
UNREADABLE = object()
"""In place of a result that has no JSON form."""


def attempt_of(value: Any, declared: Any = None) -> Attempt:
    """The result as an attempt: its text, and how it is read back.

    declared: the function's own return type, if it names one that says more than the value.
    """
    text, how = _written(value, declared)
    return Attempt(text, artifacts=(Artifact(KIND, how),))


def value_of(attempt: Attempt, declared: Any = None) -> Any:
    """The result that an attempt was made from; `UNREADABLE` where it cannot be read back."""
    how = next((one.ref for one in attempt.artifacts if one.kind == KIND), _NONE)
    if how == _TEXT:
        return attempt.output
    if how == _NONE:
        return UNREADABLE
    try:
        if how == _JSON and declared is None:
            return parsed(attempt.output)
        adapter = _adapter(declared if how == _JSON else _named(how))
        return adapter.validate_json(attempt.output)
    except (AttributeError, ValueError, TypeError):
        return UNREADABLE


def declared_type(function: Callable[..., Any]) -> Any:
    """The return type that a function names; None where it names none, or one that says nothing about the value."""
    try:
        found = get_type_hints(function).get("return")
    except Exception:  # a name that only a type checker imports
        return None
    return None if found in (Any, object, type(None), str) else found


def parsed(text: str) -> Any:
    import json

    return json.loads(text)


def plain(value: Any) -> Any:
    """The value as JSON that is the same in every process. Raises `InvalidInput` where it has no such form."""
    try:
        json_text(value)
        return value
    except InvalidInput:
        try:
            if isinstance(value, (list, tuple)):
                return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
            if isinstance(value, dict):
                return {str(key): plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        except RecursionError:
            raise InvalidInput(f"a {type(value).__name__} that contains itself has no JSON form") from None  # pyright: ignore[reportUnknownArgumentType]
        if not _has_json_form(value):
            raise
    try:
        return [_name(value.__class__), _adapter(type(value)).dump_python(value, mode="json")]
    except Exception as error:  # what a field of it raises is its own
        raise InvalidInput(f"{type(value).__name__} has no JSON form: {error}") from error


def _written(value: Any, declared: Any) -> tuple[str, str]:
    """The text of the value, and how it is read back; that is "" for one that cannot be."""
    if type(value) is str:
        return value, _TEXT
    try:
        if declared is not None:
            text = _adapter(declared).dump_json(value, warnings="error").decode()
            return text, _JSON
        return json_text(value), _JSON
    except InvalidInput:
        pass
    except Exception:  # a value that is not of the declared type
        return str(value), _NONE
    if _has_json_form(value):
        try:
            name = _name(value.__class__)
            if _named(name) is type(value):
                return _adapter(type(value)).dump_json(value).decode(), name
        except Exception:
            return str(value), _NONE
    return str(value), _NONE


def _has_json_form(value: Any) -> bool:
    pydantic = sys.modules.get("pydantic")  # a value of pydantic's has imported it
    model = pydantic is not None and isinstance(value, pydantic.BaseModel)
    return not isinstance(value, type) and (model or is_dataclass(value))


def _adapter(of: Any) -> Any:
    try:
        return _cached_adapter(of)
    except TypeError:  # a type that is not hashable, such as one with a default that is a list
        return _cached_adapter.__wrapped__(of)


@lru_cache(maxsize=100)
def _cached_adapter(of: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(of)


def _name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _named(name: str) -> Any:
    """The class of this name in a module that the program has imported: a record makes it import nothing.

    Raises `AttributeError`.
    """
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found
