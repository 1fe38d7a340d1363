"""What works after `pip install mulligan` alone, without any extra, and what is said of the rest."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from bare_environment import PROJECT, BareEnvironment, bare_environment, needed
from doc_pages import expected, lines_in_order, ours
from seed_agents import lay

SUPPORT = Path(__file__).parent / "support"
MOST = 15
"""Distributions of the base, Mulligan among them."""
MESSAGES = [
    {"role": "user", "content": "Write the total of 3 and 4."},
    {"role": "assistant", "content": "7"},
    {"role": "tool", "content": ">   assert total(3, 4) == '7 EUR'\nE   AssertionError: assert 7 == '7 EUR'"},
]
FILES = {
    "mulligan.toml": '[mcp.files]\ncommand = ["files"]\n[tools]\nhttp_hosts = ["localhost"]\n',
    "agents/reader/AGENT.md": "---\nname: reader\ndescription: Reads.\nversion: '1.0.0'\npattern: react\ncall:\n"
    "  uses: [reading]\n---\nRead.\n",
    "skills/reading/SKILL.md": "---\nname: reading\ndescription: How to read.\ntools: [http_get]\n---\nRead it.\n",
    "agents/teller/AGENT.md": "---\nname: teller\ndescription: Tells.\nversion: '1.0.0'\npattern: oneshot\n---\nTell.\n",
    "said.txt": "7 EUR",
    "chat.json": json.dumps(MESSAGES),
}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> BareEnvironment:
    return bare_environment(tmp_path_factory.mktemp("bare"))


def test_the_base_stays_small() -> None:
    there = needed()
    assert len(there) < MOST, sorted(there)
    assert not {"mcp", "openai", "anthropic", "httpx2", "pydantic-ai-slim"} & there


def test_all_brings_what_the_base_once_did_and_the_tests_have_it() -> None:
    extras = PROJECT["optional-dependencies"]
    assert extras["all"] == ["mulligan[models,serve]"]
    assert any(line.startswith("mulligan[all,") for line in extras["test"])


@pytest.mark.slow
def test_the_examples_of_functions_run(bare: BareEnvironment, tmp_path: Path) -> None:
    examples = {page: ours(page) for page in ("guides/functions.md", "functions.md")}
    for page, blocks in examples.items():
        ran = bare.run(str(SUPPORT / "doc_pages.py"), page, cwd=tmp_path)
        assert ran.stderr == ""
        wanted = [line for block in blocks for line in expected(block)]
        assert lines_in_order(wanted, iter(ran.stdout.splitlines())) == [], ran.stdout
    assert any("bank=" in block for block in examples["guides/functions.md"])
    assert any("mulligan.memory(" in block for block in examples["guides/functions.md"])
    assert bare.run("-c", "import pydantic_ai", cwd=tmp_path).returncode == 1


@pytest.mark.slow
def test_the_commands_that_need_no_model_run(bare: BareEnvironment, tmp_path: Path) -> None:
    lay(tmp_path, FILES)
    for command, said in {
        "learn chat.json --outcome failure --agent-id books": "1 fact",
        "memory list --agent-id books": "total gives the form 7 EUR",
        "memory search total --agent-id books": "total(3, 4)",
        "solve x --model scripted:said.txt --evaluator contains:EUR": "7 EUR",
        "run teller x --model scripted:said.txt": "7 EUR",
        "runs list": "solve",
        "hooks status": "lessons",
        "hooks install claude --yes --project": "claude",
        "lint": "",
        "init new": "mulligan.toml",
        "doctor": '[serve]"',
    }.items():
        ran = bare.mulligan(*command.split(), cwd=tmp_path)
        assert said in ran.stdout + ran.stderr, (command, ran)
        assert "Traceback" not in ran.stderr, command
        assert ran.returncode == 0 or command == "doctor", (command, ran)


@pytest.mark.slow
def test_a_coding_agent_works_until_a_command_is_satisfied(bare: BareEnvironment, tmp_path: Path) -> None:
    repository = lay(
        tmp_path / "repo", {"agent.sh": "grep -q EUR total.txt 2>&1 && echo '7 EUR' > ok; echo EUR > total.txt\n"}
    )
    for words in ("init -q", "add .", "-c user.name=a -c user.email=a@b.invalid commit -qm first"):
        subprocess.run(["git", *words.split()], cwd=repository, check=True)
    actor = ("--actor", "command:sh agent.sh", "--check", "grep -q 7 ok")
    ran = bare.mulligan("solve", "Write the total.", *actor, "--workspace", ".", "--trials", "3", cwd=repository)
    assert ran.returncode == 0, ran
    assert "solved on try 2 of 3" in ran.stderr


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    ("command", "extra", "tool"),
    [
        ("serve", "serve", ""),
        ("studio", "studio", ""),
        ("serve --print-config claude", "serve", ""),
        ("solve x --evaluator exact_match:x --model openai:gpt-6-luna", "models", ""),
        ("solve x --evaluator exact_match:x --model anthropic:claude-haiku-4-5", "models", ""),
        ("solve x --evaluator exact_match:x --model bedrock:x", "models", ""),
        ("solve x --evaluator exact_match:x", "local", ""),
        ("run reader x --model scripted:said.txt", "models", "http_get"),
        ("run reader x --model scripted:said.txt", "serve", '"mcp:files"'),
        ("ask-graph x --graph g", "langgraph", ""),
    ],
)
def test_what_is_missing_is_said_with_the_command_that_installs_it(
    bare: BareEnvironment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    extra: str,
    tool: str,
) -> None:
    skill = FILES["skills/reading/SKILL.md"].replace("http_get", tool)
    lay(tmp_path, {**FILES, "skills/reading/SKILL.md": skill})
    monkeypatch.setenv("MULLIGAN_TRUST", bare.mulligan("trust", "--print", cwd=tmp_path).stdout.strip())
    ran = bare.mulligan(*command.split(), cwd=tmp_path)
    assert ran.returncode == 2, ran
    assert re.search(rf'pip install (-e )?"\S*\[{extra}\]', ran.stderr)
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_misspelt_provider_is_named_as_with_the_extra(bare: BareEnvironment, tmp_path: Path) -> None:
    ran = bare.mulligan("lint", cwd=lay(tmp_path, {"mulligan.toml": '[models.thinker]\nname = "opnai:gpt-6-luna"\n'}))
    assert ran.returncode == 2
    assert "No model provider is called 'opnai'. Did you mean 'openai'?" in ran.stdout


def test_a_version_that_does_not_fit_is_named(bare: BareEnvironment, tmp_path: Path) -> None:
    old = lay(
        tmp_path / "old", {"mcp/__init__.py": "", "mcp-1.30.0.dist-info/METADATA": "Name: mcp\nVersion: 1.30.0\n"}
    )
    code = f"import sys; sys.path.insert(0, {str(old)!r}); from mulligan.cli.main import main; main(['serve'])"
    ran = bare.run("-c", code, cwd=tmp_path)
    assert ran.returncode == 2
    assert "It needs mcp" in ran.stderr
    assert (
        "but 1.30.0 is installed here. Use a new environment, or this one if its other packages allow it: pip install"
        in ran.stderr
    )
