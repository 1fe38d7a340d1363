"""Commands in a real sandbox: they change the workspace and nothing else."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from mulligan.core.errors import InvalidInput
from mulligan.sandbox.local import LocalSandbox
from mulligan.tools.run_command import RunCommand


async def run(folder: Path, command: str, **settings: Any) -> str:
    tool = RunCommand(folder=str(folder), sandbox=LocalSandbox(), **settings)
    return await tool.call("run_command", {"command": command})


async def test_it_works_in_the_folder_as_a_shell_does(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("b\na\n")
    assert await run(tmp_path, "sort in.txt > out.txt && cat out.txt; pwd") == f"exit status 0\na\nb\n{tmp_path}"
    assert (tmp_path / "out.txt").read_text() == "a\nb\n"


async def test_a_failure_is_an_answer(tmp_path: Path) -> None:
    assert await run(tmp_path, "echo out; echo err >&2; exit 3") == "exit status 3\nout\n[on standard error]\nerr"
    assert (await run(tmp_path, "no-such-program")).startswith("exit status 127\n[on standard error]\n")
    assert await run(tmp_path, "true") == "exit status 0"


async def test_nothing_outside_is_seen_or_changed(tmp_path: Path) -> None:
    work, secret = tmp_path / "work", tmp_path / "secret.txt"
    work.mkdir()
    secret.write_text("sesame")
    said = await run(work, f"cat {secret}; echo x > {secret}; echo x > {tmp_path}/new.txt; env")
    assert "sesame" not in said
    assert "MULLIGAN_HOME" not in said
    assert secret.read_text() == "sesame"
    assert sorted(os.listdir(tmp_path)) == ["secret.txt", "work"]


async def test_folders_that_it_was_given_to_read(tmp_path: Path) -> None:
    work, data = tmp_path / "work", tmp_path / "data"
    work.mkdir()
    data.mkdir()
    (data / "numbers").write_text("42")
    assert await run(work, f"cat {data}/numbers; echo x > {data}/numbers || true", readable=[str(data)]) != ""
    assert (data / "numbers").read_text() == "42"
    assert await run(work, f"cat {data}/numbers", readable=[str(data)]) == "exit status 0\n42"


async def test_there_is_no_network(tmp_path: Path) -> None:
    said = await run(tmp_path, "python3 -c \"import socket; socket.create_connection(('127.0.0.1', 9))\"")
    assert said.startswith("exit status 1")
    assert "ConnectionRefused" not in said


async def test_it_is_stopped_in_time_with_all_that_it_started(tmp_path: Path) -> None:
    began = time.monotonic()
    said = await run(tmp_path, "echo begun; sleep 60 & sleep 60", seconds=0.5)
    assert said.startswith("stopped after 0.5 seconds\nbegun")
    assert time.monotonic() - began < 20


async def test_long_output_keeps_its_head_and_its_tail(tmp_path: Path) -> None:
    said = await run(tmp_path, "seq 1 20000; seq 1 20000 >&2")
    assert len(said) < 12_000
    assert said.startswith("exit status 0\n1\n2\n")
    assert "characters cut …]" in said
    assert said.endswith("19999\n20000")


def test_a_time_that_is_none() -> None:
    with pytest.raises(InvalidInput, match="must be greater than 0"):
        RunCommand(folder="/", sandbox=LocalSandbox(), seconds=0)
