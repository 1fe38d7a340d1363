"""Finds secrets in text, by their shape and by the words beside them.

secret_shapes.toml contains the shapes; design/030 has the reasons. Each rule yields the spans of its secrets.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeAlias, cast

Span: TypeAlias = tuple[int, int]

MASKS = re.compile(r"\[secret masked(?: (\d{1,6}))?\]")
"""The masks in a text that is masked already."""
_RULE_LENGTH = 300
"""The number of characters from which on a rule may have cut a secret short."""
_CACHED_LENGTH = 2000
"""The longest text whose secrets are remembered."""
_LOWER = str.maketrans("ſıİ", "sii")
"""Letters that `re.IGNORECASE` treats as ASCII letters, with their lower forms."""
_VOWELLESS = "http|xml|html|css|jwt|csrf|xsrf|str|ctx|msg|cfg|ssh|sql|tls|ssl|rpc|src|tmp|cmd|id|db|js|md"
"""Pieces of names without a vowel, or of two letters."""
_COOKIE_ATTRIBUTES = {"path", "domain", "expires", "max-age", "samesite", "version", "priority"}
_QUOTED_FLAGS = ("call", "set", "jar", "account", "oauth", "expect", "sql", "secure")
"""The flag patterns whose values are quoted, so that a value that begins with a dash is not an option."""
_VALUE_GROUPS = ("double", "single", "inner", "tick", "bare")
"""The groups of the assignment pattern that may hold the value."""
_BREAK = re.compile(r"\r{1,8}\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Line breaks other than a line feed alone, as `str.splitlines` knows them."""
_ESCAPED = re.compile(r"(?<!\\)(\\{1,8})([nrt\"])")
_PLAIN = {"n": "\n", "r": "\n", "t": "\t", '"': '"'}
"""What JSON escapes in a table, by the letter behind the backslashes."""
_BEFORE_COLUMNS = re.compile(r"[^\w \t.\",;|-]")
_RULER = re.compile(r"[-+|=: \t]+")
"""The line below the names of a table's columns."""


def find_secrets(text: str) -> Sequence[Span]:
    """Returns the spans of the secrets, in order and without overlaps. Masks are skipped."""
    return _cached_secrets(text) if len(text) <= _CACHED_LENGTH else _secrets_of(text)


def _secrets_of(text: str) -> Sequence[Span]:
    if is_word(text):
        return []
    text = _BREAK.sub(lambda found: "\n".rjust(len(found[0])), text)  # the rules know line feeds alone
    low = _lower(text)
    spans = [span for words, find in _RULES if any(word in low for word in words) for span in find(text)]
    return merge_spans(_extended(text, span) for span in spans if not MASKS.search(text, *span))


def _lower(text: str) -> str:
    """Returns the text in lower case, with each letter at its old index."""
    return (text if text.isascii() else text.translate(_LOWER)).lower()  # İ alone has a lower form of two characters


def is_word(text: str) -> bool:
    """Returns whether it is a short word, as most keys of records are, which alone is not a secret."""
    return len(text) < 16 and text.isascii() and text.isalpha()


_cached_secrets = lru_cache(maxsize=1000)(_secrets_of)
"""The same texts are masked several times: for the record, for a recall and for learning."""


