"""CPU seconds that `mulligan solve` takes before its first request reaches a provider, over 5 processes each.

    python perf/first_request.py

Aim: 0.8 s. The provider is the loopback server of tests/support; a scripted model, which makes no request, is measured
to its end beside it. The least of the runs counts: other load on the machine only adds.
"""

import asyncio
import os
import resource
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from provider_server import ProviderServer

RUNS = 5
SOLVE = (sys.executable, "-m", "mulligan", "solve", "write f", "--evaluator", "contains:x", "--trials", "1", "--quiet")
MODELS = ("openai:gpt-4o", "openai-responses:gpt-4o", "anthropic:claude-haiku-4-5")


def used(process: int) -> float:
    """User and system time of a process that lives."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def before_the_first_request(model: str, home: str) -> float:
    async with ProviderServer([{"hang": True}]) as server:
        address = f"http://127.0.0.1:{server.port}"
        places = {"OPENAI_BASE_URL": f"{address}/v1", "ANTHROPIC_BASE_URL": address, "MULLIGAN_HOME": home}
        keys = {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none"}
        process = await asyncio.create_subprocess_exec(*SOLVE, "--model", model, env={**os.environ, **places, **keys})
        async with asyncio.timeout(120):
            while not server.script.received:
                assert process.returncode is None, "it ended without a request"
                await asyncio.sleep(0.005)
        took = used(process.pid)
        process.kill()
        await process.wait()
        return took


async def without_a_request(home: str) -> float:
    script = Path(home) / "said.txt"
    script.write_text("x")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = await asyncio.create_subprocess_exec(
        *SOLVE,
        "--model",
        f"scripted:{script}",
        env={**os.environ, "MULLIGAN_HOME": home},
        stdout=asyncio.subprocess.DEVNULL,
    )
    await process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        print(f"CPU s, least of {RUNS} runs; load {os.getloadavg()[0]:.1f}")
        print(f"{'scripted, to its end':<32} {min(asyncio.run(without_a_request(home)) for _ in range(RUNS)):5.2f}")
        for model in MODELS:
            least = min(asyncio.run(before_the_first_request(model, home)) for _ in range(RUNS))
            print(f"{model:<32} {least:5.2f}")
