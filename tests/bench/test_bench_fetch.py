"""`bench fetch` against a loopback server: ranges, truncation, stalls, a wrong file, and what the CLI says of it."""

import hashlib
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from file_server import Served, serving_file

from mulligan.bench.harness.data import cache, find_data
from mulligan.bench.harness.fetching import fetch, fetch_benchmark
from mulligan.bench.harness.plan import open_benchmark
from mulligan.bench.programming import mbpp
from mulligan.cli.main import main
from mulligan.core.benchmarks import Source
from mulligan.core.errors import FetchError, InvalidInput
from mulligan.sandbox.local import LocalSandbox

BODY = b"".join(b'{"row": %d}\n' % n for n in range(4000))


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def pinned(url: str, body: bytes = BODY) -> Source:
    return Source("file.jsonl", url, hashlib.sha256(body).hexdigest(), len(body), "CC0 (nobody)")


def left(folder: Path) -> dict[str, int]:
    """What lies there, locks left out, with its size."""
    return {path.name: path.stat().st_size for path in folder.iterdir() if not path.name.endswith(".lock")}


def test_a_file_comes_whole_says_its_licence_first_and_comes_once(tmp_path: Path) -> None:
    told = list[tuple[str, int, int]]()

    def tell(line: str, done: int, total: int) -> None:
        told.append((line, done, total))

    with serving_file(Served(BODY)) as served:
        paths = [fetch(pinned(served.url), tmp_path, tell) for _ in range(2)]
    assert [path.read_bytes() for path in paths] == [BODY, BODY]
    assert served.asked == [""]
    assert "licence: CC0 (nobody)" in told[0][0]
    assert told[0][1:] == (0, len(BODY))
    assert told[-1][1:] == (len(BODY), len(BODY))
    assert "here already" in told[-1][0]
    assert left(tmp_path) == {"file.jsonl": len(BODY)}


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_fetch_goes_on_where_it_stopped(tmp_path: Path, ranges: bool) -> None:
    def interrupt(line: str, done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with serving_file(Served(BODY, cut=9000)) as served:
        with pytest.raises(KeyboardInterrupt):
            fetch(pinned(served.url), tmp_path, interrupt)
        had = left(tmp_path)[".file.jsonl.partial"]
        assert 0 < had <= 9000
        served.cut, served.ranges = None, ranges
        assert fetch(pinned(served.url), tmp_path).read_bytes() == BODY
    assert served.asked == ["", f"bytes={had}-"]
    assert left(tmp_path) == {"file.jsonl": len(BODY)}


def test_a_connection_that_breaks_again_and_again_gets_there_by_ranges(tmp_path: Path) -> None:
    with serving_file(Served(BODY, cut=len(BODY) // 3)) as served:
        assert fetch(pinned(served.url), tmp_path).read_bytes() == BODY
    assert len(served.asked) == 4


def test_a_truncated_file_is_not_taken_and_what_came_is_reported(tmp_path: Path) -> None:
    with (
        serving_file(Served(BODY, cut=9000, ranges=False)) as served,
        pytest.raises(FetchError, match=rf"ended after 9000 of {len(BODY)} bytes.*The first 9000 bytes are kept"),
    ):
        fetch(pinned(served.url), tmp_path)
    assert left(tmp_path) == {".file.jsonl.partial": 9000}


@pytest.mark.parametrize("body", [BODY[:-2] + b"!\n", BODY + b"more", b""])
def test_a_file_that_is_not_the_pinned_one_leaves_nothing(tmp_path: Path, body: bytes) -> None:
    with (
        serving_file(Served(body)) as served,
        pytest.raises(FetchError, match=r"has the wrong checksum|longer than|ended after 0 of"),
    ):
        fetch(pinned(served.url), tmp_path)
    assert left(tmp_path) == {}


def test_the_old_file_stays_when_the_new_one_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "file.jsonl").write_bytes(b"of the user")
    with serving_file(Served(BODY[:-2] + b"!\n")) as served, pytest.raises(FetchError, match="sha256"):
        fetch(pinned(served.url), tmp_path)
    assert left(tmp_path) == {"file.jsonl": 11}


def test_a_partial_file_that_was_spoilt_is_fetched_anew(tmp_path: Path) -> None:
    (tmp_path / ".file.jsonl.partial").write_bytes(b"x" * 500)
    with serving_file(Served(BODY)) as served:
        assert fetch(pinned(served.url), tmp_path).read_bytes() == BODY
    assert served.asked == ["bytes=500-", ""]


def test_a_server_that_falls_silent_is_not_waited_for(tmp_path: Path) -> None:
    with (
        serving_file(Served(BODY, cut=100, ranges=False, stall=True)) as served,
        pytest.raises(FetchError, match="timed out"),
    ):
        fetch(pinned(served.url), tmp_path, seconds=0.2)
    assert left(tmp_path) == {".file.jsonl.partial": 100}


@pytest.mark.parametrize("status", [404, 500])
def test_an_error_of_the_server_is_reported(tmp_path: Path, status: int) -> None:
    with serving_file(Served(BODY, status=status)) as served, pytest.raises(FetchError, match=str(status)):
        fetch(pinned(served.url), tmp_path)
    assert left(tmp_path) == {}


def test_an_error_without_a_network_says_what_else_to_do(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens there
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/file.jsonl"
        with pytest.raises(FetchError) as refused:
            fetch(pinned(url), tmp_path)
    assert str(refused.value) == (
        f"file.jsonl could not be fetched from {url}: 127.0.0.1 cannot be reached from here (Connection refused). "
        "If you already have the file, pass it with --data, or set MULLIGAN_DATA to a folder that contains "
        "file.jsonl."
    )
    with pytest.raises(FetchError, match=r"nowhere\.invalid cannot be reached from here \((?!<urlopen)"):
        fetch(pinned("http://nowhere.invalid/file.jsonl"), tmp_path)
    assert left(tmp_path) == {}


def test_the_proxy_of_the_environment_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving_file(Served(BODY)) as served:
        monkeypatch.setenv("http_proxy", served.url.removesuffix("/file.jsonl"))
        assert fetch(pinned("http://data.invalid/a/file.jsonl"), tmp_path).read_bytes() == BODY
    assert served.paths == ["http://data.invalid/a/file.jsonl"]


def test_what_was_fetched_is_found_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MULLIGAN_DATA", raising=False)
    row = b'{"task_id": "a", "prompt": "def f():", "entry_point": "f", "test": "assert f() == 1"}\n'
    with serving_file(Served(row)) as served:
        source = Source("mbpp-py.jsonl", served.url, hashlib.sha256(row).hexdigest(), len(row), "MIT")
        _pin(monkeypatch, source)
        _, benchmark, _ = open_benchmark("mbpp", {}, LocalSandbox())
        with pytest.raises(InvalidInput, match="mulligan bench fetch mbpp"):
            find_data(benchmark, None)
        (path,) = fetch_benchmark("mbpp")
        assert path == cache() / "mbpp" / "mbpp-py.jsonl"
        assert [case.id for case in benchmark.load(find_data(benchmark, None))] == ["a"]


def test_the_command_prints_the_path_and_tells_the_licence_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_file(Served(BODY)) as served:
        _pin(monkeypatch, pinned(served.url))
        with pytest.raises(SystemExit) as ended:
            main(["bench", "fetch", "mbpp"])
    said = capsys.readouterr()
    assert ended.value.code == 0
    assert said.out.strip() == str(cache() / "mbpp" / "file.jsonl")
    assert "licence: CC0 (nobody)" in said.err


def test_what_cannot_be_pinned_says_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "fetch", "leetcode"])
    assert ended.value.code == 2
    assert "leetcode-hard-gym" in capsys.readouterr().err


def _pin(monkeypatch: pytest.MonkeyPatch, source: Source) -> None:
    cuts = {**mbpp.CUTS, "py": replace(mbpp.CUTS["py"], source=source)}
    monkeypatch.setattr(mbpp, "CUTS", cuts)
