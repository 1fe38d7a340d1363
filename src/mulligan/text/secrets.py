"""Find and mask secrets in text: by their shape, by the words beside them, and by value where it is known.

`mask` and `Masks` go by shape: a password that looks like a word and stands alone is not found. known_secrets.py is for
code that holds the value, such as the key of a request. secret_shapes.toml holds the shapes; design/030 the reasons.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias, cast

from mulligan.core.records import Json

# Stands for the first secret of a text; a second, other one is `[secret masked 2]`, and so on.
MASK = "[secret masked]"

NOTE = f"(Secrets are shown as {MASK}, the same secret always by the same mask: take a mask for the value.)"

_MASKS = re.compile(r"\[secret masked(?: (\d{1,6}))?\]")
# Characters that the rules look at, at least.
_LONG = 300
# A value with so many characters is masked wherever it stands again; so many values at most, to bound the time.
_REPEATED, _MOST = 8, 200

# The longest text of which it is remembered where its secrets stand.
_REMEMBERED = 2000

# The line below the names of a table's columns.
_BREAKS = re.compile(r"\\{1,8}[nrt]")
_CELLS = re.compile(r"[^\w \t.\",;|-]")
_RULER = re.compile(r"[-+|=: \t\r]+")

Span: TypeAlias = tuple[int, int]


def mask(text: str) -> str:
    """The text with each secret replaced by a mask: the same value by the same mask. Masking again changes nothing."""
    return Masks().text(text)


def mask_json(value: Json) -> Json:
    """A copy with each text masked by itself, keys of objects too, and values whose key calls them a secret."""
    return each_text(value, lambda text, key: text if _is_clean(text, key) else Masks().text(text, key))


def _is_clean(text: str, key: str) -> bool:
    """Whether no secret is seen in a text by itself."""
    return not (key and _says_secret(key, text)) and (_is_word(text) or not find_secrets(text))


def mask_attempt(text: str, task: str) -> str:
    """An attempt for a judge: masked, except for values that stand in the task itself."""
    masks = Masks()
    masked = masks.unmask(masks.text(text), task)
    return f"{masked}\n\n{NOTE}" if _MASKS.search(masked) else masked


def one_mask(text: str) -> str:
    """The text with all its masks alike, to compare texts of which one was masked by an older version."""
    return _MASKS.sub(MASK, text)


def each_text(value: Json, change: Callable[[str, str], str], key: str = "") -> Json:
    """A copy with each text changed by `change(text, key)`, keys of objects too. Images stay as they are."""
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
        return {change(name, ""): each_text(item, change, _key_of(name, table, key)) for name, item in table.items()}
    return value


def _option(item: Any) -> str:
    return item.lstrip("-") if isinstance(item, str) and item.startswith("-") else ""


def _key_of(name: str, table: Mapping[str, Any], above: str) -> str:
    """What a value of an object is called: {"name": "API_KEY", "value": …} names it beside it, {"api_key": {"value":
    …}} above it, and a JSON web key has private parts."""
    if name.lower() == "value":
        return next(
            (key for at in ("name", "Name", "key", "Key") if isinstance(key := table.get(at), str)), above or name
        )
    return "private_key" if "kty" in table and name in ("d", "p", "q", "dp", "dq", "qi", "k") else name


class Masks:
    """Masks texts that belong together: a value has one mask in all of them, and what one text shows to be a secret
    is masked in the others."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._found: dict[str, Sequence[Span]] = {}
        self._last = 0

    def text(self, text: str, key: str = "") -> str:
        """The text masked. key: that of an object whose value it is."""
        self.learn(text, key)
        return self._masked(text)

    def json(self, value: Json) -> Json:
        """A copy with every text masked, also where a value stands before the words that give it away."""
        each_text(value, self.learn)
        return each_text(value, lambda text, _: self._masked(text))

    def learn(self, text: str, key: str = "") -> str:
        """Remember the secrets in this text. Returns it unchanged."""
        if not key and _is_word(text):
            return text
        self._last = max(self._last, *(int(number or 1) for number in _MASKS.findall(text)), 0)
        if key and _says_secret(key, text):
            self._name(text)
        for start, end in self._secrets(text):
            self._name(text[start:end])
        return text

    def unmask(self, text: str, among: str) -> str:
        """The text with those masks undone whose values stand in `among`."""
        values = {name: value for value, name in self._names.items() if value in among}
        return _MASKS.sub(lambda found: values.get(found[0], found[0]), text)

    def unmask_json(self, value: Json, among: str) -> Json:
        return each_text(value, lambda text, _: self.unmask(text, among))

    def _name(self, value: str) -> str:
        if value not in self._names:
            self._last += 1
            self._names[value] = MASK if self._last == 1 else f"[secret masked {self._last}]"
        return self._names[value]

    def _secrets(self, text: str) -> Sequence[Span]:
        """Where secrets stand. A text is learned before it is masked, and looked at once."""
        if text not in self._found:
            self._found[text] = find_secrets(text)
        return self._found[text]

    def _masked(self, text: str) -> str:
        if text in self._names:
            return self._names[text]
        if not self._names and _is_word(text):
            return text
        for _ in range(3):  # a second secret may be seen only once the first is gone
            spans = list(self._secrets(text))
            known = sorted((value for value in self._names if len(value) >= _REPEATED), key=len, reverse=True)
            for value in known[:_MOST]:
                spans += _alone(text, value)
            parts, at = list[str](), 0
            for start, end in _joined(spans):
                parts += [text[at:start], self._name(text[start:end])]
                at = end
            text, before = "".join([*parts, text[at:]]), text
            if text == before:
                break
        return text


