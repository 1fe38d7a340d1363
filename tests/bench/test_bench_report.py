"""The report of runs as a user gets it: heads, groups, forms, refusals."""

import asyncio
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_reports import SHA, case, recorded
from toy_bench import HERE, Obliging, cases

from mulligan.app.config import load
from mulligan.bench.commands import run as bench_run
from mulligan.bench.harness.running import run_benchmark
from mulligan.bench.report.figures import as_json, make_report, read_run
from mulligan.bench.report.page import page
from mulligan.cli.main import main
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Quality, Trial
from mulligan.models.scripted import ScriptedModel
from mulligan.store.sqlite import SqliteStore
from mulligan.text.pages import Heading, plain


def told(*runs: Any, **options: Any) -> str:
    return plain(page(make_report(runs, **options)))


def section(text: str, title: str) -> str:
    """What stands below this heading, up to the next one."""
    return text.split(f"\n{title}\n{'-' * len(title)}\n")[1].split("\n---")[0]


def test_the_head_says_what_others_need_to_check_it() -> None:
    text = told(
        recorded(
            *(case(1), case(0)),
            total=10,
            trials=4,
            limits={"tokens": 9000},
            cases=["c1"],
            agent="a b",
            settings={"actor": {"max_tokens": 5}},
        )
    )
    for line in (
        f"Data       toy.json, sha256 {SHA}",
        "Model      openai:gpt (actor)",
        "Cases      unfinished: 2 of 10 (1 solved, 1 failed)",
        "Tries      at most 4",
        "Seed       7",
        "Versions   mulligan 1",
        "mulligan bench run toy --method reflexion --model openai:gpt --seed 7 --max-tokens 9000 --case c1 "
        "--agent 'a b' --set actor.max_tokens=5",
        'limits={"tokens": 9000}, agent="a b", settings={"actor": {"max_tokens": 5}}',
    ):
        assert line in text


def test_the_command_that_is_told_can_be_given() -> None:
    run = recorded(case(1), limits={"identical": None}, shuffle=True, restarts=2, settings={"actor": {"x": "y z"}})
    words = shlex.split(make_report([run]).runs[0].about.command)[3:]
    given = bench_run.command.make_context("run", words).params
    assert (given["shuffle"], given["restarts"], given["seed"], given["identical"]) == (True, 2, 7, 0)
    assert given["settings"] == {"actor": {"x": "y z"}}


@pytest.mark.parametrize("model", ["scripted", "scripted:answers.txt@12", "replay:log.json@34", "log:HumanEval/3@56"])
def test_a_scripted_run_stands_in_no_table_of_results(model: str) -> None:
    text = told(recorded(case(1), id="b1", model=model), recorded(case(1), id="b2"))
    assert " RESULT. THE ANSWERS " in text.split("\n\n")[1]
    assert "reflexion (openai:gpt)" in text[text.index("\nResults\n") : text.index("\nScripted or replayed")]
    results = text.index("\nResults\n")
    scripted = text.index("\nScripted or replayed: no results\n")
    assert model.partition("@")[0] not in text[results:scripted]
    assert model.partition("@")[0] in text[scripted:]
    assert "(no result)" in section(text, "The same cases in two runs")


def test_a_run_without_a_model_is_no_result_of_one() -> None:
    run = recorded(case(1), model="")
    report = make_report([run])
    assert report.runs[0].about.scripted == "No model took part, so this is not a result of a model."


def test_an_oracle_stands_apart() -> None:
    blocks = page(make_report([recorded(case(1), source="oracle", id="b1"), recorded(case(1), id="b2")]))
    titles = [block.text for block in blocks if isinstance(block, Heading) and block.level == 2]
    assert titles[:3] == ["Results", "With an oracle", "The same cases in two runs"]


def test_repeats_are_in_the_result_and_in_the_tables() -> None:
    text = told(recorded(case(1, more=[1, 1]), case(1, more=[0, 1]), samples=3))
    assert "3 episodes of each case: pass@1 83.3%, pass@3 100.0%, pass^3 50.0%" in text
    rows = [line.split() for line in section(text, "Several episodes of a case").splitlines()]
    assert ["reflexion", "2", "100.0%", "66.7%"] in [[*row[:3], row[6]] for row in rows if len(row) > 6]


