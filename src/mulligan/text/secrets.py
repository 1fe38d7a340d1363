"""Finds and masks secrets in text: by their shape, by the words beside them, and by value where it is known.

`mask` and `Masks` see shapes only: a password that looks like any word and stands alone passes. `KnownSecrets` is for
code that holds the value, such as the key that a request was sent with. design/030 says how the shapes were chosen.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, TypeAlias, cast

from mulligan.core.records import Json

MASK = "[secret masked]"
"""Stands for the first secret of a text; a second, other one is `[secret masked 2]`, and so on."""

NOTE = f"(Secrets are shown as {MASK}, the same secret always by the same mask: take a mask for the value.)"

_MASKS = re.compile(r"\[secret masked(?: (\d{1,6}))?\]")
SHORTEST = 8
"""Characters that a known value has at least: a shorter one may be a word, such as the key "ollama" of a local one."""
_CODED = 6
"""Characters of base64 that are looked for at least."""
_LONG = 300
"""Characters that the rules look at, at least."""
_REPEATED, _MOST = 8, 200
"""A value with so many characters is masked wherever it stands again; so many values at most, to bound the time."""

Span: TypeAlias = tuple[int, int]


def mask(text: str) -> str:
    """The text with each secret replaced by a mask: the same value by the same mask. Masking again changes nothing."""
    return Masks().text(text)


def mask_json(value: Json) -> Json:
    """A copy with each text in it masked by itself, keys of objects too, and what an object's key says is a secret."""
    return each_text(value, lambda text, key: Masks().text(text, key))


def mask_attempt(text: str, task: str) -> str:
    """What was done for a task, for somebody who judges it: masked, but for values that stand in the task itself."""
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
        return [each_text(item, change) for item in cast(list[Any], value)]
    if isinstance(value, Mapping):
        table = cast(Mapping[str, Any], value)
        if set(table) == {"media_type", "data"}:
            return dict(table)
        return {change(name, ""): each_text(item, change, name) for name, item in table.items()}
    return value


