"""A retried function that kills its own process in the third try: `mortal_retry.py LOG WHERE`.

WHERE: "function" (before it returns), "judge", a number of seconds after the third try began, or "" for never. Every
call of the function leaves a line in LOG.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import mulligan
from mulligan import Notes


def main(log: str, where: str) -> None:
    third = threading.Event()

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def die_later() -> None:
        time.sleep(float(where))
        if third.is_set():
            die()

    def judge(answer: int) -> tuple[bool, str]:
        if answer == 3 and where == "judge":
            die()
        return answer == 4, f"not {answer}"

    @mulligan.retry(judge=judge, tries=5, key="mortal")
    def act(notes: Notes) -> int:
        if notes.trial == 4:
            third.clear()
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{notes.trial}\n")
        if notes.trial == 3 and where == "function":
            die()
        if notes.trial == 3 and where not in ("", "judge"):
            third.set()
            threading.Thread(target=die_later, daemon=True).start()
            time.sleep(0.005)
        return notes.trial

    result = act.run()
    print(result.value, [trial.number for trial in result.episode.trials], result.episode.solved)


if __name__ == "__main__":
    main(*sys.argv[1:])
