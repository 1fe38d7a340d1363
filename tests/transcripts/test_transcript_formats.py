"""What every format of transcripts does alike, and what is particular to each. `SAMPLES`: a conversation in each form."""

import json
from pathlib import Path
from typing import Any

import pytest
from agent_transcripts import FORMATS, in_format
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from session_formats import MORE
from traced import call, chat, lines, request, result, said

from mulligan.app.plugins import build, names, parse_spec
from mulligan.app.transcripts import Transcript, read_transcript
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.protocols import TranscriptFormat
from mulligan.core.records import Step
from mulligan.core.turns import Turn

TURNS = (
    Turn("system", "Be brief."),
    Turn("user", "Make the tests pass."),
    Turn("assistant", "I run them."),
    Turn("assistant", '{"command": "pytest"}', "shell"),
    Turn("tool", "1 failed", "shell"),
    Turn("user", "They run with make check."),
    Turn("assistant", "Done."),
)
OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Make the tests pass."}]},
    {
        "role": "assistant",
        "content": "I run them.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "pytest"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "1 failed"},
    {"role": "user", "content": "They run with make check."},
    {"role": "assistant", "content": "Done."},
]
ANTHROPIC: dict[str, Any] = {
    "model": "m",
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "Make the tests pass."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Which command?"},
                {"type": "text", "text": "I run them."},
                {"type": "tool_use", "id": "c1", "name": "shell", "input": {"command": "pytest"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "1 failed"}]},
                {"type": "text", "text": "They run with make check."},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ],
}
RESPONSES: dict[str, Any] = {
    "instructions": "Be brief.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Make the tests pass."}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Which command?"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I run them."}]},
        {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"command": "pytest"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "1 failed"},
        {"role": "user", "content": "They run with make check."},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ],
}
GOOGLE: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "Make the tests pass."}]},
        {
            "role": "model",
            "parts": [
                {"text": "Which command?", "thought": True},
                {"text": "I run them."},
                {"functionCall": {"name": "shell", "args": {"command": "pytest"}}},
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "shell", "response": {"output": "1 failed"}}}]},
        {"role": "user", "parts": [{"text": "They run with make check."}]},
        {"role": "model", "parts": [{"text": "Done."}]},
    ],
}
PYDANTIC_AI: list[dict[str, Any]] = [
    {
        "kind": "request",
        "parts": [
            {"part_kind": "system-prompt", "content": "Be brief."},
            {"part_kind": "user-prompt", "content": ["Make the tests pass."]},
        ],
    },
    {
        "kind": "response",
        "parts": [
            {"part_kind": "thinking", "content": "Which command?"},
            {"part_kind": "text", "content": "I run them."},
            {"part_kind": "tool-call", "tool_name": "shell", "args": {"command": "pytest"}, "tool_call_id": "c1"},
        ],
    },
    {
        "kind": "request",
        "parts": [
            {"part_kind": "tool-return", "tool_name": "shell", "content": "1 failed", "tool_call_id": "c1"},
            {"part_kind": "user-prompt", "content": "They run with make check."},
        ],
    },
    {"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]},
]
LANGCHAIN: list[dict[str, Any]] = [
    {"type": "system", "content": "Be brief."},
    {"type": "human", "content": "Make the tests pass."},
    {
        "type": "ai",
        "content": [{"type": "text", "text": "I run them."}, {"type": "tool_use", "id": "c1", "name": "shell"}],
        "tool_calls": [{"name": "shell", "args": {"command": "pytest"}, "id": "c1", "type": "tool_call"}],
    },
    {"type": "tool", "content": "1 failed", "tool_call_id": "c1", "status": "success"},
    {"type": "human", "content": "They run with make check."},
    {"type": "ai", "content": "Done.", "tool_calls": []},
]
GENAI: list[dict[str, Any]] = [
    said("system", "Be brief."),
    said("user", "Make the tests pass."),
    said(
        "assistant",
        {"type": "reasoning", "content": "Which?"},
        "I run them.",
        call("c1", "shell", {"command": "pytest"}),
    ),
    said("tool", result("c1", "1 failed")),
    said("user", "They run with make check."),
    said("assistant", "Done."),
]
OTLP = request(chat(1, GENAI[:-1], GENAI[-1:]))
PLAIN = """\
Be brief.

User: Make the tests pass.
Assistant:
I run them.
**Tool (shell):** 1 failed
## Human
They run with make check.
AI: Done.
"""
SAMPLES: dict[str, tuple[str, ...]] = {
    "openai": (
        json.dumps(OPENAI),
        json.dumps({"messages": OPENAI}, indent=2),
        "\n".join(map(json.dumps, OPENAI)) + "\n",
    ),
    "anthropic": (
        json.dumps(ANTHROPIC),
        "\n".join(json.dumps(one) for one in [{"role": "system", "content": "Be brief."}, *ANTHROPIC["messages"]]),
    ),
    "responses": (
        json.dumps(RESPONSES),
        json.dumps(RESPONSES["input"][1:]).replace(
            "[{",
            '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Make the tests pass."}, {',
            1,
        ),
    ),
    "google": (
        json.dumps(GOOGLE),
        json.dumps(GOOGLE).replace("functionCall", "function_call").replace("functionResponse", "function_response"),
    ),
    "pydantic_ai": (json.dumps(PYDANTIC_AI),),
    "langchain": (
        json.dumps(LANGCHAIN),
        json.dumps([{"type": one["type"], "data": one} for one in LANGCHAIN]),
        json.dumps([{"lc": 1, "type": "constructor", "id": ["langchain"], "kwargs": one} for one in LANGCHAIN]),
    ),
    "genai": (json.dumps(GENAI), "\n".join(map(json.dumps, GENAI))),
    "otlp": (
        json.dumps(OTLP, indent=2),
        lines(request(chat(1, GENAI[:2], GENAI[2:3])), request(chat(2, GENAI[:-1], GENAI[-1:], at=3))),
    ),
    "plain": (PLAIN, PLAIN.replace("\n", "\r\n")),
    **{name: (in_format(name),) for name in FORMATS},
}
EACH = [(name, text) for name, texts in SAMPLES.items() for text in texts]


def reader(name: str) -> TranscriptFormat:
    return build("transcripts", parse_spec("transcripts", name), {})


def turns(text: str, format: str | None = None) -> tuple[Turn, ...]:
    """What was said and done; not its ids, times and folders."""
    return tuple(Turn(turn.role, turn.text, turn.tool) for turn in read_transcript(text, "chat", format).turns)


def test_every_format_has_a_sample() -> None:
    assert sorted({*SAMPLES, *MORE}) == names("transcripts")


@each_row(("name", "text"), EACH)
def test_a_sample_is_recognised_by_its_format_alone_and_read_as_the_same_turns(name: str, text: str) -> None:
    assert [one for one in SAMPLES if reader(one).recognises(text)] == [name]
    calls = name != "plain"  # plain text has no calls of tools
    above = name not in FORMATS  # coding agents keep their system prompt to themselves
    expected = [turn for turn in TURNS if above or turn.role != "system"]
    assert turns(text) == tuple(turn for turn in expected if calls or turn.text[0] != "{")


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("text", ["", " \n", "null", "[]", "{}", "[1]", '"User: x"', '{"messages": []}', "no speaker"])
def test_a_text_without_turns_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match="chat"):
        turns(text, name)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["text", "tool_use", "user"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("type", "text", "id", "name", "input", "tool_use_id", "function", "arguments", "custom")
BLOCK = st.dictionaries(st.sampled_from((*KEYS, "content")), VALUES, max_size=6)
PART = st.dictionaries(
    st.sampled_from(("part_kind", "content", "tool_name", "args", "text", "functionCall", "functionResponse", "kind")),
    VALUES | st.sampled_from(["tool-return", "user-prompt", "retry-prompt", "text"]),
    max_size=5,
)
OTHERS = st.dictionaries(
    st.sampled_from(
        ("type", "kind", "parts", "role", "data", "kwargs", "lc", "content", "tool_calls", "call_id", "output")
    ),
    VALUES
    | st.lists(PART, max_size=3)
    | st.sampled_from(
        ["human", "ai", "tool", "function_call", "function_call_output", "request", "response", "model", 1]
    ),
    max_size=6,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "function"]) | VALUES},
    optional={
        "content": st.text() | st.lists(BLOCK, max_size=4) | VALUES,
        "tool_calls": st.lists(BLOCK, max_size=3) | VALUES,
        "function_call": BLOCK | VALUES,
        "tool_call_id": st.text(max_size=3) | VALUES,
        "stop_reason": VALUES,
    },
)
DOCUMENTS = st.one_of(
    st.lists(MESSAGE, max_size=5).map(json.dumps),
    st.lists(MESSAGE, max_size=5).map(lambda messages: "\n".join(map(json.dumps, messages))),
    VALUES.map(json.dumps),
    st.lists(OTHERS, max_size=4).map(json.dumps),
    st.sampled_from([text for _, text in EACH]).flatmap(
        lambda text: st.tuples(st.integers(0, len(text)), st.text(max_size=3)).map(
            lambda cut: text[: cut[0]] + cut[1] + text[cut[0] + 1 :]
        )
    ),
    st.lists(
        st.sampled_from(
            ["User:", "**Tool (x):** a", "## AI", "```", "~~~~", "text", "Assistant: ```py", "\r", "\ud800"]
        )
    ).map("\n".join),
    st.text(),
)


