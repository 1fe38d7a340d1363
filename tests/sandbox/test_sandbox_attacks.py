"""Every attack at the strongest level here, as the user who runs the tests; and as another user when that is root."""

import json
import os
import sys
from pathlib import Path

import pytest
from other_user import run_as_another
from sandbox_attacks import ATTACKS, Attack, tried
from sandbox_world import World

from mulligan.core.errors import SandboxError
from mulligan.sandbox.local import LocalSandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="isolation is for Linux")
UID = 61234
HARMLESS = ("write outside", "read secrets", "TCP and UDP to loopback", "symlinks out of the scratch folder",
            "hard link and rename", "chmod, chown, utime, xattr, truncate", "watch a folder", "inherited descriptors",
            "unix sockets, abstract and by path", "program in memory")  # fmt: skip


@pytest.fixture(scope="module")
def strict() -> LocalSandbox:
    try:
        return LocalSandbox(level="strict")
    except SandboxError as error:
        pytest.skip(f"no strict sandbox here: {error}")


@pytest.mark.light_cases(3)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
async def test_attack_is_held(attack: Attack, strict: LocalSandbox) -> None:
    assert await tried(strict, attack) == []


@pytest.mark.slow
async def test_the_attacks_do_harm_where_nothing_holds_them() -> None:
    weak = LocalSandbox(level="limits")
    named = [attack for attack in ATTACKS if attack.name in HARMLESS]
    unharmed = [attack.name for attack in named if not await tried(weak, attack)]
    assert len(named) == len(HARMLESS)
    assert unharmed == ["inherited descriptors"]  # closed at every level


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_every_attack_is_held_for_an_unprivileged_user_at_every_strict_level(tmp_path: Path) -> None:
    here = Path(__file__).parent
    rows = json.loads(run_as_another([str(here / "sandbox_attacks.py"), "--strict", "--json"], tmp_path))
    assert len(rows) == len(ATTACKS)
    assert {name: row for name, row in rows.items() if set(row.values()) != {"held"}} == {}


async def test_a_file_made_for_the_user_lends_nobody_his_rights(strict: LocalSandbox) -> None:
    from mulligan.core.protocols import Job

    with World() as world:
        shared = world.folder / "shared"
        shared.mkdir(mode=0o700)
        code = """
import os, shutil, sys
os.chdir(sys.argv[1])
def tries(do):
    try: do()
    except OSError: pass
open("kept", "w").close()
tries(lambda: os.open("made", os.O_CREAT | os.O_WRONLY, 0o6777))
tries(lambda: os.chmod("kept", 0o4777))
tries(lambda: os.fchmod(os.open("kept", os.O_RDWR), 0o2777))
tries(lambda: os.mknod("node", 0o104777))
"""
        await strict.run(Job((sys.executable, "-I", "-S", "-c", code, str(shared)), writable=(str(shared),)))
        modes = {path.name: path.stat().st_mode & 0o6000 for path in shared.iterdir()}
        assert "kept" in modes
        assert set(modes.values()) == {0}
        assert (shared / "kept").stat().st_uid == os.geteuid()
