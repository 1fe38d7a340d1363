"""`kill -9` of hook and worker at any moment: tries count once, and the goal goes on."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from goal_kit import Folder

from mulligan.goals.state import Goals
from mulligan.recording.holders import died

MOMENTS = 60
WORDS = ("one", "two", "three", "four", "five", "six", "seven")


def workers(place: Folder) -> list[int]:
    """The processes that judge a try now."""
    with Goals() as goals:
        rows = goals.tries(place.now().id)
    begun = [one.owner for one in rows if one.state == "begun" and not died(one.owner)]
    return [int(owner.rpartition(":")[0].rpartition(":")[2]) for owner in begun]


@pytest.mark.slow
def test_tries_count_once_whenever_hook_and_worker_are_killed(place: Folder) -> None:
    place.goal(trials=1000)
    payload = json.dumps({"hook_event_name": "Stop", "session_id": "s1", "cwd": str(place.path), "transcript_path": ""})
    command = [sys.executable, "-m", "mulligan.hooks.entry", "claude", "Stop"]
    place.prompt()
    taken_over = 0
    for moment in range(MOMENTS):
        place.write("words.txt", f"bad-{WORDS[moment % 7]} bad-{WORDS[moment // 7 % 7]}-again\n")
        before = len(place.tries())
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as hook:
            with suppress(subprocess.TimeoutExpired):
                hook.communicate(payload, timeout=0.02 + 1.2 * moment / MOMENTS)
            hook.kill()
        if moment % 3:
            for pid in workers(place):
                if pid != os.getpid():
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        place.prompt("Go on.")
        killed = [one for one in place.tries()[before:] if one[1] is None]
        taken_over += bool(place.stop() and killed)
        after = place.tries()
        assert [n for n, _, _ in after] == list(range(1, len(after) + 1))
        assert len(after) - before <= 1, f"moment {moment}: one stop is one try"
        assert all(passed is False for _, passed, _ in after), f"moment {moment}: nothing is left open"
    assert taken_over, "some were killed in the middle"
    place.write("words.txt", "good\n")
    assert place.stop() == ""
    assert place.now().state == "passed"