def _extended(text: str, span: Span) -> Span:
    """Returns the span up to the end of its word, if it is as long as the text that a rule looks at."""
    start, end = span
    while end - start >= _RULE_LENGTH and end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    return start, end


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Returns the spans in order, with overlapping ones as one."""
    found: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def ends_with_break(text: str, at: int) -> bool:
    """Returns whether an escaped line break or tab ends at this index."""
    return text[max(0, at - 2) : at] in ("\\n", "\\r", "\\t")


@cache
def _shapes() -> dict[str, dict[str, str | list[str]]]:
    """Returns the tables of secret_shapes.toml."""
    return tomllib.loads(Path(__file__).with_name("secret_shapes.toml").read_text(encoding="utf-8"))


def _source(table: str, name: str) -> str:
    """Returns a pattern of the file as text, with the parts that it names filled in."""
    text = "".join(_shapes()[table][name])
    return re.sub(r"<<(\w+)>>", lambda piece: _source("parts", piece[1]), text)


@cache
def _pattern(name: str, table: str = "patterns") -> re.Pattern[str]:
    """Returns a compiled pattern. It is compiled at its first use, so that importing this module is cheap."""
    return re.compile(_source(table, name))


# --- known by the look of the key itself ------------------------------------------------------------------------------


def _matches(name: str, value: str) -> bool:
    """Whether the pattern of that name matches the whole value."""
    return _pattern(name).fullmatch(value) is not None


@cache
def _key_pattern(prefix: str) -> re.Pattern[str]:
    """Returns the pattern of keys with this prefix. A key begins a word: "risk-assessment" contains no sk- key."""
    return re.compile(rf"{_source('parts', 'start')}{re.escape(prefix)}{_source('issued', prefix)}", re.ASCII)


def _issued_keys(text: str) -> Iterator[Span]:
    for prefix in _shapes()["issued"]:
        if prefix in text:
            yield from (found.span() for found in _key_pattern(prefix).finditer(text))


def _private_keys(text: str) -> Iterator[Span]:
    """Yields private keys from the first line to the last; if the last was cut off, with the lines of base64."""
    ends = [found.span() for found in _pattern("end").finditer(text)]
    done, next_end = 0, 0
    for begin in _pattern("begin").finditer(text):
        if begin.start() < done:
            continue
        while next_end < len(ends) and ends[next_end][0] < begin.end():
            next_end += 1
        if next_end < len(ends) and ends[next_end][0] - begin.end() < 20_000:
            done = ends[next_end][1]
        else:
            lines = _pattern("lines").match(text, begin.end())
            done = lines.end() if lines else begin.end()
        yield begin.start(), done


def _cards(text: str) -> Iterator[Span]:
    """Yields card numbers: of a known brand and length, with a valid check digit."""
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
    """Returns the pattern of an assignment. A letter outside ASCII is also matched decomposed (ñ as n and a tilde, as
    file names of macOS have it), and as JSON escapes it.
    """
    return re.compile(re.sub(r"[^\x00-\x7f]", _in_any_form, _source("patterns", "assigned")))


def _in_any_form(found: re.Match[str]) -> str:
    return f"(?:{'|'.join(_forms(found[0]))})".replace("\\", r"\\{1,8}")


def _forms(letter: str) -> list[str]:
    """Returns the letter, small and capital, composed and decomposed, and each of these as JSON escapes it."""
    plain = dict.fromkeys(form for case in (letter, letter.upper()) for form in (case, _decomposed(case)))
    return [*plain, *("".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in form) for form in plain)]


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


@cache
def _starts() -> Sequence[str]:
    """Returns the beginnings of names of secrets, also decomposed and as JSON escapes them."""
    starts = cast(list[str], _shapes()["assigned"]["starts"])
    foreign = [start for start in starts if not start.isascii()]
    escaped = {form[:6] for start in foreign for form in _forms(start[0]) if form[0] == "\\"}
    return [*dict.fromkeys((*starts, *map(_decomposed, foreign))), *escaped]


def _name_places(text: str) -> list[int]:
    """Returns where the name of a secret may begin. Searching for the whole pattern takes twenty times as long."""
    low, places = _lower(text), set[int]()
    for start in _starts():
        at = low.find(start)
        while at >= 0:
            before = low[max(0, at - 7) : at] if start[0] == "\\" else ""
            backslashes = len(before) - len(before.rstrip("\\"))
            places.update(range(at - backslashes, at + 1))
            at = low.find(start, at + 1)
    return sorted(places)


def _assigned(text: str) -> Iterator[Span]:
    """Yields values that are assigned to a name of a password or a key, or said to be one."""
    at = 0
    for place in _name_places(text):
        if place < at or not (found := _assignment().match(text, place)):
            continue
        group = next(name for name in _VALUE_GROUPS if found[name] is not None)
        start, end = found.span(group)
        value, quoted = found[group], group != "bare"
        if not quoted:
            value = value.rstrip(".:!?") if found["told"] else value
            end = start + len(value)
            if text[end : end + 1] == "(" and value.isidentifier():  # a call
                value = ""
        word = found["listed"] and not any(map(str.isdigit, value))  # ("user", "password", "database")
        if not word and _is_secret_name(found) and _is_secret_value(value, quoted=quoted, found=found):
            yield start, end
            at = end
        else:
            at = max(start, found.start() + 1)


def secrets_of(table: Mapping[str, str]) -> list[str]:
    """Returns the values, such as those of variables or headers, whose names say that they are secret."""
    return [value for name, value in table.items() if says_secret(name, value)]


def says_secret(key: str, value: str) -> bool:
    """Returns whether the key says that its value is a secret."""
    if key in ("auth", "_auth"):
        return _is_login(value)
    named = _name_of_secret(key)
    return named is not None and _is_secret_value(value, quoted=True, found=named)


@lru_cache(maxsize=1000)
def _name_of_secret(key: str) -> re.Match[str] | None:
    """Returns the match of a secret's name in this key. Remembered, because keys of records repeat."""
    named = _pattern("named").search(unicodedata.normalize("NFC", key))
    return named if named and _is_secret_name(named) else None