class Masks:
    """Masks texts that belong together: a value has one mask in all of them, and what one text shows to be a secret
    is masked in the others."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
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
        """Takes note of the secrets in this text, which is returned as it is."""
        self._last = max(self._last, *(int(number or 1) for number in _MASKS.findall(text)), 0)
        if key and _says_secret(key, text):
            self._name(text)
        for start, end in find_secrets(text):
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

    def _masked(self, text: str) -> str:
        if text in self._names:
            return self._names[text]
        for _ in range(3):  # a second secret may be seen only once the first is gone
            text, before = self._replaced(text), text
            if text == before:
                break
        return text

    def _replaced(self, text: str) -> str:
        spans = find_secrets(text)
        known = sorted((value for value in self._names if len(value) >= _REPEATED), key=len, reverse=True)
        for value in known[:_MOST]:
            spans += _alone(text, value)
        parts, at = list[str](), 0
        for start, end in _joined(spans):
            parts += [text[at:start], self._name(text[start:end])]
            at = end
        return "".join([*parts, text[at:]]) if parts else text


def find_secrets(text: str) -> list[Span]:
    """Where secrets stand, in order, none within another. What is masked already is passed over."""
    low = text.lower()
    if len(low) != len(text):  # a few letters have lower forms of two characters
        low = "".join(char.lower() if char.isascii() else char for char in text)
    spans = [span for words, rule in _RULES if any(word in low for word in words) for span in rule(text)]
    return _joined(_whole_word(text, span) for span in spans if not _MASKS.search(text, *span))


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
        before, after = text[at - 1 : at], text[end : end + 1]
        whole = not (value[0].isalnum() and before.isalnum()) and not (value[-1].isalnum() and after.isalnum())
        if whole and not any(start <= at and end <= stop for start, stop in masked):
            yield at, end
        at = text.find(value, end)


def _lazy(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> Callable[[], re.Pattern[str]]:
    """Compiled at its first use: who only imports this must not pay for it."""
    return cache(lambda: re.compile(pattern, flags))


# --- known by the look of the key itself ------------------------------------------------------------------------------

_ISSUED = (
    ("sk-", r"(?=[\w-]*\d)[\w-]{16,400}"),  # OpenAI, Anthropic, DashScope, OpenRouter and kin
    *((aws, r"[A-Z0-9]{16}(?![A-Za-z0-9])") for aws in ("AKIA", "ASIA", "ABIA", "ACCA")),
    *((f"gh{kind}_", r"\w{30,300}") for kind in "opusr"),
    ("github_pat_", r"\w{30,300}"),
    *((f"gl{kind}-", r"[\w.-]{20,300}") for kind in ("pat", "dt", "rt", "cbt", "ptt", "ft", "soat", "imt", "agent")),
    ("AIza", r"[\w-]{35}"),  # Google
    ("GOCSPX-", r"[\w-]{20,40}"),
    ("ya29.", r"[\w.-]{20,2000}"),
    ("hf_", r"[A-Za-z0-9]{30,60}"),
    *((f"xox{kind}-", r"[\w-]{10,300}") for kind in "abeprs"),  # Slack
    ("xapp-", r"\d-[\w-]{20,300}"),
    ("hooks.slack.com/services/", r"[\w/]{30,100}"),
    *((f"{kind}_{mode}_", r"[A-Za-z0-9]{16,300}") for kind in ("sk", "rk") for mode in ("live", "test")),  # Stripe
    ("whsec_", r"[A-Za-z0-9+/]{16,100}"),
    ("npm_", r"[A-Za-z0-9]{36}"),
    ("pypi-", r"[\w-]{50,400}"),
    ("rubygems_", r"[a-f0-9]{48}"),
    ("SG.", r"[\w-]{16,64}\.[\w-]{16,64}"),  # SendGrid
    ("eyJ", r"[\w-]{8,8000}\.[\w-]{8,20000}\.[\w-]{0,2000}"),  # a JSON web token
    *((f"do{kind}_v1_", r"[a-f0-9]{64}") for kind in "opr"),  # DigitalOcean
    ("AGE-SECRET-KEY-1", r"[A-Z0-9]{40,80}"),
    ("SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),  # Twilio
    ("key-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),  # Mailgun
    *((f"shp{kind}_", r"[a-fA-F0-9]{32}") for kind in ("at", "ca", "pa", "ss")),  # Shopify
    *((f"sq0{kind}-", r"[\w-]{22,43}") for kind in ("atp", "csp", "idp")),  # Square
    ("dapi", r"[a-f0-9]{32}"),  # Databricks
    *((f"hv{kind}.", r"[\w-]{20,300}") for kind in "sbr"),  # Vault
    *((f"gls{kind}_", r"[\w]{20,200}") for kind in "ac"),  # Grafana
    ("glc_", r"[A-Za-z0-9+/]{32,400}"),
    ("dckr_pat_", r"[\w-]{20,60}"),
    ("ATATT3", r"[\w=-]{100,300}"),  # Atlassian
    ("ATBB", r"[A-Za-z0-9]{28,40}"),
    ("lin_api_", r"[A-Za-z0-9]{32,64}"),
    ("ntn_", r"[A-Za-z0-9]{40,60}"),
    ("PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
    ("NRAK-", r"[A-Z0-9]{27}"),
    *((f"sntry{kind}_", r"[\w+/=-]{40,400}") for kind in "su"),
    ("pul-", r"[a-f0-9]{40}"),
    ("tskey-", r"[\w-]{20,100}"),
    ("gsk_", r"[A-Za-z0-9]{40,80}"),
    ("xai-", r"[A-Za-z0-9]{60,100}"),
    ("r8_", r"[A-Za-z0-9]{30,50}"),
    ("pplx-", r"[A-Za-z0-9]{40,64}"),
    ("nvapi-", r"[\w-]{50,100}"),
    ("figd_", r"[\w-]{36,60}"),
    ("sbp_", r"[a-f0-9]{40}"),
    ("LTAI", r"[A-Za-z0-9]{16,24}(?![A-Za-z0-9])"),  # Alibaba
    ("ops_eyJ", r"[A-Za-z0-9+/]{100,2000}"),  # 1Password
)
_PREFIXED = tuple(
    (prefix, _lazy(rf"(?<![A-Za-z0-9_-]){re.escape(prefix)}{rest}", re.ASCII)) for prefix, rest in _ISSUED
)
"""A key stands alone: "risk-assessment" holds no key that begins with sk-."""


def _prefixed(text: str) -> Iterator[Span]:
    for prefix, pattern in _PREFIXED:
        if prefix in text:
            yield from (found.span() for found in pattern().finditer(text))


_BOT = _lazy(r"(?<![\w-])\d{8,10}:[\w-]{35}(?![\w-])", re.ASCII)  # Telegram
_DISCORD = _lazy(
    r"(?<![\w.-])(?:[MNO][\w-]{22,28}\.[\w-]{6,7}\.[\w-]{27,45}|mfa\.[\w-]{80,90})(?![\w.-])"
    r"|discord(?:app)?\.com/api/webhooks/\d{15,22}/[\w-]{50,100}",
    re.ASCII,
)
_MAILCHIMP = _lazy(r"(?<![\w-])[0-9a-f]{32}-us\d{1,2}(?![\w-])", re.ASCII)
_AZURE_CLIENT = _lazy(r"(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])", re.ASCII)
_BEGIN = _lazy(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = _lazy(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_LINES = _lazy(r"(?:(?:\s|\\{1,4}[nr]){0,9}[A-Za-z0-9+/=]{16,1000})*")


def _private_keys(text: str) -> Iterator[Span]:
    """From its first line to its last; where that was cut off, the lines of base64."""
    ends = [found.span() for found in _END().finditer(text)]
    done, after = 0, 0
    for begin in _BEGIN().finditer(text):
        if begin.start() < done:
            continue
        while after < len(ends) and ends[after][0] < begin.end():
            after += 1
        near = after < len(ends) and ends[after][0] - begin.end() < 20_000
        lines = None if near else _LINES().match(text, begin.end())
        done = ends[after][1] if near else lines.end() if lines else begin.end()
        yield begin.start(), done


_CARD = _lazy(r"(?<![\w.,+/-])(?<!\d )\d(?:[ -]?\d){12,18}(?![\w/-]|[.,]\d| \d)", re.ASCII)
_BRAND = _lazy(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720))\d*|3[47]\d{13}|3(?:0[0-5]|[689])\d{11,16}"
    r"|(?:6011|64[4-9]|65|62)\d*|35(?:2[89]|[3-8])\d*",
    re.ASCII,
)


def _cards(text: str) -> Iterator[Span]:
    """Numbers of a known brand and length whose check digit is right."""
    for found in _CARD().finditer(text):
        groups = re.split("[ -]", found[0])
        digits = "".join(groups)
        fits = len(digits) == 16 or (digits[0] in "346" and len(digits) in (13, 14, 15, 19))
        grouped = len(groups) == 1 or [len(group) for group in groups] in (
            [4, 4, 4, 4],
            [4, 6, 5],
            [4, 6, 4],
            [4] * 4 + [3],
        )
        if fits and grouped and len(set(digits)) > 1 and _BRAND().fullmatch(digits) and _luhn(digits):
            yield found.span()


def _luhn(digits: str) -> bool:
    doubled = [int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits))]
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


# --- known by what stands beside it -----------------------------------------------------------------------------------


def _letters(pattern: str) -> str:
    """The pattern, each letter that is not ASCII also as JSON escapes it."""
    return re.sub(r"[^\x00-\x7f]", _letter, pattern)


def _letter(found: re.Match[str]) -> str:
    codes = "|".join(f"{ord(char):04x}" for char in dict.fromkeys((found[0], found[0].upper())))
    return rf"(?:{found[0]}|\\{{1,8}}u(?:{codes}))"


_PASSWORDS = (
    r"passw(?:or)?ds?|passwd|pwd|passphrase|passcode|(?<=[_-])pass|pgpass|sshpass|rediscli_auth"
    r"|passwort|kennwort|mot de passe|contraseñas?|senha|wachtwoord|hasło|пароль|密码|密碼|口令|パスワード|비밀번호"
)
_TOKENS = (
    r"secret|api[_ -]?key|access[_ -]?key|account[_ -]?key|shared[_ -]?access[_ -]?(?:key|signature)|secret[_ -]?key"
    r"|private[_ -]?key|client[_ -]?secret|auth[_ -]?key|signing[_ -]?key|encryption[_ -]?key|master[_ -]?key"
    r"|license[_ -]?key|token|credentials?|phpsessid|jsessionid|(?<![a-z])sig|subscription[_ -]?key|(?<=[?&])key|_key"
)
_NAMED = _lazy(rf"(?:(?P<password>{_PASSWORDS})|{_TOKENS})$", re.IGNORECASE)
_QUOTE = r"\\{0,8}[\"'`]"
_WORD = r"(?:[^\s\"'`,;&(){}\[\]<>|\\]|&(?![\w-]{1,40}=))"
_VALUE = (
    rf"(?:(?<!\\)\"(?P<double>(?:[^\"\\\n]|\\.){{1,2000}})\"|(?<!\\)'(?P<single>(?:[^'\\\n]|\\.){{1,2000}})'"
    rf"|\\{{1,8}}[\"'](?P<inner>[^\"'\\\n]{{1,2000}})|`(?P<tick>[^`\n]{{1,2000}})`|(?:{_QUOTE})?(?P<bare>{_WORD}{{1,300}}))"
)
_ASSIGNED = _lazy(
    _letters(
        rf"(?:(?P<password>{_PASSWORDS})|{_TOKENS})"
        r"(?:[_-]?(?:\d{1,3}|prod|dev|test|live|old|new|base64|b64))?"
        rf"(?P<closed>{_QUOTE})?\]?(?:\s{{0,3}}:\s{{0,3}}[A-Za-z][\w.|]{{0,30}}\s{{0,3}}(?==[^=]))?"
        r"(?:\s{0,3}(?::=|=>|={1,2}|:|：|＝|%3[ad])"
        rf"|,?(?:\s|\\{{1,8}}[nrt]){{1,40}}(?:{_QUOTE})?value(?:{_QUOTE})?\s{{0,3}}[:=]"  # {{name: API_KEY, value: …}}
        rf"|(?P<listed>\s{{0,3}},)(?=\s{{0,3}}{_QUOTE})|>(?=[^<\s]{{1,300}}</)"
        r"|(?P<told>(?: (?:for|of|to|für|pour|de|para) [^\n.:=]{1,40}?)?"
        r" (?:is|was|are|=|ist|lautet|est|es|è|é)(?: now)?(?= )"
        r"|\s?(?:это|是|为|為|は|는|은)))"
        rf"\s{{0,3}}{_VALUE}"
    ),
    re.IGNORECASE,
)
_HOLDERS = _lazy(
    r"[*x.•#_-]+|<.*>|\{.*|\$.*|%[({s].*|.*\b(?:your|example|placeholder|changeme|redacted|masked|xxx+)\b.*"
    r"|(?:the|new|old|my|user|db|a)?[_ -]?(?:password|passwort|passwd|pwd|secret|token|api[_ -]?key|key)s?(?:\d|hash)?"
    r"|none|null|nil|true|false|str|string|text|bytes|int|any|optional|required|hidden|missing|invalid|incorrect|wrong|empty"
    r"|undefined|unknown|default|value|input|bearer|basic|digest|expired|correct|plaintext|plain|(?-i:[A-Z]+(?:_[A-Z]+)+)",
    re.IGNORECASE | re.DOTALL,
)
_CODE = _lazy(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|(?:os|self|env|settings|config|process)\..*|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
)
_PARTS = ("double", "single", "inner", "tick", "bare")


def _assigned(text: str) -> Iterator[Span]:
    """What is assigned to, or said to be, a password or a key."""
    at = 0
    while found := _ASSIGNED().search(text, at):
        group = next(name for name in _PARTS if found[name] is not None)
        start, end = found.span(group)
        value, quoted = found[group], group != "bare"
        if not quoted:
            value = value.rstrip(".:!?") if found["told"] else value
            end = start + len(value)
        word = found["listed"] and not any(map(str.isdigit, value))  # ("user", "password", "database")
        if not word and _secretive(value, quoted=quoted, password=bool(found["password"])):
            yield start, end
            at = end
        else:
            at = max(start, found.start() + 1)


def secrets_of(table: Mapping[str, str]) -> list[str]:
    """The values, such as those of variables or headers, whose names say that they are secret."""
    return [value for name, value in table.items() if _says_secret(name, value)]


def _says_secret(key: str, value: str) -> bool:
    """Whether an object's value is a secret by its key."""
    named = _NAMED().search(key)
    return bool(named) and _secretive(value, quoted=True, password=bool(named["password"]))


