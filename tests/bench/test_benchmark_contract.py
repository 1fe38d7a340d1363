"""What every benchmark keeps to: what it says of itself, its sources, its methods, and refusals of broken data."""

import re
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row

from mulligan.app.plugins import check_setting, find, names
from mulligan.bench.harness.data import find_data
from mulligan.bench.harness.listing import cuts_of, list_benchmarks
from mulligan.bench.harness.plan import open_benchmark
from mulligan.core.benchmarks import Benchmark, HasData, Source
from mulligan.core.errors import InvalidInput
from mulligan.sandbox.local import LocalSandbox

DATA = Path(__file__).parents[3] / "shared/data"
ALL = [text for name in names("benchmarks") for text in (name, *(f"{name}:{cut}" for cut in cuts_of(name)[1:]))]
SANDBOX = LocalSandbox()


def opened(text: str) -> Benchmark:
    _, made, _ = open_benchmark(text, {}, SANDBOX)
    assert isinstance(made, Benchmark)
    return made


@each_row("text", ALL)
def test_it_says_what_it_is_and_where_its_data_comes_from(text: str) -> None:
    made = opened(text)
    assert made.title.strip()
    assert made.data.strip() or made.load([])
    assert made.where.strip()
    assert "\n" not in made.title + made.where
    for source in made.sources:
        _check_source(source)


def _check_source(source: Source) -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", source.sha256)
    if source.url.startswith("pip:"):
        name, _, version = source.url.removeprefix("pip:").partition("==")
        assert source.file.startswith(f"{name.replace('-', '_')}-{version}-")
    else:
        fixed = r"https://\S+/([0-9a-f]{40}|releases/download/v[\d.]+)/\S+"
        assert re.fullmatch(fixed, source.url), "at a fixed commit, or of a release"
        assert source.url.endswith(f"/{source.file}")
    assert source.size > 0
    assert source.licence.strip()


@each_row("text", ALL)
def test_its_methods_name_what_is_there_with_settings_that_exist(text: str) -> None:
    methods = opened(text).methods()
    assert methods
    for method in methods.values():
        roles = {"actors": method.actor, "evaluators": method.evaluator, "strategies": method.strategy}
        roles |= {"reflectors": method.reflector} | ({"environments": method.environment} if method.environment else {})
        for role, spec in roles.items():
            cls: type[Any] = find(role, spec.name)
            for name, value in spec.settings.items():
                check_setting(spec.name, cls, name, value)
        assert method.summary.strip()
        assert method.trials >= 1
        assert method.expansion is None or (method.expansion >= 1 and method.hand_in == "best")


@pytest.mark.parametrize("text", ALL)
@pytest.mark.parametrize("broken", [b"", b"\xff\xfe\x00", b"[1, 2", b'{"a": 1}\n'])
def test_data_that_is_none_is_refused_by_name(tmp_path: Path, text: str, broken: bytes) -> None:
    made = opened(text)
    file = tmp_path / (made.data.replace("*", "x") or "cases.json")
    file.write_bytes(broken)
    with pytest.raises(InvalidInput, match=re.escape(made.data.partition("*")[0] or file.name)):
        made.load([file])


@pytest.mark.light_cases(12)
@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize("text", ALL)
def test_its_cases_have_ids_of_their_own_and_no_target_is_played(text: str) -> None:
    made = opened(text)
    try:
        files = find_data(made, None if isinstance(made, HasData) else DATA)
    except InvalidInput:
        known = ("bfcl", "leetcode", "mind2web", "programs", "state_bench", "tasks", "stream")
        assert text.partition(":")[0] in known, "no data of these is there"
        return
    cases = made.load(files)
    assert len({case.id for case in cases}) == len(cases) > 0
    for name, method in made.methods().items():
        played = made.play(cases[0], method)
        assert played.trials == method.trials
        if not method.oracle:
            assert str(cases[0].target) not in str(played.evaluator), f"{name} tells the loop what is hidden"


def test_the_list_has_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    monkeypatch.delenv("MULLIGAN_DATA", raising=False)
    assert [one.name for one in list_benchmarks()] == names("benchmarks")
    (humaneval,) = [one for one in list_benchmarks() if one.name == "humaneval"]
    assert [cut.name for cut in humaneval.cuts] == [
        "humaneval:reflexion",
        "humaneval:hardest50",
        "humaneval:rs",
        "humaneval:rs-hardest50",
    ]
    assert humaneval.missing == "mulligan bench fetch humaneval"
    assert "immediate-reflexion" in humaneval.methods
