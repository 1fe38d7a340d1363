from collections.abc import AsyncGenerator, Iterator

import postgres_server
import pytest
import ray_here
from provider_server import ProviderServer


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Ends Ray and PostgreSQL with the session, if a test started them."""
    yield
    ray_here.stop()
    postgres_server.stop_all()


@pytest.fixture
async def provider() -> AsyncGenerator[ProviderServer]:
    async with ProviderServer([]) as server:
        yield server