def find_secrets(text: str) -> Sequence[Span]:
    """Where secrets stand, in order, none within another. What is masked already is passed over."""
    return _secrets_of_short(text) if len(text) <= _REMEMBERED else _secrets_of(text)


def _secrets_of(text: str) -> Sequence[Span]:
    if _is_word(text):
        return []
    low = _lowered(text)
    spans = [span for words, rule in _RULES if any(word in low for word in words) for span in rule(text)]
    return _joined(_whole_word(text, span) for span in spans if not _MASKS.search(text, *span))


def _lowered(text: str) -> str:
    """The text in small letters, each at its place."""
    low = text.lower()
    if len(low) != len(text):  # a few letters have lower forms of two characters
        low = "".join(char.lower() if char.isascii() else char for char in text)
    return low if low.isascii() else low.translate(_SMALL)


_SMALL = str.maketrans("ſıİ", "sii")
"""Letters that `re.IGNORECASE` takes for one of ASCII."""


def _is_word(text: str) -> bool:
    """Whether it is a short word, as most keys of records are, which by itself is no secret."""
    return len(text) < 16 and text.isascii() and text.isalpha()


_secrets_of_short = lru_cache(maxsize=1000)(_secrets_of)
"""The same texts come again and again: in the record, in the question to the bank, in what is learned."""


def _whole_word(text: str, span: Span) -> Span:
    """Rules look at so many characters; the rest of a longer secret goes with it."""
    start, end = span
    while end - start >= _LONG and end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    return start, end


def _joined(spans: Iterable[Span]) -> list[Span]:
    found: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _alone(text: str, value: str) -> Iterator[Span]:
    """Where the value stands, not as a part of a longer word, nor in a mask."""
    masked = [found.span() for found in _MASKS.finditer(text)] if value in MASK else []
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        before, after = "" if _after_break(text, at) else text[at - 1 : at], text[end : end + 1]
        whole = not (value[0].isalnum() and before.isalnum()) and not (value[-1].isalnum() and after.isalnum())
        if whole and not any(start <= at and end <= stop for start, stop in masked):
            yield at, end
        at = text.find(value, end)


def _after_break(text: str, at: int) -> bool:
    """Whether an escaped line break or tab ends there."""
    return text[max(0, at - 2) : at] in ("\\n", "\\r", "\\t")


@cache
def _shapes() -> dict[str, dict[str, str | list[str]]]:
    """The tables of secret_shapes.toml."""
    return tomllib.loads(Path(__file__).with_name("secret_shapes.toml").read_text(encoding="utf-8"))


def _source(table: str, name: str) -> str:
    """A pattern of the file as text, with the pieces that it names put in."""
    text = "".join(_shapes()[table][name])
    return re.sub(r"<<(\w+)>>", lambda piece: _source("parts", piece[1]), text)


