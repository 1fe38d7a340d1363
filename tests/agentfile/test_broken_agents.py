"""Files that cannot be taken apart: one message for each mistake, on its line, and no traceback."""

import os
from pathlib import Path

import pytest
from agent_folders import ACT, AGENT, ALONE, lint, told

from mulligan.agentfile.reading import read_agent

EDITS = {
    "tab indentation": (
        "pattern: reflexion",
        "call:\n\tuses: [a]\npattern: reflexion",
        ["AGENT.md:6: there is a tab where YAML allows only spaces. Indent with spaces."],
    ),
    "blank above": (
        "---\nname",
        "\n\n---\nname",
        ["AGENT.md:3: front matter begins on the first line: remove the empty lines above it."],
    ),
    "colon in text": (
        "Does it.",
        "Does it: well",
        ["AGENT.md:3: text that contains a colon and a space must be in quotes."],
    ),
    "no space": ("name: x", "name:x", ["AGENT.md:2: a space is missing after the colon."]),
    "key without colon": (
        "version",
        "version\nmore",
        ["AGENT.md:4: this line must have the form `name: value`, with a colon and a space."],
    ),
    "open quote": ('"1"', '"1', ["AGENT.md:4: the quote that opens here is not closed."]),
    "open bracket": (
        "pattern:",
        "uses: [a, b\npattern:",
        ["AGENT.md:5: the bracket [ that opens here is not closed, or a comma is missing in it."],
    ),
    "at sign": ("Does it.", "@me does it", ["AGENT.md:3: a value cannot begin with @. Put it in quotes."]),
    "star": ("Does it.", "**does** it", ["AGENT.md:3: a value cannot begin with *. Put it in quotes."]),
    "anchor": (
        "name: x",
        "name: &n x",
        [
            "AGENT.md:2: anchors (&name) and aliases (*name) are not supported. Write the value out, or put a text that begins with & or * in quotes."
        ],
    ),
    "alias": (
        "Does it.",
        "*n",
        [
            "AGENT.md:3: anchors (&name) and aliases (*name) are not supported. Write the value out, or put a text that begins with & or * in quotes."
        ],
    ),
    "python tag": (
        "Does it.",
        "!!python/object/apply:os.system [id]",
        [
            "AGENT.md:3: the tag !!python/object/apply:os.system is not supported. Write a plain value, or put a text that begins with ! in quotes."
        ],
    ),
    "duplicate key": (
        "pattern:",
        "name: y\npattern:",
        ["AGENT.md:5: name appears twice: on line 2 and here. Keep one."],
    ),
    "duplicate key inside": (
        "pattern:",
        "limits:\n  tokens: 1\n  tokens: 2\npattern:",
        ["AGENT.md:7: limits.tokens appears twice: on line 6 and here. Keep one."],
    ),
    "indented key": (
        "version",
        "  version",
        ["AGENT.md:4: this key is indented further than the one above it, which already has a value."],
    ),
    "text after a quote": (
        '"1"',
        '"1" beta',
        [
            "AGENT.md:4: this does not continue the lines above it: indent the lines of one list or mapping "
            "alike, and put text that contains quotes or brackets entirely in quotes."
        ],
    ),
    "escape": (
        '"1"',
        '"1\\d"',
        ["AGENT.md:4: in double quotes, \\d is not an escape. Write \\\\, or use single quotes."],
    ),
    "date": ('"1"', "2026-01-01", ['AGENT.md:4: version is read as a date. Write it in quotes: "2026-01-01".']),
    "not a number": (
        "pattern:",
        "limits: {cost: .nan}\npattern:",
        ["AGENT.md:5: limits.cost must be a number, and .nan is not one."],
    ),
    "infinity": (
        "pattern:",
        "limits:\n  cost: .inf\npattern:",
        ["AGENT.md:6: limits.cost must be a number, and .inf is not one."],
    ),
    "a key that is a boolean": (
        "pattern:",
        "on: 1\npattern:",
        ['AGENT.md:5: a key must be a string, and on is read as true. Write it in quotes: "on".'],
    ),
    "no key": ("pattern:", "? \n: 1\npattern:", ["AGENT.md:5: a key must be a string."]),
    "a list as a key": ("pattern:", "? [a]\n: 1\npattern:", ["AGENT.md:5: a key must be a string."]),
    "second document": (
        "pattern:",
        "--- more\npattern:",
        ["AGENT.md:5: the front matter contains a second YAML document. Remove the line that begins it."],
    ),
    "text after the end": (
        "pattern:",
        "...\npattern:",
        ["AGENT.md:6: the front matter contains a second YAML document. Remove the line that begins it."],
    ),
    "control character": (
        "Does",
        "Do\x07es",
        ["AGENT.md:3: the front matter contains a control character (U+0007). Remove it."],
    ),
    "NUL": (
        "Does",
        "Do\x00es",
        ["AGENT.md:3: there is a NUL byte here, so this is not text. Save it as UTF-8 text."],
    ),
    "half a character": (
        "Does it.",
        '"\\ud83d"',
        [
            "AGENT.md:3: description contains an escape that represents no character (\\0, or half of a pair such "
            "as \\ud83d)."
        ],
    ),
    "not closed": (
        "pattern: reflexion\n---",
        "pattern: reflexion",
        [
            "AGENT.md:1: the front matter that opens here is not closed: put a line with --- after the keys, before the text."
        ],
    ),
}


