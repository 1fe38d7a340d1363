import gc
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

if sys.dont_write_bytecode and not sys.pycache_prefix:
    # Where no __pycache__ may be written, compiled modules go to pytest's cache. Otherwise each of the processes that
    # tests start compiles all that it imports, which takes longer than the tests: design/043.
    sys.pycache_prefix = str(Path(__file__).parent.parent / ".pytest_cache" / "d" / "bytecode")
    sys.dont_write_bytecode = False
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import hypothesis

# Tests start programs by name, such as `mulligan`: those of this environment, also where it was not activated.
os.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))

# A busy machine changes no verdict: no deadline for an example, and none for drawing it.
hypothesis.settings.register_profile(
    "quick", max_examples=10, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
# MULLIGAN_TEST_REPEATS is that of tests/support/repetition.py, which this file does not import: it is tried without it.
_MANY = 40 * int(os.environ.get("MULLIGAN_TEST_REPEATS", "1"))
hypothesis.settings.register_profile("thorough", hypothesis.settings.get_profile("quick"), max_examples=_MANY)

ALLOWED = [
    line
    for line in (Path(__file__).parent / "allowed_skips.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


def pytest_configure(config: pytest.Config) -> None:
    """Few examples of each property in the fast lane, many in the slow lane, which runs the properties once more."""
    hypothesis.settings.load_profile("quick" if config.option.markexpr == "not slow" else "thorough")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One worker more than cores: while a test waits for a process or a time limit, another has its core."""
    return (yield) + ("PYTEST_XDIST_AUTO_NUM_WORKERS" not in os.environ)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test with the mark `light_cases(n)`, the first n that are not slow by themselves stay in the fast lane."""
    seen = Counter[str]()
    for item in items:
        mark = item.get_closest_marker("light_cases")
        if mark and item.get_closest_marker("slow") is None:
            test = item.nodeid.partition("[")[0]
            seen[test] += 1
            if seen[test] > mark.args[0]:
                item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting makes objects by the million that all stay: the garbage collector need not look at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _postgres() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Ends the PostgreSQL server with the session, if a test started one."""
    yield
    if started := sys.modules.get("postgres_server"):
        started.stop_all()


@pytest.fixture(autouse=True)
def _no_open_journal() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Closes the journals of the hooks that a test called: as programs of their own they would have ended."""
    yield
    if entry := sys.modules.get("mulligan.hooks.entry"):
        while entry._left_open:
            entry._left_open.pop().close()


@pytest.fixture(scope="session")
def _one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:  # pyright: ignore[reportUnusedFunction]
    """The first of the authorities that HTTP clients trust. Each client reads the whole file, which takes longer than
    most tests, and in the lane that takes seconds none speaks to anybody but loopback."""
    import certifi

    end = "-----END CERTIFICATE-----\n"
    file = tmp_path_factory.mktemp("certificates") / "one.pem"
    file.write_text(Path(certifi.where()).read_text("utf-8").partition(end)[0] + end, "utf-8")
    return file


_numbers = itertools.count()


def _new_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """A new folder of this session. pytest's own numbering reads all folders each time: with thousands, 3 ms a test."""
    return factory.mktemp(f"{name}-{next(_numbers)}", numbered=False)


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return _new_folder(tmp_path_factory, re.sub(r"\W", "_", request.node.name)[:30])


@pytest.fixture(autouse=True)
def _own_home(  # pyright: ignore[reportUnusedFunction]
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    _one_certificate: Path,
) -> None:
    """No test touches the user's store, models or settings, or calls a provider because a key is set."""
    home = _new_folder(tmp_path_factory, "home")
    monkeypatch.setenv("MULLIGAN_HOME", str(home))
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setenv("SSL_CERT_FILE", str(_one_certificate))
    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DASHSCOPE_API_KEY")
    size = ("COLUMNS", "LINES")  # a worker of pytest-xdist has them; they would hide the size of a test's own terminal
    for name in (*keys, *size, *(name for name in os.environ if name.startswith("MULLIGAN_MODEL"))):
        monkeypatch.delenv(name, raising=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _checked((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _checked((yield))


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def _checked(report: Report) -> Report:
    """In CI a skip is a failure if its reason is not listed."""
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        why: Any = report.longrepr  # file, line and reason
        reason = why if isinstance(why, str) else why[2]
        if not any(allowed in reason for allowed in ALLOWED):
            report.outcome = "failed"
            report.longrepr = (
                f"{report.nodeid} was skipped for a reason that is not in tests/allowed_skips.txt: {reason}"
            )
    return report
