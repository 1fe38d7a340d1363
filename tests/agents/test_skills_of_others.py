"""Skills as the open standard has them, wherever a project keeps them, and agents of other programs that use files."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from seed_agents import lay

import mulligan
from mulligan import ScriptedModel
from mulligan.agentfile.reading import read_agent
from mulligan.app.agents import read, skill_folders
from mulligan.app.config import Config
from mulligan.app.trusting import trust
from mulligan.core.errors import InvalidInput

AGENT = "---\nname: worker\ndescription: d\nversion: '1'\npattern: react\n{more}\n---\nWork, then finish.\n"

FRONT: dict[str, tuple[str, str]] = {
    # front matter; a word of the warnings, "" for none
    "the two keys": ("name: pdf\ndescription: Reads PDF files.", ""),
    "all keys of the standard": (
        "name: pdf\ndescription: d\nlicense: Apache-2.0\ncompatibility: Needs poppler\n"
        'metadata:\n  author: someone\n  version: "2.0"\nallowed-tools: Read Bash(pdftotext:*)',
        "",
    ),
    "tools as a list": ("name: pdf\ndescription: d\nallowed-tools:\n  - Read\n  - Bash", ""),
    "tools with commas": ("name: pdf\ndescription: d\nallowed-tools: Read, Bash(git diff:*)", ""),
    "a display name": ("name: PDF Processing Guide\ndescription: d", "PDF Processing Guide"),
    "another name": ("name: pdf-tools\ndescription: d", "pdf-tools"),
    "no name": ("description: d", "no name"),
    "a licence with a file": ("name: pdf\ndescription: d\nlicense: Complete terms in LICENSE.txt", ""),
    "a version as a number": ("name: pdf\ndescription: d\nversion: 1.0", ""),
    "a date": ("name: pdf\ndescription: d\nmetadata:\n  created: 2026-01-31", "date"),
    "a colon in the text": ("name: pdf\ndescription: Use it when: a PDF is given", "colon"),
    "a quotation in the text": ('name: pdf\ndescription: "PDF" files, read', "in quotes"),
    "a folded text": ("name: pdf\ndescription: >\n  Reads files\n  of this kind.", ""),
    "a literal text": ("name: pdf\ndescription: |\n  Reads files.\n\n  Use it late.", ""),
    "keys of a client": ("name: pdf\ndescription: d\nargument-hint: '[file]'\nuser-invocable: true", "argument-hint"),
    "a model": ("name: pdf\ndescription: d\nmodel: haiku\ncontext: fork", "model"),
    "a tab": ("name: pdf\ndescription: d\nmetadata:\n\tauthor: x", "tab"),
    "an anchor": ("name: pdf\ndescription: d\nauthor: *someone*", "quote"),
    "words of other scripts": ("name: pdf\ndescription: 読む PDF ファイル — быстро", ""),
    "a description of several types": ("name: 42\ndescription: [Reads files, 2]", "42"),
    "no description": ("name: pdf", "no description"),
    "a description without a value": ("name: pdf\ndescription:", "no description"),
    "nested metadata in braces": ('name: pdf\ndescription: d\nmetadata: {"a": {"b": ["c", {"d": 1}]}}', ""),
    "a star": ("name: pdf\ndescription: d\nallowed-tools: *", "quotes"),
    "a pattern of files": ("name: pdf\ndescription: d\nglobs: **/*.pdf", "quotes"),
    "a list that is not closed": ("name: pdf\ndescription: d\nallowed-tools: [Read, Bash", "bracket"),
    "what it uses, in words": ("name: pdf\ndescription: d\nuses: poppler, qpdf", "poppler, qpdf"),
    "a long description": (f"name: pdf\ndescription: {'Reads files of this kind. ' * 50}", ""),
}


def repository(folder: Path) -> Path:
    """The folder as a git repository with all of its files in it."""
    identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "start"]):
        subprocess.run(["git", *words], cwd=folder, check=True, timeout=60)
    return folder


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


DONE = call("finish", key="done", value="read")


def with_skill(folder: Path, front: str = FRONT["the two keys"][0]) -> Path:
    """A skill with a reference, a script and a link that leads out of its folder."""
    lay(
        folder,
        {
            "SKILL.md": f"---\n{front}\n---\nSee references/forms.md.\n",
            "references/forms.md": "Fields have names.\n",
            "scripts/fields.py": "print('two fields')\n",
        },
    )
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    here = tmp_path / "project"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


@pytest.mark.parametrize(("front", "warned"), FRONT.values(), ids=FRONT)
def test_a_skill_of_the_standard_is_read(tmp_path: Path, front: str, warned: str) -> None:
    lay(tmp_path / "agent", {"AGENT.md": AGENT.format(more="uses: [pdf]")})
    with_skill(tmp_path / "agent" / "skills" / "pdf", front)
    agent, problems = read_agent(tmp_path / "agent", [], strict=True)
    assert agent is not None, problems
    assert agent.skills["pdf"].body == "See references/forms.md."
    assert agent.skills["pdf"].tools == (), "a key of other programs grants nothing"
    said = " ".join(problem.message for problem in problems)
    assert warned in said
    assert bool(problems) == bool(warned), said


WHOLE: dict[str, tuple[bytes, str]] = {
    # the file; a word of the warnings, "" for none
    "a mark of byte order and lines of Windows": (
        b"\xef\xbb\xbf---\r\nname: pdf\r\ndescription: d\r\n---\r\nText.\r\n",
        "",
    ),
    "below a comment": (b"\n<!-- made by x -->\n\n---\nname: pdf\ndescription: d\n---\nText.\n", ""),
    "ended by dots": (b"---\nname: pdf\ndescription: d\n...\nText.\n", ""),
    "no front matter": (b"# PDF\n\nText.\n", "no front matter"),
    "Latin-1": (b"---\nname: pdf\ndescription: caf\xe9\n---\nText.\n", "UTF-8"),
}


@pytest.mark.parametrize("name", ["PDF_Tools", "two words", "пдф"])
def test_a_skill_is_named_by_its_folder_whatever_that_is_called(tmp_path: Path, name: str) -> None:
    lay(tmp_path / "agent", {"AGENT.md": AGENT.format(more=f"uses: ['{name}']")})
    with_skill(tmp_path / "agent" / "skills" / name)
    agent, problems = read_agent(tmp_path / "agent", [], strict=True)
    assert agent is not None, problems
    assert list(agent.skills) == [name]


@pytest.mark.parametrize("name", ["SKILL.md", "skill.md"])
@pytest.mark.parametrize(("content", "warned"), WHOLE.values(), ids=WHOLE)
def test_a_skill_is_read_as_others_write_the_file(tmp_path: Path, content: bytes, warned: str, name: str) -> None:
    lay(tmp_path / "agent", {"AGENT.md": AGENT.format(more="uses: [pdf]"), f"skills/pdf/{name}": ""})
    (tmp_path / "agent" / "skills" / "pdf" / name).write_bytes(content)
    agent, problems = read_agent(tmp_path / "agent", [], strict=True)
    assert agent is not None, problems
    assert agent.skills["pdf"].body.endswith("Text.")
    assert agent.skills["pdf"].description in ("d", "Text.", "caf\ufffd")
    said = [problem.message for problem in problems if name not in problem.message]
    assert warned in " ".join(said)
    assert bool(said) == bool(warned), said


@pytest.mark.parametrize("place", ["skills", ".agents/skills", ".claude/skills", "../home/.agents/skills"])
async def test_a_skill_is_found_where_people_keep_them(project: Path, place: str) -> None:
    with_skill(project / place / "pdf")
    lay(project / "agents" / "worker", {"AGENT.md": AGENT.format(more="uses: [pdf]")})
    model = ScriptedModel([call("read_skill", name="pdf"), DONE])
    episode = await mulligan.run("worker", "Read.", model=model)
    [first, _] = episode.trials[0].attempt.steps
    assert "references/forms.md, scripts/fields.py" in first.observation


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("references/forms.md", "Fields have names."),
        ("../../../secret.txt", "no file"),
        ("link.txt", "no file"),
        ("absent.md", "no file"),
        ("/etc/passwd", "no file"),
        ("raw.bin", "cannot be read as text"),
    ],
)
async def test_a_file_of_a_skill_is_read_and_no_other(project: Path, path: str, said: str) -> None:
    folder = with_skill(project / "skills" / "pdf")
    (project / "secret.txt").write_text("hidden", encoding="utf-8")
    (folder / "link.txt").symlink_to(project / "secret.txt")
    (folder / "raw.bin").write_bytes(b"\xff\xfe\x00")
    lay(project / "agents" / "worker", {"AGENT.md": AGENT.format(more="uses: [pdf]")})
    model = ScriptedModel([call("read_skill", name="pdf", path=path), DONE])
    episode = await mulligan.run("worker", "Read.", model=model)
    seen = episode.trials[0].attempt.steps[0].observation
    assert said in seen
    assert "hidden" not in seen


async def test_all_skills_of_a_project_wait_for_trust(project: Path) -> None:
    with_skill(project / ".claude" / "skills" / "pdf")
    lay(project / ".claude" / "skills" / "broken", {"SKILL.md": ""})
    lay(project / "agents" / "worker", {"AGENT.md": AGENT.format(more="skills: found")})
    model = ScriptedModel([DONE])
    with pytest.raises(InvalidInput, match="skill pdf"):
        await mulligan.run("worker", "Read.", model=model)
    assert model.questions == []
    trust(project)
    await mulligan.run("worker", "Read.", model=model)
    assert "- pdf: Reads PDF files." in model.questions[0].messages[0].text


async def test_the_tools_of_another_program_are_left_out_of_a_skill(project: Path) -> None:
    with_skill(project / "skills" / "pdf", "name: pdf\ndescription: d\ntools: Read, Bash(git:*), codebase")
    lay(project / "agents" / "worker", {"AGENT.md": AGENT.format(more="uses: [pdf]")})
    model = ScriptedModel([call("read_skill", name="pdf"), DONE])
    episode = await mulligan.run("worker", "Read.", model=model)
    [first, _] = episode.trials[0].attempt.steps
    assert "See references/forms.md." in first.observation
    assert "Tools that you can call" not in first.observation
    _, problems = read(project / "agents" / "worker", Config(project), strict=False)
    assert [problem.level for problem in problems] == ["warning"]
    assert "left out: Read, Bash(git:*), codebase." in problems[0].message


@pytest.mark.slow
async def test_a_script_runs_in_the_sandbox_once_the_project_is_trusted(project: Path) -> None:
    folder = with_skill(project / "skills" / "pdf", "name: pdf\ndescription: d\ntools: [run_command]")
    lay(project / "agents" / "worker", {"AGENT.md": AGENT.format(more="uses: [pdf]")})
    work = repository(lay(project / "work", {"a.txt": "a"}))
    command = f"python3 {folder / 'scripts' / 'fields.py'}"
    model = ScriptedModel([call("read_skill", name="pdf"), call("run_command", command=command), DONE])
    with pytest.raises(InvalidInput, match="scripts of pdf"):
        await mulligan.run("worker", "Read.", model=model, workspace=work)
    trust(project)
    episode = await mulligan.run("worker", "Read.", model=model, workspace=work)
    assert "two fields" in episode.trials[0].attempt.steps[1].observation
    (folder / "scripts" / "fields.py").write_text("print('others')\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="has changed since you trusted it"):
        await mulligan.run("worker", "Read.", model=ScriptedModel([]), workspace=work)


@pytest.mark.slow
async def test_an_agent_of_another_program_works_on_a_copy_of_the_folder(project: Path) -> None:
    text = "---\nname: tidier\ndescription: d\ntools: Read, Write, Bash\nmodel: opus\n---\nTidy up.\n"
    lay(project, {".claude/agents/tidier.md": text, "a.txt": "old\n"})
    repository(project)
    answers = [call("read_file", path="a.txt"), call("write_file", path="a.txt", content="new\n"), DONE]
    model = ScriptedModel(answers)
    episode = await mulligan.run("tidier", "Tidy.", model=model)
    assert [tool.name for tool in model.questions[0].tools] == ["finish", "read_file", "write_file", "run_command"]
    assert episode.trials[0].attempt.steps[0].observation == "old\n"
    assert (project / "a.txt").read_text(encoding="utf-8") == "old\n"


def test_where_skills_are_looked_for_depends_on_the_project_alone(project: Path) -> None:
    inside = [folder.relative_to(project) for folder in skill_folders(project / "agents" / "a", Config(project))[:-1]]
    assert list(map(str, inside)) == ["skills", ".agents/skills", ".claude/skills"]
