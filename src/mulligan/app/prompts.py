"""Finds prompt files: in the user's folder, then beside the user's plug-in, then beside our plug-ins."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from mulligan.app.config import Config, prompts_folder
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.prompts import Prompt

_PACKAGE = Path(__file__).parent.parent


class FilePrompts:
    """`Prompts` from files.

    `folders` take precedence over the built-in prompts. `used` contains the sha256 of each text that was read.
    """

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        for folder in folders:
            if not folder.is_dir():
                raise InvalidInput(f"The prompts folder {folder} does not exist.")
        self._folders = tuple(folders)
        self.used: dict[str, str] = {}
        self.texts: dict[str, str] = {}

    @classmethod
    def of(cls, config: Config) -> FilePrompts:
        """Returns the prompts in the folder from mulligan.toml, and the built-in prompts for the others."""
        folder = prompts_folder(config)
        return cls([Path(folder)] if folder else [])

    def get(self, name: str) -> Prompt:
        """Returns a prompt. Raises `UnknownName`, or `InvalidInput` if the file cannot be used."""
        return Prompt.parse(name, self.text(name))

    def text(self, name: str) -> str:
        """Returns the text of the prompt with this name, or of the file with this path."""
        file = Path(name) if os.sep in name or name.endswith((".md", ".txt")) else self._find(name)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"The prompt file {file} cannot be read: {error}.") from error
        self.used[name] = hashlib.sha256(text.encode()).hexdigest()
        self.texts[name] = text
        return text.strip()

    def _find(self, name: str) -> Path:
        for folder in self._folders:
            if (file := folder / f"{name}.md").is_file():
                return file
        shipped = _shipped()
        if name not in shipped:
            raise UnknownName("prompt", name, shipped)
        return shipped[name]


@cache
def _shipped() -> Mapping[str, Path]:
    return {file.stem: file for file in _PACKAGE.rglob("*.*.md")}
