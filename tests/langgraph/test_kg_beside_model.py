"""A graph that is loaded, and then a local model, in one process: their native libraries have to bear each other."""

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys
from pathlib import Path
from mulligan.app.graphs import load_graph
from mulligan.graphs.sample import write_sample

write_sample(Path("files"))
load_graph("files", "kg")
import xllamacpp
print("both are there")
"""


def test_a_local_model_can_be_loaded_after_a_graph_was(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason='needs the extra: pip install "mulligan[local]"')
    ran = subprocess.run([sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, "both are there\n"), ran.stderr