@cache
def _pattern(name: str, table: str = "patterns") -> re.Pattern[str]:
    """A compiled pattern. Compiled at its first use, so that importing this module stays cheap."""
    return re.compile(_source(table, name))


# --- known by the look of the key itself ------------------------------------------------------------------------------


def _is(name: str, value: str) -> bool:
    """Whether the pattern of that name matches the whole value."""
    return _pattern(name).fullmatch(value) is not None


@cache
def _issued(prefix: str) -> re.Pattern[str]:
    """A key stands alone: "risk-assessment" holds no key that begins with sk-."""
    return re.compile(rf"{_source('parts', 'start')}{re.escape(prefix)}{_source('issued', prefix)}", re.ASCII)


def _prefixed(text: str) -> Iterator[Span]:
    for prefix in _shapes()["issued"]:
        if prefix in text:
            yield from (found.span() for found in _issued(prefix).finditer(text))


def _private_keys(text: str) -> Iterator[Span]:
    """From its first line to its last; where that was cut off, the lines of base64."""
    ends = [found.span() for found in _pattern("end").finditer(text)]
    done, after = 0, 0
    for begin in _pattern("begin").finditer(text):
        if begin.start() < done:
            continue
        while after < len(ends) and ends[after][0] < begin.end():
            after += 1
        near = after < len(ends) and ends[after][0] - begin.end() < 20_000
        lines = None if near else _pattern("lines").match(text, begin.end())
        done = ends[after][1] if near else lines.end() if lines else begin.end()
        yield begin.start(), done


def _cards(text: str) -> Iterator[Span]:
    """Numbers of a known brand and length whose check digit is right."""
    for found in _pattern("card").finditer(text):
        groups = re.split("[ -]", found[0])
        digits = "".join(groups)
        fits = len(digits) == 16 or (digits[0] in "346" and len(digits) in (13, 14, 15, 19))
        grouped = len(groups) == 1 or [len(group) for group in groups] in (
            [4, 4, 4, 4],
            [4, 6, 5],
            [4, 6, 4],
            [4] * 4 + [3],
        )
        if fits and grouped and len(set(digits)) > 1 and _pattern("brand").fullmatch(digits) and _luhn(digits):
            yield found.span()


def _luhn(digits: str) -> bool:
    doubled = [int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits))]
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


# --- known by what stands beside it -----------------------------------------------------------------------------------


@cache
def _assignment() -> re.Pattern[str]:
    """The pattern of an assignment, each letter that is not ASCII also as JSON escapes it."""
    return re.compile(re.sub(r"[^\x00-\x7f]", _letter, _source("patterns", "assigned")))


def _letter(found: re.Match[str]) -> str:
    codes = "|".join(f"{ord(char):04x}" for char in dict.fromkeys((found[0], found[0].upper())))
    return rf"(?:{found[0]}|\\{{1,8}}u(?:{codes}))"


_PARTS = ("double", "single", "inner", "tick", "bare")


@cache
def _starts() -> Sequence[str]:
    """How the names of secrets begin, also as JSON escapes them."""
    starts = cast(list[str], _shapes()["assigned"]["starts"])
    letters = {letter for start in starts if not start.isascii() for letter in (start[0], start[0].upper())}
    return [*starts, *(f"\\u{ord(letter):04x}" for letter in letters)]


def _name_places(text: str) -> list[int]:
    """Where the name of a secret may begin. To search for the whole pattern takes twenty times as long."""
    low, places = _lowered(text), set[int]()
    for start in _starts():
        at = low.find(start)
        while at >= 0:
            before = low[max(0, at - 7) : at] if start[0] == "\\" else ""
            places.update(range(at - len(before) + len(before.rstrip("\\")), at + 1))
            at = low.find(start, at + 1)
    return sorted(places)


def _assigned(text: str) -> Iterator[Span]:
    """What is assigned to, or said to be, a password or a key."""
    at = 0
    for place in _name_places(text):
        if place < at or not (found := _assignment().match(text, place)):
            continue
        group = next(name for name in _PARTS if found[name] is not None)
        start, end = found.span(group)
        value, quoted = found[group], group != "bare"
        if not quoted:
            value = value.rstrip(".:!?") if found["told"] else value
            end = start + len(value)
            if text[end : end + 1] == "(" and value.isidentifier():  # a call
                value = ""
        word = found["listed"] and not any(map(str.isdigit, value))  # ("user", "password", "database")
        if not word and _names_secret(found) and _secretive(value, quoted=quoted, found=found):
            yield start, end
            at = end
        else:
            at = max(start, found.start() + 1)


