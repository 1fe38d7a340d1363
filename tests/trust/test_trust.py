"""Trust in a project: what it covers, who gives it, how long it lasts, and when it is not needed at all."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from each_row import each_row
from seed_agents import lay
from terminals import on_terminal

import mulligan
from mulligan import ScriptedModel
from mulligan.app import plugin_files, trust
from mulligan.app.config import Config, load
from mulligan.app.lint import lint
from mulligan.app.memory import open_bank
from mulligan.app.plugins import find
from mulligan.app.trusting import asked
from mulligan.app.trusting import trust as trust_folder
from mulligan.cli.main import main
from mulligan.core.errors import InvalidInput
from mulligan.models.providers import PROVIDERS

PLUGIN = """
class Mine:
    def __init__(self, *, share: float = 0.5): ...
    def queries(self, text): return [text]
    def rank(self, among, top_k, threshold=None): ...
"""
RISKY = '[memory]\nretrieval = "./plugins/mine.py"\ntop_k = 7\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a plug-in in a folder of its own, which nobody has trusted; the working folder."""
    folder = lay(tmp_path / "mine", {"mulligan.toml": RISKY, "plugins/mine.py": PLUGIN, "plugins/helper.py": "a = 1\n"})
    monkeypatch.chdir(folder)
    monkeypatch.setattr(trust, "_reported", set[tuple[str, str]]())
    monkeypatch.delenv("MULLIGAN_TRUST", raising=False)
    return folder


def is_trusted(folder: Path | None = None) -> bool:
    return "retrieval" in load(folder).table("memory")


def held(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "is not used" in record.getMessage()]


def command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


NARROW = """
sandbox = "strict"
model = "local"
[limits]
trials = 2
[calls]
timeout = 10
[kinds]
"sql" = "query"
[memory]
top_k = 2
threshold = "strict"
forms = ["notebook"]
retrieval = "hybrid"
merging = { name = "voting", min_group_size = 3 }
embedder = "none"
[foresight]
before = "delete"
[models]
worker = { temperature = 0.2 }
[project]
name = "mine"
"""


