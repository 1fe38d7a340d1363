"""Secrets in text, by their common shapes, masked before text leaves the house (exports, lessons).

It sees shapes only: a password that looks like a word passes. Keys are kept out of the record in the first place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from mulligan.core.records import Json

MASK = "[secret masked]"

_ALONE = r"(?<![A-Za-z0-9_-])"
"""A key stands alone: "risk-assessment" holds no key that begins with sk-."""

_PATTERNS = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        (  # to its end, or where that was cut off the lines of base64
            r"(?P<keep>)-----BEGIN [A-Z ]*PRIVATE KEY-----"
            r"(?:.{0,20000}?-----END [A-Z ]*PRIVATE KEY-----|(?:(?:\s|\\n)*[A-Za-z0-9+/=]{16,})*)",
            re.DOTALL,
        ),
        (rf"(?P<keep>){_ALONE}sk-(?=[\w-]*\d)[\w-]{{16,}}", re.ASCII),  # OpenAI, Anthropic, DashScope and kin
        (rf"(?P<keep>){_ALONE}(?:AKIA|ASIA)[A-Z0-9]{{16}}(?![A-Za-z0-9])", 0),  # Amazon
        (rf"(?P<keep>){_ALONE}(?:gh[opusr]_\w{{30,}}|github_pat_\w{{30,}})", re.ASCII),
        (rf"(?P<keep>){_ALONE}glpat-[\w-]{{20,}}", re.ASCII),
        (rf"(?P<keep>){_ALONE}AIza[\w-]{{35}}", re.ASCII),  # Google
        (rf"(?P<keep>){_ALONE}hf_[A-Za-z0-9]{{30,}}", 0),
        (rf"(?P<keep>){_ALONE}xox[abeprs]-[\w-]{{10,}}", re.ASCII),  # Slack
        (rf"(?P<keep>){_ALONE}(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{{16,}}", 0),  # Stripe
        (rf"(?P<keep>){_ALONE}(?:npm_[A-Za-z0-9]{{36}}|pypi-[\w-]{{50,}}|ya29\.[\w-]{{20,}})", re.ASCII),
        (rf"(?P<keep>){_ALONE}SG\.[\w-]{{16,}}\.[\w-]{{16,}}", re.ASCII),  # SendGrid
        (rf"(?P<keep>){_ALONE}eyJ[\w-]{{8,}}\.[\w-]{{8,}}\.[\w-]*", re.ASCII),  # a JSON web token
        (r"(?P<keep>\bBearer\s+)(?=[\w.~+/-]*\d)[\w.~+/-]{16,}=*", re.ASCII | re.IGNORECASE),
        (  # what is assigned to a name that says so, if it has letters and digits: password=hunter22, not token: str
            r"(?P<keep>(?<![\w-])[\w-]{0,40}(?:passw(?:or)?d|pwd|secret|api[_-]?key|access[_-]?key|secret[_-]?key|token)"
            r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?)(?=[^\s\"'`,;&]{0,200}\d)(?=[^\s\"'`,;&]{0,200}[A-Za-z])[^\s\"'`,;&(){}\[\]<>$]{8,}",
            re.ASCII | re.IGNORECASE,
        ),
        (r"(?P<keep>\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,100}:)[^\s:/@]{1,200}(?=@)", re.ASCII | re.IGNORECASE),
    )
)


def mask(text: str) -> str:
    """The text with each secret replaced by `MASK`: keys by their prefix, bearer tokens, passwords in URLs, PEM, and
    what is assigned to a name such as password or api_key."""
    for pattern in _PATTERNS:
        text = pattern.sub(lambda found: f"{found['keep']}{MASK}", text)
    return text


def mask_json(value: Json) -> Json:
    """A copy with every text in it masked, keys of objects too."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list):
        return [mask_json(item) for item in cast(list[Any], value)]
    if isinstance(value, Mapping):
        return {mask(key): mask_json(item) for key, item in cast(Mapping[str, Any], value).items()}
    return value