def secrets_of(table: Mapping[str, str]) -> list[str]:
    """The values, such as those of variables or headers, whose names say that they are secret."""
    return [value for name, value in table.items() if _says_secret(name, value)]


def _says_secret(key: str, value: str) -> bool:
    """Whether an object's value is a secret by its key."""
    if key in ("auth", "_auth"):
        return _is_login(value)
    named = _secret_name(key)
    return named is not None and _secretive(value, quoted=True, found=named)


@lru_cache(maxsize=1000)
def _secret_name(key: str) -> re.Match[str] | None:
    """Where this key names a secret. The keys of records come again and again."""
    named = _pattern("named").search(key)
    return named if named and _names_secret(named) else None


def _names_secret(found: re.Match[str]) -> bool:
    """Whether the whole name is that of a secret: `JWT_SECRET_V2`, and not `tokenizer`, `token_count` or `sort_key`."""
    word, more = found["password"] or found["token"], found["more"]
    before = (
        "" if _after_break(found.string, found.start()) else found.string[max(0, found.start() - 20) : found.start()]
    )
    if word.lower() == "pass" and not more and not re.search(r"[\w-]$", before):  # "PASS: test_2" tells of a test
        told = found.string[found.end("more") : found.end("more") + 80]
        value = re.match(r"\s?[:=]\s?(\w+)", told)
        if not re.match(r"""=|\\*["']|$""", told) and not (
            word.islower() and (re.search(r"(?:^|[\n{,]|\\n)\s*$", before) or (value and _is_coined(value[1])))
        ):
            return False
    if word.lower() in ("_key", "-key") and _pattern("plain_key").search(before + word[0]):
        return False
    if more[:1].isalpha() and not (more[0].isupper() and word[-1].islower()):
        return False
    return not any(_is("about", part) for part in re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", more))


def _secretive(value: str, *, quoted: bool, found: re.Match[str]) -> bool:
    """Whether the value is a secret, and not a placeholder, type, expression or word of the sentence."""
    if _is("holders", value) or (not quoted and _is_code(value)) or _MASKS.search(value):
        return False
    digit, letter = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    variable = (found["password"] or found["token"]).isupper() and found.string[found.end("more") :][:1] == "="
    if any(map(str.isspace, value)):
        return bool(found["password"]) and quoted and _is_phrase(value)
    if not found["password"]:
        coined = (letter and (digit or _mixed(value))) or (variable and len(value) > 15)
        return (len(value) >= 8 and letter and digit) or (len(value) >= 12 and coined)
    if variable and len(value) >= 4:
        return True
    if quoted:
        return len(value) >= 4 and any(map(str.isalnum, value))
    if digit and (letter or len(value) >= 5):
        return len(value) >= 5
    mixed = letter and any(not char.isalnum() and char not in "-_./:" for char in value)
    inner = not value.istitle() and any(map(str.isupper, value)) and any(map(str.islower, value))
    words = value.count("-") >= 2 and len(value) >= 16
    return len(value) >= 6 and (mixed or inner or words)


def _is_code(value: str) -> bool:
    """Whether the value is an expression of code: names with points between them, none as random as a key."""
    parts = value.split(".")
    return _is("code", value) and not any(_is_coined(part) or (len(part) >= 20 and _random(part)) for part in parts)


def _is_coined(value: str) -> bool:
    """Whether digits stand between its letters more than once, as in no name of code."""
    return any(len(word) >= 8 and len(re.findall(r"[A-Za-z]\d+(?=[A-Za-z])", word)) > 1 for word in value.split("_"))


def _is_phrase(value: str) -> bool:
    """Whether the value is a pass phrase of several words, and no sentence about one."""
    words = value.split()
    return 3 <= len(words) <= 12 and not _pattern("sentence").search(value) and value[-1] not in ".:?…"


# Pieces of names without a vowel, or of two letters.
_SHORT = "http|xml|html|css|jwt|csrf|xsrf|str|ctx|msg|cfg|ssh|sql|tls|ssl|rpc|src|tmp|cmd|id|db|js|md"


def _mixed(value: str) -> bool:
    """Whether capitals and small letters come as they fall (`dzbYecJZfwwI`) and begin no words (`nextPageToken`)."""
    if not any(map(str.isupper, value)) or not any(map(str.islower, value)):
        return False
    pieces = re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", value)
    word = re.compile(rf"(?i:{_SHORT})|(?i:(?=.*[aeiouy])).{{3,}}|[A-Z]{{3,}}")
    return not all(map(word.fullmatch, pieces)) or sum(map(len, pieces)) < 3.6 * len(pieces)


def _headers(text: str) -> Iterator[Span]:
    for found in _pattern("header").finditer(text):
        value = found["value"]
        code = _pattern("schemes").fullmatch(value) or _is("holders", value) or _is("code", value)
        if not code and re.search(r"\d|.{16}|=$", value):
            yield found.span("value")
    yield from (found.span("value") for found in _pattern("bearer").finditer(text))
    for found in _pattern("basic").finditer(text):
        if _is_login(found["value"]):
            yield found.span("value")


def _is_login(value: str) -> bool:
    """Whether the value is base64 of user:password."""
    try:
        login = base64.b64decode(value + "=" * (-len(value) % 4))
    except (binascii.Error, ValueError):
        return False
    return b":" in login and login.isascii() and login.decode().isprintable()


_ATTRIBUTES = {"path", "domain", "expires", "max-age", "samesite", "version", "priority"}


def _cookies(text: str) -> Iterator[Span]:
    for found in _pattern("cookies").finditer(text):
        for pair in _pattern("pair").finditer(text, *found.span("pairs")):
            if pair["name"].lower() not in _ATTRIBUTES:
                yield pair.span("value")


def _userinfo(text: str) -> Iterator[Span]:
    for found in _pattern("userinfo").finditer(text):
        group = "password" if found["password"] else "user"
        if not re.fullmatch(r"[$<{%].*|[*x]+|password", found[group]):
            yield found.span(group)


# Rules whose values stand in quotes: what begins with a dash is no option.
_QUOTED = ("call", "set", "jar", "account", "oauth", "expect", "sql", "secure")


def _flags(text: str) -> Iterator[Span]:
    """Passwords and keys on a command line."""
    low, words = text.lower(), _shapes()["flag_words"]
    there = {word for word in _all_flag_words() if word in low}
    for name in _shapes()["flags"]:
        if there.isdisjoint(words[name]):
            continue
        for found in _pattern(name, "flags").finditer(text):
            value = found["value"]
            other = re.match(r"[-<{/~(\[]|\$[\w{(]|\.{1,2}/|(?:pass|env|file|fd):", value)
            if _is("holders", value) or _MASKS.search(value) or (other and name not in _QUOTED):
                continue
            if name == "phrase" and any(map(str.isspace, value)) and not _is_phrase(value):
                continue
            keyed = len(value) >= 8 and any(map(str.isdigit, value)) and not _is("code", value)
            if found["password"] or keyed or (len(value) >= 20 and _random(value)):
                yield found.span("value")


@cache
def _all_flag_words() -> frozenset[str]:
    return frozenset(word for words in _shapes()["flag_words"].values() for word in words)


def _accounts(text: str) -> Iterator[Span]:
    """The passwords that chpasswd reads."""
    for found in _pattern("chpasswd").finditer(text):
        part = next(name for name in ("piped", "here", "text") if found[name])
        for pair in _pattern("account").finditer(text, *found.span(part)):
            if not _is("holders", pair["value"]):
                yield pair.span("value")


def _columns(text: str) -> Iterator[Span]:
    """The values below the name of a secret in a table, as CSV and as databases print them."""
    if "\\" in text:  # a table within JSON
        text = _BREAKS.sub(lambda found: ("\t" if found[0][-1] == "t" else "\n").rjust(len(found[0])), text)
    done = 0
    for word in _pattern("columns").finditer(text):
        if word.start() < done:
            continue
        begin = max(text.rfind("\n", 0, word.start()) + 1, word.start() - 500)
        ended = text.find("\n", word.end(), word.end() + 500)
        end = ended if ended >= 0 else len(text)
        head = _CELLS.split(text[begin:end].rstrip("\r"))[-1] if end - begin < 1000 else ""
        if len(head) < end - word.start():  # not in the line's last run of names
            continue
        mark = next((mark for mark in "|\t;," if mark in head), "\n")
        cells = head.split(mark) if mark != "\n" else []
        named = {
            at: found
            for at, cell in enumerate(cells)
            if (found := _pattern("named").search(cell.strip(' \t\r"'))) and _names_secret(found)
        }
        at = end + 1
        while named and at < len(text):
            end = (text.find("\n", at) + 1 or len(text) + 1) - 1
            row, start = text[at:end].split(mark), at
            if len(row) < len(cells) and not _RULER.fullmatch(text, at, end):
                break
            for number, cell in enumerate(row[: len(cells)]):
                value = cell.strip(" \t\r\"'}")
                if number in named and value and _secretive(value, quoted=False, found=named[number]):
                    begin = start + cell.index(value)
                    yield begin, begin + len(value)
                start += len(cell) + 1
            done = at = end + 1


def _wallets(text: str) -> Iterator[Span]:
    for found in _pattern("phrase").finditer(text):
        if not _pattern("sentence").search(found["value"]):
            yield found.span("value")


def _beside(text: str) -> Iterator[Span]:
    """Hex or base64 as long as a key, in a line that calls it one and no digest."""
    for found in _pattern("candidate").finditer(text):
        value = found[0]
        if not (re.fullmatch("[0-9a-fA-F]+", value) and len(value) % 2 == 0 and len(set(value)) > 6) and not _random(
            value
        ):
            continue
        before = text[max(0, found.start() - 60) : found.start()].rpartition("\n\n")[2]
        after = text[found.end() : found.end() + 30].partition("\n")[0]
        if any(_pattern("beside").search(near) for near in (before, after)) and not _pattern("digests").search(
            before + " " + after
        ):
            yield found.span()


def _random(value: str) -> bool:
    """Whether the value looks random: all kinds of characters, evenly, and no words."""
    kinds = any(map(str.isdigit, value)) and any(map(str.isupper, value)) and any(map(str.islower, value))
    words = re.findall("[a-z]{10,}|[A-Z]{10,}", value)
    if any(not re.search("(?i)[bcdfghjklmnpqrstvwxz]{5}", word) for word in words):
        return False
    if not kinds or len(re.findall("[a-z]{5}", value)) > 2:
        return False
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values()) > 3.5


