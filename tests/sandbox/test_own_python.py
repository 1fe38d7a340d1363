"""A job that is code for the supervisor's own Python runs in a fork of it: nothing in it may tell it from a new one."""

import json
import sys
from dataclasses import replace

import pytest

from mulligan.core.protocols import Job, Ran
from mulligan.sandbox.local import LocalSandbox

STATE = """
import sys
modules = set(sys.modules)
frames = sys._getframe()
import ctypes, gc, json, os, resource, signal, stat
libc = ctypes.CDLL(None)
capabilities = (ctypes.c_uint32 * 6)()
libc.capget(bytes([0x22, 5, 8, 0x20, 0, 0, 0, 0]), capabilities)
kinds = {}
for fd in range(64):
    try:
        kinds[fd] = stat.S_IFMT(os.fstat(fd).st_mode)
    except OSError:
        pass
streams = [
    (s.fileno(), s.encoding, s.errors, s.line_buffering, s.mode, s.name, s.isatty(),
            type(s.buffer).__name__, s.newlines, s.write_through) for s in (sys.stdin, sys.stdout, sys.stderr)
]
print(json.dumps({
    "modules": sorted(modules), "outer": frames.f_back is None or frames.f_back.f_back is None, "path": sys.path,
    "flags": [*sys.flags], "argv": [sys.argv, sys.orig_argv[:-1]],
    "main": sorted(vars(sys.modules["__main__"]).keys() & {"serve", "code", "folder"}),
    "streams": streams, "same": sys.stdin is sys.__stdin__ and sys.stdout is sys.__stdout__, "files": kinds,
    "environ": sorted(os.environ), "seen": sorted(k for k in ("PATH", "HOME", "LANG") if libc.getenv(k.encode())),
    "folder": os.getcwd() == os.environ["HOME"], "gc": gc.isenabled(), "depth": sys.getrecursionlimit(),
    "handlers": {s.name: str(signal.getsignal(s)).partition(" at ")[0] for s in signal.valid_signals() if hasattr(s, "name")},
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), "session": os.getsid(0) == os.getpid(),
    "limits": [resource.getrlimit(getattr(resource, n)) for n in sorted(dir(resource)) if n.startswith("RLIMIT_")],
    "capabilities": [*capabilities], "root": os.getuid() == 0, "groups": os.getgroups(),
    "dumpable": libc.prctl(3, 0, 0, 0, 0), "locale": __import__("locale").setlocale(0),
}))
"""
LOADED = {
    *("_collections", "_collections_abc", "_functools", "_operator", "_signal", "_sre", "_stat", "_struct", "array"),
    *("collections", "collections.abc", "contextlib", "copyreg", "encodings.ascii", "enum", "errno", "functools", "gc"),
    *("genericpath", "itertools", "keyword", "math", "operator", "os", "os.path", "posixpath", "re", "re._casefix"),
    *("re._compiler", "re._constants", "re._parser", "reprlib", "signal", "stat", "struct", "types", "__future__"),
}
"""Modules that a fork may find imported. Each belongs to Python, opens nothing and holds no random number."""
ENDS = {
    "a value": "print('é', end='')",
    "an exit code": "raise SystemExit(3)",
    "a text": "import sys; sys.exit('over')",
    "an error": "import json\ndef f():\n    json.loads('{')\nf()",
    "a wrong syntax": "x = 1\nprint(x",
    "a cause": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('no') from e",
    "a hard end": "import os; print('lost'); os._exit(5)",
    "a signal": "import os; os.kill(os.getpid(), 9)",
    "an end that is registered": "import atexit; atexit.register(print, 'bye')",
    "a thread": "import threading; threading.Timer(0.01, print, ['late']).start()",
    "input": "import sys; print(sys.stdin.read().upper(), end='', file=sys.stderr)",
    "a class of its own": "import pickle\nclass A: pass\nprint(pickle.dumps(A()))",
    "a process of its own": "import os\nif not os.fork(): os._exit(7)\nprint(os.wait()[1])",
    "deep calls": "def f(n): return n and 1 + f(n - 1)\nprint(f(990))",
    "too deep calls": "def f(): f()\ntry:\n    f()\nexcept RecursionError: print('deep')",
}


@pytest.fixture(scope="module")
def sandbox() -> LocalSandbox:
    sandbox = LocalSandbox()
    if "seccomp" not in sandbox.level or "bwrap" in sandbox.level:
        pytest.skip("needs a Linux that confines jobs with seccomp")
    return sandbox


async def both(sandbox: LocalSandbox, code: str) -> tuple[Ran, Ran]:
    """What the code gives in a fork, and in a Python that is started: one with a variable of its own is."""
    job = Job((sys.executable, "-I", "-S", "-c", code), stdin="one\r\ntwo\n")
    return await sandbox.run(job), await sandbox.run(replace(job, env={"OTHER": "1"}))


async def test_a_fork_is_as_a_new_interpreter(sandbox: LocalSandbox) -> None:
    here, started = [json.loads(ran.stdout) for ran in await both(sandbox, STATE)]
    assert set(here.pop("modules")) - set(started.pop("modules")) <= LOADED
    started["environ"].remove("OTHER")
    assert here == started
    assert here["capabilities"] == [0] * 6


@pytest.mark.parametrize("code", ENDS.values(), ids=ENDS)
async def test_code_ends_as_in_a_new_interpreter(sandbox: LocalSandbox, code: str) -> None:
    here, started = await both(sandbox, code)
    assert replace(here, seconds=0.0) == replace(started, seconds=0.0)


async def test_a_job_leaves_nothing_to_the_next(sandbox: LocalSandbox) -> None:
    leave = "import sys, os, builtins; builtins.left = 1; sys.modules['left'] = sys; os.environ['LEFT'] = '1'"
    look = "import sys, os, builtins; print(hasattr(builtins, 'left'), 'left' in sys.modules, 'LEFT' in os.environ)"
    await both(sandbox, leave)
    assert [ran.stdout for ran in await both(sandbox, look)] == ["False False False\n"] * 2
