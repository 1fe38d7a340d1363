"""Curve and gallery of a report: drawn from its figures, and told without the hidden target."""

import asyncio
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench_reports import case, recorded
from toy_bench import HERE, Obliging, cases

from mulligan.app.config import load
from mulligan.bench.harness.running import run_benchmark
from mulligan.bench.report.figures import make_report
from mulligan.bench.report.gallery import case_page, file_name, write_gallery
from mulligan.bench.report.plot import by_tries, check_ending
from mulligan.cli.main import main
from mulligan.core.errors import InvalidInput
from mulligan.store.sqlite import SqliteStore
from mulligan.text.charts import COLOURS, LABEL_HEIGHT, height
from mulligan.text.pages import markdown

TARGET = "the-hidden-target"


def test_the_curve_is_that_of_the_figures() -> None:
    a = recorded(case(0, 0, 1), case(0, 1), case(1), case(0, 0, 0), id="a")
    b = recorded(case(0, 0, 1), case(0, 0, 0), case(0, 0, 0), case(0, 0, 0), id="b")
    report = make_report([a, b])
    lines = re.findall(r'<polyline .*points="([^"]+)"', by_tries(report).svg())
    assert len(lines) == 2
    for line, run in zip(lines, report.runs, strict=True):
        shares = [at.solved.value or 0.0 for at in run.figures.trials]
        heights = [float(place.partition(",")[2]) for place in line.split()]
        assert len(heights) == 3
        assert heights == [height(share) for share in shares]
    ElementTree.fromstring(by_tries(report).svg(alone=True))
    assert by_tries(report).svg() == by_tries(report).svg()


def test_lines_are_named_where_they_end_and_what_is_not_a_result_says_so() -> None:
    runs = [
        recorded(case(0, 1), id="a"),
        recorded(case(0, 1), id="b", model="scripted"),
        recorded(case(0, 1), id="c", model="local:x@1", source="oracle"),
        recorded(case(None, None), case(0, status="error"), id="d", model="local:y@1"),
    ]
    charts = [by_tries(make_report([run])) for run in runs]
    text = replace(charts[0], curves=[curve for chart in charts for curve in chart.curves]).svg(alone=True)
    for said in (r"\(n=1\)", r", no result \(n=1\)", r", oracle \(n=1\)", r"\(n=0\): nothing scored"):
        assert re.search(rf">reflexion[^<]*{said}</text>", text), said
    places = [float(y) for y in re.findall(r'<text [^>]*fill="#[^>]* y="([\d.]+)">reflexion', text)]
    assert len(places) == 4
    assert min(abs(a - b) for a, b in combinations(places, 2)) >= LABEL_HEIGHT
    assert len(set(COLOURS)) == len(COLOURS)


def test_one_trial_and_no_case_can_be_drawn() -> None:
    assert by_tries(make_report([recorded(case(1))])).svg().startswith("<svg")
    assert by_tries(make_report([recorded(total=3)])).svg(alone=True).startswith("<svg")


@pytest.mark.parametrize("path", ["curve.jpg", "curve", "svg", "curve.png"])
def test_another_ending_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match=r"must end in \.svg"):
        check_ending(path)


# --- the gallery ----------------------------------------------------------------------------------------------------


def test_a_case_is_told_with_the_hidden_verdict_after_each_trial() -> None:
    run = recorded(case(0, None, 0.5, 1))
    text = markdown(case_page(run, run.results[0]))
    assert text.startswith("# Case c1: solved")
    assert re.findall(r"had it ended here:\*\* (.*)", text) == ["failed", "not scored", "score 0.5", "solved"]
    assert text.count("lesson") == 3
    assert "why" not in text  # what the benchmark said may tell of the target


def test_what_the_benchmark_said_comes_with_the_target_only() -> None:
    run = recorded(case(0))
    text = markdown(case_page(run, run.results[0], {"answer": TARGET}))
    assert TARGET in text
    assert "**The benchmark said:** why" in text
    broken = recorded(case(0, status="error"))
    assert "**Error:** why" in markdown(case_page(broken, broken.results[0]))


def test_all_episodes_of_a_case_are_told_in_order() -> None:
    run = recorded(case(0, more=[0] * 10), restarts=11)
    text = markdown(case_page(run, run.results[0]))
    assert re.findall(r"^## Episode b1\.1\.(\d+)", text, re.MULTILINE) == [str(n) for n in range(1, 12)]
    assert text.count("say right") == 1


def test_names_of_files_are_safe() -> None:
    run = recorded(case(0))
    for id in ("../../etc/passwd", "HumanEval/3", "", "..", "a" * 500, "ü/\x00"):
        name = file_name(run, replace(run.results[0], case=id), "md")
        assert re.fullmatch(r"b1-0001-[\w.-]{1,60}\.md", name, re.ASCII)


def test_a_gallery_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_gallery(str(tmp_path / "file" / "below"), [recorded(case(0))], "md", False, [])


@pytest.fixture
def run(tmp_path: Path) -> str:
    return asyncio.run(_run(tmp_path))


async def _run(tmp_path: Path) -> str:
    data = cases(tmp_path, "wrong <script>", "right")
    data.write_text(data.read_text().replace("}", f', "target": "{TARGET}"}}', 1))
    store = SqliteStore(load().database)
    try:
        return (await run_benchmark(HERE, model=Obliging(), store=store, data=str(data))).run.id
    finally:
        await store.close()


def report(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "report", *arguments])
    assert ended.value.code == 0


def test_the_command_writes_curve_and_gallery(run: str, tmp_path: Path) -> None:
    folder, plot, page = tmp_path / "gallery", tmp_path / "curve.svg", tmp_path / "out" / "report.md"
    page.parent.mkdir()
    report(run, "--plot", str(plot), "--gallery", str(folder), "--format", "md", "-o", str(page))
    assert "![Learning curve](<../curve.svg>)" in page.read_text()
    assert sorted(file.name for file in folder.iterdir()) == [f"{run}-0001-c1.md", "index.md"]
    text = (folder / f"{run}-0001-c1.md").read_text()
    assert text.count("## Try") == 3
    assert TARGET not in "".join(file.read_text() for file in folder.iterdir())
    report(run, "--gallery", str(tmp_path / "all.html"), "--all")
    told = (tmp_path / "all.html").read_text()
    assert "Case c2: solved" in told
    assert "<script>" not in told
    assert TARGET not in told


def test_targets_are_shown_when_asked_for_and_only_those_of_the_run(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.md"
    report(run, "--gallery", str(file), "--show-targets")
    assert TARGET in file.read_text()
    (tmp_path / "toy.json").write_text((tmp_path / "toy.json").read_text() + "\n")
    with pytest.raises(SystemExit) as ended:
        main(["bench", "report", run, "--gallery", str(file), "--show-targets"])
    assert ended.value.code == 2
    assert "has changed since run" in capsys.readouterr().err


def test_html_with_a_plot_needs_no_other_file(run: str, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    report(run, "--plot", str(tmp_path / "c.svg"), "--format", "html", "-o", str(page))
    assert 'src="data:image/svg+xml;base64,' in page.read_text()
