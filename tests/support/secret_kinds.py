"""Secrets of many kinds, drawn by lot, each in its usual form, and the places where such things stand.

Nothing here is a real secret: each is made by `random`, and none stands whole in this file, so that no scanner takes it
for a leak.
"""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable
from random import Random

HEX, ALNUM = "0123456789abcdef", string.ascii_letters + string.digits


def some(chance: Random, n: int, of: str = ALNUM) -> str:
    """n characters, of a kind in which digits, small and large letters are all among the first three, where it can."""
    text = [chance.choice(of) for _ in range(n)]
    for at, group in enumerate((string.digits, string.ascii_lowercase, string.ascii_uppercase)):
        if at < n and (there := [char for char in group if char in of]):
            text[at] = chance.choice(there)
    return "".join(text)


def b64(chance: Random, n: int) -> str:
    return base64.b64encode(chance.randbytes(n)).decode()


def luhn(chance: Random, first: str, length: int) -> str:
    digits = first + "".join(chance.choice("0123456789") for _ in range(length - 1 - len(first)))
    doubled = [int(d) * (2 - at % 2) for at, d in enumerate(reversed(digits))]
    return digits + str(-sum(n - 9 if n > 9 else n for n in doubled) % 10)


Make = Callable[[Random], str]

BY_LOOK: dict[str, Make] = {
    "openai": lambda c: "sk" + "-proj-" + some(c, 48),
    "anthropic": lambda c: "sk" + "-ant-api03-" + some(c, 60),
    "aws": lambda c: "AKI" + "A" + some(c, 16, string.ascii_uppercase + "234567"),
    "github": lambda c: "gh" + "p_" + some(c, 36),
    "github fine": lambda c: "github" + "_pat_" + some(c, 60),
    "gitlab": lambda c: "glp" + "at-" + some(c, 20),
    "google": lambda c: "AIz" + "a" + some(c, 35),
    "huggingface": lambda c: "h" + "f_" + some(c, 34),
    "slack": lambda c: "xox" + "b-" + some(c, 12, string.digits) + "-" + some(c, 24),
    "stripe": lambda c: "sk" + "_live_" + some(c, 24),
    "npm": lambda c: "np" + "m_" + some(c, 36),
    "pypi": lambda c: "py" + "pi-AgEIcHlwaS5vcmc" + some(c, 70),
    "sendgrid": lambda c: "S" + "G." + some(c, 22) + "." + some(c, 43),
    "jwt": lambda c: "ey" + "JhbGciOiJIUzI1NiJ9.ey" + "J" + some(c, 40) + "." + some(c, 43),
    "digitalocean": lambda c: "do" + "p_v1_" + some(c, 64, HEX),
    "age": lambda c: "AGE-SECRET" + "-KEY-1" + some(c, 58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
    "telegram": lambda c: f"{c.randrange(10**9, 10**10 - 1)}:" + "AA" + some(c, 33),
    "discord": lambda c: "M" + some(c, 25) + "." + some(c, 6) + "." + some(c, 38),
    "twilio": lambda c: "S" + "K" + some(c, 32, HEX),
    "shopify": lambda c: "shp" + "at_" + some(c, 32, HEX),
    "vault": lambda c: "hv" + "s." + some(c, 28),
    "databricks": lambda c: "dap" + "i" + some(c, 32, HEX),
    "visa": lambda c: luhn(c, "4", 16),
    "mastercard": lambda c: luhn(c, "53", 16),
    "amex": lambda c: luhn(c, "37", 15),
    "pem": lambda c: "\n".join(
        ("-----BEGIN " + "PRIVATE KEY-----", *(b64(c, 48) for _ in range(4)), "-----END " + "PRIVATE KEY-----")
    ),
}
"""Those that are known wherever they stand."""

ANYWHERE: dict[str, Callable[[str], str]] = {
    "alone": lambda s: s,
    "sentence": lambda s: f"I used {s} and it worked.",
    "json": lambda s: json.dumps({"output": f"got {s}", "ok": True}),
    "json in json": lambda s: json.dumps({"body": json.dumps({"a": [s]})}),
    "shell": lambda s: f"$ export THING='{s}' && ./run.sh --verbose",
    "log": lambda s: f"2026-01-02T03:04:05.678Z INFO [main] sending {s} (attempt 1)",
    "query": lambda s: f"GET /v1/items?auth={s}&page=2 HTTP/1.1",
    "header": lambda s: f"X-Thing: {s}\r\nAccept: */*",
    "yaml": lambda s: f"service:\n  thing: {s}\n  port: 80",
    "python": lambda s: f"client = Client(thing={s!r}, retries=3)",
    "brackets": lambda s: f"[{s}]({s})",
    "markdown": lambda s: f"Set it to `{s}`, please.",
}

BY_WORDS: dict[str, Callable[[Random], tuple[str, str]]] = {
    # the secret, and a text that it stands in
    "azure": lambda c: within(
        b64(c, 64), "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};EndpointSuffix=core"
    ),
    "azure sas": lambda c: within(b64(c, 32).replace("/", "%2F"), "https://x.blob.core.test/c?sv=2024&sig={}&se=2027"),
    "basic": lambda c: within(base64.b64encode(f"ann:{some(c, 9)}".encode()).decode(), "Authorization: Basic {}"),
    "basic in curl": lambda c: within(
        base64.b64encode(f"ann:{some(c, 9)}".encode()).decode(), "curl -H 'Authorization: Basic {}' https://x.test"
    ),
    "bearer": lambda c: within(some(c, 24), "Authorization: Bearer {}"),
    "raw authorization": lambda c: within(some(c, 24), '"authorization": "{}"'),
    "userinfo": lambda c: within(some(c, 9), "postgresql://ann:{}@db.test:5432/shop"),
    "userinfo with signs": lambda c: within(some(c, 6) + "!x", "https://ann:{}@git.test/x.git"),
    "token as user": lambda c: within(some(c, 20), "git clone https://{}@git.test/x.git"),
    "cookie": lambda c: within(some(c, 24), "Cookie: lang=en; session={}"),
    "set-cookie": lambda c: within(some(c, 24), "Set-Cookie: sid={}; Path=/; HttpOnly"),
    "cookie in curl": lambda c: within(some(c, 24), "curl -b 'sid={}' https://x.test"),
    "curl -u": lambda c: within(some(c, 9), "curl -s -u ann:{} https://x.test/api"),
    "curl --user": lambda c: within(some(c, 9), 'curl --user "ann:{}" https://x.test/api'),
    "curl in a list": lambda c: within(some(c, 9), '["curl", "-u", "ann:{}", "https://x.test"]'),
    "sshpass": lambda c: within(some(c, 9), "sshpass -p {} ssh ann@host ls"),
    "sshpass quoted": lambda c: within(some(c, 9), "sshpass -p '{}' ssh ann@host ls"),
    "sshpass joined": lambda c: within(some(c, 9), "sshpass -p{} ssh ann@host ls"),
    "mysql": lambda c: within(some(c, 9), "mysql -u root -p{} shop < dump.sql"),
    "--api-key": lambda c: within(some(c, 20), "tool --api-key {} run"),
    "--token": lambda c: within(some(c, 20), "tool --token {} run"),
    "--token=": lambda c: within(some(c, 20), "tool --token={} run"),
    "--password=": lambda c: within(some(c, 9), "tool --password={} run"),
    "--password word": lambda c: within("swordfish", "tool --user ann --password {} run"),
    "--password in a list": lambda c: within(some(c, 9), '["tool", "--password", "{}"]'),
    "docker login": lambda c: within(some(c, 9), "docker login -u ann -p {} registry.test"),
    ".env": lambda c: within(some(c, 12), "PORT=80\nDB_PASSWORD={}\nDEBUG=1"),
    ".env token": lambda c: within(some(c, 20), "export SLACK_TOKEN={}"),
    ".env key": lambda c: within(some(c, 20), "ACME_API_KEY='{}'"),
    "pgpassword": lambda c: within(some(c, 9), "PGPASSWORD={} psql -h db"),
    "yaml": lambda c: within(some(c, 9), "db:\n  user: ann\n  password: {}\n"),
    "json": lambda c: within(some(c, 9), '{{"user": "ann", "password": "{}"}}'),
    "json in json": lambda c: within(some(c, 9), r'{{"body": "{{\"password\": \"{}\"}}"}}'),
    "python": lambda c: within(some(c, 9), "connect(user='ann', password='{}')"),
    "python subscript": lambda c: within(some(c, 20), 'os.environ["API_TOKEN"] = "{}"'),
    "python annotated": lambda c: within(some(c, 9), 'password: str = "{}"'),
    "python tuple": lambda c: within(some(c, 9), '("password", "{}")'),
    "kubernetes": lambda c: within(some(c, 20), "- name: API_KEY\n  value: {}"),
    "xml": lambda c: within(some(c, 9), "<password>{}</password>"),
    "query": lambda c: within(some(c, 20), "https://x.test/a?access_token={}&page=2"),
    "x-api-key": lambda c: within(some(c, 20), "X-Api-Key: {}"),
    "netrc": lambda c: within(some(c, 9), "machine x.test login ann password {}"),
    "sql": lambda c: within(some(c, 9), "CREATE USER ann WITH PASSWORD '{}';"),
    "is": lambda c: within(some(c, 9), "The password is {}."),
    "is for": lambda c: within(some(c, 9), "the password for the staging host is {}, ok"),
    "is, a quoted word": lambda c: within("swordfish", 'The admin password is "{}".'),
    "colon": lambda c: within(some(c, 9), "Password: {}"),
    "german": lambda c: within(some(c, 9), "Das Passwort lautet {}."),
    "french": lambda c: within(some(c, 9), "Le mot de passe est {}."),
    "spanish": lambda c: within(some(c, 9), "La contraseña es {}."),
    "russian": lambda c: within(some(c, 9), "Пароль: {}"),
    "chinese": lambda c: within(some(c, 9), "密码是{}。"),
    "japanese": lambda c: within(some(c, 9), "パスワードは {} です"),
    "hex beside key": lambda c: within(some(c, 32, HEX), "the key is {}"),
    "hex beside token": lambda c: within(some(c, 64, HEX), "token {} was accepted"),
    "hex before token": lambda c: within(some(c, 40, HEX), "use {} as the API token"),
    "base64 beside key": lambda c: within(some(c, 44), "my key {}"),
    "card with blanks": lambda c: within(_fours(luhn(c, "4", 16), " "), "paid with {} today"),
    "card with dashes": lambda c: within(_fours(luhn(c, "51", 16), "-"), '{{"pan": "{}"}}'),
    "seed phrase": lambda c: within(
        " ".join(c.choice(("apple", "river", "stone", "cloud")) for _ in range(12)), "seed phrase: {}"
    ),
}
"""Those that are known by what stands beside them."""


def within(secret: str, text: str) -> tuple[str, str]:
    return secret, text.format(secret)


def _fours(digits: str, between: str) -> str:
    return between.join(digits[at : at + 4] for at in range(0, len(digits), 4))


AROUND: dict[str, Callable[[str], str]] = {
    "alone": lambda t: t,
    "lines": lambda t: f"first line\n{t}\nlast line",
    "step": lambda t: f"Observation 3: {t}",
    "fence": lambda t: f"```\n{t}\n```",
    "indented": lambda t: "\n".join("    " + line for line in t.splitlines()),
    "json": lambda t: json.dumps({"stdout": t, "exit": 0}),
    "json twice": lambda t: json.dumps({"body": json.dumps({"stdout": t})}),
    "repr": lambda t: repr({"stdout": t}),
    "long": lambda t: "word " * 200 + "\n" + t + "\n" + "word " * 200,
}


def shows(secret: str, text: str) -> bool:
    """Whether the secret, or a line of it, is still in the text, as it is or escaped once or twice."""
    once = json.dumps(secret)[1:-1]
    long = [line for line in secret.splitlines() if len(line) >= 30]
    return any(piece in text for piece in (secret, once, json.dumps(once)[1:-1], *long))


ORDINARY: dict[str, Make] = {
    "uuid": lambda c: "-".join(some(c, n, HEX) for n in (8, 4, 4, 4, 12)),
    "git commit": lambda c: "commit " + some(c, 40, HEX),
    "short commit": lambda c: some(c, 7, HEX),
    "sha256": lambda c: "sha256:" + some(c, 64, HEX),
    "md5 line": lambda c: some(c, 32, HEX) + "  archive.tar.gz",
    "isbn": lambda c: "ISBN 978-3-" + some(c, 4, string.digits) + "-" + some(c, 4, string.digits) + "-7",
    "isbn, bare": lambda c: luhn(c, "978", 13),
    "epoch": lambda c: str(c.randrange(1_600_000_000_000, 1_800_000_000_000)),
    "date": lambda c: (
        f"20{c.randrange(10, 30)}-0{c.randrange(1, 10)}-1{c.randrange(10)}T12:{c.randrange(10, 60)}:05.123456Z"
    ),
    "phone": lambda c: "+49 30 " + some(c, 4, string.digits) + " " + some(c, 4, string.digits),
    "us phone": lambda c: f"(415) 555-{c.randrange(1000, 9999)}",
    "float": lambda c: repr(c.random() * 4000),
    "long number": lambda c: "1" + some(c, 15, string.digits),
    "path": lambda c: f"/usr/lib/python3.{c.randrange(9, 14)}/site-packages/tokenize_{c.randrange(9)}.py",
    "version": lambda c: f"package-{c.randrange(9)}.{c.randrange(99)}.{c.randrange(99)}+build.{c.randrange(999)}",
    "code": lambda c: f"token = tokens[{c.randrange(99)}]; key = row['key_{c.randrange(99)}']; password = getpass()",
    "types": lambda c: (
        "def login(user: str, password: str, api_key: str | None = None, max_tokens: int = 4096) -> Token:"
    ),
    "variables": lambda c: (
        'password=$DB_PASSWORD api_key=${API_KEY} --token "$TOKEN" -u "$USER:$PASS" token={{ token }}'
    ),
    "holders": lambda c: "password=<your password> api_key=YOUR_API_KEY token=*** secret=xxxxxxxx --password PASSWORD",
    "environment": lambda c: "api_key=os.environ['ACME_API_KEY'], token = settings.token, secret=config.secret",
    "prose": lambda c: (
        "The password is wrong, so the token was refused; the key is to read the basic rules of cookies first."
    ),
    "advice": lambda c: (
        "Password: at least 8 characters. The secret is to sort first. The token is expired after 30 days."
    ),
    "docker": lambda c: f"docker run -u 1000:1000 -p {c.randrange(1024, 9999)}:80 --name web nginx",
    "ports": lambda c: f"http://localhost:{c.randrange(1024, 9999)}/path?to=a@b.test&page=2#key",
    "key words": lambda c: "primary key id, foreign key user_id, key=value, sort_key=name, keyboard, monkey=banana",
    "tests": lambda c: "assert sorted([3, 1, 2], key=lambda pair: pair[1]) == [1, 2, 3]",
}
"""What looks like a secret at first sight."""