@given(text=DOCUMENTS, name=st.sampled_from([None, *SAMPLES]))
def test_any_text_gives_turns_or_invalid_input(text: str, name: str | None) -> None:
    try:
        read = read_transcript(text, "chat", name)
        assert read.turns
        episode = read.episode()
    except InvalidInput:
        return
    assert episode.task.prompt.strip()
    assert episode.trials[0].attempt.steps


@pytest.mark.parametrize("depth", [500, 950, 2000, 100_000])
def test_what_is_nested_deeply_is_read_or_refused(depth: int) -> None:
    block = '{"type": "tool_use", "id": "c", "name": "sh", "input": ' + "[" * depth + "]" * depth + "}"
    text = f'[{{"role": "assistant", "content": [{block}]}}]'
    try:
        read = turns(text)
    except InvalidInput:
        read = ()
    assert read == (Turn("assistant", "[" * depth + "]" * depth, "sh"),) or (depth > 500 and not read)


@each_row(
    ("text", "format", "says"),
    [
        ('[{"role": "user", "content": "x"},\n {"role": ]', None, r"chat:2: this is not JSON: .*column 11"),
        ('{"role": "user", "content": "x"}\n\n{"role": "user"', None, "chat:3: this is not JSON"),
        ('{"role": "user", "content": "x"}\n[]', None, "chat:2 must be an object, not list"),
        (
            '[{"role": "user", "content": 7}]',
            None,
            "chat: message 1: content must be a string or a list of blocks, not int",
        ),
        ('[{"role": "user", "content": ["x"]}]', None, "chat: message 1, block 1 must be an object, not str"),
        ('[{"role": "user"}, {"role": "judge", "content": "x"}]', None, "chat: message 2: role must be .*'judge'"),
        (
            '[{"role": "assistant", "tool_calls": [{}]}]',
            None,
            "chat: message 1, call 1: function must be an object",
        ),
        ('{"messages": "none"}', "openai", 'chat must be a list of messages, or an object with one under "messages"'),
        ('[{"role": "tool", "content": "x"}]', "anthropic", "chat: message 1: role must be user, assistant, system"),
        ('{"a": 1}\n{"b": 2}', None, "in an unknown format; known formats"),
        (
            '[{"a": 1}]',
            None,
            "in an unknown format; known formats: anthropic, claude, codex, copilot, gemini, genai, google, langchain, openai, opencode, openhands, otlp, pi, plain, pydantic",
        ),
        ("I did this and that.", None, "each turn begins with User:"),
        ("I did this and that.", "plain", "no line begins with a speaker"),
    ],
)
def test_an_error_says_where_and_what(text: str, format: str | None, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        turns(text, format)


def test_an_unknown_format_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="openai"):
        turns("User: x", "opnai")


