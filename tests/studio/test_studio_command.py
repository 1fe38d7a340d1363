"""`mulligan studio` as a command: it says where it is, answers, and ends at a signal."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import httpx2
import pytest
from click.testing import CliRunner
from forked import forked

from mulligan.cli.main import cli


@pytest.mark.slow
def test_it_says_where_it_is_and_ends_at_a_signal() -> None:
    command = [sys.executable, "-m", "mulligan", "studio", "--port", "0", "--agent-id", "books"]
    with forked(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", said)
        assert address, said
        answer = httpx2.get(f"{address[0]}runs", timeout=20, trust_env=False)
        assert "bank books · read-only" in answer.text
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_other_machines_are_refused_without_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MULLIGAN_TOKEN", raising=False)
    ran = CliRunner().invoke(cli, ["studio", "--host", "0.0.0.0", "--port", "0"])
    assert "MULLIGAN_TOKEN" in str(ran.exception)
