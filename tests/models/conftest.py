from collections.abc import Generator

import pytest
from wire_client import KEY, Naps, Wire, running


@pytest.fixture(scope="session")
def _server() -> Generator[Wire]:  # pyright: ignore[reportUnusedFunction]
    with running("--port", "0") as wire:
        yield wire


@pytest.fixture
def wire(_server: Wire, monkeypatch: pytest.MonkeyPatch) -> Wire:
    """The server, with nothing to say yet, and the keys and base URLs that lead to it."""
    _server.plays()
    for name in ("OPENAI", "ANTHROPIC", "DASHSCOPE"):
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", _server.url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{_server.port}")
    monkeypatch.setenv("DASHSCOPE_BASE_URL", f"http://127.0.0.1:{_server.port}/compatible-mode/v1")
    return _server


@pytest.fixture
def naps() -> Naps:
    return Naps()