def _secretive(value: str, *, quoted: bool, password: bool) -> bool:
    """Whether a value beside such a word is one, and no placeholder, type, expression or word of the sentence."""
    if _HOLDERS().fullmatch(value) or (not quoted and _CODE().fullmatch(value)) or _MASKS.search(value):
        return False
    digit, letter = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    if not password:
        spaced = any(map(str.isspace, value))
        return not spaced and ((len(value) >= 8 and digit and letter) or (len(value) >= 20 and _random(value)))
    if quoted:
        return len(value) >= 4 and not any(map(str.isspace, value)) and any(map(str.isalnum, value))
    if digit and (letter or len(value) >= 5):
        return len(value) >= 5
    mixed = letter and any(not char.isalnum() and char not in "-_./:" for char in value)
    inner = not value.istitle() and any(map(str.isupper, value)) and any(map(str.islower, value))
    words = value.count("-") >= 2 and len(value) >= 16
    return len(value) >= 6 and (mixed or inner or words)


_HEADER = _lazy(
    r"\b(?:proxy-)?authorization[\"'\\]{0,5}\]?\s{0,3}[:=,]\s{0,3}[\"'\\]{0,5}"
    r"(?:(?:bearer|basic|token|digest|apikey|negotiate|ntlm|aws4-hmac-sha256)\s{1,3})?(?P<value>[\w.~+/=:-]{6,4000})",
    re.IGNORECASE | re.ASCII,
)
_BEARER = _lazy(r"\bBearer\s{1,3}(?P<value>(?=[\w.~+/-]{0,300}\d)[\w.~+/-]{16,4000}=*)", re.IGNORECASE | re.ASCII)
_BASIC = _lazy(r"\bBasic\s{1,3}(?P<value>[A-Za-z0-9+/]{6,2000}={0,2})(?![\w+/=])", re.IGNORECASE | re.ASCII)
_SCHEMES = _lazy(r"bearer|basic|token|digest|negotiate|ntlm", re.IGNORECASE)


