"""Methods and strategies: what `--method` and `--strategy` mean, older names, a strategy of the user's, a new family."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from each_row import each_row
from toy_bench import HERE, Obliging, cases

import mulligan
from mulligan.app.plugins import names
from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.methods import choose_method
from mulligan.bench.harness.plan import choice_of, open_benchmark
from mulligan.bench.harness.running import Finished, resume_benchmark, run_benchmark
from mulligan.bench.report.figures import make_report, read_run
from mulligan.core.errors import InvalidInput
from mulligan.plugins import Decision, Episode, Past
from mulligan.sandbox.local import LocalSandbox
from mulligan.store.sqlite import SqliteStore

STRATEGY = '''
"""The second attempt is the last."""

from mulligan.plugins import Decision, Episode, Past


class Twice:
    reflects = False

    def past(self, episode: Episode) -> Past:
        return Past()

    def decide(self, episode: Episode) -> Decision:
        return Decision(stop="two are enough" if len(episode.trials) > 1 else None)
'''


@each_row(
    ("of", "method", "strategy", "played", "shown", "notice"),
    [
        ("humaneval", None, None, "simple", "none", ""),
        (
            "humaneval",
            None,
            "reflexion",
            "reflexion",
            "last_attempt_and_reflexion",
            "--method reflexion --strategy refl",
        ),
        ("humaneval", "reflexion", "reflexion", "reflexion", "reflexion", ""),
        ("humaneval", None, "last_attempt", "immediate-refinement", "last_attempt", ""),
        ("humaneval", None, "evidence", "reflexion", "evidence", ""),
        ("humaneval", None, "none", "resample", "none", ""),
        ("humaneval", None, "resample", "resample", "none", "write --method resample."),
        ("mbpp:rs", "immediate-reflexion", "evidence", "immediate-reflexion", "evidence", ""),
        ("humanevalplus", None, "last_attempt", "immediate-refinement", "last_attempt", ""),
        ("leetcode", None, "none", "resample", "none", ""),
        ("hotpotqa", None, None, "reflexion", "reflexion", ""),
        ("hotpotqa", None, "last_attempt", "last_attempt", "last_attempt", ""),
        ("hotpotqa", None, "none", "resample", "none", ""),
        ("hotpotqa", None, "retry", "resample", "none", "write --method resample."),
        ("hotpotqa", "base", None, "simple", "none", "is now called simple"),
        ("alfworld", None, "base", "resample", "none", "write --method resample."),
        ("alfworld", None, "evidence_and_reflexion", "reflexion", "evidence_and_reflexion", ""),
        ("webshop", "base", None, "resample", "none", "is now called resample"),
        ("webshop", None, "evidence", "reflexion", "evidence", ""),
        ("tasks", None, "none", "resample", "none", ""),
        ("tasks", "none", None, "resample", "none", "is now called resample"),
        ("tasks", None, "reflexion", "reflexion", "reflexion", ""),
    ],
)
def test_what_a_method_and_a_strategy_mean(
    of: str, method: str | None, strategy: str | None, played: str, shown: str, notice: str
) -> None:
    name, benchmark, _ = open_benchmark(of, {}, LocalSandbox())
    chosen = choose_method(name, benchmark, method, strategy)
    assert (chosen.name, chosen.method.strategy.name) == (played, shown)
    assert notice in chosen.notice
    assert bool(notice) == bool(chosen.notice)
    assert "\n" not in chosen.notice


@each_row("of", ["humaneval", "mbpp", "mbppplus", "leetcode", "hotpotqa", "alfworld", "webshop", "tasks"])
def test_each_benchmark_takes_each_strategy_of_solve(of: str) -> None:
    name, benchmark, _ = open_benchmark(of, {}, LocalSandbox())
    several = next(name for name, method in benchmark.methods().items() if method.trials > 1)
    assert "resample" in benchmark.methods()
    for strategy in names("strategies"):
        chosen = choose_method(name, benchmark, several, strategy)
        assert (chosen.name, chosen.method.strategy.name, chosen.notice) == (several, strategy, "")


def test_the_methods_own_settings_of_a_strategy_stay_unless_another_is_named() -> None:
    name, benchmark, _ = open_benchmark("humaneval", {}, LocalSandbox())
    own = choose_method(name, benchmark, "reflexion", "last_attempt_and_reflexion")
    assert (own.strategy, own.method.strategy.settings) == (None, {"window": 1})
    other = choose_method(name, benchmark, None, "evidence")
    assert (other.strategy, other.method.strategy.settings) == ("evidence", {})


async def test_a_strategy_given_as_an_object_is_benchmarked_and_has_to_be_given_again_to_resume(
    tmp_path: Path,
) -> None:
    class Twice:
        reflects = False

        def past(self, episode: Episode) -> Past:
            return Past()

        def decide(self, episode: Episode) -> Decision:
            return Decision(stop="two are enough" if len(episode.trials) > 1 else "")

    data, model = str(cases(tmp_path, "wrong", "right")), Obliging()
    async with SqliteStore(tmp_path / "m.db") as store:
        finished = await run_benchmark(HERE, model=model, store=store, data=data, strategy=Twice())
        assert [(one.status, len(one.episodes[0].scores)) for one in finished.results] == [("failed", 2), ("solved", 1)]
        named = finished.run.options["strategy"]
        assert isinstance(named, str)
        assert named.startswith("object:")
        assert named.endswith("Twice")
        with pytest.raises(InvalidInput, match=r"resume_benchmark\(id, strategy=…\)"):
            await resume_benchmark(finished.run.id, model=model, store=store)
        again = await resume_benchmark(finished.run.id, model=model, store=store, strategy=Twice)
        assert again.results == finished.results


async def test_a_users_strategy_file_is_benchmarked_and_resumes_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "twice.py").write_text(STRATEGY)
    store, notices = SqliteStore(tmp_path / "m.db"), list[str]()
    data, model, hooks = str(cases(tmp_path, "wrong", "right")), Obliging(), Hooks(notice=notices.append)
    finished = await run_benchmark(HERE, model=model, store=store, data=data, strategy="./twice.py", hooks=hooks)
    assert [(result.status, len(result.episodes[0].scores)) for result in finished.results] == [
        ("failed", 2),
        ("solved", 1),
    ]
    file = str((tmp_path / "twice.py").resolve())
    assert (finished.run.options["method"], finished.run.options["strategy"]) == ("reflexion", file)
    assert notices == [
        f"Method reflexion (the default; others: simple, reflexion-ucs, world, waits, paid): at most 3 attempts of each case "
        f"(strategy {file} instead of the method's own)."
    ]
    report = make_report([await read_run(store, finished.run.id)])
    assert (report.labels, report.runs[0].about.strategy) == (["reflexion with twice"], "twice")
    assert all(one in report.runs[0].about.command for one in ("--method reflexion", f"--strategy {file}"))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    again = await resume_benchmark(finished.run.id, model=model, store=store)
    assert again.results == finished.results
    await store.close()


async def test_a_name_of_a_method_as_a_strategy_is_that_method_with_a_notice(tmp_path: Path) -> None:
    store, notices = SqliteStore(tmp_path / "m.db"), list[str]()
    data, hooks = str(cases(tmp_path, "wrong")), Hooks(notice=notices.append)
    finished = await run_benchmark(HERE, model=Obliging(), store=store, data=data, strategy="simple", hooks=hooks)
    await store.close()
    assert (finished.run.options["method"], finished.run.options["strategy"]) == ("simple", None)
    assert "--strategy simple means the method simple" in notices[0]
    assert len(notices) == 2


async def test_a_run_of_an_older_version_goes_on_and_is_reported(tmp_path: Path) -> None:
    """There the name of the method stood under "strategy", and "method" did not exist."""
    store, data = SqliteStore(tmp_path / "m.db"), str(cases(tmp_path, "wrong", "right"))
    new = await run_benchmark(HERE, model=Obliging(), store=store, data=data, method="simple")
    options = {name: value for name, value in new.run.options.items() if name != "method"} | {"strategy": "simple"}
    await store.benches.begin(replace(new.run, id="b01d", options=options))
    resumed: Finished = await resume_benchmark("b01d", model=Obliging(), store=store)
    assert [result.status for result in resumed.results] == ["failed", "solved"]
    report = make_report([await read_run(store, "b01d")])
    assert (report.runs[0].about.method, report.runs[0].about.strategy) == ("simple", "none")
    assert report.runs[0].about.command.startswith(f"mulligan bench run {HERE} --method simple --model")
    await store.close()


@pytest.mark.parametrize(
    ("options", "read"),
    [
        ({"benchmark": "hotpotqa", "strategy": "retry"}, ("retry", None)),
        ({"benchmark": "hotpotqa", "method": None, "strategy": "none"}, (None, "none")),
        ({"benchmark": "hotpotqa", "method": "resample", "strategy": None, "new": 1}, ("resample", None)),
        ({"benchmark": "hotpotqa"}, (None, None)),
    ],
)
def test_options_of_every_version_are_read(options: dict[str, str], read: tuple[str | None, str | None]) -> None:
    choice = choice_of(options)
    assert (choice.method, choice.strategy) == read


def test_what_cannot_be_lists_what_can() -> None:
    name, benchmark, _ = open_benchmark("hotpotqa", {}, LocalSandbox())
    with pytest.raises(InvalidInput, match=r"last_attempt.*\./mine\.py.*--method: reflexion, simple, resample"):
        choose_method(name, benchmark, None, "lastattempt")
    with pytest.raises(InvalidInput, match=r"simple'.*one attempt.*reflexion, resample, last_attempt"):
        choose_method(name, benchmark, "simple", "evidence")
    with pytest.raises(InvalidInput, match=r"does not exist"):
        choose_method(name, benchmark, None, "./nowhere.py")


FAMILY = '''
"""Coins: a family of benchmarks that is one folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mulligan.plugins import Case, Episode, Method, Score, Source, Spec, Task