def _is_secret_name(found: re.Match[str]) -> bool:
    """Whether the whole name means a secret, as `JWT_SECRET_V2` does; `tokenizer`, `token_count`, `sort_key` do not."""
    word, more = found["password"] or found["token"], found["more"]
    before = found.string[max(0, found.start() - 20) : found.start()]
    if ends_with_break(found.string, found.start()):
        before = ""
    if word.lower() == "pass" and not more and _tells_of_a_test(found, before):
        return False
    if word.lower() in ("_key", "-key") and _pattern("plain_key").search(before + word[0]):
        return False
    if more[:1].isalpha() and not (more[0].isupper() and word[-1].islower()):
        return False
    return not any(_matches("about", part) for part in re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", more))


def _tells_of_a_test(found: re.Match[str], before: str) -> bool:
    """Whether the word pass tells of a test, as in "PASS: test_2", and names no password, as in `pass = "…"`."""
    told = found.string[found.end("more") : found.end("more") + 80]
    if re.search(r"[\w-]$", before) or re.match(r"""=|\\*["']|$""", told):
        return False
    value = re.match(r"\s?[:=]\s?(\w+)", told)
    begins = re.search(r"(?:^|[\n{,]|\\n)\s*$", before) is not None
    return not (found["password"].islower() and (begins or (value and _is_coined(value[1]))))


def _is_secret_value(value: str, *, quoted: bool, found: re.Match[str]) -> bool:
    """Whether the value is a secret, not a placeholder, a type, an expression or a word of the sentence."""
    if _matches("holders", value) or (not quoted and _is_code(value)) or MASKS.search(value):
        return False
    digit, letter = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    variable = (found["password"] or found["token"]).isupper() and found.string[found.end("more") :][:1] == "="
    if any(map(str.isspace, value)):
        return bool(found["password"]) and quoted and _is_phrase(value)
    if not found["password"]:
        if letter and (digit or (len(value) >= 12 and _is_mixed_case(value))):
            return len(value) >= 8
        return variable and len(value) >= 16
    if variable and len(value) >= 4:
        return True
    if quoted:
        return len(value) >= 4 and any(map(str.isalnum, value))
    if digit:
        return len(value) >= 5
    mixed = letter and any(not char.isalnum() and char not in "-_./:" for char in value)
    inner = not value.istitle() and any(map(str.isupper, value)) and any(map(str.islower, value))
    words = value.count("-") >= 2 and len(value) >= 16
    return len(value) >= 6 and (mixed or inner or words)


def _is_code(value: str) -> bool:
    """Whether the value is an expression of code: dotted names, none as random as a key."""
    parts = value.split(".")
    return _matches("code", value) and not any(
        _is_coined(part) or (len(part) >= 20 and _looks_random(part)) for part in parts
    )


def _is_coined(value: str) -> bool:
    """Whether a part has digits between letters more than once, which names in code do not have."""
    return any(len(word) >= 8 and len(re.findall(r"[A-Za-z]\d+(?=[A-Za-z])", word)) > 1 for word in value.split("_"))


def _is_phrase(value: str) -> bool:
    """Whether the value is a pass phrase of several words, not a sentence."""
    words = value.split()
    return 3 <= len(words) <= 12 and not _pattern("sentence").search(value) and value[-1] not in ".:?…"


def _is_mixed_case(value: str) -> bool:
    """Whether the case of letters is random (`dzbYecJZfwwI`), not that of words (`nextPageToken`)."""
    if not any(map(str.isupper, value)) or not any(map(str.islower, value)):
        return False
    pieces = re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", value)
    word = re.compile(rf"(?i:{_VOWELLESS})|(?i:(?=.*[aeiouy])).{{3,}}|[A-Z]{{3,}}")
    return not all(map(word.fullmatch, pieces)) or sum(map(len, pieces)) < 3.6 * len(pieces)


def _headers(text: str) -> Iterator[Span]:
    for found in _pattern("header").finditer(text):
        value = found["value"]
        code = _pattern("schemes").fullmatch(value) or _matches("holders", value) or _matches("code", value)
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


def _cookies(text: str) -> Iterator[Span]:
    for found in _pattern("cookies").finditer(text):
        for pair in _pattern("pair").finditer(text, *found.span("pairs")):
            if pair["name"].lower() not in _COOKIE_ATTRIBUTES:
                yield pair.span("value")


def _userinfo(text: str) -> Iterator[Span]:
    for found in _pattern("userinfo").finditer(text):
        group = "password" if found["password"] else "user"
        if not re.fullmatch(r"[$<{%].*|[*x]+|password", found[group]):
            yield found.span(group)


def _flags(text: str) -> Iterator[Span]:
    """Yields passwords and keys on a command line."""
    low, flag_words = _lower(text), _shapes()["flag_words"]
    present = {word for word in _all_flag_words() if word in low}
    for name in _shapes()["flags"]:
        if present.isdisjoint(flag_words[name]):
            continue
        for found in _pattern(name, "flags").finditer(text):
            value = found["value"]
            other = re.match(r"[-<{/~(\[]|\$[\w{(]|\.{1,2}/|(?:pass|env|file|fd):", value)
            if _matches("holders", value) or MASKS.search(value) or (other and name not in _QUOTED_FLAGS):
                continue
            if name == "phrase" and any(map(str.isspace, value)) and not _is_phrase(value):
                continue
            keyed = len(value) >= 8 and any(map(str.isdigit, value)) and not _matches("code", value)
            if found["password"] or keyed or (len(value) >= 20 and _looks_random(value)):
                yield found.span("value")


@cache
def _all_flag_words() -> frozenset[str]:
    return frozenset(word for words in _shapes()["flag_words"].values() for word in words)


def _accounts(text: str) -> Iterator[Span]:
    """Yields the passwords that chpasswd reads."""
    for found in _pattern("chpasswd").finditer(text):
        part = next(name for name in ("piped", "here", "text") if found[name])
        for pair in _pattern("account").finditer(text, *found.span(part)):
            if not _matches("holders", pair["value"]):
                yield pair.span("value")


def _columns(text: str) -> Iterator[Span]:
    """Yields the values below the name of a secret in a table, as CSV or as databases print it."""
    yield from _values_below(text)
    for escape in sorted({found[1] for found in _ESCAPED.finditer(text) if found[2] != '"'}):
        yield from _values_below(_unescaped(text, escape))  # within JSON, \\n may be a break or a path such as C:\new


def _unescaped(text: str, escape: str = "") -> str:
    """Returns the text with quotes, tabs and line breaks as they were before JSON escaped them, each at its old index.

    escape: the backslashes before a break or tab that is meant; without them, any number.
    """

    def plain(found: re.Match[str]) -> str:
        meant = found[2] == '"' or escape in ("", found[1])
        return _PLAIN[found[2]].ljust(len(found[0])) if meant else found[0]

    return _ESCAPED.sub(plain, text)


def _values_below(text: str) -> Iterator[Span]:
    """Yields the values below the names of secrets in the tables of a text in which nothing is escaped."""
    done = 0
    for word in _pattern("columns").finditer(text):
        if word.start() < done:
            continue
        begin = max(text.rfind("\n", 0, word.start()) + 1, word.start() - 500)
        ended = text.find("\n", word.end(), word.end() + 500)
        end = ended if ended >= 0 else len(text)
        head = _BEFORE_COLUMNS.split(text[begin:end])[-1] if end - begin < 1000 else ""
        mark = next((mark for mark in "|\t;," if mark in head), "")
        if not mark or len(head) < end - word.start():  # one column, or not in the line's last run of names
            continue
        cells = [head[slice(*span)] for span in _cells(head, mark)]
        named = {
            at: found
            for at, cell in enumerate(cells)
            if (found := _pattern("named").search(cell.strip(' \t"'))) and _is_secret_name(found)
        }
        at = end + 1
        while named and at < len(text):
            end = (text.find("\n", at) + 1 or len(text) + 1) - 1
            row = _cells(text[at:end], mark)
            if len(row) < len(cells) and not _RULER.fullmatch(text, at, end):
                break
            for number, found in named.items():
                start, stop = row[number] if number < len(row) else (0, 0)
                value = text[at + start : at + stop].strip(" \t\"'}")
                if value and _is_secret_value(value, quoted=False, found=found):
                    start = text.index(value, at + start)
                    yield start, start + len(value)
            done = at = end + 1


def _cells(line: str, mark: str) -> list[Span]:
    """Returns the spans of a row's cells. A mark between quotes ("Smith, Ann") separates none."""
    return [found.span(1) for found in _cell_pattern(mark).finditer(line)]


@cache
def _cell_pattern(mark: str) -> re.Pattern[str]:
    quoted = r' {0,8}"[^"]*"(?:[^"MARK]*"[^"]*")*[^"MARK]*(?=MARK|$)'
    return re.compile(rf"(?:^|MARK)({quoted}|[^MARK]*)".replace("MARK", re.escape(mark)))


def _wallets(text: str) -> Iterator[Span]:
    for found in _pattern("phrase").finditer(text):
        if not _pattern("sentence").search(found["value"]):
            yield found.span("value")


def _keys_by_words(text: str) -> Iterator[Span]:
    """Yields hex or base64 as long as a key, if the words beside it call it a key and not a digest."""
    for found in _pattern("candidate").finditer(text):
        value = found[0]
        is_hex = re.fullmatch("[0-9a-fA-F]+", value) and len(value) % 2 == 0 and len(set(value)) > 6
        if not is_hex and not _looks_random(value):
            continue
        before = re.split(r"\n[ \n]*\n", _unescaped(text[max(0, found.start() - 60) : found.start()]))[-1]
        after = _unescaped(text[found.end() : found.end() + 30]).partition("\n")[0]
        is_called_key = any(_pattern("beside").search(near) for near in (before, after))
        if is_called_key and not _pattern("digests").search(f"{before} {after}"):
            yield found.span()


def _looks_random(value: str) -> bool:
    """Whether the value looks random: digits and both cases, evenly distributed, and no words."""
    kinds = any(map(str.isdigit, value)) and any(map(str.isupper, value)) and any(map(str.islower, value))
    words = re.findall("[a-z]{10,}|[A-Z]{10,}", value)
    if any(not re.search("(?i)[bcdfghjklmnpqrstvwxz]{5}", word) for word in words):
        return False
    if not kinds or len(re.findall("[a-z]{5}", value)) > 2:
        return False
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values()) > 3.5