def _headers(text: str) -> Iterator[Span]:
    for found in _HEADER().finditer(text):
        value = found["value"]
        code = _SCHEMES().fullmatch(value) or _HOLDERS().fullmatch(value) or _CODE().fullmatch(value)
        if not code and re.search(r"\d|.{16}|=$", value):
            yield found.span("value")
    yield from (found.span("value") for found in _BEARER().finditer(text))
    for found in _BASIC().finditer(text):
        try:
            said = base64.b64decode(found["value"] + "=" * (-len(found["value"]) % 4))
        except binascii.Error:
            continue
        if b":" in said and said.isascii():
            yield found.span("value")


_COOKIES = _lazy(
    r"(?:\b(?:set-)?cookies?2?[\"'\\]{0,5}\]?\s{0,3}[:=,]\s{0,3}[\"'\\]{0,5}|\bcurl\b[^\n|;]{0,200}?\s-b[\s=]{0,3}[\"']?|--cookie[\s=]{1,3}[\"']?)"
    r"(?P<pairs>[\w.!%-]{1,80}=[^\n\"'<>\\]{1,4000})",
    re.IGNORECASE | re.ASCII,
)
_PAIR = _lazy(r"(?P<name>[\w.!%-]{1,80})=(?P<value>[^;\s,\[\]]{6,4000})", re.ASCII)
_ATTRIBUTES = {"path", "domain", "expires", "max-age", "samesite", "version", "priority"}


