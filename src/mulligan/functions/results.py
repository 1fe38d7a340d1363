"""Writes results of functions as text and reads them back, so that a try of a killed process is not repeated."""

from __future__ import annotations

import json
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
"""Stands for a result that cannot be read back."""


def attempt_of(value: Any, declared: Any = None) -> Attempt:
    """The attempt that records a result: its text, and how to read it back.

    declared: the return type that the function declares (see `declared_type`).
    """
    text, how = _written(value, declared)
    return Attempt(text, artifacts=(Artifact(KIND, how),))


def value_of(attempt: Attempt, declared: Any = None) -> Any:
    """Reads a result back from its attempt; `UNREADABLE` if that is impossible."""
    how = next((artifact.ref for artifact in attempt.artifacts if artifact.kind == KIND), _NONE)
    if how == _TEXT:
        return attempt.output
    if how == _NONE:
        return UNREADABLE
    try:
        if how == _JSON and declared is None:
            return json.loads(attempt.output)
        adapter = _adapter(declared if how == _JSON else _class_named(how))
        return adapter.validate_json(attempt.output)
    except (AttributeError, ValueError, TypeError):
        return UNREADABLE


def declared_type(function: Callable[..., Any]) -> Any:
    """The return type that a function declares; None if it declares none, or one that does not help to read a value."""
    try:
        declared = get_type_hints(function).get("return")
    except Exception:  # a name that only a type checker imports
        return None
    return None if declared in (Any, object, type(None), str) else declared


def plain(value: Any) -> Any:
    """The value as JSON, the same in every process. Raises `InvalidInput` if it has no such form."""
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
            raise InvalidInput(f"a {type(value).__name__} that contains itself cannot be represented as JSON") from None  # pyright: ignore[reportUnknownArgumentType]
        if not _has_json_form(value):
            raise
    try:
        return [_name(value.__class__), _adapter(type(value)).dump_python(value, mode="json")]
    except Exception as error:  # a field may raise any error
        raise InvalidInput(f"{type(value).__name__} cannot be represented as JSON: {error}") from error


def _written(value: Any, declared: Any) -> tuple[str, str]:
    """The text of the value, and how to read it back: `_TEXT`, `_JSON`, the name of its class, or `_NONE`."""
    if type(value) is str:
        return value, _TEXT
    try:
        if declared is not None:
            text = _adapter(declared).dump_json(value, warnings="error").decode()
            return text, _JSON
        return json_text(value), _JSON
    except InvalidInput:
        pass
    except Exception:  # the value is not of the declared type
        return str(value), _NONE
    if _has_json_form(value):
        try:
            name = _name(value.__class__)
            if _class_named(name) is type(value):
                return _adapter(type(value)).dump_json(value).decode(), name
        except Exception:
            return str(value), _NONE
    return str(value), _NONE


def _has_json_form(value: Any) -> bool:
    pydantic = sys.modules.get("pydantic")  # whoever made a model has imported it
    is_model = pydantic is not None and isinstance(value, pydantic.BaseModel)
    return not isinstance(value, type) and (is_model or is_dataclass(value))


def _adapter(of: Any) -> Any:
    try:
        return _cached_adapter(of)
    except TypeError:  # the type is not hashable, such as an Annotated with a list
        return _cached_adapter.__wrapped__(of)


@lru_cache(maxsize=100)
def _cached_adapter(of: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(of)


def _name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _class_named(name: str) -> Any:
    """The class of this name, if the program has imported its module. Reading a record never imports a module.

    Raises `AttributeError` if there is no such class.
    """
    module, _, path = name.partition(":")
    value: Any = sys.modules.get(module)
    for part in path.split("."):
        value = getattr(value, part)
    return value
