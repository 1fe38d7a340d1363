"""Keys and values that do not fit: what each must be, what it is, and on which line."""

from pathlib import Path

import pytest
from agent_folders import AGENT, HEAD, agent_with, lint

KEYS: list[tuple[str, list[str]]] = [
    ("max_iter: four", ["AGENT.md:6: max_iter must be an integer of at least 1, not 'four'."]),
    ('max_iter: "4"', ["AGENT.md:6: max_iter must be an integer of at least 1, not '4'. Remove the quotes."]),
    ("max_iter: 0", ["AGENT.md:6: max_iter must be an integer of at least 1, not 0."]),
    ("max_iter: 2.5", ["AGENT.md:6: max_iter must be an integer of at least 1, not 2.5."]),
    ("max_iter: true", ["AGENT.md:6: max_iter must be an integer of at least 1, not true."]),
    (
        "max_iter:",
        ["AGENT.md:6: max_iter has no value. It must be an integer of at least 1; otherwise remove the key."],
    ),
    ("max_iter: [1]", ["AGENT.md:6: max_iter must be an integer of at least 1, not a list."]),
    ("max_iters: 3", ["AGENT.md:6: unknown key 'max_iters'. Did you mean 'max_iter'?"]),
    (
        "banana: 3",
        [
            "AGENT.md:6: unknown key 'banana'. Available: name, description, version, pattern, max_iter, model, uses, skills, call, strategy, memory, evaluate, reflect, limits, scale, foresight, judge_last, kind, env."
        ],
    ),
    ("temperature: 0", ["AGENT.md:6: unknown key 'temperature'. It belongs under model."]),
    (
        "model: 3",
        [
            "AGENT.md:6: model must be a string or a table (role, name, temperature, max_tokens), not 3. Write it in quotes."
        ],
    ),
    ("model: {role: a, name: b}", ["AGENT.md:6: model must be a role or a name, not both. Keep one."]),
    ("model:\n  role: ''", ["AGENT.md:7: model.role is empty. It must be a string."]),
    ("model: {temperature: 3}", ["AGENT.md:6: model.temperature must be a number from 0 to 2, not 3."]),
    ("model: {temperature: hot}", ["AGENT.md:6: model.temperature must be a number from 0 to 2, not 'hot'."]),
    ("model: {max_tokens: 0}", ["AGENT.md:6: model.max_tokens must be an integer of at least 1, not 0."]),
    ("call:\n  model:\n    temprature: 1", ["AGENT.md:8: unknown key 'temprature'. Did you mean 'temperature'?"]),
    ("model: a\ncall:\n  model: b", ["AGENT.md:6: model appears twice: here and as call.model on line 8. Keep one."]),
    ("uses: [a]\ncall: {uses: [a]}", ["AGENT.md:6: uses appears twice: here and as call.uses on line 7. Keep one."]),
    (
        "uses: code-style",
        ["AGENT.md:6: uses must be a list of folder names, not 'code-style'. Write it as [\"code-style\"]."],
    ),
    (
        "uses: [3]",
        ["AGENT.md:6: each of uses must be a folder name, not 3. Write it in quotes."],
    ),
    (
        "uses: [../../etc]",
        ["AGENT.md:6: each of uses must be a folder name, not '../../etc'."],
    ),
    (
        "uses:\n  - .hidden",
        ["AGENT.md:7: each of uses must be a folder name, not '.hidden'."],
    ),
    ("call: x", ["AGENT.md:6: call must be a table (model, uses, max_iter), not 'x'."]),
    ("judge_last: maybe", ["AGENT.md:6: judge_last must be true or false, not 'maybe'."]),
    (
        "memory: yesterday",
        ["AGENT.md:6: memory must be true, false or a table (bank, top_k, forms, mode), not 'yesterday'."],
    ),
    ("memory: {mode: of}", ["AGENT.md:6: memory.mode must be online or frozen, not 'of'."]),
    ("memory: {top_k: 0}", ["AGENT.md:6: memory.top_k must be an integer of at least 1, not 0."]),
    ("memory: {topk: 1}", ["AGENT.md:6: unknown key 'topk'. Did you mean 'top_k'?"]),
    ("evaluate: {}", ["AGENT.md:6: evaluate needs one of tests, check and judge."]),
    ("evaluate: {test: a.py}", ["AGENT.md:6: evaluate needs one of tests, check and judge. Did you mean 'tests'?"]),
    (
        "evaluate:\n  tests: a.py\n  check: b",
        ["AGENT.md:8: evaluate must have one of tests, check and judge, not tests and check. Keep one."],
    ),
    ("evaluate: {tests: ''}", ["AGENT.md:6: evaluate.tests is empty. It must be a string."]),
    (
        "evaluate: [tests]",
        ["AGENT.md:6: evaluate must be a string or a table (tests, check, judge, evaluator), not a list."],
    ),
    ("evaluate: {check: 3}", ["AGENT.md:6: evaluate.check must be a string, not 3. Write it in quotes."]),
    ("limits: {tokens: 0}", ["AGENT.md:6: limits.tokens must be an integer of at least 1, not 0."]),
    ("limits: {cost: free}", ["AGENT.md:6: limits.cost must be a number above 0, not 'free'."]),
    ("limits: {identical: 1}", ["AGENT.md:6: limits.identical must be an integer of at least 2, not 1."]),
    ("limits: {seconds: -1}", ["AGENT.md:6: limits.seconds must be a number above 0, not -1."]),
    ("limits: {tokns: 1}", ["AGENT.md:6: unknown key 'tokns'. Did you mean 'tokens'?"]),
    (
        "max_iter: 2\nlimits:\n  trials: 2",
        ["AGENT.md:8: limits.trials and max_iter mean the same for a reflexion agent. Keep max_iter."],
    ),
    ("limits: 3", ["AGENT.md:6: limits must be a table (tokens, cost, seconds, identical, tries, trials), not 3."]),
    ("strategy: ''", ["AGENT.md:6: strategy is empty. It must be a string."]),
    ("strategy: [a]", ["AGENT.md:6: strategy must be a string, not a list."]),
    (
        "env: [KEY]",
        ["AGENT.md:6: warning: the key 'env' is ignored. Set providers' API keys in the environment or in .env."],
    ),
    (
        "evaluate: human\njudge_last: false",
        ["AGENT.md:7: warning: judge_last has no effect with evaluate, because the reflector then judges no try."],
    ),
]
"""Lines of front matter: the first of them is line 6."""


