"""An episode that condenses its lessons and kills its own process: `mortal_condense.py FOLDER DIE`.

DIE: the end of the key of the journal step after which the process dies; "!N": it dies while the model works on the
N-th question of condensing, before it answers; "": never. Each answered question leaves a line in FOLDER/asked. Run
again, it resumes.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import mulligan
from mulligan import ScriptedModel
from mulligan.core.codec import to_json
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Episode, Json
from mulligan.store import open_store

CONDENSES = "[lessons]"
PROMPT = f"[[user]]\n{CONDENSES}\n{{{{task}}}}\n{{{{lessons}}}}\n{{{{words}}}}\n"


async def main(folder: Path, die: str) -> Episode:
    asked = folder / "asked"
    asked.touch()

    def on_step(key: str, request: Json, result: Json, recorded: bool) -> None:
        if die and key.endswith(die) and not recorded:
            os.kill(os.getpid(), signal.SIGKILL)

    def say(question: Question, sampling: Sampling) -> Any:
        first, last = question.messages[0].text, question.messages[-1].text
        condensing = first.startswith(CONDENSES)
        before = asked.read_text().count("condense ")
        if condensing and die == f"!{before + 1}":
            os.kill(os.getpid(), signal.SIGKILL)
        with asked.open("a") as log:
            log.write(f"{'condense' if condensing else 'other'} {json.dumps(last)}\n")
        if not condensing:
            return f"Not this {sampling.seed}."
        # The first answer is empty, so that the question is put once more.
        return f"Neither of those {before}." if before else ""

    (folder / "condense.lessons.md").write_text(PROMPT)
    model = ScriptedModel(say)
    async with open_store(f"sqlite:///{folder / 'm.db'}") as store:
        if known := await store.list():
            return await mulligan.resume(known[0].run, model=model, store=store, on_step=on_step)
        return await mulligan.solve(
            "Find it.",
            evaluator="exact_match:never",
            strategy="reflexion",
            settings={"strategy": {"window": 2, "overflow": "condense"}},
            limits={"trials": 5, "identical": None},
            prompts=folder,
            model=model,
            store=store,
            on_step=on_step,
        )


if __name__ == "__main__":
    episode = asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
    print(json.dumps([to_json(trial) for trial in episode.trials]), episode.stop)
