"""A phone that was recorded: screens with what an action on each leads to. Nothing is connected.

mulligan solve "Turn off notifications of the shop." --environment ./phone.py --strategy reflexion --model MODEL
"""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

from mulligan.plugins import Image, InvalidInput, Outcome, Step, TaskFeedback


class Phone:
    """The recording is a JSON file: {"start", "goal", "screens": {name: {"text", "image", "actions": {action: name}}}}.

    `image` is a PNG in base64, or absent. The task is done with the action `done` on the screen `goal`.
    """

    def __init__(self, *, recording: str = str(Path(__file__).with_name("notifications.json"))) -> None:
        try:
            given = json.loads(Path(recording).read_text(encoding="utf-8"))
            self._screens, self._start, self._goal = given["screens"], given["start"], given["goal"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"phone: {recording} is no recording of screens: {error}") from None
        self._here = self._before = self._start

    async def reset(self) -> str:
        self._here = self._before = self._start
        return self._text()

    def shown(self) -> tuple[Image, ...]:
        return self._images(self._here)

    async def step(self, action: str) -> Step:
        if action == "done":
            return Step(action=action, observation=self._text(), outcome=self._outcome(), images=self.shown())
        leads_to = self._screens[self._here]["actions"].get(action)
        if leads_to is None:
            return Step(action=action, observation=f"Nothing happened.\n{self._text()}", images=self.shown())
        self._before, self._here = self._here, leads_to
        return Step(action=action, observation=self._text(), images=self.shown())

    async def close(self) -> None: ...

    def _outcome(self) -> Outcome:
        solved = self._here == self._goal
        feedback = TaskFeedback(
            solved,
            None if solved else "wrong_state",
            expected_state=self._screens[self._goal]["text"],
            actual_state=self._screens[self._here]["text"],
            before=next(iter(self._images(self._before)), None) or self._screens[self._before]["text"],
            after=next(iter(self.shown()), None) or self._screens[self._here]["text"],
        )
        return Outcome(float(solved), done=True, feedback=feedback.to_feedback("phone"))

    def _text(self) -> str:
        actions = ", ".join((*self._screens[self._here]["actions"], "done"))
        return f"{self._screens[self._here]['text']}\nActions: {actions}"

    def _images(self, name: str) -> tuple[Image, ...]:
        data = self._screens[name].get("image")
        return (Image("image/png", b64decode(data)),) if data else ()