def test_a_project_that_only_narrows_needs_no_trust(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    (project / "mulligan.toml").write_text(NARROW)
    config = load()
    assert config.table("memory")["top_k"] == 2
    assert set(config.values) == {
        *("sandbox", "model", "limits", "calls", "kinds", "memory", "foresight", "models", "project")
    }
    assert (config.held, held(caplog), asked(project).open) == (frozenset(), [], False)
    assert command("trust") == 0


def test_what_narrows_applies_while_the_rest_waits(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    (project / "mulligan.toml").write_text('model = "openai:x"\nprompts = "p"\n' + RISKY)
    (project / ".env").write_text("A_API_KEY=1\nB_TOKEN=2\n")
    (project / "deep").mkdir()
    os.chdir(project / "deep")
    for _ in range(3):
        assert load().table("memory") == {"top_k": 7}
    os.chdir(project.parent)
    assert held(caplog) == [
        f"{project} is not trusted yet, so this is not used: model, prompts, memory.retrieval, .env. To see and allow "
        f"it: mulligan trust {project}"
    ]


def test_the_line_names_the_folder_where_the_command_runs_elsewhere(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(project.parent)
    load(project)
    assert held(caplog)[0].endswith(f": mulligan trust {project}")


@pytest.mark.parametrize(
    ("file", "text", "stays"),
    [
        ("mulligan.toml", "# a comment\n" + RISKY.replace("7", "8"), True),
        ("README.md", "x", True),
        ("plugins/notes.txt", "x", True),
        (".env", "PATH=x\nUNRELATED=1\n", True),
        ("plugins/mine.py", PLUGIN + "\n", False),
        ("plugins/helper.py", "a = 2\n", False),
        ("plugins/new.py", "", False),
        ("plugins/deep/code.py", "", False),
        ("mulligan.toml", RISKY + "quarantine = false\n", False),
        (".env", "OPENAI_BASE_URL=http://127.0.0.1:9\n", False),
    ],
)
def test_it_is_asked_again_when_what_would_run_or_be_redirected_changes(
    project: Path, file: str, text: str, stays: bool, caplog: pytest.LogCaptureFixture
) -> None:
    trust_folder(project)
    assert is_trusted()
    assert not held(caplog)
    lay(project, {file: text})
    assert is_trusted() == stays
    assert [line for line in held(caplog) if "has changed since you trusted it" in line] == held(caplog)
    assert bool(held(caplog)) != stays


def test_python_s_own_compiled_files_change_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    trust_folder(project)
    find("retrieval", str(project / "plugins" / "mine.py"))
    assert list(project.rglob("*.pyc"))
    assert is_trusted()


def test_it_is_kept_for_the_folder_and_not_for_a_copy(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    trust_folder(project)
    copy = Path(shutil.copytree(project, project.with_name("copy")))
    assert (is_trusted(project), is_trusted(copy)) == (True, False)
    link = project.with_name("link")
    link.symlink_to(project)
    assert is_trusted(link), "another path to the same folder"
    assert command("trust", "--revoke") == 0
    assert not is_trusted(project)


def test_the_hash_that_is_printed_counts_anywhere(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("trust", "--print") == 0
    printed = capsys.readouterr().out.strip()
    copy = Path(shutil.copytree(project, project.parent / "build" / "checkout"))
    monkeypatch.setenv("MULLIGAN_TRUST", f"{'0' * 32}, {printed}")
    assert (is_trusted(project), is_trusted(copy)) == (True, True)
    (copy / "plugins" / "helper.py").write_text("a = 2\n")
    assert (is_trusted(project), is_trusted(copy)) == (True, False)


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(("answer", "then"), [("y", True), ("n", False), ("", False)])
def test_a_person_is_shown_what_would_run_and_asked(project: Path, answer: str, then: bool) -> None:
    (project / ".env").write_text("OPENAI_API_KEY=sk-hushhush\nOPENAI_BASE_URL=http://\x1b[31mhost\nLD_PRELOAD=x\n")
    lay(project / "agents" / "one", {"AGENT.md": AGENT.format(more="evaluate: {check: 'make test'}\n")})
    status, out, shown = on_terminal([sys.executable, "-m", "mulligan", "trust"], 200, answers=[answer])
    for part in ("memory.retrieval", "./plugins/mine.py", "OPENAI_BASE_URL", "one: evaluate", "make test"):
        assert part in shown
    assert "Never read from .env: LD_PRELOAD" in shown
    assert ("hush" in shown, "\x1b[31m" in shown, out) == (False, False, "")
    assert ((status == 0), is_trusted()) == (then, then)
    os.environ.pop("OPENAI_BASE_URL", None)
    os.environ.pop("OPENAI_API_KEY", None)


def test_without_a_terminal_it_is_refused_in_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("trust") == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "at a terminal" in last
    assert "MULLIGAN_TRUST" in last
    assert not is_trusted()


def test_where_nothing_is_there_to_trust(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "mulligan.toml").unlink()
    assert command("trust") == 2
    assert "There is nothing to trust" in capsys.readouterr().err


def test_what_was_not_looked_at_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = "---\nname: a\ndescription: d\nversion: '1'\npattern: oneshot\n"
    rest = 'evaluate: {check: "./judge.sh"}\n---\nAnswer.\n'
    lay(project, {"mulligan.toml": "", "agents/broken/AGENT.md": f"{head}max_iter: x\n{rest}"})
    lay(project, {"pkg/a/AGENT.md": head + rest, "pkg/a/sub/x": ""})
    assert command("trust") == 0
    said = capsys.readouterr().err
    assert "Not read, because of errors that mulligan lint shows: broken\n" in said
    assert "To check an agent in another folder: mulligan trust FOLDER" in said
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project / "pkg/a/sub")
        assert command("run", "..", "Say hello.") == 2
    assert f"mulligan trust {project / 'pkg/a'}\n" in capsys.readouterr().err


def test_the_agent_that_a_project_is_belongs_to_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = (
        "---\nname: a\ndescription: d\nversion: '1'\npattern: oneshot\nevaluate: {check: ./judge.sh}\n---\nAnswer.\n"
    )
    lay(project, {"AGENT.md": agent})
    assert command("trust") == 2
    said = capsys.readouterr().err
    assert "memory.retrieval" in said
    assert "evaluate" in said


def test_init_trusts_what_it_writes_and_nothing_that_was_there(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lay(tmp_path / "Other Name", {".env": "OPENAI_BASE_URL=http://127.0.0.1:9\n"})
    for folder, left in ((tmp_path / "New Project", []), (tmp_path / "Other Name", [".env"])):
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        caplog.clear()
        assert command("init") == 0
        load()
        assert [name for name in left if name not in "".join(held(caplog))] == []
        assert bool(held(caplog)) == bool(left)
    assert "OPENAI_BASE_URL" not in os.environ


def test_the_bank_of_a_project_is_the_one_that_was_made_here(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("MULLIGAN_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (project / "mulligan.toml").write_text('[memory]\nembedder = "none"\n')
    own = project / ".mulligan" / "mulligan.db"
    assert load().database == own
    assert command("memory", "add", "--title", "t", "--description", "d", "--content", "c") == 0
    assert own.is_file()
    (project / "mulligan.toml").write_text(RISKY)
    assert load().database == own, "a change of the settings does not take the user's own bank away"
    clone = Path(shutil.copytree(project, project.with_name("clone")))
    monkeypatch.chdir(clone)
    caplog.clear()
    assert load().database == tmp_path / "data" / "mulligan" / "mulligan.db"
    assert "the bank .mulligan/" in held(caplog)[0]
    trust_folder(clone)
    assert load().database == clone / ".mulligan" / "mulligan.db"


def test_a_store_that_the_command_line_names_is_the_user_s_own(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_STORE", str(project / "any.db"))
    assert load().store == str(project / "any.db")


async def test_a_plugin_that_changes_while_a_program_runs_is_not_loaded(project: Path) -> None:
    trust_folder(project)
    config = load()
    (project / "plugins" / "helper.py").write_text("a = 2\n")
    with pytest.raises(InvalidInput, match="has changed since it was trusted: run mulligan trust again"):
        open_bank(config=config, embedder="none")
    assert not is_trusted(), "looked at again, as another part of the program may do"
    with pytest.raises(InvalidInput, match="has changed since it was trusted"):
        open_bank(config=config, embedder="none")


async def test_a_module_of_the_project_is_code_of_the_project(project: Path) -> None:
    lay(
        project,
        {"mulligan.toml": '[memory]\nretrieval = "kit.mine:Mine"\n', "kit/__init__.py": "", "kit/mine.py": PLUGIN},
    )
    trust_folder(project)
    assert is_trusted()
    (project / "kit" / "mine.py").write_text(PLUGIN + "\n")
    assert not is_trusted()


def test_a_project_file_that_is_none_is_not_read(project: Path) -> None:
    with (project / "mulligan.toml").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InvalidInput, match="is larger than 4 MB"):
        load()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("name", ["mulligan.toml", "plugins/helper.py", ".", "plugins", ".env"])
def test_files_of_another_user_are_never_trusted(
    project: Path, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (project / ".env").write_text("A_API_KEY=1\n")
    monkeypatch.setenv("MULLIGAN_TRUST", asked(project).hashes)
    os.chown(project / name, 61234, -1)
    with pytest.raises(InvalidInput, match="belongs to another user"):
        trust_folder(project)
    assert not is_trusted()
    assert "belongs to another user" in held(caplog)[0]
    assert command("trust") == 2


def test_what_is_too_large_to_look_through_is_not_trusted(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_files, "MOST_FILES", 5)
    for number in range(9):
        (project / "plugins" / f"{number}.txt").touch()
    with pytest.raises(InvalidInput, match=r"put mine\.py into its own folder"):
        trust_folder(project)


AGENT = "---\nname: one\ndescription: d\nversion: '1'\npattern: oneshot\n{more}---\nAnswer.\n"


@pytest.mark.parametrize("more", ["", "evaluate: 'contains:yes'\n", "limits: {tokens: 9}\n", "strategy: reflexion\n"])
async def test_an_agent_that_only_speaks_needs_no_trust(project: Path, more: str) -> None:
    lay(project / "agents" / "one", {"AGENT.md": AGENT.format(more=more)})
    await mulligan.run("one", "t", model=ScriptedModel(["yes"] * 9))


async def test_an_agent_is_refused_with_what_it_would_run_and_runs_once_trusted(project: Path) -> None:
    folder = lay(project / "agents" / "one", {"AGENT.md": AGENT.format(more="evaluate: {check: 'true {attempt}'}\n")})
    model = ScriptedModel(["yes"])
    for given in ("one", folder):
        with pytest.raises(InvalidInput, match=r"agents/one is not trusted yet, .*: evaluate\. .*mulligan trust"):
            await mulligan.run(given, "t", model=model)
    trust_folder(project)
    assert (await mulligan.run("one", "t", model=model)).solved
    (folder / "AGENT.md").write_text((folder / "AGENT.md").read_text().replace("Answer.", "Answer in one word."))
    assert (await mulligan.run("one", "t", model=ScriptedModel(["yes"]))).solved, "its words are not code"
    (folder / "AGENT.md").write_text((folder / "AGENT.md").read_text().replace("true", "false"))
    with pytest.raises(InvalidInput, match="has changed since you trusted it"):
        await mulligan.run("one", "t", model=model)


@pytest.mark.parametrize("toml", ['model = "ollama:x"\n', '[models]\nworker = "ollama:x"\nvision = "ollama:y"\n'])
async def test_an_agent_takes_the_model_that_the_user_names_and_no_other(project: Path, toml: str) -> None:
    lay(project, {"mulligan.toml": toml, "agents/one/AGENT.md": AGENT.format(more="")})
    await mulligan.run("one", "t", model=ScriptedModel(["yes"]))
    with pytest.raises(InvalidInput, match=r"mulligan\.toml:[12] sets the model but is not trusted yet"):
        await mulligan.run("one", "t")


def test_a_path_that_the_user_names_is_his_own(project: Path) -> None:
    (project / "judge.py").write_text(
        "from mulligan.plugins import Feedback\nclass Judge:\n    expects = 'text'\n"
        "    async def evaluate(self, episode): return Feedback(True, 'good')\n"
    )
    found = mulligan.solve_sync("t", evaluator="./judge.py", model=ScriptedModel(["x"]), trials=1)
    assert found.solved


@pytest.mark.parametrize(
    ("code", "settings", "says"),
    [
        (PLUGIN, "", ""),
        (PLUGIN, ", share = 1", ""),
        (PLUGIN, ", shre = 1", "Did you mean 'share'?"),
        ("class Mine(Base): ...", ", any = 1", ""),
        ("Mine = make()", "", ""),
        ("class Mine: ...", "", "it has none"),
        ("class A:\n    def rank(self): ...\nclass B:\n    def rank(self): ...\n", "", "it has 2 of them"),
        ("class Mine(:", "", "cannot be loaded: SyntaxError"),
    ],
)
def test_lint_reads_a_plugin_and_does_not_run_it(project: Path, code: str, settings: str, says: str) -> None:
    trust_folder(project)
    (project / "plugins" / "mine.py").write_text(f"{code}\nopen({str(project / 'ran')!r}, 'w')\n")
    (project / "mulligan.toml").write_text(f'[memory]\nretrieval = {{ name = "./plugins/mine.py"{settings} }}\n')
    problems = [problem.message for problem in lint(project).problems]
    assert [says in problem for problem in problems] == ([True] if says else [])
    assert not (project / "ran").exists()


def test_each_provider_s_variables_may_stand_in_a_dotenv() -> None:
    names = {name: "x" for provider in PROVIDERS.values() for name in (*provider.keys, *provider.url)}
    assert trust.allowed(names, {}) == names


@each_row(
    ("name", "taken"),
    [
        *(("DATABASE", True), ("GITHUB_NAME", True), ("UNASKED", False), ("LD_PRELOAD", False), ("PATH", False)),
        *(("PYTHONPATH", False), ("HTTPS_PROXY", False), ("MULLIGAN_TRUST", False), ("SSL_CERT_FILE", False)),
        *(("MULLIGAN_HOOKS", False), ("GIT_DIR", False), ("BROWSER", False), ("NODE_OPTIONS", False)),
    ],
)
def test_what_a_server_of_tools_asks_for_may_stand_there_too(name: str, taken: bool) -> None:
    asks = {} if name == "UNASKED" else {("mcp", "one"): {"env": {"X": f"${{{name}}}"}}}
    assert (name in trust.allowed({name: "x"}, asks)) == taken


def test_no_project_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load() == Config()
    assert not (Path(os.environ["MULLIGAN_HOME"]) / "trust").exists()
