"""What of a session is a remedy: small sessions in remedies.toml, each with what it teaches."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from session_turns import call

from mulligan.sessions.commands import chained, only_looks, parts
from mulligan.sessions.pairs import State, find
from mulligan.sessions.plain_command import plain

SESSIONS = tomllib.loads(Path(__file__).with_name("remedies.toml").read_text("utf-8"))
CASES: list[dict[str, Any]] = [*SESSIONS["teaches"], *SESSIONS["more"]["teaches"]]


def lessons(case: dict[str, Any]) -> list[str]:
    calls = [call("1", "Bash", case["fails"], case["error"], True)]
    for n, step in enumerate(case.get("between", []), 2):
        if step.startswith("edit "):
            file, _, put_in = step.removeprefix("edit ").partition(": ")
            calls.append(call(str(n), "Edit", file, f"-old\n+{put_in}", False))
        else:
            calls.append(call(str(n), "Bash", step, case.get("prints", "done"), False))
    calls.append(call("99", "Bash", case.get("works", case["fails"]), case.get("ends", "ok"), False))
    return [one.content for one in find(State("claude", "s"), calls)[1]]


@pytest.mark.slow
def test_a_remedy_is_what_the_error_is_about() -> None:
    learned = [(case, lessons(case)) for case in CASES]
    assert [(case, contents) for case, contents in learned if not is_as_it_says(case, contents)] == []
    assert {bool(case["says"]) for case in CASES} == {True, False}


def is_as_it_says(case: dict[str, Any], contents: list[str]) -> bool:
    if not case["says"]:
        return contents == []
    return any(case["says"] in one for one in contents) and all("fails: " in one for one in contents)


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


@each_row(
    ("line", "worked"),
    [
        ("cd web && npm run lint 2>&1 && npm test", ["npm run lint", "npm test"]),
        ("npm run lint && npm test 2>&1 | tail -5", ["npm run lint"]),
        ("npm run lint | head && npm test", ["npm test"]),
        ("npm run lint; npm test", []),
        ("npm run lint || npm test", []),
        ("npm run lint & npm test", []),
        ("git commit -m 'a && b' && git push", ["git commit -m 'a && b'", "git push"]),
        ("npm run lint", ["npm run lint"]),
        ("npm ci && cd api && npm run lint", ["npm ci"]),
        ("npm ci && cd api", ["npm ci"]),
    ],
)
def test_a_line_that_works_says_what_of_it_has_worked(line: str, worked: list[str]) -> None:
    assert [one for one in chained(line) if not one.startswith("cd ")] == worked


def habits(*events: tuple[str, str, bool]) -> list[str]:
    calls = [call(str(n), "Bash", command, output, failed) for n, (command, output, failed) in enumerate(events)]
    return [one.content for one in find(State("claude", "s"), calls)[1] if one.habit]


FOUND = ("npm run lint", "Checked 3 files. No fixes applied.\nFound 1 error.", True)
"""A check of style whose output has nothing that an error is known by."""
FIXED = ("npm run lint:fix", "Fixed 1 file.", False)


@pytest.mark.parametrize(
    "then",
    [
        (FIXED, ("npm run lint", "ok", False)),
        (FIXED, ("npm run lint 2>&1 && npm test", "ok", False)),
        (FIXED, FOUND, FIXED, ("npm run lint", "ok", False)),
    ],
)
def test_a_check_of_style_goes_with_what_fixes_it_whatever_it_found(then: tuple[tuple[str, str, bool], ...]) -> None:
    assert habits(FOUND, *then) == ["fails: npm run lint\nworks after:\n  npm run lint:fix"]


@pytest.mark.parametrize(
    "then",
    [
        (("npm run lint", "ok", False),),
        (FIXED, ("npm test", "ok", False)),
        (FIXED, ("npm run lint; npm test", "ok", False)),
        (FIXED, FOUND, ("npm run lint", "ok", False)),  # it was not the fixer
        (("npm install", "ok", False), ("npm run lint", "ok", False)),
    ],
)
def test_else_a_check_of_style_that_names_nothing_teaches_nothing(then: tuple[tuple[str, str, bool], ...]) -> None:
    calls = [call(str(n), "Bash", *one) for n, one in enumerate((FOUND, *then))]
    assert list(find(State("claude", "s"), calls)[1]) == []


@each_row(
    ("check", "between", "fixer"),
    [
        ("npm run lint", ["npm run lint:fix", "sed -i s/a/b/ x.ts"], ""),
        ("npm run lint", ["npm run lint:fix", "cat > a.ts <<'E'\nx\nE"], ""),
        ("npm run check", ["npm audit fix"], ""),
        ("npm run check", ["npm run db:fix"], ""),
        ("cargo check", ["cargo fix --allow-dirty"], ""),
        ("docker ps --format x", ["docker run fix"], ""),
        ("kubectl diff --check", ["kubectl apply -f fix.yml"], ""),
        ('git commit -m "style: x"', ["git checkout -b fix/x"], ""),
        ("python check.py", ["python fix.py"], ""),
        ("python -m check", ["python deploy.py --apply"], ""),
        ("node scripts/check.js", ["node scripts/migrate.js --write"], ""),
        ("terraform fmt -check", ["terraform fmt"], "terraform fmt"),
        ("make lint", ["make format"], "make format"),
        ("yarn format:check", ["yarn format"], "yarn format"),
        ("npx prettier --check .", ["npx prettier --write ."], "npx prettier --write ."),
        ("ruff check", ["ruff check --fix"], "ruff check --fix"),
    ],
)
def test_a_fixer_is_the_tool_of_the_check(check: str, between: list[str], fixer: str) -> None:
    failed = (check, "\n", True)
    found = habits(failed, *((step, "", False) for step in between), (check, "ok", False))
    assert found == ([f"fails: {check}\nworks after:\n  {fixer}"] if fixer else [])


@pytest.mark.parametrize("line", ['git commit -m "a && npm test"', "npm test || npm test --silent", "echo npm test"])
def test_a_test_that_is_only_named_or_may_have_failed_ends_nothing(line: str) -> None:
    events = (("npm test", "Error: Cannot find module 'x'", True), ("npm ci", "", False), (line, "ok", False))
    calls = [call(str(n), "Bash", *one) for n, one in enumerate(events)]
    assert list(find(State("claude", "s"), calls)[1]) == []


@given(st.text(alphabet="ab '\"\\|&;<>()$\n=-/", max_size=60))
def test_any_line_can_be_read(line: str) -> None:
    assert all(all(one) or one for one in parts(line))
    assert isinstance(plain(line), str)


@pytest.mark.parametrize(
    ("fails", "error", "step", "works", "ends"),
    [
        (
            "node run.js",
            "Error: Cannot find module 'yaml'",
            "npm install yaml",
            "node run.js | tail -3",
            "Segmentation fault",
        ),
        (
            "black --check .",
            "would reformat a.py",
            "black src",
            "black --check . | tail -3",
            "1 file would be reformatted",
        ),
        (
            "node run.js",
            "Error: Cannot find module 'yaml'",
            "npm install yaml",
            "node run.js | tail -3",
            "12 tests, 3 bad",
        ),
        (
            "node run.js",
            "Error: Cannot find module 'yaml'",
            "npm install yaml",
            "set -o pipefail; node run.js | tail -5; echo $?",
            "bad\n1",
        ),
        ("sudo -l", "helper: not found", "cp helper /etc/sudoers", "sudo -l", "ok"),
    ],
)
def test_an_end_that_does_not_say_that_it_worked_and_a_safeguard_teach_nothing(
    fails: str, error: str, step: str, works: str, ends: str
) -> None:
    events = ((fails, error, True), (step, "done", False), (works, ends, False))
    calls = [call(str(n), "Bash", *one)._replace(folder="/etc") for n, one in enumerate(events)]
    assert list(find(State("claude", "s"), calls)[1]) == []


def test_a_check_of_style_that_ran_in_another_folder_overcame_that_its_script_was_not_found() -> None:
    found = 'check ━━━━━━━━━━━━━━\n\n  × Some errors were emitted while running checks.\n\n\nerror: script "lint" exited with code 1'
    events = (("bun run lint", 'error: Script not found "lint"'), ("cd .. && bun run lint", found))
    calls = [call(str(n), "Bash", command, output, True) for n, (command, output) in enumerate(events)]
    assert [one.content.split("\n")[-1] for one in find(State("claude", "s"), calls)[1]] == [
        "works: cd .. && bun run lint"
    ]


def test_many_substitutions_before_a_command_are_read_in_time() -> None:
    line = "A=" + "$(a)" * 5_000 + '"'
    assert plain(line) == line
