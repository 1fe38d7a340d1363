"""Common shapes of keys are masked, whatever stands around them; ordinary text is left alone."""

import json
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from each_row import each_row
from hypothesis import given, settings
from hypothesis import strategies as st
from secret_forms import TERMINAL, bare, url
from secret_kinds import ANYWHERE, AROUND, BY_LOOK, BY_WORDS, ORDINARY, shows, some

from mulligan.text.secret_rules import find_secrets
from mulligan.text.secrets import MASK, Masks, mask, mask_attempt, mask_json

# put together here, so that no scanner takes this file for a leak
LINE = "MIIEowIBAAKCAQEA" * 4
PEM = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{LINE}\n{LINE}\n-----END RSA {'PRIVATE'} KEY-----"


@each_row(
    "secret",
    [
        "sk" + "-proj-abcdefgh1234567890ABCDEFGH",
        "sk" + "-ant-api03-abcdefgh1234567890-xyz_AA",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "ASIA" + "IOSFODNN7EXAMPLE",
        "ghp" + "_" + "a1B2c3D4e5" * 4,
        "github" + "_pat_" + "a1B2c3D4e5" * 4,
        "glpat" + "-" + "a1B2c3D4e5" * 2,
        "AIza" + "a1B2c3D4e5" * 3 + "abcde",
        "hf" + "_" + "a1B2c3D4e5" * 3,
        "xoxb" + "-1234567890-abcdefghij",
        "sk" + "_live_" + "a1B2c3D4e5" * 2,
        "npm" + "_" + "a1B2c3" * 6,
        "SG" + ".a1B2c3D4e5a1B2c3D4e5.a1B2c3D4e5a1B2c3D4e5",
        "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        PEM,
        PEM.partition("\n-----END")[0],
    ],
)
def test_a_secret_is_masked_wherever_it_stands(secret: str) -> None:
    assert mask(secret) == MASK
    assert mask(f'key="{secret}"') == f'key="{MASK}"'
    assert secret not in mask(f"first {secret}\nthen {secret}")


def test_what_stands_around_a_secret_is_kept() -> None:
    token = "abcdef0123456789abcdef"
    assert mask(f"Authorization: Bearer {token}, sent") == f"Authorization: Bearer {MASK}, sent"
    assert mask("postgres://ann:s3cret@db/x and bob") == f"postgres://ann:{MASK}@db/x and bob"
    assert mask("password=hunter2hunter, then") == f"password={MASK}, then"
    assert mask('"client_secret": "a1b2c3d4e5f6"') == f'"client_secret": "{MASK}"'
    assert mask("AWS_SECRET_ACCESS_KEY = wJalrXUtnFEMI/K7MDENG") == f"AWS_SECRET_ACCESS_KEY = {MASK}"
    assert mask("https://x.test/?token=abc123def456&page=2") == f"https://x.test/?token={MASK}&page=2"
    assert mask(f"a\n{PEM}\nb") == f"a\n{MASK}\nb"


