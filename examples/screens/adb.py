"""An Android device over adb. Not run: there was no device to run it on (see README.md).

It knows no goal, so somebody has to judge: --evaluator human, or a judge that sees the screens (--judge-model).
"""

from __future__ import annotations

import asyncio
import re
import shutil
from xml.etree import ElementTree

from mulligan.plugins import Image, InvalidInput, Outcome, Step

_ACTION = re.compile(r"tap\[(\d+),\s*(\d+)\]|type\[(.*)\]|(back|home|done)")
_KEYS = {"back": "KEYCODE_BACK", "home": "KEYCODE_HOME"}
_UNSAFE = re.compile(r"[^A-Za-z0-9 .,:@_-]")


class Adb:
    """serial: of the device, where several are connected. seconds: that one command of adb may take."""

    def __init__(self, *, serial: str = "", seconds: float = 20.0) -> None:
        if shutil.which("adb") is None:
            raise InvalidInput("adb: the program adb is not here. Install Android's platform tools.")
        self._command = ["adb", *(["-s", serial] if serial else [])]
        self._seconds = seconds
        self._screen: tuple[Image, ...] = ()

    async def reset(self) -> str:
        await self._adb("shell", "input", "keyevent", "KEYCODE_HOME")
        return await self._look()

    def shown(self) -> tuple[Image, ...]:
        return self._screen

    async def step(self, action: str) -> Step:
        found = _ACTION.fullmatch(action.strip())
        if found is None:
            return Step(action=action, observation="That is no action: tap[X,Y], type[text], back, home or done.")
        x, y, text, key = found.groups()
        if x is not None:
            await self._adb("shell", "input", "tap", x, y)
        elif text is not None:  # the device's shell reads it, so only plain characters go through
            await self._adb("shell", "input", "text", _UNSAFE.sub("", text).replace(" ", "%s"))
        elif key in _KEYS:
            await self._adb("shell", "input", "keyevent", _KEYS[key])
        observation = await self._look()
        return Step(action=action, observation=observation, outcome=Outcome(done=key == "done"), images=self._screen)

    async def close(self) -> None: ...

    async def _look(self) -> str:
        self._screen = (Image("image/png", await self._adb("exec-out", "screencap", "-p")),)
        said = (await self._adb("exec-out", "uiautomator", "dump", "/dev/tty")).decode("utf-8", "replace")
        xml = said[said.find("<?xml") : said.rfind(">") + 1]
        try:
            nodes = ElementTree.fromstring(xml).iter("node")
        except ElementTree.ParseError:
            return "The screen cannot be read as text."
        named = ((node.get("text") or node.get("content-desc") or "", node.get("bounds", "")) for node in nodes)
        return "\n".join(f"{name} {bounds}" for name, bounds in named if name) or "The screen has no text."

    async def _adb(self, *arguments: str) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *self._command, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        try:
            out, error = await asyncio.wait_for(process.communicate(), self._seconds)
        except TimeoutError:
            process.kill()
            raise
        if process.returncode:
            raise OSError(f"adb {arguments[0]}: {error.decode('utf-8', 'replace').strip()}")
        return out