def test_openai_blocks_that_are_no_text_refusals_and_old_calls() -> None:
    messages = [
        {"role": "developer", "content": "Short."},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "Look"}],
        },
        {"role": "assistant", "content": None, "function_call": {"name": "open", "arguments": "{}"}},
        {"role": "function", "name": "open", "content": ""},
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
    ]
    assert turns(json.dumps(messages)) == (
        Turn("system", "Short."),
        Turn("user", "[image_url]\n\nLook"),
        Turn("assistant", "{}", "open"),
        Turn("tool", "", "open"),
        Turn("assistant", "No."),
        Turn("assistant", "ls", "sh"),
    )


def test_an_anthropic_result_that_is_an_error_says_so() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "sh", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "no"}]},
    ]
    assert turns(json.dumps(messages))[1] == Turn("tool", "error: no", "sh")


def test_a_line_within_a_fenced_block_begins_no_turn() -> None:
    text = "User: x\n```\nTool: 1\n```\nAssistant: ```py\nUser: 2\n```\nTool: 3\n```\nUser: 4"
    assert [(turn.role, turn.text) for turn in turns(text)] == [
        ("user", "x\n```\nTool: 1\n```"),
        ("assistant", "```py\nUser: 2\n```"),
        ("tool", "3\n```"),
        ("user", "4"),
    ]


