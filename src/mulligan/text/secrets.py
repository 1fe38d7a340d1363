"""Masks secrets in text, the same value always by the same mask.

Secrets are found by their shape and by the words beside them: see secret_rules.py. A password that looks like a word
and stands alone is not found. known_secrets.py masks values that are known, such as the key of a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, cast

from mulligan.core.records import Json
from mulligan.text.secret_rules import MASKS, Span, ends_with_break, find_secrets, is_word, merge_spans, says_secret

MASK = "[secret masked]"
"""The mask of a text's first secret. The second one is `[secret masked 2]`, and so on."""

NOTE = f"(Secrets are shown as {MASK}, the same secret always by the same mask: take a mask for the value.)"

_REPEATED_LENGTH = 8
"""The fewest characters of a value that is masked wherever it occurs again."""
_MAX_REPEATED = 200
"""The most values that are looked for again, to bound the time."""


def mask(text: str) -> str:
    """Returns the text with each secret replaced by a mask. Masking it again changes nothing."""
    return Masks().text(text)


def mask_json(value: Json) -> Json:
    """Returns a copy with secrets masked in each text and key, and with the values of keys that indicate a secret
    masked.
    """
    return each_text(value, lambda text, key: text if _has_no_secret(text, key) else Masks().text(text, key))


def _has_no_secret(text: str, key: str) -> bool:
    """Whether neither the text nor its key shows a secret."""
    return not (key and says_secret(key, text)) and (is_word(text) or not find_secrets(text))


def mask_attempt(text: str, task: str) -> str:
    """Returns an attempt for a judge: masked, except for values that the task itself contains."""
    masks = Masks()
    masked = masks.unmask(masks.text(text), task)
    return f"{masked}\n\n{NOTE}" if MASKS.search(masked) else masked


def one_mask(text: str) -> str:
    """Returns the text with all its masks alike, to compare texts of which one was masked by an older version."""
    return MASKS.sub(MASK, text)


def each_text(value: Json, change: Callable[[str, str], str], key: str = "") -> Json:
    """Returns a copy with each text and each key changed by `change(text, key)`. Images are not changed."""
    if isinstance(value, str):
        return change(value, key)
    if isinstance(value, list):
        items = cast(list[Any], value)  # ["--password", "hunter2"]
        return [
            each_text(item, change, _option(before) or key) for before, item in zip(["", *items], items, strict=False)
        ]
    if isinstance(value, Mapping):
        table = cast(Mapping[str, Any], value)
        if len(table) == 2 and "media_type" in table and "data" in table:
            return dict(table)
        return {
            change(name, ""): item if type(item) in _NUMBERS else each_text(item, change, _key_for(name, table, key))
            for name, item in table.items()
        }
    return value


_NUMBERS = (int, float, bool, NoneType)


def _option(item: Any) -> str:
    return item.lstrip("-") if isinstance(item, str) and item.startswith("-") else ""


def _key_for(name: str, table: Mapping[str, Any], above: str) -> str:
    """Returns the name that says what a value of an object is.

    In {"name": "API_KEY", "value": …} it is beside the value, in {"api_key": {"value": …}} above it. The private parts
    of a JSON web key are private keys.
    """
    if name.lower() == "value":
        names = (table.get(key) for key in ("name", "Name", "key", "Key"))
        return next((beside for beside in names if isinstance(beside, str)), above or name)
    return "private_key" if "kty" in table and name in ("d", "p", "q", "dp", "dq", "qi", "k") else name


class Masks:
    """Masks texts that belong together. A value has one mask in all of them, and a secret of one is masked in all."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._spans: dict[str, Sequence[Span]] = {}
        self._last = 0

    def text(self, text: str, key: str = "") -> str:
        """Returns the text masked. key: the key of the object whose value it is."""
        self.learn(text, key)
        return self._masked(text)

    def json(self, value: Json) -> Json:
        """Returns a copy with every text masked, even if a value precedes the words that show it to be a secret."""
        each_text(value, self.learn)
        return each_text(value, lambda text, _: self._masked(text))

    def learn(self, text: str, key: str = "") -> str:
        """Remembers the secrets in this text, and returns it unchanged."""
        if not key and is_word(text):
            return text
        self._last = max(self._last, *(int(number or 1) for number in MASKS.findall(text)), 0)
        if key and says_secret(key, text):
            self._mask_of(text)
        for start, end in self._secrets(text):
            self._mask_of(text[start:end])
        return text

    def unmask(self, text: str, among: str) -> str:
        """Returns the text with the masks of those values undone that `among` contains."""
        values = {name: value for value, name in self._names.items() if value in among}
        return MASKS.sub(lambda match: values.get(match[0], match[0]), text)

    def unmask_json(self, value: Json, among: str) -> Json:
        return each_text(value, lambda text, _: self.unmask(text, among))

    def _mask_of(self, value: str) -> str:
        if value not in self._names:
            self._last += 1
            self._names[value] = MASK if self._last == 1 else f"[secret masked {self._last}]"
        return self._names[value]

    def _secrets(self, text: str) -> Sequence[Span]:
        """Returns the spans of the secrets. A text is learned before it is masked, but searched once."""
        if text not in self._spans:
            self._spans[text] = find_secrets(text)
        return self._spans[text]

    def _masked(self, text: str) -> str:
        if text in self._names:
            return self._names[text]
        if not self._names and is_word(text):
            return text
        for _ in range(3):  # a second secret may be found only after the first is masked
            spans = list(self._secrets(text))
            known = sorted((value for value in self._names if len(value) >= _REPEATED_LENGTH), key=len, reverse=True)
            for value in known[:_MAX_REPEATED]:
                spans += _occurrences(text, value)
            parts, done = list[str](), 0
            for start, end in merge_spans(spans):
                parts += [text[done:start], self._mask_of(text[start:end])]
                done = end
            masked = "".join([*parts, text[done:]])
            if masked == text:
                break
            text = masked
        return text


def _occurrences(text: str, value: str) -> Iterator[Span]:
    """Yields the spans of the value, but not inside a longer word or a mask."""
    masked = [match.span() for match in MASKS.finditer(text)] if value in MASK else []
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        before, after = "" if ends_with_break(text, at) else text[at - 1 : at], text[end : end + 1]
        whole = not (value[0].isalnum() and before.isalnum()) and not (value[-1].isalnum() and after.isalnum())
        if whole and not any(start <= at and end <= stop for start, stop in masked):
            yield at, end
        at = text.find(value, end)
