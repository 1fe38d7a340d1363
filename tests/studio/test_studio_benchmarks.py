"""Benchmark runs as pages: the list, several runs compared, case by case."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from bench_reports import case, recorded
from studio_kit import keep, studio_client

from mulligan.app.config import load
from mulligan.bench.report.figures import make_report
from mulligan.bench.report.plot import spending
from mulligan.core.records import Usage
from mulligan.store import open_store
from mulligan.text.charts import Chart, Curve, Point, counting_ticks, height


@pytest.fixture
async def two_runs() -> None:
    a = recorded(case(0, 1), case(0, 0), case(1), case(status="error"), id="a1", model="openai:<b>gpt</b>")
    b = recorded(case(0, 1), case(1), case(0, 0), case(0, 0), id="b2")
    async with open_store(load().store) as store:
        await keep(store, a, b)


@pytest.mark.usefixtures("two_runs")
async def test_the_list_says_how_the_cases_of_each_run_ended() -> None:
    async with studio_client() as client:
        page = (await client.get("/benchmarks")).text
    assert re.findall(r"(\d) (solved|failed|error)", page) == [("2", "solved"), ("2", "failed"), *_OF_A]
    assert "4 of 4 cases finished" in page
    assert "&lt;b&gt;gpt" in page


_OF_A = [("2", "solved"), ("1", "failed"), ("1", "error")]


@pytest.mark.usefixtures("two_runs")
async def test_runs_are_compared_by_curves_tables_and_cases() -> None:
    async with studio_client() as client:
        page = (await client.get("/benchmarks/compare?run=a1&run=b2")).text
        failures = (await client.get("/benchmarks/compare?run=a1&run=b2&show=failures")).text
        one = await client.get("/benchmarks/a1", follow_redirects=True)
    assert page.count("<polyline") == page.count("<polygon") == 2
    assert 'aria-labelledby="t-curve"' in page
    assert "66.7%" in page  # of a1 after two trials: the error is left out
    assert "Case by case (4)" in page
    assert 'href="/runs/a1.1.1"' in page
    assert ">0 → 1</span>" in page
    assert "95 % interval" in page
    assert "Case by case (3)" in failures
    assert one.status_code == 200
    assert str(one.url).endswith("/benchmarks/compare?run=a1")


@pytest.mark.usefixtures("two_runs")
async def test_what_success_costs_is_a_picture_a_table_and_a_file() -> None:
    async with studio_client() as client:
        page = (await client.get("/benchmarks/compare?run=a1&run=b2")).text
        (_, address) = re.findall(r'<a href="([^"]+)">Download this figure', page)
        file = await client.get(unescape(address))
        alone = (await client.get("/benchmarks/compare?run=a1")).text
    assert "dollars for each case" in page
    assert page.count('<th scope="row">') > 2
    assert file.headers["content-type"] == "image/svg+xml"
    assert file.text.count("<circle") == 2
    assert "Cost of success" not in alone


@pytest.mark.usefixtures("two_runs")
async def test_the_learning_curve_is_a_file_too_and_each_link_keeps_all_runs() -> None:
    async with studio_client() as client:
        page = (await client.get("/benchmarks/compare?run=a1&run=b2")).text
        (address, _) = re.findall(r'<a href="([^"]+)">Download this figure', page)
        file = await client.get(unescape(address))
    assert file.headers["content-type"] == "image/svg+xml"
    assert file.text.count("<polyline") == 2
    labels = re.findall(r"</svg> ([^<]+)</li>", page)
    assert len(labels) == 2
    assert all(f">{label}</text>" in file.text for label in labels)
    links = [unescape(link) for link in re.findall(r'href="(/benchmarks/compare[^"]*)"', page)]
    assert links
    assert all("run=a1&run=b2" in link for link in links)


@pytest.mark.parametrize(("most", "end"), [(0, 1), (3, 4), (8, 10), (0.0021, 0.004), (1999, 4000)])
def test_an_axis_ends_at_a_short_number(most: float, end: float) -> None:
    tokens = Usage(input_tokens=int(most)) if most >= 1 or not most else Usage(input_tokens=1, cost=most)
    report = make_report([recorded(case(1))])
    (run,) = report.runs
    spent = replace(run.figures.spent, usage=tokens)
    chart, _ = spending(replace(report, runs=[replace(run, figures=replace(run.figures, spent=spent))]))
    assert chart.ticks[-1][1] == f"{end:,.4g}"


async def test_what_cannot_be_compared_is_said() -> None:
    async with open_store(load().store) as store:
        await keep(store, recorded(case(1), id="a1"), recorded(case(1), id="b2", data="cd" * 32))
    async with studio_client() as client:
        answer = await client.get("/benchmarks/compare?run=a1&run=b2")
        assert (answer.status_code, "they used different data" in answer.text) == (400, True)
        assert (await client.get("/benchmarks/compare")).status_code == 400
        assert (await client.get("/benchmarks/compare?run=none")).status_code == 404


def test_a_curve_keeps_its_gaps_and_its_frame() -> None:
    points = [Point(2, 0.5, 0.25, 0.75), Point(3, 1.0, 0.5, 1.0)]
    chart = Chart(name="c", title="", axis_label="", ticks=counting_ticks(3), curves=[Curve("a", points)])
    (line,) = re.findall(r'<polyline .*points="([^"]+)"', chart.svg())
    (left, foot, right) = (chart.place(1), height(0), chart.place(3))
    places = [tuple(map(float, place.split(","))) for place in line.split()]
    assert places == [((left + right) / 2, (height(1) + foot) / 2), (right, height(1))]
    alone = replace(chart, curves=[Curve("a", points[:1])]).svg()
    assert ("<polyline" in alone, "<polygon" in alone, alone.count('class="curve')) == (False, False, 1)