def _matcher(name: str, group: str | int = 0) -> Callable[[str], Iterator[Span]]:
    """Returns a rule that yields what a pattern, or one group of it, matches."""
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
_RULES: Sequence[tuple[Sequence[str], Callable[[str], Iterator[Span]]]] = (
    (("private key",), _private_keys),
    (("",), _issued_keys),
    ((":",), _matcher("bot")),
    ((".", "discord"), _matcher("discord")),
    (("-us",), _matcher("mailchimp")),
    (("q~",), _matcher("azure_client")),
    (_DIGITS, _cards),
    (("",), _assigned),
    (("bearer", "basic", "auth"), _headers),
    (("cookie", "curl"), _cookies),
    (("://",), _userinfo),
    (("",), _flags),
    (("chpasswd",), _accounts),
    (("kty",), _matcher("jwk", "value")),
    ((":",), _matcher("pgpass", "value")),
    (("",), _keys_by_words),
    (
        ("recovery code", "backup code", "scratch code", "emergency code", "one-time code"),
        _matcher("codes", "value"),
    ),
    (_PRINTERS, _matcher("printed", "value")),
    (("@tcp(", "@unix("), _matcher("dsn", "value")),
    (("hook", "ifttt", "pagerduty", "/robot/send"), _matcher("webhook", "value")),
    (("wifi:",), _matcher("wifi", "value")),
    (("password", "passwd", "pwd", "token", "secret", "api"), _columns),
    (("seed", "recovery", "mnemonic", "wallet", "bip", "phrase"), _wallets),
)
"""Words of which one must be in the lower-case text, and the rule that then looks for secrets."""
