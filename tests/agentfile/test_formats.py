"""The pages and JSON Schemas of the files: made from the models, complete, and of the same mind as the reader."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from agent_folders import SOUND, agent_with, sound
from each_row import each_row
from inline_snapshot import snapshot
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field
from test_broken_keys import HEADS, KEYS

from format_pages import page, pages
from mulligan.agentfile.formats import json_schema, properties, schema_of
from mulligan.agentfile.schema import AgentFile, SkillFile, StepKeys, Table

MODELS: dict[str, type[BaseModel]] = {"agent": AgentFile, "step": StepKeys, "skill": SkillFile}


@pytest.mark.parametrize("format", MODELS)
def test_schemas_are_json_schema(format: str) -> None:
    schema = json_schema(MODELS[format])
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)
    assert "x-default" not in str(schema)
    assert "null" not in str(schema)
    tables = [schema, *schema.get("$defs", {}).values()]
    keys = [(name, key) for table in tables for name, key in table["properties"].items()]
    assert len(keys) >= 10
    assert [name for name, key in keys if not key.get("description")] == []
    ignored = {"env", "tama", "metadata", "compatibility", "allowed-tools"}
    assert [name for name, key in keys if not key.get("examples") and name not in ignored] == []


def fits(values: Any) -> bool:
    validator: Any = Draft202012Validator(json_schema(AgentFile))
    return validator.is_valid(values)


@each_row(("front", "said"), KEYS)
def test_the_schema_refuses_what_the_reader_refuses(front: str, said: list[str]) -> None:
    values: Any = yaml.safe_load(agent_with(front).split("---")[1])
    refused = not fits(values)
    if re.search("appears twice|mean the same", said[0]):
        return  # a rule between two keys, left to lint
    assert refused is ("warning: " not in said[0])


@each_row(("old", "new", "said"), HEADS)
def test_the_schema_refuses_what_every_agent_may_not_have(old: str, new: str, said: list[str]) -> None:
    text = str(SOUND["AGENT.md"])
    assert fits(yaml.safe_load(text.split("---")[1]))
    assert not fits(yaml.safe_load(text.replace(old, new).split("---")[1])), said


@pytest.mark.parametrize("format", MODELS)
def test_every_key_has_its_entry_and_an_example_that_holds(format: str) -> None:
    text = pages()[f"{format}.md"]
    model = MODELS[format]
    needed = {"name": "x", "description": "y", "version": "1", "pattern": "react"}
    entries = re.split(r"^### `(.+)`$", text, flags=re.MULTILINE)
    keys, bodies = entries[1::2], entries[2::2]
    assert set(keys) >= set(properties(schema_of(model), schema_of(model)))
    assert len(keys) == len(set(keys))
    for key, body in zip(keys, bodies, strict=True):
        assert f"| [`{key}`](#{re.sub('[^a-z_-]', '', key)}) |" in text
        for example in re.findall(r"```yaml\n(.*?)\n```", body, re.DOTALL):
            given = yaml.safe_load(example)
            assert key.split(".")[0] in given
            base = {} if model is StepKeys else {k: v for k, v in needed.items() if k in model.model_fields}
            model.model_validate({**base, **given})
    assert "None" not in text
    assert max(len(line) for line in text.split("\n") if not line.startswith("|")) <= 120


def test_the_examples_of_the_pages_read_without_a_problem(tmp_path: Path) -> None:
    example: dict[str, str] = {}
    for name in ("agent.md", "step.md", "skill.md"):
        text = pages()[name]
        found = re.search(r"## Example\n\n(`{3,}|~{3,})markdown\n(.*?)\n\1", text, re.DOTALL)
        assert found
        example[name] = found[2]
    used = example["step.md"].replace("pattern: react", "pattern: react\nuses: [code-style]")
    files = {"AGENT.md": example["agent.md"], "act.md": used, "reflect.md": example["step.md"]}
    agent = sound(tmp_path, {**files, "skills/code-style/SKILL.md": example["skill.md"]})
    assert agent.skills["code-style"].tools == ("read_file", "run_command")


class Server(Table):
    """A server."""

    command: list[str] = Field(description="What starts it.", examples=[["npx", "server"]])


class Project(BaseModel):
    """Another format, of somebody else."""

    name: str = Field(description="The project's name.", examples=["mine"])
    mcp: dict[str, Server] = Field(default_factory=dict, description="Servers by name.")
    limits: dict[str, Any] = Field(default={"trials": 4}, description="Limits.", examples=[{"trials": 2, "tokens": 5}])


def test_a_page_of_another_model_in_toml() -> None:
    assert page("mulligan.toml", "What a project has.", Project, 'name = "mine"', "toml") == snapshot("""\
# mulligan.toml

What a project has.

## Example

```toml
name = "mine"
```

## All keys

| key | value | default |
|---|---|---|
| [`name`](#name) | a string | required |
| [`mcp`](#mcp) | a table | – |
| [`mcp.NAME.command`](#mcpnamecommand) | a list of strings | required |
| [`limits`](#limits) | a table | `{ trials = 4 }` |

## What each key means

### `name`

*A string.* Required.

The project's name.

```toml
name = "mine"
```

### `mcp`

*A table.*

Servers by name.

### `mcp.NAME.command`

*A list of strings.* Required.

What starts it.

```toml
[mcp.NAME]
command = ["npx", "server"]
```

### `limits`

*A table.* Default: `{ trials = 4 }`.

Limits.

```toml
limits = { trials = 2, tokens = 5 }
```
""")


def test_a_default_is_shown_as_it_is_written() -> None:
    text = page("x", "y", AgentFile, "z")
    assert "| [`judge_last`](#judge_last) | `true` or `false` | `true` |" in text
    assert "| [`memory.mode`](#memorymode) | `online` or `frozen` | `online` |" in text
    assert "*An integer of at least 1.* Default: 4 with `reflexion`, 10 with `react`." in text
