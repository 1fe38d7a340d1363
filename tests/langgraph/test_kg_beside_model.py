"""An open Ladybug database, a graph that is loaded, then a local model, in one process: their libraries must agree."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

CODE = """
import asyncio
from pathlib import Path
import ladybug
from mulligan.graphs.opening import load_graph
from mulligan.core.errors import ModelError
from mulligan.core.questions import Message, Question
from mulligan.graphs.sample import write_sample
from mulligan.models.embedded import EmbeddedModel

write_sample(Path("files"))
with ladybug.Database("own") as database, ladybug.Connection(database) as connection:
    connection.execute("CREATE NODE TABLE Own(k INT64 PRIMARY KEY)")
    load_graph("files", "kg")
    Path("x.gguf").write_bytes(b"GGUF, but no more than that")
    try:
        asyncio.run(EmbeddedModel("x.gguf").ask(Question((Message("user", "Say hello."),))))
    except ModelError:
        print("llama.cpp has read the file")
"""


@pytest.mark.slow
def test_a_local_model_can_be_loaded_after_a_graph_was(tmp_path: Path) -> None:
    if find_spec("xllamacpp") is None:  # not imported here: this process may have opened a graph
        pytest.skip('needs the extra: pip install "mulligan[local]"')
    ran = subprocess.run([sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, "llama.cpp has read the file\n"), ran.stderr
