"""Progress of long work: percent and time left on a terminal, events alone in a pipe."""

import sys
from pathlib import Path

import pytest
from terminals import on_terminal, without_controls

from mulligan.cli.counting import Counting, Pace, about

WORK = """
from mulligan.cli.counting import Counting
from mulligan.cli.models import downloading

with Counting() as shown:
    report = downloading(shown)
    for done in (0, 50_000_000, 100_000_000):
        report("Fetching tiny (100 MB)", done, 100_000_000)
"""


@pytest.mark.slow
def test_a_terminal_shows_percent_and_keeps_the_event(tmp_path: Path) -> None:
    status, _, shown = on_terminal([sys.executable, "-c", WORK], 80, NO_COLOR="1")
    seen = without_controls(shown)
    assert status == 0
    assert "fetching: 50 % (50 MB of 100 MB)" in seen
    assert seen.count("Fetching tiny (100 MB)") == 1


def test_a_pipe_gets_events_and_no_ticks(capsys: pytest.CaptureFixture[str]) -> None:
    with Counting() as shown:
        shown.say("began")
        for done in range(5):
            shown.at("judging", done, 4)
    with Counting(quiet=True) as shown:
        shown.say("unheard")
    assert capsys.readouterr().err == "began\n"


def test_the_time_left_follows_what_was_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 100.5, 110.0, 110.0])
    monkeypatch.setattr("mulligan.cli.counting.time.monotonic", lambda: next(clock))
    pace = Pace()
    assert [pace.left(done, 100) for done in (50, 51, 60)] == ["", "", "about 40 s left"]
    pace.skip(5)
    assert pace.left(60, 100) == "about 80 s left"
    assert [about(seconds) for seconds in (89, 90, 7200)] == ["about 89 s left", "about 2 min left", "about 2 h left"]
