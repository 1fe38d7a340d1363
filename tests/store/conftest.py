from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import postgres_server
import pytest
from lesson_kit import KINDS, STORES

from mulligan.core.lessons import LessonStore, Memory


@pytest.fixture(params=KINDS)
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Memory]:
    opened = STORES[request.param](tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def store(memory: Memory) -> LessonStore:
    assert isinstance(memory.lessons, LessonStore)
    return memory.lessons


@pytest.fixture(scope="session", autouse=True)
def _postgres() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Ends the PostgreSQL server with the session, if a test started one."""
    yield
    postgres_server.stop_all()
