"""The agent of seed 004 as its page prints it, and a way to lay agents down. Transcribed by hand, before the reader."""

from pathlib import Path

AGENT = """---
name: code-improver
description: Writes and iteratively improves code through reflection.
version: "1.0.0"
pattern: reflexion
max_iter: 4
---
"""

ACT = """---
pattern: react
model:
  role: thinker
---

You are an expert programmer. Write code that solves the given task.

On retry iterations you will also receive your previous attempt and the reflector's feedback —
incorporate it and produce an improved solution.

Call finish(key="done", value=<final code>) when your solution is complete.
"""

REACT_REFLECTOR = """---
pattern: react
model:
  role: thinker
  temperature: 0.1
---

You are a code reviewer. You have just seen an attempted solution.

Evaluate it on:
1. Correctness — does it handle edge cases?
2. Efficiency — is the algorithm optimal?
3. Readability — is it clean and well-commented?

If the solution is already excellent, call finish(key="done", value=<verdict>).
Otherwise, call finish(key="retry", value=<specific actionable feedback>).
"""

ONESHOT_REFLECTOR = """You are a code reviewer. Evaluate the attempt.

If the solution is correct and clean, respond with exactly:
DONE

Otherwise respond with:
RETRY: <specific feedback — point to what went wrong and why>
"""


def lay(folder: Path, files: dict[str, str]) -> Path:
    """The files below this folder, which is made; the folder."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def code_improver(project: Path, *, reflect: str = REACT_REFLECTOR, agent: str = AGENT, act: str = ACT) -> Path:
    """The seed's agent in agents/my-reflexion of this project; its folder."""
    return lay(project / "agents" / "my-reflexion", {"AGENT.md": agent, "act.md": act, "reflect.md": reflect})
