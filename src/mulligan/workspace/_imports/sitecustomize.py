"""On the path of a Python check, once, before the first trial: writes down which files of the user's own tree it runs.

Loaded by any Python that the check starts, however deep, through PYTHONPATH. It changes nothing that the check does:
an audit hook sees the file name of each module as it is executed. Standard library only, and no import of ours.
"""

import os
import sys
from importlib.machinery import PathFinder


def _watch(top: str, spared: list[str], report: str) -> None:
    seen: set[str] = set()

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event != "exec":
            return
        name = getattr(args[0], "co_filename", "")
        if not isinstance(name, str) or name in seen or not os.path.isabs(name):
            return
        seen.add(name)
        path = os.path.realpath(name)
        if path.startswith(top + os.sep) and not any(path.startswith(other + os.sep) for other in spared):
            with open(report, "a", encoding="utf-8", errors="replace") as file:
                file.write(path + "\n")

    sys.addaudithook(hook)


def _pass_on() -> None:
    """Run the sitecustomize that this one stands before, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec and spec.loader:
        from importlib.util import module_from_spec

        spec.loader.exec_module(module_from_spec(spec))


_top, *_spared = os.environ.get("MULLIGAN_WATCH", "").split(os.pathsep)
_report = os.environ.get("MULLIGAN_WATCH_REPORT", "")
if _top and _report:
    _watch(_top, _spared, _report)
_pass_on()
