"""Writes the pages of docs/formats from the code's own schemas and options: `make docs`.

A test compares the pages with what this makes.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel

from mulligan.agentfile.formats import Schema, forms, kind, properties, resolved, schema_of, yaml_value
from mulligan.agentfile.schema import AgentFile, SkillFile, StepKeys
from mulligan.app.options import Option, ResumeOptions, RunOptions, SolveOptions, options_in
from mulligan.app.project_file import EXAMPLE
from mulligan.app.project_schema import ProjectFile
from mulligan.bench.harness.plan import BenchOptions
from mulligan.langgraph.options import GraphOptions

_OPTIONS = """ Most options can be used on the command line and in Python, with the same defaults:
`mulligan solve TASK --max-cost 1` is equivalent to `mulligan.solve(task, max_cost=1)`. An option described as "Short
for `limits.cost`" sets this entry of `limits` unless `limits` already contains it. `model`, `reflect_model`,
`judge_model`, `sandbox`, `prompts`, `limits` and `foresight` can also be set in [mulligan.toml](project.md).
[cli.md](../cli.md) and [python.md](../python.md) explain how the options work together.
"""
_RECORDS = {
    "`mulligan solve`, `mulligan.solve`": SolveOptions,
    "`mulligan run`, `mulligan.run`": RunOptions,
    "`mulligan runs resume`, `mulligan.resume`": ResumeOptions,
    "`mulligan bench run`, `mulligan.run_benchmark`": BenchOptions,
    "`mulligan ask-graph`, `mulligan.langgraph.ask_graph`": GraphOptions,
}

_AGENT = """
An agent is a folder that contains an `AGENT.md`. The file begins with front matter, which is YAML between two lines of
`---` and sets the agent's name and settings. The text below the front matter depends on the pattern:

| `pattern` | what the agent does | prompts |
|---|---|---|
| `reflexion` | acts, lets its reflector judge, and tries again | [`act.md` and `reflect.md`](step.md) |
| `react` | thinks and calls tools until it calls `finish` | the text of AGENT.md |
| `oneshot` | answers with one model call | the text of AGENT.md |

`mulligan add reflexion NAME` creates an agent that you can run immediately. `mulligan lint` reports the mistakes in an
agent's folder, with file names and line numbers, without calling a model. It reports a key that is not on this page as
an error, whereas `mulligan run` only warns about the key.

The front matter is written in a subset of YAML: strings, numbers, `true`, `false`, lists and tables. Anchors, tags and
dates are not allowed. The file must be encoded in UTF-8 and must not be larger than 1 MB.
"""

_AGENT_EXAMPLE = """
---
name: code-improver
description: Writes and iteratively improves code through reflection.
version: "1.0.0"
pattern: reflexion
max_iter: 4
---
"""

_STEP = """
A reflexion agent has two step files next to its [`AGENT.md`](agent.md): `act.md`, which performs the task, and
`reflect.md`, which judges the result. The text of each file is the step's system prompt. The front matter above the
text is optional. Without it, `act.md` is a react step, and `reflect.md` is a oneshot step.

**How a step ends.** A `react` step thinks and calls tools until it calls `finish(key, value)`; the value is the step's
result. A `oneshot` step is one model call, and the model's text is its result.

**How the loop ends.** A react reflector ends the loop with `finish(key="done", ...)`. With any other key, the loop
continues, and the value becomes the actor's feedback. A oneshot reflector ends the loop with an answer that begins
with the word `DONE`, in upper or lower case. After any other answer, the loop continues, and the entire answer becomes
the feedback. The loop always ends after at most `max_iter` cycles.

**What a step sees.** The actor sees the task and, from the second try on, its previous attempt and the feedback.
The reflector sees the task and the result.
"""

_STEP_EXAMPLE = """
---
pattern: react
model:
  role: thinker
  temperature: 0.1
---

You are a code reviewer. You have just seen an attempted solution.

If it is excellent, call finish(key="done", value=<verdict>).
Otherwise, call finish(key="retry", value=<specific actionable feedback>).
"""

_SKILL = """
A skill is a file of instructions that an agent can read when it needs them: `skills/<name>/SKILL.md` in the agent's own
folder or, for all of a project's agents, next to `agents/`. The agent's own skills take precedence.