def test_restarts_are_called_an_oracle() -> None:
    text = told(recorded(case(0, more=[1]), restarts=2))
    assert "within k (oracle)" in text
    rows = [line.split() for line in section(text, "Several episodes of a case").splitlines()]
    assert ["reflexion", "2", *["-"] * 4, "100.0%", "1", "1"] in [row[:9] for row in rows]


def test_unknown_is_reported_and_not_zero() -> None:
    text = told(recorded(case(None), case(0, status="error"), cost=None))
    assert "unknown" in section(text, "What it took")
    row = next(line for line in section(text, "Solved by number of tries").splitlines() if line.startswith("reflexion"))
    assert row.split() == ["reflexion", "1", "0", "0", "unknown", "-", "1", "1"]


@pytest.mark.parametrize("count", [0, 1])
def test_a_run_that_has_hardly_begun_can_be_reported(count: int) -> None:
    text = told(recorded(*[case(status="error")] * count, total=3))
    assert f"unfinished: {count} of 3" in text


def test_labels_tell_runs_apart() -> None:
    same = [recorded(case(1), id="b1"), recorded(case(1), id="b2")]
    assert make_report(same).labels == ["reflexion (b1)", "reflexion (b2)"]
    models = [recorded(case(1), id="b1", model="local:a@1"), recorded(case(1), id="b2", model="local:b@2")]
    assert make_report(models).labels == ["reflexion (local:a)", "reflexion (local:b)"]
    memories = [same[0], recorded(case(1), id="b2", memory="online")]
    assert make_report(memories).labels == ["reflexion (no memory)", "reflexion (memory online)"]
    with pytest.raises(InvalidInput, match="twice"):
        make_report([same[0], same[0]])


def test_each_is_compared_with_the_first_or_all_pairs_are() -> None:
    runs = [recorded(case(1), id=f"b{n}") for n in range(3)]
    assert [(one.a, one.b) for one in make_report(runs).comparisons] == [("b0", "b1"), ("b0", "b2")]
    assert len(make_report(runs, every_pair=True).comparisons) == 3


def test_lessons_stand_beside_what_the_next_trial_did() -> None:
    run = recorded(case(0, 1), case(0, 0), case(0, 0, 0))
    qualities = iter([Quality(0.2), Quality(0.5), Quality(1.0), None])

    def scored(trial: Trial) -> Trial:
        return replace(trial, reflection=trial.reflection and replace(trial.reflection, quality=next(qualities)))

    episodes = {
        name: replace(episode, trials=tuple(map(scored, episode.trials))) for name, episode in run.episodes.items()
    }
    report = make_report([replace(run, episodes=episodes)])
    found = [(one.band, one.count, one.passed.count, one.passed.n) for one in report.runs[0].figures.lessons]
    assert found == [("not scored", 1, 0, 1), ("0 to 0.25", 1, 1, 1), ("0.25 to 0.7", 1, 0, 1), ("0.7 to 1", 1, 0, 1)]
    (keys,) = {tuple(one) for one in as_json(report)["runs"][0]["lessons"]}
    assert keys == ("band", "count", "quality", "tokens", "passed", "better")
    assert "100.0%" in section(told(replace(run, episodes=episodes)), "Lessons by quality")


def test_the_json_form_keeps_its_keys() -> None:
    told = json.loads(
        json.dumps(as_json(make_report([recorded(case(1)), recorded(case(0), id="b2")])), allow_nan=False)
    )
    assert (told["schema"], list(told)) == (2, ["schema", "mulligan", "runs", "comparisons"])
    docs = (Path(__file__).parents[2] / "docs" / "benchmark-report.md").read_text(encoding="utf-8")
    keys = {*told["runs"][0], *told["comparisons"][0], *told["runs"][0]["spent"], *told["runs"][0]["shown"]}
    keys |= {*told["runs"][0]["trials"][0], *told["comparisons"][0]["counts"], *told["runs"][0]["at_end"]}
    assert {key for key in keys if f"`{key}" not in docs} == set()


