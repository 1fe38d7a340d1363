"""CPU milliseconds of `import mulligan` and `mulligan --help`, over 20 processes each.

    python perf/startup.py

Aims: 80 ms for the import, 150 ms for the help. A bare interpreter is measured beside them.
"""

import resource
import statistics
import subprocess
import sys

RUNS = 20
MEASURED = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import mulligan": [sys.executable, "-c", "import mulligan"],
    "mulligan --help": [sys.executable, "-m", "mulligan", "--help"],
    "mulligan solve --help": [sys.executable, "-m", "mulligan", "solve", "--help"],
}


def cpu(command: list[str]) -> float:
    """User and system time of one run, in ms."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


if __name__ == "__main__":
    print(f"CPU ms over {RUNS} runs      min  median")
    for name, command in MEASURED.items():
        cpu(command)  # the first writes the bytecode
        times = [cpu(command) for _ in range(RUNS)]
        print(f"{name:<24} {min(times):6.0f}  {statistics.median(times):6.0f}")
