"""Options of `mulligan serve` that only a server over HTTP has."""

import pytest
from commands import Mulligan


@pytest.mark.parametrize("option", ["--port=9000", "--host=127.0.0.1", "--metrics"])
def test_an_option_for_http_is_refused_over_stdio(mulligan: Mulligan, option: str) -> None:
    ended = mulligan("serve", option)
    name = option.partition("=")[0]
    assert (ended.status, ended.out) == (2, "")
    assert f"{name} needs HTTP: add --transport http, or omit {name}." in ended.err
