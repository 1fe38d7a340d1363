"""`mulligan store`."""

from pathlib import Path

from commands import Mulligan


def test_back_up_erase_and_restore(mulligan: Mulligan, tmp_path: Path) -> None:
    id = mulligan("memory", "add", "--title", "t", "--content", "c").out.strip()
    made = mulligan("store", "backup", str(tmp_path / "b.db"))
    assert made.status == 0, made.err
    assert "bytes" in made.out
    assert mulligan("memory", "purge", id, "--yes").status == 0
    refused = mulligan("store", "restore", str(tmp_path / "b.db"))
    assert refused.status == 2
    assert "--replace" in refused.err
    done = mulligan("store", "restore", str(tmp_path / "b.db"), "--replace")
    assert done.status == 0, done.err
    assert "1 lesson and 0 episodes erased again, because they had been erased after the backup was made." in done.err
    assert mulligan("memory", "list", "--state", "all", "--json").out.strip() in ("[]", "")
