"""The pages of the docs about the files of an agent: what stands around the keys."""

from __future__ import annotations

from mulligan.agentfile.formats import page
from mulligan.agentfile.schema import AgentFile, SkillFile, StepKeys

_AGENT = """
An agent is a folder with an `AGENT.md` in it. The file begins with front matter: lines of YAML between two lines of
`---`, which say what the agent is called and how it works. What comes below the front matter depends on the pattern:

| `pattern` | what it does | its prompts |
|---|---|---|
| `reflexion` | acts, lets its reflector judge, and tries again | [`act.md` and `reflect.md`](step.md) |
| `react` | thinks and calls tools until it calls `finish` | the text of AGENT.md |
| `oneshot` | answers with one model call | the text of AGENT.md |

`mulligan add reflexion NAME` makes a folder that works as it is, and `mulligan lint` says what is wrong with one, file
and line, before any model is called. A key that is not on this page is an error there; `mulligan run` warns of it and
goes on.

The front matter is the plain part of YAML: text, numbers, `true` and `false`, lists and tables. Anchors, tags and dates
are refused. A file is UTF-8 and at most 1 MB.
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
A reflexion agent has two step files beside its [`AGENT.md`](agent.md): `act.md`, which does the task, and `reflect.md`,
which judges what came of it. The text is the system prompt. The front matter above it may be left out: `act.md` is then
a react step, and `reflect.md` a oneshot step.

**How a step ends.** A `react` step thinks and calls tools until it calls `finish(key, value)`; the value is its
result. A `oneshot` step is one model call, and its text is the result.

**How the loop ends.** A react reflector stops it with `finish(key="done", ...)`. Any other key goes on, and the value
is what the actor is told. A oneshot reflector stops it with a text that begins with the word `DONE`, in any case; any
other text goes on, and the whole of it is what the actor is told. A loop that is not stopped ends at `max_iter`.

**What a step is told.** The actor gets the task; from the second trial on also its previous attempt and the feedback.
The reflector gets the task and the result.
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
A skill is what an agent can read up on when it needs it: `skills/<name>/SKILL.md`, in the agent's own folder or beside
`agents/` for all agents of the project. The agent's own comes first.

A step names its skills under `uses`. The model is shown the name and the description of each. When it calls
`read_skill(name)`, it gets the text below the front matter, the tools under `tools` can be called from then on, and the
skills under `uses` can be read. Skills that use each other in a circle are an error. Only react steps have skills.
"""

_SKILL_EXAMPLE = """
---
name: code-style
description: How code is written in this project. Read it before you write any.
tools: [read_file, run_command]
---

Read STYLE.md with read_file first. Run `ruff check` with run_command before you finish.
"""


def pages() -> dict[str, str]:
    """Markdown by file name, for docs/formats."""
    return {
        "agent.md": page("AGENT.md", _AGENT, AgentFile, _AGENT_EXAMPLE),
        "step.md": page("Step files: act.md and reflect.md", _STEP, StepKeys, _STEP_EXAMPLE),
        "skill.md": page("SKILL.md", _SKILL, SkillFile, _SKILL_EXAMPLE),
    }