def _cookies(text: str) -> Iterator[Span]:
    for found in _COOKIES().finditer(text):
        for pair in _PAIR().finditer(text, *found.span("pairs")):
            if pair["name"].lower() not in _ATTRIBUTES:
                yield pair.span("value")


_USERINFO = _lazy(
    r"\b[a-z][a-z0-9+.-]{1,20}://(?:[^\s:/@\"'<>?#]{0,100}:(?P<password>[^\s/@\"'<>\[\]]{1,200}(?:@[^\s/@\"'<>\[\].]{1,60})?)"
    r"|(?P<user>(?=[^\s:/@]{0,100}\d)[^\s:/@\"'<>?#\[\]]{16,200}))(?=@[\w\[])",
    re.IGNORECASE | re.ASCII,
)


def _userinfo(text: str) -> Iterator[Span]:
    for found in _USERINFO().finditer(text):
        group = "password" if found["password"] else "user"
        if not re.fullmatch(r"[$<{%].*|[*x]+|password", found[group]):
            yield found.span(group)


_ARG = r"(?:\\{0,4}[\"'],?\s{0,3}\\{0,4}[\"']|[=\s]\s{0,2}\\{0,4}[\"']?)"  # apart, by =, or as items of a list
_FREE = r"(?:[^\s\"'`\\,;|<>)\]]|[)\]](?=[^\s\"'`()\]])){3,300}"
_FLAGS = (
    _lazy(
        r"(?<![\w-])--?(?:(?:[\w]{1,20}-){0,2}(?P<password>password|passwd|passphrase|pass|pw)"
        r"|(?:\w{1,20}-){0,2}(?:api[-_]?key|token|secret|access[-_]key|secret[-_]key|account[-_]key|auth[-_]key|sas|credential))"
        rf"{_ARG}(?P<value>{_FREE})",
        re.IGNORECASE | re.ASCII,
    ),
    _lazy(rf"\bsshpass\b[^\n|;]{{0,40}}?(?P<password>-p)(?:{_ARG})?(?P<value>{_FREE})", re.ASCII),
    _lazy(
        rf"\b(?P<password>mysql|mysqldump|mysqladmin|mysqlimport|mariadb)\b[^\n|;]{{0,200}}?\s-p(?P<value>{_FREE})",
        re.ASCII,
    ),
    _lazy(
        rf"\b(?P<password>docker|podman|helm|oc|az|buildah|skopeo)\b[^\n|;]{{0,80}}?\blogin\b[^\n|;]{{0,200}}?\s-p{_ARG}(?P<value>{_FREE})",
        re.ASCII,
    ),
    _lazy(rf"\b(?P<password>redis-cli)\b[^\n|;]{{0,200}}?\s-a{_ARG}(?P<value>{_FREE})", re.ASCII),
    _lazy(rf"\b(?P<password>ldap\w{{3,8}})\b[^\n|;]{{0,200}}?\s-w{_ARG}(?P<value>{_FREE})", re.ASCII),
    _lazy(
        rf"\b(?P<password>curl|wget|https?|smbclient|svn)\b[^\n|;]{{0,300}}?(?:\s|[\"'])(?:-u|--(?:proxy-)?user|-U)"
        rf"(?:{_ARG})?[^\s:\"'\\]{{1,100}}:(?P<value>{_FREE})",
        re.ASCII,
    ),
    _lazy(
        rf"(?P<password>\blogin)\s{{1,3}}\S{{1,100}}\s{{1,9}}password\s{{1,3}}(?P<value>{_FREE})", re.ASCII
    ),  # .netrc
    _lazy(
        rf"\b(?P<password>(?:identified by|password) ['\"]|-pass(?:in|out) ['\"]?pass:)(?P<value>{_FREE})",
        re.IGNORECASE,
    ),
    _lazy(rf"\becho\s(?:-\w\s)?['\"]?(?P<value>{_FREE})['\"]?\s?\|\s?(?P<password>sudo -\w*S|docker login|passwd)"),
)


