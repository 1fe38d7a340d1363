import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """No test touches the user's store, models or settings, or calls a provider because a key is set."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("MULLIGAN_HOME", str(home))
    for name in ("MULLIGAN_MODEL", "MULLIGAN_MODELS", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DASHSCOPE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
