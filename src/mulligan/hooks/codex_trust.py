"""Ask Codex which hooks it runs. It passes over each one that its user has not reviewed, without a word."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Timer
from typing import Any

from mulligan.core.errors import InvalidInput
from mulligan.hooks.install import PROGRAM

_ANSWERING = 20.0
_SILENT = "`codex app-server` does not say which hooks it trusts (hooks/list). See /hooks in Codex."


def listed(folder: Path) -> Sequence[dict[str, Any]]:
    """Mulligan's hooks as Codex knows them in this folder, with `key`, `currentHash`, `trustStatus` and `enabled`.

    Raises:
        InvalidInput: There is no `codex` on the PATH, or it does not answer.
    """
    codex = shutil.which("codex")
    if codex is None:
        raise InvalidInput("`codex` is not on the PATH, so Mulligan cannot tell whether it trusts the hooks.")
    about = {"clientInfo": {"name": "mulligan", "title": "Mulligan", "version": "0"}}
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(folder)]}},
    ]
    pipe = subprocess.PIPE
    answer: dict[str, Any] = {}
    with subprocess.Popen(
        [codex, "app-server"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, cwd=folder
    ) as server:
        timer = Timer(_ANSWERING, server.kill)
        timer.start()
        try:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write("".join(f"{json.dumps(one)}\n" for one in asked))
            server.stdin.flush()
            for line in server.stdout:
                answer = json.loads(line)
                if answer.get("id") == 2:
                    break
        except (OSError, ValueError):
            pass  # it ended too early, or says something else
        finally:
            timer.cancel()
            server.kill()
    if "result" not in answer:
        raise InvalidInput(_SILENT)
    try:
        hooks: list[dict[str, Any]] = [hook for place in answer["result"]["data"] for hook in place["hooks"]]
        ours = [hook for hook in hooks if PROGRAM in (hook.get("command") or "")]
        return [hook | {name: hook[name] for name in ("key", "currentHash", "trustStatus")} for hook in ours]
    except (AttributeError, KeyError, TypeError):
        raise InvalidInput(_SILENT) from None
