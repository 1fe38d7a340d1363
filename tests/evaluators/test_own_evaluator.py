"""The evaluator of one's own that docs/evaluators shows, taken from the page and run."""

import re
from pathlib import Path

from mulligan.app.plugins import Spec, build
from mulligan.core.protocols import Evaluator
from mulligan.core.records import Attempt, Episode, Feedback, Task, Trial

PAGE = Path(__file__).parents[2] / "docs" / "evaluators" / "README.md"


async def test_the_documented_evaluator_works_from_its_file(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "short.py"
    file.write_text(code, encoding="utf-8")
    short = build("evaluators", Spec(str(file), {"words": 2}), {})
    assert isinstance(short, Evaluator)
    episode = Episode("e.1", Task("t"), trials=(Trial(1, Attempt("one two three")),))
    assert await short.evaluate(episode) == Feedback(False, "3 words, and at most 2 are allowed.", source="short")
