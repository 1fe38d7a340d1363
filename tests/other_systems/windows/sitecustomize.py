"""Makes a Python on Linux look like one on Windows to Mulligan: the system's name, and no POSIX modules.

What others decide at import is decided before, for Linux: there is no event loop for Windows here, and no msvcrt.
"""

import importlib
import sys
from importlib.abc import MetaPathFinder
from typing import Any

for name in (
    *("asyncio", "concurrent.futures.thread", "ctypes.util", "getpass", "http.server", "logging.handlers", "platform"),
    *("multiprocessing.context", "shutil", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "urllib.request"),
    *("uuid", "click.testing", "mcp.server.lowlevel", "mcp.server.stdio", "numpy", "rich.console"),
):
    importlib.import_module(name)

POSIX_ONLY = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog")


class Hidden(MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name in POSIX_ONLY:
            raise ModuleNotFoundError(f"No module named {name!r}: Windows has none", name=name)


for name in POSIX_ONLY:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Hidden())
sys.platform = "win32"
