"""An episode with checks that kills its own process: `mortal_check.py FOLDER KIND DIE`.

KIND: "environment" or "tools". DIE: the end of the key of the journal step after which the process dies; "": never.
Each question to the model leaves a line in FOLDER/asked, each real action one in FOLDER/done. Run again, it resumes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import shelf_world
from seed_agents import lay

import mulligan
from mulligan import Limits, ScriptedModel
from mulligan.app.config import Config
from mulligan.app.model_roles import Models
from mulligan.app.options import Watched
from mulligan.app.recipe import Recipe
from mulligan.app.session import Session
from mulligan.app.trusting import trust
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Episode, Json, Spec, Task
from mulligan.store import open_store

TOOL = """
from pathlib import Path
from mulligan.plugins import Tool

SCHEMA = {"type": "object", "properties": {"thing": {"type": "string"}}, "required": ["thing"]}


class Delete:
    async def offer(self):
        return (Tool("delete", "Delete a thing.", SCHEMA, critical=True),)

    async def call(self, tool, arguments):
        with Path(__file__).with_name("done").open("a") as log:
            log.write(f"delete {arguments['thing']}\\n")
        return "gone"

    async def close(self): ...
"""
FILES = {
    "delete.py": TOOL,
    "mulligan.toml": "",
    "agents/tidy/AGENT.md": "---\nname: tidy\ndescription: Tidies.\nversion: '1'\npattern: react\nuses: [deleting]\n"
    "foresight: true\n---\nTidy.\n",
    "skills/deleting/SKILL.md": "---\nname: deleting\ndescription: How to delete.\ntools: ['../../delete.py']\n---\nDo.\n",
}
ACTS = ("look", "delete ledger", "delete ledger", "delete drafts")
CALLS: tuple[Json, ...] = (
    {"tool": "read_skill", "arguments": {"name": "deleting"}},
    {"tool": "delete", "arguments": {"thing": "ledger"}},
    {"tool": "delete", "arguments": {"thing": "ledger"}},
    {"tool": "delete", "arguments": {"thing": "notes"}},
    {"tool": "finish", "arguments": {"key": "done", "value": "tidy"}},
)


def checked(text: str, change: str) -> Json:
    """Nobody is there to allow that the ledger is deleted; another thing is changed or left."""
    ledger = "ledger" in text
    decision = "ask" if ledger else "change" if change else "go_on"
    said = {"risk": "It is lost.", "critical": True, "reason": "", "decision": decision, "action": change}
    return {**said, "question": "Is it needed?" if ledger else ""}


async def main(folder: Path, kind: str, die: str) -> Episode:
    def on_step(key: str, request: Json, result: Json, recorded: bool) -> None:
        if die and key.endswith(die) and not recorded:
            os.kill(os.getpid(), signal.SIGKILL)

    def say(question: Question, sampling: Sampling) -> Any:
        last = question.messages[-1].text
        judging = question.schema is not None
        done = last.count("\n> ") if kind == "environment" else sum(m.role == "tool" for m in question.messages)
        with (folder / "asked").open("a") as log:
            log.write(f"{'check' if judging else 'act'} {len(question.messages)} {hash_of(last)}\n")
        if judging:
            action = last.rpartition("comes next:")[2]
            return checked(action, 'delete(thing="drafts")' if kind == "tools" and "notes" in action else "")
        return ACTS[done] if kind == "environment" else CALLS[done]

    model = ScriptedModel(say)
    async with open_store(f"sqlite:///{folder / 'm.db'}") as store:
        known = await store.list()
        if kind == "tools":
            lay(folder, FILES)
            trust(folder)
            os.chdir(folder)
            if known:
                return await mulligan.resume(known[0].run, model=model, store=store, on_step=on_step)
            return await mulligan.run("tidy", "Tidy up.", model=model, store=store, on_step=on_step)
        lay(folder, {"interact.shelf_world.md": "[[user]]\n{{task}}\n\n{{past}}\n\n{{trajectory}}"})
        models = Models(Config())
        recipe = Recipe(
            Spec("interact"),
            Spec("outcome"),
            Spec("feedback"),
            Spec("none"),
            Limits(trials=1, identical=None),
            models.name(model),
            prompts=str(folder),
            environment=Spec(str(Path(shelf_world.__file__)), {"log": str(folder / "done")}),
            foresight=Spec("premortem"),
        )
        async with Session(Config(), models, watched=Watched(on_step=on_step)).runner(store, recipe) as runner:
            return await (runner.resume(known) if known else runner.run(Task("Tidy up.")))


def hash_of(text: str) -> int:
    return sum(number * ord(letter) for number, letter in enumerate(text, 1)) % 1_000_003


if __name__ == "__main__":
    episode = asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
    checks = [step.check for step in episode.trials[0].attempt.steps if step.check]
    print([(check.action, check.decision, check.performed, check.asked) for check in checks], episode.stop)
