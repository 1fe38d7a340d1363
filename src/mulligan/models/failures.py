"""Turns a provider's errors into failures with advice, and describes answers that were paid for but cannot be used.

Keys never appear in a message: they are masked by their value and by their shape.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

from mulligan.core.errors import BadAnswer, ModelError
from mulligan.core.records import Usage
from mulligan.models.providers import known_models
from mulligan.text.known_secrets import KnownSecrets
from mulligan.text.secrets import mask

MAX_CHARACTERS = 300  # of a provider's message that are shown
_SERVERS = {
    "ollama": "Start the server with: ollama serve. If it runs elsewhere, set OLLAMA_BASE_URL to its address.",
    "vllm": "Start the server with: vllm serve NAME. If it runs elsewhere, set VLLM_BASE_URL to its address.",
}
# What to do when the user's own server does not answer.
_CATEGORIES = (
    "Authentication", "NotFound", "QuotaExceeded", "ContextWindowExceeded", "RequestRejected", "RateLimit", "Timeout",
    "Connection", "Unavailable", "Server",
)  # fmt: skip
_CLASSES = {f"Model{category}Error": category for category in _CATEGORIES}
_BY_CAUSE = {"APITimeoutError": "Timeout", "APIConnectionError": "Connection"}
_BY_BODY = {
    "insufficient_quota": "QuotaExceeded",
    "context_length_exceeded": "ContextWindowExceeded",
    "prompt is too long": "ContextWindowExceeded",
}
_BY_STATUS = {
    400: "RequestRejected", 401: "Authentication", 402: "QuotaExceeded", 403: "Authentication", 404: "NotFound",
    413: "RequestRejected", 422: "RequestRejected", 429: "RateLimit",
}  # fmt: skip
_FORMAT = "The server does not use this provider's format: check the base URL."


class Unreadable(BadAnswer):
    """The answer is not the requested JSON, or contains only thoughts.

    Attributes:
        again: whether to ask once more.
        thoughts: whether it contains only thoughts.
    """

    def __init__(
        self, why: str, *, text: str, model: str, usage: Usage, again: bool = True, thoughts: bool = False
    ) -> None:
        super().__init__(f"{model} {'gave no answer' if thoughts else 'was asked for JSON'}: {why}.")
        self.why, self.text, self.model, self.usage = why, text, model, usage
        self.again, self.thoughts = again, thoughts


class Unusable(ModelError):
    """The model's response was paid for, but is not an answer."""

    def __init__(self, message: str, usage: Usage) -> None:
        super().__init__(message)
        self.usage = usage


@dataclass(frozen=True)
class Failure:
    """One attempt that failed.

    Attributes:
        message: the provider's message, masked and shortened.
        retry: whether another attempt may help.
        wait: the seconds of its Retry-After.
        rejected: the request itself was refused (400, 422): in another form it might pass.
    """

    message: str
    advice: str
    retry: bool
    wait: float | None = None
    rejected: bool = False


def masked(text: str, secrets: Collection[str]) -> str:
    """The text with these secrets masked, and everything that looks like one."""
    return mask(KnownSecrets(secrets, shortest=1).mask(text))


