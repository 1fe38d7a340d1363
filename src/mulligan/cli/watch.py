"""What the command line shows of an episode: its progress and its result; and its exit status."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from mulligan.app.compose import asks_model
from mulligan.app.config import choose_model, load
from mulligan.app.plugins import attribute_of, parse_spec
from mulligan.cli import words
from mulligan.cli.errors import UNFINISHED, exit_status, report, run_status
from mulligan.cli.main import stoppable
from mulligan.cli.progress import Progress, first
from mulligan.cli.terminal import has_screen, say
from mulligan.core.episode import Event
from mulligan.core.errors import RecordLost, StoreError
from mulligan.core.limits import Limits
from mulligan.core.records import Episode, Json, Trial
from mulligan.models.catalog import found_keys


def mention_keys(actor: str | None, model: str | None) -> None:
    """If no model was named, name the providers whose keys are set: a key alone never chooses a provider."""
    if asks_model("actor", parse_spec("actors", actor or "complete")) and choose_model(model, load()) is None:
        for variable, name in found_keys():
            say(f"{variable} found; add --model {name} to use it")


class Watch:
    """Passes an episode's events to a `Progress`.

    Args:
        quiet: whether to show no progress on stderr.
        as_json: whether to print events as JSON lines.
        trace: whether to also print each step.
    """

    live = True
    """Whether a terminal shows the episode live; else there is a line for each event."""

    def __init__(self, quiet: bool, as_json: bool, trace: bool = False) -> None:
        self._quiet, self._json, self._trace = quiet, as_json, trace
        self.progress = first(quiet=quiet, as_json=as_json)
        self.episode: Episode | None = None
        self.limits = Limits()
        self.on_step: Callable[..., None] | None = self.did if trace else None

    def conduct(self, work: Callable[..., Coroutine[Any, Any, Any]]) -> int:
        """Runs an episode, prints how it ended, and returns the exit status.

        Args:
            work: `mulligan.solve` or a similar function. It is called with `on_start`, `observers`, `on_step` and
                `notice`.
        """
        from asyncio import CancelledError  # not above: `--help` is quick

        try:
            begun = work(on_start=self.began, observers=(self.saw,), on_step=self.on_step, notice=self.notice)
            with stoppable(begun, self.interrupting) as wait:
                result = wait()
            return self.ended(result)
        except CancelledError:
            return self.interrupted()
        except Exception as error:
            return self.failed(error)

    def began(self, episode: Episode, limits: Limits) -> None:
        if self.episode is None:
            self.progress = self._chosen(episode)
        self.episode, self.limits = episode, limits
        self.progress.began(episode, limits)

    def _chosen(self, episode: Episode) -> Progress:
        """The live display on a terminal; lines if the terminal is needed for a trace or for a person's answers."""
        judges = attribute_of("evaluators", words.role(episode, "evaluator"), "interactive", False)
        asked = judges or episode.head.settings.get("edits")
        if not self.live or self._quiet or self._json or self._trace or asked or not has_screen():
            return first(quiet=self._quiet, as_json=self._json)
        from mulligan.cli.live import Live

        return Live()

    def saw(self, episode: Episode, event: Event) -> None:
        self.episode = episode
        self.progress.saw(episode, event)

    def did(self, key: str, request: Json, result: Json, recorded: bool) -> None:
        self.progress.did(key, request, result, recorded)

    def notice(self, sentence: str) -> None:
        self.progress.notice(sentence)

    def interrupting(self) -> None:
        self.progress.interrupting()

    def ended(self, result: Any) -> int:
        episode: Episode = result
        self.progress.ended(episode, self.limits)
        last = self.episode or episode
        status = run_status(episode, last)
        if status != exit_status(episode):
            for line in words.broken_off(last):
                say(line)
        return status

    @property
    def status(self) -> int:
        """Returns the exit status for the episode's current state."""
        return exit_status(self.episode) if self.episode else UNFINISHED

    def closing(self, label: str, trial: Trial | None) -> list[str]:
        """Returns the last lines about the episode: see `words.closing`."""
        return words.closing(self.episode, self.limits, label, trial) if self.episode else []

    def interrupted(self) -> int:
        if self.episode:
            self.progress.ended(self.episode, self.limits)
        else:
            say("Interrupted before anything started.")
        return UNFINISHED

    def failed(self, error: Exception) -> int:
        """Reports the error that ended the run, prints a result whose record is lost, and returns the exit status."""
        if isinstance(error, RecordLost) and self.episode:
            self.progress.unrecorded(self.episode)
        self.progress.failed(error)
        # a store that is gone or damaged shows no steps; a full disk and a lost lease have errors of their own classes
        unreadable = isinstance(error, RecordLost) or type(error) is StoreError
        return report(error, self.episode.run if self.episode and not unreadable else "")
