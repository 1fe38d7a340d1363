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
    "azure": lambda c: _in(
        b64(c, 64), "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};EndpointSuffix=core"
    ),
    "azure sas": lambda c: _in(b64(c, 32).replace("/", "%2F"), "https://x.blob.core.test/c?sv=2024&sig={}&se=2027"),
    "basic": lambda c: _in(base64.b64encode(f"ann:{some(c, 9)}".encode()).decode(), "Authorization: Basic {}"),
    "basic in curl": lambda c: _in(
        base64.b64encode(f"ann:{some(c, 9)}".encode()).decode(), "curl -H 'Authorization: Basic {}' https://x.test"
    ),
    "bearer": lambda c: _in(some(c, 24), "Authorization: Bearer {}"),
    "raw authorization": lambda c: _in(some(c, 24), '"authorization": "{}"'),
    "userinfo": lambda c: _in(some(c, 9), "postgresql://ann:{}@db.test:5432/shop"),
    "userinfo with signs": lambda c: _in(some(c, 6) + "!x", "https://ann:{}@git.test/x.git"),
    "token as user": lambda c: _in(some(c, 20), "git clone https://{}@git.test/x.git"),
    "cookie": lambda c: _in(some(c, 24), "Cookie: lang=en; session={}"),
    "set-cookie": lambda c: _in(some(c, 24), "Set-Cookie: sid={}; Path=/; HttpOnly"),
    "cookie in curl": lambda c: _in(some(c, 24), "curl -b 'sid={}' https://x.test"),
    "curl -u": lambda c: _in(some(c, 9), "curl -s -u ann:{} https://x.test/api"),
    "curl --user": lambda c: _in(some(c, 9), 'curl --user "ann:{}" https://x.test/api'),
    "curl in a list": lambda c: _in(some(c, 9), '["curl", "-u", "ann:{}", "https://x.test"]'),
    "sshpass": lambda c: _in(some(c, 9), "sshpass -p {} ssh ann@host ls"),
    "sshpass quoted": lambda c: _in(some(c, 9), "sshpass -p '{}' ssh ann@host ls"),
    "sshpass joined": lambda c: _in(some(c, 9), "sshpass -p{} ssh ann@host ls"),
    "mysql": lambda c: _in(some(c, 9), "mysql -u root -p{} shop < dump.sql"),
    "--api-key": lambda c: _in(some(c, 20), "tool --api-key {} run"),
    "--token": lambda c: _in(some(c, 20), "tool --token {} run"),
    "--token=": lambda c: _in(some(c, 20), "tool --token={} run"),
    "--password=": lambda c: _in(some(c, 9), "tool --password={} run"),
    "--password word": lambda c: _in("swordfish", "tool --user ann --password {} run"),
    "--password in a list": lambda c: _in(some(c, 9), '["tool", "--password", "{}"]'),
    "docker login": lambda c: _in(some(c, 9), "docker login -u ann -p {} registry.test"),
    ".env": lambda c: _in(some(c, 12), "PORT=80\nDB_PASSWORD={}\nDEBUG=1"),
    ".env token": lambda c: _in(some(c, 20), "export SLACK_TOKEN={}"),
    ".env key": lambda c: _in(some(c, 20), "ACME_API_KEY='{}'"),
    "pgpassword": lambda c: _in(some(c, 9), "PGPASSWORD={} psql -h db"),
    "yaml": lambda c: _in(some(c, 9), "db:\n  user: ann\n  password: {}\n"),
    "json": lambda c: _in(some(c, 9), '{{"user": "ann", "password": "{}"}}'),
    "json in json": lambda c: _in(some(c, 9), r'{{"body": "{{\"password\": \"{}\"}}"}}'),
    "python": lambda c: _in(some(c, 9), "connect(user='ann', password='{}')"),
    "python subscript": lambda c: _in(some(c, 20), 'os.environ["API_TOKEN"] = "{}"'),
    "python annotated": lambda c: _in(some(c, 9), 'password: str = "{}"'),
    "python tuple": lambda c: _in(some(c, 9), '("password", "{}")'),
    "kubernetes": lambda c: _in(some(c, 20), "- name: API_KEY\n  value: {}"),
    "xml": lambda c: _in(some(c, 9), "<password>{}</password>"),
    "query": lambda c: _in(some(c, 20), "https://x.test/a?access_token={}&page=2"),
    "x-api-key": lambda c: _in(some(c, 20), "X-Api-Key: {}"),
    "netrc": lambda c: _in(some(c, 9), "machine x.test login ann password {}"),
    "sql": lambda c: _in(some(c, 9), "CREATE USER ann WITH PASSWORD '{}';"),
    "is": lambda c: _in(some(c, 9), "The password is {}."),
    "is for": lambda c: _in(some(c, 9), "the password for the staging host is {}, ok"),
    "is, a quoted word": lambda c: _in("swordfish", 'The admin password is "{}".'),
    "colon": lambda c: _in(some(c, 9), "Password: {}"),
    "german": lambda c: _in(some(c, 9), "Das Passwort lautet {}."),
    "french": lambda c: _in(some(c, 9), "Le mot de passe est {}."),
    "spanish": lambda c: _in(some(c, 9), "La contraseña es {}."),
    "russian": lambda c: _in(some(c, 9), "Пароль: {}"),
    "chinese": lambda c: _in(some(c, 9), "密码是{}。"),
    "japanese": lambda c: _in(some(c, 9), "パスワードは {} です"),
    "hex beside key": lambda c: _in(some(c, 32, HEX), "the key is {}"),
    "hex beside token": lambda c: _in(some(c, 64, HEX), "token {} was accepted"),
    "hex before token": lambda c: _in(some(c, 40, HEX), "use {} as the API token"),
    "base64 beside key": lambda c: _in(some(c, 44), "my key {}"),
    "card with blanks": lambda c: _in(_fours(luhn(c, "4", 16), " "), "paid with {} today"),
    "card with dashes": lambda c: _in(_fours(luhn(c, "51", 16), "-"), '{{"pan": "{}"}}'),
    "seed phrase": lambda c: _in(
        " ".join(c.choice(("apple", "river", "stone", "cloud")) for _ in range(12)), "seed phrase: {}"
    ),
}
"""Those that are known by what stands beside them."""


