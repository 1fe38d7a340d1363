"""`solve`: hands a whole task to the server's own model, which tries until an attempt passes."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.core.records import Json
from mulligan.mcp_server.tool import Call, Reply, Tool, array, either, schema, string, structure

ARGUMENTS = {
    "task": string(
        "The whole task. The model sees nothing else: no files, tools, network or earlier talk.", minLength=1
    ),
    "tests": string(
        "The text (not the name) of a Python test file that judges: plain asserts or pytest style. The output is then "
        "Python code; both run in a sandbox."
    ),
    "expected": string("The exact answer, compared without case, punctuation and articles. The model is not told it."),
    "trials": schema("integer", "Attempts at most, the first included (default: 4).", minimum=1, maximum=20),
    "agentId": string("Whose record this is, and whose lessons are used."),
    "remember": schema("boolean", "Recall lessons of earlier tasks first, and learn from this one (default: false)."),
}
INPUT = {**structure(ARGUMENTS, ["task"]), "additionalProperties": False}

_TRIAL = {
    "number": schema("integer"),
    "passed": either("boolean", "null", description="null: it could not be judged."),
    "score": either("number", "null", description="Higher is better."),
    "feedback": string(),
    "reflection": either("string", "null", description="What the next trial was told."),
}
_USAGE = {
    "tokens": schema("integer"),
    "calls": schema("integer"),
    "cost": either("number", "null", description="US dollars; null: the price is not known."),
}
_ANSWER = {
    "status": string(
        "solved; trials used up; the same attempt again and again; given up; a limit of the server reached; stopped by "
        "an error (such an answer is marked as one).",
        enum=["solved", "exhausted", "stuck", "gave_up", "over_budget", "error"],
    ),
    "solved": schema("boolean"),
    "output": either("string", "null", description="The best attempt, solved or not."),
    "episodeId": string("To be read as mulligan://episodes/ID, or by `mulligan runs show`."),
    "trials": array(structure(_TRIAL, list(_TRIAL))),
    "usage": structure(_USAGE, list(_USAGE)),
    "judgedBy": string(enum=["unit_tests", "exact_match", "model_judge"]),
    "notes": array(string(), "What qualifies the verdict; what was learned."),
}
OUTPUT = structure(_ANSWER, list(_ANSWER))


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    from mulligan.mcp_server.tools.solving import parse, solve  # what solves imports a good deal

    return await solve(parse(arguments, ARGUMENTS, call), call)


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
