"""`mulligan schema`: the JSON Schema of a file format, for editors."""

from __future__ import annotations

import json

import click

from mulligan.agentfile.formats import json_schema
from mulligan.agentfile.schema import AgentFile, SkillFile, StepKeys
from mulligan.app.project_schema import ProjectFile
from mulligan.cli.terminal import emit


@click.command()
@click.argument("form", metavar="FORMAT", type=click.Choice(["agent", "step", "skill", "project"]))
def schema(form: str) -> None:
    """Print the JSON Schema of a file format, for editors.

    FORMAT is agent, step or skill (their front matter), or project (mulligan.toml).
    """
    models = {"agent": AgentFile, "step": StepKeys, "skill": SkillFile, "project": ProjectFile}
    emit(json.dumps(json_schema(models[form]), ensure_ascii=False, indent=2))