@each_row(
    "text",
    [
        "risk-assessment-2-of-the-new-method",
        "sk-learn is scikit-learn",
        "the Bearer of these presents",
        "http://localhost:8080/path?to=a@b",
        "a hash: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "-----BEGIN PUBLIC KEY-----",
        "AKIA is four letters",
        "password: str = field()",
        "api_key = os.environ['OPENAI_API_KEY_2']",
        "max_tokens=1000000000, token = tokens[0]",
        "the password: at least 8 characters",
        "token=12345678",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert mask(text) == text


@given(
    st.text() | st.lists(st.sampled_from(["sk-", "a1b2c3d4e5f6g7h8", " ", "Bearer ", "://u:", "@", PEM])).map("".join)
)
def test_masking_again_changes_nothing(text: str) -> None:
    assert mask(mask(text)) == mask(text)


def test_json_is_masked_all_through() -> None:
    secret = "ghp" + "_" + "a1B2c3D4e5" * 4
    value = {"a": [1, None, {"b": f"x {secret}"}], secret: True}
    assert mask_json(value) == {"a": [1, None, {"b": f"x {MASK}"}], MASK: True}


LOTS = st.integers(0, 10**6)
FEW = settings(max_examples=max(1, settings().max_examples // 30))  # hundreds of kinds, in many places each


@given(LOTS)
@FEW
def test_a_key_is_known_by_its_look_anywhere(lot: int) -> None:
    shown = list[tuple[str, str, str]]()
    for kind, make in BY_LOOK.items():
        secret = make(Random(lot))
        for where, place in ANYWHERE.items():
            masked = mask(place(secret))
            if shows(secret, masked) or mask(masked) != masked:
                shown.append((kind, where, masked))
    assert not shown


@pytest.mark.slow
@given(LOTS)
@FEW
def test_a_secret_is_known_by_the_words_beside_it(lot: int) -> None:
    shown = list[tuple[str, str, str]]()
    for kind, make in [*BY_WORDS.items(), *TERMINAL.items()]:
        secret, text = make(Random(lot))
        for where, place in AROUND.items():
            masked = mask(place(text))
            if shows(secret, masked) or mask(masked) != masked:
                shown.append((kind, where, masked))
    assert not shown


@given(LOTS)
@FEW
def test_what_only_looks_like_a_secret_is_left_alone(lot: int) -> None:
    changed = list[tuple[str, str]]()
    for kind, make in ORDINARY.items():
        text = make(Random(lot))
        for place in (*ANYWHERE.values(), *AROUND.values()):
            names_it = place in (ANYWHERE["yaml"], ANYWHERE["query"])  # "auth="
            if not names_it and mask(place(text)) != place(text):
                changed.append((kind, place(text)))
    assert not changed


def test_at_most_one_of_fifty_look_alikes_is_changed() -> None:
    """Lines of terminals, code and prose that hold words such as token, key and pass, and no secret."""
    lines = Path(__file__).with_name("look_alikes.txt").read_text(encoding="utf-8").splitlines()
    changed = [
        line
        for line in lines
        if mask(line) != line or mask(json.dumps([f"a\n{line}\nb"])) != json.dumps([f"a\n{line}\nb"])
    ]
    assert len(lines) > 200
    assert len(changed) * 50 <= len(lines), changed


@pytest.mark.slow
def test_a_key_of_sixteen_characters_is_masked_also_without_a_digit() -> None:
    """Of random letters and digits, one value in sixteen has no digit."""
    chance = Random(7)
    for _ in range(2000):
        for value in (bare(chance, 16), url(chance, 12)):
            assert value not in mask(f"API_KEY={value}")


def test_a_secret_in_the_arguments_of_a_tool_is_masked() -> None:
    chance = Random(11)
    key, word, login = some(chance, 20), some(chance, 10), "YW5uOk1heTIwMjY="
    values: list[Any] = [
        {"env": {"SECRET_KEY_BASE": key, "ROOT_PW": word}},
        {"env": [{"name": "DB_PASSWORD", "value": word}, {"Key": "API_TOKEN", "Value": key}]},
        {"auths": {"ghcr.io": {"auth": login}}},
        {"argv": ["tool", "--password", word, "--api-key", key]},
        {"jwk": {"kty": "EC", "crv": "P-256", "d": key + key}},
        {"passphrase": "acorn bamboo canyon dolphin"},
        {"apiKeyProd": key, "dbPassword": word, "authToken": key},
    ]
    for value in values:
        masked = json.dumps(mask_json(value))
        assert not any(part in masked for part in (key, word, login, "bamboo")), masked
    harmless = {
        "token_count": "512 of 4096a",
        "tokenizer": "cl100k_base",
        "auth": "oauth2",
        "sort_key": "created_at_1",
        "k": "a1b2c3d4e5f6a7b8",
    }
    assert mask_json(harmless) == harmless


NAMES = [
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "passcode",
    "pass",
    "rediscli_auth",
    "pw",
    "dbPw",
    "psk",
    "pre-shared-key",
    "kennwort",
    "mot_de_passe",
    "contraseña",
    "senha",
    "wachtwoord",
    "hasło",
    "пароль",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "비밀번호",
    "secret",
    "api_key",
    "access_key",
    "account_key",
    "shared_access_key",
    "private_key",
    "client_secret",
    "auth_key",
    "signing_key",
    "encryption_key",
    "master_key",
    "license_key",
    "token",
    "credential",
    "phpsessid",
    "jsessionid",
    "sig",
    "subscription_key",
    "x-amz-signature",
    "my_key",
]


@each_row("name", [one.replace("mot_de_passe", "mot de passe") for one in NAMES])
def test_each_name_of_a_secret_is_known_in_any_case_and_as_json_escapes_it(name: str) -> None:
    for form in (
        name,
        name.upper() if name != "dbPw" else name,
        json.dumps(name)[1:-1],
        json.dumps(json.dumps(name))[3:-3],
    ):
        assert mask(f"the {form}=a1B2c3D4e5F6g7H8") == f"the {form}={MASK}"


@each_row("name", [one.replace("mot_de_passe", "mot de passe") for one in NAMES if not one.isascii()])
def test_a_name_is_known_whether_its_letters_are_composed_or_not(name: str) -> None:
    """File names of macOS have ñ as n and a tilde."""
    parted = unicodedata.normalize("NFD", name)
    for form in (parted, parted.upper(), json.dumps(parted)[1:-1], json.dumps(json.dumps(parted))[3:-3]):
        assert mask(f"the {form}=a1B2c3D4e5F6g7H8") == f"the {form}={MASK}"
    assert mask_json({parted: "hunter22xQ"}) == {parted: MASK}


@each_row("name", [*NAMES, "İDENTİFİED BY '", "the key on Kelvin's scale, PA\u017f\u017fWORD"])
def test_no_letter_hides_a_name(name: str) -> None:
    """İ has two small letters: what stands behind it has another index there."""
    name = name.replace("mot_de_passe", "mot de passe")
    for form in (name, name.upper() if name != "dbPw" else name):
        assigned = f"{form}Hunter22xQ8'" if form.endswith("'") else f"{form}=a1B2c3D4e5F6g7H8"
        assert MASK in mask(f"İ, {assigned}")


BREAKS = ["\n", "\r\n", "\r", "\r\r\n", "\f", "\v", "\x85", "\u2028", "\\n", "\\r\\n"]
IN_LINES = [
    "password,user,id|hunter22xQ,bob,3|x9!second,ann,4|",
    "user,password|bob,hunter22xQ|ann,x9!second|",
    "user;id;api_key|bob;3;hunter22xQ|ann;4;x9!second|",
    "user\tpassword|bob\thunter22xQ|ann\tx9!second|",
    "the list:|pass: hunter22xQ|",
    "op read it|hunter22xQ12345|",
    "sha256 of it||the secret key 0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "the secret key 0f1e2d3c4b5a69788796a5b4c3d2e1f0|md5 of it",
    "seed phrase:|" + "|".join(["apple", "bread", "candy", "delta", "eagle", "flame"] * 2),
]


@each_row(("text", "line_break"), [(text, line_break) for text in IN_LINES for line_break in BREAKS])
def test_a_secret_is_found_whatever_ends_its_lines(text: str, line_break: str) -> None:
    masked = mask(text.replace("|", line_break))
    assert MASK in masked
    assert not any(shows(part, masked) for part in ("hunter22xQ", "x9!second", "0f1e2d3c4b5a6978", "candy"))


@each_row(
    "table",
    [
        'name,password\n"Smith, Ann",hunter22xQ\n',
        '"name","password"\n"Smith, Ann","hunter22xQ"\n',
        'name,password,note\n"Smith, ""Ann"" B.",hunter22xQ,"a, b"\n',
        "password,path\nsecret77xQ,C:\\new\nhunter22xQ,C:\\old\n",
        "path;password\nC:\\new;secret77xQ\nC:\\old;hunter22xQ\n",
    ],
)
def test_what_stands_beside_a_secret_in_a_table_does_not_hide_it(table: str) -> None:
    for text in (table, table.replace("\n", "\r\n"), json.dumps(table), json.dumps(json.dumps(table))):
        assert "22xQ" not in mask(text)
        assert "77xQ" not in mask(text)


def test_a_number_is_a_card_by_its_brand_length_and_check_digit() -> None:
    good, bad = "4111" + "1111" * 3, "4111" + "1111" * 2 + "1112"
    assert mask(f"pay {good}, not {bad}, nor 1{good} or {good}1") == f"pay {MASK}, not {bad}, nor 1{good} or {good}1"
    assert mask("0000 0000 0000 0000") == "0000 0000 0000 0000"


def test_the_same_value_has_the_same_mask_and_another_has_another() -> None:
    text = "password=abc123def and password=xyz789uvw, then abc123def again"
    assert mask(text) == f"password={MASK} and password=[secret masked 2], then {MASK} again"
    assert mask(mask(text)) == mask(text)
    added = mask(text) + "; password=new456new"
    assert mask(added) == mask(text) + "; password=[secret masked 3]"


def test_texts_that_belong_together_share_their_masks() -> None:
    told = {"steps": ["try abc123def", "password=abc123def", {"password": "word"}], "token": "abc123def"}
    assert Masks().json(told) == {
        "steps": [f"try {MASK}", f"password={MASK}", {"password": "[secret masked 2]"}],
        "token": MASK,
    }
    assert mask_json({"password": "word", "user": "word", "token": "word", "api_key": "a1b2c3d4e5"}) == {
        "password": MASK,
        "user": "word",
        "token": "word",
        "api_key": MASK,
    }


def test_what_stands_in_the_task_is_shown_to_its_judge() -> None:
    masked = mask_attempt("password=abc123def opens it, password=xyz789uvw does not", "Is password=abc123def right?")
    assert masked.startswith(
        "password=abc123def opens it, password=[secret masked 2] does not\n\n(Secrets are shown as"
    )
    assert mask_attempt("nothing here", "task") == "nothing here"


@pytest.mark.parametrize("before", ["password=", "token: ", "--password ", 'api_key="', "ghp" + "_"])
def test_a_long_secret_is_masked_to_its_end(before: str) -> None:
    assert "a1a1" not in mask(before + "a1" * 900 + " and more")


def test_images_are_no_text() -> None:
    image = {"media_type": "image/png", "data": "AKI" + "A" + "ABCDEFGHIJKLMNOP"}
    assert mask_json([image]) == [image]


HOSTILE = [
    "a", "1", "12-", "=", "password", "password=", "password: ", "password is ", "token=", "token=a", "key ", "--token ",
    "-u a:", "curl ", "curl -u ", "mysql -p", "docker login ", "eyJ", "eyJaaaaaaaa.", "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN ", "\\", '"', 'password\\"', "cookie: a=", "cookie: a=b;", "://", "a://a:", "authorization: ", "Basic aaaa",
    "4111111111111111 ", "seed phrase ", "apple ", 'password,"', "login a password ", "echo a", "[secret masked]",
    "pass", "_pass=", "password for ", "is generated for a:", "SECRET_", "secret.", "_key", "auth: ", "wallet ", "apple\n",
    'kty "d":', "*:5432:", "a:5432:b:c:", "chpasswd <<", "chpasswd <<a\n", "root:abcd ", "echo a | ", "echo a | chpasswd",
    "openssl enc ", "-pass pass:", "zip -P", "net use \\\\", "smbclient -U a%", "Fernet(", "jwt.sign(a,", "config set a_token ",
    "docker login <<<", "gpg --passphrase-fd", 'password = "a b c ', "--password 'a b", 'password" { a ', "</key>\n", " -N ",
    "f" * 31 + " key ", "deadbeef0123456789abcdef01234567 key ", "password=ab12cd34 ", "\\u043f", "пароль",
]  # fmt: skip
"""Pieces that, said over and over, would cost a pattern that goes back the square of their number."""

STEPS = """
import json, sys
from mulligan.text.secrets import mask
for piece in json.load(sys.stdin):
    text = (piece * (SIZE // len(piece) + 1))[:SIZE]
    mask(text)
    print(len(text), flush=True)
"""


@pytest.mark.slow
def test_hostile_text_is_masked_in_time() -> None:
    """The square of 300,000 steps takes minutes each; all together get 20 minutes."""
    code = STEPS.replace("SIZE", "300_000")
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(HOSTILE), capture_output=True, text=True, timeout=1200
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["300000"] * len(HOSTILE)


DATA = Path(__file__).parents[2] / "../shared/data"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(inner)


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("replay/mbpp-gpt4-20-episodes.json", 300),
        ("retrieval/tau2-banking/corpus.jsonl", 2000),
        ("retrieval/tau2-banking/queries.jsonl", 90),
        ("retrieval/webarena-intents/tasks.jsonl", 1600),
    ],
)
def test_real_texts_without_secrets_are_left_alone(name: str, least: int) -> None:
    if not (DATA / name).is_file():
        pytest.skip("needs ../shared/data")
    rows = (DATA / name).read_text().splitlines() if name.endswith("l") else [(DATA / name).read_text()]
    texts = [text for row in rows for text in _texts(json.loads(row))]
    assert len(texts) >= least
    assert [text for text in texts if find_secrets(text)] == []
