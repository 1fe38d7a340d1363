"""What `reflexion-thinking` says of itself: the description, and the schemas of what it takes and gives."""

from __future__ import annotations

from mulligan.core.records import Json
from mulligan.mcp_server.tool import either

DESCRIPTION = """\
Solve a task by second tries that learn from the first. You act, judge and reflect; this tool keeps the order, memory
of your reflections, and the record. Use it when a first attempt may well fail and something can tell (tests, a
compiler, a checklist, a reader): code, proofs, plans, texts with criteria. Not for what is right at the first go.

For each trial, from trialNumber 1:
1. stepType "actor" with actorInputText (the task): gives prompt_for_actor and current_memory, your earlier reflections,
   newest first. Make the attempt with them in mind.
2. "evaluator" with actorOutputText (the whole attempt): judge what comes back, with evidence where there is any.
3. "self-reflection" with actorOutputText and evaluatorScore (what was wrong, exactly): gives prompt_for_reflection_llm.
   Write a short reflection: the cause, and what to do otherwise.
4. "self-reflection" again, with reflectionText: it is remembered. Where next_trial_needed is true, go on with step 1
   and trialNumber one higher.

An attempt that is good ends it: step 2 or 3 with passed: true. Every answer has episodeId: pass it with every further
call, so that the order is checked, no other task mixes in, and you can go on after a restart. learn: true keeps lessons
of the finished episode for later tasks."""

_WHOLE: Json = {"type": "integer", "minimum": 1}


def _text(description: str) -> Json:
    return {"type": "string", "description": description}


def _texts(description: str) -> Json:
    return {"type": "array", "items": {"type": "string"}, "description": description}


INPUT: dict[str, Json] = {
    "type": "object",
    "properties": {
        "stepType": {
            "type": "string",
            "enum": ["actor", "evaluator", "self-reflection"],
            "description": "The step of this trial that the call is.",
        },
        "trialNumber": {**_WHOLE, "description": "The trial, from 1."},
        "maxTrials": {**_WHOLE, "maximum": 1000, "description": "Trials at most; 3 to 5 are usual."},
        "actorInputText": _text("The task, whole. Required for 'actor'."),
        "actorOutputText": _text("The attempt, whole. Required for 'evaluator' and 'self-reflection'."),
        "evaluatorScore": either(
            "string",
            "number",
            description="What the evaluation says, in words or as a number (higher is better). Required for "
            "'self-reflection'.",
        ),
        "reflectionText": _text("The reflection, for 'self-reflection'. Left out, a prompt for writing it comes back."),
        "memoryOverride": _texts("Reflections that take the place of those that are remembered, newest first."),
        "episodeId": _text(
            "The episodeId of the answer before. With it the steps must come in order, and a call that is repeated is "
            "recorded once. Left out for the first call."
        ),
        "passed": {
            "type": "boolean",
            "description": "With 'evaluator' or 'self-reflection': true ends the episode as solved. A trial that is "
            "reflected on without it has failed.",
        },
        "reset": {
            "type": "boolean",
            "description": "true forgets what this connection remembers and begins a new episode. Not with episodeId.",
        },
        "agentId": _text("Whose episode it is, and whose bank learns. Named once, it holds for the connection."),
        "learn": {
            "type": "boolean",
            "description": "true: when this call ends the episode, lessons of it are kept for later tasks. Else it is "
            "ignored, so it may be passed always.",
        },
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