@pytest.mark.parametrize(("front", "said"), KEYS)
def test_keys_of_an_agent(tmp_path: Path, front: str, said: list[str]) -> None:
    assert lint(tmp_path, {"AGENT.md": agent_with(front)}) == said


HEADS: list[tuple[str, str, list[str]]] = [
    (
        "name: x",
        "name: Ex_1",
        ["AGENT.md:2: name must be at most 64 lowercase letters, digits and hyphens, not 'Ex_1'. Such as 'ex-1'."],
    ),
    (
        "name: x",
        "name: 12",
        ["AGENT.md:2: name must be at most 64 lowercase letters, digits and hyphens, not 12. Write it in quotes."],
    ),
    (
        "name: x",
        "name: " + "x" * 65,
        [
            "AGENT.md:2: name must be at most 64 lowercase letters, digits and hyphens, not 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'. Such as 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'."
        ],
    ),
    (
        "name: x",
        "name: ''",
        ["AGENT.md:2: name is empty. It must be at most 64 lowercase letters, digits and hyphens."],
    ),
    ("name: x\n", "", ["AGENT.md: name is missing. Add a line such as `name: code-improver`."]),
    (
        "description: Does it.\n",
        "",
        [
            "AGENT.md: description is missing. Add a line such as `description: Writes and iteratively improves code through reflection.`."
        ],
    ),
    ('version: "1"\n', "", ['AGENT.md: version is missing. Add a line such as `version: "1.0.0"`.']),
    ('version: "1"', "version: 1.0", ["AGENT.md:4: version must be a string, not 1.0. Write it in quotes."]),
    ('version: "1"', "version: true", ["AGENT.md:4: version must be a string, not true. Write it in quotes."]),
    ("pattern: reflexion\n", "", ["AGENT.md: pattern is missing. Add a line such as `pattern: reflexion`."]),
    (
        "pattern: reflexion",
        "pattern: reflexoin",
        ["AGENT.md:5: pattern must be reflexion, react or oneshot, not 'reflexoin'. Did you mean 'reflexion'?"],
    ),
    (
        "pattern: reflexion",
        "pattern: debate\nagents: [a, b]\nrounds: 3",
        ["AGENT.md:5: Mulligan does not run the pattern 'debate' of tama. Available: reflexion, react, oneshot."],
    ),
    (
        "pattern: reflexion",
        "pattern: best-of-n\nn: 3\nfoo: 1",
        [
            "AGENT.md:5: Mulligan does not run the pattern 'best-of-n' of tama. Available: reflexion, react, oneshot.",
            "AGENT.md:7: unknown key 'foo'. Available: name, description, version, pattern, max_iter, model, uses, skills, call, strategy, memory, evaluate, reflect, limits, scale, foresight, judge_last, kind, env.",
        ],
    ),
    (
        "pattern: reflexion",
        "pattern: [react]",
        ["AGENT.md:5: pattern must be reflexion, react or oneshot, not a list."],
    ),
    ("description: Does it.", "description: [a]", ["AGENT.md:3: description must be a string, not a list."]),
]