@pytest.mark.parametrize(("old", "new", "said"), EDITS.values(), ids=EDITS)
def test_front_matter_that_is_broken(tmp_path: Path, old: str, new: str, said: list[str]) -> None:
    assert old in AGENT
    assert lint(tmp_path, {"AGENT.md": AGENT.replace(old, new)}) == said


WHOLE: dict[str, tuple[str | bytes, list[str]]] = {
    "no front matter": (
        "You are x.\n",
        ["AGENT.md: this file has no front matter. Begin it with ---, then lines such as name: my-agent, then ---."],
    ),
    "empty file": (
        "",
        ["AGENT.md: this file has no front matter. Begin it with ---, then lines such as name: my-agent, then ---."],
    ),
    "empty front matter": (
        "---\n---\n",
        [
            "AGENT.md: name is missing. Add a line such as `name: code-improver`.",
            "AGENT.md: description is missing. Add a line such as `description: Writes and iteratively improves code through reflection.`.",
            'AGENT.md: version is missing. Add a line such as `version: "1.0.0"`.',
            "AGENT.md: pattern is missing. Add a line such as `pattern: reflexion`.",
        ],
    ),
    "a list": (
        "---\n- name: x\n---\n",
        ["AGENT.md:2: front matter is lines such as `name: value` (with a space after the colon), not a list."],
    ),
    "plain text": (
        "---\njust words\n---\n",
        ["AGENT.md:2: front matter is lines such as `name: value` (with a space after the colon), not a text."],
    ),
    "5,000 digits": (
        AGENT.replace("pattern:", f"max_iter: {'9' * 5000}\npattern:"),
        ["AGENT.md:5: max_iter is a number that is too big or misspelt."],
    ),
    "5,000 brackets": (
        AGENT.replace("pattern:", f"evaluate: {'[' * 5000}\npattern:"),
        ["AGENT.md:5: the front matter is nested more than 20 levels deep. Make it flatter."],
    ),
    "Latin-1": (
        AGENT.replace("Does", "Dös").encode("latin-1"),
        ["AGENT.md:3: this file is not UTF-8 text (byte 0xf6 at position 26). Save it as UTF-8."],
    ),
    "UTF-16": (AGENT.encode("utf-16"), ["AGENT.md:1: this file is UTF-16 text. Save it as UTF-8."]),
    "10 MB": (
        AGENT + "x" * 10_000_000,
        [
            "AGENT.md: this file is too large: 10,000,070 bytes, but at most 1,000,000 are read. Check that it is "
            "the right file."
        ],
    ),
    "long front matter": (
        AGENT.replace("Does", "Does " * 20_000),
        ["AGENT.md:1: the front matter is longer than 64,000 characters. Move text to the body."],
    ),
}


@pytest.mark.parametrize(("content", "said"), WHOLE.values(), ids=WHOLE)
def test_files_that_are_broken_as_a_whole(tmp_path: Path, content: str | bytes, said: list[str]) -> None:
    assert lint(tmp_path, {"AGENT.md": content}) == said


