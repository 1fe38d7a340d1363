"""How well a model answers questions to the sample graph: see README.md, which fixes what is counted.

    mulligan models pull qwen2.5-coder-1.5b
    python studies/graph_questions/run.py --store after.db
    python studies/graph_questions/run.py --store new-after.db --questions new

The runs are recorded in the store, and the same command continues a study that was stopped. A second process with
`--reverse` on the same store takes the questions from the end, until the two meet. `--report` prints the
table of what the store holds, without a model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mulligan.core.errors import MulliganError
from mulligan.core.records import Episode
from mulligan.graphs.opening import load_graph
from mulligan.graphs.sample import write_sample
from mulligan.langgraph import ask_graph, resume_graph
from mulligan.langgraph.state import answer_of
from mulligan.recording.drivers import ASKED
from mulligan.store.sqlite import SqliteStore

HERE = Path(__file__).parent


def _read(name: str) -> list[dict[str, Any]]:
    questions: list[dict[str, Any]] = json.loads((HERE / name).read_text(encoding="utf-8"))["questions"]
    return questions


TEN = [{"kind": "the ten", **each} for each in _read("questions.json")]
THIRTY = _read("questions_b.json")
QUESTIONS = {"forty": TEN + THIRTY, "new": _read("questions_c.json"), "drawn": _read("questions_d.json")}
ENDS = ("right", "wrong but solved", "unsure")


def is_right(rows: Sequence[Mapping[str, Any]], right: Sequence[Any]) -> bool:
    """Whether the values of a column, or of one property of the nodes in a column, are exactly these."""
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            for key, one in parts_of(name, value):
                columns.setdefault(key, []).append(one)
    wanted = {json.dumps(value) for value in right}
    return any({json.dumps(value) for value in values} == wanted for values in columns.values())


def parts_of(name: str, value: Any) -> list[tuple[str, Any]]:
    """The value of a column; of a node, each of its properties."""
    node: dict[str, Any] = dict(value.get("properties", {})) if isinstance(value, dict) else {}  # pyright: ignore
    return [(f"{name}.{key}", one) for key, one in node.items()] or [(name, value)]


async def rows_of(store: SqliteStore, episode: Episode) -> list[dict[str, Any]]:
    """What the query that was handed out gave, whole: as its step of the journal has it. Of a run that ended absent,
    none is."""
    trial = answer_of(episode)
    if trial is None or (episode.stop is not None and episode.stop.reason == "absent"):
        return []
    ran = trial.attempt.output
    steps = [row.result for row in await store.steps(episode.id) if row.done and "/query#" in row.key]
    return next((given["result"] for given in reversed(steps) if given["query"] == ran), list[Any]())


async def recorded(store: SqliteStore) -> dict[str, Episode]:
    """By question, the newest run of each."""
    episodes = [e for e in await store.list(limit=1000) if ASKED in e.head.settings]
    return {episode.task.prompt: episode for episode in reversed(episodes)}


async def run(
    store: SqliteStore, graph: Path, options: Mapping[str, Any], questions: Sequence[Mapping[str, Any]]
) -> None:
    for each in questions:
        known = (await recorded(store)).get(each["question"])
        if known is not None and known.over:
            continue
        try:
            if known is None:
                result = await ask_graph(each["question"], graph, store=store, **options)
            else:
                result = await resume_graph(known.run, store=store)
            print(f"{each['question']}\n  {result.stop}: {result}", file=sys.stderr, flush=True)
        except MulliganError as error:
            print(f"{each['question']}\n  {error}", file=sys.stderr, flush=True)


async def end_of(store: SqliteStore, each: Mapping[str, Any], episode: Episode) -> str:
    """One of `ENDS`. A question about an absent thing is right if no value is handed out and nothing is solved."""
    rows = await rows_of(store, episode)
    values = [value for row in rows for value in row.values() if value is not None]
    right = is_right(rows, each["right"]) if each["right"] else not episode.solved and not values
    return "right" if right else "wrong but solved" if episode.solved else "unsure"


async def report(store: SqliteStore, questions: Sequence[Mapping[str, Any]]) -> str:
    """Markdown tables: by kind, then question by question."""
    found = await recorded(store)
    heads = sorted({head for e in found.values() for head in e.head.models.values()})
    asked: dict[str, Any] = next((e.head.settings[ASKED] for e in found.values()), dict[str, Any]())
    lines = [f"Model: {', '.join(f'`{head}`' for head in heads)}. Settings: `{json.dumps(asked)}`.", ""]
    rows = [
        "| question | kind | drafts and revisions | stop | end | seconds | tokens |",
        "|---|---|--:|---|---|--:|--:|",
    ]
    counts: dict[str, Counter[str]] = {}
    for each in questions:
        episode = found.get(each["question"])
        if episode is None:
            continue
        end = await end_of(store, each, episode)
        counts.setdefault(each["kind"], Counter())[end] += 1
        steps = 1 + sum(trial.feedback is not None for trial in episode.trials)
        stop = "cut off" if episode.stop is None else episode.stop.reason
        used = f"{episode.seconds:.0f} | {episode.usage.tokens:,}"
        rows.append(f"| {each['question']} | {each['kind']} | {steps} | {stop} | {end} | {used} |")
    counts["all"] = sum(counts.values(), Counter[str]())
    lines += [f"| kind | n | {' | '.join(ENDS)} |", "|---|--:|--:|--:|--:|"]
    for kind, ends in counts.items():
        lines.append(f"| {kind} | {ends.total()} | {' | '.join(str(ends[end]) for end in ENDS)} |")
    return "\n".join([*lines, "", *rows])


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    parser.add_argument("--questions", choices=sorted(QUESTIONS), default="forty")
    parser.add_argument("--max-steps", type=int, default=4)
    parser.add_argument("--no-prompt-engine", action="store_true", help="tell the model the whole schema")
    parser.add_argument("--limit", type=int, help="only the first N questions, to try the script out")
    parser.add_argument("--reverse", action="store_true", help="begin with the last question")
    parser.add_argument("--store", type=Path, default=Path("graph-questions.db"))
    parser.add_argument(
        "--graph", type=Path, default=Path("graph-questions.kg"), help="made of the sample, if not there"
    )
    parser.add_argument("--report", action="store_true", help="print the table of what the store holds")
    asked = parser.parse_args()
    store, questions = SqliteStore(asked.store), QUESTIONS[asked.questions]
    if not asked.report:
        if not asked.graph.exists():
            with tempfile.TemporaryDirectory() as folder:
                write_sample(Path(folder) / "files")
                load_graph(Path(folder) / "files", asked.graph)
        options = {"model": asked.model, "max_steps": asked.max_steps}
        options |= {"prompt_engine": False} if asked.no_prompt_engine else {}
        await run(store, asked.graph, options, questions[:: -1 if asked.reverse else 1][: asked.limit])
    print(await report(store, questions))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
