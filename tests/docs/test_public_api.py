"""The public API stands in one file, so that a change of it is seen."""

from pathlib import Path

import pytest

from public_api import text


def test_the_public_api_is_the_one_in_the_file():
    stored = Path(__file__).parents[1] / "public_api.txt"
    if stored.read_text(encoding="utf-8") != text():
        pytest.fail("The public API changed. Run `make docs`, read the diff of tests/public_api.txt, and commit it.")