def _flags(text: str) -> Iterator[Span]:
    """Passwords and keys on a command line."""
    for pattern in _FLAGS:
        for found in pattern().finditer(text):
            value = found["value"]
            if (
                _HOLDERS().fullmatch(value)
                or _MASKS.search(value)
                or re.match(r"[-$<{/~(\[]|\.{1,2}/|pass:|env:|file:", value)
            ):
                continue
            keyed = len(value) >= 8 and any(map(str.isdigit, value)) and not _CODE().fullmatch(value)
            if found["password"] or keyed or (len(value) >= 20 and _random(value)):
                yield found.span("value")


_CANDIDATE = _lazy(r"(?<![\w+/=.-])(?:[0-9a-fA-F]{32,512}|[A-Za-z0-9+/_-]{32,128}={0,2})(?![\w+/=-])", re.ASCII)
_BESIDE = _lazy(
    r"(?<![a-z])(?:api|access|secret|auth|private|signing|encryption|master|session|bearer|refresh|service|aes|hmac)?"
    r"[ _-]?(?:key|token|secret(?! m)|password|credential|passphrase|schlüssel|clé|clave"
    r"|ключ|токен|密钥|令牌|鍵|トークン)s?(?![a-z])",
    re.IGNORECASE,
)
_DIGESTS = _lazy(
    r"sha-?\d|\bsha\b|md5|hash|digest|checksum|commit|\brev(?:ision)?\b|etag|fingerprint|uuid|blob|public|primary|foreign|cache",
    re.IGNORECASE,
)


def _beside(text: str) -> Iterator[Span]:
    """Hex or base64 as long as a key, in a line that calls it one and no digest."""
    for found in _CANDIDATE().finditer(text):
        value = found[0]
        if not (re.fullmatch("[0-9a-fA-F]+", value) and len(value) % 2 == 0 and len(set(value)) > 6) and not _random(
            value
        ):
            continue
        before = text[max(0, found.start() - 60) : found.start()].rpartition("\n\n")[2]
        after = text[found.end() : found.end() + 30].partition("\n")[0]
        if any(_BESIDE().search(near) for near in (before, after)) and not _DIGESTS().search(before + " " + after):
            yield found.span()