def failure_of(error: Exception, model: str, key: str, secrets: Collection[str]) -> Failure:
    """Converts an exception of pydantic-ai to a failure.

    Args:
        model: PROVIDER:NAME.
        key: The name of the variable that holds the key.
        secrets: Values to mask.
    """
    from pydantic_ai import exceptions as e

    status = error.status_code if isinstance(error, e.ModelHTTPError) else _redirect(error)
    wait, body = getattr(error, "retry_after", None), getattr(error, "body", None)
    summary = str(error).partition(":")[0] if isinstance(error, e.UnexpectedModelBehavior) else str(error)
    words = " ".join(masked(_message_in(body) or summary, secrets).split())[:MAX_CHARACTERS].rstrip(".")
    message = f"{status} {words if body else _phrase(status)}." if status else f"{words or type(error).__name__}."
    match _category(error, status):
        case "Authentication":
            return Failure(
                message, f"Check the key{f' in {key}' if key else ''}, and that it may use this model.", retry=False
            )
        case "NotFound":
            fetch = f" Fetch it with: ollama pull {model[7:]}." if model.startswith("ollama:") else ""
            return Failure(
                message, f"Check the model's name and the base URL.{fetch or _suggestion(model)}", retry=False
            )
        case "QuotaExceeded":
            return Failure(message, "The account's credit or quota is used up: waiting will not help.", retry=False)
        case "ContextWindowExceeded":
            return Failure(
                message, "The question is too long for this model: shorten it or use another model.", retry=False
            )
        case "RequestRejected":
            return Failure(message, "The provider rejects this request.", retry=False, rejected=True)
        case "RateLimit":
            return Failure(message, "Wait a while, or lower the setting parallel.", retry=_can_retry(error), wait=wait)
        case "Timeout":
            return Failure(message, "The server did not answer in time: raise the setting timeout.", retry=True)
        case "Connection":
            cause = error.__cause__.__cause__ if error.__cause__ else None
            why = f" {masked(str(cause), secrets)[:MAX_CHARACTERS].rstrip('.')}." if cause and str(cause) else ""
            return Failure(
                message + why, _SERVERS.get(model.partition(":")[0], "Check the network and the base URL."), True
            )
        case "Unavailable" | "Server":
            return Failure(message, "Try again later.", retry=_can_retry(error), wait=wait)
        case _ if status and status < 400:
            return Failure(
                message, "Redirects are not followed, so that no key is leaked: correct the base URL.", retry=False
            )
        case _ if status in (408, 409, 425):
            return Failure(message, "Try again later.", retry=_can_retry(error), wait=wait)
        case _:
            pass
    match error:
        case e.ModelHTTPError() | e.UserError():
            return Failure(message, "The provider rejects this request.", retry=False, rejected=not status)
        case e.ModelAPIError() | e.UnexpectedModelBehavior():
            return Failure(message, _FORMAT, retry=True)
        case LookupError() | TypeError() | AttributeError() | ValueError():  # the SDK cannot process the response
            return Failure(f"its answer cannot be read ({type(error).__name__}: {words}).", _FORMAT, retry=True)
        case _:
            return Failure(f"{type(error).__name__}: {words}", "This is unexpected: please report it.", retry=False)


def _category(error: Exception, status: int | None) -> str:
    """The category of the error, as in pydantic-ai's names of classes (Model…Error); "" if unknown.

    Versions without these classes raise their base class, so that status, body and cause give the category.
    """
    for kind in type(error).__mro__:
        if kind.__name__ in _CLASSES:
            return _CLASSES[kind.__name__]
    if category := _BY_CAUSE.get(type(error.__cause__).__name__):
        return category
    if status is None or status < 400:
        return ""
    body = json.dumps(getattr(error, "body", None), default=str)
    for phrase, category in _BY_BODY.items():
        if phrase in body:
            return category
    return _BY_STATUS.get(status, "Server" if status >= 500 else "")


def _can_retry(error: Exception) -> bool:
    """False if the provider says that another attempt is useless."""
    headers: Mapping[str, str] = getattr(error, "headers", None) or {}
    return headers.get("x-should-retry", "").strip().lower() != "false"


def _redirect(error: Exception) -> int | None:
    """The status of a redirect. The SDKs raise it as their own error, which is the cause of pydantic-ai's."""
    status: object = getattr(getattr(error.__cause__, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def _suggestion(model: str) -> str:
    """Suggests the provider's model with the most similar name; "" if none is similar enough."""
    provider, _, name = model.partition(":")
    names = [known.partition(":")[2] for known in known_models() if known.startswith(f"{provider}:")]
    similar = difflib.get_close_matches(name, names, n=1, cutoff=0.8)
    return f" Did you mean {provider}:{similar[0]}?" if similar and similar[0] != name else ""


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "without a message"


def _message_in(body: object) -> str:
    """The message in an error body, wherever this provider puts it."""
    if isinstance(body, dict):
        fields = cast(dict[str, object], body)
        return _message_in(fields.get("error")) or _message_in(fields.get("message")) or json.dumps(body, default=str)
    return body if isinstance(body, str) else ""
