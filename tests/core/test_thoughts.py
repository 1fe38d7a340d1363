"""What a model thinks is no part of its answer, and code about the tags of thoughts is."""

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.app.client_led.steps import ClientStep
from mulligan.core.records import Artifact, Attempt
from mulligan.text.programs import program
from mulligan.text.python_code import extract_code
from mulligan.text.rust import extract_rust
from mulligan.text.thoughts import answer_of, output_of, spoken

FINAL = "def double(n):\n    return 2 * n"
DRAFT = "def double(n):\n    return n + 2"


@each_row(
    "text",
    [
        "<think>Is it 7? Rather 9.</think>9",
        "Is it 7? Rather 9.\n</think>\n\n9",
        "<thinking>7?</thinking>\n9",
        "<THINK>7?</THINK >\n9",
        '<reasoning effort="high">7?</reasoning>\n9',
        "<thought>7?</thought>9",
        "<|thinking|>7?<|/thinking|>9",
        "<seed:think>7?</seed:think>9",
        "◁think▷7?◁/think▷9",
        "[THINK]7?[/THINK]9",
        "<|channel>thought\n7?\n<channel|>9<turn|>",
        "<|START_THINKING|>7?<|END_THINKING|><|START_RESPONSE|>9<|END_RESPONSE|>",
        "<|begin_of_thought|>7?<|end_of_thought|>\n\n<|begin_of_solution|>9<|end_of_solution|>",
        "Here is my thought process:\n7?\n\nHere is my response:\n9",
        "<|channel|>analysis<|message|>7?<|end|><|start|>assistant<|channel|>final<|message|>9<|return|>",
        "analysis<|message|>7?<|end|><|start|>assistant<|channel|>final<|message|>9<|end|>",
        "<|channel|>analysis<|message|>7?<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>9",
        "analysisIs it 7?assistantfinal9",
        "<think>7? <think>8?</think> no</think>9",
        "<think>7?</think>\n<think>8?</think>\n9",
        "Well.\n<think>7?</think>\n9",
        "<thinking>7?</thinking>\n<reflection>8 is even.</reflection>\n9",
        "<think>\n```python\nprint(7)\n</think>\n9",
        "Print it:\n```python\nprint(7)\n</think>\n9",
        "<think>the tag `</think>` ends it, 7?</think>9",
        "<thought_process>7?</thought_process>\n9",
        "<internal_reasoning>7?</internal_reasoning>9",
        "<think_fast>7?</think_fast>9",
        "7?\n</scratchpad>\n9",
        "<|begin_thought|>7?<|end_thought|>9",
        "[thinking]7?[/Thinking]9",
        "analysis is it 7?\nassistantfinal9",
        "assistantanalysisIs it 7?assistantcommentaryHm.assistantfinal9",
        '<details type="reasoning" done="true">\n<summary>Thought for 3 seconds</summary>\n7?\n</details>\n9',
        'It begins with """, is it 7?\n</think>\n9\n',
        "<think>the end is </think> 9",
        "9<|im_end|>",
        "9</s>\n",
        "9<|im_end|>\n<|im_start|>user\nAnd now?<|im_end|>",
        "<|im_start|>assistant\n9<|im_end|>",
        "\ufeff9",
    ],
)
def test_the_answer_is_what_follows_the_thoughts(text: str) -> None:
    assert spoken(text).finished
    assert answer_of(text).strip() == "9"


@each_row(
    "text",
    [
        "<think>Seven? Or nine",
        "Well.\n<thinking>Seven?",
        "Well. <think>Seven?",
        "<think>Nine.</think>",
        "Nine\n</think>\n",
        "<think>7?</think>\n<think>8?",
        "[THINK]7?",
        "<scratchpad>7?",
        "◁think▷7?",
        "<|channel|>analysis<|message|>7?",
        "<|channel|>commentary to=functions.add<|message|>{}<|call|>",
        "analysisIs it 7?",
        "<think>\n```python\nprint(7)\n```",
    ],
)
def test_thoughts_that_do_not_end_are_no_answer(text: str) -> None:
    assert spoken(text) == ("", False)


