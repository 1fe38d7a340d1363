"""HumanEval (Chen et al. 2021): functions to be written from a signature and a docstring; four other cuts of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from mulligan.bench.programming._programs import Cut, Judged, reflexion_file
from mulligan.core.benchmarks import Judges, Source

Name: TypeAlias = Literal["openai", "reflexion", "hardest50", "rs", "rs-hardest50"]

_OPENAI = Source(
    "HumanEval.jsonl.gz",
    "https://raw.githubusercontent.com/openai/human-eval/6d43fb980f9fee3c892a914eda09951f772ad10d/data/HumanEval.jsonl.gz",
    "b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
    44_877,
    "MIT (OpenAI, openai/human-eval)",
)
CUTS: Mapping[Name, Cut] = {
    "openai": Cut("HumanEval: 164 Python functions from their docstrings", _OPENAI.file, _OPENAI, typed=False),
    "reflexion": Cut(
        "HumanEval as Reflexion ran it: 161 functions, docstrings reworded, item 151 with another rule",
        "humaneval-py.jsonl",
        reflexion_file(
            "humaneval-py.jsonl", 205_650, "ca2ab6306206e07a329591328f33b49e1f4304642df135394be50b4017eeace4"
        ),
    ),
    "hardest50": Cut(
        "HumanEval: the last 50 items, as Reflexion's ablations ran them",
        "humaneval-py_hardest50.jsonl",
        reflexion_file(
            "humaneval-py_hardest50.jsonl", 79_585, "6e389adea49c2371ebac2b72434726aa3a16fcb4668b0327d4238f9c36039fdc"
        ),
    ),
    "rs": Cut(
        "HumanEval in Rust: 156 functions (MultiPL-E, Cassano et al. 2022)",
        "humaneval-rs.jsonl",
        reflexion_file(
            "humaneval-rs.jsonl", 215_363, "4541d01176d6fd93e74e732c8ba66081f07217da65d047f560759aa34ea47a01"
        ),
        "rs",
    ),
    "rs-hardest50": Cut(
        "HumanEval in Rust: the 50 items of Reflexion's ablations",
        "humaneval-rs-hardest50.jsonl",
        reflexion_file(
            "humaneval-rs-hardest50.jsonl", 83_635, "bed5824904cb9a6abafc82c2dd131d94c2b7c0b3e85d674ec39c9da4b63d9d50"
        ),
        "rs",
    ),
}


class HumanEval(Judged):
    """`cut`: which file: openai's own, or one of those that Reflexion's authors ran. seconds: for the hidden tests."""

    def __init__(self, cut: Name = "openai", *, judges: Judges, seconds: float = 10.0) -> None:
        chosen = CUTS[cut]
        super().__init__(judges, chosen.language, chosen.typed, seconds)
        self.title, self.data = chosen.title, chosen.file
        self.sources: Sequence[Source] = (chosen.source,)
        self.where = "https://github.com/openai/human-eval has it, and https://github.com/noahshinn/reflexion its cuts."
