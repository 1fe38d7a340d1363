"""What of a session is a remedy: small sessions in remedies.toml, each with what it teaches."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_turns import call

from mulligan.sessions.commands import only_looks, parts, plain
from mulligan.sessions.pairs import State, find

SESSIONS = tomllib.loads(Path(__file__).with_name("remedies.toml").read_text("utf-8"))
CASES: list[dict[str, Any]] = [*SESSIONS["teaches"], *SESSIONS["more"]["teaches"]]


def lessons(case: dict[str, Any]) -> list[str]:
    calls = [call("1", "Bash", case["fails"], case["error"], True)]
    for n, step in enumerate(case.get("between", []), 2):
        if step.startswith("edit "):
            file, _, put_in = step.removeprefix("edit ").partition(": ")
            calls.append(call(str(n), "Edit", file, f"-old\n+{put_in}", False))
        else:
            calls.append(call(str(n), "Bash", step, "", False))
    calls.append(call("99", "Bash", case.get("works", case["fails"]), "ok", False))
    return [one.content for one in find(State("claude", "s"), calls)[1]]


@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{one['fails'][:30]}" for n, one in enumerate(CASES)])
def test_a_remedy_is_what_the_error_is_about(case: dict[str, Any]) -> None:
    contents = lessons(case)
    if case["says"]:
        assert any(case["says"] in one.partition("\nworks")[2] or case["says"] in one for one in contents), contents
        assert all("fails: " in one for one in contents)
    else:
        assert contents == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cd api && CI=1 npm test 2>&1", [("cd", "api"), ("CI=1", "npm", "test")]),
        ('rg -n "a|b" src | head', [("rg", "-n", "a|b", "src"), ("head",)]),
        ("git commit -m \"$(cat <<'EOF'\nx; rm y\nEOF\n)\"", [("git", "commit", "-m", "$(cat \n)")]),
        ("a;b\nc || d & e", [("a",), ("b",), ("c",), ("d",), ("e",)]),
        ("echo 'it''s' >out.txt", [("echo", "its")]),
    ],
)
def test_a_line_is_taken_apart_into_its_commands(line: str, words: list[tuple[str, ...]]) -> None:
    assert parts(line) == words


def test_a_search_for_several_words_only_looks() -> None:
    assert only_looks('rg -n "alpha|beta" src | head -5')
    assert only_looks("cd api && git status --short; ls")
    assert not only_looks("rg -l old | xargs sed -i s/old/new/")
    assert not only_looks("echo x > file")


@given(st.text(alphabet="ab '\"\\|&;<>()$\n=-/", max_size=60))
def test_any_line_can_be_read(line: str) -> None:
    assert all(all(one) or one for one in parts(line))
    assert isinstance(plain(line), str)