def _in(secret: str, text: str) -> tuple[str, str]:
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


_WORDS = ("acorn", "bamboo", "canyon", "dolphin", "ember", "fjord", "glacier", "harbor", "island", "jungle", "kernel")


def phrase(chance: Random, n: int) -> str:
    """n words, as in a wallet or a pass phrase."""
    return " ".join(chance.choice(_WORDS) for _ in range(n))


def signs(chance: Random, n: int) -> str:
    """Letters, digits and the signs that password generators take."""
    return some(chance, n - 2) + chance.choice("!@#^*+=?~") + chance.choice(ALNUM)


def bare(chance: Random, n: int) -> str:
    """Letters and digits as they fall: one of sixteen in sixteen characters has no digit."""
    return "".join(chance.choice(ALNUM) for _ in range(n))


def url(chance: Random, n: int) -> str:
    return base64.urlsafe_b64encode(chance.randbytes(n)).decode().rstrip("=")


def _pair(chance: Random) -> str:
    return base64.b64encode(f"ann:{some(chance, 12)}".encode()).decode()


TERMINAL: dict[str, Callable[[Random], tuple[str, str]]] = {
    # names in which the secret word is not the last
    "SECRET_KEY_BASE": lambda c: _in(some(c, 64, HEX), "RAILS_ENV=production\nSECRET_KEY_BASE={}"),
    "JWT_SECRET_V2": lambda c: _in(bare(c, 24), "$ env | grep JWT\nJWT_SECRET_V2={}"),
    "TOKEN_GITHUB": lambda c: _in(some(c, 24), "export TOKEN_GITHUB={}"),
    "staging": lambda c: _in(b64(c, 30), "AWS_SECRET_ACCESS_KEY_STAGING={}"),
    "ROOT_PW": lambda c: _in(some(c, 10), "+ ROOT_PW={}"),
    "PW": lambda c: _in(some(c, 10), "PW='{}' ./deploy.sh"),
    "DB_PASSWORD_FOR_TESTS": lambda c: _in(signs(c, 12), "DB_PASSWORD_FOR_TESTS={}"),
    "camel": lambda c: _in(some(c, 20), '{{"apiKeyProd": "{}", "region": "eu"}}'),
    "camel password": lambda c: _in(some(c, 9), "const dbPasswordStaging = '{}';"),
    "dashed": lambda c: _in(some(c, 20), "x-api-key-staging: {}"),
    "API_KEY": lambda c: _in(bare(c, 16), "API_KEY={}"),
    "API_KEY quoted": lambda c: _in(bare(c, 16), 'API_KEY="{}"'),
    "api_key yaml": lambda c: _in(bare(c, 16), "openai:\n  api_key: {}\n  model: small"),
    "api_key json": lambda c: _in(bare(c, 16), '{{"api_key": "{}"}}'),
    "API_KEY urlsafe": lambda c: _in(url(c, 12), "API_KEY={}"),
    "ACCESS_TOKEN": lambda c: _in(bare(c, 32), "ACCESS_TOKEN={} ./run"),
    "compose": lambda c: _in(some(c, 12), "environment:\n  - POSTGRES_PASSWORD={}\n  - TZ=UTC"),
    "docker -e": lambda c: _in(bare(c, 16), "docker run -e STRIPE_SECRET={} app"),
    "word as a password": lambda c: _in("swordfish", "MYSQL_ROOT_PASSWORD={}"),
    # configuration files
    "docker auth": lambda c: _in(_pair(c), '{{"auths": {{"ghcr.io": {{"auth": "{}"}}}}}}'),
    "docker auth, lines": lambda c: _in(_pair(c), '"auths": {{\n\t"https://index.docker.io/v1/": {{\n\t\t"auth": "{}"'),
    "identity token": lambda c: _in(url(c, 40), '"identitytoken": "{}"'),
    "npm _auth": lambda c: _in(_pair(c), "//registry.test/:_auth={}"),
    "npm _auth, quoted": lambda c: _in(_pair(c), '_auth = "{}"'),
    "npm _authToken": lambda c: _in(some(c, 36), "//registry.test/:_authToken={}"),
    "npm _password": lambda c: _in(b64(c, 12), "//registry.test/:_password={}"),
    ".pgpass": lambda c: _in(some(c, 10), "$ cat ~/.pgpass\ndb.test:5432:shop:ann:{}"),
    ".pgpass with stars": lambda c: _in(signs(c, 10), "*:*:*:postgres:{}"),
    ".pgpass localhost": lambda c: _in("swordfish", "localhost:5432:*:ann:{}"),
    "netrc, lines": lambda c: _in(some(c, 12), "machine api.test\n  login ann\n  password {}"),
    "git-credentials": lambda c: _in(some(c, 20), "https://ann:{}@git.test"),
    "wpa psk": lambda c: _in(some(c, 12), 'network={{\n  ssid="home"\n  psk="{}"\n}}'),
    "psk bare": lambda c: _in(some(c, 64, HEX), "psk={}"),
    "wireguard": lambda c: _in(b64(c, 32), "[Interface]\nPrivateKey = {}\nAddress = 10.0.0.2/32"),
    "wireguard psk": lambda c: _in(b64(c, 32), "PresharedKey = {}"),
    "kubeconfig": lambda c: _in(b64(c, 90), "users:\n- name: ann\n  user:\n    client-key-data: {}"),
    "kubernetes secret": lambda c: _in(b64(c, 12), "kind: Secret\ndata:\n  password: {}"),
    "toml": lambda c: _in(some(c, 12), '[db]\npassword = "{}"'),
    "ini": lambda c: _in(some(c, 12), "[client]\nuser=root\npassword={}"),
    "properties": lambda c: _in(some(c, 12), "spring.datasource.password={}"),
    "xml element": lambda c: _in(some(c, 12), "<server><password>{}</password></server>"),
    "xml attribute": lambda c: _in(some(c, 12), '<add name="db" password="{}" />'),
    "xml key value": lambda c: _in(some(c, 20), '<add key="ApiKey" value="{}" />'),
    "plist": lambda c: _in(some(c, 20), "<key>apiToken</key>\n\t<string>{}</string>"),
    "powershell": lambda c: _in(some(c, 12), '$env:DB_PASSWORD = "{}"'),
    "securestring": lambda c: _in(some(c, 12), 'ConvertTo-SecureString "{}" -AsPlainText -Force'),
    "setx": lambda c: _in(some(c, 20), "setx API_TOKEN {}"),
    "hcl": lambda c: _in(some(c, 12), 'variable "db_password" {{\n  default = "{}"\n}}'),
    "hcl argument": lambda c: _in(some(c, 20), 'client_secret = "{}"'),
    "dsn words": lambda c: _in(some(c, 10), "host=db user=ann password={} dbname=shop"),
    "jdbc": lambda c: _in(some(c, 10), "jdbc:mysql://db:3306/shop?user=ann&password={}"),
    "sqlserver": lambda c: _in(some(c, 10), "Server=db;User Id=sa;Password={};Encrypt=True"),
    "pwd": lambda c: _in(some(c, 10), "Server=db;Uid=sa;Pwd={};"),
    "rails credentials": lambda c: _in(some(c, 32, HEX), "config/master.key\n{}"),
    "jwk": lambda c: _in(url(c, 32), '{{"kty":"EC","crv":"P-256","x":"abc","y":"def","d":"{}"}}'),
    "jwk rsa": lambda c: _in(url(c, 128), '{{\n "kty": "RSA",\n "n": "0vx7",\n "e": "AQAB",\n "dp": "{}"\n}}'),
    "jwk oct": lambda c: _in(url(c, 32), '{{"k": "{}", "kty": "oct", "alg": "HS256"}}'),
    "private key, one line": lambda c: _in(
        b64(c, 90), '{{"private_key": "-----BEGIN ' + "PRIVATE KEY-----\\n{}\\n-----END " + 'PRIVATE KEY-----\\n"}}'
    ),
    # wallets
    "mnemonic": lambda c: _in(phrase(c, 12), 'MNEMONIC="{}"'),
    "mnemonic, 24": lambda c: _in(phrase(c, 24), "mnemonic: {}"),
    "mnemonic, json": lambda c: _in(phrase(c, 12), '{{"mnemonic": "{}"}}'),
    "mnemonic, told": lambda c: _in(phrase(c, 12), "Your recovery phrase:\n\n  {}\n\nKeep it safe."),
    "mnemonic, backup": lambda c: _in(phrase(c, 24), "wallet words: {}"),
    # addresses that let anybody in
    "s3 presigned": lambda c: _in(
        some(c, 64, HEX), "https://b.s3.amazonaws.com/k?X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature={}"
    ),
    "s3 v2": lambda c: _in(
        b64(c, 20).replace("+", "%2B"), "https://b.s3.amazonaws.com/k?AWSAccessKeyId=x&Signature={}&Expires=1700000000"
    ),
    "security token": lambda c: _in(url(c, 90), "https://b.s3.test/k?X-Amz-Security-Token={}&X-Amz-Date=20260101"),
    "gcs presigned": lambda c: _in(some(c, 128, HEX), "https://storage.googleapis.com/b/o?X-Goog-Signature={}"),
    "azure sas": lambda c: _in(
        b64(c, 32).replace("+", "%2B").replace("/", "%2F").replace("=", "%3D"),
        "https://x.blob.core.windows.net/c/b?sp=r&sv=2022-11-02&sr=b&sig={}",
    ),
    "cloudfront": lambda c: _in(url(c, 90), "https://d1.cloudfront.net/f?Expires=1&Signature={}&Key-Pair-Id=K1"),
    # code
    "fernet": lambda c: _in(base64.urlsafe_b64encode(c.randbytes(32)).decode(), "f = Fernet(b'{}')"),
    "fernet, double": lambda c: _in(base64.urlsafe_b64encode(c.randbytes(32)).decode(), 'Fernet("{}").decrypt(x)'),
    "bytes": lambda c: _in(some(c, 20), "SECRET_KEY = b'{}'"),
    "setdefault": lambda c: _in(some(c, 20), "os.environ.setdefault('API_KEY', '{}')"),
    "getenv": lambda c: _in(some(c, 20), "os.getenv('API_TOKEN', '{}')"),
    "hmac": lambda c: _in(some(c, 20), "hmac.new(b'{}', body, 'sha256')"),
    "jwt encode": lambda c: _in(some(c, 20), "jwt.encode(payload, '{}', algorithm='HS256')"),
    # command lines
    "smbclient": lambda c: _in(some(c, 10), "smbclient //host/share -U ann%{}"),
    "smbclient domain": lambda c: _in(some(c, 10), "smbclient //host/share -U 'CORP\\ann%{}'"),
    "mount cifs": lambda c: _in(some(c, 10), "mount -t cifs -o username=ann,password={},uid=1000 //h/s /mnt"),
    "openssl pass": lambda c: _in(some(c, 10), "openssl rsa -in k.pem -passin pass:{}"),
    "openssl enc": lambda c: _in(some(c, 10), "openssl enc -aes-256-cbc -k {} -in a -out b"),
    "openssl quoted": lambda c: _in(some(c, 10), 'openssl pkcs12 -export -passout "pass:{}" -out x.p12'),
    "sqlcmd": lambda c: _in(some(c, 10), "sqlcmd -S db -U sa -P {} -Q 'select 1'"),
    "sqlcmd quoted": lambda c: _in(signs(c, 10), 'sqlcmd -S db -U sa -P "{}"'),
    "bcp": lambda c: _in(some(c, 10), "bcp shop.dbo.t out f -S db -U sa -P{}"),
    "ldapsearch": lambda c: _in(some(c, 10), "ldapsearch -x -D cn=admin -w {} -b dc=x"),
    "zip": lambda c: _in(some(c, 10), "zip -P {} out.zip f"),
    "unzip": lambda c: _in(some(c, 10), "unzip -P {} out.zip"),
    "7z": lambda c: _in(some(c, 10), "7z x -p{} a.7z"),
    "mongosh": lambda c: _in(some(c, 10), "mongosh --host db -u ann -p {}"),
    "mysql quoted": lambda c: _in(signs(c, 10), "mysql -u root -p'{}' shop"),
    "mysql long": lambda c: _in("swordfish", "mysql --user=root --password={} shop"),
    "redis-cli": lambda c: _in("swordfish", "redis-cli -h r -a {} ping"),
    "curl proxy": lambda c: _in(some(c, 10), "curl -x http://p:3128 -U ann:{} https://x.test"),
    "curl password in list": lambda c: _in(some(c, 10), "curl --digest --user ann:{} https://x.test"),
    "curl header": lambda c: _in(some(c, 24), "curl -H 'X-Auth-Token: {}' https://x.test"),
    "private token": lambda c: _in(some(c, 20), "curl --header 'PRIVATE-TOKEN: {}' https://git.test"),
    "curl data": lambda c: _in(some(c, 12), "curl -d 'user=ann&password={}' https://x.test/login"),
    "curl json": lambda c: _in(some(c, 12), """curl -d '{{"user":"ann","pass":"{}"}}' https://x.test/login"""),
    "httpie": lambda c: _in(some(c, 10), "http -a ann:{} https://x.test"),
    "wget": lambda c: _in(some(c, 10), "wget --user=ann --password={} https://x.test"),
    "sshpass env": lambda c: _in(some(c, 10), "SSHPASS={} sshpass -e ssh ann@h"),
    "chpasswd": lambda c: _in(some(c, 10), "echo 'root:{}' | chpasswd"),
    "chpasswd, sudo": lambda c: _in(some(c, 10), 'echo "ann:{}" | sudo chpasswd'),
    "chpasswd, here": lambda c: _in(some(c, 10), "chpasswd <<< 'root:{}'"),
    "chpasswd, document": lambda c: _in(some(c, 10), "chpasswd <<EOF\nroot:{}\nEOF"),
    "here-string": lambda c: _in(some(c, 10), "sudo -S apt update <<< '{}'"),
    "here-string, login": lambda c: _in(some(c, 20), 'docker login -u ann --password-stdin <<< "{}"'),
    "passwd stdin": lambda c: _in(some(c, 10), "echo {} | passwd --stdin ann"),
    "printf": lambda c: _in(some(c, 20), "printf '%s' '{}' | docker login -u ann --password-stdin"),
    "echo login": lambda c: _in(some(c, 20), "echo {} | gh auth login --with-token"),
    "cryptsetup": lambda c: _in(some(c, 10), "echo -n '{}' | cryptsetup open /dev/sdb x -"),
    "secret put": lambda c: _in(some(c, 20), "echo '{}' | gh secret set API_KEY"),
    "gpg": lambda c: _in(phrase(c, 4), "gpg --batch --passphrase '{}' -c f"),
    "phrase": lambda c: _in(phrase(c, 4), 'SSH_PASSPHRASE="{}"'),
    "phrase, yaml": lambda c: _in(phrase(c, 5), 'passphrase: "{}"'),
    "phrase, python": lambda c: _in(phrase(c, 4), "load(pem, password='{}')"),
    "phrase, ssh-keygen": lambda c: _in(phrase(c, 4), 'ssh-keygen -t ed25519 -N "{}" -f id'),
    "ssh-keygen": lambda c: _in(some(c, 10), "ssh-keygen -t ed25519 -N {} -f id"),
    "psql": lambda c: _in(some(c, 10), "psql 'host=db user=ann password={}'"),
    "vault": lambda c: _in(some(c, 20), "vault kv put secret/app password={}"),
    "kubectl": lambda c: _in(some(c, 12), "kubectl create secret generic db --from-literal=password={}"),
    "from-literal": lambda c: _in(some(c, 20), "kubectl create secret generic db --from-literal=api-key={}"),
    "helm": lambda c: _in(some(c, 12), "helm install db x --set auth.postgresPassword={}"),
    "keytool": lambda c: _in(some(c, 12), "keytool -list -storepass {} -keystore k.jks"),
    "ansible": lambda c: _in(some(c, 12), "ansible-playbook x.yml -e ansible_become_pass={}"),
    "xfreerdp": lambda c: _in(some(c, 12), "xfreerdp /u:ann /p:{} /v:host"),
    "net use": lambda c: _in(some(c, 12), "net use Z: \\\\host\\share {} /user:ann"),
    "lftp": lambda c: _in(some(c, 12), "lftp -u ann,{} ftp.test"),
    "aws configure": lambda c: _in(b64(c, 30), "aws configure set aws_secret_access_key {}"),
    "npm config set": lambda c: _in(some(c, 36), "npm config set //registry.test/:_authToken {}"),
    "git config": lambda c: _in(some(c, 20), "git config http.extraheader 'AUTHORIZATION: bearer {}'"),
    "set-cookie": lambda c: _in(url(c, 24), "< set-cookie: session={}; Path=/; HttpOnly; Secure"),
    "basic": lambda c: _in(_pair(c), "> Authorization: Basic {}"),
    "csrf": lambda c: _in(url(c, 24), '<input type="hidden" name="csrf_token" value="{}">'),
    "identified": lambda c: _in(some(c, 10), "ALTER USER ann IDENTIFIED BY '{}';"),
    "printed": lambda c: _in(some(c, 12), "Generated root password: {}"),
    "temporary": lambda c: _in(signs(c, 12), "A temporary password is generated for root@localhost: {}"),
    "one-time": lambda c: _in(some(c, 20), "Your API token is: {}"),
    "entered": lambda c: _in(some(c, 10), "Enter password: {}"),
    "totp": lambda c: _in(some(c, 32, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"), "otpauth://totp/x:ann?secret={}&issuer=x"),
}
"""What shells, tools and configuration files show of secrets."""


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
