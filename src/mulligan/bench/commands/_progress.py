"""Shows the progress of a benchmark run on stderr: a line for each case that ends, with the rate and the time left.

On a terminal, a last line shows the current step.
"""

from __future__ import annotations

import json
import time
from collections import Counter

from mulligan.app.workspaces import has_judge
from mulligan.bench.harness.running import Finished
from mulligan.cli.counting import Counting, about
from mulligan.cli.errors import NOT_SOLVED, SOLVED, UNFINISHED
from mulligan.cli.terminal import emit, one_line, say
from mulligan.cli.words import Entry, count, reason
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.episode import Event, Move, due
from mulligan.core.limits import Limits
from mulligan.core.records import Episode
from mulligan.text.states import DOING, STATES, state_of

STATE_OF_STATUS = {"solved": "passed", "failed": "failed", "unjudged": "unjudged", "error": "error"}
"""The state of `STATES` for each status of a case."""
SAME_ERRORS = 3
"""A warning is printed if this many cases, the first ones, all end with the same error."""


class Progress:
    """The progress of one run. `on_case` and `on_event` are its hooks.

    Args:
        quiet: print only the result and how to resume.
        as_json: print the result as a JSON object.
        command: the command that resumes the run.
        stdout: whether the result goes to stdout instead of stderr.
    """

    def __init__(
        self, quiet: bool, as_json: bool = False, *, command: str = "mulligan bench run", stdout: bool = True
    ) -> None:
        self._json, self._counting, self._command, self._stdout = as_json, Counting(quiet), command, stdout
        self._run: BenchRun | None = None
        self._began = time.monotonic()
        self._old_cases = 0
        self._counts: Counter[str] = Counter()
        self._errors: list[str] = []
        self._verdicts: dict[str, str] = {}

    def on_case(self, run: BenchRun, result: CaseResult | None) -> None:
        """See `OnCase`."""
        if result is None:
            self._run, self._old_cases = run, self._counts.total()
            self._counting.start()
            ended = f", {self._old_cases} of them ended before" if self._old_cases else ""
            self._counting.say(f"run {run.id}: {run.benchmark}, {count(len(run.cases), 'case')}{ended}")
            return
        self._counts[result.status] += 1
        if self._run is not None:
            self._show_result(run, result)

    def _show_result(self, run: BenchRun, result: CaseResult) -> None:
        done = self._counts.total()
        trials = max((len(mark.scores) for mark in result.episodes), default=0)
        ended = f"{done} of {len(run.cases)}: {one_line(result.case, 80)}: {result.status}"
        line = f"{ended}, {count(trials, 'try')}{self._take_verdicts(run, result)}, {result.seconds:.1f} s"
        why = reason(result.text.strip(), f"{run.id}.{result.position}") if result.status == "error" else ""
        self._counting.show(Entry(STATE_OF_STATUS.get(result.status, "note"), line, why, self._left(run, done)))
        if len(self._errors) < SAME_ERRORS:
            self._errors.append(result.text if result.status == "error" else "")
            if len(self._errors) == SAME_ERRORS and self._errors[0] and len(set(self._errors)) == 1:
                self._counting.say(
                    f"The first {SAME_ERRORS} cases all ended with the same error. The run continues. To fix the cause "
                    f"first, stop it with Ctrl-C and resume it with: {self._command} --resume {run.id}"
                )

    def on_event(self, episode: Episode, event: Event) -> None:
        """Notes the verdicts of an episode, and shows its next step."""
        judged = [trial.feedback for trial in episode.trials if trial.feedback]
        if has_judge(episode):
            self._verdicts[episode.id] = ", ".join(STATES[state_of(feedback.passed)].word for feedback in judged)
        move = due(episode, Limits(trials=len(episode.trials) + 1))
        if self._run is None or not isinstance(move, Move):
            return
        case = self._run.cases[int(episode.id.split(".")[1]) - 1]
        done = self._counts.total()
        ended = f"{done} of {len(self._run.cases)} ended{self._left(self._run, done)}"
        self._counting.doing(f"{ended}; {case}: try {move.trial}: {DOING[move.kind]}")

    def _take_verdicts(self, run: BenchRun, result: CaseResult) -> str:
        """The verdicts of the loop on each trial of a case, which are then forgotten."""
        ids = [id for id in self._verdicts if id.startswith(f"{run.id}.{result.position}.")]
        verdicts = [words for id in ids if (words := self._verdicts.pop(id))]
        return f" ({'; '.join(verdicts)})" if verdicts else ""

    def notice(self, sentence: str) -> None:
        self._counting.say(sentence)

    def interrupting(self) -> None:
        self.stop()
        self._counting.say("Stopping once the current steps are recorded; interrupt again to stop immediately")

    def finish(self, finished: Finished) -> int:
        """Shows the result of the run. Returns the exit status."""
        self.stop()
        counts = Counter(result.status for result in finished.results)
        n, run = sum(counts.values()), finished.run
        numbers = {
            "n": n,
            **{name: counts[name] for name in ("solved", "failed", "unjudged")},
            "errors": counts["error"],
        }
        if self._json:
            emit(json.dumps({"run": run.id, "benchmark": run.benchmark, **numbers}))
        else:
            rest = ", ".join(
                count(number, "error") if name == "errors" else f"{number} {name}"
                for name, number in numbers.items()
                if name not in ("n", "solved")
            )
            (emit if self._stdout else self._counting.say)(f"{run.id}: {counts['solved']} of {n} solved, {rest}")
        if counts["error"]:
            self._counting.say(f"to rerun the cases with errors: {self._command} --resume {run.id}")
        self._counting.say(f"report: mulligan bench report {run.id}")
        self._counting.say(f"lessons of case N: mulligan runs show {run.id}.N")
        return UNFINISHED if counts["error"] else SOLVED if counts["solved"] == n else NOT_SOLVED

    def finish_early(self) -> int:
        """Shows how to resume the run. Returns the exit status."""
        self.stop()
        if self._run is None:
            say("Interrupted before anything started.")
        else:
            say(f"Interrupted. Resume it with: {self._command} --resume {self._run.id}")
        return UNFINISHED

    def _left(self, run: BenchRun, done: int) -> str:
        """The rate and the time left, computed from the cases that this process ran."""
        new, seconds = done - self._old_cases, time.monotonic() - self._began
        if new < 2 or seconds < 1 or done == len(run.cases):
            return ""
        left = (len(run.cases) - done) * seconds / new
        return f" ({self._counts['solved']} solved so far, {60 * new / seconds:.1f} cases/min, {about(left)})"

    def stop(self) -> None:
        """Removes the status line."""
        self._counting.stop()