@each_row(
    "text",
    [
        "```python\nreturn text.split('</think>')[-1]\n```",
        "```html\n<think>\nhm\n</think>\n```",
        "~~~\n<|channel|>final<|message|>\n~~~",
        "Put it between `<think>` and `</think>`.",
        'The tag "</think>" ends it.',
        "Use the <think> tag.",
        '{"tag": "</think>", "other": "[/THINK]"}',
        "# all up to </think> goes\ntext = text.rpartition('</think>')[2]",
        '"""Splits at the last\n</think>\n"""\nEND = "</think>"',
        "// all up to </think> goes\nlet end = 1;",
        "1. The tag:\n   ```\n   </think>\n   ```",
        "<s>struck</s>",
        "<reflection>Look at the index first.</reflection>",
        "<response>9</response>",
        "<answer>9</answer>\n<reasoning>3 times 3.</reasoning>",
        "I analysed the channel | final | message.",
        "  indented\n",
        "The closing tag is </think>.",
        "A model ends its thoughts with </think> and then answers.",
        "Use <think> and </think> around the thoughts.",
        "# drops all up to </think>\nsed 's,.*</think>,,'",
        "/* up to </think> */\nint f(void);",
        "```python\n# </think> ends\nx = 1\n",
        "analysisResults = 9",
        "commentaryText.split()",
    ],
)
def test_what_speaks_of_thoughts_is_an_answer(text: str) -> None:
    assert spoken(text) == (text, True)


def test_code_about_tags_is_whole_behind_thoughts() -> None:
    code = "```python\nimport re\nprint(re.sub(r'<think>.*</think>', '', text))\n```"
    assert answer_of(f"<think>A lone </think>? No: both.</think>\n\n{code}") == code


@pytest.mark.parametrize(
    "answer",
    [
        "def f(t):\n    # all up to </think> goes\n    return 9",
        "```python\n# </think> ends\nx = 1\n",
        "The tag is </think>.",
        'END = "</think>"\n# or [/THINK] there',
    ],
)
@pytest.mark.parametrize(
    "thoughts", ["<think>They ask for the tag.</think>\n", "7?\n</think>\n", "[THINK]7?[/THINK]\n"]
)
def test_an_answer_about_tags_is_whole_behind_thoughts(thoughts: str, answer: str) -> None:
    assert answer_of(thoughts + answer) == answer


@given(st.text(st.characters(exclude_characters="<[◁\ufeff|")))
def test_a_text_without_tags_is_itself(text: str) -> None:
    text = text.replace("assistantfinal", "").replace("analysis", "").replace("commentary", "").replace("Here", "")
    assert spoken(text) == (text, True)


PIECES = ["<think>", "</think>", "```", "```py\n", "\n", "`", '"', "'", "a", " ", ".", "[/THINK]", "<|im_end|>", "</s>"]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_an_answer_has_no_more_thoughts(text: str) -> None:
    answer, finished = spoken(text)
    assert answer in text
    if finished and answer.strip():
        assert answer_of(f"<think>x</think>\n{answer}").strip() in answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    ["<", "`", "` ", "\\", '"', '"\\', "'", " ", "\n", "</think>", "<think>", "<think ", "</s>", "```\n", "{", "<|"],
)
def test_a_megabyte_is_read_as_well(unit: str) -> None:
    hostile = unit * (1_000_000 // len(unit))
    for text in (hostile, f"{hostile}</think>"):
        assert len(answer_of(text)) <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        f"<thinking>\n{DRAFT}\n</thinking>\n\n{FINAL}",
        f"First:\n```python\n{DRAFT}\n```\nNo.\n</think>\n{FINAL}",
        f"First:\n```python\n{DRAFT}\n</think>\n```python\n{FINAL}\n```",
        f"[THINK]{DRAFT}[/THINK]\nHere:\n```\n{FINAL}\n```",
    ],
)
def test_a_draft_of_the_thoughts_is_not_the_code(text: str) -> None:
    assert extract_code(text, "double") == FINAL
    assert program(text, "Write a function double(n).") == FINAL


def test_a_draft_in_rust_is_not_the_code() -> None:
    text = "```rust\nfn one() -> i32 { 2 }\n```\n</think>\n```rust\nfn one() -> i32 { 1 }\n```"
    assert extract_rust(text, "one") == "fn one() -> i32 { 1 }"


def test_the_diff_of_a_workspace_is_not_read_for_thoughts() -> None:
    diff = "+<think>\n+</think>\n+x"
    assert output_of(Attempt(diff, artifacts=(Artifact("git", "1"),))) == diff
    assert output_of(Attempt("<think>7?</think>9")) == "9"
    assert output_of(Attempt("<think>7?</think>9", artifacts=(Artifact("value", "text"),))) == "9"


def test_what_a_client_brings_is_read_without_its_thoughts() -> None:
    step = ClientStep(
        "reflect", 1, 3, reflection="x</think>look", score="[THINK]8?[/THINK]7 of 10", memory=("y</think>b",)
    )
    assert (step.reflection, step.score, step.memory) == ("look", "7 of 10", ("b",))
