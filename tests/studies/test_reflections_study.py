"""The study of reflections: what was fixed beforehand is there, and the score tells good ones from planted ones."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "studies" / "reflections"


@pytest.fixture(scope="module")
def study() -> Iterator[ModuleType]:
    before = list(sys.path)
    sys.path.insert(0, str(FOLDER))
    spec = importlib.util.spec_from_file_location("reflections_study", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reflections_study"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before
    for name in ("reflections_study", "reflection_sets"):
        sys.modules.pop(name, None)


def test_there_are_as_many_of_our_own_and_a_bad_one_of_each_kind_for_each(study: ModuleType) -> None:
    kinds = Counter(item.kind for item in study.items() if not item.domain.startswith("published"))
    assert kinds == dict.fromkeys(("good", *(f"planted {one}" for one in PLANTED)), 44)


PLANTED = ("generic", "other", "repeat", "leak", "copy")


def test_planted_ones_are_of_the_length_of_good_ones(study: ModuleType) -> None:
    words = {
        kind: sum(len(item.text.split()) for item in study.items("develop") if item.kind == kind)
        for kind in ("good", *(f"planted {one}" for one in PLANTED))
    }
    assert max(words.values()) < 1.1 * min(words.values())


def test_our_own_good_ones_score_higher(study: ModuleType) -> None:
    found = [(item, study.score(item)) for item in study.items() if not item.domain.startswith("published")]
    good = [value for item, value in found if item.kind == "good"]
    bad = [value for item, value in found if item.kind != "good"]
    assert study.auc(good, bad) > 0.95


def test_the_published_ones_are_those_that_were_labelled(study: ModuleType) -> None:
    if not study.PUBLISHED.exists():
        pytest.skip("needs ../shared/data")
    found = [item for item in study.items() if item.domain.startswith("published")]
    assert Counter(item.kind for item in found if "planted" not in item.kind) == {
        "good": 32,
        "repeats": 11,
        "generic": 1,
    }
    scores = [(item, study.score(item)) for item in found]
    good = [value for item, value in scores if item.kind == "good"]
    bad = [value for item, value in scores if item.kind != "good"]
    assert study.auc(good, bad) > 0.85
