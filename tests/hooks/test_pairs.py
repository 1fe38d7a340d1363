"""What is found in a session without a model: failures that were overcome, and corrections by the user."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_transcripts import FORMATS, in_format
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from session_turns import call

from mulligan.app.transcripts import read_transcript
from mulligan.core.turns import Turn
from mulligan.sessions.effects import going_around
from mulligan.sessions.happenings import happened
from mulligan.sessions.mends import follows
from mulligan.sessions.pairs import Found, State, find
from mulligan.sessions.signature import digest, keys_at, signature

MISSING = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'yaml'"


def sh(command: str, output: str = "", failed: bool | None = False) -> Turn:
    sh.n += 1  # type: ignore[attr-defined]
    return call(f"c{sh.n}", "Bash", command, output, failed)  # type: ignore[attr-defined]


sh.n = 0  # type: ignore[attr-defined]


def found(*events: Turn) -> list[Found]:
    return find(State("claude", "s"), events)[1]


def contents(*events: Turn) -> list[str]:
    return [one.content for one in found(*events)]


def user(text: str) -> Turn:
    return Turn("user", text)


def test_the_same_command_that_is_green_later_teaches_what_was_done_between() -> None:
    (one,) = found(
        sh("pytest", MISSING, True),
        sh("cat setup.py", "..."),
        sh("pip install pyyaml", "ok"),
        sh("cd /work && pytest 2>&1", "1 passed"),
    )
    assert one.content == (
        "fails: pytest\n  ModuleNotFoundError: No module named 'yaml'\nworks after:\n  pip install pyyaml"
    )
    assert one.title == "pytest: ModuleNotFoundError: No module named 'yaml'"
    lesson = one.lesson()
    assert (lesson.nature, lesson.confirmed, lesson.tags) == ("fact", False, ("hook",))
    assert (one.seen["fails"], one.seen["works"]) == (MISSING, "1 passed")


def test_another_way_that_works_is_the_lesson() -> None:
    assert contents(sh("pytest -x", "bash: pytest: command not found", True), sh("uv run pytest -x", "3 passed")) == [
        "fails: pytest -x\n  bash: pytest: command not found\nworks: uv run pytest -x"
    ]
    assert contents(sh("npm run biuld", 'npm error Missing script: "biuld"', True), sh("npm run build", "built"))


def test_a_variable_that_makes_the_same_command_work_is_the_lesson() -> None:
    fails = sh("cd api && python app.py", "RuntimeError: MODE is not set", True)
    assert contents(fails, sh("MODE=local python app.py", "up")) == [
        "fails: python app.py\n  RuntimeError: MODE is not set\nworks: MODE=local python app.py"
    ]
    assert contents(fails, sh("cd api && export MODE=local && python app.py", "up"))[0].endswith(
        "works: MODE=local python app.py"
    )
    (both,) = contents(fails, sh("pip install uvloop", "ok"), sh("MODE=local python app.py", "up"))
    assert both.endswith("works: MODE=local python app.py")
    set_before = sh("MODE=local python app.py", "RuntimeError: PORT is not set", True)
    assert contents(set_before, sh("MODE=local python app.py", "up")) == []  # it was flaky
    (masked,) = contents(fails, sh("API_TOKEN=sk-ant-api03-abcdefghijklmnopqrstuvwxyz01 MODE=x python app.py", "up"))
    assert "sk-ant" not in masked


def test_the_same_difference_of_two_commands_is_the_same_lesson() -> None:
    fails = "/usr/bin/python3: No module named shop"
    (one,) = found(sh("python a.py", fails, True), sh("PYTHONPATH=src python a.py", "ok"))
    (other,) = found(sh("python b.py --dry", fails, True), sh("PYTHONPATH=src python b.py --dry", "ok"))
    assert set(one.mends) == set(other.mends)
    assert set(one.errors) & set(other.errors)
    assert follows(sh("PYTHONPATH=src python c.py", "ok"), ("python c.py",), one.mends)
    assert not follows(sh("python c.py", "ok"), ("python c.py",), one.mends)


def test_an_error_of_the_environment_is_overcome_though_the_tests_then_fail() -> None:
    fails = sh("pytest", "bash: pytest: command not found", True)
    assert contents(fails, sh("uv run pytest", "E   AssertionError: assert 3 == 4", True)) == [
        "fails: pytest\n  bash: pytest: command not found\nworks: uv run pytest"
    ]
    assert contents(fails, sh("python -m pytest", "python: No module named pytest", True)) == []


def test_what_the_output_proposes_and_was_done_names_the_error() -> None:
    (one,) = found(
        sh("helm template a", "Error: run `helm dependency build`: missing in charts/: redis", True),
        sh("helm dependency build a"),
        sh("helm template a", "kind: Deployment"),
    )
    other = "Error: run `helm dependency build`: missing in charts/: nats"
    assert set(one.errors) & set(keys_at("helm upgrade b", other))
    assert not set(one.errors) & set(keys_at("helm upgrade b", other.replace("dependency build", "repo update")))


@each_row(
    ("fails", "error", "between", "works", "again", "its_error"),
    [
        (
            "pens peek red-pen",
            "Error: No writer running in pen 'red-pen'",
            ["pens start --pen red-pen"],
            "pens peek red-pen",
            "pens peek blue-pen-2",
            "Error: No writer running in pen 'blue-pen-2'",
        ),
        (
            "docker exec web env",
            "Error response from daemon: No such container: web",
            ["docker compose up -d"],
            "docker exec web env",
            "docker exec db ls /",
            "Error response from daemon: No such container: db",
        ),
        (
            "kubectl get pod cart",
            'Error from server (NotFound): pods "cart" not found',
            [],
            "kubectl get pod cart -n shop",
            "kubectl get pod mail",
            'Error from server (NotFound): pods "mail" not found',
        ),
    ],
)
def test_an_error_that_names_an_argument_is_the_same_with_another_one(
    fails: str, error: str, between: list[str], works: str, again: str, its_error: str
) -> None:
    (one,) = found(sh(fails, error, True), *map(sh, between), sh(works, "fine"))
    assert set(one.errors) & set(keys_at(again, its_error))
    assert not set(one.errors) & set(keys_at(f"other{again}", its_error))
    assert not set(one.errors) & set(keys_at(again, "Error: it is not running as root"))


@each_row(
    ("fails", "error", "between", "works", "again", "its_error"),
    [
        (  # the argument is what the error is about
            "python -m pytest",
            "python: No module named pytest",
            ["pip install pytest"],
            "python -m pytest",
            "python -m mypy",
            "python: No module named mypy",
        ),
        (
            "npm run biuld",
            'npm error Missing script: "biuld"',
            [],
            "npm run build",
            "npm run tset",
            'npm error Missing script: "tset"',
        ),
        (
            "nx test cart",
            "NX   Cannot find project 'cart'",
            [],
            "nx test web-cart",
            "nx test mail",
            "NX   Cannot find project 'mail'",
        ),
    ],
)
def test_a_remedy_for_one_argument_is_none_for_another(
    fails: str, error: str, between: list[str], works: str, again: str, its_error: str
) -> None:
    (one,) = found(sh(fails, error, True), *map(sh, between), sh(works, "fine"))
    assert not set(one.errors) & set(keys_at(again, its_error))


OLD_BUILD = "SyntaxError: Export named 'Cart' not found in module '/w/shop/core/dist/index.js'."


@each_row(
    ("fails", "error", "step", "works", "output"),
    [
        (
            "bun cli.ts guide",
            OLD_BUILD,
            "bun run build",
            "bun cli.ts guide | sed -n '1,80p'",
            "# Guide\nIf it fails: ...",
        ),
        ("npm start", "Error: Cannot find module 'express'", "npm ci", "npm start 2>&1 | head -20", "listening on :80"),
        ("pytest", MISSING, "pip install pyyaml", "pytest | cat", "collected 4 items\n...."),
    ],
)
def test_an_error_of_the_environment_is_overcome_where_a_filter_shows_how_the_output_begins(
    fails: str, error: str, step: str, works: str, output: str
) -> None:
    (one,) = contents(sh(fails, error, True), sh(step, "done"), sh(works, output))
    assert one.startswith(f"fails: {fails}\n")
    assert f"works after:\n  {step}" in one


@pytest.mark.parametrize(
    ("works", "output"),
    [
        ("npm start 2>&1 | head -20", ""),
        ("npm start 2>&1 | head -20", "Error: Cannot find module 'cors'"),
        ("npm start 2>&1 | head -20", "3 failing"),
        ("npm start 2>&1 | tail -3", "    at require (x.js:1:2)"),
        ("npm start | grep port", "port 80"),
        ("npm start | head -20 || true", "listening"),
    ],
)
def test_what_a_filter_hides_overcomes_nothing(works: str, output: str) -> None:
    missing = sh("npm start", "Error: Cannot find module 'express'", True)
    assert contents(missing, sh("npm ci", "done"), sh(works, output)) == []
    asserts = sh("npm start", "AssertionError: assert 3 == 4", True)
    assert contents(asserts, sh("npm ci", "done"), sh("npm start | head", "listening")) == []


def test_a_home_folder_is_named_for_no_user() -> None:
    fails = sh("tools/send x", "zsh:1: no such file or directory: tools/send", True)
    (one,) = contents(fails, sh("/home/ada/.agents/tools/send x", "ok"))
    assert one.endswith("works: ~/.agents/tools/send x")


def test_an_edit_teaches_only_what_it_changes_in_the_rules_of_the_project() -> None:
    fails = sh("ruff check", "src/a.py:1:1: E402 see per-file-ignores: fixtures/", True)
    code = call("e", "Edit", "src/a.py", "-x = 1\n+x = 2", False)
    rules = call("f", "Edit", "pyproject.toml", "-select = []\n+per-file-ignores = { fixtures = [E402] }", False)
    assert contents(fails, code, sh("ruff check", "ok")) == []
    (one,) = contents(fails, rules, sh("ruff check", "ok"))
    assert "change pyproject.toml: -select = [] +per-file-ignores" in one


def test_a_test_is_overcome_by_a_run_that_holds_it() -> None:
    fails = sh("pytest tests/test_a.py::test_b -q", MISSING, True)
    remedy = sh("pip install pyyaml", "")
    assert len(found(fails, remedy, sh("pytest tests/test_a.py", "2 passed"))) == 1
    assert len(found(fails, remedy, sh("pytest", "9 passed"))) == 1
    assert found(fails, remedy, sh("pytest tests/test_c.py", "2 passed")) == []


@each_row(
    "events",
    [
        (sh("pytest", MISSING, True), sh("pytest", "1 passed")),  # flaky
        (sh("pytest", MISSING, True), sh("cat a", "x"), sh("git status", "x"), sh("pytest", "1 passed")),
        (sh("cat a.txt", "cat: a.txt: No such file or directory", True), sh("touch a.txt"), sh("cat a.txt", "")),
        (sh("pytest", MISSING, True), sh("pip install pyyaml"), sh("pytest | tail -5", "1 failed")),  # tail's exit code
        (sh("pytest", MISSING, True), sh("pip install pyyaml"), sh("pytest || true", "1 failed")),
        (sh("pytest", MISSING, True), sh("pip install pyyaml"), sh("pytest", "", None)),  # nobody says
        (sh("pytest", MISSING, True), sh("pip install pyyaml")),  # never green
        (sh("pytest", MISSING, None), sh("pip install pyyaml"), sh("pytest", "1 passed")),  # denied
    ],
)
def test_what_teaches_nothing(events: tuple[Turn, ...]) -> None:
    assert found(*events) == []


@each_row(
    "steps",
    [
        ["git commit --no-verify -m a"],
        ["HUSKY=0 git commit -m a"],
        ["git commit -nm a"],
        ["git push --force"],
        ["git push -f origin main"],
        ["git reset --hard origin/main"],
        ["git checkout ."],
        ["git clean -fdx"],
        ["rm tests/test_a.py"],
        ["git rm -f spec/a_spec.rb"],
        ["mv tests/test_a.py /tmp/"],
        ["rm -rf src"],
        ["pytest --deselect tests/test_a.py::test_x"],
        ["chmod -R 777 /usr/lib"],
        ["sudo chown -R me /usr/lib"],
        ["kill -9 4711"],
        ["docker system prune -af"],
        ["docker compose down -v"],
        ["psql -c 'DROP TABLE users'"],
        ["terraform destroy -auto-approve"],
        ["npm config set strict-ssl false"],
        ["export NODE_TLS_REJECT_UNAUTHORIZED=0 ; npm ping"],
        ["pre-commit uninstall"],
    ],
)
def test_what_destroys_or_goes_around_a_safeguard_is_no_remedy(steps: list[str]) -> None:
    assert contents(sh("make all", MISSING, True), *map(sh, steps), sh("make all", "ok")) == []


@each_row(
    "step",
    [
        "rm -rf node_modules && npm ci",
        "rm -rf build dist",
        "rm .git/index.lock",
        "rm -rf /home/me/shop/tmp/clones/a1",
        "git push --force-with-lease",
        "git restore --staged a.py",
        "chmod +x run.sh",
        "npm cache clean --force",
        "docker compose up -d",
        "kill 4711",
    ],
)
def test_what_only_looks_destructive_may_be_a_remedy(step: str) -> None:
    assert going_around(step) == ""


def test_a_change_that_skips_a_test_is_no_remedy() -> None:
    fails = sh("pytest", "FAILED tests/test_a.py::test_x - AssertionError: assert 1 == 2", True)
    edit = call("e1", "Edit", "tests/test_a.py", "+@pytest.mark.skip\n+def test_x():", False)
    assert contents(fails, edit, sh("pytest", "1 skipped")) == []


def test_each_error_on_the_way_has_its_own_mend() -> None:
    first, second = found(
        sh("make", "error: no compiler", True),
        sh("apt-get install gcc"),
        sh("make", "error: no header", True),
        sh("apt-get install libc-dev"),
        sh("make", "done"),
    )
    assert "apt-get install gcc" in first.content
    assert "libc-dev" not in first.content
    assert "apt-get install libc-dev" in second.content


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        ("No, use make check here.", "No, use make check here."),
        ("Thanks. Don't push to main!", "Don't push to main!"),
        ("always run ruff first", "always run ruff first"),
        ("Use uv instead of pip", "Use uv instead of pip"),
    ],
)
def test_a_correction_right_after_an_action_is_quoted(said: str, quoted: str) -> None:
    (one,) = found(sh("pip install x"), Turn("assistant", "Installed."), user(said))
    assert one.content == f'after: pip install x\nthe user said: "{quoted}"'
    assert one.lesson().tags == ("hook", "correction")
    assert not one.lesson().confirmed


@pytest.mark.parametrize("said", ["Now add a test.", "no", "Nobody knows.", "Great, thanks!", "Don't " + "x" * 500])
def test_what_is_no_correction(said: str) -> None:
    assert found(sh("make"), user(said)) == []


def test_nothing_is_corrected_before_an_action() -> None:
    assert found(user("Don't use make."), sh("make"), user("Go on."), user("Never do that.")) == []


def test_secrets_are_masked_in_what_is_found_and_in_what_stays_open() -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwx1234567890ABCD"
    failed = sh(f"curl -H 'Authorization: Bearer {key}' x", f"error: the login is not set up for {key}", True)
    state, _ = find(State("claude", "s"), [failed])
    assert key not in str(state.kept())
    _, (one,) = find(
        state, [sh(f"export API_KEY={key}; gh auth login"), failed._replace(failed=False, output=f"ok {key}")]
    )
    assert key not in repr(one.lesson())


SECRET = "hunter2secret9"


def test_a_secret_that_another_line_gives_away_is_in_no_part_of_a_lesson() -> None:
    output = f"DB_PASSWORD={SECRET}\nerror: login failed with {SECRET}"
    (one,) = found(sh("./deploy.sh", output, True), sh("cp .env.example .env", "ok"), sh("./deploy.sh", "ok"))
    assert "hunter" not in repr(one)
    assert one.title == "deploy.sh: login failed with [secret masked]"
    assert "error: login failed with [secret masked]" in one.content
    assert one.errors[0] == digest(signature(output))


PLACES = {"command": 3, "output": 0, "between": 1, "mend": 2, "works": 3, "said": 4}
"""Where a secret may stand, and the last event of it."""


@given(
    stem=st.from_regex(r"[a-z]{6}", fullmatch=True),
    shown=st.sampled_from(sorted(PLACES)),
    used=st.sets(st.sampled_from(sorted(PLACES)), min_size=1),
    cut=st.integers(0, 4),
)
def test_what_one_part_shows_to_be_a_secret_is_masked_in_every_part(
    stem: str, shown: str, used: set[str], cut: int
) -> None:
    secret = f"{stem}7{stem}9"

    def part(place: str, text: str) -> str:
        text = f"{text} {secret}" if place in used else text
        return f"{text}\nDB_PASSWORD={secret}" if place == shown else text

    events = [
        sh(part("command", "./deploy"), part("output", "error: no login with"), True),
        sh("env", part("between", "a")),
        sh(part("mend", "login"), "ok"),
        sh(part("command", "./deploy"), part("works", "in as")),
        user(part("said", "No, use")),
    ]
    cut = min(cut, PLACES[shown])  # what was read before the secret was known is masked once it is
    before, _ = find(State("claude", "s"), events[:cut])
    after, several = find(State.of("claude", "s", before.kept()), events[cut:])
    assert several
    assert stem not in repr((several, after))


@pytest.mark.slow
def test_evidence_is_bounded() -> None:
    (one,) = found(sh("make", "error: no gcc\n" * 100_000, True), sh("apt install gcc"), sh("make", "ok\n" * 100_000))
    assert len(str(one.lesson().context)) < 6000


WORDS = st.text(max_size=20) | st.sampled_from(
    ["pytest 'x", "cd /a && pytest", "make | tail", "FAILED a::b", "error: x", "*** Update File: a", "\ud800", "No, x"]
)
TOOLS = st.sampled_from(["Bash", "Edit", "Read", "mcp__a.b", ""])
CALLS = st.builds(call, WORDS, TOOLS, WORDS, WORDS, st.sampled_from([True, False, None]), st.just(1.0))
EVENTS = CALLS | st.builds(Turn, st.sampled_from(["user", "assistant"]), WORDS, at=st.just(1.0))


@given(events=st.lists(EVENTS, max_size=12))
def test_whatever_happened_is_searched_and_kept(events: list[Turn]) -> None:
    state, several = find(State("a", "s"), events)
    assert State.of("a", "s", json.loads(json.dumps(state.kept()))) == state
    assert all(one.lesson().title.strip() and one.lesson().content for one in several)


STORY: tuple[tuple[Any, ...], ...] = (
    ("user", "Build it."),
    ("sh", "pytest tests", MISSING, 1),
    ("agent", "I install it."),
    ("sh", "pip install pyyaml", "ok", 0),
    ("sh", "pytest tests", "1 passed", 0),
    ("sh", "make", "make: *** No rule to make target 'all'.  Stop.", 2),
    ("sh", "make build", "built", 0),
    ("user", "No, use ninja here."),
    ("agent", "Done."),
)


@each_row("format", FORMATS)
def test_every_agent_teaches_the_same(format: str) -> None:
    read = read_transcript(in_format(format, STORY, session="s"), "s.jsonl", format)
    whole = read.found()
    assert [one.title for one in whole] == [
        "pytest: ModuleNotFoundError: No module named 'yaml'",
        "make: *** No rule to make target 'all'. Stop.",
        "The user: No, use ninja here.",
    ]
    claude = read_transcript(in_format("claude", STORY, session="s"), "s.jsonl", "claude").found()
    assert [one.errors for one in whole] == [one.errors for one in claude]  # what one has learned, all recall


@given(cuts=st.lists(st.integers(0, 12), max_size=4))
def test_however_a_session_is_cut_the_same_is_found_once(cuts: list[int]) -> None:
    read = read_transcript(in_format("claude", STORY, session="s"), "s.jsonl", "claude")
    events = list(happened(read.turns))
    state, parts = State("claude", "s"), list[Found]()
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(events)], strict=True):
        state, more = find(state, events[start:end])
        state = State.of("claude", "s", state.kept())
        parts += more
    assert parts == list(read.found())
