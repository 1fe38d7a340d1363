"""For plug-in authors: records, protocols, roles, errors, and functions that format prompts.

    from mulligan.plugins import Episode, Feedback, Model

These names are stable, but the modules that define them may change. See docs/plugins.md.
"""

import warnings
from typing import Any

from mulligan.bank.learn.trajectory import episode_text
from mulligan.core.benchmarks import Benchmark, Judges, Method, ResultFile, Score, Source
from mulligan.core.errors import (
    BadAnswer,
    GaveUp,
    GraphError,
    InvalidInput,
    JournalError,
    LeaseLost,
    ModelError,
    MulliganError,
    NotFound,
    OutOfOrder,
    OverBudget,
    QueryError,
    RecordLost,
    SandboxError,
    StoreError,
    ToolError,
    UnknownName,
    WorldError,
)
from mulligan.core.extras import require
from mulligan.core.foresight import Ahead, Foresight
from mulligan.core.lessons import Selection, lesson_fields
from mulligan.core.optional import measuring
from mulligan.core.prompts import Prompt
from mulligan.core.protocols import (
    Actor,
    Adapts,
    Agent,
    Bank,
    Embedder,
    Environment,
    Evaluator,
    Job,
    Journal,
    Learned,
    Model,
    Prompts,
    Ran,
    Reflector,
    Reply,
    Sandbox,
    SolvedEpisodes,
    Strategy,
    TextMemory,
    Tools,
    Toolset,
    TranscriptFormat,
    Turn,
    Workspace,
    World,
)
from mulligan.core.questions import Answer, Message, Question, Sampling, Thinker, Tool, ToolCall, object_schema, think
from mulligan.core.ranking import Candidates, Deduplication, Merging, Ranked, Retrieval
from mulligan.core.records import (
    Artifact,
    Attempt,
    Case,
    Check,
    Condensed,
    Decision,
    Edit,
    Episode,
    Feedback,
    Finding,
    Head,
    Image,
    Json,
    Lesson,
    Outcome,
    Past,
    Plan,
    Quality,
    Recall,
    Reflection,
    Spec,
    Step,
    Stop,
    Task,
    Trial,
    Usage,
)
from mulligan.core.records import Choice as ArmChoice
from mulligan.reflectors._condensing import Condensing
from mulligan.reflectors._editing import Choice, Decide, Edited
from mulligan.text.actions import Action, parse_action
from mulligan.text.call_lines import calls_in, literal
from mulligan.text.evidence import TaskFeedback, evidence_of, failed_findings, findings_of, recall_with_evidence
from mulligan.text.files import read_text
from mulligan.text.formatting import (
    attempt_text,
    evidence_text,
    feedback_text,
    fenced,
    past_text,
    reflections_text,
    task_text,
    trajectory_text,
)
from mulligan.text.json_lines import objects, text_in
from mulligan.text.lessons import LessonBudget
from mulligan.text.programs import Language, program, runs_by_itself, typed
from mulligan.text.python_code import asked_for, parsed
from mulligan.text.reflections import fault, quality_of
from mulligan.text.truncate import estimate

__all__ = [
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
    "failed_findings",
    "fault",
    "feedback_text",
    "fenced",
    "findings_of",
    "lesson_fields",
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
]

_RENAMED = {"gathered": "failed_findings", "recalled_beside": "recall_with_evidence"}
"""Former names, which work for one more minor version."""


def __getattr__(name: str) -> Any:
    if name not in _RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"mulligan.plugins.{name} is called {_RENAMED[name]}", DeprecationWarning, stacklevel=2)
    return globals()[_RENAMED[name]]