class Coin:
    title = "Coins: heads or tails"
    data = "coins.txt"
    sources: Sequence[Source] = ()
    where = "It ships."
    own = (Path(__file__).parent / "coins.txt",)

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        return [Case(line, Task(f"Guess: {line}"), "heads") for line in files[0].read_text().split()]

    def methods(self) -> Mapping[str, Method]:
        judge = Spec("contains", {"text": "heads"})
        return {"resample": Method(Spec("complete"), judge, summary="guess again"), "evidence": Method(
            Spec("complete"), judge, strategy=Spec("evidence"), summary="the judge's words are shown")}

    def play(self, case: Case, method: Method) -> Method:
        return method

    async def score(self, case: Case, episode: Episode) -> Score:
        return Score(float(str(case.target) in episode.trials[-1].attempt.output))
'''


@pytest.mark.slow
def test_a_family_is_one_folder(tmp_path: Path) -> None:
    """A copy of the package with one folder more, which nothing else names, runs it."""
    package = tmp_path / "mulligan"
    shutil.copytree(Path(mulligan.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    family = package / "bench" / "coins"
    family.mkdir()
    (family / "__init__.py").write_text("")
    (family / "coin.py").write_text(FAMILY)
    (family / "coins.txt").write_text("penny dime")
    (tmp_path / "answers.jsonl").write_text('"tails"\n"heads"\n"heads"\n')
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "MULLIGAN_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "mulligan", "bench"]

    def ran(*words: str) -> str:
        done = subprocess.run(
            [*command, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "Coins: heads or tails" in ran("list")
    ended = ran("run", "coin", "--strategy", "last_attempt", "--model", "scripted:answers.jsonl", "-q")
    assert "2 of 2 solved" in ended
