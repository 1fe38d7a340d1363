"""What an extra brings is found under its own name, whatever begins with the same letters and comes first."""

import re

import pytest

from mulligan.core.extras import MissingExtra, install_command, require


@pytest.mark.parametrize(
    ("module", "extra", "distribution"),
    [
        ("langgraph", "langgraph", ""),  # beside langgraph-checkpoint-sqlite
        ("langchain_core", "langgraph", "langchain-core"),
        ("mcp", "serve", ""),
        ("pydantic_ai", "models", "pydantic-ai-slim"),
    ],
)
def test_what_is_installed_in_a_version_that_fits_is_not_missing(module: str, extra: str, distribution: str) -> None:
    require("This needs it", module, extra, distribution=distribution)


def test_what_is_not_there_is_named_with_its_extra() -> None:
    with pytest.raises(MissingExtra, match=re.escape(f"This needs it: {install_command('studio')}")):
        require("This needs it", "no_such_module", "studio")
