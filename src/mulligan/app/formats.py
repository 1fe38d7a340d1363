"""Every file format that a user writes, as a JSON Schema for editors and as a page of the docs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

from mulligan.agentfile.formats import Format, page, schema_of, without_notes
from mulligan.agentfile.formats import json_schema as of_agents
from mulligan.agentfile.pages import pages as pages_of_agents
from mulligan.app.project_file import EXAMPLE
from mulligan.app.project_schema import ProjectFile

_PROJECT = """
`mulligan.toml` marks the folder of a project: it is looked for in the working folder and upward. Everything in it may
be left out, and so may the file. `mulligan init` writes one that works as it is, and `mulligan lint` says what is
wrong with one, line by line.

**Roles of models.** Agents ask for a role (`thinker`, `worker`, or one of your own), and this file says which model
that is. `thinker`, `worker` and `default` always exist: without a word of yours they are the `model` of this file, or
the embedded one. A role's name can stand wherever a model's can: `mulligan solve … --model thinker`.

**What goes before what.** A flag, then the front matter of the agent, then the environment, then this file, then what
is built in. In the environment a role is `MULLIGAN_MODEL_THINKER` (the model), `MULLIGAN_MODEL_THINKER_TEMPERATURE`,
`…_MAX_TOKENS`, `…_BASE_URL` and so on for its other keys.

**Keys.** A `.env` beside this file is read, and never written: what is set in the environment already stays as it is.
"""


def json_schema(form: str) -> dict[str, Any]:
    """`form`: agent, step, skill (their front matter) or project (mulligan.toml). Draft 2020-12."""
    if form != "project":
        return of_agents(cast(Format, form))
    plain: dict[str, Any] = without_notes(schema_of(ProjectFile))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **plain}


def pages() -> dict[str, str]:
    """Markdown by file name, as it stands in docs/formats; `make docs` writes it there."""
    example = EXAMPLE.read_text(encoding="utf-8").replace("{{name}}", "my-project")
    return {**pages_of_agents(), "project.md": page("mulligan.toml", _PROJECT, ProjectFile, example, "toml")}


if __name__ == "__main__":
    for name, text in pages().items():
        Path(sys.argv[1], name).write_text(text, encoding="utf-8")
