"""Reading, writing and listing files below one folder, and never outside it."""

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.errors import ToolError
from mulligan.tools.list_files import ListFiles
from mulligan.tools.read_file import SHOWN, ReadFile
from mulligan.tools.write_file import WriteFile


async def read(folder: Path, path: str, line: int | None = None, size: int = 2_000_000) -> str:
    given = {"path": path} if line is None else {"path": path, "line": line}
    return await ReadFile(folder=str(folder), size=size).call("read_file", given)


async def write(folder: Path, path: str, content: str, size: int = 2_000_000) -> str:
    return await WriteFile(folder=str(folder), size=size).call("write_file", {"path": path, "content": content})


async def listed(folder: Path, path: str = ".", most: int = 400) -> list[str]:
    return (await ListFiles(folder=str(folder), most=most).call("list_files", {"path": path})).splitlines()


def world(top: Path) -> tuple[Path, Path]:
    """A workspace with links that lead out of it, and what is outside."""
    inside, outside = top / "inside", top / "outside"
    for folder in (inside / "src", inside / ".git", outside):
        folder.mkdir(parents=True)
    (outside / "secret.txt").write_text("the secret")
    (inside / "src" / "main.py").write_text("print('hello')\n")
    (inside / ".git" / "config").write_text("[core]\n")
    (inside / "near").symlink_to("src/main.py")
    (inside / "far").symlink_to(outside / "secret.txt")
    (inside / "farther").symlink_to(outside)
    (inside / "up").symlink_to("..")
    (inside / "to_come").symlink_to(outside / "new.txt")
    (inside / "round").symlink_to("round")
    return inside, outside


def everything(top: Path) -> dict[str, str]:
    found = {str(path.relative_to(top)): path for path in sorted(top.rglob("*"))}
    return {name: path.read_text() if path.is_file() else "" for name, path in found.items()}


async def test_what_is_written_is_read_and_listed(tmp_path: Path) -> None:
    text = "Grüße\r\nline two, no end"
    assert await write(tmp_path, "a/b/c.txt", text) == "a/b/c.txt was written: 25 bytes."
    assert await read(tmp_path, "a/b/c.txt") == text
    assert (tmp_path / "a/b/c.txt").read_bytes() == text.encode()
    assert await write(tmp_path, "a/b/c.txt", "") == "a/b/c.txt was replaced: 0 bytes."
    assert await read(tmp_path, "./a//b/../b/c.txt") == "(the file is empty)"
    assert await listed(tmp_path) == ["a/", "a/b/", "a/b/c.txt"]
    assert await listed(tmp_path, "a/b") == ["a/b/c.txt"]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/passwd", "is an absolute path"),
        ("../outside/secret.txt", "leads out of the workspace"),
        ("src/../../outside/secret.txt", "leads out of the workspace"),
        ("far", "leads out of the workspace"),
        ("farther/secret.txt", "leads out of the workspace"),
        ("up/outside/secret.txt", "leads out of the workspace"),
        ("to_come", "leads out of the workspace"),
        (".git/config", r"\.git is not part of the task"),
        ("src/../.GIT/config", r"\.GIT is not part of the task"),
        ("up/inside/.git/config", r"\.git is not part of the task"),
        (".mulligan/mulligan.db", r"\.mulligan is not part of the task"),
        ("a\0b", "is not a valid path"),
        ("a\ud800b", "is not a valid path"),
    ],
)
async def test_there_is_no_way_out(path: str, why: str, tmp_path: Path) -> None:
    inside, _ = world(tmp_path)
    before = everything(tmp_path)
    for way in (read(inside, path), write(inside, path, "x"), listed(inside, path)):
        with pytest.raises(ToolError, match=why):
            await way
    assert everything(tmp_path) == before


async def test_a_path_that_changes_while_it_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, _ = world(tmp_path)

    def gone(path: str) -> str:
        if path == str(inside):
            return path
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr("os.path.realpath", gone)
    with pytest.raises(ToolError, match="changed in the meantime: try again"):
        await read(inside, "src/main.py")


PART = st.sampled_from(
    ["..", ".", "", "src", "far", "farther", "up", "near", "round", "inside", "outside", "secret.txt"]
)


