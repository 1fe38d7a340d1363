"""A key that a server echoes is masked in answers, calls, errors and vectors' errors, in every form that it can have."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from forked import run_forked
from hypothesis import given
from hypothesis import strategies as st
from wire_client import KEY, Naps, Wire

from mulligan.core.errors import BadAnswer, ModelError
from mulligan.core.questions import Message, Question, Tool
from mulligan.models.catalog import open_model
from mulligan.models.settings import CallSettings
from mulligan.text.known_secrets import KnownSecrets
from mulligan.text.secrets import MASK

FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "in words": lambda key: f"Your key {key} was used.",
    "in \\u": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "partly in \\U": lambda key: "".join(f"\\u{ord(c):04X}" if n % 2 else c for n, c in enumerate(key)),
    "json in json": lambda key: json.dumps(json.dumps("".join(f"\\u{ord(char):04x}" for char in key))),
    "percent": lambda key: "".join(f"%{ord(char):02X}" for char in key),
    "percent twice": lambda key: quote("".join(f"%{ord(char):02x}" for char in key)),
    "url": lambda key: f"https://x.test/?k={quote(key, safe='')}&b=1",
    "html": lambda key: "".join(f"&#{ord(char)};" for char in key),
    "hex": lambda key: key.encode().hex(),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64, second": lambda key: base64.b64encode(f"a{key}b".encode()).decode(),
    "base64, third": lambda key: base64.b64encode(f"u:{key}".encode()).decode(),
    "base64 for urls": lambda key: base64.urlsafe_b64encode(f"ann:{key}??>".encode()).decode(),
}


def readable(text: str) -> list[str]:
    """What somebody gets out of a text by undoing each form."""
    runs = "".join(char if char.isalnum() or char in "+/-_" else " " for char in text).split()
    found = [text]
    for run in runs:
        for size in range(4):
            for lead in range(4):
                try:
                    piece = run[lead : len(run) - size]
                    found.append(
                        base64.b64decode(piece, altchars="-_" if "-" in run or "_" in run else "+/").decode("latin-1")
                    )
                except ValueError:
                    continue
    return found


def test_all_forms_of_a_value_are_masked() -> None:
    known = KnownSecrets([KEY, "ollama"])
    for form, made in FORMS.items():
        masked = known.mask(made(KEY))
        assert MASK in masked, form
        assert not any(KEY[4:24] in text for text in readable(masked)), form
    assert known.mask("ollama is a program") == "ollama is a program"
    assert known.mask_json({"a": [KEY, 1], KEY: None}) == {"a": [MASK, 1], MASK: None}
    assert KEY not in repr(known)


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40),
    st.text(max_size=20),
    st.integers(0, 2),
)
def test_any_value_in_any_alignment(key: str, around: str, lead: int) -> None:
    known = KnownSecrets([key])
    assert key not in known.mask(around + key + around) or key in MASK
    assert MASK in known.mask(json.dumps(around + key))
    assert MASK in known.mask(quote(key, safe=""))
    assert MASK in known.mask(base64.b64encode(b"x" * lead + key.encode() + around.encode()).decode())


ASKED = Question((Message("user", "What is your key?"),))
OBJECT = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
NAMES = ["openai:gpt-4o", "anthropic:claude-haiku-4-5", "alibaba:qwen-plus"]


def opened(name: str, naps: Naps) -> Any:
    return open_model(name, settings=CallSettings(attempts=1), sleep=naps.sleep)


@pytest.mark.light_cases(6)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
async def test_an_answer_that_holds_the_key(wire: Wire, naps: Naps, name: str, form: str) -> None:
    wire.plays(FORMS[form](KEY), {"answer": {"answer": FORMS[form](KEY)}})
    model = opened(name, naps)
    text = (await model.ask(ASKED)).content
    parsed = (await model.ask(Question(ASKED.messages, OBJECT))).content["answer"]
    for answer in (text, parsed):
        assert MASK in answer
        assert not any(KEY[4:24] in said for said in readable(answer))


@pytest.mark.parametrize("name", NAMES)
async def test_a_call_and_a_model_name_that_hold_the_key(wire: Wire, naps: Naps, name: str) -> None:
    wire.plays({"calls": [{"name": "look", "arguments": {"at": KEY}}], "model": f"m-{KEY}"})
    tool = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
    answer = await opened(name, naps).ask(Question(ASKED.messages, tools=(tool,)))
    assert answer.calls[0].arguments == {"at": MASK}
    assert KEY not in repr(answer)


async def test_an_answer_in_escapes_is_masked_before_it_is_read_as_json(wire: Wire, naps: Naps) -> None:
    escaped = "".join(f"\\u{ord(char):04x}" for char in KEY)
    wire.plays(f'{{"answer": "it is {escaped}"}}', f'no JSON, but "{escaped}" and {KEY}')
    model = opened("alibaba:qwen-plus", naps)
    assert (await model.ask(Question(ASKED.messages, OBJECT))).content == {"answer": f"it is {MASK}"}
    with pytest.raises(BadAnswer) as bad:
        await model.ask(Question(ASKED.messages, OBJECT))
    assert KEY not in repr(bad.value) + str(vars(bad.value))


@pytest.mark.parametrize("form", FORMS)
async def test_an_error_that_holds_the_key(wire: Wire, naps: Naps, form: str) -> None:
    wire.plays({"status": 401, "body": {"error": {"message": f"bad key {FORMS[form](KEY)}"}}})
    with pytest.raises(ModelError) as failed:
        await opened("openai:gpt-4o", naps).ask(ASKED)
    assert not any(KEY[4:24] in said for said in readable(str(failed.value)))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mulligan", *arguments]
    env = {**os.environ, "MULLIGAN_HOME": str(folder / "home"), "XDG_DATA_HOME": str(folder / "home")}
    return run_forked(command, cwd=folder, env=env)


@pytest.mark.slow
def test_a_run_prints_stores_and_exports_no_key(wire: Wire, tmp_path: Path) -> None:
    (tmp_path / "mulligan.toml").write_text('[memory]\nmodel = "openai:gpt-4o"\nembedder = "none"\n')
    lessons = [
        {"title": KEY, "description": FORMS["base64"](KEY), "content": FORMS["in \\u"](KEY), "steps": [1],
         "kind": "", "tags": [KEY]}
    ]  # fmt: skip
    forms = "\n".join(made(KEY) for made in FORMS.values())
    wire.plays(
        forms,
        f"Lesson: use {forms}",
        forms + " 42",
        *[{"answer": {"lessons": lessons, "nothing_because": "", "why": KEY}}] * 3,
    )
    task = ("solve", "Say 42", "--model", "openai:gpt-4o", "--evaluator", "contains:42", "--strategy", "reflexion")
    solved = run(tmp_path, *task, "--trials", "2", "--json", "--memory")
    assert MASK in solved.stdout, solved.stderr
    number = json.loads(solved.stdout.splitlines()[-1])
    exported = run(tmp_path, "runs", "list")
    ids = exported.stdout.split()
    said = [solved.stdout, solved.stderr, exported.stdout, repr(number)]
    for id in [word for word in ids if len(word) == 8]:
        for way in ("json", "md"):
            said.append(run(tmp_path, "runs", "export", id, "--format", way).stdout)
    said.append(run(tmp_path, "memory", "list", "--state", "all").stdout)
    said.append(run(tmp_path, "memory", "export").stdout)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "mulligan.toml"]
    assert any(path.suffix == ".db" for path in files)
    said += [path.read_bytes().decode("latin-1") for path in files]
    for text in said:
        assert KEY not in text
        assert FORMS["hex"](KEY) not in text
        for form in ("base64", "base64, second", "percent", "html", "in \\u"):
            assert FORMS[form](KEY)[8:40] not in text, form
