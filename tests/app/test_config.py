"""mulligan.toml and .env: what is read, what goes before what, and what is said of a broken one."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.app.config import load
from mulligan.app.trusting import trust
from mulligan.core.errors import InvalidInput
from mulligan.text.toml_lines import key_lines, line_of

TOML = '''\
model = "x"  # a [comment] = 1
[models]  # of steps
thinker = { name = "a", list = [1,
2] }
"odd.key".x = """
[not]
a = 1
"""

[mcp."my.server"]
command = [
  "a", # ] }
  'b=c',
]
cwd = '.'
[[several]]
z = 1
[ a . b ]
q.r = 1
'''
NAMES = ("T_A_KEY", "T_B_KEY", "T_C_KEY")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mulligan.toml").write_text("")
    for name in (*NAMES, "MULLIGAN_TRUST_HOME"):  # set and unset, so that what .env sets is taken back
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)
    return tmp_path


def test_lines_of_keys() -> None:
    assert key_lines(TOML) == {
        ("model",): 1,
        ("models",): 2,
        ("models", "thinker"): 3,
        ("models", "odd.key"): 5,
        ("models", "odd.key", "x"): 5,
        ("mcp",): 10,
        ("mcp", "my.server"): 10,
        ("mcp", "my.server", "command"): 11,
        ("mcp", "my.server", "cwd"): 15,
        ("several",): 16,
        ("several", "z"): 17,
        ("a",): 18,
        ("a", "b"): 18,
        ("a", "b", "q"): 19,
        ("a", "b", "q", "r"): 19,
    }
    assert line_of(TOML, ("models", "thinker", "name")) == 3
    assert line_of(TOML, ("nowhere",)) is None


VALUES = st.sampled_from(["1", '"# = ["', "'''\n[x]\ny = 1'''", '"""a\\"""\n"""', "[\n1, # ]\n2]", "{ a = [']'] }"])


@given(st.lists(st.tuples(st.sampled_from(["a", "'b c'", '"d.\\u0065"', "x.y"]), VALUES), unique_by=lambda p: p[0]))
def test_every_key_is_found_on_the_line_that_it_was_written_on(pairs: list[tuple[str, str]]) -> None:
    text, expected = "[t]\n", dict[str, int]()
    for key, value in pairs:
        expected[key] = text.count("\n") + 1
        text += f"{key} = {value}\n"
    tomllib.loads(text)
    for key, line in expected.items():
        (path,) = (
            keys for keys in (("a",), ("b c",), ("d.e",), ("x", "y")) if tomllib.loads(f"{key}=1") == _nest(keys)
        )
        assert line_of(text, ("t", *path)) == line


def _nest(keys: tuple[str, ...]) -> object:
    return {keys[0]: _nest(keys[1:])} if keys else 1


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (b"a = 1\nmodle = 1", ":2 is called 'modle'. Did you mean 'model'?"),
        (b"\n\nmodel = ", ":3: Invalid value"),
        (b"model = " + b"[" * 9999, "cannot be read: "),
        (b"seed = " + b"1" * 9999, "cannot be read: "),
        (b"[models", "Expected ']' at the end of a table declaration"),
        (b"model = 'a'\nx = '\xff'", ":2: not valid UTF-8 (byte 17)"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(project: Path, file: bytes, says: str) -> None:
    (project / "mulligan.toml").write_bytes(file.replace(b"a = 1\n", b"prompts = 'a'\n"))
    with pytest.raises(InvalidInput) as bad:
        load()
    assert f"{project / 'mulligan.toml'}" in str(bad.value)
    assert says in str(bad.value)


def test_model_files_are_looked_for_beside_the_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "mulligan.toml").write_text(
        "model = 'scripted:a.txt'\njudge_model = 'local:w.gguf'\nreflect_model = 'local'"
    )
    trust(project)
    (project / "deep").mkdir()
    monkeypatch.chdir(project / "deep")
    config = load()
    assert config.text("model") == f"scripted:{project / 'a.txt'}"
    assert config.text("judge_model") == f"local:{project / 'w.gguf'}"
    assert config.text("reflect_model") == "local"


def test_dotenv_counts_where_the_environment_says_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("T_B_KEY", "real")
    monkeypatch.delenv("MULLIGAN_HOME")
    home = project / "home"
    (project / ".env").write_bytes(
        f"\ufeff# keys\nexport T_A_KEY='a b'\nT_B_KEY=file\r\nT_C_KEY=${{HOME}}$x #c\nMULLIGAN_HOME={home}\n".encode()
    )
    (project / "deep").mkdir()
    monkeypatch.chdir(project / "deep")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
    trust(project)
    before = (project / ".env").read_bytes()
    assert load().database == home / "mulligan.db"
    assert [os.environ.get(name) for name in NAMES] == ["a b", "real", "${HOME}$x"]
    assert (project / ".env").read_bytes() == before
    assert load().database == home / "mulligan.db", "also for the next command of this process"


def test_a_models_file_in_dotenv_lies_beside_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_MODEL_MINE", "")
    monkeypatch.delenv("MULLIGAN_MODEL_MINE")
    (project / "mulligan.toml").touch()
    (project / ".env").write_text("MULLIGAN_MODEL_MINE=scripted:answers.json")
    trust(project)
    (project / "below").mkdir()
    load(project / "below")
    assert os.environ["MULLIGAN_MODEL_MINE"] == f"scripted:{project.resolve() / 'answers.json'}"


def test_without_a_mulligan_toml_no_dotenv_is_read(project: Path) -> None:
    (project / ".env").write_text("T_A_KEY=1")
    (project / "mulligan.toml").unlink()
    load()
    assert "T_A_KEY" not in os.environ


@pytest.mark.parametrize(
    ("file", "line"),
    [
        (b"T_A_KEY=1\n\nsk-hushhush", 3),
        (b"\n\nT_A_KEY='hushhush\nT_B_KEY=2\n", 3),
        (b"T_A_KEY=1\nhush-hush=hushhush\n", 2),
        (b"T_A_KEY=1\n=hushhush\n", 2),
        (b"T_A_KEY=1\nT_B_KEY=hushhush\xff\n", 2),
        (b"T_A_KEY=hush\0hush\n", 1),
    ],
)
def test_a_broken_dotenv_is_refused_and_nothing_of_it_is_told_or_taken(project: Path, file: bytes, line: int) -> None:
    (project / ".env").write_bytes(file)
    with pytest.raises(InvalidInput) as bad:
        load()
    assert str(bad.value).startswith(f"{project / '.env'}:{line}: ")
    assert "hush" not in str(bad.value)
    assert not set(NAMES) & set(os.environ)
