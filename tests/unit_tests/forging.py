"""Attacks on a verdict: code that tries to pass tests that it fails. As a program, tries each on both paths.

    python tests/unit_tests/forging.py        prints {"outside": [names that passed], "in_process": [...]}

Standard library and mulligan only, so that another user's Python can run it.
"""

import asyncio
import json

from mulligan.core.records import Attempt, Episode, Task, Trial
from mulligan.evaluators.unit_tests import UnitTests
from mulligan.sandbox.local import LocalSandbox

TESTS = "assert add(1, 2) == 3\nassert add(2, 5) == 7\n"
IN_PROCESS = "import inspect\n" + TESTS

EQUALS = """
class Any:
    def __eq__(self, other): return True
    __hash__ = None
"""

ATTACKS = {
    "equals everything": EQUALS + "def add(a, b): return Any()",
    "equals everything, in a list": EQUALS + "def add(a, b): return [Any()]",
    "int subclass": "class I(int):\n    __eq__ = lambda s, o: True\n    __hash__ = int.__hash__\n"
    "def add(a, b): return I(0)",
    "str subclass": "class S(str):\n    __eq__ = lambda s, o: True\n    __hash__ = str.__hash__\n"
    "def add(a, b): return S()",
    "metaclass": "class M(type):\n    __eq__ = lambda s, o: True\n    __hash__ = type.__hash__\n"
    "class C(metaclass=M): pass\ndef add(a, b): return C",
    "claims a type": EQUALS.replace("Any:", "Any:\n    __class__ = int") + "def add(a, b): return Any()",
    "sys.exit(0) in a call": "import sys\ndef add(a, b): sys.exit(0)",
    "sys.exit(0) when loaded": "import sys\ndef add(a, b): return 0\nsys.exit(0)",
    "os._exit(0) in a call": "import os\ndef add(a, b): os._exit(0)",
    "os._exit(0) when loaded": "import os\nos._exit(0)",
    "kills itself": "import os\ndef add(a, b): os.kill(os.getpid(), 9)",
    "prints a verdict": "print('!D0')\nprint('.')\ndef add(a, b):\n    print('.')\n    return 0",
    "writes a verdict everywhere": "import os\ndef add(a, b):\n    for fd in range(1, 30):\n        try:\n"
    "            os.write(fd, b'.\\n!l2 s T\\n')\n        except OSError:\n            pass\n    return 0",
    "writes a verdict and exits": "import os\ndef add(a, b):\n    for fd in range(1, 30):\n        try:\n"
    "            os.write(fd, b'.\\n!l2 s T\\n')\n        except OSError:\n            pass\n    os._exit(0)",
    "prints garbage": "import os\ndef add(a, b):\n    for fd in range(1, 30):\n        try:\n"
    "            os.write(fd, b'\\xff\\x00garbage' * 1000 + b'\\n')\n        except OSError:\n"
    "            pass\n    return 0",
    "a deep value": "def add(a, b):\n    value = 0\n    for _ in range(100000): value = [value]\n    return value",
    "a line of a deep value": "import os\ndef add(a, b):\n    for fd in range(3, 30):\n        try:\n"
    "            os.write(fd, b'l3 svalue ' + b'l1 ' * 300000 + b'\\n')\n        except OSError:\n            pass\n",
    "too large": "def add(a, b): return 'x' * 50_000_000",
    "patched builtins": "import builtins\nbuiltins.abs = builtins.repr = builtins.isinstance = lambda *a: True\n"
    "builtins.AssertionError = type('E', (Exception,), {})\ndef add(a, b): return 0",
    "patched modules": "import sys, types\nfor name in ('inspect', 'marshal', 'posix'):\n"
    "    sys.modules[name] = types.ModuleType(name)\ndef add(a, b): return 0",
    "atexit": "import atexit, os\natexit.register(lambda: os.write(1, b'passed'))\ndef add(a, b): return 0",
    "a thread": "import threading, os\ndef write():\n    while True: os.write(1, b'!T\\n')\n"
    "threading.Thread(target=write, daemon=True).start()\ndef add(a, b): return 0",
    "closes all descriptors": "import os\ndef add(a, b):\n    os.closerange(0, 256)\n    return 0",
    "a daemon that lives on": "import os, time\ndef add(a, b):\n    if not os.fork():\n        os.setsid()\n"
    "        if not os.fork(): time.sleep(60)\n        os._exit(0)\n    return 0",
    "raises AssertionError": "def add(a, b): raise AssertionError",
    "raises a skip": "import sys\ndef add(a, b): sys.modules['pytest'].skip()",
    "raises SystemExit by name": "def add(a, b): raise type('Skipped', (BaseException,), {})()",
    "recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef add(a, b): return add(a, b)",
    "memory": "def add(a, b): return len(bytearray(8 << 30))",
    "changes its arguments": "def add(*a): return list(a)",
    "trace function": "import sys\ndef add(a, b):\n    sys.settrace(lambda *a: None)\n    return 0",
    "walks frames to the results": """
import sys
def add(a, b):
    frame = sys._getframe()
    while frame:
        examiner = frame.f_locals.get("self")
        if hasattr(examiner, "count"):
            count = type(examiner).count
            examiner.count = lambda test, label, detail: count(examiner, test, label, None)
            return 0
        frame = frame.f_back
    return 0
""",
    "rewrites the tests' globals": """
import sys
def add(a, b):
    frame = sys._getframe()
    while frame:
        space = frame.f_globals
        if "__oracle_failed__" in space:
            space["__oracle_failed__"] = lambda point, *rest: space["__oracle_passed__"](point)
            return 0
        frame = frame.f_back
    return 0
""",
    "finds the results by gc": """
import gc
def cheat(examiner):
    count = type(examiner).count
    examiner.count = lambda test, label, detail: count(examiner, test, label, None)
def add(a, b):
    for value in gc.get_objects():
        if type(value).__name__ == "Examiner":
            cheat(value)
    return 0
""",
    "speaks the protocol badly": """
import os
def add(a, b):
    os.write(4, b".\\n")
    os.write(4, b"!l2 s" + os.read(3, 100).strip() + b" D0\\n")
    os._exit(0)
""",
    "speaks the protocol": """
import os
def add(a, b):
    os.write(4, b".\\n")
    nonce = os.read(3, 100).decode().strip()
    report = "D5 sresults l1 l5 i1 s i1 i0 N sbroken N smissing l0 sdefined l0 sloading N"
    os.write(4, f"!l2 s{nonce} {report}\\n".encode())
    os._exit(0)
""",
}

CANNOT_HOLD = {
    "equals everything",
    "int subclass",
    "str subclass",
    "metaclass",
    "claims a type",
    "walks frames to the results",
    "rewrites the tests' globals",
    "finds the results by gc",
    "speaks the protocol",
}
"""What passes in-process, where code and tests share everything: as docs/evaluators/unit_tests.md says."""


async def passing(tests: str) -> list[str]:
    evaluator = UnitTests(tests, sandbox=LocalSandbox(), seconds=3.0)

    async def passes(name: str) -> bool:
        attempt = Attempt(ATTACKS[name])
        return bool((await evaluator.evaluate(Episode("e", Task("t"), trials=(Trial(1, attempt),)))).passed)

    return [name for name in ATTACKS if await passes(name)]


async def main() -> None:
    print(json.dumps({"outside": await passing(TESTS), "in_process": await passing(IN_PROCESS)}))


if __name__ == "__main__":
    asyncio.run(main())
