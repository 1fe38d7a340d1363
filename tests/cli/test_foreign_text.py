"""What a model says is shown on a terminal and cannot steer it; a pipe gets it as it is."""

import io
import os
import sys

import pytest
from terminals import terminal

from mulligan.cli.terminal import clean, emit

HOSTILE = "a\x1b[2J\x1b]0;title\x07b\x9b31mc\u202egnp.exe\rover\td"


def test_foreign_text_loses_what_steers_a_terminal() -> None:
    assert clean(HOSTILE) == "a[2J]0;titleb31mcgnp.exeover\td"


def test_a_result_is_cleaned_for_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal() as (person, program), open(program, "w", encoding="utf-8", closefd=False) as screen:
        monkeypatch.setattr(sys, "stdout", screen)
        emit(HOSTILE)
        shown = os.read(person, 4096).decode()
    assert "\x1b" not in shown
    assert "over" in shown
    piped = io.StringIO()
    monkeypatch.setattr(sys, "stdout", piped)
    emit(HOSTILE)
    assert piped.getvalue() == f"{HOSTILE}\n"
