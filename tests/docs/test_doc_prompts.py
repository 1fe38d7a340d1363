"""docs/prompts.md names every prompt that ships, with all of its placeholders, and every file of worked examples."""

import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rust_compiler import rustc_runs

import mulligan
from mulligan import ScriptedModel
from mulligan.app.config import Config
from mulligan.app.plugins import PORTS, ROLES, build, find, names, settings_of
from mulligan.app.prompts import FilePrompts
from mulligan.app.service import Service
from mulligan.bank.learn.comparison import Comparison
from mulligan.bank.learn.extraction import EpisodeJudge, Extractor
from mulligan.bank.learn.operations import Notekeeper
from mulligan.core.errors import InvalidInput
from mulligan.core.prompts import Prompt
from mulligan.core.records import Spec
from mulligan.graphs.protocol import GraphSchema, NodeKind
from mulligan.langgraph import ScriptedChat, create_reflexion_graph
from mulligan.langgraph.judging import judge_prompt
from mulligan.langgraph.kg import query_prompts
from mulligan.langgraph.prompt_engine import BioCypherPromptEngine
from mulligan.langgraph.sentence import answer_prompt
from mulligan.mcp_server.prompt_texts import instructions
from mulligan.mcp_server.prompts import Prompts
from mulligan.plugins import Condensing, LessonBudget
from mulligan.reflectors.feedback import FeedbackAsLesson

PAGE = Path(__file__).parents[2] / "docs" / "prompts.md"
OF_FAMILIES = {file.stem for file in (Path(mulligan.__file__).parent / "bench").rglob("*.*.md")}
"""Prompts that serve one family of benchmarks stand in its folder, away from their plug-in."""
SHIPPED = {file.stem for file in Path(mulligan.__file__).parent.rglob("*.*.md")}
EXAMPLES = {name for name in SHIPPED if name.endswith(".examples")}
TEXTS = {"interact.alfworld.games", "model_judge.rubric", "model_judge.answer"}


def table() -> dict[str, set[str]]:
    """File name without `.md` -> the placeholders in the last column of its row."""
    rows = re.findall(r"^\| `([\w.]+)\.md` \|.*\| ([^|]*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", cells)) for name, cells in rows}


def described() -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE))


def test_every_prompt_is_listed_with_its_placeholders() -> None:
    listed = table()
    assert set(listed) == SHIPPED - EXAMPLES - TEXTS
    for name, placeholders in listed.items():
        assert FilePrompts().get(name).slots <= placeholders, name


def built_with(folder: Path, prompt: str, text: str) -> None:
    """The plug-in of this prompt, built with a prompt file of the user's."""
    (folder / f"{prompt}.md").write_text(text, encoding="utf-8")
    name, _, part = prompt.partition(".")
    given = {"output": part, "prompt": part, "command": "true"}
    given |= {"output": "code", "language": "rs"} if part == "rust" else {}
    given |= {"output": "text", "judge": True} if prompt == "verbal.judge" else {}
    given |= {"output": "text", "calls": 3 if part == "each" else 1} if name in ("layered", "contrastive") else {}
    if name in ("judging", "extraction"):
        built_thinker(FilePrompts([folder]), name, set(part.split(".")))
        return
    if name in ("prompts", "instructions"):
        service = Service(config=Config(folder, {"prompts": "."}))
        Prompts(service, "all")
        instructions(service, "all")
        return
    if name == "condense":
        Condensing(FeedbackAsLesson(), model=ScriptedModel([]), prompts=FilePrompts([folder]), budget=LessonBudget())
        return
    if name == "comparison":
        Comparison(FilePrompts([folder]))
        return
    if name == "kg":
        prompts = FilePrompts([folder])
        query_prompts(prompts)
        judge_prompt(prompts)
        answer_prompt(prompts)
        return
    if name == "reflexion_graph":
        create_reflexion_graph(ScriptedChat(["…"]), str, store=False, prompts=folder)
        return
    if name == "prompt_engine":
        schema = GraphSchema((NodeKind("Gene"),))
        BioCypherPromptEngine(graph=schema, prompts=FilePrompts([folder]))
        return
    for role in ROLES:
        if name not in names(role):
            continue
        beside = Path(inspect.getfile(find(role, name))).with_name(f"{prompt}.md")
        if beside.exists() or prompt in OF_FAMILIES:
            wanted = settings_of(find(role, name))
            settings = {key: value for key, value in given.items() if key in wanted}
            own = {"prompts": FilePrompts([folder]), "environment": SimpleNamespace(name=part)}
            build(role, Spec(name, settings), {**dict.fromkeys(PORTS, object()), **own})
            return
    raise LookupError(prompt)


def built_thinker(prompts: FilePrompts, name: str, parts: set[str]) -> None:
    """The bank's judge or extractor that asks this prompt."""
    if name == "judging":
        EpisodeJudge(prompts, paper="paper" in parts)
    elif "notebook" in parts:
        Notekeeper(prompts, (), success=True)
    else:
        given: dict[str, Any] = {
            "contrast": "contrast" in parts,
            "several": "several" in parts,
            "paper": "paper" in parts,
            "workflows": "workflow" in parts,
        }
        Extractor(prompts, success=bool({"success", "pair"} & parts), **given)


@pytest.mark.parametrize("prompt", sorted(table()))
def test_a_prompt_takes_the_listed_placeholders_and_no_other(prompt: str, tmp_path: Path) -> None:
    if prompt.endswith(".rust") and not rustc_runs():
        pytest.skip("needs rustc")
    listed = " ".join(f"{{{{{slot}}}}}" for slot in sorted(table()[prompt]))
    built_with(tmp_path, prompt, f"[[user]]\n{listed}")
    with pytest.raises(InvalidInput, match="is not available here"):
        built_with(tmp_path, prompt, f"[[user]]\n{listed} {{{{another}}}}")


def test_every_placeholder_is_described() -> None:
    assert described() == set[str]().union(*table().values())


def test_worked_examples_are_listed_and_hold_no_placeholder() -> None:
    page = PAGE.read_text("utf-8")
    assert EXAMPLES
    for name in EXAMPLES:
        assert f"`{name}.md`" in page
        assert FilePrompts().get(name).slots == frozenset()


def test_the_format_shown_is_a_prompt() -> None:
    (shown,) = re.findall(r"^```\n(\[\[system\]\].*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    system, user = Prompt.parse("shown", shown).render(task="Add.", past="")
    assert system.text == "You are a careful programmer."
    assert user.text == "Add."
