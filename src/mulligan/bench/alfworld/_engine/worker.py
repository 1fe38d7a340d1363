"""The process that an engine lives in: requests as lines of JSON on stdin, an answer to each on stdout.

{"do": "open", "game": PATH}, {"do": "reset"}, {"do": "step", "command": TEXT}; what went wrong is {"error": TEXT}. It
ends when its stdin does, and so with whoever started it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from mulligan.bench.alfworld._engine.engine import Engine
from mulligan.core.errors import InvalidInput


def main(folder: str, kind: str) -> None:
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)  # what the engine prints, in C++ too, is no answer
        engine = Engine(folder=folder or None, plain=kind == "plain")
        for line in sys.stdin:
            before = time.process_time()
            answer = _answered(engine, json.loads(line))
            answer["cpu"] = time.process_time() - before
            out.write(json.dumps(answer) + "\n")
            out.flush()


def _answered(engine: Engine, request: dict[str, Any]) -> dict[str, Any]:
    try:
        match request["do"]:
            case "open":
                engine.open(request["game"])
                return {"notice": engine.notice}
            case "reset":
                return engine.reset()
            case _:
                return engine.step(request["command"])
    except InvalidInput as error:
        return {"error": str(error), "invalid": True}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main(*sys.argv[1:])