FILES: dict[str, tuple[dict[str, str | bytes | None], list[str]]] = {
    "act.md missing": (
        {"act.md": None},
        [
            "AGENT.md:5: agent 'x': missing required files: act.md. `mulligan add reflexion NAME` makes an agent that has both."
        ],
    ),
    "both steps missing": (
        {"act.md": None, "reflect.md": None},
        [
            "AGENT.md:5: agent 'x': missing required files: act.md, reflect.md. `mulligan add reflexion NAME` makes an agent that has both."
        ],
    ),
    "Act.md": (
        {"act.md": None, "Act.md": ACT},
        ["AGENT.md:5: agent 'x': missing required files: act.md. There is Act.md: rename it to act.md."],
    ),
    "AGENT.md missing": (
        {"AGENT.md": None},
        [
            "AGENT.md: this file does not exist, so the folder is not an agent. `mulligan add reflexion NAME` makes an agent."
        ],
    ),
    "agent.md": (
        {"AGENT.md": None, "agent.md": AGENT},
        [
            "AGENT.md: this file does not exist, so the folder is not an agent. There is agent.md: rename it to AGENT.md."
        ],
    ),
    "act.md empty": (
        {"act.md": ""},
        ["act.md: this file is empty. Write the system prompt: what the model should do."],
    ),
    "prompt missing": (
        {"act.md": "---\npattern: react\n---\n\n"},
        [
            "act.md: this file has no text below its front matter. That text is the system prompt: write what the "
            "model should do."
        ],
    ),
    "pattern of an agent in a step": (
        {"act.md": "---\npattern: reflexion\n---\nDo it, then call finish.\n"},
        ["act.md:2: pattern must be react or oneshot, not 'reflexion'."],
    ),
    "unknown key of a step": (
        {"act.md": "---\npatern: react\n---\nDo it, then call finish.\n"},
        ["act.md:2: unknown key 'patern'. Did you mean 'pattern'?"],
    ),
    "keys without meaning": (
        {"act.md": "---\npattern: oneshot\nuses: [a]\nmax_iter: 3\n---\nx"},
        [
            "act.md:3: warning: uses has no effect in a oneshot step, which is one model call: write pattern: react.",
            "act.md:4: warning: max_iter has no effect in a oneshot step, which is one model call: write pattern: react.",
        ],
    ),
    "no DONE": (
        {"reflect.md": "Judge it."},
        [
            "reflect.md:1: warning: the text never mentions DONE, so the loop cannot be stopped. Tell the model when to answer DONE."
        ],
    ),
    "no finish in reflect.md": (
        {"reflect.md": "---\npattern: react\n---\nJudge it."},
        [
            'reflect.md:4: warning: the text never mentions finish. Tell the model to call finish(key="done", value=...) to stop the loop, and finish(key="retry", value=...) to continue.'
        ],
    ),
    "no finish in act.md": (
        {"act.md": "Do it."},
        [
            'act.md:1: warning: the text never mentions finish. Tell the model to call finish(key="done", value=...) when it is finished.'
        ],
    ),
    "unused prompt": (
        {"AGENT.md": '---\nname: x\ndescription: Does it.\nversion: "1"\npattern: reflexion\n---\n\n\nYou are x.'},
        ["AGENT.md:9: warning: this text is not used: a reflexion agent has its prompts in act.md and reflect.md."],
    ),
    "evaluate.md": (
        {"evaluate.md": "x"},
        [
            "evaluate.md: warning: this file is not used: reflect.md judges, or the judge under evaluate in "
            "AGENT.md. Remove it."
        ],
    ),
    "unused steps": (
        {"AGENT.md": ALONE},
        [
            "act.md: warning: this file is not used: an agent of pattern react has its prompt in AGENT.md.",
            "reflect.md: warning: this file is not used: an agent of pattern react has its prompt in AGENT.md.",
        ],
    ),
    "no prompt in AGENT.md": (
        {"AGENT.md": '---\nname: x\ndescription: Does it.\nversion: "1"\npattern: react\n---\n'},
        [
            "AGENT.md: this file has no text below its front matter. That text is the system prompt: write what "
            "the model should do.",
            "act.md: warning: this file is not used: an agent of pattern react has its prompt in AGENT.md.",
            "reflect.md: warning: this file is not used: an agent of pattern react has its prompt in AGENT.md.",
        ],
    ),
    "no finish in AGENT.md": (
        {
            "AGENT.md": '---\nname: x\ndescription: Does it.\nversion: "1"\npattern: react\n---\nDo it, then call stop.\n',
            "act.md": None,
            "reflect.md": None,
        },
        [
            'AGENT.md:7: warning: the text never mentions finish. Tell the model to call finish(key="done", value=...) when it is finished.'
        ],
    ),
    "all files at once": (
        {
            "act.md": "---\nmodel: [a]\n---\nDo it, then call finish.\n",
            "reflect.md": "---\nmax_iter: x\n---\nDONE",
            "AGENT.md": '---\nname: X\ndescription: Does it.\nversion: "1"\npattern: reflexion\nmax_iters: 1\nmemory: 3\n---\n',
        },
        [
            "AGENT.md:2: name must be at most 64 lowercase letters, digits and hyphens, not 'X'. Such as 'x'.",
            "AGENT.md:6: unknown key 'max_iters'. Did you mean 'max_iter'?",
            "AGENT.md:7: memory must be true, false or a table (bank, top_k, forms, mode), not 3.",
            "act.md:2: model must be a string or a table (role, name, temperature, max_tokens), not a list.",
            "reflect.md:2: max_iter must be an integer of at least 1, not 'x'.",
        ],
    ),
    "uses without a react step": (
        {
            "AGENT.md": '---\nname: x\ndescription: Does it.\nversion: "1"\npattern: reflexion\nuses: [a]\n---\n',
            "act.md": "---\npattern: oneshot\n---\nx",
        },
        ["AGENT.md:6: warning: uses has no effect here: no step of this agent has the pattern react."],
    ),
    "AGENT.md and act.md": (
        {"AGENT.md": "x", "act.md": "---\nfoo: 1\n---\n"},
        [
            "AGENT.md: this file has no front matter. Begin it with ---, then lines such as name: my-agent, then ---.",
            "act.md: this file has no text below its front matter. That text is the system prompt: write what the "
            "model should do.",
            "act.md:2: unknown key 'foo'. Available: pattern, model, uses, max_iter, call.",
        ],
    ),
}