def _whole(name: str, group: str | int = 0) -> Callable[[str], Iterator[Span]]:
    return lambda text: (found.span(group) for found in _pattern(name).finditer(text))


_DIGITS = tuple("0123456789")
_PRINTERS = (
    "get-",
    "print-",
    "secret show",
    "secrets versions",
    "kv get",
    "auth token",
    "create token",
    "op read",
    "pass show",
    "rand ",
    "pwgen",
)
# Words of which one must stand in the lower-cased text, and what then looks for secrets.
_RULES: Sequence[tuple[Sequence[str], Callable[[str], Iterator[Span]]]] = (
    (("private key",), _private_keys),
    (("",), _prefixed),
    ((":",), _whole("bot")),
    ((".", "discord"), _whole("discord")),
    (("-us",), _whole("mailchimp")),
    (("q~",), _whole("azure_client")),
    (_DIGITS, _cards),
    (("",), _assigned),
    (("bearer", "basic", "auth"), _headers),
    (("cookie", "curl"), _cookies),
    (("://",), _userinfo),
    (("",), _flags),
    (("chpasswd",), _accounts),
    (("kty",), _whole("jwk", "value")),
    ((":",), _whole("pgpass", "value")),
    (("",), _beside),
    (("recovery code", "backup code", "scratch code", "emergency code", "one-time code"), _whole("codes", "value")),
    (
        _PRINTERS,
        _whole("printed", "value"),
    ),
    (("@tcp(", "@unix("), _whole("dsn", "value")),
    (("hook", "ifttt", "pagerduty", "/robot/send"), _whole("webhook", "value")),
    (("wifi:",), _whole("wifi", "value")),
    (("password", "passwd", "pwd", "token", "secret", "api"), _columns),
    (("seed", "recovery", "mnemonic", "wallet", "bip", "phrase"), _wallets),
)