def _random(value: str) -> bool:
    """Whether it looks drawn by lot: all kinds of characters, evenly, and no words."""
    kinds = any(map(str.isdigit, value)) and any(map(str.isupper, value)) and any(map(str.islower, value))
    if not kinds or re.search("[a-z]{10}|[A-Z]{10}", value) or len(re.findall("[a-z]{5}", value)) > 2:
        return False
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values()) > 3.5


_PHRASE = _lazy(
    r"(?:seed|recovery|mnemonic)(?: phrase| words)?(?: is)?[\"']?\s?[:=]?\s?[\"']?"
    r"(?P<value>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})",
    re.IGNORECASE | re.ASCII,
)


def _whole(pattern: Callable[[], re.Pattern[str]], group: str | int = 0) -> Callable[[str], Iterator[Span]]:
    return lambda text: (found.span(group) for found in pattern().finditer(text))


_DIGITS = tuple("0123456789")
_RULES: Sequence[tuple[Sequence[str], Callable[[str], Iterator[Span]]]] = (
    (("private key",), _private_keys),
    (("",), _prefixed),
    ((":",), _whole(_BOT)),
    ((".", "discord"), _whole(_DISCORD)),
    (("-us",), _whole(_MAILCHIMP)),
    (("q~",), _whole(_AZURE_CLIENT)),
    (_DIGITS, _cards),
    (("",), _assigned),
    (("bearer", "basic", "authorization"), _headers),
    (("cookie", "curl"), _cookies),
    (("://",), _userinfo),
    (("-", "login", "password", "echo"), _flags),
    (("",), _beside),
    (("seed", "recovery", "mnemonic"), _whole(_PHRASE, "value")),
)
"""Words of which one must stand in the lower-cased text, and what then looks for secrets."""


# --- known by value ---------------------------------------------------------------------------------------------------


class KnownSecrets:
    """Masks these values wherever they come back: as they are, escaped for JSON, URLs or HTML, in hex or in base64."""

    def __init__(self, values: Iterable[str], shortest: int = SHORTEST) -> None:
        self._values = sorted({value for value in values if len(value) >= shortest}, key=len, reverse=True)

    def __repr__(self) -> str:
        return f"KnownSecrets({MASK})"

    def mask(self, text: str) -> str:
        return self._pattern.sub(MASK, text) if self._values else text

    def mask_json(self, value: Json) -> Json:
        return each_text(value, lambda text, _: self.mask(text)) if self._values else value

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        forms = [form for value in self._values for form in (_escaped(value), *_coded(value))]
        return re.compile("|".join(forms))


def _escaped(value: str) -> str:
    """A pattern for the value with any of its characters escaped in the ways of JSON, URLs and HTML."""
    parts: list[str] = []
    for char in value:
        wide = char.encode("utf-16-be").hex()
        coded = "".join(rf"\\{{1,8}}u{wide[at : at + 4]}" for at in range(0, len(wide), 4))
        percent = "".join(f"%(?:25){{0,3}}{byte:02x}" for byte in char.encode())
        hexed = rf"\\{{1,8}}x{ord(char):02x}|" if ord(char) < 256 else ""
        entity = rf"&\#(?:{ord(char)}|x0{{0,4}}{ord(char):x});"
        plain = rf"\\{{0,8}}{re.escape(char)}" if not char.isalnum() else re.escape(char)
        parts.append(f"(?:{plain}|(?i:{coded}|{hexed}{percent}|{entity}))")
    return "".join(parts)


def _coded(value: str) -> list[str]:
    """Patterns for what of the value is the same in any hex or base64 of a text that holds it."""
    data = value.encode()
    forms = [f"(?i:{data.hex()})"]
    for lead in range(3):
        coded = base64.b64encode(b"\0" * lead + data).decode().rstrip("=")
        first, last = -(-lead * 8 // 6), (lead + len(data)) * 8 // 6
        kept = coded[first:last]
        if len(kept) >= _CODED:
            forms.append(re.escape(kept).replace(r"\+", r"(?:\+|-|%2[bB])").replace("/", r"(?:\\?/|_|%2[fF])"))
    return forms