@pytest.mark.parametrize(("old", "new", "said"), HEADS)
def test_keys_that_every_agent_has(tmp_path: Path, old: str, new: str, said: list[str]) -> None:
    assert old in AGENT
    assert lint(tmp_path, {"AGENT.md": AGENT.replace(old, new)}) == said


ALONE: list[tuple[str, str, list[str]]] = [
    (
        "oneshot",
        "max_iter: 3",
        [
            "AGENT.md:6: warning: max_iter has no effect in a oneshot step, which is one model call: write pattern: react."
        ],
    ),
    (
        "react",
        "max_iter: 3\ncall: {max_iter: 3}",
        ["AGENT.md:6: max_iter appears twice: here and as call.max_iter on line 7. Keep one."],
    ),
    ("react", "judge_last: true", ["AGENT.md:6: warning: judge_last has an effect only with the pattern reflexion."]),
    (
        "oneshot",
        "uses: [a]",
        ["AGENT.md:6: warning: uses has no effect in a oneshot step, which is one model call: write pattern: react."],
    ),
]


@pytest.mark.parametrize(("pattern", "front", "said"), ALONE)
def test_keys_of_an_agent_of_one_step(tmp_path: Path, pattern: str, front: str, said: list[str]) -> None:
    files = {"AGENT.md": agent_with(front, pattern), "act.md": None, "reflect.md": None}
    assert lint(tmp_path, files) == said


def test_a_value_that_front_matter_refused_is_reported_once(tmp_path: Path) -> None:
    front = "max_iter: 2026-01-01\nmodel:\n  temperature: .inf"
    assert lint(tmp_path, {"AGENT.md": agent_with(front)}) == [
        'AGENT.md:6: max_iter is read as a date. Write it in quotes: "2026-01-01".',
        "AGENT.md:8: model.temperature must be a number, and .inf is not one.",
    ]


def test_a_placeholder_that_was_left_is_one_mistake(tmp_path: Path) -> None:
    text = AGENT.replace("name: x", "name: {{name}}")
    assert lint(tmp_path, {"AGENT.md": text}) == ["AGENT.md:2: a key must be a string."]


def test_mistakes_of_every_sort_are_reported_at_once(tmp_path: Path) -> None:
    text = f"---\n{HEAD}pattern: reflexion\nname: z\nmax_iter: 0\nmodel: {{role: a, name: b}}\nmemroy: true\nenv: []\n---\n"
    assert lint(tmp_path, {"AGENT.md": text}) == [
        "AGENT.md:6: name appears twice: on line 2 and here. Keep one.",
        "AGENT.md:7: max_iter must be an integer of at least 1, not 0.",
        "AGENT.md:8: model must be a role or a name, not both. Keep one.",
        "AGENT.md:9: unknown key 'memroy'. Did you mean 'memory'?",
        "AGENT.md:10: warning: the key 'env' is ignored. Set providers' API keys in the environment or in .env.",
    ]


def test_run_only_warns_of_unknown_keys(tmp_path: Path) -> None:
    assert lint(tmp_path, {"AGENT.md": agent_with("max_iters: 3")}, strict=False) == [
        "AGENT.md:6: warning: unknown key 'max_iters'. Did you mean 'max_iter'?"
    ]
