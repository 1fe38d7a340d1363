"""`bench score` on all 164 items of HumanEval: the canonical solutions, as bodies and whole, and bodies of `pass`."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mulligan.cli.main import main

DATA = Path(__file__).parents[3] / "shared/data/programming/HumanEval.jsonl.gz"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")]
FORMS: dict[str, Callable[[Any], str]] = {
    "bodies": lambda row: row["canonical_solution"],
    "whole, fenced": lambda row: f"Here:\n\n```python\n{row['prompt']}{row['canonical_solution']}```\n",
    "pass": lambda row: "    pass\n",
}


@pytest.mark.parametrize(("form", "solved"), [("bodies", 164), ("whole, fenced", 164), ("pass", 0)])
def test_the_canonical_solutions_score_164_and_empty_ones_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, solved: int
) -> None:
    rows = [json.loads(line) for line in gzip.decompress(DATA.read_bytes()).splitlines()]
    samples = tmp_path / "samples.jsonl"
    lines = [json.dumps({"task_id": row["task_id"], "completion": FORMS[form](row)}) for row in rows]
    samples.write_text("\n".join(lines))
    given = ["bench", "score", "humaneval", "--samples", str(samples), "--data", str(DATA), "--format", "json"]
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["n"], told["solved"], told["failed"], told["unjudged"]) == (164, solved, 164 - solved, 0)
    assert told["pass_at_k"] == {"pass@1": solved / 164}
    assert len(told["ids"]) == solved