# --- from the store, by the command ---------------------------------------------------------------------------------


@pytest.fixture
def two(tmp_path: Path) -> tuple[str, str]:
    """Two runs over the same three cases, in the store that the command reads."""
    return asyncio.run(_two(tmp_path))


async def _two(tmp_path: Path) -> tuple[str, str]:
    data = cases(tmp_path, "say right at 2", "wrong `` <b>", "right")
    store = SqliteStore(load().database)
    try:
        one = await run_benchmark(HERE, model=Obliging(), store=store, data=str(data))
        model = ScriptedModel(lambda question, sampling: "wrong", "scripted")
        other = await run_benchmark(HERE, model=model, store=store, data=str(data), method="simple")
        assert (await read_run(store, one.run.id)).results == one.results
    finally:
        await store.close()
    return one.run.id, other.run.id


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["bench", *arguments])
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out, captured.err


def test_the_command_reports_in_each_form(
    two: tuple[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    one, other = two
    status, out, _ = command(capsys, "report", one, other, "--format", "json")
    told = json.loads(out)
    first, second = told["runs"]
    assert (status, first["method"], second["method"]) == (0, "reflexion", "simple")
    assert [at["solved"]["count"] for at in first["trials"]] == [1, 2, 2]
    assert (first["scripted"], second["scripted"].partition(":")[0]) == ("", "Scripted model")
    assert told["comparisons"][0]["counts"]["only_a"] == 2
    assert first["spent"]["usage"]["calls"] == 3 + 5 + 1
    brief, whole = (command(capsys, "report", one, other, *full) for full in ((), ("--full",)))
    first = [line.partition("  ")[0] for line in brief[1].splitlines()]
    assert first[4:7] == ["Run", "Solved", "Cost"]  # below the warning that the second run is scripted, and the result
    assert "simple solved 2 fewer of 3 cases than reflexion: -67 points, 95 % interval " in brief[1]
    assert brief[2] == f"All tables: mulligan bench report {one} {other} --full\n"
    assert brief[1].splitlines()[2] in whole[1]
    assert len(whole[1]) > 3 * len(brief[1])
    for form, begins in (("table", "Run"), ("md", "# Benchmark report"), ("html", "<!doctype html>")):
        assert command(capsys, "report", one, "--format", form)[1].startswith(begins)
    file = tmp_path / "report.md"
    assert command(capsys, "report", one, "--format", "md", "-o", str(file))[1:] == ("", f"Wrote {file}\n")
    assert "66.7%" in file.read_text(encoding="utf-8")


def test_bench_runs_as_json(two: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    newest, oldest = json.loads(command(capsys, "runs", "--format", "json")[1])
    assert [newest["run"], oldest["run"]] == [two[1], two[0]]
    assert (oldest["cases"], oldest["ended"], oldest["solved"], oldest["failed"]) == (3, 3, 2, 1)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["b"], "no run|begins several|No benchmark run"),
        (["b", "--plot", "curve.jpg"], "must end in .svg"),
        (["b", "--all"], "need --gallery"),
        ([], "Missing argument"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = command(capsys, "report", *arguments)
    assert status == 2
    assert any(part in err for part in why.split("|"))


def test_figures_come_first_and_many_files_take_one_line() -> None:
    one = recorded(case(1), id="b1")
    many = {f"data tasks/{n}.{kind}": "ab" * 32 for n in range(24) for kind in ("md", "py", "toml")}
    shown = plain(page(make_report([replace(one, run=replace(one.run, rests_on={**one.run.rests_on, **many}))])))
    assert shown.index("Solved by number of tries") < shown.index("Run b1:")
    (line,) = [line for line in shown.splitlines() if line.startswith("Data ")]
    assert "73 files (1 .json, 24 .md, 24 .py, 24 .toml)" in line
    assert line.count("ab" * 32) == 0
    assert line.endswith("; each: --format json")
