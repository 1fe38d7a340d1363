import os
from pathlib import Path

import hypothesis
import pytest

# A busy machine changes no verdict: no deadline for an example, and none for drawing it.
hypothesis.settings.register_profile("house", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("house")

ALLOWED = [
    line
    for line in (Path(__file__).parent / "allowed_skips.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """No test touches the user's store, models or settings, or calls a provider because a key is set."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("MULLIGAN_HOME", str(home))
    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DASHSCOPE_API_KEY")
    for name in (*keys, *(name for name in os.environ if name.startswith("MULLIGAN_MODEL"))):
        monkeypatch.delenv(name, raising=False)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skip that is not on the list fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get("CI") or reporter is None:
        return
    for report in reporter.stats.get("skipped", []):
        reason = str(report.longrepr)
        if not any(allowed in reason for allowed in ALLOWED):
            reporter.write_line(f"skipped, and not on tests/allowed_skips.txt: {report.nodeid}: {reason}", red=True)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
