"""The gallery of a run: a page for each case, with all trials and the hidden verdict on each."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from mulligan.app.config import load
from mulligan.app.model_roles import Models
from mulligan.app.session import Session
from mulligan.app.story import story
from mulligan.bench.harness.plan import LOG, choice_of, make_plan
from mulligan.bench.report.figures import Recorded
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode, Json, Trial
from mulligan.text.pages import Block, Facts, Fence, Heading, Line, Section, Table, markdown
from mulligan.text.plain import count
from mulligan.text.web_pages import html

Form: TypeAlias = Literal["md", "html"]
FORMS: Mapping[str, Form] = {".md": "md", ".html": "html"}
"""The format of a gallery in one file, by its ending. Any other path is a folder, which gets a file for each case."""


def _text(blocks: Sequence[Block], title: str, form: Form) -> str:
    return html(title, blocks) if form == "html" else markdown(blocks)


def case_page(recorded: Recorded, result: CaseResult, target: Json = None) -> list[Block]:
    """The page of a case. target: if given, the page shows it, and the text of the score, which may reveal it."""
    trials = [len(mark.scores) for mark in result.episodes]
    message = result.text if target is not None or result.status == "error" else ""
    blocks: list[Block] = [
        Heading(1, f"Case {result.case}: {result.status}"),
        Facts(
            {
                "Run": recorded.run.id,
                "Position": f"{result.position} of {len(recorded.run.cases)}",
                "Trials": ", ".join(map(str, trials)) or "none",
                "Error" if result.status == "error" else "The benchmark said": " ".join(message.split()),
            }
        ),
    ]
    if target is not None:
        text = target if isinstance(target, str) else json.dumps(target, ensure_ascii=False, indent=2)
        blocks += [Heading(2, "Hidden target"), Fence(text)]
    for number, episode in enumerate(_episodes(recorded, result)):
        blocks += _episode_blocks(result, episode, first=number == 0)
    return blocks


def _episodes(recorded: Recorded, result: CaseResult) -> list[Episode]:
    """All recorded episodes of a case in order, including those that ended with an error."""
    prefix = f"{recorded.run.id}.{result.position}"
    episodes = [episode for id, episode in recorded.episodes.items() if id.rpartition(".")[0] == prefix]
    return sorted(episodes, key=lambda episode: int(episode.id.rpartition(".")[2]))


def _episode_blocks(result: CaseResult, episode: Episode, *, first: bool) -> list[Block]:
    """The story of an episode. Only the first of a case has the task and the recall."""
    scores = next((mark.scores for mark in result.episodes if mark.episode == episode.id), ())

    def after(trial: Trial) -> list[Block]:
        score = scores[trial.number - 1] if trial.number <= len(scores) else None
        return [Line(_verdict(score), strong="Hidden verdict, had it ended here:")]

    blocks = [Heading(2, f"Episode {episode.id}"), *list(story(episode, level=2, after=after))[1:]]
    return [block for block in blocks if first or not (isinstance(block, Section) and block.id in ("task", "recall"))]


def _verdict(score: float | None) -> str:
    if score is None:
        return "not scored"
    return "solved" if score == 1 else "failed" if score == 0 else f"score {score:g}"


def write_gallery(
    path: str, runs: Sequence[Recorded], form: Form, every: bool, targets: Sequence[Mapping[str, Json]]
) -> str:
    """Write the gallery of these runs.

    Args:
        path: a file, or a folder that gets a file for each case.
        form: the format of the files in a folder. The ending of a single file decides its format.
        every: include solved cases.
        targets: for each run, the hidden targets by case. Empty: show no targets.

    Returns:
        A sentence that says what was written.

    Raises:
        InvalidInput: it cannot be written.
    """
    target = Path(path)
    shown = [
        (recorded, result, case_page(recorded, result, targets[n].get(result.case) if targets else None))
        for n, recorded in enumerate(runs)
        for result in recorded.results
        if every or not result.solved
    ]
    index: list[Block] = [Heading(1, f"Gallery: {count(len(shown), 'case')}{'' if every else ' not solved'}")]
    try:
        if target.suffix in FORMS:
            form = FORMS[target.suffix]
            pages = [block for _, _, blocks in shown for block in blocks]
            target.write_text(_text([*index, *pages], "Gallery", form), encoding="utf-8")
            return f"Wrote {count} to {path}"
        target.mkdir(parents=True, exist_ok=True)
        rows = [
            [recorded.run.id, result.case, result.status, file_name(recorded, result, form)]
            for recorded, result, _ in shown
        ]
        index.append(Table(["run", "case", "status", "file"], rows, left=4, links=True))
        (target / f"index.{form}").write_text(_text(index, "Gallery", form), encoding="utf-8")
        for recorded, result, blocks in shown:
            text = _text(blocks, f"Case {result.case}", form)
            (target / file_name(recorded, result, form)).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The gallery cannot be written to {path}: {error.strerror or error}.") from error
    return f"Wrote {count} to {path}, one file each"


def file_name(recorded: Recorded, result: CaseResult, form: Form) -> str:
    """The name of the case's file: its id, with only characters that all file systems accept."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", result.case)[:60].strip(".-")
    return f"{recorded.run.id}-{result.position:04d}-{plain or 'case'}.{form}"


def targets_of(run: BenchRun) -> Mapping[str, Json]:
    """The hidden targets by case, from the run's data. Raises `InvalidInput` if the data is missing or has changed."""
    if run.benchmark.startswith(LOG):
        raise InvalidInput(f"Run {run.id} replays a log: look up the hidden targets in the log.")
    config, choice = load(), choice_of(run.options)
    plan = make_plan(choice, config, Session(config, Models(config)).sandbox(choice.sandbox))
    for name, sha in plan.files.items():
        if run.rests_on.get(f"data {name}") != sha:
            raise InvalidInput(f"The data {name} has changed since run {run.id}: its targets cannot be shown.")
    return {case.id: case.target for case in plan.cases}