A step lists its skills under `uses`. The model sees each skill's name and description. When it calls
`read_skill(name)`, it receives the text below the front matter. From then on, it can also call the tools that this
skill lists under `tools` and read the skills that it lists under `uses`. Circular dependencies between skills are an
error. Only react steps have skills.
"""

_SKILL_EXAMPLE = """
---
name: code-style
description: How code is written in this project. Read this skill before you write code.
tools: [read_file, run_command]
---

Read STYLE.md with read_file first. Run `ruff check` with run_command before you finish.
"""

_PROJECT = """
`mulligan.toml` marks a project's folder. Mulligan looks for the file in the working folder and its parent folders. The
file and all its keys are optional. `mulligan init` writes a file that works immediately, and `mulligan lint` reports
mistakes in the file, with line numbers.

**Model roles.** Agents refer to roles (`thinker`, `worker` or roles of your own), and this file assigns a model to each
role. `thinker`, `worker` and `default` always exist. If you do not set them, they use this file's `model` or, without
one, the embedded model. You can use a role's name wherever you can use a model's name:
`mulligan solve … --model thinker`.

**Precedence.** Command-line options come first, then the agent's front matter, the environment, this file, and the
built-in defaults. In the environment, `MULLIGAN_MODEL_THINKER` sets a role's model, and
`MULLIGAN_MODEL_THINKER_TEMPERATURE`, `…_MAX_TOKENS`, `…_BASE_URL` and so on set its other keys.

**Trust.** Keys that run or redirect something (plug-ins, models, addresses, tool servers, prompts) have no effect until
you trust the project with [`mulligan trust`](../trust.md). `mulligan init` trusts the file that it writes.

**API keys.** Mulligan reads a `.env` file next to this file, but never writes one. It uses the keys and addresses in
`.env` once you have [trusted](../trust.md) the project. The environment takes precedence over `.env`.
"""


def pages() -> dict[str, str]:
    """Markdown by file name, as it stands in docs/formats."""
    example = EXAMPLE.read_text(encoding="utf-8").replace("{{name}}", "my-project")
    return {
        "agent.md": page("AGENT.md", _AGENT, AgentFile, _AGENT_EXAMPLE),
        "step.md": page("Step files: act.md and reflect.md", _STEP, StepKeys, _STEP_EXAMPLE),
        "skill.md": page("SKILL.md", _SKILL, SkillFile, _SKILL_EXAMPLE),
        "project.md": page("mulligan.toml", _PROJECT, ProjectFile, example, "toml"),
        "options.md": options_page(),
    }


def options_page() -> str:
    """Markdown: the options of each command and of the function of the same name."""
    parts = ["# Options of a run", _OPTIONS.strip()]
    for title, record in _RECORDS.items():
        rows = [_option_row(it) for it in options_in(record)]
        parts += [f"## {title}", "\n".join(("| command line | Python | |", "|---|---|---|", *rows))]
    return "\n\n".join(parts) + "\n"


def _option_row(it: Option) -> str:
    flags = ", ".join(f"`{flag}`" for flag in it.flags) or "–"
    python = f"{it.name}: {it.kind} = {it.default!r}".replace("|", "\\|")
    help = f"Same as `{it.same_as}`." if it.same_as else it.help.replace("|", "\\|")
    short = f" Short for `{it.into}`." if it.into else ""
    return f"| {flags} | `{python}` | {help}{short} |"


@dataclass(frozen=True)
class _Key:
    """One key of a file: `path` is dotted, `NAME` stands for a name of the user's."""

    path: str
    schema: Schema
    required: bool
    kind: str
    like: str = ""
    """The key whose table is the same, and described there."""


