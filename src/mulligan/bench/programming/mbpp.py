"""MBPP (Austin et al. 2021) as Reflexion ran it: short functions from a sentence, in Python or in Rust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mulligan.bench.programming._programs import Cut, Judged, reflexion_file
from mulligan.core.benchmarks import Judges, Source
from mulligan.text.programs import Language

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


class Mbpp(Judged):
    """`language`: "py" or "rs". seconds: for the hidden tests of an attempt."""

    def __init__(self, language: Language = "py", *, judges: Judges, seconds: float = 10.0) -> None:
        chosen = CUTS[language]
        super().__init__(judges, chosen.language, chosen.typed, seconds)
        self.title, self.data = chosen.title, chosen.file
        self.sources: Sequence[Source] = (chosen.source,)
        self.where = "https://github.com/noahshinn/reflexion has it, under programming_runs/benchmarks/."
