from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from lesson_kit import KINDS, STORES

from mulligan.core.lesson_store import LessonStore, Memory


@pytest.fixture(params=KINDS)
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Memory]:
    opened = STORES[request.param](tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def store(memory: Memory) -> LessonStore:
    assert isinstance(memory.lessons, LessonStore)
    return memory.lessons