@given(st.lists(PART | st.text(max_size=4), min_size=1, max_size=6).map("/".join))
async def test_no_path_at_all_leads_out(path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        inside, outside = world(Path(folder))
        for way in (write(inside, path, "changed"), read(inside, path), listed(inside, path)):
            try:
                said = str(await way)
            except ToolError:
                continue
            assert "secret" not in said.replace(path, "")
        assert everything(outside) == {"secret.txt": "the secret"}
        assert (inside / ".git" / "config").read_text() == "[core]\n"
        assert set(os.listdir(folder)) == {"inside", "outside"}


async def test_links_inside_the_workspace_are_followed(tmp_path: Path) -> None:
    inside, _ = world(tmp_path)
    assert await read(inside, "near") == "print('hello')\n"
    await write(inside, "near", "print('goodbye')\n")
    assert (inside / "near").is_symlink()
    assert (inside / "src" / "main.py").read_text() == "print('goodbye')\n"
    names = await listed(inside)
    assert names == [
        *("far (a link)", "farther (a link)", "near (a link)", "round (a link)"),
        *("src/", "src/main.py", "to_come (a link)", "up (a link)"),
    ]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("none.txt", "there is no 'none.txt': call list_files to see the files"),
        ("src", "'src' is a folder"),
        (".", r"'\.' is a folder"),
        ("src/main.py/x", "the part before a / is not a folder"),
        ("round", "'round': "),
        ("pipe", "is not a regular file"),
        ("binary", "is a binary file"),
        ("latin", r"is not valid UTF-8 \(byte 2\)"),
        ("long", "has 101 bytes, more than the 100 that are read"),
        ("a" * 300, "File name too long"),
    ],
)
async def test_what_cannot_be_read(path: str, why: str, tmp_path: Path) -> None:
    inside, _ = world(tmp_path)
    os.mkfifo(inside / "pipe")
    (inside / "binary").write_bytes(b"ab\0c")
    (inside / "latin").write_bytes(b"Gr\xfc\xdfe")
    (inside / "long").write_bytes(b"x" * 101)
    with pytest.raises(ToolError, match=why):
        await read(inside, path, size=100)


async def test_what_cannot_be_written(tmp_path: Path) -> None:
    inside, _ = world(tmp_path)
    os.mkfifo(inside / "pipe")
    for path, content, why in [
        ("src", "x", "is a folder, not a file"),
        ("new/", "x", "is a folder: name a file"),
        ("src/main.py/x", "x", "is not a folder"),
        ("pipe", "x", "is not a regular file"),
        ("new.txt", "x" * 101, "has 101 bytes, more than the 100"),
        ("new.txt", "\ud800", "cannot be written as UTF-8"),
    ]:
        with pytest.raises(ToolError, match=why):
            await write(inside, path, content, size=100)
    assert sorted(os.listdir(inside / "src")) == ["main.py"]
    assert not (inside / "new.txt").exists()


async def test_a_replaced_file_keeps_its_mode_and_its_other_names(tmp_path: Path) -> None:
    script, other = tmp_path / "run.sh", tmp_path / "other"
    script.write_text("old")
    script.chmod(0o750)
    os.link(script, other)
    await write(tmp_path, "run.sh", "new")
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert (script.read_text(), other.read_text()) == ("new", "old")
    assert sorted(os.listdir(tmp_path)) == ["other", "run.sh"]


async def test_a_long_file_comes_in_parts_that_make_the_whole(tmp_path: Path) -> None:
    text = "".join(f"line {number} {'x' * (number % 90)}\n" for number in range(1, 900))
    (tmp_path / "long.txt").write_text(text)
    got: list[str] = []
    line: int | None = 1
    while line:
        part = await read(tmp_path, "long.txt", line)
        assert len(part) < 12_000
        body, _, note = part.rpartition("\n[lines ")
        got.append(body or part.removesuffix("\n"))
        line = int(note.rpartition("=")[2].rstrip("]")) if body else None
    assert len(got) > 3
    assert "\n".join(got) + "\n" == text


async def test_a_line_that_is_too_long_for_an_answer(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("ü" * (SHOWN + 5) + "\nend\n")
    said = await read(tmp_path, "one.json")
    assert said == f"{'ü' * SHOWN}\n[line 1 is cut: 5 more characters; lines 1 to 1 of 2; read on with line=2]"
    assert await read(tmp_path, "one.json", 2) == "end"
    with pytest.raises(ToolError, match="the file has only 2 lines"):
        await read(tmp_path, "one.json", 3)


async def test_many_files_are_cut_and_the_nearest_are_kept(tmp_path: Path) -> None:
    for number in range(30):
        deep = tmp_path / "deep" / "deeper" / str(number)
        deep.mkdir(parents=True)
    (tmp_path / "top.txt").touch()
    names = await listed(tmp_path, most=4)
    assert names[-1] == "[cut: more than 4 names; look into one folder with path]"
    assert {"deep/", "deep/deeper/", "top.txt"} <= set(names)
    assert len(names) == 5


async def test_names_that_are_no_text_are_listed_all_the_same(tmp_path: Path) -> None:
    assert await listed(tmp_path) == ["(no files)"]
    (tmp_path / os.fsdecode(b"b\xff")).touch()
    assert await listed(tmp_path) == ["b\ufffd"]
    with pytest.raises(ToolError, match="there is no 'none'"):
        await listed(tmp_path, "none")
