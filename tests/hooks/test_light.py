"""Named tuples as `typing` has them, without its import."""

import copy
import pickle
from typing import Any

import pytest

from mulligan.sessions.events import Notice


def test_a_notice_is_a_named_tuple() -> None:
    notice = Notice("claude", "start", "s1", folder="/p")
    assert notice == Notice("claude", "start", session="s1", folder="/p", tool="")
    assert notice._replace(tool="Bash").tool == "Bash"
    assert notice._asdict()["session"] == notice[2] == "s1"
    assert copy.deepcopy(notice) == pickle.loads(pickle.dumps(notice)) == notice
    assert repr(notice).startswith("Notice(agent='claude', moment='start', session='s1'")


@pytest.mark.parametrize(
    ("values", "named"), [(("claude", "start", "s1"), {}), (("claude",), {"agent": "codex"}), ((), {"tools": "Bash"})]
)
def test_each_field_is_given_once_and_none_is_unknown(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="Notice"):
        Notice(*values, **named)
