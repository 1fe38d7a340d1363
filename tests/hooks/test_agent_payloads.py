"""What each agent reports and takes, by payloads as they were recorded (spec of the agents' hooks)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row

from mulligan.sessions.agents import NAMES, agent
from mulligan.sessions.events import Notice

OUTPUT = "ls: cannot access '/x': No such file or directory"
COMMON = {"session_id": "s1", "transcript_path": "/t/s1.jsonl", "cwd": "/p"}
BASH = {"tool_name": "Bash", "tool_input": {"command": "ls /x"}, "tool_use_id": "toolu_1"}
SHELL = {"tool_name": "run_shell_command", "tool_input": {"command": "ls /x"}}


def gemini_result(code: int | None) -> dict[str, Any]:
    ended = "" if code is None else f"\nExit Code: {code}"
    return {
        "tool_response": {"llmContent": f"Output: {OUTPUT}{ended}\nProcess Group PGID: 41", "returnDisplay": OUTPUT}
    }


def read(name: str, payload: Mapping[str, Any], **environ: str) -> Notice | None:
    return agent(name).notice(payload, environ)


def test_every_agent_is_complete() -> None:
    for name in NAMES:
        one = agent(name)
        assert name == one.name
        assert {"start", "stop", "end"} <= {hook.moment for hook in one.hooks}
        assert one.settings.project
        for hook in one.hooks:
            notice = Notice(name, hook.moment, "s", "/p", hook.event)
            for answer in (
                one.answer(notice, "text"),
                one.hold(notice, "why?"),
                one.ask(notice, "sure?"),
                one.deny(notice, "no"),
            ):
                assert not answer or isinstance(json.loads(answer), dict)
    with pytest.raises(KeyError):
        agent("emacs")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "payload", [{}, {"hook_event_name": "Unheard"}, {"hook_event_name": 3}, {"event": None, "input": [], "output": 1}]
)
def test_an_event_that_is_not_known_means_nothing(name: str, payload: dict[str, Any]) -> None:
    assert read(name, payload) is None


@each_row("name", NAMES)
def test_fields_of_an_odd_kind_break_nothing(name: str) -> None:
    for hook in agent(name).hooks:
        odd: dict[str, Any] = {
            "hook_event_name": hook.event,
            "event": hook.event,
            "session_id": ["s"],
            "tool_input": "x",
            "error": {},
        }
        odd |= {"tool_response": [1], "tool_output": "[", "toolArgs": "{", "input": 3, "output": {"parts": [None]}}
        found = read(name, {**odd, "prompt": "p"})
        assert found is None or isinstance(found.output, str)


# --- Claude Code


def test_claude_says_that_a_call_failed() -> None:
    event = {**COMMON, "hook_event_name": "PostToolUseFailure", **BASH, "is_interrupt": False, "duration_ms": 8}
    found = read("claude", {**event, "error": f"Exit code 2\n{OUTPUT}"})
    assert found == Notice(
        "claude", "failure", "s1", "/p", "PostToolUseFailure", "/t/s1.jsonl", tool="Bash", command="ls /x",
        call="toolu_1", output=OUTPUT,
    )  # fmt: skip
    bare = read("claude", {**event, "error": "Exit code 1"})
    assert bare
    assert bare.output == ""
    assert read("claude", {**event, "is_interrupt": True, "error": "x"}) is None


def test_claude_in_order_of_a_session() -> None:
    start = read("claude", {**COMMON, "hook_event_name": "SessionStart", "source": "compact"})
    prompt = read("claude", {**COMMON, "hook_event_name": "UserPromptSubmit", "prompt": "list it"})
    stop: dict[str, Any] = {
        "stop_hook_active": True,
        "last_assistant_message": "done",
        "background_tasks": [],
        "session_crons": [],
    }
    stopped = read("claude", {**COMMON, "hook_event_name": "Stop", **stop})
    end = read("claude", {**COMMON, "hook_event_name": "SessionEnd", "reason": "other"})
    assert start
    assert prompt
    assert stopped
    assert end
    assert (start.moment, start.source) == ("start", "compact")
    assert (prompt.moment, prompt.text) == ("prompt", "list it")
    assert (stopped.moment, stopped.text, stopped.stop_hook_active) == ("stop", "done", True)
    assert end.moment == "end"


def test_claude_names_its_sub_agents() -> None:
    event = {**COMMON, "hook_event_name": "SubagentStop", "agent_id": "a7", "agent_type": "tester"}
    found = read("claude", {**event, "agent_transcript_path": "/t/s1/subagents/agent-a7.jsonl"})
    assert found
    assert (found.moment, found.subagent, found.subagent_id) == ("subagent_stop", "tester", "a7")
    assert found.transcript == "/t/s1/subagents/agent-a7.jsonl"
    main = read(
        "claude", {**COMMON, "hook_event_name": "SessionStart", "agent_type": "tester"}
    )  # claude --agent tester
    assert main
    assert main.subagent == ""


ALLOWS = {
    # holds at a stop, says that it was held, asks the user about a call, stops in a row
    "claude": (True, True, True, 8),
    "codex": (True, True, False, 0),
    "gemini": (True, True, False, 0),
    "opencode": (False, True, False, 0),
    "qwen": (True, False, False, 0),
    "cursor": (True, True, False, 5),
    "copilot": (True, False, True, 8),
}


@each_row("name", NAMES)
def test_what_hooks_may_do_with_an_agent(name: str) -> None:
    one = agent(name)
    assert (one.holds, one.says_held, one.asks, one.holds_in_row) == ALLOWS[name]
    stop, call = (Notice(name, "stop", "s", "/p", event) for event in (one.stop, one.before_tool))
    assert bool(one.hold(stop, "go on")) is one.holds
    assert bool(one.ask(call, "sure?")) is one.asks
    assert "never" in one.deny(call, "never")
    assert (one.hold(call, "x"), one.deny(stop, "x"), one.ask(stop, "x")) == ("", "", "")


def test_cursor_says_how_often_it_was_held() -> None:
    stop = {"hook_event_name": "stop", "conversation_id": "s", "workspace_roots": ["/p"], "status": "completed"}
    held = [read("cursor", {**stop, "loop_count": count}) for count in (0, 2)]
    assert [one and one.stop_hook_active for one in held] == [False, True]


@pytest.mark.parametrize("name", ["claude", "codex", "qwen"])
def test_the_answers_of_claude_and_those_who_took_them_over(name: str) -> None:
    one = agent(name)
    prompt = Notice(name, "prompt", "s", "/p", "UserPromptSubmit")
    assert json.loads(one.answer(prompt, "text")) == {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "text"}
    }
    call = Notice(name, "before_tool", "s", "/p", "PreToolUse")
    assert json.loads(one.deny(call, "why")) == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "why",
        }
    }  # fmt: skip
    assert one.answer(call, "text") == ""  # comes too late, or nowhere
    for silent in ("Stop", "SessionEnd"):
        assert one.answer(Notice(name, "stop", "s", "/p", silent), "text") == ""
    stop = Notice(name, "stop", "s", "/p", "Stop")
    assert json.loads(one.hold(stop, "what?")) == {"decision": "block", "reason": "what?"}


# --- Codex CLI


def codex_line(**payload: Any) -> str:
    return json.dumps({"timestamp": "2026-01-01T00:00:00Z", "type": "event_msg", "payload": payload}) + "\n"


def completed(status: str, code: int, call: str = "call_1") -> str:
    item = {"type": "CommandExecution", "id": call, "command": ["/bin/bash", "-lc", "ls /x"], "status": status}
    return codex_line(type="item_completed", item={**item, "exit_code": code, "aggregated_output": OUTPUT})


CODEX = {"cwd": "/p", "session_id": "s1", "hook_event_name": "PostToolUse", "model": "m", "permission_mode": "default"}


@pytest.mark.parametrize(
    ("lines", "moment"),
    [
        (completed("failed", 2), "failure"),
        (completed("completed", 0), "success"),
        (completed("failed", 2, "call_0") + completed("completed", 0), "success"),
        (completed("completed", 0, "call_0") + completed("failed", 2) + codex_line(type="token_count"), "failure"),
        (codex_line(type="exec_command_end", call_id="call_1", exit_code=1, aggregated_output=OUTPUT), "failure"),
        (
            codex_line(
                type="function_call_output", call_id="call_1", output=f"Process exited with code 2\nOutput:\n{OUTPUT}"
            ),
            "failure",
        ),
        ("", "success"),
        ("{broken call_1\n", "success"),
    ],
)
def test_codex_says_in_its_transcript_whether_a_call_failed(tmp_path: Path, lines: str, moment: str) -> None:
    transcript = tmp_path / "rollout.jsonl"
    transcript.write_text(codex_line(type="session_meta") + lines)
    call = {"tool_name": "Bash", "tool_input": {"command": "ls /x"}, "tool_use_id": "call_1"}
    found = read("codex", {**CODEX, **call, "transcript_path": str(transcript), "tool_response": f"error: {OUTPUT}"})
    assert found
    assert found.moment == moment
    assert found.output == (OUTPUT if moment == "failure" else "")


def test_codex_finds_a_call_far_from_the_end_of_its_transcript(tmp_path: Path) -> None:
    transcript = tmp_path / "rollout.jsonl"
    transcript.write_text(completed("failed", 2) + codex_line(type="x", text="é" * 150_000))
    found = read("codex", {**CODEX, "tool_use_id": "call_1", "transcript_path": str(transcript)})
    assert found
    assert found.moment == "failure"


def test_codex_without_a_transcript_knows_no_failure() -> None:
    found = read("codex", {**CODEX, "tool_use_id": "call_1", "transcript_path": None, "tool_response": "error: failed"})
    assert found
    assert found.moment == "success"


# --- Gemini CLI


@pytest.mark.parametrize(("code", "moment"), [(2, "failure"), (-9, "failure"), (0, "success"), (None, "success")])
def test_gemini_writes_the_exit_code_into_the_result(code: int | None, moment: str) -> None:
    event = {**COMMON, "hook_event_name": "AfterTool", **SHELL}
    found = read("gemini", {**event, **gemini_result(code)})
    assert found
    assert found.moment == moment
    assert found.output == (OUTPUT if moment == "failure" else "")


def test_a_command_that_prints_an_exit_code_has_not_failed() -> None:
    printed = {
        "tool_response": {"llmContent": "Output: the log says\nExit Code: 2\nand goes on\nProcess Group PGID: 4"}
    }
    found = read("gemini", {**COMMON, "hook_event_name": "AfterTool", **SHELL, **printed})
    assert found
    assert found.moment == "success"


def test_gemini_hands_its_own_context_back_with_the_prompt() -> None:
    prompt = "<hook_context>old lesson</hook_context>\n\nlist it"
    found = read("gemini", {**COMMON, "hook_event_name": "BeforeAgent", "prompt": prompt})
    assert found
    assert (found.moment, found.text) == ("prompt", "list it")
    assert read("gemini", {**COMMON, "hook_event_name": "PreCompress", "trigger": "auto"}) is None


def test_the_answers_of_gemini() -> None:
    one = agent("gemini")
    after = Notice("gemini", "failure", "s", "/p", "AfterTool")
    assert json.loads(one.answer(after, "text")) == {
        "hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": "text"}
    }
    before = Notice("gemini", "before_tool", "s", "/p", "BeforeTool")
    assert one.answer(before, "text") == ""
    assert json.loads(one.deny(before, "why")) == {"decision": "deny", "reason": "why"}
    assert json.loads(one.hold(Notice("gemini", "stop", "s", "/p", "AfterAgent"), "what?")) == {
        "decision": "deny",
        "reason": "what?",
    }


# --- Qwen Code


def test_qwen_fails_in_two_ways() -> None:
    shell = read("qwen", {**COMMON, "hook_event_name": "PostToolUse", **SHELL, **gemini_result(2)})
    file = read("qwen", {**COMMON, "hook_event_name": "PostToolUseFailure", "tool_name": "read_file", "error": "gone"})
    good = read("qwen", {**COMMON, "hook_event_name": "PostToolUse", **SHELL, **gemini_result(None)})
    assert shell
    assert file
    assert good
    assert (shell.moment, shell.output) == ("failure", OUTPUT)
    assert (file.moment, file.output) == ("failure", "gone")
    assert good.moment == "success"


def test_qwen_prompts_again_after_every_tool() -> None:
    assert read("qwen", {**COMMON, "hook_event_name": "UserPromptSubmit", "prompt": ""}) is None
    stop = read("qwen", {**COMMON, "hook_event_name": "Stop", "stop_hook_active": True})
    assert stop
    assert not stop.stop_hook_active  # it says so at the first stop, too


# --- opencode


def after(exit: int) -> dict[str, Any]:
    given = {"tool": "bash", "sessionID": "ses_1", "callID": "call_1", "args": {"command": "ls /x"}}
    result = {"title": "ls", "output": OUTPUT, "metadata": {"exit": exit, "output": OUTPUT}}
    return {"event": "tool.execute.after", "directory": "/p", "input": given, "output": result}


def test_opencode_has_the_exit_code_beside_the_output() -> None:
    failed, good = read("opencode", after(2)), read("opencode", after(0))
    assert failed
    assert good
    assert (failed.moment, failed.output, failed.command, failed.call) == ("failure", OUTPUT, "ls /x", "call_1")
    assert good.moment == "success"
    assert json.loads(agent("opencode").answer(failed, "text")) == {"text": "text"}


def test_opencode_does_not_take_what_was_put_in_for_a_prompt() -> None:
    parts = [
        {"type": "text", "text": "list it"},
        {"type": "text", "text": "lesson", "synthetic": True},
        {"type": "file"},
    ]
    payload = {"event": "chat.message", "directory": "/p", "input": {"sessionID": "ses_1"}, "output": {"parts": parts}}
    found = read("opencode", payload)
    assert found
    assert (found.moment, found.session, found.text) == ("prompt", "ses_1", "list it")
    before = {
        "event": "tool.execute.before",
        "input": {"tool": "bash", "sessionID": "s"},
        "output": {"args": {"command": "x"}},
    }
    call = read("opencode", {**before, "directory": "/p"})
    assert call
    assert call.command == "x"
    assert json.loads(agent("opencode").deny(call, "why")) == {"deny": "why"}


# --- Cursor and Copilot, as read


def test_cursor() -> None:
    common = {"conversation_id": "c1", "generation_id": "g", "workspace_roots": ["/p"], "cursor_version": "2"}
    result = json.dumps({"exitCode": 2, "stdout": "", "stderr": OUTPUT})
    found = read("cursor", {**common, "hook_event_name": "postToolUse", "tool_name": "Shell", "tool_output": result})
    assert found
    assert (found.moment, found.output, found.session, found.folder) == ("failure", OUTPUT, "c1", "/p")
    assert json.loads(agent("cursor").answer(found, "text")) == {"additional_context": "text"}
    call = read("cursor", {**common, "hook_event_name": "beforeShellExecution", "command": "ls", "cwd": "/q"})
    assert call
    assert (call.command, call.folder) == ("ls", "/q")
    assert json.loads(agent("cursor").deny(call, "why"))["permission"] == "deny"


def test_copilot_is_told_the_event_by_the_command() -> None:
    payload = {"cwd": "/p", "toolName": "bash", "toolArgs": '{"command": "ls /x"}', "error": OUTPUT}
    found = read("copilot", {"hook_event_name": "postToolUseFailure", **payload})
    assert found
    assert (found.moment, found.output, found.command) == ("failure", OUTPUT, "ls /x")
    assert json.loads(agent("copilot").answer(found, "text")) == {"additionalContext": "text"}