@pytest.mark.parametrize(("files", "said"), FILES.values(), ids=FILES)
def test_folders_that_are_broken(tmp_path: Path, files: dict[str, str | bytes | None], said: list[str]) -> None:
    assert lint(tmp_path, files) == said


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name in ("file", "nothing"):
        agent, problems = read_agent(tmp_path / name, [], strict=True)
        assert agent is None
        assert told(problems, tmp_path) == [
            f"{name}: this is not a folder. An agent is a folder with an AGENT.md in it."
        ]


def test_what_stands_in_the_place_of_a_file(tmp_path: Path) -> None:
    assert lint(tmp_path) == []
    act, reflect, agent = (tmp_path / name for name in ("act.md", "reflect.md", "AGENT.md"))
    act.unlink()
    act.mkdir()
    reflect.unlink()
    reflect.symlink_to("reflect.md")
    agent.unlink()
    agent.symlink_to("gone.md")
    assert told(read_agent(tmp_path, [], strict=True)[1], tmp_path) == [
        "AGENT.md: this is a link to a file that does not exist.",
        "act.md: this is a folder, but must be a file.",
        "reflect.md: this is a link that leads back to itself. Put the file itself here.",
    ]
    agent.unlink()
    os.mkfifo(agent)
    assert told(read_agent(tmp_path, [], strict=True)[1], tmp_path)[0] == (
        "AGENT.md: this is neither a file nor a link to one."
    )


def test_prompts_are_looked_at_by_lint_alone(tmp_path: Path) -> None:
    assert lint(tmp_path, {"act.md": "Do it.", "reflect.md": "Judge it."}, strict=False) == []


def test_a_reflector_that_does_not_judge_need_not_say_done(tmp_path: Path) -> None:
    front = AGENT.replace("pattern:", "evaluate: contains:42\npattern:")
    assert lint(tmp_path, {"AGENT.md": front, "reflect.md": "Say what was wrong."}) == []
