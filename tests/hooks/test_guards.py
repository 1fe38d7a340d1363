"""Guards: which calls a pattern stops, and which pattern a lesson proposes."""

import shlex

from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.hooks.guard_proposals import proposal
from mulligan.hooks.guards import stops

STOPPED = [
    ("git push --force", "git push --force"),
    ("git push --force", "git push -f origin main"),
    ("git push --force", "cd web && git push origin main --force"),
    ("git push --force", "GIT_SSH=x git -C repo push --force"),
    ("git push --force", "sudo -u me git push --force"),
    ("git push --force", "bash -lc 'git push --force'"),
    ("git push --force", "env A=b timeout 5 git push --force 2>&1 | tail -3"),
    ("git push --force", "/usr/bin/git push --force"),
    ("git push --force", "if true; then git push --force; fi"),
    ("git push --force", "ls\ngit push \\\n  --force"),
    ("git push --force", "find . -name a | xargs -n1 git push --force"),
    ("git stash", "git stash pop"),
    ("git stash", "(git stash)"),
    ("git stash", "x=$(git stash list)"),
    ("git stash", "echo `git stash`"),
    ("git stash", "eval 'git stash'"),
    ("rm -rf", "rm -r -f x"),
    ("rm -rf", "rm -fr x"),
    ("rm -rf", "rm --recursive --force x"),
    ("--no-verify", "git commit -m x --no-verify"),
    ("git commit --no-verify", "git commit -nm x"),
    ("HUSKY=0", "HUSKY=0 git commit"),
    ("HUSKY=0", "export HUSKY=0; git commit"),
    ("npm", "npm install"),
    ("npm install", "npm --prefix web install"),
    ("kubectl delete pod", "kubectl delete -n prod pod x"),
    ("src/generated/", "rm src/generated/a.ts"),
    (".env", "cat .env"),
    (".env", "docker run --env-file=.env x"),
    ("*.lock", "rm yarn.lock"),
    ("git push --force", "git push origin +main"),
    ("git push --force", "timeout -k 5 10 git push --force"),
    ("git push --force", 'echo "$(git push --force)"'),
    ("npm", "xargs -I{} npm install {}"),
    ("git checkout --", "git checkout -- src/a.ts"),
    ("npm install", "npm i left-pad"),
    ("rm -rf", "sudo rm -Rf x"),
    ("rm -rf", "find . -name x -exec rm -rf {} +"),
    ("docker compose down -v", "docker compose -f a.yml down --volumes"),
    ("HUSKY=0", "env HUSKY=0 git commit"),
    ("src/generated/", "echo x >> ./src/generated/a.ts"),
    ("src/generated/", "cat > src/generated/a.ts <<'EOF'\nx\nEOF"),
    ("git push origin", "git push -f origin main"),
    ("make -C web deploy", "make -C web deploy"),
    ("git push --force", "git -C repo push origin +main"),
]
PASSED = [
    ("git push --force", "git push --force-with-lease"),
    ("git push --force", "git push origin force"),
    ("git push --force", "git push -- --force"),
    ("git push --force", "echo 'git push --force'"),
    ("git push --force", "git commit -m 'git push --force'"),
    ("git push --force", "cat <<EOF\ngit push --force\nEOF"),
    ("git push --force", "grep 'git push --force' a.md"),
    ("git stash", "git log --grep stash"),
    ("git stash", "git stashx"),
    ("git stash", "ls # a; git stash"),
    ("npm", "pnpm install"),
    ("npm", "echo npm"),
    ("npm install", "npm run install"),
    ("pytest", "uv run pytest"),
    ("go test -n", "go test -run x"),
    ("--no-verify", "rg -e --no-verify src"),
    ("src/generated/", "rm src/generated.ts"),
    (".env", "cat .env.example"),
    ("npm", "sudo apt-get install -y npm"),
    ("npm", "sudo chown me npm"),
    ("npm", "timeout 5 ls npm"),
    ("npm", "xargs -a npm ls"),
    ("npm", "while read npm; do echo; done"),
    ("npm", "command -v npm"),
    ("git checkout --", "git checkout -b x"),
    ("npm install", 'git commit -m "do not run \\`npm install\\` here"'),
    ("git push --force", "git commit -m \"$(cat <<'EOF'\nno git push --force\nEOF\n)\""),
    ("HUSKY=0", "grep HUSKY=0 .env"),
    ("HUSKY=0", "echo HUSKY=0"),
    ("src/generated/", "echo src/generated/x >> .gitignore"),
    ("", "git push"),
    ("-", "rm -x"),
    ("git push; ls", "ls"),
    ("git push", "git -C push status"),
    ("npm install", "npm --prefix install run build"),
    ("make -C web deploy", "make -C api deploy"),
]


