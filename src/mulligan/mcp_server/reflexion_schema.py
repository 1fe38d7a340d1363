"""What `reflexion-thinking` says of itself: the description, and the schemas of what it takes and gives."""

from __future__ import annotations

from mulligan.core.records import Json
from mulligan.mcp_server.tool import either

DESCRIPTION = """\
Solve a task by second tries that learn from the first. You act, judge and reflect; this tool keeps the order, your
reflections and the record. Use it when a first attempt may well fail and something can tell: tests, a compiler, a
checklist, a reader. Not for what is right at the first go.

For each trial, from trialNumber 1:
1. stepType "actor" with actorInputText (the task): gives current_memory, your earlier reflections. Make the attempt.
2. "evaluator" with actorOutputText (the whole attempt): judge it, with evidence where there is any.
3. "self-reflection" with actorOutputText, evaluatorScore (what was wrong, exactly) and, in the same call,
   reflectionText (the cause, and what to do otherwise). While next_trial_needed is true, go on with step 1 and
   trialNumber one higher.

A good attempt ends it: step 2 or 3 with passed: true. Pass the first answer's episodeId with every further call."""

_WHOLE: Json = {"type": "integer", "minimum": 1}


def _text(description: str) -> Json:
    return {"type": "string", "description": description}


def _texts(description: str) -> Json:
    return {"type": "array", "items": {"type": "string"}, "description": description}


INPUT: dict[str, Json] = {
    "type": "object",
    "properties": {
        "stepType": {"type": "string", "enum": ["actor", "evaluator", "self-reflection"], "description": "The step."},
        "trialNumber": {**_WHOLE, "description": "The trial, from 1."},
        "maxTrials": {**_WHOLE, "maximum": 1000, "description": "Trials at most: 3 to 5."},
        "actorInputText": _text("The whole task, for 'actor'."),
        "actorOutputText": _text("The whole attempt, for 'evaluator' and 'self-reflection'."),
        "evaluatorScore": either(
            "string",
            "number",
            description="The verdict in words, or a number (higher is better), for 'self-reflection'.",
        ),
        "reflectionText": _text("For 'self-reflection'. Left out, a prompt for it comes back."),
        "memoryOverride": _texts("Reflections in place of those that are remembered, newest first."),
        "episodeId": _text("As the first answer gave it. Left out for the first call."),
        "passed": {"type": "boolean", "description": "true with 'evaluator' or 'self-reflection': solved, the end."},
        "reset": {"type": "boolean", "description": "true: begin anew, nothing remembered. Not with episodeId."},
        "agentId": _text("Whose episode and lessons these are."),
        "learn": {"type": "boolean", "description": "true: at the end, keep lessons of it for later tasks."},
    },
    "required": ["stepType", "trialNumber", "maxTrials"],
}

OUTPUT: dict[str, Json] = {
    "type": "object",
    "properties": {
        "nextStep": {
            "type": "string",
            "enum": ["evaluator", "self-reflection"],
            "description": "The stepType to call.",
        },
        "prompt_for_actor": _text("The task, to be tried now."),
        "content_to_evaluate": _text("The attempt, to be judged now."),
        "prompt_for_reflection_llm": {
            "type": "object",
            "description": "What to reflect on.",
            "properties": {
                "task_description": _text("The task; empty where none was named."),
                "actor_output": _text("The attempt."),
                "evaluator_score": either("string", "number", description="What the evaluation said."),
                "current_memory": _texts("Earlier reflections, newest first."),
            },
            "required": ["task_description", "actor_output", "evaluator_score", "current_memory"],
        },
        "current_memory": _texts("Earlier reflections to try it with, newest first."),
        "trialNumber": {**_WHOLE, "description": "The trial that was called."},
        "maxTrials": {**_WHOLE, "description": "As it was called."},
        "message": _text("What to do now."),
        "trialCompleted": {**_WHOLE, "description": "The trial that is done: reflected on, or passed."},
        "reflection_added_to_memory": _text("The reflection, where one was given."),
        "memory": _texts("All that is remembered now, newest first."),
        "next_trial_needed": {"type": "boolean", "description": "Whether to go on with 'actor' and the next trial."},
        "trial_history_length": {"type": "integer", "minimum": 0, "description": "Trials that are done."},
        "learning": {
            "type": "object",
            "description": "With learn, at the end: what becomes of the lessons.",
            "properties": {
                "status": _text("processing; needs_thinking: answer `prompt` through extract_memory; success; error."),
                "task_id": either(
                    "string", "null", description="For memory_task, and for extract_memory where an answer is needed."
                ),
                "prompt": _text("What to think about."),
                "schema": {"type": "object", "description": "The JSON schema of the answer."},
                "message": _text("What to do, or what went wrong."),
            },
            "required": ["status"],
        },
        "episodeId": _text("The episode that this is recorded in."),
    },
    "required": ["episodeId"],
}
