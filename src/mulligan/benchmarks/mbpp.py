"""MBPP (Austin et al. 2021) as Reflexion ran it: short functions from a sentence, in Python or in Rust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mulligan.benchmarks import _programs
from mulligan.benchmarks._programs import Cut, reflexion_file
from mulligan.benchmarks._strategies import methods
from mulligan.core.benchmarks import Judges, Method, Score, Source
from mulligan.core.programs import Language
from mulligan.core.records import Case, Episode

CUTS: Mapping[Language, Cut] = {
    "py": Cut(
        "MBPP: 397 Python functions from a sentence each",
        "mbpp-py.jsonl",
        reflexion_file("mbpp-py.jsonl", 314_874, "b429c4433f38e3689b760c8093f549a995dd1fb2355c63926d5c700a197de057"),
    ),
    "rs": Cut(
        "MBPP in Rust: 354 functions (MultiPL-E, Cassano et al. 2022)",
        "mbpp-rs.jsonl",
        reflexion_file("mbpp-rs.jsonl", 270_255, "1d21748c4ba41bea6be6efca1746ed0e93f3fa6b0051a6622322afcde7c156b6"),
        "rs",
    ),
}


class Mbpp:
    """`language`: "py" or "rs". seconds: for the hidden tests of an attempt."""

    def __init__(self, language: Language = "py", *, judges: Judges, seconds: float = 10.0) -> None:
        self._cut, self._judges, self._seconds = CUTS[language], judges, seconds
        self.title, self.data = self._cut.title, self._cut.file
        self.sources: Sequence[Source] = (self._cut.source,)
        self.where = "https://github.com/noahshinn/reflexion has it, under programming_runs/benchmarks/."

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        return _programs.cases(files, self._cut.language)

    def methods(self) -> Mapping[str, Method]:
        return methods(self._cut.language)

    def play(self, case: Case, method: Method) -> Method:
        _programs.judgeable(self._judges, case, self._cut.language, self._seconds)
        return method

    async def score(self, case: Case, episode: Episode) -> Score:
        cut = self._cut
        return await _programs.score(self._judges, case, episode, cut.language, cut.typed, self._seconds)