@each_row(("pattern", "command"), STOPPED)
def test_a_guard_stops_the_command_that_it_names_however_it_is_wrapped(pattern: str, command: str) -> None:
    assert stops(pattern, command)


@each_row(("pattern", "command"), PASSED)
def test_a_guard_lets_other_commands_pass(pattern: str, command: str) -> None:
    assert not stops(pattern, command)


def test_a_path_is_guarded_from_edits() -> None:
    assert stops("src/generated/", "/home/me/app/src/generated/api.ts", shell=False)
    assert not stops("src/generated/", "/home/me/app/src/api.ts", shell=False)
    assert not stops("npm", "npm", shell=False)


WORD = st.from_regex(r"[a-z][a-z0-9]{1,6}", fullmatch=True)
FLAG = st.from_regex(r"--[a-z]{3,8}", fullmatch=True)
AROUND = st.sampled_from(
    [
        "{}",
        "cd web && {}",
        "A=b {}",
        "sudo {}",
        "bash -c {q}",
        "ls; {} | tail",
        "( {} )",
        "time env X=1 {} 2>&1",
        "{} &",
    ]
)


@given(st.lists(WORD, min_size=1, max_size=3), st.lists(FLAG, max_size=2), st.lists(WORD, max_size=2), AROUND)
def test_whatever_stands_around_a_command_and_behind_its_words_its_guard_meets_it(
    words: list[str], flags: list[str], more: list[str], around: str
) -> None:
    pattern = " ".join([*words, *flags])
    command = " ".join([*words, *more, *flags])
    assert stops(pattern, around.format(command, q=shlex.quote(command)))
    assert not stops(pattern, f"echo {shlex.quote(command)}")
    assert not stops(" ".join([*words, *flags, "--one-more"]), command)


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_is_answered(pattern: str, command: str) -> None:
    assert isinstance(stops(pattern, command), bool)
    assert isinstance(proposal(pattern, command), str)


def correction(after: str, said: str) -> str:
    return proposal(f"The user: {said}", f'after: {after}\nthe user said: "{said}"')


@each_row(
    ("after", "said", "pattern"),
    [
        ("git stash push", "do not stash anything, read the files you need", "git stash"),
        ("npm install x", "never use npm here, we use pnpm", "npm"),
        ("git push --force", "never force push to main", "git push --force"),
        ("git commit -m x --no-verify", "Never use --no-verify.", "git commit --no-verify"),
        ("src/a.ts", "never edit src/generated/ by hand", "src/generated/"),
        ("ls", "please never run git stash again", "git stash"),
        ("pytest -q", "use make test, not pytest", "pytest"),
        ("npm test", "don't use `npm test`, use `bun test`", "npm test"),
        ("npm install", "nie npm benutzen, wir nehmen pnpm", "npm"),
        ("ls", "don't touch package-lock.json", "package-lock.json"),
        ("npm install x", "No, use npm ci", ""),
        ("pytest -q", "No, use `pytest -x`", ""),
        ("rm -rf x", "No, stop deleting files", ""),
        ("git push", "Always ask me before", ""),
        ("docker compose down -v", "never remove the volumes", ""),
        ("ls", "don't make assumptions", ""),
        ("ls", "never run make deploy", "make deploy"),
    ],
)
def test_a_correction_proposes_what_it_is_against_and_not_what_it_wants(after: str, said: str, pattern: str) -> None:
    assert correction(after, said) == pattern


def test_another_lesson_proposes_what_it_has_in_backticks_else_what_failed() -> None:
    assert proposal("`rtk bun` does not exist", "fails: rtk bun test\n  x\nworks: bun test") == "rtk bun"
    assert proposal("make: error", "fails: make -j\n  error\nworks: make") == "make -j"
    assert proposal("Errors end with a stop", "said by the style guide") == ""
