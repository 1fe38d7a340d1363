"""What is found out before the first trial, and how the result is handed over."""

import os
import sys
from pathlib import Path
from shlex import quote

import pytest
from command_project import CHECK, LIGHT, PYTEST, Bench, files, git, image, project, stopped, write

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode
from mulligan.workspace.deliver import deliver
from mulligan.workspace.preflight import preflight

PYTHON = quote(sys.executable)


async def refusal(bench: Bench) -> str:
    episode = bench.episode()
    try:
        with pytest.raises(InvalidInput) as caught:
            await preflight(bench.workspace, episode, bench.judge)
        place = await bench.workspace.open(episode)
        assert git(Path(place.root), "status", "--porcelain", "--ignored", ":!node_modules") == ""
    finally:
        await bench.workspace.close(episode)
    return str(caught.value)


async def test_a_check_that_passes_already_has_nothing_to_solve(tmp_path: Path) -> None:
    bench = Bench(tmp_path, project(tmp_path / "user"), check="echo fine")
    assert "already passes" in await refusal(bench)


@pytest.mark.light_cases(2)
@pytest.mark.parametrize(
    ("check", "says"),
    [
        ("./no-such-tool --all", "no-such-tool"),
        ("sh -c no-such-tool", "a command was not found"),
        ("sh -c './calc.py'", "it is not executable"),
        (f"{PYTEST} nothing_here.py", "pytest was used wrongly"),
        (f"{PYTEST} calc.py", "pytest found no tests"),
        (f"{PYTEST} needs.py", "the module absent_module is missing"),
    ],
)
async def test_a_check_that_cannot_run_stops_before_the_first_trial(tmp_path: Path, check: str, says: str) -> None:
    folder = project(tmp_path / "user")
    write(folder, "needs.py", "import absent_module\n")
    text = await refusal(Bench(tmp_path, folder, check=check))
    assert says in text
    assert "nothing that git ignores" in text


@pytest.mark.slow
async def test_a_name_that_is_yet_to_be_written_is_a_failure_and_no_obstacle(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    write(folder, "test_new.py", "from calc import div\n")
    bench = Bench(tmp_path, folder, check=PYTEST)
    feedback = await preflight(bench.workspace, bench.episode(), bench.judge)
    await bench.workspace.close(bench.episode())
    assert feedback.passed is False
    assert "cannot import name 'div'" in feedback.text


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("check", [CHECK, PYTEST, f"sh -c {quote(CHECK)}"])
async def test_a_check_led_back_to_the_users_own_files_is_refused(
    tmp_path: Path, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an editable install does: the package is found in the user's tree, wherever the tests run."""
    folder = project(tmp_path / "user")
    write(folder, "src/pkg.py", "def f():\n    return 1\n")
    for name in ("test_calc.py", "test_pkg.py"):
        write(folder, name, "import pkg\n\n\ndef test_f():\n    assert pkg.f() == 2\n")
    site = tmp_path / "site"
    site.mkdir()
    write(site, "sitecustomize.py", f"import sys\nsys.path.append({str(folder / 'src')!r})\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    text = await refusal(Bench(tmp_path, folder, check=check))
    assert str(folder / "src" / "pkg.py") in text
    assert "PYTHONPATH=src" in text


@pytest.mark.slow
async def test_linked_packages_that_lead_back_are_refused(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    write(folder, "packages/one/index.js", "")
    write(folder, "node_modules/other/index.js", "")
    os.symlink("../packages/one", folder / "node_modules" / "one")
    assert "node_modules/one" in await refusal(Bench(tmp_path, folder))


async def solved(bench: Bench) -> Episode:
    episode = await bench.solve()
    assert stopped(episode).startswith("solved")
    return episode


@pytest.mark.slow
async def test_a_branch_is_never_overwritten_and_carries_uncommitted_work_apart(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    write(folder, "mine.txt", "uncommitted")
    bench = Bench(tmp_path, folder)
    episode = await solved(bench)
    git(folder, "branch", "mulligan/r1")
    said = await deliver(bench.workspace, episode)
    assert "mulligan/r1-2 has the result of try 4" in said
    git(folder, "branch", "-D", "mulligan/r1")
    said = [await deliver(bench.workspace, episode) for _ in range(2)]
    await bench.workspace.close(episode)
    assert "mulligan/r1 has the result of try 4" in said[0]
    assert said[1] == said[0], "a branch that holds the result is not made twice"
    log = git(folder, "log", "--format=%s", "main..mulligan/r1").splitlines()
    assert log == ["Make the failing tests pass.", "Your tree as mulligan found it"]
    assert git(folder, "diff", "--name-only", "mulligan/r1^", "mulligan/r1").split() == ["calc.py"]
    assert git(folder, "status", "--porcelain") == "?? mine.txt\n"


@pytest.mark.slow
async def test_a_patch_or_the_users_files_when_asked_for(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    write(folder, "calc.py", files(folder)["calc.py"].decode() + "# mine\n")
    bench = Bench(tmp_path, folder)
    episode = await solved(bench)
    await bench.workspace.close(episode)
    patch = str(tmp_path / "out.patch")
    assert patch in await deliver(bench.workspace, episode, "patch", patch)
    git(folder, "apply", "--check", patch)
    assert "out-2.patch" in await deliver(bench.workspace, episode, "patch", patch)
    before = git(folder, "rev-parse", "HEAD")
    assert "uncommitted" in await deliver(bench.workspace, episode, "in_place")
    assert b"return a + b" in files(folder)["calc.py"]
    assert b"# mine" in files(folder)["calc.py"]
    assert git(folder, "rev-parse", "HEAD") == before
    with pytest.raises(InvalidInput, match="changed in the meantime"):
        await deliver(bench.workspace, episode, "in_place")


@pytest.mark.slow
async def test_in_place_works_in_the_users_folder_and_leaves_the_result_there(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    write(folder, "keep.ignored", "k")
    bench = Bench(tmp_path, folder, mode="in_place", settings={"fresh": False})
    head, staged = git(folder, "rev-parse", "HEAD"), git(folder, "ls-files", "-s")
    episode = await solved(bench)
    said = await deliver(bench.workspace, episode, "in_place")
    await bench.workspace.close(episode)
    assert "uncommitted" in said
    assert git(folder, "status", "--porcelain") == " M calc.py\n"
    assert (git(folder, "rev-parse", "HEAD"), git(folder, "ls-files", "-s")) == (head, staged)
    assert files(folder)["keep.ignored"] == b"k"
    assert "refs/mulligan/e1/trial-4" in git(folder, "for-each-ref")


@pytest.mark.slow
async def test_a_copy_gives_a_patch(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    project(tmp_path / "user")
    for name, content in files(tmp_path / "user").items():
        write(plain, name, content.decode())
    write(plain, "check.py", LIGHT)
    before = image(plain)
    bench = Bench(tmp_path, plain, mode="copy")
    episode = await solved(bench)
    await bench.workspace.close(episode)
    assert "git apply" in await deliver(bench.workspace, episode, file=str(tmp_path / "c.patch"))
    assert image(plain) == before
    await deliver(bench.workspace, episode, "in_place")
    assert files(plain)["calc.py"].count(b"return a") == 3


async def test_there_is_nothing_to_hand_over_without_a_trial(tmp_path: Path) -> None:
    bench = Bench(tmp_path, project(tmp_path / "user"))
    with pytest.raises(InvalidInput, match="no try"):
        await deliver(bench.workspace, bench.episode())
