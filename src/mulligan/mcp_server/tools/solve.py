"""`solve`: a whole task handed over to the server's own model, tried and judged until it passes."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.core.records import Json
from mulligan.mcp_server.tool import Call, Reply, Tool, either

_TEXT: Json = {"type": "string"}
ARGUMENTS: dict[str, Json] = {
    "task": {
        "type": "string",
        "minLength": 1,
        "description": "The whole task. The model sees nothing else: no files, tools, network or earlier talk.",
    },
    "tests": {
        "type": "string",
        "description": "The text (not the name) of a Python test file that judges: plain asserts or pytest style. The "
        "output is then Python code; both run in a sandbox.",
    },
    "expected": {
        "type": "string",
        "description": "The exact answer, compared without case, punctuation and articles. The model is not told it.",
    },
    "trials": {
        "type": "integer",
        "minimum": 1,
        "maximum": 20,
        "description": "Attempts at most, the first included (default: 4).",
    },
    "agentId": {"type": "string", "description": "Whose record this is, and whose lessons are used."},
    "remember": {
        "type": "boolean",
        "description": "Recall lessons of earlier tasks first, and learn from this one (default: false).",
    },
}

INPUT: dict[str, Json] = {
    "type": "object",
    "properties": ARGUMENTS,
    "required": ["task"],
    "additionalProperties": False,
}
OUTPUT: dict[str, Json] = {
    "type": "object",
    "properties": {
        "status": {
            "type": "string",
            "enum": ["solved", "exhausted", "stuck", "gave_up", "over_budget", "error"],
            "description": "solved; trials used up; the same attempt again and again; given up; a limit of the server "
            "reached; stopped by an error (such an answer is marked as one).",
        },
        "solved": {"type": "boolean"},
        "output": either("string", "null", description="The best attempt, solved or not."),
        "episodeId": {
            "type": "string",
            "description": "To be read as mulligan://episodes/ID, or by `mulligan runs show`.",
        },
        "trials": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "number": {"type": "integer"},
                    "passed": either("boolean", "null", description="null: it could not be judged."),
                    "score": either("number", "null", description="Higher is better."),
                    "feedback": _TEXT,
                    "reflection": either("string", "null", description="What the next trial was told."),
                },
                "required": ["number", "passed", "score", "feedback", "reflection"],
            },
        },
        "usage": {
            "type": "object",
            "properties": {
                "tokens": {"type": "integer"},
                "calls": {"type": "integer"},
                "cost": either("number", "null", description="US dollars; null: the price is not known."),
            },
            "required": ["tokens", "calls", "cost"],
        },
        "judgedBy": {"type": "string", "enum": ["unit_tests", "exact_match", "model_judge"]},
        "notes": {"type": "array", "items": _TEXT, "description": "What qualifies the verdict; what was learned."},
    },
    "required": ["status", "solved", "output", "episodeId", "trials", "usage", "judgedBy", "notes"],
}


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    from mulligan.mcp_server.solving import solved, wanted_of

    return await solved(wanted_of(arguments, ARGUMENTS, call), call)


def failed(message: str, arguments: Mapping[str, Json]) -> Reply:
    return Reply({"error": message}, error=True, indent=None)


TOOL = Tool(
    name="solve",
    title="Solve a task by second tries",
    description=(
        "Hand a whole task over to this server's own model: it tries, the attempt is judged, and after a failure it "
        "reflects and tries again with what it learned, until an attempt passes or the trials are used up. Choose it "
        "for a task that can be said in one text and whose success can be checked: give `tests` (Python) or `expected` "
        "(an exact answer); without either the model judges itself, which is weaker. To do the thinking yourself, use "
        "`reflexion-thinking` instead. It takes several model calls, so seconds to minutes; progress is told, and a "
        "cancelled call is kept and can be resumed. Returns the best attempt, whether it is solved, and the trials."
    ),
    input_schema=INPUT,
    output_schema=OUTPUT,
    call=call,
    failed=failed,
    open_world=True,
    offered=lambda service: service.model is not None,
)
