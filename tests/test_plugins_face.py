"""What authors of plug-ins import: its names stay, and it is light."""

import subprocess
import sys
from pathlib import Path

import pytest

import mulligan.plugins

ROOT = Path(__file__).parent.parent
HEAVY = {"pydantic", "pydantic_ai", "numpy", "rich", "click", "mcp", "yaml"}
NAMES = {
    "Action",
    "Actor",
    "Adapts",
    "Agent",
    "Ahead",
    "Answer",
    "ArmChoice",
    "Artifact",
    "Attempt",
    "BadAnswer",
    "Bank",
    "Benchmark",
    "Candidates",
    "Case",
    "Check",
    "Choice",
    "Condensed",
    "Condensing",
    "Decide",
    "Decision",
    "Deduplication",
    "Edit",
    "Edited",
    "Embedder",
    "Environment",
    "Episode",
    "Evaluator",
    "Feedback",
    "Finding",
    "Foresight",
    "GaveUp",
    "GraphError",
    "Head",
    "Image",
    "InvalidInput",
    "Job",
    "Journal",
    "JournalError",
    "Json",
    "Judges",
    "Language",
    "Learned",
    "LeaseLost",
    "Lesson",
    "LessonBudget",
    "Merging",
    "Message",
    "Method",
    "Model",
    "ModelError",
    "MulliganError",
    "NotFound",
    "OutOfOrder",
    "Outcome",
    "OverBudget",
    "Past",
    "Plan",
    "Prompt",
    "Prompts",
    "Quality",
    "QueryError",
    "Question",
    "Ran",
    "Ranked",
    "Recall",
    "RecordLost",
    "Reflection",
    "Reflector",
    "Reply",
    "ResultFile",
    "Retrieval",
    "Sampling",
    "Sandbox",
    "SandboxError",
    "Score",
    "Selection",
    "SolvedEpisodes",
    "Source",
    "Spec",
    "Step",
    "Stop",
    "StoreError",
    "Strategy",
    "Task",
    "TaskFeedback",
    "TextMemory",
    "Thinker",
    "Tool",
    "ToolCall",
    "ToolError",
    "Tools",
    "Toolset",
    "TranscriptFormat",
    "Trial",
    "Turn",
    "UnknownName",
    "Usage",
    "Workspace",
    "World",
    "WorldError",
    "asked_for",
    "attempt_text",
    "calls_in",
    "episode_text",
    "estimate",
    "evidence_of",
    "evidence_text",
    "fault",
    "feedback_text",
    "fenced",
    "findings_of",
    "lesson_fields",
    "failed_findings",
    "literal",
    "measuring",
    "object_schema",
    "objects",
    "parse_action",
    "parsed",
    "past_text",
    "program",
    "quality_of",
    "read_text",
    "recall_with_evidence",
    "reflections_text",
    "require",
    "runs_by_itself",
    "task_text",
    "text_in",
    "think",
    "trajectory_text",
    "typed",
}


def test_its_names_stay() -> None:
    assert set(mulligan.plugins.__all__) == NAMES
    assert mulligan.plugins.__all__ == sorted(NAMES)
    assert all(hasattr(mulligan.plugins, name) for name in NAMES)


def test_importing_it_is_light() -> None:
    code = f"import sys, mulligan.plugins; print(sorted({HEAVY!r} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "[]"


def test_no_page_or_example_sends_an_author_to_core() -> None:
    pages = [page for folder in ("docs", "examples") for page in (ROOT / folder).rglob("*")]
    read = {page: page.read_text(encoding="utf-8") for page in pages if page.suffix in (".md", ".py")}
    assert len(read) > 40
    assert [str(page) for page, text in read.items() if "from mulligan.core" in text] == []


def test_former_names_still_work_and_name_the_new_ones() -> None:
    with pytest.warns(DeprecationWarning, match="is called failed_findings"):
        assert mulligan.plugins.gathered is mulligan.plugins.failed_findings
    with pytest.warns(DeprecationWarning, match="is called recall_with_evidence"):
        assert mulligan.plugins.recalled_beside is mulligan.plugins.recall_with_evidence
    assert not hasattr(mulligan.plugins, "found")