def page(
    title: str, intro: str, model: type[BaseModel], example: str, language: Literal["yaml", "toml"] = "yaml"
) -> str:
    """Markdown: what the file is, a whole example, all keys at a glance, then each with its meaning and an example.

    `example` is a whole file as it stands on disk. `language` is that of the keys.
    """
    root = schema_of(model)
    keys = list(_keys(root, root, {}))
    fence = "~~~~" if "```" in example else "```"
    parts = [f"# {title}", intro.strip(), "## Example"]
    parts.append(f"{fence}{'markdown' if language == 'yaml' else language}\n{example.strip()}\n{fence}")
    rows = (f"| [`{key.path}`](#{_anchor(key.path)}) | {key.kind} | {_default(key, language)} |" for key in keys)
    parts += ["## All keys", "\n".join(("| key | value | default |", "|---|---|---|", *rows)), "## What each key means"]
    parts += (_entry(key, language) for key in keys)
    return "\n\n".join(parts) + "\n"


def _keys(schema: Schema, root: Schema, seen: dict[int, str], above: str = "") -> Iterator[_Key]:
    """Each key before those below it. `seen`: where each table was described, by the identity of its keys."""
    for name, inner in properties(schema, root).items():
        path = f"{above}.{name}" if above else name
        found = next((form["properties"] for form in forms(inner, root) if "properties" in form), None)
        said = (resolved(inner, root), name in schema.get("required", ()), kind(inner, root, page=True))
        yield _Key(path, *said, seen.get(id(found), ""))
        each: Any = resolved(inner, root).get("additionalProperties")
        if isinstance(each, dict):  # a table whose keys are the user's own
            inner, path = cast(Schema, each), f"{path}.NAME"
        for form in forms(inner, root):
            if "properties" in form and id(form["properties"]) not in seen:
                seen[id(form["properties"])] = path
                yield from _keys(form, root, seen, path)


def _default(key: _Key, language: Literal["yaml", "toml"]) -> str:
    if key.required:
        return "required"
    said = key.schema.get("x-default")
    if said is not None:
        return str(said)
    if "default" not in key.schema:
        return "–"
    write = yaml_value if language == "yaml" else _toml_value
    return f"`{write(key.schema['default'])}`"


def _anchor(path: str) -> str:
    """As GitHub makes it of a heading."""
    return "".join(c for c in path.lower() if c.isalnum() or c in "-_")


def _entry(key: _Key, language: Literal["yaml", "toml"]) -> str:
    default = _default(key, language)
    state = {"required": "Required.", "–": ""}.get(default, f"Default: {default}.")
    first = f"*{key.kind[0].upper()}{key.kind[1:]}.* {state}".strip()
    like = f"Its keys are those of [`{key.like}`](#{_anchor(key.like)})." if key.like else ""
    text = f"{str(key.schema.get('description', '')).strip()} {like}".strip()
    parts = [f"### `{key.path}`", _wrapped(first), _wrapped(text)]
    for example in key.schema.get("examples", ())[:1]:
        write = _yaml if language == "yaml" else _toml
        parts.append(f"```{language}\n{write(key.path.split('.'), example)}\n```")
    return "\n\n".join(part for part in parts if part)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _yaml(path: list[str], value: Any) -> str:
    for name in reversed(path):
        value = {name: value}
    return "\n".join(_yaml_lines(value))


def _yaml_lines(table: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _yaml_lines(cast(dict[str, Any], value), f"{indent}  ")
        else:
            yield f"{indent}{name}: {yaml_value(value)}"


def _toml(path: list[str], value: Any) -> str:
    *tables, name = path
    line = f"{name} = {_toml_value(value)}"
    return f"[{'.'.join(tables)}]\n{line}" if tables else line


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        table = cast(Mapping[str, Any], value)
        inside = ", ".join(f"{_toml_key(key)} = {_toml_value(inner)}" for key, inner in table.items())
        return f"{{ {inside} }}"
    if isinstance(value, list):
        return f"[{', '.join(_toml_value(inner) for inner in value)}]"  # pyright: ignore[reportUnknownVariableType]
    return json.dumps(value, ensure_ascii=False)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key, re.ASCII) else json.dumps(key, ensure_ascii=False)


if __name__ == "__main__":
    for name, text in pages().items():
        Path(sys.argv[1], name).write_text(text, encoding="utf-8")