def test_code_within_a_line_opens_no_block() -> None:
    text = "User: x\n```a``` is it\nUser: 1\n```\nUser: 2\n```\n~~~ `b`\nUser: 3\n~~~"
    assert [turn.text for turn in turns(text)] == ["x\n```a``` is it", "1\n```\nUser: 2\n```\n~~~ `b`\nUser: 3\n~~~"]


@each_row("line", ["Users: x", "the user: x", "  User: x", "User story: x", "User (x) : y", "Tools: x"])
def test_prose_begins_no_turn(line: str) -> None:
    assert turns(f"User: a\n{line}\nAssistant: b") == (Turn("user", f"a\n{line}".strip()), Turn("assistant", "b"))


def test_lines_of_windows_end_as_others_do() -> None:
    assert turns("User: a\r\nb\r\nAssistant: c\r\n") == (Turn("user", "a\nb"), Turn("assistant", "c"))


def test_the_first_that_the_user_says_is_the_task_and_the_rest_its_steps() -> None:
    episode = read_transcript(json.dumps(OPENAI), "chat").episode(success=False)
    assert episode.task.prompt == "Make the tests pass."
    (trial,) = episode.trials
    assert trial.attempt.output == "Done."
    assert trial.attempt.steps == (
        Step(action="I run them."),
        Step(action='shell: {"command": "pytest"}'),
        Step(observation="shell: 1 failed"),
        Step(observation="The user: They run with make check."),
        Step(action="Done."),
    )
    assert (episode.judged, episode.solved) == (True, False)
    again = read_transcript(json.dumps(ANTHROPIC), "other").episode(task="Mend it.")
    assert (again.task.prompt, len(again.trials[0].attempt.steps), again.judged) == ("Mend it.", 6, False)


def test_a_long_session_keeps_its_task() -> None:
    task, said = Turn("user", "t" * 50_000), Turn("assistant", "a" * 2000)
    for turns_ in ([task, *[said] * 2500], [*[said] * 600, task, *[said] * 2000]):
        episode = Transcript("chat", "plain", tuple(turns_)).episode()
        (trial,) = episode.trials
        assert episode.task.prompt == task.text
        assert len(trial.attempt.steps) == 2000
    longer = Transcript("chat", "plain", (Turn("user", "t" * 2_000_000), said)).episode()
    assert len(longer.task.prompt) == pytest.approx(100_000, abs=5)
    assert longer.trials[0].attempt.output == said.text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Assistant: x", "chat: no user message states the task"),
        ("User: x", "the assistant wrote no text and called no tool"),
        ("System: x", "no user message states the task"),
    ],
)
def test_a_transcript_without_a_task_or_an_attempt_is_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_transcript(text, "chat").episode()


MINE = '''
from mulligan.core.turns import Turn

class Arrows:
    """A line that begins with > is the user's."""

    def recognises(self, text):
        return text.startswith("> ")

    def read(self, text, name):
        return [Turn("user" if line.startswith("> ") else "assistant", line.strip("> ")) for line in text.splitlines()]
'''


def test_a_format_of_the_users_own_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "arrows.py").write_text(MINE)
    read = read_transcript("> Hello\nHi", "chat", str(tmp_path / "arrows.py"))
    assert read.turns == (Turn("user", "Hello"), Turn("assistant", "Hi"))
    assert read.format == "arrows"
